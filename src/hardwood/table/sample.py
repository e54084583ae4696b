"""Random rows that resemble the training rows of a model, for timing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.text.frames import Backend, first_installed, make_frame

if TYPE_CHECKING:
    from hardwood.table.schema import Schema

_MISSING = 0.05  # fraction of missing values, in a feature that had some
# The fastest to read first.
_FRAMES: dict[Backend, str] = {
    "pyarrow": "Arrow table",
    "polars": "polars frame",
    "pandas": "pandas frame",
}


def sample_rows(schema: Schema, n: int, rng: np.random.Generator) -> tuple[Any, str]:
    """Draw rows with independent features, and return them with the kind of table they are in.

    Numbers are normally distributed with the mean and scale of the training rows, levels are
    equally likely, and 5 % of the values are missing in features that had missing values. If all
    features are numeric, the table is a float64 array; otherwise an Arrow table or a data frame, or
    a list of rows if no library for them is installed.
    """
    columns: dict[str, Any] = {}
    for feature in schema.features:
        missing = (rng.random(n) < _MISSING) & feature.has_missing
        if feature.kind == "numeric":
            values = rng.normal(feature.center, feature.scale, n)
            columns[feature.name] = np.where(missing, np.nan, values)
        else:
            codes = rng.integers(0, max(1, len(feature.levels)), n)
            columns[feature.name] = [
                None if gone or not feature.levels else feature.levels[code]
                for code, gone in zip(codes.tolist(), missing.tolist(), strict=True)
            ]
    if schema.is_numeric:
        return np.ascontiguousarray(np.column_stack(list(columns.values()))), "float64 array"
    backend = first_installed(tuple(_FRAMES))
    if backend is None:
        return [list(row) for row in zip(*columns.values(), strict=True)], "list of rows"
    return make_frame(columns, backend, purpose="Rows to time"), _FRAMES[backend]


def single_rows(schema: Schema, X: Any, n: int) -> tuple[list[np.ndarray], list[dict[str, Any]]]:
    """Return the first n rows of a table as 1-D arrays (of numbers only), and as dicts by names."""
    matrix = schema.read(X)[:n]
    matrix = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    levels = [
        np.array([*feature.levels, None], dtype=object) if feature.kind == "categorical" else None
        for feature in schema.features
    ]
    columns = []
    for entries, known in zip(matrix.T, levels, strict=True):
        if known is None:
            columns.append(entries.tolist())
        else:
            codes = np.where(np.isnan(entries), len(known) - 1, entries).astype(np.int64)
            columns.append(known[codes].tolist())
    dicts = [dict(zip(schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    arrays = list(np.ascontiguousarray(matrix, dtype=np.float64)) if schema.is_numeric else []
    return arrays, dicts
