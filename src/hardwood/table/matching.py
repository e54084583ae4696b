"""Turn a later table into the matrix that a schema's model expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import TableError
from hardwood.table.columns import column_label
from hardwood.table.given_column import GivenColumn
from hardwood.table.levels import UnknownLevels, warn_about_unknown_levels
from hardwood.table.table import Table

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from hardwood.table.schema import Schema


def match(schema: Schema, X: Any, who: str, *, is_training: bool) -> np.ndarray | csr_matrix:
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
    unknown: list[UnknownLevels] = []
    for j, feature in enumerate(schema.features):
        given = GivenColumn(matrix[:, j], table.levels[j], table.origin(j), labels[j])
        column = given.numbers(feature) if feature.kind == "numeric" else given.codes(feature)
        if column is None:
            continue
        if matrix is table.matrix:  # may belong to the user, or be read again
            matrix = matrix.astype(np.result_type(matrix, column))
        matrix[:, j] = column
        unknown += given.unknown
    if unknown and not is_training:
        warn_about_unknown_levels(unknown, table.n_rows)
    return matrix


def _select(table: Table, names: tuple[str, ...]) -> Table:
    """Take columns of a table by name."""
    position = {name: j for j, name in enumerate(table.names or ())}
    absent = [name for name in names if name not in position]
    if absent:
        raise TableError(f"X lacks the column {absent[0]!r}, which the model was learned from.")
    return table.take_columns([position[name] for name in names])
