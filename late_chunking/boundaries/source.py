"""What a strategy is given: a text, or a part of one, and what it may ask about it.

Knows nothing of models: the tokens are positions in the text, the default size is a number.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from late_chunking.boundaries.rulers import Ruler, UnitRuler
from late_chunking.characters import BoolArray, IntArray, grapheme_breaks, next_where, whitespace
from late_chunking.documents import Span


@dataclass(slots=True)
class Stopwatch:
    """Adds up seconds, over all parts of a text."""

    seconds: float = 0.0


@dataclass(frozen=True)
class SourceText:
    """A text with what strategies may ask about it; arrays are computed once, when asked for.

    Attributes:
        text: the text that spans index.
        token_anchors: [T], non-decreasing: for each of the text's tokens, its first visible
            character.
        default_size: tokens in a chunk of a strategy that needs a size and was given none.
        stopwatch: seconds that callers' regular expressions have taken so far.
        origin: for a part, the whole text and where in it the part begins.
    """

    text: str
    token_anchors: IntArray
    default_size: int
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    origin: "tuple[SourceText, int] | None" = None
    _rulers: dict[Hashable, Ruler] = field(default_factory=dict)

    @cached_property
    def breaks(self) -> BoolArray:
        """Where a grapheme cluster may begin or end. [n + 1]."""
        return grapheme_breaks(self.text)

    @cached_property
    def visible(self) -> BoolArray:
        """Which characters belong to a grapheme cluster that is not all white space. [n].

        A space that carries a combining mark is visible: trimming it would cut its cluster.
        """
        visible = ~whitespace(self.text)
        if self.text and not self.text.isascii():
            starts = np.flatnonzero(self.breaks[:-1])
            visible = np.logical_or.reduceat(visible, starts)[np.cumsum(self.breaks[:-1]) - 1]
        return visible

    @cached_property
    def next_visible(self) -> IntArray:
        """For each position, the first visible character at or after it. [n + 1]."""
        return next_where(self.visible)

    @cached_property
    def cluster_starts(self) -> IntArray:
        """For each position, the start of the grapheme cluster it lies in. [n + 1]."""
        if self.breaks.all():
            return np.arange(len(self.breaks))
        return np.maximum.accumulate(np.where(self.breaks, np.arange(len(self.breaks)), 0))

    @cached_property
    def tokens(self) -> UnitRuler:
        """The ruler of the document's own tokens."""
        starts = self.cluster_starts[self.token_anchors]
        return UnitRuler(starts, starts + 1)

    @cached_property
    def characters(self) -> UnitRuler:
        """The ruler of code points; those of one grapheme cluster count from its start."""
        starts = self.cluster_starts[:-1]
        return UnitRuler(starts, starts + 1)

    @cached_property
    def words(self) -> UnitRuler:
        """The ruler of words: runs of characters that are not white space."""
        edges = np.diff(self.visible.astype(np.int8), prepend=np.int8(0), append=np.int8(0))
        return UnitRuler(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1))

    def ruler(self, key: Hashable, make: Callable[["SourceText"], Ruler]) -> Ruler:
        """Give a ruler made once for the whole text; a part of it gets a part of that."""
        if self.origin is not None:
            whole, start = self.origin
            return whole.ruler(key, make).within(Span(start, start + len(self.text)))
        if key not in self._rulers:
            self._rulers[key] = make(self)
        return self._rulers[key]

    def part(self, span: Span) -> Self:
        """Give a part of the text as a source of its own, for a strategy to cut; its positions count from 0.

        Args:
            span: the part; its edges lie at grapheme breaks.
        """
        if span == (0, len(self.text)):
            return self
        first, last = np.searchsorted(self.token_anchors, span)
        whole, start = self.origin or (self, 0)
        return type(self)(
            self.text[span.start : span.end],
            self.token_anchors[first:last] - span.start,
            self.default_size,
            self.stopwatch,
            (whole, start + span.start),
        )

    def trim(self, starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
        """Take the white space off both ends of ranges, and leave out those with nothing else.

        Args:
            starts: [P].
            ends: [P].

        Returns:
            Starts and ends, each [P' ≤ P].
        """
        places = np.flatnonzero(self.visible)
        first, last = places.searchsorted(starts), places.searchsorted(ends) - 1
        kept = first <= last
        return places[first[kept]], places[last[kept]] + 1
