"""Document → chunks, and the sequences to read for them: all that is decided before the encoder runs."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from late_chunking.boundaries import Boundary, CallerSpans, Chunking, SourceText, Strategy, make_strategies, split
from late_chunking.boundaries.strategy import CALLER, settings_of
from late_chunking.documents import Chunk, Document, Span, chunk_id
from late_chunking.encoding.alignment import Alignment, align
from late_chunking.encoding.folder import ModelFolder, read_folder
from late_chunking.encoding.prompts import KINDS, check_kind
from late_chunking.encoding.sequences import TokenSequence, make_sequences
from late_chunking.encoding.tokens import TokenizedText, Tokenizer
from late_chunking.encoding.windows import DEFAULT_OVERLAP, Windows, plan_windows
from late_chunking.errors import DocumentTooLong, InvalidDocument, InvalidInput, InvalidParameter, InvalidSpan
from late_chunking.settings import Settings

MODES: Final = ("late", "naive")
DOCUMENT: Final = "document"
ON_OVERFLOW: Final = ("window", "error")
_LARGEST_DEFAULT_SIZE: Final = 256


@dataclass(frozen=True, slots=True)
class Request:
    """How documents are to be embedded.

    Attributes:
        strategies: where to cut, unless a document brings its own spans or chunking.
        mode: ``"late"`` reads the whole document, then pools; ``"naive"`` reads each chunk
            alone.
        input_type: which prompt goes before the text: ``"document"``, ``"query"`` or None.
        on_overflow: read a text beyond the window in windows, or refuse it with ``"error"``.
        noun: what errors call what is embedded.
    """

    strategies: tuple[Strategy, ...]
    mode: str = "late"
    input_type: str | None = "document"
    on_overflow: str = "window"
    noun: str = DOCUMENT

    def __post_init__(self) -> None:
        """Check the options."""
        check_kind(self.input_type)
        if self.mode not in MODES:
            raise InvalidParameter(f"mode must be one of {', '.join(MODES)}, got {self.mode!r}")
        if self.on_overflow not in ON_OVERFLOW:
            raise InvalidParameter(f"on_overflow must be one of {', '.join(ON_OVERFLOW)}, got {self.on_overflow!r}")

    @classmethod
    def of(
        cls,
        chunking: Chunking,
        parameters: Mapping[str, Any] | None = None,
        *,
        mode: str = "late",
        input_type: str | None = "document",
        on_overflow: str = "window",
        noun: str = DOCUMENT,
    ) -> Self:
        """Make a request from what a caller gave as strategy, with options for a named one."""
        return cls(make_strategies(chunking, parameters), mode, input_type, on_overflow, noun)


@dataclass(frozen=True, slots=True, eq=False)
class DocumentPlan:
    """A document, cut and tokenized, ready for the encoder.

    Attributes:
        document: what was given.
        index: its place in the input.
        chunks: [C].
        sequences: what the encoder reads; their bags name rows of [C, D].
        pooled: float32 [C], how many token vectors each chunk's vector is the mean of.
        token_count: the document's own tokens.
        mode: as requested.
    """

    document: Document
    index: int
    chunks: tuple[Chunk, ...]
    sequences: tuple[TokenSequence, ...]
    pooled: npt.NDArray[np.float32]
    token_count: int
    mode: str


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans documents for one model. Holds no weights and changes nothing: threads may share it."""

    folder: ModelFolder
    tokenizer: Tokenizer
    settings: Settings

    @classmethod
    def load(cls, settings: Settings) -> Self:
        """Load a model's settings and tokenizer."""
        folder = read_folder(
            settings.model,
            revision=settings.revision,
            window=settings.window,
            prompts=settings.prompts,
            allow_pooling_mismatch=settings.allow_pooling_mismatch,
        )
        tokenizer = Tokenizer.load(
            folder.transformer, lowercase=folder.lowercase, trust_remote_code=settings.trust_remote_code
        )
        planner = cls(folder, tokenizer, settings)
        for kind in (None, *KINDS):
            planner._capacity(len(tokenizer.tokenize("", folder.prompts.of(kind)).prompt_ids))
        return planner

    @property
    def default_size(self) -> int:
        """Tokens a chunk of strategies that need a size and were given none."""
        return max(1, min(_LARGEST_DEFAULT_SIZE, self.folder.window // 4))

    def chunk(self, document: Document, request: Request, index: int = 0) -> tuple[Chunk, ...]:
        """Cut a document without embedding it.

        Raises:
            InvalidInput: naming the document.
        """
        with _named(document, index, request.noun):
            tokens = self._tokenize(document, request)
            chunks, _ = self._chunks(document, tokens, request)
        return chunks

    def plan(self, document: Document, request: Request, index: int = 0) -> DocumentPlan:
        """Cut a document, and say what the encoder must read for it.

        Raises:
            InvalidInput: naming the document, and what was wrong with it or with a span.
        """
        with _named(document, index, request.noun):
            tokens = self._tokenize(document, request)
            chunks, alignment = self._chunks(document, tokens, request)
            self._check_owned(chunks, tokens, request)
            self._check_pooled(alignment)
            if not chunks:
                sequences: list[TokenSequence] = []
            elif request.mode == "late":
                sequences = self._sequences(tokens, alignment, request)
            else:
                sequences = self._sequences_alone(chunks, request)
            pooled = _pooled(sequences, len(chunks))
        return DocumentPlan(document, index, chunks, tuple(sequences), pooled, len(tokens.ids), request.mode)

    def _tokenize(self, document: Document, request: Request) -> TokenizedText:
        """Tokenize a document, once, and hold it to the hard limit."""
        tokens = self.tokenizer.tokenize(document.text, self._prompt(request))
        limit = self.settings.max_document_tokens
        if len(tokens.ids) > limit:
            raise DocumentTooLong(f"{len(tokens.ids)} tokens are more than max_document_tokens, {limit}")
        return tokens

    def _prompt(self, request: Request) -> str:
        """Give the prompt of a request."""
        return self.folder.prompts.of(request.input_type)

    def _chunks(
        self, document: Document, tokens: TokenizedText, request: Request
    ) -> tuple[tuple[Chunk, ...], Alignment]:
        """Apply the strategies, all over the same tokens."""
        source = SourceText(document.text, tokens.anchors, self.default_size)
        cut = [(strategy, split(source, strategy)) for strategy in _strategies(document, request)]
        spans = [boundary.span for _, boundaries in cut for boundary in boundaries]
        alignment = align(spans, tokens, self.settings.special_tokens)
        chunks: list[Chunk] = []
        for strategy, boundaries in cut:
            chunks += _number(document, strategy, boundaries, len(chunks), alignment)
        return tuple(chunks), alignment

    def _check_owned(self, chunks: tuple[Chunk, ...], tokens: TokenizedText, request: Request) -> None:
        """Refuse a chunk that no token belongs to: it has nothing to be the mean of."""
        own_spans = bool(chunks) and chunks[0].strategy == CALLER and request.noun == DOCUMENT
        if chunks and not len(tokens.ids) and not own_spans:
            raise InvalidDocument(
                f"the tokenizer of {self.folder.name!r} makes no token of it: {chunks[0].text[:20]!r}"
            )
        for chunk in chunks:
            if not chunk.token_count:
                raise InvalidSpan(
                    f"span [{chunk.span.start}, {chunk.span.end}) owns no token of the model {self.folder.name!r}: "
                    f"no token begins with {chunk.text[:20]!r}"
                )

    def _check_pooled(self, alignment: Alignment) -> None:
        """Hold what a document's chunks hold in all to its limit."""
        pooled = int((alignment.read[:, 1] - alignment.read[:, 0]).sum())
        limit = self.settings.max_pooled_tokens
        if pooled > limit:
            raise InvalidParameter(
                f"its {len(alignment.read)} chunks hold {pooled} tokens in all, more than max_pooled_tokens, {limit}; "
                "let them overlap less"
            )

    def _sequences(
        self, tokens: TokenizedText, alignment: Alignment, request: Request, row: int = 0
    ) -> list[TokenSequence]:
        """Turn a tokenized text into sequences, in windows where it is too long for one."""
        prompt = bool(self._prompt(request))
        return make_sequences(
            tokens,
            alignment,
            self._windows(tokens, request),
            self.tokenizer,
            pool_prompt=self.folder.include_prompt or not prompt,
            first_row=row,
        )

    def _sequences_alone(self, chunks: tuple[Chunk, ...], request: Request) -> list[TokenSequence]:
        """Turn each chunk's text into sequences of its own."""
        texts = [chunk.text for chunk in chunks]
        sequences: list[TokenSequence] = []
        for row, tokens in enumerate(self.tokenizer.tokenize_many(texts, self._prompt(request))):
            whole = align([Span(0, len(texts[row]))], tokens, self.settings.special_tokens)
            sequences += self._sequences(tokens, whole, request, row)
        return sequences

    def _windows(self, tokens: TokenizedText, request: Request) -> Windows:
        """Decide on the windows of a text."""
        capacity, overlap = self._capacity(len(tokens.prompt_ids))
        if len(tokens.ids) > capacity and request.on_overflow == "error":
            raise DocumentTooLong(f"{len(tokens.ids)} tokens are more than the {capacity} that fit the model's window")
        return plan_windows(len(tokens.ids), capacity, overlap)

    def _capacity(self, prompt_tokens: int) -> tuple[int, int]:
        """Give how many of a text's tokens a window holds, and how many of them the next repeats."""
        window, special = self.folder.window, self.tokenizer.special_count
        capacity = window - special - prompt_tokens
        overlap = self.settings.window_overlap
        overlap = int(capacity * DEFAULT_OVERLAP) if overlap is None else overlap
        if capacity < 1 or overlap >= capacity:
            raise InvalidParameter(
                f"a window of {window} tokens leaves {capacity} for the text after {special} special tokens and "
                f"{prompt_tokens} of the prompt; it needs more than the overlap, {overlap}"
            )
        return capacity, overlap


@contextmanager
def _named(document: Document, index: int, noun: str) -> Iterator[None]:
    """Put the document's place and name before whatever is wrong with it."""
    try:
        yield
    except InvalidInput as error:
        raise type(error)(f"{noun} {index} ({document.id!r}): {error}") from error


def _strategies(document: Document, request: Request) -> tuple[Strategy, ...]:
    """Give the strategies for a document: its own, or the request's."""
    if document.spans is not None:
        return (CallerSpans(document.spans),)
    if document.chunking is not None:
        return make_strategies(document.chunking)
    return request.strategies


def _number(
    document: Document, strategy: Strategy, boundaries: list[Boundary], first: int, alignment: Alignment
) -> list[Chunk]:
    """Make chunks of one strategy's boundaries, which begin at chunk `first`."""
    settings = settings_of(strategy)
    ids = [chunk_id(document.id, item.span, strategy.name, settings, item.level) for item in boundaries]
    return [
        Chunk(
            id=ids[place],
            document_id=document.id,
            index=first + place,
            strategy=strategy.name,
            span=item.span,
            token_span=Span(*(int(edge) for edge in alignment.own[first + place])),
            text=document.text[item.span.start : item.span.end],
            level=item.level,
            kind=item.kind,
            heading_path=item.heading_path,
            parent=None if item.parent is None else ids[item.parent],
        )
        for place, item in enumerate(boundaries)
    ]


def _pooled(sequences: list[TokenSequence], chunks: int) -> npt.NDArray[np.float32]:
    """Count the token vectors that each row is the mean of. [C]."""
    pooled = np.zeros(chunks, dtype=np.float32)
    for sequence in sequences:
        pooled[sequence.rows] += np.diff(sequence.offsets, append=len(sequence.bags))
    return pooled
