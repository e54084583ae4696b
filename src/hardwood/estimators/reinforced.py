"""Reinforced trees for scikit-learn: a tree whose nodes are policies, learned by their gradient.

The method is in `hardwood.learn.reinforced`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from hardwood import parameters
from hardwood.estimators.base import (
    EpochParameters,
    SingleTreeClassifier,
    SingleTreeRegressor,
    TreeEstimator,
)
from hardwood.learn.learner import Learned, Learner, Run
from hardwood.learn.reinforced import Baseline, Gradient, Reinforced
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree, PolicyTree
from hardwood.model.kinds.policy_tree import Path


@dataclass(kw_only=True, eq=False, repr=False)
class _ReinforcedParameters(EpochParameters):
    _learner_type: ClassVar[type[Learner]] = Reinforced

    max_depth: int = 8
    parents: Any = None
    gradient: Gradient = "exact"
    n_trajectories: int = 10
    baseline: Baseline = "leave_one_out"
    entropy_bonus: float = 0.6
    temperature: Any = 1.0
    learning_rate: float = 0.03
    batch_size: int = 128
    max_epochs: int | Literal["auto"] = "auto"
    l1: float = 0.0
    l2: float = 0.0
    n_restarts: int = 1
    init: Any = None
    early_stopping: bool | Literal["auto"] = False
    training: Any = None


class _ReinforcedEstimator(TreeEstimator):
    """An estimator that learns a policy tree."""

    policy_: PolicyTree

    def _adopt(self, X: Any, task: Task, run: Run, learned: Learned, model: PolicyTree) -> None:
        super()._adopt(X, task, run, learned, tree_of(model))
        self.policy_ = model


@dataclass(kw_only=True, eq=False, repr=False)
class ReinforcedTreeClassifier(_ReinforcedParameters, _ReinforcedEstimator, SingleTreeClassifier):
    """A decision tree for classification whose nodes are policies, learned by policy gradients.

    During learning, a row moves from node to node at random: a softmax of linear scores gives the
    probability of each branch. Policies and leaf scores descend jointly on the expected loss, which
    is exact or estimated from sampled trajectories. The result is a hard tree, in which a row takes
    the most probable branch.

    Parameters that are not listed here are the same as in `DGTClassifier`.

    Parameters
    ----------
    max_depth : int, default=8
        Depth of a perfect binary tree, 1 to 16.
    parents : sequence of int, default=None
        Another topology: the parent of each node, first -1 for the root, with parents before their
        children. Nodes may have any number of children. `max_depth` is then not used.
    gradient : "exact" or "sampled", default="exact"
        How to compute the gradient. "exact": the expectation over all trajectories; the cost grows
        with the number of nodes. "sampled": an estimate from `n_trajectories` per row, as in the
        paper; the cost grows with the depth.
    n_trajectories : int, default=10
        Trajectories per row, for gradient="sampled".
    baseline : "leave_one_out", "value" or "none", default="leave_one_out"
        What is subtracted from the loss of a sampled trajectory to reduce the variance of the
        gradient: the mean loss of the row's other trajectories, a learned value of the node and the
        row's class, or nothing.
    entropy_bonus : float, default=0.6
        Initial bonus for policies that choose all branches with equal probability, as a fraction of
        the loss of leaves with zero scores. It falls linearly to zero over the first half of the
        steps. A larger bonus gives more exploration.
    temperature : float or pair of floats, default=1.0
        Divisor of the scores. A pair changes geometrically from the first value to the last, over
        the first half of the steps.
    learning_rate : float, default=0.03
        Largest step size of the schedule.
    batch_size : int, default=128
        Rows per gradient step.
    max_epochs : int or "auto", default="auto"
        Largest number of epochs. "auto": 30 to 400, fewer for larger tables.
    l1, l2 : float, default=0.0
        Penalties on the weights of the policies, in standard units.
    loss : "log_loss", "hinge", "squared_error" or Loss, default="log_loss"
        The loss of a leaf's scores. "hinge" and "squared_error" code classes as 1 and -1, as in the
        paper. Several labels need "log_loss". Functions are not accepted, because the loss is
        evaluated for leaves.
    n_restarts : int, default=1
        Number of trees learned from different random starts. The one with the smallest (validation)
        loss is kept.
    early_stopping : bool or "auto", default=False
        As in `DGTClassifier`. False: the tree of the last epoch is kept.
    init : ObliqueTree, fitted estimator, "axis", "random", "oc1" or "co2", default=None
        A tree to start from, with the same columns and classes, which also gives the topology; or
        how to grow a greedy tree to start from (see `GreedyTreeClassifier`). None for random
        policies.
    n_jobs : int, default=None
        Number of threads, which share the restarts or the rows of a batch; -1 for all processors.
        The tree does not depend on it.
    training : Training, default=None
        Further settings of the training loop. None: Adam and one cosine cycle.

    Attributes
    ----------
    tree_ : ObliqueTree or PolicyTree
        The learned tree: an `ObliqueTree` if all nodes have two branches, else a `PolicyTree`. It
        includes leaves that no training row reaches, because they have learned from trajectories;
        ``tree_.simplify()`` drops them.
    policy_ : PolicyTree
        The tree with its policies, which gives the probabilities of leaves.
    classes_ : ndarray of shape (n_classes,)
        The classes; for several labels, their indices.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if all are strings.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column in the variance of the predictions.
    history_ : list of Epoch
        One record per epoch, restart by restart. `train_loss` is the loss of the trajectories.
    n_iter_ : int
        Number of epochs of the best restart.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import ReinforcedTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = ReinforcedTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    loss: Any = "log_loss"
    class_weight: Any = None

    def predict(self, X: Any, *, path: Path = "greedy") -> np.ndarray:
        """Predict the class of each row, (n,), or its labels, (n, n_labels) of 0 and 1.

        `path`: "greedy" takes the most probable branch at every node, in O(depth).
        "most_probable" takes the most probable of all leaves, by best-first search, which may have
        to score all nodes.
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
        """Predict the probability of each class, or of each label; `path` is as in `predict`."""
        if _is_greedy(path):
            return super().predict_proba(X)
        self._check_predictable(X)
        return self.policy_.predict_proba(X, path=path, n_jobs=self.n_jobs)


@dataclass(kw_only=True, eq=False, repr=False)
class ReinforcedTreeRegressor(_ReinforcedParameters, _ReinforcedEstimator, SingleTreeRegressor):
    """A decision tree for regression whose nodes are policies, learned by policy gradients.

    Parameters and attributes are those of `ReinforcedTreeClassifier`, without `class_weight` and
    `classes_`, and:

    Parameters
    ----------
    loss : str or Loss, default="squared_error"
        Same as in `DGTRegressor`, except that functions are not accepted.

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

    loss: Any = "squared_error"

    def predict(self, X: Any, *, path: Path = "greedy") -> np.ndarray:
        """Predict each row, (n,) or (n, n_outputs); `path` is as in the classifier."""
        if _is_greedy(path):
            return super().predict(X)
        self._check_predictable(X)
        return self.policy_.predict(X, path=path, n_jobs=self.n_jobs)


def _is_greedy(path: Any) -> bool:
    return parameters.choice("path", path, get_args(Path)) == "greedy"


def tree_of(policy: PolicyTree) -> ObliqueTree | PolicyTree:
    """Return an oblique tree if all nodes have two branches, else the policy tree itself.

    Leaves that no training row reaches by the greedy path are kept: they have learned from
    trajectories, and other rows may reach them.
    """
    return policy.to_oblique() if policy.is_binary else policy
