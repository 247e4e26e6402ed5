"""The command line: ``late-chunking compare | chunk | embed | info | serve | evaluate | adapt``.

Exit codes: 0 done, 2 wrong usage or bad input, 130 interrupted, 1 anything else.
"""

import gc
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, NoReturn, cast

import typer

from late_chunking import __version__, display
from late_chunking.adaptation.command import adapt
from late_chunking.boundaries import make_strategies, needs_vectors
from late_chunking.dependencies import require
from late_chunking.documents import Document, EmbeddedDocument
from late_chunking.embedder import LateChunker
from late_chunking.encoding.device import launched, leave_launch
from late_chunking.errors import InvalidInput, InvalidParameter, LateChunkingError, ModelNotFound, UnsupportedModel
from late_chunking.evaluation.command import evaluate
from late_chunking.files import read_documents
from late_chunking.options import (
    AsJson,
    BlendWeight,
    ContextCache,
    ContextModel,
    ContextPrices,
    ContextUrl,
    Device,
    DocumentPrompt,
    Files,
    Mode,
    Model,
    Options,
    Overlap,
    QueryPrompt,
    Revision,
    Size,
    Strategy,
    Window,
    WindowContext,
    parameters_of,
    print_json,
    settings_of,
    writer_of,
)
from late_chunking.parquet import write_parquet
from late_chunking.planning import Planner
from late_chunking.records import chunk_record, document_record, embedded_record
from late_chunking.request import DEFAULT_BLEND_WEIGHT, DEFAULT_STRATEGY, Request
from late_chunking.serving import serve
from late_chunking.settings import DEFAULT_MODEL
from late_chunking.sharding import embed_sharded

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Embed documents chunk by chunk, each chunk's vector having read the whole document.",
)


@app.callback(invoke_without_command=True)
def configure(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Say the version, and end.")] = False,
) -> None:
    """Take the options that hold for every command; `main` looks for --debug."""
    if version:
        typer.echo(f"late-chunking {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def compare(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A UTF-8 text file; - is standard input.")],
    query: Annotated[str, typer.Option(help="What to look for.")],
    strategy: Strategy = DEFAULT_STRATEGY,
    size: Size = None,
    overlap: Overlap = None,
    options: Options = None,
    top: Annotated[int | None, typer.Option(min=1, help="Show only the best so many of each side.")] = None,
    model: Model = DEFAULT_MODEL,
    revision: Revision = None,
    device: Device = None,
    window: Window = None,
    query_prompt: QueryPrompt = None,
    document_prompt: DocumentPrompt = None,
    as_json: AsJson = False,
) -> None:
    """Show the similarity of each chunk to a query, late and naive side by side."""
    (document,) = read_documents([file])
    parameters = parameters_of(size, overlap, options)
    make_strategies(strategy, parameters)  # what is wrong with them is said before the model is loaded
    chunker = LateChunker(settings_of(model, revision, window, query_prompt, document_prompt, device))
    vector = chunker.embed_query(query)  # [D]
    late, naive = (chunker.embed(document, strategy=strategy, mode=mode, **parameters) for mode in ("late", "naive"))
    scores = {"late": late.vectors @ vector, "naive": naive.vectors @ vector}  # [C] each
    if as_json:
        chunks = [
            {**chunk_record(chunk), **{mode: float(score[chunk.index]) for mode, score in scores.items()}}
            for chunk in late.chunks
        ]
        print_json(document_record(document, 0, chunks, tokens=late.token_count, windows=late.windows, query=query))
    else:
        display.print_comparison(late, query, scores, top)


@app.command()
def chunk(
    files: Files,
    strategy: Strategy = DEFAULT_STRATEGY,
    size: Size = None,
    overlap: Overlap = None,
    options: Options = None,
    model: Model = DEFAULT_MODEL,
    revision: Revision = None,
    device: Device = None,
    window: Window = None,
    document_prompt: DocumentPrompt = None,
    as_json: AsJson = False,
) -> None:
    """Show where documents are cut; loads the model's weights only to cut by meaning."""
    request = Request.of(strategy, parameters_of(size, overlap, options))
    settings = settings_of(model, revision, window, None, document_prompt, device)
    reads = any(map(needs_vectors, request.strategies))
    cut = LateChunker(settings).cut if reads else Planner.load(settings).chunk
    for index, document in enumerate(read_documents(files)):
        chunks = cut(document, request, index)
        if as_json:
            print_json(document_record(document, index, [chunk_record(item) for item in chunks]))
        else:
            display.print_chunks(document, chunks)


@app.command()
def embed(
    files: Files,
    out: Annotated[Path | None, typer.Option(help="A Parquet file to write; by default vectors.parquet.")] = None,
    mode: Mode = "late",
    blend_weight: BlendWeight = DEFAULT_BLEND_WEIGHT,
    window_context: WindowContext = False,
    context_url: ContextUrl = None,
    context_model: ContextModel = None,
    context_cache: ContextCache = None,
    context_prices: ContextPrices = None,
    strategy: Strategy = DEFAULT_STRATEGY,
    size: Size = None,
    overlap: Overlap = None,
    options: Options = None,
    model: Model = DEFAULT_MODEL,
    revision: Revision = None,
    device: Device = None,
    window: Window = None,
    document_prompt: DocumentPrompt = None,
    as_json: AsJson = False,
) -> None:
    """Embed documents into a Parquet file, one row a chunk, or with --json onto standard output."""
    state = launched()
    if state.num_processes > 1 and "-" in files:
        raise InvalidParameter("-: standard input cannot be read by several processes")
    if out is None and not as_json:
        out = Path("vectors.parquet")
    if out is not None:
        _check_out(out)
    parameters = parameters_of(size, overlap, options)
    writer = writer_of(context_url, context_model, context_cache, context_prices)
    asked = {
        **parameters,
        "mode": mode,
        "blend_weight": blend_weight,
        "window_context": window_context,
        "context": writer,
    }
    Request.of(strategy, asked)  # what is wrong with them is said before the model is loaded
    chunker = LateChunker(settings_of(model, revision, window, None, document_prompt, device))
    gc.freeze()  # what is loaded stays; looking through it again and again costs a tenth of the host's time
    documents: Iterable[Document] = read_documents(files)
    if state.is_main_process:
        documents = display.progress(documents, len(files))
    embedded = cast(Iterable[EmbeddedDocument], embed_sharded(chunker, documents, strategy=strategy, **asked))
    if as_json:
        embedded = _echoing(embedded)
    count: int | None = None
    if out is not None and state.is_main_process:
        count = write_parquet(out, embedded, dimensions=chunker.head.dimensions, model=model)
    else:
        for _ in embedded:
            pass
    leave_launch()
    display.print_usage(writer)
    if count is not None:
        vectors = display.counted(count, "vector")
        display.console_error.print(f"{vectors} of {chunker.head.dimensions} dimensions → {display.escape(str(out))}")


@app.command()
def info(
    model: Model = DEFAULT_MODEL,
    revision: Revision = None,
    device: Device = None,
    window: Window = None,
    query_prompt: QueryPrompt = None,
    document_prompt: DocumentPrompt = None,
    as_json: AsJson = False,
) -> None:
    """Say what was found in a model folder: window, pooling, prompts, and how it is run."""
    found = asdict(LateChunker(settings_of(model, revision, window, query_prompt, document_prompt, device)).info())
    if as_json:
        print_json(found)
    else:
        display.print_info(found)


app.command()(serve)
app.command()(evaluate)
app.command()(adapt)


def main() -> None:
    """Run the command line; an error of ours is one line on stderr, and an exit code."""
    # Ended politely, a command still removes what it has half written.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except (typer.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if "--debug" in sys.argv:
            traceback.print_exc()
        usage = getattr(error, "format_message", None)
        if usage or isinstance(error, InvalidInput | ModelNotFound | UnsupportedModel):
            _fail(usage() if usage else str(error), 2)
        expected = isinstance(error, LateChunkingError | OSError)
        _fail(str(error) if expected else f"{type(error).__name__}: {error}", 1)


def _fail(message: str, code: int) -> NoReturn:
    """End with one line on stderr."""
    line = " ".join(message.split())
    display.console_error.print(f"[bold red]error:[/] {display.escape(line)}", soft_wrap=True)
    sys.exit(code)


def _check_out(out: Path) -> None:
    """Refuse a path that could not be written, before any work."""
    if out.suffix != ".parquet":
        raise InvalidParameter(f"--out must end in .parquet, got {str(out)!r}")
    if not out.parent.is_dir():
        raise InvalidParameter(f"--out {out}: there is no folder {out.parent}")
    if out.is_dir():
        raise InvalidParameter(f"--out {out}: it is a folder")
    require("pyarrow", purpose="writing Parquet", extra="arrow")


def _echoing(embedded: Iterable[EmbeddedDocument]) -> Iterator[EmbeddedDocument]:
    """Print each document as JSON on its way."""
    for document in embedded:
        print_json(embedded_record(document))
        yield document
