"""Predictions for held-out rows: what the probabilities of a tree are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hardwood.learn.finish import outputs_of
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.model.edit.recalibration import Recalibration
from hardwood.model.outputs import class_positions
from hardwood.report.metrics import average_precision, balanced_accuracy, log_losses
from hardwood.text.numbers import format_number, format_percent, plural

RARE = 0.05  # share of the rows below which a class counts as rare


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """The held-out rows of all folds, with the outputs of trees that did not learn from them.

    Attributes
    ----------
    task
        The whole task.
    outputs
        (n, k) probabilities of classes or labels.
    truth
        (n, 1) class indices, or (n, k) zeros and ones.
    weight
        (n,) the rows' own weights, without those of their classes.
    """

    task: Task
    outputs: np.ndarray
    truth: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(
        cls, trees: Sequence[ObliqueTree], folds: Sequence[Task], task: Task, n_jobs: int
    ) -> HeldOutRows:
        """Predict the held-out rows of each fold by its tree."""
        parts = [
            outputs_of(tree, fold.matrix, fold.valid, n_jobs)
            for tree, fold in zip(trees, folds, strict=True)
        ]
        rows = np.concatenate([fold.valid for fold in folds])
        return cls(task, np.concatenate(parts), task.target[rows], task.weight_of(rows))

    def changed(self, change: Recalibration) -> HeldOutRows:
        """Return the rows with recalibrated probabilities."""
        return replace(self, outputs=change.of_outputs(self.outputs, self.task.kind))

    def scores(self, decision_weights: np.ndarray | None) -> HeldOutScores:
        """Score the predictions of classes."""
        truth, labels = self.truth[:, 0].astype(np.int64), self.task.labels
        assert labels is not None
        shares = np.bincount(truth, self.weight, len(labels)) / self.weight.sum()
        present = np.flatnonzero(shares > 0)
        rarest = int(present[shares[present].argmin()])
        is_right = class_positions(self.outputs, decision_weights) == truth
        precision = average_precision(truth == rarest, self.outputs[:, rarest])
        threshold, at_threshold = None, None
        if len(labels) == 2 and len(present) == 2:
            threshold, at_threshold = best_threshold(truth, self.outputs[:, 1], self.weight)
        return HeldOutScores(
            n_rows=len(truth),
            log_loss=float(np.average(log_losses(truth, self.outputs), weights=self.weight)),
            balanced_accuracy=balanced_accuracy(is_right, truth)(self.weight),
            average_precision=precision(self.weight),
            rarest=str(labels[rarest]),
            rarest_share=float(shares[rarest]),
            positive=str(labels[-1]) if len(labels) == 2 else None,
            threshold=threshold,
            balanced_accuracy_at_threshold=at_threshold,
        )


@dataclass(frozen=True)
class HeldOutScores:
    """Scores of the classes that a tree predicts for held-out rows, without class weights.

    Attributes
    ----------
    n_rows
        Number of held-out rows.
    log_loss, balanced_accuracy
        The scores of all classes.
    average_precision
        That of the rarest class; random scores would have about its share.
    rarest, rarest_share
        The class with the fewest held-out rows, and its share of their weight.
    positive
        The second of two classes; None for more.
    threshold
        Of two classes: the second is predicted where its probability is above the threshold, for a
        high balanced accuracy (`best_threshold`). None for more classes, and for a tree that gives
        all rows the same probability.
    balanced_accuracy_at_threshold
        That accuracy, which is optimistic, because the threshold was chosen on these rows.
    """

    n_rows: int
    log_loss: float
    balanced_accuracy: float
    average_precision: float
    rarest: str
    rarest_share: float
    positive: str | None
    threshold: float | None
    balanced_accuracy_at_threshold: float | None

    @property
    def lines(self) -> list[str]:
        """The scores in sentences."""
        lines = [
            f"{plural(self.n_rows, 'held-out row', form=',')}: log loss "
            f"{format_number(self.log_loss)}, balanced "
            f"accuracy {format_number(self.balanced_accuracy)}, average precision of "
            f"{self.rarest} {format_number(self.average_precision)}."
        ]
        if self.rarest_share < RARE:
            lines.append(
                f"Note: {self.rarest} is rare, {format_percent(self.rarest_share)} of the rows. "
                "Accuracy says little about it; average precision does (random scores have "
                f"{format_number(self.rarest_share)})."
            )
        if self.threshold is not None and self.balanced_accuracy_at_threshold is not None:
            lines.append(
                f"Threshold: {self.positive} where its probability is above "
                f"{format_number(self.threshold)} has the balanced accuracy "
                f"{format_number(self.balanced_accuracy_at_threshold)}. To predict by it: "
                f"tree_.with_threshold({self.threshold:.4g}), or --threshold."
            )
        return lines


def best_threshold(
    truth: np.ndarray, probability: np.ndarray, weight: np.ndarray
) -> tuple[float | None, float | None]:
    """Return a threshold with a good balanced accuracy, and that accuracy.

    Of the thresholds within one standard error of the best accuracy it is the one nearest to the
    share of class 1, which is the best if the probabilities are right. Few rows of a rare class
    would otherwise decide by chance.

    Parameters
    ----------
    truth
        (n,) 0 or 1; both occur.
    probability
        (n,) of class 1.
    weight
        (n,) row weights.

    Returns
    -------
    threshold, accuracy
        The threshold lies halfway between two probabilities. None for both if all are equal.
    """
    values, group = np.unique(probability, return_inverse=True)
    if len(values) == 1:
        return None, None
    of_class = [weight * (truth == c) for c in (0, 1)]
    below = [np.cumsum(np.bincount(group, w))[:-1] / w.sum() for w in of_class]
    recalls = np.stack([below[0], 1 - below[1]])  # (2, thresholds)
    accuracy = recalls.mean(axis=0)
    best = int(accuracy.argmax())
    n_rows = np.array([w.sum() ** 2 / (w**2).sum() for w in of_class])
    error = np.sqrt((recalls[:, best] * (1 - recalls[:, best]) / n_rows).sum()) / 2
    thresholds = (values[:-1] + values[1:]) / 2
    share = of_class[1].sum() / weight.sum()
    with np.errstate(divide="ignore"):
        away = np.abs(np.log(thresholds) - np.log(share))
    place = int(np.where(accuracy >= accuracy[best] - error, away, np.inf).argmin())
    return float(thresholds[place]), float(accuracy[place])
