"""Queries for documents that have none: written by a language model, or sentences taken out of the text."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from late_chunking.boundaries import make_strategies
from late_chunking.documents import Document, Span
from late_chunking.evaluation.dataset import Dataset, Query
from late_chunking.planning import Planner
from late_chunking.request import Request
from late_chunking.writer import ContextWriter

INSTRUCTION: Final = (
    "Here is a chunk of the document above:\n<chunk>\n{chunk}\n</chunk>\n"
    "Write one question that this chunk answers, in the words of somebody who has not read the document and looks for "
    "the answer. Do not quote the chunk. Answer with the question alone."
)
_PASSAGE_TOKENS: Final = 128
_SHARE_TAKEN: Final = 0.2  # of a text's sentences
_FEWEST_WORDS: Final = 6  # of a sentence that says something alone


def written_questions(
    dataset: Dataset,
    planner: Planner,
    writer: ContextWriter,
    *,
    per_document: int,
    seed: int,
    progress: Callable[[str], None] = lambda _: None,
) -> Dataset:
    """Have a language model write questions, each to a passage of about 128 tokens.

    Args:
        dataset: the documents.
        planner: cuts the passages.
        writer: asks the language model; its `instruction` should be `INSTRUCTION`.
        per_document: at most so many questions to a document, to passages drawn from it.
        seed: of the draw.
        progress: told what is being done.

    Raises:
        ContextError: if the endpoint gives no question.
    """
    request = Request(make_strategies({"strategy": "recursive", "size": min(_PASSAGE_TOKENS, planner.folder.window)}))
    queries: list[Query] = []
    for place, document in enumerate(dataset.documents):
        progress(f"asking for questions to document {place + 1} of {len(dataset.documents)}")
        chunks = planner.chunk(document, request, place)
        drawn = np.random.default_rng([seed, place]).permutation(len(chunks))[:per_document]
        passages = [chunks[one] for one in np.sort(drawn).tolist()]
        for passage, question in zip(passages, writer(document, passages), strict=True):
            name = f"{document.id}#{passage.index}"
            queries.append(Query(name, " ".join(question.split()), {document.id: [passage.span]}))
    return replace(dataset, queries=tuple(queries))


def cloze_queries(dataset: Dataset, planner: Planner, *, seed: int) -> Dataset:
    """Take sentences out of the texts: each is a query for the place that it was taken from.

    The inverse cloze task (Lee et al., 2019), for chunks that have read their documents: a sentence
    is taken out of the whole text, so that no neighbour has read it. What is looked for are the
    sentences before and after it.

    Args:
        dataset: the documents.
        planner: finds the sentences.
        seed: of the draw.
    """
    found = [_taken(document, planner, seed, place) for place, document in enumerate(dataset.documents)]
    documents = tuple(document for document, _ in found)
    return replace(dataset, documents=documents, queries=tuple(query for _, queries in found for query in queries))


def _taken(document: Document, planner: Planner, seed: int, place: int) -> tuple[Document, list[Query]]:
    """Take sentences out of one document."""
    request = Request(make_strategies("sentences"))
    sentences = [chunk.span for chunk in planner.chunk(document, request, place)]
    taken = set(_drawn(document.text, sentences, np.random.default_rng([seed, place])))
    kept: list[str] = []
    spans: dict[int, Span] = {}  # where sentences that stay are in the new text
    written = 0
    for number, (start, end) in enumerate(sentences):
        following = sentences[number + 1].start if number + 1 < len(sentences) else len(document.text)
        if number in taken:
            continue
        spans[number] = Span(written, written + end - start)
        kept.append(document.text[start:following])
        written += following - start
    text = "".join(kept)
    queries = [
        Query(
            f"{document.id}#{number}",
            document.text[slice(*sentences[number])],
            {document.id: [Span(spans[number - 1].start, spans[number + 1].end)]},
        )
        for number in sorted(taken)
    ]
    return Document(text, id=document.id, title=document.title), queries


def _drawn(text: str, sentences: list[Span], random: np.random.Generator) -> Iterator[int]:
    """Draw sentences with something to say that have a neighbour on each side, no two side by side."""
    last = -1
    for number in range(1, len(sentences) - 1):
        speaks = len(text[slice(*sentences[number])].split()) >= _FEWEST_WORDS
        if speaks and number > last + 1 and random.random() < _SHARE_TAKEN:
            last = number
            yield number
