"""Text → token ids and their places in the text.

The backend tokenizer is set up once, at load, and never changed again, so that any number of
threads may share it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

import numpy as np
from tokenizers import Tokenizer as Backend
from tokenizers.normalizers import Lowercase
from tokenizers.normalizers import Sequence as NormalizerSequence
from transformers import AutoTokenizer

from late_chunking.characters import IntArray, whitespace
from late_chunking.errors import ModelNotFound, UnsupportedModel


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """One tokenization of a whole text.

    Attributes:
        ids: [n], the text's own tokens, without prompt or special tokens.
        anchors: [n], non-decreasing: each token's first visible character in the text, or its
            first character if it has none.
        prompt_ids: [p], the tokens of the prompt before the text.
        first_visible: the text's first character that is not white space (its length if none).
        visible_end: the end of its last one (0 if none).
    """

    ids: IntArray
    anchors: IntArray
    prompt_ids: IntArray
    first_visible: int
    visible_end: int


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A model's tokenizer, with special-token strings in the text read as ordinary text.

    Attributes:
        backend: the tokenizer itself, without truncation and padding.
        leading: ids of the special tokens before a sequence, such as ``[CLS]``.
        trailing: ids of those after it, such as ``[SEP]``.
    """

    backend: Backend
    leading: tuple[int, ...]
    trailing: tuple[int, ...]

    @classmethod
    def load(cls, path: Path, *, lowercase: bool = False, trust_remote_code: bool = False) -> Self:
        """Load the tokenizer of a model folder.

        Args:
            path: the folder.
            lowercase: read the text in lower case, as some sentence-transformers folders ask.
            trust_remote_code: whether code in the folder may run.

        Raises:
            ModelNotFound: if the folder has no tokenizer that can be loaded.
            UnsupportedModel: if the tokenizer is not a fast one, and so has no offsets.
        """
        try:
            tokenizer: Any = AutoTokenizer.from_pretrained(
                str(path), split_special_tokens=True, trust_remote_code=trust_remote_code, local_files_only=True
            )
        except Exception as error:
            # What files that do not fit make transformers raise has no class in common.
            raise ModelNotFound(f"{path}: no tokenizer could be loaded: {error}") from error
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if not isinstance(backend, Backend):
            raise UnsupportedModel(f"{path}: {type(tokenizer).__name__} is not a fast tokenizer, so it has no offsets")
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = True
        if lowercase:
            inner = [backend.normalizer] if backend.normalizer else []
            backend.normalizer = NormalizerSequence([Lowercase(), *inner])
        return cls(backend, *_special_tokens(backend))

    @property
    def special_count(self) -> int:
        """How many special tokens a sequence carries."""
        return len(self.leading) + len(self.trailing)

    def tokenize(self, text: str, prompt: str = "") -> TokenizedText:
        """Tokenize a text behind a prompt, as one string: tokens may join at the seam."""
        return self.placed(self.backend.encode(prompt + text, add_special_tokens=False), text, prompt)

    def tokenize_many(self, texts: Sequence[str], prompt: str = "") -> list[TokenizedText]:
        """Tokenize several texts, each on its own."""
        encodings = self.encode_many(texts, prompt)
        return [self.placed(encoding, text, prompt) for encoding, text in zip(encodings, texts, strict=True)]

    def encode_many(self, texts: Sequence[str], prompt: str = "") -> list[Any]:
        """Do the part of `tokenize_many` that runs outside Python, on all cores; `placed` does the rest."""
        encodings: list[Any] = self.backend.encode_batch([prompt + text for text in texts], add_special_tokens=False)
        return encodings

    def placed(self, encoding: Any, text: str, prompt: str) -> TokenizedText:  # noqa: ANN401 - tokenizers.Encoding
        """Place an encoding's tokens in the text, and tell the prompt's from the text's own."""
        ids = np.asarray(encoding.ids, dtype=np.int64)
        offsets = encoding.offsets
        # Few ends are asked for: writing them all down takes as long as the starts.
        starts = np.fromiter(map(itemgetter(0), offsets), dtype=np.int64, count=len(ids)) - len(prompt)  # [p + n]

        def ends_of(places: IntArray) -> IntArray:
            return np.asarray([offsets[place][1] for place in places.tolist()], dtype=np.int64) - len(prompt)

        # Tokens of the prompt come first. One over the seam belongs to the text, by its first
        # visible character there.
        own = int((ends_of(np.flatnonzero(starts < 0)) <= 0).sum())
        anchors = np.maximum(starts[own:], 0)
        space = whitespace(text)
        visible = np.flatnonzero(~space)
        in_space = np.flatnonzero(space[np.minimum(anchors, len(text) - 1)]) if len(anchors) else anchors
        if len(in_space):
            following = np.append(visible, len(text))[visible.searchsorted(anchors[in_space])]
            anchors[in_space] = np.where(following < ends_of(own + in_space), following, anchors[in_space])
        return TokenizedText(
            ids=ids[own:],
            # A normaliser that reorders marks may send an offset back; tokens stay in order.
            anchors=np.maximum.accumulate(anchors) if len(anchors) else anchors,
            prompt_ids=ids[:own],
            first_visible=int(visible[0]) if len(visible) else len(text),
            visible_end=int(visible[-1]) + 1 if len(visible) else 0,
        )


def _special_tokens(backend: Backend) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Find the special tokens before and after a text, by position."""
    encoding = backend.encode("a", add_special_tokens=True)
    own = [index for index, sequence in enumerate(encoding.sequence_ids) if sequence is not None]
    return tuple(encoding.ids[: own[0]]), tuple(encoding.ids[own[-1] + 1 :])
