"""Speed of a DGT forest compared with one tree: fitting on two cores, prediction on one.

    python -m benchmarks.speed.forest_fit --data FOLDER [--jobs 2] [--quick]

FOLDER holds ``ailerons.npz`` (`quality/parts.py`). A forest of 30 trees and one tree are trained
with the same settings and number of threads; one tree from one start uses only one of them. Times
are wall times, since the question is about threads, so the machine must be idle. Predictions use
one thread; their time per tree is compared with that of one tree.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.dgt_paper import TASKS
from benchmarks.quality.parts import parts
from benchmarks.record import Column, Table, verdict
from benchmarks.timing import Timing, in_turns, interleaved
from hardwood import DGTForestRegressor, DGTRegressor

N_TREES = 30
SETTINGS = {"max_depth": 6, "layers": 1}
MOST_TIMES = 20.0  # a forest's fit, in fits of one tree
COLUMNS = [
    Column("what", "what", width=28, words=True),
    Column("tree", "one tree", ".4f"),
    Column("forest", "forest", ".4f"),
    Column("ratio", "forest/tree", ".2f"),
    Column("per_tree", "per tree", ".3f"),
    Column("most", "at most", ".0f"),
    Column("verdict", ""),
]


def row(what: str, times: dict[str, Timing]) -> dict[str, Any]:
    ratio = times["forest"] / times["tree"]
    return {
        "what": what,
        "tree": times["tree"].best,
        "forest": times["forest"].best,
        "tree_median": times["tree"].median,
        "forest_median": times["forest"].median,
        "ratio": ratio,
        "per_tree": ratio / N_TREES,
    }


def fits(X: np.ndarray, y: np.ndarray, n_jobs: int) -> dict[str, Callable[..., Any]]:
    """Return functions that fit one tree from one start, and a forest, which has no restarts."""

    def tree(n_restarts: Any = 1, **options: Any) -> DGTRegressor:
        options = {**SETTINGS, "n_jobs": n_jobs, "random_state": 0, **options}
        return DGTRegressor(n_restarts=n_restarts, **options).fit(X, y)

    def forest(n_restarts: Any = 1, **options: Any) -> DGTForestRegressor:
        options = {**SETTINGS, "n_jobs": n_jobs, "random_state": 0, **options}
        return DGTForestRegressor(n_estimators=N_TREES, **options).fit(X, y)

    return {"tree": tree, "forest": forest}


def add_fits(report: Table, fit: dict[str, Callable[..., Any]], rounds: int, epochs: int) -> None:
    """Time fits with the same settings and epochs, and with the defaults.

    By default a tree is the best of several starts and stops early; a forest does neither. If both
    stop early, the ratio also depends on their numbers of epochs, so it has no floor.
    """
    asked = (
        (f"fit, {epochs} passes each", {"max_epochs": epochs, "early_stopping": False}, True),
        ("fit, both by default", {"n_restarts": "auto"}, True),
        ("fit, both stop early", {"early_stopping": True}, False),
    )
    for what, options, has_floor in asked:
        calls = {
            name: (lambda one=one, options=options: one(**options)) for name, one in fit.items()
        }
        figures = row(what, in_turns(calls, rounds=rounds, clock=time.perf_counter))
        if has_floor:
            figures |= {"most": MOST_TIMES, **verdict(figures["ratio"] <= MOST_TIMES)}
        report.add(**figures)


def add_predictions(report: Table, models: dict[str, Any], X: np.ndarray, rounds: int) -> None:
    """Time predictions of a large and of a small batch, one thread."""
    for n in (len(X), 256):
        rows = np.ascontiguousarray(X[:n])
        calls = {
            name: (lambda model=model, rows=rows: lambda: model.predict(rows))
            for name, model in models.items()
        }
        report.add(**row(f"predict {n:,} rows", interleaved(calls, rounds=rounds)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder with ailerons.npz")
    parser.add_argument("--jobs", type=int, default=2, help="threads of a fit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few epochs, once, not recorded")
    arguments = parser.parse_args()
    table = parts(arguments.data, TASKS["ailerons"], 0)
    X, y = table.X[table.learnable], table.y[table.learnable]
    rounds, epochs = (1, 20) if arguments.quick else (arguments.rounds, 100)
    report = Table(
        "forest_fit",
        f"{N_TREES} trees of height {SETTINGS['max_depth']} on ailerons ({len(X):,} rows, "
        f"{X.shape[1]} columns) against one: seconds, {arguments.jobs} threads to fit, one to "
        "predict.",
        COLUMNS,
        {"jobs": arguments.jobs, "rounds": rounds, "epochs": epochs, **SETTINGS},
        kept=not arguments.quick,
    )
    fit = fits(X, y, arguments.jobs)
    add_fits(report, fit, rounds, epochs)
    tree, forest = fit["tree"](max_epochs=epochs), fit["forest"](max_epochs=epochs)
    models = {"tree": tree.tree_, "forest": forest.forest_}
    add_predictions(report, models, table.X[table.test], 3 * rounds)
    passed = report.finish(
        f"Splits: {tree.tree_.n_splits} of the tree, {forest.forest_.n_splits / N_TREES:.0f} of a "
        "member on average: each has its own bootstrap sample, and splits that no row of it "
        "reaches are dropped."
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
