"""The engine's optimizers, penalties, clipping and schedules equal the NumPy reference."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood import _probes
from reference import optimize as reference

ALL_OPTIMIZERS = [
    ("sgd", 0.0, 0.99, lambda: reference.SGD()),
    ("sgd", 0.9, 0.99, lambda: reference.SGD(momentum=0.9)),
    ("rmsprop", 0.0, 0.99, lambda: reference.RMSprop()),
    ("rmsprop", 0.3, 0.99, lambda: reference.RMSprop(momentum=0.3)),
    ("adam", 0.9, 0.999, lambda: reference.Adam()),
    ("adam", 0.5, 0.99, lambda: reference.Adam(momentum=0.5, beta2=0.99)),
]


def case(n: int, steps: int = 12):
    rng = np.random.default_rng(n)
    return rng.normal(size=n).astype(np.float32), rng.normal(size=(steps, n)).astype(np.float32)


def follow(optimizer, start, gradients, *, l1=0.0, l2=0.0, clip_norm=np.inf, lr=0.01):
    w = start.astype(np.float64)
    for g in gradients.astype(np.float64):
        (g,) = reference.clip_by_global_norm([g], clip_norm)
        w = reference.step(w, g, optimizer, lr, l1=l1, l2=l2)
    return w


@pytest.mark.parametrize(("name", "momentum", "decay", "make"), ALL_OPTIMIZERS)
@pytest.mark.parametrize("n", [1, 15, 16, 17, 100])
def test_steps_equal_the_reference(name, momentum, decay, make, n):
    start, gradients = case(n)
    found = _probes.optimize(
        start, gradients, optimizer=name, learning_rate=0.01, momentum=momentum, decay=decay
    )
    np.testing.assert_allclose(found, follow(make(), start, gradients), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "momentum", "decay", "make"), ALL_OPTIMIZERS)
@pytest.mark.parametrize(("l1", "l2", "clip"), [(0.05, 0, 1e30), (0, 0.1, 1e30), (0.02, 0.1, 0.5)])
def test_penalties_and_clipping_equal_the_reference(name, momentum, decay, make, l1, l2, clip):
    start, gradients = case(40)
    found = _probes.optimize(
        start,
        gradients,
        optimizer=name,
        learning_rate=0.01,
        momentum=momentum,
        decay=decay,
        l1=l1,
        l2=l2,
        clip_norm=clip,
    )
    expected = follow(make(), start, gradients, l1=l1, l2=l2, clip_norm=clip)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("name", "momentum", "decay", "make"), ALL_OPTIMIZERS)
def test_l1_makes_weights_exactly_zero(name, momentum, decay, make):
    rng = np.random.default_rng(0)
    start, gradients = case(200, steps=300)
    gradients = (0.01 * rng.normal(size=gradients.shape)).astype(np.float32)
    found = _probes.optimize(
        start,
        gradients,
        optimizer=name,
        learning_rate=0.1,
        momentum=momentum,
        decay=decay,
        l1=0.2,
    )
    assert (found == 0).mean() > 0.9


@pytest.mark.parametrize("norm", [0.0, 0.3, 1.0, 5.0])
def test_clipping_keeps_the_direction_and_bounds_the_length(norm):
    g = np.array([3.0, 4.0]) * norm / 5
    (clipped,) = reference.clip_by_global_norm([g], 1.0)
    assert np.linalg.norm(clipped) == pytest.approx(min(norm, 1.0))
    np.testing.assert_allclose(clipped * max(norm, 1.0), g)


def test_clipping_takes_the_norm_over_all_arrays_together():
    a, b = reference.clip_by_global_norm([np.array([3.0]), np.array([[4.0]])], 1.0)
    assert (a[0], b[0, 0]) == pytest.approx((0.6, 0.8))


def test_what_is_clipped_elsewhere_counts_in_the_norm():
    (a,) = reference.clip_by_global_norm([np.array([3.0])], 1.0, squared_norm_elsewhere=16.0)
    assert a[0] == pytest.approx(0.6)
    together = reference.clip_by_global_norm([np.array([3.0]), np.array([4.0])], 1.0)
    assert a[0] == together[0][0]


def test_a_soft_threshold_never_passes_zero():
    np.testing.assert_allclose(
        reference.soft_threshold(np.array([-2.0, -0.1, 0.0, 0.1, 2.0]), 0.5), [-1.5, 0, 0, 0, 1.5]
    )


SCHEDULES = [("constant", 1), ("cosine", 1), ("cosine", 3), ("cosine", 7), ("one_cycle", 1)]


@pytest.mark.parametrize(("name", "cycles"), SCHEDULES)
@pytest.mark.parametrize("n_steps", [2, 10, 100, 101])
def test_schedules_equal_the_reference(name, cycles, n_steps):
    rate = {
        "constant": reference.constant,
        "cosine": lambda t, n, lr: reference.cosine(t, n, lr, restarts=cycles),
        "one_cycle": reference.one_cycle,
    }[name]
    expected = [rate(t, n_steps, 1.0) for t in range(n_steps)]
    found = _probes.schedule(name, n_steps, cycles)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_cosine_restarts_at_the_full_rate_and_falls_between():
    rates = np.array(_probes.schedule("cosine", 90, 3))
    np.testing.assert_allclose(rates[[0, 30, 60]], 1.0)
    assert (np.diff(rates.reshape(3, 30), axis=1) < 0).all()
    assert rates[[29, 59, 89]].max() < 0.01


def test_one_cycle_rises_then_falls():
    rates = np.array(_probes.schedule("one_cycle", 100, 1))
    top = int(rates.argmax())
    assert top == 29
    assert rates[top] == pytest.approx(1.0)
    assert (np.diff(rates[: top + 1]) > 0).all()
    assert (np.diff(rates[top:]) < 0).all()
    assert rates[0] == pytest.approx(1 / 25)
    assert rates[-1] == pytest.approx(1 / 25e4)


def test_an_unknown_optimizer_is_named():
    with pytest.raises(ValueError, match="unknown optimizer 'lion'"):
        _probes.optimize(
            np.ones(1, np.float32), np.ones((1, 1), np.float32), optimizer="lion", learning_rate=1
        )
