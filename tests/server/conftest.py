"""A server around the embedded model, called without a network."""

import copy
import dataclasses
import time

import pytest
from fastapi.testclient import TestClient

from server.app import create_app
from server.settings import ServerSettings


@pytest.fixture(scope="session", autouse=True)
def _no_environment():
    """Keep the tests from what the environment sets."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ServerSettings.model_fields:
            patch.delenv(name.upper(), raising=False)
        yield


@pytest.fixture(scope="session")
def client(embedded):
    """The server with small limits."""
    settings = ServerSettings(max_client_batch_size=50, payload_limit=200_000, max_document_tokens=2_000)
    chunker = copy.copy(embedded)
    limited = dataclasses.replace(embedded.settings, max_document_tokens=2_000)
    chunker.planner = dataclasses.replace(embedded.planner, settings=limited)
    with TestClient(create_app(settings, chunker)) as client:
        yield client


@pytest.fixture
def started():
    """Start servers around other chunkers."""
    clients: list[TestClient] = []

    def start(chunker, *, warm=True, **settings):
        client = TestClient(create_app(ServerSettings(**settings), chunker))
        client.__enter__()
        clients.append(client)
        while warm and not client.app.state.service._scheduler.warm:
            assert client.app.state.service._scheduler.alive
            time.sleep(0.005)
        return client

    yield start
    for client in clients:
        client.__exit__(None, None, None)
