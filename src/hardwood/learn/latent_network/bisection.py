"""A tree that divides the rows of each node by 2-means: a start for learners without a target.

Bisecting k-means (Steinbach, Karypis, Kumar. A Comparison of Document Clustering Techniques. 2000),
level by level. The split is the plane halfway between the two centers.
"""

from __future__ import annotations

import numpy as np

_N_STARTS = 3  # of 2-means at one node; the tightest pair of clusters is kept
_MAX_STEPS = 50
_MAX_ROWS = 50_000  # used for the start of a tree


def bisect(
    rows: np.ndarray, weight: np.ndarray, depth: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Divide rows recursively by 2-means, down to a depth.

    Parameters
    ----------
    rows
        (n, c) float32, in standard units. Of more than 50,000 rows, 50,000 are drawn at random.
    weight
        (n,) positive weights of the rows.
    depth
        Depth of the tree.
    seed
        Seed of all random choices.

    Returns
    -------
    weights, bias
        (2^depth - 1, c) and (2^depth - 1,) float32, in heap order; rows go right where the score
        is >= 0, which is -1/2 at the left center and 1/2 at the right one. A node whose rows are
        all equal keeps them together, with score 1.
    """
    rng = np.random.default_rng(seed)
    if len(rows) > _MAX_ROWS:
        drawn = np.sort(rng.choice(len(rows), _MAX_ROWS, replace=False))
        rows, weight = rows[drawn], weight[drawn]
    n_splits = 2**depth - 1
    weights = np.zeros((n_splits, rows.shape[1]), dtype=np.float32)
    bias = np.ones(n_splits, dtype=np.float32)
    at_node = {0: np.arange(len(rows))}
    for t in range(n_splits):
        here = at_node.pop(t)
        own = rows[here]
        centers = _two_means(own, weight[here], rng)
        if centers is not None:
            weights[t], bias[t] = _plane_between(*centers)
        is_right = own @ weights[t] + bias[t] >= 0
        at_node[2 * t + 1], at_node[2 * t + 2] = here[~is_right], here[is_right]
    return weights, bias


def _two_means(
    rows: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the two centers of rows, or None where there are no two different rows."""
    if len(rows) < 2 or (rows == rows[0]).all():
        return None
    best, centers = -np.inf, None
    middle = _mean(rows, weight)
    for _ in range(_N_STARTS):
        pair, tightness = _lloyd(rows, weight, middle, rng)
        if tightness > best:
            best, centers = tightness, pair
    return centers


def _lloyd(
    rows: np.ndarray, weight: np.ndarray, middle: np.ndarray, rng: np.random.Generator
) -> tuple[tuple[np.ndarray, np.ndarray], float]:
    """Run 2-means from one k-means++ start: centers, and how much variation lies between them."""
    first = rows[_drawn(weight, rng)]
    distance = ((rows - first) ** 2).sum(axis=1)
    pair = (first.astype(np.float64), rows[_drawn(weight * distance, rng)].astype(np.float64))
    side = None
    for _ in range(_MAX_STEPS):
        w, b = _plane_between(*pair)
        found = rows @ w + b >= 0
        # Halves that rounding empties, or that stay as they were, are the end.
        if found.all() or not found.any() or (side is not None and (found == side).all()):
            break
        side = found
        pair = (_mean(rows[~side], weight[~side]), _mean(rows[side], weight[side]))
    if side is None:
        return pair, -1.0
    between = (
        weight[part].sum() * ((center - middle) ** 2).sum()
        for part, center in zip((~side, side), pair, strict=True)
    )
    return pair, float(sum(between))


def _plane_between(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """Return the split whose score is -1/2 at one center and 1/2 at the other."""
    apart = right - left
    w = apart / (apart @ apart)
    return w.astype(np.float32), np.float32(-w @ (left + right) / 2)


def _mean(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    sums = (rows * weight[:, None]).sum(axis=0, dtype=np.float64)
    return np.asarray(sums / weight.sum(dtype=np.float64))


def _drawn(mass: np.ndarray, rng: np.random.Generator) -> int:
    """Draw one row, with a probability that is proportional to its mass."""
    upto = np.cumsum(mass, dtype=np.float64)
    return int(min(np.searchsorted(upto, rng.random() * upto[-1], "right"), len(mass) - 1))
