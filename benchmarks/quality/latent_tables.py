"""Latent trees beside CART and DGT: test scores on six tables, four runs each.

    python -m benchmarks.quality.latent_tables --data FOLDER [--names a,b] [--methods latent,cart]
        [--seeds 4] [--jobs 1] [--budget SECONDS] [--report] [--quick]

FOLDER holds ``NAME.npz`` (`parts.py` says what is in them); ``magic_like`` is made by scikit-learn.
What is done is in `trials.py`: settings are chosen on validation rows, the chosen one is learned
from training and validation rows and judged on test rows. Where no split is published, run s has
the split drawn with seed s. Chosen are CART's height and least leaf, the weight decay of latent
trees and the height of DGT; all else has its default. Every finished fit is in
``results/latent_tables.jsonl`` at once and is not made again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification

import hardwood
from benchmarks.quality.dgt_paper import Task
from benchmarks.quality.learners import METHODS as PEERS
from benchmarks.quality.learners import Method, Setting, tree
from benchmarks.quality.trials import Pair, Run, add_options, run_of, some_of, summary, work
from benchmarks.record import Column, Table, file_of
from benchmarks.timing import one_thread
from hardwood.errors import TableWarning

RECORDED = file_of("latent_tables")
N_RUNS = 4
TASKS = {
    task.name: task
    for task in (
        Task("higgs_15k", "Higgs, 15,000 rows", "accuracy", (), (), n_draws=N_RUNS),
        Task("magic_like", "like MAGIC, made", "accuracy", (), (), n_draws=N_RUNS),
        Task("california_housing", "California", "rmse", (), (), unit=1e-3, n_draws=N_RUNS),
        Task("house_16h", "House 16H", "rmse", (), (), unit=1e-3, n_draws=N_RUNS),
        Task("cpu_act", "CpuAct", "rmse", (), (), n_draws=N_RUNS),
        Task("ailerons", "Ailerons", "rmse", (), (), unit=1e4, n_draws=N_RUNS),
    )
}


def _latent(task: Task, setting: Setting, seed: int, n_jobs: int) -> BaseEstimator:
    kind = hardwood.LatentTreeClassifier if task.has_classes else hardwood.LatentTreeRegressor
    return kind(random_state=seed, n_jobs=n_jobs, **setting)


_DECAYS: dict[str, Any] = {"": [{"weight_decay": [0.0, 0.1, 0.5]}]}
_HEIGHTS: dict[str, Any] = {"": [{"max_depth": [6, 8]}]}
_QUICK: Setting = {"max_epochs": 2}
METHODS = {
    "cart": PEERS["cart_free"],
    "latent": Method("latent", "latent tree", _latent, _DECAYS, quick=_QUICK),
    "latent_layers": Method(
        "latent_layers",
        "latent tree, hidden layer",
        _latent,
        {"": [{"head": [[64]], "dropout": [0.1], "weight_decay": [0.0, 0.1, 0.5]}]},
        quick=_QUICK,
    ),
    "dgt": Method("dgt", "DGT", tree, _HEIGHTS, quick=_QUICK),
    "dgt_linear": Method(
        "dgt_linear",
        "DGT, linear leaves",
        tree,
        {"": [{"leaves": ["linear"], "max_depth": [3, 6]}]},
        quick=_QUICK,
    ),
}
COLUMNS = [
    Column("name", "data", width=18, words=True),
    Column("measure", "measure", width=8, words=True),
    Column("title", "method", width=26, words=True),
    Column("here", "here", width=18),
    Column("runs", "runs"),
    Column("splits", "splits", ".0f"),
    Column("seconds", "fit, s", ".2f"),
    Column("chosen", "chosen", words=True),
]


def magic_like(path: Path) -> None:
    """Make a table of the size of MAGIC's: 19,020 rows, 10 columns, two classes in eight lumps."""
    X, y = make_classification(
        19_020,
        10,
        n_informative=7,
        n_redundant=2,
        n_clusters_per_class=4,
        flip_y=0.1,
        class_sep=0.8,
        random_state=0,
    )
    np.savez(path, X=X.astype(np.float32), y=y)


def linked_folder(data: Path, folder: Path) -> Path:
    """Return a folder with the tables of another, and the one that is made."""
    for name in TASKS:
        stored = (data / f"{name}.npz").resolve()
        if stored.exists():
            (folder / f"{name}.npz").symlink_to(stored)
    if not (folder / "magic_like.npz").exists():
        magic_like(folder / "magic_like.npz")
    return folder


def report(run: Run, pairs: list[Pair]) -> None:
    """Print all recorded rows."""
    table = Table("latent_tables", "Latent trees, CART and DGT: test score.", COLUMNS, kept=False)
    for task, method in pairs:
        row = summary(run, task, method)
        if row is not None:
            table.add(**row)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_options(parser)
    parser.set_defaults(seeds=N_RUNS)
    parser.add_argument("--names", type=some_of(TASKS), default=list(TASKS))
    parser.add_argument("--methods", type=some_of(METHODS), default=list(METHODS))
    arguments = parser.parse_args()
    if arguments.jobs == 1:
        one_thread()
    warnings.simplefilter("ignore", TableWarning)
    pairs = [(TASKS[n], METHODS[m]) for m in arguments.methods for n in arguments.names]
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as folder:
        arguments.data = linked_folder(arguments.data, Path(folder))
        run = run_of(arguments, RECORDED, scratch)
        if not arguments.report:
            work(run, pairs)
        report(run, pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
