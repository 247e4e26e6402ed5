"""A document longer than the model reads → overlapping windows, and whose word counts where."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from late_chunking.characters import IntArray

# Share of a window's content that the next one repeats. Measured with the embedded model (windows
# of 256) and chunks of 50 words, nDCG@10 over the chunks of all documents, by
# scripts/measure_windows.py; "cost" is tokens read, for the tales, against no overlap:
#
#   overlap                                 0      1/8     1/4     3/8     1/2
#   fairy tales, 1025 queries               0.331  0.341   0.346   0.353   0.347
#   articles, chats and talks, 375          0.565  0.574   0.597   0.602   0.599
#   encyclopaedia, 1190                     0.770  0.776   0.778   0.787   0.786
#   cost                                    1.00   1.12    1.30    1.53    1.88
#
# The first quarter brings 0.008 to 0.032 for 30 % more reading; the next eighth 0.005 to 0.009, far
# less than its intervals of ±0.02, for another 18 %.
DEFAULT_OVERLAP: Final = 0.25


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows over the tokens of one text.

    Attributes:
        starts: [W], first token of each window.
        ends: [W], end of each window.
        kept: [W + 1], non-decreasing, from 0 to the number of tokens: the vectors of tokens
            ``kept[w]`` to ``kept[w + 1]`` are taken from window w.
    """

    starts: IntArray
    ends: IntArray
    kept: IntArray

    def __len__(self) -> int:
        """How many windows there are."""
        return len(self.starts)


def plan_windows(tokens: int, capacity: int, overlap: int) -> Windows:
    """Cover a text with windows of so many tokens.

    One window starts every ``capacity - overlap`` tokens; the last is moved left so that it is
    full. A token is taken from the window in which it stands furthest from an inner edge (one
    that cuts the text), the earlier on a tie: where window w + 1 begins at S and window w ends
    at E, that is window w up to ``(S + E - 1) // 2``.

    Args:
        tokens: tokens of the text.
        capacity: tokens a window holds, special tokens and prompt taken off; at least 1.
        overlap: tokens that neighbouring windows share, less than `capacity`.
    """
    if tokens <= capacity:
        return Windows(np.array([0]), np.array([tokens]), np.array([0, tokens]))
    stride = capacity - overlap
    count = -((capacity - tokens) // stride) + 1  # 1 + ceil((tokens - capacity) / stride)
    starts = np.minimum(np.arange(count) * stride, tokens - capacity)
    ends = starts + capacity
    switches = (starts[1:] + ends[:-1] - 1) // 2 + 1
    return Windows(starts, ends, np.concatenate(([0], switches, [tokens])))
