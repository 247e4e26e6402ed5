"""What the command line shows people: tables, cuts, progress."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from late_chunking.documents import Chunk, Document, EmbeddedDocument

__all__ = ["console_error", "escape", "print_chunks", "print_comparison", "print_info", "progress"]

console = Console(highlight=False)
console_error = Console(stderr=True, highlight=False)

Scores = npt.NDArray[np.float32]


def progress(documents: Iterable[Document], total: int) -> Iterator[Document]:
    """Show on a terminal's stderr how many documents have been taken; elsewhere nothing."""
    columns = (SpinnerColumn(), TextColumn("{task.completed}/{task.total} documents"), TimeElapsedColumn())
    with Progress(*columns, console=console_error, disable=not console_error.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=total)
        for document in documents:
            yield document
            bar.advance(task)


def print_comparison(embedded: EmbeddedDocument, query: str, late: Scores, naive: Scores) -> None:
    """Print each chunk with its two similarities to the query, and its rank by each.

    Args:
        embedded: the document.
        query: what the similarities are to.
        late: [C].
        naive: [C].
    """
    table = Table(title=f"similarity to “{escape(query)}”, and rank", title_justify="left", expand=True)
    table.add_column("chunk", justify="right")
    table.add_column("text", ratio=1, no_wrap=True, overflow="ellipsis")
    for name in ("late", "", "naive", ""):
        table.add_column(name, justify="right")
    late_ranks, naive_ranks = _ranks(late), _ranks(naive)
    for chunk in embedded.chunks:
        cells = []
        for scores, ranks in ((late, late_ranks), (naive, naive_ranks)):
            style = "bold green" if ranks[chunk.index] == 1 else "default"
            cells += [f"[{style}]{scores[chunk.index]:.3f}[/]", f"[dim]{ranks[chunk.index]}[/]"]
        table.add_row(str(chunk.index), escape(" ".join(chunk.text.split())), *cells)
    console.print(table)
    console.print(
        f"{len(embedded.chunks)} chunks of {escape(embedded.id)}, "
        f"{embedded.token_count} tokens read in {_counted(embedded.windows, 'window')}"
    )


def print_chunks(document: Document, chunks: Sequence[Chunk]) -> None:
    """Print a document's chunks, each under a line with its place and size."""
    console.print(f"[bold]{escape(document.id)}[/]: {_counted(len(chunks), 'chunk')}", soft_wrap=True)
    for chunk in chunks:
        place = f"[{chunk.span.start}, {chunk.span.end})"
        size = _counted(chunk.token_count, "token")
        parent = f"  parent {chunk.parent}" if chunk.parent else ""
        console.print(f"[cyan]── {chunk.index}  {escape(place)}  {size}{parent}[/]", soft_wrap=True)
        console.print(escape(chunk.text), soft_wrap=True)


def print_info(found: Mapping[str, Any]) -> None:
    """Print what is known of a model, a line each."""
    table = Table(show_header=False, box=None)
    for name, value in found.items():
        if name != "notes":
            table.add_row(f"[cyan]{name}[/]", escape(repr(value) if name.endswith("_prompt") else str(value)))
    console.print(table)
    for note in found["notes"]:
        console.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)


def _ranks(scores: Scores) -> list[int]:
    """Give each score's rank, 1 the highest."""
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return [int(rank) for rank in ranks]


def _counted(count: int, noun: str) -> str:
    """Give a number and its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
