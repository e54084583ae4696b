"""Compare the defaults of the non-greedy estimators with alternatives.

    python -m benchmarks.quality.non_greedy_defaults --data FOLDER [--quick]

Each alternative changes one option. The measure is the accuracy on the validation rows of three
tables (``NAME.npz``, rows whose ``split`` is 1, or else a fifth of the training rows). Test rows
are not used.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import Column, Table
from benchmarks.timing import one_thread
from hardwood import GreedyTreeClassifier, NonGreedyTreeClassifier
from hardwood.learn import Training

DEPTHS = {"letter": 12, "pendigits": 10, "satimage": 8}
ALTERNATIVES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "fast inference": {"inference": "fast"},
    "SGD": {"solver": "sgd"},
    "nu = 4": {"nu": 4.0},
    "nu = 10": {"nu": 10.0},
    "nu = 100": {"nu": 100.0},
    "rate 0.03": {"learning_rate": 0.03},
    "rate 0.3": {"learning_rate": 0.3},
    "no momentum, rate 0.5": {"momentum": 0.0, "learning_rate": 0.5},
    "batches of 32, rate 0.05": {"batch_size": 32, "learning_rate": 0.05},
    "constant rate 0.03": {
        "learning_rate": 0.03,
        "training": Training(optimizer="sgd", schedule="constant", clip_norm=None),
    },
    "start from axis splits": {"init": "axis"},
    "start from OC1": {"init": "oc1"},
}
COLUMNS = [
    Column("name", "alternative", width=26, words=True),
    *[Column(name, f"{name}, depth {depth}", ".4f") for name, depth in DEPTHS.items()],
    Column("mean", "mean", ".4f"),
]


def parts(folder: Path, name: str) -> tuple[np.ndarray, ...]:
    """Return X and y for training, and X and y for scoring."""
    with np.load(folder / f"{name}.npz") as arrays:
        X, y, split = arrays["X"].astype(np.float32), arrays["y"], arrays["split"].copy()
    if not (split == 1).any():
        rows = np.random.default_rng(0).permutation(np.flatnonzero(split == 0))
        split[rows[: len(rows) // 5]] = 1
    return X[split == 0], y[split == 0], X[split == 1], y[split == 1]


def accuracy(model: Any, data: tuple[np.ndarray, ...], n_seeds: int) -> float:
    """Return the mean accuracy over seeds."""
    X, y, X_valid, y_valid = data
    scores = [
        model.set_params(random_state=seed).fit(X, y).score(X_valid, y_valid)
        for seed in range(n_seeds)
    ]
    return float(np.mean(scores))


def main() -> int:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of NAME.npz")
    parser.add_argument("--quick", action="store_true", help="1 seed, not recorded")
    arguments = parser.parse_args()
    n_seeds = 1 if arguments.quick else 2
    tables = {name: parts(arguments.data, name) for name in DEPTHS}
    report = Table(
        "non_greedy_defaults",
        "Alternatives to the defaults of non-greedy trees: accuracy on validation rows, mean over "
        f"{n_seeds} seed(s).",
        COLUMNS,
        {"seeds": n_seeds},
        kept=not arguments.quick,
    )
    models: dict[str, dict[str, Any]] = {
        "the CO2 start alone": {
            name: GreedyTreeClassifier(splitter="co2", max_depth=depth)
            for name, depth in DEPTHS.items()
        }
    }
    for alternative, options in ALTERNATIVES.items():
        models[alternative] = {
            name: NonGreedyTreeClassifier(max_depth=depth, early_stopping=False, **options)
            for name, depth in DEPTHS.items()
        }
    for alternative, of_table in models.items():
        scores = {name: accuracy(model, tables[name], n_seeds) for name, model in of_table.items()}
        report.add(name=alternative, **scores, mean=float(np.mean(list(scores.values()))))
    report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
