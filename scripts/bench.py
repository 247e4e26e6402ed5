"""Speed, as ratios measured side by side in one run, warm, alternating, medians.

    python scripts/bench.py [--quick] [--times 3] [--only encoders,peers] [--plot FILE.png]

Each part runs in a process of its own, so that none measures what another left behind.
The last line of stdout is JSON: ``{"machine": …, "ratios": {name: {"value": x, "at_least" or "at_most": y}}}``.
"""

import argparse
import json
import multiprocessing
import platform
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path

import costs
import encoders
import hostpath
import peers
import splitting
import torch
from splitting import Row

PACKAGES = ["torch", "transformers", "tokenizers", "sentence-transformers", "chonkie", "afterthoughts"]
PACKAGES += ["semchunk", "semantic-text-splitter", "langchain-text-splitters"]


def main() -> None:
    """Run every part, or those that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, under a minute; ratios mean little")
    parser.add_argument("--times", type=int, default=3, help="runs a median is taken of")
    parser.add_argument("--only", help="parts to run, by name")
    parser.add_argument("--plot", type=Path, help="draw the costs there")
    arguments = parser.parse_args()
    parts: dict[str, Callable[[bool, int], Iterable[Row]]] = {
        "encoders": encoders.rows,
        "peers": peers.rows,
        "splitting": splitting.rows,
        "hostpath": hostpath.rows,
        "costs": partial(costs.rows, plot=arguments.plot),
    }
    chosen = arguments.only.split(",") if arguments.only else list(parts)
    if unknown := [name for name in chosen if name not in parts]:
        parser.error(f"--only: {', '.join(unknown)} is none of {', '.join(parts)}")
    ratios = {}
    for name in chosen:
        for key, entry, shown in alone(parts[name], arguments.quick, 1 if arguments.quick else arguments.times):
            ratios[key] = entry
            missed = entry["value"] < entry.get("at_least", 0) or entry["value"] > entry.get("at_most", float("inf"))
            print(f"{shown}{'  (bar missed)' if missed else ''}", flush=True)
    print(json.dumps({"machine": machine(), "ratios": ratios}))


def alone(part: Callable[[bool, int], Iterable[Row]], quick: bool, times: int) -> list[Row]:
    """Run a part in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(listed, part, quick, times).result()


def listed(part: Callable[[bool, int], Iterable[Row]], quick: bool, times: int) -> list[Row]:
    """Run a part to its end."""
    return list(part(quick, times))


def machine() -> dict[str, str | int]:
    """Say what this was measured on, and with."""
    processor = platform.processor()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        lines = information.read_text().splitlines()
        processor = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), processor)
    return {
        "processor": processor,
        "threads": torch.get_num_threads(),
        "vectors": torch.backends.cpu.get_cpu_capability(),
        **{name: version(name) for name in PACKAGES},
    }


if __name__ == "__main__":
    main()
