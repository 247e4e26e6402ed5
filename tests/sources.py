"""Texts as strategies get them, and strategies of every kind, for hypothesis."""

import hashlib
from collections.abc import Sequence

import numpy as np
import regex
from hypothesis import strategies as st

from late_chunking.boundaries import (
    Nested,
    Paragraphs,
    Recursive,
    Semantic,
    Sentences,
    SentenceWindow,
    SourceText,
    Strategy,
    Tokens,
    Turns,
    Words,
)

UNITS = ["tokens", "chars", "words"]


def byte_source(text: str, default_size: int = 8) -> SourceText:
    """A text with one token for each UTF-8 byte."""
    anchors = [place for place, character in enumerate(text) for _ in character.encode("utf-8", "surrogatepass")]
    return SourceText(text, np.array(anchors, dtype=np.int64), default_size)


def random_vectors(texts: Sequence[str]) -> np.ndarray:
    """An embedder without sense: a vector of each text's own."""
    seeds = [int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4]) for text in texts]
    return np.array([np.random.default_rng(seed).standard_normal(4) for seed in seeds]).reshape(-1, 4)


def sizes(text: str, unit: str) -> int:
    """The size of a chunk's own text, counted plainly."""
    # A cluster of a space and a mark is no white space, so it belongs to a word.
    clusters = "".join("x" if cluster.strip() else " " for cluster in regex.findall(r"\X", text))
    return {"tokens": len(text.encode()), "chars": len(text), "words": len(clusters.split())}[unit]


@st.composite
def semantic(draw: st.DrawFn, size: int | None, unit: str) -> Semantic:
    """Semantic boundaries by vectors without sense, which cut anywhere."""
    least = None if size is None else draw(st.none() | st.integers(1, max(size // 2, 1)))
    if least is not None and 2 * least > (size or 0):
        least = None
    rule = draw(st.sampled_from([{}, {"percentile": 50}, {"threshold": 0.5}, {"drop": 0.1, "floor": 0}]))
    embedder = draw(st.sampled_from([random_vectors, "bag-of-words"]))
    return Semantic(size, least, unit, window=draw(st.integers(0, 2)), embedder=embedder, **rule)


@st.composite
def strategies(draw: st.DrawFn) -> Strategy:
    """Any built-in flat strategy that needs no model, with any size, overlap and unit."""
    size = draw(st.integers(1, 30))
    unit = draw(st.sampled_from(UNITS))
    percentage = st.integers(0, 99).map(lambda percent: f"{percent}%" if -(-size * percent // 100) < size else 0)
    overlap = draw(st.integers(0, size - 1) | percentage)
    semantics = draw(semantic(draw(st.none() | st.just(size)), unit))
    outer = draw(st.sampled_from([Paragraphs(), Turns(), Sentences(), semantics]))
    inner = draw(st.sampled_from([Recursive(size, overlap, unit), Semantic(size, unit=unit, embedder=random_vectors)]))
    return draw(
        st.sampled_from(
            [
                Tokens(size, overlap),
                Words(size, overlap),
                Sentences(language=draw(st.sampled_from(["en", "de", "zh", "ja", "xx"]))),
                Sentences(size, overlap, unit),
                Sentences(size, overlap, "sentences"),
                Paragraphs(),
                Paragraphs(size, overlap, unit),
                Paragraphs(size, overlap, "paragraphs"),
                Turns(),
                Turns(size, overlap, unit),
                Turns(size, overlap, "turns"),
                SentenceWindow(draw(st.integers(0, 4))),
                Recursive(size, overlap, unit),
                Recursive(size, overlap, unit, separators=draw(st.sampled_from(["chat", "tickets"]))),
                Recursive(size, overlap, unit, separators=("\n", "(?<=。)", r"(\s)+", "a|e"), regex=True),
                Recursive(size, overlap, lambda text: len(text.encode("utf-16-le")) // 2),
                semantics,
                Nested(outer, inner, size, unit),
            ]
        )
    )
