"""Chunks within chunks: small ones to find, the large ones around them to read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final

from late_chunking.boundaries.merging import Merging
from late_chunking.boundaries.recursive import default_cuts
from late_chunking.boundaries.sizes import check_unit
from late_chunking.boundaries.source import UNITS, SourceText
from late_chunking.boundaries.strategy import Boundary, is_integer
from late_chunking.documents import Span
from late_chunking.errors import InvalidParameter

_MOST_LEVELS: Final = 8


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Levels of chunks, each cut as `recursive` cuts, within the chunks of the level above.

    The largest are level 0; every other chunk names its parent. All levels are pooled from one
    pass of the encoder.

    Attributes:
        sizes: units a chunk, for each level, largest first.
        unit: ``"tokens"``, ``"chars"`` or ``"words"``.
    """

    name: ClassVar[str] = "hierarchy"
    sizes: Sequence[int]
    unit: str = "tokens"

    def __post_init__(self) -> None:
        """Check the options."""
        check_unit(self.unit, tuple(UNITS))
        listed = isinstance(self.sizes, Sequence) and not isinstance(self.sizes, str)
        if not listed or not all(is_integer(size) and size >= 1 for size in self.sizes):
            raise InvalidParameter(f"sizes must be a list of integers of at least 1, got {self.sizes!r:.80}")
        if not 1 <= len(self.sizes) <= _MOST_LEVELS:
            raise InvalidParameter(f"sizes must name 1 to {_MOST_LEVELS} levels, got {len(self.sizes)}")
        if any(larger <= smaller for larger, smaller in pairwise(self.sizes)):
            raise InvalidParameter(f"sizes must decrease from level to level, got {list(self.sizes)}")
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Cut level by level; all chunks of a level come before those of the next."""
        cuts = default_cuts(source)
        boundaries: list[Boundary] = []
        parents: list[tuple[int | None, Span]] = [(None, Span(0, len(source.text)))]
        for level, size in enumerate(self.sizes):
            merging = Merging(source, source.ruler(self.unit), size)
            children: list[tuple[int | None, Span]] = []
            for parent, within in parents:
                for span in merging.split(cuts, within):
                    children.append((len(boundaries), span))
                    boundaries.append(Boundary(span, level=level, parent=parent))
            parents = children
        return boundaries
