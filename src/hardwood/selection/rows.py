"""Rows of a table with their targets and weights, and how some of them are kept for validation."""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from hardwood.estimators.target import class_target, has_several_labels
from hardwood.estimators.weights import row_weights
from hardwood.table import Table
from hardwood.table.subset import n_rows, taken


@dataclass(frozen=True)
class Rows:
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
    def of(cls, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        """Check that there is a target and a weight for every row."""
        n = n_rows(X)
        found = n_rows(y)
        if found != n:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {n} rows, "
                f"y has {found}."
            )
        return cls(X, y, row_weights(sample_weight, n))

    def __len__(self) -> int:
        return n_rows(self.X)

    def take(self, rows: np.ndarray) -> Rows:
        """Return some of the rows; X keeps its kind, y becomes an array or stays a list."""
        y = [self.y[i] for i in rows] if isinstance(self.y, list | tuple) else _array(self.y)[rows]
        weight = None if self.weight is None else self.weight[rows]
        return Rows(taken(self.X, rows), y, weight)

    def digest(self) -> str:
        """Return a short text that tells this table, targets and weights from others."""
        parts = [_table_digest(self.X), _bytes(self.y)]
        if self.weight is not None:
            parts.append(_bytes(self.weight))
        return hashlib.sha256(b"|".join(parts)).hexdigest()[:16]


@dataclass(frozen=True)
class Fold:
    """Which rows teach and which score; the latter may be rows of another table."""

    train: np.ndarray
    validation: np.ndarray | Rows

    def parts(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the rows that teach and those that score."""
        if isinstance(self.validation, Rows):
            return rows, self.validation
        return rows.take(self.train), rows.take(self.validation)

    def weight(self, rows: Rows) -> np.ndarray | None:
        """Return the weights of the rows that score."""
        if isinstance(self.validation, Rows):
            return self.validation.weight
        return None if rows.weight is None else rows.weight[self.validation]


def folds_of(
    validation: Any, rows: Rows, *, is_classifier: bool, rng: np.random.Generator
) -> tuple[Fold, ...]:
    """Divide the rows as `validation` says (see `hardwood.tune`), with every class in proportion.

    A class has at least one row among those that teach.

    Raises
    ------
    ValueError, TypeError
        For what is no way to divide rows, and for too few rows.
    """
    folds = _folds(validation, rows, is_classifier, rng)
    for fold in folds:
        weight = fold.weight(rows)
        if weight is not None and not weight.any():
            raise ValueError("validation: all rows that score have weight 0.")
    return folds


def _folds(
    validation: Any, rows: Rows, is_classifier: bool, rng: np.random.Generator
) -> tuple[Fold, ...]:
    n = len(rows)
    if isinstance(validation, tuple):
        return (Fold(np.arange(n), _given(validation)),)
    if hasattr(validation, "split") and not isinstance(validation, str):
        return _checked(validation.split(rows.X, rows.y), n)
    if isinstance(validation, list):
        return _checked(iter(validation), n)
    if isinstance(validation, bool) or not isinstance(validation, numbers.Real):
        raise TypeError(
            "validation must be a fraction of the rows, a number of folds, (X, y) or (X, y, "
            f"sample_weight), a list of (train, validation) rows or a splitter, got {validation!r}."
        )
    is_of_classes = is_classifier and not has_several_labels(rows.y)
    classes = class_target(rows.y, n).index if is_of_classes else None
    if isinstance(validation, numbers.Integral):
        return _k_folds(int(validation), n, classes, rng)
    return (_hold_out(float(validation), n, classes, rng),)


def _table_digest(X: Any) -> bytes:
    """Tell the entries and names of a table from others', in whatever library it came."""
    table = Table.of(X)
    content = hashlib.sha256(repr((table.n_rows, table.names, table.levels)).encode())
    if sparse.issparse(table.matrix):
        arrays = (table.matrix.data, table.matrix.indices, table.matrix.indptr)
    else:
        arrays = (table.matrix,)
    for array in arrays:
        content.update(np.ascontiguousarray(array).data)
    return content.digest()


def digest_of(folds: tuple[Fold, ...]) -> str:
    """Return a short text that tells this division of the rows from others."""
    digest = hashlib.sha256()
    for fold in folds:
        digest.update(fold.train.astype("<i8").tobytes() + b"|")
        if isinstance(fold.validation, Rows):
            digest.update(fold.validation.digest().encode())
        else:
            digest.update(fold.validation.astype("<i8").tobytes())
    return digest.hexdigest()[:16]


def _given(validation: tuple[Any, ...]) -> Rows:
    if len(validation) not in (2, 3):
        raise ValueError(
            "validation rows are given as (X, y) or (X, y, sample_weight), got a tuple of "
            f"{len(validation)}."
        )
    rows = Rows.of(*validation)
    if len(rows) == 0:
        raise ValueError("The validation rows are empty.")
    return rows


def _checked(pairs: Iterator[Any], n: int) -> tuple[Fold, ...]:
    folds = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(
                "validation as a list holds pairs of row numbers (train, validation), got "
                f"{pair!r}."
            )
        parts = [np.asarray(part) for part in pair]
        parts = [np.flatnonzero(part) if part.dtype == bool else part for part in parts]
        for part in parts:
            if part.ndim != 1 or part.size == 0 or part.dtype.kind not in "iu":
                raise ValueError("validation: each part of a fold is a list of row numbers.")
            if part.min() < 0 or part.max() >= n:
                raise ValueError(
                    f"validation: row numbers go from 0 to {n - 1}, found {part.min()} to "
                    f"{part.max()}."
                )
        if np.intersect1d(parts[0], parts[1]).size:
            raise ValueError("validation: a row is in both parts of a fold; scores would be false.")
        folds.append(Fold(*(part.astype(np.int64) for part in parts)))
    if not folds:
        raise ValueError("validation: there is no fold.")
    return tuple(folds)


def _hold_out(
    fraction: float, n: int, classes: np.ndarray | None, rng: np.random.Generator
) -> Fold:
    if not 0 < fraction < 1:
        raise ValueError(
            f"validation as a fraction of the rows lies between 0 and 1, got {fraction:g}."
        )
    order = _order(n, classes, rng)
    # Every (1 / fraction)-th of the rows, which are lined up class by class.
    steps = np.floor((np.arange(n + 1) + rng.random()) * fraction)
    is_kept = np.zeros(n, dtype=bool)
    is_kept[order] = np.diff(steps) > 0
    return _fold(is_kept, classes, f"a fraction of {fraction:g}")


def _k_folds(
    k: int, n: int, classes: np.ndarray | None, rng: np.random.Generator
) -> tuple[Fold, ...]:
    if not 2 <= k <= n:
        raise ValueError(
            f"validation as a number of folds goes from 2 to the number of rows, {n}, got {k}. "
            "For a fraction of the rows give a float."
        )
    number = np.empty(n, dtype=np.int64)
    number[_order(n, classes, rng)] = np.arange(n) % k  # dealt out like cards, class by class
    return tuple(_fold(number == i, classes, f"one of {k} folds") for i in range(k))


def _order(n: int, classes: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    order = rng.permutation(n)
    return order if classes is None else order[np.argsort(classes[order], kind="stable")]


def _fold(is_kept: np.ndarray, classes: np.ndarray | None, words: str) -> Fold:
    if classes is not None:  # a class that nobody teaches would be wrong whatever is tried
        first_row = np.unique(classes, return_index=True)[1]
        absent = np.bincount(classes[~is_kept], minlength=first_row.size) == 0
        is_kept[first_row[absent]] = False
    train, kept = np.flatnonzero(~is_kept), np.flatnonzero(is_kept)
    if train.size < 2 or kept.size == 0:
        raise ValueError(
            f"{is_kept.size} rows are too few to keep {words} for validation; give more rows or "
            "another validation."
        )
    return Fold(train, kept)


def _array(y: Any) -> np.ndarray:
    return np.asarray(y.toarray() if sparse.issparse(y) else y)


def _bytes(values: Any) -> bytes:
    array = _array(values)
    if array.dtype.kind in "biuf":
        return np.ascontiguousarray(array, dtype="<f8").tobytes()
    return "\x1f".join(map(str, array.ravel().tolist())).encode("utf-8", "surrogatepass")
