"""Linear trees of every size, with several penalties, measured on held-out rows.

One growth holds a tree of every number of leaves and terms, so that a setting costs one growth per
fold, however many sizes are compared. The penalty of the root is chosen first, for a single leaf:
that is a linear model. Then come trees with constant leaves, which may be larger. Then trees are
grown with linear leaves, by both kinds of growth and with several penalties below the root. All
settings are tried on the first fold, and the best few on the other folds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from hardwood.clock import Clock
from hardwood.learn.learner import Run
from hardwood.learn.leaves.linear import row_losses
from hardwood.learn.linear_tree import TERMS, GrowthKind, LinearTree
from hardwood.learn.linear_trees.grower import MOST_LEVELS
from hardwood.learn.linear_trees.growth import Growth
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.search.frontier import HeldOut, TreeKind

_LEAF_L2 = (10.0, 1.0, 100.0, 1000.0)
_LEAF_PRIORS = (10.0, 3.0, 30.0)
_PARENT_L2 = (30.0, 3.0, 300.0)
_GROWTHS: tuple[GrowthKind, ...] = ("linear", "constant")
_LINEAR_SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64)
FEW_LEAVES = 16  # linear ones, as many as a reader may want,
MANY_LEAVES = 64  # and where only the loss counts
_CONSTANT_SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128)
_MOST_VALUES = 2**24  # of held-out rows, as dense numbers at a time
_LEAVES_BEYOND = 2  # times the leaves of the best tree on the first fold: what may be better yet
_MOST_SETTINGS = 2  # that are tried on all folds
_LEVEL_GROUPS = (2, 3, 4, 6)
_LEAST_ROWS = 20  # at a leaf with a linear model, and
_LEAST_SHARE = 0.005  # this part of all rows
_LEAST_CONSTANT_ROWS = 5
# A single linear leaf may take this part of the time limit, by a rough estimate; of ten minutes
# where there is no limit.
_ROOT_SHARE = 0.4
_LOOK_SHARE = 0.2  # of the time left, for a growth on the first fold
_LINEAR_SHARE = 0.5  # of the time limit: after it no further setting begins
_PATIENT_SECONDS = 600.0
_NEWTON_STEPS = 8
_GRADIENTS = 80
_OPERATIONS_PER_SECOND = 4e9
_LEAST_GAIN = 3.0  # times the rows of a fold: what the last tree should at least be grown from
_LEAF_MARGIN = 1.1  # how much longer a leaf may take than one of the first growth
_MARGIN = 1.5  # how much longer a growth may take than the last one

OnSetting = Callable[["Setting"], bool]
"""Called after every setting; a true answer ends the search."""


def n_modeled_columns(task: Task) -> int:
    """Return about how many columns a linear leaf may use."""
    levels = np.minimum(task.schema.n_levels, MOST_LEVELS)
    return int(np.maximum(levels, 1).sum() + np.count_nonzero(task.schema.has_missing))


def _held_out_losses(
    growth: Growth, sizes: Collection[int]
) -> dict[tuple[int, int | None], np.ndarray]:
    """Return the losses of held-out rows for each number of leaves and terms within a growth."""
    task = growth.task
    parts: dict[tuple[int, int | None], list[np.ndarray]] = {}
    n_rows = max(1, _MOST_VALUES // max(1, task.schema.n_columns))
    for first in range(0, len(task.valid), n_rows):
        rows = task.valid[first : first + n_rows]
        target = task.y[rows].astype(np.float64)
        for n_leaves, terms, scores in growth.scores(task.encoded(rows, np.float64), sizes):
            lost = row_losses(task.loss, scores, target)
            parts.setdefault((n_leaves, terms), []).append(lost)
    return {key: np.concatenate(losses) for key, losses in parts.items()}


@dataclass(frozen=True)
class Setting:
    """A learner, the losses of its trees of all sizes on held-out rows, and its growths."""

    learner: LinearTree
    trees: tuple[SizedTree, ...]
    seconds: float
    growths: tuple[Growth, ...]

    @cached_property
    def best(self) -> SizedTree:
        """The size with the smallest mean loss, of rows that count the same."""
        return min(self.trees, key=lambda tree: float(tree.losses.mean()))

    def best_with(self, terms: Collection[int | None]) -> float:
        """Return the smallest mean loss of the trees with one of these numbers of terms."""
        return min(float(tree.losses.mean()) for tree in self.trees if tree.terms in terms)

    @property
    def is_grown(self) -> bool:
        """Whether it has trees with linear leaves, not only a linear model."""
        return self.learner.max_terms != 0 and self.learner.max_leaves > 1

    def __str__(self) -> str:
        return str(self.learner)


@dataclass(frozen=True)
class SizedTree(HeldOut):
    """A linear tree of one size.

    Attributes
    ----------
    terms
        The number of terms that its growth knows it by.
    n_groups
        Sets of levels of each category; None for levels as they are.
    """

    terms: int | None = None
    n_groups: int | None = None

    def of(self, growth: Growth) -> ObliqueTree:
        """Return the tree of this size within a growth."""
        return growth.with_level_groups(self.n_groups, self.terms).tree(self.n_leaves, self.terms)


@dataclass
class LinearSearch:
    """Settings of linear trees, tried on folds.

    Parameters
    ----------
    folds
        Tasks with training and validation rows.
    run
        Threads, seed and clock.
    max_depth, max_leaves, max_terms
        Limits of all trees; None for none.
    n_finish
        How many times the rows of a fold all rows are.
    most_linear
        Linear leaves of a tree, at most.
    """

    folds: Sequence[Task]
    run: Run
    max_depth: int | None = None
    max_leaves: int | None = None
    max_terms: int | None = None
    n_finish: float = 1.0
    most_linear: int = FEW_LEAVES
    settings: list[Setting] = field(default_factory=list)
    _seconds: dict[LinearTree, float] = field(default_factory=dict)

    def run_all(self, on_setting: OnSetting, when_slow: Callable[[], bool]) -> None:
        """Try settings until the time is up, or a callback says so.

        The second callback is called before trees with linear leaves take the rest of the time.
        """
        for setting in self._tried_settings(when_slow):
            self.settings.append(setting)
            is_late = self._is_late and setting.is_grown
            if on_setting(setting) or is_late or not self._has_time():
                return

    @property
    def trees(self) -> list[tuple[LinearTree, SizedTree]]:
        """All trees that were measured, with their learners."""
        return [(s.learner, tree) for s in self.settings for tree in s.trees]

    def add_level_groups(self, tree: SizedTree) -> None:
        """Measure a tree with few sets of levels in each category, beside those that there are."""
        place = next(i for i, s in enumerate(self.settings) if any(t is tree for t in s.trees))
        setting = self.settings[place]
        if tree.n_groups is not None or not setting.growths[0].has_many_levels:
            return
        added: list[SizedTree] = []
        for n_groups in _LEVEL_GROUPS:
            growths = [each.with_level_groups(n_groups, tree.terms) for each in setting.growths]
            found = self._measured(growths, {tree.n_leaves}, tree.kind)
            added += [replace(each, n_groups=n_groups) for each in found]
        self.settings[place] = replace(setting, trees=(*setting.trees, *added))

    def finish_seconds(self, learner: LinearTree) -> float:
        """Estimate the time to grow this learner's tree from all rows."""
        return self._seconds.get(learner, 0.0) * self.n_finish

    @property
    def reserved_seconds(self) -> float:
        """Time to keep for growing a tree from all rows, or from a few times those of a fold."""
        return self._longest * min(self.n_finish, _LEAST_GAIN)

    @property
    def _longest(self) -> float:
        return max(self._seconds.values(), default=0.0)

    def grown(self, learner: LinearTree, task: Task) -> Growth:
        """Grow a tree from all rows of a task, to the end even if the time is up."""
        return learner.grow(task, replace(self.run, clock=Clock(None)), self._terms(learner))

    def _tried_settings(self, when_slow: Callable[[], bool]) -> Iterator[Setting]:
        n_rows = len(self.folds[0].train)
        least = max(_LEAST_ROWS, int(_LEAST_SHARE * n_rows))
        constant = LinearTree(
            max_depth=self.max_depth,
            max_leaves=self._most(_CONSTANT_SIZES),
            max_terms=0,
            growth="constant",
            min_samples_leaf=min(least, _LEAST_CONSTANT_ROWS),
        )
        if self.max_terms == 0 or not self._can_afford_linear_leaves:
            yield self._tried(constant)
            yield self._best_smoothed(constant)
            return
        root = self._best_root(
            LinearTree(max_depth=self.max_depth, max_leaves=1, min_samples_leaf=least)
        )
        yield root
        yield self._tried(constant)
        yield self._best_smoothed(constant)
        trees = replace(root.learner, max_leaves=min(self._most(_LINEAR_SIZES), self.most_linear))
        if trees.max_leaves > 1:
            yield from self._best_settings(
                [
                    replace(trees, parent_l2=parent_l2, growth=growth)
                    for parent_l2 in _PARENT_L2
                    for growth in _GROWTHS
                ],
                when_slow,
            )

    def _best_settings(
        self, learners: Sequence[LinearTree], when_slow: Callable[[], bool]
    ) -> Iterator[Setting]:
        """Try learners on the first fold, and the best of them on all folds.

        A large table has a single fold, and each growth takes long.
        """
        is_large = len(self.folds) == 1 and not math.isinf(self.run.clock.limit)
        if is_large and when_slow():
            return
        looks: list[Setting] = []
        for learner in learners:
            share = 1.0 if len(self.folds) == 1 else _LOOK_SHARE
            looks.append(
                self._looked_at(_limited(learner, looks), self.folds[:1], time_share=share)
            )
            if len(self.folds) == 1:
                yield looks[-1]
            elif self._is_late or not self._has_time():
                if when_slow():
                    return
                break
        if len(self.folds) == 1:
            return
        looks.sort(key=lambda setting: float(setting.best.losses.mean()))
        for look in looks[:_MOST_SETTINGS]:
            learner = self._in_time(_limited(look.learner, [look]), look)
            if learner.max_leaves > 1:
                yield self._tried(learner, look)

    def _in_time(self, learner: LinearTree, look: Setting) -> LinearTree:
        """Limit the leaves to what can be grown on the other folds, and from all rows."""
        if math.isinf(self.run.clock.limit) or look.seconds == 0:  # less than a clock may show
            return learner
        n_grown = max(tree.n_leaves for tree in look.trees)
        seconds_per_leaf = look.seconds / n_grown  # the first takes longest
        n_growths = len(self.folds) - 1 + self.n_finish
        n_leaves = int(self.run.clock.left / (seconds_per_leaf * n_growths * _LEAF_MARGIN))
        return replace(learner, max_leaves=max(1, min(learner.max_leaves, n_leaves)))

    @property
    def _can_afford_linear_leaves(self) -> bool:
        """Whether a linear leaf leaves time for more; it costs the square of the columns."""
        task = self.folds[0]
        n_columns = n_modeled_columns(task)
        if task.kind == "regression":
            products = n_columns * task.n_outputs
        elif task.n_outputs <= 2:
            products = n_columns * task.n_outputs * _NEWTON_STEPS
        else:  # quasi-Newton steps
            products = n_columns + task.n_outputs * _GRADIENTS
        operations = len(task.train) * n_columns * products
        n_growths = len(self.folds) - 1 + len(_LEAF_L2)
        seconds = operations * n_growths / _OPERATIONS_PER_SECOND
        return seconds <= _ROOT_SHARE * min(self.run.clock.limit, _PATIENT_SECONDS)

    def _best_root(self, leaf: LinearTree) -> Setting:
        """Choose the penalty of a single linear leaf on the first fold, by models of most terms."""
        learners = [replace(leaf, leaf_l2=l2) for l2 in _LEAF_L2]
        return self._best_of(learners, self._terms(leaf)[-2:])

    def _best_smoothed(self, constant: LinearTree) -> Setting:
        """Choose on the first fold how much constant leaves are smoothed."""
        return self._best_of([replace(constant, leaf_prior=n) for n in _LEAF_PRIORS], (0,))

    def _best_of(self, learners: Sequence[LinearTree], terms: Collection[int | None]) -> Setting:
        """Compare learners on the first fold by models of some terms; try the best on all folds.

        The first is often the best: it has models of all terms from the start.
        """
        first, *others = learners
        looks = [self._looked_at(first, self.folds[:1])]
        for learner in others:
            if not self.run.clock.has(self._longest * len(self.folds)):  # a look, and all folds
                break
            looks.append(self._looked_at(learner, self.folds[:1], tuple(terms)))
        best = min(looks, key=lambda look: look.best_with(terms))
        reused = best if best is looks[0] else None
        whole = self._tried(best.learner, reused)
        further = sum(look.seconds for look in looks if look is not reused)
        return replace(whole, seconds=whole.seconds + further)

    def _most(self, sizes: Sequence[int]) -> int:
        return max(sizes) if self.max_leaves is None else min(max(sizes), self.max_leaves)

    def _terms(self, learner: LinearTree) -> tuple[int | None, ...]:
        if learner.max_terms == 0:
            return (0,)
        if self.max_terms is None:
            return (*TERMS, None)
        return (*(t for t in TERMS if t < self.max_terms), self.max_terms)

    @property
    def _is_late(self) -> bool:
        """Whether oblique trees should have their turn."""
        return self.run.clock.spent > _LINEAR_SHARE * self.run.clock.limit

    def _has_time(self) -> bool:
        """Whether another setting as long as the longest so far would leave time to finish."""
        needed = self._longest * len(self.folds) * _MARGIN + self.reserved_seconds
        return self.run.clock.has(needed)

    def _tried(self, learner: LinearTree, look: Setting | None = None) -> Setting:
        """Measure a learner on all folds; a look has the first of them."""
        if look is None:
            return self._looked_at(learner, self.folds)
        if len(self.folds) == 1:
            return look
        rest = self._looked_at(learner, self.folds[1:])
        of_first = {(tree.n_leaves, tree.terms): tree for tree in look.trees}
        trees = tuple(
            replace(tree, losses=np.concatenate([of_first[key].losses, tree.losses]))
            for tree in rest.trees
            if (key := (tree.n_leaves, tree.terms)) in of_first
        )
        return Setting(learner, trees, look.seconds + rest.seconds, (*look.growths, *rest.growths))

    def _looked_at(
        self,
        learner: LinearTree,
        folds: Sequence[Task],
        terms: Sequence[int | None] | None = None,
        time_share: float = 1.0,
    ) -> Setting:
        begun = self.run.clock.spent
        run = replace(self.run, clock=self.run.clock.part(time_share))
        sizes = _CONSTANT_SIZES if learner.max_terms == 0 else _LINEAR_SIZES
        wanted = {min(size, learner.max_leaves) for size in sizes} | {learner.max_leaves}
        terms = terms or self._terms(learner)
        growths = [learner.grow(task, run, terms) for task in folds]
        kind: TreeKind = "linear"
        if learner.max_terms == 0:
            kind = "smoothed" if learner.leaf_prior in _LEAF_PRIORS else "constant"
        trees = self._measured(growths, wanted, kind)
        seconds = self.run.clock.spent - begun
        self._seconds[learner] = seconds / len(folds)
        return Setting(learner, trees, seconds, tuple(growths))

    def _measured(
        self, growths: Sequence[Growth], sizes: Collection[int], kind: TreeKind
    ) -> tuple[SizedTree, ...]:
        """Measure trees of all growths and sizes on the held-out rows of each growth's fold."""
        losses: dict[tuple[int, int | None], list[np.ndarray]] = {}
        for growth in growths:
            for key, lost in _held_out_losses(growth, sizes).items():
                losses.setdefault(key, []).append(lost)
        return tuple(
            SizedTree(kind, key[0], *growths[0].shape(*key), np.concatenate(parts), terms=key[1])
            for key, parts in losses.items()
            if len(parts) == len(growths)
        )


def _limited(learner: LinearTree, looks: Sequence[Setting]) -> LinearTree:
    """Limit the leaves to a few times those of the best trees so far; larger ones are worse."""
    if not looks:
        return replace(learner, max_leaves=min(learner.max_leaves, FEW_LEAVES))
    enough = _LEAVES_BEYOND * max(look.best.n_leaves for look in looks)
    most = min((size for size in _LINEAR_SIZES if size >= enough), default=learner.max_leaves)
    return replace(learner, max_leaves=min(learner.max_leaves, most))
