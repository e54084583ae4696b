"""TEL for scikit-learn: soft oblique trees that are learned together.

The method is in `hardwood.learn.tel`; `exercise` makes a problem of table, target and parameters.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

from sklearn.utils.validation import validate_data

from hardwood.estimators import exercise as exercises
from hardwood.estimators import parameters
from hardwood.estimators.base import EnsembleClassifier, EnsembleRegressor
from hardwood.estimators.exercise import Exercise
from hardwood.learn.finish import with_counts
from hardwood.learn.task import Problem
from hardwood.learn.tel import TEL, Activation, GrownEnsemble, default_training, learn
from hardwood.learn.units import splits_in_raw_units
from hardwood.model import TreeEnsemble

_MAX_TREES = 1000
_MAX_DEPTH = 12
_MAX_RESTARTS = 10_000


class TELClassifier(EnsembleClassifier):
    """Soft oblique trees for classes, whose scores add up, learned together (TEL).

    A row goes to both sides of a split that is not sure of it, and reaches few leaves once the
    trees have learned: learning and predicting cost as much as the nodes that are reached.

    Parameters that are not here have the meaning they have for `DGTClassifier`.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees, whose scores are added up.
    max_depth : int, default=4
        Splits on the way from the root to a leaf, 1 to 12.
    gamma : float, default=1.0
        Width of the band around a split in which a row goes to both sides, in units of the splits'
        scores. The smaller, the fewer leaves a row reaches, and the less a split learns from the
        rows beside it.
    activation : "smooth_step", "smooth_step_5" or "logistic", default="smooth_step"
        From a score to the share that goes right: polynomials of degree 3 or 5, which are 0 and 1
        outside of the band; or the logistic function of score / gamma, with which every row
        reaches every leaf, for comparison.
    learning_rate : float, default=0.01
        The largest step size of the schedule.
    batch_size : int, default=128
        Rows per step.
    max_epochs : int or "auto", default="auto"
        Passes over the rows; "auto": 30 to 400, fewer for larger tables.
    l2 : float, default=0.0
        Penalty on the weights of the splits, in standard units.
    batch_norm : bool, default=True
        Whether columns are normalised by the moments of each batch while learning, and by those of
        all training rows afterwards. Else they are in the units of the table's encoding.
    loss : "log_loss", Loss or function, default="log_loss"
        As of `DGTClassifier`.
    restarts : int, default=1
        Ensembles learned from different random starts, side by side on `n_jobs` threads, which have
        nothing else to share.
    keep : "best" or "mean", default="best"
        Of several restarts: the ensemble with the smallest loss, on the validation part where there
        is one; or all of them, averaged, which is steadier, and an ensemble of so many times as
        many trees.
    training : Training, default=None
        The remaining options of the training loop; None for Adam, without a limit on gradients, and
        one cosine.

    Attributes
    ----------
    ensemble_ : TreeEnsemble
        The trees: what predicts, saves, and makes hard trees of itself (`harden`).
    classes_ : ndarray of shape (n_classes,)
        The classes; where there are several labels, their numbers.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where all are text.
    history_ : list of Epoch
        One record per pass, restart by restart; `reachable_leaves` is how many leaves a row has
        reached in a tree, in the mean over the pass.
    n_iter_ : int
        Passes that the restart which was kept has taken.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import TELClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TELClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> print(model.hardening_cost(X, y))  # doctest: +ELLIPSIS
    log loss: ...
    """

    def __init__(
        self,
        *,
        n_estimators: int = 10,
        max_depth: int = 4,
        gamma: float = 1.0,
        activation: Activation = "smooth_step",
        learning_rate: float = 0.01,
        batch_size: int = 128,
        max_epochs: int | Literal["auto"] = "auto",
        l2: float = 0.0,
        batch_norm: bool = True,
        loss: Any = "log_loss",
        restarts: int = 1,
        keep: Literal["best", "mean"] = "best",
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        training: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.gamma = gamma
        self.activation = activation
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.l2 = l2
        self.batch_norm = batch_norm
        self.loss = loss
        self.restarts = restarts
        self.keep = keep
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.training = training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TELClassifier:
        """Learn an ensemble; arguments are those of `DGTClassifier.fit`."""
        exercise = exercises.classification(self, X, y, sample_weight)
        ensemble, grown = _learn(self, exercise)
        _adopt(self, X, ensemble, grown)
        self.classes_ = exercise.classes
        exercises.warn_if_interrupted([grown], "the best ensemble")
        return self


class TELRegressor(EnsembleRegressor):
    """Soft oblique trees for numbers, whose scores add up, learned together (TEL).

    Parameters and attributes are those of `TELClassifier`, without `class_weight` and `classes_`,
    and:

    Parameters
    ----------
    loss : str, Loss or function, default="squared_error"
        As of `DGTRegressor`.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from hardwood import TELRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TELRegressor(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    def __init__(
        self,
        *,
        n_estimators: int = 10,
        max_depth: int = 4,
        gamma: float = 1.0,
        activation: Activation = "smooth_step",
        learning_rate: float = 0.01,
        batch_size: int = 128,
        max_epochs: int | Literal["auto"] = "auto",
        l2: float = 0.0,
        batch_norm: bool = True,
        loss: Any = "squared_error",
        restarts: int = 1,
        keep: Literal["best", "mean"] = "best",
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        training: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.gamma = gamma
        self.activation = activation
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.l2 = l2
        self.batch_norm = batch_norm
        self.loss = loss
        self.restarts = restarts
        self.keep = keep
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.training = training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TELRegressor:
        """Learn an ensemble; arguments are those of `DGTRegressor.fit`."""
        exercise = exercises.regression(self, X, y, sample_weight)
        ensemble, grown = _learn(self, exercise)
        _adopt(self, X, ensemble, grown)
        self.n_outputs_ = exercise.n_targets
        exercises.warn_if_interrupted([grown], "the best ensemble")
        return self


Estimator = TELClassifier | TELRegressor


def _learn(estimator: Estimator, exercise: Exercise) -> tuple[TreeEnsemble, GrownEnsemble]:
    """Check the parameters, pose the problem, learn, and make the ensemble."""
    seed = exercises.drawn_seed(estimator.random_state)
    restarts = parameters.integer("restarts", estimator.restarts, 1, _MAX_RESTARTS)
    compares = restarts > 1 and estimator.keep == "best"
    stops_early = exercises.stops_early(estimator, exercise, compares=compares, by_default=True)
    config = _config_of(estimator, stops_early, restarts)
    problem = exercises.problem_of(estimator, exercise, stops_early, seed)
    grown = learn(
        problem,
        config,
        n_jobs=parameters.n_threads(estimator.n_jobs),
        seed=seed,
        callbacks=exercises.callbacks_of(estimator),
    )
    return _ensemble_of(estimator, exercise, problem, config, grown), grown


def _config_of(estimator: Estimator, stops_early: bool, restarts: int) -> TEL:
    return TEL(
        n_trees=parameters.integer("n_estimators", estimator.n_estimators, 1, _MAX_TREES),
        max_depth=parameters.integer("max_depth", estimator.max_depth, 1, _MAX_DEPTH),
        gamma=parameters.real("gamma", estimator.gamma, 1e-6, 1e6, open_high=False),
        activation=parameters.choice("activation", estimator.activation, get_args(Activation)),
        learning_rate=parameters.real(
            "learning_rate", estimator.learning_rate, 0.0, math.inf, open_low=True
        ),
        batch_size=parameters.integer("batch_size", estimator.batch_size, 1),
        max_epochs=exercises.max_epochs(estimator.max_epochs),
        l2=parameters.real("l2", estimator.l2, 0.0, math.inf),
        batch_norm=parameters.flag("batch_norm", estimator.batch_norm),
        restarts=restarts,
        keep=parameters.choice("keep", estimator.keep, ("best", "mean")),
        early_stopping=stops_early,
        training=parameters.training_options(estimator.training, default_training()),
    )


def _ensemble_of(
    estimator: Estimator, exercise: Exercise, problem: Problem, config: TEL, grown: GrownEnsemble
) -> TreeEnsemble:
    """Make the ensemble of what was learned, in raw units."""
    shape = grown.weights.shape
    weights, bias = splits_in_raw_units(
        grown.weights.reshape(-1, shape[2]), grown.bias.ravel(), problem
    )
    ensemble = TreeEnsemble(
        weights.reshape(shape),
        bias.reshape(shape[:2]),
        problem.summed_scores(grown.scores),
        gamma=config.gamma,
        activation=config.activation,
        schema=problem.schema,
        task=exercise.task,
        link=problem.loss.link_name,
        classes=exercise.labels,
        target_names=exercise.target_names,
        record=exercises.record_of(estimator, exercise, problem, grown),
    )
    return with_counts(ensemble, exercise.data)


def _adopt(estimator: Estimator, X: Any, ensemble: TreeEnsemble, grown: GrownEnsemble) -> None:
    """Set what was learned, all at once: a failed `fit` leaves an earlier one as it was."""
    validate_data(estimator, X, skip_check_array=True)
    estimator.n_features_in_ = ensemble.n_features
    estimator.ensemble_ = ensemble
    estimator.history_ = list(grown.history)
    estimator.n_iter_ = exercises.n_passes(grown)
