"""Encoding and pooling, in ModernBERT's shapes, against stock transformers. Imported by bench.py."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import torch
from shapes import alternating, documents, modernbert, reader_of, run_packed, run_stock
from splitting import Row

from late_chunking.encoding.device import default_batch_tokens
from late_chunking.encoding.packing import PackedBatch
from late_chunking.encoding.pooling import pool_sums

CPU = torch.device("cpu")
SHAPES = [(12, 384), (22, 768)]  # layers and width; the second is ModernBERT-base
SAID = {
    "loop": "a loop of means",
    "segment_reduce": "segment_reduce (spans may not overlap)",
    "copy": "a mere copy of all token vectors",
}
REPEATS = 50  # poolings, so that they can be timed


def rows(quick: bool, times: int) -> Iterator[Row]:
    """Compare the encoder with stock transformers, shape by shape, then pooling with other ways to pool."""
    for layers, width in SHAPES[:1] if quick else SHAPES:
        stock = modernbert(layers, width, CPU, torch.float32)
        network = modernbert(layers, width, CPU, torch.float32)
        reader = reader_of(network)
        budget = default_batch_tokens(CPU)
        large = width > SHAPES[0][1]
        longest = 1024 if quick else 8192
        mixed = np.geomspace(300, 1000 if quick else 4000, 4 if quick or large else 8).astype(int)
        shuffled = np.random.default_rng(0).permutation(mixed).tolist()
        cases = {
            "long_document": ([longest], 1, 2.0),
            "mixed_documents": (shuffled, len(mixed), 3.0),
        }
        if not large:
            cases["sorted_documents"] = (sorted(shuffled), 2, 0.0)
        for name, (lengths, rows_a_batch, least) in cases.items():
            sequences = documents(lengths)
            theirs, ours = alternating(
                [run_stock(stock, sequences, rows_a_batch), run_packed(reader, network, sequences, budget)],
                CPU,
                1 if large else times,
            )
            shown = (
                f"ModernBERT {layers} × {width}, documents of {', '.join(map(str, lengths))} tokens: "
                f"stock, {rows_a_batch} a batch, {theirs:.2f} s, ours {ours:.2f} s, {theirs / ours:.2f} ×"
            )
            yield f"modernbert_{layers}x{width}_{name}", {"value": theirs / ours, "at_least": least}, shown
    yield from pooling(times)


def pooling(times: int) -> Iterator[Row]:
    """Compare pooling with the encoder's time, and with other ways to pool the same chunks."""
    network = modernbert(*SHAPES[0], CPU, torch.float32)
    encoder = reader_of(network).encoder
    batch = PackedBatch.of(documents([512] * 4))
    hidden = encoder.encode(batch)  # [T, D]
    offsets = [*batch.bag_offsets.tolist(), batch.tokens]
    sizes = torch.tensor(np.diff(offsets))  # [C]
    spans = list(pairwise(offsets))
    ways: dict[str, Callable[[], object]] = {
        "loop": lambda: torch.stack([hidden[start:end].mean(dim=0) for start, end in spans]),
        "segment_reduce": lambda: torch.segment_reduce(hidden, "sum", lengths=sizes, axis=0),
        "copy": hidden.clone,
    }
    encoding, ours, *others = alternating(
        [lambda: encoder.encode(batch), *(repeated(way) for way in (lambda: pool_sums(hidden, batch), *ways.values()))],
        CPU,
        times,
    )
    share = ours / REPEATS / encoding
    shown = f"pooling {batch.tokens} tokens into {len(spans)} chunks: {share:.2%} of the encoder's time"
    yield "pooling_share", {"value": share, "at_most": 0.01}, shown
    for name, taken in zip(ways, others, strict=True):
        yield (
            f"pooling_{name}",
            {"value": taken / ours, "at_least": 0.0},
            f"the same by {SAID[name]}: {taken / ours:.2f} × our time",
        )


def repeated(way: Callable[[], object]) -> Callable[[], None]:
    """Do something often enough to be timed."""

    def run() -> None:
        for _ in range(REPEATS):
            way()

    return run
