"""Documents and strategies of a request → the library's own."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from late_chunking import Document
from late_chunking.boundaries import Strategy, make_strategies
from late_chunking.errors import EmptyInput, InvalidDocument, InvalidInput
from late_chunking.request import DEFAULT_STRATEGY, Request
from server.offsets import CODEPOINT, Offsets, OffsetUnit
from server.schemas.chunks import ChunkingOptions, DocumentIn


def documents_of(given: Sequence[DocumentIn], offset_unit: OffsetUnit = CODEPOINT) -> Iterator[Document]:
    """Turn the documents of a request into the library's, whose spans count code points.

    Raises:
        InvalidInput: naming the document, if one is to blame.
    """
    return (_document(document, index, offset_unit) for index, document in enumerate(given))


def request_of(
    chunking: ChunkingOptions | list[ChunkingOptions] | None,
    **options: Any,  # noqa: ANN401 - fields of the library's request
) -> Request:
    """Turn the options of a request into the library's.

    Raises:
        InvalidInput: if one is wrong.
    """
    return Request(strategies_of(chunking) or make_strategies(DEFAULT_STRATEGY), **options)


def _document(given: DocumentIn, index: int, offset_unit: OffsetUnit) -> Document:
    """Turn a document of the request into one of the library."""
    with _named(given, index):
        if given.spans is not None and given.chunking is not None:
            raise InvalidDocument("give either spans or chunking, not both")
        spans = None if given.spans is None else Offsets.of(given.text, offset_unit).inward(given.spans)
        return Document(
            given.text,
            id=given.id,
            title=given.title,
            spans=spans,
            chunking=strategies_of(given.chunking),
            metadata=given.metadata,
            context=given.context,
        )


@contextmanager
def _named(given: DocumentIn, index: int) -> Iterator[None]:
    """Put the document's place and name before whatever is wrong with it."""
    try:
        yield
    except InvalidInput as error:
        name = f" ({given.id!r})" if given.id else ""
        raise type(error)(f"document {index}{name}: {error}") from error


def strategies_of(chunking: ChunkingOptions | list[ChunkingOptions] | None) -> tuple[Strategy, ...] | None:
    """Make the strategies that a request names.

    Raises:
        UnknownStrategy: if there is none of such a name.
        InvalidParameter: if an option is unknown or wrong.
        EmptyInput: if the list is empty.
    """
    if chunking is None:
        return None
    several = chunking if isinstance(chunking, list) else [chunking]
    if not several:
        raise EmptyInput("chunking: the list of strategies is empty")
    return tuple(strategy for one in several for strategy in make_strategies(one.strategy, one.options))
