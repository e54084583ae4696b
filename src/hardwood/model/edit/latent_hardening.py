"""A hard tree from a latent one: the same splits, and leaves fitted to rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.routed_rows import row_weights, true_answers
from hardwood.parameters import choice

if TYPE_CHECKING:
    from hardwood.model.kinds.latent_tree import LatentTreeModel

_RIDGE = 1.0  # in standard units: of a leaf with few rows the constant is what is left


def hardened(
    model: LatentTreeModel,
    X: Any,
    y: Any,
    *,
    leaves: Literal["constant", "linear"],
    sample_weight: Any,
) -> ObliqueTree:
    """Make the tree; see `LatentTreeModel.harden`."""
    is_linear = choice("leaves", leaves, ("constant", "linear")) == "linear"
    tree = model.routes()
    leaf = tree.apply(X)
    weight = row_weights(sample_weight, len(leaf))
    if y is None:
        answers = model._outputs(X, 1)
    else:
        answers = _indicators(model, true_answers(model, y, len(leaf)))
    own = {"record": model.record | {"hardened": {"leaves": leaves}}}
    common = {"task": model.task, "classes": model.classes, "target_names": model.target_names}
    if not is_linear:
        values = _means(tree, leaf, weight, answers)
        return tree.replace(values=values, **common, **own).simplify()
    if model.link != "identity":
        answers = model._ask(X, model._head_scores)
    encoded = model._ask(X, lambda columns: columns) / model.schema.column_scale
    values, slopes = _ridge(tree, leaf, weight, encoded, answers)
    slopes = slopes / model.schema.column_scale
    parts = {"values": values, "leaf_weights": slopes, "link": model.link}
    return tree.replace(**parts, **common, **own).simplify()


def _indicators(model: LatentTreeModel, truth: np.ndarray) -> np.ndarray:
    """Return true answers as outputs (n, k): of classes 1 for the true one."""
    if model.classes is None:
        return truth.reshape(len(truth), -1).astype(np.float64)
    return np.eye(len(model.classes))[truth]


def _means(
    tree: ObliqueTree, leaf: np.ndarray, weight: np.ndarray, answers: np.ndarray
) -> np.ndarray:
    """Mean of the answers at each leaf, (L, k); without rows, that of the nearest node above."""
    m, L = tree.n_splits, tree.n_leaves
    total = np.zeros((m + L, 1 + answers.shape[1]))
    np.add.at(total[m:], leaf, weight[:, None] * np.hstack([np.ones((len(leaf), 1)), answers]))
    place = np.where(tree.children >= 0, tree.children, m + ~tree.children)
    for i in range(m - 1, -1, -1):
        total[i] = total[place[i, 0]] + total[place[i, 1]]
    for i in range(m):
        for child in place[i]:
            if total[child, 0] == 0:
                total[child] = total[i]
    means: np.ndarray = total[m:, 1:] / total[m:, :1]
    return means


def _ridge(
    tree: ObliqueTree,
    leaf: np.ndarray,
    weight: np.ndarray,
    encoded: np.ndarray,
    answers: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Fit a linear model of encoded columns (n, c) at each leaf: constants (L, k), slopes."""
    values = _means(tree, leaf, weight, answers)
    slopes = np.zeros((tree.n_leaves, answers.shape[1], encoded.shape[1]))
    for at in np.unique(leaf[weight > 0]):
        here = leaf == at
        w = weight[here] / weight[here].mean()
        centre = np.average(encoded[here], axis=0, weights=w)
        x = encoded[here] - centre
        gram = (w[:, None] * x).T @ x + _RIDGE * np.eye(x.shape[1])
        slope = np.linalg.solve(gram, x.T @ (w[:, None] * (answers[here] - values[at])))
        slopes[at] = slope.T
        values[at] -= slope.T @ centre
    return values, slopes
