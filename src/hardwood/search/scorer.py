"""The score that trees are chosen by: one number, larger is better; and the losses behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood.learn.task import Task
from hardwood.model.structure import TaskKind

_LEAST_PROBABILITY = 1e-15  # as in scikit-learn

ScoringFunction = Callable[..., float]
"""Takes an estimator, X and y (and perhaps `sample_weight`), and returns a score."""


@dataclass(frozen=True)
class Scorer:
    """Scores the predictions of trees.

    Attributes
    ----------
    task
        The kind of task.
    classes
        The sorted class labels; None for regression and multilabel targets.
    name
        Name of the score.
    function
        A scorer of scikit-learn; None for the default of the task: the share of the log loss, or of
        the squared error (R2), that a constant prediction has and the tree avoids.
    counts_right
        Whether the default is the fraction of classes or labels that are right instead.
    """

    task: TaskKind
    classes: np.ndarray | None
    name: str
    function: ScoringFunction | None = None
    counts_right: bool = False

    @classmethod
    def of_given_trees(
        cls, task: TaskKind, classes: np.ndarray | None, scoring: Any = None
    ) -> Scorer:
        """Return the scorer for trees as they are, whose probabilities may be 0 or 1.

        A single such probability would make the log loss infinite. So the default is the fraction
        of classes or labels that are right.
        """
        if scoring is not None or task == "regression":
            return cls.of(task, classes, scoring)
        name = "accuracy" if task == "classification" else "label accuracy"
        return cls(task, classes, name, counts_right=True)

    @classmethod
    def of(cls, task: TaskKind, classes: np.ndarray | None, scoring: Any = None) -> Scorer:
        """Return the scorer for `scoring`: None, the name of a scikit-learn scorer, or a function.

        Raises
        ------
        ValueError, TypeError
            If scikit-learn has no scorer of that name, or `scoring` is something else.
        """
        if task == "multilabel":
            classes = None  # a task has the indices of its labels there
        elif isinstance(scoring, str) and classes is not None and classes.dtype.kind not in "biuf":
            classes = np.arange(len(classes))  # scorers by name know no positive class but 1
        if scoring is None:
            return cls(task, classes, "R2" if task == "regression" else "D2 of log loss")
        return cls(task, classes, *scoring_function(scoring))

    def score(
        self, outputs: np.ndarray, truth: np.ndarray, weight: np.ndarray | None = None
    ) -> float:
        """Score predictions.

        Parameters
        ----------
        outputs
            (n, k) probabilities of classes or labels, or predicted numbers.
        truth
            (n, t) class indices, zeros and ones, or numbers in the same units.
        weight
            (n,) row weights; None for equal weights.
        """
        if self.function is not None:
            return self._by_function(outputs, truth, weight)
        if self.task == "regression":
            return _r2(outputs, truth, weight)
        if not self.counts_right:
            return _d2(outputs, truth, weight)
        if self.task == "classification":
            is_right = outputs.argmax(axis=1) == truth[:, 0]
        else:
            is_right = ((outputs >= 0.5) == (truth == 1)).mean(axis=1)
        return float(np.average(is_right, weights=weight))

    def _by_function(
        self, outputs: np.ndarray, truth: np.ndarray, weight: np.ndarray | None
    ) -> float:
        from hardwood.search.known_predictions import KnownClasses, KnownNumbers

        assert self.function is not None
        kind = KnownNumbers if self.task == "regression" else KnownClasses
        estimator = kind(outputs, self.classes)
        if self.task == "classification":
            assert self.classes is not None
            truth = self.classes[truth[:, 0].astype(np.int64)]
        elif self.task == "regression" and truth.shape[1] == 1:
            truth = truth[:, 0]
        options = {} if weight is None else {"sample_weight": weight}
        try:
            score = float(self.function(estimator, np.zeros((len(outputs), 1)), truth, **options))
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"scoring={self.name!r} cannot score trees for this target: {error}. For more "
                "than two classes, 'roc_auc_ovr' and 'neg_log_loss' are among those that can."
            ) from error
        if not np.isfinite(score):
            raise ValueError(
                f"scoring={self.name!r} gave {score} on the validation rows. Choose another score, "
                "or a larger validation_fraction."
            )
        return score


def scoring_function(scoring: Any) -> tuple[str, ScoringFunction]:
    """Return the name of a score and the function that computes it.

    `scoring` is the name of a scikit-learn scorer, or a function.

    Raises
    ------
    ValueError, TypeError
        If scikit-learn has no scorer of that name, or `scoring` is something else.
    """
    from sklearn.metrics import get_scorer, get_scorer_names

    if callable(scoring):
        return getattr(scoring, "__name__", None) or str(scoring), scoring
    if not isinstance(scoring, str):
        raise TypeError(
            "scoring must be None, the name of a scorer or a function (estimator, X, y) -> float, "
            f"got {scoring!r}."
        )
    if scoring not in get_scorer_names():
        raise ValueError(
            f"scoring={scoring!r} is not a scikit-learn scorer. Examples of scorers: 'accuracy', "
            "'balanced_accuracy', 'neg_log_loss', 'roc_auc', 'r2', 'neg_root_mean_squared_error', "
            "'neg_mean_absolute_error'."
        )
    return scoring, get_scorer(scoring)


def row_losses(outputs: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the log loss of each row, (n,); for several labels, their mean.

    Parameters
    ----------
    outputs
        (n, k) probabilities of classes or labels.
    truth
        (n, 1) class indices, or (n, k) zeros and ones.
    """
    p = np.clip(outputs, _LEAST_PROBABILITY, 1.0)
    if truth.shape[1] == 1 and outputs.shape[1] > 1:
        return np.asarray(-np.log(p[np.arange(len(p)), truth[:, 0].astype(np.int64)]))
    other = np.clip(1.0 - outputs, _LEAST_PROBABILITY, 1.0)
    return np.asarray(-np.where(truth == 1, np.log(p), np.log(other)).mean(axis=1))


def losses_of(outputs: np.ndarray, task: Task, rows: np.ndarray) -> np.ndarray:
    """Return the loss of each of these rows of a task: log loss, or squared error in deviations."""
    if task.kind != "regression":
        return row_losses(outputs, task.target[rows])
    scaled: np.ndarray = ((outputs - task.target[rows]) / task.target_scale) ** 2
    return scaled.mean(axis=1)


def _d2(outputs: np.ndarray, truth: np.ndarray, weight: np.ndarray | None) -> float:
    """Return the share of the log loss of the mean that is avoided; minus the loss if that is 0."""
    loss = float(np.average(row_losses(outputs, truth), weights=weight))
    if truth.shape[1] == 1 and outputs.shape[1] > 1:
        count = np.bincount(truth[:, 0].astype(np.int64), weight, outputs.shape[1])
        constant = np.broadcast_to(count / count.sum(), outputs.shape)
    else:
        constant = np.broadcast_to(np.average(truth, axis=0, weights=weight), outputs.shape)
    least = float(np.average(row_losses(constant, truth), weights=weight))
    return 1.0 - loss / least if least > 0 else -loss


def _r2(outputs: np.ndarray, truth: np.ndarray, weight: np.ndarray | None) -> float:
    """Return R2; for a target without variance, minus the mean squared error."""
    deviation = truth - np.average(truth, axis=0, weights=weight)
    # Squares of very large or small numbers overflow or vanish; scaling by a power of two is exact.
    power = -np.frexp(np.abs(deviation).max(axis=0))[1]
    error = np.average(np.ldexp(outputs - truth, power) ** 2, axis=0, weights=weight)
    variance = np.average(np.ldexp(deviation, power) ** 2, axis=0, weights=weight)
    has_variance = variance > 0
    explained = np.where(has_variance, 1 - error / np.where(has_variance, variance, 1.0), -error)
    return float(explained.mean())
