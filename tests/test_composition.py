"""Strategies within strategies: nested, hierarchies of any, and what they hand down."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from late_chunking import errors
from late_chunking.boundaries import (
    Boundary,
    Hierarchy,
    Nested,
    Paragraphs,
    Recursive,
    Semantic,
    Sentences,
    SourceText,
    Strategy,
    Tokens,
    make_strategies,
    needs_vectors,
    prepare,
    split,
)
from late_chunking.documents import Span
from tests.sources import byte_source, strategies
from tests.text import nasty_text

TEXT = "One short.\n\nThis one is longer. It goes on. And on.\n\nTwo."


@dataclass(frozen=True)
class Titled:
    """Paragraphs that carry a title and a kind."""

    name: str = "titled"

    def split(self, source: SourceText) -> list[Boundary]:
        return [Boundary(item.span, kind="part", heading_path=("Top",)) for item in Paragraphs().split(source)]


def texts(text: str, boundaries: list[Boundary]) -> list[str]:
    return [text[slice(*boundary.span)] for boundary in boundaries]


def test_only_chunks_that_are_too_long_are_cut() -> None:
    found = split(byte_source(TEXT), Nested("paragraphs", "sentences", 20, "chars"))
    assert texts(TEXT, found) == ["One short.", "This one is longer.", "It goes on. And on.", "Two."]
    found = split(byte_source(TEXT), Nested("paragraphs", {"strategy": "sentences", "size": 12}, 20, "chars"))
    assert texts(TEXT, found) == ["One short.", "This one is", "longer.", "It goes on.", "And on.", "Two."]


def test_the_default_size_is_the_models() -> None:
    assert texts(TEXT, split(byte_source(TEXT, 20), Nested("paragraphs", Sentences()))) == [
        *("One short.", "This one is longer.", "It goes on.", "And on.", "Two.")
    ]
    assert len(split(byte_source(TEXT, 60), Nested("paragraphs", Sentences()))) == 3


def test_what_is_known_of_a_chunk_is_handed_down() -> None:
    for strategy in (
        Nested(Titled(), "recursive", 12, "chars"),
        Hierarchy(levels=[Titled(), Recursive(12, unit="chars")]),
    ):
        found = split(byte_source(TEXT), strategy)
        assert {(boundary.kind, boundary.heading_path) for boundary in found} == {("part", ("Top",))}
    found = split(byte_source(TEXT), Hierarchy(levels=["paragraphs", {"strategy": "sentence_window", "window": 1}]))
    assert [boundary.context and TEXT[slice(*boundary.context)] for boundary in found if boundary.level] == [
        "One short.",
        "This one is longer. It goes on.",
        "This one is longer. It goes on. And on.",
        "It goes on. And on.",
        "Two.",
    ]


def test_levels_by_any_strategy() -> None:
    found = split(byte_source(TEXT), Hierarchy(levels=["paragraphs", "sentences", 8], unit="chars"))
    levels = [[TEXT[slice(*item.span)] for item in found if item.level == level] for level in range(3)]
    assert levels[0] == TEXT.split("\n\n")
    assert levels[1] == ["One short.", "This one is longer.", "It goes on.", "And on.", "Two."]
    assert levels[2] == ["One", "short.", "This one", "is", "longer.", "It goes", "on.", "And on.", "Two."]
    assert split(byte_source(TEXT), Hierarchy([30, 8], "chars")) == split(
        byte_source(TEXT), Hierarchy(levels=[30, Recursive(8, unit="chars")], unit="chars")
    )


@given(nasty_text, strategies(), st.sampled_from(["paragraphs", "sentences", "turns"]), st.booleans())
def test_any_strategy_within_another_tiles_its_chunks(text: str, inner: Strategy, outer: str, nested: bool) -> None:
    strategy = Nested(outer, inner, 1) if nested else Hierarchy(levels=[outer, inner])
    found = split(byte_source(text), strategy)
    smallest = [item.span for item in found if nested or item.level == 1]
    covered = {place for span in smallest for place in range(*span)}
    assert all(text[place].isspace() for place in set(range(len(text))) - covered)
    assert all(before.start < after.start for before, after in pairwise(smallest))
    around = [item.span for item in split(byte_source(text), make_strategies(outer)[0])]
    for span in smallest:
        assert sum(low <= span.start and span.end <= high for low, high in around) == 1
    for item in found:
        if item.parent is not None:
            parent = found[item.parent].span
            assert parent.start <= item.span.start < item.span.end <= parent.end


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Nested(Tokens(4, 1), "recursive", 2), "the chunks of 'tokens' overlap"),
        (lambda: Nested(Hierarchy([9, 3])), "'hierarchy' has levels of its own"),
        (lambda: Nested("paragraphs", Hierarchy([9, 3]), 4), "'hierarchy' has levels of its own"),
        (lambda: Hierarchy(levels=[Tokens(4, 1), "sentences"]), "the chunks of 'tokens' overlap"),
        (lambda: Nested(lambda text: [(0, 5), (3, 9)]), "the chunks of 'spans' overlap"),
        (
            lambda: Nested(lambda text: [(0, 1), (1, len(text))], "recursive", 1),
            r"span \[0, 1\) cuts a grapheme cluster",
        ),
        (lambda: Nested(lambda text: [(2, 3), (4, len(text))], "recursive", 1), r"span \[2, 3\) owns no token"),
        (lambda: Hierarchy(levels=[Tokens(30, 10), Semantic()]), "the chunks of 'tokens' overlap"),
        (lambda: Nested("paragraphs", 5), "strategy must be a name, a strategy or a function, got 5"),
        (lambda: Nested("paragraphs", {"size": 5}), "needs its name under 'strategy', got {'size': 5}"),
        (lambda: Nested("paragraphs", {"strategy": "words", "sise": 5}), "'words' has no option sise"),
        (lambda: Nested("paragraphs", Paragraphs), "strategy must be configured"),
        (lambda: Nested("paragraphs", size=0), "size must be an integer of at least 1, got 0"),
        (lambda: Nested("paragraphs", unit="chars"), "unit 'chars' needs a size"),
        (lambda: Hierarchy([5], levels=["words"]), "takes sizes or levels, not both"),
        (lambda: Hierarchy(levels=[5, 5]), "sizes must decrease from level to level"),
        (lambda: Hierarchy(levels=[True]), "strategy must be a name, a strategy or a function, got True"),
        (lambda: Hierarchy(levels="words"), "levels must be a list, got 'words'"),
    ],
)
def test_what_cannot_stand_within_another_is_refused(make, message: str) -> None:
    text = "e\u0301\u200b " + TEXT
    anchors = [place for place, character in enumerate(text) if character != "\u200b"]
    source = SourceText(text, np.array(anchors, dtype=np.int64), 8)

    def cut() -> None:
        strategy = make()
        prepare(source, strategy) if needs_vectors(strategy) else split(source, strategy)

    with pytest.raises(errors.InvalidParameter, match=message):
        cut()


def test_an_unknown_strategy_within_another_lists_the_known() -> None:
    with pytest.raises(errors.UnknownStrategy, match="unknown strategy 'paragraph'; known: hierarchy"):
        Nested("paragraph")


def test_strategies_stand_within_each_other_only_so_deep() -> None:
    given: dict = {"strategy": "sentences"}
    for _ in range(7):
        given = {"strategy": "nested", "outer": given, "inner": given, "size": 4}
    assert split(byte_source(TEXT), make_strategies(given)[0])
    for _ in range(300):
        given = {"strategy": "nested", "outer": given}
    with pytest.raises(errors.InvalidParameter, match="8 deep at most"):
        make_strategies(given)


def test_a_slow_expression_has_one_limit_for_all_parts() -> None:
    slow = {"strategy": "recursive", "size": 1, "separators": ["(a|aa)+$b"], "regex": True}
    text = "\n\n".join("a" * 24 for _ in range(400))
    with pytest.raises(errors.InvalidParameter, match="took too long; the limit is 2 s for all of them"):
        split(byte_source(text), Nested("paragraphs", slow, 5))


def test_a_part_of_a_part_finds_its_place() -> None:
    source = byte_source("abc déf\n\nghi jkl")
    part = source.part(Span(4, 16)).part(Span(5, 8))
    assert part.text == "ghi"
    assert part.token_anchors.tolist() == [0, 1, 2]
    assert part.part(Span(0, 3)) is part
