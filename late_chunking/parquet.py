"""Chunks and vectors → a Parquet file, one row a chunk."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from late_chunking.arrow import chunk_batch, chunk_schema
from late_chunking.dependencies import require
from late_chunking.documents import EmbeddedDocument

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
    schema = chunk_schema(dimensions)
    partial = path.with_name(f".{os.getpid()}.partial")  # not longer than a name may be
    count = 0
    try:
        with parquet.ParquetWriter(partial, schema) as writer:
            waiting: list[Any] = []
            for document in documents:
                waiting.append(chunk_batch(schema, document, document.vectors, model))
                count += len(document.chunks)
                if sum(batch.num_rows for batch in waiting) >= _ROWS:
                    writer.write_table(arrow.Table.from_batches(waiting, schema))
                    waiting = []
            writer.write_table(arrow.Table.from_batches(waiting, schema))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return count
