"""Sentences, alone or packed up to a size."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from late_chunking.boundaries.patterns import cuts_at
from late_chunking.boundaries.pieces import PieceOptions, gather
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import Boundary
from late_chunking.boundaries.units import UNITS
from late_chunking.characters import IntArray
from late_chunking.dependencies import require

_PARAGRAPH_END: Final = re.compile(r"\n\s*\n")
_TERMINATORS: Final = ".!?…。！？｡؟۔।॥"
_CLOSERS: Final = "\"'”’»)]}」』）】〉》"
_LINE_END_AFTER_MARK: Final = re.compile(rf"[{re.escape(_TERMINATORS)}][{re.escape(_CLOSERS)}]*[^\S\r\n]*(?:\r\n?|\n)")
# What segmenters are fed at once, in characters, where their time would grow with its square.
_PIECE: Final = 4_000
_SURE_END: Final = re.compile(rf"[。！？｡।॥؟۔](?![。！？｡।॥؟۔{re.escape(_CLOSERS)}])")
_BRACKETS: Final = ("「」", "『』", "“”", "（）", "()", "«»")
_OPENING_QUOTES: Final = "“«‹„「『"
_MANY_QUOTES: Final = 100
_TRIES: Final = 8
# A sentence in round brackets that ends inside them: "(It was late.) We left."
_BRACKETED: Final = re.compile(rf"[{re.escape(_TERMINATORS)}][)）\]]\s+(?=[\"'“‘(\[]?[^\W\d_a-z])")
# 「もう帰る。」と兄は言った。: hiragana right after the bracket goes on with the sentence.
_QUOTE_GOES_ON: Final = re.compile(r"[」』](?=[\u3041-\u3096])")


@dataclass(frozen=True, slots=True)
class Sentences(PieceOptions):
    """Sentences found by sentencex's rules for about 300 languages; others follow English ones.

    Without a `size`, one chunk a sentence. With one, consecutive sentences are merged up to
    `size` units, and a sentence larger than that is cut at words; an overlap repeats whole
    sentences, as many as fit in it. With the unit ``"sentences"``, windows of so many.
    """

    name: ClassVar[str] = "sentences"
    units: ClassVar[tuple[str, ...]] = (*UNITS, "sentences")

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Find the sentences and gather them."""
        found = sentence_spans(source, self.language)
        return gather(source, self, found, (source.words.starts,))


def sentence_spans(source: SourceText, language: str) -> tuple[IntArray, IntArray]:
    """Give the trimmed starts and ends of a text's sentences, each [S]."""
    cuts = {0, len(source.text)}
    for start, end in _paragraphs(source.text):
        for low, high in _bounded(source.text, start, end):
            cuts.update(low + cut for cut in _sentence_ends(source.text[low:high], language))
            cuts.add(high)
    positions = cuts_at(source, sorted(cuts))
    return source.trim(positions[:-1], positions[1:])


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Give the ranges between blank lines: segmenters are fed one at a time, to stay linear."""
    start = 0
    for gap in _PARAGRAPH_END.finditer(text):
        yield start, gap.end()
        start = gap.end()
    yield start, len(text)


def _bounded(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a long paragraph where a sentence surely ends: segmenters' time grows with its square.

    That is so in scripts without spaces, which have such places, and in long rows of quotation
    marks, which are cut anywhere. Other text is left whole: there, time grows with its length.
    """
    while end - start > _PIECE:
        high = start + _PIECE
        ends = [match.end() for match in _SURE_END.finditer(text, start + _PIECE // 2, high)]
        if ends:
            cut = next((each for each in ends[: -_TRIES - 1 : -1] if _is_balanced(text, start, each)), ends[-1])
        elif sum(text.count(mark, start, high) for mark in _OPENING_QUOTES) > _MANY_QUOTES:
            cut = high
        elif later := _SURE_END.search(text, high, end):
            cut = later.end()
        else:
            break
        yield start, cut
        start = cut
    if start < end:
        yield start, end


def _is_balanced(text: str, start: int, end: int) -> bool:
    """Tell whether the quotation brackets opened in a range are closed in it."""
    return all(text.count(left, start, end) == text.count(right, start, end) for left, right in _BRACKETS)


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
