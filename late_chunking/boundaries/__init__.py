"""Text → spans: one strategy a file, and a registry by name."""

from late_chunking.boundaries.hierarchy import Hierarchy
from late_chunking.boundaries.nested import Nested
from late_chunking.boundaries.paragraphs import Paragraphs
from late_chunking.boundaries.readings import Readings, VectorStrategy, Waiting, needs_vectors
from late_chunking.boundaries.recursive import Recursive
from late_chunking.boundaries.registry import STRATEGIES, make_strategies
from late_chunking.boundaries.semantic import Semantic
from late_chunking.boundaries.sentence_window import SentenceWindow
from late_chunking.boundaries.sentences import Sentences
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.splitting import prepare, split
from late_chunking.boundaries.strategy import Boundary, CallerSpans, Chunking, Strategy
from late_chunking.boundaries.tokens import Tokens
from late_chunking.boundaries.turns import Turns
from late_chunking.boundaries.words import Words

# Filled here, not in the registry: strategies that apply others look these up there.
STRATEGIES.update(
    {
        strategy.name: strategy
        for strategy in (
            Tokens,
            Words,
            Sentences,
            Paragraphs,
            Recursive,
            Turns,
            Semantic,
            SentenceWindow,
            Hierarchy,
            Nested,
        )
    }
)

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
    "Waiting",
    "Words",
    "make_strategies",
    "needs_vectors",
    "prepare",
    "split",
]
