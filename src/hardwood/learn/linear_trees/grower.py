"""How a linear tree grows: the models of a node, and its best split."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hardwood.learn.learner import Run
from hardwood.learn.leaves.constant import LeafRows, Prior, mean_target
from hardwood.learn.leaves.linear import LeafFit
from hardwood.learn.linear_trees.candidates import SplitCandidate, binned_numbers
from hardwood.learn.linear_trees.elimination import sparse_starts
from hardwood.learn.linear_trees.growth import Growth, Node, NodeSplit
from hardwood.learn.linear_trees.level_groups import categories_of, with_level_groups
from hardwood.learn.losses import SquaredError
from hardwood.learn.task import Task

_SPLIT_FEATURES = 8  # whose models move while a split is searched
_MAX_SPLIT_COLUMNS = 24
_MIN_SPLIT_COLUMNS = 4
_MOST_HESSIANS = 3  # outputs with one each; more share their mean
MOST_LEVELS = 30  # of one category that have coefficients: the most frequent ones,
_LEAST_LEVEL_ROWS = 5.0  # of at least this many rows
_INTERCEPT_L2 = 1.0
_MOST_CHECKED = 5  # splits, on different features, whose gain is computed in full
_LEVEL_ORDERS = 3  # by numbers whose coefficients move, besides those by the intercept
_LEVEL_ROWS = 1.0  # of no slope, that each level has besides its own when levels are ordered


@dataclass(frozen=True)
class GrowthSettings:
    """What growth depends on, besides the rows; `LinearTree` says what each means."""

    max_depth: int | None
    max_leaves: int
    leaf_l2: float
    parent_l2: float
    leaf_prior: float
    has_linear_growth: bool
    min_samples_leaf: float


class Grower:
    """The training rows of a task, and how nodes are made of them."""

    def __init__(
        self, task: Task, config: GrowthSettings, run: Run, terms: Sequence[int | None]
    ) -> None:
        self._task, self._config, self._run = task, config, run
        self._terms = sorted(set(terms), key=_most_first)
        self._X = task.encoded(task.train, np.float64)
        self._target = task.y[task.train].astype(np.float64)
        self._weight = task.weight[task.train].astype(np.float64)
        self._count = task.weight_of(task.train)
        everywhere = LeafRows(
            np.zeros(len(task.train), dtype=np.int64), 1, self._target, self._weight
        )
        self._mean = mean_target(task.loss, everywhere, task.n_outputs)
        self._feature = np.asarray(task.schema.column_feature)
        self._numbers = binned_numbers(task, self._X)
        self._is_number = np.isin(task.schema.column_feature, [j for j, _, _ in self._numbers])
        self._modeled = self._modeled_columns()
        self._level_groups = categories_of(task)
        self._categories = [
            j for j, feature in enumerate(task.schema.features) if feature.kind == "categorical"
        ]

    def grow(self) -> Growth:
        """Split the node that gains most, again and again.

        Raises
        ------
        KeyboardInterrupt
            Where the user stopped it.
        """
        nowhere = np.zeros(self._X.shape[1], dtype=bool)
        root = self._node(np.arange(len(self._X)), None, nowhere)
        order: list[Node] = []
        open_nodes = [(-root.gain, 0, root)]
        n_made = 1
        while open_nodes and len(order) + 1 < self._config.max_leaves:
            _, _, node = heapq.heappop(open_nodes)
            if node.split is None or self._run.clock.is_past():
                break
            right = node.split.goes_right(self._X[node.rows])
            excluded = node.split.excluded(node, self._level_groups)
            node.children = tuple(
                self._node(node.rows[at], node, gone)
                for at, gone in zip((~right, right), excluded, strict=True)
            )
            order.append(node)
            for child in node.children:
                heapq.heappush(open_nodes, (-child.gain, n_made, child))
                n_made += 1
        return Growth(self._task, root, tuple(order), self._level_groups)

    def _modeled_columns(self) -> np.ndarray:
        """Return the columns that models may use: all but constant ones and rare levels."""
        rows = (self._X != 0).astype(np.float64).T @ self._count
        is_used = np.ptp(self._X, axis=0) > 0
        for j in np.flatnonzero(self._task.schema.n_levels):
            own = np.flatnonzero(self._feature == j)
            frequent = own[np.argsort(-rows[own], kind="stable")[:MOST_LEVELS]]
            is_used[own] &= np.isin(own, frequent) & (rows[own] >= _LEAST_LEVEL_ROWS)
        return np.flatnonzero(is_used)

    # --- models ------------------------------------------------------------------------------

    def _node(self, rows: np.ndarray, parent: Node | None, excluded: np.ndarray) -> Node:
        constant = self._constant(rows, parent)
        node = Node(
            rows,
            {0: np.hstack([np.zeros((len(constant), self._X.shape[1])), constant[:, None]])},
            constant,
            excluded,
            depth=0 if parent is None else parent.depth + 1,
        )
        if self._terms != [0]:
            self._add_models(node, parent)
        node.gain, node.split = self._best_split(node)
        node.models = {
            terms: with_level_groups(node.models[terms], self._level_groups, excluded)
            for terms in self._terms
        }
        return node

    def _constant(self, rows: np.ndarray, parent: Node | None) -> np.ndarray:
        """Fit a constant, with prior rows that have the parent's prediction."""
        prior = Prior(
            self._config.leaf_prior, self._mean if parent is None else self._mean_at(parent)
        )
        fit = self._fit_of(rows, np.empty((len(rows), 0)), 0.0, None, prior)
        start = np.zeros(self._task.n_outputs) if parent is None else parent.constant
        found: np.ndarray = fit.from_start(start[:, None])[:, 0]
        return found

    def _mean_at(self, node: Node) -> np.ndarray:
        """Return the mean target that a node's constant predicts."""
        loss = self._task.loss
        if loss.link_name == "softmax" or loss.link_name == "logistic":
            return np.asarray(loss.link(node.constant[None])[0])[-len(self._mean) :]
        return node.constant if loss.link_name == "identity" else np.exp(node.constant)

    def _fit_of(
        self,
        rows: np.ndarray,
        X: np.ndarray,
        l2: float,
        center: np.ndarray | None,
        prior: Prior | None = None,
    ) -> LeafFit:
        prior = prior or Prior(0.0, self._mean)
        return LeafFit(
            self._task.loss, X, self._target[rows], self._weight[rows], prior, l2, center
        )

    def _add_models(self, node: Node, parent: Node | None) -> None:
        """Fit the model of all features, then sparse ones by backward elimination."""
        l2 = self._config.leaf_l2 if parent is None else self._config.parent_l2
        center = np.zeros((len(node.constant), self._X.shape[1]))
        start = np.hstack([center, node.constant[:, None]])
        if parent is not None and parent.full is not None:
            center, start = parent.full[:, :-1], parent.full
        columns = self._modeled
        at = np.append(columns, self._X.shape[1])
        fit = self._fit_of(node.rows, self._X[np.ix_(node.rows, columns)], l2, center[:, columns])
        found = fit.from_start(start[:, at])
        node.full = node.models[None] = self._widened(found, at)
        sizes = {terms for terms in self._terms if terms}
        if self._config.has_linear_growth:
            sizes.add(_SPLIT_FEATURES)
        hessians = fit.hessians(found, is_shared=len(found) > _MOST_HESSIANS)
        for size, here, sparse in sparse_starts(
            found, hessians, self._feature[columns], sorted(sizes)
        ):
            own = columns[here]
            at = np.append(own, self._X.shape[1])
            few = self._fit_of(node.rows, self._X[np.ix_(node.rows, own)], l2, center[:, own])
            node.models[size] = self._widened(few.from_start(sparse), at)

    def _widened(self, P: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Put coefficients at their places among those of all columns."""
        wide = np.zeros((len(P), self._X.shape[1] + 1))
        wide[:, at] = P
        return wide

    # --- splits ------------------------------------------------------------------------------

    def _best_split(self, node: Node) -> tuple[float, NodeSplit | None]:
        from hardwood import _native

        rows, least = node.rows, self._config.min_samples_leaf
        is_whole = self._config.max_leaves == 1 or node.depth == self._config.max_depth
        if is_whole or self._count[rows].sum() < 2 * least:
            return 0.0, None
        P, columns = self._moving_model(node)
        X = self._X[np.ix_(rows, columns)]
        used = np.flatnonzero(P[:, :-1].any(axis=0))
        fit = self._fit_of(rows, self._X[np.ix_(rows, used)], 0.0, None)
        slope, curvature = fit.curvature(P[:, np.append(used, P.shape[1] - 1)])
        if self._splits_by_gini:
            curvature = np.broadcast_to(self._weight[rows, None], curvature.shape)
        candidates = [
            *(SplitCandidate.of_number(j, bins[rows], edges) for j, bins, edges in self._numbers),
            *self._level_sets(rows, X[:, self._is_number[columns]], slope, curvature),
        ]
        if not candidates:
            return 0.0, None
        l2 = np.full(len(columns) + 1, max(self._config.parent_l2, 1e-6))
        l2[-1] = _INTERCEPT_L2
        gain, first_right, missing_right = _native.linear_splits(
            np.hstack([X, np.ones((len(rows), 1))]),
            np.ascontiguousarray(slope),
            np.ascontiguousarray(curvature),
            np.ascontiguousarray(self._count[rows], dtype=np.float64),
            bins=np.stack([candidate.bins for candidate in candidates]),
            n_bins=[candidate.n_bins for candidate in candidates],
            has_missing=[candidate.has_missing for candidate in candidates],
            l2=l2,
            min_count=float(least),
            n_threads=self._run.n_jobs,
        )
        splits = [
            (
                float(gain[i]),
                candidates[i].split(self._task, int(first_right[i]), bool(missing_right[i])),
            )
            for i in _best_of_each_feature(gain, candidates, self._n_checked)
        ]
        if len(splits) > 1:
            checked = [self._gain(node, split, P, columns) for _, split in splits]
            splits = [(g, split) for g, (_, split) in zip(checked, splits, strict=True)]
        best, split = max(splits, key=lambda each: each[0], default=(0.0, None))
        return (best, split) if best > 0 else (0.0, None)

    @property
    def _n_checked(self) -> int:
        """Splits whose gain is computed in full.

        For squared error one Newton step is the gain. Trees with constant leaves grow as CART's.
        """
        is_exact = isinstance(self._task.loss, SquaredError) or self._terms == [0]
        return 1 if is_exact else _MOST_CHECKED

    def _gain(self, node: Node, split: NodeSplit, P: np.ndarray, columns: np.ndarray) -> float:
        """Return what both sides' models lower the loss by, with Newton steps to the end."""
        right = split.goes_right(self._X[node.rows])
        lowered = 0.0
        for side in (~right, right):
            rows = node.rows[side]
            offset = self._X[rows] @ P[:, :-1].T + P[:, -1]
            fit = LeafFit(
                self._task.loss,
                self._X[np.ix_(rows, columns)],
                self._target[rows],
                self._weight[rows],
                Prior(0.0, self._mean),
                self._config.parent_l2,
                offset=offset,
            )
            start = np.zeros((len(P), len(columns) + 1))
            lowered += fit.value(start) - fit.value(fit.from_start(start))
        return lowered

    @property
    def _splits_by_gini(self) -> bool:
        """Whether the gain is CART's, for constants of more than two classes.

        With the curvature of the log loss, the share of a class counts more the rarer it is at the
        node: early splits then cut off small classes. With a curvature of 1 the gain of a Newton
        step is the Gini gain. For numbers and two classes both choose the same split.
        """
        return not self._config.has_linear_growth and self._task.loss.link_name == "softmax"

    def _moving_model(self, node: Node) -> tuple[np.ndarray, np.ndarray]:
        """Return a node's model, and the columns whose coefficients move on both sides."""
        if not self._config.has_linear_growth or node.full is None:
            return node.models[0], np.empty(0, dtype=np.int64)
        sparse = node.models[_SPLIT_FEATURES]
        size = np.abs(sparse[:, :-1]).sum(axis=0)
        # A sum over rows costs the outputs times the square of the columns.
        most = max(_MIN_SPLIT_COLUMNS, int(_MAX_SPLIT_COLUMNS / math.sqrt(len(sparse))))
        largest_first = np.argsort(-size, kind="stable")[:most]
        return node.full, largest_first[size[largest_first] > 0]

    def _level_sets(
        self, rows: np.ndarray, X: np.ndarray, slope: np.ndarray, curvature: np.ndarray
    ) -> Iterator[SplitCandidate]:
        """Yield the levels of each category in several orders.

        Sets of levels are tried along an order, as for numbers. Each order is by the step that one
        coefficient of one output would take at each level: the intercept's, or that of a column
        whose coefficient moves. Rare levels take one step together: their few rows say little about
        each of them, and nothing where every row has a level of its own.
        """
        schema = self._task.schema
        for j in self._categories:
            level = self._level(rows, j)
            n_levels = len(schema.features[j].levels) + bool(schema.has_missing[j])
            weight = np.bincount(level, self._weight[rows], n_levels)
            is_rare = np.bincount(level, self._count[rows], n_levels) < _LEAST_LEVEL_ROWS
            n_outputs = slope.shape[1]
            numbers = X.T[: _LEVEL_ORDERS // n_outputs]
            for z in (np.ones(len(rows)), *numbers):
                for o in range(n_outputs):
                    steps = np.bincount(level, slope[:, o] * z, n_levels)
                    size = np.bincount(level, curvature[:, o] * z**2, n_levels)
                    steps[is_rare], size[is_rare] = steps[is_rare].sum(), size[is_rare].sum()
                    rank = np.unique(steps / (size + _LEVEL_ROWS), return_inverse=True)[1]
                    yield SplitCandidate.of_levels(j, rank, level, weight)

    def _level(self, rows: np.ndarray, j: int) -> np.ndarray:
        """Return the level of each row, the missing one as the last."""
        first = self._task.schema.first_column[j]
        width = int((self._feature == j).sum())
        level: np.ndarray = self._X[rows, first : first + width].argmax(axis=1)
        return level


def _best_of_each_feature(
    gain: np.ndarray, candidates: Sequence[SplitCandidate], most: int
) -> list[int]:
    """Return the places of the splits that gain most, one for each feature."""
    found: dict[int, int] = {}
    for i in np.argsort(-gain, kind="stable").tolist():
        if gain[i] <= 0 or len(found) == most:
            break
        found.setdefault(candidates[i].feature, i)
    return list(found.values())


def _most_first(terms: int | None) -> float:
    return -np.inf if terms is None else -terms
