"""How much should neighbouring windows overlap? Retrieval quality and cost, by measurement.

    python scripts/measure_windows.py DATA [DATA …] [--model M] [--strategy words] [--size 50]

DATA are folders as `late-chunking evaluate` takes them. Prints nDCG@10 over the chunks of all
documents for naive chunks and for late ones with several overlaps, with 95 % intervals of the
difference to naive, and what each overlap costs in tokens read. The last line is JSON.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from late_chunking import LateChunker
from late_chunking.evaluation import Dataset, Store, compare, difference, make_arms, make_cuttings, read_dataset
from late_chunking.request import Request

OVERLAPS = (0.0, 0.125, 0.25, 0.375, 0.5)
MEASURE = "ndcg@10"


def main() -> None:
    """Measure each data set in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--strategy", default="words", help="where to cut")
    parser.add_argument("--size", type=int, default=50, help="words a chunk")
    arguments = parser.parse_args()
    results = {}
    for folder in arguments.data:
        dataset = read_dataset(folder)
        print(f"{dataset.name}: {arguments.strategy}, {arguments.size} words a chunk")
        results[folder.name] = dict(measure(dataset, arguments.model, arguments.strategy, arguments.size))
    print(json.dumps({"windows": results}))


def measure(dataset: Dataset, model: str, strategy: str, size: int) -> Iterator[tuple[str, Any]]:
    """Measure one data set, printing a line an arm."""
    cuttings = make_cuttings([strategy], [size], {"unit": "words"})
    owners = [query.document for query in dataset.queries]
    window = LateChunker(model).planner
    content = window.folder.window - window.tokenizer.special_count
    naive = None
    for share in (None, *OVERLAPS):
        mode = "naive" if share is None else "late"
        chunker = LateChunker(model, **({} if share is None else {"window_overlap": int(content * share)}))
        (result,) = compare(chunker, dataset, make_arms(model, cuttings, [mode]), Store(None))
        scores = result.corpus[MEASURE]
        naive = scores if naive is None else naive
        interval = difference(scores, naive, owners)
        request = Request.of(cuttings[0].strategy, {"mode": mode})
        plans = (chunker.planner.plan(document, request) for document in dataset.documents)
        tokens = sum(len(sequence) for plan in plans for sequence in plan.sequences)
        name = "naive" if share is None else f"late, overlap {share:.3f}"
        print(
            f"  {name:<20} {MEASURE} {scores.mean():.3f}  minus naive {interval}  {tokens} tokens read",
            flush=True,
        )
        found = [interval.low, interval.mean, interval.high]
        yield name, {MEASURE: float(scores.mean()), "difference": found, "tokens": tokens}


if __name__ == "__main__":
    main()
