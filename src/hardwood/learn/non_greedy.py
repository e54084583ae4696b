r"""Non-greedy trees: all splits and leaves learned together.

Norouzi, Collins, Johnson, Fleet, Kohli. Efficient Non-greedy Optimization of Decision Trees. NIPS
2015. [NonGreedy15]

A tree's loss for a row is at most the largest loss of any leaf, less what it costs to send the row
there: a decision that differs from :math:`\operatorname{sgn}(w_i^\top x)` costs
:math:`2|w_i^\top x|` (Eq. 7, 12). The bound is piecewise linear in the splits, and its gradient
moves only those that two paths differ in, so a step costs as much as the paths of its rows, however
many splits there are. Splits are kept in a ball of radius :math:`\sqrt\nu`: a longer one would make
the bound tighter, and harder to descend (Proposition 1).

=========  ==========================  ==================================================
paper      here                        shape
=========  ==========================  ==================================================
W          weights, bias               (m, c), (m,)   m splits, c encoded columns
Theta      scores                      (m + 1, k)
nu         ``nu``                      of :math:`\|w_i\|^2 + b_i^2`
eta        ``learning_rate``
g(x)       ``inference``               by which leaves compete: "exact", "exhaustive", "fast"
a(x)       ``solver="ssgd"``           rows keep their leaves for some epochs (Eq. 14)
=========  ==========================  ==================================================

The step is native (``native/learn/non_greedy/step.hpp``, ``learner.hpp``), its twin is
``tests/reference/non_greedy.py``.

What differs from the paper:

1. Loss-augmented inference over all leaves (Eq. 10) is a branch and bound: the same leaf as the
   paper's search of the whole tree, at about the cost of its fast variant (Eq. 13).
2. A split goes right when its score is not negative, biases are added, and columns are in standard
   units around their means.
3. The learning rate falls along a cosine (`Training`). Learning may stop early on a validation
   part, or at the epoch that was best on it when `nu` or the learning rate were chosen.
4. Sparse splits, which the paper leaves to the future: an L1 penalty, or at most so many features
   per split, those with the largest weights.
5. Any loss of the engine that can be evaluated per leaf; two classes have one score per leaf.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from hardwood.learn.finish import routed_leaves
from hardwood.learn.task import Problem, engine_matrix
from hardwood.learn.training import Callback, Epoch, Training, engine_callback, epochs_for, one_of
from hardwood.learn.units import start_parameters
from hardwood.model import ObliqueTree

Inference = Literal["exact", "fast", "exhaustive"]
Solver = Literal["ssgd", "sgd"]

# Sec. 7: what nu is chosen from. The paper does not say which learning rates it tries.
NU_GRID = (0.1, 1.0, 4.0, 10.0, 43.0, 100.0)
LEARNING_RATE_GRID = (0.03, 0.1, 0.3)

_PRIOR_ROWS = 5.0  # of the mean target, which each leaf of a start has besides its own


def default_training() -> Training:
    """Return how non-greedy trees are trained unless told otherwise: SGD, one cosine."""
    return Training(optimizer="sgd", schedule_restarts=0, clip_norm=None)


@dataclass(frozen=True)
class NonGreedy:
    """The hyper-parameters."""

    nu: float | Literal["auto"] = 43.0
    learning_rate: float | Literal["auto"] = 0.1
    inference: Inference = "exact"
    solver: Solver = "ssgd"
    batch_size: int = 128
    max_epochs: int | None = None
    momentum: float = 0.9
    l1: float = 0.0
    max_features_per_split: int | None = None
    early_stopping: bool = False
    training: Training = field(default_factory=default_training)

    def __post_init__(self) -> None:
        one_of("inference", self.inference, get_args(Inference))
        one_of("solver", self.solver, get_args(Solver))
        if self.training.optimizer != "sgd":
            raise ValueError(
                "non-greedy trees take their steps by optimizer='sgd', found "
                f"optimizer={self.training.optimizer!r}"
            )

    @property
    def is_searched(self) -> bool:
        """Whether nu or the learning rate are chosen on the validation part."""
        return self.nu == "auto" or self.learning_rate == "auto"

    def settings(self) -> list[tuple[float, float]]:
        """Return the pairs of nu and learning rate to be tried."""
        nus = NU_GRID if self.nu == "auto" else (self.nu,)
        rates = LEARNING_RATE_GRID if self.learning_rate == "auto" else (self.learning_rate,)
        return list(itertools.product(nus, rates))

    def epochs(self, n_rows: int) -> int:
        """Return the number of passes over so many training rows."""
        return self.max_epochs or epochs_for(n_rows, self.batch_size)

    def engine_options(self, problem: Problem) -> dict[str, object]:
        """All options that runs share, as the engine takes them."""
        n_rows = len(problem.train)
        return {
            "hidden": [],
            "inference": self.inference,
            "stable": self.solver == "ssgd",
            "max_features": self.max_features_per_split or 0,
            "feature_of_column": problem.schema.column_feature.tolist(),
            **self.training.engine_options(
                learning_rate=0.0,  # each run has its own
                momentum=self.momentum,
                batch_size=min(self.batch_size, n_rows),
                max_epochs=self.epochs(n_rows),
                l1=self.l1,
                l2=0.0,
                stops_early=self.early_stopping,
            ),
        }


@dataclass(frozen=True)
class StartTree:
    """A tree to start from, in standard units.

    Attributes
    ----------
    weights, bias, scores
        (m, c), (m,) and (m + 1, k).
    children
        (m, 2) int32: a split by its number, leaf j as -1 - j.
    """

    weights: np.ndarray
    bias: np.ndarray
    children: np.ndarray
    scores: np.ndarray


Run: TypeAlias = tuple[Epoch, ...]
Start: TypeAlias = Callable[[Problem], StartTree]
"""Grows a start tree from the training rows of a problem, and from no others."""


@dataclass(frozen=True)
class GrownNonGreedy:
    """What the engine learned, in standard units; leaves are numbered from left to right.

    `nu` and `learning_rate` are those that were used, and `history` is of the run that was kept; of
    a search, `trials` has the validation loss of each pair that was tried.
    """

    weights: np.ndarray
    bias: np.ndarray
    children: np.ndarray
    scores: np.ndarray
    history: tuple[Epoch, ...]
    best_restart: int
    best_epoch: int
    interrupted: bool
    nu: float
    learning_rate: float
    trials: tuple[tuple[float, float, float], ...] = ()


def learn(
    problem: Problem,
    config: NonGreedy,
    start: Start,
    *,
    whole: Problem | None = None,
    n_jobs: int = 1,
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
) -> GrownNonGreedy:
    """Algorithm 1 of [NonGreedy15], from a tree that another learner grew.

    Parameters
    ----------
    problem
        Rows, target, weights, loss and validation part.
    config
        The hyper-parameters.
    start
        Grows the tree to start from.
    whole
        The same problem without a validation part. What is searched for (``nu="auto"``) is found on
        `problem`, and the tree is then learned from all rows of `whole`, as Sec. 7 does.
    n_jobs
        Threads: they share the runs of a search, and the batches of one run. The result does not
        depend on their number.
    seed
        Of the order of rows.
    callbacks
        Called after every epoch. Runs are numbered as they come (`Epoch.restart`): the pairs of a
        search, then the run on `whole`.

    Returns
    -------
    grown
        What was learned. Where the user interrupts the learning from `whole`, the best tree of the
        search.

    Raises
    ------
    KeyboardInterrupt
        Where the user interrupts the growing of the start, before anything was learned.
    """
    settings = config.settings()
    tree = left_to_right(start(problem))
    grown, runs = _run(problem, config, settings, tree, n_jobs, seed, callbacks)
    if not config.is_searched or whole is None or grown.interrupted:
        return grown
    trials = tuple(
        (*setting, _validation_loss(_returned(run, config)))
        for setting, run in zip(settings, runs, strict=True)
    )
    best = min(range(len(trials)), key=lambda i: trials[i][2])
    last = _returned(runs[best], config).epoch

    def ends(epoch: Epoch) -> bool:  # where the tree was judged
        return epoch.epoch >= last

    alone = replace(config, early_stopping=False)
    callbacks = [*_as_run(len(settings), callbacks), ends]
    try:
        tree = left_to_right(start(whole))
        again, _ = _run(whole, alone, [settings[best]], tree, n_jobs, seed, callbacks)
    except KeyboardInterrupt:
        again = replace(grown, interrupted=True)
    # Of the two, only the search's tree has learned to the end where the user stopped the other.
    kept = grown if again.interrupted else again
    return replace(kept, trials=trials, interrupted=again.interrupted)


def _as_run(number: int, callbacks: Sequence[Callback]) -> list[Callback]:
    """Return callbacks that are told another number of the run than the engine's."""

    def told(callback: Callback) -> Callback:
        return lambda epoch: callback(replace(epoch, restart=number))

    return [told(callback) for callback in callbacks]


def _returned(run: Run, config: NonGreedy) -> Epoch:
    """Return the epoch whose tree a run is judged by: its best one, or its last."""
    return min(run, key=_validation_loss) if config.early_stopping else run[-1]


def _validation_loss(epoch: Epoch) -> float:
    loss = epoch.validation_loss
    return loss if loss == loss else np.inf  # NaN compares with nothing


def _run(
    problem: Problem,
    config: NonGreedy,
    settings: list[tuple[float, float]],
    start: StartTree,
    n_jobs: int,
    seed: int,
    callbacks: Sequence[Callback],
) -> tuple[GrownNonGreedy, list[Run]]:
    """Learn with every pair of nu and learning rate; return the best tree, and all runs."""
    from hardwood import _native

    max_epochs = config.epochs(len(problem.train))
    answer = _native.fit(
        "non_greedy",
        problem.schema.encoder,
        engine_matrix(problem.matrix),
        problem.y,
        problem.weight,
        problem.train,
        problem.valid,
        n_outputs=problem.n_outputs,
        loss=problem.loss.name,
        loss_parameter=problem.loss.parameter,
        custom=None,
        start=(start.weights, start.bias, start.scores),
        first_run=0,
        n_runs=len(settings),
        n_draws=None,
        keep_all=False,
        seed=seed,
        n_threads=n_jobs,
        callback=engine_callback(callbacks, max_epochs),
        options={
            **config.engine_options(problem),
            "children": start.children,
            "nu": [nu for nu, _ in settings],
            "learning_rate": [rate for _, rate in settings],
        },
    )
    runs = [
        tuple(Epoch(run, epoch, max_epochs, *figures) for run, epoch, *figures in history)
        for history in answer["history"]
    ]
    return _grown(answer, start.children, settings, runs), runs


def _grown(
    answer: dict[str, Any],
    children: np.ndarray,
    settings: list[tuple[float, float]],
    runs: list[Run],
) -> GrownNonGreedy:
    (tree,) = answer["trees"]
    arrays = {part: tree[part] for part in ("weights", "bias", "scores")}
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise ValueError(
            "Learning diverged: leaves became infinite. Lower learning_rate or the range of "
            "sample_weight."
        )
    best = answer["best_run"]
    nu, rate = settings[best]
    return GrownNonGreedy(
        **arrays,
        children=children,
        history=runs[best],
        best_restart=best,
        best_epoch=tree["best_epoch"],
        interrupted=answer["interrupted"],
        nu=nu,
        learning_rate=rate,
    )


def start_from(tree: ObliqueTree, problem: Problem, *, n_jobs: int = 1) -> StartTree:
    """Return a tree as a start, in the units of a problem.

    Raises
    ------
    ValueError
        Where it has linear leaves, or other columns or outputs than the problem.
    """
    if tree.has_linear_leaves:
        raise ValueError("init has linear leaves, but non-greedy trees have constant ones.")
    weights, bias, scores, _ = start_parameters(tree, problem)
    values = problem.loss.link(scores.astype(np.float64))
    leaf = routed_leaves(tree, problem.matrix, problem.train, n_jobs)
    return StartTree(weights, bias, tree.children, cautious_scores(problem, values, leaf))


def cautious_scores(problem: Problem, values: np.ndarray, leaf: np.ndarray) -> np.ndarray:
    """Scores of leaves, as if each had some rows more, of the mean target.

    A leaf with few rows is too sure of itself: where it were wrong its loss would be so large that
    the bound of every other row became a matter of that leaf.
    """
    n = np.bincount(leaf, problem.weight[problem.train], minlength=len(values))[:, None]
    mean = n[:, 0] @ values / n.sum()
    return problem.loss.scores((n * values + _PRIOR_ROWS * mean) / (n + _PRIOR_ROWS))


def left_to_right(tree: StartTree) -> StartTree:
    """Return the tree with its leaves numbered from left to right, as the engine wants them."""
    children = np.array(tree.children, dtype=np.int32).reshape(-1, 2)
    order: list[int] = []  # old numbers of the leaves, from left to right
    stack = [(0, 0)] if len(children) else []
    places: list[tuple[int, int]] = []
    while stack:
        split, side = stack.pop()
        if side == 0:
            stack.append((split, 1))
        child = int(children[split, side])
        if child >= 0:
            stack.append((child, 0))
        else:
            order.append(-1 - child)
            places.append((split, side))
    for number, (split, side) in enumerate(places):
        children[split, side] = -1 - number
    scores = tree.scores if not order else tree.scores[order]
    weights, bias, scores = (
        np.ascontiguousarray(part, dtype=np.float32) for part in (tree.weights, tree.bias, scores)
    )
    return StartTree(weights, bias, children, scores)
