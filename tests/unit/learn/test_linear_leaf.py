"""Linear leaves: Newton steps and quasi-Newton steps find the same minimum."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood.learn.leaves import linear
from hardwood.learn.leaves.constant import Prior
from hardwood.learn.leaves.linear import LeafFit
from hardwood.learn.losses import CrossEntropy

L2 = 2.0


@pytest.fixture(params=[(0.0, False), (3.0, True)], ids=["plain", "prior and center"])
def fit(request):
    """A leaf of 300 rows, 6 columns and 4 classes, one of them rare."""
    n_prior, has_center = request.param
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    scores = X @ rng.normal(size=(6, 4)) + rng.gumbel(size=(300, 4)) + [0, 1, 0, -3]
    return LeafFit(
        CrossEntropy(),
        X,
        scores.argmax(axis=1)[:, None].astype(float),
        rng.uniform(0.2, 2.0, size=300),
        Prior(n_prior, np.array([0.3, 0.4, 0.2, 0.1])),
        L2,
        rng.normal(size=(4, 6)) if has_center else None,
    )


def test_quasi_newton_steps_end_where_newton_steps_do(fit, monkeypatch):
    start = np.zeros((4, 7))
    newton = fit.from_start(start)
    monkeypatch.setattr(linear, "_MANY_PRODUCTS", 0)
    found = fit.from_start(start)
    assert fit.value(found) <= fit.value(newton) + 1e-4 * abs(fit.value(newton))
    # At a minimum the parabolas of all outputs have their minimum at the point itself.
    assert np.abs(fit._newton(found) - found).max() < 0.02


def test_the_slope_is_that_of_the_objective(fit):
    rng = np.random.default_rng(1)
    P, step = rng.normal(size=(2, 4, 7))
    value, slope = fit._value_and_slope(P)
    assert value == pytest.approx(fit.value(P), rel=1e-12)
    h = 1e-6
    expected = (fit.value(P + h * step) - fit.value(P - h * step)) / (2 * h)
    assert (slope * step).sum() == pytest.approx(expected, rel=1e-6)
