"""Sliding windows over the units of a text: tokens, words, sentences, paragraphs."""

import numpy as np

from late_chunking.boundaries.rulers import UnitRuler
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import Boundary
from late_chunking.characters import IntArray
from late_chunking.documents import Span


def slide(source: SourceText, ruler: UnitRuler, size: int, overlap: int) -> list[Boundary]:
    """Cut a text into windows of `size` units, each `size - overlap` units after the one before.

    The first window that reaches the end of the text is the last, and may be smaller: of N units
    there are ``1 + ceil((N - size) / (size - overlap))`` windows, or one if they fit. Units that
    begin at one character stay together, so a window may be smaller for that, too; only one
    character larger than `size` alone makes a larger one. White space is trimmed off the edges,
    and a window of white space alone is left out.
    """
    starts, ends = sliding_edges(ruler, len(source.text), size, overlap)
    starts, ends = source.trim(starts, ends)
    # Two windows that differ by white space before their first visible character start together
    # once trimmed; the later one holds all of the earlier.
    kept = np.append(starts[1:] != starts[:-1], True)[: len(starts)]
    return [Boundary(Span(*edges)) for edges in zip(starts[kept].tolist(), ends[kept].tolist(), strict=True)]


def sliding_edges(ruler: UnitRuler, length: int, size: int, overlap: int) -> tuple[IntArray, IntArray]:
    """Give the edges of the windows before trimming: the first begins at 0, the last ends at `length`."""
    begun = np.flatnonzero(np.diff(ruler.starts, prepend=-1))  # [K], the first unit at each place
    cuts = np.append(ruler.starts[begun], length)  # [K + 1]
    begun = np.append(begun, len(ruler.starts))  # [K + 1]: units begun before each cut
    cuts[0] = 0
    last = len(cuts) - 1
    if last == len(ruler.starts):  # one unit a cut, so cuts can be counted instead of looked up
        firsts = np.arange(max(1, 1 - (size - last) // (size - overlap))) * (size - overlap)
        return cuts[firsts], cuts[np.minimum(firsts + size, last)]
    edges: list[tuple[int, int]] = []
    first = 0
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
    return int(begun.searchsorted(units, side="right")) - 1
