"""Convert soft trees to hard ones, and measure the cost on rows with known targets.

A latent tree's hard tree has the same splits, and leaves fitted to rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hardwood.errors import TableError
from hardwood.model.edit.criterion import criterion_for
from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.outputs import YES
from hardwood.model.paths import child_nodes, sums_of
from hardwood.parameters import choice
from hardwood.table.target import true_targets
from hardwood.table.weights import weight_of_rows

if TYPE_CHECKING:
    from hardwood.model.base import Model
    from hardwood.model.kinds.latent_tree import LatentTreeModel
    from hardwood.model.kinds.soft_ensemble import TreeEnsemble


@dataclass(frozen=True)
class HardeningCost:
    """Comparison of a soft ensemble with its hard trees; averages over rows, by weight.

    Attributes
    ----------
    loss
        The loss: ``"log_loss"`` of classes and labels, ``"squared_error"`` of numbers, averaged
        over labels or outputs.
    soft_loss, hard_loss
        Loss of the soft and of the hard model.
    soft_accuracy, hard_accuracy
        Fraction of correct classes, or of correct labels; None for numbers.
    changed
        Fraction of rows with a different prediction: class, any label, or number.
    reachable_leaves
        Average number of leaves that a row reaches in a soft tree; it is 1 in a hard tree.
    n_leaves
        Number of leaves of a soft tree.
    """

    loss: str
    soft_loss: float
    hard_loss: float
    soft_accuracy: float | None
    hard_accuracy: float | None
    changed: float
    reachable_leaves: float
    n_leaves: int

    def __str__(self) -> str:
        lines = [_comparison(self.loss.replace("_", " "), self.soft_loss, self.hard_loss)]
        if self.soft_accuracy is not None and self.hard_accuracy is not None:
            lines.append(_comparison("accuracy", self.soft_accuracy, self.hard_accuracy))
        lines.append(f"rows with a different prediction: {self.changed:.2%}")
        lines.append(f"leaves that a row reaches: {self.reachable_leaves:.4g} of {self.n_leaves}")
        return "\n".join(lines)


def hardening_cost(
    ensemble: TreeEnsemble, X: Any, y: Any, sample_weight: Any = None
) -> HardeningCost:
    """Compare an ensemble with its hard trees.

    Parameters
    ----------
    ensemble
        The soft ensemble.
    X, y
        Rows and their targets, as in `fit`.
    sample_weight
        (n,) at least 0; None for equal weights.

    Raises
    ------
    TableError
        If the table does not match, a target is missing or of an unknown class, the weights are
        invalid, or numbers are so large that their squared error is infinite.
    """
    reached = ensemble.reachable_leaves(X).mean(axis=1)
    hard = ensemble.harden()
    n_leaves = 2**ensemble.depth
    return compared(ensemble, hard, X, y, sample_weight, reached=reached, n_leaves=n_leaves)


def compared(
    soft_model: Model,
    hard_model: Model,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    reached: np.ndarray,
    n_leaves: int,
) -> HardeningCost:
    """Compare a soft model with a hard one; `reached` (n,) is the number of leaves per row."""
    n = len(reached)
    truth, weight = true_targets(soft_model, y, n), weight_of_rows(sample_weight, n)
    weight = weight / weight.sum()
    regression = soft_model.task == "regression"
    outputs = [model.outputs(X) for model in (soft_model, hard_model)]
    criterion = criterion_for(soft_model, "squared_error" if regression else "log_loss")
    with np.errstate(over="ignore"):
        soft_loss, hard_loss = (float(weight @ criterion.losses(out, truth)) for out in outputs)
    if not np.isfinite([soft_loss, hard_loss]).all():
        raise TableError(
            f"y goes up to {np.abs(truth).max():.3g} and the predictions to "
            f"{np.abs(outputs).max():.3g}: their squared error is too large for a float64 number. "
            "Pass y in the unit of the training target"
        )
    soft, hard = (_decided(soft_model, out) for out in outputs)
    return HardeningCost(
        loss=criterion.name,
        soft_loss=soft_loss,
        hard_loss=hard_loss,
        soft_accuracy=None if regression else _accuracy(soft, truth, weight),
        hard_accuracy=None if regression else _accuracy(hard, truth, weight),
        changed=float(weight @ (soft != hard).any(axis=1)),
        reachable_leaves=float(weight @ reached),
        n_leaves=n_leaves,
    )


def _decided(model: Model, outputs: np.ndarray) -> np.ndarray:
    """Turn outputs into class indices (n, 1), or labels or numbers (n, k)."""
    if model.classes is not None:
        return model.class_positions(outputs)[:, None]
    return outputs >= YES if model.task == "multilabel" else outputs


def _accuracy(decided: np.ndarray, truth: np.ndarray, weight: np.ndarray) -> float:
    is_right = decided == truth.reshape(decided.shape)
    return float(weight @ is_right.mean(axis=1))


def _comparison(what: str, soft: float, hard: float) -> str:
    return f"{what}: {soft:.4g} soft, {hard:.4g} hard ({hard - soft:+.2g})"


_RIDGE = 1.0  # in standard units; it shrinks the slopes of leaves with few rows


def hardened(
    model: LatentTreeModel,
    X: Any,
    y: Any,
    *,
    leaves: Literal["constant", "linear"],
    sample_weight: Any,
) -> ObliqueTree:
    """Return the hard tree; see `LatentTreeModel.harden`."""
    is_linear = choice("leaves", leaves, ("constant", "linear")) == "linear"
    tree = model.routes()
    leaf = tree.apply(X)
    weight = weight_of_rows(sample_weight, len(leaf))
    if y is None:
        targets = model.outputs(X)
    else:
        targets = _indicators(model, true_targets(model, y, len(leaf)))
    own = {"record": model.record | {"hardened": {"leaves": leaves}}}
    common = {"task": model.task, "classes": model.classes, "target_names": model.target_names}
    if not is_linear:
        values = _means(tree, leaf, weight, targets)
        return tree.replace(values=values, **common, **own).simplify()
    if model.link != "identity":
        targets = model._run(X, model._head_scores)
    encoded = model._run(X, lambda columns: columns) / model.schema.column_scale
    values, slopes = _ridge(tree, leaf, weight, encoded, targets)
    slopes = slopes / model.schema.column_scale
    parts = {"values": values, "leaf_weights": slopes, "link": model.link}
    return tree.replace(**parts, **common, **own).simplify()


def _indicators(model: LatentTreeModel, truth: np.ndarray) -> np.ndarray:
    """Return targets as outputs (n, k); classes are one-hot encoded."""
    if model.classes is None:
        return truth.reshape(len(truth), -1).astype(np.float64)
    return np.eye(len(model.classes))[truth]


def _means(
    tree: ObliqueTree, leaf: np.ndarray, weight: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Return the mean target of each leaf, (L, k); without rows, that of the nearest ancestor."""
    at_leaves = np.zeros((tree.n_leaves, 1 + targets.shape[1]))
    np.add.at(at_leaves, leaf, weight[:, None] * np.hstack([np.ones((len(leaf), 1)), targets]))
    total = sums_of(tree.children, at_leaves)
    for i, below in enumerate(child_nodes(tree.children)):  # parents come before their children
        for child in below:
            if total[child, 0] == 0:
                total[child] = total[i]
    means: np.ndarray = total[tree.n_splits :, 1:] / total[tree.n_splits :, :1]
    return means


def _ridge(
    tree: ObliqueTree,
    leaf: np.ndarray,
    weight: np.ndarray,
    encoded: np.ndarray,
    targets: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Fit a linear model of encoded columns (n, c) at each leaf: constants (L, k), slopes."""
    values = _means(tree, leaf, weight, targets)
    slopes = np.zeros((tree.n_leaves, targets.shape[1], encoded.shape[1]))
    for at in np.unique(leaf[weight > 0]):
        here = leaf == at
        w = weight[here] / weight[here].mean()
        center = np.average(encoded[here], axis=0, weights=w)
        x = encoded[here] - center
        gram = (w[:, None] * x).T @ x + _RIDGE * np.eye(x.shape[1])
        slope = np.linalg.solve(gram, x.T @ (w[:, None] * (targets[here] - values[at])))
        slopes[at] = slope.T
        values[at] -= slope.T @ center
    return values, slopes
