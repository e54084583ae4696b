"""A candidate on held-out rows: its leaves smoothed as is best for them, its losses and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hardwood.learn.finish import outputs_of, routed_leaves
from hardwood.learn.leaves.smoothing import Smoothing
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.search.candidates import Candidate
from hardwood.search.scorer import Scorer, losses_of

# Rows with the parent's value that each leaf has besides its own.
_SMOOTHINGS = (1.0, 4.0, 16.0, 64.0, 256.0)


@dataclass(frozen=True)
class CandidateResult:
    """A candidate, measured on the held-out rows of the folds.

    Attributes
    ----------
    candidate, seconds
        The candidate, and the time that it took.
    trees
        Its tree on each fold.
    smoothing
        The rows with the parent's value at each leaf (`learn/leaves/smoothing.py`); None for leaves
        as they were learned.
    train_score, validation_score
        The average scores.
    losses
        (n,) of the held-out rows, fold by fold.
    n_wrong
        Held-out rows whose class is not the predicted one.
    """

    candidate: Candidate
    trees: tuple[ObliqueTree, ...]
    smoothing: float | None
    train_score: float
    validation_score: float
    losses: np.ndarray
    n_wrong: int
    seconds: float

    @property
    def n_leaves(self) -> float:
        """Number of leaves, averaged over folds."""
        return float(np.mean([tree.n_leaves for tree in self.trees]))


def measured(
    candidate: Candidate,
    trees: Sequence[ObliqueTree],
    folds: Sequence[Task],
    scorer: Scorer,
    n_jobs: int,
    seconds: float,
) -> CandidateResult:
    """Smooth the leaves of trees, and measure the trees on the held-out rows of their folds.

    There may be fewer trees than folds; then only the first folds count.
    """
    folds = folds[: len(trees)]
    smoothing, trees = smoothed_trees(trees, folds, n_jobs)
    scores, losses, n_wrong = [], [], 0
    for tree, task in zip(trees, folds, strict=True):
        outputs = outputs_of(tree, task.matrix, task.valid, n_jobs)
        truth = task.target[task.valid]
        losses.append(losses_of(outputs, task, task.valid))
        n_wrong += int((outputs.argmax(axis=1) != truth[:, 0]).sum())
        train = outputs_of(tree, task.matrix, task.train, n_jobs)
        scores.append(
            (
                scorer.score(train, task.target[task.train], task.weight[task.train]),
                scorer.score(outputs, truth, task.weight[task.valid]),
            )
        )
    train_score, validation_score = np.mean(scores, axis=0).tolist()
    return CandidateResult(
        candidate,
        tuple(trees),
        smoothing,
        train_score,
        validation_score,
        np.concatenate(losses),
        n_wrong,
        seconds,
    )


def smoothed_trees(
    trees: Sequence[ObliqueTree], folds: Sequence[Task], n_jobs: int
) -> tuple[float | None, Sequence[ObliqueTree]]:
    """Smooth constant leaves as is best on held-out rows; probabilities are never 0 or 1."""
    if trees[0].has_linear_leaves:
        return None, trees
    parts = list(zip(trees, folds, strict=True))
    smoothings = [Smoothing.of(tree, task, n_jobs) for tree, task in parts]
    leaves = [routed_leaves(tree, task.matrix, task.valid, n_jobs) for tree, task in parts]

    def loss(values: Sequence[np.ndarray]) -> float:
        each = zip(values, leaves, folds, strict=True)
        losses = [losses_of(v[leaf], task, task.valid) for v, leaf, task in each]
        return float(np.concatenate(losses).mean())

    found: dict[float | None, list[np.ndarray]] = {
        m: [smoothing.values(m) for smoothing in smoothings] for m in _SMOOTHINGS
    }
    learned = [tree.values for tree in trees]
    is_number = folds[0].kind == "regression"
    if is_number or all(values.min() > 0 and values.max() < 1 for values in learned):
        found[None] = learned
    best = min(found, key=lambda m: loss(found[m]))
    smooth = [tree.replace(values=v) for tree, v in zip(trees, found[best], strict=True)]
    return best, smooth
