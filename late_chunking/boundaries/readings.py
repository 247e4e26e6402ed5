"""What a strategy is handed that cuts by meaning: vectors of pieces, as the encoder read them together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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

    def pieces(self, source: SourceText) -> Iterable[Span]:
        """Say which pieces: in order, apart, covering the text."""
        ...

    def split_by(self, source: SourceText, readings: Readings) -> Iterable[Boundary]:
        """Say where the chunks are, once the pieces' vectors are known."""
        ...


def needs_vectors(strategy: Strategy) -> TypeGuard[VectorStrategy]:
    """Tell whether a strategy waits for vectors."""
    return isinstance(strategy, VectorStrategy) and strategy.needs_vectors
