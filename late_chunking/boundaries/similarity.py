"""How alike what stands before a gap between pieces is to what stands after it."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from late_chunking.boundaries.readings import Readings

Similarities = npt.NDArray[np.float64]

_WORD: Final = re.compile(r"\w+")


def vector_similarities(readings: Readings, window: int) -> Similarities:
    """Give the cosine across each gap, [P - 1]; NaN where no reading holds both sides.

    Args:
        readings: the pieces' vectors.
        window: how many pieces beyond the nearest each side takes in, as far as the reading goes.
    """
    similarities = np.full(max(readings.pieces - 1, 0), np.nan)
    for reading in readings.readings:
        gaps = np.arange(*reading.gaps)
        if not len(gaps):
            continue
        after = gaps + 1 - reading.first  # the piece after each gap, among the reading's
        low, high = np.maximum(after - window - 1, 0), np.minimum(after + window + 1, len(reading.counts))
        # Differences of running sums, in double precision: groups of any size at one price.
        sums = np.zeros((len(reading.sums) + 1, reading.sums.shape[1]))
        np.cumsum(reading.sums, axis=0, dtype=np.float64, out=sums[1:])
        left, right = sums[after] - sums[low], sums[high] - sums[after]  # [G, D]
        lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        products = np.einsum("gd,gd->g", left, right)
        similarities[gaps] = np.divide(products, lengths, out=np.full(len(gaps), np.nan), where=lengths > 0)
    return similarities


def word_similarities(texts: Sequence[str], window: int) -> Similarities:
    r"""Give the cosine of word counts (``\w+``, lower case) across each gap, [P - 1]. As Hearst's TextTiling.

    Two sides without any word are alike; one without any is unlike one with some.
    """
    bags = [Counter(_WORD.findall(text.lower())) for text in texts]
    similarities = np.empty(max(len(bags) - 1, 0))
    for gap in range(len(similarities)):
        left: Counter[str] = sum(bags[max(gap - window, 0) : gap + 1], Counter())
        right: Counter[str] = sum(bags[gap + 1 : gap + 2 + window], Counter())
        product = sum(count * right[word] for word, count in left.items())
        lengths = sum(count**2 for count in left.values()) * sum(count**2 for count in right.values())
        similarities[gap] = product / lengths**0.5 if lengths else float(left == right)
    return similarities
