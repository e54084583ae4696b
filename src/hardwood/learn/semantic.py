r"""Semantic logits: a hard oblique tree that plain gradient descent trains exactly.

Panda, Genest, Easwaran, Suganthan. Vanilla Gradient Descent for Oblique Decision Trees. ECAI 2024.
[DTSemNet24]

The same. Approximation-Free Differentiable Oblique Decision Trees. arXiv 2605.07837, 2026.
[DTSemNet26]

The score of a leaf is minus the sum of the decisions that a row violates on the way to it:

.. math:: z_l(x) = -\sum_{i \in \mathrm{path}(l)} \max\big(0, -s_{il} (w_i x + b_i)\big)

where s is 1 if the path goes right at split i, and -1 if it goes left. The leaf that the row
reaches violates nothing, so its score is 0 and the largest. Classes are dealt to the leaves, the
score of a class is the largest of its leaves, and the log loss of these scores is minimized: the
class that they prefer is that of the hard tree, for every row and at every step.

========  ==========================  ===========================================
paper     here                        shape
========  ==========================  ===========================================
A, B      weights, bias               (m, c), (m,)   m = 2^h - 1 splits, c columns
L         scores of the leaves        (n, 2^h)
theta     scores                      (2^h, k), of leaves that learn their values
h         ``max_depth``
k         ``n_mixed``                 leaves that a prediction mixes at first [DTSemNet26]
========  ==========================  ===========================================

The step is native (``native/learn/semantic/step.hpp``); the NumPy reference is
``tests/reference/semantic.py``.

What differs from the papers:

1. The score of a leaf has the violated decisions on its path only. The papers add up the positive
   parts of all splits, those off the path included, which differs by a number per row.
2. A row with a score of 0 goes right, in the gradient as well.
3. Columns are divided by the power of two nearest their standard deviation, and regression targets
   are standardized, as everywhere here.
4. When learning ends, the probabilities of a leaf become the class frequencies of its training
   rows, with one more row that is half of the leaf's own class and half like all rows. The papers'
   trees predict the class that the leaf was dealt; here, that of most rows.
5. Leaves that learn their values are hard from the start by default (``n_mixed=1``). The gradient
   of the splits is then that of a mixture of the best two leaves, in place of all leaves (the
   straight-through estimator of [DTSemNet24]).
6. A larger number of mixed leaves [DTSemNet26] falls to 1 in equal parts of the first three
   quarters of the steps. After that the step is that of (5).
7. The L1 penalty is a proximal step, so weights reach exactly zero.
8. A start from another tree keeps its splits, multiplied so that the mean size of their scores is
   the same for all. Leaves keep their likeliest classes; leaves that no row can reach, and if
   needed those that are least sure, are given to classes without a leaf.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from hardwood.learn.finish import routed_leaves
from hardwood.learn.gradient.engine import EngineRuns, run_engine
from hardwood.learn.gradient.perfect_tree import PerfectTreeLearner
from hardwood.learn.learner import Run, Start
from hardwood.learn.start import start_tree
from hardwood.learn.task import Task
from hardwood.learn.training import Training
from hardwood.learn.units import StartParameters, start_parameters
from hardwood.model import ObliqueTree
from hardwood.parameters import choice_field, integer_field, object_field, switch_field
from hardwood.text.numbers import plural

_MOST_MIXED = 64  # a tile is searched as often as that
_START_SCORE = 1.0  # mean size of the scores of a split of a start, departs: (8)
_START_ROWS = 2**14  # that it is measured on
_PRIOR_ROWS = 1.0  # departs: (4)
_CLASS_LOSSES = ("logistic", "cross_entropy")

TRAINING = Training(schedule_restarts=0)  # one cosine; DGT has four


@dataclass(frozen=True)
class Semantic(PerfectTreeLearner):
    """Trees by semantic logits; `SemanticTreeClassifier` describes the parameters."""

    engine_name: ClassVar[str] = "semantic"

    leaves: Literal["auto", "dealt", "constant", "linear"] = choice_field(
        "auto", ("auto", "dealt", "constant", "linear")
    )
    early_stopping: bool | str = switch_field(False)
    n_mixed: int = integer_field(1, 1, _MOST_MIXED)
    training: Training = object_field(TRAINING, named="hardwood.learn.Training")

    def _learn(self, task: Task, run: Run, start: Start, **runs: Any) -> EngineRuns:
        tree = start_tree(start, task, run)
        perfect = None if tree is None else self._perfect_start(tree, task)
        classes = self._classes(task, perfect)
        options = self.engine_options(task)
        if classes is not None:
            options |= {"classes": classes.tolist(), "n_mixed": 1}
        learned = run_engine(
            self.engine_name,
            task,
            options,
            run,
            start=None if perfect is None else self._scaled(perfect, task, classes),
            **runs,
        )
        for i, each in enumerate(learned.trees):
            each["classes"] = classes
            each["rows_drawn"] = _rows_drawn(task, run, i, **runs)
        return learned

    def _classes(self, task: Task, start: ObliqueTree | None) -> np.ndarray | None:
        """Return the class of each leaf (L,); None for leaves that learn their values."""
        n_leaves, n_classes = 2**self.max_depth, task.n_targets
        is_possible = task.kind == "classification" and task.loss.name in _CLASS_LOSSES
        if self.leaves == "auto" and (not is_possible or n_leaves < n_classes):
            return None
        if self.leaves in ("constant", "linear"):
            return None
        if not is_possible:
            raise ValueError(
                "leaves='dealt' gives each leaf one class, so it needs a target of one class per "
                f"row and loss='log_loss'; found {task.kind} and the loss {task.loss.name!r}. Use "
                "leaves='constant'."
            )
        if n_leaves < n_classes:
            raise ValueError(
                f"leaves='dealt' gives each class a leaf, but max_depth={self.max_depth} has "
                f"{plural(n_leaves, 'leaf', 'leaves')} for {n_classes} classes. Use a larger "
                "max_depth, or leaves='constant'."
            )
        if start is None:
            return np.arange(n_leaves) % n_classes
        return classes_of_start(start, n_classes)

    def _method_options(self) -> dict[str, Any]:
        return {
            "linear_leaves": self.leaves == "linear",
            "classes": [],
            "n_mixed": self.n_mixed,
        }

    def _scaled(
        self, perfect: ObliqueTree, task: Task, classes: np.ndarray | None
    ) -> StartParameters:
        """Return a start whose splits have scores of one size, departs: (8)."""
        W, b, theta, A = start_parameters(perfect, task)
        rows = task.train[:: max(1, len(task.train) // _START_ROWS)]
        size = np.abs(task.encoded(rows) @ W.T + b).mean(axis=0)
        factor = np.divide(_START_SCORE, size, out=np.ones_like(size), where=size > 0)
        if classes is not None:
            theta = theta[:0]
        return W * factor[:, None], b * factor, theta, A

    def _model(self, task: Task, tree: Mapping[str, Any]) -> ObliqueTree:
        classes = tree["classes"]
        if classes is None:
            return super()._model(task, tree)
        own = np.eye(task.n_targets)[classes]  # (L, k)
        dealt = self._tree_of(task, tree, own)
        counts = _class_weights(dealt, task, tree["rows_drawn"])
        total = counts.sum(axis=1, keepdims=True)
        prior = 0.5 * (own + counts.sum(axis=0) / counts.sum())
        values = (counts + _PRIOR_ROWS * prior) / (total + _PRIOR_ROWS)  # departs: (4)
        return dealt.replace(values=values)


def classes_of_start(tree: ObliqueTree, n_classes: int) -> np.ndarray:
    """Return the class of each leaf (L,) of a perfect tree to start from, departs: (8).

    Each class has a leaf. The splits that pad a smaller tree send all rows one way, so the leaves
    on the other side are free: they are dealt to the classes in turn, those without a leaf first.
    """
    classes = tree.values.argmax(axis=1)
    is_free = _unreachable(tree)
    has_leaf = np.isin(np.arange(n_classes), classes[~is_free])
    turn = itertools.chain(np.flatnonzero(~has_leaf), itertools.cycle(range(n_classes)))
    classes[is_free] = list(itertools.islice(turn, int(is_free.sum())))
    counts = np.bincount(classes, minlength=n_classes)
    for missing in np.flatnonzero(counts == 0):
        of_most = np.flatnonzero(classes == np.bincount(classes).argmax())
        classes[of_most[tree.values[of_most].max(axis=1).argmin()]] = missing
    return classes


def _unreachable(tree: ObliqueTree) -> np.ndarray:
    """Find the leaves (L,) of a perfect tree on the empty side of a split without weights."""
    m = tree.n_splits
    is_empty = np.zeros(2 * m + 1, dtype=bool)
    for split in range(m):
        is_empty[[2 * split + 1, 2 * split + 2]] = is_empty[split]
        if not tree.weights[split].any():
            is_empty[2 * split + (1 if tree.bias[split] >= 0 else 2)] = True
    return is_empty[m:]


def _rows_drawn(
    task: Task, run: Run, i: int, *, n_draws: int | None = None, first_run: int = 0, **_: Any
) -> np.ndarray | None:
    """Return how often each training row was drawn for a tree; None for once each."""
    if n_draws is None:
        return None
    from hardwood import _native

    return _native.bootstrap_counts(len(task.train), n_draws, run.seed, first_run + i)


def _class_weights(tree: ObliqueTree, task: Task, drawn: np.ndarray | None) -> np.ndarray:
    """Return the weight of the training rows of each class in each leaf, (L, k)."""
    leaf = routed_leaves(tree, task.matrix, task.train, 1)
    weight = task.weight[task.train].astype(np.float64)
    if drawn is not None:
        weight *= drawn
    counts = np.zeros(tree.values.shape)
    np.add.at(counts, (leaf, task.target[task.train, 0].astype(np.int64)), weight)
    return counts
