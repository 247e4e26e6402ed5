"""What an operator sees: metrics, log lines, traces; and who may ask."""

import json
import logging
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from late_chunking.errors import InvalidParameter, NonFiniteVector
from server.logs import log_config
from server.settings import ServerSettings
from tests.server.chunkers import Failing, around

BODY = {"documents": [{"text": "word " * 700}, {"text": "One. Two."}], "chunking": {"strategy": "tokens", "size": 50}}


def samples(client) -> dict[str, float]:
    """All metrics, by name and labels."""
    text = client.get("/metrics").text
    return {
        f"{sample.name}{sorted(sample.labels.items())}" if sample.labels else sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_count_what_was_done(embedded, started):
    client = started(around(embedded, Failing(embedded.reader, NonFiniteVector("not finite"))))
    before = samples(client)
    answer = client.post("/v1/chunks", json=BODY).json()["data"]
    client.post("/v1/chunks", json={"documents": [{"text": "FAULT"}]})
    client.get("/nowhere/at/all")
    after = samples(client)
    assert before["lc_tokens_total"] == 0
    read = sum(len(s) for text in BODY["documents"] for s in next(embedded.plan_texts([text["text"]])).sequences)
    assert after["lc_tokens_total"] == read + 3
    assert after["lc_chunks_total"] == sum(len(document["chunks"]) for document in answer)
    assert after["lc_windowed_documents_total"] == 1
    assert after["lc_nonfinite_total"] == 1
    assert after["lc_queue_tokens"] == after["lc_requests_in_work"] == 0
    assert after["lc_requests_total[('route', '/v1/chunks'), ('status', '200')]"] == 1
    assert after["lc_requests_total[('route', '/v1/chunks'), ('status', '500')]"] == 1
    assert after["lc_requests_total[('route', 'none'), ('status', '404')]"] == 1
    for name in ("queue", "tokenization", "inference"):
        assert after[f"lc_{name}_duration_seconds_count"] == 2
    assert after["lc_inference_duration_seconds_sum"] > 0
    assert after["lc_request_duration_seconds_count[('route', '/v1/chunks')]"] == 2
    assert after["lc_batch_tokens_sum"] == after["lc_tokens_total"]


def test_refusals_are_counted_by_reason(embedded, started):
    client = started(embedded)
    client.app.state.service.life.draining = True
    answer = client.post("/v1/chunks", json=BODY)
    assert (answer.status_code, answer.json()["error_type"]) == (503, "not_ready")
    assert answer.headers["Retry-After"]
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200
    assert samples(client)["lc_rejected_total[('reason', 'draining')]"] == 1


def test_a_line_a_request_without_its_text(embedded, started, caplog):
    client = started(embedded)
    with caplog.at_level(logging.INFO):
        client.post("/v1/chunks", json={"documents": [{"text": "A secret."}]}, headers={"X-Request-ID": "abc-1"})
        client.get("/secret/path?secret=1")
        client.get("/healthz")
    lines = [record for record in caplog.records if record.name == "server.access"]
    assert [(line.request_id == "abc-1", line.route, line.status) for line in lines] == [
        (True, "/v1/chunks", 200),
        (False, "none", 404),
    ]
    assert lines[0].total_ms >= lines[0].inference_ms > 0
    ours = [record.getMessage() + str(vars(record)) for record in caplog.records if record.name.startswith("server")]
    assert not any("ecret." in line or "secret" in line for line in ours)


def test_json_lines(capsys):
    logging.config.dictConfig(log_config(json_output=True))
    try:
        logging.getLogger("server.access").info("done %s", 1, extra={"request_id": "abc", "status": 200})
        line = json.loads(capsys.readouterr().err)
    finally:
        for name in ("server", "late_chunking", "uvicorn", "uvicorn.access"):
            logger = logging.getLogger(name)
            logger.handlers.clear()
            logger.propagate, logger.level = True, logging.NOTSET
    assert line["message"] == "done 1"
    assert (line["level"], line["logger"], line["request_id"], line["status"]) == ("INFO", "server.access", "abc", 200)
    assert re.match(r"\d{4}-\d\d-\d\d", line["time"])


class Collector(BaseHTTPRequestHandler):
    """An OTLP collector that keeps what it is sent."""

    received: ClassVar[list] = []

    def do_POST(self):
        request = ExportTraceServiceRequest()
        request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
        self.received.append((self.path, request))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments):
        pass


def test_traces_go_to_the_endpoint(embedded):
    from fastapi.testclient import TestClient

    from server.app import create_app

    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with TestClient(create_app(ServerSettings(otlp_endpoint=endpoint), embedded)) as client:
        headers = {"traceparent": f"00-{trace}-{parent}-01", "X-Request-ID": "abc"}
        assert client.post("/v1/chunks", json=BODY, headers=headers).status_code == 200
    collector.shutdown()
    collector.server_close()
    spans = {
        span.name: span
        for path, request in Collector.received
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
        if path == "/v1/traces"
    }
    whole = spans["/v1/chunks"]
    assert whole.trace_id.hex() == trace
    assert whole.parent_span_id.hex() == parent
    attributes = {item.key: item.value for item in whole.attributes}
    assert attributes["http.response.status_code"].int_value == 200
    assert attributes["request_id"].string_value == "abc"
    for name in ("tokenization", "inference"):
        assert spans[name].parent_span_id == whole.span_id
        assert spans[name].end_time_unix_nano > spans[name].start_time_unix_nano


def test_other_origins_may_call_only_if_told(embedded, started):
    asked = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    closed = started(embedded)
    assert "access-control-allow-origin" not in closed.options("/v1/chunks", headers=asked).headers
    opened = started(embedded, cors_allow_origin="https://a.example, https://b.example", api_key="key")
    preflight = opened.options("/v1/chunks", headers=asked)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == "https://a.example"
    headers = {"Origin": "https://b.example", "Authorization": "Bearer key"}
    answer = opened.post("/v1/chunks", json=BODY, headers=headers)
    assert answer.headers["access-control-allow-origin"] == "https://b.example"
    assert opened.options("/v1/chunks", headers={**asked, "Origin": "https://c.example"}).status_code == 400


def test_several_keys_from_environment_and_file(embedded, started, tmp_path):
    path = tmp_path / "keys"
    path.write_text("third\n\n fourth \n")
    client = started(embedded, api_key="first, second", api_key_file=path)
    for key, status in [("first", 200), ("second", 200), ("third", 200), ("fourth", 200), ("fifth", 401), ("", 401)]:
        assert client.get("/info", headers={"Authorization": f"Bearer {key}"}).status_code == status
        assert client.get("/metrics", headers={"Authorization": f"Bearer {key}"}).status_code == status
    assert client.get("/readyz").status_code == 200
    assert client.post("/readyz").status_code == 401


@pytest.mark.parametrize("keys", [",", " , "])
def test_keys_that_are_none_do_not_open_the_server(keys):
    with pytest.raises(InvalidParameter, match="api_key holds no key"):
        ServerSettings(api_key=keys).api_keys()


@pytest.mark.parametrize("content", [None, "", "\n \n"])
def test_a_file_without_keys_is_refused(tmp_path, content):
    path = tmp_path / "keys"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidParameter, match="api_key_file"):
        ServerSettings(api_key_file=path).api_keys()
