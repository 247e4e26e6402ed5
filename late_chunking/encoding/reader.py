"""Sequences → sums over their bags: batches through the encoder, split where memory runs out."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import torch

from late_chunking.encoding.device import is_out_of_memory, release_memory
from late_chunking.encoding.encoder import Encoder
from late_chunking.encoding.packing import HoldsSequence
from late_chunking.encoding.pooling import pool_sums
from late_chunking.encoding.sequences import TokenSequence
from late_chunking.encoding.staging import Staging, Sums
from late_chunking.errors import DeviceError, OutOfDeviceMemory

logger = logging.getLogger(__name__)

Item = TypeVar("Item", bound=HoldsSequence)
Results: TypeAlias = list[Sums | DeviceError]


@dataclass(slots=True)
class Reader:
    """Reads batches of sequences.

    Attributes:
        encoder: gives token vectors.
        staging: the way to the encoder's device and back.
        splits: how often a batch was halved because memory ran out.
    """

    encoder: Encoder
    staging: Staging
    splits: int = 0

    def read_all(self, batches: Iterable[Sequence[Item]]) -> Iterator[tuple[Sequence[Item], Results]]:
        """Read batches in order; where the device works by itself, the next one is sent before the last is back.

        Args:
            batches: of items with a sequence each. Before an empty one is passed on, and the next
                asked for, all that are out are read.

        Yields:
            Each batch, and for each of its items what `read` gives.
        """
        out: deque[tuple[Sequence[Item], Callable[[], Results]]] = deque()
        for batch in batches:
            out.append((batch, self._submit([item.sequence for item in batch])))
            while len(out) > (self.staging.ahead if batch else 0):
                earlier, results = out.popleft()
                yield earlier, results()
        for batch, results in out:
            yield batch, results()

    def read(self, sequences: Sequence[TokenSequence]) -> Results:
        """Give the sums over each sequence's bags, float32 [B, D], or why there are none.

        Where the device's memory does not suffice, the batch is halved and tried again, down to
        one sequence; that one has an `OutOfDeviceMemory` in its place.
        """
        return self._submit(sequences)()

    def _submit(self, sequences: Sequence[TokenSequence]) -> Callable[[], Results]:
        """Send a batch; the function given waits for its results."""
        if not sequences:
            return list
        try:
            sums = self._send(sequences)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            logger.warning("out of memory on %s with %d sequences", self.staging.device, len(sequences))
        else:
            edges = np.cumsum([len(sequence.rows) for sequence in sequences])[:-1]
            return lambda: list(np.split(sums(), edges))
        # Out of the handler, where the error no longer holds the batch's tensors.
        release_memory(self.staging.device)
        if len(sequences) == 1:
            said = f"one sequence of {len(sequences[0])} tokens does not fit {self.staging.device}'s memory"
            return lambda: [OutOfDeviceMemory(said)]
        self.splits += 1
        half = len(sequences) // 2
        results = [*self.read(sequences[:half]), *self.read(sequences[half:])]
        return lambda: results

    @torch.inference_mode()
    def _send(self, sequences: Sequence[TokenSequence]) -> Callable[[], Sums]:
        """Send one batch through the encoder."""
        with self.staging.current():
            batch = self.staging.stage(sequences)
            hidden = self.encoder.encode(batch)  # [T, D]
            return self.staging.fetch(pool_sums(hidden, batch))  # [B, D]
