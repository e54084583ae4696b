"""`learn_from_rewards`: a tree learned from the rewards of its actions."""

from __future__ import annotations

import numbers
import os
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from sklearn.base import BaseEstimator

from hardwood import parameters
from hardwood.estimators.base import EpochParameters
from hardwood.estimators.fit import (
    clock_of,
    divided,
    parameter_record,
    run_of,
    warn_if_interrupted,
)
from hardwood.estimators.reinforced import tree_of
from hardwood.learn.finish import finished
from hardwood.learn.learner import drawn_seed
from hardwood.learn.rewards import Reward, RewardedPolicies, RewardPer, Rewards, row_target
from hardwood.learn.task import Task
from hardwood.learn.training import Epoch
from hardwood.model import ObliqueTree, PolicyTree
from hardwood.parameters import parameters_of
from hardwood.table import Table
from hardwood.table.weights import row_weights


@dataclass(frozen=True)
class RewardedTree:
    """What `learn_from_rewards` returns.

    Attributes
    ----------
    tree_
        The hard tree, whose classes are the actions.
    policy_
        The tree with its policies.
    history_
        One record per epoch; losses are negative rewards.
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
    reward_per: RewardPer = "row",
    sample_weight: Any = None,
    max_depth: int = 4,
    parents: Any = None,
    n_trajectories: int = 10,
    entropy_bonus: float = 0.1,
    temperature: Any = 1.0,
    learning_rate: float = 0.1,
    batch_size: int = 128,
    max_epochs: int | Literal["auto"] = "auto",
    l1: float = 0.0,
    l2: float = 0.0,
    validation_fraction: float = 0.1,
    early_stopping: bool | Literal["auto"] = False,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    callbacks: Any = None,
    training: Any = None,
) -> RewardedTree:
    """Learn a tree that chooses actions, only from the rewards of the actions it tries.

    Each trajectory is drawn from the policies of the nodes, and its action from the scores of the
    leaf that it reaches. The rewards of these actions update the policies and the scores. The
    reward function may be a black box: it needs no gradient.

    Parameters
    ----------
    X
        The table, (n, p).
    reward
        A function ``reward(rows, actions)`` of row numbers of X, (B,), and the action chosen for
        each, (B,). It returns one number per row, or, with ``reward_per="batch"``, one number for
        all of them: the rows of a mini-batch, or the validation rows. Larger is better.
    actions
        The actions to choose from: at least two texts, integers or booleans.
    reward_per
        "row" or "batch": whether the function returns one reward per row or one for all.
    sample_weight
        Weight of each row, (n,), >= 0; None for equal weights.
    entropy_bonus
        Initial bonus per nat of entropy of the policies and actions, in units of the reward (with
        ``reward_per="batch"``, on average over the rows of the batch). It falls linearly to zero
        over the first half of the steps.
    max_depth, parents, n_trajectories, temperature, learning_rate, batch_size, max_epochs, l1
        Same as in `ReinforcedTreeClassifier`, except that `n_trajectories` is at least 2: each
        trajectory is compared with the others of its row, or of its batch.
    l2, n_jobs, random_state, verbose, callbacks, training
        Same as in `ReinforcedTreeClassifier`.
    validation_fraction, early_stopping
        Same as in `ReinforcedTreeClassifier`. With validation rows, the tree of the epoch with the
        largest reward on them is returned.

    Returns
    -------
    rewarded
        The learned tree; its classes are the actions.

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
    asked = _RewardParameters(
        max_depth=max_depth,
        parents=parents,
        n_trajectories=n_trajectories,
        entropy_bonus=entropy_bonus,
        temperature=temperature,
        learning_rate=learning_rate,
        batch_size=batch_size,
        max_epochs=max_epochs,
        l1=l1,
        l2=l2,
        validation_fraction=validation_fraction,
        early_stopping=early_stopping,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
        callbacks=callbacks,
        training=training,
    )
    clock = clock_of(asked)
    learner = parameters_of(RewardedPolicies, asked)
    task = _read(X, sample_weight, _rewards_of(reward, actions, reward_per))
    run = run_of(asked, learner, task, clock, drawn_seed(random_state))
    task = divided(asked, learner, task, run.seed)
    with run.progress:
        learned = learner.fit(task, run)
    record = {**parameter_record(asked), "learner": learn_from_rewards.__name__}
    policy = finished(learned, task, record, run.n_jobs)
    warn_if_interrupted(learned, learner, stacklevel=2)
    return RewardedTree(tree_of(policy), policy, learned.history or ())


@dataclass(kw_only=True, eq=False, repr=False)
class _RewardParameters(EpochParameters, BaseEstimator):
    max_depth: int = 4
    parents: Any = None
    n_trajectories: int = 10
    entropy_bonus: float = 0.1
    temperature: Any = 1.0
    learning_rate: float = 0.1
    batch_size: int = 128
    max_epochs: int | Literal["auto"] = "auto"
    l1: float = 0.0
    l2: float = 0.0
    early_stopping: bool | Literal["auto"] = False
    training: Any = None


def _rewards_of(reward: Any, actions: Any, reward_per: Any) -> Rewards:
    if not callable(reward):
        raise TypeError(
            f"reward must be a function of row numbers and actions, got {reward!r:.200}."
        )
    labels = _labels_of(actions)
    chosen = parameters.choice("reward_per", reward_per, get_args(RewardPer))
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


def _read(X: Any, sample_weight: Any, rewards: Rewards) -> Task:
    table = Table.of(X)
    return Task.of(
        table,
        row_target(table.n_rows),
        row_weights(sample_weight, table.n_rows),
        kind="classification",
        loss=rewards,
        classes=rewards.labels,
        given=X,
    )
