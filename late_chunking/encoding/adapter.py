"""A small folder of low-rank weights → merged into the model that it was trained on.

A folder in the form of peft: ``adapter_config.json``, which names the model, and
``adapter_model.safetensors``.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from safetensors import SafetensorError
from safetensors.torch import load_file

from late_chunking.dependencies import require
from late_chunking.errors import ModelNotFound, UnsupportedModel

CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapter_model.safetensors"


@dataclass(frozen=True, slots=True)
class Adapter:
    """Where an adapter is, and what it belongs to.

    Attributes:
        path: its folder.
        base: the name of the model that it was trained on.
        revision: branch, tag or commit of that model, if it says so.
        is_local: whether it was found here, and not fetched from the hub.
    """

    path: Path
    base: str
    revision: str | None
    is_local: bool

    @classmethod
    def of(cls, path: Path, config: dict[str, Any], *, is_local: bool) -> Self:
        """Read what an adapter's configuration says of its model.

        Raises:
            UnsupportedModel: if it names none.
        """
        base, revision = config.get("base_model_name_or_path"), config.get("revision")
        if not isinstance(base, str) or not base:
            raise UnsupportedModel(f"{path / CONFIG}: base_model_name_or_path must name a model, got {base!r}")
        return cls(path, base, revision if isinstance(revision, str) else None, is_local)

    def merge(self, module: Any) -> Any:  # noqa: ANN401 - a transformers model
        """Add the adapter to a model's weights.

        Raises:
            ModelNotFound: if its weights cannot be read.
            UnsupportedModel: if they do not fit the model.
            MissingDependency: without peft.
        """
        peft = peft_library()
        try:
            weights = load_file(self.path / WEIGHTS)
        except (OSError, SafetensorError) as error:
            raise ModelNotFound(f"{self.path / WEIGHTS} cannot be read: {error}") from error
        try:
            with quietly():
                adapted = peft.get_peft_model(module, peft.PeftConfig.from_pretrained(str(self.path)))
            loaded = peft.set_peft_model_state_dict(adapted, weights)
            expected = set(peft.get_peft_model_state_dict(adapted))
        except Exception as error:
            # What an adapter for another model makes peft raise has no class in common.
            raise UnsupportedModel(f"{self.path}: the adapter does not fit {self.base!r}: {error}") from error
        if loaded.unexpected_keys or expected - set(weights):
            strange = [*loaded.unexpected_keys, *sorted(expected - set(weights))]
            raise UnsupportedModel(
                f"{self.path}: the adapter does not fit {self.base!r}: {len(strange)} weights are missing or too many, "
                f"such as {strange[0]}"
            )
        return adapted.merge_and_unload()


def peft_library() -> Any:  # noqa: ANN401 - a module
    """Import peft: where it is used alone, since it takes a while."""
    return require("peft", purpose="low-rank adapters")


@contextmanager
def quietly() -> Iterator[None]:
    """Keep peft's warnings about a model's name and about transformers to itself: neither is the caller's doing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", FutureWarning)
        yield
