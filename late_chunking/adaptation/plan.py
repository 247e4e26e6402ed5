"""How a model is trained: one frozen, checked configuration."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Final

from late_chunking.boundaries.strategy import is_integer, is_number
from late_chunking.errors import InvalidParameter

PRECISIONS: Final = ("auto", "no", "bf16")

_LEAST: Final = {
    "seed": 0,
    "documents_per_step": 1,
    "queries_per_document": 1,
    "document_tokens": 64,
    "rank": 1,
    "evaluate_every": 1,
    "patience": 1,
}
_SHARES: Final = ("naive_share", "warm_up")
_POSITIVE: Final = ("epochs", "learning_rate", "scale")


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Settings of a training run.

    Attributes:
        seed: of everything that is drawn.
        epochs: how often each document is read.
        documents_per_step: documents whose chunks are told apart in one step.
        queries_per_document: at most so many queries to a document in one step, drawn anew each time.
        document_tokens: a longer document is trained on in parts of so many tokens.
        naive_share: the share of steps in which each chunk is read alone, so that chunks and queries
            that are embedded so do not drift.
        rank: of the low-rank matrices (Hu et al., 2021); None trains the whole weights.
        learning_rate: at its highest; by default 1e-3 for low-rank matrices, 3e-5 for whole weights.
        warm_up: the share of steps in which it rises; it falls to 0 with half a cosine after them.
        scale: what cosines are multiplied by before the softmax.
        evaluate_every: steps between two evaluations on the held-back documents.
        patience: so many evaluations without a gain end the training.
        precision: ``"bf16"`` computes in it, not on a CPU, ``"no"`` in fp32; ``"auto"`` takes bf16 on CUDA.
    """

    seed: int = 0
    epochs: float = 1.0
    documents_per_step: int = 2
    queries_per_document: int = 64
    document_tokens: int = 8_192
    naive_share: float = 0.25
    rank: int | None = 16
    learning_rate: float | None = None
    warm_up: float = 0.1
    scale: float = 20.0
    evaluate_every: int = 29
    patience: int = 3
    precision: str = "auto"

    def __post_init__(self) -> None:
        """Check the settings."""
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if name == "rank" and value is None:
                continue
            if not is_integer(value) or value < least:
                raise InvalidParameter(f"{name} must be an integer of at least {least}, got {value!r}")
        for name in _SHARES:
            if not (is_number(getattr(self, name)) and 0 <= getattr(self, name) <= 1):
                raise InvalidParameter(f"{name} must be a number from 0 to 1, got {getattr(self, name)!r}")
        for name in _POSITIVE:
            value = getattr(self, name)
            if name == "learning_rate" and value is None:
                continue
            if not (is_number(value) and 0 < value < float("inf")):
                raise InvalidParameter(f"{name} must be a number above 0, got {value!r}")
        if self.precision not in PRECISIONS:
            raise InvalidParameter(f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}")

    @property
    def highest_rate(self) -> float:
        """The learning rate at its highest."""
        if self.learning_rate is not None:
            return self.learning_rate
        return 3e-5 if self.rank is None else 1e-3

    def record(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        return {**asdict(self), "learning_rate": self.highest_rate}


def fingerprint(*parts: Any) -> str:  # noqa: ANN401 - whatever JSON has a form for
    """Name what a run depends on."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
