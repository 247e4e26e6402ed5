"""How much should neighbouring windows overlap? Retrieval quality and cost, by measurement.

    python scripts/measure_windows.py DATA [DATA …] [--model M] [--strategy words] [--size 50]

DATA is a folder with ``documents.jsonl`` (id, text) and ``queries.jsonl`` (doc_id, query, and
spans: the gold ``[start, end)`` ranges of the document's text). A chunk is relevant if it holds
at least half of a gold span or lies at least half within one. Prints nDCG@10 over the chunks of
all documents for naive chunks and for late ones with several overlaps, with 95 % intervals of
the difference to naive (bootstrap over documents), and what each overlap costs in tokens read.
The last line is JSON.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from late_chunking import Document, EmbeddedDocument, LateChunker
from late_chunking.request import Request

OVERLAPS = (0.0, 0.125, 0.25, 0.375, 0.5)
CUTOFF = 10


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
        results[folder.name] = dict(measure(folder, arguments.model, arguments.strategy, arguments.size))
    print(json.dumps({"windows": results}))


def measure(folder: Path, model: str, strategy: str, size: int) -> Iterator[tuple[str, Any]]:
    """Measure one data set, printing a line an arm."""
    documents = read(folder / "documents.jsonl")
    queries = read(folder / "queries.jsonl")
    chunker = LateChunker(model)
    questions = np.stack([chunker.embed_query(query["query"]) for query in queries])  # [Q, D]
    print(
        f"{folder.name}: {len(documents)} documents, {len(queries)} queries, strategy {strategy}, {size} words a chunk"
    )
    naive = None
    for name, overlap in [("naive", None), *((f"late, overlap {share:.3f}", share) for share in OVERLAPS)]:
        window = chunker.planner.folder.window
        content = window - chunker.planner.tokenizer.special_count
        options = {} if overlap is None else {"window_overlap": int(content * overlap)}
        arm = LateChunker(model, **options)
        mode = "naive" if overlap is None else "late"
        given = [Document(document["text"], id=document["id"]) for document in documents]
        embedded = list(arm.embed_many(given, strategy=strategy, size=size, unit="words", mode=mode))
        scores = ndcg(embedded, queries, questions)
        request = Request.of(strategy, {"size": size, "unit": "words", "mode": mode})
        plans = (arm.planner.plan(document, request) for document in given)
        tokens = sum(len(sequence) for plan in plans for sequence in plan.sequences)
        naive = scores if naive is None else naive
        low, mean, high = difference(scores - naive, [query["doc_id"] for query in queries])
        print(
            f"  {name:<20} nDCG@{CUTOFF} {scores.mean():.3f}  minus naive {mean:+.3f} [{low:+.3f}, {high:+.3f}]  "
            f"{tokens} tokens read",
            flush=True,
        )
        yield name, {"ndcg@10": scores.mean(), "difference": [low, mean, high], "tokens": tokens}


def ndcg(
    embedded: list[EmbeddedDocument], queries: list[dict[str, Any]], questions: npt.NDArray[np.float32]
) -> npt.NDArray[np.float64]:
    """Give each query's nDCG at the cutoff, over the chunks of all documents. [Q]."""
    vectors = np.concatenate([document.vectors for document in embedded])  # [C, D]
    places = [(document.id, chunk.span) for document in embedded for chunk in document.chunks]
    discounts = 1 / np.log2(np.arange(2, CUTOFF + 2))
    scores = np.zeros(len(queries))
    best = np.argsort(-(questions @ vectors.T), axis=1, kind="stable")[:, :CUTOFF]  # [Q, CUTOFF]
    for place, query in enumerate(queries):
        relevant = np.array(
            [name == query["doc_id"] and any(matches(span, gold) for gold in query["spans"]) for name, span in places]
        )
        ideal = discounts[: int(relevant.sum())].sum()
        if ideal:
            scores[place] = (relevant[best[place]] * discounts).sum() / ideal
    return scores


def matches(span: tuple[int, int], gold: list[int]) -> bool:
    """Tell whether a chunk holds at least half of a gold span, or lies at least half within it."""
    shared = min(span[1], gold[1]) - max(span[0], gold[0])
    return shared > 0 and (2 * shared >= gold[1] - gold[0] or 2 * shared >= span[1] - span[0])


def difference(differences: npt.NDArray[np.float64], owners: list[str]) -> tuple[float, float, float]:
    """Give a mean difference between its 95 % interval's ends, drawing documents with replacement."""
    names = sorted(set(owners))
    own = np.array(owners)
    sums = np.array([differences[own == name].sum() for name in names])
    counts = np.array([(own == name).sum() for name in names])
    drawn = np.random.default_rng(0).integers(len(names), size=(2000, len(names)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(differences.mean()), float(high)


def read(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


if __name__ == "__main__":
    main()
