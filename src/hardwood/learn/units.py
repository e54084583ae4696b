"""Conversions between the standard units of a learner and the raw units of a tree.

A learner sees encoded columns, which are standardized; the weights of a tree are per raw unit.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from hardwood.errors import TableError
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.table import Schema

StartParameters: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]
"""Weights (m, c), bias (m,), scores (L, k), and leaf weights (L, k, c) or None, in float32."""

# An L1 penalty leaves some weights close to zero, because the last steps of a schedule are short.
# Weights below this fraction of a split's largest weight are set to zero.
_NEGLIGIBLE = 1e-6


def splits_in_raw_units(
    weights: np.ndarray, bias: np.ndarray, task: Task, *, is_sparse: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return splits in raw units: weights (m, c) and bias (m,) in float64.

    Parameters
    ----------
    weights, bias, task
        The learned splits of encoded columns, and their task.
    is_sparse
        Whether an L1 penalty was used: weights close to zero are then set to zero.
    """
    if is_sparse:
        largest = np.abs(weights).max(axis=1, keepdims=True, initial=0.0)
        weights = np.where(np.abs(weights) < _NEGLIGIBLE * largest, 0.0, weights)
    return _in_raw_units(weights, bias, task)


def leaves_in_raw_units(
    scores: np.ndarray, leaf_weights: np.ndarray, task: Task
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores (L, k) and weights (L, k, c) of linear leaves, per raw unit."""
    L, k, c = leaf_weights.shape
    weights, flat = _in_raw_units(leaf_weights.reshape(L * k, c), scores.ravel(), task)
    return flat.reshape(L, k), weights.reshape(L, k, c)


def linear_leaves_of(
    scores: np.ndarray, leaf_weights: np.ndarray, task: Task
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values (L, k) and weights (L, k, c) of a tree's linear leaves, in raw units."""
    values, weights = task.linear_leaves(*leaves_in_raw_units(scores, leaf_weights, task))
    _check_finite(weights, task)
    return values, weights


def _in_raw_units(
    weights: np.ndarray, bias: np.ndarray, task: Task
) -> tuple[np.ndarray, np.ndarray]:
    """Convert linear functions of encoded columns, (r, c) and (r,), to raw columns.

    The conversion is exact for numbers, whose scale is a power of two. For a categorical feature
    without missing values in training, the mean weight of its categories moves into the bias. The
    function stays the same, and an unseen category, which has no indicator, counts as an average
    one. If an L1 penalty made some categories exactly zero, they stay zero, and an unseen category
    counts as one of them.
    """
    schema = task.schema
    with np.errstate(over="ignore"):
        weights = weights.astype(np.float64) / schema.column_scale
    _check_finite(weights, task)
    bias = bias.astype(np.float64)
    for j, feature in enumerate(schema.features):
        if feature.kind == "categorical" and not feature.has_missing:
            first = schema.first_column[j]
            levels = slice(first, first + len(feature.levels))
            is_dense = (weights[:, levels] != 0).all(axis=1)
            mean = np.where(is_dense, weights[:, levels] @ _level_shares(task, j), 0.0)
            weights[:, levels] -= mean[:, None]
            bias += mean
    return weights, bias


def _check_finite(weights: np.ndarray, task: Task) -> None:
    """Refuse a column so small, or a target so large, that a weight (..., c) exceeds float64."""
    schema = task.schema
    is_finite = np.isfinite(weights).reshape(-1, schema.n_columns).all(axis=0)
    if not is_finite.all():
        column = int(is_finite.argmin())
        name = schema.names[schema.column_feature[column]]
        target = f" and the target by about {task.target_scale.max():.3g}"
        raise TableError(
            f"The weight of column {name!r} exceeds float64: the column varies by about "
            f"{schema.column_scale[column]:.3g}{target * (task.kind == 'regression')}. Multiply "
            "the column by a constant, or leave it out."
        )


def _level_shares(task: Task, j: int) -> np.ndarray:
    rows = np.concatenate([task.train, task.valid])
    codes = task.matrix[rows, j].astype(np.int64)
    n_levels = len(task.schema.features[j].levels)
    total = np.bincount(codes, task.weight[rows], minlength=n_levels)
    return total / total.sum()


def start_parameters(tree: ObliqueTree, task: Task) -> StartParameters:
    """Return the parameters of a tree in the units of a task, as a start.

    If only the task has missing values of a feature, the weights of the missing indicator are zero.
    If only the tree has them, the indicator, which would always be 0, is dropped.

    Raises
    ------
    ValueError
        If the columns or outputs of the tree differ from those of the task.
    """
    old, new = tree.schema, task.schema
    if _columns_without_flags(old) != _columns_without_flags(new):
        raise ValueError(
            f"init has the columns {list(old.column_names)}, "
            f"but the table has {list(new.column_names)}."
        )
    if tree.values.shape[1] != task.loss.link(np.zeros((1, task.n_outputs))).shape[1]:
        raise ValueError("The numbers of outputs or classes of init and the target differ.")
    weights = _with_columns_of(new, tree.weights, old)
    weights, bias = _in_standard_units(weights, tree.bias, old, new)
    scores, leaf_weights = task.scores_of(tree.values, tree.leaf_weights)
    if leaf_weights is not None:
        L, k, c = leaf_weights.shape
        flat = _with_columns_of(new, leaf_weights.reshape(L * k, c), old)
        flat, moved = _in_standard_units(flat, scores.ravel(), old, new)
        scores, leaf_weights = moved.reshape(L, k), flat.reshape(L, k, new.n_columns)
    W, b, theta = (np.ascontiguousarray(a, dtype=np.float32) for a in (weights, bias, scores))
    A = None if leaf_weights is None else np.ascontiguousarray(leaf_weights, dtype=np.float32)
    return W, b, theta, A


def _columns_without_flags(schema: Schema) -> list[str]:
    flags = set(schema.flag_column.tolist())
    return [name for c, name in enumerate(schema.column_names) if c not in flags]


def _with_columns_of(new: Schema, weights: np.ndarray, old: Schema) -> np.ndarray:
    """Map weights (r, c) from the columns of one schema to those of another, by name."""
    if old.column_names == new.column_names:
        return weights
    place = {name: c for c, name in enumerate(old.column_names)}
    moved = np.zeros((len(weights), new.n_columns))
    for c, name in enumerate(new.column_names):
        if name in place:
            moved[:, c] = weights[:, place[name]]
    return moved


def _in_standard_units(
    weights: np.ndarray, bias: np.ndarray, old: Schema, new: Schema
) -> tuple[np.ndarray, np.ndarray]:
    """Convert linear functions of the new schema's raw columns to encoded columns.

    The schemas differ only in missing indicators. Biases refer to the centers of the old one.
    """
    # w (x - old center) + b = w (x - new center) + w (new center - old center) + b
    # A missing value has neither term, so its indicator takes back the gain of the bias.
    old_center = np.zeros(new.n_columns)
    old_center[new.first_column] = old.column_center[old.first_column]
    gain = weights * (new.column_center - old_center)
    weights = weights.copy()
    for first, flag in zip(new.first_column, new.flag_column, strict=True):
        if flag >= 0:
            weights[:, flag] -= gain[:, first]
    return weights * new.column_scale, bias + gain.sum(axis=1)
