"""Simulated environments, and bandits that run in them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from hardwood import DGTClassifier, DGTRegressor
from hardwood.bandit import (
    DGTBandit,
    classification_bandit,
    regression_bandit,
    reward_bandit,
    reward_estimates,
    simulate,
)
from hardwood.bandit.baselines import (
    LinearBandit,
    best_constant_losses,
    best_constant_rewards,
    random_rewards,
    supervised_losses,
    supervised_rewards,
)
from hardwood.bandit.tokens import Decision
from hardwood.errors import FitInterruptedWarning


class Recorder:
    """Takes given actions, and records the feedback it gets and when."""

    def __init__(self, actions):
        self.given = list(actions)
        self.n_decisions = 0
        self.feedback = []
        self.masks = []

    def decide(self, x, mask=None):
        self.masks.append(mask)
        self.n_decisions += 1
        action = self.given[(self.n_decisions - 1) % len(self.given)]
        return Decision(action, 0.5, f"round {self.n_decisions - 1}")

    def learn(self, token, **feedback):
        self.feedback.append((self.n_decisions, token, feedback))


@pytest.fixture
def labeled(rng):
    X = rng.normal(size=(300, 3))
    return X, np.array(["low", "middle", "top"])[np.digitize(X @ [1, 1, 0.5], [-0.7, 0.7])]


def test_the_label_has_reward_one(labeled):
    X, y = labeled
    environment = classification_bandit(X, y)
    assert environment.actions == ("low", "middle", "top")
    for t in range(20):
        np.testing.assert_array_equal(environment.context(t), X[t])
        assert [environment.reward(t, a) for a in environment.actions] == [
            float(a == y[t]) for a in environment.actions
        ]
        assert environment.mask(t) is None
    np.testing.assert_array_equal(
        environment.all_rewards(), y[:, None] == np.array(environment.actions)
    )


def test_known_rewards(rng):
    rewards = rng.normal(size=(5, 2))
    environment = reward_bandit(np.arange(5)[:, None], rewards, actions=["a", "b"])
    assert environment.reward(3, "b") == rewards[3, 1]
    np.testing.assert_array_equal(
        environment.rewards_of(np.array([0, 1, 0, 1, 0])), rewards[range(5), [0, 1, 0, 1, 0]]
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "list", "sparse"])
def test_contexts_of_all_kinds_of_tables(kind):
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5], "b": ["x", None, "z"]})
    y = [0, 1, 0]
    if kind in ("list", "sparse"):
        table = [[1.5, 0.0], [2.5, 1.0], [3.5, 0.0]]
        environment = classification_bandit(
            sparse.csr_matrix(table) if kind == "sparse" else table, y
        )
        np.testing.assert_array_equal(
            environment.shuffled(0).context(0), table[np.random.default_rng(0).permutation(3)[0]]
        )
        assert environment.features is None
        return
    table = {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "arrow": pl.from_pandas(frame).to_arrow(),
    }[kind]
    environment = classification_bandit(table, y)
    assert environment.context(2) == {"a": 3.5, "b": "z"}
    assert environment.take(np.array([2, 0])).context(1) == {"a": 1.5, "b": "x"}
    assert environment.features is environment.X
    encoded = environment.encoded()
    assert encoded.X.shape[0] == 3
    assert np.isfinite(encoded.X).all()


def test_order_and_number_of_rounds(labeled):
    X, y = labeled
    shuffled = classification_bandit(X, y, random_state=3)
    again = classification_bandit(X, y).shuffled(3)
    np.testing.assert_array_equal(shuffled.X, again.X)
    assert not np.array_equal(shuffled.X, X)
    assert sorted(shuffled.X[:, 0]) == sorted(X[:, 0])
    np.testing.assert_array_equal(
        shuffled.labels,
        classification_bandit(shuffled.X, y)
        .take(np.arange(300))
        .labels[[np.flatnonzero(X[:, 0] == v)[0] for v in shuffled.X[:, 0]]],
    )
    longer = classification_bandit(X, y, n_rounds=700, random_state=3)
    assert len(longer) == 700
    for first in (0, 300):  # no row repeats before all have been used
        assert len(np.unique(longer.X[first : first + 300, 0])) == 300
    assert len(classification_bandit(X, y, n_rounds=7)) == 7
    np.testing.assert_array_equal(classification_bandit(X, y, n_rounds=301).X[300], X[0])


def test_feedback_is_immediate_by_default(labeled):
    bandit = Recorder(["low", "top"])
    environment = classification_bandit(*labeled, n_rounds=6)
    history = simulate(bandit, environment)
    assert [t for t, _, _ in bandit.feedback] == [1, 2, 3, 4, 5, 6]
    assert history.action.tolist() == ["low", "top"] * 3
    expected = [environment.reward(t, a) for t, a in enumerate(history.action)]
    assert history.reward.tolist() == expected
    assert [feedback["reward"] for _, _, feedback in bandit.feedback] == expected
    np.testing.assert_allclose(history.mean_reward, np.cumsum(expected) / np.arange(1, 7))
    assert bandit.masks == [None] * 6


def test_late_lost_and_out_of_order_feedback(labeled):
    bandit = Recorder(["low"])
    environment = classification_bandit(*labeled, n_rounds=6).delayed([3, 0, -1, 0, 1, 9])
    history = simulate(bandit, environment)
    when = [(t, int(token.split()[1])) for t, token, _ in bandit.feedback]
    # Feedback of round 0 comes at the end of round 3, before that of round 3; of 5 after the last.
    assert when == [(2, 1), (4, 0), (4, 3), (6, 4), (6, 5)]
    assert np.isfinite(history.reward).all()


def test_drawn_delays(labeled):
    X, y = labeled
    environment = classification_bandit(X, y).delayed((2, 5), lost=0.3, random_state=0)
    known = environment.delays[environment.delays >= 0]
    assert set(known) == {2, 3, 4, 5}
    assert 0.2 < (environment.delays == -1).mean() < 0.4
    assert (classification_bandit(X, y).delayed(4).delays == 4).all()
    assert (classification_bandit(X, y).delayed(4, lost=1.0).delays == -1).all()
    short = classification_bandit(X[:2], [0, 1]).delayed((0, 7), random_state=0)  # a pair, not two
    assert len(short.delays) == 2


def test_masks_reach_the_bandit(labeled):
    X, y = labeled
    environment = classification_bandit(X, y).masked(share=0.4, random_state=0)
    assert environment.masks.any(axis=1).all()
    assert 0.4 < environment.masks.mean() < 0.7
    bandit = LinearBandit(environment.actions, random_state=0)
    history = simulate(bandit, environment)
    places = np.array([environment.actions.index(a) for a in history.action])
    assert environment.masks[np.arange(300), places].all()
    fixed = classification_bandit(X, y).masked([True, False, True])
    assert simulate(Recorder(["low"]), fixed).reward.sum() == (y == "low").sum()
    with pytest.raises(ValueError, match="'middle' is not allowed in round 0"):
        simulate(Recorder(["middle"]), fixed)


@pytest.mark.parametrize("kind", ["labels", "rewards"])
def test_sudden_drift_permutes_rewards(kind, rng):
    X = np.arange(40)[:, None]
    y = rng.integers(4, size=40)
    before = classification_bandit(X, y, actions=range(4))
    if kind == "rewards":
        before = reward_bandit(X, before.all_rewards() * rng.normal(size=40)[:, None])
    environment = before.drifting([10, 25], random_state=1)
    one, other = before.all_rewards(), environment.all_rewards()
    np.testing.assert_array_equal(one[:10], other[:10])
    steps = []
    for rows in (slice(10, 25), slice(25, 40)):
        step = [
            int(np.flatnonzero((one[rows, a] == other[rows].T).all(axis=1))[0]) for a in range(4)
        ]
        assert sorted(step) == [0, 1, 2, 3]
        steps.append(step)
    assert all(place != a for a, place in enumerate(steps[0]))
    assert steps[0] != steps[1]


def test_gradual_drift_grows():
    environment = classification_bandit(np.ones((4000, 1)), [0, 1] * 2000)
    after = environment.drifting(1000, until=3000, random_state=0)
    changed = after.labels != environment.labels
    assert not changed[:1000].any()
    assert changed[3000:].all()
    assert abs(changed[1000:3000].mean() - 0.5) < 0.05
    assert changed[1000:1500].mean() < 0.25 < 0.75 < changed[2500:3000].mean()


def test_losses(rng):
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    assert regression_bandit(X, y).loss(3, 1.0) == pytest.approx((1 - y[3]) ** 2)
    assert regression_bandit(X, y, loss="absolute").loss(3, 1.0) == pytest.approx(abs(1 - y[3]))
    bent = regression_bandit(X, y * 0, loss="huber")
    assert [bent.loss(0, z) for z in (0.5, 1.0, 3.0, -3.0)] == [0.125, 0.5, 2.5, 2.5]
    skewed = regression_bandit(X, y, loss=lambda z, y: np.where(z > y, 10 * (z - y), y - z))
    assert skewed.loss(0, y[0] + 1) == pytest.approx(10)
    mirrored = regression_bandit(X, y).drifting(20)
    np.testing.assert_array_equal(mirrored.y[:20], y[:20])
    np.testing.assert_allclose(mirrored.y[20:] - y.mean(), y.mean() - y[20:])


@pytest.mark.parametrize(("numbers", "argument"), [((0.5,), "loss"), (((0.0, 1.0),), "losses")])
def test_numbers_are_tried_one_or_two_at_a_time(rng, numbers, argument):
    environment = regression_bandit(rng.normal(size=(6, 2)), np.arange(6.0)).delayed(1)
    bandit = Recorder(numbers)
    history = simulate(bandit, environment)
    both = numbers[0] if argument == "losses" else (numbers[0], numbers[0])
    expected = [((both[0] - t) ** 2 + (both[1] - t) ** 2) / 2 for t in range(6)]
    np.testing.assert_allclose(history.loss, expected)
    when, _, feedback = bandit.feedback[0]
    assert when == 2
    assert list(feedback) == [argument]
    assert len(bandit.feedback) == 6


def test_progress_is_reported(labeled):
    seen = []
    simulate(Recorder(["low"]), classification_bandit(*labeled), on_rounds=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 300
    assert 50 < len(seen) <= 150


def test_the_linear_learner_is_ridge_regression(rng):
    X, rewards = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    environment = reward_bandit(X, rewards)
    bandit = LinearBandit(2, epsilon=0.5, penalty=2.0, random_state=0)
    history = simulate(bandit, environment)
    for a in range(2):
        rows = np.column_stack([X, np.ones(60)])[history.action == a]
        known = history.reward[history.action == a]
        expected = np.linalg.solve(rows.T @ rows + 2 * np.eye(4), rows.T @ known)
        np.testing.assert_allclose(bandit.weights_[a], expected)
    assert set(history.propensity) == {0.25, 0.75}


def test_the_linear_learner_learns(labeled):
    X, y = labeled
    environment = classification_bandit(X, y, n_rounds=1500, random_state=0)
    history = simulate(LinearBandit(environment.actions, random_state=0), environment)
    assert history.reward[-500:].mean() > 0.65
    one, other = (
        simulate(LinearBandit(environment.actions, random_state=1), environment) for _ in range(2)
    )
    np.testing.assert_array_equal(one.action, other.action)


def test_propensities_are_those_of_the_choices(labeled):
    X, y = labeled
    environment = classification_bandit(X, y, n_rounds=4000, random_state=0).masked(random_state=1)
    history = simulate(LinearBandit(environment.actions, epsilon=0.3, random_state=0), environment)
    # The mean of 1 / p over the chosen is the mean number of allowed actions.
    assert (1 / history.propensity).mean() == pytest.approx(
        environment.masks.sum(axis=1).mean(), rel=0.1
    )


def test_constant_baselines_by_hand():
    X = np.arange(6)[:, None]
    environment = classification_bandit(X, [0, 0, 0, 1, 1, 2])
    np.testing.assert_array_equal(best_constant_rewards(environment), [1, 1, 1, 0, 0, 0])
    masked = environment.masked(np.array([[0, 1, 1]] * 3 + [[1, 1, 1]] * 3, bool))
    # Action 0 is allowed three times with reward 0; action 1 always, with mean reward 2/6.
    np.testing.assert_array_equal(best_constant_rewards(masked), [0, 0, 0, 1, 1, 0])
    numbers = regression_bandit(X, [0.0, 0, 0, 0, 0, 6])
    assert best_constant_losses(numbers).mean() == pytest.approx(5.0)  # of the mean, 1
    absolute = regression_bandit(X, [0.0, 0, 0, 0, 0, 6], loss="absolute")
    assert best_constant_losses(absolute).mean() == pytest.approx(1.0)  # of the median, 0


def test_random_actions_are_allowed_and_even(rng):
    rewards = np.tile([0.0, 1.0, 5.0], (6000, 1))
    environment = reward_bandit(np.ones((6000, 1)), rewards)
    assert random_rewards(environment, 0).mean() == pytest.approx(2.0, abs=0.1)
    masked = environment.masked([True, True, False])
    assert set(random_rewards(masked, 0)) == {0.0, 1.0}


def test_supervised_baselines(labeled, rng):
    X, y = labeled
    environment = classification_bandit(X, y)
    assert supervised_rewards(environment, 3, 0).mean() > 0.8
    only = environment.masked([True, False, False])
    np.testing.assert_array_equal(supervised_rewards(only, 2, 0), y == "low")
    shuffled_labels = classification_bandit(X, rng.permutation(y))
    assert (
        supervised_rewards(shuffled_labels, 3, 0).mean() < 0.5
    )  # tested on rows it was not trained on
    noise = classification_bandit(X, rng.permutation(y), n_rounds=900, random_state=0)
    assert supervised_rewards(noise, 6, 0).mean() < 0.5  # nor on other rounds of the same row
    changed = environment.drifting(150, random_state=0)
    assert supervised_rewards(changed, 3, 0).mean() > 0.75  # a tree for each era
    numbers = regression_bandit(X, X[:, 0])
    assert supervised_losses(numbers, 3, 0).mean() < 0.5 * best_constant_losses(numbers).mean()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: classification_bandit(X, y[:5]), "y must hold one entry for each row"),
        (lambda X, y: classification_bandit(X[:0], y[:0]), "X has no rows"),
        (lambda X, y: classification_bandit(X, np.full(300, np.nan)), "found NaN"),
        (lambda X, y: classification_bandit(X, y, actions=["low"]), "'top', which is not one of"),
        (lambda X, y: classification_bandit(X, y, n_rounds=0), "n_rounds must be an integer >= 1"),
        (lambda X, y: reward_bandit(X, np.ones((5, 2))), r"shape \(300, actions\)"),
        (lambda X, y: reward_bandit(X, np.full((300, 2), np.nan)), "rewards holds nan at row 0"),
        (
            lambda X, y: reward_bandit(X, np.ones((300, 2)), actions=["a"]),
            "2 columns for 1 action",
        ),
        (lambda X, y: regression_bandit(X, y), "y must hold numbers"),
        (lambda X, y: regression_bandit(X, X[:, 0], loss="cubic"), "loss must be one of"),
        (lambda X, y: classification_bandit(X, y).delayed(-1), "delay must be at least 0"),
        (lambda X, y: classification_bandit(X, y).delayed((5, 2)), "with least <= most"),
        (lambda X, y: classification_bandit(X, y).delayed(1.5), "delay must be a number"),
        (lambda X, y: classification_bandit(X, y).delayed([1, 2]), "one entry for each round, 300"),
        (lambda X, y: classification_bandit(X, y).delayed(1, lost=2), "lost must be a number in"),
        (
            lambda X, y: classification_bandit(X, y).drifting(0),
            "at must be an integer from 1 to 299",
        ),
        (lambda X, y: classification_bandit(X, y).drifting([9, 5]), "rounds in ascending order"),
        (lambda X, y: classification_bandit(X, y).drifting([5, 9], until=20), "single round"),
        (lambda X, y: classification_bandit(X, y).drifting(9, until=9), "until must be an integer"),
        (lambda X, y: classification_bandit(X, [0] * 300).drifting(9), "at least 2"),
        (lambda X, y: classification_bandit(X, y).masked([1, 2, 3]), "mask must be booleans"),
        (lambda X, y: simulate(Recorder([7]), classification_bandit(X, y)), "7 is not one of"),
        (lambda X, y: LinearBandit(3, epsilon=2), "epsilon must be a number in"),
    ],
)
def test_bad_input_is_named(make, message, labeled):
    with pytest.raises(ValueError, match=message):
        make(*labeled)


@pytest.mark.parametrize("delay", [None, 0])
def test_names_of_several_types_stay_what_they_are(labeled, delay):
    X, y = labeled
    names = [0, "middle", "top"]
    y = np.array([names[("low", "middle", "top").index(label)] for label in y], object)
    environment = classification_bandit(X, y)
    assert environment.actions == tuple(names)  # numbers come before text
    environment = environment if delay is None else environment.delayed(delay)
    history = simulate(DGTBandit(environment.actions, max_depth=2, random_state=0), environment)
    assert {*history.action.tolist()} == {*names}
    taken = np.array([names.index(action) for action in history.action])
    np.testing.assert_array_equal(environment.rewards_of(taken), history.reward)


def test_a_bandit_of_other_actions_is_refused(labeled):
    bandit = Recorder(["low"])
    bandit.actions_ = ("middle", "low")
    with pytest.raises(ValueError, match="Make the bandit with the simulator's"):
        simulate(bandit, classification_bandit(*labeled))


def test_ctrl_c_stops_a_simulation_although_learners_only_warn(labeled, monkeypatch):
    environment = classification_bandit(*labeled)

    class Interrupted(Recorder):
        def replay(self, X, feedback, mask=None):
            warnings.warn("interrupted", FitInterruptedWarning, stacklevel=1)

    with pytest.raises(KeyboardInterrupt):
        simulate(Interrupted(["low"]), environment)

    def fit(self, X, y):
        warnings.warn("interrupted", FitInterruptedWarning, stacklevel=1)
        return self

    for kind in (DGTClassifier, DGTRegressor):
        monkeypatch.setattr(kind, "fit", fit)
    numbers = regression_bandit(labeled[0], labeled[0][:, 0])
    for marks, of in ((supervised_rewards, environment), (supervised_losses, numbers)):
        with pytest.raises(KeyboardInterrupt):
            marks(of, 2, 0)
    with pytest.raises(KeyboardInterrupt):
        reward_estimates(labeled[0], labeled[1], labeled[0][:, 0])
