"""Chunks within chunks: small ones to find, the large ones around them to read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Final

from late_chunking.boundaries.readings import Readings, needs_vectors
from late_chunking.boundaries.recursive import Recursive
from late_chunking.boundaries.registry import make_within
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.splitting import check_flat, pieces_of, placed, split, split_by
from late_chunking.boundaries.strategy import Boundary, Strategy, StrategyLike, is_integer
from late_chunking.boundaries.units import UNITS, Unit, check_unit
from late_chunking.documents import Span
from late_chunking.errors import InvalidParameter

_MOST_LEVELS: Final = 8


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Levels of chunks, each level cut within the chunks of the one above.

    The largest are level 0; every other chunk names its parent. All levels are pooled from one
    pass of the encoder.

    Attributes:
        sizes: units a chunk for each level, largest first, cut as `recursive` cuts.
        unit: what sizes count, as for `recursive`.
        levels: instead of sizes, a strategy for each level, outermost first: by name, as a mapping
            with its options, configured, or an integer, which is `recursive` of that size.
    """

    name: ClassVar[str] = "hierarchy"
    sizes: Sequence[int] | None = None
    unit: Unit = "tokens"
    levels: Sequence[StrategyLike | int] | None = None

    def __post_init__(self) -> None:
        """Check the options, and make the strategies."""
        check_unit(self.unit, tuple(UNITS))
        if (self.sizes is None) == (self.levels is None):
            raise InvalidParameter("hierarchy needs sizes or levels, and not both")
        option, given = ("levels", self.levels) if self.sizes is None else ("sizes", self.sizes)
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise InvalidParameter(f"{option} must be a list, got {given!r:.80}")
        if not 1 <= len(given) <= _MOST_LEVELS:
            raise InvalidParameter(f"{option} must name 1 to {_MOST_LEVELS} levels, got {len(given)}")
        if self.sizes is not None and not all(is_integer(size) and size >= 1 for size in self.sizes):
            raise InvalidParameter(f"sizes must be a list of integers of at least 1, got {self.sizes!r:.80}")
        numbers = [int(level) for level in given if is_integer(level)]
        if any(larger <= smaller for larger, smaller in pairwise(numbers)):
            raise InvalidParameter(f"sizes must decrease from level to level, got {numbers}")
        if self.sizes is not None:
            object.__setattr__(self, "sizes", tuple(numbers))
        else:
            object.__setattr__(self, "levels", tuple(self._level(level) for level in given))
        if sum(map(needs_vectors, self.strategies)) > 1:
            raise InvalidParameter("of all levels, one may wait for vectors, not several")

    def _level(self, level: Any) -> Strategy:  # noqa: ANN401 - the caller's, unchecked
        """Make the strategy of a level."""
        return Recursive(int(level), unit=self.unit) if is_integer(level) else make_within(level)

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """The strategy of each level."""
        return tuple(self._level(level) for level in self.sizes or self.levels or ())

    @property
    def needs_vectors(self) -> bool:
        """Whether a level waits for vectors."""
        return any(map(needs_vectors, self.strategies))

    def pieces(self, source: SourceText) -> Iterable[Span]:
        """Give the pieces of the level that waits for vectors, within the chunks of those above it."""
        parents = [Boundary(Span(0, len(source.text)))]
        for strategy in self.strategies:
            children: list[Boundary] = []
            for parent in parents:
                part = source.part(parent.span)
                found = map(Boundary, pieces_of(part, strategy)) if needs_vectors(strategy) else split(part, strategy)
                children += placed(parent, found)
            if needs_vectors(strategy):
                return [child.span for child in children]
            parents = children
        return []

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Cut level by level; all chunks of a level come before those of the next."""
        return self.split_by(source, Readings(0, ()))

    def split_by(self, source: SourceText, readings: Readings) -> Iterable[Boundary]:
        """Cut level by level, the one that waited for vectors by them."""
        boundaries: list[Boundary] = []
        parents: list[tuple[int | None, Boundary]] = [(None, Boundary(Span(0, len(source.text))))]
        used = 0
        for level, strategy in enumerate(self.strategies):
            children: list[tuple[int | None, Boundary]] = []
            for place, parent in parents:
                part = source.part(parent.span)
                if needs_vectors(strategy):
                    count = len(pieces_of(part, strategy))
                    found = split_by(part, strategy, readings.within(used, used + count))
                    used += count
                else:
                    found = split(part, strategy)
                check_flat(found, strategy, apart=level < len(self.strategies) - 1)
                for child in placed(parent, found):
                    children.append((len(boundaries), replace(child, level=level, parent=place)))
                    boundaries.append(children[-1][1])
            parents = children
        return boundaries
