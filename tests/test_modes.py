"""Modes: what each is made of, and that all are made in one stream."""

from collections.abc import Sequence

import numpy as np
import pytest
from fastapi.testclient import TestClient

from late_chunking import Chunk, Document, LateChunker, errors
from late_chunking.boundaries import Boundary, Paragraphs, SourceText
from late_chunking.request import Request
from late_chunking.vectors import normalized
from server.app import create_app
from server.settings import ServerSettings

TEXT = "\n\n".join(
    f"The ferry number {number} leaves at dawn. It carries salt, timber and the post. Nobody complained of it."
    for number in range(12)
)


class Headed:
    """Paragraphs, each under a heading of its own."""

    name = "headed"

    def split(self, source: SourceText) -> list[Boundary]:
        return [
            Boundary(item.span, heading_path=("Ferries", f"Number {place}"))
            for place, item in enumerate(Paragraphs().split(source))
        ]


@pytest.mark.parametrize("strategy", ["sentences", "semantic"])
@pytest.mark.parametrize("weight", [0, 0.3, 1])
def test_a_blend_is_the_weighted_sum(chunker: LateChunker, strategy: str, weight: float) -> None:
    late, naive, blend = (
        chunker.embed(TEXT, strategy=strategy, mode=mode, blend_weight=weight) for mode in ("late", "naive", "blend")
    )
    expected = normalized(weight * late.vectors + (1 - weight) * naive.vectors)
    np.testing.assert_allclose(blend.vectors, expected, atol=1e-5)
    assert blend.chunks == late.chunks
    # Semantic boundaries read the document in any mode, and a blend not once more.
    assert blend.windows == naive.windows + (0 if strategy == "semantic" else late.windows)


def test_a_contextual_chunk_is_its_header_and_text_embedded(chunker: LateChunker) -> None:
    document = Document(TEXT, title="Ferries\n of the north", context="A list.")
    found = chunker.embed(document, strategy=Headed(), mode="contextual")
    for place, chunk in enumerate(found.chunks):
        assert chunk.content == f"Ferries of the north › Ferries › Number {place}\n\nA list.\n\n{chunk.text}"
        assert chunk.text == TEXT[slice(*chunk.span)]
    expected = chunker.embed_texts([str(chunk.content) for chunk in found.chunks], input_type="document")
    np.testing.assert_allclose(found.vectors, expected, atol=1e-5)


def test_contexts_come_from_the_document_or_a_function(embedded: LateChunker) -> None:
    contexts = [f"context {number}" for number in range(12)]

    def write(document: Document, chunks: Sequence[Chunk]) -> list[str]:
        assert document.text == TEXT
        return [f"context {chunk.index}" for chunk in chunks]

    own = embedded.embed(Document(TEXT, context=contexts), strategy="paragraphs", mode="contextual")
    written = embedded.embed(TEXT, strategy="paragraphs", mode="contextual", context=write)
    assert [chunk.content for chunk in own.chunks] == [
        f"{c}\n\n{k.text}" for c, k in zip(contexts, own.chunks, strict=True)
    ]
    assert [chunk.content for chunk in written.chunks] == [chunk.content for chunk in own.chunks]
    np.testing.assert_allclose(written.vectors, own.vectors, atol=1e-6)


def test_a_chunk_with_nothing_before_it_is_naive(embedded: LateChunker) -> None:
    found = embedded.embed(Document(TEXT, context=" "), strategy="paragraphs", mode="contextual")
    assert all(chunk.content is None for chunk in found.chunks)
    naive = embedded.embed(TEXT, strategy="paragraphs", mode="naive")
    np.testing.assert_allclose(found.vectors, naive.vectors, atol=1e-6)


@pytest.mark.parametrize(
    ("document", "options", "message"),
    [
        (Document(TEXT, context=["one"]), {}, "it has 1 contexts for 12 chunks"),
        (Document(TEXT), {"context": lambda document, chunks: ["one"]}, "must give 12 strings"),
        (Document(TEXT), {"context": lambda document, chunks: [1] * 12}, "must give 12 strings"),
        (Document(TEXT), {"context": lambda document, chunks: 1 / 0}, "failed: ZeroDivisionError"),
        (Document(TEXT), {"context": "one"}, "context must be a function, got 'one'"),
        (Document(TEXT), {"mode": "late", "context": len}, "context goes with mode 'contextual', not with 'late'"),
        (Document(TEXT), {"blend_weight": 1.5}, "blend_weight must be a number from 0 to 1, got 1.5"),
        (Document(TEXT), {"blend_weight": True}, "got True"),
        (Document(TEXT), {"window_context": 1}, "window_context must be true or false, got 1"),
    ],
)
def test_what_is_wrong_is_said(embedded: LateChunker, document: Document, options: dict, message: str) -> None:
    with pytest.raises(errors.InvalidInput, match=message):
        embedded.embed(document, strategy="paragraphs", **{"mode": "contextual", **options})


@pytest.mark.parametrize("context", [5, [1], {"a": "b"}])
def test_a_documents_context_is_text(context: object) -> None:
    with pytest.raises(errors.InvalidDocument, match="context must be a string or a list of them"):
        Document("x", context=context)  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", [Headed(), "semantic"])
def test_later_windows_begin_with_their_header(chunker: LateChunker, strategy: object) -> None:
    def sequences(title: str) -> list[list[int]]:
        document = Document(TEXT, title=title)
        plan = chunker.planner.plan(document, Request.of(strategy, {"window_context": True}))  # type: ignore[arg-type]
        return [sequence.ids.tolist() for sequence in plan.sequences]

    tokenizer, prompts = chunker.planner.tokenizer, chunker.planner.folder.prompts
    before = [*tokenizer.leading, *tokenizer.tokenize("x", prompts.document).prompt_ids]
    read = sequences("Boats")
    assert len(read) > 1
    assert max(map(len, read)) <= chunker.planner.folder.window
    headers = ["Boats", *(f"Boats › Ferries › Number {number}" for number in range(12))]
    begun = [tokenizer.tokenize(f"{one}\n").ids.tolist() for one in headers]
    assert not any(read[0][len(before) :][: len(begin)] == begin for begin in begun)
    for ids in read[1:]:
        assert ids[: len(before)] == before
        assert any(ids[len(before) :][: len(begin)] == begin for begin in begun)


def test_headers_are_read_but_not_pooled(chunker: LateChunker) -> None:
    """Of two titles as long in tokens, the chunks of the first window take no notice."""
    one, other = (
        chunker.embed(Document(TEXT, title=title), strategy="paragraphs", window_context=True)
        for title in ("Salt", "Dawn")
    )
    plain = chunker.embed(TEXT, strategy="paragraphs", window_context=True)
    assert one.windows == other.windows >= plain.windows > 1
    same = np.isclose(one.vectors, other.vectors, atol=1e-6).all(axis=1)
    assert same[0]
    assert not same[-1]
    short = [chunker.embed(Document("It is late.", title=title), window_context=True).vectors for title in ("A", "B")]
    np.testing.assert_array_equal(*short)
    np.testing.assert_array_equal(plain.vectors, chunker.embed(TEXT, strategy="paragraphs").vectors)


def test_a_header_that_fills_the_window_is_refused(embedded: LateChunker) -> None:
    with pytest.raises(errors.InvalidParameter, match=r"a window's header of \d+ tokens takes more than half"):
        embedded.embed(Document(TEXT, title="long " * 200), window_context=True)


def test_modes_over_http(embedded: LateChunker) -> None:
    document = {"text": TEXT, "title": "Ferries", "context": "A list."}
    with TestClient(create_app(ServerSettings(), embedded)) as client:
        for options in (
            {"mode": "blend", "blend_weight": 0.3},
            {"mode": "contextual"},
            {"mode": "late", "window_context": True},
        ):
            body = {"documents": [document], "chunking": {"strategy": "paragraphs"}, **options}
            answer = client.post("/v1/chunks", json=body)
            assert answer.status_code == 200
            expected = embedded.embed(Document(**document), strategy="paragraphs", **options)
            chunks = answer.json()["data"][0]["chunks"]
            np.testing.assert_allclose([chunk["embedding"] for chunk in chunks], expected.vectors, atol=1e-6)
            assert [chunk["content"] for chunk in chunks] == [chunk.content for chunk in expected.chunks]
        wrong = {"documents": [{**document, "context": ["one"]}], "mode": "contextual"}
        refused = client.post("/v1/chunks", json=wrong)
        assert refused.status_code == 422
        assert "1 contexts for" in refused.json()["error"]
        assert client.post("/v1/chunks", json={**wrong, "blend_weight": 2}).status_code == 400
