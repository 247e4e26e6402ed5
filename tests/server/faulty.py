"""Runs the server, as the command line does, around an encoder with a fault that some texts set off.

python -m tests.server.faulty raise|lost|oom|nan|slow
"""

import sys
import time
from itertools import pairwise

import torch

from late_chunking.cli import main
from late_chunking.encoding.packing import PackedBatch
from server.settings import ServerSettings

FAULT = 77  # a batch with a sequence of so many tokens


class Faulty:
    """An encoder that goes wrong."""

    name = "faulty"

    def __init__(self, inner, kind: str) -> None:
        self.inner = inner
        self.kind = kind
        self.is_lost = False

    def encode(self, batch: PackedBatch) -> torch.Tensor:
        lengths = [end - start for start, end in pairwise(batch.bounds)]
        if self.kind == "slow":
            time.sleep(0.3)
        if self.is_lost:
            raise RuntimeError("CUDA error: device-side assert triggered")
        if FAULT not in lengths:
            return self.inner.encode(batch)
        if self.kind in ("raise", "lost"):
            self.is_lost = self.kind == "lost"
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        if self.kind == "oom":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        hidden = self.inner.encode(batch)
        for start, length in zip(batch.bounds, lengths, strict=False):
            if length == FAULT:
                hidden[start : start + FAULT] = float("nan")
        return hidden


def load(settings: ServerSettings):
    """Load the model, with the fault in it."""
    chunker = inner_load(settings)
    chunker.reader.encoder = Faulty(chunker.reader.encoder, kind)
    return chunker


kind = sys.argv.pop(1)
inner_load = ServerSettings.load_chunker
ServerSettings.load_chunker = load
main()
