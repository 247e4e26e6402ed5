"""Which chunks answer a query, and which characters of them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from late_chunking.characters import BoolArray, IntArray
from late_chunking.documents import Span

Floats = npt.NDArray[np.float64]


def is_relevant(spans: IntArray, gold: Sequence[Span]) -> BoolArray:
    """Tell which chunks of a document hold at least half of a gold span, or lie at least half within one. [C].

    Args:
        spans: [C, 2], the chunks.
        gold: the spans that answer a query.
    """
    relevant = np.zeros(len(spans), dtype=np.bool_)
    for low, high in gold:
        shared = np.minimum(spans[:, 1], high) - np.maximum(spans[:, 0], low)
        relevant |= (shared > 0) & ((2 * shared >= high - low) | (2 * shared >= spans[:, 1] - spans[:, 0]))
    return relevant


def covered(spans: Sequence[Span], gold: Sequence[Span]) -> int:
    """Count the characters of the gold spans that lie in any of the chunks, each once."""
    return sum(max(min(high, end) - max(low, start), 0) for low, high in merged(gold) for start, end in merged(spans))


def merged(spans: Sequence[Span]) -> list[Span]:
    """Join spans that overlap or touch."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, end))
        else:
            joined.append(Span(start, end))
    return joined


def length(spans: Sequence[Span]) -> int:
    """Count the characters of spans, those of several as often."""
    return sum(end - start for start, end in spans)
