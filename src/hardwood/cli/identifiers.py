"""Columns that name the rows instead of describing them.

A tree that weighs every customer's number learns the table by heart. Text that differs from row to
row can teach nothing about another row and is left out; of whole numbers that may be numbers of
rows it is only said, because a measurement can look the same.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import TableWarning

if TYPE_CHECKING:
    import pyarrow as pa

MIN_ROWS = 51  # in fewer rows, names of everything may differ by chance
MIN_DISTINCT = 0.95  # a few repeated entries (a customer who came twice) change nothing

# id, customer_id, customer-id, customer id; customerId, CustomerID
_ID_NAME = re.compile(r"(?:^|[_\W])id$|[a-z](?:Id|ID)$|^(?:Id|ID)$", re.ASCII)


def identifiers(features: pa.Table, wanted: Collection[str] = ()) -> list[str]:
    """Return the text columns that have a different entry in (nearly) every row, less ``wanted``.

    Every such column is warned of, and so are whole numbers that seem to count the rows.
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
                _warn(
                    f"'{name}' has a different text in {often}, so it is left out as an "
                    f"identifier; --use {_quoted(name)} keeps it"
                )
        elif _seems_to_count_rows(name, column):
            _warn(
                f"'{name}' has a different whole number in every row; if it is an identifier, "
                f"leave it out: --drop {_quoted(name)}"
            )
    return found


def _warn(message: str) -> None:
    warnings.warn(message, TableWarning, stacklevel=3)


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _distinct_share(column: Any) -> float:
    """Return different entries per entry that is present; 0 where there are too few to say."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    present = column.drop_null()
    return len(present.unique()) / len(present) if len(present) >= MIN_ROWS else 0.0


def _seems_to_count_rows(name: str, column: Any) -> bool:
    """Whether whole numbers go up by one from row to row, or all differ under a name such as id."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.null_count or len(column) < MIN_ROWS:
        return False
    values = column.to_numpy()
    if np.all(values[1:] == values[:-1] + 1):
        return True
    return bool(_ID_NAME.search(name)) and np.unique(values).size == values.size
