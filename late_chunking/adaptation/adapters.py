"""What of a network is trained: low-rank matrices beside its layers, or all its weights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file

from late_chunking.encoding.adapter import WEIGHTS, peft_library, quietly
from late_chunking.encoding.encoder import Encoder
from late_chunking.encoding.model import Network
from late_chunking.encoding.selfcheck import pack_frozen
from late_chunking.errors import UnsupportedModel

_ALPHA: Final = 2.0  # times the rank


class Trainable:
    """A network, part of which is trained.

    Attributes:
        network: the network; with low-rank matrices in its layers, until they are merged.
        parameters: what is trained, by name.
        restore: puts layers back that were laid out for a CPU.
    """

    def __init__(self, network: Network, encoder: Encoder, window: int, rank: int | None, seed: int) -> None:
        """Choose what is trained.

        Args:
            network: whose weights are fp32.
            encoder: how it is run.
            window: the longest sequence it may read.
            rank: of the matrices; None trains all weights.
            seed: of the matrices' first values.

        Raises:
            UnsupportedModel: if it has no linear layers to put the matrices beside.
        """
        self.network = network
        self._adapted: Any = None
        self.restore: Callable[[], None] = lambda: None
        if rank is None:
            network.module.requires_grad_(True)
        else:
            self._adapted = _with_matrices(network, rank, seed)
            self.restore = pack_frozen(network, encoder, window)
        self.parameters: dict[str, torch.nn.Parameter] = {
            name: parameter for name, parameter in network.module.named_parameters() if parameter.requires_grad
        }

    @property
    def count(self) -> int:
        """How many numbers are trained."""
        return sum(parameter.numel() for parameter in self.parameters.values())

    def state(self) -> dict[str, torch.Tensor]:
        """Copy what is trained, to the CPU."""
        return {name: parameter.detach().cpu().clone() for name, parameter in self.parameters.items()}

    @torch.no_grad()
    def load(self, state: dict[str, torch.Tensor]) -> None:
        """Put back what was copied."""
        for name, parameter in self.parameters.items():
            parameter.copy_(state[name])

    def merge(self) -> Any:  # noqa: ANN401 - a transformers model
        """End the training, and give the network as an ordinary one, with all that was learnt in its weights."""
        self.restore()
        return self.network.module if self._adapted is None else self._adapted.merge_and_unload()

    def save_adapter(self, folder: Path, base: str, revision: str | None) -> None:
        """Write the matrices in peft's form, in 16 bits.

        Args:
            folder: where.
            base: the name of the model that they belong to.
            revision: its branch, tag or commit.
        """
        peft = peft_library()
        weights = peft.get_peft_model_state_dict(self._adapted)
        halved = {name: weight.detach().cpu().half().contiguous() for name, weight in weights.items()}
        save_file(halved, folder / WEIGHTS, metadata={"format": "pt"})
        (folder / WEIGHTS).chmod(0o644)  # it is written for its owner alone
        config = self._adapted.peft_config["default"]
        config.base_model_name_or_path, config.revision, config.inference_mode = base, revision, True
        config.save_pretrained(str(folder))


def _with_matrices(network: Network, rank: int, seed: int) -> Any:  # noqa: ANN401 - peft's model
    """Put low-rank matrices beside every linear layer of a network's blocks (Hu et al., 2021)."""
    peft = peft_library()
    module = network.module
    names = [
        f"{prefix}.{name}"
        for prefix, blocks in module.named_modules()
        if isinstance(blocks, torch.nn.ModuleList)
        for name, layer in blocks.named_modules()
        if isinstance(layer, torch.nn.Linear)
    ]
    if not names:
        raise UnsupportedModel(f"{type(module).__name__} has no linear layers in blocks to adapt; train whole weights")
    config = peft.LoraConfig(
        r=rank,
        lora_alpha=_ALPHA * rank,
        target_modules=sorted(set(names)),
        lora_dropout=0.0,
        bias="none",
        task_type="FEATURE_EXTRACTION",
    )
    with torch.random.fork_rng(), quietly():
        torch.manual_seed(seed)
        adapted = peft.get_peft_model(module, config)
    adapted.eval()
    return adapted
