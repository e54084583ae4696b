"""A bandit whose network explores: who decides, what it forgets, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from rounds import all_of, contexts, labels, small_bandit, small_network

from hardwood.bandit import DeciderReport, DGTBandit


def easy(n, seed=0):
    """Contexts whose best action a small tree can name."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, labels(X)


def quick_network(**given):
    return small_network(**{"hidden_size": 16, "batch_size": 32, **given})


def test_the_network_decides_and_the_tree_agrees():
    bandit = quick_network()
    X, y = easy(1500)
    history = bandit.replay(X, y)
    assert history.reward[-300:].mean() > 0.85
    assert bandit.decides_ == "network"
    assert (bandit.predict(X) == y).mean() > 0.9
    assert (bandit.policy().predict(X) == y).mean() > 0.85
    assert not np.array_equal(bandit.action_values(X), bandit.tree_.predict(X))
    report = bandit.decider_report()
    assert isinstance(report, DeciderReport)
    assert report.agreement > 0.8
    assert report.network.low < report.network.value < report.network.high
    assert report.difference.value == pytest.approx(report.tree.value - report.network.value)
    narrow = bandit.decider_report(confidence=0.5).network
    assert report.network.low < narrow.low
    assert str(report).startswith("The network decides. In ")


def test_the_tree_can_decide_from_the_start():
    bandit = quick_network(who_decides="tree")
    assert bandit.decides_ == "tree"
    X, y = easy(1000)
    bandit.replay(X, y)
    np.testing.assert_allclose(bandit.action_values(X), bandit.tree_.predict(X), rtol=1e-6)
    by_leaf = bandit._engine.leaf_probabilities(None)
    np.testing.assert_array_equal(bandit.action_probabilities(X), by_leaf[bandit.apply(X)])


def test_the_tree_decides_once_nothing_is_lost():
    bandit = quick_network(who_decides="auto", min_propensity=0.02)
    X, _ = easy(9000)
    y = (X[:, 0] > 0).astype(int)  # one split is enough
    bandit.replay(X[:200], y[:200])
    assert bandit.decides_ == "network"
    for first in range(200, 9000, 200):
        bandit.replay(X[first : first + 200], y[first : first + 200])
        if bandit.decides_ == "tree":
            break
    report = bandit.decider_report()
    assert report.decides == "tree"
    assert report.difference.value > -0.01
    assert report.n_effective > 500
    np.testing.assert_allclose(bandit.action_values(X), bandit.tree_.predict(X), rtol=1e-6)


def test_a_tree_that_is_too_small_does_not_decide():
    """Four labels need more than one split."""
    bandit = quick_network(n_actions=4, who_decides="auto", max_depth=1, min_propensity=0.02)
    X = np.random.default_rng(0).normal(size=(3000, 2))
    bandit.replay(X, (X[:, 0] > 0) * 2 + (X[:, 1] > 0))
    assert bandit.decides_ == "network"
    assert bandit.decider_report().difference.high < -0.1


@pytest.mark.parametrize("method", ["replay", "network", "paper"])
def test_no_allowed_action_is_less_probable_than_the_floor(method):
    bandit = small_bandit(method=method, n_actions=4, min_propensity=0.05)
    X, y = easy(400)
    history = bandit.replay(X, y)
    assert history.propensity.min() >= 0.05
    mask = [True, False, True, True]
    p = bandit.action_probabilities(X, mask=mask)
    assert p[:, [0, 2, 3]].min() >= 0.05
    assert not p[:, 1].any()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_a_floor_above_equal_shares_means_equal_shares():
    bandit = small_network(n_actions=4, min_propensity=0.9)
    X, y = easy(200)
    assert np.unique(bandit.replay(X, y).propensity).tolist() == [0.25]


def test_epsilon_greedy():
    bandit = quick_network(explore_by="epsilon", epsilon=0.3)
    X, y = easy(300)
    found = bandit.replay(X, y).propensity
    np.testing.assert_allclose(np.unique(found), [0.1, 0.8])


def permuted(X, y):
    return X, (y + 1) % 3


def test_it_recovers_when_actions_are_permuted():
    bandit = quick_network()
    X, y = easy(3000)
    before = bandit.replay(X[:2000], y[:2000]).reward[-500:].mean()
    bandit.replay(*permuted(X[:1500], y[:1500]))
    (when,) = bandit.changes_
    assert 2000 < when < 2200
    after = bandit.replay(*permuted(X[1500:2000], y[1500:2000])).reward.mean()
    assert after > 0.9 * before


def test_change_is_not_looked_for_if_it_should_not_be():
    bandit = quick_network(detect_change=False)
    X, y = easy(1500)
    bandit.replay(X, y)
    bandit.replay(*permuted(X, y))
    assert bandit.changes_ == ()


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_no_change(seed):
    """Rewards with the largest variance, which no context explains."""
    bandit = quick_network(random_state=seed)
    rng = np.random.default_rng(seed)
    bandit.replay(rng.normal(size=(3000, 3)), rng.integers(2, size=(3000, 3)).astype(float))
    assert bandit.changes_ == ()


@pytest.mark.parametrize("loss", ["auto", "squared", "huber"])
def test_rewards_of_any_size(loss):
    bandit = quick_network(loss=loss)
    X, y = easy(1500)
    rewards = 1000.0 * np.eye(3)[y] - 300.0
    history = bandit.replay(X, rewards)
    assert history.reward[-300:].mean() > 500
    assert np.abs(bandit.action_values(X)).max() < 3000
    report = bandit.decider_report()
    assert -300 < report.network.value < 720
    assert abs(report.difference.value) < 300


def test_units_change_with_the_first_other_reward():
    bandit = quick_network()
    X, y = easy(900)
    bandit.replay(X[:300], y[:300])
    assert bandit.action_values(X).min() >= 0
    history = bandit.replay(X[300:], 10.0 * np.eye(3)[y[300:]])
    assert history.reward[-200:].mean() > 7.5


@pytest.mark.parametrize("reward", [1.5, -0.5])
def test_the_logistic_loss_refuses_other_rewards(reward):
    bandit = small_network(loss="logistic")
    token = bandit.decide([0.0, 1.0, 2.0]).token
    before = all_of(bandit)
    with pytest.raises(ValueError, match=r"reward must be from 0 to 1 with loss='logistic', found"):
        bandit.learn(token, reward)
    with pytest.raises(ValueError, match=r"feedback must be from 0 to 1"):
        bandit.replay([[0.0, 1.0, 2.0]], np.full((1, 3), reward))
    with pytest.raises(ValueError, match=r"feedback of row 0 must be from 0 to 1"):
        bandit.replay([[0.0, 1.0, 2.0]], lambda i, action: reward)
    with pytest.raises(ValueError, match=r"reward must be from 0 to 1"):
        bandit.learn_logged([[0.0, 1.0, 2.0]], [0], [reward], 0.5)
    assert (bandit.n_rounds_, bandit.n_open_) == (0, 1)
    assert bandit.learn(token, 0.25) is None
    assert len(before) > 0


def test_what_it_cannot_use_is_refused():
    with pytest.raises(ValueError, match=r"init is not used with method='network'"):
        DGTBandit(3, method="network", init=small_bandit(features=[[0.0, 1.0]]).tree_)
    for method in ("replay", "paper"):
        bandit = small_bandit(method=method, features=3)
        assert (bandit.decides_, bandit.changes_) == ("tree", ())
        with pytest.raises(ValueError, match="has no network to compare the tree with"):
            bandit.decider_report()
    with pytest.raises(ValueError, match="confidence must be"):
        small_network(features=3).decider_report(confidence=1.0)


def logged(n, rng):
    """Rounds of a policy that mostly takes action 0, and rewards that only depend on the action."""
    X = contexts(rng, n)
    p = np.array([0.9, 0.05, 0.05])
    action = rng.choice(3, size=n, p=p)
    reward = np.array([0.2, 0.8, 0.5])[action]
    return X, action, reward, p[action]


@pytest.mark.parametrize("method", ["replay", "network"])
def test_logged_rounds_count_by_their_propensities(method, rng):
    X, action, reward, propensity = logged(300, rng)
    direct, weighted, same = (small_bandit(method=method) for _ in range(3))
    direct.learn_logged(X, action, reward, propensity)
    weighted.learn_logged(X, action, reward, propensity, weighting="ips")
    same.learn_logged(X, action, reward, 0.3, weighting="ips")
    assert all_of(direct) != all_of(weighted)
    # Equal propensities give equal weights: the models are those of the direct method.
    np.testing.assert_array_equal(same.action_values(X), direct.action_values(X))
    weights = weighted._engine.state()["weights"]
    assert weights.mean() == pytest.approx(1.0, rel=1e-5)
    np.testing.assert_allclose(weights * propensity, (weights * propensity)[0], rtol=1e-5)


def test_a_model_that_is_too_simple_is_best_where_weights_are():
    """One leaf cannot hold both halves of the contexts: weights say which count."""
    rng = np.random.default_rng(0)
    n = 2000
    X = rng.normal(size=(n, 1))
    is_left = X[:, 0] < 0
    # Where x < 0, action 0 was nearly always taken, elsewhere hardly ever.
    p = np.where(is_left, 0.95, 0.05)
    taken = (rng.random(n) >= p).astype(int)
    propensity = np.where(taken == 0, p, 1 - p)
    reward = np.where(taken == 0, np.where(is_left, 1.0, 0.0), 0.6)
    shown = {}
    for weighting in ("direct", "ips"):
        bandit = DGTBandit(2, max_depth=1, method="replay", random_state=0, learning_rate=0.02)
        # The context is hidden: it is constant.
        bandit.learn_logged(np.zeros((n, 1)), taken, reward, propensity, weighting=weighting)
        shown[weighting] = bandit.action_values([[0.0]])[0]
    # Over all contexts, the mean reward of action 0 is a half, and that of action 1 is 0.6.
    assert shown["direct"][0] > 0.8
    assert shown["ips"] == pytest.approx([0.5, 0.6], abs=0.1)


def test_weighting_is_checked():
    with pytest.raises(ValueError, match="weighting must be one of"):
        small_bandit().learn_logged([[0.0, 1.0]], [1], [1.0], 0.5, weighting="dr")
    with pytest.raises(ValueError, match="weighting='ips' is not used with method='paper'"):
        small_bandit(method="paper").learn_logged([[0.0]], [1], [1.0], 0.5, weighting="ips")


def test_the_same_seed_gives_the_same_run():
    X, y = easy(300)
    runs = [small_network(random_state=4) for _ in range(2)]
    for run in runs:
        run.replay(X, y)
    assert all_of(runs[0]) == all_of(runs[1])
    other = small_network(random_state=5)
    other.replay(X, y)
    assert all_of(other) != all_of(runs[0])


def test_the_leaf_of_a_decision_is_that_of_the_tree():
    bandit = small_network()
    X, y = easy(100)
    bandit.replay(X, y)
    decision = bandit.decide(X[0])
    assert decision.leaf == bandit.apply(X[:1])[0]
    assert decision.version == bandit._engine.tree()["version"] == 100 - 100 % 16 + 4
