"""Single sentences to find by, each with the sentences around it to read."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from late_chunking.boundaries.pieces import check_language
from late_chunking.boundaries.sentences import sentence_spans
from late_chunking.boundaries.sizes import check_count
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.strategy import Boundary
from late_chunking.documents import Span


@dataclass(frozen=True, slots=True)
class SentenceWindow:
    """One sentence a vector; its `context` is the span to hand to a generator.

    Attributes:
        window: sentences that the context takes in on each side.
        language: as for `sentences`.
    """

    name: ClassVar[str] = "sentence_window"
    window: int = 3
    language: str = "en"

    def __post_init__(self) -> None:
        """Check the options."""
        object.__setattr__(self, "window", check_count("window", self.window, 0))
        check_language(self.language)

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Find the sentences, and for each the first and the last around it."""
        starts, ends = sentence_spans(source, self.language)
        places = np.arange(len(starts))
        around = min(self.window, len(starts))
        first, last = np.maximum(places - around, 0), np.minimum(places + around, len(starts) - 1)
        edges = zip(starts.tolist(), ends.tolist(), starts[first].tolist(), ends[last].tolist(), strict=True)
        return [Boundary(Span(start, end), context=Span(low, high)) for start, end, low, high in edges]
