"""Read models, and tables (CSV, Parquet) with their targets and weights; write tables.

Columns that identify the rows are found here, too, since a tree that uses a customer number
memorizes the table. A text column that differs in every row is left out. Whole numbers that seem to
count the rows are only noted, because a measurement can look the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hardwood.atomic_file import whole_file
from hardwood.cli.csv.parse import ColumnKinds, first_line, read_csv
from hardwood.cli.errors import CommandError, check_readable, did_you_mean
from hardwood.errors import TableError, warn_about_table
from hardwood.table.levels import first_wrong_number, in_learned_type, text_among_numbers
from hardwood.table.target import MIN_ROWS_PER_CLASS, are_whole, positions, suggested_task
from hardwood.table.weights import weight_of_rows
from hardwood.text.numbers import plural, shortened

if TYPE_CHECKING:
    import pyarrow as pa

    from hardwood.cli.output import Notes
    from hardwood.model import ObliqueForest, ObliqueTree
    from hardwood.model.base import Model

TaskKind = Literal["classification", "regression"]

_PARQUET_MAGIC = b"PAR1"
_PARQUET_SUFFIXES = (".parquet", ".pq")

MIN_ROWS = 51  # in fewer rows, all values of a text column may differ by chance
MIN_DISTINCT = 0.95  # a few repeated values are allowed (a customer who came twice)

# id, customer_id, customer-id, customer id; customerId, CustomerID
_ID_NAME = re.compile(r"(?:^|[_\W])id$|[a-z](?:Id|ID)$|^(?:Id|ID)$", re.ASCII)
# Sums of larger weights times squared numbers exceed the range of a float64.
MAX_WEIGHT = 1e30


def open_model(path: Path, threshold: float | None = None) -> Model:
    """Load a model file; raise a HardwoodError that names the path for anything else.

    With ``threshold``, it must be a tree of two classes, which then decides by that probability.
    """
    from hardwood.model import ObliqueTree, load

    check_readable(path, "a .hardwood model file")
    model = load(path)
    if threshold is None:
        return model
    if not isinstance(model, ObliqueTree):
        raise CommandError(f"--threshold is for a tree of two classes; {path} holds {model.noun}.")
    try:
        return model.with_threshold(threshold)
    except ValueError as error:
        raise CommandError(f"{path}: {error}.") from None


def hard_form(model: Model, path: Path, what: str) -> ObliqueTree | ObliqueForest:
    """Return the model of a file if it is a hard tree or forest, which ``what`` requires."""
    try:
        return model.hard(what)
    except TypeError as error:
        raise CommandError(f"{path}: {error}.") from None


def open_hardened(path: Path, what: str, notes: Notes) -> ObliqueTree | ObliqueForest:
    """Load a model file as hard trees; a soft ensemble is hardened, with a note."""
    from hardwood.model import TreeEnsemble

    model = open_model(path)
    if not isinstance(model, TreeEnsemble):
        return hard_form(model, path, what)
    notes.add(f"the model is soft: {what} uses the forest of its hardened trees")
    return model.harden()


def read_table(
    path: Path, *, model: Model | None = None, target: str | None = None, task: str = "auto"
) -> pa.Table:
    """Read a CSV or Parquet file into an Arrow table with distinct names and at least one row.

    Parquet is recognized by its first bytes; anything else is read as CSV. The separator is comma,
    semicolon, tab or bar, whichever is most frequent in the header; with semicolons, numbers may
    have decimal commas. `.csv.gz` files are decompressed. Empty values, `NA`, `NaN`, `null` and the
    like are missing. Columns without a name are left out, with a warning.

    Parameters
    ----------
    model
        The model that the table is for: columns of a CSV file that it learned as text are text.
        Without a model, integers with leading zeros are text, with a warning.
    target, task
        The options ``--target`` and ``--task``.
    """
    check_readable(path, "a CSV or Parquet file")
    if _starts_with(path, _PARQUET_MAGIC):
        table = _read_parquet(path)
    else:
        table, codes = read_csv(path, lambda names: _column_kinds(names, model, target, task))
        for name, code in codes.items() if model is None else ():
            warn_about_table(
                f"'{shortened(name)}' is read as text, because it has integers with leading zeros "
                f"such as {shortened(code)}"
            )
    table = _drop_unnamed(table, path)
    repeated = [name for name, count in Counter(table.column_names).items() if count > 1]
    if repeated:
        name = shortened(repeated[0])
        raise CommandError(f"{path} has more than one column named '{name}'; rename them.")
    if table.num_rows == 0:
        raise CommandError(f"{path} has a header but no rows.")
    return table


def _column_kinds(
    names: Sequence[str], model: Model | None, target: str | None, task: str
) -> ColumnKinds:
    """Return what a model, or the options for one, say about the columns of a file."""
    targets = set() if target is None else {target, *map(str.strip, target.split(","))}
    if model is None:
        return ColumnKinds(numbers=targets if task == "regression" else frozenset())
    targets |= set(model.target_names or ())
    schema = model.schema
    known = schema.names if schema.named else names  # otherwise by position
    features = dict(zip(known, schema.features, strict=False))
    text = {name for name, feature in features.items() if _are_text(feature.levels)}
    if _are_text(model.classes):
        text |= targets
    return ColumnKinds(text, (features.keys() | targets) - text)


def _are_text(values: Sequence[Any] | None) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values or ())


def without_columns(table: pa.Table, names: Iterable[str], path: Path) -> pa.Table:
    """Return ``table`` without the columns ``names``, which must exist."""
    for name in names:
        check_column(table, name, path)
    return table.drop_columns(list(names))


def check_column(table: pa.Table, name: str, path: Path) -> None:
    """Raise CommandError if the table has no column ``name``; suggest similar names."""
    if name in table.column_names:
        return
    hint = did_you_mean(name, table.column_names)
    some = ", ".join(shortened(known) for known in table.column_names[:8])
    more = f" and {table.num_columns - 8} more" if table.num_columns > 8 else ""
    raise CommandError(
        f"{path} has no column '{shortened(name)}'.{hint} Its columns: {some}{more}."
    )


def check_format(path: Path) -> None:
    """Raise CommandError unless `write_table` can write a file with this suffix."""
    if not is_csv_file(path) and path.suffix.lower() not in _PARQUET_SUFFIXES:
        raise CommandError(f"{path}: the name of a table must end in .csv or .parquet.")


def is_csv_file(path: Path) -> bool:
    """Whether `write_table` writes CSV to a file of this name."""
    return path.suffix.lower() == ".csv"


def write_table(table: pa.Table, path: Path) -> None:
    """Write Parquet (`.parquet`, `.pq`) or CSV (`.csv`), completely or not at all."""
    check_format(path)
    with whole_file(path) as stream:
        if is_csv_file(path):
            write_csv(table, stream)
        else:
            from pyarrow import parquet

            parquet.write_table(table, stream)


def write_csv(table: pa.Table, stream: object) -> None:
    """Write ``table`` as CSV to a binary stream."""
    from pyarrow import csv

    csv.write_csv(table, stream, csv.WriteOptions(quoting_style="needed"))


def _starts_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(magic)) == magic


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(path).read()
    except (pa.ArrowInvalid, OSError) as error:
        raise CommandError(f"{path} is a damaged Parquet file: {first_line(error)}") from error
    for i, field in enumerate(table.schema):
        if str(field.type) == "string_view":  # Arrow cannot take rows of it
            table = table.set_column(i, field.name, table.column(i).cast(pa.string()))
    return table


def _drop_unnamed(table: pa.Table, path: Path) -> pa.Table:
    names = table.column_names
    unnamed = [i for i, name in enumerate(names) if not name.strip()]
    if not unnamed:
        return table
    places = ", ".join(str(i + 1) for i in unnamed[:8]) + (", ..." if len(unnamed) > 8 else "")
    warn_about_table(
        f"{path}: column {places} has no name and is left out (often the row number from pandas)"
    )
    return table.select([i for i, name in enumerate(names) if name.strip()])


def identifiers(features: pa.Table, wanted: Collection[str] = ()) -> list[str]:
    """Return text columns with a different value in (nearly) every row, except those ``wanted``.

    Warns of every such column, and of whole numbers that seem to count the rows.
    """
    found = []
    for name in features.column_names:
        if name in wanted:
            continue
        column = features[name]
        if _is_text(column.type):
            share = _distinct_share(column)
            if share >= MIN_DISTINCT:
                found.append(name)
                often = "every row" if share == 1 else "nearly every row"
                wrong = text_among_numbers(column.unique().drop_null().to_pylist())
                numbers = f" (numbers, but for {wrong!r:.60})" if wrong is not None else ""
                warn_about_table(
                    f"'{name}' has a different text in {often}{numbers} and is left out as an "
                    f"identifier; to keep it: --use {_quoted(name)}"
                )
        elif _seems_to_count_rows(name, column):
            warn_about_table(
                f"'{name}' has a different whole number in every row; if it is an identifier, "
                f"leave it out: --drop {_quoted(name)}"
            )
    return found


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _distinct_share(column: Any) -> float:
    """Return the share of distinct values among those present; 0 if there are too few rows."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    present = column.drop_null()
    return len(present.unique()) / len(present) if len(present) >= MIN_ROWS else 0.0


def _seems_to_count_rows(name: str, column: Any) -> bool:
    """Whether whole numbers increase by one in every row, or all differ in a column such as id."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.null_count or len(column) < MIN_ROWS:
        return False
    values = column.to_numpy()
    if np.all(values[1:] == values[:-1] + 1):
        return True
    return bool(_ID_NAME.search(name)) and np.unique(values).size == values.size


@dataclass(frozen=True)
class Target:
    """The targets of a table, with the task and the reason for it.

    ``rows`` are the indices of the rows that have a target. ``values`` are their targets: classes
    (text, whole numbers or booleans) for classification, float64 for regression; with several
    columns, (n, k), and binary labels of 0 and 1 for classification. ``names`` are the columns.
    """

    names: tuple[str, ...]
    task: TaskKind
    reason: str
    rows: np.ndarray
    values: np.ndarray
    n_missing: int

    @property
    def name(self) -> str:
        """The columns, for a sentence with quotation marks around them."""
        return "', '".join(self.names)


def columns_named(table: pa.Table, text: str, path: Path) -> tuple[str, ...]:
    """Return the columns that ``--target`` names: one, or several separated by commas.

    The name of a single column may contain commas.
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
    """Read one target column, or several: all binary labels, or all regression targets.

    ``task`` overrides the task that the values suggest. Rows in which a target is missing are left
    out. Raises CommandError for a column that cannot be learned: not in the table, all missing, a
    single class, nearly as many classes as rows, or values that do not fit the task.
    """
    rows, columns = complete_columns(table, names, path)
    if len(names) == 1:
        chosen, reason = suggested_task(columns[0])
    elif all(map(_is_binary, columns)):
        chosen, reason = "classification", "they hold 0 and 1, or true and false"
    else:
        chosen, reason = "regression", "they hold numbers"
    if task is not None:
        chosen, reason = task, f"--task {task}"
    read = (
        finite_numbers if chosen == "regression" else _labels if len(names) == 1 else _binary_labels
    )
    found = [read(values, name) for values, name in zip(columns, names, strict=True)]
    values = found[0] if len(names) == 1 else np.column_stack(found)
    return Target(names, chosen, reason, rows, values, n_missing=table.num_rows - rows.size)


def complete_columns(
    table: pa.Table, names: Sequence[str], path: Path
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the indices of the rows with values in all columns, and these values by column.

    Values are text, numbers or booleans; anything else is a CommandError.
    """
    found = [_present(table, name, path) for name in names]
    rows = reduce(np.intersect1d, [rows for rows, _ in found])
    if rows.size == 0:
        raise CommandError(f"No row of {path} has values in all of {', '.join(names)}.")
    return rows, [values[np.searchsorted(present, rows)] for present, values in found]


def _present(table: pa.Table, name: str, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the row indices of the values that are not missing, and the values as an array."""
    import pyarrow as pa
    import pyarrow.compute as pc

    check_column(table, name, path)
    column = table[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    is_present = pc.invert(pc.is_null(column, nan_is_null=True))
    rows = np.flatnonzero(is_present.to_numpy())
    if rows.size == 0:
        raise CommandError(f"All values of column '{name}' of {path} are missing.")
    values = column.filter(is_present).to_numpy()
    is_text = values.dtype.kind == "O" and all(isinstance(v, str) for v in values.tolist())
    if values.dtype.kind not in "biuf" and not is_text:
        found = "dates or times" if values.dtype.kind in "Mm" else type(values.flat[0]).__name__
        raise CommandError(
            f"Column '{name}' contains {found}; a target or weight must be text, numbers or "
            "true/false. Convert it, for example to a number of days."
        )
    return rows, values


def read_weights(table: pa.Table, name: str, path: Path) -> np.ndarray:
    """Read the sample weights, (n,) float64 and non-negative, from the column ``name``."""
    rows, values = _present(table, name, path)
    if values.dtype.kind not in "iuf":
        texts = list(map(str, values.tolist()))
        raise CommandError(
            f"Weight column '{name}' does not hold numbers, but {first_wrong_number(texts)!r:.60}."
        )
    if rows.size < table.num_rows:
        raise CommandError(
            f"Weight column '{name}' has {plural(table.num_rows - rows.size, 'missing value')}."
        )
    if values.max() > MAX_WEIGHT:
        raise CommandError(
            f"Weight column '{name}' contains {values.max():g}; the largest allowed weight is "
            f"{MAX_WEIGHT:g}. Only ratios matter: divide all weights by the same number."
        )
    try:
        return weight_of_rows(values, rows.size)
    except TableError as error:
        raise CommandError(f"Weight column '{name}': {error}") from error


def as_labels(values: np.ndarray, classes: Sequence[Any] | None) -> np.ndarray:
    """Convert the labels of a file to the type of a model's classes.

    A file does not say whether its 1, 2, 3 were text when the model was learned.
    """
    distinct = tuple(dict.fromkeys(values.tolist()))
    origin = "boolean" if values.dtype.kind == "b" else "number"
    converted = in_learned_type(distinct, tuple(classes or ()), origin)
    if converted is None or converted == distinct:
        return values
    label = dict(zip(distinct, converted, strict=True))
    return np.array([label[value] for value in values.tolist()], dtype=object)


def label_positions(values: np.ndarray, classes: Sequence[Any]) -> np.ndarray:
    """Position of each label of a file in ``classes``, (n,) int64; -1 for unknown labels."""
    return positions(as_labels(values, classes), classes)


def _is_binary(values: np.ndarray) -> bool:
    return values.dtype.kind in "biuf" and bool(np.isin(values, (0, 1)).all())


def _binary_labels(values: np.ndarray, name: str) -> np.ndarray:
    advice = "learn other classes one at a time, and numbers with --task regression."
    labels = zeros_and_ones(values, name, f"several targets must be binary labels: {advice}")
    _check_two(labels, name)
    return labels


def zeros_and_ones(values: np.ndarray, name: str, advice: str) -> np.ndarray:
    """Return a column of binary labels, (n,) int64; ``advice`` ends the message for others."""
    if not _is_binary(values):
        strange = next(value for value in values.tolist() if value not in (0, 1))
        raise CommandError(
            f"Column '{name}' contains {strange!r:.60}, which is not 0, 1, true or false; {advice}"
        )
    return values.astype(np.int64)


def _labels(values: np.ndarray, name: str) -> np.ndarray:
    if values.dtype.kind == "f" and not are_whole(values):
        raise CommandError(
            f"Target '{name}' contains fractional numbers, which cannot be classes: use "
            "--task regression."
        )
    if values.dtype == np.uint64 and values.max() > np.iinfo(np.int64).max:
        raise CommandError(
            f"Target '{name}' contains the label {values.max()}, which is not a signed 64-bit "
            "integer: use smaller labels, or text."
        )
    if values.dtype.kind in "iuf":
        values = values.astype(np.int64)
    n_classes = _check_two(values, name)
    if n_classes * MIN_ROWS_PER_CLASS > values.size:
        raise CommandError(
            f"Target '{name}' has {plural(n_classes, 'different value')} in "
            f"{plural(values.size, 'row')}, too many "
            "for classes. Is it an identifier? For numbers use --task regression."
        )
    return values


def _check_two(values: np.ndarray, name: str) -> int:
    """Return the number of different values; raise if there is only one."""
    different = np.unique(values)
    if different.size == 1:
        raise CommandError(
            f"Target '{name}' has a single value, {different.tolist()[0]!r}: there is nothing to "
            "learn. Is this the right column?"
        )
    return different.size


def finite_numbers(values: np.ndarray, name: str) -> np.ndarray:
    """Return a column of finite numbers, (n,) float64."""
    if values.dtype.kind == "O":
        wrong = first_wrong_number(values.tolist())
        raise CommandError(
            f"Target '{name}' contains text, for example {wrong!r:.60}; regression needs numbers. "
            "Use --task classification, or correct the values."
        )
    numbers: np.ndarray = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise CommandError(
            f"Target '{name}' contains infinite numbers; regression needs finite ones."
        )
    return numbers
