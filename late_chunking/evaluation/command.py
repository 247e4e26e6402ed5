"""``late-chunking evaluate``."""

from pathlib import Path
from typing import Annotated, Final

import typer

from late_chunking import display
from late_chunking.embedder import LateChunker
from late_chunking.errors import InvalidParameter
from late_chunking.evaluation.arms import CONTROL, make_arms, make_cuttings
from late_chunking.evaluation.comparison import ArmResult, compare
from late_chunking.evaluation.dataset import Dataset, read_dataset
from late_chunking.evaluation.page import write_page
from late_chunking.evaluation.report import MEASURE, Suggestion, are_few, groups, report, rows, suggest
from late_chunking.evaluation.vectors import Store
from late_chunking.options import (
    ContextCache,
    ContextModel,
    ContextPrices,
    ContextUrl,
    Device,
    DocumentPrompt,
    Model,
    Options,
    QueryPrompt,
    Revision,
    Window,
    WindowContext,
    parameters_of,
    print_json,
    settings_of,
    writer_of,
)
from late_chunking.request import DEFAULT_STRATEGY
from late_chunking.settings import DEFAULT_MODEL, cache_folder

_MODES: Final = "naive,late,blend"
_WEIGHTS: Final = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def evaluate(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A folder of documents and queries.jsonl.")],
    strategy: Annotated[str, typer.Option(help="Strategies, with commas between.")] = DEFAULT_STRATEGY,
    size: Annotated[
        str | None, typer.Option(help="Sizes, with commas between; by default each strategy's own.")
    ] = None,
    mode: Annotated[str, typer.Option(help=f"Modes: late, naive, blend, contextual, bm25, {CONTROL}.")] = _MODES,
    options: Options = None,
    bm25: Annotated[
        bool, typer.Option("--bm25", help="Also rank by BM25, and fuse each arm's ranking with it.")
    ] = False,
    blend_weight: Annotated[str | None, typer.Option(help="Weights of the late vectors in a blend.")] = None,
    window_context: WindowContext = False,
    baseline: Annotated[
        str | None, typer.Option(help="The arm that differences are to, as the table calls it.")
    ] = None,
    by: Annotated[str | None, typer.Option(metavar="FIELD", help="Also report by a field of the documents.")] = None,
    suggesting: Annotated[
        bool, typer.Option("--suggest", help="Say which arm to take, trying several weights.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="A page to write, with plots and the worst queries.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where vectors are kept; by default in the user's cache.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Keep no vectors.")] = False,
    model: Model = DEFAULT_MODEL,
    against: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Compare a second model over the same arms.")
    ] = None,
    context_url: ContextUrl = None,
    context_model: ContextModel = None,
    context_cache: ContextCache = None,
    context_prices: ContextPrices = None,
    revision: Revision = None,
    device: Device = None,
    window: Window = None,
    query_prompt: QueryPrompt = None,
    document_prompt: DocumentPrompt = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one line of JSON.")] = False,
) -> None:
    """Compare strategies, sizes and modes on your own documents and queries."""
    dataset = read_dataset(data)
    parameters = parameters_of(None, None, options)
    cuttings = make_cuttings(_listed(strategy), [_integer(each) for each in _listed(size or "")], parameters)
    weights = [_number(each) for each in _listed(blend_weight or "")] or (_WEIGHTS if suggesting else ())
    modes = [*_listed(mode), *(["bm25"] if bm25 else [])]
    writer = writer_of(context_url, context_model, context_cache, context_prices)
    store = Store(None if no_cache else cache or cache_folder() / "evaluation")
    # What is wrong with all this is said before a model is loaded.
    make_arms(model, cuttings, modes, weights, fuse=bm25)
    if by is not None:
        groups(dataset, by)
    if against == model:
        raise InvalidParameter(f"--against {against}: it is the same model")
    if html is not None and (html.is_dir() or not html.parent.is_dir()):
        raise InvalidParameter(f"--html {html}: there is no such place for a file")
    results: list[ArmResult] = []
    with display.console_error.status("") as status:
        for name in [model, *([against] if against else [])]:
            status.update(f"loading {name}")
            chunker = LateChunker(settings_of(name, revision, window, query_prompt, document_prompt, device))
            arms = make_arms(name, cuttings, modes, weights, fuse=bm25, named=against is not None)
            results += compare(
                chunker,
                dataset,
                arms,
                store,
                window_context=window_context,
                context=writer,
                progress=status.update,
            )
    display.print_usage(writer)
    if html is not None:
        write_page(html, results, dataset, baseline=baseline)
    suggestion = suggest(results, dataset) if suggesting else None
    if as_json:
        record = report(results, dataset, baseline=baseline, by=by)
        print_json(record if suggestion is None else {**record, "suggestion": suggestion.label, "why": suggestion.why})
        return
    _print(results, dataset, baseline, by, suggestion)


def _print(
    results: list[ArmResult], dataset: Dataset, baseline: str | None, by: str | None, suggestion: Suggestion | None
) -> None:
    """Print tables and suggestions."""
    counted = f"{display.counted(len(dataset.documents), 'document')}, {len(dataset.queries)} queries"
    display.print_evaluation(f"{dataset.name}: {counted}", rows(results, dataset, baseline=baseline), MEASURE)
    if are_few(len({query.document for query in dataset.queries}), len(dataset.queries)):
        display.print_few()
    if suggestion is not None:
        display.print_suggestion(suggestion.label, suggestion.why, sure=suggestion.sure)
    for value, places in (groups(dataset, by) if by else {}).items():
        made = rows(results, dataset, baseline=baseline, only=places)
        display.print_evaluation(f"{by} {value}: {len(places)} queries", made, MEASURE)
        if suggestion is not None:
            own = suggest(results, dataset, only=places)
            display.print_suggestion(own.label, own.why, sure=own.sure)


def _listed(given: str) -> list[str]:
    """Take a list with commas apart."""
    return [each.strip() for each in given.split(",") if each.strip()]


def _integer(given: str) -> int:
    """Read a size."""
    if not given.isdecimal() or int(given) < 1:
        raise InvalidParameter(f"size must be integers of at least 1 with commas between, got {given!r}")
    return int(given)


def _number(given: str) -> float:
    """Read a weight."""
    try:
        weight = float(given)
    except ValueError:
        weight = -1.0
    if not 0 <= weight <= 1:
        raise InvalidParameter(f"blend_weight must be numbers from 0 to 1 with commas between, got {given!r}")
    return weight
