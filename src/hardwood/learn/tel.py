r"""TEL: the tree ensemble layer, as a model of its own.

Hazimeh, Ponomareva, Mol, Tan, Mazumder. The Tree Ensemble Layer: Differentiability meets
Conditional Computation. ICML 2020. [TEL20]

Perfect trees whose answers are added up (Sec. 2). A row goes to both sides of a split, with
probabilities that the smooth step S makes of its score (Eq. 4): exactly 0 and 1 beyond
:math:`\pm\gamma/2`, so that a row reaches few leaves once the splits are sure. All trees are
learned at once, by Adam, through the derivative of what they say together.

=========  ==========================  ================================================
paper      here                        shape
=========  ==========================  ================================================
W          weights                     (T, m, c)   T trees, m = 2^depth - 1 splits
O          scores                      (T, 2^depth, k)
m          ``n_trees``
d          ``max_depth``
gamma      ``gamma``
lambda     ``l2``                      on W
=========  ==========================  ================================================

The step is native (``native/tree/soft.hpp`` forwards, ``native/learn/tel/step.hpp`` backwards,
``native/learn/tel/learner.hpp``), its twin is ``tests/reference/tel.py``.

What differs from the paper:

1. S is the probability of going right (the paper: left), as every tree here goes right when a score
   is not negative.
2. Splits have a bias. Batch normalisation, in turn, has neither scale nor shift, which splits with
   biases make superfluous; what it estimates for answers, the moments of the columns, is computed
   from all training rows. It is folded into the splits when learning ends.
3. Rows walk in lists, node by node, depth first (the paper: one after the other), and the gradient
   is written without division: see ``native/learn/tel/step.hpp``.
4. Where most rows of a batch reach a node, scores come from matrix products.
5. A smooth step of degree 5, and the logistic function for comparison.
6. Several starts: the best ensemble on validation data is kept, or all of them, averaged, which is
   one ensemble of all their trees (`keep`).
7. The learning rate falls to zero along a cosine (`Training`; the paper: constant), learning stops
   early on a validation part, and the pass with the smallest loss on it is returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from hardwood.learn.task import Problem, engine_matrix
from hardwood.learn.training import Callback, Epoch, Training, engine_callback, epochs_for, one_of

Activation = Literal["smooth_step", "smooth_step_5", "logistic"]


def default_training() -> Training:
    """Return how TEL is trained unless told otherwise: by Adam, with one cosine."""
    return Training(optimizer="adam", epsilon=1e-7, schedule_restarts=0, clip_norm=None)


@dataclass(frozen=True)
class TEL:
    """The hyper-parameters."""

    n_trees: int = 10
    max_depth: int = 4
    gamma: float = 1.0
    activation: Activation = "smooth_step"
    learning_rate: float = 0.01
    batch_size: int = 128
    max_epochs: int | None = None
    l2: float = 0.0
    batch_norm: bool = True
    restarts: int = 1
    keep: Literal["best", "mean"] = "best"
    early_stopping: bool = True
    training: Training = field(default_factory=default_training)

    def __post_init__(self) -> None:
        one_of("activation", self.activation, get_args(Activation))
        one_of("keep", self.keep, ("best", "mean"))

    def epochs(self, n_rows: int) -> int:
        """Return the number of passes over so many training rows."""
        return self.max_epochs or epochs_for(n_rows, self.batch_size)

    def engine_options(self, n_rows: int) -> dict[str, object]:
        """All options of a run, as the engine takes them."""
        return {
            "hidden": [],
            **self.training.engine_options(
                learning_rate=self.learning_rate,
                momentum=None,
                batch_size=min(self.batch_size, n_rows),
                max_epochs=self.epochs(n_rows),
                l1=0.0,
                l2=self.l2,
                stops_early=self.early_stopping,
            ),
        }


@dataclass(frozen=True)
class GrownEnsemble:
    """What the engine learned: perfect trees in standard units, heap order.

    `weights` (T, m, c) and `bias` (T, m) multiply encoded columns, `scores` (T, 2^depth, k) are
    added up over the trees. `best_restart` and `best_epoch` are of the best run, also where all
    runs are averaged.
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
    config: TEL,
    *,
    n_jobs: int = 1,
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
) -> GrownEnsemble:
    """Learn an ensemble from R starts at once; the best on validation data is kept, or their mean.

    Parameters
    ----------
    problem
        Rows, target, weights, loss and validation part.
    config
        The hyper-parameters.
    n_jobs
        Threads; they share the restarts, and the result does not depend on their number.
    seed
        Of the random start and the order of rows.
    callbacks
        Called after every epoch.
    """
    from hardwood import _native

    max_epochs = config.epochs(len(problem.train))
    answer = _native.fit(
        "tel",
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
        start=None,
        first_run=0,
        n_runs=config.restarts,
        n_draws=None,
        keep_all=config.keep == "mean",
        seed=seed,
        n_threads=n_jobs,
        callback=engine_callback(callbacks, max_epochs),
        options={
            "n_trees": config.n_trees,
            "depth": config.max_depth,
            "activation": config.activation,
            "gamma": config.gamma,
            "batch_norm": config.batch_norm,
            **config.engine_options(len(problem.train)),
        },
    )
    return _grown(answer, max_epochs)


def _grown(answer: dict[str, Any], max_epochs: int) -> GrownEnsemble:
    runs = answer["trees"]
    arrays = {
        part: np.concatenate([run[part] for run in runs]) for part in ("weights", "bias", "scores")
    }
    arrays["scores"] = arrays["scores"] / np.float32(len(runs))  # the mean of the runs' sums
    best = runs[answer["best_run"]] if len(runs) > 1 else runs[0]
    # Far beyond what steps of any sensible length come to: no model could hold such splits.
    if not all((np.abs(array) < 1e15).all() for array in arrays.values()):
        raise ValueError(
            "Learning diverged: weights became huge. Lower learning_rate or l2, or the range "
            "of sample_weight."
        )
    return GrownEnsemble(
        **arrays,
        history=tuple(
            Epoch(run, epoch, max_epochs, *figures)
            for history in answer["history"]
            for run, epoch, *figures in history
        ),
        best_restart=answer["best_run"],
        best_epoch=best["best_epoch"],
        interrupted=answer["interrupted"],
    )
