"""Checks and measures the encoder on a GPU; run by ``gpu_check.sh``.

Checks: numbers equal to the fp32 CPU path within tolerance for lengths around every block edge;
the sliding window honoured; the batch without influence; running out of memory splits. Measures:
tokens a second and share of the device's peak for several lengths, against stock attention padded
and against chunks read alone; the share of pooling; peak memory.
"""

import argparse
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from shapes import Item, alternating, documents, modernbert, pieces, reader_of, run_packed, run_stock, synchronize

from late_chunking.encoding.device import default_batch_tokens
from late_chunking.encoding.encoder import packed_encoder
from late_chunking.encoding.model import Network
from late_chunking.encoding.packing import Cost, PackedBatch, pack
from late_chunking.encoding.pooling import pool_sums
from late_chunking.encoding.reader import Reader
from late_chunking.encoding.sequences import TokenSequence
from late_chunking.errors import OutOfDeviceMemory

# Dense bf16 tensor-core peak, in FLOP/s, from NVIDIA's data sheets.
PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L4": 121e12, "L40S": 362e12}
# Largest difference of a normalised chunk vector's component, half precision against fp32.
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
LEAST_COSINE = 0.999
Results = dict[str, Any]


def main() -> int:
    """Run all parts; the exit code tells whether the checks hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    dtype = torch.bfloat16 if cuda else torch.float32
    layers, width, longest = (22, 768, 8192) if cuda else (3, 64, 1024)
    network = modernbert(layers, width, device, dtype)
    reader = reader_of(network)
    results: Results = {
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "dtype": str(dtype).removeprefix("torch."),
        "torch": torch.__version__,
        "shape": [layers, width],
    }
    checks: dict[str, Callable[[], Results]] = {
        "equal": lambda: check_equal(network, reader, layers, width, longest),
        "window": lambda: check_window(device, dtype, width),
        "batch": lambda: check_batch(network, reader, longest),
        "memory": lambda: check_memory(network, reader, longest),
        "speed": lambda: measure_speed(network, reader, modernbert(layers, width, device, dtype), longest),
        "pooling": lambda: measure_pooling(network, reader, longest),
    }
    for name, check in checks.items():
        results[name] = check()
        print(f"{name}: {json.dumps(results[name])}")
    results["ok"] = all(results[name]["ok"] for name in ("equal", "window", "batch", "memory"))
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results))
    return 0 if results["ok"] else 1


def vectors(network: Network, reader: Reader, sequences: list[TokenSequence], budget: int) -> list[np.ndarray]:
    """Give the normalised chunk vectors of each sequence, packed to a budget."""
    found: list[np.ndarray] = []
    batches = pack((Item(sequence) for sequence in sequences), budget, Cost.of(network.module.config))
    for _, results in reader.read_all(batches):
        for sums in results:
            if not isinstance(sums, np.ndarray):
                raise sums
            found.append(sums / np.linalg.norm(sums, axis=1, keepdims=True))
    return found


def check_equal(network: Network, reader: Reader, layers: int, width: int, longest: int) -> Results:
    """Compare with the fp32 CPU path on lengths around every block edge."""
    edges = [2**power for power in range(5, longest.bit_length())]
    lengths = sorted({1, 2, *(edge + step for edge in edges for step in (-1, 0, 1) if edge + step <= longest)})
    sequences = documents(lengths, chunk=64)
    host = modernbert(layers, width, torch.device("cpu"), torch.float32)
    expected = vectors(host, reader_of(host), sequences, 1)
    found = vectors(network, reader, sequences, default_batch_tokens(network.device))
    differences = [float(np.abs(one - other).max()) for one, other in zip(found, expected, strict=True)]
    cosines = [float((one * other).sum(axis=1).min()) for one, other in zip(found, expected, strict=True)]
    worst = lengths[int(np.argmax(differences))]
    finite = all(np.isfinite(one).all() for one in found)
    ok = finite and max(differences) <= TOLERANCE[network.dtype] and min(cosines) >= LEAST_COSINE
    return {"ok": ok, "lengths": len(lengths), "largest": max(differences), "at": worst, "least_cosine": min(cosines)}


def check_window(device: torch.device, dtype: torch.dtype, width: int) -> Results:
    """Change one token: with local layers alone, only tokens within their joint reach may notice."""
    network = modernbert(2, width, device, dtype)
    for layer in network.module.layers:
        layer.attn.sliding_window = 65
    reach, length = 2 * 64, 600
    (sequence,) = documents([length])
    other = TokenSequence(sequence.ids.copy(), sequence.rows, sequence.bags, sequence.sizes)
    other.ids[300] = (other.ids[300] + 7) % 50_000
    encoder = packed_encoder(network.module, 0)
    before, after = (encoder.encode(PackedBatch.of([one]).to(device)).float().cpu() for one in (sequence, other))
    touched = (before != after).any(dim=1).nonzero()[:, 0]
    first, last = int(touched.min()), int(touched.max())
    return {"ok": first >= 300 - reach and last <= 300 + reach and first < 300 - 64, "touched": [first, last]}


def check_batch(network: Network, reader: Reader, longest: int) -> Results:
    """Compare documents alone with the same ones among others."""
    sequences = documents([7, 65, 500, longest // 2, 3, 128, longest // 4])
    alone = [vectors(network, reader, [one], 1)[0] for one in sequences]
    together = vectors(network, reader, sequences, 10**9)
    largest = max(float(np.abs(one - other).max()) for one, other in zip(alone, together, strict=True))
    return {"ok": largest <= TOLERANCE[network.dtype] / 2, "largest": largest}


def check_memory(network: Network, reader: Reader, longest: int) -> Results:
    """Let the device run out of memory in earnest: the batch is split, and the vectors stay."""
    if network.device.type != "cuda":
        return {"ok": True, "skipped": "needs a GPU"}
    sequences = documents([longest // 4] * 64)
    expected = vectors(network, reader, sequences, 1)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(network.device).total_memory
    room = torch.cuda.memory_reserved(network.device) + 1.5e9
    splits = Counter()
    logging.getLogger("late_chunking.encoding.reader").addHandler(splits)
    torch.cuda.set_per_process_memory_fraction(room / total, network.device)
    try:
        found = vectors(network, reader, sequences, 10**9)
        (huge,) = reader.read(documents([longest * 64]))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, network.device)
    largest = max(float(np.abs(one - other).max()) for one, other in zip(found, expected, strict=True))
    ok = largest <= TOLERANCE[network.dtype] and splits.count > 0 and isinstance(huge, OutOfDeviceMemory)
    return {"ok": ok, "splits": splits.count, "largest": largest, "alone": str(huge)[:80]}


class Counter(logging.Handler):
    """Counts what is logged."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count a record."""
        self.count += 1


def measure_speed(network: Network, reader: Reader, stock_network: Network, longest: int) -> Results:
    """Measure tokens a second for several lengths, ours against stock padded and naive chunks."""
    device = network.device
    budget = default_batch_tokens(device)
    total = 16 * longest if device.type == "cuda" else longest
    mixed = np.random.default_rng(0).permutation(np.geomspace(longest / 32, longest, 48)).astype(int).tolist()
    mixed = mixed[: max(4, 48 * total // sum(mixed))]
    cases = {str(length): [length] * (total // length) for length in (longest // 16, longest // 4, longest)}
    results: Results = {}
    for name, lengths in {**cases, "mixed": mixed}.items():
        sequences = documents(lengths)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        rows = max(1, budget // max(lengths))
        ours, stock, naive = alternating(
            [
                run_packed(reader, network, sequences, budget),
                run_stock(stock_network, sorted(sequences, key=len), rows),
                run_packed(reader, network, pieces(sequences), budget),
            ],
            device,
            3,
        )
        tokens = sum(lengths)
        entry: Results = {
            "tokens_per_second": tokens / ours,
            "stock_over_ours": stock / ours,
            "naive_over_ours": naive / ours,
        }
        peak = next(
            (peak for key, peak in PEAKS.items() if device.type == "cuda" and key in torch.cuda.get_device_name()), 0
        )
        if peak:
            entry["share_of_peak"] = sum(flops(network, length) for length in lengths) / ours / peak
            entry["peak_memory_gb"] = torch.cuda.max_memory_allocated(device) / 1e9
        results[name] = entry
    return results


def flops(network: Network, length: int) -> float:
    """Count the multiplications and additions of one document's pass."""
    config = network.module.config
    weights = sum(each.numel() for name, each in network.module.named_parameters() if "embedding" not in name)
    attention = 0.0
    for kind in config.layer_types:
        seen = min(length, 129) if "sliding" in kind else length
        attention += 4.0 * length * seen * config.hidden_size
    return 2.0 * weights * length + attention


def measure_pooling(network: Network, reader: Reader, longest: int) -> Results:
    """Measure the share of pooling and of the copy to the host."""
    batch = PackedBatch.of(documents([longest])).to(network.device)
    encoder = reader.encoder
    hidden = encoder.encode(batch)
    encoding, pooling = alternating(
        [lambda: (encoder.encode(batch), None)[1], lambda: (pool_sums(hidden, batch).cpu(), None)[1]], network.device, 5
    )
    synchronize(network.device)
    return {"share": pooling / encoding}


if __name__ == "__main__":
    sys.exit(main())
