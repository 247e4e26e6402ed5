"""Batch → token vectors."""

import itertools
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from late_chunking.encoding.packing import PackedBatch


class Encoder(Protocol):
    """Reads a batch of sequences, each for itself."""

    def encode(self, batch: PackedBatch) -> torch.Tensor:
        """Give the last layer's token vectors, [T, D], on the encoder's device."""
        ...


@dataclass(frozen=True, slots=True)
class PlainEncoder:
    """Runs each sequence alone through the stock network: no padding, no neighbours."""

    network: Any
    device: torch.device

    @torch.inference_mode()
    def encode(self, batch: PackedBatch) -> torch.Tensor:
        """Encode a batch, sequence by sequence."""
        bounds = batch.cu_seqlens.tolist()
        hidden = []
        for start, end in itertools.pairwise(bounds):
            ids = batch.ids[None, start:end].to(self.device)  # [1, L]
            output = self.network(input_ids=ids, attention_mask=torch.ones_like(ids))
            hidden.append(output.last_hidden_state[0])  # [L, D]
        return torch.cat(hidden)
