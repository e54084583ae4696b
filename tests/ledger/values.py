"""Convert any result of the package to bytes that are the same in every run."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator

# Names of entries that hold a time or depend on one.
_TIMES = re.compile(r"second|_us$|_ms$|_ns$|^rows_per|^speed|datetime|^duration")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_MODULE = re.compile(r"\bhardwood(\.\w+)+\.(?=[A-Z])")  # modules may be moved, classes are not
_TIME_IN_TEXT = re.compile(r"\b\d[\d.,]*(e-?\d+)? ?(ns|µs|us|ms|s|seconds?|min|minutes?)\b")


def as_bytes(value: Any) -> bytes:
    """Return bytes and text as they are, and other values as JSON of many lines."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    return json.dumps(plain(value), indent=1, ensure_ascii=False).encode()


def same_every_time(text: str) -> str:
    """Return a text without memory addresses, modules and times, which may differ."""
    return _TIME_IN_TEXT.sub("(a time)", _ADDRESS.sub("0x...", _MODULE.sub("", text)))


def plain(value: Any) -> Any:
    """Convert a value to JSON types, with floats in full and without times."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return same_every_time(value)
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, np.ndarray):
        return {"dtype": str(value.dtype), "shape": value.shape, "values": plain(value.tolist())}
    if scipy.sparse.issparse(value):
        rows = value.tocsr()
        return {"shape": rows.shape, "sparse": plain([rows.indptr, rows.indices, rows.data])}
    if isinstance(value, Mapping):
        return {str(key): _without_time(str(key), entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, Set):
        return sorted(str(entry) for entry in value)
    return _of_object(value)


def _without_time(name: str, value: Any) -> Any:
    return "(a time)" if _TIMES.search(name) and value is not None else plain(value)


def _of_object(value: Any) -> Any:
    if isinstance(value, BaseEstimator):
        return fitted(value)
    if hasattr(value, "to_dict") and not isinstance(value, type):  # reports, and data frames
        return plain(value.to_dict())
    if hasattr(value, "to_json") and not isinstance(value, type):  # models
        return plain(json.loads(value.to_json()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return plain({name: getattr(value, name) for name in names})
    if callable(value):
        return f"function {getattr(value, '__name__', type(value).__name__)}"
    return same_every_time(repr(value))


def fitted(estimator: Any) -> dict[str, Any]:
    """Return the kind, the parameters and the public fitted attributes of an estimator."""
    names = [name for name in dir(estimator) if name.endswith("_") and not name.startswith("_")]
    attributes = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    return {
        "kind": type(estimator).__name__,
        "parameters": plain(dict(sorted(estimator.get_params(deep=False).items()))),
        "attributes": plain(attributes),
    }


def picture(drawn: Any) -> bytes:
    """Return a plot, from axes or a figure, as PNG."""
    content = io.BytesIO()
    getattr(drawn, "figure", drawn).savefig(content, format="png", metadata={"Software": None})
    return content.getvalue()
