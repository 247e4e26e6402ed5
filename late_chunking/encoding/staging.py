"""Batches on their way to the device, and what comes of them on its way back.

The only place that knows of streams. On a GPU a batch is copied from pinned memory on a stream of
its own while the batch before it is computed, and the host waits once a batch: for its sums.
torch gives a CPU streams of the same shape that do nothing, so the same code runs there.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import torch

from late_chunking.encoding.packing import PackedBatch
from late_chunking.encoding.sequences import TokenSequence

Sums = npt.NDArray[np.float32]

_WITH_STREAMS: Final = ("cuda", "xpu")


class Staging(Protocol):
    """Moves numbers between host and device.

    Attributes:
        device: the device.
        ahead: how many batches may be under way behind the one whose sums are waited for.
    """

    @property
    def device(self) -> torch.device:
        """The device."""
        ...

    @property
    def ahead(self) -> int:
        """How many batches may be under way behind the one that is waited for."""
        ...

    def current(self) -> AbstractContextManager[object]:
        """Make the device this thread's current one, for as long as it works for it."""
        ...

    def stage(self, sequences: Sequence[TokenSequence]) -> PackedBatch:
        """Pack sequences into a batch on the device."""
        ...

    def fetch(self, sums: torch.Tensor) -> Callable[[], Sums]:
        """Bring sums, [B, D], to the host; the function given waits for them."""
        ...


class DirectStaging:
    """Copies, and waits for each copy."""

    ahead = 0

    def __init__(self, device: torch.device) -> None:
        """Move numbers to and from a device."""
        self.device = device

    def current(self) -> AbstractContextManager[object]:
        """Nothing is kept for a current device here."""
        return nullcontext()

    def stage(self, sequences: Sequence[TokenSequence]) -> PackedBatch:
        """Pack sequences into a batch on the device.

        On a CPU batches are filled up to a few lengths: oneDNN makes a kernel for each length of each
        layer, and keeps half a megabyte for it (measured: 1.8 GB for any length, 0.15 GB for these).
        """
        return PackedBatch.of(sequences, filled=self.device.type == "cpu").to(self.device)

    def fetch(self, sums: torch.Tensor) -> Callable[[], Sums]:
        """Bring sums to the host, at once."""
        found: Sums = sums.cpu().numpy()
        return lambda: found


class StreamStaging:
    """Copies on a stream of its own, from and to pinned memory, and waits for sums alone."""

    ahead = 1

    def __init__(self, device: torch.device) -> None:
        """Move numbers to and from a device."""
        self.device = device
        self._is_pinned = device.type in _WITH_STREAMS
        self._streams: Any = torch.get_device_module(device)
        with self.current():
            self._copies = self._streams.Stream()

    def current(self) -> AbstractContextManager[object]:
        """Make the device this thread's current one: streams and events belong to that one."""
        return self._streams.device(self.device) if self._is_pinned else nullcontext()

    def stage(self, sequences: Sequence[TokenSequence]) -> PackedBatch:
        """Pack sequences into a batch that will be on the device before what is computed next."""
        packed = PackedBatch.of(sequences, pinned=self._is_pinned)
        with self._streams.stream(self._copies):
            batch = packed.to(self.device)
        computing = self._streams.current_stream()
        computing.wait_stream(self._copies)
        if self._is_pinned:
            # Its memory belongs to the stream of copies, which must not reuse it before that is done, too.
            batch.numbers.record_stream(computing)
        return batch

    def fetch(self, sums: torch.Tensor) -> Callable[[], Sums]:
        """Bring sums to the host once they are computed."""
        host = torch.empty(sums.shape, dtype=sums.dtype, pin_memory=self._is_pinned)
        host.copy_(sums, non_blocking=True)
        arrived = self._streams.Event()
        arrived.record(self._streams.current_stream())

        def wait() -> Sums:
            arrived.synchronize()
            found: Sums = host.numpy()
            return found

        return wait


def staging_for(device: torch.device) -> Staging:
    """Choose the way to a device and back."""
    return StreamStaging(device) if device.type in _WITH_STREAMS else DirectStaging(device)
