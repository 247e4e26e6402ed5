"""The folder that a training leaves behind: the model, its report and its card."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from late_chunking.adaptation.checkpoint import FILE as CHECKPOINT
from late_chunking.adaptation.checkpoint import PARTIAL, Checkpoint
from late_chunking.adaptation.plan import Training
from late_chunking.adaptation.saving import save_adapter, save_model
from late_chunking.adaptation.trainer import Adapted
from late_chunking.adaptation.verdict import Change, Verdict
from late_chunking.encoding.adapter import CONFIG
from late_chunking.errors import InvalidParameter

REPORT: Final = "report.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is to be known of a trained model.

    Attributes:
        base: the model that was trained.
        data: what it was trained on.
        training: how.
        parameters: how many numbers were trained.
        end: where the run ended.
        changes: what it does on held-back documents (first) and others, before and after.
        verdict: whether it may be called better.
        cutting: where the reports' chunks were cut.
    """

    base: str
    data: str
    training: Training
    parameters: int
    end: Checkpoint
    changes: Sequence[Change]
    verdict: Verdict
    cutting: str

    def record(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        return {
            "base_model": self.base,
            "data": self.data,
            "training": self.training.record(),
            "parameters": self.parameters,
            "steps": self.end.step,
            "best_step": self.end.best_step,
            "seconds": round(self.end.seconds, 1),
            "losses": [round(loss, 4) for loss in self.end.losses],
            "held_back": {str(step): round(measure, 4) for step, measure in self.end.measures.items()},
            "chunks": self.cutting,
            "changes": [change.record() for change in self.changes],
            "better": self.verdict.better,
            "why": self.verdict.why,
        }

    def save(self, folder: Path) -> None:
        """Write report and card, and remove what was needed to go on."""
        report = json.dumps(self.record(), indent=1, ensure_ascii=False)
        (folder / REPORT).write_text(report + "\n", encoding="utf-8")
        card = self._card(is_adapter=(folder / CONFIG).is_file())
        (folder / "README.md").write_text(card, encoding="utf-8")
        for name in (CHECKPOINT, PARTIAL):
            (folder / name).unlink(missing_ok=True)

    def _card(self, *, is_adapter: bool) -> str:
        """Write what a person should know of the model."""
        how = "whole weights" if self.training.rank is None else f"low-rank matrices of rank {self.training.rank}"
        lines = [
            "---",
            f"library_name: {'peft' if is_adapter else 'sentence-transformers'}",
            "pipeline_tag: sentence-similarity",
            "tags: [feature-extraction, late-chunking]",
            "---",
            f"# {self.base}, trained for late chunking",
            "",
            f"{self.base}, trained on {self.data} with `late-chunking adapt`: {how} ({self.parameters:,} numbers), "
            f"{self.end.step} steps, of which the first {self.end.best_step} are kept, seed {self.training.seed}.",
            "",
            f"nDCG@10 over the chunks of all documents, `{self.cutting}`, before and after, with the 95 % interval of "
            "the difference; the first data set was held back from training, but which step is kept was chosen by it.",
            "",
            "| data | vectors | before | after | difference |",
            "|---|---|---|---|---|",
            *(
                f"| {one.data} | {one.mode} | {one.before:.3f} | {one.after:.3f} | {one.interval} |"
                for one in self.changes
            ),
            "",
            f"**{'Better' if self.verdict.better else 'Not to be called better'}**: {self.verdict.why}.",
        ]
        return "\n".join(lines) + "\n"


def prepared(folder: Path) -> None:
    """Make the folder, unless it holds something other than a run to go on with.

    Raises:
        InvalidParameter: if it does, or cannot be made.
    """
    if folder.exists() and not folder.is_dir():
        raise InvalidParameter(f"--out {folder}: it is no folder")
    found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if found - {PARTIAL} and CHECKPOINT not in found:
        raise InvalidParameter(f"--out {folder}: it is not empty, and holds no run to go on with")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InvalidParameter(f"--out {folder}: it cannot be made: {error}") from error


def write(adapted: Adapted, folder: Path, *, only_adapter: bool) -> None:
    """Write the model; the run that led to it can be gone on with until its report is written, too."""
    if only_adapter:
        save_adapter(adapted, folder)
    else:
        save_model(adapted, folder)
