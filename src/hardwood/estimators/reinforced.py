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
    """An estimator whose tree is that of a policy."""

    policy_: PolicyTree

    def _adopt(self, X: Any, task: Task, run: Run, learned: Learned, model: PolicyTree) -> None:
        super()._adopt(X, task, run, learned, tree_of(model))
        self.policy_ = model


@dataclass(kw_only=True, eq=False, repr=False)
class ReinforcedTreeClassifier(_ReinforcedParameters, _ReinforcedEstimator, SingleTreeClassifier):
    """A decision tree for classes whose nodes are policies, learned by policy gradients.

    While it is learned, a row goes from node to node by chance: a soft-max of linear scores says
    how likely each branch is. The policies and the scores of the leaves descend together on the
    expected loss, from sampled trajectories or by the exact expectation. What is left when learning
    ends is a hard tree: a row takes the likeliest branch.

    Parameters that are not listed here are the same as in `DGTClassifier`.

    Parameters
    ----------
    max_depth : int, default=8
        Of a perfect tree with two branches at every node, 1 to 16.
    parents : sequence of int, default=None
        Any other topology: for each node the number of its parent, the root first with -1, and
        parents before their children. Nodes may have any number of children; `max_depth` is not
        used then.
    gradient : "exact" or "sampled", default="exact"
        How to compute the gradient. "exact": the expectation over all trajectories; the cost grows
        with the number of nodes. "sampled": an estimate from `n_trajectories` per row, as in the
        paper; the cost grows with the depth.
    n_trajectories : int, default=10
        Trajectories per row, for gradient="sampled".
    baseline : "leave_one_out", "value" or "none", default="leave_one_out"
        What is taken from the cost of a sampled trajectory, to make the estimate less noisy: the
        mean cost of the row's other trajectories; a learned value of the node and the row's class;
        or nothing.
    entropy_bonus : float, default=0.6
        What policies that send rows anywhere are worth when learning begins, as a part of the loss
        of leaves that know nothing; it falls to zero along a line, over the first half of the
        steps. Makes rows try other branches longer.
    temperature : float or pair of floats, default=1.0
        Scores are divided by it. A pair: the first and the last one, geometric in between, over the
        first half of the steps.
    learning_rate : float, default=0.03
        The largest step size of the schedule.
    batch_size : int, default=128
        Rows per step.
    max_epochs : int or "auto", default="auto"
        Largest number of epochs. "auto": 30 to 400, fewer for larger tables.
    l1, l2 : float, default=0.0
        Penalties on the weights of the policies, in standard units.
    loss : "log_loss", "hinge", "squared_error" or Loss, default="log_loss"
        Of a leaf's scores. "hinge" and "squared_error" are of classes coded as 1 and -1, as in the
        paper; several labels have "log_loss". No function: it is evaluated for leaves.
    n_restarts : int, default=1
        Trees learned from different random starts; the one with the smallest loss is kept, on the
        validation part where there is one.
    early_stopping : bool or "auto", default=False
        As in `DGTClassifier`. False: the tree of the last epoch is kept.
    init : ObliqueTree, fitted estimator, "axis", "random", "oc1" or "co2", default=None
        A tree to start from, which gives the topology too, with the same columns and classes; or
        how to grow one greedily (see `GreedyTreeClassifier`). None for random policies.
    n_jobs : int, default=None
        Threads, -1 for all processors; they share the restarts, or the rows of one's batches. The
        tree does not depend on them.
    training : Training, default=None
        Further settings of the training loop. None: Adam and one cosine.

    Attributes
    ----------
    tree_ : ObliqueTree or PolicyTree
        What predicts, reads, draws and saves: an `ObliqueTree` where all nodes have two branches,
        else a `PolicyTree`. It is whole: leaves that no training row reaches have learned from
        trajectories too; ``tree_.simplify()`` drops them.
    policy_ : PolicyTree
        The tree with its policies, which knows the probabilities of leaves.
    classes_ : ndarray of shape (n_classes,)
        The classes; for several labels, their indices.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if all are strings.
    history_ : list of Epoch
        One record per epoch, restart by restart. `train_loss` is that of the trajectories.
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

        `path` is "greedy", the likeliest branch at every node, O(depth); or "most_probable", the
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


@dataclass(kw_only=True, eq=False, repr=False)
class ReinforcedTreeRegressor(_ReinforcedParameters, _ReinforcedEstimator, SingleTreeRegressor):
    """A decision tree for numbers whose nodes are policies, learned by policy gradients.

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
        """Predict each row, (n,) or (n, n_outputs); `path` as of `ReinforcedTreeClassifier`."""
        if _is_greedy(path):
            return super().predict(X)
        self._check_predictable(X)
        return self.policy_.predict(X, path=path, n_jobs=self.n_jobs)


def _is_greedy(path: Any) -> bool:
    return parameters.choice("path", path, get_args(Path)) == "greedy"


def tree_of(policy: PolicyTree) -> ObliqueTree | PolicyTree:
    """Return what predicts: an oblique tree where all nodes have two branches.

    Leaves to which the greedy path leads no training row stay: trajectories went there while the
    tree was learned, and other rows may go there.
    """
    return policy.to_oblique() if policy.is_binary else policy
