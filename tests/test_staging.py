"""Batches on their way to a device and back."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from late_chunking import LateChunker
from late_chunking.encoding import device
from late_chunking.encoding.packing import PackedBatch
from late_chunking.encoding.reader import Reader
from late_chunking.encoding.sequences import TokenSequence
from late_chunking.encoding.staging import DirectStaging, StreamStaging, Sums, staging_for

CPU = torch.device("cpu")
TEXTS = [f"Document {place} says this. " * (1 + place % 5) for place in range(40)]
OPTIONS = [{"strategy": "sentences"}, {"strategy": "semantic", "percentile": 50}, {"strategy": "words", "size": 3}]


class Recorded(StreamStaging):
    """What the host does, in order, with a device that works by itself."""

    def __init__(self) -> None:
        super().__init__(CPU)
        self.seen: list[str] = []

    def stage(self, sequences: list[TokenSequence]) -> PackedBatch:
        self.seen.append("stage")
        return super().stage(sequences)

    def fetch(self, sums: torch.Tensor) -> Callable[[], Sums]:
        waits = super().fetch(sums)

        def wait() -> Sums:
            self.seen.append("wait")
            return waits()

        return wait


def test_only_devices_with_streams_are_staged_ahead() -> None:
    assert isinstance(staging_for(CPU), DirectStaging)
    assert isinstance(staging_for(torch.device("meta")), DirectStaging)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: options["strategy"])
def test_a_batch_ahead_changes_no_vector(options: dict) -> None:
    chunker = LateChunker("embedded", device="cpu", max_batch_tokens=100)
    expected = list(chunker.embed_many([*TEXTS[:7], "", *TEXTS[7:]], **options))
    staging = Recorded()
    chunker.reader = Reader(chunker.reader.encoder, staging)
    found = list(chunker.embed_many([*TEXTS[:7], "", *TEXTS[7:]], **options))
    for one, other in zip(found, expected, strict=True):
        assert [chunk.span for chunk in one.chunks] == [chunk.span for chunk in other.chunks]
        np.testing.assert_array_equal(one.vectors, other.vectors)
    order = "".join(step[0] for step in staging.seen)
    assert "ssw" in order, "no batch was sent before the one before it was back"
    assert "sss" not in order, "more than one batch was sent ahead"
    assert order.count("s") == order.count("w")


def test_out_of_memory_ahead_splits_that_batch_alone() -> None:
    chunker = LateChunker("embedded", device="cpu", max_batch_tokens=100)
    expected = [embedded.vectors for embedded in chunker.embed_many(TEXTS, strategy="sentences")]
    inner = chunker.reader.encoder

    class Limited:
        name = "limited"

        def encode(self, batch: PackedBatch) -> torch.Tensor:
            if batch.tokens > 60:
                raise torch.OutOfMemoryError("out of memory")
            return inner.encode(batch)

    chunker.reader = Reader(Limited(), Recorded())
    for embedded, vectors in zip(chunker.embed_many(TEXTS, strategy="sentences"), expected, strict=True):
        np.testing.assert_allclose(embedded.vectors, vectors, atol=1e-6)


def test_the_budget_is_what_free_memory_holds() -> None:
    assert device.tokens_within(80e9, 100_000) == 32_768
    assert device.tokens_within(2e9, 100_000) == 10_000
    assert device.tokens_within(0, 100_000) == 1
    assert device.default_batch_tokens(CPU) < device.default_batch_tokens(torch.device("xpu"))


@pytest.mark.parametrize("options", [{}, {"deterministic": True}, {"max_document_tokens": 100}], ids=str)
def test_warming_up_reads_one_batch_of_the_budget(options: dict) -> None:
    chunker = LateChunker("embedded", device="cpu", **options)
    inner = chunker.reader.encoder
    read: list[int] = []

    class Counting:
        name = "counting"

        def encode(self, batch: PackedBatch) -> torch.Tensor:
            read.append(batch.tokens)
            return inner.encode(batch)

    chunker.reader = Reader(Counting(), chunker.reader.staging)
    chunker.warm_up()
    most = max(chunker.batch_tokens, chunker.planner.folder.window)
    assert len(read) == 1
    assert most / 2 < read[0] <= most
