"""What a wrong answer costs, and which one answer is the best for some rows.

A criterion judges answers on rows whose truth is known, when a tree is made smaller. Answers are
(n, k) float64, or (1, k) for one answer to all rows; what the truth is depends on the task:

==============  ========================  ===================================
task            answer                    truth
==============  ========================  ===================================
classification  probabilities             (n,) int64, position of the class
regression      numbers                   (n, k) float64
multilabel      probabilities of yes      (n, k) float64 of 0 and 1
==============  ========================  ===================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hardwood.model.base import Model

# Where leaves were learned to give a probability of 0, a wrong answer costs 36, not infinity.
PROBABILITY_EPSILON = float(np.finfo(np.float64).eps)
# A class that none of a leaf's rows has is not impossible. Its share is 0, and one row of it
# elsewhere would outweigh all others in the log loss.
EVEN_SHARE = 0.01
# Losses of learning whose best leaf is no mean, as a tree's record names them.
_NOT_OF_MEANS = {"absolute_error", "AbsoluteError", "quantile", "Quantile", "huber", "Huber"}


class Criterion(ABC):
    """A loss per row, and the constant answer that minimizes its weighted sum."""

    name: str

    @abstractmethod
    def losses(self, answer: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """Loss of each row, (n,), at least 0."""

    def best(self, truth: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the best one answer, (k,): the weighted mean."""
        mean: np.ndarray = weight @ truth / weight.sum()
        return mean


@dataclass(frozen=True)
class _OfClasses(Criterion):
    n_classes: int

    def best(self, truth: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the share of each class."""
        shares: np.ndarray = np.bincount(truth, weight, minlength=self.n_classes) / weight.sum()
        return shares


class ClassSquaredError(_OfClasses):
    r"""The Brier score, :math:`\sum_c (p_c - 1[y = c])^2`; of class shares, the Gini impurity."""

    name = "squared_error"

    def losses(self, answer: np.ndarray, truth: np.ndarray) -> np.ndarray:
        losses: np.ndarray = 1 - 2 * _of_truth(answer, truth) + (answer**2).sum(axis=1)
        return losses


class ClassLogLoss(_OfClasses):
    r""":math:`-\log p_y`; of class shares, the entropy.

    Of the probability of a new leaf, the share 0.01 is divided evenly among the classes.
    """

    name = "log_loss"

    def best(self, truth: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the share of each class, less what all have alike."""
        return _evened(super().best(truth, weight), self.n_classes)

    def losses(self, answer: np.ndarray, truth: np.ndarray) -> np.ndarray:
        return _surprise(_of_truth(answer, truth))


class ClassError(_OfClasses):
    """1 where the most probable class is not the true one: Breiman's choice for pruning."""

    name = "misclassification"

    def losses(self, answer: np.ndarray, truth: np.ndarray) -> np.ndarray:
        return (answer.argmax(axis=1) != truth).astype(np.float64)


class MeanSquaredError(Criterion):
    """Mean over the outputs of (f - y)^2: numbers, or labels as 0 and 1."""

    name = "squared_error"

    def losses(self, answer: np.ndarray, truth: np.ndarray) -> np.ndarray:
        losses: np.ndarray = ((answer - truth) ** 2).mean(axis=1)
        return losses


@dataclass(frozen=True)
class QuantileError(Criterion):
    r"""Twice the pinball loss, mean over the outputs: :math:`|f - y|` at level 1/2."""

    level: float = 0.5

    @property
    def name(self) -> str:  # type: ignore[override]  # the level belongs to it
        return "absolute_error" if self.level == 0.5 else f"quantile {self.level:g}"

    def losses(self, answer: np.ndarray, truth: np.ndarray) -> np.ndarray:
        above = truth - answer
        losses: np.ndarray = 2 * np.maximum(self.level * above, (self.level - 1) * above)
        return losses.mean(axis=1)

    def best(self, truth: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the weighted quantile of each output; half way where two numbers are as good."""
        order = truth.argsort(axis=0)
        up_to = np.cumsum(weight[order], axis=0)  # (n, k)
        wanted = self.level * up_to[-1]
        last = len(truth) - 1
        low = np.minimum((up_to < wanted).sum(axis=0), last)
        high = np.minimum((up_to <= wanted).sum(axis=0), last)
        ranked = np.take_along_axis(truth, order, axis=0)
        output = np.arange(truth.shape[1])
        between: np.ndarray = (ranked[low, output] + ranked[high, output]) / 2
        return between


class LabelLogLoss(Criterion):
    """Log loss of each yes or no, mean over the labels; new leaves as in `ClassLogLoss`."""

    name = "log_loss"

    def best(self, truth: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the share of yes, less what yes and no have alike."""
        return _evened(super().best(truth, weight), 2)

    def losses(self, answer: np.ndarray, truth: np.ndarray) -> np.ndarray:
        losses: np.ndarray = _surprise(np.where(truth > 0, answer, 1 - answer)).mean(axis=1)
        return losses


class LabelError(Criterion):
    """Share of the labels that are wrong (the Hamming loss)."""

    name = "misclassification"

    def losses(self, answer: np.ndarray, truth: np.ndarray) -> np.ndarray:
        losses: np.ndarray = ((answer >= 0.5) != (truth > 0)).mean(axis=1)
        return losses


def criterion_for(model: Model, criterion: Any = None) -> Criterion:
    """Find the criterion of a name for the task of a model.

    Parameters
    ----------
    model
        What is to be judged.
    criterion
        For classes and labels ``"log_loss"`` (the default), ``"squared_error"`` (the Brier score)
        or ``"misclassification"``; for numbers ``"squared_error"`` (the default),
        ``"absolute_error"``, or a loss with a ``level``, such as ``hardwood.learn.Quantile(0.9)``.

    Raises
    ------
    ValueError
        For a name that the task does not have, and for no name where the record says that the
        leaves hold something else than means.
    """
    if criterion is None:
        _check_learned_means(model)
        criterion = "squared_error" if model.task == "regression" else "log_loss"
    known = _criteria(model)
    level = getattr(criterion, "level", None)
    if model.task == "regression" and isinstance(level, float) and 0 < level < 1:
        return QuantileError(level)
    if not isinstance(criterion, str) or criterion not in known:
        more = " or hardwood.learn.Quantile(level)" if model.task == "regression" else ""
        raise ValueError(
            f"criterion for a {model.task} tree must be one of "
            f"{', '.join(map(repr, known))}{more}, not {criterion!r:.80}"
        )
    return known[criterion]


def _criteria(model: Model) -> dict[str, Criterion]:
    if model.task == "classification":
        k = model.n_outputs
        of_task: list[Criterion] = [ClassLogLoss(k), ClassSquaredError(k), ClassError(k)]
    elif model.task == "regression":
        of_task = [MeanSquaredError(), QuantileError()]
    else:
        of_task = [LabelLogLoss(), MeanSquaredError(), LabelError()]
    return {criterion.name: criterion for criterion in of_task}


def _check_learned_means(model: Model) -> None:
    parameters = model.record.get("parameters")
    loss = parameters.get("loss") if isinstance(parameters, dict) else None
    if isinstance(loss, dict):  # a loss object, by its name and options
        loss = next(iter(loss), None)
    if model.task == "regression" and loss in _NOT_OF_MEANS:
        raise ValueError(
            f"the tree was learned with the loss {loss!r}, whose best leaf is not the mean of its "
            "rows: say what the new leaves should hold, criterion='squared_error' (means), "
            "'absolute_error' (medians) or hardwood.learn.Quantile(level)"
        )


def _evened(shares: np.ndarray, n: int) -> np.ndarray:
    return (1 - EVEN_SHARE) * shares + EVEN_SHARE / n


def _of_truth(answer: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the probability given to what is true, (n,)."""
    given: np.ndarray = answer[np.arange(truth.size) if len(answer) > 1 else 0, truth]
    return given


def _surprise(probability: np.ndarray) -> np.ndarray:
    surprise: np.ndarray = -np.log(np.maximum(probability, PROBABILITY_EPSILON))
    return surprise
