"""One page with everything on it: table, plots, and the queries that went worst."""

import io
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np

from late_chunking.dependencies import require
from late_chunking.evaluation.comparison import ArmResult
from late_chunking.evaluation.dataset import Dataset
from late_chunking.evaluation.report import MEASURE, Row, rows, suggest

_WORST: Final = 20
_LONGEST: Final = 400  # characters of a text that are shown


def write_page(path: Path, results: Sequence[ArmResult], dataset: Dataset, *, baseline: str | None = None) -> None:
    """Write a page that needs nothing beside it.

    Raises:
        MissingDependency: without matplotlib and Jinja.
        OSError: if it cannot be written.
    """
    jinja = require("jinja2", purpose="the page of an evaluation", extra="evaluation")
    template = jinja.Template(
        files("late_chunking.evaluation").joinpath("page.html").read_text("utf-8"), autoescape=True, trim_blocks=True
    )
    made = rows(results, dataset, baseline=baseline)
    page = template.render(
        dataset=dataset,
        rows=made,
        measure=MEASURE,
        measures=list(made[0].corpus),
        suggestion=suggest(results, dataset),
        quality=_svg(_quality, made),
        intervals=_svg(_intervals, made),
        cost=_svg(_cost, made),
        worst=_worst(results, dataset),
    )
    path.write_text(page, encoding="utf-8")


def _svg(draw: Any, made: Sequence[Row]) -> str:  # noqa: ANN401 - a function of matplotlib's axes
    """Draw a plot, and give it as markup to stand in the page."""
    figure_class = require("matplotlib.figure", purpose="the page of an evaluation", extra="evaluation").Figure
    figure = figure_class(figsize=(7.5, 4), layout="constrained")
    draw(figure.subplots(), made)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    svg = out.getvalue()
    return svg[svg.index("<svg") :]


def _modes(made: Sequence[Row]) -> dict[str, list[Row]]:
    """Gather rows by what a line of a plot stands for."""
    lines: dict[str, list[Row]] = {}
    for row in made:
        line = row.arm.label.replace(row.arm.cutting.name, row.arm.cutting.strategy.name)
        lines.setdefault(line, []).append(row)
    return lines


def _quality(axes: Any, made: Sequence[Row]) -> None:  # noqa: ANN401
    """Draw quality against the size of chunks."""
    for name, line in _modes(made).items():
        line = sorted(line, key=lambda row: row.tokens)
        axes.plot([row.tokens for row in line], [row.corpus[MEASURE] for row in line], marker="o", label=name)
    axes.set_xlabel("tokens a chunk")
    axes.set_ylabel(MEASURE)
    axes.legend(fontsize="x-small")


def _intervals(axes: Any, made: Sequence[Row]) -> None:  # noqa: ANN401
    """Draw differences with their intervals."""
    shown = [row for row in made if row.arm.label != row.baseline]
    for place, row in enumerate(reversed(shown)):
        one = row.difference[MEASURE]
        axes.errorbar(one.mean, place, xerr=[[one.mean - one.low], [one.high - one.mean]], marker="o", color="C0")
    axes.set_yticks(range(len(shown)), [row.arm.label for row in reversed(shown)], fontsize="x-small")
    axes.axvline(0, color="grey", linewidth=1)
    axes.set_xlabel(f"{MEASURE}: difference to the baseline, 95 % interval")


def _cost(axes: Any, made: Sequence[Row]) -> None:  # noqa: ANN401
    """Draw quality against what the first five chunks put into a prompt."""
    for name, line in _modes(made).items():
        known = [row for row in line if "tokens@5" in row.corpus]
        axes.scatter([row.corpus["tokens@5"] for row in known], [row.corpus[MEASURE] for row in known], label=name)
    axes.set_xlabel("tokens of the first five chunks")
    axes.set_ylabel(MEASURE)
    axes.legend(fontsize="x-small")


def _worst(results: Sequence[ArmResult], dataset: Dataset) -> list[dict[str, Any]]:
    """Give the queries that the best arm by mean did worst on, with what it found instead."""
    best = max(results, key=lambda one: float(one.corpus[MEASURE].mean()))
    texts = {document.id: document.text for document in dataset.documents}
    found = []
    for place in np.argsort(best.corpus[MEASURE], kind="stable")[:_WORST].tolist():
        query = dataset.queries[place]
        found.append(
            {
                "arm": best.arm.label,
                "query": query.text,
                "score": float(best.corpus[MEASURE][place]),
                "wanted": [
                    (name, texts[name][start:end][:_LONGEST])
                    for name, spans in query.gold.items()
                    for start, end in spans[:1]
                ],
                "found": [(name, texts[name][slice(*span)][:_LONGEST]) for name, span in best.top[place][:3]],
            }
        )
    return found
