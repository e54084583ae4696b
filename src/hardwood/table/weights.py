"""Read and check row weights: `sample_weight` and `class_weight`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hardwood.errors import TableError
from hardwood.table.target import ClassTarget, check_finite

_NEGLIGIBLE = float(np.finfo(np.float32).tiny)  # relative to the largest weight
WEIGHTS_THAT_COUNT = (
    f"A weight below {_NEGLIGIBLE:.1e} times the largest counts as 0. Are some far too large?"
)


def row_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Read `sample_weight`: a number, or a finite number >= 0 per row, at least one positive.

    Weights that float32 cannot hold beside the largest one become 0.

    Returns
    -------
    weight
        (n,) float64, or None for equal weights.

    Raises
    ------
    TableError
        For anything else, and for weights with an infinite sum.
    """
    if sample_weight is None or np.isscalar(sample_weight):
        _check_positive_scalar(sample_weight)
        return None
    weight = _numbers(sample_weight)
    if weight.ndim != 1:
        raise TableError(f"Sample weights must be 1D array or scalar, got shape {weight.shape}.")
    if len(weight) != n_rows:
        raise TableError(f"sample_weight.shape == {weight.shape}, expected ({n_rows},)!")
    check_finite("sample_weight", weight)
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise TableError(
            f"Negative values in data passed to sample_weight: {weight[row]} at row {row}."
        )
    if not weight.any():
        raise TableError("Sample weights must contain at least one non-zero number.")
    with np.errstate(over="ignore"):
        if not np.isfinite(weight.sum()):
            raise TableError(
                f"sample_weight adds up to infinity (the largest is {weight.max():g}). "
                "Divide all weights by that."
            )
    return without_negligible(weight)


def without_negligible(weight: np.ndarray) -> np.ndarray:
    """Return weights (n,) with 0 for those that float32 cannot hold beside the largest one."""
    return np.where(weight < _NEGLIGIBLE * weight.max(), 0.0, weight)


def weight_of_rows(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Read `sample_weight` like `row_weights`; return ones for equal weights."""
    weight = row_weights(sample_weight, n_rows)
    return np.ones(n_rows) if weight is None else weight


def _numbers(sample_weight: Any) -> np.ndarray:
    given = np.asarray(sample_weight)
    if given.dtype.kind in "biufO":
        try:
            return given.astype(np.float64)
        except (TypeError, ValueError):
            pass  # refused below
    raise TableError(f"sample_weight must hold numbers, got {given.dtype} of shape {given.shape}.")


def _check_positive_scalar(weight: Any) -> None:
    if weight is None:
        return
    if not isinstance(weight, int | float | np.number) or not 0 <= weight < np.inf:
        raise TableError(f"sample_weight must be a number >= 0 or an array, got {weight!r}.")
    if weight == 0:
        raise TableError("Sample weights must contain at least one non-zero number, got zero.")


def class_weights(
    class_weight: Any, target: ClassTarget, weight: np.ndarray | None
) -> np.ndarray | None:
    """Read `class_weight`; return a factor for the weight of each row.

    Parameters
    ----------
    class_weight
        None, ``"balanced"`` or a mapping from class to factor.
    target
        The class of each row.
    weight
        Row weights; None for equal weights.

    Returns
    -------
    factor
        (n,) float64, or None if all are 1.

    Notes
    -----
    ``"balanced"`` gives every class that occurs the same total weight, including `sample_weight`: a
    row of weight two is equivalent to the same row given twice.
    """
    if class_weight is None:
        return None
    if _is_balanced(class_weight):
        return _balanced(target.index, len(target.classes), weight)[target.index]
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be None, 'balanced' or a dict from class to weight, got "
            f"{class_weight!r}."
        )
    labels = target.classes.tolist()
    absent = [label for label in labels if label not in class_weight]
    if absent and len(labels) - len(absent) != len(class_weight):
        raise ValueError(f"The classes, {absent}, are not in class_weight")
    of_class = np.array([class_weight.get(label, 1.0) for label in labels], dtype=np.float64)
    if not (np.isfinite(of_class).all() and (of_class >= 0).all() and of_class.any()):
        raise ValueError(
            f"class_weight must hold finite weights >= 0, not all zero, got {class_weight!r}."
        )
    return of_class[target.index]


def label_weights(
    class_weight: Any, labels: np.ndarray, weight: np.ndarray | None
) -> np.ndarray | None:
    """Read `class_weight` for several labels, (n, k) of 0 and 1; return a factor for each row.

    ``"balanced"`` multiplies the factors of a row's labels, each balanced by itself, as
    scikit-learn does.
    """
    if class_weight is None:
        return None
    if not _is_balanced(class_weight):
        raise ValueError(
            "class_weight must be None or 'balanced' if y has several labels, got "
            f"{class_weight!r}. Other weights can be given to fit, as sample_weight."
        )
    index = labels.astype(np.int64)
    factors = [_balanced(column, 2, weight)[column] for column in index.T]
    return np.prod(factors, axis=0, dtype=np.float64)


def _is_balanced(class_weight: Any) -> bool:
    return isinstance(class_weight, str) and class_weight == "balanced"


def _balanced(index: np.ndarray, n_classes: int, weight: np.ndarray | None) -> np.ndarray:
    """Return the factor of each class, (n_classes,), from the class of each row, (n,)."""
    if weight is None:
        totals = np.bincount(index, minlength=n_classes).astype(np.float64)
    else:  # fsum rounds once, so that the result does not depend on the order of rows
        order = np.argsort(index, kind="stable")
        ends = np.cumsum(np.bincount(index, minlength=n_classes))[:-1]
        totals = np.array([math.fsum(part) for part in np.split(weight[order], ends)])
    present = totals > 0
    return np.where(present, totals.sum() / (present.sum() * np.where(present, totals, 1.0)), 1.0)
