"""What depends on the device beside attention: finding it, its batches, its memory running out."""

import os
from collections.abc import Callable
from datetime import timedelta

import torch
from accelerate import PartialState

from late_chunking.errors import InvalidParameter

# Measured with MiniLM (fp32, two cores): 7.1, 7.7, 7.9, 7.8 and 7.0 thousand tokens a second with
# batches of 512, 1,024, 2,048, 4,096 and 8,192; larger ones leave the cache, smaller ones pay calls.
_CPU_BATCH_TOKENS = 2_048
_DEVICE_BATCH_TOKENS = 32_768
_PATIENCE = timedelta(hours=1)  # with a process that has more to do than the others, before all end
_PROBED_TOKENS = 4_096
_SHARE_OF_FREE_MEMORY = 0.5  # of which a batch may take so much; the next one is staged beside it
# Not every allocation that fails is raised as torch.OutOfMemoryError.
_EXHAUSTED = ("can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED")


def launched() -> PartialState:
    """Give this process's place among those of one launch, and its device."""
    return PartialState(cpu=not torch.accelerator.is_available(), timeout=_PATIENCE)


def leave_launch() -> None:
    """Wait for the other processes of a launch, and end what joins them: a process that just ends may abort."""
    state = launched()
    if state.num_processes > 1:
        state.wait_for_everyone()
        state.destroy_process_group()


def find_device(name: str | None) -> torch.device:
    """Give the device of a name, or the one that accelerate finds for this process.

    Raises:
        InvalidParameter: if there is no such device here.
    """
    try:
        device = torch.device(launched().device if name is None else name)
        if device.type == "cuda":
            _expand_segments()
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise InvalidParameter(f"device {name!r} cannot be used here: {reason}") from error
    return device


def _expand_segments() -> None:
    """Let the allocator grow its segments, so that batches of changing size do not leave memory in fragments."""
    chosen = any(name in os.environ for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"))
    change = getattr(torch.cuda.memory, "_set_allocator_settings", None)
    if change is not None and not chosen:
        change("expandable_segments:True")


def default_batch_tokens(device: torch.device, read: Callable[[int], object] | None = None) -> int:
    """Give the token budget of a batch where none is set.

    Args:
        device: the device.
        read: reads so many tokens on it. On CUDA that is tried, and the budget is what half of the
            free memory holds; at most 32,768, beyond which batches gain nothing.
    """
    if device.type == "cpu":
        return _CPU_BATCH_TOKENS
    if device.type != "cuda" or read is None:
        return _DEVICE_BATCH_TOKENS
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    read(_PROBED_TOKENS)
    taken = torch.cuda.max_memory_allocated(device) - before
    return tokens_within(torch.cuda.mem_get_info(device)[0], taken / _PROBED_TOKENS)


def tokens_within(free: float, per_token: float) -> int:
    """Give the token budget for so many free bytes, of which each token takes so many while it is read."""
    return max(1, min(_DEVICE_BATCH_TOKENS, int(_SHARE_OF_FREE_MEMORY * free / max(per_token, 1))))


def is_out_of_memory(error: Exception) -> bool:
    """Tell whether an error says that the device's memory is exhausted."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _EXHAUSTED)


def release_memory(device: torch.device) -> None:
    """Give cached memory back to the device, so that a smaller batch finds room."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
