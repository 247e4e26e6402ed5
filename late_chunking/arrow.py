"""Chunks and vectors → Arrow: a row a chunk, the same in files and in streams."""

from typing import Any, Final

from late_chunking.dependencies import require
from late_chunking.documents import EmbeddedDocument
from late_chunking.records import chunk_record
from late_chunking.vectors import Vectors

_COLUMNS: Final = (
    *("id", "document_id", "index", "level", "strategy", "kind", "heading_path", "parent", "previous", "next", "page"),
    *("token_count", "text", "content"),
)
_SPANS: Final = {"span": "", "token_span": "token_", "context": "context_"}  # and what its columns are called


def chunk_schema(dimensions: int) -> Any:  # noqa: ANN401 - pyarrow is optional
    """Describe a row: the chunk's fields, its spans, model and mode, and a vector of so many dimensions.

    Raises:
        MissingDependency: without pyarrow.
    """
    arrow = require("pyarrow", purpose="Arrow and Parquet", extra="arrow")
    string, integer = arrow.string(), arrow.int64()
    types = dict.fromkeys(("index", "level", "page", "token_count"), integer)
    types["heading_path"] = arrow.list_(string)
    fields = [(name, types.get(name, string)) for name in _COLUMNS]
    fields += [(f"{prefix}{edge}", integer) for prefix in _SPANS.values() for edge in ("start", "end")]
    fields += [("model", string), ("mode", string)]
    return arrow.schema([*fields, ("vector", arrow.list_(arrow.float32(), dimensions))])


def chunk_batch(
    schema: Any,  # noqa: ANN401
    document: EmbeddedDocument,
    vectors: Vectors,
    model: str,
    *,
    include_text: bool = True,
) -> Any:  # noqa: ANN401
    """Turn one document into a record batch.

    Args:
        schema: of `chunk_schema`.
        document: its chunks.
        vectors: float32 [C, dimensions].
        model: the model's name.
        include_text: whether chunks carry their text.
    """
    arrow = require("pyarrow", purpose="Arrow and Parquet", extra="arrow")
    rows = [chunk_record(chunk, include_text=include_text) for chunk in document.chunks]
    columns = [arrow.array([row[name] for row in rows], schema.field(name).type) for name in _COLUMNS]
    for field in _SPANS:
        spans = [getattr(chunk, field) for chunk in document.chunks]
        columns += [arrow.array([span and span[edge] for span in spans], arrow.int64()) for edge in (0, 1)]
    columns += [arrow.array([value] * len(rows), arrow.string()) for value in (model, document.mode)]
    values = arrow.array(vectors.ravel(), arrow.float32())
    columns.append(arrow.FixedSizeListArray.from_arrays(values, schema.field("vector").type.list_size))
    return arrow.record_batch(columns, schema=schema)
