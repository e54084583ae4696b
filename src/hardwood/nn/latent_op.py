"""The program of latent trees as torch operators, so that `torch.compile` takes them as built-in.

``hardwood::latent_program`` solves for a batch, ``hardwood::latent_traversal`` follows activities
that are known, and ``hardwood::latent_backward`` is the gradient of both. Each computes in the
engine on the CPU, in float32 and float64, and elsewhere in the torch of this file.

Nodes are in heap order: the children of t are 2t + 1 (left) and 2t + 2 (right). Rows are scores of
splits (n, 2^depth - 1), or q of all nodes (n, 2^(depth + 1) - 1); of every node, v = q + 1/2.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hardwood.nn import operators


def rewards(scores: Tensor) -> Tensor:
    """Return q (n, nodes): the smallest margin of the splits above each node, Eq. (1)."""
    n, m = scores.shape
    levels = [scores.new_full((n, 1), torch.inf)]
    for first, last in _levels(m):
        own = scores[:, first:last]
        both = torch.stack([-own, own], dim=2)  # left and right of each split
        levels.append(torch.minimum(levels[-1][:, :, None], both).flatten(1))
    levels[0] = torch.ones_like(levels[0])
    return torch.cat(levels, dim=1)


def _levels(n_splits: int) -> list[tuple[int, int]]:
    """Return the first and past-the-last split of each level, from the root down."""
    return [(2**d - 1, 2 ** (d + 1) - 1) for d in range(n_splits.bit_length())]


def _values(rows: Tensor, is_q: bool) -> Tensor:
    return (rows if is_q else rewards(rows)) + 0.5


def torch_prune(rows: Tensor, is_q: bool, pruning: float) -> tuple[Tensor, Tensor, Tensor]:
    """Solve for the activities of the nodes: Algorithm 1.

    Returns
    -------
    activity, group, curvature
        (nodes,) each: activities in the dtype of the rows; the topmost node that a node is pooled
        with, int32; and the second derivative of its group's objective, float64.
    """
    values = _values(rows, is_q).double()
    values = torch.where(values.isnan().any(dim=1, keepdim=True), 0.0, values)
    n_nodes = values.shape[1]
    group = torch.arange(n_nodes, device=rows.device)
    if pruning == 0:
        activity = values.new_ones(n_nodes)
        return activity.to(rows.dtype), group.int(), torch.zeros_like(activity)
    activity = _best(values, pruning)
    parent = (group - 1).clamp(min=0) // 2
    while bool((violation := activity > activity[parent]).any()):
        worst = int(torch.where(violation, activity, -1.0).argmax())
        pooled = (group == group[worst]) | (group == group[parent[worst]])
        together = values[:, pooled]
        activity[pooled] = _best(together.reshape(-1, 1), pruning * together.shape[1])
        group[pooled] = int(group[pooled].min())
    support = (values > activity).sum(dim=0).double() + pruning
    curvature = torch.zeros_like(activity).index_add(0, group, support)[group]
    return activity.to(rows.dtype), group.int(), curvature


def _best(values: Tensor, pruning: float) -> Tensor:
    """Return the optimal activity (g,) of groups with values (n, g): Proposition 2."""
    n = values.shape[0]
    if n == 0:
        return values.new_zeros(values.shape[1])
    ordered = values.sort(dim=0, descending=True).values
    count = torch.arange(1, n + 1, device=values.device, dtype=values.dtype)
    best = ordered.cumsum(dim=0) / (pruning + count)[:, None]
    # a(k) > v_(k+1), for the smallest such k; without one, all values are in the support.
    ends = torch.ones_like(best, dtype=torch.bool)
    ends[:-1] = best[:-1] > ordered[1:]
    first = ends.to(torch.uint8).argmax(dim=0, keepdim=True)
    return best.gather(0, first)[0].clamp(0.0, 1.0)


def torch_traverse(rows: Tensor, is_q: bool, activity: Tensor) -> Tensor:
    """Return traversals (n, nodes), v clipped to [0, a] (Proposition 1); NaN rows stay NaN."""
    z = torch.minimum(_values(rows, is_q).clamp(min=0.0), activity)
    return torch.where(rows.isnan().any(dim=1, keepdim=True), torch.nan, z)


def torch_backward(
    rows: Tensor,
    is_q: bool,
    activity: Tensor,
    group: Tensor,
    curvature: Tensor,
    slope_z: Tensor,
    slope_activity: Tensor,
) -> Tensor:
    """Return slopes of rows from those of traversals (n, nodes) and activities: Section 3.2."""
    values = _values(rows, is_q)
    is_nan = rows.isnan().any(dim=1, keepdim=True)
    is_cut = (values > activity) & ~is_nan
    # If z is clipped to its node's activity, its slope belongs to the activity.
    by_activity = slope_activity.double() + torch.where(is_cut, slope_z, 0.0).sum(0).double()
    top = group.long()
    total = torch.zeros_like(by_activity).index_add(0, top, by_activity)[top]
    is_free = (activity > 0) & (activity < 1)
    share = torch.where(is_free, total / curvature, 0.0).to(rows.dtype)
    slope = torch.where(is_cut, share, torch.where(values > 0, slope_z, 0.0))
    if not is_q:
        slope = _by_scores(rows, slope)
    return torch.where(is_nan, torch.nan, slope)


def _by_scores(scores: Tensor, slope: Tensor) -> Tensor:
    """Return slopes of scores: every q passes its slope to the score that it equals."""
    m = scores.shape[1]
    q = rewards(scores)
    q[:, 0] = torch.inf
    result = torch.empty_like(scores)
    below = slope[:, m:]
    for first, last in reversed(_levels(m)):
        own = scores[:, first:last]
        both = torch.stack([-own, own], dim=2)
        # Of equal scores, the one nearer to the root.
        is_own = both < q[:, first:last, None]
        below = below.unflatten(1, (last - first, 2))
        by_own = torch.where(is_own, below, 0.0)
        result[:, first:last] = by_own[:, :, 1] - by_own[:, :, 0]
        below = slope[:, first:last] + torch.where(is_own, 0.0, below).sum(dim=2)
    return result


def engine_prune(rows: Tensor, is_q: bool, pruning: float) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `torch_prune` in the engine."""
    solved = _empty_solution(rows, is_q)
    operators.run_engine("latent_prune", rows, is_q, pruning, *solved, in_parallel=False)
    return solved


def engine_traverse(rows: Tensor, is_q: bool, activity: Tensor) -> Tensor:
    """Compute `torch_traverse` in the engine."""
    z = rows.new_empty((rows.shape[0], activity.shape[0]))
    operators.run_engine("latent_traverse", rows, is_q, activity, z)
    return z


def engine_backward(rows: Tensor, is_q: bool, *others: Tensor) -> Tensor:
    """Compute `torch_backward` in the engine."""
    slope = rows.new_empty(rows.shape)
    operators.run_engine("latent_backward", rows, is_q, *others, slope)
    return slope


def _empty_solution(rows: Tensor, is_q: bool) -> tuple[Tensor, Tensor, Tensor]:
    n_nodes = rows.shape[1] if is_q else 2 * rows.shape[1] + 1
    return (
        rows.new_empty(n_nodes),
        rows.new_empty(n_nodes, dtype=torch.int32),
        rows.new_empty(n_nodes, dtype=torch.float64),
    )


def _takes_engine(rows: Tensor) -> bool:
    """Whether the engine is used for `rows`; it needs at least one row."""
    return rows.device.type == "cpu" and operators.engine_available() and rows.shape[0] > 0


def _traverse(rows: Tensor, is_q: bool, activity: Tensor) -> Tensor:
    return (engine_traverse if _takes_engine(rows) else torch_traverse)(rows, is_q, activity)


@torch.library.custom_op("hardwood::latent_program", mutates_args=())
def latent_program(
    rows: Tensor, is_q: bool, pruning: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return z, and activity, group and curvature; see `torch_prune`."""
    rows = rows.contiguous()
    prune = engine_prune if _takes_engine(rows) else torch_prune
    activity, group, curvature = prune(rows, is_q, pruning)
    return _traverse(rows, is_q, activity), activity, group, curvature


@torch.library.custom_op("hardwood::latent_traversal", mutates_args=())
def latent_traversal(rows: Tensor, activity: Tensor) -> Tensor:
    """Return z (n, nodes) for given scores of splits and activities."""
    return _traverse(rows.contiguous(), False, activity)


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
    """Return the slopes of the rows; see `torch_backward`."""
    parts = (activity, group, curvature, slope_z.contiguous(), slope_activity.contiguous())
    run = engine_backward if _takes_engine(rows) else torch_backward
    return run(rows.contiguous(), is_q, *parts)


@latent_program.register_fake
def _(rows: Tensor, is_q: bool, pruning: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    solved = _empty_solution(rows, is_q)
    return rows.new_empty((rows.shape[0], solved[0].shape[0])), *solved


@latent_traversal.register_fake
def _(rows: Tensor, activity: Tensor) -> Tensor:
    return rows.new_empty((rows.shape[0], activity.shape[0]))


@latent_backward.register_fake
def _(rows: Tensor, *others: Any) -> Tensor:
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
    # Fixed activities: each node is a group of infinite curvature.
    group = torch.arange(activity.shape[0], dtype=torch.int32, device=rows.device)
    curvature = torch.full_like(activity, torch.inf, dtype=torch.float64)
    still = torch.zeros_like(activity)
    return latent_backward(rows, False, activity, group, curvature, slope, still), None


latent_program.register_autograd(_gradient, setup_context=_keep)
latent_traversal.register_autograd(_gradient_of_traversal, setup_context=_keep_traversal)
latent_backward.register_autograd(
    operators.no_second_derivative(
        "LatentTree has no second derivative: traversals and activities are piecewise linear in "
        "the scores."
    )
)


def solve(rows: Tensor, pruning: float, *, is_q: bool = False) -> tuple[Tensor, Tensor]:
    """Return traversals (n, nodes) and activities (nodes,) that solve the program for rows."""
    z, activity, _, _ = latent_program(rows, is_q, pruning)
    return z, activity


def follow(scores: Tensor, activity: Tensor) -> Tensor:
    """Return traversals (n, nodes) for activities that are constants."""
    return latent_traversal(scores, activity)
