"""Chunks and vectors → a Parquet file, one row a chunk."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from late_chunking.dependencies import require
from late_chunking.documents import EmbeddedDocument
from late_chunking.records import chunk_record

_COLUMNS: Final = (
    *("id", "document_id", "index", "level", "strategy", "kind", "heading_path", "parent", "previous", "next", "page"),
    *("token_count", "text", "content"),
)
_SPANS: Final = {"span": "", "token_span": "token_", "context": "context_"}  # and what its columns are called

_ROWS: Final = 4_096  # a row group; one a document would make large files slow to read


def write_parquet(path: Path, documents: Iterable[EmbeddedDocument], *, dimensions: int, model: str) -> int:
    """Write documents as they come; the file appears under its name only once it is whole.

    Columns: the chunk's fields, its spans as ``start``, ``end``, ``token_start``,
    ``token_end``, ``context_start`` and ``context_end``, and ``vector``, a list of `dimensions`
    floats. The model's name and the mode are in the columns ``model`` and ``mode``.

    Returns:
        The number of chunks written.

    Raises:
        MissingDependency: without pyarrow.
    """
    arrow = require("pyarrow", purpose="writing Parquet", extra="arrow")
    parquet = require("pyarrow.parquet", purpose="writing Parquet", extra="arrow")
    schema = _schema(arrow, dimensions)
    partial = path.with_name(f".{os.getpid()}.partial")  # not longer than a name may be
    count = 0
    try:
        with parquet.ParquetWriter(partial, schema) as writer:
            waiting: list[Any] = []
            for document in documents:
                waiting.append(_batch(arrow, schema, document, dimensions, model))
                count += len(document.chunks)
                if sum(batch.num_rows for batch in waiting) >= _ROWS:
                    writer.write_table(arrow.Table.from_batches(waiting, schema))
                    waiting = []
            writer.write_table(arrow.Table.from_batches(waiting, schema))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return count


def _schema(arrow: Any, dimensions: int) -> Any:  # noqa: ANN401 - pyarrow is optional
    """Describe a row."""
    string, integer = arrow.string(), arrow.int64()
    types = dict.fromkeys(("index", "level", "page", "token_count"), integer)
    types["heading_path"] = arrow.list_(string)
    fields = [(name, types.get(name, string)) for name in _COLUMNS]
    fields += [(f"{prefix}{edge}", integer) for prefix in _SPANS.values() for edge in ("start", "end")]
    fields += [("model", string), ("mode", string)]
    return arrow.schema([*fields, ("vector", arrow.list_(arrow.float32(), dimensions))])


def _batch(arrow: Any, schema: Any, document: EmbeddedDocument, dimensions: int, model: str) -> Any:  # noqa: ANN401
    """Turn one document into rows."""
    rows = [chunk_record(chunk) for chunk in document.chunks]
    columns = [arrow.array([row[name] for row in rows], schema.field(name).type) for name in _COLUMNS]
    for field in _SPANS:
        spans = [getattr(chunk, field) for chunk in document.chunks]
        columns += [arrow.array([span and span[edge] for span in spans], arrow.int64()) for edge in (0, 1)]
    columns += [arrow.array([value] * len(rows), arrow.string()) for value in (model, document.mode)]
    values = arrow.array(document.vectors.ravel(), arrow.float32())
    columns.append(arrow.FixedSizeListArray.from_arrays(values, dimensions))
    return arrow.record_batch(columns, schema=schema)
