"""Windows of a fixed number of tokens."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from late_chunking.boundaries.sizes import SizeOptions
from late_chunking.boundaries.sliding import slide
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import Boundary


@dataclass(frozen=True, slots=True)
class Tokens(SizeOptions):
    """Windows of `size` tokens, each `size - overlap` tokens after the one before.

    An edge inside a character moves back to that character's start.
    """

    name: ClassVar[str] = "tokens"
    units: ClassVar[tuple[str, ...]] = ("tokens",)

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Cut the text into windows."""
        return slide(source, source.tokens, *self.resolved(source))
