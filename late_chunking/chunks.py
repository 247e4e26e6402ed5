"""Boundaries → chunks: numbered, named, and linked to their parents and neighbours."""

from collections.abc import Sequence
from itertools import pairwise

from late_chunking.boundaries import Boundary, Strategy
from late_chunking.boundaries.strategy import settings_of
from late_chunking.documents import Chunk, Document, Span, chunk_ids
from late_chunking.encoding.alignment import Alignment


def make_chunks(
    document: Document, cuts: Sequence[tuple[Strategy, Sequence[Boundary]]], alignment: Alignment
) -> tuple[Chunk, ...]:
    """Make a document's chunks, strategy after strategy.

    Args:
        document: the document.
        cuts: the strategies and what they found.
        alignment: the tokens of all boundaries, in the same order.
    """
    token_spans = [Span(*edges) for edges in alignment.own.tolist()]
    chunks: list[Chunk] = []
    for strategy, boundaries in cuts:
        settings = settings_of(strategy)
        places = ((item.span, item.level) for item in boundaries)
        ids = chunk_ids(document.id, strategy.name, settings, places)
        previous, following = _neighbours(boundaries, ids)
        first = len(chunks)
        chunks += [
            Chunk(
                id=ids[place],
                document_id=document.id,
                index=first + place,
                strategy=strategy.name,
                span=item.span,
                token_span=token_spans[first + place],
                text=document.text[item.span.start : item.span.end],
                level=item.level,
                kind=item.kind,
                heading_path=item.heading_path,
                parent=None if item.parent is None else ids[item.parent],
                previous=previous[place],
                next=following[place],
                context=item.context,
            )
            for place, item in enumerate(boundaries)
        ]
    return tuple(chunks)


def _neighbours(boundaries: Sequence[Boundary], ids: Sequence[str]) -> tuple[list[str | None], list[str | None]]:
    """Give, for each boundary, the id of the one before it and the one after it in the text, of the same level."""
    previous: list[str | None] = [None] * len(boundaries)
    following: list[str | None] = [None] * len(boundaries)
    order = sorted(range(len(boundaries)), key=lambda place: (boundaries[place].level, boundaries[place].span))
    for one, other in pairwise(order):
        # A caller's span given twice has one id: it is no neighbour of itself.
        if boundaries[one].level == boundaries[other].level and ids[one] != ids[other]:
            following[one], previous[other] = ids[other], ids[one]
    return previous, following
