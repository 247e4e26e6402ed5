"""What a boundary strategy is, and the checks that strategies share.

A strategy turns a `SourceText` into `Boundary` objects. Adding one: a new file in this
folder, and one line in the package that registers it.
"""

import dataclasses
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeGuard, runtime_checkable

from late_chunking.boundaries.source import SourceText
from late_chunking.documents import Span
from late_chunking.errors import InvalidInput, InvalidSpan, LateChunkingError

TEXT: Final = "text"


@dataclass(frozen=True, slots=True)
class Boundary:
    """A chunk to be: its span, and what the strategy knows of it.

    Attributes:
        span: code points of the source text.
        level: depth in a hierarchy; 0 for flat strategies.
        kind: what the chunk holds, such as ``"text"``.
        heading_path: the titles above it, outermost first.
        parent: index of its parent among the boundaries of the same strategy.
        context: what to hand to a reader or generator in its place, where the strategy says more
            than its parent does: a span around it.
    """

    span: Span
    level: int = 0
    kind: str = TEXT
    heading_path: tuple[str, ...] = ()
    parent: int | None = None
    context: Span | None = None


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
StrategyLike: TypeAlias = str | Mapping[str, Any] | Strategy | SpanFunction
Chunking: TypeAlias = StrategyLike | Sequence[StrategyLike]

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
        if not isinstance(self.spans, Iterable):
            raise InvalidSpan(f"spans must be a list of (start, end) pairs, got {self.spans!r:.80}")
        return [Boundary(checked_span(span, index, len(source.text))) for index, span in enumerate(self.spans)]


@dataclass(frozen=True, slots=True)
class CallerFunction:
    """The caller's own function from a text to ``(start, end)`` pairs."""

    function: SpanFunction
    name: str = CALLER

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Call the function, and check what it says as `CallerSpans` does.

        Raises:
            InvalidInput: if the function raises something of its own.
        """
        try:
            spans = self.function(source.text)
            return CallerSpans(tuple(spans) if isinstance(spans, Iterable) else spans).split(source)
        except LateChunkingError:
            raise
        except Exception as error:
            name = getattr(self.function, "__name__", repr(self.function))
            raise InvalidInput(f"the strategy function {name} failed: {type(error).__name__}: {error}") from error


def checked_span(span: Any, index: int, length: int) -> Span:  # noqa: ANN401 - the caller's, unchecked
    """Turn what a caller gave into a `Span`, or say what is wrong with it."""
    try:
        start, end = span
    except (TypeError, ValueError):
        raise InvalidSpan(f"span {index}: {span!r} is not a (start, end) pair") from None
    if not (is_integer(start) and is_integer(end)):
        raise InvalidSpan(f"span {index}: {span!r} must hold two integers")
    start, end = int(start), int(end)
    if start == end:
        raise InvalidSpan(f"span {index}: [{start}, {end}) is empty")
    if start > end:
        raise InvalidSpan(f"span {index}: [{start}, {end}) is reversed: its start lies after its end")
    if start < 0 or end > length:
        raise InvalidSpan(f"span {index}: [{start}, {end}) lies outside the text, which has {length} characters")
    return Span(start, end)


def settings_of(strategy: Strategy) -> dict[str, Any]:
    """Give the settings that tell one configured strategy from another, for chunk ids."""
    configured: Any = strategy
    if isinstance(strategy, CallerSpans | CallerFunction) or not dataclasses.is_dataclass(configured):
        return {}
    fields = [field.name for field in dataclasses.fields(configured) if field.init]
    return {name: _setting(getattr(configured, name)) for name in fields}


def _setting(value: Any) -> Any:  # noqa: ANN401 - whatever an option may be
    """Write an option down; a strategy within a strategy as its name and settings."""
    if isinstance(value, tuple):
        return [_setting(item) for item in value]
    is_strategy = dataclasses.is_dataclass(value) and isinstance(value, Strategy)
    return {"strategy": value.name, **settings_of(value)} if is_strategy else value


def is_number(value: object) -> TypeGuard[float]:
    """Tell whether a value counts as a number; booleans do not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_integer(value: object) -> TypeGuard[int]:
    """Tell whether a value counts as an integer; numpy's do, booleans do not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
