"""The options that several commands of the command line share, and what becomes of them."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from late_chunking.boundaries import STRATEGIES
from late_chunking.errors import InvalidParameter
from late_chunking.settings import Settings, cache_folder
from late_chunking.writer import ContextWriter

Files = Annotated[list[str], typer.Argument(metavar="FILE…", help="UTF-8 text files; - is standard input.")]
Strategy = Annotated[str, typer.Option(help=f"Where to cut: {', '.join(STRATEGIES)}.")]
Size = Annotated[int | None, typer.Option(help="Units (tokens) a chunk; by default the strategy's own.")]
Overlap = Annotated[
    str | None, typer.Option(metavar="N|N%", help="Units, or a share of the size, that a chunk repeats.")
]
Options = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=JSON", help="Any option of the strategy; may be repeated.")
]
Model = Annotated[
    str,
    typer.Option(envvar="MODEL_ID", help="'embedded', 'embedded-late', or the folder or hub id of a model or adapter."),
]
Revision = Annotated[str | None, typer.Option(envvar="REVISION", help="Branch, tag or commit of a model on the hub.")]
Device = Annotated[str | None, typer.Option(help="A torch device, such as cpu or cuda:0; found by itself otherwise.")]
Window = Annotated[int | None, typer.Option(help="Tokens read at once; by default what the model was trained on.")]
QueryPrompt = Annotated[str | None, typer.Option(help="Put before a query, instead of the model's own prompt.")]
DocumentPrompt = Annotated[str | None, typer.Option(help="Put before a document, instead of the model's own prompt.")]
Mode = Annotated[
    str,
    typer.Option(
        help="late: read the document, then pool. naive: read each chunk alone. blend: weigh both. "
        "contextual: read each chunk alone behind title, headings and context."
    ),
]
BlendWeight = Annotated[float, typer.Option(help="Weight of the late vectors in a blend, from 0 to 1.")]
WindowContext = Annotated[
    bool, typer.Option("--window-context", help="Begin later windows of a document with its title and headings.")
]
ContextUrl = Annotated[
    str | None,
    typer.Option(envvar="CONTEXT_URL", help="An OpenAI-compatible endpoint (…/v1) that writes contexts."),
]
ContextModel = Annotated[str | None, typer.Option(envvar="CONTEXT_MODEL", help="The language model that writes them.")]
ContextPrices = Annotated[
    str | None,
    typer.Option(metavar="READ,CACHED,WRITTEN", envvar="CONTEXT_PRICES", help="What a million tokens cost."),
]
ContextCache = Annotated[
    Path | None, typer.Option(envvar="CONTEXT_CACHE", help="Where they are kept; by default in the user's cache.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON lines, one document a line.")]


def settings_of(
    model: str,
    revision: str | None,
    window: int | None,
    query_prompt: str | None,
    document_prompt: str | None,
    device: str | None = None,
) -> Settings:
    """Collect the settings of a model."""
    given = {"query": query_prompt, "document": document_prompt}
    prompts = {kind: prompt for kind, prompt in given.items() if prompt is not None}
    return Settings(model=model, revision=revision, device=device, window=window, prompts=prompts or None)


def parameters_of(size: int | None, overlap: str | None, options: list[str] | None) -> dict[str, Any]:
    """Collect the options of a strategy."""
    parameters: dict[str, Any] = {}
    for option in options or []:
        name, equals, value = option.partition("=")
        try:
            if not (name and equals):
                raise ValueError("NAME=JSON is needed")
            parameters[name] = json.loads(value)
        except (ValueError, RecursionError) as error:
            hint = f"a string needs quotes of its own: --set '{name}=\"…\"'"
            raise InvalidParameter(f"--set {option}: {error}; {hint}") from error
    overlapping = int(overlap) if overlap and overlap.isdecimal() else overlap
    for name, given in (("size", size), ("overlap", overlapping)):
        if given is None:
            continue
        if name in parameters:
            raise InvalidParameter(f"{name} is given twice: --{name} {given} and --set {name}={parameters[name]}")
        parameters[name] = given
    return parameters


def print_json(record: dict[str, Any]) -> None:
    """Print one record on one line."""
    typer.echo(json.dumps(record, ensure_ascii=False))


def writer_of(url: str | None, model: str | None, cache: Path | None, prices: str | None) -> ContextWriter | None:
    """Make what writes contexts, if an endpoint is given; its key is in the environment, CONTEXT_API_KEY."""
    if url is None and model is not None:
        raise InvalidParameter("--context-model needs --context-url: the endpoint that has it")
    if url is None:
        return None
    if model is None:
        raise InvalidParameter("--context-url needs --context-model: the language model's name")
    try:
        numbers = None if prices is None else [float(price) for price in prices.split(",")]
    except ValueError:
        numbers = []
    if numbers is not None and len(numbers) != 3:
        raise InvalidParameter(f"--context-prices must be three numbers with commas between, got {prices!r}")
    key = os.environ.get("CONTEXT_API_KEY")
    kept = cache or cache_folder() / "contexts.sqlite"
    paid = None if numbers is None else (numbers[0], numbers[1], numbers[2])
    return ContextWriter(url, model, api_key=key, cache=kept, prices=paid)
