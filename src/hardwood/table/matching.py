"""Turn a later table into the matrix that a schema's model expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import TableError
from hardwood.table.columns import column_label
from hardwood.table.feature import Feature, Level
from hardwood.table.table import Table

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from hardwood.table.schema import Schema


_LEARNED_FROM = {
    "number": "numbers. Convert the column to numbers, with NaN or None for missing values.",
    "boolean": "true and false. Convert the column to booleans or to 0 and 1.",
    "date": "dates. Parse the column, for example with pandas.to_datetime, or with "
    "parse_dates=[...] in pandas.read_csv.",
    "duration": "durations. Parse the column, for example with pandas.to_timedelta.",
}


def match(schema: Schema, X: Any, who: str) -> np.ndarray | csr_matrix:
    """Convert a table to the columns and codes of a schema; see `Schema.read`."""
    table = Table.of(X, only=schema.names if schema.named else None)
    if table.names is not None and schema.named and table.names != schema.names:
        table = _select(table, schema.names)
    if table.n_features != schema.n_features:
        raise TableError(
            f"X has {table.n_features} features, but {who} is expecting "
            f"{schema.n_features} features as input."
        )
    labels = [column_label(schema.names, j) for j in range(schema.n_features)]
    if not isinstance(table.matrix, np.ndarray):
        for feature, label in zip(schema.features, labels, strict=True):
            if feature.kind == "categorical":
                raise TableError(
                    f"{label} is categorical and a sparse matrix holds numbers only. "
                    "Pass a data frame."
                )
        return table.matrix
    matrix = table.matrix
    for j, feature in enumerate(schema.features):
        column = _match_column(matrix[:, j], table.levels[j], feature, labels[j])
        if column is None:
            continue
        if matrix is table.matrix:  # may belong to the user, or be read again
            matrix = matrix.astype(np.result_type(matrix, column))
        matrix[:, j] = column
    return matrix


def _select(table: Table, names: tuple[str, ...]) -> Table:
    """Take columns of a table by name."""
    position = {name: j for j, name in enumerate(table.names or ())}
    absent = [name for name in names if name not in position]
    if absent:
        raise TableError(f"X lacks the column {absent[0]!r}, which the model was learned from.")
    return table.take_columns([position[name] for name in names])


def _match_column(
    column: np.ndarray, found: tuple[Level, ...] | None, feature: Feature, label: str
) -> np.ndarray | None:
    """Return the new content of a column, or None if it does not change."""
    if found == () or (found is None and feature.kind == "numeric"):
        return None  # all missing, which fits every feature
    if feature.kind == "numeric":
        assert found is not None
        return _numbers_of_levels(column, found, feature.origin, label)
    if found is None:
        present = np.unique(column[~np.isnan(column)])
        if not len(present):
            return None
        found = tuple(present.tolist())
        column = np.where(np.isnan(column), np.nan, np.searchsorted(present, column))
    elif found == feature.levels:
        return None
    _check_comparable(found, feature, label)
    code = {level: i for i, level in enumerate(feature.levels)}
    lookup = np.array([code.get(level, np.nan) for level in found], dtype=np.float32)
    return _looked_up(column, lookup)


def _looked_up(codes: np.ndarray, lookup: np.ndarray) -> np.ndarray:
    present = ~np.isnan(codes)
    out = np.full(len(codes), np.nan, lookup.dtype)
    out[present] = lookup[codes[present].astype(np.int64)]
    return out


def _numbers_of_levels(
    codes: np.ndarray, found: tuple[Level, ...], origin: str, label: str
) -> np.ndarray:
    """Return the values of a categorical column whose levels are numbers; refuse text."""
    is_text = np.array([isinstance(level, str) for level in found])
    if is_text.any():
        present = np.flatnonzero(~np.isnan(codes))
        row = int(present[is_text[codes[present].astype(np.int64)]][0])
        raise TableError(
            f"{label} holds the text {found[int(codes[row])]!r} at row {row}, where the model "
            f"learned from {_LEARNED_FROM[origin]}"
        )
    return _looked_up(codes, np.array(found, dtype=np.float64))


def _check_comparable(found: tuple[Level, ...], feature: Feature, label: str) -> None:
    """Refuse numbers if the model learned text, and text if it learned numbers.

    Otherwise every value would silently count as an unseen level.
    """
    has_text = {isinstance(level, str) for level in found}
    learned_text = {isinstance(level, str) for level in feature.levels}
    if has_text.isdisjoint(learned_text):
        word = {True: "text", False: "numbers"}
        raise TableError(
            f"{label} holds {word[True in has_text]} such as {found[0]!r}, where the model learned "
            f"{word[True in learned_text]} such as {feature.levels[0]!r}. Convert the column."
        )
