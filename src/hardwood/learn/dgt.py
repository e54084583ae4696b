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
lambda    ``l1``, ``l2``              on W only
L         ``layers``                  1: the splits themselves
========  ==========================  ===========================================

The step is native (``native/learn/dgt.hpp``), its twin is ``reference/dgt.py``.

What differs from the paper:

1. Columns are divided by the power of two nearest their standard deviation (the paper: by the
   deviation), so that folding the scale into the weights is exact.
2. Regression targets have mean 0 and deviation 1 (the paper: range [0, 1]).
3. The L1 penalty is a proximal step, so weights reach exactly zero.
4. Two classes are learned with one score per leaf (logistic loss).
5. RMSprop's epsilon is 1e-5 (the paper does not state it; the authors' code has it).
6. Several restarts, of which the best on validation data is kept (`restarts`), and nodes that no
   training row reaches are dropped when learning ends (`learn/assemble.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from hardwood.learn.problem import Problem
from hardwood.learn.training import Callback, Epoch, Training, engine_callback
from hardwood.model import ObliqueTree

# Table 11: 30 to 400 epochs "depending on dataset size"; here, so many that they make these steps.
_STEPS = 20_000
_EPOCHS = (30, 400)


@dataclass(frozen=True)
class DGT:
    """The hyper-parameters; defaults are those of Tables 11 and 12 unless said otherwise."""

    max_depth: int = 6
    layers: int = 1
    learning_rate: float = 0.01
    batch_size: int = 128
    max_epochs: int | None = None
    momentum: float | None = None
    l1: float = 0.0
    l2: float = 0.0
    restarts: int = 1
    early_stopping: bool = True
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        if self.layers != 1:
            raise ValueError(
                f"layers={self.layers!r}: this version learns the splits directly, layers=1. "
                "Overparameterised splits are not available yet."
            )

    def epochs(self, n_rows: int) -> int:
        """Return the number of passes over so many training rows."""
        if self.max_epochs is not None:
            return self.max_epochs
        n_batches = -(-n_rows // self.batch_size)
        return int(np.clip(_STEPS // n_batches, *_EPOCHS))


@dataclass(frozen=True)
class Grown:
    """What the engine learned: a perfect tree in standard units, heap order.

    `weights` (m, c) multiply encoded columns, `scores` (2^h, k) are the leaves before the link.
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
    from hardwood import _native

    max_epochs = config.epochs(len(problem.train))
    answer = _native.fit_dgt(
        problem.schema.encoder,
        _engine_matrix(problem.matrix),
        problem.y,
        problem.weight,
        problem.train,
        problem.valid,
        height=config.max_depth,
        n_outputs=problem.n_outputs,
        loss=problem.loss.name,
        loss_parameter=problem.loss.parameter,
        custom=problem.loss if problem.loss.name == "custom" else None,
        start=None if start is None else _start_parameters(start, problem, config.max_depth),
        restarts=config.restarts,
        seed=seed,
        n_threads=n_jobs,
        callback=engine_callback(callbacks, max_epochs),
        options=config.training.engine_options(
            learning_rate=config.learning_rate,
            momentum=config.momentum,
            batch_size=min(config.batch_size, len(problem.train)),
            max_epochs=max_epochs,
            l1=config.l1,
            l2=config.l2,
            stops_early=config.early_stopping,
        ),
    )
    if not all(np.isfinite(answer[part]).all() for part in ("weights", "bias", "scores")):
        raise ValueError(
            "Learning diverged: weights became infinite. Lower learning_rate, l1 or l2, or the "
            "range of sample_weight; with init, give a tree learned from targets and columns of "
            "about the same size."
        )
    history = tuple(
        Epoch(restart, epoch, max_epochs, train_loss, validation_loss, rate)
        for run in answer["history"]
        for restart, epoch, train_loss, validation_loss, rate in run
    )
    return Grown(
        answer["weights"],
        answer["bias"],
        answer["scores"],
        history,
        answer["best_restart"],
        answer["best_epoch"],
        answer["interrupted"],
    )


def fold(grown: Grown, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return the splits in raw units: weights (m, c) and bias (m,) in float64.

    Exact for numbers, whose scale is a power of two. A categorical feature without missing entries
    in training gets its levels' mean weight moved into the bias: the split stays the same, and an
    unseen level, which has no indicator, then counts as an average one. Where a penalty has made
    some levels exactly zero they stay so, and an unseen level counts as one of them.
    """
    schema = problem.schema
    weights = grown.weights.astype(np.float64) / schema.column_scale
    bias = grown.bias.astype(np.float64)
    for j, feature in enumerate(schema.features):
        if feature.kind == "categorical" and not feature.has_missing:
            first = schema.first_column[j]
            levels = slice(first, first + len(feature.levels))
            is_dense = (weights[:, levels] != 0).all(axis=1)
            mean = np.where(is_dense, weights[:, levels] @ _level_shares(problem, j), 0.0)
            weights[:, levels] -= mean[:, None]
            bias += mean
    return weights, bias


def _level_shares(problem: Problem, j: int) -> np.ndarray:
    rows = np.concatenate([problem.train, problem.valid])
    codes = problem.matrix[rows, j].astype(np.int64)
    n_levels = len(problem.schema.features[j].levels)
    total = np.bincount(codes, problem.weight[rows], minlength=n_levels)
    return total / total.sum()


def _start_parameters(
    start: ObliqueTree, problem: Problem, max_depth: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a start tree's weights, bias and scores, as a perfect tree in the problem's units."""
    if start.depth > max_depth:
        raise ValueError(
            f"The start tree has depth {start.depth}, more than max_depth={max_depth}."
        )
    tree = start.to_perfect(max_depth)
    old, new = tree.schema, problem.schema
    if old.column_names != new.column_names:
        raise ValueError(
            f"init has the columns {list(old.column_names)}, "
            f"but the table has {list(new.column_names)}."
        )
    if tree.values.shape[1] != problem.loss.link(np.zeros((1, problem.n_outputs))).shape[1]:
        raise ValueError("init has another number of outputs or classes than the target.")
    # w (x - old center) + b = w (x - new center) + w (new center - old center) + b
    # A missing entry has neither term: its flag takes back what the bias gained.
    gain = tree.weights * (new.column_center - old.column_center)
    bias, weights = tree.bias + gain.sum(axis=1), tree.weights.copy()
    for first, flag in zip(new.first_column, new.flag_column, strict=True):
        if flag >= 0:
            weights[:, flag] -= gain[:, first]
    values = tree.values
    if problem.loss.target_units != "raw":
        values = (values - problem.target_center) / problem.target_scale
    parameters: tuple[Any, ...] = (
        weights * new.column_scale,
        bias,
        problem.loss.scores(values),
    )
    W, b, theta = (np.ascontiguousarray(part, dtype=np.float32) for part in parameters)
    return W, b, theta


def _engine_matrix(matrix: Any) -> Any:
    """Return a dense table as it is, a sparse one as its three arrays."""
    if not sparse.issparse(matrix):
        return matrix
    return matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int64)
