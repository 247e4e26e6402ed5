"""Arms over one data set: encoded together, ranked, measured."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from late_chunking.characters import IntArray
from late_chunking.context import ContextFunction
from late_chunking.documents import Document, Span
from late_chunking.embedder import LateChunker
from late_chunking.evaluation.arms import BM25, CONTROL, Arm
from late_chunking.evaluation.dataset import Dataset, Query
from late_chunking.evaluation.lexical import BM25Index
from late_chunking.evaluation.measures import CUTOFF, DEPTH, characters, ranked
from late_chunking.evaluation.relevance import Floats, is_relevant
from late_chunking.evaluation.vectors import DocumentVectors, Store, embed_all
from late_chunking.vectors import Vectors, blended

_BLOCK: Final = 256  # queries that are scored at once
_RANK_CONSTANT: Final = 60  # of reciprocal rank fusion (Cormack et al., 2009)
Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Corpus:
    """The chunks of all documents by one cutting.

    Attributes:
        owners: [C], the place of each chunk's document.
        spans: [C, 2].
        tokens: [C], tokens of each.
        first: [N + 1], where each document's chunks begin.
    """

    owners: IntArray
    spans: IntArray
    tokens: IntArray
    first: IntArray


@dataclass(frozen=True, slots=True)
class ArmResult:
    """What came of one arm.

    Attributes:
        arm: the arm.
        chunks: how many it has.
        tokens: the mean size of a chunk, in tokens.
        corpus: [Q] by measure, over the chunks of all documents.
        document: [Q] by measure, over the chunks of the documents that the query is about; empty
            where whole documents are looked for.
        top: [Q, ≤ 5], the chunks found first in the corpus, as document and span.
    """

    arm: Arm
    chunks: int
    tokens: float
    corpus: dict[str, Floats]
    document: dict[str, Floats]
    top: list[list[tuple[str, Span]]]


def compare(
    chunker: LateChunker,
    dataset: Dataset,
    arms: Sequence[Arm],
    store: Store,
    *,
    window_context: bool = False,
    context: ContextFunction | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[ArmResult]:
    """Measure arms of one model.

    Each mode reads the documents once for all cuttings; blends and fusions read nothing.

    Args:
        chunker: the model.
        dataset: documents and queries.
        arms: what to compare.
        store: what has been embedded before.
        window_context: as for `Request`, for late vectors.
        context: as for `Request`, for contextual ones.
        progress: told what is being done.
    """
    cuttings = list(dict.fromkeys(arm.cutting for arm in arms))
    places = {cutting: place for place, cutting in enumerate(cuttings)}
    modes = {"late", *(arm.mode for arm in arms)} | ({"naive"} if any(arm.mode == "blend" for arm in arms) else set())
    read: dict[str, list[DocumentVectors]] = {}
    for mode in ("late", "naive", "contextual"):
        if mode in modes:
            progress(f"reading {len(dataset.documents)} documents, {mode}")
            options: dict[str, Any] = {"window_context": window_context} if mode == "late" else {"found": read["late"]}
            if mode == "contextual":
                options["context"] = context
            read[mode] = list(embed_all(chunker, dataset.documents, cuttings, mode, store, **options))
    progress(f"reading {len(dataset.queries)} queries")
    questions = chunker.embed_texts([query.text for query in dataset.queries], input_type="query")  # [Q, D]
    for arm in arms:
        progress(f"measuring {arm.label}")
        corpus = _corpus(read["late"], places[arm.cutting])
        yield _measured(arm, dataset, corpus, _scorer(chunker, arm, dataset, corpus, read, places, questions, store))


Scorer = Callable[[slice], Scores]


def _scorer(
    chunker: LateChunker,
    arm: Arm,
    dataset: Dataset,
    corpus: Corpus,
    read: dict[str, list[DocumentVectors]],
    places: dict[Any, int],
    questions: Vectors,
    store: Store,
) -> Scorer:
    """Give the function that scores all chunks for some of the queries: slice → float32 [q, C]."""
    texts = [query.text for query in dataset.queries]
    lexical = BM25Index(_texts(dataset.documents, corpus)) if arm.fused or arm.mode == BM25 else None
    if arm.mode == BM25 and lexical is not None:
        return lambda block: lexical.scores(texts[block])

    def vectors_of(mode: str) -> Vectors:
        return np.concatenate([one.vectors[one.cuttings == places[arm.cutting]] for one in read[mode]])

    if arm.mode == "blend":
        vectors = blended(vectors_of("late"), vectors_of("naive"), 0.5 if arm.weight is None else arm.weight)
    elif arm.mode == CONTROL:
        vectors = _control(chunker, dataset.documents, corpus)
    else:
        vectors = vectors_of(arm.mode)
    if lexical is None:
        return lambda block: questions[block] @ vectors.T
    return lambda block: _fused(questions[block] @ vectors.T, lexical.scores(texts[block]))


def _measured(arm: Arm, dataset: Dataset, corpus: Corpus, scorer: Scorer) -> ArmResult:
    """Rank the chunks for each query, and measure."""
    names = {document.id: place for place, document in enumerate(dataset.documents)}
    corpus_ranks: list[IntArray] = []
    document_ranks: list[IntArray] = []
    relevant: list[IntArray] = []
    for begin in range(0, len(dataset.queries), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        for query, scores in zip(dataset.queries[block], scorer(block), strict=True):
            relevant.append(_relevant(query, corpus, names))
            order = np.argsort(-scores, kind="stable")
            inside = np.isin(corpus.owners[order], [names[name] for name in query.gold])
            corpus_ranks.append(order[:DEPTH] if not dataset.whole else order)
            document_ranks.append(order[inside][:DEPTH])
    if dataset.whole:
        found = [_documents_of(ranks, corpus) for ranks in corpus_ranks]
        gold = [np.asarray([names[name] for name in query.gold]) for query in dataset.queries]
        measures = ranked(
            [np.isin(one, wanted).tolist() for one, wanted in zip(found, gold, strict=True)], [len(one) for one in gold]
        )
        documents: dict[str, Floats] = {}
    else:
        measures = _over_chunks(corpus_ranks, relevant, dataset, corpus)
        documents = _over_chunks(document_ranks, relevant, dataset, corpus)
    top = [[_place(int(chunk), dataset, corpus) for chunk in ranks[:CUTOFF]] for ranks in corpus_ranks]
    return ArmResult(arm, len(corpus.owners), float(corpus.tokens.mean()), measures, documents, top)


def _over_chunks(
    ranks: Sequence[IntArray], relevant: Sequence[IntArray], dataset: Dataset, corpus: Corpus
) -> dict[str, Floats]:
    """Measure rankings of chunks."""
    flags = [np.isin(one, wanted).tolist() for one, wanted in zip(ranks, relevant, strict=True)]
    measures = ranked(flags, [len(wanted) for wanted in relevant])
    over_characters = [
        _characters(query, one[:CUTOFF], dataset, corpus) for query, one in zip(dataset.queries, ranks, strict=True)
    ]
    for name in over_characters[0]:
        measures[name] = np.asarray([one[name] for one in over_characters])
    measures[f"tokens@{CUTOFF}"] = np.asarray([float(corpus.tokens[one[:CUTOFF]].sum()) for one in ranks])
    return measures


def _characters(query: Query, top: IntArray, dataset: Dataset, corpus: Corpus) -> dict[str, float]:
    """Measure one query over characters."""
    found: dict[str, list[Span]] = {}
    for chunk in top:
        name, span = _place(int(chunk), dataset, corpus)
        found.setdefault(name, []).append(span)
    touching: dict[str, list[Span]] = {}
    for place, document in enumerate(dataset.documents):
        if document.id in query.gold:
            spans = corpus.spans[corpus.first[place] : corpus.first[place + 1]]
            touching[document.id] = [
                Span(int(start), int(end))
                for start, end in spans
                if any(start < high and end > low for low, high in query.gold[document.id])
            ]
    return characters(found, touching, query.gold)


def _relevant(query: Query, corpus: Corpus, names: dict[str, int]) -> IntArray:
    """Give the chunks that answer a query."""
    chunks = []
    for name, gold in query.gold.items():
        first, last = corpus.first[names[name]], corpus.first[names[name] + 1]
        chunks.append(first + np.flatnonzero(is_relevant(corpus.spans[first:last], gold)))
    return np.concatenate(chunks)


def _documents_of(ranks: IntArray, corpus: Corpus) -> IntArray:
    """Rank documents by their best chunk."""
    owners = corpus.owners[ranks]
    _, first = np.unique(owners, return_index=True)
    return owners[np.sort(first)][:DEPTH]


def _place(chunk: int, dataset: Dataset, corpus: Corpus) -> tuple[str, Span]:
    """Say where a chunk is."""
    start, end = corpus.spans[chunk]
    return dataset.documents[int(corpus.owners[chunk])].id, Span(int(start), int(end))


def _corpus(documents: Sequence[DocumentVectors], place: int) -> Corpus:
    """Gather the chunks of one cutting."""
    own = [one.cuttings == place for one in documents]
    counts = np.asarray([int(mask.sum()) for mask in own])
    return Corpus(
        np.repeat(np.arange(len(documents)), counts),
        np.concatenate([one.spans[mask] for one, mask in zip(documents, own, strict=True)]),
        np.concatenate([one.tokens[mask] for one, mask in zip(documents, own, strict=True)]),
        np.insert(np.cumsum(counts), 0, 0),
    )


def _texts(documents: Sequence[Document], corpus: Corpus) -> list[str]:
    """Give the text of each chunk."""
    places = zip(corpus.owners.tolist(), corpus.spans.tolist(), strict=True)
    return [documents[owner].text[start:end] for owner, (start, end) in places]


def _control(chunker: LateChunker, documents: Sequence[Document], corpus: Corpus) -> Vectors:
    """Read each chunk among chunks of other documents: what context is worth that is not its own.

    The chunk at place i of document d goes to text (d + i) mod N: texts as long as the documents,
    in which no two neighbours are of one document.
    """
    texts = _texts(documents, corpus)
    inside = np.arange(len(texts)) - corpus.first[corpus.owners]
    homes = (corpus.owners + inside) % len(documents)
    vectors: Vectors = np.zeros((len(texts), chunker.head.dimensions), dtype=np.float32)
    members = [np.flatnonzero(homes == home) for home in range(len(documents))]
    members = [one[np.lexsort((corpus.owners[one], inside[one]))] for one in members if len(one)]

    def mixed() -> Iterator[Document]:
        for one in members:
            edges = np.cumsum([0, *(len(texts[chunk]) + 2 for chunk in one)])
            spans = [(int(start), int(start) + len(texts[chunk])) for start, chunk in zip(edges, one, strict=False)]
            yield Document("\n\n".join(texts[chunk] for chunk in one), spans=spans)

    for one, embedded in zip(members, chunker.embed_many(mixed()), strict=True):
        vectors[one] = embedded.vectors
    return vectors


def _fused(dense: Scores, lexical: Scores) -> Scores:
    """Fuse two rankings by reciprocal rank. [q, C]."""
    fused = np.zeros_like(dense)
    for scores in (dense, lexical):
        order = np.argsort(-scores, axis=1, kind="stable")
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(scores.shape[1])[None], axis=1)
        fused += 1 / (_RANK_CONSTANT + 1 + ranks)
    return fused
