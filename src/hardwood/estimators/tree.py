"""The tree that a newcomer should try first: the best of many, found by validation.

The search is `hardwood.search.best_tree`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hardwood.estimators import base
from hardwood.learn.learner import Learner
from hardwood.search.best_tree import BestTree
from hardwood.search.fit_report import FitReport


@dataclass(kw_only=True, eq=False, repr=False)
class _TreeParameters:
    _learner_type: ClassVar[type[Learner]] = BestTree

    max_depth: int = 8
    leaves: Literal["constant", "linear"] = "constant"
    max_features_per_split: int | None = None
    teacher: Any = "auto"
    time_limit: float | None = 60.0
    max_trials: int | None = None
    scoring: Any = None
    validation_fraction: float = 0.2
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    callbacks: Any = None


class _Searched(base.TreeEstimator):
    """What a fitted search has."""

    fit_report_: FitReport


@dataclass(kw_only=True, eq=False, repr=False)
class TreeClassifier(_TreeParameters, _Searched, base.SingleTreeClassifier):
    """One hard decision tree for classes: the best that is found within a time limit.

    Ordinary trees, alternating optimization from several starts, a teacher and restarts compete on
    rows that they did not learn from. Ordinary trees win ties. Tables may be NumPy arrays, SciPy
    sparse matrices, pandas, polars or Arrow frames, with categories and missing entries.

    Parameters
    ----------
    max_depth : int, default=8
        Splits on the way from the root to a leaf, 1 to 16, at most.
    leaves : "constant" or "linear", default="constant"
        What a leaf answers: one value per output, or a linear function of the columns.
    max_features_per_split : int, default=None
        Features that a split may weigh, for splits that are easy to read; None for all.
    teacher : "auto", estimator or None, default="auto"
        A stronger model, whose answers to made-up rows near and between the real ones teach the
        tree. "auto": three small networks, unless they are clearly worse than the best tree without
        them. An estimator of scikit-learn's kind: fitted, it is asked as it is; else it is fitted
        on the rows that are learned from.
    time_limit : float or None, default=60.0
        Seconds that a fit may take, to within a tenth; it ends earlier when nothing gets better.
        What the clock cuts off differs between runs: for the same tree every time, bit for bit,
        give None, and perhaps `max_trials`.
    max_trials : int, default=None
        Candidates to try at most; None for as many as help and there is time for.
    scoring : str or function, default=None
        What candidates are judged by: None for accuracy, or a scorer of scikit-learn, such as
        "roc_auc" or "neg_log_loss"; larger is better.
    validation_fraction : float, default=0.2
        Part of the rows that judges the candidates, drawn from every class alike. Tables of fewer
        than 1,500 distinct rows are judged by four folds instead.
    class_weight : dict, "balanced" or None, default=None
        What the weight of every row is multiplied by, by class. "balanced": such that all classes
        have the same total weight.
    n_jobs : int, default=None
        Threads, -1 for all processors. Without a time limit the tree does not depend on them.
    random_state : int, RandomState instance or None, default=None
        Of starts, made-up rows, networks and the choice of the rows that judge.
    verbose : int, default=0
        1 prints a line per candidate.
    callbacks : function or list of functions, default=None
        Called with a `Trial` after every candidate; a true answer ends the search.

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, simplified: what predicts, reads, draws and saves.
    classes_ : ndarray of shape (n_classes,)
        The classes; where there are several labels, their numbers.
    fit_report_ : FitReport
        What was tried, how good it was, and why the search ended: ``print`` it.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where all are text.

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
    """One hard decision tree for numbers: the best that is found within a time limit.

    Parameters and attributes are those of `TreeClassifier`, without `class_weight` and `classes_`,
    and:

    Parameters
    ----------
    scoring : str or function, default=None
        What candidates are judged by: None for R2, or a scorer of scikit-learn.

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
