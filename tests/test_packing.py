"""Batches: nothing lost, in order, within the budget."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertConfig, ModernBertConfig

from late_chunking.encoding.packing import Cost, PackedBatch, filled_length, pack
from late_chunking.encoding.pooling import pool_sums
from late_chunking.encoding.sequences import TokenSequence


@dataclass(frozen=True)
class Item:
    """A sequence on its own."""

    sequence: TokenSequence


def bagged(length: int, bags: list[list[int]]) -> TokenSequence:
    """A sequence of 0, 1, 2 … with bags of places."""
    places = np.array([place for bag in bags for place in bag], dtype=np.int64)
    sizes = np.array([len(bag) for bag in bags], dtype=np.int64)
    return TokenSequence(np.arange(length), np.arange(len(bags)), places, sizes)


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 100), st.sampled_from([0.0, 0.01, 1.0]))
def test_batches_hold_everything_in_order_within_the_budget(lengths: list[int], budget: int, quadratic: float) -> None:
    items = [Item(bagged(length, [])) for length in lengths]
    cost = Cost(quadratic)
    batches = list(pack(items, budget, cost))
    assert [item for batch in batches for item in batch] == items
    for place, batch in enumerate(batches):
        assert len(batch) == 1 or sum(cost(item.sequence) for item in batch) <= budget + 1e-9
        if place + 1 < len(batches):
            together = [*batch, batches[place + 1][0]]
            assert sum(cost(item.sequence) for item in together) > budget


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 4)), min_size=1, max_size=8), st.randoms())
def test_sums_are_those_of_the_bags(shapes: list[tuple[int, int]], random: object) -> None:
    sequences = [
        bagged(length, [[random.randrange(length) for _ in range(random.randint(1, 5))] for _ in range(bags)])
        for length, bags in shapes
    ]
    batch = PackedBatch.of(sequences)
    assert batch.lengths.cu_seqlens.tolist() == np.cumsum([0, *(len(one) for one in sequences)]).tolist()
    assert batch.positions.tolist() == [place for one in sequences for place in range(len(one))]
    assert batch.lengths.max_length == max(len(one) for one in sequences)
    torch.manual_seed(0)
    hidden = torch.randn(len(batch.ids), 6)
    expected = []
    for start, one in zip(batch.lengths.cu_seqlens.tolist(), sequences, strict=False):
        bags = np.split(one.bags, one.sizes.cumsum()[:-1]) if len(one.sizes) else []
        expected += [sum(hidden[start + int(place)] for place in bag) for bag in bags]
    found = pool_sums(hidden, batch)
    assert found.shape == (len(expected), 6)
    if expected:
        torch.testing.assert_close(found, torch.stack(expected))


def test_sums_of_half_precision_are_kept_in_full() -> None:
    batch = PackedBatch.of([bagged(4096, [list(range(4096))])])
    found = pool_sums(torch.ones(4096, 2, dtype=torch.bfloat16), batch)
    assert found.dtype == torch.float32
    assert found.tolist() == [[4096.0, 4096.0]]


def test_the_cost_counts_layers_that_see_everything() -> None:
    assert Cost.of(BertConfig(hidden_size=384)).quadratic == 1 / (6 * 384)
    config = ModernBertConfig(hidden_size=768, num_hidden_layers=22, global_attn_every_n_layers=3)
    assert np.isclose(Cost.of(config).quadratic, 8 / 22 / (6 * 768))


@given(st.lists(st.integers(1, 3_000), min_size=1, max_size=4))
def test_a_batch_is_filled_up_to_a_few_lengths_that_nothing_is_pooled_from(lengths: list[int]) -> None:
    sequences = [bagged(length, [[0, length - 1]]) for length in lengths]
    plain, filled = PackedBatch.of(sequences), PackedBatch.of(sequences, filled=True)
    assert plain.tokens <= filled.tokens <= max(plain.tokens + 15, plain.tokens * 17 / 16)
    assert filled.ids[: plain.tokens].tolist() == plain.ids.tolist()
    assert filled.bounds[: len(plain.bounds)] == plain.bounds
    assert (filled.bags.tolist(), filled.bag_offsets.tolist()) == (plain.bags.tolist(), plain.bag_offsets.tolist())
    assert max(end - start for start, end in pairwise(filled.bounds)) == max(lengths)
    starts = np.repeat(filled.bounds[:-1], np.diff(filled.bounds))
    assert filled.positions.tolist() == (np.arange(filled.tokens) - starts).tolist()


def test_there_are_few_lengths() -> None:
    assert len({filled_length(tokens) for tokens in range(1, 8_193)}) == 16 * 6
