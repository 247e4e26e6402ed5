"""What planning comes to: what the encoder reads for a document, and what its rows stand for."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from late_chunking.boundaries import Boundary, Strategy, Waiting
from late_chunking.documents import Chunk, Document, Span
from late_chunking.encoding.cells import Cells
from late_chunking.encoding.sequences import TokenSequence
from late_chunking.encoding.tokens import TokenizedText
from late_chunking.request import Request


@dataclass(frozen=True, slots=True, eq=False)
class DocumentPlan:
    """A document, cut and tokenized, ready for the encoder.

    Attributes:
        document: what was given.
        index: its place in the input.
        request: how it is to be embedded.
        chunks: [C].
        sequences: what the encoder reads; their bags name rows of [R, D].
        pooled: float32 [R], how many token vectors each row is the mean of. There is a row a
            chunk; in mode ``"blend"`` another one a chunk, for the chunks read alone.
        token_count: the document's own tokens.
        windows: sequences read for it in all, those that were read to find its boundaries included.
    """

    document: Document
    index: int
    request: Request
    chunks: tuple[Chunk, ...]
    sequences: tuple[TokenSequence, ...]
    pooled: npt.NDArray[np.float32]
    token_count: int
    windows: int

    @property
    def rows(self) -> int:
        """How many rows the bags name."""
        return len(self.pooled)


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A strategy, and the boundaries it has found, or what it waits for.

    Attributes:
        strategy: the strategy.
        found: what came of it.
    """

    strategy: Strategy
    found: list[Boundary] | Waiting

    @property
    def boundaries(self) -> list[Boundary]:
        """The boundaries; none as long as it waits."""
        return [] if isinstance(self.found, Waiting) else self.found

    @property
    def spans(self) -> list[Span]:
        """The spans of its boundaries, or of the pieces it waits for."""
        if isinstance(self.found, Waiting):
            return self.found.pieces
        return [boundary.span for boundary in self.found]


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A document to be read before it can be cut.

    Attributes:
        document: what was given.
        index: its place in the input.
        request: how it is to be embedded.
        tokens: its tokens.
        cuts: the strategies, some of them waiting.
        cells: what the rows stand for.
        sequences: what the encoder reads; their bags name rows of the cells.
    """

    document: Document
    index: int
    request: Request
    tokens: TokenizedText
    cuts: tuple[Cut, ...]
    cells: Cells
    sequences: tuple[TokenSequence, ...]

    @property
    def rows(self) -> int:
        """How many rows the bags name."""
        return self.cells.rows

    @property
    def pooled(self) -> npt.NDArray[np.float32]:
        """How many token vectors there are in each row, those of head and tail left out. [R]."""
        return (self.cells.ends - self.cells.starts).astype(np.float32)


Plan: TypeAlias = DocumentPlan | Draft
