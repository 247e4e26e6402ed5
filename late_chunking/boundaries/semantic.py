"""Cuts where the meaning changes, by the vectors of sentences from the document's own pass."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from late_chunking.boundaries.merging import Merging
from late_chunking.boundaries.partition import partition
from late_chunking.boundaries.pieces import check_language
from late_chunking.boundaries.readings import Reading, Readings
from late_chunking.boundaries.sentences import sentence_spans
from late_chunking.boundaries.similarity import Similarities, vector_similarities, word_similarities
from late_chunking.boundaries.sizes import check_count
from late_chunking.boundaries.source import SourceText
from late_chunking.boundaries.splitting import pieces_of
from late_chunking.boundaries.strategy import Boundary
from late_chunking.boundaries.units import UNITS, Unit, check_unit, ruler_of
from late_chunking.characters import IntArray
from late_chunking.documents import Span
from late_chunking.errors import InvalidParameter

Embedder: TypeAlias = Callable[[Sequence[str]], npt.ArrayLike]

BAG_OF_WORDS: Final = "bag-of-words"
_PERCENTILE: Final = 95.0
_NEIGHBOURHOOD: Final = 5  # gaps on each side that a local average is taken over
_INSIDE: Final = -10.0  # what a cut inside a sentence is worth: less than any between two


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
        object.__setattr__(self, "window", check_count("window", self.window, 0))
        if self.size is not None and self.min_size is not None and 2 * self.min_size > self.size:
            raise InvalidParameter(f"min_size must be at most half of size, {self.size}, got {self.min_size}")
        given = [option for option in ("percentile", "threshold", "drop") if getattr(self, option) is not None]
        if len(given) > 1:
            raise InvalidParameter(f"give one of percentile, threshold and drop, got {' and '.join(given)}")
        for option, low, high in (("percentile", 0, 100), ("threshold", -1, 1), ("drop", 0, 2), ("floor", 0, 2)):
            _check_number(option, getattr(self, option), low, high)
        if not (self.embedder in (None, BAG_OF_WORDS) or callable(self.embedder)):
            raise InvalidParameter(f"embedder must be {BAG_OF_WORDS!r} or a function, got {self.embedder!r:.80}")

    @property
    def needs_vectors(self) -> bool:
        """Whether the vectors come from the document's pass."""
        return self.embedder is None

    def pieces(self, source: SourceText) -> Iterable[Span]:
        """Give the sentences, those in parts that are too large to keep the limits with."""
        starts, ends = sentence_spans(source, self.language)
        if self.size is None:
            return [Span(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]
        # Of pieces up to this, groups between the limits can always be made; two units more are
        # left for the white space beside a piece.
        most = max(self.size - 2 * (self.min_size or 0), 1)
        large = ruler_of(source, self.unit).sizes(starts, ends) > most
        pieces: list[Span] = []
        for start, end, too_large in zip(starts.tolist(), ends.tolist(), large.tolist(), strict=True):
            if too_large:
                part = source.part(Span(start, end))
                merging = Merging(part, ruler_of(part, self.unit), most)
                pieces += [Span(start + low, start + high) for low, high in merging.split([part.words.starts])]
            else:
                pieces.append(Span(start, end))
        return pieces

    def split(self, source: SourceText) -> Iterable[Boundary]:
        """Cut by an embedder of the caller's.

        Raises:
            InvalidParameter: if it fails.
        """
        pieces = self._pieces(source)
        if self.embedder == BAG_OF_WORDS:
            similarities = word_similarities(pieces.sentences, self.window)
            return self._cut(source, pieces, similarities, similarities)
        vectors = _embedded(self.embedder, pieces.sentences)
        reading = Reading(0, vectors, np.ones(len(vectors), dtype=np.int64), (0, len(vectors) - 1))
        return self._cut_by(source, pieces, Readings(len(vectors), [reading]))

    def split_by(self, source: SourceText, readings: Readings) -> Iterable[Boundary]:
        """Cut by the vectors of the pieces."""
        pieces = self._pieces(source)
        return self._cut_by(source, pieces, readings.joined(pieces.owners))

    def _pieces(self, source: SourceText) -> "_Pieces":
        """Give the pieces, and the sentences that they are, or are parts of."""
        edges = np.asarray(pieces_of(source, self), dtype=np.int64)  # [P, 2]
        starts, _ = sentence_spans(source, self.language)
        _, owners = np.unique(starts.searchsorted(edges[:, 0], side="right"), return_inverse=True)
        first = np.flatnonzero(np.diff(owners, prepend=-1))
        lasts = np.append(first[1:], len(owners)) - 1
        texts = [source.text[start:end] for start, end in zip(edges[first, 0], edges[lasts, 1], strict=True)]
        return _Pieces(edges, owners, texts)

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
        gains[np.diff(pieces.owners) > 0] = self._gains(
            np.where(same, 1.0, similarities), np.where(same, 1.0, relative)
        )
        starts, ends = pieces.edges.T
        groups = partition(starts, ends, gains, ruler_of(source, self.unit), self.size, self.min_size or 1)
        return [Boundary(group) for group in groups]

    def _gains(self, similarities: Similarities, relative: Similarities) -> Similarities:
        """Give what a cut of each gap is worth: by how much it stands out. Above 0 where it should be cut."""
        known = ~np.isnan(similarities + relative)
        if not known.any():
            return np.full(len(similarities), -1.0)
        if self.threshold is not None:
            gains = self.threshold - similarities
        elif self.drop is not None:
            gains = _local_average(relative) - relative - self.drop
        else:
            percentile = _PERCENTILE if self.percentile is None else self.percentile
            gains = np.percentile(relative[known], 100 - percentile) - relative
        gains = np.minimum(gains, 1 - similarities - self.floor)
        # On the seam of two windows nothing is known: no reason to cut, nor to prefer another place.
        unknown = np.isnan(gains)
        gains[unknown] = min(float(np.median(gains[~unknown])), -1e-9)
        return gains


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


def _local_average(similarities: Similarities) -> Similarities:
    """Average each similarity with the nearest ones that are known."""
    known = ~np.isnan(similarities)
    sums = np.insert(np.cumsum(np.where(known, similarities, 0.0)), 0, 0.0)
    counts = np.insert(np.cumsum(known), 0, 0)
    places = np.arange(len(similarities))
    low, high = np.maximum(places - _NEIGHBOURHOOD, 0), np.minimum(places + _NEIGHBOURHOOD + 1, len(similarities))
    average: Similarities = (sums[high] - sums[low]) / np.maximum(counts[high] - counts[low], 1)
    return average


def _embedded(embedder: str | Embedder | None, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Ask a caller's embedder for vectors, and check them."""
    if not callable(embedder):
        raise InvalidParameter("semantic boundaries wait for the document's vectors: they are cut by split_by")
    try:
        vectors = np.asarray(embedder(texts), dtype=np.float32)
    except Exception as error:
        raise InvalidParameter(f"the embedder failed: {type(error).__name__}: {error}") from error
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise InvalidParameter(
            f"the embedder must give finite vectors [{len(texts)}, D], one a sentence, got shape {vectors.shape}"
        )
    return vectors


def _check_number(option: str, value: object, low: float, high: float) -> None:
    """Check an option that is a number in a range, or not given."""
    valid = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    if not (valid or (value is None and option != "floor")):
        raise InvalidParameter(f"{option} must be a number from {low} to {high}, got {value!r:.80}")
