"""One row, in any form a person has it, as a table of one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardwood.errors import TableError, TableTypeError


def as_table(x: Any, names: Sequence[str], *, who: str = "predict_one") -> Any:
    """Return a table with one row.

    Parameters
    ----------
    x
        A 1-D array, a sequence in the order of the features, or a mapping by their names.
    names
        Names of the features.
    who
        Whom a message should name.

    Raises
    ------
    TableError, TableTypeError
        If it is no row, or a mapping that lacks a name.
    """
    if hasattr(x, "keys"):  # a mapping, or a pandas Series
        return [[_entry(x, name) for name in names]]
    if isinstance(x, np.ndarray):
        if x.ndim != 1:
            raise TableError(
                f"{who} takes one row, found an array of shape {x.shape}. "
                "Use predict for several rows, or give one of them, as X[0]"
            )
        return x[None, :]
    if isinstance(x, str | bytes) or not hasattr(x, "__iter__"):
        raise TableTypeError(
            f"{who} takes a row (array, list or mapping of names), found {x!r:.80}"
        )
    return [list(x)]


def not_for_the_engine(x: Any) -> Any:
    """Refuse a row, for models whose rows must be read as a table: levels have to be looked up."""
    raise TypeError("such rows are read as a table")


def _entry(row: Any, name: str) -> Any:
    try:
        return row[name]
    except KeyError:
        raise TableError(
            f"the row has no entry {name!r}, which the model needs. It has: "
            f"{', '.join(repr(key) for key in list(row.keys())[:20])}. "
            "Give every feature; a missing one as None or NaN."
        ) from None
