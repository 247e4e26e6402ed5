"""What the encoder reads: one window of a text with its special tokens, and what to pool of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat

import numpy as np
import numpy.typing as npt

from late_chunking.characters import IntArray
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
        sizes: [B], how many places in `bags` are each bag's; none is empty.
    """

    ids: IntArray
    rows: IntArray
    bags: IntArray
    sizes: IntArray

    def __len__(self) -> int:
        """Tokens in the sequence."""
        return len(self.ids)


def count_pooled(sequences: Sequence[TokenSequence], rows: int) -> npt.NDArray[np.float32]:
    """Count the tokens in all bags of each row, float32 [rows]."""
    if not sequences:
        return np.zeros(rows, dtype=np.float32)
    of_rows = np.concatenate([sequence.rows for sequence in sequences])
    sizes = np.concatenate([sequence.sizes for sequence in sequences])
    return np.bincount(of_rows, weights=sizes, minlength=rows).astype(np.float32)


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
    head, tail = surroundings(tokens, tokenizer)
    ids, heads = written(tokens, windows, head, tail, headers)
    rows, read_in, ranges = _parts(alignment, windows, heads, len(head) * pool_prompt, len(tail))
    lengths = ranges[:, :, 1] - ranges[:, :, 0]  # [P, 3]
    sizes = lengths.sum(axis=1)  # [P]
    bags = _spread(ranges[:, :, 0].ravel(), lengths.ravel())
    rows += first_row
    # Parts are sorted by window, so each window has a run of them, and of places in their bags.
    edges = read_in.searchsorted(np.arange(len(windows) + 1))  # [W + 1]
    bounds = np.append(0, sizes.cumsum())[edges].tolist()
    parts = edges.tolist()
    return [
        TokenSequence(ids[window], rows[first:end], bags[bounds[window] : bounds[window + 1]], sizes[first:end])
        for window, (first, end) in enumerate(pairwise(parts))
        if first < end  # a window that no span looks at need not be read
    ]


def written(
    tokens: TokenizedText, windows: Windows, head: IntArray, tail: IntArray, headers: Sequence[IntArray]
) -> tuple[list[IntArray], IntArray]:
    """Write the ids of each window.

    Returns:
        For each window its ids [L], and how many of them stand before its text, [W].
    """
    ranges = zip(windows.starts.tolist(), windows.ends.tolist(), headers or repeat(head[:0]), strict=False)
    ids = [np.concatenate((head, header, tokens.ids[start:end], tail)) for start, end, header in ranges]
    return ids, np.asarray([len(each) - len(tail) for each in ids]) - (windows.ends - windows.starts)


def surroundings(tokens: TokenizedText, tokenizer: Tokenizer) -> tuple[IntArray, IntArray]:
    """Give the ids that stand before every window of a text, and those after it."""
    head = np.concatenate((np.asarray(tokenizer.leading, dtype=np.int64), tokens.prompt_ids))
    return head, np.asarray(tokenizer.trailing, dtype=np.int64)


def _parts(
    alignment: Alignment, windows: Windows, heads: IntArray, head: int, tail: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Part the spans among the windows, each span's tokens to the windows that they are taken from.

    Args:
        alignment: the spans' tokens.
        windows: the windows.
        heads: [W], places before each window's text.
        head: of these, those that a leading span takes in the first window.
        tail: places after the text, those that a trailing span takes in the last window.

    Returns:
        Spans [P], windows [P], and the ranges of places [P, 3, 2] that each part takes: before the
        text, of the text, after it. Sorted by window; no part is empty.
    """
    first = windows.kept.searchsorted(alignment.read[:, 0], side="right") - 1  # [C], of each span's windows
    last = np.maximum(windows.kept.searchsorted(alignment.read[:, 1], side="left") - 1, first)
    counts = last - first + 1
    rows = np.repeat(np.arange(len(counts)), counts)  # [P]
    read_in = _spread(first, counts)
    order = np.argsort(read_in, kind="stable")
    rows, read_in = rows[order], read_in[order]
    low, high = windows.kept[read_in], windows.kept[read_in + 1]
    places = heads[read_in] - windows.starts[read_in]  # of the text's first token, if the window began with it
    ends = places + windows.ends[read_in]
    ranges = np.zeros((len(rows), 3, 2), dtype=np.int64)
    ranges[:, 0, 1] = head * (alignment.leading[rows] & (read_in == 0))
    ranges[:, 1] = np.clip(alignment.read[rows], low[:, None], high[:, None]) + places[:, None]
    ranges[:, 2] = ends[:, None]
    ranges[:, 2, 1] += tail * (alignment.trailing[rows] & (read_in == len(windows) - 1))
    kept = (ranges[:, :, 1] > ranges[:, :, 0]).any(axis=1)
    return rows[kept], read_in[kept], ranges[kept]


def _spread(starts: IntArray, lengths: IntArray) -> IntArray:
    """Write ranges out, one after the other."""
    ends = np.cumsum(lengths)
    places: IntArray = np.arange(int(ends[-1]) if len(ends) else 0)
    places += np.repeat(starts - (ends - lengths), lengths)
    return places
