"""What the command line shows people: tables, cuts, progress."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from late_chunking.boundaries.strategy import TEXT
from late_chunking.documents import Chunk, Document, EmbeddedDocument
from late_chunking.writer import ContextWriter

if TYPE_CHECKING:
    from late_chunking.adaptation.verdict import Change
    from late_chunking.evaluation.intervals import Interval
    from late_chunking.evaluation.report import Row

__all__ = [
    "console_error",
    "counted",
    "escape",
    "print_changes",
    "print_chunks",
    "print_comparison",
    "print_evaluation",
    "print_few",
    "print_info",
    "print_suggestion",
    "print_usage",
    "progress",
    "training_progress",
]

_WIDE: Final = 160  # columns of a terminal that a table of all measures needs

console = Console(highlight=False, emoji=False)
console_error = Console(stderr=True, highlight=False, emoji=False)

Scores = npt.NDArray[np.float32]


def progress(documents: Iterable[Document], total: int) -> Iterator[Document]:
    """Show on a terminal's stderr how many documents have been taken; elsewhere nothing."""
    columns = (SpinnerColumn(), TextColumn("{task.completed}/{task.total} documents"), TimeElapsedColumn())
    with Progress(*columns, console=console_error, disable=not console_error.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=total)
        for document in documents:
            yield document
            bar.advance(task)


class TrainingProgress:
    """Shows steps and loss of a training on a terminal's stderr, and each evaluation on any."""

    def __init__(self, bar: Progress) -> None:
        """Begin."""
        self._bar = bar
        self._task = bar.add_task("", total=None, loss="")

    def stepped(self, done: int, total: int, loss: float) -> None:
        """Show a step."""
        self._bar.update(self._task, completed=done, total=total, loss=f"loss {loss:.3f}")

    def evaluated(self, step: int, measure: float) -> None:
        """Print what the held-back documents say."""
        self._bar.console.print(f"after {counted(step, 'step')}: nDCG@10 {measure:.3f} on held-back documents")


@contextmanager
def training_progress(*, shown: bool = True) -> Iterator[TrainingProgress]:
    """Show a training, or, in another process than the main one, nothing."""
    out = console_error if shown else Console(quiet=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.completed}/{task.total} steps"),
        TextColumn("{task.fields[loss]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=out, disable=not out.is_terminal, transient=True) as bar:
        yield TrainingProgress(bar)


def print_comparison(
    embedded: EmbeddedDocument, query: str, scores: Mapping[str, Scores], top: int | None = None
) -> None:
    """Print each chunk with its similarities to a query and its ranks by them, then the best chunks.

    Args:
        embedded: the document.
        query: what the similarities are to.
        scores: [C], by mode.
        top: show only chunks among the best so many by either mode.
    """
    ranks = {mode: _ranks(each) for mode, each in scores.items()}
    table = Table(title=f"similarity to “{escape(query)}”", title_justify="left", expand=True)
    table.add_column("chunk", justify="right")
    table.add_column("text", ratio=1, no_wrap=True, overflow="ellipsis")
    for mode in scores:
        table.add_column(mode, justify="right")
        table.add_column("rank", justify="right")
    for chunk in embedded.chunks:
        places = {mode: rank[chunk.index] for mode, rank in ranks.items()}
        if top is not None and min(places.values()) > top:
            continue
        cells = []
        for mode, each in scores.items():
            style = "bold green" if places[mode] == 1 else "default"
            cells += [f"[{style}]{each[chunk.index]:.3f}[/]", f"[{style}]{places[mode]}[/]"]
        table.add_row(str(chunk.index), escape(" ".join(chunk.text.split())), *cells)
    console.print(table)
    for mode, rank in ranks.items():
        for chunk in embedded.chunks:
            if rank[chunk.index] == 1:
                console.print(f"[green]best by {mode}:[/] {escape(chunk.text)}", soft_wrap=True)
    console.print(
        f"{counted(len(embedded.chunks), 'chunk')} of {escape(embedded.id)}, "
        f"{counted(embedded.token_count, 'token')} read in {counted(embedded.windows, 'window')}"
    )


def print_chunks(document: Document, chunks: Sequence[Chunk]) -> None:
    """Print a document's chunks, each under a line with its place and size."""
    console.print(f"[bold]{escape(document.id)}[/]: {counted(len(chunks), 'chunk')}", soft_wrap=True)
    indices = {chunk.id: chunk.index for chunk in chunks}
    for chunk in chunks:
        place = f"[{chunk.span.start}, {chunk.span.end})"
        size = counted(chunk.token_count, "token")
        more = f"  level {chunk.level}, in {indices[chunk.parent]}" if chunk.parent else ""
        more += f"  {chunk.kind}" if chunk.kind != TEXT else ""
        more += f"  {' › '.join(chunk.heading_path)}" if chunk.heading_path else ""
        more += f"  to be read in [{chunk.context.start}, {chunk.context.end})" if chunk.context else ""
        console.print(f"[cyan]── {chunk.index}  {escape(place)}  {size}{escape(more)}[/]", soft_wrap=True)
        console.print(escape(chunk.text), soft_wrap=True)


def print_info(found: Mapping[str, Any]) -> None:
    """Print what is known of a model, a line each."""
    table = Table(show_header=False, box=None)
    for name, value in found.items():
        if name != "notes":
            table.add_row(f"[cyan]{name}[/]", escape(_shown(name, value)))
    console.print(table)
    for note in found["notes"]:
        console.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)


def print_evaluation(title: str, rows: Sequence["Row"], measure: str) -> None:
    """Print a line an arm: what it cost, how well it did, and how far from its baseline."""
    wide = console.width >= _WIDE or not console.is_terminal
    shown = (measure, "recall@5", "hit@5", "mrr", "iou@5", "tokens@5") if wide else (measure, "tokens@5")
    table = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("arm", no_wrap=True)
    for name in ("chunks", "tokens", "passes", *shown, "in document", "difference"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        difference = "–" if row.arm.label == row.baseline else _colored(row.difference[measure])
        means = [_mean(row.corpus, name) for name in shown]
        table.add_row(
            escape(row.arm.label),
            *(str(row.chunks), f"{row.tokens:.0f}", str(row.passes), *means, _mean(row.document, measure)),
            difference,
        )
    _wide().print(table)


def _mean(means: Mapping[str, float], name: str) -> str:
    """Give a mean for people: tokens whole, measures to three places, a dash where there is none."""
    return "–" if name not in means else f"{means[name]:.0f}" if name.startswith("tokens") else f"{means[name]:.3f}"


def print_few() -> None:
    """Print that intervals mean little."""
    console.print("[yellow]note:[/] so few queries and documents: the intervals are narrower than they should be")


def print_usage(writer: ContextWriter | None) -> None:
    """Print on stderr what has been asked of the endpoint that writes contexts."""
    if writer is None:
        return
    usage = writer.usage
    console_error.print(
        f"contexts: {usage.requests} written, {usage.kept} kept from before; {usage.prompt_tokens} tokens read "
        f"({usage.cached_tokens} of them cached), {usage.completion_tokens} written"
        + ("" if usage.cost is None else f", cost {usage.cost:.4f}")
    )


def print_suggestion(label: str, why: str, *, sure: bool) -> None:
    """Print which arm to take."""
    console.print(f"[{'green' if sure else 'yellow'}]suggested:[/] {escape(label)} ({escape(why)})", soft_wrap=True)


def print_changes(changes: Sequence["Change"], why: str, *, better: bool) -> None:
    """Print what a training has changed, and whether its model may be called better."""
    table = Table(title="nDCG@10 over all chunks", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("data", "vectors"):
        table.add_column(name, no_wrap=True)
    for name in ("before", "after", "difference"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in changes:
        table.add_row(escape(one.data), one.mode, f"{one.before:.3f}", f"{one.after:.3f}", _colored(one.interval))
    _wide().print(table)
    style, word = ("green", "better:") if better else ("yellow", "not to be called better:")
    console.print(f"[{style}]{word}[/] {escape(why)}", soft_wrap=True)


def _colored(interval: "Interval") -> str:
    """Give a difference in green or red where it is sure."""
    style = "green" if interval.low > 0 else "red" if interval.high < 0 else "default"
    return f"[{style}]{escape(str(interval))}[/]"


def _wide() -> Console:
    """Give a console for wide tables: what is no terminal has no width, so they are not squeezed in files and pipes."""
    return console if console.is_terminal else Console(highlight=False, emoji=False, width=_WIDE)


def _ranks(scores: Scores) -> list[int]:
    """Give each score's rank, 1 the highest."""
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return [int(rank) for rank in ranks]


def counted(count: int, noun: str) -> str:
    """Give a number and its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _shown(name: str, value: object) -> str:
    """Give a value for people: prompts in quotes, since their spaces matter."""
    if name.endswith("_prompt") and value:
        return f"“{value}”"
    return "–" if value in (None, "") else str(value)
