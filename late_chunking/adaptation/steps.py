"""What is read in each step: drawn from the seed and the step's number alone, so that a run can go on anywhere."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from late_chunking.adaptation.plan import Training
from late_chunking.boundaries import Strategy, make_strategies
from late_chunking.characters import IntArray

_SMALLEST: Final = 24  # tokens a chunk
_WORDS_PER_TOKEN: Final = 0.75
_STRATEGIES: Final = ("tokens", "words", "sentences", "recursive")
# Draws of different kinds must not follow each other.
_ORDER, _CUTTING, _QUERIES = 2, 3, 4


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        number: from 0.
        documents: places of the documents that are read.
        strategy: where they are cut.
        mode: ``"late"``, or ``"naive"`` for chunks read alone.
    """

    number: int
    documents: tuple[int, ...]
    strategy: Strategy
    mode: str


@dataclass(frozen=True, slots=True)
class Steps:
    """All steps of a run.

    Attributes:
        documents: how many there are.
        training: the settings.
        window: tokens the model reads at once; half of them make the largest chunk.
    """

    documents: int
    training: Training
    window: int

    @property
    def per_epoch(self) -> int:
        """Steps in which each document is read once."""
        return -(-self.documents // self.training.documents_per_step)

    @property
    def total(self) -> int:
        """Steps of the whole run."""
        return max(1, round(self.training.epochs * self.per_epoch))

    def step(self, number: int) -> Step:
        """Draw one step."""
        epoch, place = divmod(number, self.per_epoch)
        order = np.random.default_rng([self.training.seed, _ORDER, epoch]).permutation(self.documents)
        each = self.training.documents_per_step
        drawn = np.random.default_rng([self.training.seed, _CUTTING, number])
        name = _STRATEGIES[drawn.integers(len(_STRATEGIES))]
        largest = max(_SMALLEST, min(512, self.window // 2))
        size = int(np.exp(drawn.uniform(np.log(_SMALLEST), np.log(largest))))
        if name == "words":
            size = max(1, int(size * _WORDS_PER_TOKEN))
        (strategy,) = make_strategies({"strategy": name, "size": size})
        mode = "naive" if drawn.random() < self.training.naive_share else "late"
        return Step(number, tuple(order[place * each : (place + 1) * each].tolist()), strategy, mode)

    def queries(self, number: int, document: int, count: int) -> IntArray:
        """Draw the queries to a document: places among its own."""
        drawn = np.random.default_rng([self.training.seed, _QUERIES, number, document]).permutation(count)
        return np.sort(drawn[: self.training.queries_per_document])

    def rate(self, number: int) -> float:
        """Give the learning rate of a step, as a share of the highest."""
        rising = max(1, round(self.training.warm_up * self.total))
        if number < rising:
            return (number + 1) / rising
        return float(0.5 * (1 + np.cos(np.pi * (number - rising) / max(1, self.total - rising))))
