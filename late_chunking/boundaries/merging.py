"""Cut positions of a text → chunks up to a size: the one engine behind the strategies that merge."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from late_chunking.boundaries.rulers import Ruler
from late_chunking.boundaries.source import SourceText
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

    def split(self, levels: Sequence[IntArray]) -> list[Span]:
        """Cut at the first level; where a piece is still too large, at the next; then merge.

        Consecutive pieces of one level are merged up to the size. Below the last level come
        the ruler's own units.

        Args:
            levels: cut positions of each level, coarsest first, each sorted and at grapheme
                breaks.
        """
        chunks: list[Span] = []
        for starts, ends in self._runs(0, len(self.source.text), [*levels, self.ruler.cuts]):
            chunks += self.merge(starts, ends, chunks[-1] if chunks else None)
        return chunks

    def _runs(self, start: int, end: int, levels: Sequence[IntArray]) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield, in order, runs of pieces of one level that each fit the size, or cannot be cut."""
        cuts = levels[0]
        inner = cuts[np.searchsorted(cuts, start, side="right") : np.searchsorted(cuts, end, side="left")]
        starts, ends = self.source.trim(np.insert(inner, 0, start), np.append(inner, end))
        sizes = self.ruler.sizes(starts, ends)  # [P]
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
        first = 0
        while first < len(starts):
            start = self._start(previous, int(starts[first]), int(ends[first]))
            taken = max(self.ruler.fitting(start, ends[first:], self.size), 1)
            previous = Span(start, int(ends[first + taken - 1]))
            chunks.append(previous)
            first += taken
        return chunks

    def _start(self, previous: Span | None, start: int, end: int) -> int:
        """Move a chunk's start back into the chunk before it, as far as overlap and size allow.

        Args:
            previous: the chunk before it.
            start: where its first piece begins, for which there must be room.
            end: where that piece ends.
        """
        if previous is None or not self.overlap:
            return start
        for candidates in self.overlap_starts:
            low, high = np.searchsorted(candidates, (previous.start + 1, start))
            repeated = candidates[low : np.searchsorted(candidates, previous.end)]
            first = self.ruler.fitting_from(repeated, previous.end, self.overlap)
            first = max(first, self.ruler.fitting_from(candidates[low:high], end, self.size))
            for candidate in candidates[low + first : high].tolist():
                # The first one, unless a caller's function gives less for a text than for a part of it.
                repeats = self.ruler.size(Span(candidate, previous.end)) if candidate < previous.end else 0
                if repeats <= self.overlap and self.ruler.size(Span(candidate, end)) <= self.size:
                    return int(candidate)
        return start
