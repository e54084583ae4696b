"""Prune a tree by the rows that reach its nodes, or by its loss on rows.

`prune_unreached` needs only rows; `cost_complexity_path` and `prune_by_validation` also need their
targets. `prune` combines all of them: `ObliqueTree.prune`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from hardwood.model.edit.criterion import criterion_for
from hardwood.model.edit.pruning_path import (
    Complexity,
    best_outputs,
    cost_complexity_path,
    link_strengths,
    node_losses,
)
from hardwood.model.edit.rewrite import collapse, prune_unreached
from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.routed_rows import RoutedRows

METHODS = ("path", "reduced_error")


def prune(
    tree: ObliqueTree,
    X: Any,
    y: Any = None,
    *,
    alpha: float | None = None,
    validation: tuple[Any, ...] | None = None,
    min_samples: float = 0.0,
    sample_weight: Any = None,
    criterion: Any = None,
    complexity: Complexity = "leaves",
    one_standard_error: bool = False,
) -> ObliqueTree:
    """Prune a tree.

    Without ``y``, nodes that no row, or too few rows, reach are removed: `prune_unreached`. With
    ``y``, splits become leaves if that increases the loss by less than ``alpha`` per leaf on these
    rows, or does not increase the loss on other rows, ``validation``; pass one of the two.

    Parameters
    ----------
    tree
        The tree.
    X, y
        Rows, preferably the training rows, and their targets.
    alpha
        Cost of a leaf, at least 0, in units of the mean loss (`cost_complexity_path`).
    validation
        ``(X, y)`` or ``(X, y, sample_weight)`` of held-out rows (`prune_by_validation`).
    min_samples
        Minimum weight of rows of ``X`` at each node; applied first.
    sample_weight
        (n,) weights of the rows of ``X``; None for equal weights.
    criterion, complexity
        The loss, and what alpha is the cost of: see `cost_complexity_path`.
    one_standard_error
        See `prune_by_validation`.

    Returns
    -------
    tree
        The pruned tree, with the counts of the rows of ``X``.
    """
    if y is None and not (alpha is None and validation is None and criterion is None):
        raise ValueError("alpha, validation and criterion need y, the target of the rows of X")
    if y is not None and (alpha is None) == (validation is None):
        raise ValueError(
            "with y, pass either alpha, the cost of a leaf (0 removes only splits that do not "
            "help), or validation=(X, y), held-out rows"
        )
    if one_standard_error and validation is None:
        raise ValueError("one_standard_error needs validation=(X, y)")
    smaller = prune_unreached(tree, X, sample_weight=sample_weight, min_samples=min_samples)
    if y is None:
        return smaller
    path = cost_complexity_path(
        smaller, X, y, sample_weight=sample_weight, criterion=criterion, complexity=complexity
    )
    if alpha is not None:
        return path.at(alpha)
    X_valid, y_valid, weight = _validation_parts(validation)
    return path.best(X_valid, y_valid, sample_weight=weight, one_standard_error=one_standard_error)


def _validation_parts(validation: Any) -> tuple[Any, Any, Any]:
    if not isinstance(validation, tuple | list) or len(validation) not in (2, 3):
        raise ValueError("validation must be (X, y) or (X, y, sample_weight)")
    X, y, weight = validation if len(validation) == 3 else (*validation, None)
    return X, y, weight


def prune_by_validation(
    tree: ObliqueTree,
    X_train: Any,
    y_train: Any,
    X_valid: Any,
    y_valid: Any,
    *,
    sample_weight: Any = None,
    validation_weight: Any = None,
    criterion: Any = None,
    complexity: Complexity = "leaves",
    method: Literal["path", "reduced_error"] = "path",
    one_standard_error: bool = False,
) -> ObliqueTree:
    """Find the pruning of a tree with the lowest loss on held-out rows.

    Parameters
    ----------
    tree
        The tree.
    X_train, y_train, sample_weight
        The training rows: they determine the values of new leaves.
    X_valid, y_valid, validation_weight
        Held-out rows: they determine what is pruned.
    criterion, complexity
        See `cost_complexity_path`.
    method
        ``"path"`` chooses among the prunings of the cost-complexity path.
        ``"reduced_error"`` (Quinlan, 1987) chooses the smallest of all prunings with the lowest
        validation loss; with few validation rows it overfits them.
    one_standard_error
        Choose the smallest pruning on the path whose mean loss is within one standard error of the
        lowest (Breiman's "1 SE rule").
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, not {method!r:.80}")
    if method == "path":
        path = cost_complexity_path(
            tree,
            X_train,
            y_train,
            sample_weight=sample_weight,
            criterion=criterion,
            complexity=complexity,
        )
        return path.best(
            X_valid,
            y_valid,
            sample_weight=validation_weight,
            one_standard_error=one_standard_error,
        )
    if one_standard_error:
        raise ValueError("one_standard_error chooses from a path; use method='path' with it")
    loss = criterion_for(tree, criterion)
    tree = prune_unreached(tree, X_train, sample_weight=sample_weight)
    rows = RoutedRows.of(tree, X_train, sample_weight)
    outputs = best_outputs(rows, rows.truth(y_train), loss)
    valid = RoutedRows.of(tree, X_valid, validation_weight)
    losses = node_losses(valid, valid.truth(y_valid), loss, outputs, valid.outputs(X_valid))
    prices = np.concatenate([np.ones(tree.n_splits), np.zeros(tree.n_leaves)])
    is_leaf = np.flatnonzero(link_strengths(tree, losses, prices) <= 0)
    return collapse(tree, dict(zip(is_leaf, outputs[is_leaf], strict=True)), rows.counts)
