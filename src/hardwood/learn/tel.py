r"""TEL: the tree ensemble layer, as a model.

Hazimeh, Ponomareva, Mol, Tan, Mazumder. The Tree Ensemble Layer: Differentiability meets
Conditional Computation. ICML 2020. [TEL20]

The predictions of perfect trees are added (Sec. 2). A row goes to both sides of a split. The
smooth step S turns its score into probabilities (Eq. 4), which are exactly 0 and 1 beyond
:math:`\pm\gamma/2`, so a row reaches few leaves once the splits are certain. All trees are learned
jointly, by Adam, from the gradient of their sum.

=========  ==========================  ================================================
paper      here                        shape
=========  ==========================  ================================================
W          weights                     (T, m, c)   T trees, m = 2^depth - 1 splits
O          scores                      (T, 2^depth, k)
m          ``n_estimators``
d          ``max_depth``
gamma      ``gamma``
lambda     ``l2``                      on W
=========  ==========================  ================================================

The step is native (``native/tree/soft.hpp`` forwards, ``native/learn/tel/step.hpp`` backwards,
``native/learn/tel/learner.hpp``); the NumPy reference is ``tests/reference/tel.py``.

What differs from the paper:

1. S is the probability of going right (the paper: left), because all trees here go right for
   nonnegative scores.
2. Splits have a bias. Batch normalization therefore needs neither scale nor shift. Its moments for
   prediction are computed from all training rows. It is folded into the splits after learning.
3. Rows are processed in lists, node by node, depth first (the paper: row by row), and the gradient
   is computed without division: see ``native/learn/tel/step.hpp``.
4. If most rows of a batch reach a node, scores come from matrix products.
5. A smooth step of degree 5, and the logistic function for comparison.
6. Several starts: the best ensemble on validation data is kept, or all are averaged into one
   ensemble (`combine_runs`).
7. The learning rate follows a cosine to zero (`Training`; the paper: constant). Learning stops
   early on validation rows and returns to the best epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from hardwood.learn.gradient.engine import GradientLearner, run_engine
from hardwood.learn.learner import Learned, Run, Start
from hardwood.learn.task import Task
from hardwood.learn.training import LARGEST, Training
from hardwood.learn.units import splits_in_raw_units
from hardwood.model import TreeEnsemble
from hardwood.parameters import (
    choice_field,
    flag_field,
    integer_field,
    object_field,
    real_field,
)

Activation = Literal["smooth_step", "smooth_step_5", "logistic"]


# Adam with one cosine cycle, without gradient clipping.
TRAINING = Training(optimizer="adam", epsilon=1e-7, schedule_restarts=0, clip_norm=None)

_MAX_TREES = 1000
_MAX_DEPTH = 12
_MAX_RESTARTS = 10_000


@dataclass(frozen=True)
class TEL(GradientLearner):
    """The tree ensemble layer; `TELClassifier` describes the parameters."""

    takes_start: ClassVar[bool] = False

    n_estimators: int = integer_field(10, 1, _MAX_TREES)
    max_depth: int = integer_field(4, 1, _MAX_DEPTH)
    gamma: float = real_field(1.0, 1e-6, 1e6, open_high=False)
    activation: Activation = choice_field("smooth_step", get_args(Activation))
    l2: float = real_field(0.0, 0, LARGEST)
    batch_norm: bool = flag_field(True)
    n_restarts: int = integer_field(1, 1, _MAX_RESTARTS)
    combine_runs: Literal["best", "mean"] = choice_field("best", ("best", "mean"))
    training: Training = object_field(TRAINING, named="hardwood.learn.Training")

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Learn ensembles from R starts; keep the best on validation data, or all.

        If all are kept, `best_run` and `best_epoch` belong to the best one.
        """
        runs = run_engine(
            "tel",
            task,
            self.engine_options(task),
            run,
            n_runs=self.n_restarts,
            keep_all=self.combine_runs == "mean",
        )
        best = runs.trees[runs.best_run] if len(runs.trees) > 1 else runs.trees[0]
        return Learned(
            self._model(task, runs.trees),
            runs.history,
            best_run=runs.best_run,
            best_epoch=best["best_epoch"],
            interrupted=runs.interrupted,
        )

    @property
    def compares_runs(self) -> bool:
        return self.n_restarts > 1 and self.combine_runs == "best"

    def _model(self, task: Task, trees: list[dict[str, Any]]) -> TreeEnsemble:
        """Return the ensemble in raw units: the mean of the sums of the runs."""
        weights, bias, scores = (
            np.concatenate([tree[part] for tree in trees]) for part in ("weights", "bias", "scores")
        )
        shape = weights.shape
        weights, bias = splits_in_raw_units(weights.reshape(-1, shape[2]), bias.ravel(), task)
        return TreeEnsemble(
            weights.reshape(shape),
            bias.reshape(shape[:2]),
            task.summed_scores(scores / np.float32(len(trees))),
            gamma=self.gamma,
            activation=self.activation,
            schema=task.schema,
            task=task.kind,
            link=task.loss.link_name,
            classes=task.labels,
            target_names=task.target_names,
        )

    def engine_options(self, task: Task) -> dict[str, Any]:
        """Return all options of a run, for the engine."""
        return {
            "hidden": [],
            "n_trees": self.n_estimators,
            "depth": self.max_depth,
            "activation": self.activation,
            "gamma": self.gamma,
            "batch_norm": self.batch_norm,
            **self.loop_options(task, l2=self.l2),
        }
