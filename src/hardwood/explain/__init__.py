"""Why a model gave its answer to a row, and what would change it.

`shapley` divides an answer among the features, and `path` lists the decisions that led to it. Both
take a tree, a forest or a fitted estimator.
"""

from __future__ import annotations

from hardwood.explain.path import Decision, ForestPath, TermAtRow, TreePath, path
from hardwood.explain.shapley import shapley
from hardwood.explain.shapley_values import ShapleyValues

__all__ = [
    "Decision",
    "ForestPath",
    "ShapleyValues",
    "TermAtRow",
    "TreePath",
    "path",
    "shapley",
]
