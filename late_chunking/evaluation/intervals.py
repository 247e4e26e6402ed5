"""How sure a difference is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from late_chunking.evaluation.relevance import Floats

_DRAWS: Final = 2_000
_SEED: Final = 0


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean difference between the ends of its 95 % interval."""

    low: float
    mean: float
    high: float

    def __str__(self) -> str:
        """Give it for people: the mean, and the ends in brackets."""
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def difference(values: Floats, baseline: Floats, documents: Sequence[str]) -> Interval:
    """Give the mean difference of two arms over the same queries, by a paired bootstrap over documents.

    Documents are drawn with replacement, each with all its queries, since queries to one document
    are not independent (a cluster bootstrap; percentile interval of 2,000 draws, always the same).

    Args:
        values: [Q], a measure of one arm.
        baseline: [Q], the same of the other.
        documents: [Q], the document that each query is about.
    """
    differences = values - baseline
    _, owners = np.unique(np.asarray(documents, dtype=object).astype(str), return_inverse=True)
    counts = np.bincount(owners)  # [N]
    sums = np.bincount(owners, weights=differences)
    drawn = np.random.default_rng(_SEED).integers(len(counts), size=(_DRAWS, len(counts)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return Interval(float(low), float(differences.mean()), float(high))
