"""Recursive separators: paragraphs first, then lines, sentences, words, characters."""

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import regex

from late_chunking.boundaries.merging import Merging
from late_chunking.boundaries.sizes import SizeOptions
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import Boundary
from late_chunking.characters import IntArray
from late_chunking.errors import InvalidParameter

_SEPARATORS: Final = (
    r"\n\s*\n",  # paragraph
    r"\r\n|[\n\r\u2028]",  # line
    r"[.!?…؟۔][\"'”’»)\]]*\s+|[。！？｡।॥][」』”’）]*\s*",  # sentence end
    r"\s+",  # word
)
_MOST_SEPARATORS: Final = 64
_LONGEST_SEPARATOR: Final = 1_000
_SECONDS: Final = 2.0
# Patterns that call themselves or a group: they can take all memory before any time is up.
_CALLS: Final = re.compile(r"\(\?(?:R|[+-]?\d|&|P>)")


@dataclass(frozen=True, slots=True)
class Recursive(SizeOptions):
    """Cut at the first separator; where a piece is still too large, at the next; then merge.

    Consecutive pieces of one level are merged up to `size`. A separator stays with the piece
    before it; its white space is trimmed. Below the last separator come single characters
    (grapheme clusters). An overlap begins at a word, or, where the text has no word break
    within it, at a character.

    Attributes:
        separators: coarsest first; by default paragraph, line, sentence end and word.
        regex: whether the given separators are regular expressions (of the package `regex`,
            and for two seconds in all), not literal strings.
    """

    name: ClassVar[str] = "recursive"
    separators: Sequence[str] | None = None
    regex: bool = False

    def __post_init__(self) -> None:
        """Check the options, and make the separators a tuple so that ids are stable."""
        SizeOptions.__post_init__(self)
        if not isinstance(self.regex, bool):
            raise InvalidParameter(f"regex must be true or false, got {self.regex!r}")
        if self.separators is not None:
            object.__setattr__(self, "separators", _checked(self.separators, self.regex))
        _patterns(self)

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Split and merge."""
        size, overlap = self.resolved(source)
        ruler = source.ruler(self.unit)
        overlap_starts = (source.words.starts, source.next_visible[np.unique(ruler.starts)])
        merging = Merging(source, ruler, size, overlap, overlap_starts)
        return [Boundary(span) for span in merging.split(_levels(source, _patterns(self)))]


def default_cuts(source: SourceText) -> list[IntArray]:
    """Give where a text may be cut by the default separators, coarsest first."""
    return _levels(source, _default_patterns())


def _default_patterns() -> list[regex.Pattern[str]]:
    """Compile the default separators."""
    return [regex.compile(separator) for separator in _SEPARATORS]


def _patterns(strategy: Recursive) -> list[regex.Pattern[str]]:
    """Compile a strategy's separators."""
    if strategy.separators is None:
        return _default_patterns()
    patterns = []
    for separator in strategy.separators:
        try:
            patterns.append(regex.compile(separator if strategy.regex else regex.escape(separator)))
        except (regex.error, RecursionError, OverflowError, MemoryError) as error:
            raise InvalidParameter(f"separator {separator!r:.80} is no regular expression: {error}") from None
    return patterns


def _checked(separators: Sequence[str], is_regex: bool) -> tuple[str, ...]:
    """Check the type and number of separators."""
    listed = isinstance(separators, Sequence) and not isinstance(separators, str)
    if not listed or not all(isinstance(item, str) and item for item in separators):
        raise InvalidParameter(f"separators must be a list of non-empty strings, got {separators!r}")
    if len(separators) > _MOST_SEPARATORS:
        raise InvalidParameter(f"at most {_MOST_SEPARATORS} separators, got {len(separators)}")
    for separator in separators:
        if len(separator) > _LONGEST_SEPARATOR:
            raise InvalidParameter(f"a separator has at most {_LONGEST_SEPARATOR} characters, got {len(separator)}")
        if is_regex and _CALLS.search(separator):
            raise InvalidParameter(f"separator {separator!r:.80} calls itself or a group, which is not allowed")
    return tuple(separators)


def _levels(source: SourceText, patterns: Sequence[regex.Pattern[str]]) -> list[IntArray]:
    """Give the cuts of each separator, all of them within one limit of time."""
    deadline = time.monotonic() + _SECONDS
    return [_cuts(source, pattern, deadline) for pattern in patterns]


def _cuts(source: SourceText, pattern: regex.Pattern[str], deadline: float) -> IntArray:
    """Give the positions after each match of a separator, moved back to a grapheme break."""
    try:
        matches = pattern.finditer(source.text, timeout=max(deadline - time.monotonic(), 1e-3))
        ends = np.asarray([match.end() for match in matches], dtype=np.int64)
    except TimeoutError:
        limit = f"{_SECONDS:g} s for all of them on {len(source.text)} characters"
        raise InvalidParameter(f"separator {pattern.pattern!r:.80} took too long; the limit is {limit}") from None
    except (MemoryError, RecursionError):
        raise InvalidParameter(f"separator {pattern.pattern!r:.80} takes too much memory") from None
    return np.unique(source.cluster_starts[ends])
