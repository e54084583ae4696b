"""Convert decision trees of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.structure import TaskKind
from hardwood.table import Schema
from hardwood.table.feature import Feature
from hardwood.table.features import default_names

_LARGEST = float(np.finfo(np.float32).max)


def from_sklearn(estimator: Any, *, missing: bool = True) -> ObliqueTree:
    """Convert a fitted decision tree of scikit-learn to an `ObliqueTree` with equal predictions.

    Parameters
    ----------
    estimator
        A fitted `DecisionTreeClassifier`, `DecisionTreeRegressor`, `ExtraTreeClassifier` or
        `ExtraTreeRegressor`, or a tree of a forest, ``forest.estimators_[0]``.
    missing
        Whether missing values go where scikit-learn's tree sends them. Otherwise they count as
        zeros, and the splits have no terms for them.

    Returns
    -------
    tree
        A tree with the same splits, leaves and weighted counts. It predicts the same for every row
        that scikit-learn's tree accepts: both convert rows to float32.

    Raises
    ------
    TypeError
        For anything but a tree of scikit-learn.
    ValueError
        If it is not fitted, or predicts several targets with more than two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from hardwood import from_sklearn
    >>> X, y = load_iris(return_X_y=True)
    >>> grown = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> bool((from_sklearn(grown).predict(X) == grown.predict(X)).all())
    True
    """
    nodes = _nodes_of(estimator)
    is_split = nodes.children_left >= 0
    number = np.where(is_split, np.cumsum(is_split) - 1, ~(np.cumsum(~is_split) - 1))
    children = np.stack([nodes.children_left, nodes.children_right], axis=1)[is_split]
    schema = _schema_of(estimator, nodes.n_features, missing)
    weights, bias = _splits(nodes, is_split, schema)
    task, classes, values = _answers(estimator, nodes.value[~is_split])
    counts = nodes.weighted_n_node_samples
    return ObliqueTree(
        weights,
        bias,
        number[children].astype(np.int32).reshape(-1, 2),
        values,
        schema=schema,
        task=task,
        counts=np.concatenate([counts[is_split], counts[~is_split]]),
        classes=classes,
        record={"learner": type(estimator).__name__},
    )


def _nodes_of(estimator: Any) -> Any:
    """Return the arrays of a fitted tree, without importing scikit-learn."""
    kind = type(estimator)
    if hasattr(estimator, "estimators_"):
        raise TypeError(
            f"from_sklearn takes one tree, got a {kind.__name__}. Pass a tree of the forest: "
            "from_sklearn(forest.estimators_[0])."
        )
    is_known = any(
        base.__module__.startswith("sklearn.tree") and base.__name__ == "BaseDecisionTree"
        for base in kind.__mro__
    )
    if not is_known:
        raise TypeError(
            "from_sklearn takes a fitted DecisionTreeClassifier, DecisionTreeRegressor, "
            f"ExtraTreeClassifier or ExtraTreeRegressor, got {estimator!r:.80}."
        )
    if not hasattr(estimator, "tree_"):
        raise ValueError(f"This {kind.__name__} is not fitted yet. Call fit first.")
    return estimator.tree_


def _schema_of(estimator: Any, n_features: int, missing: bool) -> Schema:
    names = getattr(estimator, "feature_names_in_", None)
    words = default_names(n_features) if names is None else tuple(map(str, names))
    return Schema(
        tuple(Feature(name, "numeric", has_missing=missing) for name in words),
        named=names is not None,
    )


def _splits(nodes: Any, is_split: np.ndarray, schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Right is ``x > t`` there, for x in float32: from the next float32 on."""
    feature = nodes.feature[is_split]
    threshold = _next_float32(nodes.threshold[is_split])
    weights = np.zeros((len(feature), schema.n_columns))
    split = np.arange(len(feature))
    is_finite = np.abs(threshold) <= _LARGEST  # else only the missing indicator counts
    bias = np.where(is_finite, -threshold, np.where(threshold > 0, -1.0, 1.0))
    weights[split, schema.first_column[feature]] = is_finite
    if schema.has_missing.any():
        goes_left = nodes.missing_go_to_left[is_split].astype(bool)
        margin = np.maximum(1.0, np.abs(bias))
        weights[split, schema.flag_column[feature]] = np.where(goes_left, -margin, margin) - bias
    return weights, bias


def _next_float32(threshold: np.ndarray) -> np.ndarray:
    """Return the smallest float32 above each threshold, as float64."""
    with np.errstate(over="ignore"):
        rounded = threshold.astype(np.float32)
    above = np.where(rounded > threshold, rounded, np.nextafter(rounded, np.float32(np.inf)))
    return above.astype(np.float64)


def _answers(
    estimator: Any, value: np.ndarray
) -> tuple[TaskKind, tuple[Any, ...] | None, np.ndarray]:
    """Return task, classes and leaf values, from the values (L, outputs, classes or 1)."""
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return "regression", None, value[:, :, 0]
    shares = value / value.sum(axis=2, keepdims=True)
    if not isinstance(classes, list):
        return "classification", tuple(classes.tolist()), shares[:, 0]
    if all(np.isin(of_target, (0, 1)).all() and len(of_target) == 2 for of_target in classes):
        return "multilabel", None, shares[:, :, 1]
    raise ValueError(
        f"The tree predicts {len(classes)} targets, and not all have the classes 0 and 1. Fit one "
        "tree for each target."
    )
