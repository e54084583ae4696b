"""A model as one JSON text: its header (`hardwood.model.files.header`) and its arrays as lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from hardwood.errors import ModelFileError
from hardwood.model.base import Model
from hardwood.model.files import strict_json
from hardwood.model.files.arrays import KINDS, arrays_of
from hardwood.model.files.header import Arrays, build, check_header, header, header_of_tree
from hardwood.model.kinds.forest import ObliqueForest
from hardwood.model.structure import Array
from hardwood.table import Schema
from hardwood.text.numbers import plural

M = TypeVar("M", bound=Model)


def to_json(model: Model) -> str:
    """Write a model as JSON text, with enough digits to read every float back exactly."""
    content = header(model)
    if isinstance(model, ObliqueForest):
        content["trees"] = [header_of_tree(tree) | _lists(tree, "forest") for tree in model.trees]
    else:
        content |= _lists(model, content["kind"])
    return strict_json.write(content)


def _lists(model: Model, kind: str) -> dict[str, Any]:
    arrays = {part.name: getattr(model, part.name) for part in arrays_of(kind)}
    return {name: None if array is None else array.tolist() for name, array in arrays.items()}


def from_json(kind: type[M], text: str | bytes) -> M:
    """Read a model of a kind from JSON text.

    Raises
    ------
    ModelFileError
        If the text is not a complete, consistent model of that kind.
    """
    try:
        content = check_header(strict_json.parse(text), in_json=True)
        found = KINDS[content["kind"]]
        if found is not kind:
            raise ValueError(f"it holds {found.noun}: use {found.__name__}.from_json")
        holders = content["trees"] if content["kind"] == "forest" else [content]
        parts = arrays_of(content["kind"])
        n_columns = Schema.from_dict(content["schema"]).n_columns
        model = build(content, lambda i: _arrays(holders[i], parts, n_columns))
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"cannot read {kind.noun} from this JSON: {error}") from error
    assert isinstance(model, kind)
    return model


def _arrays(content: Mapping[str, Any], parts: tuple[Array, ...], n_columns: int) -> Arrays:
    """Read the arrays of one model from its JSON."""
    return {part.name: _array(part, content[part.name], n_columns) for part in parts}


def _array(part: Array, items: Any, n_columns: int) -> np.ndarray | None:
    if items is None and part.is_optional:
        return None
    width = {"c": n_columns, "2": 2}.get(part.axes[-1])
    if len(part.axes) == 1:
        return _numbers(part.name, items, whole=part.is_whole)
    if len(part.axes) == 2:
        return _matrix(part.name, items, width, whole=part.is_whole)
    return _matrices(part, items, width)


def _numbers(name: str, items: Any, *, whole: bool = False) -> np.ndarray:
    # Checked one by one before NumPy sees them: it would pad text to the longest, at any cost.
    kinds = {int} if whole else {int, float}
    if type(items) is not list or not kinds.issuperset(map(type, items)):
        raise ValueError(f"{name} must hold lists of {'whole ' if whole else ''}numbers")
    try:
        return np.array(items, dtype=np.int64 if whole else np.float64)
    except OverflowError:
        raise ValueError(f"{name} holds a number that is too large") from None


def _matrix(name: str, rows: Any, width: int | None = None, *, whole: bool = False) -> np.ndarray:
    if type(rows) is not list:
        raise ValueError(f"{name} must be a list of lists of numbers")
    arrays = [_numbers(name, row, whole=whole) for row in rows]
    if width is None:
        width = arrays[0].size if arrays else 0
    if any(array.size != width for array in arrays):
        raise ValueError(f"each row of {name} must have {plural(width, 'number')}")
    empty = np.empty((0, width), dtype=np.int64 if whole else np.float64)
    return np.stack(arrays) if arrays else empty


def _matrices(part: Array, items: Any, width: int | None) -> np.ndarray:
    """Read a list of matrices of one shape."""
    name, of = part.name, "tree" if part.axes[0] == "T" else "leaf"
    if type(items) is not list or not items:
        or_else = "null, or " if part.is_optional else ""
        raise ValueError(f"{name} must be {or_else}a list with a matrix for each {of}")
    matrices = [_matrix(name, item, width) for item in items]
    if len({matrix.shape for matrix in matrices}) > 1:
        raise ValueError(f"each {of} of {name} must have a matrix of the same shape")
    return np.stack(matrices)
