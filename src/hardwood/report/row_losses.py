"""The loss of each row, in the unit of a metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from hardwood.errors import TableError
from hardwood.model.base import Model
from hardwood.report.metrics import YES, brier_losses, label_log_losses, log_losses, unit_of
from hardwood.report.scored_rows import ScoredRows

# Intervals square the losses, so the fourth powers of the errors must be finite.
_LEAST_ERROR, _MOST_ERROR = 1e-70, 1e70

LossFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class RowLoss:
    """A metric that is a mean over rows, as a loss: larger is worse.

    Attributes
    ----------
    metric
        Name of the metric.
    is_score
        Whether the metric is 1 minus the mean loss.
    of_rows
        Function from targets and outputs to losses (n, c); their mean over c is a row's loss.
    further
        (n, c) additional influence of a row on the metric: R2 is in units of the variance, which
        depends on the rows too. Zero for other metrics.
    """

    metric: str
    is_score: bool
    of_rows: LossFunction
    further: np.ndarray

    def value(self, losses: np.ndarray, weight: np.ndarray) -> float:
        """Return the metric of rows with these losses, (n, c)."""
        mean = float(np.average(losses.mean(axis=1), weights=weight))
        return 1 - mean if self.is_score else mean


def row_loss(rows: ScoredRows, metric: str | None = None) -> RowLoss:
    """Return the loss for a metric, given by name.

    For classes: ``"accuracy"`` (the default), ``"log loss"``, ``"Brier score"``. For labels:
    ``"label accuracy"`` (the default), ``"log loss"``, ``"Brier score"``. For regression: ``"R2"``
    (the default), ``"MAE"``, ``"MSE"``, averaged over several targets.
    """
    functions = _functions(rows.model)
    name = next(iter(functions)) if metric is None else metric
    if name not in functions:
        raise ValueError(
            f"metric must be one of {list(functions)} for {rows.model.task}, found {metric!r:.80}"
        )
    if name == "R2":
        return _in_variances(rows)
    if rows.model.task == "regression":
        _check_size(rows, name)
    is_score = name in ("accuracy", "label accuracy")
    of_row = functions[name]
    return RowLoss(name, is_score, lambda *rows: of_row(*rows)[:, None], np.zeros((len(rows), 1)))


def _in_variances(rows: ScoredRows) -> RowLoss:
    unit = np.array([unit_of(column) for column in rows.truth.T])
    own = rows.truth / unit
    squared = (own - np.average(own, axis=0, weights=rows.weight)) ** 2  # (n, k)
    variance = np.average(squared, axis=0, weights=rows.weight)
    if not (variance > 0).all():
        raise TableError(
            "y has the same value in all rows, so R2 is not defined: pass more rows, or "
            "metric='MAE'"
        )

    def losses(truth: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            found: np.ndarray = (truth / unit - outputs / unit) ** 2 / variance
        if not found.max() <= _MOST_ERROR**2:
            raise TableError(
                f"predictions (up to {np.abs(outputs).max():.3g}) are so far from y (up to "
                f"{np.abs(truth).max():.3g}) that R2 exceeds float64: pass y in the unit of the "
                "predictions, or metric='MAE'"
            )
        return found

    return RowLoss("R2", True, losses, squared / variance - 1)


def _check_size(rows: ScoredRows, metric: str) -> None:
    largest = float(max(np.abs(rows.truth).max(), np.abs(rows.outputs).max()))
    if largest and not _LEAST_ERROR <= largest <= _MOST_ERROR:
        raise TableError(
            f"y and the predictions go up to {largest:.3g}; to compute {metric} in float64 this "
            f"must be between {_LEAST_ERROR:g} and {_MOST_ERROR:g}. Pass y in another unit, or "
            "metric='R2', which has no unit"
        )


def _wrong(model: Model, truth: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    return (model.class_positions(outputs) != truth).astype(np.float64)


def _wrong_labels(truth: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    return ((outputs >= YES) != (truth == 1)).mean(axis=1)


def _squared(truth: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    return ((truth - outputs) ** 2).mean(axis=1)


def _absolute(truth: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    return np.abs(truth - outputs).mean(axis=1)


def _functions(model: Model) -> dict[str, LossFunction]:
    """Return the losses for the task of a model, the default first."""
    functions: dict[str, dict[str, LossFunction]] = {
        "classification": {
            "accuracy": partial(_wrong, model),
            "log loss": log_losses,
            "Brier score": brier_losses,
        },
        "multilabel": {
            "label accuracy": _wrong_labels,
            "log loss": label_log_losses,
            "Brier score": _squared,
        },
        "regression": {"R2": _squared, "MAE": _absolute, "MSE": _squared},
    }
    return functions[model.task]
