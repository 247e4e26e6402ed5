"""What the encoder reads: one window of a text with its special tokens, and what to pool of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from late_chunking.characters import BoolArray, IntArray
from late_chunking.encoding.alignment import Alignment
from late_chunking.encoding.tokens import TokenizedText, Tokenizer
from late_chunking.encoding.windows import Windows


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """A sequence for the encoder, and bags of its tokens to add up.

    Attributes:
        ids: [L], special tokens, prompt, content, special tokens.
        rows: [B], which of the document's vectors each bag belongs to; no row twice.
        bags: [M], places in the sequence, bag after bag.
        offsets: [B], where each bag begins in `bags`; none is empty.
    """

    ids: IntArray
    rows: IntArray
    bags: IntArray
    offsets: IntArray

    def __len__(self) -> int:
        """Tokens in the sequence."""
        return len(self.ids)


def make_sequences(
    tokens: TokenizedText,
    alignment: Alignment,
    windows: Windows,
    tokenizer: Tokenizer,
    *,
    pool_prompt: bool = True,
    headers: Sequence[IntArray] = (),
    first_row: int = 0,
) -> list[TokenSequence]:
    """Turn a text's windows into sequences, those that a span has a part in.

    The tokens before the text are pooled from the first window, those after it from the last.

    Args:
        tokens: the text's tokens.
        alignment: the spans' tokens.
        windows: the windows to read them in.
        tokenizer: gives the special tokens.
        pool_prompt: whether a span that begins the text takes the leading special tokens and
            the prompt; false for models trained so.
        headers: for each window, ids that are read between its prompt and its text, and not
            pooled; for the first window, none. Without any, windows have no headers.
        first_row: the row of the first span's vector.
    """
    sequences = []
    for window in range(len(windows)):
        head, tail = surroundings(tokens, tokenizer, headers[window] if headers else None)
        start, end = int(windows.starts[window]), int(windows.ends[window])
        kept = np.clip(alignment.read, windows.kept[window], windows.kept[window + 1]) - start + len(head)  # [C, 2]
        before = alignment.leading & (pool_prompt and window == 0)
        after = alignment.trailing & (window == len(windows) - 1)
        rows, bags, offsets = _bags(kept, before, after, len(head), len(tail), len(head) + end - start)
        if not len(rows):
            continue  # a window that no span looks at need not be read
        ids = np.concatenate((head, tokens.ids[start:end], tail))
        sequences.append(TokenSequence(ids, rows + first_row, bags, offsets))
    return sequences


def surroundings(
    tokens: TokenizedText, tokenizer: Tokenizer, header: IntArray | None = None
) -> tuple[IntArray, IntArray]:
    """Give the ids that stand before a window of a text, and those after it."""
    parts = [np.asarray(tokenizer.leading, dtype=np.int64), tokens.prompt_ids, *([] if header is None else [header])]
    return np.concatenate(parts), np.asarray(tokenizer.trailing, dtype=np.int64)


def _bags(
    kept: IntArray, before: BoolArray, after: BoolArray, head: int, tail: int, content_end: int
) -> tuple[IntArray, IntArray, IntArray]:
    """List the places of each span in one sequence: head, content, tail.

    Args:
        kept: [C, 2], places of the span's content in the sequence.
        before: [C], whether the span takes the first `head` places.
        after: [C], whether it takes the last `tail` places.
        head: places before the content.
        tail: places after it.
        content_end: where the content ends.

    Returns:
        Rows, bags and offsets of a `TokenSequence`.
    """
    count = len(kept)
    starts = np.empty((count, 3), dtype=np.int64)  # three ranges a span
    starts[:] = [0, 0, content_end]
    starts[:, 1] = kept[:, 0]
    lengths = np.stack((before * head, kept[:, 1] - kept[:, 0], after * tail), axis=1)  # [C, 3]
    sizes = lengths.sum(axis=1)  # [C]
    flat_starts, flat_lengths = starts.ravel(), lengths.ravel()
    range_offsets = np.cumsum(flat_lengths) - flat_lengths
    bags = np.arange(int(sizes.sum())) + np.repeat(flat_starts - range_offsets, flat_lengths)
    rows = np.flatnonzero(sizes)
    offsets = (np.cumsum(sizes) - sizes)[rows]
    return rows, bags, offsets
