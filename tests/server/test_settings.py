import ast
from pathlib import Path

import pytest
from pydantic import ValidationError

import server
from late_chunking import Settings
from server.settings import ServerSettings


def test_defaults():
    settings = ServerSettings()
    assert settings.library() == Settings()
    assert (settings.hostname, settings.port) == ("127.0.0.1", 8080)
    assert (settings.max_concurrent_requests, settings.max_client_batch_size) == (512, 256)
    assert settings.model_name == "embedded"


def test_environment_then_constructor(monkeypatch):
    for name, value in {
        "MODEL_ID": "org/model", "REVISION": "abc", "DTYPE": "float32", "DEVICE": "cpu", "MAX_BATCH_TOKENS": "123",
        "MAX_DOCUMENT_TOKENS": "456", "PORT": "9000", "API_KEY": "key", "SERVED_MODEL_NAME": "name",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    settings = ServerSettings(port=9001, revision="def")
    assert settings.library() == Settings(
        model="org/model", revision="def", dtype="float32", device="cpu", max_batch_tokens=123, max_document_tokens=456
    )
    assert (settings.port, settings.model_name) == (9001, "name")
    assert settings.api_key.get_secret_value() == "key"
    assert "key" not in repr(settings.api_key)


def test_empty_variables_are_as_good_as_none(monkeypatch):
    monkeypatch.setenv("MODEL_ID", "")
    monkeypatch.setenv("API_KEY", "")
    assert (ServerSettings().model_id, ServerSettings().api_key) == ("embedded", None)


@pytest.mark.parametrize(
    ("set_to", "listens_on"),
    [
        ("3f2a9c81d0be", "127.0.0.1"),
        ("laptop.local", "127.0.0.1"),
        ("0.0.0.0", "0.0.0.0"),
        ("::", "::"),
        ("localhost", "localhost"),
    ],
)
def test_a_machines_name_is_no_address_to_listen_on(monkeypatch, set_to, listens_on):
    monkeypatch.setenv("HOSTNAME", set_to)
    assert ServerSettings().hostname == listens_on
    assert ServerSettings(hostname="my.host").hostname == "my.host"


@pytest.mark.parametrize("wrong", [{"port": 70_000}, {"max_concurrent_requests": 0}, {"api_key": ""}, {"bogus": 1}])
def test_wrong_values_are_refused(wrong):
    with pytest.raises(ValidationError):
        ServerSettings(**wrong)


def test_settings_are_frozen():
    with pytest.raises(ValidationError):
        ServerSettings().port = 1


def test_the_server_knows_nothing_of_tensors_and_reads_the_environment_once():
    for path in Path(server.__file__).parent.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        imported = {
            name.partition(".")[0]
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in ([node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
            if name
        }
        assert not imported & {"torch", "transformers", "tokenizers"}, path
        assert "environ" not in source.replace("environment", ""), path
