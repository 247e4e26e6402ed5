"""Documents and queries → what is trained on, and what is held back to measure by."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from late_chunking.adaptation.plan import fingerprint
from late_chunking.boundaries import make_strategies
from late_chunking.documents import Document, Span
from late_chunking.errors import InvalidDataset, InvalidParameter
from late_chunking.evaluation.dataset import Dataset, Query
from late_chunking.planning import Planner
from late_chunking.request import Request

_SHARE_HELD_BACK: Final = 0.1
_LEAST_HELD_BACK: Final = 2


@dataclass(frozen=True, slots=True)
class Material:
    """Documents with their queries.

    Attributes:
        name: the data set's.
        documents: [N], each with at least one query.
        queries: [N], the queries to each document; one that several documents answer is there
            for each.
    """

    name: str
    documents: tuple[Document, ...]
    queries: tuple[tuple[Query, ...], ...]

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """Sort queries by document, and leave out documents without any.

        Raises:
            InvalidDataset: if fewer than two documents have queries: other documents' chunks are
                what a query is told apart from.
        """
        to: dict[str, list[Query]] = {}
        for query in dataset.queries:
            for name in query.gold:
                to.setdefault(name, []).append(query)
        documents = tuple(document for document in dataset.documents if document.id in to)
        if len(documents) < 2:
            raise InvalidDataset(
                f"{dataset.name}: queries to at least 2 documents are needed to train on, got {len(documents)}"
            )
        return cls(dataset.name, documents, tuple(tuple(to[document.id]) for document in documents))

    @property
    def fingerprint(self) -> str:
        """What tells it from other material."""
        return fingerprint(
            [
                [document.id, document.text, [[query.text, sorted(query.gold.items())] for query in queries]]
                for document, queries in zip(self.documents, self.queries, strict=True)
            ]
        )

    def parted(self, planner: Planner, tokens: int) -> "Material":
        """Cut documents of more tokens into parts, each with the queries that it answers."""
        parts = [
            part
            for document, queries in zip(self.documents, self.queries, strict=True)
            for part in _parts(document, queries, planner, tokens)
        ]
        return Material(self.name, tuple(one for one, _ in parts), tuple(queries for _, queries in parts))


def split(dataset: Dataset, seed: int, share: float = _SHARE_HELD_BACK) -> tuple[Dataset, Dataset]:
    """Hold some of the documents back, with their queries; queries to both sides are left out.

    Args:
        dataset: all documents.
        seed: of the draw.
        share: how many of the documents with queries are held back; at least two are.

    Raises:
        InvalidDataset: if fewer than two would be left.
        InvalidParameter: if the share is none.
    """
    if not 0 < share < 1:
        raise InvalidParameter(f"the share of held-back documents must be between 0 and 1, got {share!r}")
    named = sorted({name for query in dataset.queries for name in query.gold})
    count = max(_LEAST_HELD_BACK, round(share * len(named)))
    if len(named) - count < 2:
        raise InvalidDataset(
            f"{dataset.name}: of {len(named)} documents with queries {count} would be held back to measure by, and "
            "at least 2 are needed to train on: give more documents, or others to measure by"
        )
    drawn = np.random.default_rng([seed, 1]).permutation(len(named))[:count]
    held = {named[place] for place in drawn.tolist()}
    return _only(dataset, held, "held back", inside=False), _only(dataset, held, "held back", inside=True)


def _only(dataset: Dataset, names: set[str], label: str, *, inside: bool) -> Dataset:
    """Keep the documents of some names, or all others."""
    documents = tuple(document for document in dataset.documents if (document.id in names) == inside)
    kept = {document.id for document in documents}
    queries = tuple(query for query in dataset.queries if query.gold.keys() <= kept)
    name = f"{dataset.name}, {label}" if inside else dataset.name
    return replace(dataset, name=name, documents=documents, queries=queries)


def _parts(
    document: Document, queries: tuple[Query, ...], planner: Planner, tokens: int
) -> Iterator[tuple[Document, tuple[Query, ...]]]:
    """Cut one document, if it is too long."""
    request = Request(make_strategies({"strategy": "recursive", "size": tokens}))
    chunks = planner.chunk(document, request)
    if len(chunks) < 2:
        yield document, queries
        return
    for number, (start, end) in enumerate(chunk.span for chunk in chunks):
        part = Document(document.text[start:end], id=f"{document.id}#{number}", title=document.title)
        own = []
        for query in queries:
            inside = [
                Span(max(low, start) - start, min(high, end) - start)
                for low, high in query.gold[document.id]
                if low < end and high > start
            ]
            if inside:
                own.append(Query(query.id, query.text, {part.id: inside}))
        if own:
            yield part, tuple(own)
