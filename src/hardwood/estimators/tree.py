"""The estimators to try first: the best tree of many, chosen by validation.

The search is `hardwood.search.best_tree`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from hardwood.estimators import base
from hardwood.learn.learner import Learned, Learner, Run
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.search.best_tree import (
    BestTree,
    LeafKind,
    TreeClassifierParameters,
    TreeParameters,
)
from hardwood.search.fit_report import FitReport
from hardwood.search.frontier import Frontier

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hardwood.show.page import Page


@dataclass(kw_only=True, eq=False, repr=False)
class _TreeParameters(TreeParameters):
    _learner_type: ClassVar[type[Learner]] = BestTree


class _Searched(base.TreeEstimator):
    """The attributes of a fitted search."""

    fit_report_: FitReport
    frontier_: Frontier
    leaves: LeafKind

    def at(self, max_leaves: int | None = None, max_terms: int | None = None) -> ObliqueTree:
        """Return the best tree of the frontier within limits.

        Parameters
        ----------
        max_leaves
            Maximum number of leaves, >= 1; None for no limit.
        max_terms
            Maximum number of features in a leaf or a split, >= 0; None for no limit.

        Raises
        ------
        ValueError
            If no tree is as small, or if the search had only one kind of leaves.
        """
        return self._known_frontier.at(max_leaves, max_terms)

    def plot_frontier(
        self, path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None
    ) -> Figure:
        """Plot the held-out loss of trees of every size, and CART's; see `Frontier.plot`.

        Parameters
        ----------
        path
            Where to write the plot; None for nowhere.
        ax
            Axes of matplotlib to draw into; None for a new figure.
        """
        return self._known_frontier.plot(path, ax=ax)

    def _page(self, *where_and_rows: Any, **options: Any) -> Page:
        """Let readers slide from size to size, unless the tree was replaced by another one."""
        frontier = self.__dict__.get("frontier_")
        if frontier is None or frontier.chosen.tree != self.tree_:
            return super()._page(*where_and_rows, **options)
        return frontier.show(*where_and_rows, **options)

    @property
    def _known_frontier(self) -> Frontier:
        check_is_fitted(self)
        if "frontier_" not in vars(self):
            raise ValueError(
                f'the fit with leaves={self.leaves!r} kept one tree; only leaves="auto" keeps the '
                "best tree of every size."
            )
        return self.frontier_

    def _adopt(self, X: Any, task: Task, run: Run, learned: Learned, model: Any) -> None:
        self.__dict__.pop("frontier_", None)  # of an earlier fit
        super()._adopt(X, task, run, learned, model)
        if "frontier" in learned.facts:
            self.frontier_ = self.frontier_.of_fit(self.tree_)


@dataclass(kw_only=True, eq=False, repr=False)
class _TreeClassifierParameters(TreeClassifierParameters, _TreeParameters):
    pass


@dataclass(kw_only=True, eq=False, repr=False)
class TreeClassifier(_TreeClassifierParameters, _Searched, base.SingleTreeClassifier):
    """The best hard decision tree for classification that is found within a time limit.

    Axis-aligned trees, alternating optimization (TAO), reinforced trees and distillation compete on
    held-out rows; axis-aligned trees win ties. Tables may be NumPy arrays, SciPy sparse matrices,
    or pandas, polars or Arrow frames, with categories and missing values.

    Parameters
    ----------
    max_depth : int or None, default=None
        Maximum depth, 1 to 16. None: no limit for axis-aligned splits with leaves="auto", and 8 for
        all other trees.
    max_leaves : int or None, default=None
        Maximum number of leaves, with leaves="auto"; oblique trees are then left out. None for no
        limit.
    max_terms : int or None, default=None
        Maximum number of features in a leaf or a split, with leaves="auto"; None for no limit.
    leaves : "auto", "constant" or "linear", default="auto"
        What a leaf predicts: a constant per output, or a linear function of the columns. "auto":
        both compete, and so does a single linear leaf, which is a linear model.
    prefer : "balanced", "accuracy" or "readable", default="balanced"
        Which tree to choose with leaves="auto". "balanced": the smallest tree within one standard
        error of the best; the size counts every number that a reader must read. "accuracy": the
        tree with the smallest held-out loss. "readable": the best tree with at most 12 leaves and 3
        features in a leaf or split.
    max_features_per_split : int, default=None
        Maximum number of features per split, for splits that are easy to read; None for no limit.
    teacher : "auto", estimator or None, default="auto"
        A stronger model for distillation: it labels augmented rows, near and between the training
        rows, that the tree is trained on. "auto": three small neural networks, unless they are
        clearly worse than the best tree without them. A fitted scikit-learn estimator is used as it
        is; an unfitted one is fitted on the training rows. None: no distillation.
    time_limit : float or None, default=20.0
        Maximum seconds for a fit, to within 10 %. It stops earlier if nothing improves. How many
        candidates fit into the time differs between runs; for a reproducible tree, bit for bit,
        pass None, and perhaps `max_trials`.
    max_trials : int, default=None
        Maximum number of candidates; None for no limit.
    scoring : str or function, default=None
        The validation score of a candidate: None, or a scorer of scikit-learn, such as "roc_auc";
        larger is better. None: trees are compared by their log loss. With leaves="auto" and a
        scorer, the best trees of every size are scored and the best score is chosen; of `prefer`,
        only "readable" then matters.
    validation_fraction : float, default=0.2
        Fraction of the rows to hold out for validation, stratified by class. Tables with fewer than
        20,000 distinct rows use 4-fold cross-validation instead, unless they are very wide.
    calibrate : bool, default=False
        Whether to recalibrate the probabilities on the held-out rows of the search: by a slope and
        a constant of the log odds for two classes, a slope and an offset per class for more, and a
        line per label. It changes leaf values, or the coefficients of linear leaves.
    class_weight : dict, "balanced" or None, default=None
        Factor for the weights of the rows of each class. "balanced": factors that give all classes
        the same total weight. Probabilities of classes are those of the rows without the weights;
        `predict` chooses the class with the largest product of probability and weight, as `tree_`
        does with its `decision_weights`. With several labels only "balanced": the factors of a
        row's labels are multiplied, and probabilities are those of the weighted rows.
    n_jobs : int, default=None
        Number of threads, -1 for all processors. Without a time limit, the tree does not depend on
        it.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices: starts, augmented rows, networks and validation rows.
    verbose : int, default=0
        0 shows one line of progress, in a terminal or a notebook; 1 prints a line per candidate.
    callbacks : function or list of functions, default=None
        Called with a `Trial` after every candidate; returning True stops the search.

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, simplified.
    classes_ : ndarray of shape (n_classes,)
        The classes; for a multilabel target, the label indices.
    frontier_ : Frontier
        With leaves="auto": the best tree of every size, with held-out losses; ``print`` it.
    fit_report_ : FitReport
        The candidates with their scores, and why the search stopped: ``print`` it.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if all are strings.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column in the variance of the predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import TreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TreeClassifier(time_limit=None, max_trials=6, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    loss = "log_loss"

    class_weight: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class TreeRegressor(_TreeParameters, _Searched, base.SingleTreeRegressor):
    """The best hard decision tree for regression that is found within a time limit.

    Parameters and attributes are those of `TreeClassifier`, except `calibrate`, `class_weight` and
    `classes_`, and these:

    Parameters
    ----------
    scoring : str or function, default=None
        The validation score of a candidate: None for R2, or a scorer of scikit-learn.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from hardwood import TreeRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TreeRegressor(time_limit=None, max_trials=6, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    loss = "squared_error"
