"""`learn_from_rewards`: a tree from a black box that rewards what is done."""

from __future__ import annotations

import math
import numbers
import os
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from hardwood.estimators import exercise as exercises
from hardwood.estimators import parameters
from hardwood.estimators.exercise import Exercise
from hardwood.estimators.reinforced import parents_of, policy_of, temperatures, tree_of
from hardwood.estimators.weights import row_weights
from hardwood.learn.reinforced import GrownPolicy, Reinforced, default_training
from hardwood.learn.rewards import Level, Reward, Rewards, learn, row_target
from hardwood.learn.task import Problem, TrainingSet
from hardwood.learn.training import Epoch
from hardwood.model import ObliqueTree, PolicyTree
from hardwood.table import Table

_MAX_SAMPLES = 10_000


@dataclass(frozen=True)
class RewardedTree:
    """What `learn_from_rewards` returns.

    Attributes
    ----------
    tree_
        The hard tree, whose classes are the actions.
    policy_
        The whole tree with its policies.
    history_
        One record per pass; losses are rewards with the other sign.
    """

    tree_: ObliqueTree | PolicyTree
    policy_: PolicyTree
    history_: tuple[Epoch, ...]

    def predict(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Return the best action of each row's leaf, by the greedy path, (n,)."""
        return self.tree_.predict(X, n_jobs=n_jobs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree to a file that `hardwood.load` reads; whole or not at all."""
        self.tree_.save(path)


def learn_from_rewards(
    X: Any,
    reward: Reward,
    *,
    actions: Any,
    level: Level = "row",
    sample_weight: Any = None,
    max_depth: int = 4,
    parents: Any = None,
    n_samples: int = 10,
    exploration: float = 0.1,
    temperature: Any = 1.0,
    learning_rate: float = 0.1,
    batch_size: int = 128,
    max_epochs: int | Literal["auto"] = "auto",
    l1: float = 0.0,
    l2: float = 0.0,
    validation_fraction: float = 0.1,
    early_stopping: bool | Literal["auto"] = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    callbacks: Any = None,
    training: Any = None,
) -> RewardedTree:
    """Learn a tree that chooses actions, by nothing but the rewards of those it tries.

    Trajectories are drawn from the policies of the nodes, and an action from the scores of the leaf
    that each comes to. What a black box then says of the actions moves the policies and the scores.
    No gradient is asked for, and no action is rewarded that was not tried.

    Parameters
    ----------
    X
        The table, (n, p).
    reward
        ``reward(rows, actions)`` is given the numbers of rows of X, (B,), and what was done with
        each, (B,). It returns a number for each of them, or, of ``level="batch"``, one number for
        all of them: then rows are those of one mini-batch, or of the validation part. More is
        better.
    actions
        What can be done: at least two, text, integers or booleans.
    level
        "row" or "batch".
    sample_weight
        (n,) >= 0, what each row counts; None for rows that count the same.
    exploration
        What a nat of entropy of policies and actions is worth when learning begins, in units of the
        reward, of a row or, in the mean over its rows, of a batch; it falls to zero along a line,
        over the first half of the steps.
    max_depth, parents, n_samples, temperature, learning_rate, batch_size, max_epochs, l1
        As of `ReinforcedTreeClassifier`. Each trajectory is compared with the others of its row, or
        of its batch, so there are at least two.
    l2, n_jobs, random_state, verbose, callbacks, training
        As of `ReinforcedTreeClassifier`.
    validation_fraction, early_stopping
        As of `ReinforcedTreeClassifier`: with a validation part the pass with the largest reward on
        it is returned.

    Returns
    -------
    rewarded
        The tree, whose classes are the actions.

    Examples
    --------
    >>> import numpy as np
    >>> from hardwood import learn_from_rewards
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> right = np.where(X[:, 0] > X[:, 1], "go", "stay")
    >>> learned = learn_from_rewards(
    ...     X, lambda rows, done: done == right[rows], actions=["go", "stay"], max_depth=1,
    ...     random_state=0)
    >>> (learned.predict(X) == right).mean() > 0.95
    True
    """
    asked = _Asked(**{name: value for name, value in locals().items() if name not in _ARGUMENTS})
    loss = _rewards_of(reward, actions, level)
    exercise = _exercise_of(X, sample_weight, loss)
    seed = exercises.drawn_seed(random_state)
    stops_early = exercises.stops_early(asked, exercise, compares=False, by_default=False)
    config = _config_of(asked, stops_early)
    fraction = parameters.real("validation_fraction", validation_fraction, 0.0, 1.0)
    problem = Problem.of(
        exercise.data,
        loss,
        n_outputs=config.n_samples,
        validation_fraction=fraction if stops_early else 0.0,
        seed=seed,
    )
    grown = learn(
        problem,
        config,
        n_jobs=parameters.n_threads(n_jobs),
        seed=seed,
        callbacks=exercises.callbacks_of(asked),
    )
    return _rewarded(asked, exercise, problem, config, grown)


_ARGUMENTS = ("X", "reward", "actions", "level", "sample_weight")


class _Asked:
    """The parameters, as estimators hold theirs."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return dict(vars(self))


def _rewards_of(reward: Any, actions: Any, level: Any) -> Rewards:
    if not callable(reward):
        raise TypeError(
            f"reward must be a function of row numbers and actions, got {reward!r:.200}."
        )
    labels = _labels_of(actions)
    chosen = parameters.choice("level", level, get_args(Level))
    return Rewards(reward, tuple(labels.tolist()), chosen, labels)


def _labels_of(actions: Any) -> np.ndarray:
    labels = np.asarray(actions)
    is_list = labels.ndim == 1 and labels.dtype.kind in "biuUTO" and len(labels) >= 2
    # NumPy makes text of what stands beside text, and numbers of booleans: not what was given.
    given = actions if isinstance(actions, list | tuple) else labels
    kinds = {_kind_of(label) for label in given} if is_list else set()
    if len(kinds) != 1 or None in kinds:
        raise ValueError(
            "actions must be a list of at least two texts, integers or booleans, all of one kind, "
            f"got {actions!r:.200}."
        )
    if len(set(labels.tolist())) != len(labels):
        raise ValueError(f"actions must differ from each other, got {labels.tolist()!r:.200}.")
    return labels


def _kind_of(label: Any) -> type | None:
    if isinstance(label, bool | np.bool_):
        return bool
    return next((kind for kind in (str, numbers.Integral) if isinstance(label, kind)), None)


def _exercise_of(X: Any, sample_weight: Any, loss: Rewards) -> Exercise:
    table = Table.of(X)
    data = TrainingSet.of(table, row_target(table.n_rows), row_weights(sample_weight, table.n_rows))
    return Exercise(
        data, "classification", loss, loss.labels, loss.actions, None, len(loss.actions)
    )


def _config_of(asked: Any, stops_early: bool) -> Reinforced:
    return Reinforced(
        parents=parents_of(asked),
        n_samples=parameters.integer("n_samples", asked.n_samples, 2, _MAX_SAMPLES),
        estimator="sampled",
        baseline="none",  # what the engine is told of trajectories is relative already
        entropy=parameters.real("exploration", asked.exploration, 0.0, math.inf),
        temperature=temperatures(asked.temperature),
        learning_rate=parameters.real(
            "learning_rate", asked.learning_rate, 0.0, math.inf, open_low=True
        ),
        batch_size=parameters.integer("batch_size", asked.batch_size, 1),
        max_epochs=exercises.max_epochs(asked.max_epochs),
        l1=parameters.real("l1", asked.l1, 0.0, math.inf),
        l2=parameters.real("l2", asked.l2, 0.0, math.inf),
        early_stopping=stops_early,
        training=parameters.training_options(asked.training, default_training()),
    )


def _rewarded(
    asked: Any, exercise: Exercise, problem: Problem, config: Reinforced, grown: GrownPolicy
) -> RewardedTree:
    policy = policy_of(asked, exercise, problem, config, grown)
    policy = policy.replace(
        record={**(policy.record or {}), "learner": learn_from_rewards.__name__}
    )
    tree = tree_of(policy)
    exercises.warn_if_interrupted([grown], "the best tree")
    return RewardedTree(tree, policy, grown.history)
