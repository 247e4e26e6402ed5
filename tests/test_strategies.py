"""Every strategy through the library, the command line and HTTP; and a new one, by a file and a line."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from late_chunking import Document, LateChunker
from late_chunking.boundaries import STRATEGIES, Boundary, SourceText
from late_chunking.cli import app
from late_chunking.documents import Span
from server.app import create_app
from server.settings import ServerSettings

TEXT = (
    "Ann: Is the ferry there? I can not see it.\nBob: Not yet. The fog is thick, and the captain waits.\n\n"
    "Ann: Then let us bake bread. The flour is warm.\nBob: And the water? It must be warm, too. So must the oven. 🍞"
)
OPTIONS = {
    "tokens": {"size": 9, "overlap": 2},
    "words": {"size": 9, "overlap": "20%"},
    "sentences": {"size": 3, "overlap": 1, "unit": "sentences"},
    "paragraphs": {"size": 60, "unit": "chars"},
    "recursive": {"size": 12, "separators": "chat"},
    "turns": {"marker": r"(?m)^Ann"},
    "semantic": {"size": 20, "min_size": 6},
    "sentence_window": {"window": 1},
    "hierarchy": {"levels": ["turns", 8]},
    "nested": {"outer": "turns", "inner": {"strategy": "sentences"}, "size": 16},
}


@pytest.fixture(scope="module")
def client(embedded: LateChunker) -> Iterable[TestClient]:
    """A server around the embedded model."""
    with TestClient(create_app(ServerSettings(), embedded)) as client:
        yield client


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The text in a file."""
    path = tmp_path / "chat.txt"
    path.write_bytes(TEXT.encode())
    return path


def through_all(
    embedded: LateChunker, client: TestClient, file: Path, name: str, options: dict
) -> list[dict[str, object]]:
    """Cut and embed in every way there is, and see that all ways agree. Gives the chunks."""
    document = Document(file.read_bytes().decode(), id=str(file))
    found = embedded.embed(document, strategy=name, **options)
    assert embedded.chunk(document, strategy=name, **options) == found.chunks
    command = ["chunk", str(file), "--strategy", name]
    for option, value in options.items():
        command += ["--set", f"{option}={json.dumps(value)}"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0
    assert f"{len(found.chunks)} chunk" in shown.stdout
    cut = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    body = {"documents": [{"id": document.id, "text": document.text}], "chunking": {"strategy": name, **options}}
    (served,) = client.post("/v1/boundaries", json=body).json()["data"]
    (embedding,) = client.post("/v1/chunks", json=body).json()["data"]
    assert cut["chunks"] == served["chunks"]
    vectors = [chunk.pop("embedding") for chunk in embedding["chunks"]]
    assert embedding["chunks"] == served["chunks"]
    np.testing.assert_allclose(vectors, found.vectors, atol=1e-6)
    assert [chunk["id"] for chunk in served["chunks"]] == [chunk.id for chunk in found.chunks]
    assert [tuple(chunk["span"]) for chunk in served["chunks"]] == [chunk.span for chunk in found.chunks]
    return list(served["chunks"])


def test_every_strategy_is_tried_here() -> None:
    assert set(OPTIONS) == set(STRATEGIES)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_strategy_through_everything(name: str, embedded: LateChunker, client: TestClient, file: Path) -> None:
    chunks = through_all(embedded, client, file, name, OPTIONS[name])
    assert len(chunks) > 1
    by_id = {chunk["id"]: chunk for chunk in chunks}
    assert len(by_id) == len(chunks)
    for chunk in chunks:
        assert chunk["text"] == TEXT[slice(*chunk["span"])]
        assert chunk["document_id"] == str(file)
        assert chunk["strategy"] == name
        assert chunk["token_count"] == chunk["token_span"][1] - chunk["token_span"][0] > 0
        assert (chunk["parent"] is None) == (chunk["level"] == 0)
        for side, other in (("previous", "next"), ("next", "previous")):
            if chunk[side] is not None:
                neighbour = by_id[chunk[side]]
                assert neighbour[other] == chunk["id"]
                assert neighbour["level"] == chunk["level"]
                assert (neighbour["span"][0] < chunk["span"][0]) == (side == "previous")
        assert (chunk["context"] is None) == (name != "sentence_window")
    for level in {chunk["level"] for chunk in chunks}:
        firsts = [chunk for chunk in chunks if chunk["level"] == level and chunk["previous"] is None]
        assert len(firsts) == 1


@dataclass(frozen=True, slots=True)
class Lines:
    """What a file added to `boundaries/` holds: one chunk every so many lines."""

    name: ClassVar[str] = "lines"
    count: int = 1

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Cut after every `count` lines."""
        lines = source.text.splitlines(keepends=True)
        starts = np.cumsum([0, *(len("".join(lines[at : at + self.count])) for at in range(0, len(lines), self.count))])
        starts, ends = source.trim(starts[:-1], starts[1:])
        return [Boundary(Span(int(start), int(end))) for start, end in zip(starts, ends, strict=True)]


def test_a_new_strategy_needs_a_line_in_the_registry_alone(
    embedded: LateChunker, client: TestClient, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STRATEGIES, "lines", Lines)
    assert [chunk["text"] for chunk in through_all(embedded, client, file, "lines", {"count": 2})] == [
        "\n".join(TEXT.split("\n")[:2]),
        "\n".join(TEXT.split("\n")[2:4]).strip(),
        TEXT.split("\n")[4],
    ]
    within = embedded.chunk(TEXT, strategy="nested", outer="lines", inner="semantic", size=10)
    assert len(within) > 6
    assert all(chunk.token_count <= 10 for chunk in within)
    refused = client.post("/v1/boundaries", json={"documents": [{"text": TEXT}], "chunking": {"strategy": "line"}})
    assert refused.status_code == 422
    assert "lines" in refused.json()["error"]


def test_a_span_given_twice_is_no_neighbour_of_itself(embedded: LateChunker) -> None:
    chunks = embedded.embed(TEXT, spans=[(0, 10), (0, 10), (11, 24)]).chunks
    assert chunks[0].id == chunks[1].id
    assert all(chunk.id not in (chunk.previous, chunk.next) for chunk in chunks)


def test_a_callers_spans_are_linked_in_the_order_of_the_text(embedded: LateChunker) -> None:
    chunks = embedded.embed(TEXT, spans=[(43, 56), (0, 10), (11, 24)]).chunks
    assert [chunk.previous for chunk in chunks] == [chunks[2].id, None, chunks[1].id]
    assert [chunk.next for chunk in chunks] == [None, chunks[2].id, chunks[0].id]
