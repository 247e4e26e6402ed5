"""Paragraphs, alone or gathered up to a size."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from late_chunking.boundaries.patterns import cuts_at
from late_chunking.boundaries.pieces import PieceOptions, gather
from late_chunking.boundaries.sentences import sentence_spans
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import Boundary
from late_chunking.boundaries.units import UNITS

_BLANK_LINES: Final = re.compile(r"(?:\r\n|\r|\n)[^\S\r\n]*(?:\r\n|\r|\n)\s*")


@dataclass(frozen=True, slots=True)
class Paragraphs(PieceOptions):
    """Paragraphs, set apart by blank lines.

    Without a `size`, one chunk a paragraph. With one, consecutive paragraphs are merged up to
    `size` units, and a paragraph larger than that is cut at sentences, then at words; an overlap
    repeats whole paragraphs, as many as fit in it. With the unit ``"paragraphs"``, windows of so
    many.
    """

    name: ClassVar[str] = "paragraphs"
    units: ClassVar[tuple[str, ...]] = (*UNITS, "paragraphs")

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Find the paragraphs and gather them."""
        cuts = cuts_at(source, [0, *(gap.end() for gap in _BLANK_LINES.finditer(source.text)), len(source.text)])
        found = source.trim(cuts[:-1], cuts[1:])
        finer = [] if self.size is None else [sentence_spans(source, self.language)[0], source.words.starts]
        return gather(source, self, found, finer)
