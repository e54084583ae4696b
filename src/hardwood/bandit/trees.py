"""Conversion between the engine's tree of encoded columns and an `ObliqueTree` of features."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hardwood.bandit.contexts import Contexts
from hardwood.model import ObliqueTree
from hardwood.model.kinds.tree import heap_children
from hardwood.model.structure import Label
from hardwood.table import Schema
from hardwood.text.numbers import plural

Parts = Mapping[str, Any]
"""The engine's description of its tree; see `value_tree`."""


def value_tree(parts: Parts, contexts: Contexts, names: Sequence[str] | None) -> ObliqueTree:
    """Return the tree of a learner's values: a regression with one output per action.

    Parameters
    ----------
    parts
        ``weights`` (m, c), ``bias`` (m,) and ``values`` (L, k) of a perfect tree in heap order,
        for encoded columns; ``scale`` (c,), the standard deviations of those columns so far.
    contexts
        The encoding of contexts.
    names
        Names of the outputs.

    Notes
    -----
    The engine decides with the same float32 numbers, which it adds up in the same order, so that
    the tree sends every context to the leaf that `decide` finds, bit for bit.
    """
    return ObliqueTree(
        parts["weights"] / contexts.schema.column_scale,  # powers of two: exact
        parts["bias"],
        heap_children(len(parts["weights"])),
        parts["values"],
        schema=_with_spread(contexts.schema, parts["scale"]),
        task="regression",
        target_names=names,
    ).simplify()


def numbered_tree(parts: Parts, contexts: Contexts) -> ObliqueTree:
    """Return the tree whose output is the number of the leaf, as `Decision` counts leaves."""
    numbers = np.arange(len(parts["values"]), dtype=np.float64)[:, None]
    return value_tree({**parts, "values": numbers}, contexts, None)


def policy_tree(values: ObliqueTree, actions: Sequence[Label]) -> ObliqueTree:
    """Return the tree that classifies the best action (the first of equal ones), simplified."""
    best = np.argmax(values.values, axis=1)
    return values.replace(
        values=np.eye(len(actions))[best], task="classification", classes=actions, target_names=None
    ).simplify()


def _with_spread(schema: Schema, deviation: np.ndarray) -> Schema:
    """Return the schema with the standard deviations of the encoded columns so far."""
    spread = deviation * schema.column_scale
    features = []
    for feature, first in zip(schema.features, schema.first_column.tolist(), strict=True):
        own = tuple(spread[first : first + feature.n_columns].tolist())
        features.append(dataclasses.replace(feature, spread=own))
    return Schema(tuple(features), schema.named)


_TRUSTED_ROWS = 100  # for a tree without a record of its number of training rows


def start_of(tree: ObliqueTree, schema: Schema, height: int) -> dict[str, Any]:
    """Return a supervised tree as arguments of the engine, for encoded columns.

    Parameters
    ----------
    tree
        A tree with constant leaves and the columns of ``schema``.
    schema
        Schema of the learner's contexts: that of the tree, possibly without scales.
    height
        Depth of the engine's perfect tree.

    Raises
    ------
    ValueError
        If the tree is deeper, or has linear leaves.
    """
    if tree.has_linear_leaves:
        raise ValueError(
            "init has linear leaves, but a tree that learns from feedback needs constant leaves. "
            "Fit it with constant leaves."
        )
    if tree.depth > height:
        raise ValueError(
            f"init has depth {tree.depth}, more than max_depth={height}. Raise max_depth (up to "
            "10), or prune the tree."
        )
    perfect = tree.to_perfect(height)
    center, scale = _start_statistics(tree.schema, schema)
    return {
        "weights": perfect.weights * schema.column_scale,
        "bias": perfect.bias.copy(),
        "values": perfect.values.copy(),
        "center": center,
        "scale": scale,
        # Number of rows that the statistics of the columns represent.
        "trust": _TRUSTED_ROWS if tree.counts is None else max(float(tree.counts[0]), 1.0),
    }


def _start_statistics(old: Schema, new: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Return the training means and standard deviations of the encoded columns, (c,)."""
    spread = old.column_spread / new.column_scale
    # The mean of a 0/1 column follows from its standard deviation; of two solutions, the smaller.
    share = (1 - np.sqrt(np.clip(1 - 4 * old.column_spread**2, 0.0, 1.0))) / 2
    center = share.copy()
    center[new.first_column[new.n_levels == 0]] = 0.0  # encoded numbers have mean 0
    return center, np.where(spread > 0, spread, 1.0)


def action_values(tree: ObliqueTree, actions: Sequence[Label]) -> np.ndarray:
    """Return the columns of a start tree's values that belong to the actions, (K,).

    Raises
    ------
    ValueError
        If the tree's classes or outputs are not the actions.
    """
    found: Sequence[Any] | None = tree.classes
    if found is None and tree.target_names is not None:
        found = tree.target_names
        if set(found) != set(map(str, actions)):  # other names: the outputs are taken in order
            found = None
        else:
            actions = [str(action) for action in actions]
    if found is None and tree.n_outputs == len(actions):
        return np.arange(len(actions))
    if found is None or set(found) != set(actions):
        of = (
            plural(tree.n_outputs, "output")
            if found is None
            else f"the classes {list(found)!r:.200}"
        )
        raise ValueError(
            f"init has {of}, but the actions are {list(actions)!r:.200}. Set n_actions to the "
            "classes of the tree, or init to a tree with the same actions."
        )
    place = {label: i for i, label in enumerate(found)}
    return np.array([place[action] for action in actions])
