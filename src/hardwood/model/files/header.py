"""The header of a model: everything except its arrays, as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hardwood.errors import ModelFileError
from hardwood.model.base import Model
from hardwood.model.files.arrays import KINDS, OPTIONAL_OF_A_MEMBER, arrays_of, kind_of
from hardwood.model.files.format import FORMAT, check_format, check_keys
from hardwood.model.kinds.forest import MAX_TREES, ObliqueForest
from hardwood.model.kinds.tree import ObliqueTree
from hardwood.table import Schema

Arrays = Mapping[str, Any]  # by name: an array, or None

COMMON_KEYS = ("format", "kind", "task", "classes", "target_names", "schema", "record")
# Of each tree of a forest. Optional arrays are true or false in a file, lists or null in JSON.
_OWN_KEYS = ("link", "record")
_KINDS_OF_SCORES = ("ensemble", "policy_tree", "latent_tree")


def header(model: Model) -> dict[str, Any]:
    """Return everything of a model except its arrays and, for a forest, its trees."""
    head: dict[str, Any] = {
        "format": FORMAT,
        "kind": kind_of(model),
        "task": model.task,
        "classes": model.classes,
        "target_names": model.target_names,
        "schema": model.schema.to_dict(),
        "record": model.record,
    }
    head |= {name: getattr(model, name) for name in model.options if name != "trees"}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in head.items()}


def header_of_tree(tree: ObliqueTree) -> dict[str, Any]:
    """Return what a forest says of one of its trees, except its arrays."""
    return {name: getattr(tree, name) for name in _OWN_KEYS}


def check_header(content: Any, *, in_json: bool = False) -> dict[str, Any]:
    """Check the format, the kind and the keys of a header, and the types of its lists.

    Parameters
    ----------
    in_json
        Whether the arrays are among the keys.
    """
    kind = check_format(content, KINDS)
    keys = {*COMMON_KEYS, *KINDS[kind].options}
    if in_json and kind != "forest":
        keys |= {array.name for array in arrays_of(kind)}
        # Texts of the first versions have none.
        content = {"decision_weights": None} | content if kind == "tree" else content
    check_keys(content, keys)
    for name in ("classes", "target_names"):
        if content[name] is not None and type(content[name]) is not list:
            raise ModelFileError(f"{name} must be a list or null, not {content[name]!r:.80}")
    if kind in _KINDS_OF_SCORES and content["link"] is None:
        raise ModelFileError(f"link of {KINDS[kind].noun} must not be null")
    if kind == "latent_tree" and type(content["widths"]) is not list:
        raise ModelFileError(f"widths must be a list, not {content['widths']!r:.80}")
    if kind == "forest":
        every = tuple(array.name for array in arrays_of(kind))
        arrays = every if in_json else OPTIONAL_OF_A_MEMBER
        _check_trees(content["trees"], {*_OWN_KEYS, *arrays})
    return dict(content)


def _check_trees(trees: Any, keys: set[str]) -> None:
    """Check what a header or a JSON text says of each tree of a forest."""
    if type(trees) is not list or not trees:
        raise ModelFileError(f"trees must be a list of at least one tree, not {trees!r:.80}")
    if len(trees) > MAX_TREES:
        raise ModelFileError(f"it has {len(trees)} trees, more than {MAX_TREES}")
    for i, tree in enumerate(trees):
        if type(tree) is not dict:
            raise ModelFileError(f"tree {i} is described by {tree!r:.80}, not by a mapping")
        check_keys(tree, keys, f"tree {i}")


def build(head: Mapping[str, Any], arrays_of_tree: Callable[[int], Arrays]) -> Model:
    """Build the model from a checked header and its arrays; the constructors check the rest.

    Parameters
    ----------
    arrays_of_tree
        Returns the arrays of a forest's tree by its number; those of any other model as number 0.
    """
    schema = Schema.from_dict(head["schema"])
    if head["kind"] == "forest":
        return _forest(head, schema, arrays_of_tree)
    kind: Any = KINDS[head["kind"]]
    entries = ("task", "classes", "target_names", "record", *kind.options)
    model: Model = kind(
        **arrays_of_tree(0), schema=schema, **{name: head[name] for name in entries}
    )
    return model


def _forest(
    head: Mapping[str, Any], schema: Schema, arrays_of_tree: Callable[[int], Arrays]
) -> ObliqueForest:
    """Build a forest from its checked header and the arrays of its trees, by number."""
    is_sum = head["combine"] == "sum"
    labels = {name: head[name] for name in ("classes", "target_names")}
    # The trees of a sum predict scores; otherwise they predict what the forest predicts.
    shared = {"task": "regression"} if is_sum else {"task": head["task"]} | labels
    trees = []
    for i, tree in enumerate(head["trees"]):
        own = {name: tree[name] for name in _OWN_KEYS}
        try:
            trees.append(ObliqueTree(**arrays_of_tree(i), schema=schema, **shared, **own))
        except (ValueError, TypeError) as error:
            raise ValueError(f"tree {i}: {error}") from error
    forest = ObliqueForest(
        trees,
        combine=head["combine"],
        record=head["record"],
        link=head["link"],
        **(labels if is_sum else {}),
    )
    if forest.task != head["task"]:
        raise ValueError(
            f"the link {forest.link!r} is for {forest.task}, but task is {head['task']!r:.80}"
        )
    return forest
