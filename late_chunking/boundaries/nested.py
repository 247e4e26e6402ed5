"""A strategy inside another, where the other's chunks are too long."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from late_chunking.boundaries.readings import Readings, needs_vectors
from late_chunking.boundaries.registry import make_within
from late_chunking.boundaries.sizes import check_count
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.splitting import check_flat, pieces_of, placed, split, split_by
from late_chunking.boundaries.strategy import Boundary, Strategy, StrategyLike
from late_chunking.boundaries.units import UNITS, Unit, check_unit, ruler_of
from late_chunking.documents import Span
from late_chunking.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class Nested:
    """Chunks of one strategy, and in place of those that are too long, another's chunks of them.

    Attributes:
        outer: the strategy that cuts the text, by name, as a mapping with its options, or
            configured; its chunks lie apart.
        inner: the strategy that cuts its long chunks; by name it gets `size` and `unit`, if it
            takes a size and is given none.
        size: the most units that a chunk of the outer strategy may hold; by default what suits
            the model.
        unit: what they count, as for `recursive`.
    """

    name: ClassVar[str] = "nested"
    outer: StrategyLike
    inner: StrategyLike = "recursive"
    size: int | None = None
    unit: Unit = "tokens"

    def __post_init__(self) -> None:
        """Check the options, and make the strategies."""
        check_unit(self.unit, tuple(UNITS))
        if self.size is None and self.unit != "tokens":
            raise InvalidParameter(f"unit {self.unit!r} needs a size: the default size counts tokens")
        if self.size is not None:
            object.__setattr__(self, "size", check_count("size", self.size, 1))
        defaults = {} if self.size is None else {"size": self.size, "unit": self.unit}
        object.__setattr__(self, "outer", make_within(self.outer))
        object.__setattr__(self, "inner", make_within(self.inner, defaults))
        if needs_vectors(self.strategies[0]) and needs_vectors(self.strategies[1]):
            raise InvalidParameter("of outer and inner, one may wait for vectors, not both")

    @property
    def strategies(self) -> tuple[Strategy, Strategy]:
        """The two, as made."""
        return self.outer, self.inner  # type: ignore[return-value]

    @property
    def needs_vectors(self) -> bool:
        """Whether one of the two waits for vectors."""
        return any(map(needs_vectors, self.strategies))

    def pieces(self, source: SourceText) -> Iterable[Span]:
        """Give the outer strategy's pieces, or its chunks with the inner one's pieces in place of long ones."""
        outer, inner = self.strategies
        if needs_vectors(outer):
            return pieces_of(source, outer)
        pieces: list[Boundary] = []
        for chunk, part in self._parts(source, split(source, outer)):
            if part is not None and needs_vectors(inner):
                pieces += placed(chunk, map(Boundary, pieces_of(part, inner)))
            else:
                pieces.append(chunk)
        return [piece.span for piece in pieces]

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Apply the outer strategy, then the inner one."""
        return self.split_by(source, Readings(0, ()))

    def split_by(self, source: SourceText, readings: Readings) -> Iterable[Boundary]:
        """Apply both, the one that waited for vectors by them."""
        outer, inner = self.strategies
        chunks: list[Boundary] = []
        used = 0
        outside = split_by(source, outer, readings) if needs_vectors(outer) else split(source, outer)
        for chunk, part in self._parts(source, outside):
            count = 1
            if part is None:
                inside = [chunk]
            elif needs_vectors(inner):
                count = len(pieces_of(part, inner))
                inside = placed(chunk, split_by(part, inner, readings.within(used, used + count)))
            else:
                inside = placed(chunk, split(part, inner))
            check_flat(inside, inner, apart=False)
            chunks += inside
            used += count
        return chunks

    def _parts(
        self, source: SourceText, boundaries: Sequence[Boundary]
    ) -> Iterator[tuple[Boundary, SourceText | None]]:
        """Give the outer strategy's chunks, with the part of the text that each is, where it is too long."""
        check_flat(boundaries, self.strategies[0], apart=True)
        size = source.default_size if self.size is None else self.size
        ruler = ruler_of(source, self.unit)
        for boundary in boundaries:
            yield boundary, source.part(boundary.span) if ruler.size(boundary.span) > size else None
