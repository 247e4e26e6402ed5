"""Documents and questions that a model can be trained on, made of a few sentences each."""

import json
from pathlib import Path

from late_chunking import Document
from late_chunking.documents import Span
from late_chunking.evaluation import Dataset, Query

_NAMES = ("Arel", "Borim", "Calda", "Dovre", "Elsin", "Fanoa", "Gresk", "Halmi", "Isola", "Jarno", "Kesti", "Lundo")
_WATERS = ("a river", "a fjord", "a lake", "the sea")
_GOODS = ("salt", "timber", "glass", "wool", "copper")


def town(place: int) -> tuple[str, list[tuple[str, str]]]:
    """A text about one town, and questions with the sentences that answer them."""
    name, water, goods = _NAMES[place], _WATERS[place % 4], _GOODS[place % 5]
    answers = [
        f"It was founded {300 + 17 * place} years ago by fishermen from the north.",
        f"The old harbour lies on {water}, below the church.",
        f"Most of its ships carry {goods} to the islands.",
        f"Every {place + 2} years the inhabitants choose a new mayor.",
        "Nobody remembers who built the tower beside the market.",
    ]
    text = f"{name} is a small town in the hills. " + " ".join(answers[:3]) + "\n\n" + " ".join(answers[3:])
    asked = [
        f"When was {name} founded?",
        f"What water is the harbour of {name} on?",
        f"What do ships from {name} carry?",
        f"How often does {name} choose a mayor?",
    ]
    return text, list(zip(asked, answers[:4], strict=True))


def towns(count: int = len(_NAMES), name: str = "towns") -> Dataset:
    """So many towns with their questions."""
    documents, queries = [], []
    for place in range(count):
        text, asked = town(place)
        documents.append(Document(text, id=f"town{place}"))
        for question, answer in asked:
            start = text.index(answer)
            queries.append(Query(str(len(queries)), question, {f"town{place}": [Span(start, start + len(answer))]}))
    return Dataset(name, tuple(documents), tuple(queries))


def write_towns(folder: Path, count: int = len(_NAMES)) -> Path:
    """The same as a folder of files."""
    dataset = towns(count)
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
