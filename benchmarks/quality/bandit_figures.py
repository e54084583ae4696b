"""Figures 2 and 3 and Table 6 of the DGT paper: learning from bandit feedback.

    python -m benchmarks.quality.bandit_figures --data FOLDER [--parts 2,3,6] [--names a,b]
        [--seeds 10] [--budget SECONDS] [--report] [--quick]

`bandit_curves.py` describes Figure 2, `bandit_regression.py` Figure 3 and Table 6. Every finished
run is recorded in ``results/bandit_figures.jsonl`` at once and is not repeated. The pictures are in
``docs/images``: means over seeds and 95 % confidence intervals (Student's t).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.quality import bandit_curves, bandit_regression
from benchmarks.quality.bandit_curves import CURVES, QUERIES, RECORDED, Run
from benchmarks.quality.ledger import Entry
from benchmarks.quality.tel_figures import PICTURES
from benchmarks.quality.trials import OutOfTimeError, some_of
from benchmarks.record import Column, Table, verdict
from benchmarks.timing import one_thread

Rows = list[dict[str, Any]]
METHODS = {"3": "one_point", "6": "two_point"}


def interval(values: np.ndarray) -> np.ndarray:
    """Return half of the 95 % confidence interval of the mean over runs, the first axis."""
    n = len(values)
    if n < 2:
        return np.zeros(values.shape[1:])
    return student.ppf(0.975, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)


def curve(runs: list[Entry]) -> dict[str, Any]:
    """Return the mean curve of runs, whose marks may differ by a few queries."""
    values = np.array([run["values"] for run in runs])
    return {
        "queries": np.mean([run["queries"] for run in runs], axis=0).tolist(),
        "mean": values.mean(axis=0).tolist(),
        "half_interval": interval(values).tolist(),
        "runs": len(runs),
        "seconds": float(np.mean([run["seconds"] for run in runs])),
        "setting": runs[0]["setting"],
    }


def accuracy_rows(run: Run, names: Iterable[str]) -> Rows:
    rows = []
    for name in names:
        for kind in CURVES:
            if runs := bandit_curves.ledger_of(run, name, kind).runs:
                rows.append({"name": name, "learner": kind, **curve(runs)})
    return rows


def one_point_rows(run: Run, names: Iterable[str]) -> Rows:
    rows = []
    for name in names:
        for learner in bandit_regression.LEARNERS:
            trial = bandit_regression.Trial(run, name, learner, "one_point")
            if runs := trial.ledger.runs:
                rows.append({"name": name, "learner": learner, **curve(runs)})
    return rows


def two_point_rows(run: Run, names: Iterable[str]) -> Rows:
    rows = []
    for name in names:
        for learner in bandit_regression.LEARNERS:
            trial = bandit_regression.Trial(run, name, learner, "two_point")
            for place, loss in enumerate(bandit_regression.LOSSES):
                runs = [entry for entry in trial.ledger.runs if entry["loss"] == loss]
                if runs:
                    rows.append(_two_point_row(name, learner, place, runs))
    return rows


def _two_point_row(name: str, learner: str, place: int, runs: list[Entry]) -> dict[str, Any]:
    scores = np.array([entry["score"] for entry in runs])
    is_ours = learner == "tree"
    row = {
        "name": name,
        "learner": learner,
        "loss": bandit_regression.LOSSES[place],
        "mean": float(scores.mean()),
        "sd": float(scores.std(ddof=1)) if len(scores) > 1 else 0.0,
        "runs": len(scores),
        "queries": float(np.mean([entry["queries"][entry["mark"]] for entry in runs])),
        "seconds": float(np.mean([entry["seconds"] for entry in runs])),
        "paper": bandit_regression.PAPER[name]["linear" if learner == "linear" else "tree"][place],
        "floor": bandit_regression.FLOORS[name] if is_ours and place == 0 else None,
        "setting": runs[0]["setting"],
    }
    return row | (verdict(row["mean"] <= row["floor"]) if row["floor"] else {})


# --- pictures ----------------------------------------------------------------------------------


def draw(rows: Rows, titles: dict[str, str], words: str, path: Path) -> None:
    """Draw a panel per data set: means with bands of their 95 % intervals."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["name"] for row in rows))
    n_columns = min(3, len(names))
    n_rows = -(-len(names) // n_columns)
    size = (4 * n_columns, 3.2 * n_rows)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False)
    figure.set_layout_engine("constrained")
    for axis, name in zip(axes.flat, names, strict=False):
        for row in (row for row in rows if row["name"] == name):
            mean, half = np.array(row["mean"]), np.array(row["half_interval"])
            (line,) = axis.plot(row["queries"], mean, label=titles[row["learner"]])
            axis.fill_between(
                row["queries"], mean - half, mean + half, color=line.get_color(), alpha=0.2
            )
        axis.set(title=name, xlabel="queries", xscale="log")
    for axis in axes.flat[len(names) :]:
        axis.remove()
    axes[0, 0].set_ylabel(words)
    axes[0, 0].legend(fontsize="small")
    figure.savefig(path, dpi=120)
    plt.close(figure)


# --- results ----------------------------------------------------------------------------------


def print_curves(name: str, title: str, rows: Rows) -> None:
    columns = [
        Column("name", "data", width=10, words=True),
        Column("learner", "learner", width=8, words=True),
        Column("runs", "runs"),
        Column("queries", "queries", ",.0f"),
        Column("mean", "mean", ".3f"),
        Column("half_interval", "+-", ".3f"),
        Column("seconds", "s a run", ".1f"),
    ]
    table = Table(name, title, columns, kept=False)
    for row in rows:
        marks = range(len(row["queries"]))
        for i in [marks[len(marks) // 2], marks[-1]]:
            table.add(**row | {key: row[key][i] for key in ("queries", "mean", "half_interval")})


def print_floors(rows: Rows) -> None:
    for name, (queries, floor) in bandit_curves.FLOORS.items():
        for row in (row for row in rows if row["name"] == name):
            if queries in row["queries"]:
                found = row["mean"][row["queries"].index(queries)]
                words = verdict(found >= floor)["verdict"]
                print(f"{name}, {queries:,} queries, {row['learner']}: {found:.2f} % ({words})")


def print_two_point(rows: Rows) -> None:
    columns = [
        Column("name", "data", width=10, words=True),
        Column("learner", "learner", width=8, words=True),
        Column("loss", "loss", width=8, words=True),
        Column("runs", "runs"),
        Column("mean", "test RMSE", ".3f"),
        Column("sd", "deviation", ".3f"),
        Column("paper", "paper", ".2f"),
        Column("floor", "floor", ".2f"),
        Column("verdict", ""),
    ]
    table = Table("bandit_two_point", "Table 6: two-point feedback", columns, kept=False)
    for row in rows:
        table.add(**row)


def show(run: Run, figures: list[str], pictures: Path) -> None:
    """Print and draw everything that is recorded."""
    numbers = bandit_regression.NAMES
    if "2" in figures and (rows := accuracy_rows(run, QUERIES)):
        print_curves("bandit_accuracy", "Figure 2: accuracy on held-out rows, percent", rows)
        print_floors(rows)
        draw(rows, CURVES, "held-out accuracy, %", pictures / "bandit_accuracy.png")
    if "3" in figures and (rows := one_point_rows(run, numbers)):
        print_curves("bandit_one_point", "Figure 3: one-point feedback, test RMSE", rows)
        titles = bandit_regression.LEARNERS
        draw(rows, titles, "test RMSE", pictures / "bandit_one_point.png")
    if "6" in figures and (rows := two_point_rows(run, numbers)):
        print_two_point(rows)


def work(run: Run, figures: list[str], names: list[str]) -> None:
    if "2" in figures:
        bandit_curves.work(run, [name for name in names if name in QUERIES], list(CURVES))
    for part in ("3", "6"):
        if part in figures:
            numbers = [name for name in names if name in bandit_regression.NAMES]
            bandit_regression.work(run, numbers, METHODS[part])


def main(argv: list[str] | None = None) -> None:
    known = (*QUERIES, *bandit_regression.NAMES)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of NAME.npz")
    parser.add_argument("--parts", type=some_of((2, 3, 6)), default=["2", "3", "6"])
    parser.add_argument("--names", type=some_of(known), default=list(known))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=float, default=np.inf, help="seconds; then no new run")
    parser.add_argument("--report", action="store_true", help="draw what is recorded, run nothing")
    parser.add_argument("--quick", action="store_true", help="a smoke run, not recorded")
    options = parser.parse_args(argv)
    one_thread()
    with tempfile.TemporaryDirectory() as scratch:
        quick = Path(scratch)
        run = Run(
            options.data,
            quick / RECORDED.name if options.quick else RECORDED,
            2 if options.quick else options.seeds,
            time.monotonic() + options.budget,
            100 if options.quick else 1,
        )
        if not options.report:
            try:
                work(run, options.parts, options.names)
            except OutOfTimeError:
                print("The budget is spent; run again to continue.", flush=True)
        show(run, options.parts, quick if options.quick else PICTURES)


if __name__ == "__main__":
    main(sys.argv[1:])
