"""Networks of ModernBERT's shapes with random weights, and ways to run them, for measurements.

Imported by the scripts beside it. Speed does not depend on the weights' values.
"""

import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np
import torch
from transformers import ModernBertConfig, ModernBertModel

from late_chunking.encoding.encoder import STOCK, use_attention
from late_chunking.encoding.model import Network
from late_chunking.encoding.packing import Cost, pack
from late_chunking.encoding.reader import Reader
from late_chunking.encoding.selfcheck import choose_encoder
from late_chunking.encoding.sequences import TokenSequence
from late_chunking.encoding.staging import staging_for

VOCABULARY = 50_368
_FIRST_ORDINARY = 1_000


class Item:
    """A sequence on its own, as the packing takes it."""

    def __init__(self, sequence: TokenSequence) -> None:
        """Hold a sequence."""
        self.sequence = sequence


def modernbert(layers: int, width: int, device: torch.device, dtype: torch.dtype, window: int = 8192) -> Network:
    """Make a ModernBERT: every third layer sees everything, the others 128 tokens."""
    torch.manual_seed(0)
    config = ModernBertConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=width * 3 // 2,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        max_position_embeddings=window,
    )
    network = ModernBertModel(config).eval().requires_grad_(False).to(device, dtype)
    return Network(network, device, dtype)


def documents(lengths: Sequence[int], chunk: int = 128, seed: int = 0) -> list[TokenSequence]:
    """Make documents of random tokens, each cut into chunks of so many tokens."""
    generator = np.random.default_rng(seed)
    made = []
    for length in lengths:
        sizes = np.diff(np.arange(0, length, chunk), append=length)
        ids = generator.integers(_FIRST_ORDINARY, VOCABULARY, length)
        made.append(TokenSequence(ids, np.arange(len(sizes)), np.arange(length), sizes))
    return made


def pieces(sequences: Sequence[TokenSequence], chunk: int = 128) -> list[TokenSequence]:
    """Cut documents into chunks that are read alone."""
    made = []
    for sequence in sequences:
        for start in range(0, len(sequence), chunk):
            ids = sequence.ids[start : start + chunk]
            made.append(TokenSequence(ids, np.array([0]), np.arange(len(ids)), np.array([len(ids)])))
    return made


def reader_of(network: Network, window: int = 8192) -> Reader:
    """Give our reader for a network, which is from then on no longer a stock one.

    Raises:
        SystemExit: if it would run padded, which is not what is to be measured.
    """
    choice = choose_encoder(network, window)
    if choice.reason:
        raise SystemExit(f"the network does not run packed: {choice.reason}")
    return Reader(choice.encoder, staging_for(network.device))


def run_packed(reader: Reader, network: Network, sequences: Sequence[TokenSequence], budget: int) -> Callable[[], None]:
    """Give our way through sequences: packed to a budget, pooled, sums on the host."""
    cost = Cost.of(network.module.config)

    def run() -> None:
        for _ in reader.read_all(pack((Item(sequence) for sequence in sequences), budget, cost)):
            pass

    return run


def run_stock(network: Network, sequences: Sequence[TokenSequence], rows: int) -> Callable[[], None]:
    """Give the stock way: so many documents a batch, padded to the longest, scaled-dot-product attention.

    Gives token vectors on the device; nothing is pooled, in its favour.
    """

    @torch.inference_mode()
    def run() -> None:
        use_attention(network.module, STOCK)
        for first in range(0, len(sequences), rows):
            batch = sequences[first : first + rows]
            ids = torch.zeros(len(batch), max(len(one) for one in batch), dtype=torch.int64)
            mask = torch.zeros_like(ids)
            for row, one in enumerate(batch):
                ids[row, : len(one)] = torch.from_numpy(one.ids)
                mask[row, : len(one)] = 1
            network.module(input_ids=ids.to(network.device), attention_mask=mask.to(network.device))

    return run


def seconds(run: Callable[[], None], device: torch.device) -> float:
    """Time one run, the device's work included."""
    synchronize(device)
    begun = time.perf_counter()
    run()
    synchronize(device)
    return time.perf_counter() - begun


def alternating(runs: Sequence[Callable[[], None]], device: torch.device, times: int) -> list[float]:
    """Time several ways in turn, once to warm up and then so often; give each one's median."""
    taken: list[list[float]] = [[] for _ in runs]
    for turn in range(times + 1):
        for place, run in enumerate(runs):
            spent = seconds(run, device)
            if turn:
                taken[place].append(spent)
    return [median(each) for each in taken]


def synchronize(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
