"""Why a model gave its answer to a row, and what would change it.

`shapley` divides an answer among the features, and `path` lists the decisions that led to it. Both
take a tree, a forest or a fitted estimator. `nearest_change` finds the smallest change of a row
that makes a tree answer as wanted.
"""

from __future__ import annotations

from hardwood.explain.counterfactual import Change, Changes, Move, nearest_change
from hardwood.explain.path import Decision, ForestPath, TermAtRow, TreePath, path
from hardwood.explain.shapley import shapley
from hardwood.explain.shapley_values import ShapleyValues

__all__ = [
    "Change",
    "Changes",
    "Decision",
    "ForestPath",
    "Move",
    "ShapleyValues",
    "TermAtRow",
    "TreePath",
    "nearest_change",
    "path",
    "shapley",
]
