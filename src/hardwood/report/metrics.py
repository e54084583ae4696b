"""Scores of predictions, each with a 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hardwood.report.resampling import Kinds, Metric, Score, bootstrap, wilson_score
from hardwood.text.blocks import TextTable
from hardwood.text.numbers import format_interval, format_number

YES = 0.5  # smallest probability with which a label is predicted
_NOISE = 1e-12  # relative size below which a variance is only rounding error
MAX_AUC_CLASSES = 20  # with more, the area under each class's curve takes too long


def unit_of(*numbers: np.ndarray) -> float:
    """Return the power of two just below the largest finite number, or 1 if all are 0.

    Dividing by it is exact except for numbers that are negligible beside the largest.
    """
    sizes = [np.abs(some[np.isfinite(some)]).max(initial=0.0) for some in numbers]
    largest = float(max(sizes))
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0


def classification_scores(
    truth: np.ndarray,
    probabilities: np.ndarray,
    weight: np.ndarray,
    rng: np.random.Generator,
    predicted: np.ndarray | None = None,
) -> list[Score]:
    """Return accuracy, balanced accuracy, log loss, Brier score, AUC and average precision.

    The Brier score of two classes is the mean squared error of the second class's probability; with
    more classes it is the sum of this over all classes. The AUC of 3 to 20 classes is the mean over
    the classes, each against all others. The average precision, of two classes only, is that of the
    class with fewer rows.

    Parameters
    ----------
    truth
        (n,) position of the true class; -1, for an unknown class, always counts as an error.
    probabilities
        (n, k).
    weight
        (n,) weight of each row.
    rng
        Draws the bootstrap resamples.
    predicted
        (n,) position of the predicted class; None: the most probable one.

    Notes
    -----
    The interval of the accuracy is Wilson's, with the effective number of rows. The bootstrap would
    give a perfect score an interval of width 0 for any number of rows.
    """
    predicted = probabilities.argmax(axis=1) if predicted is None else predicted
    is_right = (predicted == truth).astype(np.float64)
    accuracy = wilson_score("accuracy", is_right, weight)
    kinds = Kinds.of(weight, truth, probabilities, is_right)
    is_right, truth, probabilities = (
        rows[kinds.first] for rows in (is_right, truth, probabilities)
    )
    metrics: dict[str, Metric] = {
        "balanced accuracy": balanced_accuracy(is_right, truth),
        "log loss": _mean(log_losses(truth, probabilities)),
        "Brier score": _mean(brier_losses(truth, probabilities)),
    }
    n_classes = probabilities.shape[1]
    if truth.min() >= 0 and n_classes == 2:
        metrics["AUC"] = _area_under_curve(truth, probabilities[:, 1])
        rarer = int(np.bincount(truth, kinds.total, 2).argmin())
        metrics["average precision"] = average_precision(truth == rarer, probabilities[:, rarer])
    elif truth.min() >= 0 and 2 < n_classes <= MAX_AUC_CLASSES:
        metrics["AUC (mean over classes)"] = _mean_area(truth, probabilities)
    return [accuracy, *bootstrap(metrics, kinds, rng)]


def regression_scores(
    truth: np.ndarray, prediction: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> list[Score]:
    """Return root mean squared error (RMSE), mean absolute error (MAE) and R2.

    Infinite where a score exceeds float64. Sums are in units of the largest number, so that none of
    them overflows by itself.
    """
    unit, own_unit = unit_of(truth, prediction), unit_of(truth)
    ratio = unit / own_unit
    error = np.abs(truth / unit - prediction / unit)
    squared = error**2
    own = truth / own_unit
    about_mean = own - np.average(own, weights=weight) if np.ptp(own) else 0 * own
    about_mean_squared = about_mean**2

    def rmse(w: np.ndarray) -> float:
        return unit * float(np.sqrt(_sum(w, squared) / w.sum()))

    def mae(w: np.ndarray) -> float:
        return unit * (_sum(w, error) / float(w.sum()))

    def r2(w: np.ndarray) -> float:
        square = _sum(w, about_mean_squared)
        spread = square - _sum(w, about_mean) ** 2 / w.sum()
        if not spread > _NOISE * square:
            return np.nan
        return 1 - _sum(w, squared) / float(spread) * ratio * ratio

    metrics = {"RMSE": rmse, "MAE": mae, "R2": r2}
    every_row = Kinds(np.arange(len(truth)), np.ones(len(truth), dtype=np.int64), weight)
    return bootstrap(metrics, every_row, rng)


def several_regression_scores(
    truth: np.ndarray,
    prediction: np.ndarray,
    names: Sequence[str],
    weight: np.ndarray,
    rng: np.random.Generator,
) -> list[Score]:
    """Return the scores of `regression_scores` for each of several targets, (n, k)."""
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
    """Return the scores of several labels: (n, k) of 0 and 1, and (n, k) probabilities of 1.

    Subset accuracy is the share of rows with all labels correct. Label accuracy, log loss and Brier
    score are means over the labels. Then follow accuracy and AUC of each label.
    """
    is_right = ((probabilities >= YES) == (truth == 1)).astype(np.float64)
    all_right = wilson_score("subset accuracy", is_right.min(axis=1), weight)
    kinds = Kinds.of(weight, truth, probabilities)
    labels, shares = truth[kinds.first], probabilities[kinds.first]
    metrics: dict[str, Metric] = {
        "label accuracy": _mean(is_right[kinds.first].mean(axis=1)),
        "log loss": _mean(label_log_losses(labels, shares)),
        "Brier score": _mean(((shares - labels) ** 2).mean(axis=1)),
    }
    n_means = len(metrics)
    for j, name in enumerate(names):
        metrics[f"AUC of {name}"] = _area_under_curve(labels[:, j], shares[:, j])
    found = bootstrap(metrics, kinds, rng)
    scores = [all_right, *found[:n_means]]
    for name, right, area in zip(names, is_right.T, found[n_means:], strict=True):
        scores += [wilson_score(f"accuracy of {name}", right, weight), area]
    return scores


def confusion(
    truth: np.ndarray, predicted: np.ndarray, n_classes: int, weight: np.ndarray | None = None
) -> np.ndarray:
    """Return the confusion matrix (k, k), true classes as rows, without unknown classes.

    Counts of rows, or sums of their weights.
    """
    known = truth >= 0
    cells = truth[known] * n_classes + predicted[known]
    weights = None if weight is None else weight[known]
    return np.bincount(cells, weights, minlength=n_classes**2).reshape(n_classes, n_classes)


def log_losses(truth: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return -log of the true class's probability, (n,), clipped as in scikit-learn's log loss."""
    return _minus_log(np.where(truth >= 0, probabilities[np.arange(truth.size), truth], 0.0))


def brier_losses(truth: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return squared errors of the probabilities, (n,), summed over classes; halved for two."""
    is_true = truth[:, None] == np.arange(probabilities.shape[1])
    losses = ((probabilities - is_true) ** 2).sum(axis=1)
    losses += truth < 0  # the true class was given no probability
    return losses / 2 if probabilities.shape[1] == 2 else losses


def label_log_losses(truth: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return the log loss of each row, (n,), the mean over its labels of 0 and 1, (n, k)."""
    given = np.where(truth == 1, probabilities, 1 - probabilities)
    return _minus_log(given).mean(axis=1)


def scores_json(scores: Sequence[Score]) -> dict[str, Any]:
    """Return scores by name, for JSON."""
    return {
        score.name: {
            "value": score.value,
            "low": score.low,
            "high": score.high,
            "interval": score.method,
        }
        for score in scores
    }


def scores_table(
    title: str, scores: Sequence[Score], baseline: Sequence[Score] = (), baseline_name: str = ""
) -> TextTable:
    """Return a table of metrics with their intervals, and the values of a baseline."""
    header = ["metric", "value", "95 % interval"] + ([baseline_name] if baseline else [])
    rows = [
        [score.name, format_number(score.value), format_interval(score.low, score.high)]
        for score in scores
    ]
    for row, other in zip(rows, baseline, strict=False):
        row.append(format_number(other.value))
    return TextTable.of(title, header, rows)


def _mean(losses: np.ndarray) -> Metric:
    return lambda w: _sum(w, losses) / float(w.sum())


def _sum(w: np.ndarray, amounts: np.ndarray) -> float:
    """Weighted sum on this thread: BLAS would start others, a thousand times."""
    return float((w * amounts).sum())


def balanced_accuracy(is_right: np.ndarray, truth: np.ndarray) -> Metric:
    """Return the mean recall of the classes as a function of the row weights.

    Parameters
    ----------
    is_right
        (n,) 1 where the prediction is right, else 0.
    truth
        (n,) positions of the true classes, -1 for an unknown class.
    """
    n_classes = truth.max() + 2  # plus one for unknown classes, which come first

    def metric(w: np.ndarray) -> float:
        total = np.bincount(truth + 1, w, minlength=n_classes)
        right = np.bincount(truth + 1, w * is_right, minlength=n_classes)
        return float((right[total > 0] / total[total > 0]).mean())

    return metric


def _minus_log(given: np.ndarray) -> np.ndarray:
    eps = np.finfo(np.float64).eps
    return -np.log(np.clip(given, eps, 1 - eps))


def _area_under_curve(truth: np.ndarray, score: np.ndarray) -> Metric:
    """Probability that a row of class 1 scores above one of class 0; ties count half."""
    group = np.unique(score, return_inverse=True)[1]
    is_positive = (truth == 1).astype(np.float64)

    def metric(w: np.ndarray) -> float:
        positive = np.bincount(group, w * is_positive)
        negative = np.bincount(group, w * (1 - is_positive))
        below = np.cumsum(negative) - negative / 2
        pairs = positive.sum() * negative.sum()
        return _sum(positive, below) / pairs if pairs > 0 else np.nan

    return metric


def average_precision(is_positive: np.ndarray, score: np.ndarray) -> Metric:
    """Return the average precision as a function of the row weights.

    It is the mean, over the positive rows, of the share of positive rows among those with at least
    their score.
    """
    group = np.unique(-score, return_inverse=True)[1]  # the highest score first

    def metric(w: np.ndarray) -> float:
        positive, total = np.bincount(group, w * is_positive), np.cumsum(np.bincount(group, w))
        n_positive = positive.sum()
        if n_positive == 0:
            return np.nan
        known = total > 0
        precision = np.cumsum(positive)[known] / total[known]
        return _sum(positive[known], precision) / float(n_positive)

    return metric


def _mean_area(truth: np.ndarray, probabilities: np.ndarray) -> Metric:
    areas = [
        _area_under_curve((truth == c).astype(np.int64), share)
        for c, share in enumerate(probabilities.T)
    ]
    return lambda w: float(np.mean([area(w) for area in areas]))
