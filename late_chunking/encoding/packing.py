"""Sequences → batches without padding, filled to a token budget."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
class PackedBatch:
    """Sequences one after the other.

    Attributes:
        ids: int64 [T], token ids.
        positions: int64 [T], from 0 in each sequence.
        cu_seqlens: int32 [N + 1], where each sequence begins and the last one ends.
        max_length: the longest sequence.
        bags: int64 [M], places in the batch to pool, bag after bag.
        bag_offsets: int64 [B], where each bag begins in `bags`.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    cu_seqlens: torch.Tensor
    max_length: int
    bags: torch.Tensor
    bag_offsets: torch.Tensor

    @classmethod
    def of(cls, sequences: Sequence[TokenSequence]) -> Self:
        """Pack at least one sequence."""
        lengths = np.array([len(sequence) for sequence in sequences])
        bag_sizes = np.array([len(sequence.bags) for sequence in sequences])
        starts, bag_starts = np.cumsum(lengths) - lengths, np.cumsum(bag_sizes) - bag_sizes
        return cls(
            ids=torch.from_numpy(np.concatenate([sequence.ids for sequence in sequences])),
            positions=torch.from_numpy(np.concatenate([np.arange(length) for length in lengths])),
            cu_seqlens=torch.from_numpy(np.append(starts, lengths.sum()).astype(np.int32)),
            max_length=int(lengths.max()),
            bags=torch.from_numpy(np.concatenate([s.bags + start for s, start in zip(sequences, starts, strict=True)])),
            bag_offsets=torch.from_numpy(
                np.concatenate([s.offsets + start for s, start in zip(sequences, bag_starts, strict=True)])
            ),
        )


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

    A sequence over the budget goes alone. None among the items closes the batch, full or empty.
    """
    batch: list[Item] = []
    spent = 0.0
    for item in items:
        if item is None:
            yield batch
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
