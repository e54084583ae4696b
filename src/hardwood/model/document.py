"""A model as JSON: whole, as one text; or all but its arrays, as the header of a model file.

Format 1 holds a tree with constant leaves of classes or numbers, and is still written for one:
older versions read it. Format 2 holds what came later: linear leaves, yes/no labels, forests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hardwood.errors import ModelFileError
from hardwood.model import concatenated, strict_json
from hardwood.model.concatenated import Shares
from hardwood.model.forest import MAX_TREES, ObliqueForest
from hardwood.model.tree import ObliqueTree
from hardwood.table import Schema

Model = ObliqueTree | ObliqueForest
Arrays = Mapping[str, np.ndarray | None]

FORMAT = 2
TREE, FOREST = "ObliqueTree", "ObliqueForest"

_COMMON_KEYS = {"format", "kind", "task", "classes", "target_names", "schema", "record"}
# What else the header has, by format and kind.
_FURTHER_KEYS: dict[tuple[int, str], set[str]] = {
    (1, TREE): set(),
    (2, TREE): {"link"},
    (2, FOREST): {"combine", "trees"},
}
_MEMBER_KEYS = {"link", "record", "counts", "linear_leaves"}  # of a forest's tree in a header
_MEMBER_JSON_KEYS = {"link", "record"}  # of a forest's tree in JSON, besides its arrays
_FORMAT_1_TASKS = ("classification", "regression")
_FORMAT_1_ARRAYS = ("weights", "bias", "children", "values", "counts")
TREE_ARRAYS = (*_FORMAT_1_ARRAYS, "leaf_weights")


def header(model: Model) -> dict[str, Any]:
    """Everything of a model but its arrays, for JSON."""
    head = _common_header(model)
    if isinstance(model, ObliqueForest):
        head["trees"] = [
            {
                "link": tree.link,
                "record": tree.record,
                "counts": tree.counts is not None,
                "linear_leaves": tree.has_linear_leaves,
            }
            for tree in model.trees
        ]
    return head


def _common_header(model: Model) -> dict[str, Any]:
    head: dict[str, Any] = {
        "format": format_of(model),
        "kind": FOREST if isinstance(model, ObliqueForest) else TREE,
        "task": model.task,
        "classes": None if model.classes is None else list(model.classes),
        "target_names": None if model.target_names is None else list(model.target_names),
        "schema": model.schema.to_dict(),
        "record": model.record,
    }
    if isinstance(model, ObliqueForest):
        head["combine"] = model.combine
    elif head["format"] > 1:
        head["link"] = model.link
    return head


def format_of(model: Model) -> int:
    """Return the oldest format that can hold a model."""
    if isinstance(model, ObliqueForest) or model.has_linear_leaves:
        return 2
    return 1 if model.task in _FORMAT_1_TASKS else 2


def check_header(content: Any, *, in_json: bool = False) -> dict[str, Any]:
    """Check that this is a model in a format we read, with exactly the keys it should have.

    The format comes first: about a newer one nothing else can be said. With ``in_json`` the arrays
    are among the keys.
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
    _check_kind(version, content.get("kind"))
    _check_keys(content, _keys(version, content["kind"], in_json))
    if version == 1 and content["task"] not in _FORMAT_1_TASKS:
        raise ModelFileError(
            f"task must be {' or '.join(map(repr, _FORMAT_1_TASKS))} in format 1, "
            f"not {content['task']!r:.80}"
        )
    for name in ("classes", "target_names"):
        if content[name] is not None and type(content[name]) is not list:
            raise ModelFileError(f"{name} must be a list or null, not {content[name]!r:.80}")
    if content["kind"] == FOREST:
        _check_members(
            content["trees"], _MEMBER_JSON_KEYS | {*TREE_ARRAYS} if in_json else _MEMBER_KEYS
        )
    return content


def _check_kind(version: int, kind: Any) -> None:
    known = [name for of, name in _FURTHER_KEYS if of == version]
    if kind not in known:
        raise ModelFileError(
            f"it holds a {kind!r:.80}, expected {' or '.join(map(repr, known))} in format {version}"
        )


def _keys(version: int, kind: str, in_json: bool) -> set[str]:
    keys = _COMMON_KEYS | _FURTHER_KEYS[version, kind]
    if in_json and kind == TREE:
        keys |= set(_FORMAT_1_ARRAYS if version == 1 else TREE_ARRAYS)
    return keys


def _check_keys(content: Mapping[str, Any], keys: set[str], what: str = "its JSON") -> None:
    if set(content) != keys:
        missing, unknown = sorted(keys - set(content)), sorted(set(content) - keys)
        raise ModelFileError(f"{what} lacks the keys {missing}, has unknown keys {unknown!r:.200}")


def _check_members(members: Any, keys: set[str]) -> None:
    """Check what a header or a JSON text says of each tree of a forest."""
    if type(members) is not list or not members:
        raise ModelFileError(f"trees must be a list of at least one tree, not {members!r:.80}")
    if len(members) > MAX_TREES:
        raise ModelFileError(f"it has {len(members)} trees, more than {MAX_TREES}")
    for i, member in enumerate(members):
        if type(member) is not dict:
            raise ModelFileError(f"tree {i} is described by {member!r:.80}, not by a mapping")
        _check_keys(member, keys, f"tree {i}")


def build(head: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Model:
    """Make the model from a checked header and its arrays; the constructors check the rest."""
    try:
        schema = Schema.from_dict(head["schema"])
        if head["kind"] == TREE:
            return _tree(head, head, schema, {name: arrays.get(name) for name in TREE_ARRAYS})
        parts = concatenated.separate(arrays, [_shares(member) for member in head["trees"]])
        return _forest(head, schema, lambda i: parts[i])
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"{error}") from error


def _shares(member: Mapping[str, Any]) -> Shares:
    for name in ("counts", "linear_leaves"):
        if type(member[name]) is not bool:
            raise ValueError(f"{name} of a tree must be true or false, not {member[name]!r:.80}")
    return Shares(counts=member["counts"], linear_leaves=member["linear_leaves"])


def _forest(
    head: Mapping[str, Any], schema: Schema, arrays_of: Callable[[int], Arrays]
) -> ObliqueForest:
    trees = []
    for i, member in enumerate(head["trees"]):
        try:
            trees.append(_tree(head, member, schema, arrays_of(i)))
        except (ValueError, TypeError) as error:
            raise ValueError(f"tree {i}: {error}") from error
    return ObliqueForest(trees, combine=head["combine"], record=head["record"])


def _tree(
    head: Mapping[str, Any], own: Mapping[str, Any], schema: Schema, arrays: Arrays
) -> ObliqueTree:
    """Make a tree from what it shares with others (``head``), its own entries and its arrays."""
    return ObliqueTree(
        **arrays,
        schema=schema,
        task=head["task"],
        classes=head["classes"],
        target_names=head["target_names"],
        record=own["record"],
        link=own.get("link", "identity"),
    )


def to_json(model: Model) -> str:
    """Write a model as JSON text; floats are written so that they read back exactly."""
    content = _common_header(model)
    if isinstance(model, ObliqueForest):
        content["trees"] = [
            {"link": tree.link, "record": tree.record} | _lists(tree, TREE_ARRAYS)
            for tree in model.trees
        ]
    else:
        content |= _lists(model, _FORMAT_1_ARRAYS if content["format"] == 1 else TREE_ARRAYS)
    return strict_json.write(content)


def _lists(tree: ObliqueTree, names: tuple[str, ...]) -> dict[str, Any]:
    arrays = {name: getattr(tree, name) for name in names}
    return {name: None if array is None else array.tolist() for name, array in arrays.items()}


def from_json(text: str | bytes) -> ObliqueTree:
    """Read a tree from JSON text.

    Raises
    ------
    ModelFileError
        If the text is anything but a complete, consistent tree.
    """
    try:
        content = _content(text, TREE)
        schema = Schema.from_dict(content["schema"])
        return _tree(content, content, schema, _arrays(content, schema))
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"cannot read a tree from this JSON: {error}") from error


def forest_from_json(text: str | bytes) -> ObliqueForest:
    """Read a forest from JSON text; raises as :func:`from_json` does."""
    try:
        content = _content(text, FOREST)
        schema = Schema.from_dict(content["schema"])
        return _forest(content, schema, lambda i: _arrays(content["trees"][i], schema))
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"cannot read a forest from this JSON: {error}") from error


def _content(text: str | bytes, kind: str) -> dict[str, Any]:
    content = check_header(strict_json.parse(text), in_json=True)
    if content["kind"] != kind:
        raise ValueError(f"it holds an {content['kind']}: use {content['kind']}.from_json")
    return content


def _arrays(content: Mapping[str, Any], schema: Schema) -> Arrays:
    """Take the arrays of one tree from its JSON."""
    counts, leaf_weights = content["counts"], content.get("leaf_weights")
    return {
        "weights": _matrix("weights", content["weights"], schema.n_columns),
        "bias": _numbers("bias", content["bias"]),
        "children": _matrix("children", content["children"], 2, whole=True),
        "values": _matrix("values", content["values"]),
        "counts": None if counts is None else _numbers("counts", counts),
        "leaf_weights": None if leaf_weights is None else _leaf_weights(leaf_weights, schema),
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


def _leaf_weights(leaves: Any, schema: Schema) -> np.ndarray:
    if type(leaves) is not list or not leaves:
        raise ValueError("leaf_weights must be null, or a list with a matrix for each leaf")
    matrices = [_matrix("leaf_weights", leaf, schema.n_columns) for leaf in leaves]
    if len({matrix.shape for matrix in matrices}) > 1:
        raise ValueError("each leaf of leaf_weights must have as many outputs")
    return np.stack(matrices)
