r"""DGT: dense gradient trees.

Karthikeyan, Jain, Natarajan, Jain. Learning Accurate Decision Trees with Bandit Feedback via
Quantized Gradient Descent. TMLR 2022. [DGT22]

A tree of height h is written as a sum over its leaves (Eq. 2) whose path functions are a step
function of the *sum* of the decisions on the path (Eq. 4). The prediction is that of the hard tree;
the gradient replaces the outer step by a softmax over the path sums and the inner sign by the
straight-through estimator, so one example moves all 2^h - 1 splits (Alg. 2). Mini-batches of that
gradient make Alg. 3.

========  ==========================  ===========================================
paper     here                        shape
========  ==========================  ===========================================
W, b      weights, bias               (m, c), (m,)   m = 2^h - 1 splits, c columns
Theta     scores                      (2^h, k)
h         ``max_depth``
eta       ``learning_rate``
lambda    ``l1``, ``l2``              on W or its factors, and on the slopes of linear leaves
L, d_i    ``layers``                  number of linear layers, or the sizes between them (Sec. 3.2)
========  ==========================  ===========================================

The step is native (``native/learn/dgt/step.hpp``, ``soft_step.hpp``), its twin is
``tests/reference/dgt.py``; layers are multiplied into one matrix at every step
(``native/learn/loop/layers.hpp``), so what is learned is the splits that the tree will have, to the
bit.

What differs from the paper:

1. Columns are divided by the power of two nearest their standard deviation (the paper: by the
   deviation), so that folding the scale into the weights is exact.
2. Regression targets have mean 0 and deviation 1 (the paper: range [0, 1]).
3. The L1 penalty is a proximal step, so weights reach exactly zero.
4. Two classes are learned with one score per leaf (logistic loss).
5. RMSprop's epsilon is 1e-5 (the paper does not state it; the authors' code has it).
6. Annealed routing (Sec. 3.3, Table 7 (c)) sharpens the sigmoids, as Sec. 3.3 says, and for the sum
   form the softmax over the leaves by the same factor, as C.3.1 says: else it would never be hard.
7. With several layers the norm of the factors' gradients is clipped and the penalties apply to the
   factors, biases included, as the authors' code does; a product of sparse factors is not sparse.
8. Several restarts, of which the best on validation data is kept (`restarts`), and nodes that no
   training row reaches are dropped when learning ends (`learn/finish.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hardwood.learn.task import Problem, engine_matrix
from hardwood.learn.training import Callback, Epoch, Training, engine_callback, epochs_for, one_of
from hardwood.learn.units import StartParameters, start_parameters
from hardwood.model import ObliqueTree
from hardwood.parameters import hidden_size


@dataclass(frozen=True)
class Relaxation:
    """How gradients get through the decisions: the design choices that Table 7 compares.

    Parameters
    ----------
    path
        "sum": the AND along a path as a step function of a sum (Eq. 4), the paper's. "product":
        as a product of step functions (Eq. 2).
    quantizer
        "sign": a decision counts +1 or -1. "scaled": plus or minus the mean of all scores' sizes in
        the batch (in parts of at most 128 rows), as the authors' code does; for path="sum" with
        quantized routing alone.
    routing
        "quantized": hard decisions, and gradients straight through them. "annealed": sigmoids that
        sharpen while the tree is learned, a soft tree until the end. With path="product" that is
        the paper's baseline PAT. What hardening costs is recorded.
    sharpness
        Annealed routing: what scores are multiplied by, at the first step and at the last.
    annealing
        Annealed routing: how the sharpness grows, "linear" or "log".

    Raises
    ------
    ValueError
        For what is unknown or out of range, and for choices that the others leave without effect.
    """

    path: Literal["sum", "product"] = "sum"
    quantizer: Literal["sign", "scaled"] = "sign"
    routing: Literal["quantized", "annealed"] = "quantized"
    sharpness: tuple[float, float] = (1.0, 100.0)
    annealing: Literal["linear", "log"] = "log"

    def __post_init__(self) -> None:
        one_of("path", self.path, ("sum", "product"))
        one_of("quantizer", self.quantizer, ("sign", "scaled"))
        one_of("routing", self.routing, ("quantized", "annealed"))
        one_of("annealing", self.annealing, ("linear", "log"))
        pair = self.sharpness
        is_pair = isinstance(pair, tuple | list) and len(pair) == 2
        if (
            not (is_pair and all(isinstance(each, int | float) for each in pair))
            or not 1e-6 <= pair[0] <= pair[1] <= 1e6
        ):
            raise ValueError(
                "sharpness must be two numbers from 1e-6 to 1e6, the second not smaller, found "
                f"{pair!r}"
            )
        self._check_effects()

    def _check_effects(self) -> None:
        """Refuse what would change nothing."""
        is_annealed = self.routing == "annealed"
        if self.quantizer == "scaled" and (is_annealed or self.path == "product"):
            raise ValueError(
                "quantizer='scaled' scales the decisions of path='sum' with routing='quantized', "
                f"and does nothing for path={self.path!r} with routing={self.routing!r}: leave it "
                "at 'sign'"
            )
        has_schedule = tuple(self.sharpness) != Relaxation.sharpness or (
            self.annealing != Relaxation.annealing
        )
        if has_schedule and not is_annealed:
            raise ValueError(
                f"sharpness={self.sharpness!r} and annealing={self.annealing!r} are of "
                "routing='annealed', and do nothing for routing='quantized': give that routing, or "
                "leave them at their defaults"
            )


@dataclass(frozen=True)
class DGT:
    """The hyper-parameters; defaults are those of Tables 11 and 12 unless said otherwise."""

    max_depth: int = 6
    layers: int | tuple[int, ...] = 1
    leaves: Literal["constant", "linear"] = "constant"
    learning_rate: float = 0.01
    batch_size: int = 128
    max_epochs: int | None = None
    momentum: float | None = None
    l1: float = 0.0
    l2: float = 0.0
    restarts: int = 1
    early_stopping: bool = True
    relaxation: Relaxation = field(default_factory=Relaxation)
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        one_of("leaves", self.leaves, ("constant", "linear"))
        if self.leaves == "linear" and self.relaxation.routing == "annealed":
            raise ValueError("leaves='linear' needs quantized routing, found routing='annealed'")

    @property
    def hidden_sizes(self) -> tuple[int, ...]:
        """Widths between the linear layers; none for one layer."""
        if isinstance(self.layers, tuple):
            return self.layers
        return (hidden_size(self.max_depth),) * (self.layers - 1)

    def epochs(self, n_rows: int) -> int:
        """Return the number of passes over so many training rows."""
        return self.max_epochs or epochs_for(n_rows, self.batch_size)

    def engine_options(self, n_rows: int) -> dict[str, object]:
        """All options of a run, as the engine takes them."""
        return {
            "hidden": list(self.hidden_sizes),
            "linear_leaves": self.leaves == "linear",
            "path": self.relaxation.path,
            "quantizer": self.relaxation.quantizer,
            "routing": self.relaxation.routing,
            "sharpness": self.relaxation.sharpness,
            "annealing": self.relaxation.annealing,
            **self.training.engine_options(
                learning_rate=self.learning_rate,
                momentum=self.momentum,
                batch_size=min(self.batch_size, n_rows),
                max_epochs=self.epochs(n_rows),
                l1=self.l1,
                l2=self.l2,
                stops_early=self.early_stopping,
            ),
        }


@dataclass(frozen=True)
class Grown:
    """What the engine learned: a perfect tree in standard units, heap order.

    `weights` (m, c) multiply encoded columns, `scores` (2^h, k) are the leaves before the link,
    `leaf_weights` (2^h, k, c) what linear leaves add per encoded column. `hardening_loss` is what
    the hard tree loses against the soft one that annealed routing learned, else None.
    """

    weights: np.ndarray
    bias: np.ndarray
    scores: np.ndarray
    leaf_weights: np.ndarray | None
    history: tuple[Epoch, ...]
    best_restart: int
    best_epoch: int
    interrupted: bool
    hardening_loss: float | None


@dataclass(frozen=True)
class Runs:
    """Trees learned side by side: how many, from which number on, and what each learns from.

    Attributes
    ----------
    n_trees, first
        Trees to learn; the number of the first, which its random numbers depend on.
    sample_fraction
        Rows drawn with replacement for a tree, as a part of the training rows; None for all rows,
        each once.
    """

    n_trees: int
    first: int = 0
    sample_fraction: float | None = 1.0

    def n_draws(self, n_rows: int) -> int | None:
        """Return how many rows are drawn for one tree; None where none are."""
        if self.sample_fraction is None:
            return None
        return max(1, int(math.floor(self.sample_fraction * n_rows + 0.5)))

    def drawn(self, n_rows: int, seed: int, tree: int) -> np.ndarray:
        """Return how often each training row was drawn for a tree, by its number in the forest."""
        from hardwood import _native

        n_draws = self.n_draws(n_rows)
        assert n_draws is not None
        return np.asarray(_native.bootstrap_counts(n_rows, n_draws, seed, tree))


def learn(
    problem: Problem,
    config: DGT,
    *,
    start: ObliqueTree | None = None,
    n_jobs: int = 1,
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
) -> Grown:
    """Algorithm 3 of [DGT22], from R starts at once; the best on validation data is kept.

    Parameters
    ----------
    problem
        Rows, target, weights, loss and validation part.
    config
        The hyper-parameters.
    start
        A tree to start from instead of random splits; of at most the same depth.
    n_jobs
        Threads; they share the restarts, and the result does not depend on their number.
    seed
        Of the random splits and the order of rows.
    callbacks
        Called after every epoch.
    """
    runs = Runs(config.restarts, sample_fraction=None)
    return _learn(problem, config, runs, False, start, n_jobs, seed, callbacks)[0]


def learn_forest(
    problem: Problem,
    config: DGT,
    members: Runs,
    *,
    start: ObliqueTree | None = None,
    n_jobs: int = 1,
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
) -> list[Grown]:
    """Learn the trees of a DGT-Forest (Sec. 5.2, C.3.1) side by side; arguments as of `learn`.

    Every tree has random numbers of its own: a forest that was enlarged is the one learned at once.
    """
    return _learn(problem, config, members, True, start, n_jobs, seed, callbacks)


def _learn(
    problem: Problem,
    config: DGT,
    runs: Runs,
    keep_all: bool,
    start: ObliqueTree | None,
    n_jobs: int,
    seed: int,
    callbacks: Sequence[Callback],
) -> list[Grown]:
    from hardwood import _native

    max_epochs = config.epochs(len(problem.train))
    answer = _native.fit(
        "dgt",
        problem.schema.encoder,
        engine_matrix(problem.matrix),
        problem.y,
        problem.weight,
        problem.train,
        problem.valid,
        n_outputs=problem.n_outputs,
        loss=problem.loss.name,
        loss_parameter=problem.loss.parameter,
        custom=problem.loss if problem.loss.name == "custom" else None,
        start=None if start is None else _start(start, problem, config),
        first_run=runs.first,
        n_runs=runs.n_trees,
        n_draws=runs.n_draws(len(problem.train)),
        keep_all=keep_all,
        seed=seed,
        n_threads=n_jobs,
        callback=engine_callback(callbacks, max_epochs),
        options={"height": config.max_depth, **config.engine_options(len(problem.train))},
    )
    histories = [
        tuple(Epoch(run, epoch, max_epochs, *figures) for run, epoch, *figures in history)
        for history in answer["history"]
    ]
    if not keep_all:
        histories = [sum(histories, ())]
    return [
        _grown(tree, history, runs.first + i if keep_all else answer["best_run"], answer)
        for i, (tree, history) in enumerate(zip(answer["trees"], histories, strict=True))
    ]


def _grown(
    tree: dict[str, Any], history: tuple[Epoch, ...], run: int, answer: dict[str, Any]
) -> Grown:
    arrays = {part: tree[part] for part in ("weights", "bias", "scores", "leaf_weights")}
    if not all(array is None or np.isfinite(array).all() for array in arrays.values()):
        raise ValueError(
            "Learning diverged: weights became infinite. Lower learning_rate, l1 or l2, or the "
            "range of sample_weight; with init, give a tree learned from targets and columns of "
            "about the same size."
        )
    gap = tree["criterion"] - tree["soft_criterion"]
    return Grown(
        **arrays,
        history=history,
        best_restart=run,
        best_epoch=tree["best_epoch"],
        interrupted=answer["interrupted"],
        hardening_loss=gap if math.isfinite(gap) else None,
    )


def _start(start: ObliqueTree, problem: Problem, config: DGT) -> StartParameters:
    """Return a start tree as the engine takes it, or say why it cannot be one."""
    if start.depth > config.max_depth:
        raise ValueError(
            f"The start tree has depth {start.depth}, more than max_depth={config.max_depth}."
        )
    if start.leaf_weights is not None and config.leaves != "linear":
        raise ValueError("init has linear leaves. Give leaves='linear' to go on learning them.")
    n_columns = problem.schema.n_columns
    if min(config.hidden_sizes, default=n_columns + 1) <= n_columns:
        raise ValueError(
            f"init with layers={config.layers!r} needs hidden sizes of more than the "
            f"{n_columns} columns of the table. Give larger ones, or layers=1."
        )
    return start_parameters(start.to_perfect(config.max_depth), problem)
