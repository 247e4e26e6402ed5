"""Layers laid out for oneDNN, and compiled ones, against torch's own."""

import copy
import shutil

import numpy as np
import pytest
import torch
from torch import nn

from late_chunking import errors
from late_chunking.encoding import linear, selfcheck
from late_chunking.encoding.linear import PackedLinear, pack_linear
from late_chunking.encoding.model import Network
from late_chunking.encoding.packing import PackedBatch
from late_chunking.encoding.selfcheck import choose_encoder
from late_chunking.encoding.sequences import TokenSequence
from tests.networks import make_network

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


def packed(network: nn.Module) -> list[PackedLinear]:
    """The layers that were replaced."""
    return [module for module in network.modules() if isinstance(module, PackedLinear)]


@pytest.mark.parametrize("shape", [(1, 5, 24), (3, 24), (1, 1, 24), (0, 24)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_maps_as_before(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(24, 40, bias=bias))
    rows = torch.randn(shape)
    expected = network(rows)
    pack_linear(network)
    assert len(packed(network)) == 1
    torch.testing.assert_close(network(rows), expected, atol=1e-6, rtol=1e-5)


def test_a_rows_result_does_not_depend_on_the_others() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(64, 96))
    pack_linear(network)
    rows = torch.randn(300, 64)
    for size in (1, 7, 64, 299):
        torch.testing.assert_close(network(rows[:size]), network(rows)[:size], atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("architecture", "gelu"), [("bert", True), ("roberta", True), ("modernbert", False), ("distilbert", False)]
)
def test_networks_are_packed_and_restored(architecture: str, gelu: bool) -> None:
    network = make_network(architecture)
    ids = torch.arange(5, 25)[None]
    with torch.inference_mode():
        expected = copy.deepcopy(network)(input_ids=ids).last_hidden_state
        restore = pack_linear(network)
        found = network(input_ids=ids).last_hidden_state
        torch.testing.assert_close(found, expected, atol=1e-5 * float(expected.abs().max()), rtol=0)
        assert any(layer.activation == "gelu" for layer in packed(network)) == gelu
        restore()
        assert not packed(network)
        assert torch.equal(network(input_ids=ids).last_hidden_state, expected)


@pytest.mark.parametrize(
    "network",
    [nn.Linear(4, 4).bfloat16(), nn.Linear(4, 4, device="meta"), nn.MultiheadAttention(4, 2).out_proj],
    ids=["bfloat16", "another device", "a subclass"],
)
def test_other_layers_are_left_alone(network: nn.Module) -> None:
    holder = nn.Sequential(network)
    pack_linear(holder)
    assert holder[0] is network


def test_a_torch_without_the_operators_keeps_its_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "_is_available", lambda: False)
    network = make_network("bert")
    assert choose_encoder(Network(network, torch.device("cpu"), torch.float32), 512).encoder.name == "packed"
    assert not packed(network)


def test_a_network_that_needs_its_weights_keeps_them() -> None:
    network = make_network("bert")
    dense = network.encoder.layer[0].output.dense
    inner = network.encoder.layer[0].output.forward

    def forward(hidden: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
        return inner(hidden, rest) + 0 * network.encoder.layer[0].output.dense.weight[0, 0]

    network.encoder.layer[0].output.forward = forward
    assert choose_encoder(Network(network, torch.device("cpu"), torch.float32), 512).encoder.name == "packed"
    assert network.encoder.layer[0].output.dense is dense


def test_a_layer_that_goes_wrong_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PackedLinear, "forward", lambda self, rows: nn.functional.linear(rows, torch.ones(64, 64)))
    network = make_network("bert")
    choose_encoder(Network(network, torch.device("cpu"), torch.float32), 512)
    assert not packed(network)


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler on a CPU")
@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
def test_compiled_layers_give_the_same_vectors_and_are_compiled_once(architecture: str) -> None:
    network = make_network(architecture)
    stock = copy.deepcopy(network)
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    encoder = choose_encoder(Network(network, torch.device("cpu"), torch.float32), 512, compiled=True).encoder
    assert encoder.name == "packed"
    compiled = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert compiled > before
    generator = np.random.default_rng(0)
    nothing = np.zeros(0, dtype=np.int64)
    for lengths in ([7, 130, 3], [64], [2, 2, 2, 2, 2, 40]):
        sequences = [TokenSequence(generator.integers(5, 400, length), nothing, nothing, nothing) for length in lengths]
        found = torch.split(encoder.encode(PackedBatch.of(sequences)), lengths)
        for one, hidden in zip(sequences, found, strict=True):
            with torch.inference_mode():
                expected = stock(input_ids=torch.from_numpy(one.ids)[None]).last_hidden_state[0]
            torch.testing.assert_close(hidden, expected, atol=1e-5 * float(expected.abs().max()), rtol=0)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == compiled


def test_a_network_that_cannot_be_compiled_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("no compiler\nwas found")

    network = make_network("bert")
    monkeypatch.setattr(selfcheck, "compile_layers", lambda module: setattr(module.encoder, "forward", fail))
    with pytest.raises(errors.InvalidParameter, match=r"compile=True: BertModel cannot be compiled: no compiler$"):
        choose_encoder(Network(network, torch.device("cpu"), torch.float32), 512, compiled=True)


def test_gradients_pass_as_through_an_ordinary_layer() -> None:
    torch.manual_seed(0)
    linear = nn.Linear(24, 40).requires_grad_(False)
    packed = PackedLinear(linear, differentiable=True)
    rows, same = (torch.randn(2, 7, 24, generator=torch.Generator().manual_seed(1)).requires_grad_() for _ in range(2))
    mapped, expected = packed(rows), linear(same)
    torch.testing.assert_close(mapped, expected, atol=1e-5, rtol=1e-5)
    weights = torch.randn_like(expected)
    (mapped * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(rows.grad, same.grad, atol=1e-5, rtol=1e-5)


def test_layers_that_are_trained_stay_as_they_are() -> None:
    network = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8).requires_grad_(False))
    first, second = network
    restore = pack_linear(network, differentiable=True)
    assert network[0] is first
    restore()
    assert network[1] is second
