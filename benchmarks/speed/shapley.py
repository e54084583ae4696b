"""Time of Shapley values compared with shap's permutation explainer, at equal error.

    python -m benchmarks.speed.shapley [--quick]

Both explain the probability of one class, for the same rows of the same tree, with the same 100
background rows. shap calls `ObliqueTree.predict_proba` with its default number of orders. Where our
values are sampled, the number of orders is the smallest whose error is not above shap's. Errors are
root mean squares over all values of some rows, compared with exact values or with a much longer run
of ours. Floor: 20 times as fast on the dense tree of depth 8 with 50 features.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import workloads
from benchmarks.record import Column, Table, asks_quick, verdict
from benchmarks.timing import in_turns, one_thread
from hardwood import ObliqueTree
from hardwood.explain import shapley

HEIGHT = 8
N_BACKGROUND = 100
FLOOR = 20.0  # times as fast as shap, for dense splits of 50 features
ORDERS = (2, 3, 4, 6, 8, 12, 16)  # orders per background row to choose from
LONG = 600  # orders per background row of the reference
# Features, and terms per split; None for all.
TREES = ((50, None), (50, 3), (50, 1), (10, None))
COLUMNS = [
    Column("d", "d"),
    Column("terms", "terms"),
    Column("way", "ours", words=True),
    Column("ours_s", "ours, s", ".2f"),
    Column("shap_s", "shap, s", ".1f"),
    Column("ours_error", "our error", ".5f"),
    Column("shap_error", "shap's", ".5f"),
    Column("size", "of values", ".4f"),
    Column("faster", "shap/ours", ".0f"),
    Column("floor", "at least", ".0f"),
    Column("verdict", ""),
]

Explain = Callable[[np.ndarray], np.ndarray]


def tree_of(d: int, terms: int | None) -> ObliqueTree:
    """Return a perfect tree; its splits keep some of their terms, drawn at random."""
    tree = workloads.perfect_tree(d, HEIGHT)
    if terms is None:
        return tree
    rng = np.random.default_rng([d, terms])
    ranks = rng.random(tree.weights.shape).argsort(axis=1).argsort(axis=1)
    return tree.replace(weights=np.where(ranks < terms, tree.weights, 0.0))


def shap_of(tree: ObliqueTree, background: np.ndarray) -> Explain:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # shap's own warnings about newer versions of its dependencies
        import shap
    masker = shap.maskers.Independent(background, max_samples=len(background))

    def explain(X: np.ndarray) -> np.ndarray:
        explainer = shap.PermutationExplainer(
            lambda rows: tree.predict_proba(rows)[:, 1], masker, seed=0
        )
        values: np.ndarray = explainer(X, max_evals="auto", silent=True).values
        return values

    return explain


def ours_of(tree: ObliqueTree, background: np.ndarray, **options: Any) -> Explain:
    return lambda X: shapley(tree, X, background, output=1, **options).values[:, :, 0]


def error(values: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(((values - truth) ** 2).mean()))


def measure(d: int, terms: int | None, n: int, n_scored: int, rounds: int) -> dict[str, Any]:
    tree, X = tree_of(d, terms), workloads.rows(n, d)
    background, scored = workloads.rows(N_BACKGROUND, d, seed=1), X[:n_scored]
    is_exact = bool(shapley(tree, scored, background).is_exact.all())
    truth_options = {"exact": True} if is_exact else {"exact": False, "n_permutations": LONG}
    truth = ours_of(tree, background, random_state=1, **truth_options)(scored)
    peer = shap_of(tree, background)
    peer_error = error(peer(scored), truth)  # also warms it up
    options: dict[str, Any] = {}
    way = "exact"
    if not is_exact:
        for n_permutations in ORDERS:
            options = {"n_permutations": n_permutations}
            if error(ours_of(tree, background, **options)(scored), truth) <= peer_error:
                break
        way = f"{options['n_permutations']} orders"
    ours = ours_of(tree, background, **options)
    times = in_turns({"ours": lambda: ours(X), "shap": lambda: peer(X)}, rounds=rounds)
    return {
        "way": way,
        "ours_s": times["ours"].best,
        "shap_s": times["shap"].best,
        "medians_s": {name: timing.median for name, timing in times.items()},
        "ours_error": error(ours(scored), truth),
        "shap_error": peer_error,
        "size": float(np.sqrt((truth**2).mean())),
        "faster": times["shap"] / times["ours"],
    }


def main() -> int:
    one_thread()
    quick = asks_quick(__doc__, "fewer rows")
    n, n_scored, rounds = (40, 10, 1) if quick else (1000, 60, 2)
    table = Table(
        "shapley",
        f"Shapley values of {n:,} rows against {N_BACKGROUND} background rows, trees of depth "
        f"{HEIGHT}, one thread.",
        COLUMNS,
        {"n": n, "n_scored": n_scored, "rounds": rounds, "reference_orders": LONG},
        kept=not quick,
    )
    for d, terms in TREES:
        figures = measure(d, terms, n, n_scored, rounds)
        has_floor = (d, terms) == (50, None)
        no_worse = figures["ours_error"] <= figures["shap_error"]
        floor = (
            {"floor": FLOOR, **verdict(no_worse and figures["faster"] >= FLOOR)}
            if has_floor
            else {}
        )
        table.add(d=d, terms=terms or d, **figures, **floor)
    return 0 if table.finish() else 1


if __name__ == "__main__":
    sys.exit(main())
