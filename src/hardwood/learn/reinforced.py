r"""Reinforced trees: the tree as a policy.

Leon, Denoyer. Policy-gradient Methods for Decision Trees. ESANN 2016. [Reinforced16]

A row goes from the root to a leaf by chance: at each node a soft-max of linear scores says how
likely each way is (Sec. 2.2). Policies and leaves are learned together, by the gradient of the
expected loss, which is estimated from M trajectories per row (Sec. 2.3):

.. math::

    \nabla J \approx \frac1N \frac1M \sum_{i,h} \Big[ \sum_j \nabla \log \pi(n_{j+1} | n_j, x_i) \,
    (\Delta_h - \text{baseline}) + \nabla \Delta_h \Big]

The first term moves the policies away from trajectories that cost much, the second moves the leaves
that were reached.

===========  ==========================  ==================================================
paper        here                        shape
===========  ==========================  ==================================================
theta        weights, bias               (m, c), (m,)   a row per way but the first of a node
alpha        scores                      (L, k)
pi           soft-max over siblings
H, M         trajectory, ``n_samples``
Delta        ``loss``
D            ``max_depth``               or any topology: ``parents``
===========  ==========================  ==================================================

The step is native (``native/learn/reinforced/step.hpp``, ``learner.hpp``), its twin is
``tests/reference/reinforced.py``.

What differs from the paper:

1. The first way of a node has the score 0: a soft-max knows differences only, and a node with two
   ways then is the split that it becomes.
2. A baseline is taken from the cost of a trajectory, which leaves the mean of the estimate as it is
   and makes its variance smaller: the mean cost of the row's other trajectories, or a learned value
   of the node (of the node and the row's class).
3. The expectation over all trajectories, without any sampling (``estimator="exact"``): as many
   scores per row as there are ways.
4. Entropy of the policies is worth something while the tree is young (`entropy`), and policies may
   start softer than they end (`temperature`).
5. Steps by Adam, a learning rate that falls along a cosine, and columns in standard units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from hardwood.learn.finish import routed_leaves
from hardwood.learn.non_greedy import cautious_scores
from hardwood.learn.task import Problem, engine_matrix
from hardwood.learn.training import Callback, Epoch, Training, engine_callback, epochs_for, one_of
from hardwood.learn.units import start_parameters
from hardwood.model import ObliqueTree

Baseline = Literal["none", "leave-one-out", "value"]
Estimator = Literal["sampled", "exact"]

# Standard deviation of the scores of the first policies, and of those of the first leaves.
POLICY_SCALE = 1.0
LEAF_SCALE = 0.1
# Norm of the weights of a policy that was a hard split: a row a standard deviation away is sure to
# one part in 150.
START_NORM = 5.0


def default_training() -> Training:
    """Return how reinforced trees are trained unless told otherwise: by Adam, with one cosine."""
    return Training(optimizer="adam", epsilon=1e-8, schedule_restarts=0, clip_norm=None)


def perfect_parents(max_depth: int, n_children: int = 2) -> tuple[int, ...]:
    """Return the parents of a perfect tree, level by level: what a topology looks like.

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
    """Whether all inner nodes have two ways."""
    return set(np.bincount(np.array(parents[1:], dtype=np.int64)).tolist()) <= {0, 2}


@dataclass(frozen=True)
class Reinforced:
    """The hyper-parameters.

    `parents` is the topology: for each node the number of its parent, the root first with -1, and
    parents before their children. `entropy` is what policies that go anywhere are worth when
    learning begins, as a part of the loss of leaves that know nothing; it falls to zero along a
    line. `temperature` is the first and the last one. Both change until `annealed_at` of the steps
    are taken.
    """

    parents: tuple[int, ...]
    n_samples: int = 10
    baseline: Baseline = "leave-one-out"
    estimator: Estimator = "exact"
    entropy: float = 0.6
    temperature: tuple[float, float] = (1.0, 1.0)
    annealed_at: float = 0.5
    learning_rate: float = 0.03
    batch_size: int = 128
    max_epochs: int | None = None
    l1: float = 0.0
    l2: float = 0.0
    restarts: int = 1
    early_stopping: bool = False
    policy_scale: float = POLICY_SCALE
    leaf_scale: float = LEAF_SCALE
    training: Training = field(default_factory=default_training)

    def __post_init__(self) -> None:
        one_of("baseline", self.baseline, get_args(Baseline))
        one_of("estimator", self.estimator, get_args(Estimator))
        if self.needs_two_samples and self.n_samples < 2:
            raise ValueError(
                "baseline='leave-one-out' is the mean of a row's other trajectories, so n_samples "
                f"must be at least 2, found {self.n_samples}. Use more, or baseline='value'."
            )

    @property
    def needs_two_samples(self) -> bool:
        """Whether a trajectory is compared with others of its row."""
        return self.estimator == "sampled" and self.baseline == "leave-one-out"

    def epochs(self, n_rows: int) -> int:
        """Return the number of passes over so many training rows."""
        return self.max_epochs or epochs_for(n_rows, self.batch_size)

    def policy_options(self, price: float) -> dict[str, object]:
        """Return what concerns the estimate of a gradient, as the engine takes it.

        `price` is what a nat of entropy is worth at first.
        """
        is_sampled = self.estimator == "sampled"
        return {
            "estimator": self.estimator,
            "n_samples": self.n_samples if is_sampled else 1,
            "baseline": self.baseline if is_sampled else "none",
            "entropy": price,
            "first_temperature": self.temperature[0],
            "last_temperature": self.temperature[1],
            "annealed_at": self.annealed_at,
            "policy_scale": self.policy_scale,
            "leaf_scale": self.leaf_scale,
        }

    def engine_options(self, n_rows: int, price: float) -> dict[str, object]:
        """All options of a run, as the engine takes them."""
        max_epochs = self.epochs(n_rows)
        options: dict[str, Any] = {
            "hidden": [],
            **self.policy_options(price),
            **self.training.engine_options(
                learning_rate=self.learning_rate,
                momentum=None,
                batch_size=min(self.batch_size, n_rows),
                max_epochs=max_epochs,
                l1=self.l1,
                l2=self.l2,
                stops_early=self.early_stopping,
            ),
        }
        if self.early_stopping and self.is_annealed:
            # While policies are kept from being sure, a loss that does not fall says nothing.
            least = math.ceil(self.annealed_at * max_epochs)
            options["patience"] = max(options["patience"], least)
        return options

    @property
    def is_annealed(self) -> bool:
        """Whether what is minimised changes while the tree is learned."""
        return self.entropy > 0 or self.temperature[0] != self.temperature[1]


@dataclass(frozen=True)
class StartPolicy:
    """A policy tree to start from, in standard units.

    Attributes
    ----------
    parents
        The topology.
    weights, bias, scores
        (m, c), (m,) and (m + 1, k), as of `GrownPolicy`.
    """

    parents: tuple[int, ...]
    weights: np.ndarray
    bias: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class GrownPolicy:
    """What the engine learned, in standard units.

    `weights` (m, c) and `bias` (m,) are of the ways but the first of each node, node by node;
    `scores` (m + 1, k) of the leaves, in the order of the nodes.
    """

    weights: np.ndarray
    bias: np.ndarray
    scores: np.ndarray
    history: tuple[Epoch, ...]
    best_restart: int
    best_epoch: int
    interrupted: bool


def learn(
    problem: Problem,
    config: Reinforced,
    *,
    start: StartPolicy | None = None,
    n_jobs: int = 1,
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
) -> GrownPolicy:
    """Learn a policy tree from R starts at once; the best, on validation data if any, is kept.

    Parameters
    ----------
    problem
        Rows, target, weights, loss and validation part.
    config
        The hyper-parameters.
    start
        What to start from, of the same topology; None for random policies.
    n_jobs
        Threads; they share the restarts, or the rows of the batches of one. The result does not
        depend on their number.
    seed
        Of the start, the order of rows and the trajectories.
    callbacks
        Called after every epoch.
    """
    return grown_by_engine(
        problem,
        config,
        price=config.entropy * loss_of_nothing(problem) / most_entropy(config.parents),
        start=start,
        n_jobs=n_jobs,
        seed=seed,
        callbacks=callbacks,
    )


def loss_of_nothing(problem: Problem) -> float:
    """Return the mean loss of the training rows where all scores are 0."""
    from hardwood import _native

    rows = problem.train
    scores = np.zeros((len(rows), problem.n_outputs), dtype=np.float32)
    loss, _ = _native.loss(
        problem.loss.name, scores, problem.y[rows], problem.weight[rows], problem.loss.parameter
    )
    return abs(loss)


def most_entropy(parents: Sequence[int]) -> float:
    """Return the entropy of the leaf that a row comes to where all ways are as likely, in nats."""
    n_children = np.bincount(np.array(parents[1:], dtype=np.int64), minlength=len(parents))
    reach = np.zeros(len(parents))
    reach[0] = 1.0
    for node, parent in enumerate(parents[1:], start=1):
        reach[node] = reach[parent] / n_children[parent]
    at_leaves = reach[n_children == 0]
    return max(float(-(at_leaves * np.log(at_leaves)).sum()), 1e-12)


def grown_by_engine(
    problem: Problem,
    config: Reinforced,
    *,
    price: float,
    n_actions: int = 0,
    start: StartPolicy | None = None,
    n_jobs: int,
    seed: int,
    callbacks: Sequence[Callback],
) -> GrownPolicy:
    """Learn by the loss of the problem, or, of so many actions, by what its function says.

    `price` is what a nat of the policies' entropy is worth at first, in units of what is minimised.
    """
    from hardwood import _native

    max_epochs = config.epochs(len(problem.train))
    answer = _native.fit(
        "reinforced",
        problem.schema.encoder,
        engine_matrix(problem.matrix),
        problem.y,
        problem.weight,
        problem.train,
        problem.valid,
        n_outputs=problem.n_outputs,
        loss=problem.loss.name,
        loss_parameter=problem.loss.parameter,
        custom=problem.loss if n_actions else None,
        start=None if start is None else (start.weights, start.bias, start.scores),
        first_run=0,
        n_runs=config.restarts,
        n_draws=None,
        keep_all=False,
        seed=seed,
        n_threads=n_jobs,
        callback=engine_callback(callbacks, max_epochs),
        options={
            "parents": np.array(config.parents, dtype=np.int32),
            "n_actions": n_actions,
            **config.engine_options(len(problem.train), price),
        },
    )
    return _grown(answer, max_epochs)


def _grown(answer: dict[str, Any], max_epochs: int) -> GrownPolicy:
    (tree,) = answer["trees"]
    arrays = {part: tree[part] for part in ("weights", "bias", "scores")}
    # Far beyond what steps of any sensible length come to: no model could hold such splits.
    if not all((np.abs(array) < 1e15).all() for array in arrays.values()):
        raise ValueError(
            "Learning diverged: weights became huge. Lower learning_rate or l2, or the range "
            "of sample_weight."
        )
    return GrownPolicy(
        **arrays,
        history=tuple(
            Epoch(run, epoch, max_epochs, *figures)
            for history in answer["history"]
            for run, epoch, *figures in history
        ),
        best_restart=answer["best_run"],
        best_epoch=tree["best_epoch"],
        interrupted=answer["interrupted"],
    )


def start_from(tree: ObliqueTree, problem: Problem, *, n_jobs: int = 1) -> StartPolicy:
    """Return a tree as a start, in the units of a problem; its splits become policies of two ways.

    A hard split says nothing of how sure it is: all become as sure, `START_NORM`. Leaves are those
    of `cautious_scores`.

    Raises
    ------
    ValueError
        Where it has linear leaves, or other columns or outputs than the problem.
    """
    if tree.has_linear_leaves:
        raise ValueError("init has linear leaves, but reinforced trees have constant ones.")
    weights, bias, scores, _ = start_parameters(tree, problem)
    norm = np.maximum(np.linalg.norm(weights, axis=1), 1e-12)
    weights, bias = START_NORM / norm[:, None] * weights, START_NORM / norm * bias
    leaf = routed_leaves(tree, problem.matrix, problem.train, n_jobs)
    scores = cautious_scores(problem, problem.loss.link(scores.astype(np.float64)), leaf)
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


def with_first_ways(
    parents: Sequence[int], weights: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (T, c) and bias (T,) of all nodes: 0 for the root and for first ways."""
    parent = np.array(parents)
    ways = np.argsort(parent[1:], kind="stable") + 1  # siblings side by side, by their parents
    is_first = np.r_[True, parent[ways][1:] != parent[ways][:-1]]
    all_weights = np.zeros((len(parent), weights.shape[1]))
    all_bias = np.zeros(len(parent))
    all_weights[ways[~is_first]], all_bias[ways[~is_first]] = weights, bias
    return all_weights, all_bias
