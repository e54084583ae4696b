"""The engine that learns from bandit feedback equals its NumPy reference, round by round."""

from __future__ import annotations

import numpy as np
import pytest

from bandit_engines import HEIGHT, N_COLUMNS, K, engine_of, environment, options_of
from hardwood import _native
from hardwood.bandit.parameters import RegressionParameters
from reference import bandit as reference


@pytest.mark.parametrize(
    ("method", "n", "missing", "changes"),
    [
        ("paper", 1000, 0.0, {}),
        ("paper", 200, 0.2, {"batch_size": 1, "exploration": 0.05}),
        ("paper", 1000, 0.0, {"quantizer": "scaled"}),
        ("paper", 200, 0.0, {"shares_bias": False}),
        ("replay", 1000, 0.0, {"batch_size": 16}),
        ("replay", 200, 0.2, {"batch_size": 40, "updates_per_round": 1.5, "input_noise": 0.0}),
    ],
)
def test_rounds_equal_the_numpy_reference(method, n, missing, changes):
    options = options_of(method, **changes)
    X, rewards, masks = environment(n, missing=missing)
    engine = engine_of(options)
    start = engine.state()["parameters"]
    by_hand = reference.Bandit(start, N_COLUMNS, K, HEIGHT, options, seed=7)
    for x, reward, mask in zip(X, rewards, masks, strict=True):
        action, propensity, *place = engine.decide(x, mask.astype(np.uint8))
        expected_action, expected_propensity, *expected_place = by_hand.decide(x, mask)
        assert (action, place) == (expected_action, expected_place)
        assert engine.leaves(x[None]).tolist() == place[:1]
        assert propensity == pytest.approx(expected_propensity, abs=2e-3)
        engine.learn(x, action, reward[action], propensity)
        by_hand.learn(x, action, reward[action], propensity)
    tree = reference.Tree(engine.state()["parameters"], N_COLUMNS, K, HEIGHT, options)
    np.testing.assert_allclose(tree.W, by_hand.tree.W, atol=2e-3)
    np.testing.assert_allclose(tree.b, by_hand.tree.b, atol=2e-3)
    np.testing.assert_allclose(tree.Theta, by_hand.tree.Theta, atol=2e-3)
    moved = np.abs(tree.Theta - reference.Tree(start, N_COLUMNS, K, HEIGHT, options).Theta).max()
    assert moved > 0.05  # it has learned something at all


STRANGE_REWARDS = {
    "one far out among the first": lambda r: np.where(np.arange(len(r)) == 7, 1e9, r),
    "two far out": lambda r: np.where(np.isin(np.arange(len(r)), [7, 150]), -1e9, r),
    "the first ones equal": lambda r: np.where(np.arange(len(r)) < 30, 0.0, 1000.0 * r),
    "none where they were": lambda r: r + np.where(np.arange(len(r)) < 100, 0.0, 1e6),
    "rare": lambda r: r * (np.arange(len(r)) % 37 == 0),
}


@pytest.mark.parametrize("name", STRANGE_REWARDS)
def test_rewards_are_scaled_as_in_the_numpy_reference(name):
    options = options_of("replay", batch_size=16)
    X, rewards, masks = environment(700)
    engine = engine_of(options)
    by_hand = reference.Bandit(engine.state()["parameters"], N_COLUMNS, K, HEIGHT, options, seed=7)
    observed = STRANGE_REWARDS[name](rewards[:, 0])
    for x, mask, reward in zip(X, masks, observed, strict=True):
        action, *_ = engine.decide(x, mask.astype(np.uint8))
        engine.learn(x, action, reward, 0.5)
        by_hand.rewards.add(reward)
    center, scale = engine.state()["rewards_seen"][4:]
    assert (center, scale) == pytest.approx((by_hand.rewards.center, by_hand.rewards.scale))


@pytest.mark.parametrize("method", ["paper", "replay"])
def test_a_bulk_replay_is_the_rounds_one_by_one(method):
    X, rewards, masks = environment(300)
    at_once, one_by_one = (engine_of(options_of(method)) for _ in range(2))
    actions, propensities, received = at_once.replay(
        X, rewards.astype(np.float32), masks.astype(np.uint8)
    )
    for i, x in enumerate(X):
        action, propensity, *_ = one_by_one.decide(x, masks[i].astype(np.uint8))
        assert (action, propensity) == (actions[i], propensities[i])
        assert received[i] == rewards[i, action]
        one_by_one.learn(x, action, rewards[i, action], propensity)
    for key, value in at_once.state().items():
        np.testing.assert_array_equal(value, one_by_one.state()[key])


@pytest.mark.parametrize("method", ["paper", "replay"])
@pytest.mark.parametrize("stop", [3, 18, 150])
def test_a_resumed_run_equals_an_uninterrupted_one(method, stop):
    # Fractions of steps are carried over between rounds, and the buffer is full before the end.
    options = options_of(method, buffer_size=100, updates_per_round=0.7)
    X, rewards, _ = environment(300)
    rewards = rewards.astype(np.float32)
    whole, first, second = (engine_of(options) for _ in range(3))
    expected = whole.replay(X, rewards, None)
    found = first.replay(X[:stop], rewards[:stop], None)
    second.set_state(first.state())
    rest = second.replay(X[stop:], rewards[stop:], None)
    for a, b, c in zip(expected, found, rest, strict=True):
        np.testing.assert_array_equal(a, np.concatenate([b, c]))
    for key, value in whole.state().items():
        np.testing.assert_array_equal(value, second.state()[key])


def test_the_buffer_is_bounded_and_a_uniform_sample():
    options = options_of("replay", buffer_size=50, updates_per_round=0.0)
    X = np.arange(400, dtype=np.float32)[:, None] * np.ones((1, N_COLUMNS), np.float32)
    kept = []
    for seed in range(200):
        engine = engine_of(options, seed)
        engine.replay(X, np.zeros(400, np.int32), None)
        stored = engine.state()["contexts"].reshape(-1, N_COLUMNS)[:, 0]
        assert len(stored) == len(set(stored)) == 50
        kept.extend(stored)
    counts, _ = np.histogram(kept, bins=8, range=(0, 400))
    # 10,000 draws over 8 eighths: 1250 each, standard deviation about 31.
    assert np.abs(counts - 1250).max() < 150


def test_the_buffer_can_hold_the_most_recent_rounds():
    options = options_of("replay", buffer_size=50, updates_per_round=0.0, keeps_recent=True)
    X = np.arange(400, dtype=np.float32)[:, None] * np.ones((1, N_COLUMNS), np.float32)
    engine = engine_of(options)
    engine.replay(X, np.zeros(400, np.int32), None)
    stored = engine.state()["contexts"].reshape(-1, N_COLUMNS)[:, 0]
    assert sorted(stored) == list(range(350, 400))


def test_values_do_not_depend_on_the_units_of_rewards():
    X, rewards, _ = environment(500)
    plain, scaled = (engine_of(options_of("replay")) for _ in range(2))
    first = plain.replay(X, rewards.astype(np.float32), None)[0]
    second = scaled.replay(X, (rewards * 1024 - 512).astype(np.float32), None)[0]
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(plain.values(X) * 1024 - 512, scaled.values(X), atol=0.5)


def test_the_paper_rescales_rewards_by_their_range():
    X, _, _ = environment(200)
    rng = np.random.default_rng(5)
    actions, rewards = rng.integers(K, size=200), rng.integers(5, size=200) / 4
    rewards[:2] = 0, 1  # the range is known before the first step
    plain, wide = (engine_of(options_of("paper")) for _ in range(2))
    for x, action, reward in zip(X, actions, rewards, strict=True):
        plain.learn(x, action, reward, 0.5)
        wide.learn(x, action, 16 * reward - 4, 0.5)
    np.testing.assert_array_equal(plain.state()["parameters"], wide.state()["parameters"])
    np.testing.assert_allclose(16 * plain.values(X) - 4, wide.values(X), rtol=1e-6)


def test_outliers_are_scaled_as_in_the_numpy_reference():
    """Without steps, so that leaves, which start at random, change with the scale alone."""
    options = options_of("replay", updates_per_round=0.0, starts_level=False)
    engine = engine_of(options)
    start = engine.state()["parameters"]
    by_hand = reference.Bandit(start, N_COLUMNS, K, HEIGHT, options, seed=7)
    X, _, _ = environment(400)
    rewards, scales = np.random.default_rng(3).standard_cauchy(400), set()
    for x, reward in zip(X, rewards, strict=True):
        engine.learn(x, 0, reward, 0.5)
        by_hand.learn(x, 0, reward, 0.5)
        center, scale = engine.state()["rewards_seen"][-2:]
        assert (center, scale) == pytest.approx((by_hand.rewards.center, by_hand.rewards.scale))
        scales.add(scale)
    assert len(scales) >= 4
    assert np.ptp(rewards) > 4 * np.std(rewards)  # single ones lie far out
    found = reference.Tree(engine.state()["parameters"], N_COLUMNS, K, HEIGHT, options)
    np.testing.assert_allclose(found.Theta, by_hand.tree.Theta, rtol=1e-5)


@pytest.mark.parametrize("outlier", [1e3, -1e6, 1e40, 1e99])
def test_one_reward_far_out_does_not_spoil_what_was_learned(outlier):
    X, rewards, _ = environment(1200)
    engine = engine_of(options_of("replay"))
    engine.replay(X[:300], rewards[:300], None)
    engine.learn(X[0], 0, outlier, 0.5)
    late = engine.replay(X[300:], rewards[300:], None)[2][-300:]
    assert late.mean() > 0.8
    assert np.isfinite(engine.values(X)).all()
    engine_of(options_of("replay")).set_state(engine.state())


def test_the_tree_in_raw_units_predicts_as_the_engine():
    X, rewards, _ = environment(500)
    for method in ("paper", "replay"):
        engine = engine_of(options_of(method))
        engine.replay(X, rewards.astype(np.float32), None)
        tree = engine.tree()
        scores = X.astype(np.float64) @ tree["weights"].T + tree["bias"]
        leaves = np.zeros(len(X), dtype=int)
        for _ in range(HEIGHT):
            leaves = 2 * leaves + 1 + (scores[np.arange(len(X)), leaves] >= 0)
        np.testing.assert_allclose(
            tree["values"][leaves - (2**HEIGHT - 1)], engine.values(X), atol=1e-6
        )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("parameters", np.zeros(3, np.float32)),
        ("columns", np.full(3 * N_COLUMNS, np.nan)),
        ("actions", np.array([K], np.int32)),
        ("contexts", np.zeros(1, np.float32)),
        ("due", np.array([2.0])),
        ("rewards_seen", np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0])),
    ],
)
def test_a_wrong_state_is_refused_and_changes_nothing(key, value):
    engine = engine_of(options_of("replay"))
    X, rewards, _ = environment(30)
    engine.replay(X, rewards.astype(np.float32), None)
    before = engine.state()
    with pytest.raises(ValueError, match=r"state|action"):
        engine.set_state(before | {key: value})
    for name, found in engine.state().items():
        np.testing.assert_array_equal(found, before[name])


# Numbers


def regression_options(method, **changes):
    return RegressionParameters(method=method).for_engine(N_COLUMNS) | changes


def regression_engine(method="two_point", seed=0, **changes):
    options = regression_options(method, **changes)
    return _native.BanditRegressionEngine(N_COLUMNS, HEIGHT, options, seed)


@pytest.mark.parametrize("points", [1, 2])
def test_rounds_of_numbers_by_the_paper_equal_the_numpy_reference(points):
    X, _, _ = environment(400)
    y = X[:, 0].astype(np.float64)
    method = "paper_two_point" if points == 2 else "paper_one_point"
    engine, options = regression_engine(method), regression_options(method)
    delta, size = options["perturbation"], options["batch_size"]
    tree = reference.Tree(engine.state()["parameters"], N_COLUMNS, 1, HEIGHT, options)
    moments, waiting = reference.Moments(), []
    losses = engine.replay(X, y, "squared", 0.0)
    for i, x in enumerate(X):
        moments.add(x)
        prediction = tree.values(moments.standardize_to_decide(x))[0]
        u = 1 if next(reference.words(0, i)) & 1 else -1
        tried = (
            [prediction + delta * u] if points == 1 else [prediction + delta, prediction - delta]
        )
        found = [(t - y[i]) ** 2 for t in tried]
        assert losses[i] == pytest.approx(np.mean(found), abs=2e-3)
        slope = (
            reference.one_point(found[0], u, delta)
            if points == 1
            else reference.two_point(*found, delta)
        )
        waiting.append((x, slope))
        if len(waiting) == size:
            Z = np.array([moments.standardize(x) for x, _ in waiting])
            tree.step(Z, np.array([[s] for _, s in waiting]))
            moments.publish()
            waiting = []
    found = reference.Tree(engine.state()["parameters"], N_COLUMNS, 1, HEIGHT, options)
    np.testing.assert_allclose(found.W, tree.W, atol=2e-3)
    np.testing.assert_allclose(found.Theta, tree.Theta, atol=2e-3)


def huber(r):
    return r * r / 2 if abs(r) <= 1 else abs(r) - 0.5


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("method", ["two_point", "one_point"])
def test_rounds_of_numbers_equal_the_numpy_reference(method, loss):
    """They agree until rounding decides on which side of a split a context lies."""
    X, _, _ = environment(300 if method == "two_point" else 40)
    y = X[:, 0].astype(np.float64)
    options = regression_options(method, batch_size=8)
    engine = regression_engine(method, batch_size=8)
    by_hand = reference.Regression(engine.state(), N_COLUMNS, HEIGHT, options, seed=0)
    delta, of = options["perturbation"], np.square if loss == "squared" else huber
    losses = engine.replay(X, y, loss, 1.0)
    for i, x in enumerate(X):
        prediction = by_hand.predict(x)
        if method == "two_point":
            below, above = of(prediction - delta - y[i]), of(prediction + delta - y[i])
            by_hand.learn_two(x, prediction, below, above)
            expected = (below + above) / 2
        else:
            u = by_hand.direction()
            expected = of(prediction + delta * u - y[i])
            by_hand.learn_one(x, prediction, u, expected)
        assert losses[i] == pytest.approx(expected, rel=1e-3, abs=1e-3)
    found = engine.state()
    tree = reference.Tree(found["mean"], N_COLUMNS, by_hand.K, HEIGHT, options, found["layers"])
    for part, expected in zip((tree.W, tree.b, tree.Theta), by_hand.tree.mean, strict=True):
        np.testing.assert_allclose(part, expected, atol=2e-3)


@pytest.mark.parametrize("method", RegressionParameters.METHODS)
def test_a_resumed_run_of_numbers_equals_an_uninterrupted_one(method):
    X, _, _ = environment(203)
    y = X[:, 0].astype(np.float64)
    whole, first, second = (regression_engine(method, buffer_size=60) for _ in range(3))
    expected = whole.replay(X, y, "huber", 1.0)
    found = first.replay(X[:101], y[:101], "huber", 1.0)
    second.set_state(first.state())
    rest = second.replay(X[101:], y[101:], "huber", 1.0)
    np.testing.assert_array_equal(expected, np.concatenate([found, rest]))
    for key, value in whole.state().items():
        np.testing.assert_array_equal(value, second.state()[key])


def bend_of(state, method, delta):
    """How much the loss bends, from the engine's sums."""
    a, b, c, d, e = state["losses_seen"][:5]
    if method == "two_point":
        return 0.5 * (a * d - b * b) / (a * e - b * c)
    return 2 * (d / c - b / a) / (3 * delta**2)


def test_two_points_of_a_squared_loss_say_exactly_where_it_is_least():
    X, _, _ = environment(200)
    y = 5 + 3 * X[:, 0].astype(np.float64)
    engine = regression_engine(start=4.0, scale=2.0)
    engine.replay(X, y, "squared", 0.0)
    state = engine.state()
    targets = state["predictions"] - state["slopes"] / bend_of(state, "two_point", 0.5)
    np.testing.assert_allclose(4.0 + 2.0 * targets, y, rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_one_point_says_where_it_is_least_in_the_mean(loss):
    """Whatever was expected, which is taken off: the sign is drawn."""
    n = 20_000
    X = np.ones((n, N_COLUMNS), np.float32)
    engine = regression_engine("one_point", updates_per_round=0.0)  # never learns
    engine.replay(X, np.full(n, 0.8), loss, 10.0)
    state = engine.state()
    bend = bend_of(state, "one_point", 0.7)
    assert bend == pytest.approx(2.0 if loss == "squared" else 1.0, rel=0.1)
    targets = state["predictions"] - state["slopes"] / bend
    assert np.mean(targets) == pytest.approx(0.8, abs=0.05 + 4 * targets.std() / np.sqrt(n))


def test_losses_far_out_do_not_carry_predictions_away():
    """One loss tells little; where it is large, next to nothing."""
    X, _, _ = environment(3000)
    y = X[:, 0].astype(np.float64)
    y[::50] = 40.0
    engine = regression_engine("one_point", batch_size=32)
    engine.replay(X, y, "squared", 0.0)
    assert np.abs(engine.predict(X)).max() < 40
