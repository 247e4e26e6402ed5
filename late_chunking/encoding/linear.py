"""Linear layers on a CPU through oneDNN, with weights laid out for it once.

torch hands fp32 layers to MKL, which on processors that are not Intel's keeps to AVX2; oneDNN takes
the widest instructions there are (measured on an AMD EPYC with AVX-512: 510 against 215 GFLOP/s).
A row's result then hardly depends on how many rows are computed with it, either. The weights are
fixed; gradients pass to the rows alone.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch import nn
from transformers.activations import GELUActivation

# Rows that the layout of the weights is chosen for; any number may be computed.
_ROWS: Final = 2_048
_NO_GELU, _EXACT_GELU = "", "none"  # how the operator names them


class PackedLinear(nn.Module):
    """A linear layer whose weights lie as oneDNN wants them.

    Attributes:
        weight: empty, of the layer's type; some networks ask for that.
        packed: the weights, opaque.
        transposed: the same for the way back, if gradients are to pass.
        bias: [out].
        activation: ``"none"`` or ``"gelu"``, computed with it; gradients do not pass the latter.
    """

    def __init__(self, linear: nn.Linear, *, gelu: bool = False, differentiable: bool = False) -> None:
        """Lay out a layer's weights; the layer itself stays as it is."""
        super().__init__()
        self.weight = torch.empty(0, dtype=linear.weight.dtype)
        self.packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), _ROWS)
        self.transposed: torch.Tensor | None = None
        if differentiable:
            back = linear.weight.detach().t().contiguous()
            self.transposed = torch.ops.mkldnn._reorder_linear_weight(back, _ROWS)
        self.bias = None if linear.bias is None else linear.bias.detach()
        self.activation = "gelu" if gelu else "none"

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Map [..., in] to [..., out]."""
        if self.transposed is not None and torch.is_grad_enabled() and rows.requires_grad:
            passed: torch.Tensor = _Differentiable.apply(rows, self)  # type: ignore[no-untyped-call]
            return passed
        return self.mapped(rows)

    def mapped(self, rows: torch.Tensor) -> torch.Tensor:
        """Map [..., in] to [..., out], for the numbers alone."""
        algorithm = _EXACT_GELU if self.activation == "gelu" else _NO_GELU
        mapped: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, self.packed, self.bias, self.activation, [], algorithm
        )
        return mapped


class _Differentiable(torch.autograd.Function):
    """A layer as a step of a computation that gradients pass through; oneDNN's operator has none of its own."""

    @staticmethod
    def forward(context: Any, rows: torch.Tensor, layer: PackedLinear) -> torch.Tensor:  # noqa: ANN401 - torch's
        """Map [..., in] to [..., out]."""
        context.layer = layer
        return layer.mapped(rows)

    @staticmethod
    def backward(context: Any, gradients: torch.Tensor) -> tuple[torch.Tensor, None]:  # noqa: ANN401
        """Map the gradients, [..., out], back to [..., in]."""
        passed: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            gradients.contiguous(), context.layer.transposed, None, "none", [], _NO_GELU
        )
        return passed, None


def pack_linear(network: nn.Module, *, differentiable: bool = False) -> Callable[[], None]:
    """Replace a network's linear layers, where this torch has oneDNN and they are fp32 on a CPU.

    Args:
        network: the network.
        differentiable: let gradients pass to what goes into them; layers that are trained stay.

    Returns:
        What puts the layers back. Until it is dropped, the weights are held twice.
    """
    changes: list[tuple[nn.Module, str, nn.Module]] = []
    for parent in list(network.modules()) if _is_available() else []:
        # BERT and its kin keep a layer and its activation side by side: one call does both.
        gelu = _is_exact_gelu(getattr(parent, "intermediate_act_fn", None)) and _is_packable(
            getattr(parent, "dense", None)
        )
        gelu = gelu and not differentiable
        if gelu:
            changes.append((parent, "intermediate_act_fn", nn.Identity()))
        for name, child in list(parent.named_children()):
            trained = differentiable and any(parameter.requires_grad for parameter in child.parameters())
            if isinstance(child, nn.Linear) and _is_packable(child) and not trained:
                made = PackedLinear(child, gelu=gelu and name == "dense", differentiable=differentiable)
                changes.append((parent, name, made))
    originals = [(parent, name, getattr(parent, name)) for parent, name, _ in changes]
    _set(changes)
    return lambda: _set(originals)


def _set(modules: Iterable[tuple[nn.Module, str, nn.Module]]) -> None:
    """Put modules into their parents, under their names."""
    for parent, name, module in modules:
        setattr(parent, name, module)


def _is_available() -> bool:
    """Tell whether this torch has the operators; they are not part of its public interface."""
    operators = ("_linear_pointwise", "_reorder_linear_weight")
    present = bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
    return present and all(hasattr(torch.ops.mkldnn, name) for name in operators)


def _is_packable(module: Any) -> bool:  # noqa: ANN401 - whatever a network holds
    """Tell whether a module is an ordinary linear layer that oneDNN takes."""
    if type(module) is not nn.Linear:
        return False
    weight = module.weight
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and weight.is_contiguous()


def _is_exact_gelu(module: Any) -> bool:  # noqa: ANN401
    """Tell whether a module is the GELU by the error function."""
    if isinstance(module, GELUActivation):
        return module.act is nn.functional.gelu
    return isinstance(module, nn.GELU) and module.approximate == "none"
