"""Accuracy of DGT trees with default hyperparameters on small tables, compared with CART.

    python -m benchmarks.quality.small_tables [--data FOLDER [--names a,b]] [--quick]

`DGTClassifier` and `DGTRegressor` with defaults and depth 6 are compared with CART whose depth is
tuned by inner cross-validation, CART of depth 6, and a linear model. The tables are scikit-learn's
digits, wine, breast cancer and diabetes, in random splits of 75 % training and 25 % test rows. With
``--data``, they are those of a folder of ``NAME.npz``: arrays ``X`` (n, d) and ``y`` (n,), integers
for classification or floats for regression.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.record import Column, Table
from benchmarks.timing import one_thread
from hardwood import DGTClassifier, DGTRegressor

HEIGHT = 6
DEPTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, None)
TEST_PART = 0.25

MODELS = ("dgt", "tuned", "cart6", "linear")
COLUMNS = [
    Column("name", "table", width=24, words=True),
    Column("measure", "measure", width=8),
    Column("n", "rows"),
    Column("d", "features"),
    Column("dgt", "DGT", width=15, words=True),
    Column("tuned", "CART, tuned", width=15, words=True),
    Column("cart6", "CART, depth 6", width=15, words=True),
    Column("linear", "linear", width=15, words=True),
    Column("difference", "DGT - CART tuned", width=16, words=True),
    Column("better", "better in"),
    Column("leaves", "leaves DGT/tuned"),
    Column("seconds", "DGT fit, s", ".2f"),
    Column("verdict", ""),
]


class Dataset(NamedTuple):
    """A table and its target."""

    name: str
    X: np.ndarray
    y: np.ndarray

    @property
    def has_classes(self) -> bool:
        return self.y.dtype.kind != "f"


def shipped() -> Iterator[Dataset]:
    """Yield scikit-learn's small tables."""
    loads = (
        ("digits", datasets.load_digits),
        ("wine", datasets.load_wine),
        ("breast cancer", datasets.load_breast_cancer),
        ("diabetes", datasets.load_diabetes),
    )
    for name, load in loads:
        X, y = load(return_X_y=True)
        yield Dataset(name, X, y)


def stored(folder: Path, names: list[str], max_rows: int) -> Iterator[Dataset]:
    """Yield the tables of a folder, each with at most ``max_rows`` rows, drawn at random."""
    for name in names or sorted(path.stem for path in folder.glob("*.npz")):
        with np.load(folder / f"{name}.npz") as arrays:
            X, y = arrays["X"].astype(np.float32), arrays["y"]
        if len(X) > max_rows:
            keep = np.sort(np.random.default_rng(0).permutation(len(X))[:max_rows])
            X, y = X[keep], y[keep]
        yield Dataset(name, X, y)


def models(has_classes: bool, seed: int) -> dict[str, BaseEstimator]:
    dgt = DGTClassifier if has_classes else DGTRegressor
    cart = DecisionTreeClassifier if has_classes else DecisionTreeRegressor
    linear = LogisticRegression(max_iter=2000) if has_classes else RidgeCV(np.logspace(-3, 3, 13))
    return {
        "dgt": dgt(max_depth=HEIGHT, random_state=seed),
        "tuned": GridSearchCV(cart(random_state=seed), {"max_depth": list(DEPTHS)}, cv=5),
        "cart6": cart(max_depth=HEIGHT, random_state=seed),
        "linear": make_pipeline(StandardScaler(), linear),
    }


def one_split(data: Dataset, seed: int) -> dict[str, Any]:
    """Return each model's score on one test part (accuracy or R^2), with DGT's size and time."""
    X, X_test, y, y_test = train_test_split(
        data.X,
        data.y,
        test_size=TEST_PART,
        random_state=seed,
        stratify=data.y if data.has_classes else None,
    )
    scores, seconds = {}, {}
    fitted = models(data.has_classes, seed)
    for name, model in fitted.items():
        start = time.perf_counter()
        model.fit(X, y)
        seconds[name] = time.perf_counter() - start
        scores[name] = float(model.score(X_test, y_test))
    leaves = {
        "dgt": fitted["dgt"].tree_.n_leaves,
        "tuned": int(fitted["tuned"].best_estimator_.get_n_leaves()),
    }
    return {"scores": scores, "seconds": seconds["dgt"], "leaves": leaves}


def standard_error(differences: np.ndarray) -> float:
    """Return the standard error of a mean over random splits, whose training parts overlap.

    Nadeau and Bengio 2003: the factor 1/r for r independent values becomes 1/r + test/train.
    """
    factor = 1 / len(differences) + TEST_PART / (1 - TEST_PART)
    return float(np.sqrt(factor * differences.var(ddof=1)))


def measure(data: Dataset, n_splits: int) -> dict[str, Any]:
    splits = [one_split(data, seed) for seed in range(n_splits)]
    scores = {name: np.array([split["scores"][name] for split in splits]) for name in MODELS}
    differences = scores["dgt"] - scores["tuned"]
    mean, error = float(differences.mean()), standard_error(differences)
    leaves = {
        name: round(float(np.mean([split["leaves"][name] for split in splits])))
        for name in ("dgt", "tuned")
    }
    return {
        "name": data.name,
        "measure": "accuracy" if data.has_classes else "R2",
        "n": len(data.X),
        "d": data.X.shape[1],
        **{name: f"{s.mean():.4f} ({s.std(ddof=1):.3f})" for name, s in scores.items()},
        "difference": f"{mean:+.4f} ({error:.3f})",
        "better": f"{(differences > 0).sum()}/{n_splits}",
        "leaves": f"{leaves['dgt']}/{leaves['tuned']}",
        "seconds": float(np.mean([split["seconds"] for split in splits])),
        "verdict": "pass" if mean > 0 else "MISS",
        "passed": bool(mean > 0),
        "scores": {name: s.tolist() for name, s in scores.items()},
        "difference_mean": mean,
        "difference_error": error,
    }


def main() -> int:
    one_thread()
    warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder of NAME.npz instead")
    parser.add_argument("--names", default="", help="some of its tables: a,b,c")
    parser.add_argument("--max-rows", type=int, default=20_000, help="cut larger tables of it")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="2 splits, not recorded")
    arguments = parser.parse_args()
    n_splits = 2 if arguments.quick else arguments.splits
    names = [name for name in arguments.names.split(",") if name]
    stored_data = arguments.data and stored(arguments.data, names, arguments.max_rows)
    table = Table(
        "stored_tables" if arguments.data else "small_tables",
        f"DGT with defaults and depth {HEIGHT} against CART and a linear model: mean over "
        f"{n_splits} random splits (standard deviation), and the paired difference (its standard "
        "error).",
        COLUMNS,
        {"splits": n_splits, "test_part": TEST_PART, "max_rows": arguments.max_rows},
        kept=not arguments.quick,
    )
    for data in stored_data or shipped():
        table.add(**measure(data, n_splits))
    passed = table.finish(
        "Depth of the tuned CART: 5-fold cross-validation over "
        f"{', '.join(str(depth) for depth in DEPTHS)}. Linear: logistic regression, or ridge "
        "regression with a tuned penalty; both on standardized columns.",
        "Standard errors allow for the overlap of training parts (Nadeau and Bengio 2003).",
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
