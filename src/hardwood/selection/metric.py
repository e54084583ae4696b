"""The metric of a trial on validation rows: a loss, or a scikit-learn scorer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import is_classifier

from hardwood.learn.losses import Custom, Loss, loss_of
from hardwood.search.scorer import ScoringFunction, scoring_function
from hardwood.selection.rows import LabeledRows

_TINY = np.finfo(np.float64).eps  # as in scikit-learn's log loss


@dataclass(frozen=True)
class Metric:
    """A measure of the quality of a fitted estimator.

    Attributes
    ----------
    name
        In words.
    direction
        Whether small or large values are good.
    of
        ``of(fitted, train, validation)``: the value on validation rows, after learning from others.
    """

    name: str
    direction: Literal["minimize", "maximize"]
    of: Callable[[Any, LabeledRows, LabeledRows], float]

    @property
    def sign(self) -> float:
        """The factor that makes small values good."""
        return 1.0 if self.direction == "minimize" else -1.0


def metric_of(estimator: Any, scoring: Any) -> Metric:
    """Return the metric that `scoring` names.

    Parameters
    ----------
    estimator
        The estimator to tune.
    scoring
        None: the loss of an estimator of this package, or the `score` of another estimator. The
        name of a scikit-learn scorer, or a function ``(estimator, X, y) -> float``; larger is
        better. With weights, both are called with ``sample_weight``.
    """
    if scoring is None:
        return _loss(estimator) if _has_loss(estimator) else _scored("score", _own_score)
    name, scorer = scoring_function(scoring)
    return _scored(name, scorer, is_named=isinstance(scoring, str))


def _own_score(fitted: Any, X: Any, y: Any, **options: Any) -> float:
    return fitted.score(X, y, **options)


def _scored(name: str, scorer: ScoringFunction, *, is_named: bool = False) -> Metric:
    def value(fitted: Any, train: LabeledRows, validation: LabeledRows) -> float:
        try:
            return float(scorer(fitted, validation.X, validation.y, **validation.weighted))
        except (TypeError, ValueError) as error:
            if not is_named:
                raise
            if validation.weighted and "sample_weight" in str(error):
                raise ValueError(
                    f"The scorer '{name}' takes no sample_weight. Use another scorer, or no "
                    "weights."
                ) from error
            raise ValueError(
                f"The scorer '{name}' cannot score this target; is it for another task? {error}"
            ) from error

    return Metric(name, "maximize", value)


def _has_loss(estimator: Any) -> bool:
    ours = any(kind.__module__.startswith("hardwood.") for kind in type(estimator).__mro__)
    return ours and hasattr(estimator, "loss")


def _loss(estimator: Any) -> Metric:
    if is_classifier(estimator):
        if callable(estimator.loss):
            raise ValueError(
                "Your own loss function for classes takes scores, which a fitted tree does not "
                "have. Set scoring, for example scoring='neg_log_loss'."
            )
        return Metric("log loss", "minimize", _log_loss)
    name = loss_of(estimator.loss, "regression").name.replace("_", " ")
    return Metric(name, "minimize", _regression_loss)


def _log_loss(fitted: Any, train: LabeledRows, validation: LabeledRows) -> float:
    p = fitted.predict_proba(validation.X)  # (n, classes), or (n, labels) for several labels
    y = np.asarray(validation.y)
    if y.ndim == 2 and y.shape[1] > 1:
        given = np.where(y.astype(bool), p, 1 - p)
    else:
        given = (p * (y.reshape(-1, 1) == fitted.classes_)).sum(axis=1)  # 0 of an unknown class
    return _mean(-np.log(np.clip(given, _TINY, 1.0)), validation.weight)


def _regression_loss(fitted: Any, train: LabeledRows, validation: LabeledRows) -> float:
    loss = loss_of(fitted.loss, "regression")
    target = np.asarray(validation.y, dtype=np.float64).reshape(len(validation), -1)
    prediction = np.asarray(fitted.predict(validation.X)).reshape(target.shape)
    scale = np.asarray(train.y, dtype=np.float64).reshape(len(train), -1).std(axis=0)
    return _mean(_losses(loss, prediction, target, scale), validation.weight)


def _huber(p: np.ndarray, y: np.ndarray, delta: float, bend: np.ndarray) -> np.ndarray:
    size = np.abs(p - y)
    return np.where(size <= bend, 0.5 * size**2, bend * (size - 0.5 * bend))


# By name: functions of predictions, targets, the loss's parameter, and that parameter in the units
# of the target.
_LOSSES: dict[str, Callable[[np.ndarray, np.ndarray, float, np.ndarray], np.ndarray]] = {
    "squared_error": lambda p, y, _, bend: (p - y) ** 2,
    "absolute_error": lambda p, y, _, bend: np.abs(p - y),
    "quantile": lambda p, y, level, bend: np.maximum(level * (y - p), (1 - level) * (p - y)),
    "huber": _huber,
    "poisson": lambda p, y, _, bend: p - y * np.log(np.maximum(p, _TINY)),
}


def _losses(
    loss: Loss, prediction: np.ndarray, target: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Losses (n, k), or (n,) of a function, in the units of the target."""
    if loss.name in _LOSSES:
        bend = loss.parameter * np.where(scale > 0, scale, 1.0)
        return _LOSSES[loss.name](prediction, target, loss.parameter, bend)
    if isinstance(loss, Custom):
        values, _ = loss(prediction.astype(np.float32), target.astype(np.float32))
        if values is not None:
            return values.astype(np.float64)
    raise ValueError(
        f"The loss {loss!r} has no values to compare trials by. Set scoring, for example "
        "scoring='neg_mean_absolute_error'."
    )


def _mean(losses: np.ndarray, weight: np.ndarray | None) -> float:
    per_row = losses if losses.ndim == 1 else losses.mean(axis=1)
    return float(np.average(per_row, weights=weight))
