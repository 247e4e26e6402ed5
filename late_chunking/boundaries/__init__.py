"""Text → spans: one strategy a file, and a registry by name."""

from late_chunking.boundaries.recursive import Recursive
from late_chunking.boundaries.registry import STRATEGIES, make_strategies, split
from late_chunking.boundaries.sentences import Sentences
from late_chunking.boundaries.source import Ruler, SourceText
from late_chunking.boundaries.strategy import Boundary, CallerSpans, Chunking, Strategy
from late_chunking.boundaries.tokens import Tokens

__all__ = [
    "STRATEGIES",
    "Boundary",
    "CallerSpans",
    "Chunking",
    "Recursive",
    "Ruler",
    "Sentences",
    "SourceText",
    "Strategy",
    "Tokens",
    "make_strategies",
    "split",
]
