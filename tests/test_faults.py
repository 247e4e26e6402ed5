"""When the device fails: split, go on, fail one document by name, leave nobody waiting."""

import numpy as np
import pytest
import torch

from late_chunking import Document, EmbeddedDocument, FailedDocument, LateChunker, errors
from late_chunking.encoding.packing import PackedBatch
from late_chunking.encoding.reader import Reader

TEXTS = ["The ferry leaves at dawn. " * times for times in (1, 3, 2, 80, 1, 5)]


class Limited:
    """An encoder with room for so many tokens."""

    name = "limited"

    def __init__(self, chunker: LateChunker, room: int, error: Exception) -> None:
        self.inner = chunker.reader.encoder
        self.room = room
        self.error = error
        self.batches: list[int] = []

    def encode(self, batch: PackedBatch) -> torch.Tensor:
        self.batches.append(len(batch.ids))
        if len(batch.ids) > self.room:
            raise self.error
        return self.inner.encode(batch)


@pytest.fixture
def chunker() -> LateChunker:
    """A chunker whose encoder a test may replace."""
    return LateChunker("embedded", device="cpu")


def limit(chunker: LateChunker, room: int, error: Exception) -> Limited:
    """Give a chunker's encoder less room."""
    limited = Limited(chunker, room, error)
    chunker.reader = Reader(limited, chunker.reader.staging)
    return limited


OUT_OF_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: 12 bytes"),
    MemoryError(),
]


@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=lambda error: type(error).__name__)
def test_out_of_memory_splits_the_batch_and_goes_on(chunker: LateChunker, error: Exception) -> None:
    expected = [embedded.vectors for embedded in chunker.embed_many(TEXTS, strategy="sentences")]
    limited = limit(chunker, 256, error)
    found = list(chunker.embed_many(TEXTS, strategy="sentences"))
    assert max(limited.batches) > 256
    for embedded, vectors in zip(found, expected, strict=True):
        np.testing.assert_allclose(embedded.vectors, vectors, atol=1e-6)


def test_a_sequence_that_does_not_fit_alone_fails_its_document_by_name(chunker: LateChunker) -> None:
    limit(chunker, 100, torch.OutOfMemoryError("CUDA out of memory"))
    documents = [Document(text, id=f"doc-{place}") for place, text in enumerate(TEXTS)]
    outcomes = list(chunker.embed_many(documents, on_error="yield"))
    assert [outcome.id for outcome in outcomes] == [document.id for document in documents]
    assert [isinstance(outcome, EmbeddedDocument) for outcome in outcomes] == [True, True, True, False, True, True]
    failed = outcomes[3]
    assert isinstance(failed, FailedDocument)
    assert isinstance(failed.error, errors.OutOfDeviceMemory)
    assert "document 3 ('doc-3'): one sequence of 256 tokens does not fit cpu's memory" in str(failed.error)
    with pytest.raises(errors.OutOfDeviceMemory, match="doc-3"):
        list(chunker.embed_many(documents))
    with pytest.raises(errors.OutOfDeviceMemory):
        chunker.embed(documents[3])


def test_a_failed_document_is_not_read_on(chunker: LateChunker) -> None:
    limited = limit(chunker, 100, torch.OutOfMemoryError("CUDA out of memory"))
    chunker.batch_tokens = 1
    long = "The ferry leaves at dawn. " * 800
    (outcome,) = chunker.embed_many([long], on_error="yield")
    assert isinstance(outcome, FailedDocument)
    assert limited.batches == [256, 256]  # the second was packed when the first failed


def test_another_error_of_the_device_is_not_taken_for_memory(chunker: LateChunker) -> None:
    limit(chunker, 0, RuntimeError("CUDA error: an illegal memory access was encountered"))
    with pytest.raises(RuntimeError, match="illegal memory access"):
        chunker.embed("text")


def test_deterministic_vectors_are_the_same_to_the_bit() -> None:
    chunker = LateChunker("embedded", device="cpu", deterministic=True)
    alone = [chunker.embed(text, strategy="sentences").vectors for text in TEXTS]
    for order in (TEXTS, TEXTS[::-1]):
        found = {
            embedded.document.text: embedded.vectors for embedded in chunker.embed_many(order, strategy="sentences")
        }
        for text, vectors in zip(TEXTS, alone, strict=True):
            np.testing.assert_array_equal(found[text], vectors)
