"""The options size and overlap, as every strategy that has them takes them."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from late_chunking.boundaries.source import UNITS, SourceText
from late_chunking.boundaries.strategy import is_integer
from late_chunking.errors import InvalidParameter

_LARGEST: Final = 2**31
_PERCENTAGE: Final = re.compile(r"(\d+(?:\.\d+)?) ?%")


@dataclass(frozen=True, slots=True)
class SizeOptions:
    """How large a chunk may be, and how much of the one before it repeats.

    Attributes:
        size: units a chunk; by default as many tokens as suit the model.
        overlap: units, or a percentage of the size such as ``"15%"``, rounded up; at least one
            unit of each chunk is new.
        unit: what they count: ``"tokens"`` (the document's own), ``"chars"`` (code points),
            ``"words"``, or what the strategy is named for.
    """

    units: ClassVar[tuple[str, ...]] = tuple(UNITS)
    size: int | None = None
    overlap: int | str = 0
    unit: str = "tokens"

    def __post_init__(self) -> None:
        """Check the options, and keep them as plain numbers."""
        check_unit(self.unit, self.units)
        if self.size is not None:
            if not is_integer(self.size) or self.size < 1:
                raise InvalidParameter(f"size must be an integer of at least 1, got {self.size!r}")
            object.__setattr__(self, "size", int(self.size))
        if isinstance(self.overlap, str):
            if not _PERCENTAGE.fullmatch(self.overlap):
                raise InvalidParameter(f"overlap must be a number or a percentage such as '15%', got {self.overlap!r}")
        elif is_integer(self.overlap) and self.overlap >= 0:
            object.__setattr__(self, "overlap", int(self.overlap))
        else:
            raise InvalidParameter(f"overlap must be an integer of at least 0, got {self.overlap!r}")
        if self.size is not None:
            overlapping(self.size, self.overlap)

    def resolved(self, source: SourceText) -> tuple[int, int]:
        """Give size and overlap in units, with the default for a size that was not given.

        Raises:
            InvalidParameter: if there is none, as it counts tokens and the unit is another, or
                if it is no larger than the overlap.
        """
        if self.size is None and self.unit != "tokens":
            raise InvalidParameter(f"unit {self.unit!r} needs a size: the default size counts tokens")
        size = source.default_size if self.size is None else self.size
        # Sizes larger than any text mean the same, but would overflow.
        return min(size, _LARGEST), min(overlapping(size, self.overlap), _LARGEST - 1)


def check_unit(unit: object, known: Sequence[str]) -> None:
    """Check the unit that sizes count.

    Raises:
        InvalidParameter: if it is none of those known.
    """
    if unit not in known:
        raise InvalidParameter(f"unit must be one of {', '.join(known)}, got {unit!r}")


def overlapping(size: int, overlap: int | str) -> int:
    """Give an overlap in units.

    Raises:
        InvalidParameter: if it leaves no unit of a chunk new.
    """
    units = math.ceil(size * float(overlap.rstrip("% ")) / 100) if isinstance(overlap, str) else overlap
    if units >= size:
        raise InvalidParameter(f"overlap must be smaller than size, got overlap {overlap} with size {size}")
    return units
