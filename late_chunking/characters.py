"""What the characters of a text are: white space, and grapheme clusters.

Everything here is an array over code points, so that later stages need no Python loop over
characters. Knows nothing of tokens or strategies.
"""

import re
from typing import Final

import numpy as np
import numpy.typing as npt
import regex

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_LAST_SPACE: Final = 0x3000
# str.isspace is the definition; no code point above U+3000 has it.
_IS_SPACE: Final = np.array([chr(code).isspace() for code in range(_LAST_SPACE + 1)] + [False])
_NON_ASCII_RUN: Final = re.compile(r"[^\x00-\x7f]+")
_FLAGS: Final = re.compile("[\U0001f1e6-\U0001f1ff]{6,}")
_CLUSTER: Final = regex.compile(r"\X")


def whitespace(text: str) -> BoolArray:
    """Tell for each code point whether it is white space, as ``str.isspace`` says. [n]."""
    if text.isascii():
        return _IS_SPACE[np.frombuffer(text.encode("ascii"), dtype=np.uint8)]
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return _IS_SPACE[np.minimum(codes, _LAST_SPACE + 1)]


def grapheme_breaks(text: str) -> BoolArray:
    r"""Tell for each position 0 … n whether a grapheme cluster may begin or end there. [n + 1].

    Extended grapheme clusters of Unicode UAX #29, so ``\r\n`` is one. Between two ASCII
    characters there is always a break but inside ``\r\n``, whatever stands around them;
    only runs of other characters, with a neighbour on each side, need the full rules.
    """
    breaks = np.ones(len(text) + 1, dtype=np.bool_)
    if text.isascii() and "\r" not in text:
        return breaks
    for match in re.finditer("\r\n", text):
        breaks[match.start() + 1] = False
    for run in _NON_ASCII_RUN.finditer(text):
        start, end = max(run.start() - 1, 0), min(run.end() + 1, len(text))
        for flags in _FLAGS.finditer(text, run.start(), run.end()):
            # A row of flags is pairs from its beginning; found so, as the rules count back each time.
            # Only the first pair can join what is before, the last what follows.
            _mark_clusters(breaks, text, start, flags.start() + 2)
            start = flags.end() - 2 + len(flags[0]) % 2
            breaks[flags.start() + 1 : start] = False
            breaks[flags.start() + 2 : start + 1 : 2] = True
        _mark_clusters(breaks, text, start, end)
    return breaks


def _mark_clusters(breaks: BoolArray, text: str, start: int, end: int) -> None:
    """Mark the breaks strictly inside a range of a text, by the full rules."""
    breaks[start + 1 : end] = False
    ends = [start + cluster.end() for cluster in _CLUSTER.finditer(text[start:end])]
    breaks[np.asarray(ends[:-1], dtype=np.int64)] = True


def distinct(values: IntArray) -> IntArray:
    """Give each value of a sorted array once."""
    return values[np.diff(values, prepend=values[:1] - 1) > 0] if len(values) else values


def next_where(mask: BoolArray) -> IntArray:
    """Give for each position 0 … n the first position at or after it where the mask holds, or n."""
    size = len(mask)
    found = np.where(mask, np.arange(size), size)
    return np.append(np.minimum.accumulate(found[::-1])[::-1], size)
