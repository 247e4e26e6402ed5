"""Answers sent document by document."""

import json

import numpy as np
import pyarrow as pa
import pytest

from late_chunking.errors import NonFiniteVector
from server.streams import ARROW, NDJSON, wanted
from tests.server.chunkers import Failing, Gate, Raising, around

TEXTS = ["Berlin is a city. It grew.", "", "The tower 🗼 is tall. It is old.", "FAULT is here."]
BODY = {
    "documents": [{"id": f"d{place}", "text": text, "metadata": {"n": place}} for place, text in enumerate(TEXTS)],
    "chunking": {"strategy": "sentences"},
}


@pytest.fixture
def failing(embedded, started):
    return started(around(embedded, Failing(embedded.reader, NonFiniteVector("not finite"))))


def test_lines_are_the_entries_of_an_ordinary_answer(failing):
    whole = failing.post("/v1/chunks", json=BODY).json()["data"]
    answer = failing.post("/v1/chunks", json=BODY, headers={"Accept": NDJSON})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == NDJSON
    assert [json.loads(line) for line in answer.text.splitlines()] == whole
    assert whole[3]["object"] == "error"


def test_batches_hold_the_same_in_columns(failing, embedded):
    body = {**BODY, "dimensions": 64}
    whole = failing.post("/v1/chunks", json=body).json()["data"]
    answer = failing.post("/v1/chunks", json=body, headers={"Accept": ARROW})
    assert answer.headers["content-type"] == ARROW
    with pa.ipc.open_stream(answer.content) as reader:
        found = [reader.read_next_batch_with_custom_metadata() for _ in whole]
        with pytest.raises(StopIteration):
            reader.read_next_batch()
    for (batch, metadata), entry in zip(found, whole, strict=True):
        about = json.loads(metadata[b"document"])
        chunks = entry.pop("chunks", [])
        assert about == entry
        rows = batch.to_pylist()
        assert [row["text"] for row in rows] == [chunk["text"] for chunk in chunks]
        assert [[row["start"], row["end"]] for row in rows] == [chunk["span"] for chunk in chunks]
        vectors = np.array([row["vector"] for row in rows]).reshape(-1, 64)
        np.testing.assert_allclose(vectors, np.array([c["embedding"] for c in chunks]).reshape(-1, 64), atol=1e-6)


def test_arrow_may_leave_the_text_out_but_says_what_it_cannot(client):
    body = {"documents": [{"text": "One. Two."}], "include_text": False}
    answer = client.post("/v1/chunks", json=body, headers={"Accept": ARROW})
    assert pa.ipc.open_stream(answer.content).read_all()["text"].to_pylist() == [None]
    for option in ({"offset_unit": "byte"}, {"encoding_format": "base64"}):
        refused = client.post("/v1/chunks", json={**body, **option}, headers={"Accept": ARROW})
        assert (refused.status_code, refused.json()["error_type"]) == (422, "invalid_parameter")


def test_a_stream_of_nothing_but_an_error_is_refused_as_ever(client):
    body = {"documents": [{"text": "fine"}, {"text": "x", "spans": [[0, 9]]}]}
    for kind in (NDJSON, ARROW):
        answer = client.post("/v1/chunks", json=body, headers={"Accept": kind})
        assert (answer.status_code, answer.json()["error_type"]) == (422, "invalid_span")


@pytest.mark.parametrize("kind", [NDJSON, ARROW])
def test_a_stream_that_breaks_off_says_so(embedded, started, kind):
    chunker = around(embedded, Raising(embedded.reader, RuntimeError("trouble")))
    chunker.batch_tokens = 1
    client = started(chunker)
    alone = client.post("/v1/chunks", json={"documents": BODY["documents"][3:]}, headers={"Accept": kind})
    assert (alone.status_code, alone.json()["error_type"]) == (500, "backend")
    answer = client.post("/v1/chunks", json={"documents": BODY["documents"][2:]}, headers={"Accept": kind})
    assert answer.status_code == 200
    if kind == NDJSON:
        first, last = map(json.loads, answer.text.splitlines())
    else:
        reader = pa.ipc.open_stream(answer.content)
        first, last = (json.loads(reader.read_next_batch_with_custom_metadata()[1][b"document"]) for _ in range(2))
    assert first["id"] == "d2"
    assert last == {"object": "error", "error": "the encoder failed: RuntimeError", "error_type": "backend"}
    assert client.app.state.service.life.in_work == 0


def test_a_line_comes_before_the_last_document_is_read(embedded, started):
    gate = Gate(embedded.reader)
    client = started(around(embedded, gate), max_batch_tokens=50)
    seen = []
    inner = gate.before

    def before(texts):
        seen.append(texts)
        inner(texts)

    gate.before = before
    body = {"documents": [{"text": f"Document {number}. " + "word " * 30} for number in range(200)]}
    with client.stream("POST", "/v1/chunks", json=body, headers={"Accept": NDJSON}) as answer:
        lines = [json.loads(line)["index"] for line in answer.iter_lines()]
    assert lines == list(range(200))
    assert len(seen) > 1


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", None),
        ("", None),
        ("application/json", None),
        ("application/x-ndjson", NDJSON),
        ("text/html, Application/X-NDJSON; q=0.9", NDJSON),
        ("application/vnd.apache.arrow.stream", ARROW),
    ],
)
def test_what_is_wanted(accept, kind):
    assert wanted(accept) == kind
