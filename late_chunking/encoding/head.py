"""Means over spans → vectors: the modules that a sentence-transformers folder puts after pooling.

Runs on the CPU in fp32: only one row a chunk gets here.
"""

from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from late_chunking.encoding.folder import ModelFolder, required_json
from late_chunking.errors import ModelNotFound, UnsupportedModel
from late_chunking.vectors import Vectors, normalized

# Those that work number by number; a folder's word runs nothing else.
_ACTIVATIONS: Final = ("ELU", "GELU", "Identity", "LeakyReLU", "Mish", "ReLU", "SELU", "SiLU", "Sigmoid", "Tanh")


@dataclass(frozen=True, slots=True)
class Head:
    """Dense layers, then L2 normalisation.

    Attributes:
        dense: the layers, in order.
        normalize: whether the vectors are brought to length 1.
        dimensions: what it makes of the encoder's [C, D]: [C, dimensions].
    """

    dense: tuple[torch.nn.Sequential, ...]
    normalize: bool
    dimensions: int

    @classmethod
    def load(cls, folder: ModelFolder, hidden_size: int, *, normalize: bool = True) -> Self:
        """Load a folder's layers.

        Args:
            folder: the model.
            hidden_size: D of the encoder.
            normalize: also normalise where the folder itself does not.

        Raises:
            UnsupportedModel: if a layer is of a kind that we do not know.
            ModelNotFound: if its files cannot be read.
        """
        dense = tuple(_load_dense(path) for path in folder.dense)
        dimensions = hidden_size
        for path, layer in zip(folder.dense, dense, strict=True):
            linear: Any = layer[0]
            if linear.in_features != dimensions:
                raise UnsupportedModel(f"{path}: takes {linear.in_features} dimensions, but is given {dimensions}")
            dimensions = linear.out_features
        return cls(dense, normalize or folder.normalize, dimensions)

    @torch.inference_mode()
    def finish(self, means: Vectors) -> Vectors:
        """Turn means over spans, float32 [C, D], into vectors, float32 [C, dimensions]."""
        finished: Vectors = self.mapped(torch.from_numpy(means)).numpy()
        return normalized(finished) if self.normalize else finished

    def mapped(self, means: torch.Tensor) -> torch.Tensor:
        """Send means, [C, D] on the CPU, through the Dense layers: [C, dimensions]; gradients pass."""
        for layer in self.dense:
            means = layer(means)
        return means


def _load_dense(path: Path) -> torch.nn.Sequential:
    """Load one Dense module."""
    try:
        config = required_json(path / "config.json", "a Dense module")
        weights = _load_weights(path)
        weight, bias = weights["linear.weight"].float(), weights.get("linear.bias")
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError, UnpicklingError) as error:
        raise ModelNotFound(f"{path}: the Dense module cannot be read: {error}") from error
    if weight.ndim != 2 or 0 in weight.shape or (bias is not None and bias.shape != weight.shape[:1]):
        raise UnsupportedModel(f"{path}: a weight of shape {tuple(weight.shape)} makes no Dense module")
    names = (config.get("module_input_name"), config.get("module_output_name"))
    if config.get("use_residual") or any(name not in (None, "sentence_embedding") for name in names):
        raise UnsupportedModel(f"{path}: a Dense module with a residual or other inputs and outputs is not known")
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    with torch.no_grad():
        linear.weight.copy_(weight)
        if bias is not None:
            linear.bias.copy_(bias.float())
    activation = _activation(config.get("activation_function", "torch.nn.modules.activation.Tanh"), path)
    return torch.nn.Sequential(linear, activation).eval().requires_grad_(False)


def _load_weights(path: Path) -> dict[str, torch.Tensor]:
    """Read a module's weights, from safetensors where there are any."""
    if (path / "model.safetensors").is_file():
        return load_file(path / "model.safetensors")
    return dict(torch.load(path / "pytorch_model.bin", map_location="cpu", weights_only=True))


def _activation(name: str, path: Path) -> torch.nn.Module:
    """Make the activation that a Dense module names; only torch's own are allowed."""
    module, _, kind = str(name).rpartition(".")
    if not module.startswith("torch.nn.") or kind not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise UnsupportedModel(f"{path}: activation {name!r} is not one of torch.nn's {known}")
    activation: torch.nn.Module = getattr(torch.nn, kind)()
    return activation
