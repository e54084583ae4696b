"""Reinforced trees for scikit-learn: a tree whose nodes are policies, learned by their gradient.

The method is in `hardwood.learn.reinforced`; `exercise` makes a problem of table, target and
parameters.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any, Literal, cast, get_args

import numpy as np
from sklearn.utils.validation import validate_data

from hardwood.estimators import exercise as exercises
from hardwood.estimators import parameters
from hardwood.estimators.base import TreeClassifier, TreeRegressor
from hardwood.estimators.exercise import Exercise
from hardwood.learn.finish import policy_counts
from hardwood.learn.losses import CrossEntropy, Custom, Hinge, SquaredCodes
from hardwood.learn.reinforced import (
    Baseline,
    Estimator,
    GrownPolicy,
    Reinforced,
    StartPolicy,
    default_training,
    is_binary,
    learn,
    perfect_parents,
    start_from,
    with_first_ways,
)
from hardwood.learn.start import start_of
from hardwood.learn.task import Problem
from hardwood.learn.units import splits_in_raw_units
from hardwood.model import ObliqueTree, PolicyTree
from hardwood.model.kinds.policy_tree import Path
from hardwood.model.structure import Link

_MAX_DEPTH = 16
_MAX_NODES = 2**20
_MAX_SAMPLES = 10_000
_MAX_RESTARTS = 10_000


class ReinforcedTreeClassifier(TreeClassifier):
    """A decision tree for classes whose nodes are policies, learned by policy gradients.

    While it is learned, a row goes from node to node by chance: a soft-max of linear scores says
    how likely each way is. The policies and the scores of the leaves descend together on the
    expected loss, from sampled trajectories or by the exact expectation. What is left when learning
    ends is a hard tree: a row goes the likeliest way.

    Parameters that are not here have the meaning they have for `DGTClassifier`.

    Parameters
    ----------
    max_depth : int, default=8
        Of a perfect tree with two ways at every node, 1 to 16.
    parents : sequence of int, default=None
        Any other topology: for each node the number of its parent, the root first with -1, and
        parents before their children. Nodes may have any number of children; `max_depth` is not
        used then.
    estimator : "exact" or "sampled", default="exact"
        Of the gradient. "exact": the expectation over all trajectories, whose cost grows with the
        number of nodes. "sampled": from `n_samples` trajectories per row, as in the paper, whose
        cost grows with the depth.
    n_samples : int, default=10
        Trajectories per row, for "sampled".
    baseline : "leave-one-out", "value" or "none", default="leave-one-out"
        What is taken from the cost of a sampled trajectory, to make the estimate less noisy: the
        mean cost of the row's other trajectories; a learned value of the node and the row's class;
        or nothing.
    entropy : float, default=0.6
        What policies that send rows anywhere are worth when learning begins, as a part of the loss
        of leaves that know nothing; it falls to zero along a line, over the first half of the
        steps. Makes rows try other ways longer.
    temperature : float or pair of floats, default=1.0
        Scores are divided by it. A pair: the first and the last one, geometric in between, over the
        first half of the steps.
    learning_rate : float, default=0.03
        The largest step size of the schedule.
    batch_size : int, default=128
        Rows per step.
    max_epochs : int or "auto", default="auto"
        Passes over the rows; "auto": 30 to 400, fewer for larger tables.
    l1, l2 : float, default=0.0
        Penalties on the weights of the policies, in standard units.
    loss : "log_loss", "hinge", "squared_error" or Loss, default="log_loss"
        Of a leaf's scores. "hinge" and "squared_error" are of classes coded as 1 and -1, as in the
        paper; several labels have "log_loss". No function: it is evaluated for leaves.
    restarts : int, default=1
        Trees learned from different random starts; the one with the smallest loss is kept, on the
        validation part where there is one.
    early_stopping : bool or "auto", default="auto"
        As of `DGTClassifier`, but "auto" is False: the last pass is returned.
    init : ObliqueTree, fitted estimator, "axis", "random", "oc1" or "co2", default=None
        A tree to start from, which gives the topology too, with the same columns and classes; or
        how to grow one greedily (see `GreedyTreeClassifier`). None for random policies.
    n_jobs : int, default=None
        Threads, -1 for all processors; they share the restarts, or the rows of one's batches. The
        tree does not depend on them.
    training : Training, default=None
        The remaining options of the training loop; None for Adam and one cosine.

    Attributes
    ----------
    tree_ : ObliqueTree or PolicyTree
        What predicts, reads, draws and saves: an `ObliqueTree` where all nodes have two ways, else
        a `PolicyTree`. It is whole: leaves that no training row reaches have learned from
        trajectories too; ``tree_.simplify()`` drops them.
    policy_ : PolicyTree
        The tree with its policies, which knows the probabilities of leaves.
    classes_ : ndarray of shape (n_classes,)
        The classes; where there are several labels, their numbers.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where all are text.
    history_ : list of Epoch
        One record per pass, restart by restart. `train_loss` is that of the trajectories.
    n_iter_ : int
        Passes that the restart which was kept has taken.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import ReinforcedTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = ReinforcedTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    policy_: PolicyTree

    def __init__(
        self,
        *,
        max_depth: int = 8,
        parents: Any = None,
        estimator: Estimator = "exact",
        n_samples: int = 10,
        baseline: Baseline = "leave-one-out",
        entropy: float = 0.6,
        temperature: Any = 1.0,
        learning_rate: float = 0.03,
        batch_size: int = 128,
        max_epochs: int | Literal["auto"] = "auto",
        l1: float = 0.0,
        l2: float = 0.0,
        loss: Any = "log_loss",
        restarts: int = 1,
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        class_weight: Any = None,
        init: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        training: Any = None,
    ) -> None:
        self.max_depth = max_depth
        self.parents = parents
        self.estimator = estimator
        self.n_samples = n_samples
        self.baseline = baseline
        self.entropy = entropy
        self.temperature = temperature
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.l1 = l1
        self.l2 = l2
        self.loss = loss
        self.restarts = restarts
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.class_weight = class_weight
        self.init = init
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.training = training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ReinforcedTreeClassifier:
        """Learn a tree; arguments are those of `DGTClassifier.fit`."""
        exercise = exercises.classification(self, X, y, sample_weight)
        policy, tree, grown = _learn(self, exercise)
        _adopt(self, X, policy, tree, grown)
        self.classes_ = exercise.classes
        self._keep_classes_of_leaves()
        exercises.warn_if_interrupted([grown], "the best tree")
        return self

    def predict(self, X: Any, *, path: Path = "greedy") -> np.ndarray:
        """Predict the class of each row, (n,), or its labels, (n, n_labels) of 0 and 1.

        `path` is "greedy", the likeliest way at every node, O(depth); or "most_probable", the
        likeliest leaf of all, by best-first search, which scores all nodes where the policies are
        not sure of anything.
        """
        if _is_greedy(path):
            return super().predict(X)
        self._check_predictable(X)
        if self.policy_.task == "multilabel":
            return self.policy_.predict(X, path=path, n_jobs=self.n_jobs)
        leaves = self.policy_.apply(X, path=path, n_jobs=self.n_jobs)
        classes: np.ndarray = self.classes_[self.policy_.values.argmax(axis=1)][leaves]
        return classes

    def predict_proba(self, X: Any, *, path: Path = "greedy") -> np.ndarray:
        """Predict the probability of each class, or of each label; `path` as of `predict`."""
        if _is_greedy(path):
            return super().predict_proba(X)
        self._check_predictable(X)
        return self.policy_.predict_proba(X, path=path, n_jobs=self.n_jobs)


class ReinforcedTreeRegressor(TreeRegressor):
    """A decision tree for numbers whose nodes are policies, learned by policy gradients.

    Parameters and attributes are those of `ReinforcedTreeClassifier`, without `class_weight` and
    `classes_`, and:

    Parameters
    ----------
    loss : str or Loss, default="squared_error"
        As of `DGTRegressor`, but no function.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from hardwood import ReinforcedTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = ReinforcedTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    policy_: PolicyTree

    def __init__(
        self,
        *,
        max_depth: int = 8,
        parents: Any = None,
        estimator: Estimator = "exact",
        n_samples: int = 10,
        baseline: Baseline = "leave-one-out",
        entropy: float = 0.6,
        temperature: Any = 1.0,
        learning_rate: float = 0.03,
        batch_size: int = 128,
        max_epochs: int | Literal["auto"] = "auto",
        l1: float = 0.0,
        l2: float = 0.0,
        loss: Any = "squared_error",
        restarts: int = 1,
        validation_fraction: float = 0.1,
        early_stopping: bool | Literal["auto"] = "auto",
        init: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
        training: Any = None,
    ) -> None:
        self.max_depth = max_depth
        self.parents = parents
        self.estimator = estimator
        self.n_samples = n_samples
        self.baseline = baseline
        self.entropy = entropy
        self.temperature = temperature
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.l1 = l1
        self.l2 = l2
        self.loss = loss
        self.restarts = restarts
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.init = init
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.training = training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ReinforcedTreeRegressor:
        """Learn a tree; arguments are those of `DGTRegressor.fit`."""
        exercise = exercises.regression(self, X, y, sample_weight)
        policy, tree, grown = _learn(self, exercise)
        _adopt(self, X, policy, tree, grown)
        self.n_outputs_ = exercise.n_targets
        exercises.warn_if_interrupted([grown], "the best tree")
        return self

    def predict(self, X: Any, *, path: Path = "greedy") -> np.ndarray:
        """Predict each row, (n,) or (n, n_outputs); `path` as of `ReinforcedTreeClassifier`."""
        if _is_greedy(path):
            return super().predict(X)
        self._check_predictable(X)
        return self.policy_.predict(X, path=path, n_jobs=self.n_jobs)


AnyReinforced = ReinforcedTreeClassifier | ReinforcedTreeRegressor


def _is_greedy(path: Any) -> bool:
    return parameters.choice("path", path, get_args(Path)) == "greedy"


def _learn(
    estimator: AnyReinforced, exercise: Exercise
) -> tuple[PolicyTree, ObliqueTree | PolicyTree, GrownPolicy]:
    """Check the parameters, pose the problem, learn, and make the trees."""
    if isinstance(exercise.loss, Custom):
        raise ValueError(
            "Reinforced trees evaluate their loss for single leaves, so loss must be a name or a "
            "loss object, not a function. For what has no gradient see hardwood.learn_from_rewards."
        )
    seed = exercises.drawn_seed(estimator.random_state)
    n_jobs = parameters.n_threads(estimator.n_jobs)
    restarts = parameters.integer("restarts", estimator.restarts, 1, _MAX_RESTARTS)
    stops_early = exercises.stops_early(
        estimator, exercise, compares=restarts > 1, by_default=False
    )
    problem = exercises.problem_of(estimator, exercise, stops_early, seed)
    start = _start_of(estimator, exercise, problem, n_jobs, seed)
    parents = start.parents if start else parents_of(estimator)
    config = _config_of(estimator, parents, restarts, stops_early)
    grown = learn(
        problem,
        config,
        start=start,
        n_jobs=n_jobs,
        seed=seed,
        callbacks=exercises.callbacks_of(estimator),
    )
    policy = policy_of(estimator, exercise, problem, config, grown)
    return policy, tree_of(policy), grown


def parents_of(estimator: Any) -> tuple[int, ...]:
    """Return the topology that is asked for."""
    if estimator.parents is None:
        return perfect_parents(parameters.integer("max_depth", estimator.max_depth, 1, _MAX_DEPTH))
    given = estimator.parents
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, Sequence) or isinstance(given, str | bytes) or len(given) < 2:
        raise ValueError(
            "parents must be None or a sequence of at least 2 node numbers, the root first with "
            f"-1, got {given!r:.200}."
        )
    if len(given) > _MAX_NODES:
        raise ValueError(f"parents must have at most {_MAX_NODES} nodes, got {len(given)}.")
    for node, parent in enumerate(given):
        is_right = isinstance(parent, numbers.Integral) and not isinstance(parent, bool)
        if not (is_right and (parent == -1 if node == 0 else 0 <= parent < node)):
            expected = "-1, it is the root" if node == 0 else f"a number from 0 to {node - 1}"
            raise ValueError(
                f"parents[{node}] must be {expected}, got {parent!r}. Parents come before their "
                "children."
            )
    if len(set(given[1:])) == len(given) - 1:
        raise ValueError(
            "parents must have a node with two children or more, else there is nothing to decide; "
            f"got {list(given)!r:.200}."
        )
    return tuple(int(parent) for parent in given)


def _config_of(
    estimator: AnyReinforced, parents: tuple[int, ...], restarts: int, stops_early: bool
) -> Reinforced:
    return Reinforced(
        parents=parents,
        n_samples=parameters.integer("n_samples", estimator.n_samples, 1, _MAX_SAMPLES),
        baseline=parameters.choice("baseline", estimator.baseline, get_args(Baseline)),
        estimator=parameters.choice("estimator", estimator.estimator, get_args(Estimator)),
        entropy=parameters.real("entropy", estimator.entropy, 0.0, math.inf),
        temperature=temperatures(estimator.temperature),
        learning_rate=parameters.real(
            "learning_rate", estimator.learning_rate, 0.0, math.inf, open_low=True
        ),
        batch_size=parameters.integer("batch_size", estimator.batch_size, 1),
        max_epochs=exercises.max_epochs(estimator.max_epochs),
        l1=parameters.real("l1", estimator.l1, 0.0, math.inf),
        l2=parameters.real("l2", estimator.l2, 0.0, math.inf),
        restarts=restarts,
        early_stopping=stops_early,
        training=parameters.training_options(estimator.training, default_training()),
    )


def temperatures(value: Any) -> tuple[float, float]:
    """Return the first and the last temperature."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    pair = value if isinstance(value, list | tuple) else (value, value)
    if len(pair) != 2:
        raise ValueError(f"temperature must be a number or a pair of numbers, got {value!r}.")
    first, last = (parameters.real("temperature", t, 1e-3, 1e3) for t in pair)
    return first, last


def _start_of(
    estimator: AnyReinforced, exercise: Exercise, problem: Problem, n_jobs: int, seed: int
) -> StartPolicy | None:
    if estimator.init is None:
        return None
    if estimator.parents is not None:
        raise ValueError(
            "init gives the topology, and so does parents: give one of them, or max_depth alone."
        )
    max_depth = parameters.integer("max_depth", estimator.max_depth, 1, _MAX_DEPTH)
    tree = start_of(estimator.init, exercise, problem, max_depth, n_jobs=n_jobs, seed=seed)
    assert tree is not None
    return start_from(tree, problem, n_jobs=n_jobs)


def policy_of(
    estimator: Any, exercise: Exercise, problem: Problem, config: Reinforced, grown: GrownPolicy
) -> PolicyTree:
    """Make the policy tree of what was learned: in raw units, counted."""
    policy = bare_policy(exercise, problem, config, grown).replace(
        record=exercises.record_of(estimator, exercise, problem, grown)
    )
    return policy.replace(
        counts=policy_counts(exercise.data, policy, parameters.n_threads(estimator.n_jobs))
    )


def bare_policy(
    exercise: Exercise, problem: Problem, config: Reinforced, grown: GrownPolicy
) -> PolicyTree:
    """Make the policy tree of what was learned, in raw units; without counts and record."""
    weights, bias = splits_in_raw_units(grown.weights, grown.bias, problem, is_sparse=config.l1 > 0)
    weights, bias = with_first_ways(config.parents, weights, bias)
    if isinstance(problem.loss, Hinge | SquaredCodes):  # their scores are not the link's
        scores = CrossEntropy().scores(problem.leaf_values(grown.scores))
    else:
        no_slopes = np.zeros((*grown.scores.shape, 0))
        scores, _ = problem.linear_leaves(grown.scores, no_slopes)
    return PolicyTree(
        config.parents,
        weights,
        bias,
        scores,
        schema=exercise.data.schema,
        task=exercise.task,
        link=cast(Link, problem.loss.link_name),
        classes=exercise.labels,
        target_names=exercise.target_names,
    )


def tree_of(policy: PolicyTree) -> ObliqueTree | PolicyTree:
    """Return what predicts: an oblique tree where all nodes have two ways.

    Leaves to which the greedy path leads no training row stay: trajectories went there while the
    tree was learned, and other rows may go there.
    """
    return policy.to_oblique() if is_binary(policy.parents.tolist()) else policy


def _adopt(
    estimator: AnyReinforced,
    X: Any,
    policy: PolicyTree,
    tree: ObliqueTree | PolicyTree,
    grown: GrownPolicy,
) -> None:
    """Set what was learned, all at once: a failed `fit` leaves an earlier one as it was."""
    validate_data(estimator, X, skip_check_array=True)
    estimator.n_features_in_ = policy.n_features
    estimator.policy_ = policy
    estimator.tree_ = tree  # type: ignore[assignment]  # the same verbs
    estimator.history_ = list(grown.history)
    estimator.n_iter_ = exercises.n_passes(grown)
