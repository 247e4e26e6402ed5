import base64

import numpy as np
import pytest

TEXTS = ["Berlin is a city.", "東京は日本の首都です。", "word " * 600]


@pytest.mark.parametrize("input_type", [None, "query", "document"])
def test_vectors_are_the_librarys(client, embedded, input_type):
    answer = client.post("/v1/embeddings", json={"model": "embedded", "input": TEXTS, "input_type": input_type}).json()
    vectors = np.array([item["embedding"] for item in answer["data"]], dtype=np.float32)
    np.testing.assert_allclose(vectors, embedded.embed_texts(TEXTS, input_type=input_type), atol=1e-6)
    assert [item["index"] for item in answer["data"]] == [0, 1, 2]
    assert answer["object"] == "list"
    assert answer["model"] == "embedded"
    tokens = sum(plan.token_count for plan in embedded.plan_texts(TEXTS))
    assert answer["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}


def test_one_string_base64_and_dimensions(client, embedded):
    body = {"model": "embedded", "input": TEXTS[0], "encoding_format": "base64", "dimensions": 16, "user": "me"}
    (item,) = client.post("/v1/embeddings", json=body).json()["data"]
    vector = np.frombuffer(base64.b64decode(item["embedding"]), dtype="<f4")
    expected = embedded.embed_texts(TEXTS[:1])[0, :16]
    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-6)


@pytest.mark.parametrize("ids", [[1, 2, 3], [[1, 2], [3]]])
def test_token_ids_are_refused_with_the_reason(client, ids):
    answer = client.post("/v1/embeddings", json={"model": "embedded", "input": ids})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert "token ids" in error["message"]
    assert error["param"] == "input"
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "text 0"),
        (["a", " \n"], "text 1"),
        ([], "input is empty"),
        (["a", 5], "input[1]"),
        (7, "input"),
        (None, "input"),
    ],
)
def test_what_has_no_vector_is_refused(client, given, says):
    answer = client.post("/v1/embeddings", json={"model": "embedded", "input": given})
    assert answer.status_code == 400
    assert says in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("change", "status", "code", "says"),
    [
        ({"model": "text-embedding-3-small"}, 404, "model_not_found", "'text-embedding-3-small'"),
        ({"dimensions": 385}, 400, "invalid_parameter", "from 1 to 384, got 385"),
        ({"dimensions": 0}, 400, "invalid_parameter", "got 0"),
        ({"encoding_format": "hex"}, 400, "invalid_parameter", "'base64'"),
        ({"input": ["a"] * 51}, 413, "too_many_documents", "51 entries, more than max_client_batch_size, 50"),
        ({"input": "word " * 2_001}, 400, "document_too_long", "2001 tokens are more than max_document_tokens, 2000"),
        ({"wat": 1}, 400, "malformed", "wat"),
    ],
)
def test_errors_speak_openais_dialect(client, change, status, code, says):
    answer = client.post("/v1/embeddings", json={"model": "embedded", "input": "a", **change})
    assert answer.status_code == status
    (error,) = answer.json().values()
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    assert says in error["message"]


def test_model_is_required_and_listed(client):
    answer = client.post("/v1/embeddings", json={"input": "a"})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "model"
    (model,) = client.get("/v1/models").json()["data"]
    assert (model["id"], model["object"]) == ("embedded", "model")


def test_served_name_and_model_id_both_work(embedded, started):
    client = started(embedded, served_model_name="mini")
    for name in ("mini", "embedded"):
        assert client.post("/v1/embeddings", json={"model": name, "input": "a"}).json()["model"] == "mini"
    assert client.post("/v1/embeddings", json={"model": "other", "input": "a"}).status_code == 404
    assert client.get("/v1/models").json()["data"][0]["id"] == "mini"
