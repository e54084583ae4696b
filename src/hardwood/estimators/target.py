"""What is to be predicted: the `y` of `fit`, checked and in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from hardwood.model.structure import class_labels


@dataclass(frozen=True)
class ClassTarget:
    """Labels as indices.

    Attributes
    ----------
    classes
        The distinct labels (c,), sorted; at least two.
    index
        Per row, which of them (n,) int64.
    names
        Name of the target, where it has one.
    """

    classes: np.ndarray
    index: np.ndarray
    names: tuple[str, ...] | None


@dataclass(frozen=True)
class NumberTarget:
    """Numbers to regress on.

    Attributes
    ----------
    values
        (n, t) float64, finite.
    names
        Name of each column, where all have one.
    """

    values: np.ndarray
    names: tuple[str, ...] | None


def has_several_labels(y: Any) -> bool:
    """Whether a classifier's target has several columns."""
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple) and y and _is_row(y[0]):
        widths = {len(row) if _is_row(row) else 0 for row in y}
        if len(widths) > 1:
            raise ValueError(
                f"Unknown label type: rows of y have {min(widths)} to {max(widths)} entries; "
                "several labels are a table of 0 and 1 with one column each."
            )
        shape = np.shape(y)
    return shape is not None and len(shape) == 2 and shape[1] > 1


def _is_row(entry: Any) -> bool:
    return isinstance(entry, list | tuple | np.ndarray)


def label_target(y: Any, n_rows: int) -> NumberTarget:
    """Read several labels: one column each, 1 or True where a row has it, else 0 or False.

    Raises
    ------
    ValueError
        For anything but 0 and 1, or another number of rows than the table's.
    """
    values = _plain_array(y)
    _check_length(values, n_rows)
    if values.dtype.kind == "f":
        _check_finite(values)
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        found = sorted({repr(entry) for entry in values[:100].ravel().tolist()})[:5]
        raise ValueError(
            f"Unknown label type: y has {values.shape[1]} columns, which are read as yes/no "
            f"labels, so each entry must be 0 or 1; found {', '.join(found)}, ... For one class "
            "per row give one column, for several targets of several classes fit one classifier "
            "each."
        )
    return NumberTarget(values.astype(np.float64), _names(y, values.shape[1]))


def class_target(y: Any, n_rows: int) -> ClassTarget:
    """Read class labels: text, integers, whole floats or booleans, one column.

    Raises
    ------
    ValueError
        For missing or infinite labels, several columns, continuous numbers, another number of rows
        than the table's, or fewer than two classes.
    """
    labels = column_or_1d(_plain_array(y), warn=True)
    _check_length(labels, n_rows)
    if labels.dtype.kind == "f":
        _check_finite(labels)
    if labels.dtype == object:
        raise ValueError(
            "Unknown label type: labels must be all text, all numbers or all true/false, found "
            f"{sorted({type(label).__name__ for label in labels})}."
        )
    check_classification_targets(labels)
    classes, index = np.unique(labels, return_inverse=True)
    if n_rows == 0:
        raise ValueError("y is empty: a classifier needs rows of at least 2 classes.")
    if len(classes) < 2:
        raise ValueError(
            "A classifier needs rows of at least 2 classes, found 1 class: "
            f"{classes[0].item()!r} in all {n_rows} rows. Check how the table was filtered."
        )
    class_labels(classes.tolist(), "classification")  # refuses what a model file cannot hold
    return ClassTarget(classes, index.astype(np.int64).ravel(), _names(y, 1))


def number_target(y: Any, n_rows: int) -> NumberTarget:
    """Read numbers: one column or several.

    Raises
    ------
    ValueError
        For text, missing or infinite entries, more than two dimensions, or another number of rows
        than the table's.
    """
    values = _plain_array(y)
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"A regressor predicts numbers, but y holds {_kind_word(values)}. Convert y to "
            "numbers, or use a classifier for classes."
        )
    if values.ndim not in (1, 2) or 0 in values.shape[1:]:
        raise ValueError(
            "y should be a 1d array, or a 2d array with one column per output, got an array of "
            f"shape {values.shape} instead."
        )
    _check_length(values, n_rows)
    values = values.astype(np.float64).reshape(n_rows, -1)
    _check_finite(values)
    return NumberTarget(values, _names(y, values.shape[1]))


def _plain_array(y: Any) -> np.ndarray:
    """Read any sequence; objects of one plain type become an array of that type."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if sparse.issparse(y):
        y = y.toarray()
    if np.ma.is_masked(y):
        raise ValueError("Input y is masked in places. Drop the rows without a target.")
    # NumPy would turn a list of 1 and "a", or of "a" and NaN, into texts.
    values = np.asarray(y, dtype=object) if isinstance(y, list | tuple) else np.asarray(y)
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: y is of type {values.dtype}.")
    if values.dtype != object:
        return values
    types = {type(entry) for entry in values.ravel()}
    if any(map(_is_missing, values.ravel())):
        raise ValueError(
            "Input y contains NaN or None. Drop the rows without a target, or fill it in."
        )
    if types and all(issubclass(kind, str) for kind in types):
        if any(text.endswith("\0") for text in values.ravel()):
            raise ValueError("A label ends with a NUL character, which NumPy would drop.")
        return values.astype(str)
    if types and all(issubclass(kind, bool | int | float | np.number | np.bool_) for kind in types):
        return np.array(values.tolist())
    return values


def _is_missing(entry: Any) -> bool:
    # pandas' missing markers are known by name, because pandas is not imported.
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(entry, float | np.floating) and bool(np.isnan(entry))


def _kind_word(values: np.ndarray) -> str:
    if values.dtype.kind in "US":
        return f"text ({values.ravel()[0].item()!r}, ...)" if values.size else "text"
    return f"values of type {values.dtype}"


def _check_length(values: np.ndarray, n_rows: int) -> None:
    found = len(values) if values.ndim else 1
    if found != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"y has {found}."
        )


def _check_finite(values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0, 0])
        what = "NaN" if np.isnan(values[row]).any() else "infinity"
        raise ValueError(
            f"Input y contains {what} (first at row {row}). Drop the rows without a finite target."
        )


def _names(y: Any, n_outputs: int) -> tuple[str, ...] | None:
    """Names of a data frame's columns or of a series, when there is one text per output."""
    names = getattr(y, "column_names", None)  # Arrow's word; its `columns` are the data
    names = getattr(y, "columns", None) if names is None else names
    names = [getattr(y, "name", None)] if names is None else list(names)
    if len(names) != n_outputs or not all(isinstance(name, str) and name for name in names):
        return None
    return tuple(names)
