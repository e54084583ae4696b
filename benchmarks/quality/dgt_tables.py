"""Tables 1, 2, 4 and 5 of the DGT paper: our rows beside the paper's.

    python -m benchmarks.quality.dgt_tables --data FOLDER [--tables 1,2] [--names a,b]
        [--methods dgt,cart] [--seeds 5] [--jobs 1] [--budget SECONDS] [--report] [--quick]

FOLDER holds ``NAME.npz`` (`parts.py` says what is in them, `fetch.py` makes them from OpenML). For
every data set and method: settings (`learners.py`) are compared by the score on validation rows of
models learned from training rows; the best is then learned from training and validation rows
together with so many seeds, and judged on test rows. That is so for ours and for the peers alike; a
DGT tree sets apart a part of the rows it is given, to choose its pass and its restart by. Where a
table has several splits, each chooses for itself, and seed s has split s modulo their number.

Every finished fit is in ``results/dgt_tables/NAME.METHOD.json`` at once and is not made again: a
run can be stopped and taken up, and the same command started twice shares the work. ``--report``
only prints; `dgt_page.py` writes the page.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.quality import learners
from benchmarks.quality.dgt_paper import TASKS, Task
from benchmarks.quality.learners import METHODS, Method, Setting
from benchmarks.quality.ledger import Entry, Ledger, alone
from benchmarks.quality.parts import Parts, n_splits, parts, split_words
from benchmarks.record import RESULTS, Column, Table, verdict
from benchmarks.timing import one_thread

FOLDER = RESULTS / "dgt_tables"
# What is run by table, ours first. CART of any height is in no table of the paper: it is what a
# user would compare with. Data sets in no table get the methods of Table 2.
METHODS_BY_TABLE = {
    1: ("dgt", "pat", "ridge", "cart", "cart_free"),
    2: ("dgt", "cart", "cart_free"),
    4: ("forest", "xgboost", "adaboost"),
    5: ("dgt", "linear"),
}
QUICK = {  # a smoke run: the first settings, few passes, few trees
    "rows": 400,
    "settings": 2,
    "seeds": 2,
    "ours": {"max_epochs": 3, "restarts": 1},
    "boosted": {"n_estimators": 5},
}
COLUMNS = [
    Column("name", "data", width=10, words=True),
    Column("measure", "measure", width=8, words=True),
    Column("title", "method", width=22, words=True),
    Column("ours", "here", width=15),
    Column("runs", "runs"),
    Column("paper", "paper", width=15),
    Column("floor", "floor"),
    Column("verdict", ""),
    Column("splits", "splits left"),
    Column("flops", "flops", ".0f"),
    Column("seconds", "fit, s", ".2f"),
    Column("chosen", "chosen", words=True),
]


class OutOfTimeError(Exception):
    """The budget is spent: no further fit is started."""


@dataclass
class Run:
    """How this run was asked for."""

    data: Path
    results: Path
    n_seeds: int
    n_jobs: int
    is_quick: bool
    deadline: float = np.inf

    def check_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise OutOfTimeError

    def parts(self, task: Task, split: int) -> Parts:
        return parts(self.data, task, split, max_rows=QUICK["rows"] if self.is_quick else None)

    def settings(self, method: str, task: Task) -> list[Setting]:
        return learners.settings(method, task)[: QUICK["settings"] if self.is_quick else None]

    def shortened(self, method: Method) -> Setting:
        if not self.is_quick:
            return {}
        if method.is_ours:
            return {**QUICK["ours"], **({"n_estimators": 3} if method.name == "forest" else {})}
        return QUICK["boosted"] if method.name in ("xgboost", "adaboost") else {}

    def ledger(self, task: Task, method: str) -> Ledger:
        head = {"name": task.name, "method": method, "measure": task.measure}
        return Ledger(self.results / f"{task.name}.{method}.json", head)


def score(task: Task, model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the test measure of a fitted model."""
    if task.measure == "auc":
        return float(roc_auc_score(y, model.predict_proba(X)[:, 1]))
    prediction = model.predict(X)
    if task.measure == "accuracy":
        return 100 * float(np.mean(prediction == y))
    return float(np.sqrt(np.mean((prediction - y) ** 2)))


def fitted(
    run: Run,
    task: Task,
    method: Method,
    setting: Setting,
    rows: tuple[Parts, np.ndarray],
    seed: int,
) -> tuple[Any, float]:
    """Return a model learned from some rows of a table, and the seconds that took."""
    table, learned = rows
    options = {**setting, **run.shortened(method)}
    model = method.make(task, options, seed, run.n_jobs)
    start = time.perf_counter()
    model.fit(table.X[learned], table.y[learned])
    return model, time.perf_counter() - start


def compare_settings(run: Run, task: Task, method: Method, ledger: Ledger, split: int) -> Setting:
    """Return the setting with the best score on validation rows; fit what is missing."""
    settings = run.settings(method.name, task)
    if len(settings) == 1:
        return settings[0]
    means = []
    for setting in settings:
        scores = []
        for repeat in range(learners.repeats(method.name, task)):
            options = {**setting, **learners.choosing_options(method.name)}
            entry = ledger.choice(split, options, repeat)
            if entry is None:
                entry = _choosing_entry(run, task, method, options, split, repeat)
                ledger.add_choice(entry)
            scores.append(entry["score"])
        means.append(float(np.mean(scores)))
    best = np.argmin(means) if task.measure == "rmse" else np.argmax(means)
    return settings[int(best)]


def _choosing_entry(
    run: Run, task: Task, method: Method, setting: Setting, split: int, repeat: int
) -> Entry:
    run.check_time()
    table = run.parts(task, split)
    model, seconds = fitted(run, task, method, setting, (table, table.train), 1000 + repeat)
    found = score(task, model, table.X[table.valid], table.y[table.valid])
    return {
        "split": split,
        "repeat": repeat,
        "setting": setting,
        "score": found,
        "seconds": seconds,
    }


def run_entry(
    run: Run, task: Task, method: Method, setting: Setting, split: int, seed: int
) -> Entry:
    """Fit on training and validation rows, and judge on test rows."""
    run.check_time()
    table = run.parts(task, split)
    model, seconds = fitted(run, task, method, setting, (table, table.learnable), seed)
    start = time.perf_counter()
    found = score(task, model, table.X[table.test], table.y[table.test])
    return {
        "split": split,
        "seed": seed,
        "setting": setting,
        "score": found,
        "seconds": seconds,
        "test_seconds": time.perf_counter() - start,
        "rows": {part: len(getattr(table, part)) for part in ("train", "valid", "test")},
        **learners.sizes(model),
    }


def work_on(run: Run, task: Task, method: Method) -> None:
    """Make all fits of a method on a data set that are not recorded yet."""
    ledger = run.ledger(task, method.name)
    splits = n_splits(run.data, task)
    ledger.head |= {"n_splits": splits, "parts": split_words(run.data, task)}
    # A method that draws nothing gives the same model for every seed: once per split.
    n_runs = run.n_seeds if method.is_random else min(run.n_seeds, splits)
    chosen: dict[int, Setting] = {}
    for seed in range(n_runs):
        split = seed % splits
        if split not in chosen:
            chosen[split] = compare_settings(run, task, method, ledger, split)
            ledger.forget_runs(split, other_than=chosen[split])
        if ledger.run(split, seed) is None:
            entry = run_entry(run, task, method, chosen[split], split, seed)
            ledger.add_run(entry)
            print(f"{task.name} {method.name} seed {seed}: {entry['score']:.4f}", flush=True)


def summary(run: Run, task: Task, method: Method) -> dict[str, Any] | None:
    """Return the row of a method on a data set, from what is recorded; None without a run."""
    ledger = run.ledger(task, method.name)
    if not ledger.runs:
        return None
    scores = np.array([entry["score"] for entry in ledger.runs])
    sd = float(scores.std(ddof=1)) if len(scores) > 1 else 0.0
    mean, floor = float(scores.mean()), task.floors.get(method.name)
    paper = task.paper.get(method.name)
    row = {
        "name": task.name,
        "measure": task.measure,
        "method": method.name,
        "title": method.title,
        "mean": mean,
        "sd": sd,
        "ours": words(task, mean, sd),
        "runs": len(scores),
        "paper": None if paper is None else words(task, *paper),
        "seconds": _mean(ledger.runs, "seconds"),
        "flops": _mean(ledger.runs, "flops"),
        "chosen": chosen_words(ledger.runs),
    }
    if (grown := _mean(ledger.runs, "splits_grown")) is not None:
        row["splits"] = f"{_mean(ledger.runs, 'splits'):.0f}/{grown:.0f}"
    elif (splits := _mean(ledger.runs, "splits")) is not None:
        row["splits"] = f"{splits:.0f}"
    if floor is not None:
        row |= {"floor": floor, **verdict(task.keeps(mean, floor))}
    return row


def words(task: Task, mean: float, sd: float) -> str:
    """Write a score with as many digits as the paper has."""
    digits = {"accuracy": 2, "auc": 3, "rmse": 3}[task.measure]
    return f"{mean:.{digits}f} ± {sd:.{digits}f}"


def chosen_words(runs: list[Entry]) -> str:
    """Write the settings that were chosen, each once."""
    seen: list[str] = []
    for entry in runs:
        text = ", ".join(f"{key}={_flat(value)}" for key, value in entry["setting"].items())
        if text not in seen:
            seen.append(text)
    return "; ".join(seen[:2]) + (f"; {len(seen) - 2} more" if len(seen) > 2 else "")


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return "/".join(_flat(entry) for entry in value.values())
    return "-".join(map(str, value)) if isinstance(value, list) else str(value)


def _mean(runs: list[Entry], key: str) -> float | None:
    values = [entry[key] for entry in runs if key in entry]
    return float(np.mean(values)) if values else None


def asked(tables: list[int], names: list[str], methods: list[str]) -> Iterator[tuple[Task, Method]]:
    """Yield the data sets and methods of some tables; names and methods are taken at their word."""
    for name in names or TASKS:
        task = TASKS[name]
        of_task = [table for table in task.tables or (2,) if table in METHODS_BY_TABLE]
        wanted = methods or [
            method
            for table in of_task
            if not tables or table in tables
            for method in METHODS_BY_TABLE[table]
        ]
        for method in dict.fromkeys(wanted):
            if method != "ridge" or not task.has_classes:
                yield task, METHODS[method]


def work(run: Run, pairs: list[tuple[Task, Method]]) -> None:
    """Make what is missing, pair by pair, until all is there or the budget is spent."""
    for task, method in pairs:
        if not (run.data / f"{task.name}.npz").exists():
            print(f"{task.name}: no {task.name}.npz in {run.data}, left out.", flush=True)
            continue
        path = run.results / f"{task.name}.{method.name}.json"
        with alone(path) as is_alone:
            if not is_alone:
                print(f"{task.name} {method.name}: another process is at it.", flush=True)
                continue
            try:
                work_on(run, task, method)
            except OutOfTimeError:
                print(f"The budget is spent at {task.name} {method.name}; run again to go on.")
                return


def report(run: Run, pairs: list[tuple[Task, Method]]) -> bool:
    """Print all recorded rows; True where nothing is missing and every floor is kept."""
    table = Table(
        "dgt_tables",
        "DGT and its peers: test score, mean ± standard deviation over seeds; settings chosen on "
        "validation rows.",
        COLUMNS,
        kept=False,
    )
    missing = []
    for task, method in pairs:
        row = summary(run, task, method)
        if row is None:
            missing.append(f"{task.name} {method.name}")
        else:
            table.add(**row)
    notes = [f"Not recorded: {', '.join(missing)}."] if missing else []
    return table.finish(*notes) and not missing


def some_of(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Return how to read an option that lists some of the known words: ``a,b``."""
    known = [str(word) for word in known]

    def listed(text: str) -> list[str]:
        words = [word for word in text.split(",") if word]
        if strange := [word for word in words if word not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(strange)} not among {', '.join(known)}")
        return words

    return listed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of NAME.npz")
    parser.add_argument("--tables", type=some_of(METHODS_BY_TABLE), default="", help="1,2,4,5")
    parser.add_argument("--names", type=some_of(TASKS), default="", help=", ".join(TASKS))
    parser.add_argument("--methods", type=some_of(METHODS), default="", help=", ".join(METHODS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="threads of one fit")
    parser.add_argument("--budget", type=float, default=np.inf, help="seconds; then no new fit")
    parser.add_argument("--report", action="store_true", help="print what is recorded, fit nothing")
    parser.add_argument("--quick", action="store_true", help="a smoke run, not recorded")
    arguments = parser.parse_args()
    if arguments.jobs == 1:
        one_thread()
    warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
    tables = [int(table) for table in arguments.tables]
    pairs = list(asked(tables, arguments.names, arguments.methods))
    with tempfile.TemporaryDirectory() as scratch:
        run = Run(
            arguments.data,
            Path(scratch) if arguments.quick else FOLDER,
            QUICK["seeds"] if arguments.quick else arguments.seeds,
            arguments.jobs,
            arguments.quick,
            time.monotonic() + arguments.budget,
        )
        if not arguments.report:
            work(run, pairs)
        return 0 if report(run, pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
