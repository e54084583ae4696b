"""Off-policy evaluation against enumerations, closed forms and simulated logs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from hardwood import DGTClassifier
from hardwood.bandit import (
    DGTBandit,
    Estimate,
    classification_bandit,
    evaluate,
    reward_estimates,
    simulate,
)
from hardwood.bandit.evaluation import METHODS

# Two contexts, three actions: rewards, the logging policy, the policy to evaluate.
REWARD = np.array([[1.0, -2.0, 0.5], [3.0, 0.0, 10.0]])
LOGGING = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])
POLICY = np.array([[0.1, 0.2, 0.7], [0.6, 0.4, 0.0]])
VALUES = (POLICY * REWARD).sum(axis=1)  # of each context
MODEL = np.array([[0.3, 1.0, -1.0], [2.0, 2.0, 2.0]])  # a poor model
CONTEXTS = (0, 1, 1)


def all_logs(contexts):
    """Every possible log of these contexts, with its probability."""
    for actions in itertools.product(range(3), repeat=len(contexts)):
        chance = math.prod(LOGGING[x, a] for x, a in zip(contexts, actions, strict=True))
        yield np.array(actions), chance


def evaluated(contexts, actions, **options):
    rows = np.array(contexts)
    if options["method"] in ("dm", "dr", "switch"):
        options.setdefault("reward_model", MODEL[rows])
    log = (rows[:, None], actions, REWARD[rows, actions], LOGGING[rows, actions])
    return evaluate(POLICY[rows], *log, **options)


def logged_at_random(rng, n, noise=1.0):
    rows = rng.integers(2, size=n)
    actions = (rng.random(n)[:, None] > LOGGING[rows].cumsum(axis=1)).sum(axis=1)
    rewards = REWARD[rows, actions] + noise * rng.normal(size=n)
    return rows, actions, rewards, LOGGING[rows, actions]


@pytest.mark.parametrize("method", ["ips", "dr"])
def test_unbiased_over_all_logs(method):
    contexts = CONTEXTS
    found = np.zeros(2)
    for actions, chance in all_logs(contexts):
        if POLICY[np.array(contexts), actions].any():
            estimate = evaluated(contexts, actions, method=method).value
        else:  # refused; both are known
            estimate = (
                0.0 if method == "ips" else (POLICY * MODEL).sum(axis=1)[list(contexts)].mean()
            )
        found += np.array([estimate, 1.0]) * chance
    np.testing.assert_allclose(found, [VALUES[list(contexts)].mean(), 1.0])


def test_a_log_without_actions_of_the_policy_is_refused():
    with pytest.raises(ValueError, match="the log says nothing about this policy"):
        evaluated((1, 1), np.array([2, 2]), method="ips")
    assert evaluated((1, 1), np.array([2, 2]), method="dm").value == pytest.approx(2.0)


@pytest.mark.parametrize("method", ["ips", "dr"])
def test_variance_is_the_closed_form_and_its_estimate_unbiased(method):
    """All rounds have the same context, so that the squared standard error is unbiased."""
    q = MODEL[0] if method == "dr" else np.zeros(3)
    w = POLICY[0] / LOGGING[0]
    shifted = w * (REWARD[0] - q)
    exact = (LOGGING[0] @ shifted**2 - (LOGGING[0] @ shifted) ** 2) / 2
    mean = squares = errors = 0.0
    for actions, chance in all_logs((0, 0)):
        estimate = evaluated((0, 0), actions, method=method)
        mean += chance * estimate.value
        squares += chance * estimate.value**2
        errors += chance * estimate.standard_error**2
    assert squares - mean**2 == pytest.approx(exact)
    assert errors == pytest.approx(exact)


def test_doubly_robust_is_exact_with_the_true_model_whatever_was_logged():
    contexts = np.array(CONTEXTS)
    for actions, _ in all_logs(CONTEXTS):
        if not POLICY[contexts, actions].any():
            continue
        estimate = evaluated(CONTEXTS, actions, method="dr", reward_model=REWARD[contexts])
        direct = evaluated(CONTEXTS, actions, method="dm", reward_model=REWARD[contexts])
        assert estimate.value == pytest.approx(VALUES[contexts].mean())
        assert direct.value == estimate.value


def test_self_normalized_by_hand():
    estimate = evaluated((0, 0, 1), np.array([0, 2, 0]), method="snips")
    w = np.array([0.1 / 0.5, 0.7 / 0.2, 0.6 / 0.1])
    r = np.array([1.0, 0.5, 3.0])
    value = (w @ r) / w.sum()
    assert estimate.value == pytest.approx(value)
    spread = math.sqrt((w**2 * (r - value) ** 2).sum() * 3 / 2) / w.sum()
    assert estimate.standard_error == pytest.approx(spread)
    assert estimate.effective_n == pytest.approx(w.sum() ** 2 / (w**2).sum())


def test_self_normalized_moves_with_the_rewards(rng):
    rows, actions, rewards, chances = logged_at_random(rng, 50)
    one, other = (
        evaluate(POLICY[rows], rows[:, None], actions, r, chances, method="snips")
        for r in (rewards, 3 * rewards - 100)
    )
    assert other.value == pytest.approx(3 * one.value - 100)
    assert other.standard_error == pytest.approx(3 * one.standard_error)


@pytest.mark.parametrize("method", ["ips", "snips"])
def test_the_logging_policy_has_the_mean_logged_reward(method, rng):
    rows, actions, rewards, chances = logged_at_random(rng, 40)
    estimate = evaluate(LOGGING[rows], rows[:, None], actions, rewards, chances, method=method)
    assert estimate.value == pytest.approx(rewards.mean())
    assert estimate.standard_error == pytest.approx(rewards.std(ddof=1) / math.sqrt(40))
    assert estimate.effective_n == pytest.approx(40)
    assert estimate.low == pytest.approx(estimate.value - 1.959964 * estimate.standard_error)


def test_large_weights_are_cut_or_left_to_the_model():
    contexts, actions = (0, 0, 1), np.array([0, 2, 0])  # weights 0.2, 3.5 and 6
    cut = evaluated(contexts, actions, method="ips", max_weight=4)
    assert cut.value == pytest.approx((0.2 * 1 + 3.5 * 0.5 + 4 * 3) / 3)
    assert cut.n_cut == 1
    switched = evaluated(contexts, actions, method="switch", max_weight=4)
    direct = (POLICY * MODEL).sum(axis=1)[list(contexts)].mean()
    correction = (0.2 * (1 - 0.3) + 3.5 * (0.5 + 1.0)) / 3
    assert switched.value == pytest.approx(direct + correction)
    uncut = evaluated(contexts, actions, method="switch", max_weight=6.1)
    assert uncut.value == evaluated(contexts, actions, method="dr").value
    assert uncut.n_cut == 0


@pytest.mark.parametrize(
    ("method", "interval"),
    [
        ("ips", "normal"),
        ("snips", "normal"),
        ("dr", "normal"),
        ("ips", "bootstrap"),
        ("snips", "bootstrap"),
        ("switch", "normal"),
    ],
)
def test_intervals_have_their_nominal_coverage(method, interval, rng):
    n_logs = 150 if interval == "bootstrap" else 400
    truth = VALUES.mean()
    covered = 0
    for seed in range(n_logs):
        rows, actions, rewards, chances = logged_at_random(rng, 200)
        estimate = evaluate(
            POLICY[rows], rows[:, None], actions, rewards, chances,
            method=method, interval=interval, confidence=0.9, random_state=seed,
            reward_model=MODEL[rows] if method in ("dm", "dr", "switch") else None,
            max_weight=10 if method == "switch" else None,
        )  # fmt: skip
        covered += estimate.low <= truth <= estimate.high
    spread = math.sqrt(0.9 * 0.1 / n_logs)
    assert abs(covered / n_logs - 0.9) < 3 * spread + 0.01


def test_bernstein_holds_and_is_wider(rng):
    """Over all logs of few rounds, where the normal interval is too narrow."""
    options = {"method": "ips", "max_weight": 6.0, "confidence": 0.9}
    ranges = {"normal": None, "bernstein": (-2, 10)}
    missed = dict.fromkeys(ranges, 0.0)
    for actions, chance in all_logs((1,) * 6):
        if not POLICY[1, actions].any():
            continue
        for interval, reward_range in ranges.items():
            options |= {"interval": interval, "reward_range": reward_range}
            estimate = evaluated((1,) * 6, actions, **options)
            missed[interval] += chance * (not estimate.low <= VALUES[1] <= estimate.high)
    assert missed["bernstein"] <= 0.1 < missed["normal"]
    n = 6
    actions = np.array([0, 1, 0, 1, 2, 1])
    options |= {"interval": "bernstein", "reward_range": (-2, 10)}
    estimate = evaluated((1,) * n, actions, **options)
    terms = (POLICY[1] / LOGGING[1] * REWARD[1])[actions]
    risk = math.log(4 / 0.1)
    reach = math.sqrt(2 * terms.var(ddof=1) * risk / n) + 7 * 6 * 12 * risk / (3 * (n - 1))
    assert estimate.high - estimate.value == pytest.approx(reach)


@pytest.mark.parametrize("method", METHODS)
def test_all_forms_of_a_policy_give_the_same(method, rng):
    X = rng.normal(size=(60, 2))
    chosen = (X[:, 0] > 0).astype(int)
    actions, rewards = rng.integers(2, size=60), rng.normal(size=60)
    chances = np.full(60, 0.5)
    tree = DGTClassifier(max_depth=1, max_epochs=3, random_state=0).fit(X, chosen)
    chosen = tree.predict(X)

    class Bandit:
        def action_probabilities(self, X, mask=None):
            return np.eye(2)[tree.predict(X)]

    log = (X, actions, rewards, chances)
    options = {"method": method, "max_weight": None if method == "dm" else 3.0}
    if method in ("dm", "dr", "switch"):
        options |= {"folds": 2, "reward_model": LinearRegression()}
    forms = [chosen, np.eye(2)[chosen], tree, tree.tree_, Bandit(), tree.predict]
    found = {evaluate(form, *log, **options) for form in forms}
    assert len(found) == 1


def test_actions_have_names(rng):
    X = rng.normal(size=(40, 2))
    names = np.array(["up", "down"])
    taken = rng.integers(2, size=40)
    rewards = rng.normal(size=40)
    by_name = evaluate(names[np.ones(40, int)], X, names[taken], rewards, np.full(40, 0.5))
    by_number = evaluate(np.ones(40, int), X, taken, rewards, np.full(40, 0.5), actions=2)
    assert by_name.effective_n == by_number.effective_n
    columns = np.tile([0.25, 0.75], (40, 1))  # of "up" and "down"
    one = evaluate(
        columns, X, names[taken], rewards, np.full(40, 0.5), method="ips", actions=["up", "down"]
    )
    other = evaluate(columns, X, taken, rewards, np.full(40, 0.5), method="ips")
    assert one.value == other.value
    assert one.value != by_name.value


def test_policies_that_learned_have_their_own_names(rng):
    names = np.array(["left", "right", "stay"])
    X = rng.normal(size=(300, 2))
    best = names[np.digitize(X[:, 0], [-0.5, 0.5])]
    environment = classification_bandit(X, best)
    bandit = DGTBandit(environment.actions, max_depth=2, exploration=100.0, random_state=0)
    log = simulate(bandit, environment)
    logged = (X, log.action, log.reward, log.propensity)
    of_tree = evaluate(bandit.policy(), *logged, method="snips")
    assert of_tree == evaluate(bandit.predict(X), *logged, method="snips")
    assert abs(of_tree.value - np.mean(bandit.predict(X) == best)) < 0.25
    explores = evaluate(bandit, *logged, method="snips")
    assert explores.effective_n > of_tree.effective_n
    two = best != "stay"  # a classifier that does not know all actions of the log
    classifier = DGTClassifier(max_depth=1, max_epochs=3, random_state=0).fit(X[two], best[two])
    found = evaluate(classifier, *logged, method="ips")
    assert found == evaluate(classifier.predict(X), *logged, method="ips")


def test_no_estimate_has_seen_its_own_reward(rng):
    X = rng.normal(size=(60, 2))
    actions, rewards = rng.integers(3, size=60), rng.normal(size=60)
    before = reward_estimates(X, actions, rewards, random_state=1)
    changed = rewards.copy()
    changed[7] += 1e6
    after = reward_estimates(X, actions, changed, random_state=1)
    np.testing.assert_array_equal(before[7], after[7])
    assert (before != after).any()


def test_models_learn_from_the_rounds_of_their_action(rng):
    X = rng.normal(size=(400, 2))
    actions = rng.integers(3, size=400)
    slopes = np.array([[1.0, 0.0], [0.0, -2.0], [3.0, 1.0]])
    truth = X @ slopes.T
    rewards = truth[np.arange(400), actions]
    found = reward_estimates(X, actions, rewards, model=LinearRegression())
    np.testing.assert_allclose(found, truth, atol=1e-9)
    by_trees = reward_estimates(X, actions, rewards, random_state=0)
    assert 1 - ((by_trees - truth) ** 2).mean() / truth.var() > 0.6


def test_rare_and_unseen_actions_have_means(rng):
    X = rng.normal(size=(30, 1))
    actions = np.zeros(30, int)
    actions[:4] = 2
    rewards = np.where(actions == 2, 5.0, rng.normal(size=30))
    found = reward_estimates(X, actions, rewards, actions=3, folds=2)
    np.testing.assert_array_equal(found[:, 2], 5.0)
    assert np.unique(found[:, 1]).size == 2  # the mean of the other fold, whatever was done


def test_tables_with_categories_and_gaps(rng):
    X = pd.DataFrame({"a": rng.normal(size=120), "b": rng.choice(["x", "y"], 120)})
    X.loc[::7, "a"] = np.nan
    best = (X["b"] == "y").to_numpy().astype(int)
    actions = rng.integers(2, size=120)
    rewards = (actions == best).astype(float)
    estimate = evaluate(best, X, actions, rewards, np.full(120, 0.5), method="dr")
    assert estimate.low - 1e-9 <= 1.0 <= estimate.high + 1e-9
    assert estimate.value > 0.9
    one, other = (
        evaluate(best, X, actions, rewards, np.full(120, 0.5), method="dm") for _ in range(2)
    )
    assert one == other  # the same seed, the same trees


def test_masks_reach_the_policy_and_are_checked(rng):
    X = rng.normal(size=(20, 1))
    mask = np.ones((20, 3), bool)
    mask[:, 2] = False
    seen = []

    class Bandit:
        def action_probabilities(self, X, mask=None):
            seen.append(mask)
            return mask / mask.sum(axis=1, keepdims=True)

    log = (X, np.zeros(20, int), rng.normal(size=20), np.full(20, 0.5))
    estimate = evaluate(Bandit(), *log, method="ips", mask=mask)
    assert estimate.effective_n == pytest.approx(20)
    np.testing.assert_array_equal(seen[0], mask)
    with pytest.raises(ValueError, match="policy takes 2 in row 0, which mask does not allow"):
        evaluate(np.full(20, 2), *log, method="ips", mask=mask, actions=3)
    with pytest.raises(ValueError, match="action takes 0 in row 0, which mask does not allow"):
        evaluate(np.full(20, 1), *log, method="ips", mask=mask & [False, True, True], actions=3)
    with pytest.raises(ValueError, match="mask allows no action in row 0"):
        evaluate(np.ones(20, int), *log, method="ips", mask=mask & False, actions=3)
    with pytest.raises(ValueError, match=r"mask must be booleans of shape \(20, 3\)"):
        evaluate(np.ones(20, int), *log, method="ips", mask=mask[:5], actions=3)


BERNSTEIN = {"interval": "bernstein", "max_weight": 3.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": [1.0, np.nan, 2.0]}, "Input reward contains NaN .first at row 1"),
        ({"reward": [1.0, 2.0]}, r"reward must hold one entry for each row, \(3,\), got \(2,\)"),
        ({"reward": ["a", "b", "c"]}, "reward must hold numbers"),
        ({"propensity": [0.5, 0.0, 0.5]}, r"propensity must lie in \(0, 1\], found 0 in row 1"),
        ({"propensity": [0.5, 1.5, 0.5]}, r"propensity must lie in \(0, 1\], found 1.5 in row 1"),
        ({"propensity": None}, "method='ips' needs the propensity"),
        ({"action": [0, 5, 1]}, "action holds 5, which is not one of the actions 0, 1"),
        ({"policy": [[0.5, 0.6]] * 3}, "sum to 1 in every row"),
        ({"policy": [[1.5, -0.5]] * 3}, "at least 0"),
        ({"policy": [[np.nan, 1.0]] * 3}, "policy holds nan at row 0"),
        ({"policy": [[0.5, 0.5]] * 2}, r"of shape \(3, 2\)"),
        ({"policy": [0, 7, 0], "actions": 2}, "policy holds 7"),
        ({"actions": ["a", "a"]}, "different names"),
        ({"method": "best"}, "method must be one of"),
        ({"interval": "wide"}, "interval must be one of"),
        ({"confidence": 1.0}, "confidence must be a number in"),
        ({"max_weight": 0.0}, "max_weight must be a number in"),
        ({"method": "switch"}, "needs max_weight"),
        ({"interval": "bernstein"}, "needs reward_range"),
        ({"interval": "bernstein", "method": "snips"}, "is for method='ips'"),
        ({**BERNSTEIN, "reward_range": (0, 1)}, "reward goes from 1 to 3"),
        ({**BERNSTEIN, "reward_range": (9, 1)}, "lowest, highest"),
        ({"reward_range": (0, 9)}, "reward_range is only used with interval='bernstein'"),
        ({"method": "dm", "max_weight": 3.0}, "max_weight is not used with method='dm'"),
        ({"reward_model": np.ones((3, 2))}, "reward_model is not used with method='ips'"),
        ({"method": "dr", "folds": 1}, "folds must be an integer"),
        ({"method": "dr", "reward_model": np.ones((3, 5))}, r"shape \(3, 2\)"),
        ({"method": "dr", "reward_model": np.full((3, 2), np.inf)}, "finite"),
        ({"X": np.ones((1, 1)), "policy": [[0.5, 0.5]]}, "at least 2 logged rounds"),
    ],
)  # fmt: skip
def test_bad_input_is_named(change, message):
    given = {
        "policy": [[0.5, 0.5]] * 3,
        "X": np.ones((3, 1)),
        "action": [0, 1, 1],
        "reward": [1.0, 2.0, 3.0],
        "propensity": [0.5, 0.5, 0.5],
        "method": "ips",
    }
    with pytest.raises(ValueError, match=message):
        evaluate(**(given | change))


def test_a_reward_model_that_is_not_a_regressor():
    log = ([[0.5, 0.5]] * 3, np.ones((3, 1)), [0, 1, 1], [1.0, 2.0, 3.0], [0.5] * 3)
    with pytest.raises(ValueError, match="reward_model as an array"):
        evaluate(*log, reward_model="tree")


def test_an_estimate_as_text():
    estimate = Estimate(0.5, 0.4, 0.6, 0.05, 100, 41.7, "dr", "normal", 0.95, 0)
    expected = "0.5000 (95 % interval: 0.4000 to 0.6000; dr, 100 rounds, effectively 42)"
    assert str(estimate) == expected


def test_actions_may_have_names_of_several_types(rng):
    X = rng.normal(size=(200, 2))
    names = np.array([0, "up", "down"], object)
    best, taken = np.digitize(X[:, 0], [-0.5, 0.5]), rng.integers(3, size=200)
    log = (X, names[taken], taken == best, np.full(200, 1 / 3))
    for policy in (names[best], lambda X: names[np.digitize(X[:, 0], [-0.5, 0.5])]):
        assert evaluate(policy, *log, method="snips").value == 1
    tree = DGTBandit(names, max_depth=2, random_state=0).learn_logged(*log).policy()
    chosen = np.array([names.tolist().index(name) for name in tree.predict(X)])
    agrees = chosen == taken
    assert evaluate(tree, *log, method="snips").value == (taken == best)[agrees].mean()
    assert reward_estimates(*log[:3], folds=2).shape == (200, 3)
