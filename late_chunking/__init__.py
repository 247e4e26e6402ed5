"""Late chunking: embed a whole document once, then pool the token vectors of each chunk."""

from late_chunking import errors
from late_chunking.boundaries import (
    Hierarchy,
    Nested,
    Paragraphs,
    Recursive,
    Semantic,
    Sentences,
    SentenceWindow,
    Tokens,
    Turns,
    Words,
)
from late_chunking.documents import Chunk, Document, EmbeddedDocument, FailedDocument, Span
from late_chunking.embedder import LateChunker
from late_chunking.errors import LateChunkingError
from late_chunking.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "Chunk",
    "Document",
    "EmbeddedDocument",
    "FailedDocument",
    "Hierarchy",
    "LateChunker",
    "LateChunkingError",
    "Nested",
    "Paragraphs",
    "Recursive",
    "Semantic",
    "SentenceWindow",
    "Sentences",
    "Settings",
    "Span",
    "Tokens",
    "Turns",
    "Words",
    "errors",
]
