"""The header of a model: everything but its arrays, for JSON; and what formats there are.

A model is written in the oldest format that holds it, so that older versions read what they can:

======  ====================================================================================
format  holds
======  ====================================================================================
1       a tree with constant leaves of classes or numbers
2       linear leaves, yes/no labels, forests that average or vote
3       forests that add up scores, soft ensembles
4       policy trees, latent trees
======  ====================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hardwood.errors import ModelFileError
from hardwood.model.base import Model
from hardwood.model.files.arrays import KINDS, arrays_of
from hardwood.model.kinds.forest import MAX_TREES, ObliqueForest
from hardwood.model.kinds.latent_tree import LatentTreeModel
from hardwood.model.kinds.policy_tree import PolicyTree
from hardwood.model.kinds.soft_ensemble import TreeEnsemble
from hardwood.model.kinds.tree import ObliqueTree
from hardwood.table import Schema

Arrays = Mapping[str, Any]  # by name: an array, or None

FORMAT = 4
TREE, FOREST, ENSEMBLE, POLICY, LATENT = KINDS

COMMON_KEYS = {"format", "kind", "task", "classes", "target_names", "schema", "record"}
# What else the header has, by format and kind.
FURTHER_KEYS: dict[tuple[int, str], set[str]] = {
    (1, TREE): set(),
    (2, TREE): {"link"},
    (2, FOREST): {"combine", "trees"},
    (3, FOREST): {"combine", "link", "trees"},
    (3, ENSEMBLE): {"activation", "gamma", "link"},
    (4, POLICY): {"link"},
    (4, LATENT): {"activation", "link", "skip", "widths"},
}
MEMBER_KEYS = {"link", "record", "counts", "linear_leaves"}  # of a forest's tree in a header
_FORMAT_1_TASKS = ("classification", "regression")
# How a forest of a format combines its trees: one model has one format.
_COMBINATIONS = {2: ("mean", "vote"), 3: ("sum",)}


def format_of(model: Model) -> int:
    """Return the oldest format that can hold a model."""
    if isinstance(model, PolicyTree | LatentTreeModel):
        return 4
    if isinstance(model, TreeEnsemble):
        return 3
    if isinstance(model, ObliqueForest):
        return 3 if model.combine == "sum" else 2
    return 1 if model.task in _FORMAT_1_TASKS and not model.has_linear_leaves else 2


def header(model: Model) -> dict[str, Any]:
    """Everything of a model but its arrays and, of a forest, its trees."""
    head: dict[str, Any] = {
        "format": format_of(model),
        "kind": type(model).__name__,
        "task": model.task,
        "classes": None if model.classes is None else list(model.classes),
        "target_names": None if model.target_names is None else list(model.target_names),
        "schema": model.schema.to_dict(),
        "record": model.record,
    }
    further = FURTHER_KEYS[head["format"], head["kind"]] - {"trees"}
    entries = {name: getattr(model, name) for name in further}
    return head | {
        name: list(value) if isinstance(value, tuple) else value for name, value in entries.items()
    }


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
    _check_entries(content)
    if content["kind"] == FOREST:
        _check_members(content["trees"], _member_keys(in_json))
    return content


def _check_kind(version: int, kind: Any) -> None:
    known = [name for of, name in FURTHER_KEYS if of == version]
    if kind not in known:
        raise ModelFileError(
            f"it holds a {kind!r:.80}, expected {' or '.join(map(repr, known))} in format {version}"
        )


def _keys(version: int, kind: str, in_json: bool) -> set[str]:
    keys = COMMON_KEYS | FURTHER_KEYS[version, kind]
    if in_json and kind != FOREST:
        keys |= {array.name for array in arrays_of(version, kind)}
    return keys


def _member_keys(in_json: bool) -> set[str]:
    arrays = {array.name for array in arrays_of(FORMAT, TREE)}
    return {"link", "record"} | arrays if in_json else MEMBER_KEYS


def _check_keys(content: Mapping[str, Any], keys: set[str], what: str = "its JSON") -> None:
    if set(content) != keys:
        missing, unknown = sorted(keys - set(content)), sorted(set(content) - keys)
        raise ModelFileError(f"{what} lacks the keys {missing}, has unknown keys {unknown!r:.200}")


def _check_entries(content: Mapping[str, Any]) -> None:
    """Check what the constructors take in more ways than a file may have."""
    version = content["format"]
    if version == 1 and content["task"] not in _FORMAT_1_TASKS:
        raise ModelFileError(
            f"task must be {' or '.join(map(repr, _FORMAT_1_TASKS))} in format 1, "
            f"not {content['task']!r:.80}"
        )
    for name in ("classes", "target_names"):
        if content[name] is not None and type(content[name]) is not list:
            raise ModelFileError(f"{name} must be a list or null, not {content[name]!r:.80}")
    if content["kind"] == FOREST and content["combine"] not in _COMBINATIONS[version]:
        known = " or ".join(map(repr, _COMBINATIONS[version]))
        raise ModelFileError(
            f"combine must be {known} in format {version}, not {content['combine']!r:.80}"
        )
    if content["kind"] in (ENSEMBLE, POLICY, LATENT) and content["link"] is None:
        raise ModelFileError(f"{KINDS[content['kind']].noun} must say its link, but that is null")
    if content["kind"] == LATENT and type(content["widths"]) is not list:
        raise ModelFileError(f"widths must be a list, not {content['widths']!r:.80}")


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


def build(head: Mapping[str, Any], arrays_of_tree: Callable[[int], Arrays]) -> Model:
    """Make the model from a checked header and its arrays; the constructors check the rest.

    Parameters
    ----------
    arrays_of_tree
        Gives the arrays of a tree of a forest by its number; those of any other model as number 0.
    """
    schema = Schema.from_dict(head["schema"])
    if head["kind"] == FOREST:
        return _forest(head, schema, arrays_of_tree)
    kind: Any = KINDS[head["kind"]]
    entries = {"task", "classes", "target_names", "record"}
    entries |= FURTHER_KEYS[head["format"], head["kind"]]
    model: Model = kind(
        **arrays_of_tree(0), schema=schema, **{name: head[name] for name in entries}
    )
    return model


def _forest(
    head: Mapping[str, Any], schema: Schema, arrays_of_tree: Callable[[int], Arrays]
) -> ObliqueForest:
    """Make a forest from its checked header and the arrays of its trees, by number."""
    is_sum = head["combine"] == "sum"
    of_all = {name: head[name] for name in ("task", "classes", "target_names")}
    of_trees = {"task": "regression"} if is_sum else of_all  # a sum's trees give scores
    trees = []
    for i, member in enumerate(head["trees"]):
        own = {name: member[name] for name in ("link", "record")}
        try:
            trees.append(ObliqueTree(**arrays_of_tree(i), schema=schema, **of_trees, **own))
        except (ValueError, TypeError) as error:
            raise ValueError(f"tree {i}: {error}") from error
    if not is_sum:
        return ObliqueForest(trees, combine=head["combine"], record=head["record"])
    made = ObliqueForest(
        trees,
        combine="sum",
        record=head["record"],
        link=head["link"],
        classes=head["classes"],
        target_names=head["target_names"],
    )
    if made.task != head["task"]:
        raise ValueError(
            f"the link {made.link!r} is for {made.task}, but task is {head['task']!r:.80}"
        )
    return made
