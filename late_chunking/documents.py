"""The nouns that callers give and get: documents, spans, chunks and their vectors."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from late_chunking.errors import InvalidDocument, LateChunkingError

if TYPE_CHECKING:
    from late_chunking.boundaries.strategy import Chunking


class Span(NamedTuple):
    """A half-open range ``[start, end)``, in code points of a text or in tokens of a document."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Document:
    """A text to embed.

    Attributes:
        text: the whole document. Spans index its Unicode code points.
        id: its name in answers and errors; by default derived from the text.
        title: its title, for headers and reports.
        spans: the caller's own ``(start, end)`` boundaries, overriding the call's strategy.
        chunking: a strategy (or several) of this document's own, overriding the call's.
        metadata: anything of the caller's, handed through untouched.
        context: for mode ``"contextual"``, what is put before its chunks beside title and
            headings: one text for all, or a list with one for each.

    Raises:
        InvalidDocument: if the text is not a string, holds a lone surrogate, or if both
            `spans` and `chunking` are given.
    """

    text: str
    id: str = ""
    title: str | None = None
    spans: Iterable[tuple[int, int]] | None = None
    chunking: "Chunking | None" = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    context: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Check what every later stage relies on."""
        named = f"document {self.id!r}: " if self.id else ""
        if not isinstance(self.text, str):
            raise InvalidDocument(f"{named}text must be a string, got {type(self.text).__name__}")
        if not isinstance(self.id, str):
            raise InvalidDocument(f"{named}id must be a string, got {type(self.id).__name__}")
        if self.title is not None and not isinstance(self.title, str):
            raise InvalidDocument(f"{named}title must be a string, got {type(self.title).__name__}")
        if not isinstance(self.metadata, Mapping):
            raise InvalidDocument(f"{named}metadata must be a mapping, got {type(self.metadata).__name__}")
        if self.context is not None and not isinstance(self.context, str):
            object.__setattr__(self, "context", _strings(self.context, named))
        if self.spans is not None:
            # Kept as they are now: an iterator would be empty at the second look.
            object.__setattr__(self, "spans", _listed(self.spans, named))
        if self.spans is not None and self.chunking is not None:
            raise InvalidDocument(f"{named}give either spans or chunking, not both")
        try:
            encoded = self.text.encode()
        except UnicodeEncodeError as error:
            surrogate = f"U+{ord(self.text[error.start]):04X}"
            raise InvalidDocument(
                f"{named}character {error.start} is {surrogate}, a lone surrogate, not text"
            ) from None
        if not self.id:
            object.__setattr__(self, "id", f"sha256-{hashlib.sha256(encoded).hexdigest()[:16]}")


def _strings(context: Sequence[str], named: str) -> tuple[str, ...]:
    """Make a list of contexts a tuple."""
    if not isinstance(context, Sequence) or not all(isinstance(one, str) for one in context):
        raise InvalidDocument(f"{named}context must be a string or a list of them, got {context!r:.80}")
    return tuple(context)


def _listed(spans: Iterable[tuple[int, int]], named: str) -> tuple[tuple[int, int], ...]:
    """Make spans a tuple; what is in it is checked against the text later."""
    try:
        return tuple(spans)
    except TypeError:
        raise InvalidDocument(f"{named}spans must be a list of (start, end) pairs, got {spans!r:.80}") from None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document that gets one vector.

    ``text == document.text[span.start:span.end]``, always. `token_span` counts the document's
    own tokens from 0, without prompt or special tokens. `parent`, `previous` and `next` are ids:
    of the chunk around it in the level above, and of its neighbours in its own level. `context` is
    the span to hand to a reader or generator in its place, where the strategy names one.
    """

    id: str
    document_id: str
    index: int
    strategy: str
    span: Span
    token_span: Span
    text: str
    level: int = 0
    kind: str = "text"
    heading_path: tuple[str, ...] = ()
    parent: str | None = None
    page: int | None = None
    table_header: Span | None = None
    content: str | None = None
    previous: str | None = None
    next: str | None = None
    context: Span | None = None

    @property
    def token_count(self) -> int:
        """How many of the document's own tokens the chunk owns."""
        return self.token_span.end - self.token_span.start


def chunk_ids(
    document_id: str, strategy: str, settings: Mapping[str, Any], places: Iterable[tuple[Span, int]]
) -> list[str]:
    """Name chunks by their document, settings, span and level: the same on every machine and run."""
    about = hashlib.sha256(
        json.dumps([document_id, strategy, dict(settings)], sort_keys=True, default=_stable).encode()
    )
    ids = []
    for (start, end), level in places:
        own = about.copy()
        own.update(b"%d %d %d" % (start, end, level))
        ids.append(own.hexdigest()[:32])
    return ids


def _stable(value: Any) -> str:  # noqa: ANN401 - whatever JSON has no form for
    """Name an object without its address in memory."""
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedDocument:
    """A document's chunks and their vectors.

    Attributes:
        document: what was given.
        index: its place in the input.
        chunks: [C], in the order of `vectors`.
        vectors: float32 [C, D], L2-normalised unless the embedder was told otherwise.
        token_count: the document's own tokens.
        windows: how many sequences the encoder read for it.
        mode: how they were made: ``"late"``, ``"naive"``, ``"blend"`` or ``"contextual"``.
    """

    document: Document
    index: int
    chunks: tuple[Chunk, ...]
    vectors: npt.NDArray[np.float32]
    token_count: int
    windows: int
    mode: str

    @property
    def id(self) -> str:
        """The document's id."""
        return self.document.id

    def __repr__(self) -> str:
        """Name it by its measures; text and vectors would fill pages."""
        return (
            f"EmbeddedDocument(id={self.id!r}, chunks={len(self.chunks)}, vectors={self.vectors.shape}, "
            f"token_count={self.token_count}, windows={self.windows}, mode={self.mode!r})"
        )


@dataclass(frozen=True, slots=True)
class FailedDocument:
    """Takes a document's place in a stream when it could not be embedded."""

    id: str
    index: int
    error: LateChunkingError
