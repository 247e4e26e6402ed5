"""Cuts where the meaning changes, by the vectors of sentences from the document's own pass."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from late_chunking.boundaries.gains import gains_of
from late_chunking.boundaries.merging import Merging
from late_chunking.boundaries.partition import partition
from late_chunking.boundaries.pieces import check_language
from late_chunking.boundaries.readings import Reading, Readings, Waiting
from late_chunking.boundaries.sentences import sentence_spans
from late_chunking.boundaries.similarity import Similarities, vector_similarities, word_similarities
from late_chunking.boundaries.sizes import check_count
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.splitting import join_tokenless
from late_chunking.boundaries.strategy import Boundary, is_number
from late_chunking.boundaries.units import UNITS, Unit, check_unit, ruler_of
from late_chunking.characters import IntArray
from late_chunking.documents import Span
from late_chunking.errors import InvalidParameter

Embedder: TypeAlias = Callable[[Sequence[str]], npt.ArrayLike]

_WIDEST: Final = 2**31  # a window wider than any text means the same, but would overflow
BAG_OF_WORDS: Final = "bag-of-words"
_INSIDE: Final = -10.0  # what a cut inside a sentence is worth: less than any between two, which are within ±4


@dataclass(frozen=True, slots=True)
class Semantic:
    """Topics: sentences stay together until what follows is unlike what came before.

    Across each gap between sentences a distance is taken, 1 − cosine of the mean token vectors
    on both sides, and the gap is cut where the distance stands out. The vectors are pooled from
    the pass that embeds the document, special tokens left out, and only compared within one of
    its windows; for `percentile` and `drop` their common mean is taken off first. Equal
    neighbours are never parted but for their size. Where sizes are limited, the cuts are those
    whose distances stand out the most in sum under the limits, which always hold: where whole
    sentences cannot keep them, one is cut at a word.

    Attributes:
        size: the most units a chunk holds; by default no limit.
        min_size: the least, at most half of `size`; only a whole text may be smaller, or what
            wide white space sets apart.
        unit: what they count, as for `recursive`.
        percentile: cut where the distance lies above this percentile of the text's own; 95
            unless another rule is given.
        threshold: cut where the cosine lies below this.
        drop: cut where the cosine lies this much below the average of the nearest gaps, up to
            five on each side, its own included.
        floor: a distance that must be passed in any case, so that a text of one topic stays
            whole.
        window: sentences that each side of a gap takes in beyond the nearest one.
        language: as for `sentences`.
        embedder: instead of the document's pass: ``"bag-of-words"``, which needs no model, or a
            function from sentences to vectors [S, D].
    """

    name: ClassVar[str] = "semantic"
    size: int | None = None
    min_size: int | None = None
    unit: Unit = "tokens"
    percentile: float | None = None
    threshold: float | None = None
    drop: float | None = None
    floor: float = 0.1
    window: int = 1
    language: str = "en"
    embedder: str | Embedder | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        check_unit(self.unit, tuple(UNITS))
        check_language(self.language)
        for option in ("size", "min_size"):
            if getattr(self, option) is not None:
                object.__setattr__(self, option, check_count(option, getattr(self, option), 1))
        object.__setattr__(self, "window", min(check_count("window", self.window, 0), _WIDEST))
        if self.size is not None and self.min_size is not None and 2 * self.min_size > self.size:
            raise InvalidParameter(f"min_size must be at most half of size, {self.size}, got {self.min_size}")
        given = [option for option in ("percentile", "threshold", "drop") if getattr(self, option) is not None]
        if len(given) > 1:
            raise InvalidParameter(f"give one of percentile, threshold and drop, got {' and '.join(given)}")
        for option, low, high in (("percentile", 0, 100), ("threshold", -1, 1), ("drop", 0, 2), ("floor", 0, 2)):
            object.__setattr__(self, option, _checked(option, getattr(self, option), low, high))
        named = isinstance(self.embedder, str) and self.embedder == BAG_OF_WORDS
        if not (self.embedder is None or named or callable(self.embedder)):
            raise InvalidParameter(f"embedder must be {BAG_OF_WORDS!r} or a function, got {self.embedder!r:.80}")

    @property
    def needs_vectors(self) -> bool:
        """Whether the vectors come from the document's pass."""
        return self.embedder is None

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Cut by an embedder of the caller's.

        Raises:
            InvalidParameter: if it fails.
        """
        pieces = self._pieces(source)
        if isinstance(self.embedder, str):
            similarities = word_similarities(pieces.sentences, self.window)
            return self._cut(source, pieces, similarities, similarities)
        vectors = _embedded(self.embedder, pieces.sentences)
        reading = Reading(0, vectors, np.ones(len(vectors), dtype=np.int64), (0, len(vectors) - 1))
        return self._cut_by(source, pieces, Readings(len(vectors), [reading]))

    def prepare(self, source: SourceText) -> Waiting:
        """Ask for the pieces' vectors."""
        pieces = self._pieces(source)
        spans = [Span(int(start), int(end)) for start, end in pieces.edges]
        return Waiting(spans, lambda readings: self._cut_by(source, pieces, readings.joined(pieces.owners)))

    def _pieces(self, source: SourceText) -> "_Pieces":
        """Find the sentences, and cut those that are too large to keep the limits with."""
        starts, ends = sentence_spans(source, self.language)
        spans = [Span(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]
        if self.size is not None:
            # Of pieces up to this, groups between the limits can always be made; two units more
            # are left for the white space beside a piece.
            most = max(self.size - 2 * (self.min_size or 0), 1)
            large = ruler_of(source, self.unit).sizes(starts, ends) > most
            parts = [
                self._parts(source, span, most) if is_large else [span]
                for span, is_large in zip(spans, large, strict=True)
            ]
            spans = [part for each in parts for part in each]
        joined = join_tokenless(source, [Boundary(span) for span in spans])
        edges = np.asarray([boundary.span for boundary in joined], dtype=np.int64)  # [P, 2]
        _, owners = np.unique(starts.searchsorted(edges[:, 0], side="right"), return_inverse=True)
        first = np.flatnonzero(np.diff(owners, prepend=-1))
        lasts = np.append(first[1:], len(owners)) - 1
        texts = [source.text[start:end] for start, end in zip(edges[first, 0], edges[lasts, 1], strict=True)]
        return _Pieces(edges, owners, texts)

    def _parts(self, source: SourceText, sentence: Span, most: int) -> list[Span]:
        """Cut a sentence at words."""
        part = source.part(sentence)
        merging = Merging(part, ruler_of(part, self.unit), most)
        return [Span(sentence.start + low, sentence.start + high) for low, high in merging.split([part.words.starts])]

    def _cut_by(self, source: SourceText, pieces: "_Pieces", readings: Readings) -> list[Boundary]:
        """Group the pieces by the vectors of their sentences."""
        similarities = vector_similarities(readings, self.window)
        return self._cut(source, pieces, similarities, vector_similarities(readings.centered(), self.window))

    def _cut(
        self, source: SourceText, pieces: "_Pieces", similarities: Similarities, relative: Similarities
    ) -> list[Boundary]:
        """Group the pieces.

        Args:
            source: the text.
            pieces: its pieces.
            similarities: across each gap between sentences, for what is said as an absolute
                number. [S - 1].
            relative: the same for what is said as a place among the text's own. [S - 1].
        """
        same = np.asarray([one == other for one, other in pairwise(pieces.sentences)], dtype=np.bool_)
        gains = np.full(len(pieces.edges) - 1, _INSIDE)
        gains[np.diff(pieces.owners) > 0] = gains_of(
            np.where(same, 1.0, similarities),
            np.where(same, 1.0, relative),
            percentile=self.percentile,
            threshold=self.threshold,
            drop=self.drop,
            floor=self.floor,
        )
        starts, ends = pieces.edges.T
        groups = partition(starts, ends, gains, ruler_of(source, self.unit), self.size, self.min_size or 1)
        return [Boundary(group) for group in groups]


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Pieces of a text: sentences, or parts of those that are too large.

    Attributes:
        edges: [P, 2], starts and ends.
        owners: [P], the sentence of each: 0, 1, 2, …
        sentences: [S], their texts.
    """

    edges: IntArray
    owners: IntArray
    sentences: list[str]


def _embedded(embedder: str | Embedder | None, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Ask a caller's embedder for vectors, and check them."""
    if not callable(embedder):
        raise InvalidParameter("semantic boundaries wait for the document's vectors: prepare them, or give an embedder")
    try:
        vectors = np.asarray(embedder(texts), dtype=np.float32)
    except Exception as error:
        raise InvalidParameter(f"the embedder failed: {type(error).__name__}: {error}") from error
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise InvalidParameter(
            f"the embedder must give finite vectors [{len(texts)}, D], one a sentence, got shape {vectors.shape}"
        )
    return vectors


def _checked(option: str, value: Any, low: float, high: float) -> float | None:  # noqa: ANN401 - the caller's
    """Give an option that is a number in a range as a plain one; all but the floor may be left out."""
    if value is None and option != "floor":
        return None
    if not (is_number(value) and low <= value <= high):
        raise InvalidParameter(f"{option} must be a number from {low} to {high}, got {value!r:.80}")
    return float(value)
