"""Smaller trees out of a tree, by what it does with given rows.

`prune_unreached` asks only where rows go; `cost_complexity_path` and `prune_by_validation` ask how
well the tree answers them. `prune` is the one verb for all: `ObliqueTree.prune`.
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
    """Make a tree smaller.

    Without ``y``, nodes that (almost) no row reaches are removed: `prune_unreached`. With ``y``,
    splits become leaves where that costs less than ``alpha`` per leaf on these rows, or where it
    makes nothing worse on other rows, ``validation``; give one of the two.

    Parameters
    ----------
    tree
        The tree.
    X, y
        Rows, best those that the tree was learned from, and their true answers.
    alpha
        The price of a leaf, at least 0, in mean loss (`cost_complexity_path`).
    validation
        ``(X, y)`` or ``(X, y, sample_weight)`` of rows that the tree was not learned from
        (`prune_by_validation`).
    min_samples
        Weight of rows of ``X`` that must reach a node for it to stay; applies first.
    sample_weight
        (n,) what each row of ``X`` counts; None: 1.
    criterion, complexity
        What is minimized, and what alpha is the price of: see `cost_complexity_path`.
    one_standard_error
        See `prune_by_validation`.

    Returns
    -------
    tree
        With the counts of the rows of ``X``.
    """
    if y is None and not (alpha is None and validation is None and criterion is None):
        raise ValueError(
            "alpha, validation and criterion need y, the true answers of the rows of X"
        )
    if y is not None and (alpha is None) == (validation is None):
        raise ValueError(
            "with y, give alpha, the price of a leaf (0 removes only what helps no given row), or "
            "validation=(X, y), rows that were not learned from; one of the two"
        )
    if one_standard_error and validation is None:
        raise ValueError("one_standard_error is about the loss on validation=(X, y): give these")
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
    """Find the pruning of a tree that answers other rows best.

    Parameters
    ----------
    tree
        The tree.
    X_train, y_train, sample_weight
        Rows that the tree was learned from: they say what new leaves hold.
    X_valid, y_valid, validation_weight
        Rows that it was not learned from: they say what to prune.
    criterion, complexity
        As in `cost_complexity_path`.
    method
        ``"path"`` chooses among the prunings of the cost-complexity path.
        ``"reduced_error"`` (Quinlan, 1987) chooses among all prunings the smallest of those with
        the least loss on the validation rows: closer to these, and for few of them too close.
    one_standard_error
        Of the path, take the smallest pruning that is worse than the best by no more than one
        standard error of the best one's mean loss (Breiman's "1 SE rule").
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
    judge = criterion_for(tree, criterion)
    tree = prune_unreached(tree, X_train, sample_weight=sample_weight)
    rows = RoutedRows.of(tree, X_train, sample_weight)
    outputs = best_outputs(rows, rows.truth(y_train), judge)
    valid = RoutedRows.of(tree, X_valid, validation_weight)
    losses = node_losses(valid, valid.truth(y_valid), judge, outputs, valid.outputs(X_valid))
    prices = np.concatenate([np.ones(tree.n_splits), np.zeros(tree.n_leaves)])
    is_leaf = np.flatnonzero(link_strengths(tree, losses, prices) <= 0)
    return collapse(tree, dict(zip(is_leaf, outputs[is_leaf], strict=True)), rows.counts)
