"""Features that a node may be split on, in bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardwood.learn.linear_trees.growth import NodeSplit
from hardwood.learn.task import Task

_BINS = 64  # of a number, at its quantiles


@dataclass(frozen=True)
class SplitCandidate:
    """A feature to split on: the bin of each row, and how a threshold becomes a split."""

    feature: int
    bins: np.ndarray
    n_bins: int
    has_missing: bool = False
    edges: np.ndarray | None = None  # of a number
    rank: np.ndarray | None = None  # of each level
    level_weight: np.ndarray | None = None

    @classmethod
    def of_number(cls, j: int, bins: np.ndarray, edges: np.ndarray) -> SplitCandidate:
        return cls(j, bins, len(edges) + 2, True, edges=edges)

    @classmethod
    def of_levels(
        cls, j: int, rank: np.ndarray, code: np.ndarray, weight: np.ndarray
    ) -> SplitCandidate:
        bins = rank[code].astype(np.uint16)
        return cls(j, bins, len(rank), rank=rank, level_weight=weight)

    def split(self, task: Task, first_right: int, missing_right: bool) -> NodeSplit:
        weights = np.zeros(task.schema.n_columns)
        first = int(task.schema.first_column[self.feature])
        if self.edges is not None:
            threshold = float(self.edges[first_right - 1])
            weights[first] = 1.0
            flag = int(task.schema.flag_column[self.feature])
            if flag >= 0:
                # A missing entry has value 0, so its score is bias + flag.
                margin = max(1.0, abs(threshold))
                weights[flag] = threshold + (margin if missing_right else -margin)
            return NodeSplit(weights, -threshold)
        assert self.rank is not None
        assert self.level_weight is not None
        right = self.rank >= first_right
        levels = slice(first, first + len(right))
        # A level that training has not seen goes where most rows go.
        if self.level_weight[right].sum() <= self.level_weight[~right].sum():
            weights[levels] = right
            return NodeSplit(weights, -0.5)
        weights[levels] = -(~right).astype(np.float64)
        return NodeSplit(weights, 0.5)


def binned_numbers(task: Task, X: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return (feature, bin of each row, thresholds) of all numbers; missing entries come last."""
    found = []
    schema = task.schema
    for j, feature in enumerate(schema.features):
        if feature.kind != "numeric":
            continue
        x = X[:, schema.first_column[j]]
        flag = int(schema.flag_column[j])
        is_missing = X[:, flag] > 0 if flag >= 0 else np.zeros(len(x), dtype=bool)
        values = np.unique(x[~is_missing])
        if len(values) < 2:
            continue
        if len(values) > _BINS:
            cut = np.quantile(x[~is_missing], np.linspace(0, 1, _BINS + 1)[1:-1])
            # Between two values, so that no row stands on a threshold.
            after = np.unique(np.searchsorted(values, cut))
            after = after[after > 0]
        else:
            after = np.arange(1, len(values))
        edges = 0.5 * (values[after - 1] + values[after])
        bins = np.searchsorted(edges, x, side="right")
        bins[is_missing] = len(edges) + 1
        found.append((j, bins.astype(np.uint16), edges))
    return found
