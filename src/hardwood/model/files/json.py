"""A model as one JSON text: its header (`hardwood.model.files.header`) and its arrays as lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from hardwood.errors import ModelFileError
from hardwood.model.base import Model
from hardwood.model.files import strict_json
from hardwood.model.files.header import (
    ENSEMBLE,
    FOREST,
    LATENT,
    POLICY,
    TREE_ARRAYS,
    Arrays,
    arrays_of,
    check_header,
    common_header,
    forest,
    single,
)
from hardwood.model.kinds.forest import ObliqueForest
from hardwood.table import Schema

M = TypeVar("M", bound=Model)


def to_json(model: Model) -> str:
    """Write a model as JSON text; floats are written so that they read back exactly."""
    content = common_header(model)
    if isinstance(model, ObliqueForest):
        content["trees"] = [
            {"link": tree.link, "record": tree.record} | _lists(tree, TREE_ARRAYS)
            for tree in model.trees
        ]
    else:
        content |= _lists(model, arrays_of(content["format"], content["kind"]))
    return strict_json.write(content)


def _lists(model: Model, names: tuple[str, ...]) -> dict[str, Any]:
    arrays = {name: getattr(model, name) for name in names}
    return {name: None if array is None else array.tolist() for name, array in arrays.items()}


def from_json(kind: type[M], text: str | bytes) -> M:
    """Read a model of a kind from JSON text.

    Raises
    ------
    ModelFileError
        If the text is anything but a complete, consistent model of that kind.
    """
    try:
        content = check_header(strict_json.parse(text), in_json=True)
        if content["kind"] != kind.__name__:
            raise ValueError(f"it holds an {content['kind']}: use {content['kind']}.from_json")
        model = _built(content)
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"cannot read {kind.noun} from this JSON: {error}") from error
    assert isinstance(model, kind)
    return model


def _built(content: Mapping[str, Any]) -> Model:
    schema = Schema.from_dict(content["schema"])
    if content["kind"] == FOREST:
        trees = content["trees"]
        return forest(content, schema, lambda i: _tree_arrays(trees[i], schema))
    if content["kind"] == ENSEMBLE:
        return single(content, schema, _ensemble_arrays(content, schema))
    if content["kind"] == POLICY:
        return single(content, schema, _policy_arrays(content, schema))
    if content["kind"] == LATENT:
        return single(content, schema, _latent_arrays(content, schema))
    return single(content, schema, _tree_arrays(content, schema))


def _tree_arrays(content: Mapping[str, Any], schema: Schema) -> Arrays:
    """Take the arrays of one tree from its JSON."""
    counts, leaf_weights = content["counts"], content.get("leaf_weights")
    return {
        "weights": _matrix("weights", content["weights"], schema.n_columns),
        "bias": _numbers("bias", content["bias"]),
        "children": _matrix("children", content["children"], 2, whole=True),
        "values": _matrix("values", content["values"]),
        "counts": None if counts is None else _numbers("counts", counts),
        "leaf_weights": (
            None
            if leaf_weights is None
            else _matrices("leaf_weights", leaf_weights, schema.n_columns, "null, or ", "leaf")
        ),
    }


def _ensemble_arrays(content: Mapping[str, Any], schema: Schema) -> Arrays:
    """Take the arrays of a soft ensemble from its JSON."""
    counts = content["counts"]
    return {
        "weights": _matrices("weights", content["weights"], schema.n_columns),
        "bias": _matrix("bias", content["bias"]),
        "values": _matrices("values", content["values"]),
        "counts": None if counts is None else _matrix("counts", counts),
    }


def _policy_arrays(content: Mapping[str, Any], schema: Schema) -> Arrays:
    """Take the arrays of a policy tree from its JSON."""
    counts = content["counts"]
    return {
        "parents": _numbers("parents", content["parents"], whole=True),
        "weights": _matrix("weights", content["weights"], schema.n_columns),
        "bias": _numbers("bias", content["bias"]),
        "scores": _matrix("scores", content["scores"]),
        "counts": None if counts is None else _numbers("counts", counts),
    }


def _latent_arrays(content: Mapping[str, Any], schema: Schema) -> Arrays:
    """Take the arrays of a latent tree from its JSON."""
    of_numbers = ("activity", "bias", "head_weights", "head_bias")
    return {
        "nodes": _numbers("nodes", content["nodes"], whole=True),
        "weights": _matrix("weights", content["weights"], schema.n_columns),
        **{name: _numbers(name, content[name]) for name in of_numbers},
    }


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
        raise ValueError(f"each row of {name} must have {width} numbers")
    empty = np.empty((0, width), dtype=np.int64 if whole else np.float64)
    return np.stack(arrays) if arrays else empty


def _matrices(
    name: str, items: Any, width: int | None = None, or_else: str = "", of: str = "tree"
) -> np.ndarray:
    """Read a list of matrices of one shape."""
    if type(items) is not list or not items:
        raise ValueError(f"{name} must be {or_else}a list with a matrix for each {of}")
    matrices = [_matrix(name, item, width) for item in items]
    if len({matrix.shape for matrix in matrices}) > 1:
        raise ValueError(f"each {of} of {name} must have a matrix of as many rows and numbers")
    return np.stack(matrices)
