"""Losses for pruning, and the constant prediction that minimizes each.

A criterion is the loss of predictions on rows with known targets. Predictions are (n, k) float64,
or (1, k) for the same prediction for all rows. The target depends on the task:

==============  ========================  ===================================
task            prediction                target
==============  ========================  ===================================
classification  probabilities             (n,) int64, class indices
regression      numbers                   (n, k) float64
multilabel      probabilities             (n, k) float64 of 0 and 1
==============  ========================  ===================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model.outputs import class_positions

if TYPE_CHECKING:
    from hardwood.model.base import Model

# If a leaf has a probability of 0, the log loss of a wrong prediction is 36 instead of infinity.
PROBABILITY_EPSILON = float(np.finfo(np.float64).eps)
# Pseudo-count: a class that no row of a leaf has is not impossible. With probability 0, a single
# row of it elsewhere would dominate the log loss.
EVEN_SHARE = 0.01
# Training losses whose best leaf value is not the mean, by their name in a tree's record.
_NOT_OF_MEANS = {"absolute_error", "AbsoluteError", "quantile", "Quantile", "huber", "Huber"}


class Criterion(ABC):
    """A loss per row, and the constant prediction that minimizes its weighted sum."""

    name: str

    @abstractmethod
    def losses(self, outputs: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """Return the loss of each row, (n,), at least 0."""

    def best(self, truth: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the best constant prediction, (k,): the weighted mean."""
        mean: np.ndarray = weight @ truth / weight.sum()
        return mean


@dataclass(frozen=True)
class _OfClasses(Criterion):
    n_classes: int

    def best(self, truth: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the class frequencies."""
        shares: np.ndarray = np.bincount(truth, weight, minlength=self.n_classes) / weight.sum()
        return shares


class ClassSquaredError(_OfClasses):
    r"""The Brier score, :math:`\sum_c (p_c - 1[y = c])^2`; of frequencies, the Gini impurity."""

    name = "squared_error"

    def losses(self, outputs: np.ndarray, truth: np.ndarray) -> np.ndarray:
        losses: np.ndarray = 1 - 2 * _of_truth(outputs, truth) + (outputs**2).sum(axis=1)
        return losses


class ClassLogLoss(_OfClasses):
    r""":math:`-\log p_y`; of class frequencies, the entropy.

    The probabilities of a new leaf are mixed with 1 % of a uniform distribution.
    """

    name = "log_loss"

    def best(self, truth: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the class frequencies, mixed with a uniform distribution."""
        return _evened(super().best(truth, weight), self.n_classes)

    def losses(self, outputs: np.ndarray, truth: np.ndarray) -> np.ndarray:
        return _surprise(_of_truth(outputs, truth))


@dataclass(frozen=True, eq=False)
class ClassError(_OfClasses):
    """The misclassification rate, Breiman's choice for pruning."""

    name = "misclassification"
    decision_weights: np.ndarray | None = None

    def losses(self, outputs: np.ndarray, truth: np.ndarray) -> np.ndarray:
        return (class_positions(outputs, self.decision_weights) != truth).astype(np.float64)


class MeanSquaredError(Criterion):
    """The squared error, averaged over the outputs: numbers, or labels as 0 and 1."""

    name = "squared_error"

    def losses(self, outputs: np.ndarray, truth: np.ndarray) -> np.ndarray:
        losses: np.ndarray = ((outputs - truth) ** 2).mean(axis=1)
        return losses


@dataclass(frozen=True)
class QuantileError(Criterion):
    r"""Twice the pinball loss, averaged over the outputs: :math:`|f - y|` at level 1/2."""

    level: float = 0.5

    @property
    def name(self) -> str:  # type: ignore[override]  # depends on the level
        return "absolute_error" if self.level == 0.5 else f"quantile {self.level:g}"

    def losses(self, outputs: np.ndarray, truth: np.ndarray) -> np.ndarray:
        above = truth - outputs
        losses: np.ndarray = 2 * np.maximum(self.level * above, (self.level - 1) * above)
        return losses.mean(axis=1)

    def best(self, truth: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the weighted quantile of each output; the midpoint on ties."""
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
    """The log loss, averaged over the labels; for new leaves see `ClassLogLoss`."""

    name = "log_loss"

    def best(self, truth: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the label frequencies, mixed with a uniform distribution."""
        return _evened(super().best(truth, weight), 2)

    def losses(self, outputs: np.ndarray, truth: np.ndarray) -> np.ndarray:
        losses: np.ndarray = _surprise(np.where(truth > 0, outputs, 1 - outputs)).mean(axis=1)
        return losses


class LabelError(Criterion):
    """The fraction of labels that are wrong (Hamming loss)."""

    name = "misclassification"

    def losses(self, outputs: np.ndarray, truth: np.ndarray) -> np.ndarray:
        losses: np.ndarray = ((outputs >= 0.5) != (truth > 0)).mean(axis=1)
        return losses


def criterion_for(model: Model, criterion: Any = None) -> Criterion:
    """Return the criterion with this name for the task of a model.

    Parameters
    ----------
    model
        The model.
    criterion
        For classes and labels ``"log_loss"`` (the default), ``"squared_error"`` (the Brier score)
        or ``"misclassification"``; for numbers ``"squared_error"`` (the default),
        ``"absolute_error"``, or a loss with a ``level``, such as ``hardwood.learn.Quantile(0.9)``.

    Raises
    ------
    ValueError
        If the task has no criterion of this name, or if no name is given and the leaves do not hold
        means, according to the training record.
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
        error = ClassError(k, model.decision_weights)
        of_task: list[Criterion] = [ClassLogLoss(k), ClassSquaredError(k), error]
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
            "rows: choose what new leaves hold, criterion='squared_error' (means), "
            "'absolute_error' (medians) or hardwood.learn.Quantile(level)"
        )


def _evened(shares: np.ndarray, n: int) -> np.ndarray:
    return (1 - EVEN_SHARE) * shares + EVEN_SHARE / n


def _of_truth(outputs: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the predicted probability of the target, (n,)."""
    given: np.ndarray = outputs[np.arange(truth.size) if len(outputs) > 1 else 0, truth]
    return given


def _surprise(probability: np.ndarray) -> np.ndarray:
    surprise: np.ndarray = -np.log(np.maximum(probability, PROBABILITY_EPSILON))
    return surprise
