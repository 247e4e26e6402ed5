import base64
from typing import get_args

import numpy as np
import pytest

from late_chunking import Document
from late_chunking.request import MODES, ON_OVERFLOW
from late_chunking.vectors import shortened
from server.schemas.chunks import Mode, OnOverflow

TEXT = "Berlin is the capital of Germany. 東京は日本の首都です。 👩‍👩‍👧 The city has 3.8 million inhabitants."
LONG = " ".join(f"Sentence number {number} speaks of something else." for number in range(120))


def chunks(client, **body):
    answer = client.post("/v1/chunks", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def vectors(document):
    return np.array([chunk["embedding"] for chunk in document["chunks"]], dtype=np.float32)


def test_answer_has_the_documented_fields(client):
    (document,) = chunks(client, documents=[{"id": "b", "text": TEXT, "title": "T", "metadata": {"a": [1, None]}}])[
        "data"
    ]
    assert list(document) == ["object", "index", "id", "tokens", "windows", "metadata", "chunks"]
    assert (document["object"], document["index"], document["id"]) == ("document", 0, "b")
    assert document["metadata"] == {"a": [1, None]}
    chunk = document["chunks"][0]
    assert set(chunk) == {
        "object", "index", "id", "strategy", "span", "token_span", "token_count", "level", "kind", "heading_path",
        "document_id", "parent", "previous", "next", "context",
            "page", "table_header", "text", "content", "embedding",
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["late", "naive"])
@pytest.mark.parametrize(("strategy", "size"), [("tokens", 20), ("sentences", 30), ("recursive", 40)])
def test_chunks_and_vectors_are_the_librarys(client, embedded, mode, strategy, size):
    texts = [TEXT, LONG]
    body = chunks(
        client,
        documents=[{"text": text} for text in texts],
        chunking={"strategy": strategy, "size": size, "overlap": 5},
        mode=mode,
    )
    for index, text in enumerate(texts):
        expected = embedded.embed(text, strategy=strategy, size=size, overlap=5, mode=mode)
        document = body["data"][index]
        assert document["index"] == index
        assert document["id"] == expected.id
        assert document["tokens"] == expected.token_count
        assert document["windows"] == expected.windows
        for chunk, own in zip(document["chunks"], expected.chunks, strict=True):
            assert chunk["id"] == own.id
            assert chunk["span"] == list(own.span)
            assert chunk["token_span"] == list(own.token_span)
            assert chunk["token_count"] == own.token_count
            assert chunk["text"] == own.text == text[slice(*chunk["span"])]
        np.testing.assert_allclose(vectors(document), expected.vectors, atol=1e-6)
    assert body["usage"] == {"total_tokens": sum(document["tokens"] for document in body["data"])}


def test_default_is_recursive_with_the_models_size(client, embedded):
    expected = embedded.embed(LONG)
    (document,) = chunks(client, documents=[{"text": LONG}])["data"]
    assert [chunk["id"] for chunk in document["chunks"]] == [chunk.id for chunk in expected.chunks]
    assert document["windows"] > 1


def test_base64_is_little_endian_float32(client, embedded):
    expected = embedded.embed(TEXT, strategy="sentences").vectors
    (document,) = chunks(
        client, documents=[{"text": TEXT}], chunking={"strategy": "sentences"}, encoding_format="base64"
    )["data"]
    decoded = [np.frombuffer(base64.b64decode(chunk["embedding"]), dtype="<f4") for chunk in document["chunks"]]
    np.testing.assert_allclose(np.stack(decoded), expected, atol=1e-6)


def test_dimensions_cut_and_normalise_again(client, embedded):
    expected = shortened(embedded.embed(TEXT).vectors, 10)
    (document,) = chunks(client, documents=[{"text": TEXT}], dimensions=10)["data"]
    np.testing.assert_allclose(vectors(document), expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors(document), axis=1), 1, atol=1e-6)


def test_documents_bring_their_own_spans_and_chunking(client, embedded):
    documents = [
        {"text": TEXT, "spans": [[34, 46], [0, 33], [0, len(TEXT)]]},
        {"text": TEXT, "chunking": {"strategy": "tokens", "size": 6}},
        {"text": TEXT, "chunking": [{"strategy": "tokens", "size": 6}, {"strategy": "sentences"}]},
        {"text": TEXT},
    ]
    data = chunks(client, documents=documents, chunking=[{"strategy": "sentences"}])["data"]
    spans = embedded.embed(TEXT, spans=[(34, 46), (0, 33), (0, len(TEXT))])
    np.testing.assert_allclose(vectors(data[0]), spans.vectors, atol=1e-6)
    assert [chunk["span"] for chunk in data[0]["chunks"]] == [[34, 46], [0, 33], [0, len(TEXT)]]
    tokens = embedded.embed(TEXT, strategy="tokens", size=6)
    assert [chunk["id"] for chunk in data[1]["chunks"]] == [chunk.id for chunk in tokens.chunks]
    sentences = embedded.embed(TEXT, strategy="sentences")
    assert [chunk["id"] for chunk in data[3]["chunks"]] == [chunk.id for chunk in sentences.chunks]
    both = data[2]["chunks"]
    assert [chunk["id"] for chunk in both] == [chunk.id for chunk in (*tokens.chunks, *sentences.chunks)]
    assert {chunk["strategy"] for chunk in both} == {"tokens", "sentences"}


@pytest.mark.parametrize("text", ["", " ", "\n\t \u3000"])
def test_empty_documents_have_no_chunks(client, text):
    data = chunks(client, documents=[{"text": text}, {"text": "Not empty."}, {"text": text}])["data"]
    assert [len(document["chunks"]) for document in data] == [0, 1, 0]


def test_text_can_be_left_out(client):
    (document,) = chunks(client, documents=[{"text": TEXT}], include_text=False)["data"]
    assert {chunk["text"] for chunk in document["chunks"]} == {None}


def test_metadata_comes_back_however_deep(client):
    deep = {}
    for _ in range(250):
        deep = {"deeper": deep}
    data = chunks(client, documents=[{"text": "A text.", "metadata": deep}])["data"]
    assert data[0]["metadata"] == deep
    for _ in range(10):
        deep = {"deeper": deep}
    answer = client.post("/v1/chunks", json={"documents": [{"text": "A text.", "metadata": deep}]})
    assert answer.status_code == 400
    assert "metadata" in answer.json()["error"]


def test_the_models_name_may_be_given(client):
    assert chunks(client, documents=[{"text": TEXT}], model="embedded")["model"] == "embedded"


def test_schema_knows_the_librarys_values():
    assert get_args(Mode) == MODES
    assert get_args(OnOverflow) == ON_OVERFLOW


def test_ids_name_the_document(client, embedded):
    (document,) = chunks(client, documents=[{"text": TEXT, "id": "mine"}])["data"]
    expected = embedded.embed(Document(TEXT, id="mine"))
    assert [chunk["id"] for chunk in document["chunks"]] == [chunk.id for chunk in expected.chunks]


def test_contexts_are_not_written_on_the_device_thread(embedded, started):
    client = started(embedded, context_url="http://127.0.0.1:9/v1", context_model="none")
    body = {
        "documents": [{"id": "a", "text": "The kite flies high. It dives. Bread needs flour."}],
        "chunking": {"strategy": "semantic"},
        "mode": "contextual",
        "written_context": True,
    }
    answer = client.post("/v1/chunks", json=body)
    assert (answer.status_code, answer.json()["error_type"]) == (422, "invalid_parameter")
    assert "document 0 ('a'): written_context" in answer.json()["error"]
