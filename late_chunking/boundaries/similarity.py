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

    Args:
        texts: [P].
        window: as for `vector_similarities`.
    """
    bags = [Counter(_WORD.findall(text.lower())) for text in texts]
    left, right = _Bag(), _Bag()
    for bag in bags[1 : window + 1]:
        right.add(bag)
    similarities = np.empty(max(len(bags) - 1, 0))
    for gap in range(len(similarities)):
        # Each bag comes to a side once and leaves it once, however wide the window is.
        left.add(bags[gap])
        if gap > window:
            left.take(bags[gap - window - 1])
        if gap + 1 + window < len(bags):
            right.add(bags[gap + 1 + window])
        if gap:
            right.take(bags[gap])
        similarities[gap] = left.similarity(right)
    return similarities


class _Bag:
    """Counts of words that come and go, with the sum of their squares."""

    def __init__(self) -> None:
        """Begin with no word."""
        self.counts: Counter[str] = Counter()
        self.squares = 0

    def add(self, bag: Counter[str], sign: int = 1) -> None:
        """Put words in."""
        for word, count in bag.items():
            before = self.counts[word]
            self.counts[word] = before + sign * count
            self.squares += self.counts[word] ** 2 - before**2

    def take(self, bag: Counter[str]) -> None:
        """Take words out again."""
        self.add(bag, -1)

    def similarity(self, other: "_Bag") -> float:
        """Give the cosine with another bag."""
        if not (self.squares and other.squares):
            return float(self.squares == other.squares)
        product = sum(count * other.counts[word] for word, count in self.counts.items() if count)
        return float(product / (self.squares * other.squares) ** 0.5)
