"""The options that several commands of the command line share."""

from typing import Annotated

import typer

from late_chunking.boundaries import STRATEGIES

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
    str, typer.Option(envvar="MODEL_ID", help="'embedded', a model folder, or the id of a model on the hub.")
]
Revision = Annotated[str | None, typer.Option(envvar="REVISION", help="Branch, tag or commit of a model on the hub.")]
Device = Annotated[str | None, typer.Option(help="A torch device, such as cpu or cuda:0; found by itself otherwise.")]
Window = Annotated[int | None, typer.Option(help="Tokens read at once; by default what the model was trained on.")]
QueryPrompt = Annotated[str | None, typer.Option(help="Put before a query, instead of the model's own prompt.")]
DocumentPrompt = Annotated[str | None, typer.Option(help="Put before a document, instead of the model's own prompt.")]
Mode = Annotated[str, typer.Option(help="late: read the document, then pool. naive: read each chunk alone.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON lines, one document a line.")]
