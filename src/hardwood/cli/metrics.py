"""Scores of predictions, each with a 95 % interval.

All metrics are functions of one weight per row, so that a bootstrap resample is nothing but another
vector of weights (how often each row was drawn), and sample weights cost nothing extra.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

LEVEL = 0.95
_Z = 1.959963984540054  # the normal quantile that belongs to LEVEL
_MAX_RESAMPLES = 1000
_MIN_RESAMPLES = 200
_MAX_DRAWS = 2e8  # rows times resamples: a few seconds

Metric = Callable[[np.ndarray], float]


@dataclass(frozen=True)
class Score:
    """A metric's value on given rows, with its interval; NaN where it is not defined there."""

    name: str
    value: float
    low: float
    high: float
    method: str


def classification_scores(
    truth: np.ndarray, probabilities: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> list[Score]:
    """Accuracy, balanced accuracy, log loss and, for two classes, the area under the ROC curve.

    Parameters
    ----------
    truth
        (n,) position of the true class, -1 for a class that the model does not know: always wrong.
    probabilities
        (n, k).
    weight
        (n,) of each row.
    rng
        Draws the bootstrap resamples.

    Notes
    -----
    The interval of the accuracy is Wilson's, with the effective number of rows. The bootstrap would
    call a perfect score certain however few the rows, because no resample of it can be imperfect.
    """
    is_right = (probabilities.argmax(axis=1) == truth).astype(np.float64)
    metrics: dict[str, Metric] = {
        "balanced accuracy": _balanced_accuracy(is_right, truth),
        "log loss": _mean(_surprise(truth, probabilities)),
    }
    if probabilities.shape[1] == 2 and truth.min() >= 0:
        metrics["AUC"] = _area_under_curve(truth, probabilities[:, 1])
    accuracy = _wilson("accuracy", is_right, weight)
    return [accuracy, *_bootstrap(metrics, weight, rng)]


def regression_scores(
    truth: np.ndarray, prediction: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> list[Score]:
    """Root mean squared error, mean absolute error and the share of variance explained, R2."""
    squared = (truth - prediction) ** 2

    def rmse(w: np.ndarray) -> float:
        return float(np.sqrt(w @ squared / w.sum()))

    def r2(w: np.ndarray) -> float:
        spread = w @ (truth - w @ truth / w.sum()) ** 2
        return float(1 - w @ squared / spread) if spread > 0 else np.nan

    metrics = {"RMSE": rmse, "MAE": _mean(np.abs(truth - prediction)), "R2": r2}
    return _bootstrap(metrics, weight, rng)


def several_regression_scores(
    truth: np.ndarray,
    prediction: np.ndarray,
    names: Sequence[str],
    weight: np.ndarray,
    rng: np.random.Generator,
) -> list[Score]:
    """Scores of several numbers, (n, k) both: those of `regression_scores` for each by its name."""
    return [
        replace(score, name=f"{score.name} of {name}")
        for j, name in enumerate(names)
        for score in regression_scores(truth[:, j], prediction[:, j], weight, rng)
    ]


def label_scores(
    truth: np.ndarray,
    probabilities: np.ndarray,
    names: Sequence[str],
    weight: np.ndarray,
    rng: np.random.Generator,
) -> list[Score]:
    """Scores of several labels: (n, k) of 0 and 1, and (n, k) probabilities of 1.

    The share of rows with all labels right and the log loss, a mean over the labels; then for each
    label its accuracy and the area under its ROC curve.
    """
    is_right = ((probabilities >= 0.5) == (truth == 1)).astype(np.float64)
    given = np.where(truth == 1, probabilities, 1 - probabilities)
    scores = [
        _wilson("all labels right", is_right.min(axis=1), weight),
        *_bootstrap({"log loss": _mean(_minus_log(given).mean(axis=1))}, weight, rng),
    ]
    for j, name in enumerate(names):
        curve = {f"AUC of {name}": _area_under_curve(truth[:, j], probabilities[:, j])}
        scores.append(_wilson(f"accuracy of {name}", is_right[:, j], weight))
        scores += _bootstrap(curve, weight, rng)
    return scores


def confusion(truth: np.ndarray, predicted: np.ndarray, n_classes: int) -> np.ndarray:
    """Count rows by true (row) and predicted class (column), (k, k), without unknown ones."""
    known = truth >= 0
    cells = truth[known] * n_classes + predicted[known]
    return np.bincount(cells, minlength=n_classes**2).reshape(n_classes, n_classes)


def n_resamples(n_rows: int) -> int:
    """How many bootstrap resamples are drawn for a table of ``n_rows``."""
    return int(np.clip(_MAX_DRAWS // max(n_rows, 1), _MIN_RESAMPLES, _MAX_RESAMPLES))


def _mean(losses: np.ndarray) -> Metric:
    return lambda w: float(w @ losses / w.sum())


def _balanced_accuracy(is_right: np.ndarray, truth: np.ndarray) -> Metric:
    n_classes = truth.max() + 2  # one more for the unknown, which come first

    def metric(w: np.ndarray) -> float:
        total = np.bincount(truth + 1, w, minlength=n_classes)
        right = np.bincount(truth + 1, w * is_right, minlength=n_classes)
        return float((right[total > 0] / total[total > 0]).mean())

    return metric


def _surprise(truth: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return -log of the true class's probability, clipped as in scikit-learn's log loss."""
    return _minus_log(np.where(truth >= 0, probabilities[np.arange(truth.size), truth], 0.0))


def _minus_log(given: np.ndarray) -> np.ndarray:
    return -np.log(np.clip(given, np.finfo(np.float64).eps, 1 - np.finfo(np.float64).eps))


def _area_under_curve(truth: np.ndarray, score: np.ndarray) -> Metric:
    """Chance that a row of class 1 scores above one of class 0, ties counting half."""
    group = np.unique(score, return_inverse=True)[1]
    is_positive = (truth == 1).astype(np.float64)

    def metric(w: np.ndarray) -> float:
        positive = np.bincount(group, w * is_positive)
        negative = np.bincount(group, w * (1 - is_positive))
        below = np.cumsum(negative) - negative / 2
        pairs = positive.sum() * negative.sum()
        return float(positive @ below / pairs) if pairs > 0 else np.nan

    return metric


def _wilson(name: str, is_right: np.ndarray, weight: np.ndarray) -> Score:
    n = weight.sum() ** 2 / (weight @ weight)
    p = float(weight @ is_right / weight.sum())
    middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    reach = _Z * np.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    low, high = max(0.0, middle - reach), min(1.0, middle + reach)
    return Score(name, p, float(min(low, p)), float(max(high, p)), "Wilson")


def _bootstrap(
    metrics: Mapping[str, Metric], weight: np.ndarray, rng: np.random.Generator
) -> list[Score]:
    n = weight.size
    draws = np.empty((n_resamples(n), len(metrics)))
    for draw in draws:
        counts = np.bincount(rng.integers(0, n, n), minlength=n) * weight
        draw[:] = [metric(counts) for metric in metrics.values()] if counts.any() else np.nan
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    scores = []
    for (name, metric), column in zip(metrics.items(), draws.T, strict=True):
        defined = column[np.isfinite(column)]
        low, high = np.quantile(defined, tails) if defined.size else (np.nan, np.nan)
        scores.append(Score(name, metric(weight), float(low), float(high), "bootstrap"))
    return scores
