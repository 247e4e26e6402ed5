"""Documents and queries → what is trained on, and what is held back to evaluate by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from late_chunking.adaptation.plan import fingerprint
from late_chunking.boundaries import make_strategies
from late_chunking.documents import Document, Span
from late_chunking.errors import InvalidDataset, InvalidInput
from late_chunking.evaluation.dataset import Dataset, Query
from late_chunking.evaluation.relevance import is_relevant
from late_chunking.planning import Planner
from late_chunking.request import Request

_SHARE_HELD_BACK: Final = 0.1
_FEWEST: Final = 2  # documents: other documents' chunks are what a query is told apart from


@dataclass(frozen=True, slots=True)
class TrainingSet:
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
            InvalidDataset: if fewer than two documents have queries, or an answer is white space.
        """
        check_documents(dataset, "to train on")
        texts = {document.id: document.text for document in dataset.documents}
        to: dict[str, list[Query]] = {}
        for query in dataset.queries:
            for name, spans in query.gold.items():
                if not any(texts[name][slice(*span)].strip() for span in spans):
                    raise InvalidDataset(f"{dataset.name}: query {query.id!r}: its answer in {name!r} is white space")
                to.setdefault(name, []).append(query)
        documents = tuple(document for document in dataset.documents if document.id in to)
        return cls(dataset.name, documents, tuple(tuple(to[document.id]) for document in documents))

    @property
    def fingerprint(self) -> str:
        """What tells it from another one."""
        return fingerprint(
            [
                [document.id, document.text, [[query.text, sorted(query.gold.items())] for query in queries]]
                for document, queries in zip(self.documents, self.queries, strict=True)
            ]
        )

    def check(self, planner: Planner) -> None:
        """Pass if the model can read every document and query.

        Raises:
            InvalidInput: naming the one that it cannot.
        """
        request = Request.of(None)
        for place, document in enumerate(self.documents):
            planner.plan(document, request, place)
        queries = {query.id: query for own in self.queries for query in own}
        tokenized = planner.tokenizer.tokenize_many([query.text for query in queries.values()])
        for query, tokens in zip(queries.values(), tokenized, strict=True):
            if not len(tokens.ids):
                raise InvalidInput(f"query {query.id!r}: the tokenizer of {planner.folder.name!r} makes no token of it")


def check_documents(dataset: Dataset, purpose: str) -> None:
    """Pass if queries ask about at least two documents.

    Raises:
        InvalidDataset: if not.
    """
    count = len({name for query in dataset.queries for name in query.gold})
    if count < _FEWEST:
        raise InvalidDataset(
            f"{dataset.name}: queries to at least {_FEWEST} documents are needed {purpose}, got {count}"
        )


def split(dataset: Dataset, seed: int) -> tuple[Dataset, Dataset]:
    """Hold a tenth of the documents back, at least two, with their queries.

    Documents that one query is about stay together.

    Args:
        dataset: all documents.
        seed: of the draw.

    Raises:
        InvalidDataset: if fewer than two would be on a side.
    """
    groups = _groups(dataset.queries)
    total = sum(map(len, groups))
    wanted = max(_FEWEST, round(_SHARE_HELD_BACK * total))
    held: set[str] = set()
    for place in np.random.default_rng([seed, 1]).permutation(len(groups)).tolist():
        if len(held) < wanted and total - len(held) - len(groups[place]) >= _FEWEST:
            held |= groups[place]
    if len(held) < _FEWEST or total - len(held) < _FEWEST:
        raise InvalidDataset(
            f"{dataset.name}: of {total} documents with queries, {wanted} would be held back to evaluate by, and at "
            f"least {_FEWEST} are needed to train on (those that share a query stay together): give more documents, "
            "or others to evaluate by"
        )
    return _only(dataset, held, inside=False), _only(dataset, held, inside=True)


def parted(dataset: Dataset, planner: Planner, tokens: int) -> Dataset:
    """Cut documents of more tokens into parts, and find the queries' answers in these.

    A part answers a query if it holds at least half of an answer, or lies at least half within
    one; where none does, the one that holds most of it.
    """
    request = Request(make_strategies({"strategy": "recursive", "size": tokens}))
    parts = {
        document.id: [chunk.span for chunk in planner.chunk(document, request, place)]
        for place, document in enumerate(dataset.documents)
    }
    documents: list[Document] = []
    for document in dataset.documents:
        spans = parts[document.id]
        if len(spans) < 2:
            documents.append(document)
            continue
        for number, (start, end) in enumerate(spans):
            documents.append(Document(document.text[start:end], id=f"{document.id}#{number}", title=document.title))
    queries = [replace(query, gold=_moved(query.gold, parts)) for query in dataset.queries]
    return replace(dataset, documents=tuple(documents), queries=tuple(queries))


def _moved(gold: Mapping[str, Sequence[Span]], parts: Mapping[str, Sequence[Span]]) -> dict[str, list[Span]]:
    """Find a query's answers in the parts of their documents."""
    moved: dict[str, list[Span]] = {}
    for name, spans in gold.items():
        if len(parts[name]) < 2:
            moved[name] = list(spans)
            continue
        edges = np.asarray(parts[name], dtype=np.int64)  # [P, 2]
        for low, high in spans:
            shared = np.minimum(edges[:, 1], high) - np.maximum(edges[:, 0], low)
            chosen = is_relevant(edges, [Span(low, high)]) | (shared == max(shared.max(), 1))
            for number in np.flatnonzero(chosen).tolist():
                start, end = parts[name][number]
                moved.setdefault(f"{name}#{number}", []).append(Span(max(low, start) - start, min(high, end) - start))
    return moved


def _groups(queries: Sequence[Query]) -> list[set[str]]:
    """Group documents that share queries, in order of their names."""
    group_of: dict[str, set[str]] = {}
    for query in queries:
        joined = set().union(*(group_of.get(name, {name}) for name in query.gold))
        for name in joined:
            group_of[name] = joined
    unique = {id(group): group for group in group_of.values()}
    return sorted(unique.values(), key=min)


def _only(dataset: Dataset, names: set[str], *, inside: bool) -> Dataset:
    """Keep the documents of some names, or all others."""
    documents = tuple(document for document in dataset.documents if (document.id in names) == inside)
    kept = {document.id for document in documents}
    queries = tuple(query for query in dataset.queries if query.gold.keys() <= kept)
    name = f"{dataset.name}, held back" if inside else dataset.name
    return replace(dataset, name=name, documents=documents, queries=queries)
