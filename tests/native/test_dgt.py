"""The engine's DGT step equals its NumPy twin."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood import _native
from hardwood.reference import dgt, losses

TOLERANCE = 1e-5


def dyadic(rng: np.random.Generator, shape, unit: float, bound: float) -> np.ndarray:
    """Multiples of a power of two: float32 dot products of them are exact.

    So the engine and its twin see the very same scores, also those at 0 and at 1, where a rounding
    error would send a sample another way.
    """
    n = int(bound / unit)
    return (rng.integers(-n, n + 1, size=shape) * unit).astype(np.float32)


def random_case(height: int, K: int, n: int, d: int, seed: int = 0):
    rng = np.random.default_rng([height, K, n, d, seed])
    m, L = 2**height - 1, 2**height
    X, W = dyadic(rng, (n, d), 0.25, 2.0), dyadic(rng, (m, d), 0.125, 0.5)
    b = dyadic(rng, m, 0.125, 1.0)
    Theta = rng.normal(size=(L, K)).astype(np.float32)
    weight = rng.uniform(0.2, 2.0, size=n).astype(np.float32)
    return rng, X, W, b, Theta, weight


def target_of(loss: str, rng: np.random.Generator, n: int, K: int) -> np.ndarray:
    if loss == "cross_entropy":
        return rng.integers(0, K, size=(n, 1)).astype(np.float32)
    if loss == "logistic":
        return rng.integers(0, 2, size=(n, 1)).astype(np.float32)
    return rng.normal(size=(n, K)).astype(np.float32)


def engine(X, W, b, Theta, weight, target, loss: str):
    height, K = dgt.height_of(len(W)), Theta.shape[1]
    probe = _native.DgtProbe(X, target, weight, height=height, n_outputs=K, loss=loss)
    probe.set(W, b, Theta)
    return probe.gradient()


def twin(X, W, b, Theta, weight, target, loss: str):
    f = dgt.forward(X, W, b, Theta)
    share = weight.astype(np.float64)[:, None] / len(X)
    value = (share[:, 0] * losses.LOSSES[loss].value(f, target)).sum()
    g = share * losses.LOSSES[loss].gradient(f, target)
    return value, *dgt.backward(X, W, b, Theta, g)


def assert_close(found, expected):
    for part, a, e in zip(("loss", "dW", "db", "dTheta"), found, expected, strict=True):
        a, e = np.asarray(a), np.asarray(e)
        assert a.shape == e.shape, part
        np.testing.assert_allclose(a, e, rtol=0, atol=TOLERANCE * np.abs(e).max(), err_msg=part)


@pytest.mark.parametrize(
    ("K", "loss"), [(1, "squared_error"), (1, "logistic"), (3, "cross_entropy")]
)
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 127, 128, 129, 200])
@pytest.mark.parametrize("height", range(1, 9))
def test_loss_and_gradients_equal_the_twin(height, n, K, loss):
    rng, X, W, b, Theta, weight = random_case(height, K, n, d=5)
    target = target_of(loss, rng, n, K)
    assert_close(
        engine(X, W, b, Theta, weight, target, loss), twin(X, W, b, Theta, weight, target, loss)
    )


@pytest.mark.parametrize("d", [1, 2, 7, 8, 9, 16, 33, 100])
@pytest.mark.parametrize(("K", "loss"), [(10, "cross_entropy"), (10, "squared_error")])
def test_any_number_of_features_and_many_outputs(d, K, loss):
    rng, X, W, b, Theta, weight = random_case(5, K, 70, d)
    target = target_of(loss, rng, 70, K)
    assert_close(
        engine(X, W, b, Theta, weight, target, loss), twin(X, W, b, Theta, weight, target, loss)
    )


@pytest.mark.parametrize("height", [9, 10, 12])
def test_deep_trees(height):
    rng, X, W, b, Theta, weight = random_case(height, 2, 40, d=4)
    target = target_of("cross_entropy", rng, 40, 2)
    assert_close(
        engine(X, W, b, Theta, weight, target, "cross_entropy"),
        twin(X, W, b, Theta, weight, target, "cross_entropy"),
    )


@pytest.mark.parametrize("K", [1, 4])
@pytest.mark.parametrize("score", [0.0, -0.0, 1.0, -1.0, np.nextafter(1, 2), -np.nextafter(1, 2)])
def test_scores_on_the_edges(score, K):
    """A score of 0 goes right; one of exactly 1 in size still lets the gradient through."""
    rng = np.random.default_rng(0)
    score = (
        np.float32(score)
        if abs(score) <= 1
        else np.sign(score) * np.nextafter(np.float32(1), np.float32(2))
    )
    X, W, b = (
        np.zeros((20, 3), np.float32),
        np.zeros((7, 3), np.float32),
        np.full(7, score, np.float32),
    )
    Theta = rng.normal(size=(8, K)).astype(np.float32)
    target, weight = rng.normal(size=(20, K)).astype(np.float32), np.ones(20, np.float32)
    found = engine(X, W, b, Theta, weight, target, "squared_error")
    assert_close(found, twin(X, W, b, Theta, weight, target, "squared_error"))
    assert (found[2] != 0).all() == (abs(score) <= 1)
    reached = np.flatnonzero(found[3].any(axis=1))
    assert reached.tolist() == [7 if score >= 0 else 0]


def test_the_cases_hold_ties():
    """What the other tests claim to cover: scores of exactly 0 and of exactly 1 in size."""
    _, X, W, b, _, _ = random_case(6, 1, 200, d=5)
    a = dgt.scores(X, W, b)
    assert (a == 0).sum() > 20
    assert (np.abs(a) == 1).sum() > 20
    np.testing.assert_array_equal(a, (X @ W.T + b).astype(np.float64))


def test_rows_of_no_weight_do_not_pull():
    rng, X, W, b, Theta, weight = random_case(4, 3, 30, d=5)
    target = target_of("cross_entropy", rng, 30, 3)
    weight[10:] = 0
    whole = engine(X, W, b, Theta, weight, target, "cross_entropy")
    part = engine(X[:10], W, b, Theta, weight[:10], target[:10], "cross_entropy")
    for a, e in zip(whole, part, strict=True):
        np.testing.assert_allclose(np.asarray(a) * 3, e, rtol=1e-5, atol=1e-7)


def test_steps_follow_the_twin_of_rmsprop():
    from hardwood.reference.optimise import RMSprop

    rng, X, W, b, Theta, weight = random_case(3, 1, 50, d=4)
    target = target_of("squared_error", rng, 50, 1)
    probe = _native.DgtProbe(X, target, weight, height=3, n_outputs=1, loss="squared_error")
    probe.set(W, b, Theta)
    probe.steps(5, learning_rate=0.01)
    parameters = [np.asarray(p, dtype=np.float64) for p in (W, b, Theta)]
    optimisers = [RMSprop() for _ in parameters]
    for _ in range(5):
        _, *gradients = twin(X, *parameters, weight, target, "squared_error")
        parameters = [
            o.step(p, g, 0.01) for o, p, g in zip(optimisers, parameters, gradients, strict=True)
        ]
    for found, expected in zip(probe.parameters(), parameters, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
