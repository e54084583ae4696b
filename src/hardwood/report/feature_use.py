"""Which features a model uses, and how much they matter to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model.base import Model

if TYPE_CHECKING:
    from hardwood.table import Schema


@dataclass(frozen=True)
class FeatureUse:
    """Number of splits and of linear leaves in which a feature has a weight, and its importance.

    ``importance`` is that of `Model.feature_importances`.
    """

    name: str
    n_splits: int
    importance: float
    n_leaves: int = 0

    @property
    def is_used(self) -> bool:
        """Whether it has a nonzero weight in any split or linear leaf."""
        return self.n_splits + self.n_leaves > 0


def feature_use(model: Model) -> list[FeatureUse]:
    """Return the features, the most important first."""
    schema = model.schema
    n_splits = np.sum([_times_used(schema, weights) for weights in model.split_weights()], axis=0)
    n_leaves = np.sum(
        [np.zeros(schema.n_features, dtype=np.int64), *map(_leaves_used, model.hard_trees)], axis=0
    )
    uses = [
        FeatureUse(name, int(n), float(importance), int(leaves))
        for name, n, importance, leaves in zip(
            model.feature_names, n_splits, model.feature_importances, n_leaves, strict=True
        )
    ]
    return sorted(uses, key=lambda use: (-use.importance, -use.n_splits, -use.n_leaves))


def n_linear_leaves(model: Model) -> int:
    """Count the leaves of a model that are linear."""
    return sum(tree.n_leaves for tree in model.hard_trees if tree.has_linear_leaves)


def _times_used(schema: Schema, weights: np.ndarray) -> np.ndarray:
    """Count for each feature the rows of weights (r, c) where it is not zero, (p,)."""
    is_used = np.logical_or.reduceat(weights != 0, schema.first_column, axis=1)  # (r, p)
    return is_used.sum(axis=0)


def _leaves_used(tree: Any) -> np.ndarray:
    if tree.leaf_weights is None:
        return np.zeros(tree.n_features, dtype=np.int64)
    return _times_used(tree.schema, (tree.leaf_weights != 0).any(axis=1))
