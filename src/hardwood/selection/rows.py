"""Rows of a table with their targets and weights, and how some of them are held out."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from hardwood.table import Table
from hardwood.table.split import fold_numbers, hold_out, separated
from hardwood.table.subset import n_rows, taken
from hardwood.table.target import class_target, has_several_labels
from hardwood.table.weights import row_weights
from hardwood.text.numbers import plural


@dataclass(frozen=True)
class LabeledRows:
    """Rows of any kind of table.

    Attributes
    ----------
    X, y
        As `fit` takes them.
    weight
        (n,) float64, or None for rows that count the same.
    """

    X: Any
    y: Any
    weight: np.ndarray | None

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any = None) -> LabeledRows:
        """Check that there is a target and a weight for every row."""
        n = n_rows(X)
        found = n_rows(y)
        if found != n:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: X has "
                f"{plural(n, 'row')}, "
                f"y has {found}."
            )
        return cls(X, y, row_weights(sample_weight, n))

    def __len__(self) -> int:
        return n_rows(self.X)

    @property
    def weighted(self) -> dict[str, Any]:
        """The weights as an argument of `fit` and of scorers, where there are some."""
        return {} if self.weight is None else {"sample_weight": self.weight}

    def teach(self, model: Any) -> Any:
        """Let a model learn from the rows, and return it."""
        return model.fit(self.X, self.y, **self.weighted)

    def take(self, rows: np.ndarray) -> LabeledRows:
        """Return some of the rows; X keeps its kind, y becomes an array or stays a list."""
        y = [self.y[i] for i in rows] if isinstance(self.y, list | tuple) else _array(self.y)[rows]
        weight = None if self.weight is None else self.weight[rows]
        return LabeledRows(taken(self.X, rows), y, weight)

    def digest(self) -> str:
        """Return a short text that tells this table, targets and weights from others."""
        table = Table.of(self.X)
        matrix: Any = table.matrix
        if sparse.issparse(matrix):
            matrix = (matrix.data, matrix.indices, matrix.indptr)
        else:  # a digest depends on the order in memory
            matrix = np.ascontiguousarray(matrix)
        y = _array(self.y)
        target = y.astype(np.float64) if y.dtype.kind in "biuf" else [str(v) for v in y.ravel()]
        content = (table.n_rows, table.names, table.levels, matrix, target, self.weight)
        return str(joblib.hash(content))


@dataclass(frozen=True)
class Fold:
    """Which rows to learn from, and which to score; the latter may be rows of another table."""

    train: np.ndarray
    validation: np.ndarray | LabeledRows

    def parts(self, rows: LabeledRows) -> tuple[LabeledRows, LabeledRows]:
        """Return the rows to learn from and those to score."""
        if isinstance(self.validation, LabeledRows):
            return rows, self.validation
        return rows.take(self.train), rows.take(self.validation)

    def weight(self, rows: LabeledRows) -> np.ndarray | None:
        """Return the weights of the rows to score."""
        if isinstance(self.validation, LabeledRows):
            return self.validation.weight
        return None if rows.weight is None else rows.weight[self.validation]


def folds_of(
    validation: Any, rows: LabeledRows, *, is_classifier: bool, rng: np.random.Generator
) -> tuple[Fold, ...]:
    """Divide the rows as `validation` says (see `hardwood.tune`), with every class in proportion.

    A class has at least one row among those to learn from.

    Raises
    ------
    ValueError, TypeError
        For what is no way to divide rows, and for too few rows.
    """
    n = len(rows)
    if isinstance(validation, tuple):
        folds = [Fold(np.arange(n), _given(validation))]
    elif hasattr(validation, "split") and not isinstance(validation, str):
        folds = [_checked(pair, n) for pair in validation.split(rows.X, rows.y)]
    elif isinstance(validation, list):
        folds = [_checked(pair, n) for pair in validation]
    elif isinstance(validation, numbers.Real) and not isinstance(validation, bool):
        is_of_classes = is_classifier and not has_several_labels(rows.y)
        classes = class_target(rows.y, n).index if is_of_classes else None
        folds = _drawn(validation, n, classes, rng)
    else:
        raise TypeError(
            "validation must be a fraction of the rows, a number of folds, (X, y) or (X, y, "
            f"sample_weight), a list of (train, validation) rows or a splitter, got {validation!r}."
        )
    if not folds:
        raise ValueError("validation: there is no fold.")
    for fold in folds:
        weight = fold.weight(rows)
        if weight is not None and not weight.any():
            raise ValueError("validation: all rows that score have weight 0.")
    return tuple(folds)


def digest_of(folds: tuple[Fold, ...]) -> str:
    """Return a short text that tells this division of the rows from others."""
    parts = [
        (f.train, f.validation.digest() if isinstance(f.validation, LabeledRows) else f.validation)
        for f in folds
    ]
    return str(joblib.hash(parts))


def _given(validation: tuple[Any, ...]) -> LabeledRows:
    if len(validation) not in (2, 3):
        raise ValueError(
            "validation rows are given as (X, y) or (X, y, sample_weight), got a tuple of "
            f"{len(validation)}."
        )
    rows = LabeledRows.of(*validation)
    if len(rows) == 0:
        raise ValueError("The validation rows are empty.")
    return rows


def _checked(pair: Any, n: int) -> Fold:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ValueError(
            f"validation as a list holds pairs of row numbers (train, validation), got {pair!r}."
        )
    parts = [np.asarray(part) for part in pair]
    parts = [np.flatnonzero(part) if part.dtype == bool else part for part in parts]
    for part in parts:
        if part.ndim != 1 or part.size == 0 or part.dtype.kind not in "iu":
            raise ValueError("validation: each part of a fold is a list of row numbers.")
        if part.min() < 0 or part.max() >= n:
            raise ValueError(
                f"validation: row numbers go from 0 to {n - 1}, found {part.min()} to {part.max()}."
            )
    if np.intersect1d(parts[0], parts[1]).size:
        raise ValueError("validation: a row is in both parts of a fold; scores would be false.")
    return Fold(*(part.astype(np.int64) for part in parts))


def _drawn(
    validation: numbers.Real, n: int, classes: np.ndarray | None, rng: np.random.Generator
) -> list[Fold]:
    """Hold out a fraction of the rows, or divide them into folds, of every class in proportion."""
    if not isinstance(validation, numbers.Integral):
        fraction = float(validation)
        if not 0 < fraction < 1:
            raise ValueError(
                f"validation as a fraction of the rows lies between 0 and 1, got {fraction:g}."
            )
        return [Fold(*hold_out(n, fraction, rng, classes))]
    k = int(validation)
    if not 2 <= k <= n:
        raise ValueError(
            f"validation as a number of folds goes from 2 to the number of rows, {n}, got {k}. "
            "For a fraction of the rows give a float."
        )
    number = fold_numbers(n, k, rng, classes)
    return [Fold(*separated(number == i, classes, f"one of {plural(k, 'fold')}")) for i in range(k)]


def _array(y: Any) -> np.ndarray:
    return np.asarray(y.toarray() if sparse.issparse(y) else y)
