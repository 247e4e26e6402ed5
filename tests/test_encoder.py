"""Packed sequences against the stock network on each alone, for many architectures."""

import copy
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from late_chunking import LateChunker, errors
from late_chunking.encoding import attention, selfcheck
from late_chunking.encoding.attention import packed_attention, per_sequence_attention
from late_chunking.encoding.encoder import Encoder
from late_chunking.encoding.model import Network
from late_chunking.encoding.packing import PackedBatch, PackedLengths
from late_chunking.encoding.selfcheck import choose_encoder
from late_chunking.encoding.sequences import TokenSequence
from tests.models import save_folder
from tests.networks import ARCHITECTURES, DYNAMIC, make_network

PADDED = {"mpnet", "deberta-v2"}
# Around every edge of the local windows' blocks, and many times the local window.
LENGTHS = [1, 2, 5, 5, 5, 15, 16, 17, 31, 64, 127, 128, 129, 130, 143, 144, 145, 256, 300, 1]


def sequence(length: int, seed: int = 0) -> TokenSequence:
    """Random tokens with nothing to pool."""
    nothing = np.zeros(0, dtype=np.int64)
    return TokenSequence(np.random.default_rng(seed).integers(5, 400, length), nothing, nothing, nothing)


def alone(network: torch.nn.Module, one: TokenSequence) -> torch.Tensor:
    """The stock network on one sequence, fresh, so that it remembers no other."""
    fresh = copy.deepcopy(network)
    with torch.inference_mode():
        return fresh(input_ids=torch.from_numpy(one.ids)[None]).last_hidden_state[0]


def chosen(network: torch.nn.Module, window: int = 512) -> Encoder:
    """The encoder that the check at load chooses."""
    return choose_encoder(Network(network, torch.device("cpu"), torch.float32), window).encoder


def bounded(bounds: list[int]) -> PackedLengths:
    """Sequences with these bounds."""
    return PackedLengths(
        torch.tensor(bounds, dtype=torch.int32), tuple(bounds), max(end - start for start, end in pairwise(bounds))
    )


def split(hidden: torch.Tensor, sequences: list[TokenSequence]) -> list[torch.Tensor]:
    """The token vectors of each sequence."""
    return list(torch.split(hidden, [len(one) for one in sequences]))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_packed_is_stock_alone(architecture: str) -> None:
    network = make_network(architecture)
    stock = copy.deepcopy(network)
    encoder = chosen(network)
    assert encoder.name == ("padded" if architecture in PADDED else "packed")
    sequences = [sequence(length, seed) for seed, length in enumerate(LENGTHS)]
    together = split(encoder.encode(PackedBatch.of(sequences)), sequences)
    for one, found in zip(sequences, together, strict=True):
        expected = alone(stock, one)
        scale = float(expected.abs().max())
        torch.testing.assert_close(found, expected, atol=1e-5 * scale, rtol=0)
        torch.testing.assert_close(encoder.encode(PackedBatch.of([one])), found, atol=1e-5 * scale, rtol=0)


@pytest.mark.parametrize("architecture", ["nomic_bert", "gte", "jina_embeddings_v3", "eurobert"])
@pytest.mark.parametrize(
    "changes",
    [
        DYNAMIC,
        {
            "max_position_embeddings": 40,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 1e3,
                "original_max_position_embeddings": 20,
                "factor": 2.0,
                "short_factor": [1.0] * 8,
                "long_factor": [3.0] * 8,
            },
        },
    ],
    ids=["dynamic", "longrope"],
)
def test_rotary_state_depends_on_the_sequence_alone(architecture: str, changes: dict[str, object]) -> None:
    network = make_network(architecture, **changes)
    stock = copy.deepcopy(network)
    encoder = chosen(network)
    assert encoder.name == "packed"
    sequences = [sequence(length, seed) for seed, length in enumerate([90, 7, 41, 40, 39, 150, 20, 21, 3])]
    for order in (sequences, sequences[::-1], sequences[:1], sequences[1:2]):
        found = split(encoder.encode(PackedBatch.of(order)), order)
        for one, vectors in zip(order, found, strict=True):
            torch.testing.assert_close(vectors, alone(stock, one), atol=2e-5, rtol=1e-5)


def test_threads_share_an_encoder_with_rotary_state() -> None:
    encoder = chosen(make_network("nomic_bert", **DYNAMIC))
    sequences = [sequence(length, length) for length in (5, 90, 39, 41, 150, 8)]
    expected = [encoder.encode(PackedBatch.of([one])) for one in sequences]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(5):
            found = pool.map(lambda one: encoder.encode(PackedBatch.of([one])), sequences)
            for one, vectors in zip(expected, found, strict=True):
                torch.testing.assert_close(vectors, one, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("window", [None, 1, 8, 65])
@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (4, 1)])
def test_attention_against_a_mask(window: int | None, heads: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(0)
    lengths = [1, 3, 3, 40, 128, 129, 300, 7]
    tokens, size = sum(lengths), 16
    query = torch.randn(1, tokens, heads[0], size, generator=generator).transpose(1, 2)
    key, value = (torch.randn(1, tokens, heads[1], size, generator=generator).transpose(1, 2) for _ in range(2))
    bounds = np.cumsum([0, *lengths])
    packed = bounded(bounds.tolist())
    found, _ = packed_attention(
        torch.nn.Identity(), query, key, value, None, packed_lengths=packed, scaling=0.3, sliding_window=window
    )
    owner = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    places = torch.arange(tokens)
    mask = owner[:, None] == owner
    if window is not None:
        mask &= (places[:, None] - places).abs() < window
    expected = torch.nn.functional.scaled_dot_product_attention(
        query.double(), key.double(), value.double(), attn_mask=mask, scale=0.3, enable_gqa=True
    )
    torch.testing.assert_close(found, expected.transpose(1, 2).float(), atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"softcap": 30.0}, "softcap"),
        ({"s_aux": torch.zeros(4)}, "s_aux"),
        ({"attention_mask": torch.zeros(1)}, "attention_mask"),
        ({"dropout": 0.1}, "dropout"),
        ({"is_causal": True}, "is_causal"),
        ({"packed_lengths": None}, "does not hand on the bounds"),
    ],
)
def test_an_argument_that_is_not_understood_is_refused(arguments: dict[str, object], named: str) -> None:
    tensor = torch.zeros(1, 4, 2, 16)
    lengths = bounded([0, 2])
    given = {"attention_mask": None, "packed_lengths": lengths, **arguments}
    with pytest.raises(errors.UnsupportedModel, match=named):
        packed_attention(torch.nn.Identity(), tensor, tensor, tensor, **given)
    packed_attention(
        torch.nn.Identity(), tensor, tensor, tensor, None, packed_lengths=lengths, softcap=None, use_cache=False
    )


def test_a_layer_that_is_causal_is_refused() -> None:
    layer = torch.nn.Identity()
    layer.is_causal = True  # type: ignore[assignment]
    tensor = torch.zeros(1, 4, 2, 16)
    lengths = bounded([0, 2])
    with pytest.raises(errors.UnsupportedModel, match="is_causal"):
        packed_attention(layer, tensor, tensor, tensor, None, packed_lengths=lengths)


@pytest.mark.parametrize("architecture", ["modernbert", "gemma3"])
def test_a_window_that_is_ignored_is_found_out(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(*arguments: object) -> torch.Tensor:
        return per_sequence_attention(*arguments[:-1], None)  # type: ignore[arg-type]

    monkeypatch.setattr(attention, "per_sequence_attention", blind)
    network = make_network(architecture)
    choice = choose_encoder(Network(network, torch.device("cpu"), torch.float32), 512)
    assert choice.encoder.name == "padded"
    assert "differ from stock" in choice.reason


def test_a_network_that_mixes_neighbours_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def mixed(query, key, value, lengths, scale, window):
        whole = bounded([0, query.shape[2]])
        return per_sequence_attention(query, key, value, whole, scale, window)

    monkeypatch.setattr(attention, "per_sequence_attention", mixed)
    assert chosen(make_network("bert")).name == "padded"


def test_a_dimension_larger_than_all_others_hides_no_mixing(monkeypatch: pytest.MonkeyPatch) -> None:
    def mixed(query, key, value, lengths, scale, window):
        whole = bounded([0, query.shape[2]])
        return per_sequence_attention(query, key, value, whole, scale, window)

    network = make_network("bert").to(torch.bfloat16)
    with torch.no_grad():
        network.encoder.layer[-1].output.LayerNorm.bias[3] = 100.0
    honest = choose_encoder(Network(copy.deepcopy(network), torch.device("cpu"), torch.bfloat16), 512)
    assert honest.encoder.name == "packed"
    monkeypatch.setattr(attention, "per_sequence_attention", mixed)
    assert choose_encoder(Network(network, torch.device("cpu"), torch.bfloat16), 512).encoder.name == "padded"


def test_a_padded_model_serves_and_says_so(tmp_path: Path) -> None:
    folder = save_folder(tmp_path, network=make_network("mpnet", pad_token_id=3), window=64)
    chunker = LateChunker(str(folder), device="cpu")
    info = chunker.info()
    assert info.encoder == "padded"
    assert any(note.startswith("runs padded: packed vectors differ from stock ones") for note in info.notes)
    texts = ["The ferry leaves at dawn. It carries salt.", "Salz", "The ferry leaves at dawn. " * 30]
    together = list(chunker.embed_many(texts, strategy="sentences"))
    for text, embedded in zip(texts, together, strict=True):
        np.testing.assert_allclose(embedded.vectors, chunker.embed(text, strategy="sentences").vectors, atol=1e-5)


def test_the_check_at_load_leaves_the_chosen_attention_in_place() -> None:
    network = make_network("bert")
    assert chosen(network).name == "packed"
    assert network.config._attn_implementation == attention.PACKED
    network = make_network("mpnet")
    chosen(network)
    assert network.config._attn_implementation != attention.PACKED


def test_probes_reach_beyond_the_local_window() -> None:
    for architecture in ("modernbert", "gemma3"):
        config = make_network(architecture).config
        local = max(getattr(config, "local_attention", 0) or 0, getattr(config, "sliding_window", 0) or 0)
        longest = max(len(probe) for probe in selfcheck._probes(config, 512))
        assert longest > 2 * local + attention._LOCAL_BLOCK


def test_runs_cover_the_batch() -> None:
    bounds = [0, 3, 6, 9, 10, 11, 20, 20 + 9, 30]
    runs = list(attention._runs(bounds))
    assert runs[0] == (0, 9, 3)
    assert [start for start, _, _ in runs] == [0, *(end for _, end, _ in runs[:-1])]
    assert all((end - start) % length == 0 for start, end, length in runs)
    lengths = [length for start, end, length in runs for _ in range((end - start) // length)]
    assert lengths == [after - before for before, after in pairwise(bounds)]
