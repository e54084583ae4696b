r"""Reinforced trees: the tree as a policy.

Leon, Denoyer. Policy-gradient Methods for Decision Trees. ESANN 2016. [Reinforced16]

A row moves from the root to a leaf at random: at each node, a softmax of linear scores gives the
probability of each branch (Sec. 2.2). Policies and leaves are learned jointly, by the gradient of
the expected loss, which is estimated from M trajectories per row (Sec. 2.3):

.. math::

    \nabla J \approx \frac1N \frac1M \sum_{i,h} \Big[ \sum_j \nabla \log \pi(n_{j+1} | n_j, x_i) \,
    (\Delta_h - \text{baseline}) + \nabla \Delta_h \Big]

The first term moves the policies away from trajectories with a large loss; the second updates the
leaves that were reached.

===========  ==========================  ==================================================
paper        here                        shape
===========  ==========================  ==================================================
theta        weights, bias               (m, c), (m,)   a row per branch but the first of a node
alpha        scores                      (L, k)
pi           softmax over siblings
H, M         trajectory, ``n_trajectories``
Delta        ``loss``
D            ``max_depth``               or any topology: ``parents``
===========  ==========================  ==================================================

The step is native (``native/learn/reinforced/step.hpp``, ``learner.hpp``); the NumPy reference is
``tests/reference/reinforced.py``.

What differs from the paper:

1. The first branch of a node has the score 0, because only differences of scores matter in a
   softmax. A node with two branches is then the split that it becomes.
2. A baseline is subtracted from the loss of a trajectory. The estimate stays unbiased, and its
   variance decreases. The baseline is the mean loss of the row's other trajectories, or a learned
   value of the node (of the node and the row's class).
3. The exact expectation over all trajectories (``gradient="exact"``), which needs the scores of all
   branches for every row.
4. A bonus for the entropy of the policies, which falls to zero (`entropy_bonus`), and a temperature
   that decreases during learning (`temperature`).
5. The optimizer is Adam with a cosine schedule, and columns are standardized.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from hardwood.learn.finish import routed_leaves
from hardwood.learn.gradient.engine import EngineRuns, GradientLearner, run_engine
from hardwood.learn.learner import Learned, Run, Start
from hardwood.learn.losses import LEAF_LOSSES, CrossEntropy, Hinge, SquaredCodes
from hardwood.learn.start import cautious_scores, start_tree
from hardwood.learn.task import Task
from hardwood.learn.training import LARGEST, Training
from hardwood.learn.units import splits_in_raw_units, start_parameters
from hardwood.model import ObliqueTree, PolicyTree
from hardwood.parameters import (
    Values,
    checked,
    choice_field,
    integer_field,
    object_field,
    real,
    real_field,
    switch_field,
)

Baseline = Literal["none", "leave_one_out", "value"]
Gradient = Literal["sampled", "exact"]

# Standard deviation of the scores of the first policies, and of those of the first leaves.
POLICY_SCALE = 1.0
LEAF_SCALE = 0.1
# Norm of the weights of a policy that was a hard split: for a row one standard deviation away, the
# other branch has a probability of 1/150.
START_NORM = 5.0


# Adam with one cosine cycle, without gradient clipping.
TRAINING = Training(optimizer="adam", epsilon=1e-8, schedule_restarts=0, clip_norm=None)

MAX_DEPTH = 16
_MAX_NODES = 2**20
MAX_TRAJECTORIES = 10_000
_MAX_RESTARTS = 10_000


def perfect_parents(max_depth: int, n_children: int = 2) -> tuple[int, ...]:
    """Return the topology of a perfect tree: the parents of its nodes, level by level.

    Examples
    --------
    >>> perfect_parents(2)
    (-1, 0, 0, 1, 1, 2, 2)
    >>> perfect_parents(1, n_children=3)
    (-1, 0, 0, 0)
    """
    n_inner = sum(n_children**depth for depth in range(max_depth))
    return (-1, *(inner for inner in range(n_inner) for _ in range(n_children)))


def is_binary(parents: Sequence[int]) -> bool:
    """Whether all inner nodes have two branches."""
    return set(np.bincount(np.array(parents[1:], dtype=np.int64)).tolist()) <= {0, 2}


def temperatures(name: str, value: Any) -> tuple[float, float]:
    """Return the first and the last temperature."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    pair = value if isinstance(value, list | tuple) else (value, value)
    if len(pair) != 2:
        raise ValueError(f"{name} must be a number or a pair of numbers, got {value!r}.")
    first, last = (real(name, t, 1e-3, 1e3) for t in pair)
    return first, last


def checked_parents(name: str, given: Any) -> tuple[int, ...]:
    """Return a checked topology as integers."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, Sequence) or isinstance(given, str | bytes) or len(given) < 2:
        raise ValueError(
            f"{name} must be None or a sequence of at least 2 node numbers, the root first with "
            f"-1, got {given!r:.200}."
        )
    if len(given) > _MAX_NODES:
        raise ValueError(f"{name} must have at most {_MAX_NODES} nodes, got {len(given)}.")
    for node, parent in enumerate(given):
        is_right = isinstance(parent, numbers.Integral) and not isinstance(parent, bool)
        if not (is_right and (parent == -1 if node == 0 else 0 <= parent < node)):
            expected = "-1, it is the root" if node == 0 else f"a number from 0 to {node - 1}"
            raise ValueError(
                f"{name}[{node}] must be {expected}, got {parent!r}. Parents come before their "
                "children."
            )
    if len(set(given[1:])) == len(given) - 1:
        raise ValueError(
            f"{name} must have at least one node with two or more children, got "
            f"{list(given)!r:.200}."
        )
    return tuple(int(parent) for parent in given)


@dataclass(frozen=True)
class Policies(GradientLearner):
    """Base of the learners of policy trees, from losses or from rewards.

    `parents` is the topology: the parent of each node, first -1 for the root, with parents before
    their children; None for a perfect tree. `temperature` is the first and the last value; it
    changes during the first `annealed_at` of the steps.
    """

    annealed_at: ClassVar[float] = 0.5

    max_depth: int = integer_field(8, 1, MAX_DEPTH)
    parents: tuple[int, ...] | None = checked(
        None, checked_parents, Values("sequence", or_none=True)
    )
    n_trajectories: int = integer_field(10, 1, MAX_TRAJECTORIES)
    temperature: tuple[float, float] = checked((1.0, 1.0), temperatures, Values("one_or_more"))
    learning_rate: float = real_field(0.03, 0, LARGEST, open_low=True)
    early_stopping: bool | str = switch_field(False)
    l1: float = real_field(0.0, 0, LARGEST)
    l2: float = real_field(0.0, 0, LARGEST)
    training: Training = object_field(TRAINING, named="hardwood.learn.Training")

    @property
    def topology(self) -> tuple[int, ...]:
        """Parents of all nodes."""
        return perfect_parents(self.max_depth) if self.parents is None else self.parents

    def policy_options(self, entropy_bonus: float, gradient: str, baseline: str) -> dict[str, Any]:
        """Return the options of the gradient estimate, for the engine.

        `entropy_bonus` is the initial bonus per nat of the policies' entropy, in units of the
        objective.
        """
        is_sampled = gradient == "sampled"
        return {
            "estimator": gradient,
            "n_samples": self.n_trajectories if is_sampled else 1,
            "baseline": baseline if is_sampled else "none",
            "entropy": entropy_bonus,
            "first_temperature": self.temperature[0],
            "last_temperature": self.temperature[1],
            "annealed_at": self.annealed_at,
            "policy_scale": POLICY_SCALE,
            "leaf_scale": LEAF_SCALE,
        }

    def engine_options(
        self,
        task: Task,
        parents: Sequence[int],
        *,
        gradient: str,
        baseline: str,
        entropy_bonus: float,
        n_actions: int = 0,
    ) -> dict[str, Any]:
        """Return all options of a run, for the engine."""
        options: dict[str, Any] = {
            "hidden": [],
            "parents": np.array(parents, dtype=np.int32),
            "n_actions": n_actions,
            **self.policy_options(entropy_bonus, gradient, baseline),
            **self.loop_options(task, l1=self.l1, l2=self.l2),
        }
        is_annealed = entropy_bonus > 0 or self.temperature[0] != self.temperature[1]
        if self.keeps_best(task) and is_annealed:
            # While exploration is rewarded, a loss that does not fall means nothing.
            least = math.ceil(self.annealed_at * options["max_epochs"])
            options["patience"] = max(options["patience"], least)
        return options

    def learned(self, task: Task, parents: Sequence[int], runs: EngineRuns) -> Learned:
        """Return the result of the engine, in raw units."""
        (tree,) = runs.trees
        return Learned(
            self._policy(task, parents, tree),
            runs.history,
            best_run=runs.best_run,
            best_epoch=tree["best_epoch"],
            interrupted=runs.interrupted,
            keeps_unreached=True,
        )

    def _policy(
        self, task: Task, parents: Sequence[int], tree: Mapping[str, np.ndarray]
    ) -> PolicyTree:
        weights, bias = splits_in_raw_units(
            tree["weights"], tree["bias"], task, is_sparse=self.l1 > 0
        )
        weights, bias = with_first_branches(parents, weights, bias)
        if isinstance(task.loss, Hinge | SquaredCodes):  # their scores do not belong to the link
            scores = CrossEntropy().scores(task.leaf_values(tree["scores"]))
        else:
            no_slopes = np.zeros((*tree["scores"].shape, 0))
            scores, _ = task.linear_leaves(tree["scores"], no_slopes)
        return PolicyTree(
            parents,
            weights,
            bias,
            scores,
            schema=task.schema,
            task=task.kind,
            link=task.loss.link_name,
            classes=task.labels,
            target_names=task.target_names,
        )


@dataclass(frozen=True)
class Reinforced(Policies):
    """Reinforced trees; `ReinforcedTreeClassifier` describes the parameters.

    `entropy_bonus` is the initial bonus for policies that choose all branches with equal
    probability, as a fraction of the loss of leaves whose scores are 0. It falls linearly to zero.
    """

    losses: ClassVar[frozenset[str]] = LEAF_LOSSES

    baseline: Baseline = choice_field("leave_one_out", get_args(Baseline))
    gradient: Gradient = choice_field("exact", get_args(Gradient))
    entropy_bonus: float = real_field(0.6, 0)
    n_restarts: int = integer_field(1, 1, _MAX_RESTARTS)

    def __post_init__(self) -> None:
        super().__post_init__()
        needs_two = self.gradient == "sampled" and self.baseline == "leave_one_out"
        if needs_two and self.n_trajectories < 2:
            raise ValueError(
                "baseline='leave_one_out' is the mean of a row's other trajectories, so "
                f"n_trajectories must be at least 2, got {self.n_trajectories}. Use more, or "
                "baseline='value'."
            )

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Learn policy trees from R starts; keep the best on validation data."""
        first = self._start(task, run, start)
        parents = first.parents if first else self.topology
        runs = run_engine(
            "reinforced",
            task,
            self.engine_options(
                task,
                parents,
                gradient=self.gradient,
                baseline=self.baseline,
                entropy_bonus=self.entropy_bonus * loss_of_nothing(task) / most_entropy(parents),
            ),
            run,
            start=(first.weights, first.bias, first.scores) if first else None,
            n_runs=self.n_restarts,
        )
        return self.learned(task, parents, runs)

    def _start(self, task: Task, run: Run, start: Start) -> StartPolicy | None:
        if start is None:
            return None
        if self.parents is not None:
            raise ValueError(
                "init and parents both give the topology: use one of them, or only max_depth."
            )
        tree = start_tree(start, task, run)
        assert tree is not None
        return start_from(tree, task, n_jobs=run.n_jobs)


@dataclass(frozen=True)
class StartPolicy:
    """A policy tree to start from, in standard units.

    Attributes
    ----------
    parents
        The topology.
    weights, bias, scores
        (m, c) and (m,) of the branches but the first of each node, node by node; (m + 1, k) of the
        leaves, in the order of the nodes.
    """

    parents: tuple[int, ...]
    weights: np.ndarray
    bias: np.ndarray
    scores: np.ndarray


def loss_of_nothing(task: Task) -> float:
    """Return the mean loss of the training rows if all scores are 0."""
    from hardwood import _native

    rows = task.train
    scores = np.zeros((len(rows), task.n_outputs), dtype=np.float32)
    loss, _ = _native.loss(
        task.loss.name, scores, task.y[rows], task.weight[rows], task.loss.parameter
    )
    return abs(loss)


def most_entropy(parents: Sequence[int]) -> float:
    """Return the entropy of a row's leaf in nats if all branches are equally likely."""
    n_children = np.bincount(np.array(parents[1:], dtype=np.int64), minlength=len(parents))
    reach = np.zeros(len(parents))
    reach[0] = 1.0
    for node, parent in enumerate(parents[1:], start=1):
        reach[node] = reach[parent] / n_children[parent]
    at_leaves = reach[n_children == 0]
    return max(float(-(at_leaves * np.log(at_leaves)).sum()), 1e-12)


def start_from(tree: ObliqueTree, task: Task, *, n_jobs: int = 1) -> StartPolicy:
    """Return a tree as a start, in the units of a task; its splits become policies.

    All policies get weights of the same norm, `START_NORM`. Leaves get `cautious_scores`.

    Raises
    ------
    ValueError
        If it has linear leaves, or if its columns or outputs differ from those of the task.
    """
    if tree.has_linear_leaves:
        raise ValueError("init has linear leaves, but reinforced trees have constant ones.")
    weights, bias, scores, _ = start_parameters(tree, task)
    norm = np.maximum(np.linalg.norm(weights, axis=1), 1e-12)
    weights, bias = START_NORM / norm[:, None] * weights, START_NORM / norm * bias
    leaf = routed_leaves(tree, task.matrix, task.train, n_jobs)
    scores = cautious_scores(task, task.loss.link(scores.astype(np.float64)), leaf)
    parents, splits, leaves = [-1], [], []
    queue = [0 if tree.n_splits else -1]  # nodes level by level, as children number them
    for number, node in enumerate(queue):
        if node < 0:
            leaves.append(-1 - node)
            continue
        splits.append(node)
        queue += tree.children[node].tolist()
        parents += [number, number]
    order = np.array(splits, dtype=np.int64)
    W, b, alpha = (
        np.ascontiguousarray(part, dtype=np.float32)
        for part in (weights[order], bias[order], scores[leaves])
    )
    return StartPolicy(tuple(parents), W, b, alpha)


def with_first_branches(
    parents: Sequence[int], weights: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (T, c) and bias (T,) of all nodes: 0 for the root and for first branches."""
    parent = np.array(parents)
    branches = np.argsort(parent[1:], kind="stable") + 1  # siblings side by side, by their parents
    is_first = np.diff(parent[branches], prepend=-1) != 0
    all_weights = np.zeros((len(parent), weights.shape[1]))
    all_bias = np.zeros(len(parent))
    all_weights[branches[~is_first]], all_bias[branches[~is_first]] = weights, bias
    return all_weights, all_bias
