"""A tree as JSON: whole, as one text; or all but its arrays, as the header of a model file."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardwood.errors import ModelFileError
from hardwood.model import strict_json
from hardwood.model.tree import ObliqueTree
from hardwood.table import Schema

FORMAT = 1
KIND = "ObliqueTree"
HEADER_KEYS = {"format", "kind", "task", "classes", "target_names", "schema", "record"}
ARRAY_KEYS = {"weights", "bias", "children", "values", "counts"}


def header(tree: ObliqueTree) -> dict[str, Any]:
    """Everything of a tree but its arrays, for JSON."""
    return {
        "format": FORMAT,
        "kind": KIND,
        "task": tree.task,
        "classes": None if tree.classes is None else list(tree.classes),
        "target_names": None if tree.target_names is None else list(tree.target_names),
        "schema": tree.schema.to_dict(),
        "record": tree.record,
    }


def check_header(content: Any, keys: set[str]) -> dict[str, Any]:
    """Check that this is a tree in a format we read, with exactly these keys.

    The format comes first: about a newer one nothing else can be said.
    """
    if not isinstance(content, dict) or "format" not in content:
        raise ModelFileError("it holds no hardwood model: the JSON has no 'format'")
    version = content["format"]
    if type(version) is not int or version < 1:
        raise ModelFileError(f"its format is {version!r:.80}, expected a whole number from 1")
    if version > FORMAT:
        raise ModelFileError(
            f"it was written by a newer hardwood (format {version!r:.80}, this one reads up to "
            f"{FORMAT}). Upgrade with:  pip install --upgrade hardwood"
        )
    if content.get("kind") != KIND:
        raise ModelFileError(f"it holds a {content.get('kind')!r:.80}, expected {KIND!r}")
    if set(content) != keys:
        missing, unknown = sorted(keys - set(content)), sorted(set(content) - keys)
        raise ModelFileError(
            f"its JSON lacks the keys {missing}, has unknown keys {unknown!r:.200}"
        )
    for name in ("classes", "target_names"):
        if content[name] is not None and type(content[name]) is not list:
            raise ModelFileError(f"{name} must be a list or null, not {content[name]!r:.80}")
    return content


def build(head: dict[str, Any], arrays: dict[str, np.ndarray]) -> ObliqueTree:
    """Make the tree from a checked header and its arrays; the constructor checks the rest."""
    try:
        return ObliqueTree(
            arrays["weights"],
            arrays["bias"],
            arrays["children"],
            arrays["values"],
            schema=Schema.from_dict(head["schema"]),
            task=head["task"],
            counts=arrays.get("counts"),
            classes=head["classes"],
            target_names=head["target_names"],
            record=head["record"],
        )
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"{error}") from error


def to_json(tree: ObliqueTree) -> str:
    """Write a tree as JSON text; floats are written so that they read back exactly."""
    content = header(tree)
    for name in ("weights", "bias", "children", "values", "counts"):
        array = getattr(tree, name)
        content[name] = None if array is None else array.tolist()
    return strict_json.write(content)


def from_json(text: str | bytes) -> ObliqueTree:
    """Read a tree from JSON text.

    Raises
    ------
    ModelFileError
        If the text is anything but a complete, consistent tree.
    """
    try:
        content = check_header(strict_json.parse(text), HEADER_KEYS | ARRAY_KEYS)
        schema = Schema.from_dict(content["schema"])
        arrays = {
            "weights": _matrix("weights", content["weights"], schema.n_columns),
            "bias": _numbers("bias", content["bias"]),
            "children": _matrix("children", content["children"], 2, whole=True),
            "values": _matrix("values", content["values"]),
        }
        if content["counts"] is not None:
            arrays["counts"] = _numbers("counts", content["counts"])
        return build(content, arrays)
    except ValueError as error:
        raise ModelFileError(f"cannot read a tree from this JSON: {error}") from error


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
