"""How cost grows: with a document's length, with the number of documents; and memory. Imported by bench.py."""

import multiprocessing
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import torch
from shapes import alternating, documents, modernbert, reader_of, run_packed, seconds
from splitting import Row, sample

from late_chunking import LateChunker
from late_chunking.ahead import plan_ahead
from late_chunking.encoding.device import default_batch_tokens
from late_chunking.encoding.windows import DEFAULT_OVERLAP, plan_windows
from late_chunking.planning import Planner
from late_chunking.request import Request
from late_chunking.settings import Settings

CPU = torch.device("cpu")
WINDOW = 8192
TOLERANCE = 0.15
CHARACTERS = 6_000  # of a document, where their number is what counts
Points = dict[int, float]


def rows(quick: bool, times: int, plot: Path | None = None) -> Iterator[Row]:
    """Measure cost and memory; draw the costs, if asked to."""
    lengths = by_length([256, 512, 1024] if quick else [2**power for power in range(9, 16)], times)
    fit = fitted(lengths)
    worst = max(abs(cost / expected(fit, length) - 1) for length, cost in lengths.items())
    listed = ", ".join(f"{length}: {1e6 * cost:.0f}" for length, cost in lengths.items())
    yield (
        "cost_by_length",
        {"value": worst, "at_most": TOLERANCE},
        f"ModernBERT 12 × 384, µs a token by length: {listed}; at most {worst:.1%} from a + b · length",
    )
    counts = by_count([2, 4] if quick else [5, 10, 20, 40], times)
    spread = max(counts.values()) / min(counts.values()) - 1
    listed = ", ".join(f"{count}: {1e6 * cost:.0f}" for count, cost in counts.items())
    yield (
        "cost_by_count",
        {"value": spread, "at_most": TOLERANCE},
        f"MiniLM, µs a token by number of documents: {listed}; at most {spread:.1%} apart",
    )
    if plot is not None:
        draw(lengths, fit, counts, plot)
    for mode, count in (("embedded", 3),) if quick else (("planned", 300), ("embedded", 40)):
        fewer, more = (peak_memory(number, mode) for number in (count, 4 * count))
        yield (
            f"memory_{mode}",
            {"value": more / fewer, "at_most": 1.1},
            f"peak memory, streamed and {mode}: {fewer:.0f} MB for {count} documents, {more:.0f} MB for {4 * count}",
        )


def by_length(lengths: list[int], times: int) -> Points:
    """Measure seconds a token for documents of several lengths, those over a window read in several."""
    network = modernbert(12, 384, CPU, torch.float32, WINDOW)
    reader = reader_of(network, WINDOW)
    runs = {}
    for length in lengths:
        windows = plan_windows(length, WINDOW, int(DEFAULT_OVERLAP * WINDOW))
        sizes = (windows.ends - windows.starts).tolist() * max(1, WINDOW // length)
        runs[length] = run_packed(reader, network, documents(sizes), default_batch_tokens(CPU))
    next(iter(runs.values()))()
    taken: dict[int, list[float]] = {length: [] for length in lengths}
    for _ in range(times):
        for length, run in runs.items():
            taken[length].append(seconds(run, CPU) / max(length, WINDOW // length * length))
    return {length: median(each) for length, each in taken.items()}


def fitted(costs: Points) -> tuple[float, float]:
    """Fit a + b · length to the costs of documents that fit one window, equally well in proportion everywhere."""
    lengths = np.array([length for length in costs if length <= WINDOW], dtype=float)
    found = np.array([costs[int(length)] for length in lengths])
    rows = np.stack([np.ones_like(lengths), lengths], axis=1) / found[:, None]
    a, b = np.linalg.lstsq(rows, np.ones_like(found), rcond=None)[0]
    return float(a), float(b)


def expected(fit: tuple[float, float], length: int) -> float:
    """Give what a token of a document should cost: a + b · length in a window, as often as it is read."""
    windows = plan_windows(length, WINDOW, int(DEFAULT_OVERLAP * WINDOW))
    read = int((windows.ends - windows.starts).sum()) / length
    return read * (fit[0] + fit[1] * min(length, WINDOW))


def by_count(counts: list[int], times: int) -> Points:
    """Measure seconds a token for several numbers of documents of one length."""
    chunker = LateChunker("embedded", device="cpu")
    text = sample(CHARACTERS * max(counts))
    texts = [text[start : start + CHARACTERS] for start in range(0, len(text), CHARACTERS)]
    tokens = [len(each.ids) for each in chunker.planner.tokenizer.tokenize_many(texts)]

    def run(count: int) -> None:
        for _ in chunker.embed_many(texts[:count], strategy="tokens"):
            pass

    taken = alternating([partial(run, count) for count in counts], CPU, times)
    return {count: spent / sum(tokens[:count]) for count, spent in zip(counts, taken, strict=True)}


def peak_memory(count: int, mode: str) -> float:
    """Give the peak memory of a process of its own that streams so many documents, in MB."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return float(pool.apply(stream, (count, mode)))


def stream(count: int, mode: str) -> float:
    """Embed, or only plan, a stream of documents, and give this process's peak memory in MB."""
    text = sample(CHARACTERS)
    texts = (f"{place} {text}" for place in range(count))
    if mode == "embedded":
        for _ in LateChunker("embedded", device="cpu").embed_many(texts, strategy="tokens"):
            pass
    else:
        for _ in plan_ahead(Planner.load(Settings()), enumerate(texts), Request.of("tokens", {"size": 128})):
            pass
    # Not getrusage: Linux hands a parent's peak on to the processes it starts.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def draw(lengths: Points, fit: tuple[float, float], counts: Points, path: Path) -> None:
    """Draw both costs side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(list(lengths), [1e6 * cost for cost in lengths.values()], "o", label="measured")
    left.plot(list(lengths), [1e6 * expected(fit, length) for length in lengths], label="a + b · length, by windows")
    left.set(xscale="log", xlabel="tokens a document", ylabel="µs a token", title="ModernBERT's shape, 12 × 384")
    left.set_xticks(list(lengths), [f"{length // 1024}k" if length >= 1024 else str(length) for length in lengths])
    left.minorticks_off()
    left.legend()
    right.plot(list(counts), [1e6 * cost for cost in counts.values()], "o-")
    right.set(xlabel="documents", ylabel="µs a token", title="MiniLM, documents of 1,400 tokens")
    for panel in (left, right):
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
