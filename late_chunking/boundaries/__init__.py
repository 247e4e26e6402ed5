"""Text → spans: one strategy a file, and a registry by name."""

from late_chunking.boundaries.hierarchy import Hierarchy
from late_chunking.boundaries.paragraphs import Paragraphs
from late_chunking.boundaries.recursive import Recursive
from late_chunking.boundaries.registry import STRATEGIES, make_strategies, split
from late_chunking.boundaries.sentences import Sentences
from late_chunking.boundaries.source import Ruler, SourceText
from late_chunking.boundaries.strategy import Boundary, CallerSpans, Chunking, Strategy
from late_chunking.boundaries.tokens import Tokens
from late_chunking.boundaries.words import Words

__all__ = [
    "STRATEGIES",
    "Boundary",
    "CallerSpans",
    "Chunking",
    "Hierarchy",
    "Paragraphs",
    "Recursive",
    "Ruler",
    "Sentences",
    "SourceText",
    "Strategy",
    "Tokens",
    "Words",
    "make_strategies",
    "split",
]
