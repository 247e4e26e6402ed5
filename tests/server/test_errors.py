import json
import logging

import pytest

from late_chunking import errors as library
from server.errors import TABLE, RequestError, dialect_of, error_answer, message_of, row_of

SECRET = "Confidential: the merger is on Friday. " * 10


def post(client, body, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post("/v1/chunks", content=content, headers={"Content-Type": "application/json", **headers})


def one(**document):
    return {"documents": [{"text": "First."}, {"id": "mine", "text": "Hello   there", **document}]}


def with_options(**options):
    return {"documents": [{"text": "Hello there."}], **options}


def chunking(**options):
    return with_options(chunking={"strategy": "tokens", **options})


CASES = {
    "no documents": ({"documents": []}, 400, "empty", "documents is empty"),
    "no strategies": (with_options(chunking=[]), 400, "empty", "chunking"),
    "nothing": (b"", 400, "malformed", "empty"),
    "not JSON": (b"{'documents'", 400, "malformed", "not valid JSON"),
    "not an object": ([1], 400, "malformed", "must be an object"),
    "not UTF-8": (b'{"documents": [{"text": "\xff"}]}', 400, "malformed", "UTF-8"),
    "lone surrogate": (b'{"documents": [{"text": "\\ud800"}]}', 400, "malformed", "surrogate"),
    "NaN": (b'{"documents": [{"text": "a"}], "dimensions": NaN}', 400, "malformed", "not valid JSON"),
    "deep": (b"[" * 100_000, 400, "malformed", "depth"),
    "deep object": (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, 400, "malformed", "depth"),
    "no field documents": ({}, 400, "malformed", "documents: this field is required"),
    "documents no list": ({"documents": "abc"}, 400, "malformed", "documents: must be a valid list, got 'abc'"),
    "no text": ({"documents": [{}]}, 400, "malformed", "documents[0].text: this field is required"),
    "text no string": (
        {"documents": [{"text": 5}]},
        400,
        "malformed",
        "documents[0].text: must be a valid string, got 5",
    ),
    "unknown field": (with_options(blend_wait=0.5), 400, "malformed", "blend_wait: this field is not known"),
    "unknown field of document": (one(foo=1), 400, "malformed", "documents[1].foo"),
    "boolean as string": (with_options(include_text="true"), 400, "malformed", "include_text"),
    "number as string": (with_options(dimensions="3"), 400, "malformed", "dimensions"),
    "edge no integer": (
        one(spans=[[0, 1.5]]),
        400,
        "malformed",
        "documents[1].spans[0][1]: must be a valid integer, got 1.5",
    ),
    "edge a string": (one(spans=[["0", 1]]), 400, "malformed", "documents[1].spans[0][0]"),
    "edge a boolean": (one(spans=[[False, 1]]), 400, "malformed", "documents[1].spans[0][0]"),
    "span of three": (one(spans=[[0, 1, 2]]), 400, "malformed", "documents[1].spans[0]: list should have at most 2"),
    "strategy no object": (with_options(chunking="tokens"), 400, "malformed", "chunking: must be an object"),
    "strategy no name": (with_options(chunking=[{"strategy": 5}]), 400, "malformed", "chunking[0].strategy"),
    "other model": (with_options(model="gpt"), 404, "model_not_found", "'gpt'"),
    "too many": (
        {"documents": [{"text": "a"}] * 51},
        413,
        "too_many_documents",
        "51 entries, more than max_client_batch_size, 50",
    ),
    "span outside": (
        one(spans=[[0, 5], [3, 99]]),
        422,
        "invalid_span",
        "document 1 ('mine'): span 1: [3, 99) lies outside the text, which has 13",
    ),
    "span before": (one(spans=[[-1, 5]]), 422, "invalid_span", "[-1, 5)"),
    "span reversed": (one(spans=[[5, 2]]), 422, "invalid_span", "[5, 2) is reversed"),
    "span empty": (one(spans=[[5, 5]]), 422, "invalid_span", "[5, 5) is empty"),
    "span without token": (one(spans=[[6, 7]]), 422, "invalid_span", "owns no token of the model 'embedded'"),
    "span of empty text": ({"documents": [{"text": "", "spans": [[0, 1]]}]}, 422, "invalid_span", "has 0 characters"),
    "spans and chunking": (
        one(spans=[[0, 5]], chunking={"strategy": "tokens"}),
        422,
        "invalid_document",
        "document 1 ('mine')",
    ),
    "unknown strategy": (with_options(chunking={"strategy": "nope"}), 422, "unknown_strategy", "'nope'; known: "),
    "unknown strategy of document": (
        one(chunking={"strategy": "nope"}),
        422,
        "unknown_strategy",
        "document 1 ('mine')",
    ),
    "unknown option": (chunking(bogus=1), 422, "invalid_parameter", "bogus"),
    "size zero": (chunking(size=0), 422, "invalid_parameter", "at least 1, got 0"),
    "size a string": (chunking(size="4"), 422, "invalid_parameter", "got '4'"),
    "overlap as large as size": (chunking(size=4, overlap=4), 422, "invalid_parameter", "overlap 4 with size 4"),
    "overlap over default": (chunking(overlap=64), 422, "invalid_parameter", "overlap 64 with size 64"),
    "mode": (
        with_options(mode="early"),
        422,
        "invalid_parameter",
        "mode: must be 'late', 'naive', 'blend' or 'contextual', got 'early'",
    ),
    "input_type": (with_options(input_type="passage"), 422, "invalid_parameter", "'query' or 'document'"),
    "output_dtype": (with_options(output_dtype="int8"), 422, "invalid_parameter", "output_dtype"),
    "offset_unit": (with_options(offset_unit="word"), 422, "invalid_parameter", "offset_unit"),
    "too many dimensions": (with_options(dimensions=385), 422, "invalid_parameter", "from 1 to 384, got 385"),
    "over the window": (
        {"documents": [{"text": "word " * 300}], "on_overflow": "error"},
        422,
        "document_too_long",
        "300 tokens are more than the 254",
    ),
    "over the limit": (
        {"documents": [{"text": "word " * 2_001}]},
        422,
        "document_too_long",
        "2001 tokens are more than max_document_tokens, 2000",
    ),
}


@pytest.mark.parametrize(("body", "status", "error_type", "says"), CASES.values(), ids=CASES.keys())
def test_each_error_has_its_status_and_names_value_and_limit(client, body, status, error_type, says):
    answer = post(client, body)
    assert answer.status_code == status
    error = answer.json()
    assert set(error) == {"error", "error_type"}
    assert error["error_type"] == error_type
    assert says in error["error"]
    assert "\n" not in error["error"]
    assert answer.headers["X-Request-ID"]
    assert float(answer.headers["x-total-time"]) >= 0


@pytest.mark.parametrize("path", ["/v1/chunks", "/v1/embeddings"])
@pytest.mark.parametrize("chunked", [False, True])
def test_large_bodies_are_refused_unparsed(client, path, chunked):
    body = b"{" * 200_001

    def pieces():
        for start in range(0, len(body), 1_000):
            yield body[start : start + 1_000]

    answer = client.post(path, content=pieces() if chunked else body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert "200000" in answer.text
    assert ("error_type" in answer.json()) == (path == "/v1/chunks")
    assert answer.headers["X-Request-ID"]


def test_body_of_just_the_limit_is_read(client):
    body = json.dumps({"documents": [{"text": "a"}]}).encode()
    assert post(client, body + b" " * (200_000 - len(body))).status_code == 200


def test_content_type_must_be_json(client):
    answer = client.post("/v1/chunks", content=b'{"documents": []}', headers={"Content-Type": "text/plain"})
    assert answer.status_code == 400
    assert "Content-Type" in answer.json()["error"]


@pytest.mark.parametrize("path", ["/nope", "/v1/chunk"])
def test_unknown_routes(client, path):
    answer = client.get(path)
    assert (answer.status_code, answer.json()["error_type"]) == (404, "not_found")
    assert path in answer.json()["error"]


def test_methods(client):
    answer = client.get("/v1/chunks")
    assert (answer.status_code, answer.json()["error_type"]) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == "POST"
    assert client.get("/v1/embeddings").json()["error"]["code"] == "method_not_allowed"


def test_key(embedded, started):
    client = started(embedded, api_key="sésame")
    body = {"documents": [{"text": "a"}]}
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "sésame"}, {"Authorization": "Basic x"}):
        encoded = {name: value.encode() for name, value in headers.items()}
        answer = client.post("/v1/chunks", json=body, headers=encoded)
        assert (answer.status_code, answer.json()["error_type"]) == (401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.headers["X-Request-ID"]
    assert client.get("/v1/models").json()["error"]["code"] == "unauthorized"
    assert client.get("/info").status_code == 401
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
    right = {"Authorization": "bearer sésame".encode()}
    assert client.post("/v1/chunks", json=body, headers=right).status_code == 200


@pytest.mark.parametrize(("given", "kept"), [("a-B_1.2:3", True), ("x" * 129, False), ("a b", False), ("é", False)])
def test_request_id_is_echoed_if_sane(client, given, kept):
    for path in ("/healthz", "/nope"):
        answer = client.get(path, headers={"X-Request-ID": given.encode()})
        assert (answer.headers["X-Request-ID"] == given) == kept
        assert len(answer.headers["X-Request-ID"]) >= 9


def test_times_of_work(client):
    headers = post(client, one()).headers
    parts = [float(headers[f"x-{part}-time"]) for part in ("tokenization", "queue", "inference")]
    assert all(part >= 0 for part in parts)
    assert sum(parts) <= float(headers["x-total-time"]) + 0.1


def test_text_is_in_no_message(client):
    for body in (
        {"documents": SECRET},
        {"documents": [{"text": [SECRET]}]},
        {"documents": [{"text": "a", "spans": SECRET}]},
        {"documents": [SECRET]},
        {SECRET: 1, "documents": []},
    ):
        message = post(client, body).json()["error"]
        assert SECRET[:90] not in message
        assert len(message) < 300


def test_text_is_in_no_log(embedded, started, caplog):
    class Broken:
        def __getattr__(self, name):
            return getattr(embedded, name)

        @property
        def planner(self):
            raise KeyError(SECRET)

    with caplog.at_level(logging.DEBUG):
        answer = started(Broken()).post("/v1/chunks", json={"documents": [{"text": SECRET}]})
    assert (answer.status_code, answer.json()["error_type"]) == (500, "backend")
    assert answer.headers["X-Request-ID"] in caplog.text
    assert "KeyError" in caplog.text
    assert "Confidential" not in caplog.text + answer.text


def every(kind):
    return {kind}.union(*(every(below) for below in kind.__subclasses__()))


def test_table_has_a_row_for_every_error():
    for kind in every(library.LateChunkingError) | every(RequestError):
        row = row_of(kind("message"))
        assert 400 <= row.native < 600
        assert 400 <= row.openai < 600
        if issubclass(kind, library.InvalidInput):
            assert row.native in (400, 422)
            assert row.openai == 400
    assert row_of(ValueError("x")).native == 500
    assert {row.error_type for row in TABLE.values()} >= {"overloaded", "not_ready", "backend"}


def test_retries_are_announced_and_unknown_errors_not_quoted():
    for kind, row in TABLE.items():
        answer = error_answer(kind("message"), "/v1/chunks")
        assert ("retry-after" in answer.headers) == row.retry == (row.native in (429, 503))
    assert "secret" not in message_of(ValueError("secret"))
    assert len(message_of(library.InvalidInput("x" * 10_000))) <= 1_001
    assert dialect_of("/v1/embeddings/").name == "openai"


def test_openapi_declares_errors_and_examples(client):
    document = client.get("/openapi.json").json()
    chunks, embeddings = document["paths"]["/v1/chunks"]["post"], document["paths"]["/v1/embeddings"]["post"]
    assert {"200", "400", "401", "404", "408", "413", "415", "422", "429", "500", "503"} <= set(chunks["responses"])
    assert {"200", "400", "401", "404", "408", "413", "415", "429", "500", "503"} <= set(embeddings["responses"])
    assert "422" not in embeddings["responses"]
    schemas = document["components"]["schemas"]
    assert "HTTPValidationError" not in schemas
    for path, name in (("/v1/chunks", "ChunksRequest"), ("/v1/embeddings", "EmbeddingsRequest")):
        for example in schemas[name]["examples"]:
            assert client.post(path, json=example).status_code == 200
