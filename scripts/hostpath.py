"""All that is done for a document beside the encoder. Imported by bench.py."""

import gc
from collections.abc import Callable

import torch
from shapes import alternating
from splitting import Row, sample

from late_chunking.ahead import plan_ahead
from late_chunking.planning import Planner
from late_chunking.request import Request
from late_chunking.settings import Settings

_STRATEGIES = {
    "tokens": {"size": 128},
    "words": {"size": 100},
    "recursive": {"size": 128},
    "paragraphs": {"size": 128},
    "sentences": {"size": 128},
    "turns": {"size": 128},
    "hierarchy": {"sizes": [512, 128]},
}


def rows(quick: bool, times: int) -> list[Row]:
    """Compare planning a stream of documents with tokenizing it alone, strategy by strategy."""
    planner = Planner.load(Settings())
    text = sample(400_000 if quick else 2_500_000)
    documents = [text[start : start + 11_000] for start in range(0, len(text), 11_000)]

    def bare() -> None:
        planner.tokenizer.backend.encode_batch(documents, add_special_tokens=False)

    gc.freeze()  # as the command line and the server do once they have loaded
    runs = [bare, *(planned(planner, documents, name, options) for name, options in _STRATEGIES.items())]
    alone, *others = alternating(runs, torch.device("cpu"), times)
    return [
        (
            f"host_{name}",
            {"value": spent / alone, "at_most": 1.5 if name == "tokens" else 99.0},
            f"host path, {name}: {spent:.2f} s, {spent / alone:.2f} × tokenizing alone ({alone:.2f} s)",
        )
        for name, spent in zip(_STRATEGIES, others, strict=True)
    ]


def planned(planner: Planner, documents: list[str], name: str, options: dict[str, object]) -> Callable[[], None]:
    """Give the way from texts to sequences, with nothing behind it."""
    request = Request.of(name, options)

    def run() -> None:
        for _ in plan_ahead(planner, enumerate(documents), request):
            pass

    return run
