"""Speed of a DGT-Forest against one tree: fitting on two cores, and prediction on one.

    python -m benchmarks.speed.forest_fit --data FOLDER [--jobs 2] [--quick]

FOLDER holds ``ailerons.npz`` (`quality/parts.py`). A forest of 30 trees and one tree are learned
with the same settings and the same number of threads; one tree cannot use more than one of them.
The clock is the wall's, since threads are the point. Prediction has one thread, and its time per
tree is set beside that of one tree.
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
SETTINGS = {"max_depth": 6, "layers": 1, "restarts": 1}
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


def same_passes(fit: Callable[..., Any], epochs: int) -> Callable[[], Any]:
    """Return a fit that takes all its passes, so that early stopping cannot flatter either."""
    return lambda: fit(max_epochs=epochs, early_stopping=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder with ailerons.npz")
    parser.add_argument("--jobs", type=int, default=2, help="threads of a fit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="5 passes, once, not recorded")
    arguments = parser.parse_args()
    table = parts(arguments.data, TASKS["ailerons"], 0)
    X, y = table.X[table.learnable], table.y[table.learnable]
    rounds = 1 if arguments.quick else arguments.rounds
    epochs = 5 if arguments.quick else 100

    def tree(**options: Any) -> DGTRegressor:
        options = {**SETTINGS, **options}
        return DGTRegressor(n_jobs=arguments.jobs, random_state=0, **options).fit(X, y)

    def forest(**options: Any) -> DGTForestRegressor:
        model = DGTForestRegressor(
            n_estimators=N_TREES, n_jobs=arguments.jobs, random_state=0, **{**SETTINGS, **options}
        )
        return model.fit(X, y)

    report = Table(
        "forest_fit",
        f"{N_TREES} trees of height {SETTINGS['max_depth']} on ailerons ({len(X):,} rows, "
        f"{X.shape[1]} columns) against one: seconds, {arguments.jobs} threads to fit, one to "
        "predict.",
        COLUMNS,
        {"jobs": arguments.jobs, "rounds": rounds, "epochs": epochs, **SETTINGS},
        kept=not arguments.quick,
    )
    fits = {
        f"fit, {epochs} passes": {
            name: same_passes(fit, epochs) for name, fit in (("tree", tree), ("forest", forest))
        },
        "fit, as by default": {"tree": tree, "forest": forest},
    }
    for what, calls in fits.items():
        if arguments.quick and "default" in what:
            continue
        figures = row(what, in_turns(calls, rounds=rounds, clock=time.perf_counter))
        report.add(**figures, most=MOST_TIMES, **verdict(figures["ratio"] <= MOST_TIMES))
    models = {"tree": tree(max_epochs=epochs).tree_, "forest": forest(max_epochs=epochs).forest_}
    for n in (len(table.test), 256):
        rows = np.ascontiguousarray(table.X[table.test][:n])
        calls = {
            name: (lambda model=model, rows=rows: lambda: model.predict(rows))
            for name, model in models.items()
        }
        report.add(**row(f"predict {n:,} rows", interleaved(calls, rounds=3 * rounds)))
    passed = report.finish(
        "Every member has its own bootstrap sample, and leaves that no row of it reaches are "
        "dropped: trees of a forest are not the same size as the one tree."
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
