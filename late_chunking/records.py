"""Documents and chunks as plain records, for JSON and files; one shape everywhere."""

from collections.abc import Sequence
from typing import Any

from late_chunking.documents import Chunk, Document, EmbeddedDocument

Record = dict[str, Any]


def chunk_record(chunk: Chunk, *, include_text: bool = True) -> Record:
    """Give a chunk's fields, without its vector."""
    return {
        "object": "chunk",
        "index": chunk.index,
        "id": chunk.id,
        "document_id": chunk.document_id,
        "span": list(chunk.span),
        "token_span": list(chunk.token_span),
        "token_count": chunk.token_count,
        "level": chunk.level,
        "strategy": chunk.strategy,
        "kind": chunk.kind,
        "heading_path": list(chunk.heading_path),
        "parent": chunk.parent,
        "previous": chunk.previous,
        "next": chunk.next,
        "context": list(chunk.context) if chunk.context else None,
        "page": chunk.page,
        "table_header": list(chunk.table_header) if chunk.table_header else None,
        "text": chunk.text if include_text else None,
        "content": chunk.content if include_text else None,
    }


def document_record(document: Document, index: int, chunks: Sequence[Record], **more: Any) -> Record:  # noqa: ANN401
    """Give a document's fields around the records of its chunks."""
    return {
        "object": "document",
        "index": index,
        "id": document.id,
        **more,
        "metadata": dict(document.metadata),
        "chunks": list(chunks),
    }


def embedded_record(embedded: EmbeddedDocument) -> Record:
    """Give an embedded document's fields, vectors as lists of floats."""
    chunks = [
        {**chunk_record(chunk), "embedding": vector.tolist()}
        for chunk, vector in zip(embedded.chunks, embedded.vectors, strict=True)
    ]
    return document_record(
        embedded.document, embedded.index, chunks, tokens=embedded.token_count, windows=embedded.windows
    )
