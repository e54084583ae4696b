"""TEL by the engine: the CPU's way, conditional, in float32 and float64."""

from __future__ import annotations

import torch
from torch import Tensor

from hardwood.nn.engine import engine_available, given


def takes(x: Tensor) -> bool:
    """Whether the engine computes what depends on `x`."""
    return x.device.type == "cpu" and engine_available()


def forward(
    x: Tensor, weight: Tensor, bias: Tensor, leaves: Tensor, gamma: float, activation: str
) -> Tensor:
    """Answer as `tel_gradient.forward` does."""
    from hardwood._native import tel_forward

    answer = x.new_empty((x.shape[0], leaves.shape[2]))
    tel_forward(
        *given(x, weight, bias, leaves),
        answer,
        gamma,
        activation,
        n_threads=torch.get_num_threads(),
    )
    return answer


def backward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    leaves: Tensor,
    slope: Tensor,
    gamma: float,
    activation: str,
    *,
    with_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients as `tel_gradient.backward` does."""
    from hardwood._native import tel_backward

    dx = x.new_empty((x.shape[0] if with_x else 0, x.shape[1]))
    sums = tuple(part.new_empty(part.shape) for part in (weight, bias, leaves))
    tel_backward(
        *given(x, weight, bias, leaves, slope),
        dx if with_x else None,
        *sums,
        gamma,
        activation,
        n_threads=torch.get_num_threads(),
    )
    return dx, *sums


def reachable_leaves(
    x: Tensor, weight: Tensor, bias: Tensor, gamma: float, activation: str
) -> Tensor:
    """Count as `tel_gradient.reachable_leaves` does."""
    from hardwood._native import tel_reachable

    counts = torch.empty((x.shape[0], weight.shape[0]), dtype=torch.int32)
    tel_reachable(
        *given(x, weight, bias), counts, gamma, activation, n_threads=torch.get_num_threads()
    )
    return counts
