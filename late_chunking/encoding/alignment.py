"""Spans of characters → ranges of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from late_chunking.characters import BoolArray, IntArray
from late_chunking.documents import Span
from late_chunking.encoding.tokens import TokenizedText

SPECIAL_TOKENS: Final = ("edge", "exclude")


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which tokens each span owns, and which its vector is the mean of.

    Attributes:
        own: [C, 2], half-open ranges of the text's own tokens whose anchor the span holds.
        read: [C, 2], the same with the white-space tokens at the text's outer edges.
        leading: [C], whether the span takes the special tokens and prompt before the text.
        trailing: [C], whether it takes the special tokens after it.
    """

    own: IntArray
    read: IntArray
    leading: BoolArray
    trailing: BoolArray


def align(spans: Sequence[Span], tokens: TokenizedText, special_tokens: str = "edge") -> Alignment:
    """Give each span its tokens.

    With ``special_tokens="edge"`` a span takes what stands before the text iff no visible
    character of the text precedes the span, and what stands after it iff none follows. So the
    tokens of a span depend on the text and that span alone. With ``"exclude"`` it takes its
    own tokens only.
    """
    edges = np.asarray(spans, dtype=np.int64).reshape(-1, 2)  # [C, 2]
    own = np.searchsorted(tokens.anchors, edges, side="left")  # [C, 2]
    read = own.copy()
    if special_tokens == "exclude":
        nothing = np.zeros(len(edges), dtype=np.bool_)
        return Alignment(own, read, nothing, nothing)
    leading = edges[:, 0] <= tokens.first_visible
    trailing = edges[:, 1] >= tokens.visible_end
    read[leading, 0] = 0
    read[trailing, 1] = len(tokens.ids)
    return Alignment(own, read, leading, trailing)
