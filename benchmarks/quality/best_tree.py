"""The best single tree on every data set, beside its components and other libraries.

    python -m benchmarks.quality.best_tree --data FOLDER [--names a,b] [--methods default,tao]
        [--seeds 5] [--jobs 1] [--budget SECONDS] [--time] [--report] [--quick]

`trials.py` describes how settings are chosen and models scored, `best_tree_methods.py` has the
methods, and `best_tree_aims.py` the floors and aims. Every finished fit is recorded in
``results/best_tree.jsonl`` at once and is not repeated; DGT alone and CART of any depth are from
`dgt_tables.py`. With ``--time``, the default fit on pendigits is timed against XGBoost with 1,000
trees instead, in turns, with two threads each. `best_tree_page.py` writes the page.

With one thread, time limits count processor time (`timing.py` says why), so that a busy machine
does not shorten a search.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.quality.best_tree_aims import MAY_MISS, TABLES, Aim, tasks
from benchmarks.quality.best_tree_methods import DGT, DGT_TABLES, METHODS, methods_of
from benchmarks.quality.dgt_paper import TASKS, Task
from benchmarks.quality.learners import Method
from benchmarks.quality.trials import Pair, Run, add_options, run_of, some_of, summary, work
from benchmarks.record import Column, Table, file_of, verdict
from benchmarks.timing import one_thread
from hardwood import clock

RECORDED = file_of("best_tree")
TIME_NAME = "best_tree_time"
TIME_LIMIT = 60.0  # seconds, for `TreeClassifier`
MOST_TIME = 2.0  # times XGBoost's
MOST_OVER = 1.1  # times the time limit
# The method to which floors and aims apply, by table.
OURS = {"classes": "default", "numbers": "default", "linear": "default_linear"}
COLUMNS = [
    Column("name", "data", width=10, words=True),
    Column("title", "method", width=24, words=True),
    Column("here", "here", width=15),
    Column("runs", "runs"),
    Column("floor", "floor"),
    Column("aim", "aim"),
    Column("aim_kept", "aim kept"),
    Column("verdict", "floor kept"),
    Column("nodes", "nodes", ",.0f"),
    Column("weights", "weights", ",.0f"),
    Column("one_row_us", "one row, us", ".2f"),
    Column("batch_us", "in a batch, us", ".3f"),
    Column("processor_seconds", "fit, s", ".1f"),
]


# --- what is recorded --------------------------------------------------------------------------


def row_of(task: Task, method: str, path: Path = RECORDED) -> dict[str, Any] | None:
    """Return the recorded row of a method on a data set, from here or DGT's tables; else None."""
    if method in DGT:
        row = summary(Run(Path(), DGT_TABLES), task, DGT[method])
    else:
        row = summary(Run(Path(), path), task, METHODS[method])
    if row is not None and row["nodes"] is None and row["splits"] is not None:
        row["nodes"] = 2 * row["splits"] + 1
    return row


def aims_of(task: Task) -> Iterator[tuple[str, Aim]]:
    """Yield the tables that contain a data set, with its floor and aim."""
    for table, aims in TABLES.items():
        if task.name in aims:
            yield table, aims[task.name]


@dataclass(frozen=True)
class AgainstCart:
    """The default and CART with tuned depth on one data set."""

    task: Task
    default: dict[str, Any]
    cart: dict[str, Any]

    @property
    def behind(self) -> float:
        """How much worse the default is; negative if it is better."""
        gap = self.cart["mean"] - self.default["mean"]
        return -gap if self.task.measure == "rmse" else gap

    @property
    def is_kept(self) -> bool:
        """Whether the default is worse by at most one standard deviation, the larger of both."""
        return self.behind <= max(self.default["sd"], self.cart["sd"])


def against_cart(cart: str = "cart", path: Path = RECORDED) -> list[AgainstCart]:
    """Return the comparison with CART on all data sets that have both."""
    found = [(t, row_of(t, "default", path), row_of(t, cart, path)) for t in tasks()]
    return [AgainstCart(t, ours, theirs) for t, ours, theirs in found if ours and theirs]


def kept_floors(table: str, path: Path = RECORDED) -> tuple[int, int, int]:
    """Return how many floors are kept, rows recorded and aims reached in a table."""
    floors = recorded = reached = 0
    for name, aim in TABLES[table].items():
        row = row_of(TASKS[name], OURS[table], path)
        if row is not None:
            recorded += 1
            floors += TASKS[name].keeps(row["mean"], aim.floor)
            reached += TASKS[name].keeps(row["mean"], aim.aim)
    return floors, recorded, reached


# --- printing ----------------------------------------------------------------------------------


def report(run: Run, pairs: list[Pair]) -> bool:
    """Print all recorded rows; return whether all are recorded and enough floors are kept."""
    table = Table(
        "best_tree",
        "One tree: test score, mean ± standard deviation over seeds; settings chosen on validation "
        "rows.",
        COLUMNS,
        kept=False,
    )
    missing = []
    for task, method in pairs:
        row = row_of(task, method.name, run.results)
        if row is None:
            missing.append(f"{task.name} {method.name}")
            continue
        for name, aim in aims_of(task):
            if OURS[name] == method.name and not run.is_quick:
                row |= {"floor": aim.floor, "aim": aim.aim}
                row["aim_kept"] = "yes" if task.keeps(row["mean"], aim.aim) else "no"
                row["verdict"] = verdict(task.keeps(row["mean"], aim.floor))["verdict"]
        table.add(**row)
    notes = [f"Not recorded: {', '.join(missing)}."] if missing else []
    table.finish(*notes, *_notes(run))
    return not missing and (run.is_quick or _is_enough(run.results))


def _notes(run: Run) -> list[str]:
    if run.is_quick:
        return []
    lines = []
    for name, aims in TABLES.items():
        floors, recorded, reached = kept_floors(name, run.results)
        lines.append(
            f"{name}: {floors} of {recorded} recorded rows keep their floor, {reached} reach their "
            f"aim; {len(aims)} rows in all, {MAY_MISS[name]} may miss the floor."
        )
    behind = [found.task.name for found in against_cart() if not found.is_kept]
    lines.append(
        f"Worse than tuned CART by more than a standard deviation: {', '.join(behind) or 'none'}."
    )
    return lines


def _is_enough(folder: Path) -> bool:
    """Return whether enough floors are kept, and CART is nowhere clearly better."""
    floors = all(
        kept_floors(name, folder)[0] >= len(TABLES[name]) - MAY_MISS[name] for name in TABLES
    )
    return floors and all(found.is_kept for found in against_cart("cart", folder))


# --- time --------------------------------------------------------------------------------------


def measure_time(run: Run, rounds: int = 3) -> bool:
    """Time the default fit and XGBoost's on pendigits, in turns, two threads each (wall time)."""
    task = TASKS["pendigits"]
    table = run.parts(task, 0)
    X, y = table.X[table.learnable], table.y[table.learnable]
    found = Table(
        TIME_NAME,
        "Default fit on pendigits against XGBoost with 1,000 trees: wall seconds, two "
        "threads each, in turns.",
        [
            Column("round", "round"),
            Column("ours", "TreeClassifier, s", ".1f"),
            Column("xgboost", "XGBoost, s", ".1f"),
            Column("ratio", "ratio", ".2f"),
            Column("load", "load", ".1f"),
            Column("verdict", ""),
        ],
        settings={"time_limit": TIME_LIMIT, "most_time": MOST_TIME, "most_over": MOST_OVER},
        kept=not run.is_quick,
    )
    two = replace(run, n_jobs=2)
    for number in range(1 if run.is_quick else rounds):
        ours, theirs = (
            _seconds(two, task, METHODS[name], X, y, number) for name in ("default", "xgboost")
        )
        is_kept = ours <= MOST_TIME * theirs and ours <= MOST_OVER * TIME_LIMIT
        found.add(
            round=number,
            ours=ours,
            xgboost=theirs,
            ratio=ours / theirs,
            load=os.getloadavg()[0],
            **verdict(is_kept),
        )
    return found.finish()


def _seconds(run: Run, task: Task, method: Method, X: Any, y: Any, seed: int) -> float:
    setting = method.settings(task)[0] | (method.quick if run.is_quick else {})
    model = method.make(task, setting, seed, run.n_jobs)
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    names = [task.name for task in tasks()]
    parser.add_argument("--names", type=some_of(names), default="", help=", ".join(names))
    parser.add_argument("--methods", type=some_of(METHODS), default="", help=", ".join(METHODS))
    parser.add_argument("--time", action="store_true", help="time the default against XGBoost")
    arguments = parser.parse_args()
    if arguments.jobs == 1 and not arguments.time:
        one_thread()
        clock.time = SimpleNamespace(monotonic=time.process_time)
    warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
    pairs = [
        (task, method)
        for task in tasks()
        if not arguments.names or task.name in arguments.names
        for method in methods_of(task)
        if not arguments.methods or method.name in arguments.methods
    ]
    with tempfile.TemporaryDirectory() as scratch:
        run = run_of(arguments, RECORDED, scratch)
        if arguments.time:
            return 0 if measure_time(run) else 1
        if not arguments.report:
            work(run, pairs)
        return 0 if report(run, pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
