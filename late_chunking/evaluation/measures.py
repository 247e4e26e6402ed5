"""How good a ranking is: the usual measures by ir-measures, and those over characters."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from late_chunking.dependencies import require
from late_chunking.documents import Span
from late_chunking.evaluation.relevance import Floats, covered, length, merged

# Over chunks, by ir-measures' names.
RANKED: Final = {
    "ndcg@10": "nDCG@10",
    "recall@5": "R@5",
    "recall@10": "R@10",
    "hit@1": "Success@1",
    "hit@5": "Success@5",
    "mrr": "RR",
}
CHARACTERS: Final = ("char_recall@5", "char_precision@5", "iou@5", "precision_omega")
CUTOFF: Final = 5
DEPTH: Final = 100  # ranks that are kept of each ranking


def ranked(relevant: Sequence[Sequence[bool]], counts: Sequence[int]) -> dict[str, Floats]:
    """Measure rankings of chunks.

    Args:
        relevant: [Q], for each query whether the chunks it found are relevant, best first.
        counts: [Q], how many chunks are relevant to each.

    Returns:
        [Q] by measure: those of `RANKED`, and ``context_precision@5``, the mean of the precision
        at each relevant one of the first five ranks (RAGAS). 0 for a query without any.
    """
    library = require("ir_measures", purpose="evaluation", extra="evaluation")
    qrels: list[Any] = []
    run: list[Any] = []
    for place, (found, count) in enumerate(zip(relevant, counts, strict=True)):
        query = str(place)
        hits = 0
        for rank, is_hit in enumerate(found):
            hits += is_hit
            # Names of ranks: relevant ones are known as such, and scores fall without ties.
            run.append(library.ScoredDoc(query, f"{rank}", float(len(found) - rank)))
            if is_hit:
                qrels.append(library.Qrel(query, f"{rank}", 1))
        qrels += [library.Qrel(query, f"missed {number}", 1) for number in range(count - hits)]
    values = {name: np.zeros(len(relevant)) for name in RANKED}
    names = {str(library.parse_measure(theirs)): ours for ours, theirs in RANKED.items()}
    for metric in library.iter_calc([library.parse_measure(theirs) for theirs in RANKED.values()], qrels, run):
        values[names[str(metric.measure)]][int(metric.query_id)] = metric.value
    values[f"context_precision@{CUTOFF}"] = np.asarray([_context_precision(found[:CUTOFF]) for found in relevant])
    return values


def _context_precision(found: Sequence[bool]) -> float:
    """Average the precision at each relevant rank."""
    hits = np.cumsum(found)
    at = [hits[rank] / (rank + 1) for rank, is_hit in enumerate(found) if is_hit]
    return float(np.mean(at)) if at else 0.0


def characters(
    found: Mapping[str, Sequence[Span]], touching: Mapping[str, Sequence[Span]], gold: Mapping[str, Sequence[Span]]
) -> dict[str, float]:
    """Measure one query over characters, as Chroma's evaluation of chunking does (Smith & Troynikov, 2024).

    Args:
        found: the chunks of the first five ranks, by document.
        touching: all chunks that share a character with a gold span, by document.
        gold: the gold spans, by document.
    """
    wanted = sum(length(merged(spans)) for spans in gold.values())
    held = sum(covered(found.get(name, ()), spans) for name, spans in gold.items())
    returned = sum(length(spans) for spans in found.values())
    best = sum(length(spans) for spans in touching.values())
    reachable = sum(covered(touching.get(name, ()), spans) for name, spans in gold.items())
    return {
        "char_recall@5": held / wanted,
        "char_precision@5": held / returned if returned else 0.0,
        "iou@5": held / (wanted + returned - held),
        "precision_omega": reachable / best if best else 0.0,
    }
