"""Cuts by meaning: where they fall, that limits hold, and that they cost no further pass."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from late_chunking import Document, FailedDocument, LateChunker, errors
from late_chunking.boundaries import (
    Boundary,
    Hierarchy,
    Nested,
    Readings,
    Semantic,
    SourceText,
    Waiting,
    prepare,
    split,
)
from late_chunking.boundaries.partition import partition
from late_chunking.boundaries.readings import Reading
from late_chunking.boundaries.rulers import UnitRuler
from late_chunking.boundaries.similarity import vector_similarities, word_similarities
from late_chunking.encoding.reader import Reader
from tests.sources import byte_source, random_vectors
from tests.text import nasty_text

TOPICS = (
    "The kite flies high. The kite flies low. A long tail keeps the kite steady in the wind.\n\n"
    "Bread needs warm flour. Bread needs warm water. The dough must rest before the bread is baked."
)
STORY = "\n\n".join(
    f"The ferry number {number} leaves at dawn. It carries salt, timber and the post. The captain is called Ann "
    f"Number{number}, and she has seen worse weather. Prices rose by {number} per cent. Nobody complained."
    for number in range(40)
)


class CountingReader:
    """Reads as the reader it stands for, and counts the sequences."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.sequences = 0

    def read_all(self, batches: Iterable[Sequence]) -> Iterator[tuple[Sequence, list]]:
        for batch, results in self.reader.read_all(batches):
            self.sequences += len(batch)
            yield batch, results


@pytest.fixture
def passes(chunker: LateChunker, monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingReader]:
    """Counts what the encoder reads."""
    counting = CountingReader(chunker.reader)
    monkeypatch.setattr(chunker, "reader", counting)
    return counting


@pytest.mark.parametrize(
    "options",
    [{}, {"percentile": 60}, {"threshold": 0.8}, {"drop": 0.02, "floor": 0}, {"size": 20}, {"size": 20, "min_size": 8}],
    ids=str,
)
@pytest.mark.parametrize(
    "text", [TOPICS, STORY, "One. Two.", "Same again. " * 9], ids=["topics", "story", "two", "same"]
)
def test_late_vectors_are_those_of_the_same_spans_for_no_further_pass(
    chunker: LateChunker, passes: CountingReader, text: str, options: dict
) -> None:
    found = chunker.embed(text, strategy="semantic", **options)
    read = passes.sequences
    expected = chunker.embed(text, spans=[chunk.span for chunk in found.chunks])
    assert read == passes.sequences - read == found.windows
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-6)
    assert [chunk.token_span for chunk in found.chunks] == [chunk.token_span for chunk in expected.chunks]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nasty_text, st.integers(2, 12))
def test_any_text(chunker: LateChunker, text: str, size: int) -> None:
    strategy = Semantic(size, size // 2, window=0, percentile=50, floor=0)
    if text.strip() and not len(chunker.planner.tokenizer.tokenize(text).ids):
        return  # an error of its own
    found = chunker.embed(text, strategy=strategy)
    expected = chunker.embed(text, spans=[chunk.span for chunk in found.chunks])
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-5)
    covered = {place for chunk in found.chunks for place in range(*chunk.span)}
    assert all(text[place].isspace() for place in set(range(len(text))) - covered)


def test_naive_reads_the_document_and_then_each_chunk(chunker: LateChunker, passes: CountingReader) -> None:
    late = chunker.embed(STORY, strategy="semantic", size=40)
    naive = chunker.embed(STORY, strategy="semantic", size=40, mode="naive")
    assert [chunk.span for chunk in naive.chunks] == [chunk.span for chunk in late.chunks]
    alone = chunker.embed(STORY, spans=[chunk.span for chunk in late.chunks], mode="naive")
    np.testing.assert_allclose(naive.vectors, alone.vectors, atol=1e-5)
    assert naive.windows == late.windows + alone.windows
    assert passes.sequences == 2 * late.windows + 2 * alone.windows


def test_a_change_of_topic_is_found(embedded: LateChunker) -> None:
    for options in ({}, {"window": 0}, {"threshold": 0.7}, {"drop": 0.3}, {"embedder": "bag-of-words"}):
        chunks = embedded.chunk(TOPICS, strategy="semantic", **options)
        assert TOPICS.index("Bread") in {chunk.span.start for chunk in chunks}


def test_a_text_of_one_topic_stays_whole(embedded: LateChunker) -> None:
    for text in ("The bell rang.", "The bell rang. " * 2, "The bell rang. " * 30):
        assert [chunk.span for chunk in embedded.chunk(text, strategy="semantic")] == [(0, len(text.rstrip()))]
    assert len(embedded.chunk(TOPICS, strategy="semantic", floor=2)) == 1


def test_a_stream_of_all_kinds_comes_in_order_and_as_alone(chunker: LateChunker) -> None:
    texts = [STORY, TOPICS, "", "One.", "One. Two. Three.", STORY[:700]]
    kinds = ["semantic", "sentences", {"strategy": "semantic", "size": 12}]
    documents = [
        Document(text, chunking=kinds[(place + turn) % 3]) for turn in range(3) for place, text in enumerate(texts)
    ]
    for mode in ("late", "naive"):
        for document, found in zip(documents, chunker.embed_many(documents, mode=mode), strict=True):
            expected = chunker.embed(document, mode=mode)
            assert found.document is document
            assert found.chunks == expected.chunks
            assert found.windows == expected.windows
            np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-5)


def test_what_fails_while_read_or_cut_takes_its_place(embedded: LateChunker, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(CountingReader):
        def read_all(self, batches: Iterable[Sequence]) -> Iterator[tuple[Sequence, list]]:
            for batch, results in super().read_all(batches):
                yield (
                    batch,
                    [
                        errors.OutOfDeviceMemory("full") if len(item.sequence) > 200 else result
                        for item, result in zip(batch, results, strict=True)
                    ],
                )

    monkeypatch.setattr(embedded, "reader", Failing(embedded.reader))
    documents = [Document(text, id=name) for name, text in (("a", TOPICS), ("b", STORY), ("c", TOPICS))]
    outcomes = list(embedded.embed_many(documents, strategy="semantic", on_error="yield"))
    assert [outcome.id for outcome in outcomes] == ["a", "b", "c"]
    assert isinstance(outcomes[1], FailedDocument)
    assert str(outcomes[1].error) == "document 1 ('b'): full"
    assert not any(isinstance(outcome, FailedDocument) for outcome in (outcomes[0], outcomes[2]))


def test_a_fault_of_the_cutting_names_the_document(embedded: LateChunker) -> None:
    class Faulty(Semantic):
        def prepare(self, source: SourceText) -> Waiting:
            def cut(readings: Readings) -> list[Boundary]:
                raise errors.InvalidParameter("no")

            return Waiting(super().prepare(source).pieces, cut)

    with pytest.raises(errors.InvalidParameter, match=r"document 0 \('x'\): no"):
        embedded.embed(Document(TOPICS, id="x"), strategy=Faulty())


def test_a_list_of_strategies_shares_the_pass(chunker: LateChunker, passes: CountingReader) -> None:
    found = chunker.embed(STORY, strategy=["sentences", "semantic", {"strategy": "tokens", "size": 7, "overlap": 3}])
    assert passes.sequences == found.windows
    expected = chunker.embed(STORY, spans=[chunk.span for chunk in found.chunks])
    assert expected.windows == found.windows
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-6)
    assert [chunk.strategy for chunk in found.chunks] == sorted(
        (chunk.strategy for chunk in found.chunks), key=["sentences", "semantic", "tokens"].index
    )


def test_chunks_of_a_callers_function_are_pieces_as_they_are(embedded: LateChunker) -> None:
    """Semantic cuts inside a caller's sections are those of each section alone."""
    text = f"{TOPICS} {STORY[:600]}"
    half = len(TOPICS)
    nested = Nested(lambda whole: [(0, half), (half + 1, len(whole))], Semantic(threshold=0.7), 5)
    starts = {chunk.span.start for chunk in embedded.chunk(text, strategy=nested)}
    assert {0, TOPICS.index("Bread"), half + 1} <= starts


def test_semantic_only_within_long_sections(chunker: LateChunker, passes: CountingReader) -> None:
    text = "A short one.\n\n" + STORY.replace("\n\n", " ") + "\n\nAnother short one."
    found = chunker.embed(text, strategy="nested", outer="paragraphs", inner="semantic", size=60)
    assert found.windows == passes.sequences
    expected = chunker.embed(text, spans=[chunk.span for chunk in found.chunks])
    assert expected.windows == found.windows
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-6)
    assert found.chunks[0].text == "A short one."
    assert found.chunks[-1].text == "Another short one."
    assert len(found.chunks) > 10
    assert all(chunk.token_count <= 60 for chunk in found.chunks)


def test_sections_inside_topics_cost_a_pass_only_where_they_cut_sentences(
    chunker: LateChunker, passes: CountingReader
) -> None:
    plain = chunker.embed(STORY, strategy="semantic").windows
    for levels, further in ((["semantic", "sentences"], 0), (["semantic", "words"], 1)):
        if levels[1] == "words":
            levels = ["semantic", {"strategy": "words", "size": 7}]
        found = chunker.embed(STORY, strategy=Hierarchy(levels=levels))
        assert found.windows == plain * (1 + further)
        expected = chunker.embed(STORY, spans=[chunk.span for chunk in found.chunks])
        np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-6)
        ids = {chunk.id: chunk for chunk in found.chunks}
        for chunk in found.chunks:
            if chunk.level:
                parent = ids[chunk.parent]
                assert parent.level == 0
                assert parent.span.start <= chunk.span.start < chunk.span.end <= parent.span.end


@given(st.lists(st.integers(1, 12), min_size=1, max_size=25), st.integers(1, 20), st.data())
def test_limits_always_hold(lengths: list[int], least: int, data: st.DataObject) -> None:
    """In words, which leave no room for white space: no chunk passes a limit but a whole text."""
    size = data.draw(st.integers(2 * least, 4 * least))
    text = " ".join("word " * (length - 1) + "end." for length in lengths)
    strategy = Semantic(size, least, "words", percentile=50, floor=0, embedder=random_vectors)
    counts = [len(text[slice(*boundary.span)].split()) for boundary in split(byte_source(text), strategy)]
    assert sum(counts) == sum(lengths)
    assert all(least <= count <= size for count in counts) or counts == [sum(lengths)]


@given(
    st.lists(st.tuples(st.integers(1, 6), st.floats(-1, 1)), min_size=1, max_size=9),
    st.none() | st.integers(1, 12),
    st.integers(0, 6),
)
def test_no_other_cuts_are_worth_more(drawn: list[tuple[int, float]], size: int | None, least: int) -> None:
    lengths, gains = [length for length, _ in drawn], np.array([gain for _, gain in drawn[1:]])
    ends = np.cumsum(lengths)
    starts = ends - lengths
    ruler = UnitRuler(np.arange(ends[-1]), np.arange(ends[-1]) + 1)

    def groups_of(cuts: Sequence[int]) -> list[list[int]]:
        edges = [0, *(cut + 1 for cut in cuts), len(lengths)]
        return [lengths[low:high] for low, high in pairwise(edges)]

    def is_allowed(cuts: Sequence[int]) -> bool:
        return size is None or all(sum(group) <= size or len(group) == 1 for group in groups_of(cuts))

    def score(cuts: Sequence[int]) -> tuple[int, float]:
        return -sum(sum(group) < least for group in groups_of(cuts)), sum(float(gains[cut]) for cut in cuts)

    options = [cuts for count in range(len(gains) + 1) for cuts in combinations(range(len(gains)), count)]
    best = max(score(cuts) for cuts in options if is_allowed(cuts))
    groups = partition(starts, ends, gains, ruler, size, least)
    assert groups[0].start == 0
    assert all(before.end == after.start for before, after in pairwise(groups))
    cuts = [int(np.searchsorted(ends, group.end)) for group in groups[:-1]]
    assert is_allowed(cuts)
    assert score(cuts) == (best[0], pytest.approx(best[1], abs=1e-9))


@given(st.integers(2, 12), st.integers(0, 3), st.integers(0, 11))
def test_similarities_are_cosines_of_means_within_a_reading(count: int, window: int, seam: int) -> None:
    generator = np.random.default_rng(count)
    sums = generator.standard_normal((count, 5)).astype(np.float32)
    counts = generator.integers(1, 9, count)
    seam = min(seam, count - 1)
    halves = [
        Reading(0, sums[: seam + 1], counts[: seam + 1], (0, seam)),
        Reading(seam + 1, sums[seam + 1 :], counts[seam + 1 :], (seam + 1, count - 1)),
    ]
    found = vector_similarities(Readings(count, [half for half in halves if len(half.counts)]), window)
    for gap in range(count - 1):
        if gap == seam:
            assert np.isnan(found[gap])
            continue
        low, high = (0, seam + 1) if gap < seam else (seam + 1, count)
        left = sums[max(gap - window, low) : gap + 1].sum(axis=0)
        right = sums[gap + 1 : min(gap + 2 + window, high)].sum(axis=0)
        assert found[gap] == pytest.approx(left @ right / np.linalg.norm(left) / np.linalg.norm(right), abs=1e-5)


def test_words_are_compared_by_their_counts() -> None:
    found = word_similarities(["A a b.", "a B!", "—", "…", "c"], 0)
    assert found == pytest.approx([3 / 10**0.5, 0, 1, 0])


@given(
    st.lists(st.sampled_from("ab c"), max_size=20).map("".join).flatmap(lambda text: st.just(text.split("c"))),
    st.integers(0, 25),
)
def test_words_come_and_go_as_they_are_counted(texts: list[str], window: int) -> None:
    found = word_similarities(texts, window)
    for gap in range(len(texts) - 1):
        sides = " ".join(texts[max(gap - window, 0) : gap + 1]), " ".join(texts[gap + 1 : gap + 2 + window])
        assert found[gap] == pytest.approx(word_similarities(sides, 0)[0])


def test_options_without_bounds_cost_nothing_more() -> None:
    text = "One sentence. Another one! " * 3_000
    for options in ({"window": 2**70}, {"window": 2_000}, {"min_size": 10**6}, {"size": 2**70, "min_size": 2**60}):
        assert split(byte_source(text), Semantic(embedder="bag-of-words", **options))
    assert Semantic(percentile=np.float32(90)) == Semantic(percentile=90)  # type: ignore[arg-type]


def test_pieces_keep_both_limits_possible() -> None:
    text = "Short one. " + "word " * 50 + "end. Short two."
    strategy = Semantic(20, 8, "words")
    counts = [len(text[slice(*span)].split()) for span in prepare(byte_source(text), strategy).pieces]
    assert counts == [2, *[4] * 12, 3, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"percentile": 101}, "percentile must be a number from 0 to 100, got 101"),
        ({"threshold": "0.5"}, "threshold must be a number from -1 to 1, got '0.5'"),
        ({"drop": True}, "drop must be a number from 0 to 2, got True"),
        ({"floor": None}, "floor must be a number from 0 to 2, got None"),
        ({"floor": float("nan")}, "floor must be a number from 0 to 2, got nan"),
        ({"percentile": 5, "drop": 1}, "give one of percentile, threshold and drop, got percentile and drop"),
        ({"size": 10, "min_size": 6}, "min_size must be at most half of size, 10, got 6"),
        ({"size": 0}, "size must be an integer of at least 1, got 0"),
        ({"window": -1}, "window must be an integer of at least 0, got -1"),
        ({"unit": "sentences"}, "unit must be one of tokens"),
        ({"language": ""}, "language must be"),
        ({"embedder": np.array([1, 2])}, "embedder must be 'bag-of-words' or a function, got array"),
        ({"embedder": "word2vec"}, "embedder must be 'bag-of-words' or a function, got 'word2vec'"),
    ],
)
def test_wrong_options_say_the_value_and_the_limit(options: dict, message: str) -> None:
    with pytest.raises(errors.InvalidParameter, match=message):
        Semantic(**options)


@pytest.mark.parametrize(
    ("embedder", "message"),
    [
        (lambda texts: [[1.0]], r"finite vectors \[6, D\], one a sentence, got shape \(1, 1\)"),
        (lambda texts: [1.0] * len(texts), "finite vectors"),
        (lambda texts: [[float("nan")]] * len(texts), "finite vectors"),
        (lambda texts: 1 / 0, "the embedder failed: ZeroDivisionError"),
    ],
)
def test_an_embedders_faults_are_said(embedder, message: str) -> None:
    with pytest.raises(errors.InvalidParameter, match=message):
        split(byte_source(TOPICS), Semantic(embedder=embedder))


def test_only_one_may_wait_for_vectors() -> None:
    with pytest.raises(errors.InvalidParameter, match="one may wait for vectors"):
        Nested("semantic", "semantic", 9)
    with pytest.raises(errors.InvalidParameter, match="one may wait for vectors"):
        Hierarchy(levels=["semantic", {"strategy": "nested", "outer": "paragraphs", "inner": "semantic"}])
