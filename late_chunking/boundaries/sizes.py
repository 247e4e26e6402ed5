"""The options size and overlap, as every strategy that has them takes them."""

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import is_integer
from late_chunking.boundaries.units import UNITS, Unit, check_unit
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
            ``"words"``, tokens of another model as ``"tiktoken:NAME"`` or a ``tiktoken.Encoding``,
            what a function ``str → int`` gives for a chunk's text, or what the strategy is named for.
    """

    units: ClassVar[tuple[str, ...]] = tuple(UNITS)
    needs_size: ClassVar[bool] = True  # whether it cannot cut without one
    size: int | None = None
    overlap: int | str = 0
    unit: Unit = "tokens"

    def __post_init__(self) -> None:
        """Check the options, and keep them as plain numbers."""
        check_unit(self.unit, self.units)
        if self.size is not None:
            object.__setattr__(self, "size", check_count("size", self.size, 1))
        if isinstance(self.overlap, str):
            if not _PERCENTAGE.fullmatch(self.overlap):
                raise InvalidParameter(f"overlap must be a number or a percentage such as '15%', got {self.overlap!r}")
        else:
            object.__setattr__(self, "overlap", check_count("overlap", self.overlap, 0))
        if self.size is not None:
            overlapping(self.size, self.overlap)
        elif self.needs_size and self.unit != "tokens":
            raise InvalidParameter(f"unit {self.unit!r} needs a size: the default size counts tokens")

    def resolved(self, source: SourceText) -> tuple[int, int]:
        """Give size and overlap in units, with the default for a size that was not given.

        Raises:
            InvalidParameter: if the default size is no larger than the overlap.
        """
        size = source.default_size if self.size is None else self.size
        # Sizes larger than any text mean the same, but would overflow.
        return min(size, _LARGEST), min(overlapping(size, self.overlap), _LARGEST - 1)


def check_count(option: str, value: Any, least: int) -> int:  # noqa: ANN401 - a caller's, unchecked
    """Give an option that counts something as a plain integer.

    Raises:
        InvalidParameter: if it is none, or less than the least.
    """
    if not is_integer(value) or value < least:
        raise InvalidParameter(f"{option} must be an integer of at least {least}, got {value!r:.80}")
    return int(value)


def overlapping(size: int, overlap: int | str) -> int:
    """Give an overlap in units.

    Raises:
        InvalidParameter: if it leaves no unit of a chunk new.
    """
    units = math.ceil(size * Fraction(overlap.rstrip("% ")) / 100) if isinstance(overlap, str) else overlap
    if units >= size:
        raise InvalidParameter(f"overlap must be smaller than size, got overlap {overlap!s:.80} with size {size}")
    return units
