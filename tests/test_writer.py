"""Contexts from a language model, against a real HTTP server."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from late_chunking import Chunk, Document, LateChunker, errors, writer
from late_chunking.cli import app
from late_chunking.writer import ContextWriter
from server.app import create_app
from server.settings import ServerSettings

TEXT = "The ferry leaves at dawn.\n\nIt carries salt.\n\nNobody complained.\n\nIt carries salt."


class Endpoint(ThreadingHTTPServer):
    """Answers chat requests; what it does with each can be set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[dict] = []
        self.keys: list[str | None] = []
        self.busy = 0
        self.most = 0
        self.lock = threading.Lock()
        self.fail: Callable[[int], tuple[int, dict[str, str], bytes] | None] = lambda number: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    """One connection to the endpoint."""

    protocol_version = "HTTP/1.1"
    server: Endpoint

    def do_POST(self) -> None:
        endpoint = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with endpoint.lock:
            endpoint.bodies.append(body)
            endpoint.keys.append(self.headers["Authorization"])
            number = len(endpoint.bodies)
            endpoint.busy += 1
            endpoint.most = max(endpoint.most, endpoint.busy)
        status, headers, payload = endpoint.fail(number) or (200, {}, self.answer(body))
        with endpoint.lock:
            endpoint.busy -= 1
        if self.path != "/v1/chat/completions":
            status, payload = 404, b"no such path"
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(payload))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)

    def answer(self, body: dict) -> bytes:
        chunk = body["messages"][1]["content"].split("<chunk>\n")[1].split("\n</chunk>")[0]
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 80}}
        message = {"role": "assistant", "content": f" about {chunk} \n"}
        return json.dumps({"choices": [{"message": message}], "usage": usage}).encode()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_WAIT", 0.001)


@pytest.fixture(scope="module")
def chunks(embedded: LateChunker) -> tuple[Chunk, ...]:
    return embedded.chunk(Document(TEXT, id="ferry"), strategy="paragraphs")


def test_contexts_stand_before_their_chunks(embedded: LateChunker, endpoint: Endpoint) -> None:
    write = ContextWriter(endpoint.url, "model-1", api_key="secret", prices=(10, 1, 100))
    found = embedded.embed(TEXT, strategy="paragraphs", mode="contextual", context=write)
    assert [chunk.content for chunk in found.chunks] == [
        f"about {chunk.text}\n\n{chunk.text}" for chunk in found.chunks
    ]
    assert set(endpoint.keys) == {"Bearer secret"}
    # The document stands first in each request, the same for all: what an endpoint can cache.
    assert len({json.dumps(body["messages"][0]) for body in endpoint.bodies}) == 1
    assert TEXT in endpoint.bodies[0]["messages"][0]["content"]
    assert len(endpoint.bodies) == 3  # equal chunks are asked about once
    assert (write.usage.requests, write.usage.prompt_tokens, write.usage.cached_tokens) == (3, 300, 240)
    assert write.usage.completion_tokens == 30
    assert write.usage.cost == pytest.approx((60 * 10 + 240 * 1 + 30 * 100) / 1e6)


def test_so_many_at_a_time_and_the_first_alone(endpoint: Endpoint, embedded: LateChunker) -> None:
    document = Document("\n\n".join(f"Paragraph {number}." for number in range(30)))
    chunks = embedded.chunk(document, strategy="paragraphs")
    gate = threading.Event()

    def wait(number: int) -> None:
        if number == 1:
            assert endpoint.most == 1
        elif number == 4:
            gate.set()
        gate.wait(0 if number == 1 else 5)

    endpoint.fail = wait  # type: ignore[assignment]
    assert len(ContextWriter(endpoint.url, "m", concurrency=3)(document, chunks)) == 30
    assert endpoint.most == 3


def test_what_was_written_is_kept_and_a_job_goes_on(endpoint: Endpoint, chunks, tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "contexts.sqlite"
    document = Document(TEXT, id="ferry")
    endpoint.fail = lambda number: (500, {}, b"broken") if number > 2 else None
    with pytest.raises(errors.ContextError, match="status 500: broken"):
        ContextWriter(endpoint.url, "m", cache=str(cache), tries=2, concurrency=1)(document, chunks)
    endpoint.fail = lambda number: None
    endpoint.bodies.clear()
    second = ContextWriter(endpoint.url, "m", cache=cache)
    contexts = second(document, chunks)
    assert contexts == [f"about {chunk.text}" for chunk in chunks]
    assert len(endpoint.bodies) == 1
    assert second.usage.kept == 2
    third = ContextWriter("http://127.0.0.1:9", "m", cache=cache)
    assert third(document, chunks) == contexts
    with pytest.raises(errors.ContextError):
        ContextWriter("http://127.0.0.1:9", "other", cache=cache, tries=1)(document, chunks)


def test_what_may_pass_is_tried_again(endpoint: Endpoint, chunks) -> None:
    answers = {1: (429, {"Retry-After": "0"}, b"slow down"), 2: (503, {}, b"busy")}
    endpoint.fail = answers.get
    write = ContextWriter(endpoint.url, "m")
    assert len(write(Document(TEXT), chunks)) == 4
    assert len(endpoint.bodies) == 5
    assert write.usage.cost is None


@pytest.mark.parametrize(
    ("answer", "message", "requests"),
    [
        ((401, {}, b"no such key"), "status 401: no such key", 1),
        ((404, {}, b"no such model"), "status 404", 1),
        ((200, {}, b"<html>"), "did not answer with JSON: '<html>'", 1),
        ((200, {}, b"[]"), "did not answer with an object", 1),
        ((200, {}, b'{"choices": []}'), "gave no answer to use", 1),
        ((200, {}, b'{"choices": [{"message": {"content": null}}]}'), "gave no answer to use", 1),
        ((200, {}, b'{"choices": [{"message": {"content": " "}}]}'), "gave an empty context", 1),
        ((503, {}, b"busy"), "status 503: busy", 3),
    ],
)
def test_an_endpoints_faults_are_said(endpoint: Endpoint, chunks, answer: tuple, message: str, requests: int) -> None:
    endpoint.fail = lambda number: answer
    with pytest.raises(errors.ContextError, match=message):
        ContextWriter(endpoint.url, "m", tries=3)(Document(TEXT), chunks)
    assert len(endpoint.bodies) == requests


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "ftp://x"}, "must be an http or https address, got 'ftp://x'"),
        ({"instruction": "write"}, "must say where the chunk goes"),
        ({"concurrency": 0}, "concurrency must be at least 1, got 0"),
    ],
)
def test_wrong_settings_are_said(options: dict, message: str) -> None:
    with pytest.raises(errors.InvalidParameter, match=message):
        ContextWriter(**{"url": "http://x/v1", "model": "m", **options})


def test_the_server_writes_contexts_if_it_is_set_up_so(embedded: LateChunker, endpoint: Endpoint) -> None:
    body = {
        "documents": [{"text": TEXT}],
        "chunking": {"strategy": "paragraphs"},
        "mode": "contextual",
        "written_context": True,
    }
    settings = ServerSettings(context_url=endpoint.url, context_model="m")
    with TestClient(create_app(settings, embedded)) as client:
        (found,) = client.post("/v1/chunks", json=body).json()["data"]
        assert found["chunks"][1]["content"] == "about It carries salt.\n\nIt carries salt."
        assert client.post("/v1/chunks", json={**body, "mode": "late"}).status_code == 422
        endpoint.fail = lambda number: (401, {}, b"no such key")
        refused = client.post("/v1/chunks", json={**body, "documents": [{"text": "Other."}]})
        assert (refused.status_code, refused.json()["error_type"]) == (502, "context_endpoint")
        assert "Retry-After" not in refused.headers
        endpoint.fail = lambda number: (503, {}, b"busy")
        assert client.post("/v1/chunks", json={**body, "documents": [{"text": "Other."}]}).headers["Retry-After"]
    with TestClient(create_app(ServerSettings(), embedded)) as client:
        refused = client.post("/v1/chunks", json=body)
        assert refused.status_code == 422
        assert "this server has no language model" in refused.json()["error"]
    with pytest.raises(errors.InvalidParameter, match="context_url needs context_model"):
        ServerSettings(context_url=endpoint.url).context_writer()


def test_the_command_line_writes_contexts_and_says_what_they_took(endpoint: Endpoint, tmp_path: Path) -> None:
    file = tmp_path / "ferry.txt"
    file.write_text(TEXT)
    command = ["embed", str(file), "--json", "--mode", "contextual", "--strategy", "paragraphs"]
    command += ["--context-url", endpoint.url, "--context-model", "m", "--context-prices", "1,1,1"]
    found = CliRunner().invoke(app, [*command, "--context-cache", str(tmp_path / "kept.sqlite")])
    assert found.exit_code == 0
    (record,) = map(json.loads, found.stdout.splitlines())
    assert record["chunks"][1]["content"] == "ferry\n\nabout It carries salt.\n\nIt carries salt."
    assert "contexts: 3 written, 0 kept from before; 300 tokens read (240 of them cached)" in found.stderr
