"""A real server on a real port, and the clients that people have."""

import base64
import socket
import threading
import time

import httpx
import numpy as np
import openai
import pytest
import uvicorn

from late_chunking.errors import ModelNotFound
from server.app import create_app, serve
from server.settings import ServerSettings

TEXTS = ["Berlin is a city.", "東京は日本の首都です。"]


@pytest.fixture(scope="module")
def address(embedded):
    app = create_app(ServerSettings(payload_limit=1_000_000, api_key="key"), embedded)
    running = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        while not running.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        running.should_exit = True
        thread.join()


@pytest.fixture
def client(address):
    with openai.OpenAI(base_url=f"{address}/v1", api_key="key", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("options", [{}, {"encoding_format": "float"}, {"encoding_format": "base64"}])
def test_openais_client_gets_the_librarys_vectors(client, embedded, options):
    answer = client.embeddings.create(model="embedded", input=TEXTS, **options)
    vectors = [item.embedding for item in answer.data]
    if isinstance(vectors[0], str):
        vectors = [np.frombuffer(base64.b64decode(vector), dtype="<f4") for vector in vectors]
    np.testing.assert_allclose(np.array(vectors), embedded.embed_texts(TEXTS), atol=1e-6)
    assert answer.usage.total_tokens == answer.usage.prompt_tokens > 0


def test_openais_client_understands_the_errors(client, address):
    assert [model.id for model in client.models.list()] == ["embedded"]
    with pytest.raises(openai.NotFoundError, match="gpt") as caught:
        client.embeddings.create(model="gpt", input="a")
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="token ids"):
        client.embeddings.create(model="embedded", input=[1, 2, 3])
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=f"{address}/v1", api_key="wrong", max_retries=0).models.list()


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_is_answered_over_a_socket(address, chunked):
    body = b"x" * 5_000_000
    pieces = (body[start : start + 65_536] for start in range(0, len(body), 65_536))
    headers = {"Authorization": "Bearer key", "Content-Type": "application/json"}
    answer = httpx.post(f"{address}/v1/chunks", content=pieces if chunked else body, headers=headers)
    assert answer.status_code == 413
    assert answer.json()["error_type"] == "payload_too_large"
    assert httpx.get(f"{address}/readyz").status_code == 200


def test_a_model_that_cannot_be_loaded_is_the_librarys_error(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ModelNotFound):
        serve(ServerSettings(model_id=str(tmp_path / "nothing"), port=port))
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_serve_listens_until_told_to_stop(embedded, monkeypatch):
    seen = []
    monkeypatch.setattr(ServerSettings, "load_chunker", lambda self: embedded)
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: seen.extend(one.getsockname() for one in sockets))
    serve(ServerSettings(hostname="127.0.0.1", port=0))
    assert seen[0][0] == "127.0.0.1"
    assert seen[0][1] > 0


def test_an_address_that_is_taken_is_said_before_the_model_is_loaded(monkeypatch):
    monkeypatch.setattr(ServerSettings, "load_chunker", lambda self: pytest.fail("loaded"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1 port {port}"):
            serve(ServerSettings(hostname="127.0.0.1", port=port))
