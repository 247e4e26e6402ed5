"""Document → chunks, and the sequences to read for them: all that is decided before the encoder runs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from late_chunking.boundaries import (
    CallerSpans,
    Readings,
    SourceText,
    Strategy,
    make_strategies,
    needs_vectors,
    pieces_of,
    split,
    split_by,
)
from late_chunking.boundaries.strategy import CALLER
from late_chunking.characters import IntArray
from late_chunking.chunks import make_chunks
from late_chunking.documents import Chunk, Document, Span
from late_chunking.encoding.alignment import Alignment, align
from late_chunking.encoding.cells import make_cells
from late_chunking.encoding.folder import ModelFolder, read_folder
from late_chunking.encoding.prompts import KINDS
from late_chunking.encoding.sequences import TokenSequence, make_sequences
from late_chunking.encoding.tokens import TokenizedText, Tokenizer
from late_chunking.encoding.windows import DEFAULT_OVERLAP, Windows, plan_windows
from late_chunking.errors import DocumentTooLong, InvalidDocument, InvalidInput, InvalidParameter, InvalidSpan
from late_chunking.plans import Cut, DocumentPlan, Draft, Plan
from late_chunking.request import DOCUMENT, Request
from late_chunking.settings import Settings

Sums = npt.NDArray[np.float32]

_LARGEST_DEFAULT_SIZE: Final = 256


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
            InvalidInput: naming the document; also if a strategy waits for vectors.
        """
        with _named(document, index, request.noun):
            tokens = self._tokenize(document, request)
            source = self._source(document, tokens)
            cuts = [(strategy, split(source, strategy)) for strategy in strategies_of(document, request)]
            spans = [boundary.span for _, boundaries in cuts for boundary in boundaries]
            return make_chunks(document, cuts, align(spans, tokens, self.settings.special_tokens))

    def plan(self, document: Document, request: Request, index: int = 0) -> Plan:
        """Cut a document, and say what the encoder must read for it, or to cut it.

        Raises:
            InvalidInput: naming the document, and what was wrong with it or with a span.
        """
        with _named(document, index, request.noun):
            tokens = self._tokenize(document, request)
            source = self._source(document, tokens)
            cuts = tuple(_cut(source, strategy) for strategy in strategies_of(document, request))
            if any(cut.boundaries is None for cut in cuts):
                edges = self._edges(tokens, cuts)
                windows = self._windows(tokens, request)
                sequences, cells = make_cells(
                    tokens, edges, windows, self.tokenizer, pool_prompt=self._pool_prompt(request)
                )
                return Draft(document, index, request, source, tokens, cuts, cells, tuple(sequences))
            plan, alignment = self._decided(document, index, request, tokens, cuts)
            return self._reading(plan, alignment, tokens, request)

    def settle(self, draft: Draft, sums: Sums) -> tuple[DocumentPlan, Sums | None]:
        """Cut a document now that it has been read.

        Args:
            draft: the document.
            sums: [rows, D], over its cells.

        Returns:
            Its plan, and float32 [C, D], the sums over its chunks; or, where these cannot be had
            from the cells, None: then the plan's sequences are still to be read.

        Raises:
            InvalidInput: naming the document, if a strategy finds fault with the vectors.
        """
        document, request, tokens = draft.document, draft.request, draft.tokens
        with _named(document, draft.index, request.noun):
            cuts = [_settled(draft.source, cut, draft.cells.readings(cut.pieces, sums)) for cut in draft.cuts]
            plan, alignment = self._decided(document, draft.index, request, tokens, cuts)
            if request.mode == "late" and draft.cells.hold(alignment):
                pooled = draft.cells.pooled(alignment)
                plan = replace(plan, pooled=pooled, windows=len(draft.sequences))
                return plan, draft.cells.sums_of(alignment, sums)
            plan = self._reading(plan, alignment, tokens, request)
            return replace(plan, windows=len(draft.sequences) + len(plan.sequences)), None

    def _decided(
        self, document: Document, index: int, request: Request, tokens: TokenizedText, cuts: Sequence[Cut]
    ) -> tuple[DocumentPlan, Alignment]:
        """Make the chunks of a document that is cut, with nothing to read yet."""
        found = [(cut.strategy, cut.boundaries or []) for cut in cuts]
        spans = [boundary.span for _, boundaries in found for boundary in boundaries]
        alignment = align(spans, tokens, self.settings.special_tokens)
        chunks = make_chunks(document, found, alignment)
        self._check_owned(chunks, tokens, request)
        self._check_pooled(alignment)
        nothing = np.zeros(len(chunks), dtype=np.float32)
        return DocumentPlan(document, index, chunks, (), nothing, len(tokens.ids), request.mode, 0), alignment

    def _reading(
        self, plan: DocumentPlan, alignment: Alignment, tokens: TokenizedText, request: Request
    ) -> DocumentPlan:
        """Say what is to be read for the chunks of a plan."""
        if not plan.chunks:
            return plan
        if request.mode == "late":
            sequences = self._sequences(tokens, alignment, request)
        else:
            sequences = self._sequences_alone(plan.chunks, request)
        pooled = _pooled(sequences, len(plan.chunks))
        return replace(plan, sequences=tuple(sequences), pooled=pooled, windows=len(sequences))

    def _edges(self, tokens: TokenizedText, cuts: Sequence[Cut]) -> IntArray:
        """Give the tokens where pieces, and chunks that are known already, begin and end."""
        spans = [boundary.span for cut in cuts for boundary in cut.boundaries or []]
        own = align(spans, tokens, self.settings.special_tokens).own
        edges = [cut.pieces.ravel() for cut in cuts]
        return np.unique(np.concatenate((*edges, own.ravel(), (0, len(tokens.ids)))))

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

    def _source(self, document: Document, tokens: TokenizedText) -> SourceText:
        """Give what strategies may know of a document."""
        return SourceText(document.text, tokens.anchors, self.default_size)

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
        return make_sequences(
            tokens,
            alignment,
            self._windows(tokens, request),
            self.tokenizer,
            pool_prompt=self._pool_prompt(request),
            first_row=row,
        )

    def _pool_prompt(self, request: Request) -> bool:
        """Tell whether the leading special tokens and the prompt are pooled."""
        return self.folder.include_prompt or not self._prompt(request)

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


def strategies_of(document: Document, request: Request) -> tuple[Strategy, ...]:
    """Give the strategies for a document: its own, or the request's."""
    if document.spans is not None:
        return (CallerSpans(document.spans),)
    if document.chunking is not None:
        return make_strategies(document.chunking)
    return request.strategies


def _cut(source: SourceText, strategy: Strategy) -> Cut:
    """Apply a strategy, or ask for which pieces it waits."""
    nothing = np.zeros((0, 2), dtype=np.int64)
    if not needs_vectors(strategy):
        return Cut(strategy, split(source, strategy), nothing)
    pieces = pieces_of(source, strategy)
    if len(pieces) < 2:  # nothing to compare
        return Cut(strategy, split_by(source, strategy, Readings(len(pieces), ())), nothing)
    return Cut(strategy, None, np.searchsorted(source.token_anchors, np.asarray(pieces)))


def _settled(source: SourceText, cut: Cut, readings: Readings) -> Cut:
    """Apply a strategy that waited."""
    if cut.boundaries is not None or not needs_vectors(cut.strategy):
        return cut
    return replace(cut, boundaries=split_by(source, cut.strategy, readings))


def _pooled(sequences: list[TokenSequence], chunks: int) -> npt.NDArray[np.float32]:
    """Count the token vectors that each row is the mean of. [C]."""
    pooled = np.zeros(chunks, dtype=np.float32)
    for sequence in sequences:
        pooled[sequence.rows] += np.diff(sequence.offsets, append=len(sequence.bags))
    return pooled
