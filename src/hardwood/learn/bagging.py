"""Bagging: the same learner on bootstrap samples, combined by averaging or voting.

Breiman. Bagging Predictors. Machine Learning, 1996. [Breiman96]

A learner that can train several trees at once in the engine (DGT: a DGT-Forest is `Bagging` of
`DGT`) learns all members in parallel; any other learner is fitted to one sample after the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from hardwood.learn.dgt import DGT
from hardwood.learn.learner import Learned, Learner, Run, Start
from hardwood.learn.losses import Loss
from hardwood.learn.task import Task
from hardwood.model import ObliqueForest, ObliqueTree
from hardwood.model.kinds.forest import MAX_TREES
from hardwood.model.structure import TaskKind
from hardwood.parameters import choice_field, flag_field, integer_field, real_field
from hardwood.text.numbers import plural


@runtime_checkable
class SideBySide(Protocol):
    """A learner that learns several trees at once, each from its own sample."""

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
        """Learn them; see `DGT.fit_side_by_side`."""


@dataclass(frozen=True)
class Bagging(Learner):
    """A forest of `n_estimators` trees.

    Parameters
    ----------
    base
        The learner of the members; it must return a hard oblique tree.
    n_estimators
        Number of trees.
    bootstrap
        Whether each tree learns from rows drawn with replacement. Otherwise each learns from all
        rows, and trees differ only in their random starts.
    sample_fraction
        Rows drawn for each tree, as a fraction of the training rows; 1 without `bootstrap`.
    combine
        "mean": average the predictions. "vote": count the trees that choose each class.
    member_start
        The start of every member.
    """

    run_name: ClassVar[str] = "tree"

    base: Learner = DGT(early_stopping=False)
    n_estimators: int = integer_field(30, 1, MAX_TREES)
    bootstrap: bool = flag_field(True)
    sample_fraction: float = real_field(1.0, 0, 1, open_low=True, open_high=False)
    combine: Literal["mean", "vote"] = choice_field("mean", ("mean", "vote"))
    member_start: Start = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.base, Learner):
            raise TypeError(f"base must be a learner of hardwood.learn, got {self.base!r:.200}.")
        if self.sample_fraction != 1 and not self.bootstrap:
            raise ValueError(
                f"sample_fraction={self.sample_fraction:g} needs bootstrap=True, which draws rows. "
                "Use bootstrap=True, or leave sample_fraction at 1."
            )

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Learn the missing trees; those of `start`, a forest, are kept.

        The random numbers of a tree depend on its index, so an enlarged forest equals one that was
        learned at once from the same rows.
        """
        kept = self._kept(start, task)
        n_missing = self.n_estimators - len(kept)
        members = self._members(task, run, n_missing, first=len(kept)) if n_missing else []
        begun = _begun(members, len(kept))
        trees: list[Any] = [*kept, *(member.model for member in begun)]
        return Learned(
            ObliqueForest(trees, combine=self.combine),
            sum(((member.history or ()) for member in members), ()),
            interrupted=any(member.interrupted for member in members),
            members=tuple(begun),
        )

    def find_loss(self, spec: Any, kind: TaskKind, n_classes: int | None) -> Loss:
        return self.base.find_loss(spec, kind, n_classes)

    @property
    def needs_validation(self) -> str:
        return self.base.needs_validation

    def wants_validation(self, task: Task) -> bool:
        """Whether the members stop early."""
        return self.base.stops_early(task)

    @property
    def n_runs(self) -> int:
        """The number of trees."""
        return self.n_estimators

    def interrupted_message(self, learned: Learned) -> str:
        n = plural(len(learned.history or ()), "epoch")
        return f"Learning was interrupted after {n}; the trees are kept as they are."

    def n_draws(self, n_rows: int) -> int | None:
        """Return the number of rows drawn for one tree; None without `bootstrap`."""
        if not self.bootstrap:
            return None
        return max(1, int(math.floor(self.sample_fraction * n_rows + 0.5)))

    def drawn(self, n_rows: int, seed: int, number: int) -> np.ndarray:
        """Return how often each training row is drawn for the tree with this index."""
        from hardwood import _native

        n_draws = self.n_draws(n_rows)
        assert n_draws is not None
        return _native.bootstrap_counts(n_rows, n_draws, seed, number).astype(np.int64)

    def _members(self, task: Task, run: Run, n_trees: int, first: int) -> list[Learned]:
        if isinstance(self.base, SideBySide):
            n_draws = self.n_draws(len(task.train))
            return self.base.fit_side_by_side(
                task, run, self.member_start, n_runs=n_trees, first=first, n_draws=n_draws
            )
        members = []
        for number in range(first, first + n_trees):
            members.append(self._member(task, run, number))
            if members[-1].interrupted:
                break
        return members

    def _member(self, task: Task, run: Run, number: int) -> Learned:
        """Learn one tree from a sample, with its own random numbers."""
        sample = task
        if self.bootstrap:
            sample = _sampled(task, self.drawn(len(task.train), run.seed, number))
        seed = int(np.random.default_rng((run.seed, number)).integers(2**31 - 1))
        learned = self.base.fit(sample, replace(run, seed=seed), self.member_start)
        tree = learned.model.hard("a forest")
        if not isinstance(tree, ObliqueTree):
            raise TypeError(
                f"Bagging needs a learner of one hard tree, but {type(self.base).__name__} "
                f"returned a {type(tree).__name__}."
            )
        return replace(learned, model=tree)

    def _kept(self, start: Start, task: Task) -> tuple[ObliqueTree, ...]:
        if start is None:
            return ()
        if not isinstance(start, ObliqueForest):
            raise TypeError(
                "A forest starts from a forest, whose trees it keeps; its trees start from "
                f"member_start. Got {start!r:.200}."
            )
        _check_same_table(start.trees[0], task)
        return start.trees


def _sampled(task: Task, counts: np.ndarray) -> Task:
    """Return a task whose training rows are weighted by how often they were drawn."""
    row_weight, weight = task.row_weight.copy(), task.weight.astype(np.float64)
    for each in (row_weight, weight):
        each[task.train] *= counts
    train = task.train[counts > 0]
    used = np.concatenate([train, task.valid])
    weight = (weight / weight[used].mean()).astype(np.float32)
    return replace(task, train=train, row_weight=row_weight, weight=weight)


def _begun(members: list[Learned], n_kept: int) -> list[Learned]:
    """Leave out trees that were interrupted before their first epoch, and those after them.

    The trees of a forest are numbered without gaps, and there is at least one.
    """
    n_begun = next((i for i, one in enumerate(members) if one.history == ()), len(members))
    return members[: max(n_begun, 0 if n_kept else 1)]


def _check_same_table(kept: ObliqueTree, task: Task) -> None:
    known = (kept.schema, kept.task, kept.classes, kept.target_names)
    found = (task.schema, task.kind, task.labels, task.target_names)
    if known != found or kept.n_outputs != task.n_targets:
        raise ValueError(
            "warm_start=True needs the same table: the columns, their categories or means, the "
            "classes or the target differ from the earlier fit. Use warm_start=False."
        )
