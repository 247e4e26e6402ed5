"""A document pooled once, piece by piece: every chunk that is made of pieces is the sum of theirs.

For boundaries that are known only after the document was read: no token vector is kept for
them, nor looked at again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from late_chunking.boundaries.readings import Reading, Readings
from late_chunking.characters import BoolArray, IntArray
from late_chunking.encoding.alignment import Alignment
from late_chunking.encoding.sequences import TokenSequence, surroundings, written
from late_chunking.encoding.tokens import TokenizedText, Tokenizer
from late_chunking.encoding.windows import Windows

Sums = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Cells:
    """The ranges of a text's own tokens that are added up, row by row.

    Each window is cut at every edge of a piece and where it hands over to the next, so that a
    row lies in one piece, or between pieces, and is wholly kept from its window or not at all.

    Attributes:
        cuts: [E], where pieces begin and end, with 0 and the number of tokens; sorted.
        starts: [R], first token of each row; windows after one another.
        ends: [R], end of each row.
        windows: [R], the window that it was read in.
        kept: [R], whether a document takes the vectors of these tokens from there.
        kept_from: [W + 1], as of `Windows`.
        head: tokens before the text (special tokens, prompt) that its first chunk takes: their
            row is R, if there are any.
        tail: tokens after it, which its last chunk takes: their row is the last one, if there are any.
    """

    cuts: IntArray
    starts: IntArray
    ends: IntArray
    windows: IntArray
    kept: BoolArray
    kept_from: IntArray
    head: int
    tail: int

    @property
    def rows(self) -> int:
        """How many rows there are, those of head and tail included."""
        return len(self.starts) + (self.head > 0) + (self.tail > 0)

    def hold(self, alignment: Alignment) -> bool:
        """Tell whether all chunks begin and end at cuts, so that they are sums of rows."""
        return bool(np.isin(alignment.read, self.cuts).all())

    def pooled(self, alignment: Alignment) -> npt.NDArray[np.float32]:
        """Count the token vectors that each chunk is the mean of. [C]."""
        own = alignment.read[:, 1] - alignment.read[:, 0]
        pooled: npt.NDArray[np.float32] = own + alignment.leading * self.head + alignment.trailing * self.tail
        return pooled.astype(np.float32)

    def sums_of(self, alignment: Alignment, sums: Sums) -> Sums:
        """Add up the rows of each chunk.

        Args:
            alignment: the chunks' tokens, which `hold`.
            sums: [rows, D].

        Returns:
            float32 [C, D].
        """
        places = np.flatnonzero(self.kept)
        rows = self.starts[places].searchsorted(alignment.read)  # [C, 2]
        # reduceat wants every index to be one of a row, so that an end past the last has a row of zeros;
        # every other of its answers lies between two chunks. Double precision: rows can be many.
        kept = np.concatenate((sums[places], np.zeros((1, sums.shape[1]), dtype=np.float32)))
        added = np.add.reduceat(kept, rows.ravel(), axis=0, dtype=np.float64)[::2]  # [C, D]
        if self.head:
            added[alignment.leading] += sums[len(self.starts)]
        if self.tail:
            added[alignment.trailing] += sums[-1]
        return added.astype(np.float32)

    def readings(self, pieces: IntArray, sums: Sums) -> Readings:
        """Give the vectors of pieces, as far as each window holds them, to be compared in that window alone.

        A gap is judged by the window that keeps the token after it; where that does not hold the
        piece before the gap (windows without overlap), by none.

        Args:
            pieces: [P, 2], the pieces' own tokens.
            sums: [rows, D].
        """
        # The piece of each row; rows between pieces belong to none.
        owners = np.maximum(pieces[:, 0].searchsorted(self.starts, side="right") - 1, 0)
        owned = (self.starts >= pieces[owners, 0]) & (self.starts < pieces[owners, 1])
        judges = self.kept_from.searchsorted(pieces[1:, 0], side="right") - 1  # [P - 1]
        readings = []
        for window in range(len(self.kept_from) - 1):
            rows = np.flatnonzero(owned & (self.windows == window))
            if not len(rows):
                continue
            first, last = int(owners[rows[0]]), int(owners[rows[-1]])
            added = np.zeros((last - first + 1, sums.shape[1]), dtype=np.float32)
            np.add.at(added, owners[rows] - first, sums[rows])
            counts = np.zeros(last - first + 1, dtype=np.int64)
            np.add.at(counts, owners[rows] - first, self.ends[rows] - self.starts[rows])
            low, high = judges.searchsorted((window, window + 1))
            readings.append(Reading(first, added, counts, (max(int(low), first), min(int(high), last))))
        return Readings(len(pieces), readings)

    @classmethod
    def of(cls, cuts: IntArray, windows: Windows, head: int, tail: int) -> Self:
        """Cut each window.

        Args:
            cuts: token positions, 0 and the number of tokens among them; sorted.
            windows: the windows that the text is read in.
            head: as the attribute.
            tail: as the attribute.
        """
        edges = []
        for window in range(len(windows)):
            start, end = windows.starts[window], windows.ends[window]
            inside = np.concatenate((cuts, windows.kept[window : window + 2], (start, end)))
            edges.append(np.unique(inside[(start <= inside) & (inside <= end)]))
        starts, ends = np.concatenate([each[:-1] for each in edges]), np.concatenate([each[1:] for each in edges])
        read_in = np.repeat(np.arange(len(windows)), [len(each) - 1 for each in edges])
        kept = (starts >= windows.kept[read_in]) & (ends <= windows.kept[read_in + 1])
        return cls(cuts, starts, ends, read_in, kept, windows.kept, head, tail)


def make_cells(
    tokens: TokenizedText,
    cuts: IntArray,
    windows: Windows,
    tokenizer: Tokenizer,
    *,
    pool_prompt: bool,
    headers: Sequence[IntArray] = (),
) -> tuple[list[TokenSequence], Cells]:
    """Turn a text's windows into sequences, all of whose tokens are pooled into cells.

    Args:
        tokens: the text's tokens.
        cuts: as `Cells.cuts`.
        windows: the windows to read them in.
        tokenizer: gives the special tokens.
        pool_prompt: as for `make_sequences`.
        headers: as for `make_sequences`.
    """
    head, tail = surroundings(tokens, tokenizer)
    cells = Cells.of(cuts, windows, len(head) if pool_prompt else 0, len(tail))
    ids, heads = written(tokens, windows, head, tail, headers)
    sequences = []
    for window, own in enumerate(ids):
        rows = np.flatnonzero(cells.windows == window)
        bags = np.arange(heads[window], len(own) - len(tail))
        sizes = cells.ends[rows] - cells.starts[rows]
        if window == 0 and cells.head:
            rows, sizes = np.append(rows, len(cells.starts)), np.append(sizes, len(head))
            bags = np.append(bags, np.arange(len(head)))
        if window == len(windows) - 1 and cells.tail:
            rows, sizes = np.append(rows, cells.rows - 1), np.append(sizes, len(tail))
            bags = np.append(bags, np.arange(len(own) - len(tail), len(own)))
        sequences.append(TokenSequence(own, rows, bags, sizes))
    return sequences, cells
