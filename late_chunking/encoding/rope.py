"""Rotary frequencies that follow the sequence, not its neighbours or its predecessors.

transformers' dynamic rotary embeddings keep state: the frequencies are those of the longest
sequence of the batch, and stay for the batches after it. Here each sequence gets what it would
get in a fresh model alone.
"""

import threading
from collections.abc import Iterator
from typing import Any

import torch

_ORIGINAL = "original_inv_freq"
_STATEFUL = ("dynamic", "longrope")


def make_stateless(network: torch.nn.Module) -> bool:
    """Bind a network's stateful rotary embeddings to each sequence; tell whether it has any."""
    found = [module for module in network.modules() if any(kind in _STATEFUL for kind in _kinds(module))]
    for module in found:
        rotary: Any = module
        rotary.forward = _SequenceRotary(rotary)
    return bool(found)


class _SequenceRotary:
    """Stands in for a rotary module's forward: asks it once a sequence, from a fresh state."""

    def __init__(self, rotary: Any) -> None:  # noqa: ANN401 - any model's rotary module
        """Take over a module's forward."""
        self._rotary = rotary
        self._forward = rotary.forward
        # The module writes to itself on every call.
        self._lock = threading.Lock()

    def __call__(self, x: torch.Tensor, position_ids: torch.Tensor, *rest: Any, **named: Any) -> Any:  # noqa: ANN401
        """Give the cosines and sines of packed positions, [1, T], or of rows of one length, [B, L]."""
        with self._lock:
            if len(position_ids) > 1:
                return self._fresh(x, position_ids, *rest, **named)
            parts = [self._fresh(x, part[None], *rest, **named) for part in _sequences(position_ids[0])]
        return tuple(torch.cat(tensors, dim=1) for tensors in zip(*parts, strict=True))

    def _fresh(self, x: torch.Tensor, position_ids: torch.Tensor, *rest: Any, **named: Any) -> Any:  # noqa: ANN401
        """Ask the module for one sequence, as if it had seen none before."""
        rotary = self._rotary
        for name, buffer in list(rotary.named_buffers(recurse=False)) + list(vars(rotary).items()):
            if name.endswith(_ORIGINAL) and isinstance(buffer, torch.Tensor):
                prefix = name.removesuffix(_ORIGINAL)
                setattr(rotary, f"{prefix}inv_freq", buffer.to(x.device).clone())
                if hasattr(rotary, f"{prefix}max_seq_len_cached"):
                    setattr(rotary, f"{prefix}max_seq_len_cached", rotary.original_max_seq_len)
        return self._forward(x, position_ids, *rest, **named)


def _sequences(positions: torch.Tensor) -> Iterator[torch.Tensor]:
    """Cut packed positions, [T], where they start again."""
    starts = torch.nonzero(positions[1:] <= positions[:-1])[:, 0] + 1
    yield from torch.tensor_split(positions, starts.cpu())


def _kinds(module: torch.nn.Module) -> list[str]:
    """Give the kinds of rotary embedding in a module: one, or one for each type of layer."""
    kind = getattr(module, "rope_type", None)
    return [str(each) for each in kind.values()] if isinstance(kind, dict) else [str(kind)]
