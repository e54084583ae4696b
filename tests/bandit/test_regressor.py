"""DGTBanditRegressor: estimates of the slope, learning, the tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rounds import all_of, contexts, small_regressor

from hardwood import DGTRegressor
from hardwood.bandit.regressor import one_point_slope, two_point_slope

CHANCES = {"two_point": 1.0, "one_point": 0.25, "paper_two_point": 1.0, "paper_one_point": 0.5}
METHODS = list(CHANCES)


@pytest.fixture
def rounds(rng):
    X = contexts(rng, 300)
    return X, np.where(X[:, 0] > 0, 2.0, -1.0)


NUMBERS = st.floats(-100, 100)


@given(a=NUMBERS, b=NUMBERS, c=NUMBERS, at=NUMBERS, delta=st.floats(0.01, 5))
def test_two_points_give_the_derivative_of_a_quadratic(a, b, c, at, delta):
    def loss(t):
        return a * t * t + b * t + c

    slope = two_point_slope(loss(at - delta), loss(at + delta), delta)
    size = (abs(a) * 2e4 + abs(b) * 200 + abs(c)) / delta
    assert slope == pytest.approx(2 * a * at + b, abs=1e-12 * size + 1e-12)


@given(at=NUMBERS, target=NUMBERS, delta=st.floats(0.01, 5))
def test_one_point_estimates_have_the_mean_of_two(at, target, delta):
    """Averaged over the two directions: the derivative of the smoothed loss, for any loss."""
    losses = [abs(at + delta * u - target) ** 1.5 for u in (-1, 1)]
    mean = np.mean([one_point_slope(losses[0], -1, delta), one_point_slope(losses[1], 1, delta)])
    assert mean == pytest.approx(two_point_slope(*losses, delta), rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_numbers_are_tried_around_the_prediction(rounds, method):
    X, y = rounds
    learner = small_regressor(method=method, perturbation=0.25, scale=2.0)
    learner.replay(X, y)
    directions = set()
    for x in X[:30]:
        before = learner.predict(x[None])[0]
        decision = learner.decide(x)
        tried = np.atleast_1d(decision.action)
        # Deciding counts the context into the columns' statistics first, which may change its leaf.
        after = learner.predict(x[None])[0]
        away = np.abs(tried[:, None] - [after, before])
        assert np.isclose(away, 0.5).any() or (
            method == "one_point" and np.isclose(away, 1.0).any()
        )
        assert decision.propensity == CHANCES[method]
        if method.endswith("two_point"):
            assert decision.action[0] < decision.action[1]
        directions.add(float(np.sign(tried[-1] - after)))
    assert directions == ({1.0} if method.endswith("two_point") else {-1.0, 1.0})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", ["targets", "loss of targets", "function"])
def test_replay_is_decide_and_learn(rounds, method, form):
    X, y = rounds
    step, bulk = (small_regressor(method=method) for _ in range(2))
    seen = []
    for x, target in zip(X, y, strict=True):
        decision = step.decide(x)
        losses = [(tried - target) ** 2 for tried in np.atleast_1d(decision.action).tolist()]
        feedback = {"losses": losses} if len(losses) == 2 else {"loss": losses[0]}
        step.learn(decision.token, **feedback)
        seen.append(np.mean(losses))
    if form == "targets":
        history = bulk.replay(X, y)
    elif form == "loss of targets":
        history = bulk.replay(X, y, loss=lambda target, tried: (tried - target) ** 2)
    else:
        history = bulk.replay(X, lambda i, tried: (tried - y[i]) ** 2)
    np.testing.assert_allclose(history.loss, seen, rtol=1e-9)
    np.testing.assert_allclose(history.mean_loss[-1], np.mean(seen))
    np.testing.assert_allclose(bulk.predict(X), step.predict(X), atol=1e-5)
    assert bulk.n_rounds_ == step.n_rounds_ == len(history) == 300


def test_the_huber_loss_is_that_of_the_definition(rounds):
    X, y = rounds
    native, function = small_regressor(), small_regressor()

    def huber(target, tried, delta=0.7):
        size = np.abs(tried - target)
        return np.where(size <= delta, size**2 / 2, delta * (size - delta / 2))

    np.testing.assert_allclose(
        native.replay(X, y, loss="huber", delta=0.7).loss,
        function.replay(X, y, loss=huber).loss,
        rtol=1e-6,
    )


def asymmetric(target, tried):
    return np.where(tried > target, 3.0, 1.0) * np.abs(tried - target)


@pytest.mark.parametrize(
    ("method", "loss"),
    [
        ("two_point", "squared"),
        ("two_point", "huber"),
        ("one_point", "squared"),
        ("paper_two_point", "squared"),
        ("paper_two_point", "huber"),
        ("paper_two_point", asymmetric),
    ],
)
def test_it_learns_the_number_with_the_least_loss(rng, method, loss):
    X = contexts(rng, 3000)
    y = np.where(X[:, 0] > 0, 2.0, -1.0)
    given = {"learning_rate": 0.02} if method.startswith("paper") else {}
    learner = small_regressor(method=method, **given)
    history = learner.replay(X, y, loss=loss)
    # Perturbed numbers have a loss even around the best ones.
    most = 0.85 if method == "one_point" else 0.6
    assert history.loss[-500:].mean() < most * history.loss[:100].mean()
    assert np.sqrt(np.mean((learner.predict(X) - y) ** 2)) < 0.6


def test_the_tree_predicts_as_the_learner(rounds):
    X, y = rounds
    learner = small_regressor(start=3.0, scale=2.0)
    learner.replay(X, y)
    before = all_of(learner)
    np.testing.assert_array_equal(learner.tree_.predict(X), learner.predict(X))
    assert all_of(learner) == before


def test_it_starts_from_a_supervised_tree(rounds):
    X, y = rounds
    model = DGTRegressor(max_depth=2, random_state=0, max_epochs=20).fit(X, y)
    learner = small_regressor(init=model)
    np.testing.assert_allclose(learner.predict(X), model.predict(X), atol=1e-5)
    assert learner.replay(X, y).loss[:50].mean() < small_regressor().replay(X, y).loss[:50].mean()
