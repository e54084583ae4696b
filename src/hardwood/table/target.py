"""Read a target `y`, for training and for scoring."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Protocol

import numpy as np

from hardwood.errors import TableError
from hardwood.table.feature import check_text
from hardwood.table.levels import first_wrong_number
from hardwood.text.numbers import plural

Label = str | int | float | bool
TaskKind = Literal["classification", "regression", "multilabel"]
UnknownClasses = Literal["error", "wrong"]

_NUMBERS = (numbers.Real, Decimal, np.bool_)
# Up to this many distinct whole numbers are class labels; more are a quantity.
MAX_WHOLE_NUMBER_CLASSES = 20
# With fewer rows per class on average, a column is an identifier rather than a class.
MIN_ROWS_PER_CLASS = 2
# Beyond this a float64 cannot tell neighboring whole numbers apart.
_MAX_WHOLE = 2.0**53


@dataclass(frozen=True)
class ClassTarget:
    """Class labels as indices.

    Attributes
    ----------
    classes
        The distinct labels (c,), sorted; at least two.
    index
        The class index of each row, (n,) int64.
    names
        Name of the target, if it has one.
    """

    classes: np.ndarray
    index: np.ndarray
    names: tuple[str, ...] | None


@dataclass(frozen=True)
class NumberTarget:
    """Numeric targets.

    Attributes
    ----------
    values
        (n, t) float64, finite.
    names
        Name of each column, if all have one.
    """

    values: np.ndarray
    names: tuple[str, ...] | None


def has_several_labels(y: Any) -> bool:
    """Whether a classifier's target has several columns (multilabel)."""
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple) and y and _is_row(y[0]):
        widths = {len(row) if _is_row(row) else 0 for row in y}
        if len(widths) > 1:
            raise TableError(
                f"Unknown label type: rows of y have {min(widths)} to {max(widths)} values; "
                "a multilabel target is a table of 0 and 1 with one column per label."
            )
        shape = np.shape(y)
    return shape is not None and len(shape) == 2 and shape[1] > 1


def _is_row(entry: Any) -> bool:
    return isinstance(entry, list | tuple | np.ndarray)


def label_target(y: Any, n_rows: int) -> NumberTarget:
    """Read a multilabel target: one column per label, 1 or True if a row has it, else 0 or False.

    Raises
    ------
    TableError
        For values other than 0 and 1, or a number of rows that differs from the table.
    """
    values = plain_array(y)
    _check_length(values, n_rows)
    if values.ndim == 1:
        values = values[:, None]
    if values.dtype.kind == "f":
        check_finite("y", values)
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        found = sorted({repr(entry) for entry in values[:100].ravel().tolist()})[:5]
        raise TableError(
            f"Unknown label type: y has {values.shape[1]} columns, which are read as binary "
            f"labels, so each value must be 0 or 1; found {', '.join(found)}, ... For one class "
            "per row, pass one column. For several targets with several classes, fit one "
            "classifier for each."
        )
    return NumberTarget(values.astype(np.float64), _names(y, values.shape[1]))


def class_target(y: Any, n_rows: int) -> ClassTarget:
    """Read class labels: text, integers, whole floats or booleans, one column.

    Raises
    ------
    TableError
        For missing or infinite labels, several columns, continuous numbers, fewer than two classes,
        or a number of rows that differs from the table.
    """
    labels = _column(y, n_rows)
    if labels.dtype == object:
        raise TableError(
            "Unknown label type: labels must be all text, all numbers or all true/false, found "
            f"{sorted({type(label).__name__ for label in labels})}."
        )
    if labels.dtype.kind == "f" and not are_whole(labels):
        raise TableError(  # scikit-learn's checks expect this message
            "Unknown label type: continuous. Maybe you are trying to fit a classifier, which "
            "expects discrete classes on a regression target with continuous values."
        )
    classes, index = np.unique(labels, return_inverse=True)
    if n_rows == 0:
        raise TableError("y is empty: a classifier needs rows of at least 2 classes.")
    if len(classes) < 2:
        raise TableError(
            "A classifier needs rows of at least 2 classes, found 1 class: "
            f"{classes[0].item()!r} in {plural(n_rows, 'row')}. Check how the table was filtered."
        )
    class_labels(classes.tolist())  # refuses labels that a model file cannot store
    return ClassTarget(classes, index.astype(np.int64).ravel(), _names(y, 1))


def number_target(y: Any, n_rows: int) -> NumberTarget:
    """Read numeric targets: one column or several.

    Raises
    ------
    TableError
        For text, missing or infinite values, more than two dimensions, or a number of rows that
        differs from the table.
    """
    values = plain_array(y)
    if values.dtype.kind not in "biuf":
        raise TableError(
            f"A regressor predicts numbers, but y holds {_kind_word(values)}. Convert y to "
            "numbers, or use a classifier for classes."
        )
    if values.ndim not in (1, 2) or 0 in values.shape[1:]:
        raise TableError(
            "y should be a 1d array, or a 2d array with one column per output, got an array of "
            f"shape {values.shape} instead."
        )
    _check_length(values, n_rows)
    values = values.astype(np.float64).reshape(n_rows, -1)
    check_finite("y", values)
    return NumberTarget(values, _names(y, values.shape[1]))


class Predicting(Protocol):
    """Anything with a task, classes and outputs, such as a model."""

    @property
    def task(self) -> TaskKind:
        """The kind of task."""

    @property
    def classes(self) -> tuple[Label, ...] | None:
        """The classes, in classification."""

    @property
    def n_outputs(self) -> int:
        """Number of classes, labels or numbers."""


def true_targets(
    model: Predicting, y: Any, n_rows: int, unknown_classes: UnknownClasses = "error"
) -> np.ndarray:
    """Read the true targets of rows, to compare a model's predictions with.

    Returns
    -------
    truth
        (n,) int64 class indices, or (n, k) float64 numbers, or 0 and 1 for binary labels.
        With ``unknown_classes="wrong"``, -1 for a class that the model does not know.

    Raises
    ------
    TableError
        If a target is missing, not finite, or of an unknown class, or has too many columns.
    """
    if unknown_classes not in ("error", "wrong"):
        raise ValueError(f"unknown_classes must be 'error' or 'wrong', got {unknown_classes!r:.80}")
    if model.classes is not None:
        return class_positions(y, n_rows, model.classes, unknown_classes)
    read = number_target if model.task == "regression" else label_target
    values = read(y, n_rows).values
    if values.shape[1] != model.n_outputs:
        raise TableError(
            f"the model has {plural(model.n_outputs, 'output')}, but y has shape {values.shape}"
        )
    return values


def class_positions(
    y: Any, n_rows: int, classes: Sequence[Label], unknown_classes: UnknownClasses = "error"
) -> np.ndarray:
    """Read class labels as positions among the classes of a model; see `true_targets`."""
    labels = _column(y, n_rows)
    found = positions(labels, classes)
    unknown = np.flatnonzero(found < 0)
    if unknown.size == 0 or (unknown_classes == "wrong" and unknown.size < found.size):
        return found
    shown = ", ".join(map(repr, classes[:8])) + (", ..." if len(classes) > 8 else "")
    strange = labels[unknown[:1]].tolist()[0]
    if unknown_classes == "wrong":
        raise TableError(
            f"None of the target's values, for example {strange!r:.80}, is a class of the model: "
            f"{shown}. Is this the right column?"
        )
    raise TableError(
        f"y has {strange!r:.80} at row {unknown[0]}, which is not a class of the model: {shown}. "
        "Leave out rows whose class is unknown"
    )


def positions(values: np.ndarray, known: Sequence[Hashable]) -> np.ndarray:
    """Return the position of each value among the known ones, (n,) int64; -1 if it is unknown.

    Values are compared as in Python: 1 equals 1.0.
    """
    place = {value: i for i, value in enumerate(known)}
    if values.dtype == object:  # values of several types cannot be sorted
        distinct, inverse = values, np.arange(len(values))
    else:
        distinct, inverse = np.unique(values, return_inverse=True)
    found = [place.get(value, -1) for value in distinct.tolist()]
    return np.asarray(found, dtype=np.int64)[inverse.reshape(-1)]


def suggested_task(values: np.ndarray) -> tuple[Literal["classification", "regression"], str]:
    """Suggest classification or regression for a target, with a reason.

    Text, booleans and up to 20 distinct whole numbers, with two rows each on average, are classes.
    """
    if values.dtype.kind == "b":
        return "classification", "it holds true and false"
    if values.dtype.kind not in "iuf":
        return "classification", "it holds text"
    if not are_whole(values):
        return "regression", "it holds numbers with fractions"
    n = np.unique(values).size
    if n <= MAX_WHOLE_NUMBER_CLASSES and n * MIN_ROWS_PER_CLASS <= values.size:
        return "classification", f"it holds {plural(n, 'different whole number')}"
    in_rows = plural(values.size, "row")
    return "regression", f"it holds {plural(n, 'different whole number')} in {in_rows}"


def are_whole(numbers: np.ndarray) -> bool:
    """Whether all numbers are whole, and small enough to be exact."""
    if numbers.dtype.kind in "iu" or numbers.size == 0:
        return True
    is_whole = np.array_equal(numbers, np.floor(numbers))
    return is_whole and bool(np.abs(numbers).max() < _MAX_WHOLE)


def class_labels(labels: Iterable[Any]) -> tuple[Label, ...]:
    """Return labels as Python values; refuse duplicates and labels that files cannot store."""
    classes = tuple(_label(label) for label in labels)
    if not classes:
        raise ValueError("a classification tree needs at least one class")
    seen: set[Label] = set()
    for label in classes:
        if label in seen:
            raise ValueError(f"classes must be distinct, but {label!r:.80} occurs twice")
        seen.add(label)
    return classes


def _label(label: Any) -> Label:
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, str):
        return check_text("class", str(label))
    if isinstance(label, bool):
        return label
    if isinstance(label, int) and -(2**63) <= label < 2**63:
        return int(label)
    if isinstance(label, float) and math.isfinite(label):
        return float(label)
    raise TypeError(
        "a class must be text, a 64-bit integer, a finite number or a bool, "
        f"not {type(label).__name__} {label!r:.80}"
    )


def _column(y: Any, n_rows: int) -> np.ndarray:
    """Read one column of labels; check its length, and refuse missing and infinite values."""
    labels = plain_array(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise TableError(f"y should be a 1d array, got an array of shape {labels.shape} instead.")
    _check_length(labels, n_rows)
    if labels.dtype.kind == "f":
        check_finite("y", labels)
    return labels


def plain_array(y: Any) -> np.ndarray:
    """Read any sequence as an array; objects of one simple type become an array of that type."""
    if y is None:
        raise TableError("requires y to be passed, but the target y is None")
    if hasattr(y, "toarray"):  # a sparse matrix
        y = y.toarray()
    if np.ma.is_masked(y):
        raise TableError("Input y has masked values. Drop the rows without a target.")
    # NumPy would convert a list of 1 and "a", or of "a" and NaN, to text.
    values = np.asarray(y, dtype=object) if isinstance(y, list | tuple) else np.asarray(y)
    if values.dtype.kind == "c":
        raise TableError(f"Complex data not supported: y is of type {values.dtype}.")
    if values.dtype != object:
        return values
    types = {type(entry) for entry in values.ravel()}
    missing = next((i for i, entry in enumerate(values.ravel()) if _is_missing(entry)), None)
    if missing is not None:
        row = missing // math.prod(values.shape[1:])
        raise TableError(
            f"Input y contains NaN or None (first at row {row}). Drop the rows without a target, "
            "or fill it in."
        )
    if types and all(issubclass(kind, str) for kind in types):
        if any(text.endswith("\0") for text in values.ravel()):
            raise TableError("A label ends with a NUL character, which NumPy would drop.")
        return values.astype(str)
    if types and all(issubclass(kind, _NUMBERS) for kind in types):
        return _numbers(values)
    return values


def _numbers(values: np.ndarray) -> np.ndarray:
    """Convert objects that are numbers; decimals, fractions and long integers become floats."""
    array = np.array(values.tolist())
    try:
        return array if array.dtype != object else array.astype(np.float64)
    except OverflowError as error:
        raise TableError(
            "y holds an integer too large for a float64. Expected numbers below 1.8e308."
        ) from error


def _is_missing(entry: Any) -> bool:
    # By name, because pandas is not imported here.
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(entry, float | np.floating) and bool(np.isnan(entry))


def _kind_word(values: np.ndarray) -> str:
    entries = values.ravel().tolist()
    texts = [entry for entry in entries if isinstance(entry, str)]
    if texts:
        wrong = first_wrong_number(texts)
        row = entries.index(wrong) // math.prod(values.shape[1:])
        return f"text ({wrong!r:.60} at row {row})"
    if values.dtype == object and entries:
        return f"a {type(entries[0]).__name__} ({entries[0]!r:.60} at row 0)"
    return f"values of type {values.dtype}"


def _check_length(values: np.ndarray, n_rows: int) -> None:
    found = len(values) if values.ndim else 1
    if found != n_rows:
        raise TableError(
            "Found input variables with inconsistent numbers of samples: X has "
            f"{plural(n_rows, 'row')}, y has {found}."
        )


def check_finite(name: str, values: np.ndarray) -> None:
    """Refuse missing and infinite numbers, (n,) or (n, k); the message names the row."""
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0, 0])
        what = "NaN" if np.isnan(values[row]).any() else "infinity"
        raise TableError(
            f"Input {name} contains {what} (first at row {row}). Drop the rows without a "
            "finite number."
        )


def _names(y: Any, n_outputs: int) -> tuple[str, ...] | None:
    """Return the names of a data frame's columns or of a series, if there is one per output."""
    names = getattr(y, "column_names", None)  # in Arrow, whose `columns` are the data
    names = getattr(y, "columns", None) if names is None else names
    names = [getattr(y, "name", None)] if names is None else list(names)
    if len(names) != n_outputs or not all(isinstance(name, str) and name for name in names):
        return None
    return tuple(names)
