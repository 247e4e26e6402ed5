"""Attention over packed sequences: one function, registered with transformers under one name.

transformers builds no mask for an attention it does not know, so what a model would express
by a mask must arrive here as an argument; an argument that is not understood is refused.
The sequences' bounds travel with the call, as the keyword `packed_lengths`.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, Final

import torch
import torch.nn.functional as F
from transformers import AttentionInterface

from late_chunking.encoding.packing import PackedLengths
from late_chunking.errors import UnsupportedModel

PACKED: Final = "late_chunking_packed"
_FLASH_DTYPES: Final = (torch.float16, torch.bfloat16)
_LARGEST_FLASH_HEAD: Final = 256
_FIRST_FLASH_CAPABILITY: Final = (8, 0)  # Ampere
# Queries per block of a local layer: larger blocks read more keys in vain, smaller ones make
# more calls.
_LOCAL_BLOCK: Final = 128
# What models pass besides, and what changes nothing here.
_HARMLESS: Final = frozenset(("position_ids", "deterministic", "use_cache", "cache_position"))


def packed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    packed_lengths: PackedLengths | None = None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    **others: Any,  # noqa: ANN401 - whatever a model passes
) -> tuple[torch.Tensor, None]:
    """Attend within each sequence of a packed batch, in both directions.

    Args:
        module: the calling layer; asked whether it is causal.
        query: [1, H, T, d].
        key: [1, H', T, d], H' dividing H.
        value: [1, H', T, d].
        attention_mask: must be None.
        packed_lengths: where the sequences lie.
        scaling: the softmax scale, by default ``d ** -0.5``.
        dropout: must be 0.
        sliding_window: a local layer sees keys at a distance below this, on both sides.
        **others: must be harmless.

    Returns:
        [1, T, H, d], and no weights.

    Raises:
        UnsupportedModel: if the layer asks for anything else, such as a soft cap or sinks.
    """
    if packed_lengths is None:
        raise UnsupportedModel(f"{type(module).__name__} does not hand on the bounds of the sequences")
    asked = {**others, "attention_mask": attention_mask, "dropout": dropout or None}
    asked["is_causal"] = asked.get("is_causal") or getattr(module, "is_causal", None)
    unknown = [name for name, argument in asked.items() if name not in _HARMLESS and not _nothing(argument)]
    if unknown:
        raise UnsupportedModel(
            f"{type(module).__name__} asks for more than packed attention does: {', '.join(unknown)}"
        )
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    window = None if sliding_window is None else sliding_window - 1  # the farthest visible key
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    attend = flash_attention if _flash_takes(query) else per_sequence_attention
    return attend(query, key, value, packed_lengths, scale, window), None


def flash_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    lengths: PackedLengths,
    scale: float,
    window: int | None,
) -> torch.Tensor:
    """Attend in one kernel. Arguments as for `per_sequence_attention`, in half precision on CUDA."""
    query, key, value = (tensor[0].transpose(0, 1) for tensor in (query, key, value))  # [T, H, d]
    reach = -1 if window is None else window
    attended = _variable_length_kernel()(query, key, value, lengths, scale, reach)
    return attended[None]  # [1, T, H, d]


def per_sequence_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    lengths: PackedLengths,
    scale: float,
    window: int | None,
) -> torch.Tensor:
    """Attend sequence by sequence; neighbours of one length share a call.

    Args:
        query: [1, H, T, d].
        key: [1, H, T, d].
        value: [1, H, T, d].
        lengths: where the sequences lie.
        scale: the softmax scale.
        window: the farthest key that a query sees, on both sides; None for all.

    Returns:
        [1, T, H, d].
    """
    _, heads, tokens, size = query.shape
    attended = query.new_empty(1, tokens, heads, size)
    for start, end, length in _runs(lengths.bounds):
        q, k, v = (_rows(tensor, start, end, length) for tensor in (query, key, value))  # [n, H, L, d] each
        out = attended[0, start:end].view(-1, length, heads, size).transpose(1, 2)  # [n, H, L, d]
        if window is None or length <= window + 1:
            out.copy_(F.scaled_dot_product_attention(q, k, v, scale=scale))
        else:
            for row in range(len(q)):
                _local_attention(q[row], k[row], v[row], out[row], scale, window)
    return attended


def _local_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    scale: float,
    window: int,
) -> None:
    """Attend within a band of a sequence, block by block: the cost is length × window.

    All are [H, L, d]. The blocks whose keys all lie inside the sequence are alike, and share a
    call in which each is a row of a batch; their keys overlap in memory and are not copied.
    """
    length, block = query.shape[1], _LOCAL_BLOCK
    first = -(-window // block)  # the first block with a full reach to the left
    inner = max(first, (length - window) // block)  # the first one without, to the right
    edges = [*range(first), *range(inner, -(-length // block))]
    for start in (index * block for index in edges):
        end = min(start + block, length)
        low, high = max(0, start - window), min(length, end + window)
        mask = _band(end - start, high - low, start - low, window, query.device)
        out[:, start:end] = F.scaled_dot_product_attention(
            query[None, :, start:end], key[None, :, low:high], value[None, :, low:high], attn_mask=mask, scale=scale
        )[0]
    if inner > first:
        start, end = first * block, inner * block
        heads, _, size = query.shape
        queries = query[:, start:end].view(heads, -1, block, size).transpose(0, 1)  # [blocks, H, block, d]
        keys, values = (
            tensor[:, start - window : end + window].unfold(1, block + 2 * window, block).permute(1, 0, 3, 2)
            for tensor in (key, value)
        )  # [blocks, H, block + 2 window, d]
        mask = _band(block, block + 2 * window, window, window, query.device)
        attended = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=scale)
        out[:, start:end].view(heads, -1, block, size).transpose(0, 1).copy_(attended)


@lru_cache(maxsize=256)
@torch.inference_mode(mode=False)  # what is kept may be needed where gradients pass
def _band(queries: int, keys: int, offset: int, window: int, device: torch.device) -> torch.Tensor:
    """Tell which keys each query of a block sees, bool [queries, keys]; most blocks are alike."""
    rows = torch.arange(offset, offset + queries, device=device)[:, None]
    return (rows - torch.arange(keys, device=device)).abs() <= window


def _runs(bounds: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Give runs of neighbouring sequences of one length: start, end, length."""
    start = 0
    for index in range(1, len(bounds)):
        length = bounds[index] - bounds[index - 1]
        if index + 1 == len(bounds) or bounds[index + 1] - bounds[index] != length:
            yield bounds[start], bounds[index], length
            start = index


def _rows(tensor: torch.Tensor, start: int, end: int, length: int) -> torch.Tensor:
    """View a run of a [1, H, T, d] tensor as [n, H, L, d]."""
    _, heads, _, size = tensor.shape
    return tensor[0, :, start:end].view(heads, -1, length, size).transpose(0, 1)


def _flash_takes(query: torch.Tensor) -> bool:
    """Tell whether the variable-length kernel takes a query's device, type and head size."""
    size = query.shape[-1]
    if not query.is_cuda or query.dtype not in _FLASH_DTYPES or size > _LARGEST_FLASH_HEAD or size % 8:
        return False
    return torch.cuda.get_device_capability(query.device) >= _FIRST_FLASH_CAPABILITY


@cache
def _variable_length_kernel() -> Callable[..., torch.Tensor]:
    """Choose the way to torch's variable-length kernel: its public function, or the operator beneath.

    The public function's arguments differ between releases; before it took a window, only the
    operator did. One split of the keys keeps a sequence's result independent of its batch.
    """
    from torch.nn.attention import varlen

    known = inspect.signature(varlen.varlen_attn).parameters
    fixed: dict[str, Any] = {"num_splits": 1} if "num_splits" in known else {}

    def public(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, lengths: PackedLengths, scale: float, reach: int
    ) -> torch.Tensor:
        bounds, longest = lengths.cu_seqlens, lengths.max_length
        attended = varlen.varlen_attn(
            query, key, value, bounds, bounds, longest, longest, scale=scale, window_size=(reach, reach), **fixed
        )
        return attended if isinstance(attended, torch.Tensor) else attended[0]

    def operator(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, lengths: PackedLengths, scale: float, reach: int
    ) -> torch.Tensor:
        bounds, longest = lengths.cu_seqlens, lengths.max_length
        attended: torch.Tensor = torch.ops.aten._flash_attention_forward(
            query,
            key,
            value,
            bounds,
            bounds,
            longest,
            longest,
            0.0,
            False,
            False,
            scale=scale,
            window_size_left=reach,
            window_size_right=reach,
        )[0]
        return attended

    return public if {"window_size", "scale"} <= set(known) else operator


def _nothing(argument: Any) -> bool:  # noqa: ANN401
    """Tell whether an argument asks for nothing."""
    return argument is None or argument is False


def register() -> None:
    """Make the function known to transformers; again does no harm.

    A compiler must not look into it: it would compile anew for every batch's bounds.
    """
    opaque = torch.compiler.disable(packed_attention)  # type: ignore[no-untyped-call]
    AttentionInterface.register(PACKED, opaque)
