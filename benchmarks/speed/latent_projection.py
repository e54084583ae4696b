"""Figure 5 of the latent trees paper: time of the pruned-traversal program, for three solvers.

    python -m benchmarks.speed.latent_projection [--quick]

Ours (traversals, activities, and the gradient of both) is compared with two others:

``sorted``: the paper's algorithm for the same program, in NumPy. It sorts every node's values once
(NumPy sorts with vector instructions), finds the best activity from their running sums, and pools
violators from the highest node down by merging the groups' sorted values. It computes values only,
so ours is then timed without a gradient too, from the same q.

``generic``: cvxpylayers, a differentiable solver for any convex program, values and gradient.

Rewards q are the paper's (scores of random splits) or drawn at random for every node, which pools
about half of them. One thread each, warmed up, in turns, best of several. Writes
``docs/images/latent_projection.png``.
"""

from __future__ import annotations

import heapq
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.record import Column, Table, asks_quick, verdict
from benchmarks.timing import Call, in_turns, one_thread
from hardwood import _native

FLOORS = {"sorted": 4.0, "generic": 100.0}
FLOOR_FROM = 100_000  # values n |T|; with fewer there is no floor against the sorted algorithm
SIZES = [(n, depth) for depth in (3, 5, 7, 9) for n in (128, 1024, 8192) if n << depth < 3_000_000]
GENERIC = [(n, 3) for n in (4, 16, 64)]
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "latent_projection.png"
COLUMNS = [
    Column("kind", "q", width=8, words=True),
    Column("n", "rows"),
    Column("depth", "depth"),
    Column("groups", "groups"),
    Column("ours", "ours, ms", ".3f"),
    Column("sorted", "sorted, ms", ".2f"),
    Column("over_sorted", "sorted / ours", ".1f"),
    Column("both", "ours with gradient, ms", ".3f"),
    Column("generic", "generic, ms", ".1f"),
    Column("over_generic", "generic / ours", ",.0f"),
    Column("verdict", ""),
]


def rewards(kind: str, n: int, depth: int) -> np.ndarray:
    """Return q (n, nodes), float32."""
    rng = np.random.default_rng(0)
    n_splits = 2**depth - 1
    if kind == "pooled":
        return (0.4 * rng.standard_normal((n, 2 * n_splits + 1)) - 0.3).astype(np.float32)
    scores = rng.standard_normal((n, n_splits))
    q = np.empty((n, 2 * n_splits + 1), np.float32)
    q[:, 0] = np.inf
    for t in range(n_splits):
        q[:, 2 * t + 1] = np.minimum(q[:, t], -scores[:, t])
        q[:, 2 * t + 2] = np.minimum(q[:, t], scores[:, t])
    q[:, 0] = 1
    return q


# --- ours --------------------------------------------------------------------------------------


class Ours:
    """The engine, with memory for its results allocated as by torch."""

    def __init__(self, q: np.ndarray, pruning: float) -> None:
        n_nodes = q.shape[1]
        self.q, self.pruning = q, pruning
        self.found = (
            np.empty(n_nodes, q.dtype),
            np.empty(n_nodes, np.int32),
            np.empty(n_nodes),
        )
        self.slopes = np.ones_like(q), np.ones(n_nodes, q.dtype)

    def values(self) -> np.ndarray:
        z = np.empty_like(self.q)
        _native.latent_prune(self.q, True, self.pruning, *self.found)
        _native.latent_traverse(self.q, True, self.found[0], z, 1)
        return z

    def with_gradient(self) -> np.ndarray:
        self.values()
        slope = np.empty_like(self.q)
        _native.latent_backward(self.q, True, *self.found, *self.slopes, slope, 1)
        return slope


# --- the paper's way ---------------------------------------------------------------------------


def best_activity(ordered: np.ndarray, price: float) -> np.ndarray:
    """Return the activity of Proposition 2 for rows of values in decreasing order, (..., m)."""
    best = np.cumsum(ordered, axis=-1, dtype=np.float64)
    best /= price + np.arange(1, ordered.shape[-1] + 1)
    ends = best[..., :-1] > ordered[..., 1:]
    last = np.where(ends.any(axis=-1), ends.argmax(axis=-1), ordered.shape[-1] - 1)
    return np.clip(np.take_along_axis(best, last[..., None], -1)[..., 0], 0, 1)


def sorted_program(q: np.ndarray, pruning: float) -> tuple[np.ndarray, np.ndarray]:
    """Return traversals and activities by Algorithm 1."""
    v = q + np.float32(0.5)
    ordered = np.sort(v.T, axis=1)[:, ::-1]
    a = best_activity(ordered, pruning)
    values, members = list(ordered), [[t] for t in range(len(a))]
    group = list(range(len(a)))
    queue = [(-a[t], t) for t in range(1, len(a)) if a[t] > a[(t - 1) // 2]]
    heapq.heapify(queue)
    while queue:
        activity, top = heapq.heappop(queue)
        if group[top] != top or a[top] != -activity:
            continue
        above = group[(top - 1) // 2]
        if not a[top] > a[above]:
            continue
        values[above] = np.sort(np.concatenate([values[top], values[above]]))[::-1]
        members[above] += members[top]
        for t in members[top]:
            group[t] = above
        found = float(best_activity(values[above], pruning * len(members[above])))
        for t in members[above]:
            a[t] = found
            for child in (2 * t + 1, 2 * t + 2):
                if child < len(a) and group[child] == child and a[child] > found:
                    heapq.heappush(queue, (-a[child], child))
        if above and found > a[(above - 1) // 2]:
            heapq.heappush(queue, (-found, above))
    return np.clip(v, 0, a), a


# --- a generic solver --------------------------------------------------------------------------


def generic_program(q: np.ndarray, pruning: float) -> Call:
    """Return values and gradient of Eq. (3) by cvxpylayers."""
    import cvxpy as cp
    from cvxpylayers.torch import CvxpyLayer

    n, n_nodes = q.shape
    z, a, given = cp.Variable((n, n_nodes)), cp.Variable(n_nodes), cp.Parameter((n, n_nodes))
    objective = cp.Minimize(pruning / 2 * cp.sum_squares(a) + 0.5 * cp.sum_squares(z - given - 0.5))
    parents = (np.arange(1, n_nodes) - 1) // 2
    rules = [a[1:] <= a[parents], z >= 0, a >= 0, a <= 1]
    rules += [z <= np.ones((n, 1)) @ cp.reshape(a, (1, n_nodes), order="C"), z <= 1]
    layer = CvxpyLayer(cp.Problem(objective, rules), parameters=[given], variables=[z, a])
    tensor = torch.from_numpy(q.astype(np.float64)).requires_grad_()

    def call() -> tuple[torch.Tensor, torch.Tensor]:
        found = layer(tensor)
        sum(part.sum() for part in found).backward()
        return found

    return call


# --- the table ---------------------------------------------------------------------------------


def check(expected: Any, found: Any, tolerance: float) -> None:
    """Raise an error if the implementations disagree."""
    difference = float(np.abs(np.asarray(expected) - np.asarray(found)).max())
    if difference > tolerance:
        raise AssertionError(f"results differ by {difference}")


def measure(table: Table, kind: str, n: int, depth: int, *, turns: int) -> None:
    q = rewards(kind, n, depth)
    pruning = n / 8
    ours = Ours(q, pruning)
    is_generic = (n, depth) in GENERIC
    check(sorted_program(q, pruning)[0], ours.values(), 1e-5)
    calls = {"ours": ours.values, "sorted": lambda: sorted_program(q, pruning)}
    if is_generic:
        generic = generic_program(q, pruning)
        check(generic()[0].detach(), ours.values(), 1e-3)
        calls |= {"both": ours.with_gradient, "generic": generic}
    times = in_turns(calls, rounds=turns)
    row: dict[str, Any] = {name: 1e3 * timing.best for name, timing in times.items()}
    row["over_sorted"] = row["sorted"] / row["ours"]
    kept = q.size < FLOOR_FROM or row["over_sorted"] >= FLOORS["sorted"]
    if is_generic:
        row["over_generic"] = row["generic"] / row["both"]
        kept &= row["over_generic"] >= FLOORS["generic"]
    has_floor = is_generic or q.size >= FLOOR_FROM
    groups = len(np.unique(ours.found[1]))
    table.add(
        kind=kind, n=n, depth=depth, groups=groups, **row, **(verdict(kept) if has_floor else {})
    )


def draw(rows: list[dict[str, Any]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    chosen = sorted(
        (row for row in rows if row["depth"] == 3 and row["kind"] == "paper"),
        key=lambda row: row["n"],
    )
    figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
    for name, label in (
        ("generic", "cvxpylayers, with gradient"),
        ("sorted", "sorted, NumPy"),
        ("ours", "hardwood"),
    ):
        points = [(row["n"], row[name]) for row in chosen if name in row]
        axes.plot(*zip(*points, strict=True), marker="o", label=label)
    axes.set(xscale="log", yscale="log", xlabel="rows n", ylabel="milliseconds")
    axes.set_title("Pruned traversals of a tree of depth 3")
    axes.legend(frameon=False)
    figure.savefig(PICTURE, dpi=150)


def main() -> int:
    one_thread()
    is_quick = asks_quick(__doc__, "few sizes, one turn")
    table = Table(
        "latent_projection",
        "The pruned-traversal program, lambda = n/8, float32, one thread; floors: "
        f"{FLOORS['sorted']:.0f} times the sorted way from {FLOOR_FROM:,} values on, "
        f"{FLOORS['generic']:.0f} times the generic solver.",
        COLUMNS,
        kept=not is_quick,
    )
    sizes = GENERIC[:1] + SIZES[:2] if is_quick else GENERIC + SIZES
    for kind in ("paper", "pooled"):
        for n, depth in sizes:
            measure(table, kind, n, depth, turns=1 if is_quick else 5)
    if not is_quick:
        draw(table.rows)
    return int(not table.finish())


if __name__ == "__main__":
    sys.exit(main())
