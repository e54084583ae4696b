"""Readable splits of real tables: terms and digits before and after, and rows whose leaf changes.

    python -m benchmarks.quality.readable --data FOLDER [--names a,b] [--quick]

FOLDER holds ``NAME.npz`` (`parts.py`). A tree of depth 4 is trained on the training and validation
rows of a table, with defaults and with a penalty on its terms. `ObliqueTree.readable` then shortens
it for these rows; none of them, 1 % or 5 % may reach another leaf. The test rows, which it has not
seen, show how many other rows reach another leaf.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.dgt_paper import TASKS, Task
from benchmarks.quality.parts import Parts, parts
from benchmarks.quality.trials import some_of
from benchmarks.record import Column, Table, verdict
from benchmarks.timing import one_thread
from hardwood import DGTClassifier, DGTRegressor

NAMES = ("segment", "satimage", "cpu_act")
LEARNERS: dict[str, dict[str, Any]] = {"defaults": {}, "l1 = 1e-4": {"l1": 1e-4}}
TOLERANCES = (0.0, 0.01, 0.05)
HEIGHT = 4
COLUMNS = [
    Column("name", "data", width=10, words=True),
    Column("learner", "learner", width=10, words=True),
    Column("splits", "splits"),
    Column("tolerance", "may move", ".0%"),
    Column("terms_before", "terms/split", ".1f"),
    Column("terms_after", "after", ".1f"),
    Column("digits", "digits, mean", ".1f"),
    Column("most_digits", "most"),
    Column("same_train", "same, training", ".2%"),
    Column("same_test", "same, test", ".2%"),
    Column("measure", "measure", width=8, words=True),
    Column("score_before", "before", ".4f"),
    Column("score_after", "after", ".4f"),
    Column("seconds", "s", ".1f"),
    Column("verdict", ""),
]


def measure(task: Task, table: Parts, learner: str) -> Iterator[dict[str, Any]]:
    """Train one tree, and yield the result for each tolerance."""
    kind = DGTClassifier if task.has_classes else DGTRegressor
    X, y = table.X[table.learnable], table.y[table.learnable]
    X_test, y_test = table.X[table.test], table.y[table.test]
    model = kind(max_depth=HEIGHT, random_state=0, **LEARNERS[learner]).fit(X, y)
    tree = model.tree_
    before = float(model.score(X_test, y_test))
    for tolerance in TOLERANCES:
        start = time.process_time()
        found = tree.readable(X, tolerance=tolerance)
        seconds = time.process_time() - start
        model.tree_ = found.tree
        digits = [split.digits for split in found.splits if split.digits is not None]
        yield {
            "name": task.name,
            "learner": learner,
            "rows": len(X),
            "columns": X.shape[1],
            "splits": tree.n_splits,
            "tolerance": tolerance,
            "terms_before": found.terms_before / tree.n_splits,
            "terms_after": found.terms_after / tree.n_splits,
            "digits": float(np.mean(digits)),
            "most_digits": found.digits,
            "same_train": float(np.mean(found.tree.apply(X) == tree.apply(X))),
            "same_test": float(np.mean(found.tree.apply(X_test) == tree.apply(X_test))),
            "measure": "accuracy" if task.has_classes else "R2",
            "score_before": before,
            "score_after": float(model.score(X_test, y_test)),
            "seconds": seconds,
            "conditions": [split.condition for split in found.splits],
            **verdict(found.share_same >= 1 - tolerance),
        }


def main() -> int:
    one_thread()
    warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of NAME.npz")
    parser.add_argument("--names", type=some_of(TASKS), default="", help=", ".join(TASKS))
    parser.add_argument("--quick", action="store_true", help="few rows, not recorded")
    arguments = parser.parse_args()
    report = Table(
        "readable",
        f"Trees of height {HEIGHT} made readable for the rows they were learned from: terms per "
        "split, significant digits of a split's longest number, and rows that reach the same leaf.",
        COLUMNS,
        {"height": HEIGHT, "learners": LEARNERS},
        kept=not arguments.quick,
    )
    for name in arguments.names or NAMES:
        table = parts(arguments.data, TASKS[name], 0, max_rows=500 if arguments.quick else None)
        for learner in LEARNERS:
            for row in measure(TASKS[name], table, learner):
                report.add(**row)
    return 0 if report.finish("Seconds are processor time of one thread.") else 1


if __name__ == "__main__":
    sys.exit(main())
