"""Observed frequencies of predicted probabilities, with intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hardwood.report.calibration import calibration

Z = 1.959963984540054


def score_interval(share: float, n: float) -> tuple[float, float]:
    """Wilson's interval of a share among n independent rows."""
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    reach = Z * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return middle - reach, middle + reach


@pytest.mark.parametrize("factor", [1.0, 10.0])
def test_intervals_count_the_rows_that_weights_are_worth(factor):
    """By Kish: (sum of weights)^2 / sum of squares, whatever the unit of the weights."""
    weight = np.array([1.0, 1.0, 4.0, 2.0, 1.0, 3.0])
    happened = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    found = calibration("yes", np.full(6, 0.35), happened, factor * weight)
    (one,) = found.bins
    share, worth = 6 / 12, 12**2 / (weight**2).sum()
    assert one.observed == pytest.approx(share)
    assert (one.observed_low, one.observed_high) == pytest.approx(score_interval(share, worth))
    assert found.error == pytest.approx(abs(share - 0.35))
