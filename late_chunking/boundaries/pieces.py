"""Pieces of a text (its sentences, its paragraphs) → chunks: alone, in windows, or merged up to a size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from late_chunking.boundaries.merging import Merging
from late_chunking.boundaries.rulers import UnitRuler
from late_chunking.boundaries.sizes import SizeOptions
from late_chunking.boundaries.sliding import slide
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import Boundary
from late_chunking.boundaries.units import ruler_of
from late_chunking.characters import IntArray
from late_chunking.documents import Span
from late_chunking.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class PieceOptions(SizeOptions):
    """Options of the strategies that gather pieces.

    Attributes:
        language: ISO 639 code, for the rules that find sentences.
    """

    name: ClassVar[str]
    needs_size: ClassVar[bool] = False
    language: str = "en"

    def __post_init__(self) -> None:
        """Check the options."""
        SizeOptions.__post_init__(self)
        if self.size is None and self.overlap:
            raise InvalidParameter(f"overlap {self.overlap} needs a size: without one, nothing is merged")
        check_language(self.language)


def gather(
    source: SourceText, options: PieceOptions, pieces: tuple[IntArray, IntArray], finer: Sequence[IntArray]
) -> list[Boundary]:
    """Make chunks of pieces.

    Without a size, one chunk a piece. With a size in pieces, sliding windows of so many. With one
    in another unit, consecutive pieces are merged up to it, and a piece that is larger is cut at
    the finer levels; an overlap repeats whole pieces, as many as fit in it.

    Args:
        source: the text.
        options: size, overlap and unit.
        pieces: their trimmed starts and ends, [P] each.
        finer: cut positions of the levels below, coarsest first.
    """
    starts, ends = pieces
    if options.size is None:
        return [Boundary(Span(int(start), int(end))) for start, end in zip(starts, ends, strict=True)]
    size, overlap = options.resolved(source)
    if options.unit == options.name:
        return slide(source, UnitRuler(starts, ends), size, overlap) if len(starts) else []
    merging = Merging(source, ruler_of(source, options.unit), size, overlap, (starts,))
    return [Boundary(span) for span in merging.split((starts, *finer))]


def check_language(language: object) -> None:
    """Check that a language may be one.

    Raises:
        InvalidParameter: if not.
    """
    if not isinstance(language, str) or not language or not language.isascii():
        raise InvalidParameter(f"language must be an ISO 639 code such as 'en', got {language!r}")
