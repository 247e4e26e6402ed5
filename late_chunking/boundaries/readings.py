"""What a strategy is handed that cuts by meaning: vectors of pieces, as the encoder read them together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import Boundary, Strategy
from late_chunking.characters import IntArray
from late_chunking.documents import Span


@dataclass(frozen=True, slots=True)
class Reading:
    """Consecutive pieces that were read in one window, so that their vectors may be compared.

    Attributes:
        first: the place of its first piece among all pieces.
        sums: float32 [n, D], sums of the token vectors of each piece, as far as the window holds it.
        counts: [n], how many they are; at least 1.
        gaps: ``(low, high)``: of the gaps between its pieces, those to be judged by it. Gap g
            lies between pieces g and g + 1; every gap belongs to one reading at most.
    """

    first: int
    sums: npt.NDArray[np.float32]
    counts: IntArray
    gaps: tuple[int, int]

    def within(self, low: int, high: int) -> Self:
        """Keep the pieces from `low` up to `high`, counted from there."""
        start, end = max(self.first, low), min(self.first + len(self.counts), high)
        kept = slice(start - self.first, max(end - self.first, start - self.first))
        gaps = max(self.gaps[0], low) - low, max(min(self.gaps[1], high - 1), low) - low
        return type(self)(start - low, self.sums[kept], self.counts[kept], gaps)


@dataclass(frozen=True, slots=True)
class Readings:
    """All readings of the pieces that a strategy asked for.

    Attributes:
        pieces: how many pieces there are.
        readings: in order; a gap that none of them judges lies on the seam of two windows.
    """

    pieces: int
    readings: Sequence[Reading]

    def within(self, low: int, high: int) -> Self:
        """Keep the pieces from `low` up to `high`, counted from there."""
        return type(self)(high - low, [reading.within(low, high) for reading in self.readings])

    def joined(self, owners: IntArray) -> Self:
        """Give the readings of larger pieces that these are parts of.

        Args:
            owners: [pieces], which larger piece each belongs to: 0, 1, 2, …
        """
        joined = []
        for each in self.readings:
            own = owners[each.first : each.first + len(each.counts)]
            if not len(own):
                continue
            begun = np.flatnonzero(np.diff(own, prepend=-1))
            sums, counts = np.add.reduceat(each.sums, begun, axis=0), np.add.reduceat(each.counts, begun)
            low, high = each.gaps
            # A gap between larger pieces is named for the one before it, as gaps between pieces are.
            between = owners[low:high][np.diff(owners[low : high + 1]) > 0]
            gaps = (int(between[0]), int(between[-1]) + 1) if len(between) else (0, 0)
            joined.append(type(each)(int(own[0]), sums, counts, gaps))
        return type(self)(int(owners[-1]) + 1 if len(owners) else 0, joined)

    def centered(self) -> Self:
        """Take off what the pieces have in common: the mean over all their tokens."""
        if not self.readings:
            return self
        counts = sum(int(reading.counts.sum()) for reading in self.readings)
        mean = sum(reading.sums.sum(axis=0, dtype=np.float64) for reading in self.readings) / max(counts, 1)
        return type(self)(
            self.pieces,
            [replace(each, sums=each.sums - np.outer(each.counts, mean).astype(np.float32)) for each in self.readings],
        )


@dataclass(frozen=True, slots=True)
class Waiting:
    """A text as far as a strategy can cut it without vectors.

    Attributes:
        pieces: the pieces whose vectors it waits for: in order, apart, covering the text.
        cut: says where the chunks are, once these are known.
    """

    pieces: list[Span]
    cut: Callable[[Readings], list[Boundary]]


@runtime_checkable
class VectorStrategy(Strategy, Protocol):
    """A strategy that may need the vectors of pieces of the text before it can say where to cut.

    The pieces are pooled from the document's own pass. A chunk that begins and ends where pieces
    do is the sum of its pieces; where one does not, the document is read once more.
    """

    @property
    def needs_vectors(self) -> bool:
        """Whether, as configured, it does."""
        ...

    def prepare(self, source: SourceText) -> Waiting:
        """Do all that can be done without the vectors."""
        ...


def needs_vectors(strategy: Strategy) -> TypeGuard[VectorStrategy]:
    """Tell whether a strategy waits for vectors."""
    # The attribute first: on Python 3.11, asking the protocol is slow.
    return bool(getattr(strategy, "needs_vectors", False)) and isinstance(strategy, VectorStrategy)
