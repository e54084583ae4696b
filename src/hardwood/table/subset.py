"""Select rows of a table of any kind, before it is read."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from hardwood.table.frames import open_frame


def n_rows(table: Any) -> int:
    """Return the number of rows of a table, a column or a list."""
    shape = getattr(table, "shape", None)
    if shape is None and not hasattr(table, "__len__"):
        raise TypeError(f"Expected a table and a target, got {type(table).__name__}.")
    return int(shape[0]) if shape else len(table)


def taken(X: Any, rows: np.ndarray) -> Any:
    """Return some rows of a table, in the given order, as the same kind of table.

    Anything but an array, matrix, list or data frame becomes an array.
    """
    if isinstance(X, np.ndarray):
        return X[rows]
    sparse = sys.modules.get("scipy.sparse")  # a SciPy matrix has imported it
    if sparse is not None and sparse.issparse(X):
        return X.tocsr()[rows]
    if isinstance(X, list | tuple):
        return [X[i] for i in rows]
    frame = open_frame(X)
    return np.asarray(X)[rows] if frame is None else frame[rows].to_native()
