"""The program of latent trees by the engine: the CPU's way, in float32 and float64."""

from __future__ import annotations

import torch
from torch import Tensor

from hardwood.nn.engine import engine_available, given


def takes(rows: Tensor) -> bool:
    """Whether the engine computes what depends on `rows`, of which there has to be one."""
    return rows.device.type == "cpu" and engine_available() and rows.shape[0] > 0


def prune(rows: Tensor, is_q: bool, pruning: float) -> tuple[Tensor, Tensor, Tensor]:
    """Solve as `latent_gradient.prune` does."""
    from hardwood._native import latent_prune

    n_nodes = rows.shape[1] if is_q else 2 * rows.shape[1] + 1
    activity = rows.new_empty(n_nodes)
    group = torch.empty(n_nodes, dtype=torch.int32)
    curvature = torch.empty(n_nodes, dtype=torch.float64)
    latent_prune(*given(rows), is_q, pruning, activity, group, curvature)
    return activity, group, curvature


def traverse(rows: Tensor, is_q: bool, activity: Tensor) -> Tensor:
    """Traverse as `latent_gradient.traverse` does."""
    from hardwood._native import latent_traverse

    z = rows.new_empty((rows.shape[0], activity.shape[0]))
    taken, activity = given(rows, activity)
    latent_traverse(taken, is_q, activity, z, n_threads=torch.get_num_threads())
    return z


def backward(
    rows: Tensor,
    is_q: bool,
    activity: Tensor,
    group: Tensor,
    curvature: Tensor,
    slope_z: Tensor,
    slope_activity: Tensor,
) -> Tensor:
    """Return the slopes as `latent_gradient.backward` does."""
    from hardwood._native import latent_backward

    slope = rows.new_empty(rows.shape)
    taken, *others = given(rows, activity, group, curvature, slope_z, slope_activity)
    latent_backward(taken, is_q, *others, slope, n_threads=torch.get_num_threads())
    return slope
