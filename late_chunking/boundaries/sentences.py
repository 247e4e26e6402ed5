"""Sentences, alone or packed up to a size."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from late_chunking.boundaries.merging import Merging
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import Boundary, checked_size
from late_chunking.characters import IntArray
from late_chunking.dependencies import require
from late_chunking.documents import Span
from late_chunking.errors import InvalidParameter

_PARAGRAPH_END: Final = re.compile(r"\n\s*\n")
_TERMINATORS: Final = ".!?…。！？｡؟۔।॥"
_CLOSERS: Final = "\"'”’»)]}」』）】〉》"
_LINE_END_AFTER_MARK: Final = re.compile(rf"[{re.escape(_TERMINATORS)}][{re.escape(_CLOSERS)}]*[^\S\r\n]*(?:\r\n?|\n)")
# A sentence in round brackets that ends inside them: "(It was late.) We left."
_BRACKETED: Final = re.compile(rf"[{re.escape(_TERMINATORS)}][)）\]]\s+(?=[\"'“‘(\[]?[^\W\d_a-z])")
# 「もう帰る。」と兄は言った。: hiragana right after the bracket goes on with the sentence.
_QUOTE_GOES_ON: Final = re.compile(r"[」』](?=[\u3041-\u3096])")


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences found by sentencex's rules for about 300 languages; others follow English ones.

    Without a `size`, one chunk a sentence. With one, consecutive sentences are packed up to
    `size` units; a sentence larger than that is cut at words. An overlap repeats whole
    sentences, as many as fit in it.
    """

    name: ClassVar[str] = "sentences"
    size: int | None = None
    overlap: int = 0
    unit: str = "tokens"
    language: str = "en"

    def __post_init__(self) -> None:
        """Check the options."""
        size, overlap = checked_size(self.size, self.overlap, self.unit)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "overlap", overlap)
        if self.size is None and self.overlap:
            raise InvalidParameter(f"overlap {self.overlap} needs a size: without one, sentences are not packed")
        if not isinstance(self.language, str) or not self.language:
            raise InvalidParameter(f"language must be an ISO 639 code such as 'en', got {self.language!r}")

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Find the sentences and pack them."""
        starts, ends = sentence_spans(source, self.language)
        if self.size is None:
            return [Boundary(Span(int(start), int(end))) for start, end in zip(starts, ends, strict=True)]
        merging = Merging(source, source.ruler(self.unit), self.size, self.overlap, (starts,))
        return [Boundary(span) for span in merging.split((starts, source.words.starts))]


def sentence_spans(source: SourceText, language: str) -> tuple[IntArray, IntArray]:
    """Give the trimmed starts and ends of a text's sentences, each [S]."""
    cuts = {0, len(source.text)}
    for start, end in _paragraphs(source.text):
        cuts.update(start + cut for cut in _sentence_ends(source.text[start:end], language))
        cuts.add(end)
    positions = np.asarray(sorted(cuts), dtype=np.int64)
    positions = np.unique(source.cluster_starts[positions])
    return source.trim(positions[:-1], positions[1:])


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Give the ranges between blank lines: segmenters are fed one at a time, to stay linear."""
    start = 0
    for gap in _PARAGRAPH_END.finditer(text):
        yield start, gap.end()
        start = gap.end()
    yield start, len(text)


def _sentence_ends(paragraph: str, language: str) -> set[int]:
    """Give the positions in a paragraph where sentences end."""
    if not paragraph or paragraph.isspace():
        return set()
    sentencex = require("sentencex", purpose="splitting sentences")
    ends = {int(boundary["end_index"]) for boundary in sentencex.get_sentence_boundaries(language, paragraph)}
    ends.update(match.end() for match in _LINE_END_AFTER_MARK.finditer(paragraph))
    ends.update(match.end() for match in _BRACKETED.finditer(paragraph))
    ends.difference_update(match.end() for match in _QUOTE_GOES_ON.finditer(paragraph))
    return ends
