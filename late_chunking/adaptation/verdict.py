"""Is the model better than it was? On held-back documents, and on others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from late_chunking.embedder import LateChunker
from late_chunking.evaluation.arms import Cutting, make_arms
from late_chunking.evaluation.comparison import ArmResult, compare
from late_chunking.evaluation.dataset import Dataset
from late_chunking.evaluation.intervals import Interval, difference
from late_chunking.evaluation.report import MEASURE, are_few
from late_chunking.evaluation.vectors import Store

MODES: Final = ("naive", "late", "blend")


@dataclass(frozen=True, slots=True)
class Change:
    """One mode on one data set, before and after.

    Attributes:
        data: the data set's name.
        mode: of the vectors.
        before: mean nDCG@10 over the chunks of all documents.
        after: the same.
        interval: of the difference.
    """

    data: str
    mode: str
    before: float
    after: float
    interval: Interval

    def record(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        interval = [self.interval.low, self.interval.mean, self.interval.high]
        return {"data": self.data, "mode": self.mode, "before": self.before, "after": self.after, "change": interval}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a model may be called better.

    Attributes:
        better: whether its late vectors are surely better on the held-back documents, and nothing
            is surely worse anywhere.
        why: in words.
    """

    better: bool
    why: str


def results_of(
    chunker: LateChunker, datasets: Sequence[Dataset], cuttings: Sequence[Cutting], progress: Callable[[str], None]
) -> list[list[ArmResult]]:
    """Measure a model on each data set in each mode."""
    arms = make_arms("", cuttings, MODES)
    found = []
    for dataset in datasets:
        progress(f"measuring on {dataset.name}")
        found.append(list(compare(chunker, dataset, arms, Store(None))))
    return found


def changes(
    datasets: Sequence[Dataset], before: Sequence[Sequence[ArmResult]], after: Sequence[Sequence[ArmResult]]
) -> list[Change]:
    """Put what was measured before and after side by side; intervals are of paired queries."""
    made = []
    for dataset, earlier, later in zip(datasets, before, after, strict=True):
        owners = [query.document for query in dataset.queries]
        for one, other in zip(earlier, later, strict=True):
            old, new = one.corpus[MEASURE], other.corpus[MEASURE]
            interval = difference(new, old, owners)
            made.append(Change(dataset.name, one.arm.mode, float(old.mean()), float(new.mean()), interval))
    return made


def judge(found: Sequence[Change], held: Dataset) -> Verdict:
    """Call a model better only if it surely is.

    Args:
        found: the changes; those on the held-back documents among them.
        held: the held-back documents.
    """
    own = next(change for change in found if change.data == held.name and change.mode == "late")
    shown = f"nDCG@10 of late vectors {own.interval}"
    documents = len({query.document for query in held.queries})
    if are_few(documents, len(held.queries)):
        return Verdict(
            False,
            f"{shown} on {held.name}, but {len(held.queries)} queries to {documents} documents are too few to say",
        )
    if own.interval.low <= 0:
        return Verdict(False, f"not surely better on {held.name}: {shown}")
    if worse := [change for change in found if change.interval.high < 0]:
        listed = ", ".join(f"{change.mode} on {change.data} ({change.interval.mean:+.3f})" for change in worse)
        return Verdict(False, f"better on {held.name} ({shown}), but worse elsewhere: {listed}")
    return Verdict(True, f"{shown} on {held.name}, and nothing is surely worse")
