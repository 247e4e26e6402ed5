"""Offsets in the unit that a client counts in: code points, UTF-16 units (JavaScript), UTF-8 bytes."""

from collections.abc import Sequence
from typing import Final, Literal, Self, TypeAlias

import numpy as np

from late_chunking.characters import IntArray
from late_chunking.errors import InvalidSpan
from late_chunking.records import Record

OffsetUnit: TypeAlias = Literal["codepoint", "utf16", "byte"]

CODEPOINT: Final = "codepoint"
_SPANS: Final = ("span", "context", "table_header")  # of a chunk's record, in characters
# From each code point on, a character takes a unit more.
_UTF16_STEPS: Final = (0x10000,)
_UTF8_STEPS: Final = (0x80, 0x800, 0x10000)


class Offsets:
    """Translates between code points and another unit, for one text."""

    def __init__(self, unit: str, table: IntArray | None) -> None:
        """Hold a table, [n + 1], of units before each code point; None where both are the same."""
        self._unit = unit
        self._table = table

    @classmethod
    def of(cls, text: str, unit: OffsetUnit) -> Self:
        """Count a text."""
        if unit == CODEPOINT or text.isascii():
            return cls(unit, None)
        codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        steps = _UTF16_STEPS if unit == "utf16" else _UTF8_STEPS
        sizes = 1 + np.sum([codes >= step for step in steps], axis=0)  # [n]
        return cls(unit, np.append(0, np.cumsum(sizes)))

    def inward(self, spans: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
        """Turn a client's spans into spans of code points.

        Raises:
            InvalidSpan: if one begins or ends inside a character, or outside the text.
        """
        turned = ((self._code_point(place, edge) for edge in span) for place, span in enumerate(spans))
        return [(start, end) for start, end in turned]

    def outward(self, record: Record) -> Record:
        """Turn the spans of a chunk's record into the client's unit."""
        if self._table is None:
            return record
        turned = {name: [int(self._table[edge]) for edge in record[name]] for name in _SPANS if record[name]}
        return {**record, **turned}

    def _code_point(self, place: int, offset: int) -> int:
        """Find the code point that begins at an offset."""
        if self._table is None:
            return offset
        found = int(self._table.searchsorted(min(max(offset, 0), int(self._table[-1]))))
        if self._table[found] != offset:
            last = int(self._table[-1])
            reason = "lies inside a character" if 0 <= offset <= last else f"lies outside the text, which has {last}"
            raise InvalidSpan(f"span {place}: offset {offset} in {self._unit} units {reason}")
        return found
