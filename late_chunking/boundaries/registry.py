"""Strategies by name, and the one function that applies them to a text."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from late_chunking.boundaries.hierarchy import Hierarchy
from late_chunking.boundaries.paragraphs import Paragraphs
from late_chunking.boundaries.recursive import Recursive
from late_chunking.boundaries.sentences import Sentences
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import (
    Boundary,
    CallerFunction,
    CallerSpans,
    Chunking,
    SpanFunction,
    Strategy,
)
from late_chunking.boundaries.tokens import Tokens
from late_chunking.boundaries.words import Words
from late_chunking.documents import Span
from late_chunking.errors import EmptyInput, InvalidParameter, UnknownStrategy

STRATEGIES: Final[dict[str, Callable[..., Strategy]]] = {
    "tokens": Tokens,
    "words": Words,
    "sentences": Sentences,
    "paragraphs": Paragraphs,
    "recursive": Recursive,
    "hierarchy": Hierarchy,
}


def make_strategies(chunking: Chunking, parameters: Mapping[str, Any] | None = None) -> tuple[Strategy, ...]:
    """Turn what a caller gave as strategy into configured strategies.

    Args:
        chunking: a registered name, a configured strategy, a function ``str → (start, end)
            pairs``, or a list of these.
        parameters: options for a strategy given by name.

    Raises:
        UnknownStrategy: if a name is not registered.
        InvalidParameter: if an option is unknown or wrong, or given to what takes none.
        EmptyInput: if the list is empty.
    """
    if isinstance(chunking, Sequence) and not isinstance(chunking, str):
        if not chunking:
            raise EmptyInput("the list of strategies is empty")
        return tuple(_make(item, parameters or {}) for item in chunking)
    return (_make(chunking, parameters or {}),)


def _make(chunking: str | Strategy | SpanFunction, parameters: Mapping[str, Any]) -> Strategy:
    """Make one strategy."""
    if isinstance(chunking, str):
        return _by_name(chunking, parameters)
    if parameters:
        raise InvalidParameter(f"{', '.join(parameters)}: options go with a strategy's name, not with {chunking!r}")
    if isinstance(chunking, type):
        raise InvalidParameter(f"strategy must be configured: {chunking.__name__}(…), not the class itself")
    if isinstance(chunking, Strategy):
        return chunking
    if callable(chunking):
        return CallerFunction(chunking)
    raise InvalidParameter(f"strategy must be a name, a strategy or a function, got {chunking!r}")


def _by_name(name: str, parameters: Mapping[str, Any]) -> Strategy:
    """Make a registered strategy."""
    if name not in STRATEGIES:
        raise UnknownStrategy(f"unknown strategy {name!r}; known: {', '.join(sorted(STRATEGIES))}")
    factory = STRATEGIES[name]
    known = inspect.signature(factory).parameters
    if unknown := [parameter for parameter in parameters if parameter not in known]:
        raise InvalidParameter(f"strategy {name!r} has no option {', '.join(unknown)}; it has {', '.join(known)}")
    needed = [option.name for option in known.values() if option.default is option.empty]
    if missing := [option for option in needed if option not in parameters]:
        raise InvalidParameter(f"strategy {name!r} needs {', '.join(missing)}")
    return factory(**parameters)


def split(source: SourceText, strategy: Strategy) -> list[Boundary]:
    """Apply a strategy to a text.

    What a built-in strategy says is also joined so that each span owns a token, where the
    text has any; a caller's own spans are left as they are.
    """
    if not source.text or source.text.isspace():
        return list(strategy.split(source)) if isinstance(strategy, CallerSpans | CallerFunction) else []
    if isinstance(strategy, CallerSpans | CallerFunction):
        return list(strategy.split(source))
    if not len(source.token_anchors):
        # Zero-width characters alone, say: nothing to cut by, but not nothing.
        return [Boundary(Span(int(source.next_visible[0]), int(source.visible_end[-1])))]
    return _join_tokenless(source, list(strategy.split(source)))


def _join_tokenless(source: SourceText, boundaries: list[Boundary]) -> list[Boundary]:
    """Join a span that owns no token (a lone zero-width space, say) to its neighbour.

    Joined to the one before it of the same level and parent; where there is none, to the one
    after it. Parents come before their children, and are found again by where they went.
    """
    joined: list[Boundary] = []
    went: list[int] = []
    last: dict[tuple[int, int | None], int] = {}
    pending: dict[tuple[int, int | None], Span] = {}
    for boundary in boundaries:
        parent = None if boundary.parent is None else went[boundary.parent]
        siblings = (boundary.level, parent)
        span = _around(pending.pop(siblings, None), boundary.span)
        if source.tokens.size(span):
            last[siblings] = len(joined)
            joined.append(dataclasses.replace(boundary, span=span, parent=parent))
        elif siblings in last:
            place = last[siblings]
            joined[place] = dataclasses.replace(joined[place], span=_around(joined[place].span, span))
        else:
            pending[siblings] = span
        # One that waits for its neighbour goes to the place that the neighbour will have.
        went.append(last.get(siblings, len(joined)) if siblings not in pending else len(joined))
    return [*joined, *(Boundary(span) for span in pending.values())]


def _around(first: Span | None, second: Span) -> Span:
    """Give the span from the first to the end of both."""
    return second if first is None else Span(first.start, max(first.end, second.end))
