"""Compute and draw Figures 2 and 3 of the non-greedy paper.

    python -m benchmarks.quality.non_greedy_figures --data FOLDER [--names mnist,connect4]
        [--methods co2,non_greedy] [--depths 6,10] [--seeds 5] [--jobs 1] [--budget SECONDS]
        [--report] [--quick]

Figure 2: accuracy on training and test rows by depth, of axis-aligned, random, OC1, CO2 and
non-greedy trees. For each method and depth the settings below are compared on validation rows. The
best is trained on training and validation rows together and scored on test rows once per seed
(`trials.py`), as in Sec. 7 of the paper. Non-greedy trees start from the CO2 tree that was chosen
for their depth, hold out no rows for early stopping, and use all their epochs. Of covtype, 40,000
rows of each part are drawn with seed 0.

Figure 3: leaves that training rows reach, by nu, on MNIST, and also on Connect4 and letter. They
are those of the fits that chose nu for Figure 2: stable SGD on training rows, learning rate 0.1.
The dotted lines are the axis-aligned trees of the same depths and rows.

Every fit is recorded in ``results/non_greedy.jsonl`` at once and is not repeated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from benchmarks.quality.dgt_paper import TASKS, Task
from benchmarks.quality.learners import Grid, Method, Setting
from benchmarks.quality.ledger import Ledger
from benchmarks.quality.parts import Parts, parts
from benchmarks.quality.trials import Pair, Run, add_options, run_of, some_of, summary, work
from benchmarks.record import RESULTS, Column, Table, file_of
from benchmarks.timing import one_thread
from hardwood import GreedyTreeClassifier, NonGreedyTreeClassifier
from hardwood.learn.non_greedy import NU_GRID

RECORDED = file_of("non_greedy")
PICTURES = RESULTS.parents[1] / "docs" / "images"
NAMES = ("pendigits", "letter", "connect4", "mnist", "covtype")
DEPTHS = tuple(range(6, 19, 2))
TITLES = {
    "axis": "axis-aligned",
    "random": "random",
    "oc1": "OC1",
    "co2": "CO2",
    "non_greedy": "non-greedy",
}
ROWS = {"covtype": 40_000}  # of each part; all of them elsewhere
FIGURE_3, FIGURE_3_RATE = ("mnist", "connect4", "letter"), 0.1

# --- what is tuned -----------------------------------------------------------------------------

LEAVES: Grid = [{"min_samples_leaf": [1, 10]}]
AS_IT_IS: Grid = [{}]
CO2_NUS: Grid = [{"nu": [0.1, 1.0, 10.0]}]
NUS: Grid = [{"nu": list(NU_GRID), "learning_rate": [FIGURE_3_RATE]}]
SGD: Grid = [{"nu": [43.0, 100.0], "learning_rate": [0.1], "solver": ["sgd"]}]
SGD_RATES: Grid = [{"nu": [10.0, 43.0, 100.0], "learning_rate": [0.03, 0.1], "solver": ["sgd"]}]
NUS_AND_RATES: Grid = [*NUS, {"nu": [10.0, 43.0, 100.0], "learning_rate": [0.3]}]
GRIDS: dict[str, dict[str, Grid]] = {
    "axis": {"": LEAVES},
    "random": {"": LEAVES},
    "oc1": {"": LEAVES, "connect4": AS_IT_IS, "mnist": AS_IT_IS, "covtype": AS_IT_IS},
    # On mnist 0.1 and 1 were compared at depth 10, 93.2 and 93.6 % of the validation rows.
    "co2": {"": CO2_NUS, "mnist": [{"nu": [1.0]}]},
    "non_greedy": {
        "": [*NUS_AND_RATES, *SGD],
        "connect4": [*NUS, *SGD_RATES],
        "mnist": [*NUS, {"nu": [43.0], "learning_rate": [0.1], "solver": ["sgd"]}],
        "covtype": [*NUS, *SGD],
    },
}
# Epochs of non-greedy trees: for comparing settings, and for the final fit.
PASSES: dict[str, tuple[int, int]] = {
    "pendigits": (60, 200),
    "letter": (60, 200),
    "connect4": (30, 120),
    "mnist": (8, 20),
    "covtype": (10, 20),
}
QUICK: Setting = {"max_epochs": 5}


# --- what is learned ---------------------------------------------------------------------------


_GROWN: OrderedDict[str, Any] = OrderedDict()
_MOST_GROWN = 4  # trees below that are cached


def co2_tree(X: np.ndarray, y: np.ndarray, setting: Setting) -> Any:
    """Return the fitted tree of a setting; the last ones are cached."""
    rows = hashlib.sha256(y.tobytes()).hexdigest()
    key = json.dumps([X.shape, rows, setting], sort_keys=True)
    if key not in _GROWN:
        _GROWN[key] = GreedyTreeClassifier(splitter="co2", **setting).fit(X, y)
        while len(_GROWN) > _MOST_GROWN:
            _GROWN.popitem(last=False)
    return _GROWN[key]


class CO2Tree(BaseEstimator):
    """A CO2 tree that is cached, since other fits start from it."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def fit(self, X: np.ndarray, y: np.ndarray) -> CO2Tree:
        self.max_depth = self.setting["max_depth"]
        self.model_ = co2_tree(X, y, self.setting)
        self.tree_ = self.model_.tree_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(X)


class FromCO2(BaseEstimator):
    """A non-greedy tree whose start is grown once for all settings that are compared."""

    def __init__(self, start: Setting, setting: Setting) -> None:
        self.start = start
        self.setting = setting

    def fit(self, X: np.ndarray, y: np.ndarray) -> FromCO2:
        start = co2_tree(X, y, self.start)
        self.max_depth = self.setting["max_depth"]
        self.model_ = NonGreedyTreeClassifier(init=start, **self.setting).fit(X, y)
        self.tree_ = self.model_.tree_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(X)


@dataclass(frozen=True)
class Tree(Method):
    """A method at one depth. A non-greedy tree starts from the CO2 tree chosen for that depth."""

    results: Path = RECORDED
    start: Method | None = None

    def settings(self, task: Task) -> list[Setting]:
        settings = super().settings(task)
        if self.start is None:
            return settings
        runs = Ledger(self.results, {"name": task.name, "method": self.start.name}).runs
        if not runs:
            raise SystemExit(f"{self.name} on {task.name} starts from {self.start.name}: run it.")
        return [{**setting, "start": runs[0]["setting"]} for setting in settings]


def method_of(run: Run, task: Task, kind: str, depth: int) -> Method:
    """Return a method at one depth."""
    passes = PASSES[task.name]

    def make(_: Task, setting: Setting, seed: int, n_jobs: int) -> Any:
        shared = {"max_depth": depth, "random_state": seed, "n_jobs": n_jobs}
        if kind == "non_greedy":
            own = {key: value for key, value in setting.items() if key != "start"}
            fixed = {"early_stopping": False, "max_epochs": passes[1]}
            return FromCO2({**shared, **setting["start"]}, {**shared, **fixed, **own})
        if kind == "co2":
            return CO2Tree({**shared, **setting})
        return GreedyTreeClassifier(splitter=kind, **shared, **setting)

    is_learned = kind == "non_greedy"
    return Tree(
        f"{kind}-{depth:02}",
        f"{TITLES[kind]}, depth {depth}",
        make,
        GRIDS[kind],
        is_random=kind != "axis",
        choosing={"max_epochs": passes[0]} if is_learned else {},
        quick=QUICK if is_learned else {},
        results=run.results,
        start=method_of(run, task, "co2", depth) if is_learned else None,
    )


class Figures(Run):
    """Trials on all rows, or on those of `ROWS`."""

    def parts(self, task: Task, split: int) -> Parts:
        if self.is_quick or task.name not in ROWS:
            return super().parts(task, split)
        return parts(self.data, task, split, max_rows=ROWS[task.name])


# --- results ----------------------------------------------------------------------------------


def accuracies(run: Run, names: list[str], kinds: list[str], depths: list[int]) -> list[Any]:
    """Return the records of Figure 2: a row per data set, depth and method."""
    rows = []
    for name in names:
        for depth in depths:
            for kind in kinds:
                task, method = TASKS[name], method_of(run, TASKS[name], kind, depth)
                row = summary(run, task, method)
                if row is None:
                    continue
                compared = [entry["score"] for entry in run.ledger(task, method).choosing]
                rows.append(
                    {
                        **row,
                        "method": kind,
                        "title": TITLES[kind],
                        "depth": depth,
                        "leaves": None if row["splits"] is None else row["splits"] + 1,
                        "validation": max(compared) if compared else None,
                    }
                )
    return rows


def leaves_by_nu(run: Run, name: str, depths: list[int]) -> list[Any]:
    """Return the records of Figure 3: per depth, leaves by nu and of the axis-aligned tree."""
    task, rows = TASKS[name], []
    for depth in depths:
        entries = run.ledger(task, method_of(run, task, "non_greedy", depth)).choosing
        at_rate = [
            e
            for e in entries
            if e["setting"]["learning_rate"] == FIGURE_3_RATE and "solver" not in e["setting"]
        ]
        axis = [
            e["splits"] + 1
            for e in run.ledger(task, method_of(run, task, "axis", depth)).choosing
            if e["setting"]["min_samples_leaf"] == 1
        ]
        if at_rate and axis:
            leaves = {e["setting"]["nu"]: e["splits"] + 1 for e in at_rate}
            valid = {e["setting"]["nu"]: e["score"] for e in at_rate}
            rows.append(
                {
                    "name": name,
                    "depth": depth,
                    "axis_leaves": axis[0],
                    "nu": sorted(leaves),
                    "leaves": [leaves[nu] for nu in sorted(leaves)],
                    "validation_accuracy": [valid[nu] for nu in sorted(leaves)],
                }
            )
    return rows


def _plots(n_rows: int, n_columns: int, **options: Any) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (1 + 2.9 * n_columns, 0.4 + 2.9 * n_rows)
    return plt.subplots(
        n_rows, n_columns, figsize=size, layout="constrained", squeeze=False, **options
    )


MARKS = {"axis": "s--", "random": "v:", "oc1": "^-.", "co2": "D--", "non_greedy": "o-"}
COLORS = {"axis": "C7", "random": "C1", "oc1": "C2", "co2": "C0", "non_greedy": "C3"}


def draw_accuracies(rows: list[Any], path: Path) -> None:
    """Draw Figure 2: test accuracy above, training accuracy below."""
    names = [name for name in ("mnist", "connect4", *NAMES) if any(r["name"] == name for r in rows)]
    names = list(dict.fromkeys(names))
    figure, axes = _plots(2, len(names), sharex=True)
    for column, name in enumerate(names):
        for kind, title in TITLES.items():
            found = [r for r in rows if (r["name"], r["method"]) == (name, kind)]
            depths = [r["depth"] for r in found]
            style = {"fmt": MARKS[kind], "color": COLORS[kind], "markersize": 4, "label": title}
            for ax, key, error in (
                (axes[0, column], "mean", [r["sd"] for r in found]),
                (axes[1, column], "train_score", None),
            ):
                ax.errorbar(depths, [r[key] for r in found], error, capsize=2, **style)
        axes[0, column].set_title(name)
        axes[1, column].set_xlabel("depth")
    axes[0, 0].set_ylabel("test accuracy, %")
    axes[1, 0].set_ylabel("training accuracy, %")
    axes[0, 0].legend(fontsize="small")
    axes[0, 0].set_xticks(DEPTHS)
    figure.savefig(path, dpi=150)


def draw_leaves(rows: list[Any], path: Path) -> None:
    """Draw Figure 3: a panel per data set, a line per depth; the axis-aligned tree is dotted."""
    names = list(dict.fromkeys(row["name"] for row in rows))
    figure, axes = _plots(1, len(names), sharex=True)
    for ax, name in zip(axes[0], names, strict=True):
        for row in (row for row in rows if row["name"] == name):
            color = f"C{DEPTHS.index(row['depth'])}"
            ax.plot(row["nu"], row["leaves"], "o-", color=color, label=f"depth {row['depth']}")
            ax.axhline(row["axis_leaves"], ls=":", color=color)
        ax.set_xscale("log")
        ax.set_ylim(bottom=0)
        ax.set_xlabel("nu")
        ax.set_title(name)
        ax.legend(fontsize="small")
    axes[0, 0].set_ylabel("active leaves (dotted: axis-aligned)")
    figure.savefig(path, dpi=150)


COLUMNS = [
    Column("name", "data", width=10, words=True),
    Column("depth", "depth"),
    Column("title", "method", width=12, words=True),
    Column("here", "test accuracy", width=14, words=True),
    Column("train_score", "training", ".2f"),
    Column("runs", "seeds"),
    Column("leaves", "leaves", ".0f"),
    Column("seconds", "s per fit", ".1f"),
    Column("chosen", "setting", words=True),
]


def report(run: Run, names: list[str], kinds: list[str], depths: list[int]) -> None:
    """Print the requested records."""
    title = "Accuracy of a tree; settings chosen on validation rows."
    table = Table("non_greedy_accuracy", title, COLUMNS, kept=False)
    for row in accuracies(run, names, kinds, depths):
        table.add(**row)


def figure_2_rows(run: Run) -> list[Any]:
    """Return everything recorded for Figure 2."""
    return accuracies(run, list(NAMES), list(TITLES), list(DEPTHS))


def figure_3_rows(run: Run) -> list[Any]:
    """Return everything recorded for Figure 3."""
    return [row for name in FIGURE_3 for row in leaves_by_nu(run, name, list(DEPTHS))]


def draw_figures(run: Run, pictures: Path) -> None:
    """Draw everything that is recorded."""
    if rows := figure_2_rows(run):
        draw_accuracies(rows, pictures / "non_greedy_accuracy.png")
    if rows := figure_3_rows(run):
        draw_leaves(rows, pictures / "non_greedy_leaves.png")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--names", type=some_of(NAMES), default=[], help=", ".join(NAMES))
    parser.add_argument("--methods", type=some_of(TITLES), default=list(TITLES))
    parser.add_argument("--depths", type=some_of(DEPTHS), default=[])
    arguments = parser.parse_args()
    if arguments.jobs == 1:
        one_thread()
    warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
    is_quick = arguments.quick
    names = arguments.names or list(NAMES[:2] if is_quick else NAMES)
    depths = [int(depth) for depth in arguments.depths] or list(DEPTHS[:1] if is_quick else DEPTHS)
    with tempfile.TemporaryDirectory() as scratch:
        run = Figures(**vars(run_of(arguments, RECORDED, scratch)))
        pairs: list[Pair] = [
            (TASKS[name], method_of(run, TASKS[name], kind, depth))
            for name in names
            for depth in depths
            for kind in arguments.methods
        ]
        if not arguments.report:
            work(run, pairs)
        report(run, names, arguments.methods, depths)
        draw_figures(run, Path(scratch) if is_quick else PICTURES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
