import dataclasses


def test_info_says_everything_of_the_model(client, embedded):
    info = client.get("/info").json()
    for name, value in dataclasses.asdict(client.app.state.service.chunker.info()).items():
        assert info[name] == (list(value) if isinstance(value, tuple) else value)
    assert info["model_id"] == "embedded"
    assert info["model_type"] == {"embedding": {"pooling": "mean"}}
    assert info["max_input_length"] == info["window"] == 256
    assert info["max_client_batch_size"] == 50
    assert info["max_batch_tokens"] == embedded.batch_tokens


def test_answers_are_as_documented(client):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert set(client.get("/info").json()) == set(schemas["InfoAnswer"]["properties"])
    answer = client.post("/v1/chunks", json={"documents": [{"text": "A text."}]}).json()
    for name, part in (
        ("ChunksAnswer", answer),
        ("DocumentOut", answer["data"][0]),
        ("ChunkOut", answer["data"][0]["chunks"][0]),
    ):
        assert set(part) == set(schemas[name]["properties"])
    assert client.get("/docs").status_code == 200
