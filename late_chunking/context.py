"""What is put before a chunk that is read alone, so that it says where it comes from."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from late_chunking.documents import Chunk, Document
from late_chunking.errors import InvalidDocument, InvalidParameter, LateChunkingError

# A caller's own way to say, for each chunk of a document, what goes before it.
ContextFunction: TypeAlias = Callable[[Document, Sequence[Chunk]], Sequence[str]]


def contextual_texts(document: Document, chunks: Sequence[Chunk], write: ContextFunction | None) -> list[str]:
    """Put a header before the text of each chunk: title and headings, then the context.

    The context is what a function gives for the chunk, or the document's own: one for all its
    chunks, or one for each. Where there is nothing to say, the text stays as it is.

    Raises:
        InvalidDocument: if the document's contexts are not as many as its chunks.
        InvalidParameter: if the function fails, or gives anything but a string a chunk.
    """
    contexts = _own(document, len(chunks)) if write is None else _written(document, chunks, write)
    return [
        "\n\n".join(part for part in (header(document, chunk.heading_path), context.strip(), chunk.text) if part)
        for chunk, context in zip(chunks, contexts, strict=True)
    ]


def header(document: Document, heading_path: Sequence[str] = ()) -> str:
    """Give a document's title and the headings above a place in it, on one line; empty where there are none."""
    return " › ".join(part for part in (" ".join((document.title or "").split()), *heading_path) if part)


def _own(document: Document, count: int) -> Sequence[str]:
    """Give the contexts that a document brings."""
    if document.context is None or isinstance(document.context, str):
        return [document.context or ""] * count
    if len(document.context) != count:
        raise InvalidDocument(f"it has {len(document.context)} contexts for {count} chunks: give one for each, or one")
    return document.context


def _written(document: Document, chunks: Sequence[Chunk], write: ContextFunction) -> Sequence[str]:
    """Ask a function for the contexts."""
    name = getattr(write, "__name__", type(write).__name__)
    try:
        contexts = list(write(document, chunks))
    except LateChunkingError:
        raise
    except Exception as error:
        raise InvalidParameter(f"the context function {name} failed: {type(error).__name__}: {error}") from error
    if len(contexts) != len(chunks) or not all(isinstance(context, str) for context in contexts):
        raise InvalidParameter(f"the context function {name} must give {len(chunks)} strings, one a chunk")
    return contexts
