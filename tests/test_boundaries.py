"""What holds for every strategy, over text that breaks splitters."""

from itertools import pairwise

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from late_chunking import LateChunker, errors
from late_chunking.boundaries import (
    STRATEGIES,
    Boundary,
    Hierarchy,
    Paragraphs,
    Readings,
    Recursive,
    Sentences,
    SourceText,
    Strategy,
    Tokens,
    Words,
    make_strategies,
    needs_vectors,
    prepare,
    split,
)
from late_chunking.documents import Span
from tests.sources import UNITS, byte_source, sizes, strategies
from tests.text import nasty_text


@given(nasty_text, strategies())
def test_every_strategy_covers_the_text_in_order_and_cuts_no_cluster(text: str, strategy: Strategy) -> None:
    source = byte_source(text)
    spans = [boundary.span for boundary in split(source, strategy)]
    clusters = [(match.start(), match.end()) for match in regex.finditer(r"\X", text)]
    edges = {0, *(end for _, end in clusters)}
    covered = set()
    for start, end in spans:
        assert 0 <= start < end <= len(text)
        assert {start, end} <= edges
        assert text[start:end].strip()
        # White space at an end is there only as part of a cluster with a visible character.
        first, last = (next(c for c in clusters if c[0] <= place < c[1]) for place in (start, end - 1))
        assert text[slice(*first)].strip()
        assert text[slice(*last)].strip()
        covered.update(range(start, end))
    assert all(before.start < after.start for before, after in pairwise(spans))
    assert all(text[place].isspace() for place in set(range(len(text))) - covered)
    if not text.strip():
        assert not spans


@given(nasty_text, strategies())
def test_a_limit_is_passed_only_by_one_cluster_alone(text: str, strategy: Strategy) -> None:
    size, unit = getattr(strategy, "size", None), getattr(strategy, "unit", "")
    if size is None or unit not in UNITS:
        return
    for boundary in split(byte_source(text), strategy):
        chunk = text[slice(*boundary.span)]
        assert sizes(chunk, unit) <= size or len(regex.findall(r"\X", chunk)) == 1


@given(nasty_text)
def test_overlap_is_there_and_no_larger_than_asked(text: str) -> None:
    strategy = Recursive(size=20, overlap=6, unit="chars")
    spans = [boundary.span for boundary in split(byte_source(text), strategy)]
    for before, after in pairwise(spans):
        assert before.end - after.start <= 6
        assert before.end < after.end


def test_overlap_begins_at_a_word_or_else_at_a_character() -> None:
    text = "alpha beta gamma delta epsilon zeta"
    spans = [boundary.span for boundary in split(byte_source(text), Recursive(size=17, overlap=7, unit="chars"))]
    assert [text[slice(*span)] for span in spans] == [
        "alpha beta gamma",
        "gamma delta",
        "delta epsilon",
        "epsilon zeta",
    ]
    text = "山上下雪了你冷吗快进屋"
    spans = [boundary.span for boundary in split(byte_source(text), Recursive(size=5, overlap=2, unit="chars"))]
    assert [text[slice(*span)] for span in spans] == ["山上下雪了", "雪了你冷吗", "冷吗快进屋"]


@given(nasty_text, st.integers(2, 12), st.integers(0, 11))
def test_windows_follow_the_formula_where_characters_are_single_bytes(text: str, size: int, overlap: int) -> None:
    ascii_text = "".join(character for character in text if "!" <= character <= "~")
    overlap = min(overlap, size - 1)
    spans = [boundary.span for boundary in split(byte_source(ascii_text), Tokens(size, overlap))]
    count = len(ascii_text)
    expected = 0 if not count else 1 if count <= size else 1 + -(-(count - size) // (size - overlap))
    assert len(spans) == expected
    assert all(span.start == place * (size - overlap) for place, span in enumerate(spans))


PARAMETERS = {
    "hierarchy": {"sizes": [8, 4]},
    "nested": {"outer": "paragraphs", "size": 4},
    "sentence_window": {"window": 1},
}


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("tokens", {"size": 0}, "size must be an integer of at least 1, got 0"),
        ("tokens", {"size": True}, "got True"),
        ("tokens", {"size": 1.5}, "got 1.5"),
        ("tokens", {"size": "9"}, "got '9'"),
        ("tokens", {"size": 4, "overlap": 4}, "overlap 4 with size 4"),
        ("tokens", {"size": 4, "overlap": -1}, "got -1"),
        ("tokens", {"unit": "chars"}, "unit must be one of tokens, got 'chars'"),
        ("words", {"size": 4, "overlap": "100%"}, "overlap 100% with size 4"),
        ("words", {"size": 4, "overlap": "76%"}, "overlap 76% with size 4"),
        ("words", {"size": 4, "overlap": "1" + "0" * 400 + "%"}, "overlap 1000000"),
        ("words", {"size": 4, "overlap": "some"}, "a percentage such as '15%', got 'some'"),
        ("paragraphs", {"overlap": 3}, "overlap 3 needs a size: without one, nothing is merged"),
        ("paragraphs", {"size": 2, "unit": "sentences"}, "unit must be one of tokens, chars, words, paragraphs"),
        ("tokens", {"sise": 4}, "no option sise; it has size, overlap"),
        ("recursive", {"unit": "pages", "size": 1}, "a function str → int, got 'pages'"),
        ("recursive", {"unit": ["chars"], "size": 1}, "got ['chars']"),
        ("recursive", {"separators": "abc"}, "list of non-empty strings"),
        ("recursive", {"separators": 5}, "list of non-empty strings or one of text, chat, tickets, got 5"),
        ("recursive", {"separators": [""]}, "list of non-empty strings"),
        ("recursive", {"separators": ["("], "regex": True}, "is no regular expression"),
        ("recursive", {"separators": ["a"] * 65}, "at most 64 separators, got 65"),
        ("recursive", {"separators": ["(?R)"], "regex": True}, "calls itself or a group"),
        ("recursive", {"separators": ["(a)(?1)"], "regex": True}, "calls itself or a group"),
        ("recursive", {"separators": ["(" * 400 + ")" * 400], "regex": True}, "is no regular expression"),
        ("recursive", {"separators": ["(?a)(?u)x"], "regex": True}, "is no regular expression"),
        ("recursive", {"separators": ["((a?){199}){199}"], "regex": True}, "it has 79202 parts; 20000 are the limit"),
        ("turns", {"marker": "((((a?){99}){99}){99}){9}"}, "repeats repetitions"),
        ("recursive", {"separators": ["x" * 1001]}, "at most 1000 characters, got 1001"),
        ("sentences", {"language": "\ud800"}, "language must be"),
        ("tokens", {"size": np.array(5.5)}, "size must be an integer"),
        ("tokens", {"size": np.array([5])}, "size must be an integer"),
        ("sentences", {"overlap": 3}, "needs a size"),
        ("hierarchy", {"sizes": []}, "1 to 8 levels, got 0"),
        ("hierarchy", {"sizes": list(range(9, 0, -1))}, "1 to 8 levels, got 9"),
        ("hierarchy", {"sizes": [5, 5]}, "must decrease from level to level, got [5, 5]"),
        ("hierarchy", {"sizes": [5, 0]}, "integers of at least 1, got [5, 0]"),
        ("hierarchy", {"sizes": "54"}, "sizes must be a list, got '54'"),
        ("hierarchy", {"sizes": [5], "unit": "pages"}, "unit must be one of"),
        ("hierarchy", {}, "needs sizes, such as [512, 128], or levels"),
        ("words", {}, "unit 'words' needs a size"),
        ("sentences", {"language": ""}, "language must be"),
        ("paragraphs", {"language": 5}, "language must be"),
        ("paragraphs", {"language": "\ud800", "size": 9}, "language must be"),
    ],
)
def test_wrong_options_say_the_value_and_the_limit(name: str, parameters: dict[str, object], message: str) -> None:
    with pytest.raises(errors.InvalidParameter, match=regex.escape(message)):
        make_strategies(name, parameters)


def test_unknown_strategy_lists_the_known() -> None:
    with pytest.raises(errors.UnknownStrategy, match="unknown strategy 'token'; known: hierarchy, nested"):
        make_strategies("token")


def test_a_size_beyond_any_text_is_no_limit() -> None:
    for name in ("tokens", "words", "sentences", "paragraphs", "turns", "recursive"):
        (strategy,) = make_strategies(name, {"size": 2**70, "overlap": 2**69})
        assert len(split(byte_source("Some text. More."), strategy)) == 1


def test_windows_of_sentences_slide() -> None:
    text = " ".join(f"Sentence number {number}." for number in range(1, 9))
    spans = [boundary.span for boundary in split(byte_source(text), Sentences(size=3, overlap=1, unit="sentences"))]
    numbers = [[int(number) for number in regex.findall(r"\d", text[slice(*span)])] for span in spans]
    assert numbers == [[1, 2, 3], [3, 4, 5], [5, 6, 7], [7, 8]]


@given(
    nasty_text, st.lists(st.integers(1, 40), min_size=1, max_size=3, unique=True), st.sampled_from(["tokens", "chars"])
)
def test_levels_tile_the_text_within_each_other(text: str, drawn: list[int], unit: str) -> None:
    limits = sorted(drawn, reverse=True)
    source = byte_source(text)
    boundaries = split(source, Hierarchy(limits, unit))
    edges = {0, *(cluster.end() for cluster in regex.finditer(r"\X", text))}
    for level, limit in enumerate(limits):
        spans = [boundary.span for boundary in boundaries if boundary.level == level]
        assert all(before.end <= after.start for before, after in pairwise(spans))
        assert {edge for span in spans for edge in span} <= edges
        covered = {place for span in spans for place in range(*span)}
        assert all(text[place].isspace() for place in set(range(len(text))) - covered)
        for span in spans:
            chunk = text[slice(*span)]
            assert sizes(chunk, unit) <= limit or len(regex.findall(r"\X", chunk)) == 1
    for boundary in boundaries:
        assert (boundary.parent is None) == (boundary.level == 0)
        if boundary.parent is not None:
            parent = boundaries[boundary.parent]
            assert parent.level == boundary.level - 1
            assert parent.span.start <= boundary.span.start < boundary.span.end <= parent.span.end


@given(nasty_text)
def test_spans_without_token_join_within_their_parents(text: str) -> None:
    """Zero-width characters make no token here, as with BERT's tokenizers."""
    anchors = [place for place, character in enumerate(text) if character not in "\u200b\u200d\ufeff\x00"]
    source = SourceText(text, np.array(anchors, dtype=np.int64), 8)
    boundaries = split(source, Hierarchy([20, 6, 1], "chars"))
    if not anchors or not text.strip():
        return
    for boundary in boundaries:
        if boundary.parent is not None:
            parent = boundaries[boundary.parent]
            assert parent.level == boundary.level - 1
            assert parent.span.start <= boundary.span.start < boundary.span.end <= parent.span.end
        visible = text[slice(*boundary.span)].translate(dict.fromkeys(map(ord, "\u200b\u200d\ufeff\x00")))
        assert source.tokens.size(boundary.span) or not visible.strip()


@pytest.mark.parametrize(("percentage", "units"), [("0%", 0), ("10%", 1), ("15 %", 2), ("12.5%", 2), ("90%", 9)])
def test_a_percentage_is_rounded_up(percentage: str, units: int) -> None:
    text = " ".join("word" for _ in range(60))
    by_percentage, by_count = (split(byte_source(text), Words(10, overlap)) for overlap in (percentage, units))
    assert by_percentage == by_count


def test_paragraphs_keep_a_space_that_carries_a_mark() -> None:
    text = "a\n\n \u0301b"
    assert [text[slice(*boundary.span)] for boundary in split(byte_source(text), Paragraphs())] == ["a", " \u0301b"]


def test_repetitions_are_counted_as_they_are_written_out() -> None:
    for pattern in (r"\d{4}-\d{2}-\d{2}", r"[({)]{9}\({3}", r"(\w{1,40} ){0,5}[^\n]{0,80}", "a{9"):
        make_strategies("recursive", {"separators": [pattern], "regex": True, "size": 5})


@pytest.mark.parametrize("given", [[(0, 5)], [Boundary((0, 5))], [Boundary(Span(0, 5000))], [Boundary(Span(3, 3))]])
def test_a_strategy_of_anyones_making_is_checked(given: list) -> None:
    class Odd:
        name = "odd"

        def split(self, source: SourceText) -> list:
            return given

    with pytest.raises(errors.InvalidInput, match="strategy 'odd'"):
        split(byte_source("some text"), Odd())


def test_paragraphs_merge_and_too_long_ones_are_cut_at_sentences() -> None:
    text = "One short.\n\nTwo.\n\nThree is long. It goes on. And on."
    source = byte_source(text)
    assert [text[slice(*boundary.span)] for boundary in split(source, Paragraphs(size=20, unit="chars"))] == [
        "One short.\n\nTwo.",
        "Three is long.",
        "It goes on. And on.",
    ]


def test_a_default_size_is_in_tokens() -> None:
    with pytest.raises(errors.InvalidParameter, match="'chars' needs a size"):
        Recursive(unit="chars")
    with pytest.raises(errors.InvalidParameter, match="overlap 8 with size 8"):
        split(byte_source("some text"), Tokens(overlap=8))


def test_a_separator_that_explodes_is_stopped() -> None:
    with pytest.raises(errors.InvalidParameter, match="took too long; the limit is 2 s for all of them"):
        split(byte_source("a" * 40), Recursive(size=1, separators=("(a|aa)+$b",), regex=True))


def test_the_type_of_a_size_does_not_change_a_strategy() -> None:
    assert Tokens(np.int64(3)) == Tokens(3)  # type: ignore[arg-type]
    assert type(Recursive(np.int32(3), np.int64(1)).size) is int  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["\u200b", "\ufeff \u200b", " \n\u200b\u200d"])
def test_a_text_without_tokens_is_one_chunk_for_every_strategy(text: str) -> None:
    source = SourceText(text, np.zeros(0, dtype=np.int64), 8)
    for name in STRATEGIES:
        (strategy,) = make_strategies(name, PARAMETERS.get(name, {"size": 4}))
        waits = needs_vectors(strategy)
        (boundary,) = prepare(source, strategy).cut(Readings(1, ())) if waits else split(source, strategy)
        assert text[slice(*boundary.span)] == text.strip()


def test_a_span_without_token_joins_its_neighbour(embedded: LateChunker) -> None:
    for text in ("\u200b\n\nfirst. Second.", "first.\n\n\u200b\n\nSecond.", "first. Second.\n\n\u200b"):
        for name in STRATEGIES:
            chunks = embedded.embed(text, strategy=name, **PARAMETERS.get(name, {"size": 4})).chunks
            assert all(chunk.token_count for chunk in chunks)
            assert "\u200b" in "".join(chunk.text for chunk in chunks)


@pytest.mark.parametrize(
    "piece", ["渡轮黎明出发。它运盐和木材！", "「あ。」と言った。", "“", "«", "🇩🇪", "Dr. A. said no. ", "a" * 50 + " "]
)
def test_a_long_paragraph_is_split_as_its_parts_are(piece: str) -> None:
    """Fed in bounded pieces, so that time does not grow with the square; the sentences stay the same."""
    few, many = (split(byte_source(piece * count), Sentences()) for count in (40, 4000))
    if len(few) > 1:
        assert len(many) == 100 * len(few)
    spans = [boundary.span for boundary in many]
    assert spans[: len(few) - 1] == [boundary.span for boundary in few][:-1]


def test_long_lines_and_words_end_within_the_timeout() -> None:
    for text in ("The mill turns. " * 65_000, "x" * 100_000):
        source = SourceText(text, np.arange(0, len(text), 4), 64)
        for strategy in (Tokens(16, 4), Sentences(16), Recursive(16, 4)):
            assert len(split(source, strategy)) >= len(text) / 4 / 16
