"""The values of a row as in the user's table: category names, dates as dates."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardwood.table import Schema
from hardwood.table.restore import entry_of
from hardwood.text.numbers import format_quantity
from hardwood.text.terms import label_text


def value_of(schema: Schema, feature: int, value: float) -> Any:
    """Return a value read by `Schema.read`: a number, a category, a date, None if missing.

    A category that was not seen in training counts as missing.
    """
    return entry_of(schema.features[feature], value)


def value_text(schema: Schema, feature: int, value: float, digits: int | None = 4) -> str:
    """Format a value: ``39.1``, ``Dream``, ``2019-01-22``, ``missing``."""
    if np.isnan(value):
        return "missing"
    about = schema.features[feature]
    if about.levels:
        return label_text(value_of(schema, feature, value))
    spread = float(schema.column_spread[schema.first_column[feature]])
    return format_quantity(value, about.origin, digits, spread=spread)


def dense_matrix(schema: Schema, X: Any, who: str) -> np.ndarray:
    """Read a table: (n, p) float32 or float64, C-contiguous; see `Schema.read`."""
    matrix = schema.read(X, who=who)
    dense: np.ndarray = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    return np.ascontiguousarray(dense)
