"""The program of latent trees in torch: for devices that the engine does not compute on.

Nodes are in heap order: the children of t are 2t + 1 (left) and 2t + 2 (right). Rows are scores of
splits (n, 2^depth - 1), or q of all nodes (n, 2^(depth + 1) - 1); of every node, v = q + 1/2.
"""

from __future__ import annotations

import torch
from torch import Tensor


def rewards(scores: Tensor) -> Tensor:
    """Return q (n, nodes) from scores: what the least sure split on a node's way says, Eq. (1)."""
    n, m = scores.shape
    levels = [scores.new_full((n, 1), torch.inf)]
    for first, last in _levels(m):
        own = scores[:, first:last]
        both = torch.stack([-own, own], dim=2)  # left and right of each split
        levels.append(torch.minimum(levels[-1][:, :, None], both).flatten(1))
    levels[0] = torch.ones_like(levels[0])
    return torch.cat(levels, dim=1)


def _levels(n_splits: int) -> list[tuple[int, int]]:
    """Return the first split of each level and the one behind its last, from the root down."""
    return [(2**d - 1, 2 ** (d + 1) - 1) for d in range(n_splits.bit_length())]


def _values(rows: Tensor, is_q: bool) -> Tensor:
    return (rows if is_q else rewards(rows)) + 0.5


def prune(rows: Tensor, is_q: bool, pruning: float) -> tuple[Tensor, Tensor, Tensor]:
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
    """Return the best activity (g,) of groups by their values (n, g): Proposition 2."""
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


def traverse(rows: Tensor, is_q: bool, activity: Tensor) -> Tensor:
    """Return traversals (n, nodes), v cut to [0, a] (Proposition 1); a row with a NaN is NaN."""
    z = torch.minimum(_values(rows, is_q).clamp(min=0.0), activity)
    return torch.where(rows.isnan().any(dim=1, keepdim=True), torch.nan, z)


def backward(
    rows: Tensor,
    is_q: bool,
    activity: Tensor,
    group: Tensor,
    curvature: Tensor,
    slope_z: Tensor,
    slope_activity: Tensor,
) -> Tensor:
    """Return slopes by the rows from those by traversals (n, nodes) and activities: Section 3.2."""
    values = _values(rows, is_q)
    is_nan = rows.isnan().any(dim=1, keepdim=True)
    is_cut = (values > activity) & ~is_nan
    # Where z is cut to its node's activity, its slope is the activity's.
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
    """Return slopes by scores: every q passes its slope to the score that it is equal to."""
    m = scores.shape[1]
    q = rewards(scores)
    q[:, 0] = torch.inf
    result = torch.empty_like(scores)
    below = slope[:, m:]
    for first, last in reversed(_levels(m)):
        own = scores[:, first:last]
        both = torch.stack([-own, own], dim=2)
        # Of equal scores the one nearer to the root is the one.
        is_own = both < q[:, first:last, None]
        below = below.unflatten(1, (last - first, 2))
        by_own = torch.where(is_own, below, 0.0)
        result[:, first:last] = by_own[:, :, 1] - by_own[:, :, 0]
        below = slope[:, first:last] + torch.where(is_own, 0.0, below).sum(dim=2)
    return result
