"""One way to make a tree: where it starts, what it is taught, how it is polished."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from hardwood.learn.clock import Clock, Stop, Whole
from hardwood.learn.greedy import Greedy, one_hot
from hardwood.learn.learner import Learned, Run
from hardwood.learn.losses import Misclassification
from hardwood.learn.reinforced import Reinforced
from hardwood.learn.tao import TAO
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.search.augment import Lesson
from hardwood.search.distill import Teacher, taught

Start = Literal["axis", "co2", "reinforced"]
Kind: TypeAlias = tuple[Start, bool, bool]
"""The start of a recipe, whether it is polished and whether it is taught."""

_WORDS = {"axis": "axis-aligned", "co2": "CO2", "reinforced": "reinforced"}
# Of a reinforced tree: so many passes that there are as many steps, within limits. Made-up rows
# keep it from learning by heart, so that it may learn for longer.
_STEPS = 3_000
_TAUGHT_STEPS = 6_000
_PASSES = (10, 60)
_BATCH = 128
# Of a reinforced tree, for one column: a score sums over columns, so that more of them make it move
# faster. Chosen, as the steps, on validation rows of letter, satimage, optdigits, connect4, mnist.
_LEARNING_RATE = 0.12
_MAX_LEARNING_RATE = 0.03
_MAX_TAUGHT_ENTRIES = 12_000_000  # of real and made-up rows, encoded
_CO2_ROWS = 25_000  # that oblique splits are grown from: alternation sees all rows
_RESTART_SHARE = 0.7  # of the rows, for the starts of restarts without made-up rows


def reinforced_passes(n_rows: int, is_taught: bool) -> int:
    """Return how many passes over so many rows a reinforced tree learns for."""
    n_steps = _TAUGHT_STEPS if is_taught else _STEPS
    return min(max(n_steps * _BATCH // n_rows, _PASSES[0]), _PASSES[1])


class CutOff(Exception):
    """There was no time to finish."""


@dataclass(frozen=True)
class Recipe:
    """How a tree is made.

    Attributes
    ----------
    start
        The tree that it starts with: a greedy one with splits on one column ("axis") or oblique
        ones ("co2"), or one whose splits and leaves are learned together ("reinforced").
    max_depth
        Of the tree; 0 for a single leaf.
    polish
        How alternation improves it; None for the start as it is.
    lesson
        Which made-up rows a teacher adds; None for real rows alone.
    seed
        Tells restarts apart: 0 for the first. A restart has made-up rows of its own, or without
        any grows a greedy start from a part of the rows; a reinforced one draws other numbers.
    """

    start: Start
    max_depth: int
    polish: TAO | None = None
    lesson: Lesson | None = None
    seed: int = 0

    def __str__(self) -> str:
        if self.max_depth == 0:
            return "a single leaf"
        start = _WORDS[self.start]
        parts = [start if self.polish is None else f"TAO from {start}", f"depth {self.max_depth}"]
        if self.seed:
            parts.append(f"restart {self.seed}")
        if self.polish is not None:
            parts.append(f"l1 {self.polish.l1:g}, l2 {self.polish.l2:g}")
        if self.lesson is not None:
            parts.append(f"taught {self.lesson.rows_per_row:g}x, noise {self.lesson.noise:g}")
        return ", ".join(parts)

    @property
    def family(self) -> Recipe:
        """The recipe without what tells restarts apart."""
        return replace(self, seed=0)

    @property
    def kind(self) -> Kind:
        """What decides how long it takes, together with its depth and its rows."""
        return self.start, self.polish is not None, self.lesson is not None

    @property
    def has_soft_leaves(self) -> bool:
        """Whether leaves that no row reaches have learned something, too, and are to stay."""
        return self.start == "reinforced" and self.polish is None

    @property
    def is_plain(self) -> bool:
        """Whether it is an ordinary tree, with one column in each split."""
        return self.start == "axis" and self.polish is None


@dataclass(frozen=True)
class Kitchen:
    """What every recipe is made with.

    Attributes
    ----------
    n_jobs, seed
        Threads, and what random choices follow from.
    clock
        Asked between passes and sweeps.
    """

    n_jobs: int
    seed: int
    clock: Clock

    def made(self, recipe: Recipe, task: Task, teacher: Teacher | None) -> ObliqueTree:
        """Make a tree of the training rows of a task.

        Raises
        ------
        CutOff
            Where there was no time for it.
        KeyboardInterrupt
            Where the user stopped it.
        """
        if recipe.lesson is not None:
            assert teacher is not None
            task = self.lesson(recipe, task, teacher)
        tree = self._start(recipe, task)
        if recipe.polish is None:
            return tree
        return self.polished(tree, recipe.polish, task)

    def lesson(self, recipe: Recipe, task: Task, teacher: Teacher) -> Task:
        """Add made-up rows."""
        assert recipe.lesson is not None
        if self.clock.is_past():
            raise CutOff
        n_rows = self.n_made_up(recipe.lesson, task)
        return taught(task, teacher, recipe.lesson, n_rows, self.seed + recipe.seed)

    def n_made_up(self, lesson: Lesson, task: Task) -> int:
        """Return how many rows are made up: what the lesson says, or what memory and time allow."""
        n = len(task.train)
        most = _MAX_TAUGHT_ENTRIES // task.schema.n_columns - n
        return int(min(lesson.rows_per_row * n, max(most, n)))

    def polished(self, tree: ObliqueTree, polish: TAO, task: Task) -> ObliqueTree:
        """Alternate over the training rows, from a tree."""
        if self.clock.is_past():
            raise CutOff
        if task.kind == "classification" and polish.leaves == "constant":
            task = task.with_loss(Misclassification())
        run = Run(n_jobs=self.n_jobs, callbacks=(Stop(self.clock),), clock=self.clock)
        return _tree(polish.fit(task, run, tree))

    def _start(self, recipe: Recipe, task: Task) -> ObliqueTree:
        if recipe.max_depth == 0:
            return self._single_leaf(task)
        seed = self.seed + recipe.seed
        if recipe.start == "reinforced":
            return self._reinforced(recipe, task, seed)
        share = _RESTART_SHARE if recipe.seed and recipe.lesson is None else 1.0
        if recipe.start == "co2":
            share = min(share, _CO2_ROWS / len(task.train))
        if share < 1:
            is_taken = np.random.default_rng(seed).random(len(task.train)) < share
            task = replace(task, train=task.train[is_taken | ~is_taken.any()])
        greedy = Greedy(splitter=recipe.start, max_depth=recipe.max_depth)
        return greedy.start_tree(task, Run(seed, self.n_jobs))

    def _reinforced(self, recipe: Recipe, task: Task, seed: int) -> ObliqueTree:
        """Learn policies of all nodes at once, and make splits of them."""
        rate = min(_LEARNING_RATE / math.sqrt(task.schema.n_columns), _MAX_LEARNING_RATE)
        learner = Reinforced(
            max_depth=recipe.max_depth,
            learning_rate=rate,
            batch_size=_BATCH,
            max_epochs=reinforced_passes(len(task.train), recipe.lesson is not None),
        )
        whole = Whole(self.clock)
        tree = _tree(learner.fit(task, Run(seed, self.n_jobs, callbacks=(whole,))))
        if whole.is_cut_off:
            raise CutOff
        return tree

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
    """Return the tree that was learned, unless the user stopped it."""
    if learned.interrupted:
        raise KeyboardInterrupt
    tree = learned.model.hard("a candidate")
    assert isinstance(tree, ObliqueTree)
    return tree
