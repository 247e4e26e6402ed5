"""Recursive separators: paragraphs first, then lines, sentences, words, characters."""

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
_SECONDS_PER_SEPARATOR: Final = 5.0


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
            and for at most five seconds each), not literal strings.
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
            object.__setattr__(self, "separators", _checked(self.separators))
        _patterns(self)

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Split and merge."""
        size, overlap = self.resolved(source)
        ruler = source.ruler(self.unit)
        levels = [_cuts(source, pattern) for pattern in _patterns(self)]
        overlap_starts = (source.words.starts, source.next_visible[np.unique(ruler.starts)])
        merging = Merging(source, ruler, size, overlap, overlap_starts)
        return [Boundary(span) for span in merging.split(levels)]


def _patterns(strategy: Recursive) -> list[regex.Pattern[str]]:
    """Compile a strategy's separators."""
    if strategy.separators is None:
        return [regex.compile(separator) for separator in _SEPARATORS]
    patterns = []
    for separator in strategy.separators:
        try:
            patterns.append(regex.compile(separator if strategy.regex else regex.escape(separator)))
        except regex.error as error:
            raise InvalidParameter(f"separator {separator!r} is no regular expression: {error}") from None
    return patterns


def _checked(separators: Sequence[str]) -> tuple[str, ...]:
    """Check the type and number of separators."""
    listed = isinstance(separators, Sequence) and not isinstance(separators, str)
    if not listed or not all(isinstance(item, str) and item for item in separators):
        raise InvalidParameter(f"separators must be a list of non-empty strings, got {separators!r}")
    if len(separators) > _MOST_SEPARATORS:
        raise InvalidParameter(f"at most {_MOST_SEPARATORS} separators, got {len(separators)}")
    return tuple(separators)


def _cuts(source: SourceText, pattern: regex.Pattern[str]) -> IntArray:
    """Give the positions after each match of a separator, moved back to a grapheme break."""
    try:
        matches = pattern.finditer(source.text, timeout=_SECONDS_PER_SEPARATOR)
        ends = np.asarray([match.end() for match in matches], dtype=np.int64)
    except TimeoutError:
        limit = f"{_SECONDS_PER_SEPARATOR:g} s on {len(source.text)} characters"
        raise InvalidParameter(f"separator {pattern.pattern!r} took longer than {limit}") from None
    return np.unique(source.cluster_starts[ends])
