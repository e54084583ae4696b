"""Table 1 of the paper on reinforced trees: test errors at depths 5, 8 and 10.

    python -m benchmarks.quality.reinforced_tables --data FOLDER [--names a,b] [--methods rdt-10]
        [--seeds 5] [--jobs 1] [--budget SECONDS] [--report] [--quick]

Parts have the paper's sizes (`reinforced_paper.py`). For each method the settings below are
compared on validation rows. The best is trained on training rows only, with five seeds, and scored
on test rows. Reinforced trees are compared with scikit-learn's CART, of the same depths and without
a limit, and its linear SVM, one class against the rest, on standardized columns. Every fit is
recorded in ``results/reinforced.jsonl`` at once and is not repeated.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from typing import Any

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.quality.dgt_paper import Task
from benchmarks.quality.learners import Grid, Method, Setting
from benchmarks.quality.parts import Parts
from benchmarks.quality.reinforced_paper import (
    DEPTHS,
    FLOORS,
    NAMES,
    TABLE_1,
    paper_parts,
    task_of,
)
from benchmarks.quality.trials import Run, add_options, run_of, some_of, summary, work
from benchmarks.record import Column, Table, file_of
from benchmarks.timing import one_thread
from hardwood import ReinforcedTreeClassifier

RECORDED = file_of("reinforced")
_QUICK_ROWS = 400

# --- what is tuned -----------------------------------------------------------------------------

SVM: Grid = [{"C": [0.01, 0.1, 1.0]}]
LEAVES: Grid = [{"min_samples_leaf": [1, 5]}]
RDT: dict[str, Grid] = {
    "": [{"learning_rate": [0.03, 0.1], "entropy_bonus": [0.3, 0.6]}],
    "mnist": [{"learning_rate": [0.01, 0.03], "entropy_bonus": [0.3]}],
}
# Epochs for comparing settings, and for the final fit.
PASSES = {"pendigits": (60, 200), "optdigits": (60, 200), "letter": (60, 200), "mnist": (3, 12)}


# --- what is learned ---------------------------------------------------------------------------


def svm(_: Task, setting: Setting, seed: int, n_jobs: int) -> Any:
    """Return a linear SVM on standardized columns."""
    return make_pipeline(
        StandardScaler(), LinearSVC(dual=False, tol=1e-3, random_state=seed, **setting)
    )


def method_of(name: str, task: Task) -> Method:
    """Return a method of the table by its name."""
    if name == "svm":
        grid: Grid = [{"C": [0.01]}] if task.name == "mnist" else SVM
        return Method(name, "linear SVM", svm, {"": grid}, is_random=False)
    kind, depth = name.split("-")
    max_depth = None if depth == "free" else int(depth)
    if kind == "cart":

        def cart(_: Task, setting: Setting, seed: int, n_jobs: int) -> Any:
            return DecisionTreeClassifier(max_depth=max_depth, random_state=seed, **setting)

        words = "no limit" if max_depth is None else f"depth {max_depth}"
        return Method(name, f"CART, {words}", cart, {"": LEAVES})
    first, last = PASSES[task.name]

    def reinforced(_: Task, setting: Setting, seed: int, n_jobs: int) -> Any:
        options = {"max_depth": max_depth, "max_epochs": last, **setting}
        return ReinforcedTreeClassifier(random_state=seed, n_jobs=n_jobs, **options)

    title = f"reinforced, depth {max_depth}"
    return Method(
        name, title, reinforced, RDT, choosing={"max_epochs": first}, quick={"max_epochs": 3}
    )


class PaperRun(Run):
    """Trials on parts of the paper's sizes."""

    def parts(self, task: Task, split: int) -> Parts:
        return paper_parts(self.data, task, max_rows=_QUICK_ROWS if self.is_quick else None)


# --- what is printed ---------------------------------------------------------------------------


def row_of(run: Run, name: str, method_name: str) -> dict[str, Any] | None:
    """Return a recorded cell of Table 1, as errors."""
    task = task_of(name)
    found = summary(run, task, method_of(method_name, task))
    if found is None:
        return None
    paper, deviation = TABLE_1[method_name][NAMES.index(name)]
    error = 100 - found["mean"]
    row = {
        **found,
        "mean": error,
        "train_error": 100 - found["train_score"],
        "here": f"{error:.2f} ± {found['sd']:.2f}",
        "paper": f"{paper:.2f} ± {deviation:.2f}",
    }
    if method_name == f"rdt-{max(DEPTHS):02}":
        row |= {"floor": FLOORS[name], "passed": error <= FLOORS[name]}
    return row


COLUMNS = (
    Column("name", "data", width=9, words=True),
    Column("title", "method", width=21, words=True),
    Column("here", "error, %", width=13),
    Column("paper", "paper", width=13),
    Column("floor", "floor"),
    Column("train_error", "on training", ".2f"),
    Column("seconds", "seconds", ".1f"),
    Column("runs", "runs"),
    Column("chosen", "chosen", words=True),
)


def main() -> int:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--names", type=some_of(NAMES), default=list(NAMES))
    parser.add_argument("--methods", type=some_of(TABLE_1), default=list(TABLE_1))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="sklearn")  # a linear SVM that has not converged
        base = run_of(arguments, RECORDED, scratch)
        run = PaperRun(**vars(base))
        pairs = [
            (task_of(name), method_of(method, task_of(name)))
            for name in arguments.names
            for method in arguments.methods
        ]
        if not arguments.report:
            work(run, pairs)
        table = Table("reinforced_tables", __doc__.splitlines()[0], COLUMNS, kept=False)
        for task, method in pairs:
            if (row := row_of(run, task.name, method.name)) is not None:
                table.add(**row)
        return 0 if table.finish() else 1


if __name__ == "__main__":
    sys.exit(main())
