"""Recursive separators: paragraphs first, then lines, sentences, words, characters."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import regex as expressions

from late_chunking.boundaries.merging import Merging
from late_chunking.boundaries.patterns import compiled, cuts_at, found
from late_chunking.boundaries.separators import PRESETS, preset_cuts
from late_chunking.boundaries.sizes import SizeOptions
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import Boundary
from late_chunking.boundaries.units import ruler_of
from late_chunking.characters import IntArray, distinct
from late_chunking.errors import InvalidParameter

_MOST_SEPARATORS: Final = 64


@dataclass(frozen=True, slots=True)
class Recursive(SizeOptions):
    """Cut at the first separator; where a piece is still too large, at the next; then merge.

    Consecutive pieces of one level are merged up to `size`. A separator stays with the piece
    before it; its white space is trimmed. Below the last separator come single characters
    (grapheme clusters). An overlap begins at a word, or, where the text has no word break
    within it, at a character.

    Attributes:
        separators: coarsest first, or the name of a list of ours: ``"text"`` (paragraph, line,
            sentence end, word), ``"chat"`` (turns before those) or ``"tickets"`` (rules and
            messages before all).
        regex: whether the given separators are regular expressions (of the package `regex`,
            and for two seconds in all), not literal strings.
    """

    name: ClassVar[str] = "recursive"
    separators: str | Sequence[str] | None = None
    regex: bool = False

    def __post_init__(self) -> None:
        """Check the options, and make the separators a tuple so that ids are stable."""
        SizeOptions.__post_init__(self)
        if not isinstance(self.regex, bool):
            raise InvalidParameter(f"regex must be true or false, got {self.regex!r}")
        if self.separators is not None:
            object.__setattr__(self, "separators", _checked(self.separators))
        self._compiled()

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Split and merge."""
        size, overlap = self.resolved(source)
        ruler = ruler_of(source, self.unit)
        overlap_starts = (source.words.starts, distinct(source.next_visible[ruler.cuts]))
        merging = Merging(source, ruler, size, overlap, overlap_starts)
        return [Boundary(span) for span in merging.split(self._levels(source))]

    def _levels(self, source: SourceText) -> list[IntArray]:
        """Give where each separator lets the text be cut: after it."""
        if self.separators is None or isinstance(self.separators, str):
            return preset_cuts(source, self.separators or "text")
        return [
            cuts_at(source, [end for _, end in found(source, pattern, "separator")]) for pattern in self._compiled()
        ]

    def _compiled(self) -> list[expressions.Pattern[str]]:
        """Compile a caller's separators."""
        if self.separators is None or isinstance(self.separators, str):
            return []
        return [compiled(separator, "separator", literal=not self.regex) for separator in self.separators]


def _checked(separators: str | Sequence[str]) -> str | tuple[str, ...]:
    """Check the type and number of separators, or the name of a preset."""
    listed = isinstance(separators, Sequence) and not isinstance(separators, str)
    if listed and all(isinstance(item, str) and item for item in separators):
        if len(separators) > _MOST_SEPARATORS:
            raise InvalidParameter(f"at most {_MOST_SEPARATORS} separators, got {len(separators)}")
        return tuple(separators)
    if isinstance(separators, str) and separators in PRESETS:
        return separators
    raise InvalidParameter(
        f"separators must be a list of non-empty strings or one of {', '.join(PRESETS)}, got {separators!r:.80}"
    )
