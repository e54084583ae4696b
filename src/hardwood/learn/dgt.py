r"""DGT: dense gradient trees.

Karthikeyan, Jain, Natarajan, Jain. Learning Accurate Decision Trees with Bandit Feedback via
Quantized Gradient Descent. TMLR 2022. [DGT22]

A tree of height h is written as a sum over its leaves (Eq. 2) whose path functions are a step
function of the *sum* of the decisions on the path (Eq. 4). The prediction is that of the hard tree.
The gradient replaces the outer step by a softmax over the path sums and the inner sign by the
straight-through estimator, so each row updates all 2^h - 1 splits (Alg. 2). Alg. 3 uses
mini-batches of that gradient.

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

The step is native (``native/learn/dgt/step.hpp``, ``soft_step.hpp``); the NumPy reference is
``tests/reference/dgt.py``; layers are multiplied into one matrix at every step
(``native/learn/loop/layers.hpp``), so the learned splits are exactly those of the tree.

What differs from the paper:

1. Columns are divided by the power of two nearest their standard deviation (the paper: by the
   deviation), so that folding the scale into the weights is exact.
2. Regression targets are standardized (the paper: scaled to [0, 1]).
3. The L1 penalty is a proximal step, so weights reach exactly zero.
4. Two classes are learned with one score per leaf (logistic loss).
5. RMSprop's epsilon is 1e-5 (the paper does not state it; the authors' code has it).
6. Annealed routing (Sec. 3.3, Table 7 (c)) sharpens the sigmoids, as Sec. 3.3 says. The forms with
   a softmax over the leaves also sharpen it by the same factor, as C.3.1 says; otherwise they would
   never become hard.
7. With several layers, clipping and penalties apply to the factors, including biases, as in the
   authors' code. A product of sparse factors is not sparse.
8. Several restarts, of which the best on validation data is kept (`n_restarts`), and nodes that no
   training row reaches are dropped when learning ends (`learn/finish.py`).
9. The path "product" has no softmax after the AND layer; "product_softmax" is the paper's (C.3.1).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hardwood.learn.engine import EngineRuns, GradientLearner, run_engine
from hardwood.learn.learner import Learned, Run, Start
from hardwood.learn.losses import NO_LINK
from hardwood.learn.start import start_tree
from hardwood.learn.task import Task
from hardwood.learn.training import LARGEST, Epoch
from hardwood.learn.units import (
    StartParameters,
    linear_leaves_of,
    splits_in_raw_units,
    start_parameters,
)
from hardwood.model import ObliqueTree
from hardwood.model.kinds.tree import heap_children
from hardwood.parameters import (
    Parameters,
    Values,
    checked,
    choice_field,
    hidden_size,
    integer,
    integer_field,
    is_auto,
    object_field,
    real_field,
)

_SHARPNESS = (1.0, 100.0)
_MAX_DEPTH = 16
_MAX_LAYERS = 16
_MAX_HIDDEN = 2**16
_MAX_RESTARTS = 10_000
# n_restarts="auto": number of trees to choose from on validation rows (its benefit is measured in
# benchmarks/quality/defaults.py).
VALIDATED_RESTARTS = 4


def _sharpness(name: str, value: Any) -> tuple[float, float]:
    is_pair = isinstance(value, tuple | list) and len(value) == 2
    if (
        not (is_pair and all(isinstance(each, int | float) for each in value))
        or not 1e-6 <= value[0] <= value[1] <= 1e6
    ):
        raise ValueError(
            f"{name} must be two numbers from 1e-6 to 1e6, the second not smaller, got {value!r}."
        )
    return tuple(value)


def _layers(name: str, value: Any) -> int | tuple[int, ...]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(integer("a hidden size of layers", size, 1, _MAX_HIDDEN) for size in value)
    if isinstance(value, numbers.Integral):
        return integer(name, value, 1, _MAX_LAYERS)
    raise ValueError(
        f"{name} must be an integer from 1 to {_MAX_LAYERS} or a sequence of hidden sizes, got "
        f"{value!r}."
    )


@dataclass(frozen=True)
class Relaxation(Parameters):
    """How gradients pass through the decisions: the design choices that Table 7 compares.

    Parameters
    ----------
    path
        "sum": the AND along a path is a step function of a sum (Eq. 4), as in the paper. "product":
        it is a product of step functions (Eq. 2). "product_softmax": that product with a softmax
        over the leaves after it (C.3.1), the paper's own product form; "product" usually learns
        better.
    quantizer
        "sign": a decision is +1 or -1. "scaled": plus or minus the mean absolute score in the batch
        (in parts of at most 128 rows), as in the authors' code; only for path="sum" with quantized
        routing.
    routing
        "quantized": hard decisions with straight-through gradients. "annealed": sigmoids that
        sharpen during learning, so the tree is soft until the end. With path="product_softmax",
        this is the paper's baseline PAT. The record of the tree has the cost of hardening.
    sharpness
        Annealed routing: factor of the scores at the first step and at the last.
    annealing
        Annealed routing: growth of the sharpness, "linear" or "log".

    Raises
    ------
    ValueError
        For values that are unknown or out of range, and for settings without effect.
    """

    path: Literal["sum", "product", "product_softmax"] = choice_field(
        "sum", ("sum", "product", "product_softmax")
    )
    quantizer: Literal["sign", "scaled"] = choice_field("sign", ("sign", "scaled"))
    routing: Literal["quantized", "annealed"] = choice_field("quantized", ("quantized", "annealed"))
    sharpness: tuple[float, float] = checked(_SHARPNESS, _sharpness, Values("sequence"))
    annealing: Literal["linear", "log"] = choice_field("log", ("linear", "log"))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_effects()

    def _check_effects(self) -> None:
        """Refuse settings without effect."""
        is_annealed = self.routing == "annealed"
        if self.quantizer == "scaled" and (is_annealed or self.path != "sum"):
            raise ValueError(
                "quantizer='scaled' scales the decisions of path='sum' with routing='quantized', "
                f"and does nothing for path={self.path!r} with routing={self.routing!r}: leave it "
                "at 'sign'"
            )
        has_schedule = self.sharpness != _SHARPNESS or self.annealing != "log"
        if has_schedule and not is_annealed:
            raise ValueError(
                f"sharpness={self.sharpness!r} and annealing={self.annealing!r} are of "
                "routing='annealed', and do nothing for routing='quantized': give that routing, or "
                "leave them at their defaults"
            )


@dataclass(frozen=True)
class DGT(GradientLearner):
    """Dense gradient trees; defaults are from Tables 11 and 12 unless noted.

    `DGTClassifier` describes the parameters.
    """

    max_depth: int = integer_field(6, 1, _MAX_DEPTH)
    layers: int | tuple[int, ...] = checked(1, _layers, Values("one_or_more"))
    leaves: Literal["constant", "linear"] = choice_field("constant", ("constant", "linear"))
    momentum: float | None = real_field(None, 0, 1, or_none=True)
    l1: float = real_field(0.0, 0, LARGEST)
    l2: float = real_field(0.0, 0, LARGEST)
    n_restarts: int | Literal["auto"] = integer_field("auto", 1, _MAX_RESTARTS, or_auto=True)
    relaxation: Relaxation = object_field(Relaxation(), named="hardwood.learn.Relaxation")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.leaves == "linear" and self.relaxation.routing == "annealed":
            raise ValueError("leaves='linear' needs quantized routing, got routing='annealed'.")

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Run Algorithm 3 of [DGT22] from R starts; keep the best on validation data."""
        n_runs = self.n_restarts
        if is_auto(n_runs):
            n_runs = VALIDATED_RESTARTS if self.keeps_best(task) and start is None else 1
        runs = self._learn(task, run, start, n_runs=n_runs)
        return self._learned(task, runs, 0, runs.history, runs.best_run)

    def fit_side_by_side(
        self,
        task: Task,
        run: Run,
        start: Start = None,
        *,
        n_runs: int,
        first: int = 0,
        n_draws: int | None = None,
    ) -> list[Learned]:
        """Learn the trees of a DGT-Forest (Sec. 5.2, C.3.1), shared among threads.

        The random numbers of a tree depend on its index, from `first` on, so an enlarged forest
        equals one that was learned at once. `n_draws` rows are drawn with replacement for each
        tree; None for all rows, each once.
        """
        runs = self._learn(
            task, run, start, n_runs=n_runs, first_run=first, n_draws=n_draws, keep_all=True
        )
        return [self._learned(task, runs, i, runs.histories[i], first + i) for i in range(n_runs)]

    def _learn(self, task: Task, run: Run, start: Start, **runs: Any) -> EngineRuns:
        tree = start_tree(start, task, run)
        return run_engine(
            "dgt",
            task,
            self.engine_options(task),
            run,
            start=None if tree is None else self._start(tree, task),
            **runs,
        )

    def _learned(
        self, task: Task, runs: EngineRuns, i: int, history: tuple[Epoch, ...], number: int
    ) -> Learned:
        tree = runs.trees[i]
        gap = tree["criterion"] - tree["soft_criterion"]
        return Learned(
            self._model(task, tree),
            history,
            best_run=number,
            best_epoch=tree["best_epoch"],
            interrupted=runs.interrupted,
            record={"hardening_loss": gap} if math.isfinite(gap) else {},
        )

    def _model(self, task: Task, tree: Mapping[str, Any]) -> ObliqueTree:
        """Return the learned tree in raw units: a perfect tree in heap order."""
        is_sparse = self.l1 > 0 and not self.hidden_sizes
        weights, bias = splits_in_raw_units(
            tree["weights"], tree["bias"], task, is_sparse=is_sparse
        )
        leaf_weights, link = None, NO_LINK
        if tree["leaf_weights"] is None:
            values = task.leaf_values(tree["scores"])
        else:
            values, leaf_weights = linear_leaves_of(tree["scores"], tree["leaf_weights"], task)
            link = task.loss.link_name
        return ObliqueTree(
            weights,
            bias,
            heap_children(len(weights)),
            values,
            schema=task.schema,
            task=task.kind,
            classes=task.labels,
            target_names=task.target_names,
            leaf_weights=leaf_weights,
            link=link,
        )

    @property
    def hidden_sizes(self) -> tuple[int, ...]:
        """Hidden sizes between the linear layers; empty for one layer."""
        if isinstance(self.layers, tuple):
            return self.layers
        return (hidden_size(self.max_depth),) * (self.layers - 1)

    def engine_options(self, task: Task) -> dict[str, Any]:
        """Return all options of a run, for the engine."""
        return {
            "height": self.max_depth,
            "hidden": list(self.hidden_sizes),
            "linear_leaves": self.leaves == "linear",
            "path": self.relaxation.path,
            "quantizer": self.relaxation.quantizer,
            "routing": self.relaxation.routing,
            "sharpness": self.relaxation.sharpness,
            "annealing": self.relaxation.annealing,
            **self.loop_options(task, momentum=self.momentum, l1=self.l1, l2=self.l2),
        }

    def _start(self, start: ObliqueTree, task: Task) -> StartParameters:
        """Return the start for the engine, or raise if the tree cannot be a start."""
        if start.depth > self.max_depth:
            raise ValueError(
                f"The start tree has depth {start.depth}, more than max_depth={self.max_depth}."
            )
        if start.leaf_weights is not None and self.leaves != "linear":
            raise ValueError("init has linear leaves. Use leaves='linear' to continue from them.")
        n_columns = task.schema.n_columns
        if min(self.hidden_sizes, default=n_columns + 1) <= n_columns:
            raise ValueError(
                f"init with layers={self.layers!r} needs hidden sizes larger than the table's "
                f"number of columns, {n_columns}. Use larger sizes, or layers=1."
            )
        return start_parameters(start.to_perfect(self.max_depth), task)
