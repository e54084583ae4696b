"""Claims of DGT about bandit feedback, Sec. 4 (b): estimators of a derivative."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from hardwood import _native
from hardwood.bandit.parameters import BanditParameters, RegressionParameters
from reference import bandit as reference
from reference import dgt
from reference.optimize import RMSprop

numbers = st.floats(-3.0, 3.0)


def test_the_number_that_all_leaves_share_takes_the_step_of_a_parameter_of_its_own():
    """theta + c with two optimizers: the tree holds the sums, and its splits do not notice."""
    rng = np.random.default_rng(0)
    height, K = 3, 4
    m = 2**height - 1
    start = rng.normal(size=m * 8 + m + (m + 1) * K)
    options = BanditParameters(method="paper", learning_rate=0.05).for_engine(5, K)
    tree = reference.Tree(start, 5, K, height, options)
    theta, c, W = tree.Theta.copy(), np.zeros(1), tree.W.copy()
    of_theta, of_c, of_W = (RMSprop(0.0, 0.99, 1e-5) for _ in range(3))
    for _ in range(20):
        Z, slope = rng.normal(size=(6, 5)), rng.normal(size=(6, K))
        dW, _, dTheta = dgt.backward(Z, W, tree.b, theta + c, slope)
        W = of_W.step(W, dW, 0.05)
        theta = of_theta.step(theta, dTheta, 0.05)
        c = of_c.step(c, slope.sum(keepdims=True).ravel(), 0.05)
        tree.step(Z, slope)
        np.testing.assert_allclose(tree.Theta, theta + c, rtol=0, atol=1e-12)
        np.testing.assert_allclose(tree.W, W, rtol=0, atol=1e-12)
    assert np.abs(c) > 0.1


def huber(r: float) -> float:
    return 0.5 * r * r if abs(r) <= 1 else abs(r) - 0.5


@given(prediction=numbers, target=numbers, delta=st.floats(0.01, 2.0))
def test_one_point_estimates_the_slope_of_the_smoothed_loss(prediction, target, delta):
    """Over both directions, Eq. (9) is the difference quotient that Eq. (10) is."""
    estimates = [
        reference.one_point(huber(prediction + delta * u - target), u, delta) for u in (1, -1)
    ]
    above, below = huber(prediction + delta - target), huber(prediction - delta - target)
    assert np.mean(estimates) == pytest.approx(reference.two_point(above, below, delta), abs=1e-9)


def test_many_one_point_estimates_of_the_engine_have_that_mean():
    options = RegressionParameters(method="paper_one_point").for_engine(2)
    engine = _native.BanditRegressionEngine(2, 1, options, 0)
    delta, prediction, target, n = 0.5, 0.3, 1.1, 40_000
    u = np.array([engine.direction() for _ in range(n)])
    estimates = (prediction + delta * u - target) ** 2 * u / delta
    slope = 2 * (prediction - target)
    assert set(u) == {-1, 1}
    assert np.mean(estimates) == pytest.approx(slope, abs=4 * estimates.std() / np.sqrt(n))


@given(prediction=numbers, target=numbers, delta=st.floats(0.01, 2.0), curve=st.floats(-2.0, 2.0))
def test_two_points_give_the_derivative_of_a_quadratic(prediction, target, delta, curve):
    def loss(t: float) -> float:
        return curve * (t - target) ** 2 + 0.7 * t

    estimate = reference.two_point(loss(prediction + delta), loss(prediction - delta), delta)
    assert estimate == pytest.approx(2 * curve * (prediction - target) + 0.7, abs=1e-6)


@given(
    theta=st.lists(numbers, min_size=2, max_size=6),
    delta=st.floats(0.05, 1.0),
    data=st.data(),
)
def test_eq_8_is_unbiased(theta, delta, data):
    """Its mean over the actions of Eq. (7): the gradient of sum_k (loss_k - (1 - sigma_k))^2."""
    theta = np.array(theta)
    rewards = np.array([data.draw(st.floats(0.0, 1.0)) for _ in theta])
    p = reference.explore_uniformly(theta, np.ones(len(theta), dtype=bool), delta)
    mean = np.array(
        [p[k] * reference.action_slope(theta[k], rewards[k], p[k]) for k in range(len(theta))]
    )
    h = 1e-6

    def objective(t: np.ndarray) -> float:
        return float((((1 - rewards) - (1 - expit(t))) ** 2).sum())

    for k in range(len(theta)):
        e = h * (np.arange(len(theta)) == k)
        slope = (objective(theta + e) - objective(theta - e)) / (2 * h)
        assert mean[k] == pytest.approx(slope, abs=1e-6)


@given(
    values=st.lists(numbers, min_size=1, max_size=8),
    amount=st.floats(0.0, 1e6),
    data=st.data(),
)
def test_probabilities_of_exploration(values, amount, data):
    """Both kinds: a distribution over allowed actions, in which the best is the most probable."""
    values = np.array(values)
    mask = np.array([data.draw(st.booleans()) for _ in values])
    mask[data.draw(st.integers(0, len(values) - 1))] = True
    best = np.argmax(np.where(mask, values, -np.inf))
    for p in (
        reference.explore_by_gaps(values, mask, amount),
        reference.explore_uniformly(values, mask, amount / 1e6),
    ):
        assert p.sum() == pytest.approx(1.0)
        assert (p >= 0).all()
        assert (p[~mask] == 0).all()
        assert p[best] >= p.max() - 1e-12


def test_the_share_of_actions_is_their_propensity():
    """What decide returns as a propensity is how often it takes the action."""
    n, K = 20_000, 4
    options = BanditParameters(method="paper").for_engine(1, K)
    engine = _native.BanditEngine(1, K, 1, options, 3)
    x = np.ones(1, np.float32)
    drawn = [engine.decide(x, None)[:2] for _ in range(n)]
    actions, p = np.array([a for a, _ in drawn]), engine.probabilities(x[None, :], None)[0]
    for k in range(K):
        assert {q for a, q in drawn if a == k} == {p[k]}
        deviation = np.sqrt(p[k] * (1 - p[k]) / n)
        assert np.mean(actions == k) == pytest.approx(p[k], abs=4.5 * deviation)


def test_replay_learns_more_from_the_same_rounds_than_the_paper():
    """The reward of the default is higher by at least 0.2 per round, on rows of four clusters."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 3000).astype(np.int32)
    X = (rng.normal(size=(4, 6))[y] * 2 + rng.normal(size=(3000, 6))).astype(np.float32)
    means = {}
    for method in BanditParameters.METHODS:
        options = BanditParameters(method=method).for_engine(6, 4)
        engine = _native.BanditEngine(6, 4, 6, options, 0)
        means[method] = engine.replay(X, y, None)[2].mean()
    assert means["replay"] > means["paper"] + 0.2
