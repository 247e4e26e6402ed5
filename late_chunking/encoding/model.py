"""A model folder → weights on a device."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

import torch
from transformers import AutoModel, AutoModelForTextEncoding
from transformers.utils import logging as transformers_logging

from late_chunking.encoding.device import find_device, is_out_of_memory
from late_chunking.encoding.folder import ModelFolder
from late_chunking.errors import InvalidParameter, ModelNotFound, UnsupportedModel

DTYPES: Final[Mapping[str, torch.dtype]] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True, slots=True)
class Network:
    """A transformer on its device, in evaluation mode.

    Attributes:
        module: takes ``input_ids`` and ``attention_mask``, gives ``last_hidden_state``.
        device: where it is.
        dtype: the type of its weights.
    """

    module: Any
    device: torch.device
    dtype: torch.dtype

    @classmethod
    def load(
        cls,
        folder: ModelFolder,
        *,
        device: str | None = None,
        dtype: str | None = None,
        trust_remote_code: bool = False,
    ) -> Self:
        """Load a folder's weights.

        Args:
            folder: the model.
            device: a torch device; by default the one accelerate finds for this process.
            dtype: a key of `DTYPES`; by default bfloat16 on CUDA, else float32.
            trust_remote_code: whether code in the folder may run.

        Raises:
            InvalidParameter: if the device or dtype cannot be used.
            ModelNotFound: if the weights cannot be read.
            UnsupportedModel: if transformers does not know the architecture without running
                the folder's code, or if the model is causal.
        """
        place = find_device(device)
        if dtype not in (None, "auto", *DTYPES):
            raise InvalidParameter(f"dtype must be one of auto, {', '.join(DTYPES)}, got {dtype!r}")
        number_type = DTYPES.get(dtype or "", torch.bfloat16 if place.type == "cuda" else torch.float32)
        trusted = trust_remote_code and folder.may_be_trusted
        if folder.adapter is None:
            module = _load_module(folder, place, number_type, trust_remote_code=trusted)
        else:
            # Merged in full precision, as it was trained; buffers, such as rotary frequencies, stay in it.
            module = folder.adapter.merge(_load_module(folder, place, torch.float32, trust_remote_code=trusted))
            for parameter in module.parameters():
                parameter.data = parameter.data.to(number_type)
        module.eval().requires_grad_(False)
        network = cls(module, place, number_type)
        try:
            causal = network._is_causal()
        except (ValueError, TypeError, RuntimeError, AttributeError, IndexError, ArithmeticError) as error:
            if is_out_of_memory(error):
                raise
            raise UnsupportedModel(f"{folder.name}: it does not read token ids alone: {_first_line(error)}") from error
        if causal:
            raise UnsupportedModel(
                f"{folder.name}: a token's vector does not depend on the tokens after it (a causal model), "
                "so a chunk would not have read its document"
            )
        return network

    @property
    def config(self) -> Any:  # noqa: ANN401 - a transformers configuration
        """The configuration of the part that reads text."""
        return self.module.config.get_text_config()

    @property
    def hidden_size(self) -> int:
        """D, the width of a token's vector."""
        return int(self.config.hidden_size)

    @torch.inference_mode()
    def _is_causal(self) -> bool:
        """Tell whether the first token's vector ignores what comes after it."""
        vocabulary = int(self.config.vocab_size)
        ids = torch.arange(8, device=self.device)[None] * 7 % vocabulary  # [1, 8]
        other = ids.clone()
        other[0, 1:] = (other[0, 1:] + vocabulary // 2) % vocabulary
        mask = torch.ones_like(ids)
        first = self.module(input_ids=ids, attention_mask=mask).last_hidden_state[0, 0]  # [D]
        second = self.module(input_ids=other, attention_mask=mask).last_hidden_state[0, 0]
        return bool(torch.allclose(first.float(), second.float(), rtol=1e-5, atol=1e-6))


def _load_module(folder: ModelFolder, device: torch.device, dtype: torch.dtype, *, trust_remote_code: bool) -> Any:  # noqa: ANN401 - a transformers model
    """Load a folder's weights, all of them."""
    # Of an encoder-decoder, such as T5, only the encoder is read.
    loader = AutoModelForTextEncoding if folder.config.get("is_encoder_decoder") else AutoModel
    try:
        with silence():
            module, report = loader.from_pretrained(
                str(folder.weights),
                dtype=dtype,
                device_map={"": device},
                trust_remote_code=trust_remote_code,
                local_files_only=True,
                output_loading_info=True,
            )
    except OSError as error:
        raise ModelNotFound(f"{folder.name}: no weights could be loaded: {_first_line(error)}") from error
    except Exception as error:
        # What files that do not fit make transformers raise has no class in common.
        if is_out_of_memory(error):
            raise
        raise UnsupportedModel(f"{folder.name}: transformers cannot load it: {_first_line(error)}") from error
    # Missing weights are filled with random numbers; only a pooler's are not used here.
    if missing := sorted(key for key in report["missing_keys"] if "pooler" not in key):
        raise UnsupportedModel(f"{folder.name}: {len(missing)} of its weights are missing, such as {missing[0]}")
    return module


@contextmanager
def silence() -> Iterator[None]:
    """Keep transformers from drawing a progress bar: a library is silent."""
    if not transformers_logging.is_progress_bar_enabled():
        yield
        return
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _first_line(error: BaseException) -> str:
    """Give the first line of an error's text, as much as a one-line message can carry."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
