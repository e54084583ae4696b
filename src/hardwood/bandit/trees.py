"""Between the engine's perfect tree of encoded columns and an `ObliqueTree` of raw features."""

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

Parts = Mapping[str, Any]
"""What an engine says of its tree: see `value_tree`."""


def value_tree(parts: Parts, contexts: Contexts, names: Sequence[str] | None) -> ObliqueTree:
    """Return the tree of a learner's values: a regression with an output per action.

    Parameters
    ----------
    parts
        ``weights`` (m, c), ``bias`` (m,) and ``values`` (L, k) of a perfect tree in heap order,
        for encoded columns; ``center`` and ``scale`` (c,), the mean and deviation of those columns
        so far.
    contexts
        How contexts were encoded.
    names
        Of the outputs.

    Notes
    -----
    A missing number counts as the column's mean to the engine and adds nothing to a split of a
    tree. Both are the same where the tree's centers are those means; hence a schema of its own.
    """
    schema, mean = _schema_of(parts, contexts)
    # w e + b = w (e - mean) + (b + w mean), and e - mean = (x - center - scale mean) / scale
    weights = parts["weights"] / contexts.schema.column_scale
    bias = parts["bias"] + parts["weights"] @ mean
    return ObliqueTree(
        weights,
        bias,
        heap_children(len(weights)),
        parts["values"],
        schema=schema,
        task="regression",
        target_names=names,
    ).simplify()


def policy_tree(values: ObliqueTree, actions: Sequence[Label]) -> ObliqueTree:
    """Return the classification of the best action, the first of equal ones, simplified."""
    best = np.argmax(values.values, axis=1)
    return values.replace(
        values=np.eye(len(actions))[best], task="classification", classes=actions, target_names=None
    ).simplify()


def _schema_of(parts: Parts, contexts: Contexts) -> tuple[Schema, np.ndarray]:
    """Return the schema whose centers are the means so far, and those means by column."""
    old, columns = contexts.schema, contexts.value_columns
    mean = np.zeros(old.n_columns)
    mean[columns] = np.asarray(parts["center"], np.float64)[columns]
    center = old.column_center + old.column_scale * mean
    spread = np.asarray(parts["scale"], np.float64) * old.column_scale
    features = []
    for feature, first in zip(old.features, old.first_column.tolist(), strict=True):
        own = tuple(spread[first : first + feature.n_columns].tolist())
        features.append(dataclasses.replace(feature, center=float(center[first]), spread=own))
    return Schema(tuple(features), old.named), mean


_TRUSTED_ROWS = 100  # of a tree that does not know how many rows it was learned from


def start_of(tree: ObliqueTree, schema: Schema, height: int) -> dict[str, Any]:
    """Return a supervised tree as the engine takes it, for encoded columns.

    Parameters
    ----------
    tree
        Any tree of constant leaves, of the columns of ``schema``.
    schema
        That of the learner's contexts: as the tree's, but where numbers have no scale.
    height
        Of the engine's perfect tree.

    Raises
    ------
    ValueError
        If the tree is deeper, or has linear leaves.
    """
    if tree.has_linear_leaves:
        raise ValueError(
            "init has linear leaves; a tree that goes on learning from feedback needs constant "
            "ones. Learn it with constant leaves."
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
        # How many rows the statistics of the columns stand for.
        "trust": _TRUSTED_ROWS if tree.counts is None else max(float(tree.counts[0]), 1.0),
    }


def _start_statistics(old: Schema, new: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Return what the training table told of the encoded columns: means and deviations, (c,)."""
    spread = old.column_spread / new.column_scale
    # The mean of a 0/1 column is its share, of which the deviation is known: the smaller of two.
    share = (1 - np.sqrt(np.clip(1 - 4 * old.column_spread**2, 0.0, 1.0))) / 2
    center = share.copy()
    center[new.first_column[new.n_levels == 0]] = 0.0  # encoded numbers are around their mean
    return center, np.where(spread > 0, spread, 1.0)


def action_values(tree: ObliqueTree, actions: Sequence[Label]) -> np.ndarray:
    """Return which columns of a start tree's values are the actions', (K,).

    Raises
    ------
    ValueError
        If the tree's classes or outputs are not the actions.
    """
    found: Sequence[Any] | None = tree.classes
    if found is None and tree.target_names is not None:
        found = tree.target_names
        if set(found) != set(map(str, actions)):  # names of other things: taken in order
            found = None
        else:
            actions = [str(action) for action in actions]
    if found is None and tree.n_outputs == len(actions):
        return np.arange(len(actions))
    if found is None or set(found) != set(actions):
        of = f"{tree.n_outputs} outputs" if found is None else f"the classes {list(found)!r:.200}"
        raise ValueError(
            f"init has {of}, but the actions are {list(actions)!r:.200}. Give n_actions= the "
            "classes of the tree, or init= a tree of the same actions."
        )
    place = {label: i for i, label in enumerate(found)}
    return np.array([place[action] for action in actions])
