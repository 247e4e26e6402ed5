"""The vectors: against a plain reference, against sentence-transformers, and against themselves."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

from late_chunking import Document, FailedDocument, LateChunker, Recursive, errors
from late_chunking.encoding.packing import PackedBatch
from late_chunking.encoding.reader import Reader
from tests.models import save_folder
from tests.reference import Reference
from tests.text import nasty_text

TEXT = (
    "Ada Lovelace was born in London in 1815. She grew up there with her mother, who had her taught mathematics. "
    "At seventeen she met Babbage. His engine fascinated her; she translated a paper on it and added notes longer "
    "than the paper itself. One of them holds a method for computing Bernoulli numbers with it. "
    "她写了第一个程序。🦊 It was never run in her lifetime [SEP] but it works <|endoftext|>."
)
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def reference(chunker: LateChunker) -> Reference:
    """The plain reference of the same model."""
    return Reference(chunker.planner.folder.transformer)


def compare(chunker: LateChunker, reference: Reference, text: str, spans: list[tuple[int, int]]) -> None:
    """Compare every vector with the reference's."""
    folder = chunker.planner.folder
    embedded = chunker.embed(text, spans=spans)
    prompt_text = chunker.planner.tokenizer.tokenize(text, folder.prompts.document)
    capacity = folder.window - 2 - len(prompt_text.prompt_ids)
    expected = reference.embed(text, spans, prompt=folder.prompts.document, window=folder.window, overlap=capacity // 4)
    np.testing.assert_allclose(embedded.vectors, expected, atol=TOLERANCE)
    for chunk, span in zip(embedded.chunks, spans, strict=True):
        assert chunk.span == span
        assert chunk.text == text[slice(*span)]


@pytest.mark.parametrize(
    "text",
    [TEXT, TEXT * 8, f"\n\n {TEXT}\n ", "Hi", "🦊", "[SEP] is not a token here. [CLS]", "山上下雪了。你冷吗？"],
    ids=["one", "windows", "outer-space", "one-token", "emoji", "specials", "chinese"],
)
def test_vectors_are_those_of_the_plain_reference(chunker: LateChunker, reference: Reference, text: str) -> None:
    sentences = [chunk.span for chunk in chunker.embed(text, strategy="sentences").chunks]
    windows = [chunk.span for chunk in chunker.embed(text, strategy="tokens", size=7, overlap=3).chunks]
    whole = [(0, len(text))]
    parts = [(text.index("born"), text.index("London") + 6), *sentences[2:]] if "born" in text else []
    for spans in (sentences, windows, whole, [*sentences, *whole, *windows], parts):
        if spans:
            compare(chunker, reference, text, list(spans))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=nasty_text, data=st.data())
def test_any_spans_of_any_text(chunker: LateChunker, reference: Reference, text: str, data: st.DataObject) -> None:
    assume(text)
    spans = data.draw(
        st.lists(
            st.tuples(st.integers(0, len(text) - 1), st.integers(1, len(text))).filter(lambda span: span[0] < span[1]),
            min_size=1,
            max_size=6,
        )
    )
    tokens = chunker.planner.tokenizer.tokenize(text, chunker.planner.folder.prompts.document)
    owned = [span for span in spans if ((tokens.anchors >= span[0]) & (tokens.anchors < span[1])).any()]
    if owned:
        compare(chunker, reference, text, owned)
    if len(owned) < len(spans):
        with pytest.raises(errors.InvalidSpan, match="owns no token of the model"):
            chunker.embed(text, spans=spans)


def test_a_spans_vector_does_not_depend_on_the_other_spans(chunker: LateChunker) -> None:
    text = TEXT * 3
    spans = [chunk.span for chunk in chunker.embed(text, strategy="tokens", size=9, overlap=4).chunks]
    together = chunker.embed(text, spans=[*spans, (0, len(text))]).vectors
    for place, span in enumerate(spans):
        np.testing.assert_allclose(chunker.embed(text, spans=[span]).vectors[0], together[place], atol=1e-6)


def test_vectors_do_not_depend_on_what_shares_the_batch_or_came_before(chunker: LateChunker) -> None:
    texts = [TEXT, "Hi", TEXT * 5, "", "🦊 alone", TEXT[:200]]
    alone = [chunker.embed(text, strategy="sentences").vectors for text in texts]
    for order in (range(6), reversed(range(6))):
        places = list(order)
        together = chunker.embed_many([texts[place] for place in places], strategy="sentences")
        for place, embedded in zip(places, together, strict=True):
            np.testing.assert_allclose(embedded.vectors, alone[place], atol=1e-6)


@pytest.mark.parametrize("mode", ["late", "naive"])
def test_a_whole_document_gets_the_models_ordinary_embedding(chunker: LateChunker, mode: str) -> None:
    folder = chunker.planner.folder
    model = SentenceTransformer(str(folder.path), device="cpu")
    model.tokenizer.backend_tokenizer.encode_special_tokens = True
    for text in (TEXT[:80], "Hi", "  padded by space \n", "山上下雪了。"):
        expected = model.encode(text, prompt=folder.prompts.document or None, normalize_embeddings=True)
        vector = chunker.embed(text, spans=[(0, len(text))], mode=mode).vectors[0]
        np.testing.assert_allclose(vector, expected, atol=TOLERANCE)
        query = model.encode(text, prompt=folder.prompts.query or None, normalize_embeddings=True)
        np.testing.assert_allclose(chunker.embed_query(text), query, atol=TOLERANCE)


def test_prompts_given_by_the_caller(embedded: LateChunker) -> None:
    prompts = {"query": "query: ", "document": "passage:"}
    prompted = LateChunker("embedded", device="cpu", prompts=prompts)
    model = SentenceTransformer(str(embedded.planner.folder.path), device="cpu")
    text = TEXT[:150]
    expected = model.encode(text, prompt="passage:", normalize_embeddings=True)
    np.testing.assert_allclose(prompted.embed(text, spans=[(0, 150)]).vectors[0], expected, atol=TOLERANCE)
    expected = model.encode(text, prompt="query: ", normalize_embeddings=True)
    np.testing.assert_allclose(prompted.embed_query(text), expected, atol=TOLERANCE)
    assert prompted.info().prompt_source == "caller"
    assert (
        prompted.embed(text, strategy="tokens", size=5).chunks == embedded.embed(text, strategy="tokens", size=5).chunks
    )


@pytest.mark.parametrize("options", [{"dense": 8}, {"dense": 48, "normalize": False}, {"include_prompt": False}])
def test_modules_of_a_sentence_transformers_folder(tmp_path: Path, options: dict[str, int]) -> None:
    prompts = {"query": "query: ", "document": "document: "}
    folder = save_folder(tmp_path, prompts=prompts, **options)  # type: ignore[arg-type]
    model = SentenceTransformer(str(folder), device="cpu")
    chunker = LateChunker(str(folder), device="cpu")
    plain = LateChunker(str(folder), device="cpu", normalize=False)
    text = "The ferry leaves at dawn."
    whole = [(0, len(text))]
    expected = model.encode(text, prompt="document: ", normalize_embeddings=True)
    np.testing.assert_allclose(chunker.embed(text, spans=whole).vectors[0], expected, atol=TOLERANCE)
    unnormalized = model.encode(text, prompt="document: ")
    np.testing.assert_allclose(plain.embed(text, spans=whole).vectors[0], unnormalized, atol=TOLERANCE)
    assert chunker.head.dimensions == len(expected) == chunker.embed("").vectors.shape[1]


def test_naive_is_each_chunk_alone(chunker: LateChunker) -> None:
    naive = chunker.embed(TEXT, strategy="sentences", mode="naive")
    for chunk, vector in zip(naive.chunks, naive.vectors, strict=True):
        alone = chunker.embed_texts([chunk.text], input_type="document")[0]
        np.testing.assert_allclose(vector, alone, atol=1e-6)
    late = chunker.embed(TEXT, strategy="sentences")
    assert late.chunks == naive.chunks
    assert np.abs(late.vectors - naive.vectors).max() > 1e-3


def test_special_tokens_can_be_left_out(embedded: LateChunker) -> None:
    without = LateChunker("embedded", device="cpu", special_tokens="exclude")
    edges = LateChunker("embedded", device="cpu")
    spans = [chunk.span for chunk in embedded.embed(TEXT, strategy="sentences").chunks]
    inner, outer = without.embed(TEXT, spans=spans).vectors, edges.embed(TEXT, spans=spans).vectors
    np.testing.assert_allclose(inner[1:-1], outer[1:-1], rtol=1e-4, atol=1e-4)
    assert np.abs(inner[0] - outer[0]).max() > 1e-3
    assert np.abs(inner[-1] - outer[-1]).max() > 1e-3


def test_several_strategies_share_one_pass(embedded: LateChunker) -> None:
    both = embedded.embed(TEXT, strategy=["sentences", "recursive"])
    apart = [embedded.embed(TEXT, strategy=name) for name in ("sentences", "recursive")]
    assert [chunk.strategy for chunk in both.chunks] == [chunk.strategy for one in apart for chunk in one.chunks]
    np.testing.assert_allclose(both.vectors, np.concatenate([one.vectors for one in apart]), atol=1e-6)
    assert [chunk.index for chunk in both.chunks] == list(range(len(both.chunks)))
    assert both.windows == apart[0].windows
    assert len({chunk.id for chunk in both.chunks}) == len(both.chunks)


def test_parents_and_children_come_from_one_pass(embedded: LateChunker) -> None:
    together = embedded.embed(TEXT * 3, strategy="hierarchy", sizes=[60, 20, 5])
    names = {chunk.id: chunk for chunk in together.chunks}
    assert together.windows == embedded.embed(TEXT * 3, strategy="recursive", size=60).windows
    for chunk, vector in zip(together.chunks, together.vectors, strict=True):
        np.testing.assert_allclose(embedded.embed(TEXT * 3, spans=[chunk.span]).vectors[0], vector, atol=1e-6)
        if chunk.level:
            parent = names[chunk.parent or ""]
            assert parent.level == chunk.level - 1
            assert parent.token_span.start <= chunk.token_span.start < chunk.token_span.end <= parent.token_span.end


def test_token_spans_count_the_documents_own_tokens(chunker: LateChunker) -> None:
    embedded = chunker.embed(TEXT, strategy="tokens", size=10)
    anchors = chunker.planner.tokenizer.tokenize(TEXT, chunker.planner.folder.prompts.document).anchors
    assert embedded.token_count == len(anchors)
    owned = {token for chunk in embedded.chunks for token in range(*chunk.token_span)}
    assert sum(chunk.token_count for chunk in embedded.chunks) == len(owned)
    assert all(1 <= chunk.token_count <= 10 for chunk in embedded.chunks)
    # Windows are trimmed: only tokens of white space may belong to none.
    assert all(TEXT[anchors[token]].isspace() for token in set(range(len(anchors))) - owned)


def test_chunk_ids_are_stable_and_tell_settings_apart(embedded: LateChunker) -> None:
    document = Document(TEXT, id="ada")
    ids = [
        [chunk.id for chunk in embedded.embed(document, strategy="tokens", size=size).chunks] for size in (9, 9, 400)
    ]
    assert ids[0] == ids[1]
    assert not set(ids[0]) & set(ids[2])
    assert (
        embedded.embed(document, spans=[(0, 5)]).chunks[0].id == embedded.embed(document, spans=[(0, 5)]).chunks[0].id
    )
    assert embedded.embed(Document(TEXT, id="other"), spans=[(0, 5)]).chunks[0].id not in ids[0]


def test_a_callers_function_and_a_documents_own_boundaries(embedded: LateChunker) -> None:
    spans = [(0, 40), (41, 107)]
    expected = embedded.embed(TEXT, spans=spans)
    by_function = embedded.embed(TEXT, strategy=lambda text: iter(spans))
    (own,) = embedded.embed_many([Document(TEXT, spans=spans)], strategy="tokens")
    np.testing.assert_array_equal(expected.vectors, by_function.vectors)
    np.testing.assert_array_equal(expected.vectors, own.vectors)
    (chunked,) = embedded.embed_many([Document(TEXT, chunking="sentences")], strategy="tokens")
    assert {chunk.strategy for chunk in chunked.chunks} == {"sentences"}


@pytest.mark.parametrize("text", ["", " ", "\r\n \u00a0\u3000"])
def test_a_text_without_visible_characters_has_no_chunks(chunker: LateChunker, text: str) -> None:
    for mode in ("late", "naive"):
        embedded = chunker.embed(text, mode=mode)
        assert embedded.chunks == ()
        assert embedded.vectors.shape == (0, chunker.head.dimensions)
    assert chunker.embed(text, spans=[]).chunks == ()


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 5000)], "span 0: [0, 5000) lies outside the text, which has 11 characters"),
        ([(0, 3), (-1, 2)], "span 1: [-1, 2) lies outside"),
        ([(5, 2)], "reversed"),
        ([(3, 3)], "span 0: [3, 3) is empty"),
        ([(0, 3, 5)], "is not a (start, end) pair"),
        ([7], "is not a (start, end) pair"),
        ([("a", 3)], "must hold two integers"),
        ([(0, 2.0)], "must hold two integers"),
        ([(True, 2)], "must hold two integers"),
        ([(1, 3)], "span [1, 3) owns no token of the model 'embedded'"),
        ([(5, 6)], "owns no token"),
    ],
)
def test_a_wrong_span_names_document_span_and_limit(embedded: LateChunker, spans: list, message: str) -> None:
    with pytest.raises(errors.InvalidSpan) as caught:
        embedded.embed(Document("Hello world", id="greeting"), spans=spans)
    assert message in str(caught.value)
    assert "document 0 ('greeting')" in str(caught.value)


def test_wrong_calls_are_refused(embedded: LateChunker) -> None:
    with pytest.raises(errors.InvalidDocument, match="either spans or chunking, not both"):
        Document("x", spans=[(0, 1)], chunking="tokens")
    with pytest.raises(errors.InvalidDocument, match=r"character 1 is U\+D800, a lone surrogate"):
        Document("x\ud800")
    with pytest.raises(errors.InvalidDocument, match="text must be a string, got bytes"):
        embedded.embed(b"bytes")  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidParameter, match="either spans or a strategy"):
        embedded.embed("x", spans=[(0, 1)], strategy="tokens")
    with pytest.raises(errors.InvalidParameter, match="has spans of its own"):
        embedded.embed(Document("x", spans=[(0, 1)]), spans=[(0, 1)])
    with pytest.raises(
        errors.InvalidParameter, match="mode must be one of late, naive, blend, contextual, got 'early'"
    ):
        embedded.embed("x", mode="early")
    with pytest.raises(errors.InvalidParameter, match="on_overflow must be one of window, error, got 'cut'"):
        embedded.embed("x", on_overflow="cut")
    with pytest.raises(errors.InvalidParameter, match="on_error must be one of raise, yield, got 'skip'"):
        embedded.embed_many([], on_error="skip")
    with pytest.raises(errors.InvalidParameter, match="options go with a strategy's name"):
        embedded.embed("x", strategy=lambda text: [(0, 1)], size=3)
    with pytest.raises(errors.EmptyInput, match="list of strategies is empty"):
        embedded.embed("x", strategy=[])
    for empty in ("", " \n"):
        with pytest.raises(errors.EmptyInput, match="the query is empty or white space"):
            embedded.embed_query(empty)
        with pytest.raises(errors.EmptyInput, match="text 1 is empty or white space"):
            embedded.embed_texts(["x", empty])
    with pytest.raises(errors.InvalidParameter, match="embed takes a single one"):
        embedded.embed_many("abc")
    (failed,) = embedded.embed_many(["x\ud800"], on_error="yield")
    assert str(failed.error).startswith("document 0: character 1 is U+D800")  # type: ignore[union-attr]
    with pytest.raises(errors.EmptyInput, match="at least one text"):
        embedded.embed_texts([])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": Recursive}, r"strategy must be configured: Recursive(…)"),
        ({"strategy": 5}, "strategy must be a name, a strategy or a function, got 5"),
        ({"spans": 5}, "spans must be a list of (start, end) pairs, got 5"),
        ({"strategy": lambda text: None}, "spans must be a list of (start, end) pairs, got None"),
        ({"strategy": lambda text: {}["x"]}, "the strategy function <lambda> failed: KeyError: 'x'"),
    ],
)
def test_odd_calls_get_errors_of_ours(embedded: LateChunker, arguments: dict, message: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        embedded.embed("text", **arguments)
    assert message in str(caught.value)


def test_a_text_without_tokens_is_an_error_that_names_it(embedded: LateChunker) -> None:
    for name in ("tokens", "sentences", "recursive"):
        with pytest.raises(errors.InvalidDocument, match=r"document 0 \('bom'\): the tokenizer .* makes no token"):
            embedded.embed(Document("\ufeff\u200b", id="bom"), strategy=name)
    outcomes = list(embedded.embed_many(["\ufeff", "fine"], on_error="yield"))
    assert [type(outcome).__name__ for outcome in outcomes] == ["FailedDocument", "EmbeddedDocument"]
    assert outcomes[0].id.startswith("sha256-")


def test_a_documents_spans_may_be_an_iterator(embedded: LateChunker) -> None:
    document = Document("Hello world", spans=iter([(0, 5)]))
    assert len(embedded.embed(document).chunks) == len(embedded.embed(document).chunks) == 1


def test_documents_with_nothing_to_read_do_not_pile_up(embedded: LateChunker) -> None:
    taken = 0

    def endless() -> Iterator[str | Document]:
        nonlocal taken
        yield "first"
        while True:
            taken += 1
            yield Document("x", spans=[(0, 9)]) if taken % 2 else ""

    stream = embedded.embed_many(endless(), on_error="yield")
    for _ in range(500):
        next(stream)
    assert taken < 500 + 5 * 512


def test_a_window_that_no_span_looks_at_is_not_read(embedded: LateChunker) -> None:
    text = TEXT * 20
    whole = embedded.embed(text, spans=[(0, len(text)), (0, 30)])
    part = embedded.embed(text, spans=[(0, 30)])
    assert part.windows == 1 < whole.windows
    np.testing.assert_allclose(part.vectors[0], whole.vectors[1], atol=1e-6)


def test_what_overlaps_multiply_is_bounded(embedded: LateChunker) -> None:
    small = LateChunker("embedded", device="cpu", max_pooled_tokens=5_000)
    with pytest.raises(errors.InvalidParameter, match="tokens in all, more than max_pooled_tokens, 5000"):
        small.embed("word " * 400, strategy="tokens", size=200, overlap=199)
    assert len(small.embed("word " * 400, strategy="tokens", size=200, overlap=100).chunks) == 3


@pytest.mark.parametrize("texts", [5, None, "text"])
def test_texts_must_be_a_list(embedded: LateChunker, texts: object) -> None:
    with pytest.raises(errors.InvalidParameter, match="a list of texts is needed"):
        embedded.embed_texts(texts)  # type: ignore[arg-type]


def test_errors_call_texts_texts(embedded: LateChunker) -> None:
    with pytest.raises(errors.InvalidParameter, match=r"^input_type must be one of query, document or null, got 'x'"):
        embedded.embed_texts(["a"], input_type="x")
    with pytest.raises(errors.InvalidDocument, match=r"^text 0 .* makes no token"):
        embedded.embed_texts(["\u200b"])
    with pytest.raises(errors.DocumentTooLong, match=r"^text 0 "):
        embedded.embed_texts(["word " * 300], on_overflow="error")


def test_limits_name_both_numbers(embedded: LateChunker) -> None:
    long = "word " * 300
    with pytest.raises(errors.DocumentTooLong, match="300 tokens are more than the 254 that fit the model's window"):
        embedded.embed(long, on_overflow="error")
    assert embedded.embed(long, on_overflow="window").windows == 2
    small = LateChunker("embedded", device="cpu", max_document_tokens=299)
    with pytest.raises(errors.DocumentTooLong, match=r"'long'.*300 tokens are more than max_document_tokens, 299"):
        small.embed(Document(long, id="long"))
    with pytest.raises(errors.InvalidParameter, match="window of 256 tokens leaves 254"):
        LateChunker("embedded", device="cpu", window_overlap=254)


def test_a_stream_fails_at_its_document_or_goes_on(embedded: LateChunker) -> None:
    documents = [Document("Fine."), Document("bad", id="bad", spans=[(0, 9)]), Document("Also fine.")]
    outcomes = list(embedded.embed_many(documents, on_error="yield"))
    assert [type(outcome).__name__ for outcome in outcomes] == [
        "EmbeddedDocument",
        "FailedDocument",
        "EmbeddedDocument",
    ]
    failed = outcomes[1]
    assert isinstance(failed, FailedDocument)
    assert (failed.id, failed.index) == ("bad", 1)
    assert isinstance(failed.error, errors.InvalidSpan)
    with pytest.raises(errors.InvalidSpan, match=r"document 1 \('bad'\)"):
        list(embedded.embed_many(documents))


def test_a_stream_reads_ahead_by_a_few_groups_at_most(embedded: LateChunker) -> None:
    taken = 0

    def documents() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield "The ferry leaves at dawn. " * 20

    stream = embedded.embed_many(documents(), strategy="sentences")
    next(stream)
    assert taken <= 5 * 512
    before = taken
    for _ in range(3):
        next(stream)
    assert taken - before <= 512
    stream.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(("tokenize", "plan"))]


def test_a_stream_keeps_the_places_of_what_fails(embedded: LateChunker) -> None:
    def documents() -> Iterator[str | Document]:
        yield "One."
        yield Document("x", spans=[(0, 9)])
        yield 5  # type: ignore[misc]
        yield "Two."

    outcomes = list(embedded.embed_many(documents(), strategy="sentences", on_error="yield"))
    assert [isinstance(outcome, FailedDocument) for outcome in outcomes] == [False, True, True, False]
    assert [outcome.index for outcome in outcomes] == [0, 1, 2, 3]


def test_what_the_source_raises_ends_the_stream(embedded: LateChunker) -> None:
    def documents() -> Iterator[str]:
        yield "One."
        raise RuntimeError("the source has gone")

    with pytest.raises(RuntimeError, match="the source has gone"):
        list(embedded.embed_many(documents(), on_error="yield"))


def test_a_vector_that_is_not_finite_fails_its_document_alone(embedded: LateChunker) -> None:
    chunker = LateChunker("embedded", device="cpu", max_batch_tokens=1)
    inner = chunker.reader.encoder

    class Broken:
        name = "broken"

        def encode(self, batch: PackedBatch) -> torch.Tensor:
            hidden = inner.encode(batch)
            return hidden * float("nan") if batch.bounds[1] == 5 else hidden

    chunker.reader = Reader(Broken(), chunker.reader.staging)
    outcomes = list(chunker.embed_many(["one two", "one two three", "four"], on_error="yield"))
    assert [type(outcome).__name__ for outcome in outcomes] == [
        "EmbeddedDocument",
        "FailedDocument",
        "EmbeddedDocument",
    ]
    assert "not finite" in str(outcomes[1].error)  # type: ignore[union-attr]


@pytest.mark.parametrize("windows", [1, 2, 3, 10, 100])
def test_documents_of_many_windows_are_read_as_the_reference_reads_them(windows: int) -> None:
    chunker = LateChunker("embedded", device="cpu", window=32, window_overlap=7)
    reference = Reference(chunker.planner.folder.transformer)
    text = " ".join(f"word {number} of many" for number in range(12 * windows))
    text = text[:60] if windows == 1 else text
    spans = [chunk.span for chunk in chunker.embed(text, strategy="tokens", size=11, overlap=4).chunks]
    spans += [(0, len(text)), (len(text) // 3, 2 * len(text) // 3), (0, len(text) // 2)]
    tokens = chunker.planner.tokenizer.tokenize(text)
    spans = [span for span in spans if ((tokens.anchors >= span[0]) & (tokens.anchors < span[1])).any()]
    embedded = chunker.embed(text, spans=spans)
    assert windows == 1 or embedded.windows >= windows
    expected = reference.embed(text, spans, window=32, overlap=7)
    np.testing.assert_allclose(embedded.vectors, expected, atol=TOLERANCE)


def test_a_document_that_fits_is_the_same_in_a_shorter_window(embedded: LateChunker) -> None:
    text = TEXT[:300]
    expected = embedded.embed(text, strategy="tokens", size=9, overlap=2)
    tokens = expected.token_count
    for window in (tokens + 2, tokens + 3, 512):
        short = LateChunker("embedded", device="cpu", window=window)
        found = short.embed(text, strategy="tokens", size=9, overlap=2)
        assert found.windows == 1
        np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-6)
    assert LateChunker("embedded", device="cpu", window=tokens + 1).embed(text).windows == 2


def test_threads_share_a_chunker(embedded: LateChunker) -> None:
    texts = [f"{TEXT[: 40 + 7 * number]} {number}" for number in range(24)]
    expected = [embedded.embed(text, strategy="sentences").vectors for text in texts]
    with ThreadPoolExecutor(6) as pool:
        found = pool.map(lambda text: embedded.embed(text, strategy="sentences").vectors, texts)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


def test_no_length_gives_a_vector_that_is_not_finite(chunker: LateChunker) -> None:
    for words in range(1, 140):
        embedded = chunker.embed("salt " * words, strategy="tokens", size=5)
        assert np.isfinite(embedded.vectors).all()
        np.testing.assert_allclose(np.linalg.norm(embedded.vectors, axis=1), 1, atol=1e-5)
