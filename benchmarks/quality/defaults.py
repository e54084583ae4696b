"""Compare the defaults of the DGT estimators with alternatives.

    python -m benchmarks.quality.defaults --data FOLDER [--names a,b] [--quick]

Scores at depth 6 on held-out parts of the *training* rows of the tables in FOLDER (``NAME.npz`` as
for `small_tables`). Test rows, whose ``split`` is 2, are not used. The folder should have none of
scikit-learn's small tables, which serve as the test.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.quality.small_tables import HEIGHT, Dataset
from benchmarks.record import Column, Table
from benchmarks.timing import one_thread
from hardwood import DGTClassifier, DGTRegressor
from hardwood.learn import Training

ALTERNATIVES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "1 restart": {"n_restarts": 1},
    "4 restarts": {"n_restarts": 4},
    "always a validation part": {"early_stopping": True},
    "never a validation part": {"early_stopping": False},
    "validation part of 20 %": {"validation_fraction": 0.2},
    "momentum 0.8, rate 0.003": {"momentum": 0.8, "learning_rate": 0.003},
    "Adam": {"momentum": 0.9, "training": Training(optimizer="adam", clip_norm=1.0, epsilon=1e-8)},
    "l2 = 1e-4": {"l2": 1e-4},
    "l1 = 1e-5": {"l1": 1e-5},
}
COLUMNS = [
    Column("name", "alternative", width=26, words=True),
    Column("accuracy", "accuracy", ".4f"),
    Column("accuracy_small", "accuracy, < 400 rows", ".4f"),
    Column("r2", "R2", ".4f"),
]


def training_tables(folder: Path, names: list[str], max_rows: int) -> Iterator[Dataset]:
    """Yield the training rows of the tables in a folder, at most ``max_rows`` each."""
    for name in names or sorted(path.stem for path in folder.glob("*.npz")):
        with np.load(folder / f"{name}.npz") as arrays:
            X, y = arrays["X"].astype(np.float32), arrays["y"]
            split = arrays["split"] if "split" in arrays.files else None
        if split is not None:
            is_used = (split if split.ndim == 1 else split[0]) != 2
            X, y = X[is_used], y[is_used]
        keep = np.random.default_rng(0).permutation(len(X))[:max_rows]
        yield Dataset(name, X[keep], y[keep])


def score(data: Dataset, options: dict[str, Any], n_splits: int) -> float:
    scores = []
    for seed in range(n_splits):
        X, X_test, y, y_test = train_test_split(
            data.X,
            data.y,
            test_size=0.25,
            random_state=seed,
            stratify=data.y if data.has_classes else None,
        )
        estimator = DGTClassifier if data.has_classes else DGTRegressor
        model = estimator(max_depth=HEIGHT, random_state=seed, **options).fit(X, y)
        scores.append(model.score(X_test, y_test))
    return float(np.mean(scores))


def mean_or_none(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def main() -> int:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of NAME.npz")
    parser.add_argument("--names", default="", help="some of its tables: a,b,c")
    parser.add_argument("--max-rows", type=int, default=6_000, help="cut larger tables")
    parser.add_argument("--quick", action="store_true", help="1 split, not recorded")
    arguments = parser.parse_args()
    n_splits = 1 if arguments.quick else 3
    names = [name for name in arguments.names.split(",") if name]
    tables = list(training_tables(arguments.data, names, arguments.max_rows))
    report = Table(
        "defaults",
        f"Alternatives to the defaults, depth {HEIGHT}: mean over {len(tables)} tables and "
        f"{n_splits} splits of their training rows.",
        COLUMNS,
        {"splits": n_splits, "max_rows": arguments.max_rows, "tables": [t.name for t in tables]},
        kept=not arguments.quick,
    )
    for name, options in ALTERNATIVES.items():
        scores = {data.name: score(data, options, n_splits) for data in tables}
        classes = [data for data in tables if data.has_classes]
        small = [data for data in classes if len(data.X) < 400]
        report.add(
            name=name,
            accuracy=mean_or_none([scores[data.name] for data in classes]),
            accuracy_small=mean_or_none([scores[data.name] for data in small]),
            r2=mean_or_none([scores[data.name] for data in tables if not data.has_classes]),
            scores=scores,
        )
    report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
