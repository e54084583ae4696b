r"""Non-greedy trees: all splits and leaves learned jointly.

Norouzi, Collins, Johnson, Fleet, Kohli. Efficient Non-greedy Optimization of Decision Trees. NIPS
2015. [NonGreedy15]

The loss of a tree for a row is at most the maximum over leaves of the leaf's loss minus the cost of
sending the row there, where each decision that differs from :math:`\operatorname{sgn}(w_i^\top x)`
costs :math:`2|w_i^\top x|` (Eq. 7, 12). The bound is piecewise linear in the splits. Its gradient
involves only the splits on two paths, so the cost of a step does not depend on the number of
splits. Splits are kept in a ball of radius :math:`\sqrt\nu`: larger norms would make the bound
tighter, but harder to optimize (Proposition 1).

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

The step is native (``native/learn/non_greedy/step.hpp``, ``learner.hpp``); the NumPy reference is
``tests/reference/non_greedy.py``.

What differs from the paper:

1. Loss-augmented inference over all leaves (Eq. 10) uses branch and bound. It finds the same leaf
   as the paper's search of the whole tree, at about the cost of its fast variant (Eq. 13).
2. A row goes right if the score of a split is nonnegative, splits have biases, and columns are
   standardized.
3. The learning rate follows a cosine (`Training`). Learning may stop early on validation rows, or
   at the best epoch of the search for `nu` or the learning rate.
4. Sparse splits, which the paper leaves to future work: an L1 penalty, or a largest number of
   features per split (those with the largest weights are kept).
5. Any loss of the engine that is defined per leaf; two classes have one score per leaf.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from hardwood.learn.finish import routed_leaves
from hardwood.learn.gradient.engine import EngineRuns, GradientLearner, run_engine
from hardwood.learn.learner import Learned, Run, Start
from hardwood.learn.losses import LEAF_LOSSES
from hardwood.learn.start import StartTree, cautious_scores, left_to_right, required_start
from hardwood.learn.task import Task
from hardwood.learn.training import LARGEST, Epoch, Training
from hardwood.learn.units import splits_in_raw_units, start_parameters
from hardwood.model import ObliqueTree
from hardwood.parameters import (
    choice_field,
    integer_field,
    is_auto,
    object_field,
    real_field,
    switch_field,
)

Inference = Literal["exact", "fast", "exhaustive"]
Solver = Literal["ssgd", "sgd"]

# Sec. 7: candidates for nu. The paper does not say which learning rates it tries.
NU_GRID = (0.1, 1.0, 4.0, 10.0, 43.0, 100.0)
LEARNING_RATE_GRID = (0.03, 0.1, 0.3)

# SGD with one cosine cycle, without gradient clipping.
TRAINING = Training(optimizer="sgd", schedule_restarts=0, clip_norm=None)

_MAX_DEPTH = 32


@dataclass(frozen=True)
class NonGreedy(GradientLearner):
    """Non-greedy trees; `NonGreedyTreeClassifier` describes the parameters."""

    losses: ClassVar[frozenset[str]] = LEAF_LOSSES
    run_name: ClassVar[str] = "run"
    searched: ClassVar[tuple[str, ...]] = ("nu", "learning_rate")

    max_depth: int = integer_field(8, 1, _MAX_DEPTH)
    nu: float | Literal["auto"] = real_field(43.0, 1e-6, 1e6, open_low=True, or_auto=True)
    learning_rate: float | Literal["auto"] = real_field(
        0.1, 0, LARGEST, open_low=True, or_auto=True
    )
    inference: Inference = choice_field("exact", get_args(Inference))
    solver: Solver = choice_field("ssgd", get_args(Solver))
    momentum: float = real_field(0.9, 0, 1)
    early_stopping: bool | str = switch_field(False)
    l1: float = real_field(0.0, 0, LARGEST)
    max_features_per_split: int | None = integer_field(None, 1, or_none=True)
    training: Training = object_field(TRAINING, named="hardwood.learn.Training")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.training.optimizer != "sgd":
            raise ValueError(
                f"non-greedy trees use optimizer='sgd', got optimizer={self.training.optimizer!r}."
            )

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Run Algorithm 1 of [NonGreedy15] from the tree of another learner.

        Parameters that are "auto" are chosen on validation rows, and the tree is then learned from
        all rows, as in Sec. 7. Runs are numbered in order (`Epoch.restart`): the pairs of the
        search, then the run on all rows. If the user interrupts that run, the best tree of the
        search is kept.
        """
        tree = self._start(task, run, start)
        settings = self._settings()
        runs = self._learn(task, run, tree, settings)
        found = self._learned(task, tree, settings, runs)
        if not self.is_searched or runs.interrupted:
            return found
        scored = [self._returned(task, history) for history in runs.histories]
        trials = [
            (*setting, _validation_loss(epoch))
            for setting, epoch in zip(settings, scored, strict=True)
        ]
        best = min(range(len(trials)), key=lambda i: trials[i][2])
        again = self._on_all_rows(
            task.whole(), run, start, len(settings), settings[best], scored[best].epoch
        )
        # If the user interrupted the second run, only the tree of the search is complete.
        kept = found if again is None or again.interrupted else again
        return replace(
            kept,
            facts={**kept.facts, "trials": trials},
            interrupted=again is None or again.interrupted,
            task=task,
        )

    def _settings(self) -> list[tuple[float, float]]:
        """Return the pairs of nu and learning rate to try."""
        nus: tuple[Any, ...] = NU_GRID if is_auto(self.nu) else (self.nu,)
        rates: tuple[Any, ...] = (
            LEARNING_RATE_GRID if is_auto(self.learning_rate) else (self.learning_rate,)
        )
        return list(itertools.product(nus, rates))

    def _start(self, task: Task, run: Run, start: Start) -> StartTree:
        tree = required_start(start, task, run, self.max_depth)
        return left_to_right(start_from(tree, task, n_jobs=run.n_jobs))

    def _on_all_rows(
        self,
        whole: Task,
        run: Run,
        start: Start,
        number: int,
        setting: tuple[float, float],
        last_epoch: int,
    ) -> Learned | None:
        """Learn with the best setting, up to the epoch at which it was scored.

        None if the user interrupts the start.
        """

        def renumbered(callback: Any) -> Any:
            return lambda epoch: callback(replace(epoch, restart=number))

        def ends(epoch: Epoch) -> bool:
            return epoch.epoch >= last_epoch

        callbacks = (*(renumbered(callback) for callback in run.callbacks), ends)
        try:
            tree = self._start(whole, run, start)
            runs = self._learn(whole, replace(run, callbacks=callbacks), tree, [setting])
        except KeyboardInterrupt:
            return None
        return self._learned(whole, tree, [setting], runs)

    def _returned(self, task: Task, history: tuple[Epoch, ...]) -> Epoch:
        """Return the epoch at which a run is scored: the best or the last."""
        return min(history, key=_validation_loss) if self.stops_early(task) else history[-1]

    def _learn(
        self, task: Task, run: Run, start: StartTree, settings: list[tuple[float, float]]
    ) -> EngineRuns:
        """Learn with every pair of nu and learning rate."""
        return run_engine(
            "non_greedy",
            task,
            {
                **self.engine_options(task),
                "children": start.children,
                "nu": [nu for nu, _ in settings],
                "learning_rate": [rate for _, rate in settings],
            },
            run,
            start=(start.weights, start.bias, start.scores),
            n_runs=len(settings),
        )

    def _learned(
        self,
        task: Task,
        start: StartTree,
        settings: list[tuple[float, float]],
        runs: EngineRuns,
    ) -> Learned:
        (tree,) = runs.trees
        nu, rate = settings[runs.best_run]
        used = {"nu": nu, "learning_rate": rate}
        return Learned(
            self._model(task, start.children, tree),
            runs.histories[runs.best_run],
            best_run=runs.best_run,
            best_epoch=tree["best_epoch"],
            interrupted=runs.interrupted,
            resolved=used if self.is_searched else {},
            facts={**used, "trials": []},
        )

    def _model(
        self, task: Task, children: np.ndarray, tree: Mapping[str, np.ndarray]
    ) -> ObliqueTree:
        weights, bias = splits_in_raw_units(
            tree["weights"], tree["bias"], task, is_sparse=self.l1 > 0
        )
        return ObliqueTree(
            weights,
            bias,
            children,
            task.leaf_values(tree["scores"]),
            schema=task.schema,
            task=task.kind,
            classes=task.labels,
            target_names=task.target_names,
        )

    def engine_options(self, task: Task) -> dict[str, Any]:
        """Return the options that all runs share, for the engine."""
        return {
            "hidden": [],
            "inference": self.inference,
            "stable": self.solver == "ssgd",
            "max_features": self.max_features_per_split or 0,
            "feature_of_column": task.schema.column_feature.tolist(),
            **self.loop_options(task, learning_rate=0.0, momentum=self.momentum, l1=self.l1),
        }


def _validation_loss(epoch: Epoch) -> float:
    loss = epoch.validation_loss
    return loss if loss == loss else np.inf  # NaN compares with nothing


def start_from(tree: ObliqueTree, task: Task, *, n_jobs: int = 1) -> StartTree:
    """Return a tree as a start, in the units of a task.

    Raises
    ------
    ValueError
        If it has linear leaves, or if its columns or outputs differ from those of the task.
    """
    if tree.has_linear_leaves:
        raise ValueError("init has linear leaves, but non-greedy trees have constant ones.")
    weights, bias, scores, _ = start_parameters(tree, task)
    values = task.loss.link(scores.astype(np.float64))
    leaf = routed_leaves(tree, task.matrix, task.train, n_jobs)
    return StartTree(weights, bias, tree.children, cautious_scores(task, values, leaf))
