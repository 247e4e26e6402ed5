"""Texts → the sequences that the encoder reads: prompts, windows, headers, limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from late_chunking.characters import IntArray
from late_chunking.context import header
from late_chunking.documents import Chunk, Document, Span
from late_chunking.encoding.alignment import Alignment, align
from late_chunking.encoding.cells import Cells, make_cells
from late_chunking.encoding.folder import ModelFolder
from late_chunking.encoding.prompts import KINDS
from late_chunking.encoding.sequences import TokenSequence, make_sequences
from late_chunking.encoding.tokens import TokenizedText, Tokenizer
from late_chunking.encoding.windows import DEFAULT_OVERLAP, Windows, plan_windows
from late_chunking.errors import DocumentTooLong, InvalidParameter
from late_chunking.request import Request
from late_chunking.settings import Settings


@dataclass(frozen=True, slots=True)
class Sequencer:
    """Makes sequences for one model. Changes nothing: threads may share it."""

    folder: ModelFolder
    tokenizer: Tokenizer
    settings: Settings

    def check(self) -> None:
        """Pass if every prompt leaves room for a text in the window.

        Raises:
            InvalidParameter: if one does not.
        """
        for kind in (None, *KINDS):
            self._capacity(len(self.tokenizer.tokenize("", self.folder.prompts.of(kind)).prompt_ids))

    def tokenize(self, document: Document, request: Request) -> TokenizedText:
        """Tokenize a document behind the prompt of a request."""
        return self.tokenizer.tokenize(document.text, self._prompt(request))

    def encode_many(self, texts: Sequence[str], request: Request) -> list[Any]:
        """Tokenize texts behind the prompt of a request, on all cores, as far as `placed` goes on from."""
        return self.tokenizer.encode_many(texts, self._prompt(request))

    def placed(self, encoding: Any, text: str, request: Request) -> TokenizedText:  # noqa: ANN401 - of encode_many
        """Place what `encode_many` gave for a text."""
        return self.tokenizer.placed(encoding, text, self._prompt(request))

    def check_length(self, tokens: TokenizedText) -> None:
        """Hold a document to the hard limit.

        Raises:
            DocumentTooLong: if it has more tokens.
        """
        limit = self.settings.max_document_tokens
        if len(tokens.ids) > limit:
            raise DocumentTooLong(f"{len(tokens.ids)} tokens are more than max_document_tokens, {limit}")

    def _prompt(self, request: Request) -> str:
        """Give the prompt of a request."""
        return self.folder.prompts.of(request.input_type)

    def whole(
        self,
        document: Document,
        chunks: Sequence[Chunk],
        alignment: Alignment,
        tokens: TokenizedText,
        request: Request,
    ) -> list[TokenSequence]:
        """Read a whole document, in windows where it is too long for one; a row a chunk."""
        windows, headers = self._windows(document, chunks, tokens, request)
        pool_prompt = self._pool_prompt(request)
        return make_sequences(tokens, alignment, windows, self.tokenizer, pool_prompt=pool_prompt, headers=headers)

    def cells(
        self, document: Document, cuts: IntArray, tokens: TokenizedText, request: Request
    ) -> tuple[list[TokenSequence], Cells]:
        """Read a whole document before it is cut; a row a cell. Headers of windows have the title alone."""
        windows, headers = self._windows(document, (), tokens, request)
        pool_prompt = self._pool_prompt(request)
        return make_cells(tokens, cuts, windows, self.tokenizer, pool_prompt=pool_prompt, headers=headers)

    def alone(self, chunks: Sequence[Chunk], request: Request, first_row: int) -> list[TokenSequence]:
        """Read each chunk alone, with what stands before it; a row a chunk, from the first one on."""
        texts = [chunk.content or chunk.text for chunk in chunks]
        sequences: list[TokenSequence] = []
        for place, tokens in enumerate(self.tokenizer.tokenize_many(texts, self._prompt(request))):
            whole = align([Span(0, len(texts[place]))], tokens, self.settings.special_tokens)
            capacity, overlap = self._capacity(len(tokens.prompt_ids))
            self._check_overflow(tokens, capacity, request)
            windows = plan_windows(len(tokens.ids), capacity, overlap)
            pool_prompt = self._pool_prompt(request)
            sequences += make_sequences(
                tokens, whole, windows, self.tokenizer, pool_prompt=pool_prompt, first_row=first_row + place
            )
        return sequences

    def _pool_prompt(self, request: Request) -> bool:
        """Tell whether the leading special tokens and the prompt are pooled."""
        return self.folder.include_prompt or not self._prompt(request)

    def _windows(
        self, document: Document, chunks: Sequence[Chunk], tokens: TokenizedText, request: Request
    ) -> tuple[Windows, list[IntArray]]:
        """Decide on the windows of a text, and what each is headed by.

        Where windows have headers, each leaves room for the longest one, so that where they lie
        does not depend on which is which.
        """
        capacity, overlap = self._capacity(len(tokens.prompt_ids))
        self._check_overflow(tokens, capacity, request)
        if len(tokens.ids) <= capacity or not request.window_context:
            return plan_windows(len(tokens.ids), capacity, overlap), []
        paths = {chunk.heading_path for chunk in chunks} | {()}
        made = {path: self._header(header(document, path)) for path in paths}
        room = max(map(len, made.values()))
        if 2 * room > capacity:
            raise InvalidParameter(
                f"a window's header of {room} tokens takes more than half of the {capacity} that fit the model's "
                "window: shorten titles and headings, or leave window_context out"
            )
        windows = plan_windows(len(tokens.ids), capacity - room, int(overlap * (capacity - room) / capacity))
        headers = [made[_path_at(chunks, int(start))] for start in windows.starts]
        return windows, [headers[0][:0], *headers[1:]]

    def _header(self, text: str) -> IntArray:
        """Tokenize a header."""
        return self.tokenizer.tokenize(f"{text}\n").ids if text else np.zeros(0, dtype=np.int64)

    def _check_overflow(self, tokens: TokenizedText, capacity: int, request: Request) -> None:
        """Refuse a text that is longer than a window, if it is to be refused."""
        if len(tokens.ids) > capacity and request.on_overflow == "error":
            raise DocumentTooLong(f"{len(tokens.ids)} tokens are more than the {capacity} that fit the model's window")

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


def _path_at(chunks: Sequence[Chunk], token: int) -> tuple[str, ...]:
    """Give the headings above a token: those of the last chunk that begins at or before it."""
    return next((chunk.heading_path for chunk in reversed(chunks) if chunk.token_span.start <= token), ())
