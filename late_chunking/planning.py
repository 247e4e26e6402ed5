"""Document → chunks, and the sequences to read for them: all that is decided before the encoder runs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from late_chunking.boundaries import (
    Boundary,
    CallerSpans,
    Readings,
    SourceText,
    Strategy,
    Waiting,
    make_strategies,
    needs_vectors,
    prepare,
    split,
)
from late_chunking.boundaries.strategy import CALLER
from late_chunking.characters import IntArray
from late_chunking.chunks import make_chunks
from late_chunking.context import contextual_texts
from late_chunking.documents import Chunk, Document
from late_chunking.encoding.alignment import Alignment, align
from late_chunking.encoding.cells import Cells, Sums
from late_chunking.encoding.folder import ModelFolder, read_folder
from late_chunking.encoding.sequences import TokenSequence, count_pooled
from late_chunking.encoding.tokens import TokenizedText, Tokenizer
from late_chunking.errors import InvalidDocument, InvalidInput, InvalidParameter, InvalidSpan
from late_chunking.plans import Cut, DocumentPlan, Draft, Plan
from late_chunking.request import DOCUMENT, Request
from late_chunking.sequencing import Sequencer
from late_chunking.settings import Settings

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
            folder.transformer,
            lowercase=folder.lowercase,
            trust_remote_code=settings.trust_remote_code and folder.may_be_trusted,
        )
        planner = cls(folder, tokenizer, settings)
        planner.sequencer.check()
        return planner

    @property
    def sequencer(self) -> Sequencer:
        """What turns texts into sequences."""
        return Sequencer(self.folder, self.tokenizer, self.settings)

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
            tokens = self.sequencer.tokenize(document, request)
            self.sequencer.check_length(tokens)
            source = self._source(document, tokens)
            cuts = [(strategy, split(source, strategy)) for strategy in strategies_of(document, request)]
            spans = [boundary.span for _, boundaries in cuts for boundary in boundaries]
            return make_chunks(document, cuts, align(spans, tokens, self.settings.special_tokens))

    def waits(self, document: Document, request: Request) -> bool:
        """Tell whether a document must be read before it can be cut."""
        return any(map(needs_vectors, strategies_of(document, request)))

    def plan(self, document: Document, request: Request, index: int = 0, tokens: TokenizedText | None = None) -> Plan:
        """Cut a document, and say what the encoder must read for it, or to cut it.

        Args:
            document: the document.
            request: how it is to be embedded.
            index: its place, for errors.
            tokens: its tokens, if it has been tokenized already.

        Raises:
            InvalidInput: naming the document, and what was wrong with it or with a span.
        """
        with _named(document, index, request.noun):
            if tokens is None:
                tokens = self.sequencer.tokenize(document, request)
            self.sequencer.check_length(tokens)
            source = self._source(document, tokens)
            cuts = tuple(_cut(source, strategy) for strategy in strategies_of(document, request))
            if any(isinstance(cut.found, Waiting) for cut in cuts):
                edges = self._edges(tokens, cuts)
                sequences, cells = self.sequencer.cells(document, edges, tokens, request)
                return Draft(document, index, request, tokens, cuts, cells, tuple(sequences))
            chunks, alignment = self._decided(document, tokens, request, cuts)
            sequences = self._sequences_for(document, chunks, alignment, tokens, request)
            return _plan(document, index, request, chunks, sequences, tokens)

    def settle(self, draft: Draft, sums: Sums) -> tuple[DocumentPlan, Sums]:
        """Cut a document now that it has been read.

        Args:
            draft: the document.
            sums: [rows, D], over its cells.

        Returns:
            Its plan, whose sequences are still to be read, and float32 [R, D], the sums over its
            rows as far as the cells give them.

        Raises:
            InvalidInput: naming the document, if a strategy finds fault with the vectors.
        """
        document, request, tokens, cells = draft.document, draft.request, draft.tokens, draft.cells
        with _named(document, draft.index, request.noun):
            cuts = [Cut(cut.strategy, self._found(cut, tokens, cells, sums)) for cut in draft.cuts]
            chunks, alignment = self._decided(document, tokens, request, cuts)
            is_read = request.reads_documents and cells.hold(alignment)
            sequences = self._sequences_for(document, chunks, alignment, tokens, request, is_read=is_read)
        plan = _plan(document, draft.index, request, chunks, sequences, tokens)
        plan = replace(plan, windows=len(draft.sequences) + len(sequences))
        found = np.zeros((plan.rows, sums.shape[1]), dtype=np.float32)
        if is_read:
            found[: len(chunks)] = cells.sums_of(alignment, sums)
            plan.pooled[: len(chunks)] = cells.pooled(alignment)
        return plan, found

    def _decided(
        self, document: Document, tokens: TokenizedText, request: Request, cuts: Sequence[Cut]
    ) -> tuple[tuple[Chunk, ...], Alignment]:
        """Make the chunks of a document that is cut."""
        found = [(cut.strategy, cut.boundaries) for cut in cuts]
        spans = [boundary.span for _, boundaries in found for boundary in boundaries]
        alignment = align(spans, tokens, self.settings.special_tokens)
        chunks = make_chunks(document, found, alignment)
        self._check_owned(chunks, tokens, request)
        self._check_pooled(alignment)
        if request.mode == "contextual":
            texts = contextual_texts(document, chunks, request.context)
            chunks = tuple(
                chunk if text == chunk.text else replace(chunk, content=text)
                for chunk, text in zip(chunks, texts, strict=True)
            )
        return chunks, alignment

    def _sequences_for(
        self,
        document: Document,
        chunks: tuple[Chunk, ...],
        alignment: Alignment,
        tokens: TokenizedText,
        request: Request,
        *,
        is_read: bool = False,
    ) -> list[TokenSequence]:
        """Say what is to be read for chunks; of the whole document nothing more, if it is read already."""
        sequences: list[TokenSequence] = []
        if not chunks:
            return sequences
        if request.reads_documents and not is_read:
            sequences += self.sequencer.whole(document, chunks, alignment, tokens, request)
        if request.reads_chunks:
            sequences += self.sequencer.alone(chunks, request, len(chunks) if request.reads_documents else 0)
        return sequences

    def _found(self, cut: Cut, tokens: TokenizedText, cells: Cells, sums: Sums) -> list[Boundary]:
        """Give what a strategy found, or finds now that the text has been read."""
        if not isinstance(cut.found, Waiting):
            return cut.found
        pieces = align(cut.found.pieces, tokens, self.settings.special_tokens).own
        return cut.found.cut(cells.readings(pieces, sums))

    def _edges(self, tokens: TokenizedText, cuts: Sequence[Cut]) -> IntArray:
        """Give the tokens where pieces, and chunks that are known already, begin and end."""
        spans = [span for cut in cuts for span in cut.spans]
        own = align(spans, tokens, self.settings.special_tokens).own
        return np.unique(np.append(own, (0, len(tokens.ids))))

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
    """Apply a strategy, as far as it goes without vectors."""
    if not needs_vectors(strategy):
        return Cut(strategy, split(source, strategy))
    waiting = prepare(source, strategy)
    if len(waiting.pieces) < 2:  # nothing to compare
        return Cut(strategy, waiting.cut(Readings(len(waiting.pieces), ())))
    return Cut(strategy, waiting)


def _plan(
    document: Document,
    index: int,
    request: Request,
    chunks: tuple[Chunk, ...],
    sequences: Sequence[TokenSequence],
    tokens: TokenizedText,
) -> DocumentPlan:
    """Put a plan together, and count the token vectors that each row is the mean of."""
    pooled = count_pooled(sequences, len(chunks) * (request.reads_documents + request.reads_chunks))
    return DocumentPlan(document, index, request, chunks, tuple(sequences), pooled, len(tokens.ids), len(sequences))
