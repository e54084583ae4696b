"""Explanations of single predictions.

`shapley` divides a prediction among the features, and `path` lists the decisions that led to it.
Both take a tree, a forest or a fitted estimator. `counterfactual` finds the smallest change to a
row that would give it another prediction of a tree.
"""

from __future__ import annotations

from hardwood.explain.counterfactual import (
    Counterfactual,
    Counterfactuals,
    FeatureChange,
    counterfactual,
)
from hardwood.explain.path import Decision, ForestPath, LeafScore, TermAtRow, TreePath, path
from hardwood.explain.shapley import shapley
from hardwood.explain.shapley_values import ShapleyValues

__all__ = [
    "Counterfactual",
    "Counterfactuals",
    "Decision",
    "FeatureChange",
    "ForestPath",
    "LeafScore",
    "ShapleyValues",
    "TermAtRow",
    "TreePath",
    "counterfactual",
    "path",
    "shapley",
]
