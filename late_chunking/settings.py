"""How a model is loaded and used: one frozen, checked configuration."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from late_chunking.encoding.alignment import SPECIAL_TOKENS
from late_chunking.errors import InvalidParameter

DEFAULT_MODEL: Final = "embedded"

_LEAST: Final = {
    "window": 1,
    "window_overlap": 0,
    "max_document_tokens": 1,
    "max_pooled_tokens": 1,
    "max_batch_tokens": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a `LateChunker`.

    Attributes:
        model: ``"embedded"`` or ``"embedded-late"``, or the folder or hub id of a model or an adapter.
        revision: branch, tag or commit on the hub.
        device: a torch device; by default the one accelerate finds.
        dtype: ``"float32"``, ``"bfloat16"`` or ``"float16"``; by default (or ``"auto"``) bfloat16
            on CUDA, else float32.
        window: tokens read at once, special tokens and prompt included; by default what the
            model was trained to read.
        window_overlap: tokens that neighbouring windows share; by default a quarter of what a
            window holds.
        max_document_tokens: a document with more is refused.
        max_pooled_tokens: tokens that a document's chunks may hold in all; overlapping chunks
            count each, so this bounds what large overlaps multiply.
        max_batch_tokens: tokens the encoder reads in one batch; by default 2,048 on a CPU and
            32,768 elsewhere. Changes speed and memory, never a vector beyond rounding.
        deterministic: read every sequence in a batch of its own, so that a document's vectors
            are the same to the bit whatever is embedded beside it; slower for short texts.
        compile: compile the network's layers with ``torch.compile``, which takes a while at first. Off by
            default: meant for GPUs; on a CPU it replaces faster linear layers.
        prompts: ``query`` and ``document`` prompts instead of the model's own.
        special_tokens: ``"edge"`` pools special tokens and prompt into the spans at the text's
            edges, as the model's own pooling does; ``"exclude"`` leaves them out.
        normalize: bring vectors to length 1 also where the model's own modules do not.
        allow_pooling_mismatch: accept a model that was not trained with mean pooling.
        trust_remote_code: run Python code that comes with the model.
    """

    model: str = DEFAULT_MODEL
    revision: str | None = None
    device: str | None = None
    dtype: str | None = None
    window: int | None = None
    window_overlap: int | None = None
    max_document_tokens: int = 131_072
    max_pooled_tokens: int = 4_194_304
    max_batch_tokens: int | None = None
    deterministic: bool = False
    compile: bool = False
    prompts: Mapping[str, str] | None = None
    special_tokens: str = "edge"
    normalize: bool = True
    allow_pooling_mismatch: bool = False
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        """Check what can be checked without the model."""
        if not isinstance(self.model, str) or not self.model:
            raise InvalidParameter(f"model must be a name or folder, got {self.model!r}")
        if self.prompts is not None and not isinstance(self.prompts, Mapping):
            raise InvalidParameter(f"prompts must map query and document to strings, got {self.prompts!r}")
        for name in ("device", "dtype", "revision"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InvalidParameter(f"{name} must be a string, got {value!r}")
        for name in ("deterministic", "compile", "normalize", "allow_pooling_mismatch", "trust_remote_code"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidParameter(f"{name} must be true or false, got {getattr(self, name)!r}")
        if self.special_tokens not in SPECIAL_TOKENS:
            known = ", ".join(SPECIAL_TOKENS)
            raise InvalidParameter(f"special_tokens must be one of {known}, got {self.special_tokens!r}")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise InvalidParameter(f"{name} must be an integer of at least {least}, got {value!r}")


def make_settings(model: str | Settings, options: Mapping[str, Any]) -> Settings:
    """Make settings of a model's name and other fields, or take them as they are.

    Raises:
        InvalidParameter: if an option is unknown or wrong, or given beside whole settings.
    """
    known = Settings.__dataclass_fields__
    if unknown := [name for name in options if name not in known]:
        raise InvalidParameter(f"unknown option {', '.join(unknown)}; known: {', '.join(known)}")
    if not isinstance(model, Settings):
        return Settings(model=model, **options)
    if options:
        raise InvalidParameter(f"options beside whole settings: {', '.join(options)}; put them into the settings")
    return model


def cache_folder() -> Path:
    """Give the user's folder for what may be made again."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "late-chunking"
