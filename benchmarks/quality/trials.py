"""Choose a setting on validation rows, then score it on test rows, seed by seed.

All DGT tables use this procedure. Settings are compared by the score on validation rows of models
trained on training rows. The best is trained on training and validation rows together, once per
seed, and scored on test rows. The same holds for our methods and the others. A DGT tree also holds
out some of its rows to choose its epoch and its restart. If a table has several splits, each
chooses its own setting, and seed s has split s modulo their number.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.quality.dgt_paper import Task
from benchmarks.quality.learners import Method, Setting, sizes
from benchmarks.quality.ledger import Entry, Ledger
from benchmarks.quality.parts import Parts, n_splits, parts, split_words
from benchmarks.record import alone
from hardwood.selection.size import microseconds, size_of

Pair = tuple[Task, Method]

_QUICK = {"rows": 400, "settings": 2, "seeds": 2}
_FIRST_CHOOSING_SEED = 1000  # fits that compare settings and final fits have different seeds


class OutOfTimeError(Exception):
    """The budget is spent: no further fit is started."""


@dataclass
class Run:
    """Options of the trials.

    Parameters
    ----------
    data
        Folder of tables.
    results
        File of the experiment.
    n_seeds
        Final fits per data set and method.
    n_jobs
        Threads of one fit.
    is_quick
        Few rows, settings, seeds and epochs.
    deadline
        By `time.monotonic`; no fit starts after it.
    """

    data: Path
    results: Path
    n_seeds: int = 5
    n_jobs: int = 1
    is_quick: bool = False
    deadline: float = np.inf

    def check_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise OutOfTimeError

    def parts(self, task: Task, split: int) -> Parts:
        return parts(self.data, task, split, max_rows=_QUICK["rows"] if self.is_quick else None)

    def settings(self, method: Method, task: Task) -> list[Setting]:
        return method.settings(task)[: _QUICK["settings"] if self.is_quick else None]

    def ledger(self, task: Task, method: Method) -> Ledger:
        key = {"name": task.name, "method": method.name}
        return Ledger(self.results, key, {"measure": task.measure})


# --- the procedure -----------------------------------------------------------------------------


def score(task: Task, model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the measure of a fitted model on some rows."""
    if task.measure == "auc":
        return float(roc_auc_score(y, model.predict_proba(X)[:, 1]))
    prediction = model.predict(X)
    if task.measure == "accuracy":
        return 100 * float(np.mean(prediction == y))
    return float(np.sqrt(np.mean((prediction - y) ** 2)))


def compare_settings(run: Run, pair: Pair, ledger: Ledger, split: int) -> Setting:
    """Return the setting with the best score on validation rows; fit what is missing."""
    task, method = pair
    settings = run.settings(method, task)
    if len(settings) == 1:
        return settings[0]
    means = []
    for setting in settings:
        options = {**setting, **method.choosing}
        scores = []
        for repeat in range(method.repeats(task)):
            entry = ledger.choice(split, options, repeat)
            if entry is None:
                entry = _choosing_entry(run, pair, options, split, repeat)
                ledger.add_choice(entry)
            scores.append(entry["score"])
        means.append(float(np.mean(scores)))
    return settings[int(np.argmin(means) if task.measure == "rmse" else np.argmax(means))]


def _choosing_entry(run: Run, pair: Pair, options: Setting, split: int, repeat: int) -> Entry:
    table = run.parts(pair[0], split)
    seed = _FIRST_CHOOSING_SEED + repeat
    model, seconds = _fitted(run, pair, options, (table, table.train), seed)
    return {
        "split": split,
        "repeat": repeat,
        "setting": options,
        "score": score(pair[0], model, table.X[table.valid], table.y[table.valid]),
        "seconds": seconds,
        **sizes(model),
    }


def _run_entry(run: Run, pair: Pair, setting: Setting, split: int, seed: int) -> Entry:
    """Fit on training and validation rows, and score on test rows."""
    table = run.parts(pair[0], split)
    processor_start = time.process_time()
    model, seconds = _fitted(run, pair, setting, (table, table.learnable), seed)
    processor_seconds = time.process_time() - processor_start
    start = time.perf_counter()
    found = score(pair[0], model, table.X[table.test], table.y[table.test])
    return {
        "split": split,
        "seed": seed,
        "setting": setting,
        "score": found,
        "seconds": seconds,
        "processor_seconds": processor_seconds,  # of all threads; excludes other processes
        "test_seconds": time.perf_counter() - start,
        "train_score": score(pair[0], model, table.X[table.learnable], table.y[table.learnable]),
        "rows": {part: len(getattr(table, part)) for part in ("train", "valid", "test")},
        **sizes(model),
        **_price(model, table.X[table.test]),
    }


def _price(model: Any, X: np.ndarray) -> dict[str, Any]:
    """Return the size of a fitted model, and microseconds per prediction on one thread."""
    size = size_of(model)
    batch, one_row = microseconds(model, X)
    return {
        "nodes": size.nodes,
        "weights": size.weights,
        "bytes": size.n_bytes,
        "batch_us": batch,
        "one_row_us": one_row,
    }


def _fitted(
    run: Run, pair: Pair, setting: Setting, rows: tuple[Parts, np.ndarray], seed: int
) -> tuple[Any, float]:
    """Return a model trained on some rows of a table, and the seconds of the fit."""
    run.check_time()
    (task, method), (table, learned) = pair, rows
    options = {**setting, **(method.quick if run.is_quick else {})}
    model = method.make(task, options, seed, run.n_jobs)
    X, y = table.X[learned], table.y[learned]
    start = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - start


def _work_on(run: Run, pair: Pair) -> None:
    """Make all fits of a method on a data set that are not recorded yet."""
    task, method = pair
    ledger = run.ledger(task, method)
    splits = n_splits(run.data, task)
    ledger.facts |= {"parts": split_words(run.data, task)}
    # A deterministic method gives the same model for every seed: one run per split.
    n_runs = run.n_seeds if method.is_random else min(run.n_seeds, splits)
    chosen: dict[int, Setting] = {}
    for seed in range(n_runs):
        split = seed % splits
        if split not in chosen:
            chosen[split] = compare_settings(run, pair, ledger, split)
            ledger.forget_runs(split, other_than=chosen[split])
        if ledger.run(split, seed) is None:
            entry = _run_entry(run, pair, chosen[split], split, seed)
            ledger.add_run(entry)
            print(f"{task.name} {method.name} seed {seed}: {entry['score']:.4f}", flush=True)


def work(run: Run, pairs: Iterable[Pair]) -> None:
    """Make the missing fits, pair by pair, until all are recorded or the budget is spent."""
    for task, method in pairs:
        if not (run.data / f"{task.name}.npz").exists():
            print(f"{task.name}: no {task.name}.npz in {run.data}, left out.", flush=True)
            continue
        with alone(run.ledger(task, method).name) as is_alone:
            if not is_alone:
                print(f"{task.name} {method.name}: another process is working on it.", flush=True)
                continue
            try:
                _work_on(run, (task, method))
            except OutOfTimeError:
                print(f"The budget is spent at {task.name} {method.name}; run again to continue.")
                return


# --- results ----------------------------------------------------------------------------------


def summary(run: Run, task: Task, method: Method) -> dict[str, Any] | None:
    """Return the recorded row of a method on a data set; None without a run."""
    ledger = run.ledger(task, method)
    if not ledger.runs:
        return None
    scores = np.array([entry["score"] for entry in ledger.runs])
    mean, sd = float(scores.mean()), float(scores.std(ddof=1)) if len(scores) > 1 else 0.0
    row = {
        "name": task.name,
        "measure": task.measure,
        "method": method.name,
        "title": method.title,
        "mean": mean,
        "sd": sd,
        "here": here_words(task, mean, sd, len(scores)),
        "runs": len(scores),
        "chosen": chosen_words(ledger.runs),
    }
    facts = (
        "train_score",
        "seconds",
        "splits",
        "splits_grown",
        "flops",
        "hardening_loss",
        "validation_loss",
        "processor_seconds",
        "nodes",
        "weights",
        "bytes",
        "batch_us",
        "one_row_us",
    )
    return row | {name: _mean(ledger.runs, name) for name in facts}


def here_words(task: Task, mean: float, sd: float, n_runs: int) -> str:
    """Format one of our scores; one run has no deviation, and fewer than five runs are counted."""
    text = words(task, mean, sd)
    if n_runs == 1:
        return f"{text.split(' ')[0]} (1 run)"
    return text if n_runs >= 5 else f"{text} ({n_runs} runs)"


def words(task: Task, mean: float, sd: float) -> str:
    """Format one of our scores: mean ± standard deviation."""
    digits = 2 if task.measure == "accuracy" else 3
    return f"{mean:.{digits}f} ± {sd:.{digits}f}"


def paper_words(task: Task, method: str) -> str | None:
    """Format a score of the paper with its own digits; None if it has none."""
    if (score := task.paper.get(method)) is None:
        return None
    return f"{score[0]:.2f} ± {score[1]:.3f}" if task.measure == "rmse" else words(task, *score)


def split_counts(row: dict[str, Any]) -> str | None:
    """Format the number of splits left, and of all splits if they were learned at once."""
    if row["splits"] is None:
        return None
    of = "" if row["splits_grown"] is None else f" of {row['splits_grown']:.0f}"
    return f"{row['splits']:.0f}{of}"


def chosen_words(runs: list[Entry]) -> str:
    """Format the different chosen settings, the first two in full."""
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
    values = [entry[key] for entry in runs if entry.get(key) is not None]
    return float(np.mean(values)) if values else None


# --- the command line --------------------------------------------------------------------------


def some_of(known: Iterable[object]) -> Callable[[str], list[str]]:
    """Return a parser for an option that lists some of the known words: ``a,b``."""
    all_known = [str(word) for word in known]

    def listed(text: str) -> list[str]:
        found = [word for word in text.split(",") if word]
        if strange := [word for word in found if word not in all_known]:
            raise argparse.ArgumentTypeError(
                f"{', '.join(strange)} not among {', '.join(all_known)}"
            )
        return found

    return listed


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all trials have."""
    parser.add_argument("--data", type=Path, required=True, help="a folder of NAME.npz")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="threads of one fit")
    parser.add_argument("--budget", type=float, default=np.inf, help="seconds; then no new fit")
    parser.add_argument("--report", action="store_true", help="print the records, fit nothing")
    parser.add_argument("--quick", action="store_true", help="a smoke run, not recorded")


def run_of(arguments: argparse.Namespace, results: Path, scratch: str) -> Run:
    """Return the run for a command line; a quick one records in the scratch folder."""
    return Run(
        arguments.data,
        Path(scratch) / results.name if arguments.quick else results,
        _QUICK["seeds"] if arguments.quick else arguments.seeds,
        arguments.jobs,
        arguments.quick,
        time.monotonic() + arguments.budget,
    )
