"""What planning comes to: what the encoder reads for a document, and what its rows stand for."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from late_chunking.boundaries import Boundary, SourceText, Strategy
from late_chunking.characters import IntArray
from late_chunking.documents import Chunk, Document
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
        chunks: [C].
        sequences: what the encoder reads; their bags name rows of [C, D].
        pooled: float32 [C], how many token vectors each chunk's vector is the mean of.
        token_count: the document's own tokens.
        mode: as requested.
        windows: sequences read for it in all, those that were read to find its boundaries included.
    """

    document: Document
    index: int
    chunks: tuple[Chunk, ...]
    sequences: tuple[TokenSequence, ...]
    pooled: npt.NDArray[np.float32]
    token_count: int
    mode: str
    windows: int

    @property
    def rows(self) -> int:
        """How many rows the bags name."""
        return len(self.chunks)


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A strategy, and the boundaries it has found, or the pieces whose vectors it waits for.

    Attributes:
        strategy: the strategy.
        boundaries: None as long as it waits.
        pieces: [P, 2], the own tokens of the pieces.
    """

    strategy: Strategy
    boundaries: list[Boundary] | None
    pieces: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A document to be read before it can be cut.

    Attributes:
        document: what was given.
        index: its place in the input.
        request: how it is to be embedded.
        source: what strategies are given of it.
        tokens: its tokens.
        cuts: the strategies, some of them waiting.
        cells: what the rows stand for.
        sequences: what the encoder reads; their bags name rows of the cells.
    """

    document: Document
    index: int
    request: Request
    source: SourceText
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
        """How many token vectors there are in each row but those of the special tokens."""
        return (self.cells.ends - self.cells.starts).astype(np.float32)


Plan: TypeAlias = DocumentPlan | Draft
