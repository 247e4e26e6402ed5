"""Chunks within chunks: small ones to find, the large ones around them to read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Final

from late_chunking.boundaries.readings import Readings, Waiting, needs_vectors
from late_chunking.boundaries.recursive import Recursive
from late_chunking.boundaries.registry import make_within
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.splitting import check_flat, check_parts, placed, prepare, split
from late_chunking.boundaries.strategy import Boundary, Strategy, StrategyLike, is_integer
from late_chunking.boundaries.units import UNITS, Unit, check_unit
from late_chunking.documents import Span
from late_chunking.errors import InvalidParameter

_MOST_LEVELS: Final = 8


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Levels of chunks, each level cut within the chunks of the one above.

    The largest are level 0; every other chunk names its parent. All levels are pooled from one
    pass of the encoder; only where a level below one that waits for vectors cuts its pieces, the
    document is read once more.

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
    strategies: tuple[Strategy, ...] = field(init=False, repr=False, compare=False)
    needs_vectors: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the options, and make the strategies."""
        check_unit(self.unit, tuple(UNITS))
        if self.sizes is None and self.levels is None:
            raise InvalidParameter(
                "hierarchy needs sizes, such as [512, 128], or levels, such as ['turns', 'sentences']"
            )
        if self.sizes is not None and self.levels is not None:
            raise InvalidParameter("hierarchy takes sizes or levels, not both")
        option, given = ("levels", self.levels) if self.sizes is None else ("sizes", self.sizes)
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise InvalidParameter(f"{option} must be a list, got {given!r:.80}")
        if not 1 <= len(given) <= _MOST_LEVELS:
            raise InvalidParameter(f"{option} must name 1 to {_MOST_LEVELS} levels, got {len(given)}")
        numbers = [int(level) for level in given if is_integer(level)]
        if self.sizes is not None and (len(numbers) < len(given) or min(numbers) < 1):
            raise InvalidParameter(f"sizes must be a list of integers of at least 1, got {given!r:.80}")
        if any(larger <= smaller for larger, smaller in pairwise(numbers)):
            raise InvalidParameter(f"sizes must decrease from level to level, got {numbers}")
        strategies = tuple(self._strategy(level) for level in given)
        waiting = sum(map(needs_vectors, strategies))
        if waiting > 1:
            raise InvalidParameter("of all levels, one may wait for vectors, not several")
        object.__setattr__(self, option, tuple(numbers) if self.sizes is not None else strategies)
        object.__setattr__(self, "strategies", strategies)
        object.__setattr__(self, "needs_vectors", waiting > 0)

    def _strategy(self, level: Any) -> Strategy:  # noqa: ANN401 - the caller's, unchecked
        """Make the strategy of a level."""
        return Recursive(int(level), unit=self.unit) if is_integer(level) else make_within(level)

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Cut level by level; all chunks of a level come before those of the next."""
        boundaries: list[Boundary] = []
        self._cut(source, boundaries, range(len(self.strategies)))
        return boundaries

    def prepare(self, source: SourceText) -> Waiting:
        """Cut the levels above the one that waits, and ask for what it waits for."""
        level, strategy = next((place, one) for place, one in enumerate(self.strategies) if needs_vectors(one))
        above: list[Boundary] = []
        self._cut(source, above, range(level))
        parents = _parents(source, above, level)
        waiting = [prepare(source.part(parent.span), strategy) for _, parent in parents]
        pieces = [
            piece.span
            for (_, parent), part in zip(parents, waiting, strict=True)
            for piece in placed(parent, map(Boundary, part.pieces))
        ]

        def cut(readings: Readings) -> list[Boundary]:
            boundaries = list(above)
            used = 0
            for (place, parent), part in zip(parents, waiting, strict=True):
                own = readings.within(used, used + len(part.pieces))
                used += len(part.pieces)
                boundaries += self._children(source, place, parent, part.cut(own), level)
            self._cut(source, boundaries, range(level + 1, len(self.strategies)))
            return boundaries

        return Waiting(pieces, cut)

    def _cut(self, source: SourceText, boundaries: list[Boundary], levels: range) -> None:
        """Add the chunks of levels to those of the levels above them."""
        for level in levels:
            strategy = self.strategies[level]
            for place, parent in _parents(source, boundaries, level):
                found = split(source.part(parent.span), strategy)
                boundaries += self._children(source, place, parent, found, level)

    def _children(
        self, source: SourceText, place: int | None, parent: Boundary, found: Sequence[Boundary], level: int
    ) -> list[Boundary]:
        """Give what was found in a parent its place in the text and in the hierarchy."""
        if level < len(self.strategies) - 1:
            check_parts(source.part(parent.span), found, self.strategies[level])
        else:
            check_flat(found, self.strategies[level])
        return [replace(child, level=level, parent=place) for child in placed(parent, found)]


def _parents(source: SourceText, boundaries: Sequence[Boundary], level: int) -> list[tuple[int | None, Boundary]]:
    """Give the chunks that a level is cut within, with their places: those of the level above, or the text."""
    if level == 0:
        return [(None, Boundary(Span(0, len(source.text))))]
    return [(place, boundary) for place, boundary in enumerate(boundaries) if boundary.level == level - 1]
