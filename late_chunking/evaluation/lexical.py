"""BM25 over chunks, by bm25s."""

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from late_chunking.dependencies import require

_WORD: Final = re.compile(r"\w+")


class BM25Index:
    r"""Scores chunks by the words they share with a query (``\w+``, lower case, none left out)."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Index chunks."""
        library = require("bm25s", purpose="BM25", extra="evaluation")
        self._index: Any = library.BM25()
        self._index.index([_words(text) or [""] for text in texts], show_progress=False)
        self._count = len(texts)

    def scores(self, queries: Sequence[str]) -> npt.NDArray[np.float32]:
        """Score all chunks for queries. [q, C]."""
        known = self._index.vocab_dict
        scores = np.zeros((len(queries), self._count), dtype=np.float32)
        for place, query in enumerate(queries):
            if words := [word for word in _words(query) if word in known]:
                scores[place] = self._index.get_scores(words)
        return scores


def _words(text: str) -> list[str]:
    """Give the words of a text."""
    return _WORD.findall(text.lower())
