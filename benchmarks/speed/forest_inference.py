"""Speed of predictions of a forest, compared with its trees one after the other.

    python -m benchmarks.speed.forest_inference [--quick]

`ObliqueForest.predict_proba` of 30 perfect trees with dense splits is compared with 30 calls of
`ObliqueTree.apply`, which find leaves without reading their values, and with 30 calls of
`predict_proba` and their sum. Floor: at depth 6 with two outputs, the forest takes at most the time
of the calls of `apply`.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np

from benchmarks import workloads
from benchmarks.record import Column, Table, asks_quick, verdict
from benchmarks.timing import interleaved, one_thread
from hardwood import ObliqueForest

N_TREES = 30
WIDTHS = (8, 40, 100)
HEIGHTS = (4, 6, 10)
MOST_OF_APPLY = 1.0  # at height 6
COLUMNS = [
    Column("d", "d"),
    Column("h", "h"),
    Column("dtype", "dtype", width=8),
    Column("apply_ms", "30 x apply, ms", ".1f"),
    Column("trees_ms", "30 x predict_proba", ".1f"),
    Column("forest_ms", "forest", ".1f"),
    Column("part", "forest/apply", ".2f"),
    Column("trees_part", "forest/predict_proba", ".2f"),
    Column("most", "at most", ".1f"),
    Column("verdict", ""),
]


def forest_of(d: int, h: int) -> ObliqueForest:
    return ObliqueForest([workloads.perfect_tree(d, h, seed=seed) for seed in range(N_TREES)])


def measure(forest: ObliqueForest, X: np.ndarray, rounds: int) -> dict[str, float]:
    trees = forest.trees
    together = sum(tree.predict_proba(X) for tree in trees) / N_TREES
    if not np.array_equal(forest.predict_proba(X), together):
        raise AssertionError("the forest does not predict as its trees do")
    times = interleaved(
        {
            "apply": lambda: lambda: [tree.apply(X) for tree in trees],
            "trees": lambda: lambda: sum(tree.predict_proba(X) for tree in trees) / N_TREES,
            "forest": lambda: lambda: forest.predict_proba(X),
        },
        rounds=rounds,
        seconds=0.2,
    )
    return {
        **{f"{name}_ms": 1e3 * timing.best for name, timing in times.items()},
        "medians_ms": {name: 1e3 * timing.median for name, timing in times.items()},
        "part": times["forest"] / times["apply"],
        "trees_part": times["forest"] / times["trees"],
    }


def main() -> int:
    one_thread()
    quick = asks_quick(__doc__, "a tenth of the rows")
    n, rounds = (10_000, 2) if quick else (100_000, 5)
    table = Table(
        "forest_inference",
        f"Prediction of a forest of {N_TREES} trees with two outputs, {n:,} rows, one thread.",
        COLUMNS,
        {"rounds": rounds, "n": n, "n_trees": N_TREES},
        kept=not quick,
    )
    for d, h in itertools.product(WIDTHS, HEIGHTS):
        forest = forest_of(d, h)
        for dtype in (np.float32, np.float64):
            X = workloads.rows(n, d).astype(dtype, copy=False)
            figures = measure(forest, X, rounds)
            floor = (
                {"most": MOST_OF_APPLY, **verdict(figures["part"] <= MOST_OF_APPLY)}
                if h == 6
                else {}
            )
            table.add(d=d, h=h, dtype=np.dtype(dtype).name, **figures, **floor)
    return 0 if table.finish() else 1


if __name__ == "__main__":
    sys.exit(main())
