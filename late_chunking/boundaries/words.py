"""Windows of a fixed number of words."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from late_chunking.boundaries.sizes import SizeOptions
from late_chunking.boundaries.sliding import slide
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import Boundary


@dataclass(frozen=True, slots=True)
class Words(SizeOptions):
    """Windows of `size` words (runs of characters that are not white space)."""

    name: ClassVar[str] = "words"
    units: ClassVar[tuple[str, ...]] = ("words",)
    unit: str = "words"

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Cut the text into windows."""
        return slide(source, source.words, *self.resolved(source))
