"""DGT-Forest for scikit-learn: hard oblique trees on bootstrap samples, side by side in the engine.

Section 5.2 and C.3.1 of the paper; the trees are learned by `hardwood.learn.dgt`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import validate_data

from hardwood.estimators import dgt_fit, parameters
from hardwood.estimators import exercise as exercises
from hardwood.estimators.base import ForestClassifier, ForestRegressor
from hardwood.estimators.exercise import Exercise
from hardwood.learn.dgt import DGT, Grown, Runs, learn_forest
from hardwood.learn.finish import outputs_of
from hardwood.learn.start import start_of
from hardwood.learn.task import Problem
from hardwood.model import ObliqueForest, ObliqueTree
from hardwood.model.kinds.forest import MAX_TREES
from hardwood.model.outputs import YES
from hardwood.model.structure import TaskKind

_COMBINATIONS = ("mean", "vote")
_OUT_OF_BAG = ("oob_score_", "oob_prediction_", "oob_decision_function_")


class DGTForestClassifier(ForestClassifier):
    """A forest of hard oblique trees for classes, each from a bootstrap sample (DGT-Forest).

    Parameters that are not here have the meaning they have for `DGTClassifier`. There are no
    restarts: every tree counts.

    Parameters
    ----------
    n_estimators : int, default=30
        Number of trees.
    bootstrap : bool, default=True
        Whether every tree learns from rows drawn with replacement; else from all rows, and trees
        differ by their random starts alone.
    sample_fraction : float, default=1.0
        Rows drawn for a tree, as a part of the (distinct) training rows; 1 where bootstrap=False.
    combine : "mean" or "vote", default="mean"
        Average the trees' probabilities, or count for each class the trees that choose it.
    early_stopping : bool or "auto", default="auto"
        Whether to keep a validation part, the same for all trees, from which each learns when to
        stop. "auto": no; averaging makes up for what single trees overfit.
    oob_score : bool, default=False
        Whether to score the forest on the rows that trees did not see.
    warm_start : bool, default=False
        Whether `fit` keeps the trees there are and learns only those that `n_estimators` adds. The
        forest is the one that would have been learned at once from the same rows.

    Attributes
    ----------
    forest_ : ObliqueForest
        The trees and how they are combined: what predicts and saves.
    estimators_ : tuple of ObliqueTree
        The trees.
    classes_ : ndarray of shape (n_classes,)
        The classes; where there are several labels, their numbers.
    oob_score_ : float
        Accuracy on the rows that at least one tree did not see, each predicted by those trees;
        weighted by sample_weight.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Those predictions; NaN for rows that every tree saw, for validation rows and for rows of no
        weight.
    history_ : list of Epoch
        One record per pass, tree by tree; `restart` is the number of the tree.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import DGTForestClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = DGTForestClassifier(n_estimators=5, max_depth=2, random_state=0).fit(X, y)
    >>> model.forest_.n_trees
    5
    """

    def __init__(
        self,
        *,
        n_estimators: int = 30,
        bootstrap: bool = True,
        sample_fraction: float = 1.0,
        combine: Literal["mean", "vote"] = "mean",
        max_depth: int = 6,
        layers: Any = 1,
        leaves: Literal["constant", "linear"] = "constant",
        learning_rate: float = 0.01,
        batch_size: int = 128,
        max_epochs: int | Literal["auto"] = "auto",
        momentum: float | None = None,
        l1: float = 0.0,
        l2: float = 0.0,
        loss: Any = "log_loss",
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        oob_score: bool = False,
        warm_start: bool = False,
        class_weight: Any = None,
        init: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        relaxation: Any = None,
        training: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.bootstrap = bootstrap
        self.sample_fraction = sample_fraction
        self.combine = combine
        self.max_depth = max_depth
        self.layers = layers
        self.leaves = leaves
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.momentum = momentum
        self.l1 = l1
        self.l2 = l2
        self.loss = loss
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.init = init
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.relaxation = relaxation
        self.training = training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DGTForestClassifier:
        """Learn a forest; arguments are those of `DGTClassifier.fit`."""
        exercise = exercises.classification(self, X, y, sample_weight)
        learned = _fit(self, exercise, X)
        self.classes_ = exercise.classes
        exercises.warn_if_interrupted(learned, "what the trees had learned")
        return self


class DGTForestRegressor(ForestRegressor):
    """A forest of hard oblique trees for numbers, each from a bootstrap sample (DGT-Forest).

    Parameters and attributes are those of `DGTForestClassifier` without `combine`, `class_weight`,
    `classes_` and `oob_decision_function_`, and:

    Parameters
    ----------
    loss : str, Loss or function, default="squared_error"
        As of `DGTRegressor`. The forest predicts the mean of its trees.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.
    oob_score_ : float
        R^2 on the rows that at least one tree did not see; NaN where that is a single row.
    oob_prediction_ : ndarray of shape (n_samples,) or (n_samples, k)
        Predictions for those rows; NaN for the others.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from hardwood import DGTForestRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = DGTForestRegressor(n_estimators=5, max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    def __init__(
        self,
        *,
        n_estimators: int = 30,
        bootstrap: bool = True,
        sample_fraction: float = 1.0,
        max_depth: int = 6,
        layers: Any = 1,
        leaves: Literal["constant", "linear"] = "constant",
        learning_rate: float = 0.01,
        batch_size: int = 128,
        max_epochs: int | Literal["auto"] = "auto",
        momentum: float | None = None,
        l1: float = 0.0,
        l2: float = 0.0,
        loss: Any = "squared_error",
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        oob_score: bool = False,
        warm_start: bool = False,
        init: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        relaxation: Any = None,
        training: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.bootstrap = bootstrap
        self.sample_fraction = sample_fraction
        self.max_depth = max_depth
        self.layers = layers
        self.leaves = leaves
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.momentum = momentum
        self.l1 = l1
        self.l2 = l2
        self.loss = loss
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.init = init
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.relaxation = relaxation
        self.training = training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DGTForestRegressor:
        """Learn a forest; arguments are those of `DGTRegressor.fit`."""
        exercise = exercises.regression(self, X, y, sample_weight)
        learned = _fit(self, exercise, X)
        self.n_outputs_ = exercise.n_targets
        exercises.warn_if_interrupted(learned, "what the trees had learned")
        return self


Estimator = DGTForestClassifier | DGTForestRegressor
_Draws = tuple[float | None, int]  # sample_fraction, and of how many rows


def _fit(estimator: Estimator, exercise: Exercise, X: Any) -> Sequence[Grown]:
    """Learn the trees that are missing, and set everything at once."""
    n_trees = parameters.integer("n_estimators", estimator.n_estimators, 1, MAX_TREES)
    is_scored = parameters.flag("oob_score", estimator.oob_score)
    combine = parameters.choice("combine", getattr(estimator, "combine", "mean"), _COMBINATIONS)
    kept, seed = _kept(estimator, n_trees)
    members = _members(estimator, n_trees - len(kept), len(kept))
    stops_early = exercises.stops_early(estimator, exercise, compares=False, by_default=False)
    config = dgt_fit.config_of(estimator, stops_early, restarts=1)
    problem = exercises.problem_of(estimator, exercise, stops_early, seed)
    n_jobs = parameters.n_threads(estimator.n_jobs)
    start = start_of(estimator.init, exercise, problem, config.max_depth, n_jobs=n_jobs, seed=seed)
    if is_scored and members.sample_fraction is None:
        raise ValueError("oob_score=True needs bootstrap=True: else every tree sees every row.")
    drawn_from: _Draws | None = (members.sample_fraction, len(problem.train))
    if kept:
        _check_same_table(kept[0], exercise)
        drawn_from = _same_draws(estimator, drawn_from, is_scored)
    learned = _learn(estimator, problem, config, members, start, seed, n_jobs)
    grown = _begun(learned, len(kept))
    trees = [dgt_fit.tree_of(estimator, exercise, problem, config, one, n_jobs) for one in grown]
    record = exercises.parameter_record(estimator)
    forest = ObliqueForest([*kept, *trees], combine=combine, record=record)
    oob = _out_of_bag(forest, exercise, problem, members, seed, n_jobs) if is_scored else {}
    validate_data(estimator, X, skip_check_array=True)
    _adopt(estimator, forest, grown, was_kept=bool(kept))
    estimator._seed, estimator._drawn_from = seed, drawn_from
    for name in _OUT_OF_BAG:  # what an earlier fit found does not stay
        estimator.__dict__.pop(name, None)
    estimator.__dict__.update(oob)
    return learned


def _learn(
    estimator: Estimator,
    problem: Problem,
    config: DGT,
    members: Runs,
    start: ObliqueTree | None,
    seed: int,
    n_jobs: int,
) -> list[Grown]:
    if members.n_trees == 0:
        warnings.warn(
            f"warm_start=True and n_estimators={estimator.n_estimators}, which is how many trees "
            "there are: none is added.",
            UserWarning,
            stacklevel=4,
        )
        return []
    return learn_forest(
        problem,
        config,
        members,
        start=start,
        n_jobs=n_jobs,
        seed=seed,
        callbacks=exercises.callbacks_of(estimator, "tree"),
    )


def _begun(grown: list[Grown], n_kept: int) -> list[Grown]:
    """Leave out the trees that an interrupt kept from their first pass, and those after them.

    A forest's trees are numbered without gaps, and there is at least one.
    """
    n_begun = next((i for i, one in enumerate(grown) if not one.history), len(grown))
    return grown[: max(n_begun, 0 if n_kept else 1)]


def _adopt(
    estimator: Estimator, forest: ObliqueForest, grown: Sequence[Grown], *, was_kept: bool
) -> None:
    history = [epoch for one in grown for epoch in one.history]
    passes = [exercises.n_passes(one) for one in grown]
    if was_kept:
        history = [*estimator.history_, *history]
        passes.append(estimator.n_iter_)
    estimator.n_features_in_ = forest.n_features
    estimator.forest_ = forest
    estimator.history_ = history
    estimator.n_iter_ = max(passes)


def _kept(estimator: Estimator, n_trees: int) -> tuple[Sequence[ObliqueTree], int]:
    """Return the trees of an earlier fit that stay, and the seed that all trees follow from."""
    goes_on = parameters.flag("warm_start", estimator.warm_start)
    if not (goes_on and hasattr(estimator, "forest_")):
        return (), exercises.drawn_seed(estimator.random_state)
    trees = estimator.forest_.trees
    if n_trees < len(trees):
        raise ValueError(
            f"warm_start=True adds trees: n_estimators={n_trees} must not be less than the "
            f"{len(trees)} there are. Raise it, or give warm_start=False to start anew."
        )
    return trees, estimator._seed


def _members(estimator: Estimator, n_trees: int, first: int) -> Runs:
    is_drawn = parameters.flag("bootstrap", estimator.bootstrap)
    fraction = parameters.real(
        "sample_fraction", estimator.sample_fraction, 0.0, 1.0, open_low=True, open_high=False
    )
    if fraction != 1 and not is_drawn:
        raise ValueError(
            f"sample_fraction={fraction:g} is a part of the rows that are drawn, and "
            "bootstrap=False draws none: give bootstrap=True, or leave sample_fraction at 1."
        )
    return Runs(n_trees, first, fraction if is_drawn else None)


def _check_same_table(kept: ObliqueTree, exercise: Exercise) -> None:
    known = (kept.schema, kept.task, kept.classes, kept.target_names)
    found = (exercise.data.schema, exercise.task, exercise.labels, exercise.target_names)
    if known != found or kept.n_outputs != exercise.n_targets:
        raise ValueError(
            "warm_start=True goes on with the same table: the columns, their levels or means, the "
            "classes or the target differ from those of the earlier fit. Give warm_start=False."
        )


def _same_draws(estimator: Estimator, drawn_from: _Draws, is_scored: bool) -> _Draws | None:
    """Return how all trees drew their rows, None where not alike.

    Which rows a tree saw is found by drawing them anew.
    """
    if drawn_from == estimator._drawn_from:
        return drawn_from
    if is_scored:
        raise ValueError(
            "oob_score=True with warm_start=True needs all trees to draw from the same rows: "
            "bootstrap, sample_fraction or the validation part differ from the earlier fit. Give "
            "warm_start=False, or oob_score=False."
        )
    return None


def _out_of_bag(
    forest: ObliqueForest,
    exercise: Exercise,
    problem: Problem,
    members: Runs,
    seed: int,
    n_jobs: int,
) -> dict[str, Any]:
    """Predict each training row by the trees that did not see it, and score that."""
    rows = problem.train
    total, n_asked = np.zeros((len(rows), forest.n_outputs)), np.zeros(len(rows))
    for number, tree in enumerate(forest.trees):
        unseen = members.drawn(len(rows), seed, number) == 0
        outputs = outputs_of(tree, problem.matrix, rows[unseen], n_jobs)
        total[unseen] += _votes(outputs, exercise.task) if forest.combine == "vote" else outputs
        n_asked[unseen] += 1
    known = n_asked > 0
    if not known.any():
        raise ValueError(
            "oob_score=True, but every tree saw every row. Give more trees or a smaller "
            "sample_fraction."
        )
    predicted = total[known] / n_asked[known, None]
    shown = np.full((len(exercise.data.target), forest.n_outputs), np.nan)
    shown[rows[known]] = predicted
    shown = shown[exercise.data.representatives()]
    score = _score(exercise, problem, rows[known], predicted)
    if exercise.task == "regression":
        return {"oob_score_": score, "oob_prediction_": shown[:, 0] if len(shown.T) == 1 else shown}
    return {"oob_score_": score, "oob_decision_function_": shown}


def _score(exercise: Exercise, problem: Problem, rows: np.ndarray, predicted: np.ndarray) -> float:
    """Return R^2 or the accuracy (all labels right), as `score` does, by the user's weights."""
    target, weight = exercise.data.target[rows], exercise.data.weight_of(rows)
    weight = weight / weight.max()  # sums of weights must not overflow, nor squares of numbers
    if exercise.task == "regression":
        target, predicted = (
            (values - problem.target_center) / problem.target_scale
            for values in (target, predicted)
        )
        # The spread of a single row is nothing to compare with: R^2 is not defined there.
        return float(r2_score(target, predicted, sample_weight=weight)) if len(rows) > 1 else np.nan
    chosen = _votes(predicted, exercise.task)
    if exercise.task == "classification":
        target = np.eye(exercise.n_targets)[target[:, 0].astype(np.int64)]
    return float(np.average((chosen == target).all(axis=1), weights=weight))


def _votes(probabilities: np.ndarray, task: TaskKind) -> np.ndarray:
    """Choose, (n, k) of 0 and 1: the likeliest class, or every label that is likely."""
    if task == "multilabel":
        return (probabilities >= YES).astype(np.float64)
    return np.eye(probabilities.shape[1])[probabilities.argmax(axis=1)]
