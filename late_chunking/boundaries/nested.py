"""A strategy inside another, where the other's chunks are too long."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from late_chunking.boundaries.readings import Readings, Waiting, needs_vectors
from late_chunking.boundaries.registry import make_within
from late_chunking.boundaries.sizes import check_count
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.splitting import check_flat, check_parts, placed, prepare, split
from late_chunking.boundaries.strategy import Boundary, Strategy, StrategyLike
from late_chunking.boundaries.units import UNITS, Unit, check_unit, ruler_of
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
    needs_vectors: bool = field(init=False, repr=False, compare=False)

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
        waiting = sum(map(needs_vectors, self.strategies))
        if waiting > 1:
            raise InvalidParameter("of outer and inner, one may wait for vectors, not both")
        object.__setattr__(self, "needs_vectors", waiting > 0)

    @property
    def strategies(self) -> tuple[Strategy, Strategy]:
        """The two, as made."""
        return self.outer, self.inner  # type: ignore[return-value]

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Apply the outer strategy, then the inner one where its chunks are too long."""
        return self._cut_long(source, split(source, self.strategies[0]))

    def prepare(self, source: SourceText) -> Waiting:
        """Apply the outer strategy, and ask for what one of the two waits for.

        Where that is the inner one, a chunk that is not too long is a piece by itself.
        """
        outer, inner = self.strategies
        if needs_vectors(outer):
            waiting = prepare(source, outer)
            return Waiting(waiting.pieces, lambda readings: self._cut_long(source, waiting.cut(readings)))
        parts = [
            (chunk, prepare(part, inner) if part is not None and needs_vectors(inner) else None)
            for chunk, part in self._parts(source, split(source, outer))
        ]
        pieces: list[Boundary] = []
        for chunk, part in parts:
            pieces += [chunk] if part is None else placed(chunk, map(Boundary, part.pieces))

        def cut(readings: Readings) -> list[Boundary]:
            chunks: list[Boundary] = []
            used = 0
            for chunk, part in parts:
                count = 1 if part is None else len(part.pieces)
                chunks += [chunk] if part is None else placed(chunk, part.cut(readings.within(used, used + count)))
                used += count
            check_flat(chunks, inner)
            return chunks

        return Waiting([piece.span for piece in pieces], cut)

    def _cut_long(self, source: SourceText, outside: Sequence[Boundary]) -> list[Boundary]:
        """Put the inner strategy's chunks in place of those that are too long."""
        inner = self.strategies[1]
        chunks: list[Boundary] = []
        for chunk, part in self._parts(source, outside):
            chunks += [chunk] if part is None else placed(chunk, split(part, inner))
        check_flat(chunks, inner)
        return chunks

    def _parts(self, source: SourceText, outside: Sequence[Boundary]) -> Iterator[tuple[Boundary, SourceText | None]]:
        """Give the outer strategy's chunks, with the part of the text that each is, where it is too long."""
        check_parts(source, outside, self.strategies[0])
        size = source.default_size if self.size is None else self.size
        ruler = ruler_of(source, self.unit)
        for chunk in outside:
            yield chunk, source.part(chunk.span) if ruler.size(chunk.span) > size else None
