"""Learners of one perfect tree by the native training loop: what DGT and semantic logits share."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from hardwood.learn.gradient.engine import EngineRuns, GradientLearner, run_engine
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
    Values,
    checked,
    choice_field,
    hidden_size,
    integer,
    integer_field,
    is_auto,
    real_field,
)

_MAX_DEPTH = 16
_MAX_LAYERS = 16
_MAX_HIDDEN = 2**16
_MAX_RESTARTS = 10_000
# n_restarts="auto": number of trees to choose from on validation rows (its benefit is measured in
# benchmarks/quality/defaults.py).
VALIDATED_RESTARTS = 4


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
class PerfectTreeLearner(GradientLearner):
    """A learner of 2^h - 1 splits and 2^h leaves, at once, from several random starts."""

    engine_name: ClassVar[str]
    """The method of `run_engine`."""

    max_depth: int = integer_field(6, 1, _MAX_DEPTH)
    layers: int | tuple[int, ...] = checked(1, _layers, Values("one_or_more"))
    leaves: str = choice_field("constant", ("constant", "linear"))
    momentum: float | None = real_field(None, 0, 1, or_none=True)
    l1: float = real_field(0.0, 0, LARGEST)
    l2: float = real_field(0.0, 0, LARGEST)
    noise: float = real_field(0.0, 0, LARGEST)
    n_restarts: int | Literal["auto"] = integer_field("auto", 1, _MAX_RESTARTS, or_auto=True)

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Learn from R starts; keep the best on validation data."""
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
        """Learn the trees of a forest (a DGT-Forest of [DGT22], Sec. 5.2, C.3.1) on all threads.

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
            self.engine_name,
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
        if tree["leaf_weights"] is None:
            return self._tree_of(task, tree, task.leaf_values(tree["scores"]))
        values, leaf_weights = linear_leaves_of(tree["scores"], tree["leaf_weights"], task)
        return self._tree_of(
            task, tree, values, leaf_weights=leaf_weights, link=task.loss.link_name
        )

    def _tree_of(
        self,
        task: Task,
        tree: Mapping[str, Any],
        values: np.ndarray,
        *,
        leaf_weights: np.ndarray | None = None,
        link: Any = NO_LINK,
    ) -> ObliqueTree:
        is_sparse = self.l1 > 0 and not self.hidden_sizes
        weights, bias = splits_in_raw_units(
            tree["weights"], tree["bias"], task, is_sparse=is_sparse
        )
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
            **self.loop_options(
                task, momentum=self.momentum, l1=self.l1, l2=self.l2, noise=self.noise
            ),
            **self._method_options(),
        }

    @abstractmethod
    def _method_options(self) -> dict[str, Any]:
        """Return the options of the method, and those of the loop that it changes."""

    def _start(self, start: ObliqueTree, task: Task) -> StartParameters:
        """Return the start for the engine, or raise if the tree cannot be a start."""
        return start_parameters(self._perfect_start(start, task), task)

    def _perfect_start(self, start: ObliqueTree, task: Task) -> ObliqueTree:
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
        return start.to_perfect(self.max_depth)
