"""POST /v1/boundaries: the chunks of /v1/chunks, without their vectors, and without the device."""

from late_chunking.errors import NonFiniteVector
from tests.server.chunkers import Failing, Gate, around

TEXT = "Berlin is the capital of Germany.\r\n\r\nThe city has 3.8 million people. It grew by 40 %. 🦊"
BODY = {
    "documents": [
        {"id": "a", "text": TEXT, "metadata": {"k": [1]}},
        {"id": "b", "text": TEXT, "spans": [[0, 6]]},
        {"id": "c", "text": " "},
        {"id": "d", "text": TEXT, "chunking": {"strategy": "words", "size": 5, "overlap": "20%"}},
    ],
    "chunking": [{"strategy": "sentences"}, {"strategy": "paragraphs"}],
}


def test_boundaries_are_those_of_chunks(embedded, started):
    client = started(embedded)
    cut = client.post("/v1/boundaries", json=BODY).json()
    whole = client.post("/v1/chunks", json=BODY).json()
    assert [document["id"] for document in cut["data"]] == ["a", "b", "c", "d"]
    for document, expected in zip(cut["data"], whole["data"], strict=True):
        assert document["metadata"] == expected["metadata"]
        assert document["chunks"] == [
            {name: value for name, value in chunk.items() if name != "embedding"} for chunk in expected["chunks"]
        ]
        for chunk in document["chunks"]:
            assert chunk["text"] == TEXT[slice(*chunk["span"])]


def test_boundaries_need_no_device(embedded, started):
    gate = Gate(embedded.reader)
    client = started(around(embedded, gate))
    gate.close()
    assert client.post("/v1/boundaries", json=BODY).status_code == 200
    assert gate.batches == []


def test_cuts_by_meaning_use_the_device_and_share_the_request(embedded, started):
    gate = Gate(embedded.reader)
    client = started(around(embedded, gate))
    text = "The kite flies high. The kite flies low. Bread needs warm flour. Bread needs warm water."
    body = {
        "documents": [{"id": "a", "text": text}, {"id": "b", "text": TEXT, "chunking": {"strategy": "sentences"}}],
        "chunking": [{"strategy": "semantic"}, {"strategy": "sentences"}],
    }
    first, second = client.post("/v1/boundaries", json=body).json()["data"]
    assert [chunk["span"] for chunk in first["chunks"] if chunk["strategy"] == "semantic"] == [[0, 40], [41, len(text)]]
    assert (first["id"], second["id"]) == ("a", "b")
    whole = client.post("/v1/chunks", json=body).json()["data"]
    for cut, embedding in zip((first, second), whole, strict=True):
        assert [chunk["id"] for chunk in cut["chunks"]] == [chunk["id"] for chunk in embedding["chunks"]]
    gate.batches.clear()
    assert client.post("/v1/boundaries", json=body).status_code == 200
    assert gate.batches == [[text]]


def test_a_document_that_fails_on_the_device_takes_its_place(embedded, started):
    client = started(around(embedded, Failing(embedded.reader, NonFiniteVector("not finite"))))
    documents = [{"id": "a", "text": "Fine. Good."}, {"id": "b", "text": "A FAULT. Two."}]
    body = {"documents": documents, "chunking": {"strategy": "semantic"}}
    first, second = client.post("/v1/boundaries", json=body).json()["data"]
    assert first["chunks"]
    assert (second["object"], second["id"], second["error_type"]) == ("error", "b", "non_finite_vector")
    assert client.post("/v1/boundaries", json={**body, "documents": documents[1:]}).status_code == 500


def test_errors_name_the_document(embedded, started):
    client = started(embedded)
    wrong = {"documents": [{"text": "fine"}, {"id": "x", "text": "short", "spans": [[0, 99]]}]}
    answer = client.post("/v1/boundaries", json=wrong)
    assert answer.status_code == 422
    assert "document 1 ('x'): span 0: [0, 99) lies outside the text, which has 5 characters" in answer.json()["error"]
    assert client.post("/v1/boundaries", json={"documents": []}).status_code == 400
    assert client.post("/v1/boundaries", json={**BODY, "mode": "late"}).status_code == 400
    assert client.post("/v1/boundaries", json={**BODY, "model": "other"}).status_code == 404
