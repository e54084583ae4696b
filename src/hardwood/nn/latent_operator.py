"""The program of latent trees as torch operators, so that `torch.compile` takes them as built-in.

``hardwood::latent_program`` solves for a batch, ``hardwood::latent_traversal`` follows activities
that are known, and ``hardwood::latent_backward`` is the gradient of both. Each computes in the
engine on the CPU, and in torch elsewhere.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from hardwood.nn import latent_engine, latent_gradient


def _way(rows: Tensor) -> ModuleType:
    return latent_engine if latent_engine.takes(rows) else latent_gradient


def _n_nodes(rows: Tensor, is_q: bool) -> Any:
    return rows.shape[1] if is_q else 2 * rows.shape[1] + 1


@torch.library.custom_op("hardwood::latent_program", mutates_args=())
def latent_program(
    rows: Tensor, is_q: bool, pruning: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return z, and activity, group and curvature; see `latent_gradient.prune`."""
    rows = rows.contiguous()
    activity, group, curvature = _way(rows).prune(rows, is_q, pruning)
    return _way(rows).traverse(rows, is_q, activity), activity, group, curvature


@torch.library.custom_op("hardwood::latent_traversal", mutates_args=())
def latent_traversal(rows: Tensor, activity: Tensor) -> Tensor:
    """Return z (n, nodes) for scores of splits and activities that are known."""
    rows = rows.contiguous()
    return _way(rows).traverse(rows, False, activity)


@torch.library.custom_op("hardwood::latent_backward", mutates_args=())
def latent_backward(
    rows: Tensor,
    is_q: bool,
    activity: Tensor,
    group: Tensor,
    curvature: Tensor,
    slope_z: Tensor,
    slope_activity: Tensor,
) -> Tensor:
    """Return the slopes by the rows; see `latent_gradient.backward`."""
    parts = (activity, group, curvature, slope_z.contiguous(), slope_activity.contiguous())
    rows = rows.contiguous()
    return _way(rows).backward(rows, is_q, *parts)


@latent_program.register_fake
def _(rows: Tensor, is_q: bool, pruning: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    n_nodes = _n_nodes(rows, is_q)
    return (
        rows.new_empty((rows.shape[0], n_nodes)),
        rows.new_empty(n_nodes),
        rows.new_empty(n_nodes, dtype=torch.int32),
        rows.new_empty(n_nodes, dtype=torch.float64),
    )


@latent_traversal.register_fake
def _(rows: Tensor, activity: Tensor) -> Tensor:
    return rows.new_empty((rows.shape[0], activity.shape[0]))


@latent_backward.register_fake
def _(
    rows: Tensor,
    is_q: bool,
    activity: Tensor,
    group: Tensor,
    curvature: Tensor,
    slope_z: Tensor,
    slope_activity: Tensor,
) -> Tensor:
    return rows.new_empty(rows.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    rows, ctx.is_q, _ = inputs
    ctx.save_for_backward(rows, *output[1:])


def _gradient(
    ctx: Any, slope_z: Tensor, slope_activity: Tensor, *_: Tensor | None
) -> tuple[Tensor | None, ...]:
    rows, *solved = ctx.saved_tensors
    return latent_backward(rows, ctx.is_q, *solved, slope_z, slope_activity), None, None


def _keep_traversal(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _gradient_of_traversal(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
    rows, activity = ctx.saved_tensors
    # Activities that no row can move: each node is a group of infinite curvature.
    group = torch.arange(activity.shape[0], dtype=torch.int32, device=rows.device)
    curvature = torch.full_like(activity, torch.inf, dtype=torch.float64)
    still = torch.zeros_like(activity)
    return latent_backward(rows, False, activity, group, curvature, slope, still), None


def _no_second_derivative(ctx: Any, *_: Tensor) -> None:
    raise RuntimeError(
        "LatentTree has no second derivative: traversals and activities are piecewise linear in "
        "the scores. Leave out create_graph=True, or keep the layer out of what is differentiated "
        "twice."
    )


latent_program.register_autograd(_gradient, setup_context=_keep)
latent_traversal.register_autograd(_gradient_of_traversal, setup_context=_keep_traversal)
latent_backward.register_autograd(_no_second_derivative)


def solve(rows: Tensor, pruning: float, *, is_q: bool = False) -> tuple[Tensor, Tensor]:
    """Return traversals (n, nodes) and activities (nodes,) that solve the program for rows."""
    z, activity, _, _ = latent_program(rows, is_q, pruning)
    return z, activity


def follow(scores: Tensor, activity: Tensor) -> Tensor:
    """Return traversals (n, nodes) for activities that are constants."""
    return latent_traversal(scores, activity)
