"""Text → spans: one strategy a file, and a registry by name."""

from late_chunking.boundaries.hierarchy import Hierarchy
from late_chunking.boundaries.nested import Nested
from late_chunking.boundaries.paragraphs import Paragraphs
from late_chunking.boundaries.readings import Readings, VectorStrategy, needs_vectors
from late_chunking.boundaries.recursive import Recursive
from late_chunking.boundaries.registry import STRATEGIES, make_strategies
from late_chunking.boundaries.semantic import Semantic
from late_chunking.boundaries.sentence_window import SentenceWindow
from late_chunking.boundaries.sentences import Sentences
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.splitting import pieces_of, split, split_by
from late_chunking.boundaries.strategy import Boundary, CallerSpans, Chunking, Strategy
from late_chunking.boundaries.tokens import Tokens
from late_chunking.boundaries.turns import Turns
from late_chunking.boundaries.words import Words

STRATEGIES["tokens"] = Tokens
STRATEGIES["words"] = Words
STRATEGIES["sentences"] = Sentences
STRATEGIES["paragraphs"] = Paragraphs
STRATEGIES["recursive"] = Recursive
STRATEGIES["turns"] = Turns
STRATEGIES["semantic"] = Semantic
STRATEGIES["sentence_window"] = SentenceWindow
STRATEGIES["hierarchy"] = Hierarchy
STRATEGIES["nested"] = Nested

__all__ = [
    "STRATEGIES",
    "Boundary",
    "CallerSpans",
    "Chunking",
    "Hierarchy",
    "Nested",
    "Paragraphs",
    "Readings",
    "Recursive",
    "Semantic",
    "SentenceWindow",
    "Sentences",
    "SourceText",
    "Strategy",
    "Tokens",
    "Turns",
    "VectorStrategy",
    "Words",
    "make_strategies",
    "needs_vectors",
    "pieces_of",
    "split",
    "split_by",
]
