"""A stream of documents → plans, made ahead of the encoder on threads of their own.

Groups of documents are tokenized (the tokenizer spreads a group over the cores) while another
thread cuts the group before them and the caller's is with the encoder. Only the caller's thread
takes documents from the caller's iterable.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from late_chunking.documents import Document, FailedDocument
from late_chunking.errors import InvalidDocument, InvalidInput
from late_chunking.planning import Planner
from late_chunking.plans import Plan
from late_chunking.request import Request

_AHEAD: Final = 3  # groups on their way: two at the tokenizer, one being cut
# A group: large enough for the tokenizer to spread over the cores.
_CHARACTERS: Final = 262_144
_DOCUMENTS: Final = 512

Group = list[tuple[int, Document | FailedDocument]]


def plan_ahead(
    planner: Planner, documents: Iterable[tuple[int, Document]] | Iterable[tuple[int, Document | str]], request: Request
) -> Iterator[Plan | FailedDocument]:
    """Plan a stream of documents, in order.

    What is wrong with a document is a `FailedDocument` in its place. What the iterable itself
    raises is raised after the documents before it.

    Args:
        planner: plans.
        documents: documents, or their texts, and the place of each in the whole stream.
        request: how they are to be embedded.
    """
    waiting: deque[Future[list[Plan | FailedDocument]]] = deque()
    # Two, so that the cores are not idle while one of them waits for Python's lock.
    tokenizing, planning = ThreadPoolExecutor(2, "tokenize"), ThreadPoolExecutor(1, "plan")

    def submit(group: Group) -> None:
        encodings = tokenizing.submit(_encode, planner, group, request)
        waiting.append(planning.submit(lambda: _plan(planner, group, encodings.result(), request)))

    ended: Exception | None = None
    groups = _groups(documents)
    try:
        while True:
            try:
                group = next(groups)
            except StopIteration:
                break
            except Exception as error:  # the iterable's own: kept until the documents before it are done
                ended = error
                break
            submit(group)
            while waiting and (len(waiting) > _AHEAD or waiting[0].done()):
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    finally:
        tokenizing.shutdown(cancel_futures=True)
        planning.shutdown(cancel_futures=True)
    if ended is not None:
        raise ended


def _groups(documents: Iterable[tuple[int, Document]] | Iterable[tuple[int, Document | str]]) -> Iterator[Group]:
    """Gather documents into groups; one that is none takes its place as failed."""
    group: Group = []
    gathered = 0
    try:
        for index, given in documents:
            try:
                document = document_of(given, f"document {index}: ")
            except InvalidInput as error:
                group.append((index, FailedDocument("", index, error)))
                continue
            group.append((index, document))
            gathered += len(document.text)
            if gathered >= _CHARACTERS or len(group) >= _DOCUMENTS:
                yield group
                group, gathered = [], 0
    except Exception:
        if group:
            yield group
        raise
    if group:
        yield group


def _encode(planner: Planner, group: Group, request: Request) -> list[Any]:
    """Tokenize a group, as far as that runs outside Python; there is nothing for documents that failed."""
    texts = [document.text for _, document in group if isinstance(document, Document)]
    encodings = iter(planner.sequencer.encode_many(texts, request))
    return [next(encodings) if isinstance(document, Document) else None for _, document in group]


def _plan(planner: Planner, group: Group, encodings: Sequence[Any], request: Request) -> list[Plan | FailedDocument]:
    """Plan a group."""
    plans: list[Plan | FailedDocument] = []
    for (index, document), encoding in zip(group, encodings, strict=True):
        if isinstance(document, FailedDocument):
            plans.append(document)
            continue
        try:
            tokens = planner.sequencer.placed(encoding, document.text, request)
            plans.append(planner.plan(document, request, index, tokens))
        except InvalidInput as error:
            plans.append(FailedDocument(document.id, index, error))
    return plans


def document_of(given: Document | str, named: str = "") -> Document:
    """Turn a bare text into a document, or say what is wrong with it, by its place."""
    if isinstance(given, Document):
        return given
    try:
        return Document(given)
    except InvalidDocument as error:
        raise InvalidDocument(f"{named}{error}") from None
