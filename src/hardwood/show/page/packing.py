"""Arrays in JSON, in few characters and without loss.

A packed array has one of three forms, which ``data.js`` distinguishes:

- a list of numbers, with ``null`` for NaN;
- ``{"f4": text}``, where the text is base64 of little-endian numbers of that NumPy type;
- ``{"size": n, "at": places, "is": numbers}``, for mostly zeros; both parts are packed arrays.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np

_WHOLE_TYPES = ("u1", "u2", "i4")
_SPARSE_BELOW = 1 / 3  # share of nonzero numbers
_WRAPPING = len('{"f4":""}')


def packed(array: Any) -> Any:
    """Pack the numbers of an array, row by row, without its shape."""
    flat = np.asarray(array).ravel()
    places = np.flatnonzero(flat)
    if places.size < _SPARSE_BELOW * flat.size:
        return {"size": flat.size, "at": packed(places), "is": packed(flat[places])}
    kind = _narrowest_type(flat)
    text = base64.b64encode(flat.astype(f"<{kind}").tobytes()).decode("ascii")
    numbers = [_plain(value) for value in flat.tolist()]
    as_list = json.dumps(numbers, separators=(",", ":"))
    return numbers if len(as_list) <= len(text) + _WRAPPING else {kind: text}


def _narrowest_type(flat: np.ndarray) -> str:
    """Return the smallest type that holds every number exactly."""
    if flat.dtype.kind in "biu":
        low, high = (int(flat.min()), int(flat.max())) if flat.size else (0, 0)
        for kind in _WHOLE_TYPES:
            limits = np.iinfo(kind)
            if limits.min <= low and high <= limits.max:
                return kind
    with np.errstate(over="ignore"):
        fits = np.array_equal(flat.astype("f4").astype("f8"), flat.astype("f8"), equal_nan=True)
    return "f4" if fits else "f8"


def _plain(value: Any) -> Any:
    """Write integers without a decimal point, and NaN, which JSON lacks, as null."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if value.is_integer() and abs(value) < 2**53:
            return int(value)
    return int(value) if isinstance(value, bool) else value
