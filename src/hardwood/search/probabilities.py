"""From the trees of a search to trees whose probabilities refer to the user's rows.

Class weights change what is learned: rows of a class that weighs w times as much have w times the
odds. The final tree has the odds of the rows without these weights. Its decisions still have them:
it predicts the class with the largest product of probability and weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hardwood.learn.leaves.smoothing import Smoothing
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.model.edit.recalibration import Recalibration
from hardwood.search.calibration import fit_recalibration
from hardwood.search.held_out import HeldOutRows, HeldOutScores
from hardwood.search.measured import smoothed_trees


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Changes the probabilities of the trees of a search.

    Attributes
    ----------
    task
        The whole task.
    folds
        Tasks with the held-out rows of the search.
    calibrates
        Whether to recalibrate on the held-out rows.
    n_jobs
        Number of threads.
    """

    task: Task
    folds: Sequence[Task]
    calibrates: bool
    n_jobs: int

    @cached_property
    def class_weights(self) -> np.ndarray | None:
        """(k,) the weight of the rows of each class besides their own; None if all are equal."""
        task = self.task
        if task.kind != "classification":
            return None
        rows = task.rows.index
        factor = task.row_weight[rows] / task.rows.weight
        label = task.target[rows, 0].astype(np.int64)
        total = np.bincount(label, factor, task.n_targets)
        n_rows = np.bincount(label, minlength=task.n_targets)
        mean = total.sum() / n_rows.sum()  # for classes without rows
        weights = np.where(n_rows > 0, total / np.maximum(n_rows, 1), mean)
        return None if np.allclose(weights, weights[0], rtol=1e-9) else weights / mean

    def of_tree(self, tree: ObliqueTree, by_fold: Sequence[ObliqueTree]) -> ObliqueTree:
        """Return a tree with its final probabilities."""
        changes = self.calibrates or self.class_weights is not None
        return self.finished(tree, by_fold)[0] if changes else tree

    def finished(
        self, tree: ObliqueTree, by_fold: Sequence[ObliqueTree]
    ) -> tuple[ObliqueTree, HeldOutScores | None]:
        """Return a tree with its final probabilities, and the scores of classes on held-out rows.

        ``by_fold`` are the trees that the same candidate learned without these rows.
        """
        if self.task.kind == "regression":
            return tree, None
        if self.class_weights is not None:
            tree, by_fold = self._without_class_weights(tree, by_fold, self.class_weights)
        rows = HeldOutRows.of(by_fold, self.folds, self.task, self.n_jobs)
        if self.calibrates:
            change = fit_recalibration(rows.outputs, rows.truth, rows.weight, self.task.kind)
            tree, rows = change.of_tree(tree), rows.changed(change)
        has_classes = self.task.kind == "classification"
        return tree, rows.scores(tree.decision_weights) if has_classes else None

    def _without_class_weights(
        self, tree: ObliqueTree, by_fold: Sequence[ObliqueTree], weights: np.ndarray
    ) -> tuple[ObliqueTree, Sequence[ObliqueTree]]:
        """Divide probabilities by the weights; estimate those of constant leaves again.

        A constant leaf is a mean of few rows and of prior rows, which had no class weights: its
        mean without them is better than a division, if the held-out rows say so.
        """
        change = Recalibration.dividing_by(weights)
        tree = change.of_tree(tree).replace(decision_weights=weights)
        by_fold = [change.of_tree(each) for each in by_fold]
        folds = [_with_own_weights(fold) for fold in self.folds]
        smoothing, by_fold = smoothed_trees(by_fold, folds, self.n_jobs)
        if smoothing is not None:
            rows = _with_own_weights(self.task.whole())
            tree = Smoothing.of(tree, rows, self.n_jobs).smoothed(smoothing)
        return tree, by_fold


def _with_own_weights(task: Task) -> Task:
    """Return the task without the weights of classes."""
    weight = task.weight_of(np.arange(len(task.target)))
    mean = weight[task.rows.index].mean()
    return replace(task, weight=(weight / mean).astype(np.float32), row_weight=weight)
