"""DGT-Forest for scikit-learn: hard oblique trees on bootstrap samples, learned in parallel.

Section 5.2 and C.3.1 of the paper: `hardwood.learn.bagging` of `hardwood.learn.dgt`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.metrics import r2_score

from hardwood import parameters
from hardwood.clock import Clock
from hardwood.estimators.base import ForestClassifier, ForestEstimator, ForestRegressor
from hardwood.estimators.dgt import DGTParameters
from hardwood.estimators.fit import start_of
from hardwood.learn.bagging import Bagging
from hardwood.learn.dgt import DGT
from hardwood.learn.finish import outputs_of
from hardwood.learn.learner import Learned, Learner, Run, Start
from hardwood.learn.task import Task
from hardwood.model import ObliqueForest
from hardwood.model.outputs import YES
from hardwood.model.structure import TaskKind
from hardwood.parameters import parameters_of

_OUT_OF_BAG = ("oob_score_", "oob_prediction_", "oob_decision_function_")


@dataclass(kw_only=True, eq=False, repr=False)
class _ForestParameters(DGTParameters):
    n_estimators: int = 30
    early_stopping: bool | Literal["auto"] = False
    bootstrap: bool = True
    sample_fraction: float = 1.0
    oob_score: bool = False
    warm_start: bool = False


class _ForestFit(ForestEstimator):
    """Fit forests by `Bagging`; with `warm_start`, continue from the trees of an earlier fit."""

    n_estimators: int
    warm_start: bool
    oob_score: bool
    _seed_of_trees: int
    _drawn_from: tuple[int | None, int] | None

    @property
    def _goes_on(self) -> bool:
        return parameters.flag("warm_start", self.warm_start) and "forest_" in vars(self)

    def _learner(self) -> Bagging:
        learner = parameters_of(
            Bagging, self, base=parameters_of(DGT, self), member_start=start_of(self)
        )
        if parameters.flag("oob_score", self.oob_score) and not learner.bootstrap:
            raise ValueError("oob_score=True needs bootstrap=True: else every tree sees every row.")
        return learner

    def _read(
        self, learner: Learner, X: Any, y: Any, sample_weight: Any, clock: Clock
    ) -> tuple[Task, Run]:
        task, run = super()._read(learner, X, y, sample_weight, clock)
        self._same_draws(task)  # raises before anything is learned
        return task, run

    def _seed(self) -> int:
        return self._seed_of_trees if self._goes_on else super()._seed()

    def _start(self) -> Start:
        if not self._goes_on:
            return None
        n_known = len(self.forest_.trees)
        if self.n_estimators < n_known:
            raise ValueError(
                f"warm_start=True adds trees: n_estimators={self.n_estimators} must not be less "
                f"than the {n_known} there are. Raise it, or give warm_start=False to start anew."
            )
        if self.n_estimators == n_known:
            warnings.warn(
                f"warm_start=True and n_estimators={n_known}, which is how many trees there are: "
                "none is added.",
                UserWarning,
                stacklevel=4,
            )
        return self.forest_

    def _adopt(self, X: Any, task: Task, run: Run, learned: Learned, model: ObliqueForest) -> None:
        learner = self._learner()
        drawn_from = self._same_draws(task)
        oob = _out_of_bag(model, task, learner, run) if self.oob_score else {}
        history = list(learned.history or ())
        n_epochs = [member.n_epochs for member in learned.members]
        if self._goes_on:
            history = [*self.history_, *history]
            n_epochs.append(self.n_iter_)
        super()._adopt(X, task, run, learned, model)
        self.history_, self.n_iter_ = history, max(n_epochs)
        self._seed_of_trees, self._drawn_from = run.seed, drawn_from
        for name in _OUT_OF_BAG:  # from an earlier fit
            self.__dict__.pop(name, None)
        self.__dict__.update(oob)

    def _same_draws(self, task: Task) -> tuple[int | None, int] | None:
        """Return how all trees drew their rows; None if they differ.

        The rows that a tree saw are found by drawing them again.
        """
        n_rows = len(task.train)
        drawn_from = self._learner().n_draws(n_rows), n_rows
        if not self._goes_on or drawn_from == self._drawn_from:
            return drawn_from
        if self.oob_score:
            raise ValueError(
                "oob_score=True with warm_start=True needs all trees to draw from the same rows: "
                "bootstrap, sample_fraction or the validation part differ from the earlier fit. "
                "Give warm_start=False, or oob_score=False."
            )
        return None


@dataclass(kw_only=True, eq=False, repr=False)
class DGTForestClassifier(_ForestParameters, _ForestFit, ForestClassifier):
    """A forest of hard oblique trees for classification, on bootstrap samples (DGT-Forest).

    Parameters that are not listed here are the same as in `DGTClassifier`. There are
    no restarts: every tree is kept.

    Parameters
    ----------
    n_estimators : int, default=30
        Number of trees.
    bootstrap : bool, default=True
        Whether each tree learns from rows drawn with replacement. Otherwise each learns from all
        rows, and trees differ only in their random starts.
    sample_fraction : float, default=1.0
        Rows drawn for each tree, as a fraction of the distinct training rows; must be 1 if
        bootstrap=False.
    combine : "mean" or "vote", default="mean"
        Average the probabilities of the trees, or count the trees that choose each class.
    early_stopping : bool or "auto", default=False
        Whether to hold out validation rows, the same for all trees, on which each tree stops early.
        "auto": for tables with at least 100 distinct rows. A forest rarely needs it, because the
        average of many trees overfits less than each of them.
    oob_score : bool, default=False
        Whether to compute the out-of-bag score.
    warm_start : bool, default=False
        Whether `fit` keeps the existing trees and adds trees up to `n_estimators`. The result is
        the same as learning all trees at once from the same rows.

    Attributes
    ----------
    forest_ : ObliqueForest
        The learned forest. It predicts and saves itself.
    estimators_ : tuple of ObliqueTree
        The trees.
    classes_ : ndarray of shape (n_classes,)
        The classes; for several labels, their indices.
    oob_score_ : float
        Weighted accuracy on the out-of-bag rows. Each row is predicted by the trees that did not
        see it.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Out-of-bag probabilities; NaN for rows that every tree saw, for validation rows and for rows
        with zero weight.
    history_ : list of Epoch
        One record per epoch, tree by tree; `restart` is the index of the tree.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import DGTForestClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = DGTForestClassifier(n_estimators=5, max_depth=2, random_state=0).fit(X, y)
    >>> model.forest_.n_trees
    5
    """

    combine: Literal["mean", "vote"] = "mean"
    loss: Any = "log_loss"
    class_weight: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class DGTForestRegressor(_ForestParameters, _ForestFit, ForestRegressor):
    """A forest of hard oblique trees for regression, on bootstrap samples (DGT-Forest).

    Parameters and attributes are those of `DGTForestClassifier` without `combine`, `class_weight`,
    `classes_` and `oob_decision_function_`, and:

    Parameters
    ----------
    loss : str, Loss or function, default="squared_error"
        Same as in `DGTRegressor`. The forest predicts the mean of its trees.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.
    oob_score_ : float
        R^2 on the out-of-bag rows; NaN if there is only one.
    oob_prediction_ : ndarray of shape (n_samples,) or (n_samples, k)
        Out-of-bag predictions; NaN for other rows.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from hardwood import DGTForestRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = DGTForestRegressor(n_estimators=5, max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    loss: Any = "squared_error"


def _out_of_bag(forest: ObliqueForest, task: Task, learner: Bagging, run: Run) -> dict[str, Any]:
    """Predict each training row by the trees that did not see it, and score the predictions."""
    rows = task.train
    total, n_asked = np.zeros((len(rows), forest.n_outputs)), np.zeros(len(rows))
    for number, tree in enumerate(forest.trees):
        unseen = learner.drawn(len(rows), run.seed, number) == 0
        outputs = outputs_of(tree, task.matrix, rows[unseen], run.n_jobs)
        total[unseen] += _votes(outputs, task.kind) if forest.combine == "vote" else outputs
        n_asked[unseen] += 1
    known = n_asked > 0
    if not known.any():
        raise ValueError(
            "oob_score=True, but every tree saw every row. Give more trees or a smaller "
            "sample_fraction."
        )
    predicted = total[known] / n_asked[known, None]
    shown = np.full((len(task.target), forest.n_outputs), np.nan)
    shown[rows[known]] = predicted
    shown = shown[task.representatives()]
    score = _score(task, rows[known], predicted)
    if task.kind == "regression":
        return {"oob_score_": score, "oob_prediction_": shown[:, 0] if len(shown.T) == 1 else shown}
    return {"oob_score_": score, "oob_decision_function_": shown}


def _score(task: Task, rows: np.ndarray, predicted: np.ndarray) -> float:
    """Return R^2 or the accuracy (all labels correct), as `score` does, with the user's weights."""
    target, weight = task.target[rows], task.weight_of(rows)
    weight = weight / weight.max()  # sums of weights must not overflow, nor squares of numbers
    if task.kind == "regression":
        target, predicted = (
            (values - task.target_center) / task.target_scale for values in (target, predicted)
        )
        # A single row has no variance to compare with, so R^2 is undefined.
        return float(r2_score(target, predicted, sample_weight=weight)) if len(rows) > 1 else np.nan
    chosen = _votes(predicted, task.kind)
    if task.kind == "classification":
        target = np.eye(task.n_targets)[target[:, 0].astype(np.int64)]
    return float(np.average((chosen == target).all(axis=1), weights=weight))


def _votes(probabilities: np.ndarray, kind: TaskKind) -> np.ndarray:
    """Choose, (n, k) of 0 and 1: the likeliest class, or every label that is likely."""
    if kind == "multilabel":
        return (probabilities >= YES).astype(np.float64)
    return np.eye(probabilities.shape[1])[probabilities.argmax(axis=1)]
