"""Compare the defaults of the TAO estimators with alternatives.

    python -m benchmarks.quality.tao_defaults --data FOLDER [--quick]

Each alternative changes one option. All are scored on a held-out fifth of the training and
validation rows of seven tables (``NAME.npz``), drawn again for every seed: by accuracy in percent
for classification, by the root mean squared error for regression. Test rows are not used.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.dgt_paper import TASKS
from benchmarks.quality.parts import parts
from benchmarks.record import Column, Table
from benchmarks.timing import one_thread
from hardwood import GreedyTreeClassifier, GreedyTreeRegressor, TAOClassifier, TAORegressor

CLASSES = {"segment": 8, "satimage": 6, "pendigits": 8, "letter": 10}
NUMBERS = {"abalone": 6, "ailerons": 6, "cpu_act": 6}
HELD_OUT = 0.2
ALTERNATIVES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "log loss": {"loss": "log_loss"},
    "start from CO2": {"init": "co2"},
    "start from OC1": {"init": "oc1"},
    "start from random splits": {"init": "random"},
    "no L2 penalty": {"l2": 0.0},
    "no L1 penalty": {"l1": 0.0},
    "5 sweeps at most": {"max_sweeps": 5},
    "a fifth for validation": {"validation_fraction": 0.2},
    "linear leaves": {"leaves": "linear"},
    "linear leaves, ridge 10": {"leaves": "linear", "leaf_l2": 10.0},
    "linear leaves, ridge 100": {"leaves": "linear", "leaf_l2": 100.0},
}
COLUMNS = [
    Column("name", "alternative", width=26, words=True),
    *[Column(name, f"{name}, {depth}", ".2f") for name, depth in CLASSES.items()],
    *[Column(name, f"{name}, {depth}", ".3f") for name, depth in NUMBERS.items()],
]


def drawn(folder: Path, name: str, seed: int) -> tuple[np.ndarray, ...]:
    """Return X and y for training, and X and y for scoring."""
    table = parts(folder, TASKS[name], 0)
    rows = np.random.default_rng(seed).permutation(table.learnable)
    n_scored = int(HELD_OUT * len(rows))
    fit, scored = rows[n_scored:], rows[:n_scored]
    return table.X[fit], table.y[fit], table.X[scored], table.y[scored]


def score(model: Any, folder: Path, name: str, n_seeds: int) -> float:
    """Return the mean score over seeds."""
    found = []
    for seed in range(n_seeds):
        X, y, judge_X, judge_y = drawn(folder, name, seed)
        if hasattr(model, "random_state"):
            model.set_params(random_state=seed)
        answer = model.fit(X, y).predict(judge_X)
        if name in CLASSES:
            found.append(100.0 * float(np.mean(answer == judge_y)))
        else:
            found.append(float(np.sqrt(np.mean((answer - judge_y) ** 2))))
    return float(np.mean(found))


def models_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return one model per table for which the options are valid."""
    of_classes = {n: TAOClassifier(max_depth=depth, **options) for n, depth in CLASSES.items()}
    of_numbers = {n: TAORegressor(max_depth=depth, **options) for n, depth in NUMBERS.items()}
    if options.get("leaves") == "linear":
        return of_numbers
    return of_classes if "loss" in options else of_classes | of_numbers


def main() -> int:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of NAME.npz")
    parser.add_argument("--quick", action="store_true", help="1 seed, not recorded")
    arguments = parser.parse_args()
    n_seeds = 1 if arguments.quick else 3
    report = Table(
        "tao_defaults",
        "Alternatives to the defaults of TAO: accuracy or error on rows set apart, mean over "
        f"{n_seeds} seed(s).",
        COLUMNS,
        {"seeds": n_seeds},
        kept=not arguments.quick,
    )
    starts = {n: GreedyTreeClassifier(max_depth=depth) for n, depth in CLASSES.items()} | {
        n: GreedyTreeRegressor(max_depth=depth) for n, depth in NUMBERS.items()
    }
    for name, of_table in {
        "the start alone": starts,
        **{name: models_of(options) for name, options in ALTERNATIVES.items()},
    }.items():
        found = {t: score(m, arguments.data, t, n_seeds) for t, m in of_table.items()}
        report.add(name=name, **found)
    report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
