"""Which features a model uses, and their shares of its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model.base import Model

if TYPE_CHECKING:
    from hardwood.table import Schema

_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class FeatureUse:
    """Number of splits in which a feature has a weight, and its share of all weights (sum 1).

    ``n_leaves`` counts the linear leaves in which it has a weight.
    """

    name: str
    n_splits: int
    share: float
    n_leaves: int = 0

    @property
    def is_used(self) -> bool:
        """Whether it has a nonzero weight in any split or linear leaf."""
        return self.n_splits + self.n_leaves > 0


def feature_use(model: Model) -> list[FeatureUse]:
    """Return the features by their share of the weights of splits, largest first.

    Weights are in standard units, those of categories and missing indicators included. Each split
    distributes one vote among its features. Votes are weighted by the training rows that pass the
    split, if the model has these counts. All trees of a forest count the same.
    """
    schema = model.schema
    parts = list(model.split_weights())
    votes = np.sum([_votes(schema, *part) for part in parts], axis=0)
    share = votes / max(votes.sum(), _TINY)
    n_splits = np.sum([_times_used(schema, weights) for weights, _ in parts], axis=0)
    n_leaves = np.sum(
        [np.zeros(schema.n_features, dtype=np.int64), *map(_leaves_used, model.hard_trees)], axis=0
    )
    uses = [
        FeatureUse(name, int(n), float(s), int(leaves))
        for name, n, s, leaves in zip(model.feature_names, n_splits, share, n_leaves, strict=True)
    ]
    return sorted(uses, key=lambda use: (-use.share, -use.n_leaves))


def n_linear_leaves(model: Model) -> int:
    """Count the leaves of a model that are linear."""
    return sum(tree.n_leaves for tree in model.hard_trees if tree.has_linear_leaves)


def _votes(schema: Schema, weights: np.ndarray, counts: np.ndarray | None) -> np.ndarray:
    """Share of each feature in the weights of a tree's splits, (p,); 0 for a single leaf."""
    sizes = np.abs(weights) * schema.column_spread
    by_feature = np.add.reduceat(sizes, schema.first_column, axis=1)  # (m, p)
    total = by_feature.sum(axis=1, keepdims=True)
    votes = np.divide(by_feature, total, out=np.zeros_like(by_feature), where=total > 0)
    if counts is not None:
        votes = votes * counts[:, None]
    return votes.sum(axis=0) / max(votes.sum(), _TINY)


def _times_used(schema: Schema, weights: np.ndarray) -> np.ndarray:
    """Count for each feature the rows of weights (r, c) where it is not zero, (p,)."""
    is_used = np.logical_or.reduceat(weights != 0, schema.first_column, axis=1)  # (r, p)
    return is_used.sum(axis=0)


def _leaves_used(tree: Any) -> np.ndarray:
    if tree.leaf_weights is None:
        return np.zeros(tree.n_features, dtype=np.int64)
    return _times_used(tree.schema, (tree.leaf_weights != 0).any(axis=1))
