"""Sequences → sums over their bags: a batch through the encoder, split where memory runs out."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from late_chunking.encoding.device import is_out_of_memory, release_memory
from late_chunking.encoding.encoder import Encoder
from late_chunking.encoding.packing import PackedBatch
from late_chunking.encoding.pooling import pool_sums
from late_chunking.encoding.sequences import TokenSequence
from late_chunking.errors import DeviceError, OutOfDeviceMemory

logger = logging.getLogger(__name__)

Sums = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads batches of sequences.

    Attributes:
        encoder: gives token vectors.
        device: where the encoder is.
    """

    encoder: Encoder
    device: torch.device

    def read(self, sequences: Sequence[TokenSequence]) -> list[Sums | DeviceError]:
        """Give the sums over each sequence's bags, float32 [B, D], or why there are none.

        Where the device's memory does not suffice, the batch is halved and tried again, down to
        one sequence; that one has an `OutOfDeviceMemory` in its place.
        """
        try:
            return list(self._read(sequences))
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            logger.warning("out of memory on %s with %d sequences", self.device, len(sequences))
        # Out of the handler, where the error no longer holds the batch's tensors.
        release_memory(self.device)
        if len(sequences) == 1:
            return [
                OutOfDeviceMemory(f"one sequence of {len(sequences[0])} tokens does not fit {self.device}'s memory")
            ]
        half = len(sequences) // 2
        return [*self.read(sequences[:half]), *self.read(sequences[half:])]

    def _read(self, sequences: Sequence[TokenSequence]) -> list[Sums]:
        """Read one batch."""
        batch = PackedBatch.of(sequences)
        hidden = self.encoder.encode(batch)  # [T, D]
        sums = pool_sums(hidden, batch).cpu().numpy()  # [B, D]
        return np.split(sums, np.cumsum([len(sequence.rows) for sequence in sequences])[:-1])
