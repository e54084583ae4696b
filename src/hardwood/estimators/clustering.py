"""Hierarchical clustering by latent trees, which regress some columns from the others.

Zantedeschi, Kusner, Niculae. Learning Binary Decision Trees by Argmin Differentiation. ICML 2021,
Section 4.2. To predict some columns of a row from the others, a tree has to group similar rows. Its
leaves are the clusters, and its splits are the hierarchy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hardwood import parameters
from hardwood.estimators.base import ModelEstimator
from hardwood.estimators.fit import (
    clock_of,
    parameter_record,
    warn_if_interrupted,
)
from hardwood.estimators.latent import LatentTreeRegressor
from hardwood.learn.finish import finished
from hardwood.learn.learner import Learned, drawn_seed
from hardwood.learn.losses import SquaredError
from hardwood.learn.task import Task
from hardwood.model import LatentTreeModel, ObliqueTree
from hardwood.model.edit import prune_unreached
from hardwood.model.kinds.hierarchy import Hierarchy
from hardwood.table import Schema, Table
from hardwood.table.dense_size import check_dense_size
from hardwood.table.weights import row_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TARGET_PART = 0.25  # of the columns, when they are drawn


class _Clustered(ModelEstimator):
    """Attributes of a fitted clustering."""

    targets_: np.ndarray
    tree_: ObliqueTree
    latent_: LatentTreeModel
    leaves_: np.ndarray
    labels_: np.ndarray
    _hierarchy: Hierarchy


@dataclass(kw_only=True, eq=False, repr=False)
class LatentTreeClustering(ClusterMixin, _Clustered):
    """A hierarchy of clusters with oblique splits, learned without labels.

    A latent tree regresses some columns from the others. The leaves of the hardened tree, `tree_`,
    are the finest clusters. Its splits assign new rows to clusters, and it can be read, drawn,
    exported and saved like any other tree.

    Only `fit` needs torch.

    Parameters
    ----------
    max_depth : int, default=5
        Depth of the tree, 1 to 12; there are at most 2^max_depth clusters.
    pruning : float, default=1.0
        Price of a node, same as in `LatentTreeRegressor`. A higher price gives fewer clusters.
    targets : "random", "all", int, or list of column names or numbers, default="random"
        The columns to regress from the others. "random": a random quarter of the columns. An
        integer: this many random columns. "all": every column, predicted from the clusters alone,
        whatever `skip_connection` is (a table of one column is treated the same way). Missing
        values of a target are replaced by its mean.
    n_clusters : int, default=None
        Number of clusters in `labels_` and `predict`; None for one per leaf.
    split_init : "bisect" or "random", default="bisect"
        How splits start: by 2-means at each node, or as random directions through the middle of
        the node's rows.
    skip_connection : bool, default=True
        Whether the regression sees the other columns in addition to the clusters, as in the paper.
        The clusters then explain what a linear function of the columns does not. False: the
        clusters alone predict the targets.
    activation : "linear" or "elu", default="linear"
        Same as in `LatentTreeRegressor`.
    learning_rate : float, default=0.01
        Same as in `LatentTreeRegressor`.
    batch_size : int, default=32
        Rows per gradient step; `pruning` is the price of a node for these rows.
    max_epochs : int or "auto", default="auto"
        Largest number of epochs, same as in `LatentTreeRegressor`.
    validation_fraction : float, default=0.2
        Fraction of the rows held out to measure the error of the regression.
    early_stopping : bool or "auto", default="auto"
        Whether to keep the epoch with the smallest validation error. "auto": for tables with at
        least 100 distinct rows.
    n_jobs : int, default=None
        Number of threads for predictions.
    random_state : int, RandomState or None, default=None
        Seed of the random targets, the start, the validation rows and the order of the rows.
    verbose : int, default=0
        1 prints about 20 lines, 2 one line per epoch.
    callbacks : function or list of functions, default=None
        Called with an `Epoch` after each epoch. Returning True ends learning.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The cluster of each training row, for `n_clusters`.
    leaves_ : ndarray of shape (n,)
        The leaf of each training row: the finest cluster.
    children_ : ndarray of shape (n_leaves_ - 1, 2)
        Merges of leaves, in the form of scikit-learn's `AgglomerativeClustering`: numbers below
        `n_leaves_` are leaves, and n_leaves_ + i is the result of merge i.
    distances_ : ndarray of shape (n_leaves_ - 1,)
        Height of each merge: the fraction of the variance of all rows, in standard units, that is
        within the merged rows. It increases to 1.
    n_leaves_ : int
        Number of leaves.
    targets_ : ndarray
        Indices of the regressed columns.
    tree_ : ObliqueTree
        The hard tree on the other columns. Its leaves hold the means of the targets, in raw units
        (for categories: the share of each category).
    latent_ : LatentTreeModel
        The learned latent tree, with its activities.
    history_ : list of Epoch
        One record per epoch; `active_nodes` is the fraction of active nodes.
    n_iter_ : int
        Number of epochs.
    validation_error_ : float
        Mean squared error on the validation rows at the best epoch, relative to the variance of the
        targets; NaN without validation rows. Use it to compare settings.
    n_features_in_, feature_names_in_
        Columns of the training table.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column in the variance of the targets' means between leaves; 0 for targets.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from hardwood import LatentTreeClustering
    >>> from hardwood.report import dendrogram_purity
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = LatentTreeClustering(max_depth=3, n_clusters=3, random_state=0).fit(X)
    >>> sorted(set(model.labels_.tolist()))
    [0, 1, 2]
    >>> dendrogram_purity(y, model) > 0.6
    True
    """

    _model_attribute = "tree_"

    max_depth: int = 5
    pruning: float = 1.0
    targets: str | int | Sequence[Any] = "random"
    n_clusters: int | None = None
    split_init: Literal["bisect", "random"] = "bisect"
    skip_connection: bool = True
    activation: Literal["linear", "elu"] = "linear"
    learning_rate: float = 0.01
    batch_size: int = 32
    max_epochs: int | Literal["auto"] = "auto"
    validation_fraction: float = 0.2
    early_stopping: bool | Literal["auto"] = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    callbacks: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LatentTreeClustering:
        """Learn the hierarchy.

        Parameters
        ----------
        X
            Any table that hardwood reads: numbers, categories, missing entries.
        y
            Ignored.
        sample_weight
            Weight of each row, (n,), in the regression and in the heights of merges.
        """
        table = Table.of(X)
        if self.n_clusters is not None:
            parameters.integer("n_clusters", self.n_clusters, 1)
        weight = row_weights(sample_weight, table.n_rows)
        posed = _Posed.of(table, self.targets, weight, drawn_seed(self.random_state))
        regressor = self._regressor(posed)
        learner = replace(regressor._learner(), split_init=self.split_init, solves_head=True)
        task, run = regressor._read(
            learner, posed.inputs, posed.target, posed.weight, clock_of(self)
        )
        with run.progress:
            learned = learner.fit(task, run)
        model = finished(learned, task, parameter_record(regressor), run.n_jobs)
        self._adopt_clusters(X, posed, model, learned)
        warn_if_interrupted(learned, learner, stacklevel=2)
        return self

    def predict(
        self, X: Any, *, max_depth: int | None = None, n_clusters: int | None = None
    ) -> np.ndarray:
        """Return the cluster of each row, (n,) int64.

        Parameters
        ----------
        X
            A table with the columns of the training table; the targets are not used.
        max_depth
            Cut at this depth: 0 gives one cluster, 1 at most two.
        n_clusters
            Cut into this many clusters; the default is the estimator's `n_clusters`.
        """
        leaves = self.apply(X)
        return self._cut(max_depth, n_clusters)[leaves]

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in the variance of the targets' means, (n_features_in_,).

        Targets have no part in it: the tree does not see them.
        """
        of_inputs = super().feature_importances_
        shares = np.zeros(self.n_features_in_)
        shares[_beside(self.targets_, self.n_features_in_)] = of_inputs
        return shares

    def labels_at(
        self, *, max_depth: int | None = None, n_clusters: int | None = None
    ) -> np.ndarray:
        """Return the cluster of each training row; arguments are the same as in `predict`."""
        check_is_fitted(self)
        return self._cut(max_depth, n_clusters)[self.leaves_]

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf of each row, (n,), for `dendrogram_purity` of new rows."""
        inputs = self._inputs_of(X)
        return self.tree_.apply(inputs, n_jobs=self.n_jobs).astype(np.int64)

    def linkage(self) -> np.ndarray:
        """Return the merges for `scipy.cluster.hierarchy.dendrogram`, (m, 4) float64."""
        check_is_fitted(self)
        return self._hierarchy.linkage()

    def plot_routing(
        self, X: Any, *, max_depth: int | None = None, title: str = "", ax: Axes | None = None
    ) -> Axes:
        """Draw the distribution of rows over the active nodes [LT21, Figure 6].

        Each node shows its percentage of the rows; darker nodes are more active.
        """
        from hardwood.show.routing import plot_routing

        check_is_fitted(self)
        return plot_routing(
            self.latent_.nodes,
            self._passed_nodes(X),
            activity=self.latent_.activity,
            max_depth=max_depth,
            title=title,
            ax=ax,
        )

    def plot_routing_by_class(
        self, X: Any, y: Any, *, names: Sequence[object] | None = None, max_depth: int | None = 3
    ) -> Figure:
        """Draw the distribution of each class over the active nodes [LT21, Figure 8]."""
        from hardwood.show.routing import plot_routing_by_class

        check_is_fitted(self)
        return plot_routing_by_class(
            self.latent_.nodes,
            self._passed_nodes(X),
            y,
            activity=self.latent_.activity,
            names=names,
            max_depth=max_depth,
        )

    def plot_active_share(self, *, label: str = "", ax: Axes | None = None) -> Axes:
        """Draw the fraction of active nodes after each epoch [LT21, Figure 7]."""
        from hardwood.show.routing import plot_active_share

        check_is_fitted(self)
        shares = [epoch.active_nodes for epoch in self.history_]
        return plot_active_share(shares, label=label, ax=ax)

    def _regressor(self, posed: _Posed) -> LatentTreeRegressor:
        """Return the regressor of the targets from the other columns."""
        return LatentTreeRegressor(
            max_depth=self.max_depth,
            pruning=self.pruning,
            skip_connection=parameters.flag("skip_connection", self.skip_connection)
            and not posed.is_of_itself,
            activation=self.activation,
            weight_decay=0.0,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            max_epochs=self.max_epochs,
            validation_fraction=self.validation_fraction,
            early_stopping=self.early_stopping,
            n_jobs=self.n_jobs,
            random_state=posed.seed,
            verbose=self.verbose,
            callbacks=self.callbacks,
        )

    def _adopt_clusters(
        self, X: Any, posed: _Posed, model: LatentTreeModel, learned: Learned
    ) -> None:
        """Set all attributes at the end, so that a failed `fit` changes nothing."""
        # Hardened with its own predictions: leaves whose targets have the same mean stay separate.
        tree = model.harden(posed.inputs, sample_weight=posed.weight)
        tree = prune_unreached(tree, posed.inputs, sample_weight=posed.weight)
        leaves = tree.apply(posed.inputs, n_jobs=self.n_jobs).astype(np.int64)
        tree = tree.replace(
            values=posed.target_means(leaves, tree.n_leaves), target_names=posed.target_names
        )
        hierarchy = Hierarchy.by_variation(
            tree.children, leaves, posed.columns, posed.weight_of_rows
        )
        validate_data(self, X, skip_check_array=True)
        self.n_features_in_ = posed.n_features
        self.targets_, self.latent_ = posed.targets, model
        self.tree_, self.leaves_, self._hierarchy = tree, leaves, hierarchy
        self.children_ = self._hierarchy.children
        self.distances_ = self._hierarchy.distances
        self.n_leaves_ = self._hierarchy.n_leaves
        self.history_ = list(learned.history or ())
        self.n_iter_ = learned.n_epochs
        self.validation_error_ = learned.best.validation_loss if learned.best else math.nan
        self.labels_ = self.labels_at()

    def _cut(self, max_depth: int | None, n_clusters: int | None) -> np.ndarray:
        """Return the cluster of each leaf; without a cut, the leaf itself."""
        if max_depth is None and n_clusters is None:
            n_clusters = self.n_clusters
        if max_depth is None and n_clusters is None:
            return np.arange(self.n_leaves_)
        return self._hierarchy.clusters(max_depth=max_depth, n_clusters=n_clusters)

    def _inputs_of(self, X: Any) -> Table:
        """Read a table and keep the columns of the tree."""
        self._check_predictable(X)
        table = Table.of(X)
        if self.tree_.schema.named and table.names is not None:
            return table  # is read by name
        return table.take_columns(_beside(self.targets_, self.n_features_in_))

    def _passed_nodes(self, X: Any) -> np.ndarray:
        """Return whether each row's hard path passes each node of `latent_`, (n, A) bool."""
        nodes = self.latent_.nodes
        node = self.latent_.apply(self._inputs_of(X))
        passed = np.zeros((len(node), len(nodes)), dtype=bool)
        for _ in range(self.latent_.depth + 1):
            passed[np.arange(len(node)), np.searchsorted(nodes, node)] = True
            node = np.maximum((node - 1) // 2, 0)
        return passed


@dataclass(frozen=True, eq=False)
class _Posed:
    """A table, divided into targets and inputs.

    Attributes
    ----------
    n_features
        Number of columns of the whole table.
    targets, inputs
        Indices of the regressed columns, and the table of the others (a single column is both).
    target, target_names
        (n, t) the targets in raw units: numbers, with the mean for missing values, and one column
        of 0 and 1 per category, all 0 for missing values.
    columns
        (n, c) the whole table in standard units.
    """

    n_features: int
    targets: np.ndarray
    inputs: Table
    target: np.ndarray
    target_names: tuple[str, ...]
    columns: np.ndarray
    weight: np.ndarray | None
    seed: int

    @classmethod
    def of(cls, table: Table, asked: Any, weight: np.ndarray | None, seed: int) -> _Posed:
        targets = _targets_of(asked, table, seed)
        # In canonical rows: a repeated row has the same units as a row of weight two.
        nothing = np.zeros((table.n_rows, 1))
        schema = Task.of(table, nothing, weight, kind="regression", loss=SquaredError()).schema
        columns = _encoded(schema, table)
        own = np.flatnonzero(np.isin(schema.column_feature, targets))
        own = np.setdiff1d(own, schema.flag_column)  # missing indicators are not regressed
        target = columns[:, own] * schema.column_scale[own] + schema.column_center[own]
        return cls(
            table.n_features,
            targets,
            table.take_columns(_beside(targets, table.n_features)),
            target,
            tuple(schema.column_names[j] for j in own),
            columns,
            weight,
            seed,
        )

    @property
    def is_of_itself(self) -> bool:
        """Whether all columns are targets."""
        return len(self.targets) == self.n_features

    @property
    def weight_of_rows(self) -> np.ndarray:
        """The weight of each row, (n,)."""
        return np.ones(len(self.columns)) if self.weight is None else self.weight

    def target_means(self, leaves: np.ndarray, n_leaves: int) -> np.ndarray:
        """Return the means of the targets at each leaf, (n_leaves, t)."""
        weight = self.weight_of_rows / self.weight_of_rows.max()  # so that no sum overflows
        mass = np.bincount(leaves, weight, minlength=n_leaves)
        sums = [np.bincount(leaves, weight * y, minlength=n_leaves) for y in self.target.T]
        return np.column_stack(sums) / mass[:, None]


def _beside(targets: np.ndarray, n_features: int) -> list[int]:
    """Return the input columns: those that are not targets, or all if there are none."""
    others = np.setdiff1d(np.arange(n_features), targets)
    return others.tolist() or list(range(n_features))


def _targets_of(asked: Any, table: Table, seed: int) -> np.ndarray:
    """Return the indices of the target columns, ascending."""
    p = table.n_features
    if isinstance(asked, str):
        if table.names is not None and asked in table.names and asked not in ("random", "all"):
            raise ValueError(f"targets must be a list of columns: give [{asked!r}].")
        parameters.choice("targets", asked, ("random", "all"))
        asked = p if asked == "all" else max(1, round(_TARGET_PART * p))
    elif not isinstance(asked, Iterable):
        asked = parameters.integer("targets", asked, 1, max(p - 1, 1))
    if isinstance(asked, int):
        drawn = np.random.default_rng(seed).choice(p, asked, replace=False)
        return np.sort(drawn)
    found = np.array(sorted(_column(name, table) for name in asked), dtype=np.int64)
    if not len(found) or len(np.unique(found)) < len(found):
        raise ValueError(f"targets must name at least one column, each once; got {asked!r}.")
    if len(found) == p > 1:
        raise ValueError(
            f"targets names all {p} columns and leaves none to regress from. Leave some out, or "
            "give targets='all'."
        )
    return found


def _column(name: Any, table: Table) -> int:
    """Return the index of a column that is given by name or index."""
    if isinstance(name, str):
        if table.names is None or name not in table.names:
            known = "no names" if table.names is None else f"the names {list(table.names)[:20]}"
            raise ValueError(f"targets names the column {name!r}, but the table has {known}.")
        return table.names.index(name)
    return parameters.integer("targets", name, 0, table.n_features - 1)


def _encoded(schema: Schema, table: Table) -> np.ndarray:
    """Return the rows in standard units, (n, c) float32."""
    matrix = schema.read(table, is_training=True)
    check_dense_size(
        table.n_rows, schema.n_columns, bytes_per_value=4, learner="LatentTreeClustering"
    )
    return schema.encoder.encode(matrix)
