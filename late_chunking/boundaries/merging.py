"""Cut positions of a text → chunks up to a size: the one engine behind the strategies that merge."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from late_chunking.boundaries.source import Ruler, SourceText
from late_chunking.characters import IntArray
from late_chunking.documents import Span


@dataclass(frozen=True, slots=True)
class Merging:
    """How a text is cut into pieces and the pieces merged into chunks.

    Attributes:
        source: the text.
        ruler: what sizes are counted in.
        size: the most units a chunk may hold; only a piece that is larger alone passes it.
        overlap: how many units of a chunk the next one may repeat.
        overlap_starts: lists of positions where a repetition may begin, best first; the
            next list is asked only where the one before it has no place.
    """

    source: SourceText
    ruler: Ruler
    size: int
    overlap: int = 0
    overlap_starts: tuple[IntArray, ...] = ()

    def split(self, levels: Sequence[IntArray], within: Span | None = None) -> list[Span]:
        """Cut at the first level; where a piece is still too large, at the next; then merge.

        Consecutive pieces of one level are merged up to the size. Below the last level come
        the ruler's own units.

        Args:
            levels: cut positions of each level, coarsest first, each sorted and at grapheme
                breaks.
            within: the part of the text to cut, if not all.
        """
        start, end = within or (0, len(self.source.text))
        units = np.unique(self.ruler.starts[self.ruler.begun(start) : self.ruler.begun(end)])
        chunks: list[Span] = []
        for starts, ends in self._runs(start, end, [*levels, units]):
            chunks += self.merge(starts, ends, chunks[-1] if chunks else None)
        return chunks

    def _runs(self, start: int, end: int, levels: Sequence[IntArray]) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield, in order, runs of pieces of one level that each fit the size, or cannot be cut."""
        cuts = levels[0]
        inner = cuts[np.searchsorted(cuts, start, side="right") : np.searchsorted(cuts, end, side="left")]
        starts, ends = self.source.trim(np.insert(inner, 0, start), np.append(inner, end))
        sizes = self.ruler.begun(ends) - self.ruler.ended(starts)  # [P]
        first = 0
        for large in np.flatnonzero(sizes > self.size).tolist() if len(levels) > 1 else ():
            if first < large:
                yield starts[first:large], ends[first:large]
            yield from self._runs(int(starts[large]), int(ends[large]), levels[1:])
            first = large + 1
        if first < len(starts):
            yield starts[first:], ends[first:]

    def merge(self, starts: IntArray, ends: IntArray, previous: Span | None = None) -> list[Span]:
        """Fill chunks greedily with consecutive pieces.

        Args:
            starts: [P], trimmed and strictly increasing.
            ends: [P].
            previous: the chunk before the first piece, which that piece's chunk may repeat.
        """
        chunks: list[Span] = []
        units_begun = self.ruler.begun(ends)  # [P]: units begun before each piece's end
        first = 0
        while first < len(starts):
            start = self._start(previous, int(starts[first]), int(units_begun[first]))
            limit = int(self.ruler.ended(start)) + self.size
            last = max(int(np.searchsorted(units_begun, limit, side="right")) - 1, first)
            previous = Span(start, int(ends[last]))
            chunks.append(previous)
            first = last + 1
        return chunks

    def _start(self, previous: Span | None, start: int, begun: int) -> int:
        """Move a chunk's start back into the chunk before it, as far as overlap and size allow."""
        if previous is None or not self.overlap:
            return start
        # So many units must end before the start: all but the overlap's, and as many as leave
        # room for the first new piece.
        before = max(int(self.ruler.begun(previous.end)) - self.overlap, begun - self.size)
        earliest = max(int(self.ruler.ends[before - 1]) if before > 0 else 0, previous.start + 1)
        for candidates in self.overlap_starts:
            found = int(np.searchsorted(candidates, earliest, side="left"))
            if found < len(candidates) and candidates[found] < start:
                return int(candidates[found])
        return start
