"""Late chunking written plainly, with stock transformers and loops, to compare with.

Shares no code with the library.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer


class Reference:
    """One full forward pass a window, then a loop of means over slices."""

    def __init__(self, path: Path | str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(str(path), split_special_tokens=True)
        self.tokenizer.backend_tokenizer.no_truncation()
        self.tokenizer.backend_tokenizer.no_padding()
        self.model = AutoModel.from_pretrained(str(path), dtype=torch.float32).eval()

    def embed(
        self,
        text: str,
        spans: Sequence[tuple[int, int]],
        *,
        prompt: str = "",
        window: int = 10**6,
        overlap: int = 0,
    ) -> np.ndarray:
        """Give the normalised vectors of spans, [C, D]."""
        encoding = self.tokenizer(prompt + text, return_offsets_mapping=True, truncation=False)
        special = [i is None for i in encoding.sequence_ids(0)]
        ids, anchors = [], []  # the prompt's tokens have no anchor in the text
        leading = encoding["input_ids"][: special.index(False)]
        trailing = encoding["input_ids"][len(special) - special[::-1].index(False) :]
        prompt_ids = []
        for token, (start, end), is_special in zip(
            encoding["input_ids"], encoding["offset_mapping"], special, strict=True
        ):
            if is_special:
                continue
            start, end = start - len(prompt), end - len(prompt)
            if start < 0 and end <= 0:
                prompt_ids.append(token)
                continue
            visible = [place for place in range(max(start, 0), end) if not text[place].isspace()]
            ids.append(token)
            anchors.append(visible[0] if visible else max(start, 0))
        vectors = self._token_vectors(leading + prompt_ids, ids, trailing, window, overlap)
        before, own, after = vectors
        rows = []
        for start, end in spans:
            first, last = not text[:start].strip(), not text[end:].strip()
            taken = list(before) if first else []
            for place, anchor in enumerate(anchors):
                outer = (first and anchor < start) or (last and anchor >= end)
                if start <= anchor < end or outer:
                    taken.append(own[place])
            taken += list(after) if last else []
            mean = np.mean(taken, axis=0)
            rows.append(mean / np.linalg.norm(mean))
        return np.array(rows)

    def _token_vectors(self, head, ids, tail, window, overlap):
        """Read the text window by window; each token from the window that shows it best."""
        capacity = window - len(head) - len(tail)
        if len(ids) <= capacity:
            starts = [0]
        else:
            starts = [*range(0, len(ids) - capacity, capacity - overlap), len(ids) - capacity]
        best: dict[int, tuple[int, np.ndarray]] = {}
        for number, start in enumerate(starts):
            end = min(start + capacity, len(ids))
            hidden = self._forward(head + ids[start:end] + tail)
            if number == 0:
                before = hidden[: len(head)]
            if end == len(ids):
                after = hidden[len(hidden) - len(tail) :]
            for token in range(start, end):
                left = token - start if start > 0 else 10**9
                right = end - 1 - token if end < len(ids) else 10**9
                distance = min(left, right)
                if token not in best or distance > best[token][0]:
                    best[token] = (distance, hidden[len(head) + token - start])
        return before, [best[token][1] for token in range(len(ids))], after

    def _forward(self, ids):
        with torch.inference_mode():
            return self.model(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()
