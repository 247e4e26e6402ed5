"""What a strategy is given: a text, and rulers that measure it in tokens, characters or words.

Knows nothing of models: the tokens are positions in the text, the default size is a number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from late_chunking.characters import BoolArray, IntArray, end_before_where, grapheme_breaks, next_where, whitespace
from late_chunking.documents import Span
from late_chunking.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class Ruler:
    """Where the units of a text (tokens, characters, words) begin and end.

    A span's size is the number of units it touches. Units lie at grapheme breaks only, so a
    span cut at unit edges never cuts a grapheme cluster.

    Attributes:
        starts: [U], non-decreasing.
        ends: [U], non-decreasing, each greater than its start.
    """

    starts: IntArray
    ends: IntArray

    def begun(self, position: IntArray | int) -> IntArray:
        """How many units begin before a position (or before each of an array of them)."""
        return np.searchsorted(self.starts, position, side="left")

    def ended(self, position: IntArray | int) -> IntArray:
        """How many units end at or before a position (or each of an array of them)."""
        return np.searchsorted(self.ends, position, side="right")

    def size(self, span: Span) -> int:
        """How many units a span touches."""
        return int(self.begun(span.end) - self.ended(span.start))


@dataclass(frozen=True)
class SourceText:
    """A text with what strategies may ask about it; arrays are computed once, when asked for.

    Attributes:
        text: the text that spans index.
        token_anchors: [T], non-decreasing: for each of the text's tokens, its first visible
            character.
        default_size: tokens in a chunk of a strategy that needs a size and was given none.
    """

    text: str
    token_anchors: IntArray
    default_size: int

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
    def visible_end(self) -> IntArray:
        """For each position, the end of the last visible character before it. [n + 1]."""
        return end_before_where(self.visible)

    @cached_property
    def cluster_starts(self) -> IntArray:
        """For each position, the start of the grapheme cluster it lies in. [n + 1]."""
        return np.maximum.accumulate(np.where(self.breaks, np.arange(len(self.breaks)), 0))

    @cached_property
    def tokens(self) -> Ruler:
        """The ruler of the document's own tokens."""
        starts = self.cluster_starts[self.token_anchors]
        return Ruler(starts, starts + 1)

    @cached_property
    def characters(self) -> Ruler:
        """The ruler of code points; those of one grapheme cluster count from its start."""
        starts = self.cluster_starts[:-1]
        return Ruler(starts, starts + 1)

    @cached_property
    def words(self) -> Ruler:
        """The ruler of words: runs of characters that are not white space."""
        edges = np.diff(self.visible.astype(np.int8), prepend=np.int8(0), append=np.int8(0))
        return Ruler(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1))

    def ruler(self, unit: str) -> Ruler:
        """Give the ruler of a unit.

        Raises:
            InvalidParameter: if the unit is none of `UNITS`.
        """
        if unit not in UNITS:
            raise InvalidParameter(f"unit must be one of {', '.join(UNITS)}, got {unit!r}")
        return UNITS[unit](self)

    def trim(self, starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
        """Take the white space off both ends of ranges, and leave out those with nothing else.

        Args:
            starts: [P].
            ends: [P].

        Returns:
            Starts and ends, each [P' ≤ P].
        """
        starts, ends = self.next_visible[starts], self.visible_end[ends]
        kept = starts < ends
        return starts[kept], ends[kept]


UNITS: Final[dict[str, Callable[[SourceText], Ruler]]] = {
    "tokens": lambda source: source.tokens,
    "chars": lambda source: source.characters,
    "words": lambda source: source.words,
}
