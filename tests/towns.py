"""Documents and questions that a model can be trained on: alike but for a name, which stands in the first sentence."""

import json
from pathlib import Path

from late_chunking import Document
from late_chunking.documents import Span
from late_chunking.evaluation import Dataset, Query

_FIRST = ("Ar", "Bor", "Cal", "Dov", "El", "Fan")
_LAST = ("im", "da", "re", "sin")
NAMES = [first + last for last in _LAST for first in _FIRST]

_ASKED = {
    "When was {} founded?": "It was founded long ago by fishermen from the north.",
    "What water is the harbour of {} on?": "The old harbour lies on a fjord, below the church.",
    "What do the ships from {} carry?": "Most of its ships carry salt and timber to the islands.",
    "How often does {} choose a mayor?": "Every third year the inhabitants choose a new mayor.",
}
# What is said after each answer, so that a chunk holds one of them, and not the name.
_BESIDE = (
    "People who come by boat often stay for a while and like to talk about it in the evening. "
    "In winter there is hardly anybody in the streets, and the windows are dark before supper. "
    "The weather is said to have been better in the old days, but nobody has written it down."
)


def towns(count: int = 12, first: int = 0, name: str = "towns") -> Dataset:
    """So many towns with their questions: which town a sentence is about, only its document says."""
    documents, queries = [], []
    for town in NAMES[first : first + count]:
        text = f"{town} is a small town in the hills. " + " ".join(f"{answer} {_BESIDE}" for answer in _ASKED.values())
        documents.append(Document(text, id=town))
        for question, answer in _ASKED.items():
            start = text.index(answer)
            gold = {town: [Span(start, start + len(answer))]}
            queries.append(Query(str(len(queries)), question.format(town), gold))
    return Dataset(name, tuple(documents), tuple(queries))


def write_towns(folder: Path, count: int = 12, first: int = 0) -> Path:
    """The same as a folder of files."""
    dataset = towns(count, first)
    folder.mkdir(parents=True)
    records = [json.dumps({"id": one.id, "text": one.text}) for one in dataset.documents]
    (folder / "documents.jsonl").write_text("\n".join(records))
    asked = [
        json.dumps({"query": query.text, "doc_id": name, "spans": [list(span) for span in spans]})
        for query in dataset.queries
        for name, spans in query.gold.items()
    ]
    (folder / "queries.jsonl").write_text("\n".join(asked))
    return folder
