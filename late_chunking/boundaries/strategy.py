"""What a boundary strategy is, and the checks that strategies share.

A strategy turns a `SourceText` into `Boundary` objects. Adding one: a new file in this
folder, and one line in the registry.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, cast, runtime_checkable

from late_chunking.boundaries.source import UNITS, SourceText
from late_chunking.documents import Span
from late_chunking.errors import InvalidParameter, InvalidSpan


@dataclass(frozen=True, slots=True)
class Boundary:
    """A chunk to be: its span, and what the strategy knows of it.

    Attributes:
        span: code points of the source text.
        level: depth in a hierarchy; 0 for flat strategies.
        kind: what the chunk holds, such as ``"text"``.
        heading_path: the titles above it, outermost first.
        parent: index of its parent among the boundaries of the same strategy.
    """

    span: Span
    level: int = 0
    kind: str = "text"
    heading_path: tuple[str, ...] = ()
    parent: int | None = None


@runtime_checkable
class Strategy(Protocol):
    """Text → boundaries.

    Starts strictly increase within a level; every character that is not white space is
    covered; no span is empty, begins or ends with white space, or cuts a grapheme cluster.
    """

    @property
    def name(self) -> str:
        """The name it is registered and reported under."""
        ...

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Say where the chunks of a text are."""
        ...


SpanFunction: TypeAlias = Callable[[str], Iterable[tuple[int, int]]]
Chunking: TypeAlias = str | Strategy | SpanFunction | Sequence[str | Strategy | SpanFunction]

CALLER: Final = "spans"


@dataclass(frozen=True, slots=True)
class CallerSpans:
    """The caller's own boundaries, kept in the caller's order and checked, never mended."""

    spans: Iterable[tuple[int, int]]
    name: str = CALLER

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Check each span against the text.

        Raises:
            InvalidSpan: if one is not a pair of integers, reversed, empty or out of range.
        """
        return [Boundary(checked_span(span, index, len(source.text))) for index, span in enumerate(self.spans)]


@dataclass(frozen=True, slots=True)
class CallerFunction:
    """The caller's own function from a text to ``(start, end)`` pairs."""

    function: SpanFunction
    name: str = CALLER

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Call the function, and check what it says as `CallerSpans` does."""
        return CallerSpans(self.function(source.text)).split(source)


def checked_span(span: Any, index: int, length: int) -> Span:  # noqa: ANN401 - the caller's, unchecked
    """Turn what a caller gave into a `Span`, or say what is wrong with it."""
    try:
        start, end = span
    except (TypeError, ValueError):
        raise InvalidSpan(f"span {index}: {span!r} is not a (start, end) pair") from None
    if not (_is_integer(start) and _is_integer(end)):
        raise InvalidSpan(f"span {index}: {span!r} must hold two integers")
    start, end = int(start), int(end)
    if start == end:
        raise InvalidSpan(f"span {index}: [{start}, {end}) is empty")
    if start > end:
        raise InvalidSpan(f"span {index}: [{start}, {end}) is reversed: its start lies after its end")
    if start < 0 or end > length:
        raise InvalidSpan(f"span {index}: [{start}, {end}) lies outside the text, which has {length} characters")
    return Span(start, end)


def check_size(size: object, overlap: object, unit: object = "tokens") -> None:
    """Check the size options that strategies share.

    Raises:
        InvalidParameter: naming the option, its value and its limit.
    """
    if not isinstance(unit, str) or unit not in UNITS:
        raise InvalidParameter(f"unit must be one of {', '.join(UNITS)}, got {unit!r}")
    if size is not None and not (_is_integer(size) and cast("int", size) >= 1):
        raise InvalidParameter(f"size must be an integer of at least 1, got {size!r}")
    if not (_is_integer(overlap) and cast("int", overlap) >= 0):
        raise InvalidParameter(f"overlap must be an integer of at least 0, got {overlap!r}")
    if size is not None and cast("int", overlap) >= cast("int", size):
        raise InvalidParameter(f"overlap must be smaller than size, got overlap {overlap} with size {size}")


def size_or_default(size: int | None, overlap: int, unit: str, source: SourceText) -> int:
    """Give the size asked for, or the model's default, which is in tokens.

    Raises:
        InvalidParameter: if there is no size and the unit is not tokens, or if the default is
            no larger than the overlap.
    """
    if size is not None:
        return size
    if unit != "tokens":
        raise InvalidParameter(f"unit {unit!r} needs a size: the default size counts tokens")
    check_size(source.default_size, overlap)
    return source.default_size


def settings_of(strategy: Strategy) -> dict[str, Any]:
    """Give the settings that tell one configured strategy from another, for chunk ids."""
    if isinstance(strategy, CallerSpans | CallerFunction):
        return {}
    configured: Any = strategy
    is_dataclass = dataclasses.is_dataclass(configured) and not isinstance(configured, type)
    return dataclasses.asdict(configured) if is_dataclass else {}


def _is_integer(value: object) -> bool:
    """Tell whether a value counts as an integer; numpy's do, booleans do not."""
    return hasattr(value, "__index__") and not isinstance(value, bool)
