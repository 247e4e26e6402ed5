"""Sequences → batches without padding, filled to a token budget."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import torch

from late_chunking.encoding.sequences import TokenSequence


class HoldsSequence(Protocol):
    """Anything that carries a sequence through the packing."""

    @property
    def sequence(self) -> TokenSequence:
        """The sequence."""
        ...


Item = TypeVar("Item", bound=HoldsSequence)


@dataclass(frozen=True, slots=True)
class PackedLengths:
    """Where the sequences of a packed batch lie.

    Attributes:
        cu_seqlens: int32 [N + 1], where each sequence begins and the last one ends; on the batch's device.
        bounds: the same numbers, on the host.
        max_length: the longest sequence.
    """

    cu_seqlens: torch.Tensor
    bounds: tuple[int, ...]
    max_length: int


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """Sequences one after the other, all numbers in one tensor, so that one copy moves a batch.

    Attributes:
        numbers: int64 [2 T + N + 1 + M + B], `ids`, `positions`, bounds, `bags` and `bag_offsets`.
        bounds: N + 1 numbers, where each sequence begins and the last one ends; on the host.
        bag_places: M.
    """

    numbers: torch.Tensor
    bounds: tuple[int, ...]
    bag_places: int

    @classmethod
    def of(cls, sequences: Sequence[TokenSequence], *, pinned: bool = False, filled: bool = False) -> Self:
        """Pack at least one sequence, on the host.

        Args:
            sequences: the sequences.
            pinned: into memory that a device can copy from by itself.
            filled: up to one of a few lengths, with sequences that nothing is pooled from.
        """
        if filled:
            sequences = [*sequences, *_fillings(sequences)]
        bounds = np.cumsum([0, *map(len, sequences)])  # [N + 1]
        sizes = np.concatenate([sequence.sizes for sequence in sequences])  # [B]
        bag_ends = np.cumsum(sizes)
        parts = [
            *(sequence.ids for sequence in sequences),
            *(np.arange(len(sequence)) for sequence in sequences),
            bounds,
            *(sequence.bags + start for sequence, start in zip(sequences, bounds[:-1], strict=True)),
            bag_ends - sizes,
        ]
        numbers = torch.empty(sum(map(len, parts)), dtype=torch.int64, pin_memory=pinned)
        np.concatenate(parts, out=numbers.numpy())
        return cls(numbers, tuple(bounds.tolist()), int(sizes.sum()))

    def to(self, device: torch.device) -> Self:
        """Copy to a device; from pinned memory, this returns before it is done."""
        return replace(self, numbers=self.numbers.to(device, non_blocking=True))

    @property
    def tokens(self) -> int:
        """T, how many tokens there are."""
        return self.bounds[-1]

    @property
    def ids(self) -> torch.Tensor:
        """Token ids, int64 [T]."""
        return self.numbers[: self.tokens]

    @property
    def positions(self) -> torch.Tensor:
        """Positions, int64 [T], from 0 in each sequence."""
        return self.numbers[self.tokens : 2 * self.tokens]

    @property
    def lengths(self) -> PackedLengths:
        """Where the sequences lie."""
        cu_seqlens = self.numbers[2 * self.tokens :][: len(self.bounds)].to(torch.int32)
        return PackedLengths(cu_seqlens, self.bounds, max(end - start for start, end in pairwise(self.bounds)))

    @property
    def bags(self) -> torch.Tensor:
        """Places in the batch to pool, bag after bag, int64 [M]."""
        return self.numbers[2 * self.tokens + len(self.bounds) :][: self.bag_places]

    @property
    def bag_offsets(self) -> torch.Tensor:
        """Where each bag begins in `bags`, int64 [B]."""
        return self.numbers[2 * self.tokens + len(self.bounds) + self.bag_places :]


def filled_length(tokens: int) -> int:
    """Give the length that a batch is filled up to: at most a sixteenth more, or 15 tokens."""
    step = max(16, 1 << max(0, (tokens - 1).bit_length() - 5))
    return -(-tokens // step) * step


def _fillings(sequences: Sequence[TokenSequence]) -> list[TokenSequence]:
    """Make what fills a batch up; none is longer than the batch's longest, since positions may end there."""
    tokens, longest = sum(map(len, sequences)), max(map(len, sequences))
    missing = filled_length(tokens) - tokens
    nothing = np.zeros(0, dtype=np.int64)
    return [
        TokenSequence(np.repeat(sequences[0].ids[:1], min(longest, missing - start)), nothing, nothing, nothing)
        for start in range(0, missing, longest)
    ]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a sequence costs, in tokens of a sequence so short that attention is for free.

    A transformer layer of width h spends about 24 h² operations on a token outside of attention
    and 4 h n within, for a sequence of n tokens and a layer that sees all of them; so the cost is
    ``n + n² · share / (6 h)``.

    Attributes:
        quadratic: the factor of n².
    """

    quadratic: float = 0.0

    @classmethod
    def of(cls, config: Any) -> Self:  # noqa: ANN401 - a transformers configuration
        """Read width and layers from a model's configuration; local layers count as linear."""
        layers = getattr(config, "layer_types", None) or ["full_attention"]
        share = sum("sliding" not in str(layer) for layer in layers) / len(layers)
        return cls(share / (6 * int(config.hidden_size)))

    def __call__(self, sequence: TokenSequence) -> float:
        """Give a sequence's cost."""
        length = len(sequence)
        return length + self.quadratic * length * length


def pack(items: Iterable[Item | None], budget: int, cost: Cost) -> Iterator[list[Item]]:
    """Group consecutive sequences into batches of at most `budget`, in order.

    A sequence over the budget goes alone. None among the items closes the batch, and an empty one
    comes after it: whatever is out is to be read before more is asked for.
    """
    batch: list[Item] = []
    spent = 0.0
    for item in items:
        if item is None:
            if batch:
                yield batch
            yield []
            batch, spent = [], 0.0
            continue
        price = cost(item.sequence)
        if batch and spent + price > budget:
            yield batch
            batch, spent = [], 0.0
        batch.append(item)
        spent += price
    if batch:
        yield batch
