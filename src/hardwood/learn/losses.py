"""Losses that learners minimize.

The engine computes them (``native/core/loss.hpp``); ``tests/reference/losses.py`` defines them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from hardwood.model.structure import Link
from hardwood.text.numbers import plural

NO_LINK: Link = "identity"

# Keeps the scores of a pure leaf finite in a tree to start from.
_LEAST_START_PROBABILITY = 1e-6


@dataclass(frozen=True)
class Loss(ABC):
    """A loss of the engine."""

    name: ClassVar[str]
    target_units: ClassVar[Literal["raw", "deviation", "mean"]] = "raw"
    """Units of the target during learning: raw, standardized, or (for counts) relative to the mean.
    Leaves start near zero and steps are small, so they could not reach a target far from zero."""

    link_name: ClassVar[Link] = "identity"
    """The link from `link_scores` to the predictions of a tree with linear leaves."""

    @property
    def parameter(self) -> float:
        """The parameter of the loss, if it has one."""
        return 0.0

    def n_outputs(self, n_targets: int) -> int:
        """Return the number of scores per leaf, for this number of targets or classes."""
        return n_targets

    @abstractmethod
    def link(self, scores: np.ndarray) -> np.ndarray:
        """Convert scores of leaves (L, k) to predictions."""

    @abstractmethod
    def scores(self, values: np.ndarray) -> np.ndarray:
        """Convert predictions to scores: the inverse of the link."""

    def link_scores(self, scores: np.ndarray) -> np.ndarray:
        """Return the scores (..., k), one per output, to which `link_name` is applied."""
        return scores


class _Identity(Loss):
    target_units = "deviation"

    def link(self, scores: np.ndarray) -> np.ndarray:
        return scores

    def scores(self, values: np.ndarray) -> np.ndarray:
        return values


@dataclass(frozen=True)
class SquaredError(_Identity):
    """Mean over the outputs of (f - y)^2: predicts means."""

    name: ClassVar[str] = "squared_error"


@dataclass(frozen=True)
class AbsoluteError(_Identity):
    """|f - y|: predicts medians."""

    name: ClassVar[str] = "absolute_error"


@dataclass(frozen=True)
class Huber(_Identity):
    """Squared within `delta` standard deviations of the target, absolute beyond."""

    delta: float = 1.35
    name: ClassVar[str] = "huber"

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise ValueError(f"delta of the Huber loss must be positive, found {self.delta!r}")

    @property
    def parameter(self) -> float:
        return self.delta


@dataclass(frozen=True)
class Quantile(_Identity):
    """The pinball loss: predicts the quantile at `level`."""

    level: float = 0.5
    name: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"level of the quantile loss must lie in (0, 1), found {self.level!r}")

    @property
    def parameter(self) -> float:
        return self.level


@dataclass(frozen=True)
class Poisson(Loss):
    """exp(f) - y f for counts and rates y >= 0: predicts exp(f)."""

    name: ClassVar[str] = "poisson"
    link_name: ClassVar[Link] = "exp"
    target_units = "mean"

    def link(self, scores: np.ndarray) -> np.ndarray:
        return np.exp(scores)

    def scores(self, values: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(values, _LEAST_START_PROBABILITY))


@dataclass(frozen=True)
class Logistic(Loss):
    """Log loss of two classes, with one score per leaf."""

    name: ClassVar[str] = "logistic"
    link_name: ClassVar[Link] = "softmax"

    def n_outputs(self, n_targets: int) -> int:
        return 1

    def link(self, scores: np.ndarray) -> np.ndarray:
        half = 0.5 * np.tanh(0.5 * scores)  # sigma(f) - 1/2, without overflow
        return np.hstack([0.5 - half, 0.5 + half])

    def scores(self, values: np.ndarray) -> np.ndarray:
        p = np.clip(values, _LEAST_START_PROBABILITY, 1.0)
        return np.log(p[:, 1:] / p[:, :1])

    def link_scores(self, scores: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros_like(scores), scores], axis=-1)


@dataclass(frozen=True)
class LabelwiseLogistic(Loss):
    """Mean log loss of several binary labels, with one score per label."""

    name: ClassVar[str] = "logistic"
    link_name: ClassVar[Link] = "logistic"

    def link(self, scores: np.ndarray) -> np.ndarray:
        return 0.5 + 0.5 * np.tanh(0.5 * scores)

    def scores(self, values: np.ndarray) -> np.ndarray:
        p = np.clip(values, _LEAST_START_PROBABILITY, 1.0 - _LEAST_START_PROBABILITY)
        return np.log(p / (1.0 - p))


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """Log loss of any number of classes, with one score per class."""

    name: ClassVar[str] = "cross_entropy"
    link_name: ClassVar[Link] = "softmax"

    def link(self, scores: np.ndarray) -> np.ndarray:
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def scores(self, values: np.ndarray) -> np.ndarray:
        return np.log(np.clip(values, _LEAST_START_PROBABILITY, 1.0))


class _Coded(Loss):
    """Base of losses with classes coded as 1 for the class of a row and -1 for the others.

    A score of 1 means certainty, and -1 means that the class is ruled out. The probabilities of a
    leaf are proportional to its scores plus 1. Linear leaves, whose scores are unbounded, and sums
    of trees use a softmax, which prefers the same class.
    """

    link_name: ClassVar[Link] = "softmax"

    def link(self, scores: np.ndarray) -> np.ndarray:
        share = np.maximum(scores + 1.0, 0.0)
        is_none = ~(share.sum(axis=1) > 0)  # all ruled out: the largest score is left
        share[is_none] = scores[is_none] == scores[is_none].max(axis=1, keepdims=True)
        return share / share.sum(axis=1, keepdims=True)

    def scores(self, values: np.ndarray) -> np.ndarray:
        return 2.0 * values - 1.0


@dataclass(frozen=True)
class Hinge(_Coded):
    """Sum over the classes of max(0, 1 - code f): a margin for each class against the rest."""

    name: ClassVar[str] = "hinge"


@dataclass(frozen=True)
class SquaredCodes(_Coded):
    """Sum over the classes of (f - code)^2: scores are 2 p - 1 at best."""

    name: ClassVar[str] = "squared_codes"


@dataclass(frozen=True)
class Misclassification(CrossEntropy):
    """The 0/1 loss: 1 if another class has the largest score, else 0. It has no gradient."""

    name: ClassVar[str] = "misclassification"


@dataclass(frozen=True)
class Custom(Loss):
    """A loss given by a Python function, which is called once per batch.

    Parameters
    ----------
    function
        ``function(prediction (B, k), target (B, t))`` returns the gradient with respect to the
        prediction (B, k), or a pair of losses (B,) and gradient. Early stopping needs the losses.
    task
        "classification": the target is a class index, predictions are a softmax of one score per
        class. "multilabel": targets are 0 and 1, predictions a sigmoid of one score per label.
    """

    function: Callable[[np.ndarray, np.ndarray], Any]
    task: str = "regression"
    name: ClassVar[str] = "custom"

    @property
    def _like(self) -> Loss:
        return {
            "classification": CrossEntropy(),
            "multilabel": LabelwiseLogistic(),
            "regression": SquaredError(),
        }[self.task]

    @property
    def link_name(self) -> Link:  # type: ignore[override]
        return self._like.link_name

    def link(self, scores: np.ndarray) -> np.ndarray:
        return self._like.link(scores)

    def scores(self, values: np.ndarray) -> np.ndarray:
        return self._like.scores(values)

    def __call__(
        self, prediction: np.ndarray, target: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """Return the losses (B,), or None, and the gradient (B, k), for the engine."""
        answer = self.function(prediction, target)
        if isinstance(answer, tuple) and len(answer) != 2:
            raise ValueError(
                f"The custom loss returned a tuple of length {len(answer)}; expected the gradient, "
                "or a pair (losses, gradient)."
            )
        values, gradient = answer if isinstance(answer, tuple) else (None, answer)
        gradient = np.ascontiguousarray(gradient, dtype=np.float32)
        if gradient.shape != prediction.shape:
            raise ValueError(
                f"The custom loss returned a gradient of shape {gradient.shape} for predictions "
                f"of shape {prediction.shape}; expected the same shape."
            )
        if not np.isfinite(gradient).all():
            raise ValueError("The custom loss returned a gradient that is not finite.")
        if values is not None:
            values = np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
            if len(values) != len(prediction) or not np.isfinite(values).all():
                raise ValueError(
                    f"The custom loss returned {plural(len(values), 'loss', 'losses')} for "
                    f"{plural(len(prediction), 'row')}, or "
                    "some that are not finite; expected one finite loss per row."
                )
        return values, gradient


_REGRESSION: dict[str, Callable[[], Loss]] = {
    "squared_error": SquaredError,
    "absolute_error": AbsoluteError,
    "huber": Huber,
    "quantile": Quantile,
    "poisson": Poisson,
}


_CLASSIFICATION: dict[str, Callable[[], Loss]] = {
    "hinge": Hinge,
    "squared_error": SquaredCodes,
}

# Losses that are defined for every row and leaf; learners by gradients also take functions.
LEAF_LOSSES = frozenset(
    {
        "squared_error",
        "absolute_error",
        "huber",
        "quantile",
        "poisson",
        "logistic",
        "cross_entropy",
        "hinge",
        "squared_codes",
    }
)
GRADIENT_LOSSES = LEAF_LOSSES | {"custom"}


def loss_of(
    spec: object,
    task: str,
    n_classes: int | None = None,
    *,
    allowed: frozenset[str] = GRADIENT_LOSSES,
) -> Loss:
    """Return the loss for the parameter ``loss`` of an estimator.

    Parameters
    ----------
    spec
        A name ("log_loss", "hinge" or "squared_error" for classes, "log_loss" for several labels;
        "squared_error", "absolute_error", "huber", "quantile" or "poisson" for numbers), a `Loss`,
        or a function (see `Custom`).
    task
        "classification", "multilabel" or "regression".
    n_classes
        Number of classes, for classification.
    allowed
        Names of the losses that the learner can minimize.

    Raises
    ------
    ValueError
        If the loss is unknown, belongs to another task, or cannot be minimized by the learner.
    """
    loss = _found(spec, task, n_classes, allowed)
    if loss.name in allowed:
        return loss
    if isinstance(loss, Custom):
        raise ValueError(
            "This learner evaluates its loss for single leaves, so loss must be a name or a loss "
            "object, not a function. DGTClassifier and DGTRegressor take functions. For rewards "
            "without a gradient, use hardwood.learn_from_rewards."
        )
    raise ValueError(
        f"This learner cannot minimize loss={spec!r}. It can minimize {sorted(allowed)}."
    )


def is_for_labels(spec: object) -> bool:
    """Whether the parameter ``loss`` of a classifier also names a loss of several labels."""
    if isinstance(spec, str):
        return spec in ("log_loss", "auto")
    return isinstance(spec, LabelwiseLogistic | Custom) or not isinstance(spec, Loss)


def _found(spec: object, task: str, n_classes: int | None, allowed: frozenset[str]) -> Loss:
    fits: dict[str, tuple[type[Loss], ...]] = {
        "classification": (Logistic, CrossEntropy, Hinge, SquaredCodes),
        "multilabel": (LabelwiseLogistic,),
    }
    if Misclassification.name in allowed and task == "classification":
        is_name = isinstance(spec, str) and spec == Misclassification.name
        if is_name or isinstance(spec, Misclassification):
            return Misclassification()
    if task != "regression" and isinstance(spec, str) and spec == "log_loss":
        if task == "multilabel":
            return LabelwiseLogistic()
        return Logistic() if n_classes == 2 else CrossEntropy()
    if task == "regression" and isinstance(spec, str) and spec in _REGRESSION:
        return _REGRESSION[spec]()
    if task == "classification" and isinstance(spec, str) and spec in _CLASSIFICATION:
        return _CLASSIFICATION[spec]()
    if isinstance(spec, Custom):
        return Custom(spec.function, task)
    if isinstance(spec, Loss):
        is_of_classes = isinstance(spec, Logistic | CrossEntropy | LabelwiseLogistic | _Coded)
        if isinstance(spec, Misclassification):
            raise ValueError(
                f"loss={spec!r} has no gradient to descend on. TAOClassifier takes it."
            )
        if isinstance(spec, fits[task]) if task in fits else not is_of_classes:
            return spec
    elif callable(spec):
        return Custom(spec, task)
    known = {
        "regression": list(_REGRESSION),
        "classification": ["log_loss", *_CLASSIFICATION],
    }.get(task, ["log_loss"])
    raise ValueError(
        f"loss={spec!r} is not a loss for {task}. Expected one of {known}, a loss object of "
        "hardwood.learn.losses, or a function (prediction, target) -> gradient."
    )
