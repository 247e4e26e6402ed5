"""A data set's chunks and vectors: one pass of the encoder for all strategies, kept on disk."""

import dataclasses
import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from late_chunking.boundaries import Boundary
from late_chunking.characters import IntArray
from late_chunking.context import ContextFunction
from late_chunking.documents import Document, EmbeddedDocument, Span
from late_chunking.embedder import LateChunker
from late_chunking.evaluation.arms import Cutting, Found
from late_chunking.vectors import Vectors
from late_chunking.writer import ContextWriter

_FORMAT: Final = 2  # of what is kept; another is not read
_WEIGHTS_AND_SETTINGS: Final = (".safetensors", ".bin", ".json")


@dataclass(frozen=True, slots=True)
class DocumentVectors:
    """One document in one mode: the chunks of all cuttings.

    Attributes:
        cuttings: [C], the place of each chunk's cutting.
        spans: [C, 2].
        tokens: [C], tokens of each chunk.
        vectors: float32 [C, D].
        headings: [C], kind and headings of each, which the mode ``"contextual"`` needs.
    """

    cuttings: IntArray
    spans: IntArray
    tokens: IntArray
    vectors: Vectors
    headings: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, embedded: EmbeddedDocument, cuttings: Sequence[Cutting]) -> Self:
        """Keep a document's chunks; of a hierarchy, the smallest."""
        places = {cutting.name: place for place, cutting in enumerate(cuttings)}
        deepest: dict[str, int] = {}
        for chunk in embedded.chunks:
            deepest[chunk.strategy] = max(deepest.get(chunk.strategy, 0), chunk.level)
        kept = [chunk for chunk in embedded.chunks if chunk.level == deepest[chunk.strategy]]
        return cls(
            np.asarray([places[chunk.strategy] for chunk in kept], dtype=np.int64),
            np.asarray([chunk.span for chunk in kept], dtype=np.int64).reshape(-1, 2),
            np.asarray([chunk.token_count for chunk in kept], dtype=np.int64),
            embedded.vectors[[chunk.index for chunk in kept]],
            tuple((chunk.kind, chunk.heading_path) for chunk in kept),
        )

    def found(self, cuttings: Sequence[Cutting]) -> list[Found]:
        """Give the chunks as strategies that find them again."""
        boundaries: list[list[Boundary]] = [[] for _ in cuttings]
        for place, (start, end), (kind, path) in zip(self.cuttings, self.spans, self.headings, strict=True):
            boundaries[place].append(Boundary(Span(int(start), int(end)), kind=kind, heading_path=tuple(path)))
        return [Found(cutting.name, tuple(each)) for cutting, each in zip(cuttings, boundaries, strict=True)]


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of what has been embedded, by content, model and settings.

    Attributes:
        folder: where; None keeps nothing.
    """

    folder: Path | None

    def load(self, key: str) -> DocumentVectors | None:
        """Give what is kept, if it is there and whole."""
        if self.folder is None:
            return None
        try:
            with np.load(self.folder / f"{key}.npz", allow_pickle=False) as kept:
                headings = json.loads(str(kept["headings"]))
                return DocumentVectors(
                    kept["cuttings"],
                    kept["spans"],
                    kept["tokens"],
                    kept["vectors"],
                    tuple((kind, tuple(path)) for kind, path in headings),
                )
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return None

    def save(self, key: str, kept: DocumentVectors) -> None:
        """Keep a document; it appears under its key only once it is whole."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self.folder / f".{key}.{os.getpid()}.partial.npz"
        np.savez(
            partial,
            cuttings=kept.cuttings,
            spans=kept.spans,
            tokens=kept.tokens,
            vectors=kept.vectors,
            headings=json.dumps(kept.headings),
        )
        partial.replace(self.folder / f"{key}.npz")


def embed_all(
    chunker: LateChunker,
    documents: Sequence[Document],
    cuttings: Sequence[Cutting],
    mode: str,
    store: Store,
    *,
    found: Sequence[DocumentVectors] | None = None,
    window_context: bool = False,
    context: ContextFunction | None = None,
) -> Iterator[DocumentVectors]:
    """Embed documents by all cuttings at once, but those that are kept.

    Args:
        chunker: the model.
        documents: the documents.
        cuttings: where to cut.
        mode: a mode of the library.
        store: what is kept.
        found: the same documents in another mode, so that they need not be cut again.
        window_context: as for `Request`.
        context: as for `Request`. What it writes is kept with what comes of it: another one, of
            another `repr`, is asked anew.
    """
    model = fingerprint(chunker)
    settings = [
        model,
        mode,
        window_context,
        _named(context),
        [(cutting.name, cutting.settings) for cutting in cuttings],
    ]
    keys = [_key(document, settings) for document in documents]
    kept = [store.load(key) for key in keys]
    missing = [place for place, one in enumerate(kept) if one is None]
    given = (
        dataclasses.replace(
            documents[place], chunking=list(cuttings) if found is None else found[place].found(cuttings), metadata={}
        )
        for place in missing
    )
    fresh = _saved(
        chunker.embed_many(given, mode=mode, window_context=window_context, context=context),
        cuttings,
        store,
        keys,
        missing,
    )
    for one in kept:
        yield next(fresh) if one is None else one


def _saved(
    embedded: Iterable[EmbeddedDocument],
    cuttings: Sequence[Cutting],
    store: Store,
    keys: Sequence[str],
    places: Sequence[int],
) -> Iterator[DocumentVectors]:
    """Keep documents as they come."""
    for place, document in zip(places, embedded, strict=True):
        made = DocumentVectors.of(document, cuttings)
        store.save(keys[place], made)
        yield made


def fingerprint(chunker: LateChunker) -> dict[str, Any]:
    """Tell a model, and how it is run, from others: its settings, and the size and date of its files."""
    folder = chunker.planner.folder
    folders = {folder.transformer, folder.weights, *([folder.adapter.path] if folder.adapter else [])}
    files = sorted(path for each in folders for path in each.iterdir() if path.suffix in _WEIGHTS_AND_SETTINGS)
    stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return {"format": _FORMAT, "files": stats, **dataclasses.asdict(chunker.settings)}


def _named(context: ContextFunction | None) -> list[str] | None:
    """Tell what writes contexts from others."""
    if isinstance(context, ContextWriter):
        return [context.url, context.model, context.instruction]
    return None if context is None else [repr(context)]


def _key(document: Document, settings: Sequence[Any]) -> str:
    """Name what is kept of a document."""
    about = [document.text, document.title, document.context, *settings]
    return hashlib.sha256(json.dumps(about, sort_keys=True, default=repr).encode()).hexdigest()[:40]
