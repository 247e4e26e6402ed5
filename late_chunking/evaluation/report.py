"""Results of arms → rows of means and intervals, for a table, JSON and a page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from late_chunking.errors import InvalidParameter
from late_chunking.evaluation.arms import BM25, CONTROL, Arm
from late_chunking.evaluation.comparison import ArmResult
from late_chunking.evaluation.dataset import Dataset
from late_chunking.evaluation.intervals import Interval, difference
from late_chunking.evaluation.relevance import Floats

MEASURE: Final = "ndcg@10"
COMPARED: Final = (MEASURE, "recall@5", "recall@10", "hit@5", "mrr", "iou@5")


@dataclass(frozen=True, slots=True)
class Row:
    """One arm, averaged.

    Attributes:
        arm: the arm.
        chunks: how many it has.
        tokens: the mean size of a chunk.
        passes: how often the documents are read for it.
        corpus: mean by measure, over the chunks of all documents.
        document: mean by measure, over the chunks of the document asked about.
        baseline: the label of the arm that differences are to.
        difference: by measure of `COMPARED`, over the chunks of all documents.
    """

    arm: Arm
    chunks: int
    tokens: float
    passes: int
    corpus: Mapping[str, float]
    document: Mapping[str, float]
    baseline: str
    difference: Mapping[str, Interval]

    def record(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        return {
            "model": self.arm.model,
            "strategy": self.arm.cutting.strategy.name,
            "size": self.arm.cutting.size,
            "mode": self.arm.mode,
            "blend_weight": self.arm.weight,
            "bm25": self.arm.fused,
            "label": self.arm.label,
            "chunks": self.chunks,
            "tokens_per_chunk": self.tokens,
            "passes": self.passes,
            "corpus": dict(self.corpus),
            "document": dict(self.document),
            "baseline": self.baseline,
            "difference": {name: [one.low, one.mean, one.high] for name, one in self.difference.items()},
        }


def rows(
    results: Sequence[ArmResult], dataset: Dataset, *, baseline: str | None = None, only: Sequence[int] | None = None
) -> list[Row]:
    """Average arms over queries.

    Args:
        results: the arms.
        dataset: what they were measured on.
        baseline: the label of the arm that differences are to; by default, for each arm, the
            naive one of the first model with the same chunks, or else the first of all.
        only: the queries to average over, if not all.

    Raises:
        InvalidParameter: if there is no such arm.
    """
    labels = {result.arm.label: result for result in results}
    if baseline is not None and baseline not in labels:
        raise InvalidParameter(f"baseline must be one of {', '.join(labels)}, got {baseline!r}")
    chosen = np.arange(len(dataset.queries)) if only is None else np.asarray(only)
    owners = [dataset.queries[place].document for place in chosen]
    made = []
    for result in results:
        base = labels[baseline] if baseline is not None else baseline_of(result.arm, results)
        made.append(
            Row(
                result.arm,
                result.chunks,
                result.tokens,
                passes(result.arm),
                _means(result.corpus, chosen),
                _means(result.document, chosen),
                base.arm.label,
                {
                    name: difference(result.corpus[name][chosen], base.corpus[name][chosen], owners)
                    for name in COMPARED
                    if name in result.corpus
                },
            )
        )
    return made


def baseline_of(arm: Arm, results: Sequence[ArmResult]) -> ArmResult:
    """Give what an arm is compared with, unless told otherwise."""
    alike = [one for one in results if one.arm.cutting.name == arm.cutting.name and one.arm.mode == "naive"]
    return next((one for one in alike if not one.arm.fused), results[0])


def passes(arm: Arm) -> int:
    """Count how often the documents are read for an arm, whole or chunk by chunk."""
    modes = {"late": 1, "naive": 1, "blend": 2, "contextual": 1, BM25: 0, CONTROL: 2}
    cut_by_pass = arm.cutting.needs_vectors and arm.mode not in ("late", "blend")
    return modes[arm.mode] + cut_by_pass


def groups(dataset: Dataset, field: str) -> dict[str, list[int]]:
    """Group queries by a field of their documents.

    Raises:
        InvalidParameter: if a document has no such field.
    """
    fields = {document.id: document.metadata.get(field) for document in dataset.documents}
    grouped: dict[str, list[int]] = {}
    for place, query in enumerate(dataset.queries):
        value = fields[query.document]
        if value is None:
            known = sorted({name for document in dataset.documents for name in document.metadata})
            raise InvalidParameter(f"a document has no field {field!r}; known: {', '.join(known) or 'none'}")
        grouped.setdefault(str(value), []).append(place)
    return grouped


def report(
    results: Sequence[ArmResult], dataset: Dataset, *, baseline: str | None = None, by: str | None = None
) -> dict[str, Any]:
    """Give all results as JSON has them."""
    made = {
        "data": {
            "name": dataset.name,
            "documents": len(dataset.documents),
            "queries": len(dataset.queries),
        },
        "arms": [row.record() for row in rows(results, dataset, baseline=baseline)],
    }
    if by is not None:
        made["groups"] = {
            value: {
                "queries": len(places),
                "arms": [row.record() for row in rows(results, dataset, baseline=baseline, only=places)],
                "suggestion": asdict(suggest(results, dataset, only=places)),
            }
            for value, places in groups(dataset, by).items()
        }
    return made


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Which arm to take.

    Attributes:
        label: the arm.
        baseline: the arm that it was held against.
        low: the lower end of the interval of its difference, by which it was chosen.
        mean: the mean difference.
        high: the upper end.
        sure: whether the lower end is above 0, on data enough to say so.
        why: in words.
    """

    label: str
    baseline: str
    low: float
    mean: float
    high: float
    sure: bool
    why: str


_FEW_DOCUMENTS: Final = 10
_FEW_QUERIES: Final = 30


def suggest(
    results: Sequence[ArmResult], dataset: Dataset, *, measure: str = MEASURE, only: Sequence[int] | None = None
) -> Suggestion:
    """Choose an arm by the lower end of its interval against one baseline for all.

    The baseline is the naive arm of the first chunks, or else the first arm. BM25, fusions and
    controls are not chosen: they are not ways to make vectors. Of arms that the data cannot tell
    from the best, the one that reads the documents least is named, too.
    """
    chosen = np.arange(len(dataset.queries)) if only is None else np.asarray(only)
    owners = [dataset.queries[place].document for place in chosen]
    choices = [one for one in results if one.arm.mode not in (BM25, CONTROL) and not one.arm.fused] or list(results)
    base = next((one for one in choices if one.arm.mode == "naive"), choices[0])

    def against(one: ArmResult, other: ArmResult) -> Interval:
        return difference(one.corpus[measure][chosen], other.corpus[measure][chosen], owners)

    intervals = {one.arm.label: against(one, base) for one in choices}
    best = max(
        choices,
        key=lambda one: (intervals[one.arm.label].low, intervals[one.arm.label].mean, -passes(one.arm)),
    )
    interval = intervals[best.arm.label]
    documents = len(set(owners))
    why = f"{measure} {interval} against {base.arm.label}"
    sure = interval.low > 0 and not are_few(documents, len(chosen))
    if len(choices) == 1:
        why = "it is the only arm: there is nothing to choose between"
    elif best is base:
        why = "no other arm is surely better"
    elif interval.low <= 0:
        why = f"no arm is surely better than {base.arm.label}; the best of them: {why}"
    if are_few(documents, len(chosen)):
        why += (
            f"; {len(chosen)} queries to {documents} documents are too few to say: "
            f"at least {_FEW_QUERIES} and {_FEW_DOCUMENTS} are needed"
        )
    if best is not base and "tokens@5" in best.corpus:
        spent, before = (float(one.corpus["tokens@5"][chosen].mean()) for one in (best, base))
        why += f"; its first five chunks hold {spent:.0f} tokens, those of the other {before:.0f}"
    cheaper = [one for one in choices if passes(one.arm) < passes(best.arm) and against(best, one).low <= 0]
    if cheaper and sure:
        other = max(cheaper, key=lambda one: float(one.corpus[measure][chosen].mean()))
        why += f"; {other.arm.label} cannot be told from it, and reads less"
    return Suggestion(best.arm.label, base.arm.label, interval.low, interval.mean, interval.high, sure, why)


def are_few(documents: int, queries: int) -> bool:
    """Tell whether there are too few data for an interval to mean what it says."""
    return documents < _FEW_DOCUMENTS or queries < _FEW_QUERIES


def _means(values: Mapping[str, Floats], chosen: Any) -> dict[str, float]:  # noqa: ANN401 - numpy's index
    """Average measures over queries."""
    return {name: float(each[chosen].mean()) for name, each in values.items()}
