"""What sizes are counted with: units that lie in the text, or a function that counts a string."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from late_chunking.characters import IntArray, distinct
from late_chunking.documents import Span
from late_chunking.errors import InvalidParameter

_LARGEST: Final = 2**62


class Ruler(Protocol):
    """Measures ranges of one text.

    Attributes:
        cuts: where a text too large in one piece may be cut at last, sorted, at grapheme breaks.
    """

    @property
    def cuts(self) -> IntArray:
        """Where units begin."""
        ...

    def sizes(self, starts: IntArray, ends: IntArray) -> IntArray:
        """Give the size of each range. [P]."""
        ...

    def size(self, span: Span) -> int:
        """Give the size of one range."""
        ...

    def fitting(self, start: int, ends: IntArray, size: int) -> int:
        """Give how many of these ends, sorted and after the start, make a range of at most `size`."""
        ...

    def fitting_from(self, starts: IntArray, end: int, size: int) -> int:
        """Give the place of the first of these starts, sorted and before the end, that makes such a range."""
        ...

    def within(self, span: Span) -> "Ruler":
        """Give the ruler of a part of the text, for positions in that part."""
        ...


@dataclass(frozen=True, slots=True)
class UnitRuler:
    """Where the units of a text (tokens, characters, words, sentences) begin and end.

    A range's size is the number of units it touches. Units lie at grapheme breaks only, so a
    span cut at unit edges never cuts a grapheme cluster.

    Attributes:
        starts: [U], non-decreasing.
        ends: [U], non-decreasing, each greater than its start.
    """

    starts: IntArray
    ends: IntArray

    @property
    def cuts(self) -> IntArray:
        """Where units begin."""
        return distinct(self.starts)

    def sizes(self, starts: IntArray, ends: IntArray) -> IntArray:
        """Count the units that each range touches: those begun before its end, but not ended by its start."""
        begun = np.searchsorted(self.starts, ends, side="left")
        return begun - np.searchsorted(self.ends, starts, side="right")

    def size(self, span: Span) -> int:
        """Count the units that one range touches."""
        return int(self.sizes(*np.asarray(span)[:, None])[0])

    def fitting(self, start: int, ends: IntArray, size: int) -> int:
        """Count the ends that lie no further than where the first unit too many begins."""
        allowed = int(self.ends.searchsorted(start, side="right")) + size
        if allowed >= len(self.starts):
            return len(ends)
        return int(ends.searchsorted(self.starts[allowed], side="right"))

    def fitting_from(self, starts: IntArray, end: int, size: int) -> int:
        """Find the first start that lies no earlier than where the last unit too many ends."""
        surplus = int(self.starts.searchsorted(end, side="left")) - size
        return int(starts.searchsorted(self.ends[surplus - 1], side="left")) if surplus > 0 else 0

    def within(self, span: Span) -> "UnitRuler":
        """Keep the units that touch a part, clipped to it."""
        first = int(self.ends.searchsorted(span.start, side="right"))
        last = int(self.starts.searchsorted(span.end, side="left"))
        starts, ends = self.starts[first:last], self.ends[first:last]
        return UnitRuler(np.maximum(starts - span.start, 0), np.minimum(ends, span.end) - span.start)


@dataclass(frozen=True, slots=True)
class CountingRuler:
    """A caller's function ``str → int``, asked about the very text of a range.

    It should not give less for a text than for a part of it; where it does, chunks may be smaller
    than they might be, and semantic ones larger.

    Attributes:
        text: the text.
        cuts: grapheme breaks, the finest cuts.
        count: the function.
    """

    text: str
    cuts: IntArray
    count: Callable[[str], int]

    def sizes(self, starts: IntArray, ends: IntArray) -> IntArray:
        """Ask about each range."""
        ranges = zip(starts.tolist(), ends.tolist(), strict=True)
        return np.fromiter((self.size(Span(start, end)) for start, end in ranges), dtype=np.int64, count=len(starts))

    def size(self, span: Span) -> int:
        """Ask about one range.

        Raises:
            InvalidParameter: if the function fails, or gives no count.
        """
        name = getattr(self.count, "__name__", repr(self.count))
        try:
            counted = self.count(self.text[span.start : span.end])
            size = int(counted)
            valid = size == counted and size >= 0
        except Exception as error:
            raise InvalidParameter(f"the unit {name} failed: {type(error).__name__}: {error}") from error
        if not valid:
            raise InvalidParameter(f"the unit {name} must give an integer of at least 0, got {counted!r}")
        return min(size, _LARGEST)

    def fitting(self, start: int, ends: IntArray, size: int) -> int:
        """Ask about ranges twice as long each time, then halve the doubt: none is much over the size."""
        return _most(lambda count: self.size(Span(start, int(ends[count - 1]))) <= size, len(ends))

    def fitting_from(self, starts: IntArray, end: int, size: int) -> int:
        """As `fitting`, backwards."""
        most = len(starts)
        return most - _most(lambda count: self.size(Span(int(starts[most - count]), end)) <= size, most)

    def within(self, span: Span) -> "CountingRuler":
        """Keep the cuts in a part."""
        inside = self.cuts[self.cuts.searchsorted(span.start) : self.cuts.searchsorted(span.end)]
        return CountingRuler(self.text[span.start : span.end], inside - span.start, self.count)


def _most(fits: Callable[[int], bool], limit: int) -> int:
    """Give the largest count, from 0 to a limit, that fits, where those below one that fits do, too."""
    step = 1
    while step <= limit and fits(step):
        step *= 2
    low, high = step // 2, min(step, limit + 1)  # `low` fits, `high` does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
