"""Values in the form that JSON has."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Any


def plain(value: Any) -> Any:
    """Return a value as JSON holds it.

    NumPy's scalars and arrays become Python's, tuples lists, keys and paths text; NaN and infinity,
    which JSON lacks, become None.
    """
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
