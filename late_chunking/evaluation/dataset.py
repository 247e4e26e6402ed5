"""Documents, queries, and where in the documents the answers stand."""

import csv
import difflib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from late_chunking.documents import Document, Span
from late_chunking.errors import InvalidDataset, InvalidDocument

TEXT_FILES: Final = (".md", ".markdown", ".txt")
_DOCUMENTS, _CORPUS, _QUERIES = "documents.jsonl", "corpus.jsonl", "queries.jsonl"
_LAYOUTS: Final = (
    f"{_DOCUMENTS} and {_QUERIES}; or text files ({', '.join(TEXT_FILES)}) and {_QUERIES}; "
    f"or, as BEIR has it, {_CORPUS}, {_QUERIES} and qrels/*.tsv"
)


@dataclass(frozen=True, slots=True)
class Query:
    """A question, and what answers it.

    Attributes:
        id: its name.
        text: the question.
        gold: by document, the spans that answer it; at least one.
    """

    id: str
    text: str
    gold: Mapping[str, Sequence[Span]]

    @property
    def document(self) -> str:
        """The document it is about; of several, the first."""
        return next(iter(self.gold))


@dataclass(frozen=True, slots=True)
class Dataset:
    """What strategies and modes are compared on.

    Attributes:
        name: the folder's.
        documents: [N], whose `metadata` are the other fields of their records.
        queries: [Q].
        whole: whether whole documents are looked for, as in BEIR, rather than passages.
    """

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    whole: bool = False


def read_dataset(folder: Path, *, asked: bool = True) -> Dataset:
    """Read a folder.

    Three layouts are known. ``documents.jsonl`` (`id`, `text`, perhaps `title`, and any other
    fields) or text files, named by their paths, with ``queries.jsonl``: `query`, `doc_id`, and
    `spans` (``[start, end)`` in code points of the text) or `answer`, a passage quoted word for
    word but for white space. Or BEIR's: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/*.tsv``.

    Args:
        folder: the folder.
        asked: whether queries are needed; otherwise none are looked for.

    Raises:
        InvalidDataset: naming the file and line, if something is missing or wrong.
    """
    if not folder.is_dir():
        raise InvalidDataset(f"{folder}: there is no such folder; one with {_LAYOUTS} is needed")
    if asked and (folder / _CORPUS).is_file():
        return _beir(folder)
    records = folder / (_DOCUMENTS if asked or not (folder / _CORPUS).is_file() else _CORPUS)
    documents = tuple(_documents(records) if records.is_file() else _text_files(folder))
    if not documents:
        raise InvalidDataset(f"{folder}: there are no documents in it; {_LAYOUTS} is needed")
    queries = _queries(folder / _QUERIES, {document.id: document for document in documents}) if asked else ()
    return Dataset(folder.resolve().name, documents, tuple(queries))


def _documents(path: Path) -> Iterator[Document]:
    """Read documents, a record each."""
    seen: set[str] = set()
    for place, record in _records(path):
        yield _document(place, record, "_id" if path.name == _CORPUS else "id", seen)


def _document(place: str, record: Mapping[str, Any], id_field: str, seen: set[str]) -> Document:
    """Make a document of a record."""
    name = _string(place, record, id_field)
    if name in seen:
        raise InvalidDataset(f"{place}: the document {name!r} is there twice")
    seen.add(name)
    more = {field: value for field, value in record.items() if field not in (id_field, "text", "title")}
    try:
        title = record.get("title") or None
        return Document(_string(place, record, "text", empty=True), id=name, title=title, metadata=more)
    except InvalidDocument as error:
        raise InvalidDataset(f"{place}: {error}") from error


def _text_files(folder: Path) -> Iterator[Document]:
    """Read every text file below a folder."""
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in TEXT_FILES or not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidDataset(f"{path}: not UTF-8 at byte {error.start}") from error
        yield Document(text, id=name, title=path.stem, metadata={"type": path.suffix[1:]})


def _queries(path: Path, documents: Mapping[str, Document]) -> Iterator[Query]:
    """Read queries, and find their answers."""
    if not path.is_file():
        raise InvalidDataset(
            f"{path}: there are no queries: records with query, doc_id, and spans or answer are needed"
        )
    count = 0
    for place, record in _records(path):
        count += 1
        text, name = _string(place, record, "query"), _string(place, record, "doc_id")
        if name not in documents:
            close = difflib.get_close_matches(name, documents, 1, cutoff=0.3) or [next(iter(documents))]
            raise InvalidDataset(f"{place}: there is no document {name!r}; did you mean {close[0]!r}?")
        gold = _spans(place, record, documents[name].text)
        yield Query(str(record.get("id", count)), text, {name: gold})
    if not count:
        raise InvalidDataset(f"{path}: it is empty: at least one query is needed")


def _spans(place: str, record: Mapping[str, Any], text: str) -> list[Span]:
    """Give the spans that answer a query."""
    if "spans" in record:
        spans = record["spans"]
        if not isinstance(spans, list) or not spans:
            raise InvalidDataset(f"{place}: spans must be a list of at least one [start, end), got {spans!r:.80}")
        return [_span(place, span, len(text)) for span in spans]
    answer = _string(place, record, "answer")
    # White space may differ: quotations are wrapped, and line ends have two forms.
    words = r"\s+".join(re.escape(word) for word in answer.split())
    found = [match.span() for match in itertools.islice(re.finditer(words, text), 2)]
    if not found:
        hint = "; it is with other capitals" if re.search(words, text, re.IGNORECASE) else ""
        raise InvalidDataset(
            f"{place}: its answer is not in the document, word for word: {answer!r:.80}{hint}; quote it, or give spans"
        )
    if len(found) > 1:
        raise InvalidDataset(f"{place}: its answer stands in the document more than once: {answer!r:.80}; quote more")
    return [Span(*found[0])]


def _span(place: str, span: Any, length: int) -> Span:  # noqa: ANN401 - as it was read
    """Check one span."""
    if not isinstance(span, list) or len(span) != 2 or not all(type(edge) is int for edge in span):
        raise InvalidDataset(f"{place}: a span must be two integers, got {span!r:.80}")
    if not 0 <= span[0] < span[1] <= length:
        raise InvalidDataset(f"{place}: the span {span} is empty or outside the text, which has {length} characters")
    return Span(*span)


def _beir(folder: Path) -> Dataset:
    """Read BEIR's layout: what is relevant is whole documents."""
    seen: set[str] = set()
    documents = {
        document.id: document
        for document in (_document(place, record, "_id", seen) for place, record in _records(folder / _CORPUS))
        if document.text.strip()
    }
    texts = {
        _string(place, record, "_id"): _string(place, record, "text") for place, record in _records(folder / _QUERIES)
    }
    found = [folder / "qrels" / f"{split}.tsv" for split in ("test", "dev", "train")]
    path = next((path for path in found if path.is_file()), None)
    if path is None:
        raise InvalidDataset(f"{folder}: there is none of {', '.join(str(each.relative_to(folder)) for each in found)}")
    gold: dict[str, dict[str, list[Span]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.reader(file, delimiter="\t"), 1):
            if number == 1 and row[-1:] == ["score"]:
                continue
            if len(row) != 3 or not row[2].lstrip("-").isdecimal():
                raise InvalidDataset(f"{path}:{number}: query, document and score are needed, got {row}")
            query, name, score = row
            if query in texts and name in documents and int(score) > 0:
                gold.setdefault(query, {})[name] = [Span(0, len(documents[name].text))]
    if not gold:
        raise InvalidDataset(f"{path}: no query has a relevant document")
    queries = tuple(Query(name, texts[name], spans) for name, spans in gold.items())
    return Dataset(folder.resolve().name, tuple(documents.values()), queries, whole=True)


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read a file of JSON lines: where each stands, and the object it is."""
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidDataset(f"{path}: it cannot be read as UTF-8 text: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidDataset(f"{place}: not JSON: {error}") from error
        if not isinstance(record, dict):
            raise InvalidDataset(f"{place}: an object is needed, got {line!r:.80}")
        yield place, record


def _string(place: str, record: Mapping[str, Any], field: str, *, empty: bool = False) -> str:
    """Give a field that must be text."""
    value = record.get(field)
    if not isinstance(value, str) or not (empty or value.strip()):
        raise InvalidDataset(
            f"{place}: {field} must be {'text' if empty else 'text that is not empty'}, got {value!r:.80}"
        )
    return value
