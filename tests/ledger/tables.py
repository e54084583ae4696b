"""The tables of the ledger: small, of every kind that the package reads."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

N_ROWS = 320  # of simulated tables


@dataclass(frozen=True)
class Table:
    """Training rows, and other rows to predict."""

    name: str
    X: Any
    y: Any
    X_other: Any
    y_other: Any
    weight: np.ndarray | None = None


CLASSES = ("iris", "cancer", "gaps", "shop", "words", "labels")
NUMBERS = ("diabetes", "weighted", "gaps", "shop", "words", "two")


@functools.cache
def classes(name: str) -> Table:
    """Return a table with classes, or with labels."""
    if name == "iris":
        X, y = load_iris(return_X_y=True)
        return _halved(name, X, y)
    if name == "cancer":  # two classes, weights
        X, y = load_breast_cancer(return_X_y=True)
        return _halved(name, X[:400], y[:400], 0.25 + (np.arange(400) % 7))
    if name == "gaps":  # two classes that are text, missing numbers
        X, score = _gaps()
        return _halved(name, X, np.where(score > 0, "yes", "no"))
    if name == "shop":  # a data frame: categories, dates, booleans; three classes
        X, score = _shop()
        return _halved(name, X, np.array(["low", "middle", "top"])[np.digitize(score, [-1, 1.5])])
    if name == "words":  # a sparse matrix
        X, score = _words()
        return _halved(name, X, np.digitize(score, [-0.5, 0.8]))
    if name == "many":  # enough rows for a validation part instead of cross-validation
        X, score = _gaps(4000)
        return _halved(name, X, (score > 0).astype(int))
    X, score = _gaps()  # multilabel
    X = np.nan_to_num(X)
    labels = np.stack([score > 0, X[:, 0] > 0, X[:, 1] + X[:, 2] > 0.5], axis=1)
    return _halved(name, X, labels.astype(int))


@functools.cache
def numbers(name: str) -> Table:
    """Return a table with numbers to predict."""
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        return _halved(name, X, y)
    if name == "weighted":  # weights, some of them zero
        X, score = _gaps()
        return _halved(name, np.nan_to_num(X), score, np.arange(N_ROWS) % 5 * 0.5)
    if name == "gaps":
        return _halved(name, *_gaps())
    if name == "shop":
        return _halved(name, *_shop())
    if name == "words":
        return _halved(name, *_words())
    if name == "many":
        return _halved(name, *_gaps(4000))
    X, score = _gaps()  # two targets, by name
    X = np.nan_to_num(X)
    y = pd.DataFrame({"first": score, "second": np.abs(X[:, 0] - X[:, 3])})
    return _halved(name, X, y)


def positive(table: Table) -> Table:
    """Return a table with nonnegative numeric targets, for losses that need them."""
    return Table(
        table.name, table.X, np.abs(table.y), table.X_other, np.abs(table.y_other), table.weight
    )


def _halved(name: str, X: Any, y: Any, weight: np.ndarray | None = None) -> Table:
    first, second = np.arange(0, len(y), 2), np.arange(1, len(y), 2)
    return Table(
        name,
        _rows(X, first),
        _rows(y, first),
        _rows(X, second),
        _rows(y, second),
        None if weight is None else weight[first],
    )


def _rows(values: Any, rows: np.ndarray) -> Any:
    return values.iloc[rows].reset_index(drop=True) if hasattr(values, "iloc") else values[rows]


def _gaps(n_rows: int = N_ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_rows, 6)) * [1, 10, 0.1, 1, 1, 1] + [0, 5, 0, 0, 100, 0]
    score = X[:, 0] + 0.1 * (X[:, 1] - 5) + np.where(X[:, 3] > 0.3, 1.5, -0.5)
    score += rng.normal(scale=0.2, size=n_rows)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, score


def _shop() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(2)
    size = rng.choice(["small", "medium", "large"], N_ROWS)
    town = rng.choice(["Aachen", "Bergen", "Cádiz", None], N_ROWS, p=[0.4, 0.3, 0.2, 0.1])
    age = np.where(rng.random(N_ROWS) < 0.1, np.nan, rng.integers(18, 80, N_ROWS))
    price = rng.gamma(2.0, 30.0, N_ROWS)
    member = rng.random(N_ROWS) < 0.5
    since = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, N_ROWS), unit="D")
    frame = pd.DataFrame(
        {
            "size": pd.Categorical(size, categories=["small", "medium", "large"]),
            "town": pd.Series(town, dtype=object),
            "age": age,
            "price": price,
            "member": member,
            "since": since,
        }
    )
    score = (size == "large") * 2.0 - (frame["town"] == "Bergen") + np.nan_to_num(age - 45) / 20
    return frame, np.asarray(score + np.where(member, price / 60, -0.5), float)


def _words() -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(3)
    X = scipy.sparse.random(N_ROWS, 40, density=0.1, random_state=3, format="csr")
    dense = X.toarray()
    score = 2 * dense[:, :10].sum(axis=1) - 2 * dense[:, 10:20].sum(axis=1)
    return X, score + rng.normal(scale=0.1, size=N_ROWS)
