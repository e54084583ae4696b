"""Time to find the counterfactuals of 1,000 rows of a tree with 255 leaves.

    python -m benchmarks.speed.counterfactual [--quick]

Dense random splits, two classes, one thread. The wanted prediction is the other class; in one case
it is one class of 20, which about 13 leaves predict. The comparison is SciPy:
`minimize(method="SLSQP")` (l2) or `linprog` (l1) for every leaf of the other class, for a few rows,
whose distances must agree.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize

from benchmarks import workloads
from benchmarks.record import Column, Table, asks_quick
from benchmarks.timing import in_turns, one_thread
from hardwood import ObliqueTree
from hardwood.explain import Counterfactuals, counterfactual

N_ROWS, N_PEER_ROWS, H = 1_000, 3, 8
WIDTHS = (10, 54)
MARGIN = 1e-6

COLUMNS = [
    Column("d", "features"),
    Column("norm", "norm", words=True),
    Column("limits", "limits", width=36, words=True),
    Column("seconds", "s for 1,000 rows", ".3f"),
    Column("us", "us per row", ".0f"),
    Column("found", "found", ".1%"),
    Column("exact", "exact", ".1%"),
    Column("features_changed", "features changed", ".2f"),
    Column("peer_us", "SciPy, us per row", ".0f"),
    Column("speedup", "times SciPy's speed", ".0f"),
]


def tree_255(d: int, n_classes: int = 2) -> ObliqueTree:
    """Return a perfect tree of depth 8 whose last split is a leaf."""
    tree = workloads.perfect_tree(d, H, n_classes=n_classes)
    children = tree.children[:-1].copy()
    children[children == tree.n_splits - 1] = -1 - (tree.n_leaves - 2)
    return ObliqueTree(
        tree.weights[:-1],
        tree.bias[:-1],
        children,
        tree.values[:-1],
        schema=tree.schema,
        task="classification",
        classes=tree.classes,
    )


def half_spaces(tree: ObliqueTree, leaf: int) -> tuple[np.ndarray, np.ndarray]:
    """Return G and h of the rows of a leaf: G x >= h, with the margin."""
    m = tree.n_splits
    parents = {
        int(c): (i, side) for i, pair in enumerate(tree.children) for side, c in enumerate(pair)
    }
    node, G, h = -1 - leaf, [], []
    while node in parents:
        i, side = parents[node]
        sign = 1.0 if side else -1.0
        size = np.linalg.norm(tree.weights[i])
        G.append(sign * tree.weights[i] / size)
        h.append(MARGIN - sign * tree.bias[i] / size)
        node = i
    assert len(G) <= H <= m
    return np.array(G), np.array(h)


def scipy_distance(tree: ObliqueTree, x: np.ndarray, wanted: int, norm: str) -> float:
    """Return the least distance over all leaves of a class."""
    best = np.inf
    for leaf in np.flatnonzero(tree.values.argmax(axis=1) == wanted):
        G, h = half_spaces(tree, int(leaf))
        if norm == "l2":
            found = minimize(
                lambda u: 0.5 * u @ u,
                np.zeros(x.size),
                jac=lambda u: u,
                method="SLSQP",
                constraints={
                    "type": "ineq",
                    "fun": lambda u, G=G, h=h: G @ (x + u) - h,
                    "jac": lambda u, G=G: G,
                },
                options={"maxiter": 300},
            )
            distance = np.sqrt(2 * found.fun) if found.success else np.inf
        else:
            found = linprog(
                np.ones(2 * x.size), A_ub=-np.hstack([G, -G]), b_ub=G @ x - h, bounds=(0, None)
            )
            distance = found.fun if found.status == 0 else np.inf
        best = min(best, float(distance))
    return best


def peer(tree: ObliqueTree, X: np.ndarray, results: Counterfactuals, norm: str) -> float:
    """Return the seconds per row of SciPy, whose distances must be ours."""
    answers = tree.predict(X)
    start = time.process_time()
    distances = [scipy_distance(tree, x, 1 - y, norm) for x, y in zip(X, answers, strict=True)]
    seconds = (time.process_time() - start) / len(X)
    np.testing.assert_allclose(distances, results.distance[: len(X)], rtol=1e-4, atol=1e-5)
    return seconds


def questions(d: int) -> Iterator[tuple[str, str, ObliqueTree, np.ndarray, dict[str, Any]]]:
    """Yield norm, words, tree, rows and limits of every question."""
    two, twenty = tree_255(d), tree_255(d, 20)
    X = workloads.rows(N_ROWS, d).astype(np.float64)
    inside, whole = np.clip(X, -3, 3), X.copy()
    whole[:, :4] = np.round(2 * whole[:, :4])
    limits = {"bounds": dict.fromkeys(range(d), (-3.0, 3.0)), "fixed": [0, 1]}
    for norm in ("l2", "l1", "l0"):
        yield norm, "none", two, X, {}
    for norm in ("l2", "l0"):
        yield norm, "2 fixed, all between -3 and 3", two, inside, limits
    yield "l2", "4 integers", two, whole, {"integers": [0, 1, 2, 3]}
    for norm in ("l2", "l0"):
        yield norm, "none; one class of 20", twenty, X, {"wanted": 0}


def measure(table: Table, d: int, rounds: int) -> None:
    for norm, words, tree, X, limits in questions(d):
        search = partial(counterfactual, tree, X, norm=norm, margin=MARGIN, **limits)
        results = search()
        timing = in_turns({"ours": search}, rounds=rounds)["ours"]
        row: dict[str, Any] = {
            "d": d,
            "norm": norm,
            "limits": words,
            "seconds": timing.best,
            "median_seconds": timing.median,
            "us": 1e6 * timing.best / N_ROWS,
            "found": results.found.mean(),
            "exact": results.is_exact.mean(),
            "features_changed": results.has_changed[results.distance > 0].sum(axis=1).mean(),
        }
        if words == "none" and norm != "l0":
            row["peer_us"] = 1e6 * peer(tree, X[:N_PEER_ROWS], results, norm)
            row["speedup"] = row["peer_us"] / row["us"]
        table.add(**row)


def main() -> int:
    one_thread()
    quick = asks_quick(__doc__, "one round")
    rounds = 1 if quick else 5
    table = Table(
        "counterfactual",
        f"Counterfactuals of {N_ROWS:,} rows of a tree with 255 leaves, one thread.",
        COLUMNS,
        {"rounds": rounds, "rows": N_ROWS, "peer_rows": N_PEER_ROWS},
        kept=not quick,
    )
    for d in WIDTHS:
        measure(table, d, rounds)
    return 0 if table.finish("SciPy: every leaf of the other class, one after the other.") else 1


if __name__ == "__main__":
    sys.exit(main())
