"""How much each row counts: `sample_weight` and `class_weight`, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_class_weight

from hardwood.estimators.target import ClassTarget


def row_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Read `sample_weight`: a number, or one finite number >= 0 per row, of which one is positive.

    Returns
    -------
    weight
        (n,) float64, or None for rows that all count the same.
    """
    if sample_weight is None or np.isscalar(sample_weight):
        _check_positive_scalar(sample_weight)
        return None
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got shape {weight.shape}.")
    if len(weight) != n_rows:
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected ({n_rows},)!")
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(f"Negative values in data passed to sample_weight (row {row}).")
    if not (weight > 0).any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    with np.errstate(over="ignore"):
        if not np.isfinite(weight.sum()):
            raise ValueError(
                f"sample_weight adds up to infinity (the largest is {weight.max():g}). "
                "Divide all weights by that."
            )
    return weight


def _check_positive_scalar(weight: Any) -> None:
    if weight is None:
        return
    if not isinstance(weight, int | float | np.number) or not 0 <= weight < np.inf:
        raise ValueError(f"sample_weight must be a number >= 0 or an array, got {weight!r}.")
    if weight == 0:
        raise ValueError("Sample weights must contain at least one non-zero number, got zero.")


def class_weights(
    class_weight: Any, target: ClassTarget, weight: np.ndarray | None
) -> np.ndarray | None:
    """Read `class_weight`: what the weight of each row is multiplied by.

    Parameters
    ----------
    class_weight
        None, ``"balanced"`` or a mapping from class to factor.
    target
        The class of each row.
    weight
        What each row counts; None for rows that count the same.

    Returns
    -------
    factor
        (n,) float64, or None where all are 1.

    Notes
    -----
    ``"balanced"`` gives every class that occurs the same total weight. Totals count
    `sample_weight`, so that a row of weight two and the row given twice are balanced alike.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        return _balanced(target, weight)[target.index]
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be None, 'balanced' or a dict from class to weight, got "
            f"{class_weight!r}."
        )
    of_class = compute_class_weight(dict(class_weight), classes=target.classes, y=target.classes)
    if not (np.isfinite(of_class).all() and (of_class >= 0).all() and of_class.any()):
        raise ValueError(
            f"class_weight must hold finite weights >= 0, not all zero, got {class_weight!r}."
        )
    return np.asarray(of_class, dtype=np.float64)[target.index]


def _balanced(target: ClassTarget, weight: np.ndarray | None) -> np.ndarray:
    n_classes = len(target.classes)
    if weight is None:
        totals = np.bincount(target.index, minlength=n_classes).astype(np.float64)
    else:  # sums that are exact but for one rounding do not depend on the order of rows
        order = np.argsort(target.index, kind="stable")
        ends = np.cumsum(np.bincount(target.index, minlength=n_classes))[:-1]
        totals = np.array([math.fsum(part) for part in np.split(weight[order], ends)])
    present = totals > 0
    return np.where(present, totals.sum() / (present.sum() * np.where(present, totals, 1.0)), 1.0)
