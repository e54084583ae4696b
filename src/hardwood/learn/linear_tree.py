r"""Linear trees: few leaves, each a sparse linear model, shrunk toward the model of its parent.

Quinlan. Learning with Continuous Classes. AI 1992. (M5: linear leaves, smoothed along the path)
Landwehr, Hall, Frank. Logistic Model Trees. Machine Learning 2005. (linear leaves for classes)
Loh. Regression Trees with Unbiased Variable Selection and Interaction Detection. 2002. (GUIDE)

Every node, not only every leaf, has a linear model of its own rows. It minimizes

.. math:: \sum_n w_n L(y_n, \theta + A x_n) + \tfrac12 \lambda \|A - A_{parent}\|^2

where :math:`\lambda` is ``leaf_l2`` at the root, whose parent is zero, and ``parent_l2`` below it.
So a leaf of few rows stays close to a model of more rows, and many columns need not make it
unstable.

**Growth.** The node whose split gains most is split next. The gain is what one Newton step of both
sides' models lowers the loss by (``native/learn/linear_tree/``). It is computed for all thresholds
of all numbers and, for categories, for sets of levels along a few orders of them. With
``growth="linear"`` the models that move are those of the node's most important features. With
``growth="constant"`` they are constants, as in an ordinary tree, so that splits follow the target
itself and not what a linear model leaves of it.

**Terms.** Each node also has sparse models, of 0, 1, 2, ... features. They come from the full one
by backward elimination. The features whose removal raises the loss least, by its parabola at the
optimum, go first; the others are fitted again, shrunk toward the parent's coefficients.

One growth therefore holds a tree of every number of leaves and terms (`Growth.tree`); the search
for the best tree compares all of them on held-out rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from hardwood.learn.learner import Learned, Learner, Run, Start
from hardwood.learn.leaves.constant import LeafRows, Prior, mean_target
from hardwood.learn.leaves.linear import LeafFit
from hardwood.learn.losses import LEAF_LOSSES, NO_LINK
from hardwood.learn.task import Task
from hardwood.learn.units import leaves_in_raw_units, splits_in_raw_units
from hardwood.model import ObliqueTree
from hardwood.parameters import choice_field, integer_field, real_field

GrowthKind = Literal["linear", "constant"]

# Numbers of features that a leaf may have, besides all of them.
TERMS = (0, 1, 2, 3, 4, 6, 8, 12)
_SPLIT_FEATURES = 8  # whose models move while a split is searched
_MAX_SPLIT_COLUMNS = 24
_BINS = 64  # of a number, at its quantiles
_DROPPED_AT_ONCE = 3  # a third of the features, before the others are fitted again
_INTERCEPT_L2 = 1.0
_LEVEL_ORDERS = 3  # by columns whose coefficients move, besides the one by the intercept
_LEVEL_ROWS = 1.0  # of no slope, that each level has besides its own when levels are ordered


@dataclass(frozen=True)
class LinearTree(Learner):
    """How a linear tree grows.

    Parameters
    ----------
    max_leaves
        At most.
    max_terms
        Features in the model of a leaf, at most; None: all.
    leaf_l2, parent_l2
        Penalty on the coefficients at the root, and on the difference from the parent's below it.
    leaf_prior
        Rows with the mean target that each leaf has besides its own.
    growth
        What a split is to improve: "linear" models or "constant" ones.
    min_samples_leaf
        Rows of each side of a split, at least, counted by their weights.
    """

    takes_start: ClassVar[bool] = False
    losses: ClassVar[frozenset[str]] = LEAF_LOSSES

    max_leaves: int = integer_field(8, 1)
    max_terms: int | None = integer_field(None, 0, or_none=True)
    leaf_l2: float = real_field(10.0, 0)
    parent_l2: float = real_field(30.0, 0)
    leaf_prior: float = real_field(1.0, 0)
    growth: GrowthKind = choice_field("linear", get_args(GrowthKind))
    min_samples_leaf: float = real_field(20, 1)

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        terms = self.max_terms
        growth = self.grow(task, run, (terms,))
        return Learned(growth.tree(self.max_leaves, terms), history=None)

    def grow(self, task: Task, run: Run, terms: Sequence[int | None] = (*TERMS, None)) -> Growth:
        """Grow a tree from the training rows, with models of each of these numbers of terms."""
        return _Grower(task, self, run, terms).grow()


@dataclass(eq=False)
class Node:
    """A node of a growing tree.

    Attributes
    ----------
    rows
        Places among the training rows.
    models
        [A | theta] (k, c + 1) for each number of terms.
    constant
        The prediction of a constant leaf, as scores (k,).
    full
        The model of all features; None where only constants are wanted.
    gain, split
        The best split, and what it gains; 0 and None without one.
    children
        () for a leaf.
    """

    rows: np.ndarray
    models: dict[int | None, np.ndarray]
    constant: np.ndarray
    full: np.ndarray | None = None
    gain: float = 0.0
    split: Split | None = None
    children: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Split:
    """A split in standard units: right where weights . x + bias >= 0."""

    weights: np.ndarray
    bias: float

    def goes_right(self, X: np.ndarray) -> np.ndarray:
        used = np.flatnonzero(self.weights)
        right: np.ndarray = X[:, used] @ self.weights[used] + self.bias >= 0
        return right


@dataclass(frozen=True)
class Growth:
    """A grown tree with the models of all its nodes; `order` has the nodes as they were split."""

    task: Task
    root: Node
    order: tuple[Node, ...]

    def n_leaves(self, most: int) -> int:
        """Return how many leaves the tree with at most so many leaves has."""
        return min(most, len(self.order) + 1)

    def scores(
        self, X: np.ndarray, sizes: Sequence[int]
    ) -> Iterator[tuple[int, int | None, np.ndarray]]:
        """Yield (leaves, terms, scores (n, k)) for encoded rows and every tree within."""
        ones = np.hstack([X, np.ones((len(X), 1))])
        found = {terms: ones @ model.T for terms, model in self.root.models.items()}
        at: dict[int, np.ndarray] = {id(self.root): np.arange(len(X))}
        for n_splits in range(len(self.order) + 1):
            if n_splits:
                node = self.order[n_splits - 1]
                rows = at.pop(id(node))
                assert node.split is not None
                right = node.split.goes_right(X[rows])
                for child, here in zip(node.children, (rows[~right], rows[right]), strict=True):
                    at[id(child)] = here
                    for terms, model in child.models.items():
                        found[terms][here] = ones[here] @ model.T
            if n_splits + 1 in sizes:
                for terms, scores in found.items():
                    yield n_splits + 1, terms, scores.copy()

    def tree(self, n_leaves: int, terms: int | None) -> ObliqueTree:
        """Return the tree after the first splits, with leaves of so many terms."""
        splits = list(self.order[: n_leaves - 1])
        number = {id(node): i for i, node in enumerate(splits)}
        leaves: list[Node] = []
        children = np.empty((len(splits), 2), dtype=np.int32)
        for i, node in enumerate(splits):
            for side, child in enumerate(node.children):
                if id(child) in number:
                    children[i, side] = number[id(child)]
                else:
                    leaves.append(child)
                    children[i, side] = -len(leaves)
        if not splits:
            leaves = [self.root]
        task, c = self.task, self.task.schema.n_columns
        W = np.array([node.split.weights for node in splits if node.split]).reshape(-1, c)
        b = np.array([node.split.bias for node in splits if node.split])
        weights, bias = splits_in_raw_units(W, b, task)
        models = np.stack([leaf.models[terms] for leaf in leaves])  # (L, k, c + 1)
        A, theta = models[:, :, :-1], models[:, :, -1]
        leaf_weights, link = None, NO_LINK
        if A.any():
            values, leaf_weights = task.linear_leaves(*leaves_in_raw_units(theta, A, task))
            link = task.loss.link_name
        else:
            values = task.leaf_values(theta)
        return ObliqueTree(
            weights,
            bias,
            children,
            values,
            schema=task.schema,
            task=task.kind,
            classes=task.labels,
            target_names=task.target_names,
            leaf_weights=leaf_weights,
            link=link,
        )


class _Grower:
    """The training rows of a task, and how nodes are made of them."""

    def __init__(
        self, task: Task, config: LinearTree, run: Run, terms: Sequence[int | None]
    ) -> None:
        self._task, self._config, self._run = task, config, run
        self._terms = sorted(set(terms), key=_most_first)
        self._X = task.encoded(task.train).astype(np.float64)
        self._target = task.y[task.train].astype(np.float64)
        self._weight = task.weight[task.train].astype(np.float64)
        self._count = task.weight_of(task.train)
        everywhere = LeafRows(
            np.zeros(len(task.train), dtype=np.int64), 1, self._target, self._weight
        )
        self._mean = mean_target(task.loss, everywhere, task.n_outputs)
        self._feature = np.asarray(task.schema.column_feature)
        self._numbers = _binned_numbers(task, self._X)
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
        root = self._node(np.arange(len(self._X)), None)
        order: list[Node] = []
        open_nodes = [(-root.gain, 0, root)]
        n_made = 1
        while open_nodes and len(order) + 1 < self._config.max_leaves:
            _, _, node = heapq.heappop(open_nodes)
            if node.split is None or self._run.clock.is_past():
                break
            right = node.split.goes_right(self._X[node.rows])
            node.children = tuple(self._node(node.rows[at], node) for at in (~right, right))
            order.append(node)
            for child in node.children:
                heapq.heappush(open_nodes, (-child.gain, n_made, child))
                n_made += 1
        return Growth(self._task, root, tuple(order))

    # --- models ------------------------------------------------------------------------------

    def _node(self, rows: np.ndarray, parent: Node | None) -> Node:
        constant = self._constant(rows, parent)
        node = Node(
            rows,
            {0: np.hstack([np.zeros((len(constant), self._X.shape[1])), constant[:, None]])},
            constant,
        )
        if self._terms != [0]:
            self._add_models(node, parent)
        node.gain, node.split = self._best_split(node)
        node.models = {terms: node.models[terms] for terms in self._terms}
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
        """Fit the full model, and sparse ones by backward elimination."""
        c = self._X.shape[1]
        l2 = self._config.leaf_l2 if parent is None else self._config.parent_l2
        anchor = None if parent is None or parent.full is None else parent.full[:, :-1]
        start = np.hstack([np.zeros((len(node.constant), c)), node.constant[:, None]])
        if parent is not None and parent.full is not None:
            start = parent.full
        columns = np.arange(c)
        P = self._fit_of(node.rows, self._X[node.rows], l2, anchor).from_start(start)
        node.full = node.models[None] = P
        features = np.unique(self._feature)
        kept = list(features)
        wanted = {terms for terms in self._terms if terms}
        if self._config.growth == "linear":
            wanted.add(_SPLIT_FEATURES)
        for terms in sorted(wanted, reverse=True):
            while len(kept) > terms:
                kept = self._eliminated(node.rows, P, columns, kept, terms, l2)
                columns = np.flatnonzero(np.isin(self._feature, kept))
                sparse = np.zeros_like(P)
                at = np.append(columns, c)
                fit = self._fit_of(
                    node.rows,
                    self._X[np.ix_(node.rows, columns)],
                    l2,
                    None if anchor is None else anchor[:, columns],
                )
                sparse[:, at] = fit.from_start(P[:, at])
                P = sparse
            node.models[terms] = P

    def _eliminated(
        self,
        rows: np.ndarray,
        P: np.ndarray,
        columns: np.ndarray,
        kept: list[int],
        terms: int,
        l2: float,
    ) -> list[int]:
        """Return the features that stay when the least useful ones go, a third at a time."""
        X = np.hstack([self._X[np.ix_(rows, columns)], np.ones((len(rows), 1))])
        at = np.append(columns, self._X.shape[1])
        _, curvature = self._fit_of(rows, X[:, :-1], l2, None).curvature(P[:, at])
        cost = np.zeros(len(kept))
        penalty = np.append(np.full(len(columns), max(l2, 1e-6)), 1e-6)
        for o, p in enumerate(P):
            H = (X * curvature[:, o, None]).T @ X
            H[np.diag_indices_from(H)] += penalty
            inverse = np.linalg.inv(H)
            for i, feature in enumerate(kept):
                own = np.flatnonzero(self._feature[columns] == feature)
                w = p[columns[own]]
                # What the parabola rises by when these coefficients become zero.
                cost[i] += 0.5 * w @ np.linalg.solve(inverse[np.ix_(own, own)], w)
        n_dropped = max(1, min(len(kept) - terms, len(kept) // _DROPPED_AT_ONCE))
        stay = np.sort(np.argsort(cost, kind="stable")[n_dropped:])
        return [kept[i] for i in stay]

    # --- splits ------------------------------------------------------------------------------

    def _best_split(self, node: Node) -> tuple[float, Split | None]:
        from hardwood import _native

        rows, least = node.rows, self._config.min_samples_leaf
        if self._count[rows].sum() < 2 * least:
            return 0.0, None
        P, columns = self._moving_model(node)
        X = self._X[np.ix_(rows, columns)]
        slope, curvature = self._fit_of(rows, self._X[rows], 0.0, None).curvature(P)
        candidates = [
            *(_Candidate.of_number(j, bins[rows], edges) for j, bins, edges in self._numbers),
            *self._level_sets(rows, X, slope, curvature),
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
        best = int(np.argmax(gain))
        if not gain[best] > 0:
            return 0.0, None
        split = candidates[best].split(
            self._task, int(first_right[best]), bool(missing_right[best])
        )
        return float(gain[best]), split

    def _moving_model(self, node: Node) -> tuple[np.ndarray, np.ndarray]:
        """Return a node's model, and the columns whose coefficients move on both sides."""
        if self._config.growth == "constant" or node.full is None:
            return node.models[0], np.empty(0, dtype=np.int64)
        sparse = node.models[_SPLIT_FEATURES]
        size = np.abs(sparse[:, :-1]).sum(axis=0)
        largest_first = np.argsort(-size, kind="stable")[:_MAX_SPLIT_COLUMNS]
        return node.full, largest_first[size[largest_first] > 0]

    def _level_sets(
        self, rows: np.ndarray, X: np.ndarray, slope: np.ndarray, curvature: np.ndarray
    ) -> Iterator[_Candidate]:
        """Yield the levels of each category in several orders.

        Sets of levels are tried along an order, as for numbers. Each order is by the step that one
        coefficient of one output would take at each level: the intercept's, or that of a column
        whose coefficient moves.
        """
        schema = self._task.schema
        for j in self._categories:
            level = self._level(rows, j)
            n_levels = len(schema.features[j].levels) + bool(schema.has_missing[j])
            weight = np.bincount(level, self._weight[rows], n_levels)
            for z in (np.ones(len(rows)), *X.T[:_LEVEL_ORDERS]):
                for o in range(slope.shape[1]):
                    steps = np.bincount(level, slope[:, o] * z, n_levels)
                    size = np.bincount(level, curvature[:, o] * z**2, n_levels) + _LEVEL_ROWS
                    rank = np.argsort(np.argsort(steps / size, kind="stable"))
                    yield _Candidate.of_levels(j, rank, level, weight)

    def _level(self, rows: np.ndarray, j: int) -> np.ndarray:
        """Return the level of each row, the missing one as the last."""
        first = self._task.schema.first_column[j]
        width = int((self._feature == j).sum())
        level: np.ndarray = self._X[rows, first : first + width].argmax(axis=1)
        return level


@dataclass(frozen=True)
class _Candidate:
    """A feature to split on: the bin of each row, and how a threshold becomes a split."""

    feature: int
    bins: np.ndarray
    n_bins: int
    has_missing: bool = False
    edges: np.ndarray | None = None  # of a number
    rank: np.ndarray | None = None  # of each level
    level_weight: np.ndarray | None = None

    @classmethod
    def of_number(cls, j: int, bins: np.ndarray, edges: np.ndarray) -> _Candidate:
        return cls(j, bins, len(edges) + 2, True, edges=edges)

    @classmethod
    def of_levels(
        cls, j: int, rank: np.ndarray, code: np.ndarray, weight: np.ndarray
    ) -> _Candidate:
        bins = rank[code].astype(np.uint16)
        return cls(j, bins, len(rank), rank=rank, level_weight=weight)

    def split(self, task: Task, first_right: int, missing_right: bool) -> Split:
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
            return Split(weights, -threshold)
        assert self.rank is not None
        assert self.level_weight is not None
        right = self.rank >= first_right
        levels = slice(first, first + len(right))
        # A level that training has not seen goes where most rows go.
        if self.level_weight[right].sum() <= self.level_weight[~right].sum():
            weights[levels] = right
            return Split(weights, -0.5)
        weights[levels] = -(~right).astype(np.float64)
        return Split(weights, 0.5)


def _binned_numbers(task: Task, X: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
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


def _most_first(terms: int | None) -> float:
    return -np.inf if terms is None else -terms
