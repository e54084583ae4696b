"""The engine behind `DenseGradientTree`: the CPU's way in float32.

Tensors are handed over as they are (by DLPack, without a copy and without NumPy); the engine writes
into memory that torch allocated.
"""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor

_IS_BUILT = find_spec("hardwood._native") is not None


def engine_available() -> bool:
    """Whether layers on the CPU run in the engine, which is part of a built hardwood.

    Without it (a checkout that was not built, say) they run in torch: the same up to rounding, and
    slower. `DenseGradientTree` uses the engine in float32 only, `TreeEnsembleLayer` in float64 too.
    Other devices do without it.
    """
    return _IS_BUILT


def takes(x: Tensor) -> bool:
    """Whether the engine computes what depends on `x`."""
    return x.device.type == "cpu" and x.dtype == torch.float32 and engine_available()


def forward(x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """Predict as `dgt_gradient.forward` does."""
    from hardwood._native import dgt_layer_forward

    prediction = x.new_empty((x.shape[0], leaves.shape[1]))
    leaf = torch.empty(x.shape[0], dtype=torch.int32)
    dgt_layer_forward(
        *given(x, weight, bias, leaves), prediction, leaf, n_threads=torch.get_num_threads()
    )
    return prediction, leaf


def backward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    leaf: Tensor,
    slope: Tensor,
    *,
    with_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Estimate the gradient as `dgt_gradient.backward` does."""
    from hardwood._native import dgt_layer_backward

    dx = x.new_empty((x.shape[0] if with_x else 0, x.shape[1]))
    dweight, dbias = weight.new_empty(weight.shape), bias.new_empty(bias.shape)
    dleaves = leaves.new_empty(leaves.shape)
    dgt_layer_backward(
        *given(x, weight, bias, leaves, leaf, slope),
        dx if with_x else None,
        dweight,
        dbias,
        dleaves,
        n_threads=torch.get_num_threads(),
    )
    return dx, dweight, dbias, dleaves


def given(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return tensors as the engine takes them: one that wants a gradient cannot be handed over."""
    return tuple(tensor.detach().contiguous() for tensor in tensors)
