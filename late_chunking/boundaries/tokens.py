"""Windows of a fixed number of tokens."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from late_chunking.boundaries.source import Ruler, SourceText
from late_chunking.boundaries.strategy import Boundary, checked_size, size_or_default
from late_chunking.characters import IntArray
from late_chunking.documents import Span


@dataclass(frozen=True, slots=True)
class Tokens:
    """Windows of `size` tokens, each `size - overlap` tokens after the one before.

    An edge inside a character moves back to that character's start, so a window may be
    smaller; only one character larger than `size` alone makes a larger one. The first window
    that reaches the end of the text is the last; one of white space alone is left out.
    """

    name: ClassVar[str] = "tokens"
    size: int | None = None
    overlap: int = 0

    def __post_init__(self) -> None:
        """Check the options."""
        size, overlap = checked_size(self.size, self.overlap)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "overlap", overlap)

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Cut the text into windows."""
        size = size_or_default(self.size, self.overlap, "tokens", source)
        starts, ends = sliding_windows(source.tokens, len(source.text), size, self.overlap)
        starts, ends = source.trim(starts, ends)
        # Two windows that differ by white space before their first visible character start
        # together once trimmed; the later one holds all of the earlier.
        kept = np.append(starts[1:] != starts[:-1], True)[: len(starts)]
        return [Boundary(Span(int(start), int(end))) for start, end in zip(starts[kept], ends[kept], strict=True)]


def sliding_windows(ruler: Ruler, length: int, size: int, overlap: int) -> tuple[IntArray, IntArray]:
    """Give the edges of sliding windows over the units of a text, before trimming.

    The first window begins at 0 and the last ends at `length`; edges lie where a unit begins.
    """
    cuts, begun = np.unique(ruler.starts, return_index=True)
    cuts = np.append(cuts, length)  # [K + 1]
    begun = np.append(begun, len(ruler.starts))  # [K + 1]: units begun before each cut
    cuts[0] = 0
    edges: list[tuple[int, int]] = []
    first, last = 0, len(cuts) - 1
    while True:
        end = max(_floor(begun, begun[first] + size), min(first + 1, last))
        edges.append((first, end))
        if end == last:
            break
        first = max(_floor(begun, begun[first] + size - overlap), first + 1)
    indices = np.asarray(edges)  # [W, 2]
    return cuts[indices[:, 0]], cuts[indices[:, 1]]


def _floor(begun: IntArray, units: int) -> int:
    """Give the last cut with at most so many units before it."""
    return int(np.searchsorted(begun, units, side="right")) - 1
