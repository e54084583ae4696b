"""Refuse a table that a learner would need more memory for than the machine has."""

from __future__ import annotations

import math
import os

from hardwood.errors import TableError
from hardwood.text.numbers import plural

_CONTAINER_LIMIT = "/sys/fs/cgroup/memory.max"


def check_dense_size(n_rows: int, n_columns: int, *, bytes_per_value: int, learner: str) -> None:
    """Check that the columns of all rows fit into memory as dense numbers.

    Parameters
    ----------
    n_columns
        Columns after encoding.
    bytes_per_value
        Smallest number of bytes that the learner keeps per row and column.
    learner
        For the message.

    Raises
    ------
    TableError
        If they do not fit; the message says how much memory they need.
    """
    needed, available = n_rows * n_columns * bytes_per_value, total_memory()
    if needed > available:
        raise TableError(
            f"{learner} needs all values at once: {needed / 1e9:.1f} GB for "
            f"{plural(n_rows, 'row')} and "
            f"{plural(n_columns, 'column')}, but this machine has {available / 1e9:.1f} GB. "
            "Use fewer "
            "columns or rows, or a learner that reads sparse rows in batches, such as "
            "DGTClassifier or DGTRegressor."
        )


def total_memory() -> float:
    """Return the memory of the machine or the container in bytes; infinity if it is not known."""
    try:
        total = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not on this system
        total = math.inf
    try:
        with open(_CONTAINER_LIMIT, encoding="ascii") as limit:
            return min(total, float(limit.read()))
    except (OSError, ValueError):  # no container, or "max"
        return total
