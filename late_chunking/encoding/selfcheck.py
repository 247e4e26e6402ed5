"""Choosing how a network is run: packed, where a check against stock attention holds; else padded.

A network that ignores positions, the attention function or its own sliding window would give
plausible, wrong vectors; so each is tried at load, on sequences packed together and on one
longer than its local window.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from late_chunking.encoding.device import is_out_of_memory
from late_chunking.encoding.encoder import (
    STOCK,
    Encoder,
    PaddedEncoder,
    compile_layers,
    packed_encoder,
    use_attention,
)
from late_chunking.encoding.linear import pack_linear
from late_chunking.encoding.model import Network
from late_chunking.encoding.packing import PackedBatch
from late_chunking.encoding.rope import make_stateless
from late_chunking.encoding.sequences import TokenSequence
from late_chunking.errors import InvalidParameter, UnsupportedModel

logger = logging.getLogger(__name__)

# Largest difference allowed of a token's vector, as a share of what tells tokens apart; by type
# of the weights. Neighbours or windows mixed up give tenths and more.
TOLERANCES: Final = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}
# What a network raises that cannot be run in the way that is tried.
_FAILURES: Final = (UnsupportedModel, AttributeError, TypeError, ValueError, RuntimeError, IndexError, KeyError)
_LENGTHS: Final = (7, 19, 1, 19, 33)
_LONG: Final = 64


@dataclass(frozen=True, slots=True)
class Choice:
    """How a network is run, and why.

    Attributes:
        encoder: the way chosen.
        reason: what spoke against packing; empty if nothing did.
    """

    encoder: Encoder
    reason: str = ""


def choose_encoder(network: Network, window: int, *, compiled: bool = False, fixed: bool = True) -> Choice:
    """Try packing against stock attention, sequence by sequence, and choose.

    Args:
        network: the network; left with the attention function and the layers of the choice.
        window: the longest sequence it may read.
        compiled: compile its layers.
        fixed: whether its weights stay as they are, so that they may be laid out for the CPU.

    Raises:
        InvalidParameter: if it is to be compiled, but that fails or changes its numbers.
    """
    stateful = make_stateless(network.module)
    sequences = _probes(network.config, window)
    use_attention(network.module, STOCK)
    padded = PaddedEncoder(network.module, equal_lengths=stateful)
    probes = [PackedBatch.of([sequence]).to(network.device) for sequence in sequences]
    expected = torch.cat([padded.encode(probe) for probe in probes])  # [T, D]
    if compiled:
        _compile(network, padded, probes, expected)
    elif fixed:
        _pack_linear(network, padded, probes[-1], expected[-probes[-1].tokens :])
    batch = PackedBatch.of(sequences).to(network.device)
    reason = ""
    padding_id = getattr(network.config, "pad_token_id", None)
    for first_position in [0] if padding_id is None else [0, padding_id + 1]:
        try:
            encoder = packed_encoder(network.module, first_position)
            found = encoder.encode(batch)
        except _FAILURES as error:
            if is_out_of_memory(error):
                raise
            reason = reason or f"packing is not possible: {error}".partition("\n")[0]
            continue
        difference = _difference(found.float(), expected.float())
        if difference <= TOLERANCES[network.dtype]:
            return Choice(encoder)
        reason = reason or f"packed vectors differ from stock ones by {difference:.1e} of their spread"
    use_attention(network.module, STOCK)
    logger.warning("%s runs padded: %s", type(network.module).__name__, reason)
    return Choice(padded, reason)


def _compile(network: Network, encoder: Encoder, probes: Sequence[PackedBatch], expected: torch.Tensor) -> None:
    """Compile a network's layers, and pass if its numbers stay: [T, D] expected."""
    compile_layers(network.module)
    try:
        found = torch.cat([encoder.encode(probe) for probe in probes])
    except _FAILURES as error:
        if is_out_of_memory(error):
            raise
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InvalidParameter(f"compile=True: {type(network.module).__name__} cannot be compiled: {reason}") from error
    difference = _difference(found.float(), expected.float())
    if difference > TOLERANCES[network.dtype]:
        raise InvalidParameter(
            f"compile=True: compiled vectors of {type(network.module).__name__} differ from its own by "
            f"{difference:.1e} of their spread, more than {TOLERANCES[network.dtype]:.0e}"
        )


def pack_frozen(network: Network, encoder: Encoder, window: int) -> Callable[[], None]:
    """Lay out the linear layers that are not trained for the CPU, so that gradients pass; as `choose_encoder` does.

    Args:
        network: the network.
        encoder: how it is run.
        window: the longest sequence it may read.

    Returns:
        What puts the layers back.
    """
    probe = PackedBatch.of(_probes(network.config, window)[-1:]).to(network.device)
    return _pack_linear(network, encoder, probe, encoder.encode(probe), differentiable=True)


def _pack_linear(
    network: Network, encoder: Encoder, probe: PackedBatch, expected: torch.Tensor, *, differentiable: bool = False
) -> Callable[[], None]:
    """Lay out linear layers for the CPU, if the network takes that and its numbers stay: [T, D] expected."""
    restore = pack_linear(network.module, differentiable=differentiable)
    try:
        difference = _difference(encoder.encode(probe).float(), expected.float())
    except _FAILURES as error:
        logger.info("%s keeps its own linear layers: %s", type(network.module).__name__, error)
    else:
        if difference <= TOLERANCES[network.dtype]:
            return restore
        logger.info("%s keeps its own linear layers: vectors differ by %.1e", type(network.module).__name__, difference)
    restore()
    return lambda: None


def _difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Give the largest difference of a token's vector, [T, D] each, against how far tokens lie apart.

    What all tokens share is taken off first: encoders often have a dimension so large that any
    difference would be small beside it.
    """
    spread = (expected - expected.mean(dim=0)).norm(dim=1).median()
    return float((found - expected).norm(dim=1).max() / spread)


def _probes(config: Any, window: int) -> list[TokenSequence]:  # noqa: ANN401 - a transformers configuration
    """Make sequences to try: short ones, and one longer than the local window and its blocks."""
    local = max((int(getattr(config, name, None) or 0) for name in ("sliding_window", "local_attention")), default=0)
    lengths = [min(length, window) for length in (*_LENGTHS, max(_LONG, 2 * local + 300 if local else 0))]
    generator = np.random.default_rng(0)
    nothing = np.zeros(0, dtype=np.int64)
    special = {getattr(config, name, None) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    ordinary = np.array([token for token in range(min(config.vocab_size, 30_000)) if token not in special])
    return [TokenSequence(generator.choice(ordinary, length), nothing, nothing, nothing) for length in lengths]
