"""Latent trees [LT21] as the paper writes them down: slow, and meant to be read beside it.

Zantedeschi, Kusner, Niculae. Learning Binary Decision Trees by Argmin Differentiation. ICML 2021.

Nodes are in heap order: the children of t are 2t + 1 and 2t + 2, its parent is (t - 1) // 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Solution(NamedTuple):
    """What the program T_lambda (Eq. 3) returns, and the groups it was found by."""

    z: np.ndarray
    a: np.ndarray
    groups: list[list[int]]


def rewards(scores: np.ndarray) -> np.ndarray:
    """Return q (n, nodes) from scores of splits (n, splits): Eq. (1), with q_root = 1."""
    n, n_splits = scores.shape
    q = np.empty((n, 2 * n_splits + 1))
    q[:, 0] = np.inf
    for t in range(n_splits):
        q[:, 2 * t + 1] = np.minimum(q[:, t], -scores[:, t])
        q[:, 2 * t + 2] = np.minimum(q[:, t], scores[:, t])
    q[:, 0] = 1.0
    return q


def program(q: np.ndarray, pruning: float) -> Solution:
    """Solve Eq. (3) for q (n, nodes) by Algorithm 1."""
    v = q + 0.5
    n_nodes = q.shape[1]
    groups = [[t] for t in range(n_nodes)]
    a = np.array([_activity(v[:, group], pruning) for group in groups])
    while True:
        violators = [t for t in range(1, n_nodes) if a[t] > a[(t - 1) // 2]]
        if not violators:
            break
        worst = max(violators, key=lambda t: a[t])
        merged = _group_of(groups, worst) + _group_of(groups, (worst - 1) // 2)
        groups = [group for group in groups if group[0] not in merged] + [sorted(merged)]
        a[merged] = _activity(v[:, merged], pruning)
    return Solution(np.clip(v, 0.0, a), a, groups)


def gradient(q: np.ndarray, pruning: float, dz: np.ndarray, da: np.ndarray) -> np.ndarray:
    """Return slopes by q (n, nodes) from those by z (n, nodes) and a (nodes,): Section 3.2."""
    v = q + 0.5
    _, a, groups = program(q, pruning)
    is_cut = v > a
    dq = np.where((v > 0) & ~is_cut, dz, 0.0)
    by_activity = da + np.where(is_cut, dz, 0.0).sum(axis=0)
    for group in groups:
        if 0 < a[group[0]] < 1:
            support = v[:, group] > a[group]
            share = by_activity[group].sum() / (pruning * len(group) + support.sum())
            dq[:, group] += np.where(support, share, 0.0)
    return dq


def gradient_by_scores(scores: np.ndarray, dq: np.ndarray) -> np.ndarray:
    """Return slopes by scores (n, splits): q passes its slope to the score it is equal to."""
    n_splits = scores.shape[1]
    ds = np.zeros_like(scores, dtype=np.float64)
    for i, row in enumerate(scores):
        for leaf in range(1, 2 * n_splits + 1):
            path, t = [], leaf
            while t > 0:
                path.append(((t - 1) // 2, 1.0 if t % 2 == 0 else -1.0))
                t = (t - 1) // 2
            # From the root down: the first of equal scores is the one.
            split, sign = min(reversed(path), key=lambda step: step[1] * row[step[0]])
            ds[i, split] += sign * dq[i, leaf]
    return ds


def _activity(v: np.ndarray, pruning: float) -> float:
    """Return the best activity of a group: Proposition 2."""
    ordered = np.sort(v, axis=None)[::-1]
    best = np.cumsum(ordered) / (pruning * v.shape[1] + np.arange(1, ordered.size + 1))
    # a(k) > v_(k+1), for the smallest such k; without one, all values are in the support.
    ends = np.append(best[:-1] > ordered[1:], True)
    return float(np.clip(best[np.argmax(ends)], 0.0, 1.0))


def _group_of(groups: list[list[int]], t: int) -> list[int]:
    return next(group for group in groups if t in group)
