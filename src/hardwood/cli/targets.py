"""What to predict: which task a column asks for, and its values as the estimators take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hardwood.cli.failures import CommandError
from hardwood.cli.tables import check_column

if TYPE_CHECKING:
    import pyarrow as pa

TaskKind = Literal["classification", "regression"]

# Up to this many different whole numbers are taken for class labels; more, for a quantity.
MAX_WHOLE_NUMBER_CLASSES = 20
# Fewer rows per class than this, in the mean, and the column is an identifier rather than a class.
MIN_ROWS_PER_CLASS = 2
# Sums of larger weights times squares of numbers leave the range of a float64.
MAX_WEIGHT = 1e30
# Beyond this a float64 cannot tell neighbouring whole numbers apart.
_MAX_WHOLE = 2.0**53


@dataclass(frozen=True)
class Target:
    """What is to be predicted, with its task and the reason for it.

    ``rows`` are the numbers of the table's rows that have a target, ``values`` their targets:
    labels (text, whole numbers or booleans) for classification, float64 for regression. Of several
    columns, ``values`` is (n, k): 0 and 1 for classification, where each is a label by itself.
    ``names`` are the columns, ``name`` what they are called in a sentence.
    """

    names: tuple[str, ...]
    task: TaskKind
    reason: str
    rows: np.ndarray
    values: np.ndarray
    n_missing: int

    @property
    def name(self) -> str:
        """The columns for a sentence that puts quotation marks around them."""
        return "', '".join(self.names)


def columns_named(table: pa.Table, text: str, path: Path) -> tuple[str, ...]:
    """Return the columns that ``--target`` names: one, or several with commas between them.

    A column whose own name has commas is found by it.
    """
    names = (text,) if text in table.column_names else tuple(map(str.strip, text.split(",")))
    for name in names:
        check_column(table, name, path)
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise CommandError(f"--target names the column '{repeated[0]}' twice.")
    return names


def read_targets(
    table: pa.Table, names: tuple[str, ...], path: Path, task: TaskKind | None = None
) -> Target:
    """Take one target from a table, or several: all yes/no labels, or all numbers.

    Rows that lack one of several targets are left out. Raises CommandError as `read_target` does.
    """
    if len(names) == 1:
        return read_target(table, names[0], path, task)
    found = [_present(table[name], name, path) for name in names]
    rows = reduce(np.intersect1d, [rows for _, rows in found])
    if rows.size == 0:
        raise CommandError(f"No row of {path} has an entry in all of {', '.join(names)}.")
    columns = [values[np.searchsorted(present, rows)] for values, present in found]
    kinds = [_kind(values, name) for values, name in zip(columns, names, strict=True)]
    are_labels = all(map(_is_yes_or_no, columns, kinds))
    chosen: TaskKind = "classification" if are_labels else "regression"
    reason = "they hold 0 and 1, or true and false" if are_labels else "they hold numbers"
    if task is not None:
        chosen, reason = task, f"--task {task}"
    read = _yes_or_no if chosen == "classification" else _numbers
    values = np.column_stack([read(*column) for column in zip(columns, kinds, names, strict=True)])
    return Target(names, chosen, reason, rows, values, n_missing=table.num_rows - rows.size)


def read_target(table: pa.Table, name: str, path: Path, task: TaskKind | None = None) -> Target:
    """Take the target from a table; ``task`` overrules what the column's values suggest.

    Raises CommandError when the column cannot be learned: absent, all missing, of one class, of
    about as many classes as rows, of a type or with values that the task does not admit.
    """
    check_column(table, name, path)
    values, rows = _present(table[name], name, path)
    kind = _kind(values, name)
    chosen, reason = _infer_task(values, kind)
    if task is not None:
        chosen, reason = task, f"--task {task}"
    values = (
        _labels(values, kind, name) if chosen == "classification" else _numbers(values, kind, name)
    )
    return Target((name,), chosen, reason, rows, values, n_missing=table.num_rows - rows.size)


def known_answers(
    table: pa.Table, name: str, path: Path, task: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the row numbers that have an answer in column ``name``, and the answers.

    Unlike `read_target` this admits whatever can be compared with predictions: one class, or one
    row.
    """
    check_column(table, name, path)
    values, rows = _present(table[name], name, path)
    kind = _kind(values, name)
    return rows, _numbers(values, kind, name) if task == "regression" else values


def read_weights(table: pa.Table, name: str, path: Path) -> np.ndarray:
    """Take sample weights, (n,) float64 and non-negative, from the column ``name``."""
    check_column(table, name, path)
    values, rows = _present(table[name], name, path)
    if _kind(values, name) not in ("whole", "number"):
        raise CommandError(f"Weight column '{name}' does not hold numbers.")
    if rows.size < table.num_rows:
        raise CommandError(
            f"Weight column '{name}' has {table.num_rows - rows.size} missing entries."
        )
    weights = values.astype(np.float64)
    if not np.isfinite(weights).all() or weights.min() < 0 or weights.max() == 0:
        raise CommandError(
            f"Weight column '{name}' must hold finite numbers >= 0, not all of them 0."
        )
    if weights.max() > MAX_WEIGHT:
        raise CommandError(
            f"Weight column '{name}' holds {weights.max():g}; weights go up to {MAX_WEIGHT:g}. "
            "Only their ratios matter: divide them all by the same number."
        )
    return weights


def label_positions(values: np.ndarray, classes: Sequence[Any]) -> np.ndarray:
    """Position of each label in ``classes``, (n,) int64; -1 for a label that is not there.

    Labels are compared as Python compares them (1 == 1.0); text classes match the text of a number,
    because a file does not say whether its 1, 2, 3 were text when the model was learned.
    """
    lookup = {label: i for i, label in enumerate(classes)}
    known, inverse = np.unique(values, return_inverse=True)
    as_text = all(isinstance(label, str) for label in classes)
    positions = [lookup.get(str(v) if as_text else v, -1) for v in known.tolist()]
    return np.asarray(positions, dtype=np.int64)[inverse]


def _present(column: Any, name: str, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries that are not missing, as NumPy has them, and their row numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    is_missing = pc.is_null(column, nan_is_null=True).to_numpy()
    rows = np.flatnonzero(~is_missing)
    if rows.size == 0:
        raise CommandError(f"Every entry of column '{name}' of {path} is missing.")
    return column.drop_null().filter(_not_nan(column)).to_numpy(), rows


def _not_nan(column: Any) -> Any:
    import pyarrow.compute as pc

    return pc.invert(pc.is_null(column.drop_null(), nan_is_null=True))


def _kind(values: np.ndarray, name: str) -> Literal["text", "truth", "whole", "number"]:
    if values.dtype.kind == "b":
        return "truth"
    if values.dtype.kind in "iu":
        return "whole"
    if values.dtype.kind == "f":
        is_whole = np.array_equal(values, np.floor(values)) and np.abs(values).max() < _MAX_WHOLE
        return "whole" if is_whole else "number"
    if values.dtype.kind == "O" and all(isinstance(v, str) for v in values.tolist()):
        return "text"
    found = "dates or times" if values.dtype.kind in "Mm" else type(values.flat[0]).__name__
    raise CommandError(
        f"Column '{name}' holds {found}; a target or weight is text, numbers or true/false. "
        "Convert it, for instance to a number of days."
    )


def _infer_task(values: np.ndarray, kind: str) -> tuple[TaskKind, str]:
    if kind == "text":
        return "classification", "it holds text"
    if kind == "truth":
        return "classification", "it holds true and false"
    if kind == "number":
        return "regression", "it holds numbers with fractions"
    n = np.unique(values).size
    if n <= MAX_WHOLE_NUMBER_CLASSES and n * MIN_ROWS_PER_CLASS <= values.size:
        return "classification", f"it holds {n} different whole numbers"
    return "regression", f"it holds {n} different whole numbers in {values.size} rows"


def _is_yes_or_no(values: np.ndarray, kind: str) -> bool:
    return kind == "truth" or (kind == "whole" and bool(np.isin(values, (0, 1)).all()))


def _yes_or_no(values: np.ndarray, kind: str, name: str) -> np.ndarray:
    if not _is_yes_or_no(values, kind):
        found = sorted({repr(value) for value in values[:100].tolist()})[:3]
        raise CommandError(
            f"Target '{name}' holds {', '.join(found)}, ...; of several targets each is a label of "
            "0 and 1 or of true and false. Learn other classes one at a time, quantities with "
            "--task regression."
        )
    if np.unique(values).size == 1:
        raise CommandError(
            f"Target '{name}' has a single value, {values.tolist()[0]!r}: there is nothing to "
            "tell apart. Is it the right column?"
        )
    return values.astype(np.int64)


def _labels(values: np.ndarray, kind: str, name: str) -> np.ndarray:
    if kind == "number":
        raise CommandError(
            f"Target '{name}' holds numbers with fractions, which are no class labels: "
            "use --task regression."
        )
    if values.dtype == np.uint64 and values.max() > np.iinfo(np.int64).max:
        raise CommandError(
            f"Target '{name}' holds the label {values.max()}, which is no 64-bit integer with a "
            "sign: make the labels smaller, or text."
        )
    labels = values.astype(np.int64) if kind == "whole" else values
    classes = np.unique(labels)
    if classes.size == 1:
        raise CommandError(
            f"Target '{name}' has a single value, {classes.tolist()[0]!r}: there is nothing to "
            "tell apart. Is it the right column?"
        )
    if classes.size * MIN_ROWS_PER_CLASS > labels.size:
        raise CommandError(
            f"Target '{name}' has {classes.size} different values in {labels.size} rows, too many "
            "to be classes. Is it an identifier? For a quantity use --task regression."
        )
    return labels


def _numbers(values: np.ndarray, kind: str, name: str) -> np.ndarray:
    if kind == "text":
        raise CommandError(
            f"Target '{name}' holds text, for example {values.tolist()[0]!r}; regression needs "
            "numbers. Use --task classification, or correct the entries."
        )
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise CommandError(f"Target '{name}' holds infinite numbers; regression needs finite ones.")
    return numbers
