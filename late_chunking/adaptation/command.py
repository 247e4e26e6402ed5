"""``late-chunking adapt``."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from late_chunking import display
from late_chunking.adaptation.plan import PRECISIONS, Training
from late_chunking.adaptation.questions import INSTRUCTION, cloze_queries, written_questions
from late_chunking.adaptation.result import Outcome, prepared, write
from late_chunking.adaptation.trainer import Adapted, Trainer
from late_chunking.adaptation.training_set import TrainingSet, check_documents, split
from late_chunking.adaptation.verdict import changes, judge, results_of
from late_chunking.dependencies import require
from late_chunking.embedder import LateChunker
from late_chunking.encoding.device import launched, leave_launch
from late_chunking.errors import InvalidParameter
from late_chunking.evaluation.arms import Cutting, make_cuttings
from late_chunking.evaluation.dataset import Dataset, read_dataset
from late_chunking.options import (
    Device,
    DocumentPrompt,
    Model,
    Options,
    QueryPrompt,
    Revision,
    Window,
    parameters_of,
    print_json,
    settings_of,
)
from late_chunking.planning import Planner
from late_chunking.request import DEFAULT_STRATEGY
from late_chunking.settings import DEFAULT_MODEL, cache_folder
from late_chunking.writer import ContextWriter

# Where queries come from, and what a model's card says of it.
_QUERIES: Final = {
    "given": "",
    "written": "queries written by a language model",
    "sentences": "sentences taken out of it as queries",
}
_DEFAULTS: Final = Training()
_QUESTIONS: Final = 16


def adapt(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A folder of documents and queries, as for evaluate.")],
    out: Annotated[Path, typer.Option(help="The folder to write; one of a run that was stopped is gone on with.")],
    model: Model = DEFAULT_MODEL,
    whole: Annotated[
        bool, typer.Option("--whole", help="Train all weights, not low-rank matrices beside them.")
    ] = False,
    adapter: Annotated[
        bool, typer.Option("--adapter", help="Write the matrices alone, to be merged at load, not a whole model.")
    ] = False,
    queries: Annotated[
        str,
        typer.Option(
            help="given: those of DATA. written: by a language model (--questions-url). "
            "sentences: each taken out of its document, and looked for where it was."
        ),
    ] = "given",
    questions_url: Annotated[
        str | None, typer.Option(envvar="QUESTIONS_URL", help="An OpenAI-compatible endpoint (…/v1) that writes them.")
    ] = None,
    questions_model: Annotated[
        str | None, typer.Option(envvar="QUESTIONS_MODEL", help="The language model that writes them.")
    ] = None,
    questions: Annotated[
        int | None, typer.Option(min=1, help="Written questions to a document, at most; by default 16.")
    ] = None,
    held_back: Annotated[
        Path | None, typer.Option(help="Documents and queries to evaluate by; by default a tenth of DATA.")
    ] = None,
    other: Annotated[
        list[Path] | None, typer.Option(metavar="DATA", help="Another domain to report on; may be repeated.")
    ] = None,
    strategy: Annotated[str, typer.Option(help="Where reports cut.")] = DEFAULT_STRATEGY,
    size: Annotated[int | None, typer.Option(help="Units a chunk in reports; by default the strategy's own.")] = None,
    options: Options = None,
    rank: Annotated[int | None, typer.Option(min=1, help="Of the low-rank matrices; by default 16.")] = None,
    epochs: Annotated[float, typer.Option(help="How often each document is read.")] = _DEFAULTS.epochs,
    documents_per_step: Annotated[
        int, typer.Option(min=1, help="Documents whose chunks are told apart at once.")
    ] = _DEFAULTS.documents_per_step,
    learning_rate: Annotated[
        float | None, typer.Option(help="At its highest; by default 1e-3, of whole weights 3e-5.")
    ] = None,
    naive_share: Annotated[
        float, typer.Option(help="Share of steps in which chunks are read alone.")
    ] = _DEFAULTS.naive_share,
    evaluate_every: Annotated[
        int, typer.Option(min=1, help="Steps between two evaluations on held-back documents.")
    ] = _DEFAULTS.evaluate_every,
    patience: Annotated[int, typer.Option(min=1, help="Evaluations without a gain that end it.")] = _DEFAULTS.patience,
    seed: Annotated[int, typer.Option(min=0, help="Of everything that is drawn.")] = _DEFAULTS.seed,
    precision: Annotated[str, typer.Option(help=f"Of the computation: {', '.join(PRECISIONS)}.")] = "auto",
    revision: Revision = None,
    device: Device = None,
    window: Window = None,
    query_prompt: QueryPrompt = None,
    document_prompt: DocumentPrompt = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one line of JSON.")] = False,
) -> None:
    """Train a model for late chunking on your own documents and queries."""
    training = Training(
        seed=seed,
        epochs=epochs,
        documents_per_step=documents_per_step,
        naive_share=naive_share,
        rank=None if whole else rank or _DEFAULTS.rank,
        learning_rate=learning_rate,
        evaluate_every=evaluate_every,
        patience=patience,
        precision=precision,
    )
    _check(whole=whole, adapter=adapter, rank=rank, queries=queries, questions=questions, device=device)
    writer = _writer(queries, questions_url, questions_model)
    settings = settings_of(model, revision, window, query_prompt, document_prompt, device)
    cuttings = make_cuttings([strategy], [] if size is None else [size], parameters_of(None, None, options))
    require("ir_measures", purpose="measuring", extra="evaluation")
    # What is wrong with the data is said before anything is loaded or written.
    dataset = read_dataset(data, asked=queries == "given")
    held = None if held_back is None else read_dataset(held_back)
    others = [read_dataset(path) for path in other or []]
    if held is None and queries == "given":
        dataset, held = split(dataset, seed)
    if queries == "given":
        TrainingSet.of(dataset)
    if held is not None:
        check_documents(held, "to evaluate by")
    prepared(out)
    with display.console_error.status("loading") as status:
        planner = Planner.load(settings)
        if planner.folder.adapter is not None and adapter:
            raise InvalidParameter(f"--adapter: {model!r} is one itself; take {planner.folder.adapter.base!r}")
        dataset = _with_queries(dataset, queries, planner, writer, questions or _QUESTIONS, seed, status.update)
    display.print_usage(writer)
    if held is None:
        dataset, held = split(dataset, seed)
    trainer = Trainer(planner, dataset, held, training)
    is_main = launched().is_main_process
    with display.training_progress(shown=is_main) as told:
        adapted = trainer.train(out, stepped=told.stepped, evaluated=told.evaluated)
    leave_launch()
    if is_main:
        learnt = dataset.name if queries == "given" else f"{dataset.name} ({_QUERIES[queries]})"
        outcome = _finished(adapted, training, out, [held, *others], cuttings, learnt, only_adapter=adapter)
        if as_json:
            print_json(outcome.record())
        else:
            display.print_changes(outcome.changes, outcome.verdict.why, better=outcome.verdict.better)


def _check(
    *, whole: bool, adapter: bool, rank: int | None, queries: str, questions: int | None, device: str | None
) -> None:
    """Refuse options that contradict each other."""
    if whole and (adapter or rank is not None):
        raise InvalidParameter("--whole trains no low-rank matrices: give neither --adapter nor --rank with it")
    if questions is not None and queries != "written":
        raise InvalidParameter(f"--questions goes with --queries written, not with {queries!r}")
    if device is not None and launched().num_processes > 1:
        raise InvalidParameter(f"--device {device}: each of several processes has a device of its own")
    if queries not in _QUERIES:
        raise InvalidParameter(f"queries must be one of {', '.join(_QUERIES)}, got {queries!r}")


def _with_queries(
    dataset: Dataset,
    queries: str,
    planner: Planner,
    writer: ContextWriter | None,
    questions: int,
    seed: int,
    progress: Callable[[str], None],
) -> Dataset:
    """Give documents that have none their queries."""
    if queries == "sentences":
        return cloze_queries(dataset, planner, seed=seed)
    if writer is None:
        return dataset
    with launched().main_process_first():  # the others find its answers where they are kept
        return written_questions(dataset, planner, writer, per_document=questions, seed=seed, progress=progress)


def _finished(
    adapted: Adapted,
    training: Training,
    out: Path,
    datasets: list[Dataset],
    cuttings: tuple[Cutting, ...],
    learnt: str,
    *,
    only_adapter: bool,
) -> Outcome:
    """Write the model, measure what was written against what was before, and report."""
    with display.console_error.status("") as status:
        settings = adapted.planner.settings
        count = adapted.trainable.count
        write(adapted, out, only_adapter=only_adapter)
        before = results_of(LateChunker(settings), datasets, cuttings, status.update)
        # As anyone loads it: window and prompts are what the folder says.
        written = replace(settings, model=str(out), revision=None, window=None, prompts=None)
        after = results_of(LateChunker(written), datasets, cuttings, status.update)
    found = changes(datasets, before, after)
    outcome = Outcome(
        settings.model,
        learnt,
        training,
        count,
        adapted.end,
        found,
        judge(found, datasets[0]),
        cuttings[0].name,
    )
    outcome.save(out)
    return outcome


def _writer(queries: str, url: str | None, model: str | None) -> ContextWriter | None:
    """Make what writes questions, if they are to be written; its key is in the environment, QUESTIONS_API_KEY."""
    if queries != "written":
        return None
    if url is None or model is None:
        raise InvalidParameter("--queries written needs --questions-url and --questions-model")
    key = os.environ.get("QUESTIONS_API_KEY")
    kept = cache_folder() / "questions.sqlite"
    return ContextWriter(url, model, api_key=key, cache=kept, instruction=INSTRUCTION)
