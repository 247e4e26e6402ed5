"""Batch → token vectors."""

import inspect
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Final, Protocol

import torch

from late_chunking.encoding.attention import PACKED, register
from late_chunking.encoding.packing import PackedBatch

STOCK: Final = "sdpa"


class Encoder(Protocol):
    """Reads a batch of sequences, each for itself."""

    @property
    def name(self) -> str:
        """How it reads: ``"packed"`` or ``"padded"``."""
        ...

    def encode(self, batch: PackedBatch) -> torch.Tensor:
        """Give the last layer's token vectors, [T, D], of a batch on the encoder's device."""
        ...

    def forward(self, batch: PackedBatch) -> torch.Tensor:
        """Give the same, but so that gradients pass."""
        ...


@dataclass(frozen=True, slots=True)
class PackedEncoder:
    """Runs a batch as one row, without padding; attention keeps the sequences apart.

    Attributes:
        network: a transformer that uses our attention function.
        first_position: the position of a sequence's first token; not 0 for RoBERTa's kin.
        segments: whether the network takes segment ids. They are all 0, but must be given: its
            own default is a slice of a table as long as one sequence may be, not a batch.
    """

    name: ClassVar[str] = "packed"
    network: Any
    first_position: int
    segments: bool

    @torch.inference_mode()
    def encode(self, batch: PackedBatch) -> torch.Tensor:
        """Encode a batch, for its numbers alone."""
        return self.forward(batch)

    def forward(self, batch: PackedBatch) -> torch.Tensor:
        """Encode a batch in one forward pass."""
        ids = batch.ids[None]  # [1, T]
        positions = batch.positions[None] + self.first_position  # [1, T]
        segments = {"token_type_ids": torch.zeros_like(ids)} if self.segments else {}
        output = self.network(input_ids=ids, position_ids=positions, packed_lengths=batch.lengths, **segments)
        hidden: torch.Tensor = output.last_hidden_state[0]
        return hidden  # [T, D]


@dataclass(frozen=True, slots=True)
class PaddedEncoder:
    """Runs a batch through stock attention, sequences padded to the longest of their group.

    Attributes:
        network: a transformer that uses stock attention.
        equal_lengths: put only sequences of one length together, for networks whose numbers
            follow the longest.
    """

    name: ClassVar[str] = "padded"
    network: Any
    equal_lengths: bool = False
    most_padding: float = 0.2

    @torch.inference_mode()
    def encode(self, batch: PackedBatch) -> torch.Tensor:
        """Encode a batch, for its numbers alone."""
        return self.forward(batch)

    def forward(self, batch: PackedBatch) -> torch.Tensor:
        """Encode a batch in a forward pass for each group of similar lengths."""
        spans = sorted(pairwise(batch.bounds), key=lambda span: span[1] - span[0])
        hidden: torch.Tensor | None = None
        for group in self._groups(spans):
            longest = group[-1][1] - group[-1][0]
            padding = getattr(self.network.config.get_text_config(), "pad_token_id", None) or 0
            ids = batch.ids.new_full((len(group), longest), padding)  # [B, L]
            mask = torch.zeros_like(ids)
            for row, (start, end) in enumerate(group):
                ids[row, : end - start] = batch.ids[start:end]
                mask[row, : end - start] = 1
            output = self.network(input_ids=ids, attention_mask=mask).last_hidden_state  # [B, L, D]
            if hidden is None:
                hidden = output.new_empty(batch.tokens, output.shape[-1])
            for row, (start, end) in enumerate(group):
                hidden[start:end] = output[row, : end - start]
        if hidden is None:
            raise ValueError("a batch holds at least one sequence")
        return hidden  # [T, D]

    def _groups(self, spans: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
        """Group sequences, shortest first, so that padding stays a small part."""
        allowed = 0.0 if self.equal_lengths else self.most_padding
        groups: list[list[tuple[int, int]]] = []
        for start, end in spans:
            first = groups[-1][0] if groups else None
            if first is not None and first[1] - first[0] >= (1 - allowed) * (end - start):
                groups[-1].append((start, end))
            else:
                groups.append([(start, end)])
        return groups


def use_attention(network: Any, name: str) -> None:  # noqa: ANN401 - a transformers model
    """Switch a network's attention function, in all its layers."""
    network.set_attn_implementation(name)


def compile_layers(network: Any) -> None:  # noqa: ANN401
    """Compile a network's layers, each for itself and for any number of tokens; done at the first use."""
    for modules in network.modules():
        if isinstance(modules, torch.nn.ModuleList):
            for layer in modules:
                layer.compile(dynamic=True)


def packed_encoder(network: Any, first_position: int) -> PackedEncoder:  # noqa: ANN401
    """Switch a network to our attention, and wrap it."""
    register()
    use_attention(network, PACKED)
    segments = "token_type_ids" in inspect.signature(network.forward).parameters
    return PackedEncoder(network, first_position, segments)
