"""Calibration: of the rows predicted with probability 0.7, about 70 % should be positive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hardwood.model.base import Model
from hardwood.report.resampling import wilson

N_BINS = 10


@dataclass(frozen=True)
class Bin:
    """Rows whose probability lies in (low, high]; the first bin includes 0.

    ``rows`` is their number, or the sum of their weights, ``predicted`` the mean probability, and
    ``observed`` the share of positive rows with its Wilson interval.
    """

    low: float
    high: float
    rows: float
    predicted: float
    observed: float
    observed_low: float
    observed_high: float


@dataclass(frozen=True)
class Calibration:
    """Predicted probabilities compared with observed frequencies.

    Attributes
    ----------
    of
        The class or label that the probabilities are for.
    bins
        The bins that have rows, from low to high probabilities.
    error
        Expected calibration error: the mean of |observed - predicted| over the rows.
    """

    of: str
    bins: tuple[Bin, ...]
    error: float


def calibration(
    of: str, probability: np.ndarray, happened: np.ndarray, weight: np.ndarray, n_bins: int = N_BINS
) -> Calibration:
    """Compare probabilities, (n,), with outcomes, (n,) of 0 and 1, in bins of equal width."""
    edges = np.linspace(0, 1, n_bins + 1)
    place = np.searchsorted(edges[1:-1], probability)
    sums = [
        np.bincount(place, amounts, minlength=n_bins)
        for amounts in (weight, weight**2, weight * probability, weight * happened)
    ]
    bins = []
    for i in np.flatnonzero(sums[0]).tolist():
        rows, squares, predicted, observed = (float(of_bins[i]) for of_bins in sums)
        observed = min(1.0, observed / rows)  # equal sums may differ by rounding
        low, high = wilson(observed, rows**2 / squares)
        bins.append(
            Bin(
                low=float(edges[i]),
                high=float(edges[i + 1]),
                rows=rows,
                predicted=predicted / rows,
                observed=observed,
                observed_low=low,
                observed_high=high,
            )
        )
    total = sum(b.rows for b in bins)
    error = sum(b.rows * abs(b.observed - b.predicted) for b in bins) / total
    return Calibration(of, tuple(bins), error)


def calibrations(
    model: Model,
    truth: np.ndarray,
    outputs: np.ndarray,
    weight: np.ndarray,
    names: Sequence[str],
    n_bins: int = N_BINS,
) -> tuple[Calibration, ...]:
    """Return the calibrations of a model, the one to show first.

    Two classes: that of the second class. More classes: that of the predicted class, then of each
    class. Labels: that of all labels together, then of each.
    """
    if model.task == "regression":
        return ()
    if model.classes is None:
        labels = zip(names, outputs.T, truth.T, strict=True)
        each = [calibration(*label, weight, n_bins) for label in labels]
        of_all = np.repeat(weight, len(each))
        together = calibration("all labels, pooled", outputs.ravel(), truth.ravel(), of_all, n_bins)
        return (together, *each) if len(each) > 1 else tuple(each)
    each = [
        calibration(name, outputs[:, c], (truth == c).astype(np.float64), weight, n_bins)
        for c, name in enumerate(model.output_labels)
    ]
    if len(each) <= 2:
        return tuple(each[-1:])
    position = model.class_positions(outputs)
    share = np.take_along_axis(outputs, position[:, None], axis=1)[:, 0]
    is_right = (position == truth).astype(np.float64)
    predicted = calibration("the predicted class", share, is_right, weight, n_bins)
    return (predicted, *each)
