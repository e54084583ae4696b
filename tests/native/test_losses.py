"""The engine's losses equal the NumPy reference, whose gradients are the derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood import _native
from reference.losses import LOSSES

# name, options of the reference, parameter of the engine
ALL_LOSSES = [
    ("squared_error", {}, 0.0),
    ("absolute_error", {}, 0.0),
    ("huber", {"delta": 1.35}, 1.35),
    ("huber", {"delta": 0.1}, 0.1),
    ("quantile", {"level": 0.5}, 0.5),
    ("quantile", {"level": 0.9}, 0.9),
    ("poisson", {}, 0.0),
    ("logistic", {}, 0.0),
    ("cross_entropy", {}, 0.0),
    ("hinge", {}, 0.0),
    ("squared_codes", {}, 0.0),
]


def case(name: str, n: int, K: int, spread: float = 1.0):
    rng = np.random.default_rng([n, K])
    f = (spread * rng.normal(size=(n, K))).astype(np.float32)
    if name in ("cross_entropy", "hinge", "squared_codes"):
        y = rng.integers(0, K, size=(n, 1))
    elif name == "logistic":
        y = rng.integers(0, 2, size=(n, K))
    elif name == "poisson":
        y = rng.poisson(2.0, size=(n, K))
    else:
        y = rng.normal(size=(n, K))
    return f, y.astype(np.float32), rng.uniform(0.1, 3.0, size=n).astype(np.float32)


@pytest.mark.parametrize(("name", "options", "parameter"), ALL_LOSSES)
@pytest.mark.parametrize("K", [1, 3, 10])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 200])
def test_value_and_gradient_equal_the_reference(name, options, parameter, n, K):
    f, y, weight = case(name, n, K)
    value, gradient = _native.loss(name, f, y, weight, parameter)
    share = weight.astype(np.float64) / n
    assert value == pytest.approx((share * LOSSES[name].value(f, y, **options)).sum(), rel=1e-5)
    expected = share[:, None] * LOSSES[name].gradient(f, y, **options)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(("name", "options", "parameter"), ALL_LOSSES)
@pytest.mark.parametrize("K", [1, 3])
def test_the_gradient_is_the_derivative(name, options, parameter, K):
    f, y, _ = case(name, 20, K)
    f, step = f.astype(np.float64), 1e-6
    expected = np.zeros_like(f)
    for k in range(f.shape[1]):
        e = step * (np.arange(f.shape[1]) == k)
        up, down = (LOSSES[name].value(f + s * e, y, **options) for s in (1, -1))
        expected[:, k] = (up - down) / (2 * step)
    np.testing.assert_allclose(LOSSES[name].gradient(f, y, **options), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["absolute_error", "quantile", "huber", "squared_error"])
def test_a_target_that_is_met_does_not_pull(name):
    y = np.array([[0.5], [-2.0]], np.float32)
    value, gradient = _native.loss(name, y, y, np.ones(2, np.float32), 0.9)
    assert value == 0
    assert (gradient == 0).all()
    assert (LOSSES[name].gradient(y, y) == 0).all()


def test_the_ends_of_hubers_quadratic_part():
    y = np.zeros((3, 1), np.float32)
    f = np.array([[0.5], [-0.5], [0.75]], np.float32)
    _, gradient = _native.loss("huber", f, y, np.ones(3, np.float32), 0.5)
    np.testing.assert_allclose(3 * gradient[:, 0], [0.5, -0.5, 0.5])


@pytest.mark.parametrize("size", [30.0, 80.0, 1000.0])
@pytest.mark.parametrize("name", ["logistic", "cross_entropy"])
def test_large_scores_neither_overflow_nor_vanish(name, size):
    f = np.array([[size, -size]], np.float32)
    for label in (0.0, 1.0):
        y = np.array([[label, 1 - label]] if name == "logistic" else [[label]], np.float32)
        value, gradient = _native.loss(name, f, y, np.ones(1, np.float32), 0.0)
        assert value == pytest.approx(LOSSES[name].value(f, y)[0], rel=1e-5, abs=1e-6)
        np.testing.assert_allclose(gradient, LOSSES[name].gradient(f, y), atol=1e-6)


def test_labels_are_as_many_losses_of_one_label():
    """The mean over labels of the binary loss."""
    f, y, weight = case("logistic", 50, 4)
    value, gradient = _native.loss("logistic", f, y, weight, 0.0)
    alone = [
        _native.loss("logistic", f[:, [k]].copy(), y[:, [k]].copy(), weight, 0.0) for k in range(4)
    ]
    assert value == pytest.approx(np.mean([v for v, _ in alone]), rel=1e-6)
    np.testing.assert_allclose(gradient, np.hstack([g for _, g in alone]) / 4, rtol=1e-6)


@pytest.mark.parametrize(("name", "n_targets"), [("logistic", 1), ("cross_entropy", 3)])
def test_a_target_of_another_width_is_refused(name, n_targets):
    f, weight = np.zeros((5, 3), np.float32), np.ones(5, np.float32)
    with pytest.raises(ValueError, match="sizes differ"):
        _native.loss(name, f, np.zeros((5, n_targets), np.float32), weight, 0.0)


def test_a_large_poisson_score_stays_finite():
    f, y = np.full((2, 1), 500.0, np.float32), np.ones((2, 1), np.float32)
    value, gradient = _native.loss("poisson", f, y, np.ones(2, np.float32), 0.0)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_an_unknown_loss_is_named():
    one = np.ones((1, 1), np.float32)
    with pytest.raises(ValueError, match="unknown loss 'hedge'"):
        _native.loss("hedge", one, one, np.ones(1, np.float32), 0.0)
