"""Speed, as ratios measured side by side in one run, warm, alternating, medians.

    python scripts/bench.py [--quick] [--times 3]

The last line of stdout is JSON: ``{"ratios": {name: {"value": x, "at_least" or "at_most": y}}}``.
"""

import argparse
import json

import hostpath
import numpy as np
import peers
import splitting
import torch
from shapes import alternating, documents, modernbert, run_packed, run_stock

from late_chunking.encoding.device import default_batch_tokens
from late_chunking.encoding.encoder import packed_encoder
from late_chunking.encoding.model import Network
from late_chunking.encoding.packing import PackedBatch
from late_chunking.encoding.pooling import pool_sums

CPU = torch.device("cpu")
Ratios = dict[str, dict[str, float]]


def main() -> None:
    """Run every row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, under a minute; ratios mean little")
    parser.add_argument("--times", type=int, default=3, help="runs a median is taken of")
    arguments = parser.parse_args()
    network = modernbert(12, 384, CPU, torch.float32)
    times = 1 if arguments.quick else arguments.times
    ratios: Ratios = {}
    for row in (long_document, mixed_documents, pooling):
        name, entry, shown = row(network, arguments.quick, times)
        ratios[name] = entry
        print(shown, flush=True)
    for rows in (peers.rows, splitting.rows, hostpath.rows):
        for name, entry, shown in rows(arguments.quick, times):
            ratios[name] = entry
            print(shown, flush=True)
    name, entry, shown = hostpath.memory(arguments.quick)
    ratios[name] = entry
    print(shown, flush=True)
    print(json.dumps({"ratios": ratios}))


def long_document(network: Network, quick: bool, times: int) -> tuple[str, dict[str, float], str]:
    """Compare one long document, ModernBERT's shape: stock time over ours."""
    length = 2048 if quick else 8192
    sequences = documents([length])
    budget = default_batch_tokens(CPU)
    stock, ours = alternating([run_stock(network, sequences, 1), run_packed(network, sequences, budget)], CPU, times)
    shown = f"one document of {length} tokens: stock {stock:.2f} s, ours {ours:.2f} s, {stock / ours:.2f} ×"
    return "modernbert_long_document", {"value": stock / ours, "at_least": 2.0}, shown


def mixed_documents(network: Network, quick: bool, times: int) -> tuple[str, dict[str, float], str]:
    """Compare documents of 0.3k to 4k tokens, ModernBERT's shape: padded stock time over ours."""
    longest = 1000 if quick else 4000
    # As long documents are spread: evenly over the logarithm of their length.
    lengths = np.geomspace(300, longest, 4 if quick else 8).astype(int)
    order = np.random.default_rng(0).permutation(lengths)
    sequences = documents(order.tolist())
    budget = default_batch_tokens(CPU)
    ways = [run_stock(network, sequences, len(sequences)), run_packed(network, sequences, budget)]
    stock, ours = alternating(ways, CPU, times)
    shown = f"{len(order)} documents of 300 to {longest} tokens: padded stock {stock:.2f} s, ours {ours:.2f} s, "
    return "modernbert_mixed_documents", {"value": stock / ours, "at_least": 3.0}, f"{shown}{stock / ours:.2f} ×"


def pooling(network: Network, quick: bool, times: int) -> tuple[str, dict[str, float], str]:
    """Compare pooling with the encoder's time."""
    batch = PackedBatch.of(documents([512] * 4))
    encoder = packed_encoder(network.module, 0)
    hidden = encoder.encode(batch)
    encoding, pooled = alternating([lambda: encode(encoder, batch), lambda: pool_many(hidden, batch)], CPU, times)
    share = pooled / POOLINGS / encoding
    shown = (
        f"pooling {batch.ids.shape[0]} tokens into {len(batch.bag_offsets)} chunks: {share:.2%} of the encoder's time"
    )
    return "pooling_share", {"value": share, "at_most": 0.01}, shown


POOLINGS = 50


def encode(encoder: object, batch: PackedBatch) -> None:
    """Encode a batch."""
    encoder.encode(batch)  # type: ignore[attr-defined]


def pool_many(hidden: torch.Tensor, batch: PackedBatch) -> None:
    """Pool a batch often enough to be timed."""
    for _ in range(POOLINGS):
        pool_sums(hidden, batch)


if __name__ == "__main__":
    main()
