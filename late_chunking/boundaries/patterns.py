"""Regular expressions, some of them a caller's: checked, compiled, and held to a limit of time."""

import time
from collections.abc import Sequence
from typing import Final

import numpy as np
import regex

from late_chunking.boundaries.source import SourceText
from late_chunking.characters import IntArray, distinct
from late_chunking.errors import InvalidParameter

_LONGEST: Final = 1_000
_SECONDS: Final = 2.0
_MOST_WRITTEN_OUT: Final = 20_000
# Escapes and classes, what opens and closes groups, counted repetitions, and all else.
_TOKENS: Final = regex.compile(
    r"\\.|\[\]?[^\]]*\]|(?P<open>\()|(?P<close>\))|\{(?P<least>\d{1,9}),?(?P<most>\d{0,9})\}[?+]?|.", regex.DOTALL
)
# Patterns that call themselves or a group: they can take all memory before any time is up.
_CALLS: Final = regex.compile(r"\(\?(?:R|[+-]?\d|&|P>)")


def compiled(pattern: str, noun: str, *, literal: bool = False) -> regex.Pattern[str]:
    """Compile a caller's pattern, of the package `regex`.

    Args:
        pattern: the expression, or a string to be found as it is.
        noun: what errors call it.
        literal: whether it is such a string.

    Raises:
        InvalidParameter: if it is too long, calls itself, or is no regular expression.
    """
    if len(pattern) > _LONGEST:
        raise InvalidParameter(f"a {noun} has at most {_LONGEST} characters, got {len(pattern)}")
    if not literal and _CALLS.search(pattern):
        raise InvalidParameter(f"{noun} {pattern!r:.80} calls itself or a group, which is not allowed")
    if not literal and (size := _written_out(pattern)) > _MOST_WRITTEN_OUT:
        raise InvalidParameter(
            f"{noun} {pattern!r:.80} repeats repetitions: written out, it has {size} parts; "
            f"{_MOST_WRITTEN_OUT} are the limit"
        )
    try:
        return regex.compile(regex.escape(pattern) if literal else pattern)
    except (regex.error, RecursionError, ValueError, OverflowError, MemoryError) as error:
        raise InvalidParameter(f"{noun} {pattern!r:.80} is no regular expression: {error}") from None


def _written_out(pattern: str) -> int:
    """Give about how many parts a pattern has with its counted repetitions written out, as compiling does."""
    sizes, last = [0], 0  # of the groups that are open, and of the part that a repetition would repeat
    for token in _TOKENS.finditer(pattern):
        if token["open"]:
            sizes.append(0)
        elif token["close"]:
            last = sizes.pop() if len(sizes) > 1 else 0
            sizes[-1] += last
        elif token["least"]:
            times = int(token["most"] or token["least"])
            sizes[-1] += last * max(times - 1, 0)
            last *= max(times, 1)
        else:
            last = 1
            sizes[-1] += 1
    return sum(sizes)


def found(source: SourceText, pattern: regex.Pattern[str], noun: str) -> list[tuple[int, int]]:
    """Give where a caller's pattern matches, within the time that is left for the whole text.

    Raises:
        InvalidParameter: if that does not suffice.
    """
    begun = time.monotonic()
    try:
        timeout = max(_SECONDS - source.stopwatch.seconds, 1e-3)
        return [match.span() for match in pattern.finditer(source.text, timeout=timeout)]
    except TimeoutError:
        limit = f"{_SECONDS:g} s for all of them on {len(source.text)} characters"
        raise InvalidParameter(f"{noun} {pattern.pattern!r:.80} took too long; the limit is {limit}") from None
    except (MemoryError, RecursionError):
        raise InvalidParameter(f"{noun} {pattern.pattern!r:.80} takes too much memory") from None
    finally:
        source.stopwatch.seconds += time.monotonic() - begun


def cuts_at(source: SourceText, positions: Sequence[int]) -> IntArray:
    """Give positions to cut at, each once, moved back to grapheme breaks.

    Args:
        source: the text.
        positions: sorted.
    """
    return distinct(source.cluster_starts[np.asarray(positions, dtype=np.int64)])
