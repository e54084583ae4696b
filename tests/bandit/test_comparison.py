"""Comparison of bandits, and its report."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from hardwood.bandit import (
    DGTBandit,
    DGTBanditRegressor,
    classification_bandit,
    compare,
    regression_bandit,
    reward_bandit,
    simulate,
)
from hardwood.bandit.baselines import LinearBandit
from hardwood.bandit.comparison import band, round_numbers


@pytest.fixture
def table(rng):
    X = rng.normal(size=(240, 2))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def small_bandit(environment, seed):
    return DGTBandit(
        environment.actions, max_depth=2, features=environment.features, random_state=seed
    )


@pytest.fixture
def compared(table):
    def make_environment(seed):
        return classification_bandit(*table, random_state=seed)

    return compare(make_environment, {"tree $x$": small_bandit}, n_runs=3, max_depth=2)


def test_curves_are_means_of_the_rounds_so_far(table, compared):
    names = [curve.name for curve in compared.curves]
    assert names == ["tree $x$", "linear", "random", "best constant", "supervised tree"]
    for run in range(3):
        environment = classification_bandit(*table, random_state=run)
        history = simulate(small_bandit(environment, run), environment)
        np.testing.assert_allclose(compared.curves[0].progress[run], history.mean_reward)
        linear = simulate(
            LinearBandit(environment.actions, random_state=run), environment.encoded()
        )
        np.testing.assert_allclose(compared.curves[1].progress[run], linear.mean_reward)
    assert compared.curves[0].last_part[0] == compared.curves[0].values[0, 216:].mean()
    share = table[1].mean()
    np.testing.assert_allclose(compared.curves[3].progress, max(share, 1 - share))


def test_bands_are_student_intervals(rng):
    runs = rng.normal(size=(4, 7))
    mean, low, high = band(runs)
    expected = stats.t.interval(0.95, 3, loc=runs.mean(axis=0), scale=stats.sem(runs, axis=0))
    np.testing.assert_allclose(low, expected[0])
    np.testing.assert_allclose(high, expected[1])
    assert np.isnan(band(runs[:1])[1]).all()
    np.testing.assert_array_equal(band(runs[:1])[0], runs[0])


def test_the_report_has_all_formats(compared):
    text = str(compared)
    assert text.startswith("Mean reward over 240 rounds, 3 runs each")
    assert "supervised tree" in text
    content = json.loads(compared.to_json())
    assert content["rounds"][-1] == content["n_rounds"] == 240
    first = content["curves"][0]
    assert first["low"][-1] <= first["mean"][-1] == first["final"]["value"] <= first["high"][-1]
    assert len(first["runs"]) == 3
    frame = compared.to_frame()
    assert set(frame["name"]) == {curve["name"] for curve in content["curves"]}
    figure = compared.plot()
    lines = figure.axes[0].get_lines()
    assert len(lines) == 5
    assert len(figure.axes[0].collections) == 3  # bands of curves that depend on chance
    assert lines[0].get_ydata()[-1] == first["mean"][-1]
    assert "<table>" in compared.to_html()


def test_one_run_has_no_bands(table):
    found = compare(lambda s: classification_bandit(*table), {"t": small_bandit}, n_runs=1)
    assert "one run: no intervals" in str(found)
    assert len(found.plot().axes[0].collections) == 0
    assert found.to_dict()["curves"][0]["final"]["low"] is None


def test_numbers_and_the_default_bandits(table):
    X, y = table
    seen = []
    found = compare(
        lambda s: regression_bandit(X, X[:, 0], random_state=s),
        n_runs=2,
        max_depth=3,
        on_rounds=lambda name, run, done, n: seen.append((name, run, done, n)),
    )
    assert found.what == "loss"
    assert [c.name for c in found.curves] == ["DGT", "linear", "best constant", "supervised tree"]
    environment = regression_bandit(X, X[:, 0], random_state=0)
    history = simulate(DGTBanditRegressor(max_depth=3, random_state=0), environment)
    np.testing.assert_array_equal(found.curves[0].values[0], history.loss)
    assert {(name, run) for name, run, done, n in seen if done == n == 240} == {
        (name, run) for name in ("DGT", "linear") for run in (0, 1)
    }
    linear = found.curves[1]
    assert linear.last_part.mean() < 0.2 * found.curves[2].values.mean()


def test_tables_and_the_default_bandit(rng):
    X = pd.DataFrame({"a": rng.normal(size=90), "b": rng.choice(["x", "y"], 90)})
    X.loc[::9, "a"] = np.nan
    found = compare(lambda s: classification_bandit(X, X["b"], random_state=s), n_runs=1)
    assert {"DGT", "linear"} <= {curve.name for curve in found.curves}
    assert found.curves[-1].values.mean() > 0.9


@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("has_masks", [False, True])
@pytest.mark.parametrize("kind", ["labels", "rewards"])
def test_native_rounds_are_those_of_decide_and_learn(table, rng, kind, is_named, has_masks):
    """Without delay the native loop runs; with a delay of 0 rounds it is round by round."""
    X, y = table
    names = ["no", "yes"] if is_named else [0, 1]
    environment = classification_bandit(X, np.array(names)[y])
    if kind == "rewards":
        rewards = environment.all_rewards() * rng.integers(1, 9, size=(240, 1))
        environment = reward_bandit(X, rewards, actions=names)
    if has_masks:
        environment = environment.masked(share=0.8, random_state=0)
    one = simulate(DGTBandit(names, max_depth=2, random_state=5), environment)
    other = simulate(DGTBandit(names, max_depth=2, random_state=5), environment.delayed(0))
    np.testing.assert_array_equal(one.action, other.action)
    np.testing.assert_array_equal(one.propensity, other.propensity)
    np.testing.assert_array_equal(one.reward, other.reward)


@pytest.mark.parametrize("loss", ["squared", "huber", "absolute"])
@pytest.mark.parametrize("method", ["two_point", "one_point"])
def test_native_losses_are_those_of_decide_and_learn(table, loss, method):
    X, _ = table
    environment = regression_bandit(X, X[:, 0], loss=loss)
    options = {"max_depth": 2, "method": method, "random_state": 5}
    one = simulate(DGTBanditRegressor(**options), environment)
    other = simulate(DGTBanditRegressor(**options), environment.delayed(0))
    np.testing.assert_allclose(one.loss, other.loss, rtol=1e-5, atol=1e-6)


def test_delayed_and_lost_feedback_reaches_the_bandit(table):
    environment = classification_bandit(*table, random_state=0).delayed(
        (0, 30), lost=0.2, random_state=1
    )
    bandit = DGTBandit(environment.actions, max_depth=2, random_state=0)
    history = simulate(bandit, environment)
    assert bandit.n_rounds_ == (environment.delays >= 0).sum()
    assert bandit.n_open_ == (environment.delays < 0).sum()
    assert len(history) == 240


def test_wide_tables_leave_the_linear_learner_out(table, monkeypatch):
    monkeypatch.setattr("hardwood.bandit.comparison._MAX_LINEAR_ENTRIES", 10)
    found = compare(lambda s: classification_bandit(*table), {"t": small_bandit}, n_runs=1)
    assert "linear" not in [curve.name for curve in found.curves]
    assert "the linear learner was left out: its matrices for 3 columns and 2 actions" in str(found)


def test_round_numbers_to_print():
    assert round_numbers(1) == [1]
    assert round_numbers(7) == [1, 2, 5, 7]
    assert round_numbers(20) == [1, 2, 5, 10, 20]
    assert round_numbers(10992)[-3:] == [5000, 10000, 10992]
    assert len(round_numbers(10**8)) <= 11


def test_bad_input_is_named(table):
    def make_environment(seed):
        return classification_bandit(*table, n_rounds=20 + seed)

    with pytest.raises(ValueError, match="must return 20 rounds every time, got 21"):
        compare(make_environment, {"t": small_bandit}, n_runs=2)
    with pytest.raises(ValueError, match="n_runs must be an integer"):
        compare(make_environment, {"t": small_bandit}, n_runs=0)
    with pytest.raises(ValueError, match="'random' is the name of a baseline"):
        compare(make_environment, {"random": small_bandit}, n_runs=1)
    kept = compare(make_environment, {"random": small_bandit}, n_runs=1, with_baselines=False)
    assert [curve.name for curve in kept.curves] == ["random"]
