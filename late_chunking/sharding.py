"""Documents spread over the processes of one launch, each with a device of its own, and gathered in order.

    torchrun --nproc-per-node 8 -m late_chunking embed FILE… --out vectors.parquet

``accelerate launch`` does the same on GPUs. Every process is given the same documents, and knows by
itself which are its own.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from accelerate.utils import gather_object

from late_chunking.ahead import document_of, plan_ahead
from late_chunking.boundaries import Chunking
from late_chunking.documents import Document, EmbeddedDocument, FailedDocument
from late_chunking.embedder import LateChunker, Outcome, check_stream
from late_chunking.encoding.device import launched
from late_chunking.errors import InvalidInput
from late_chunking.request import Request

# Of a round, which ends when the slowest process is done: enough for many batches each.
_CHARACTERS: Final = 2_097_152
_DOCUMENTS: Final = 1_024

_LEFT_AT_HOME: Final = Document("", id="-")

Round = list[tuple[int, Document | FailedDocument]]


def embed_sharded(
    chunker: LateChunker,
    documents: Iterable[Document | str],
    *,
    strategy: Chunking | None = None,
    on_error: str = "raise",
    **options: Any,  # noqa: ANN401 - as for embed_many
) -> Iterator[Outcome]:
    """Embed a stream of documents on all processes, as `LateChunker.embed_many` does on one.

    Every process has to call it, with equal documents and options, and to use up what it gives:
    on the main process that is all outcomes, in order, on the others nothing. What fails with
    ``on_error="raise"``, or in the iterable itself, is raised on each of them. A script should call
    `late_chunking.encoding.device.leave_launch` at its end.

    Args:
        chunker: this process's model; by default it lies on the process's own device.
        documents: as for `embed_many`.
        strategy: as for `embed_many`.
        on_error: as for `embed_many`.
        **options: as for `embed_many`.
    """
    state = launched()
    if state.num_processes == 1:
        yield from chunker.embed_many(documents, strategy=strategy, on_error=on_error, **options)
        return
    check_stream(documents, on_error)
    request = Request.of(strategy, options)
    for part in _rounds(documents, state.num_processes):
        own = share(part, state.num_processes)[state.process_index]
        outcomes = chunker.run(plan_ahead(chunker.planner, own, request))
        for outcome in _gathered(part, outcomes):
            if isinstance(outcome, FailedDocument) and on_error == "raise":
                raise outcome.error
            if state.is_main_process:
                yield outcome


def share(part: Round, processes: int) -> list[list[tuple[int, Document]]]:
    """Share documents out to processes, by characters: the longest first, each to the least laden."""
    documents = [(index, given) for index, given in part if isinstance(given, Document)]
    laden = [(0, process) for process in range(processes)]
    shares: list[list[tuple[int, Document]]] = [[] for _ in range(processes)]
    for index, document in sorted(documents, key=lambda numbered: -len(numbered[1].text)):
        load, process = laden[0]
        shares[process].append((index, document))
        heapq.heapreplace(laden, (load + max(len(document.text), 1), process))
    return [sorted(own, key=lambda numbered: numbered[0]) for own in shares]


def _rounds(documents: Iterable[Document | str], processes: int) -> Iterator[Round]:
    """Gather documents and their places into rounds; what is none takes its place as failed."""
    part: Round = []
    characters = 0
    try:
        for index, given in enumerate(documents):
            try:
                document = document_of(given, f"document {index}: ")
                part.append((index, document))
                characters += len(document.text)
            except InvalidInput as error:
                part.append((index, FailedDocument("", index, error)))
            if characters >= _CHARACTERS * processes or len(part) >= _DOCUMENTS * processes:
                yield part
                part, characters = [], 0
    except Exception:
        if part:
            yield part
        raise
    if part:
        yield part


def _gathered(part: Round, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """Give the outcomes of a round in order, from this process's and all others' own.

    They travel without their documents, which each process has.
    """
    bare: list[Outcome | Exception] = []
    try:
        bare += [
            replace(each, document=_LEFT_AT_HOME) if isinstance(each, EmbeddedDocument) else each for each in outcomes
        ]
    except Exception as error:  # the others would wait for this process: they are told instead
        bare.append(error)
    everyones: list[Outcome | Exception] = gather_object(bare)
    found: dict[int, Outcome] = {}
    for each in everyones:
        if isinstance(each, Exception):
            raise each
        found[each.index] = each
    for index, given in part:
        if isinstance(given, FailedDocument):
            yield given
        elif isinstance(outcome := found[index], EmbeddedDocument):
            yield replace(outcome, document=given)
        else:
            yield outcome
