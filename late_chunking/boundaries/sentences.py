"""Sentences, alone or packed up to a size."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from late_chunking.boundaries.pieces import check_pieces, gather
from late_chunking.boundaries.sizes import SizeOptions
from late_chunking.boundaries.source import UNITS, SourceText
from late_chunking.boundaries.strategy import Boundary
from late_chunking.characters import IntArray
from late_chunking.dependencies import require
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
class Sentences(SizeOptions):
    """Sentences found by sentencex's rules for about 300 languages; others follow English ones.

    Without a `size`, one chunk a sentence. With one, consecutive sentences are merged up to
    `size` units, and a sentence larger than that is cut at words; an overlap repeats whole
    sentences, as many as fit in it. With the unit ``"sentences"``, windows of so many.
    """

    name: ClassVar[str] = "sentences"
    units: ClassVar[tuple[str, ...]] = (*UNITS, "sentences")
    language: str = "en"

    def __post_init__(self) -> None:
        """Check the options."""
        SizeOptions.__post_init__(self)
        check_pieces(self)
        if not isinstance(self.language, str) or not self.language:
            raise InvalidParameter(f"language must be an ISO 639 code such as 'en', got {self.language!r}")

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Find the sentences and gather them."""
        found = sentence_spans(source, self.language)
        return gather(source, self, found, (source.words.starts,))


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
