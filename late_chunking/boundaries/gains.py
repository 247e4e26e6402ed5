"""What a cut at each gap is worth: by how much the change of meaning there stands out."""

from typing import Final

import numpy as np

from late_chunking.boundaries.similarity import Similarities

DEFAULT_PERCENTILE: Final = 95.0
NEIGHBOURHOOD: Final = 5  # gaps on each side that a local average is taken over


def gains_of(
    similarities: Similarities,
    relative: Similarities,
    *,
    percentile: float | None,
    threshold: float | None,
    drop: float | None,
    floor: float,
) -> Similarities:
    """Give what a cut of each gap is worth, above 0 where it should be cut, and never beyond ±4. [S - 1].

    Args:
        similarities: cosines across the gaps, for `threshold` and `floor`; NaN on the seam of two
            windows. [S - 1].
        relative: the same with the common mean taken off, for `percentile` and `drop`. [S - 1].
        percentile: cut where the distance lies above this percentile of all; the default rule.
        threshold: cut where the cosine lies below this.
        drop: cut where the cosine lies this much below the average of the nearest gaps.
        floor: a distance that must be passed in any case.
    """
    known = ~np.isnan(similarities + relative)
    if not known.any():
        return np.full(len(similarities), -1.0)
    if threshold is not None:
        gains = threshold - similarities
    elif drop is not None:
        gains = _local_average(np.where(known, relative, np.nan)) - relative - drop
    else:
        share = DEFAULT_PERCENTILE if percentile is None else percentile
        gains = np.percentile(relative[known], 100 - share) - relative
    gains = np.minimum(gains, 1 - similarities - floor)
    # On a seam nothing is known: no reason to cut, nor to prefer another place.
    unknown = ~known
    gains[unknown] = min(float(np.median(gains[known])), -1e-9)
    return gains


def _local_average(similarities: Similarities) -> Similarities:
    """Average each similarity with the nearest ones that are known."""
    known = ~np.isnan(similarities)
    sums = np.insert(np.cumsum(np.where(known, similarities, 0.0)), 0, 0.0)
    counts = np.insert(np.cumsum(known), 0, 0)
    places = np.arange(len(similarities))
    low, high = np.maximum(places - NEIGHBOURHOOD, 0), np.minimum(places + NEIGHBOURHOOD + 1, len(similarities))
    average: Similarities = (sums[high] - sums[low]) / np.maximum(counts[high] - counts[low], 1)
    return average
