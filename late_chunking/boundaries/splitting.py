"""A strategy applied to a text, by rules that hold for all of them."""

import dataclasses
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from late_chunking.boundaries.readings import VectorStrategy, Waiting
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import TEXT, Boundary, CallerFunction, CallerSpans, Strategy
from late_chunking.documents import Span
from late_chunking.errors import InvalidInput, InvalidParameter


def split(source: SourceText, strategy: Strategy) -> list[Boundary]:
    """Apply a strategy to a text, or to a part of one.

    What a built-in strategy says is also joined so that each span owns a token, where the
    text has any; a caller's own spans are left as they are.
    """
    if isinstance(strategy, CallerSpans | CallerFunction):
        return list(strategy.split(source))
    if (trivial := _trivial(source)) is not None:
        return trivial
    return join_tokenless(source, _checked(source, strategy, strategy.split(source)))


def prepare(source: SourceText, strategy: VectorStrategy) -> Waiting:
    """Apply a strategy that waits for vectors, as far as that goes; by the same rules."""
    if (trivial := _trivial(source)) is not None:
        return Waiting([boundary.span for boundary in trivial], lambda readings: trivial)
    waiting = strategy.prepare(source)
    return Waiting(
        waiting.pieces, lambda readings: join_tokenless(source, _checked(source, strategy, waiting.cut(readings)))
    )


def _checked(source: SourceText, strategy: Strategy, boundaries: Iterable[Boundary]) -> list[Boundary]:
    """Pass on what a strategy gives, which may be of anyone's making.

    Raises:
        InvalidInput: if it gives anything but boundaries, or one outside the text.
    """
    checked = list(boundaries)
    for boundary in checked:
        if not isinstance(boundary, Boundary) or not isinstance(boundary.span, Span):
            raise InvalidInput(f"strategy {strategy.name!r} must give boundaries with spans, got {boundary!r:.80}")
        if not 0 <= boundary.span.start < boundary.span.end <= len(source.text):
            start, end = boundary.span
            raise InvalidInput(
                f"strategy {strategy.name!r} gave [{start}, {end}) in a text of {len(source.text)} characters"
            )
    return checked


def placed(outer: Boundary, found: Iterable[Boundary]) -> list[Boundary]:
    """Give chunks found in a part of a text their places in the whole, and what is known of the part."""
    start = outer.span.start
    return [
        dataclasses.replace(
            boundary,
            span=Span(start + boundary.span.start, start + boundary.span.end),
            context=boundary.context and Span(start + boundary.context.start, start + boundary.context.end),
            kind=boundary.kind if boundary.kind != TEXT else outer.kind,
            heading_path=(*outer.heading_path, *boundary.heading_path),
        )
        for boundary in found
    ]


def check_parts(source: SourceText, boundaries: Sequence[Boundary], strategy: Strategy) -> None:
    """Pass if other strategies can cut within these chunks.

    Raises:
        InvalidParameter: if they overlap or have levels, or one, a caller's, cuts a grapheme
            cluster or owns no token.
    """
    check_flat(boundaries, strategy)
    if any(before.span.end > after.span.start for before, after in pairwise(boundaries)):
        raise InvalidParameter(f"the chunks of {strategy.name!r} overlap: nothing can be cut within them")
    for start, end in (boundary.span for boundary in boundaries):
        if not (source.breaks[start] and source.breaks[end]):
            raise InvalidParameter(f"span [{start}, {end}) cuts a grapheme cluster: nothing can be cut within it")
        if isinstance(strategy, CallerSpans | CallerFunction) and not source.tokens.size(Span(start, end)):
            raise InvalidParameter(f"span [{start}, {end}) owns no token: nothing can be cut within it")


def check_flat(boundaries: Sequence[Boundary], strategy: Strategy) -> None:
    """Pass if chunks are of one level.

    Raises:
        InvalidParameter: if not.
    """
    if any(boundary.level or boundary.parent is not None for boundary in boundaries):
        raise InvalidParameter(f"{strategy.name!r} has levels of its own: it cannot stand inside or around others")


def _trivial(source: SourceText) -> list[Boundary] | None:
    """Give the boundaries of a text that leaves a strategy nothing to decide; None for others."""
    if not source.text or source.text.isspace():
        return []
    if not len(source.token_anchors):
        # Zero-width characters alone, say: nothing to cut by, but not nothing.
        starts, ends = source.trim(np.array([0]), np.array([len(source.text)]))
        return [Boundary(Span(int(starts[0]), int(ends[0])))]
    return None


def join_tokenless(source: SourceText, boundaries: list[Boundary]) -> list[Boundary]:
    """Join a span that owns no token (a lone zero-width space, say) to its neighbour.

    Joined to the one before it of the same level and parent; where there is none, to the one
    after it. Parents come before their children, and are found again by where they went.
    """
    edges = np.asarray([boundary.span for boundary in boundaries], dtype=np.int64).reshape(-1, 2)
    if source.tokens.sizes(edges[:, 0], edges[:, 1]).all():
        return boundaries
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
