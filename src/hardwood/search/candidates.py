"""One way to build a tree: where it starts, how its rows are augmented, and how TAO refines it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from hardwood.clock import Clock, FinishOrSkip, StopAtDeadline
from hardwood.learn.greedy import Greedy, one_hot
from hardwood.learn.learner import Learned, Run
from hardwood.learn.losses import Misclassification
from hardwood.learn.reinforced import Reinforced
from hardwood.learn.tao import TAO
from hardwood.learn.task import Task
from hardwood.learn.training import Epoch
from hardwood.model import ObliqueTree
from hardwood.progress import Progress
from hardwood.search.augment import Augmentation
from hardwood.search.distill import Teacher, distillation_task
from hardwood.text.numbers import plural

Start = Literal["axis", "co2", "reinforced"]
Kind: TypeAlias = tuple[Start, bool, bool]
"""The start of a candidate, whether TAO refines it, and whether it is distilled."""

_START_NAMES = {"axis": "axis-aligned", "co2": "CO2", "reinforced": "reinforced"}
# Reinforced trees: the number of epochs is chosen to give this many gradient steps, within limits.
# With augmented rows a tree overfits less, so that it can learn for longer.
_STEPS = 3_000
_DISTILLATION_STEPS = 6_000
_EPOCHS = (10, 120)
_BATCH = 128
# Reinforced trees, for one column: a score is a sum over columns, so that it changes faster where
# there are more of them. Chosen, like the steps, on validation rows of letter, satimage, optdigits,
# connect4 and mnist.
_LEARNING_RATE = 0.12
_MAX_LEARNING_RATE = 0.03
_MAX_AUGMENTED_ENTRIES = 12_000_000  # of real and augmented rows, encoded
_CO2_ROWS = 25_000  # that oblique start trees are grown from; TAO uses all rows
_RESTART_FRACTION = 0.7  # of the rows, for the start trees of restarts without augmented rows


def reinforced_epochs(n_rows: int, is_distilled: bool) -> int:
    """Return the number of epochs for which a reinforced tree learns from this many rows."""
    n_steps = _DISTILLATION_STEPS if is_distilled else _STEPS
    return min(max(n_steps * _BATCH // n_rows, _EPOCHS[0]), _EPOCHS[1])


class OutOfTime(Exception):
    """There was not enough time to finish."""


@dataclass(frozen=True)
class Candidate:
    """One way to build a tree.

    Attributes
    ----------
    start
        The tree to start from: a greedy tree with axis-aligned ("axis") or oblique splits ("co2"),
        or a tree whose splits and leaves are learned together ("reinforced").
    max_depth
        Maximum depth; 0 for a single leaf.
    tao
        The TAO that refines the start tree; None to use the start tree itself.
    augmentation
        The augmented rows that a teacher labels; None to learn from real rows only.
    seed
        Distinguishes restarts; 0 for the first run. A restart with augmentation draws other
        augmented rows. One without grows its greedy start tree on a sample of the rows, or its
        reinforced tree from other random numbers.
    """

    start: Start
    max_depth: int
    tao: TAO | None = None
    augmentation: Augmentation | None = None
    seed: int = 0

    def __str__(self) -> str:
        if self.max_depth == 0:
            return "a single leaf"
        start = _START_NAMES[self.start]
        parts = [start if self.tao is None else f"TAO from {start}", f"depth {self.max_depth}"]
        if self.seed:
            parts.append(f"restart {self.seed}")
        if self.tao is not None:
            parts.append(f"l1 {self.tao.l1:g}, l2 {self.tao.l2:g}")
            most = self.tao.max_features_per_split
            if most is not None:
                parts.append(f"at most {plural(most, 'feature')} per split")
        if self.augmentation is not None:
            rows, noise = self.augmentation.rows_per_row, self.augmentation.noise
            parts.append(f"distilled {rows:g}x, noise {noise:g}")
        return ", ".join(parts)

    @property
    def first_run(self) -> Candidate:
        """The candidate of which this one is a restart, or itself."""
        return replace(self, seed=0)

    @property
    def kind(self) -> Kind:
        """What determines the time that it takes, together with its depth and its rows."""
        return self.start, self.tao is not None, self.augmentation is not None

    @property
    def has_soft_leaves(self) -> bool:
        """Whether leaves that no row reaches have learned a prediction, too, and must stay."""
        return self.start == "reinforced" and self.tao is None

    @property
    def is_axis_aligned(self) -> bool:
        """Whether it is an ordinary greedy tree with one column per split."""
        return self.start == "axis" and self.tao is None


@dataclass(frozen=True)
class CandidateBuilder:
    """Builds the trees of candidates.

    Attributes
    ----------
    n_jobs
        Number of threads.
    seed
        Seed of all random choices; the seed of a candidate is added.
    clock
        Checked between epochs and during sweeps.
    progress
        Where to say what is built; looked after between epochs and sweeps.
    """

    n_jobs: int
    seed: int
    clock: Clock
    progress: Progress = field(default_factory=Progress)

    def build(self, candidate: Candidate, task: Task, teacher: Teacher | None) -> ObliqueTree:
        """Build a tree from the training rows of a task.

        Raises
        ------
        OutOfTime
            If there is not enough time.
        KeyboardInterrupt
            If the user interrupts it.
        """
        self.progress.update(str(candidate))
        if candidate.augmentation is not None:
            assert teacher is not None
            task = self.augment(candidate, task, teacher)
        tree = self._start(candidate, task)
        if candidate.tao is None:
            return tree
        return self.refine(tree, candidate.tao, task)

    def augment(self, candidate: Candidate, task: Task, teacher: Teacher) -> Task:
        """Add augmented rows, labeled by the teacher."""
        augmentation = candidate.augmentation
        assert augmentation is not None
        if self.clock.is_past():
            raise OutOfTime
        n_rows = self.n_augmented(augmentation, task)
        return distillation_task(task, teacher, augmentation, n_rows, self.seed + candidate.seed)

    def n_augmented(self, augmentation: Augmentation, task: Task) -> int:
        """Return the number of augmented rows, limited by what memory and time allow."""
        n = len(task.train)
        most = _MAX_AUGMENTED_ENTRIES // task.schema.n_columns - n
        return int(min(augmentation.rows_per_row * n, max(most, n)))

    def refine(self, tree: ObliqueTree, tao: TAO, task: Task) -> ObliqueTree:
        """Refine a tree by TAO on the training rows."""
        if self.clock.is_past():
            raise OutOfTime
        if task.kind == "classification" and tao.leaves == "constant":
            task = task.with_loss(Misclassification())
        callbacks = (self._draw, StopAtDeadline(self.clock))
        run = Run(n_jobs=self.n_jobs, callbacks=callbacks, clock=self.clock)
        return _tree(tao.fit(task, run, tree))

    def _start(self, candidate: Candidate, task: Task) -> ObliqueTree:
        if candidate.max_depth == 0:
            return self._single_leaf(task)
        seed = self.seed + candidate.seed
        if candidate.start == "reinforced":
            return self._reinforced(candidate, task, seed)
        fraction = _RESTART_FRACTION if candidate.seed and candidate.augmentation is None else 1.0
        if candidate.start == "co2":
            fraction = min(fraction, _CO2_ROWS / len(task.train))
        if fraction < 1:
            is_taken = np.random.default_rng(seed).random(len(task.train)) < fraction
            task = replace(task, train=task.train[is_taken | ~is_taken.any()])
        greedy = Greedy(splitter=candidate.start, max_depth=candidate.max_depth)
        return greedy.start_tree(task, Run(seed, self.n_jobs))

    def _reinforced(self, candidate: Candidate, task: Task, seed: int) -> ObliqueTree:
        """Learn the policies of all nodes together, and turn them into splits."""
        rate = min(_LEARNING_RATE / math.sqrt(task.schema.n_columns), _MAX_LEARNING_RATE)
        learner = Reinforced(
            max_depth=candidate.max_depth,
            learning_rate=rate,
            batch_size=_BATCH,
            max_epochs=reinforced_epochs(len(task.train), candidate.augmentation is not None),
        )
        finish_or_skip = FinishOrSkip(self.clock)
        callbacks = (self._draw, finish_or_skip)
        tree = _tree(learner.fit(task, Run(seed, self.n_jobs, callbacks=callbacks)))
        if finish_or_skip.is_skipped:
            raise OutOfTime
        return tree

    def _draw(self, epoch: Epoch) -> None:
        self.progress.update()

    def _single_leaf(self, task: Task) -> ObliqueTree:
        target = task.y[task.train].astype(np.float64)
        if task.kind == "classification":
            target = one_hot(target[:, 0], task.n_targets)
        mean = np.average(target, axis=0, weights=task.weight[task.train])
        return ObliqueTree(
            np.empty((0, task.schema.n_columns)),
            np.empty(0),
            np.empty((0, 2), dtype=np.int32),
            (mean * task.target_scale + task.target_center)[None],
            schema=task.schema,
            task=task.kind,
            classes=task.labels,
            target_names=task.target_names,
        )


def _tree(learned: Learned) -> ObliqueTree:
    """Return the learned tree; raise KeyboardInterrupt if the user interrupted the learner."""
    if learned.interrupted:
        raise KeyboardInterrupt
    tree = learned.model.hard("a candidate")
    assert isinstance(tree, ObliqueTree)
    return tree
