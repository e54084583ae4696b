"""DGTBandit: decisions, learning, trees and state."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest
from rounds import all_of, contexts, labels, small_bandit, small_regressor

from hardwood import DGTClassifier, DGTRegressor, ObliqueTree
from hardwood.bandit import Decision, DGTBandit, file
from hardwood.errors import FitInterruptedWarning

METHODS = ["replay", "paper"]


@pytest.fixture
def rounds(rng):
    X = contexts(rng, 300)
    return X, labels(X)


def learned_bandit(rounds, **given):
    bandit = small_bandit(**given)
    bandit.replay(*rounds)
    return bandit


def test_it_learns_the_best_action(rng):
    X = contexts(rng, 3000)
    y = labels(X)
    history = small_bandit(batch_size=64).replay(X, y)
    assert history.reward[-1000:].mean() > 0.85 > 0.6 > history.reward[:50].mean()
    np.testing.assert_allclose(history.mean_reward[-1], history.reward.mean())
    np.testing.assert_array_equal(history.reward, history.action == y)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", ["labels", "rewards", "function"])
def test_replay_is_decide_and_learn(rounds, method, form):
    X, y = rounds
    step, bulk = (small_bandit(method=method) for _ in range(2))
    rewards = np.eye(3)[y] if form == "labels" else 0.1 + 1e6 * np.eye(3)[y]
    decisions = []
    for i, x in enumerate(X):
        decisions.append(step.decide(x))
        step.learn(decisions[-1].token, reward=rewards[i, decisions[-1].action])
    feedback = {
        "labels": y,
        "rewards": rewards,
        "function": lambda i, action: rewards[i, action],
    }[form]
    history = bulk.replay(X, feedback)
    assert history.action.tolist() == [d.action for d in decisions]
    assert history.propensity.tolist() == [d.propensity for d in decisions]
    assert len(history) == bulk.n_rounds_ == step.n_rounds_ == 300
    # They are equal, apart from tokens.
    assert step.tree_ == bulk.tree_
    assert step._engine.state().keys() == bulk._engine.state().keys()
    for name, array in step._engine.state().items():
        np.testing.assert_array_equal(array, bulk._engine.state()[name])


def test_replay_in_parts_is_replay(rounds):
    X, y = rounds
    whole, parts = small_bandit(), small_bandit()
    whole.replay(X, y)
    for rows in (slice(0, 1), slice(1, 120), slice(120, 300)):
        parts.replay(X[rows], y[rows])
    assert all_of(whole) == all_of(parts)


@pytest.mark.parametrize("method", METHODS)
def test_a_loss_is_a_negative_reward(rounds, method):
    by_reward, by_loss = (small_bandit(method=method) for _ in range(2))
    for i, x in enumerate(rounds[0][:60]):
        by_reward.learn(by_reward.decide(x).token, reward=float(i % 3) - 1)
        by_loss.learn(by_loss.decide(x).token, loss=1 - float(i % 3))
    assert all_of(by_reward) == all_of(by_loss)


@pytest.mark.parametrize(("scale", "offset"), [(1e-6, 0.0), (1e6, 0.0), (50.0, 1e6), (-3.0, -7.0)])
def test_rewards_may_be_of_any_scale(rng, scale, offset):
    X = contexts(rng, 2500)
    y = labels(X)
    rewards = offset + scale * np.eye(3)[y]
    bandit = small_bandit(batch_size=64)
    history = bandit.replay(X, rewards)
    best = rewards.max(axis=1)
    lost = np.abs(best - history.reward)[-800:].mean() / abs(scale)
    assert lost < 0.25
    values = bandit.action_values(X)
    assert np.abs(values - offset).max() < 3 * abs(scale)


@pytest.mark.parametrize("found", [1e6, -1e99])
@pytest.mark.parametrize("when", [5, 300])
def test_one_wrong_reward_spoils_nothing(rng, found, when):
    X = contexts(rng, 2000)
    rewards = np.eye(3)[labels(X)]
    rewards[when] = found
    bandit = small_bandit(batch_size=64)
    bandit.replay(X, rewards)
    assert np.mean(bandit.predict(X) == labels(X)) > 0.85


def test_first_rewards_that_are_all_the_same_do_not_set_the_scale(rng):
    X = contexts(rng, 2000)
    rewards = 1000.0 * np.eye(3)[labels(X)]
    rewards[:25] = 0.0
    bandit = small_bandit(batch_size=64)
    bandit.replay(X, rewards)
    assert np.mean(bandit.predict(X) == labels(X)) > 0.85


def test_rare_rewards_keep_their_size(rng):
    """On average over learners, because leaves follow the most recent of few rewards."""
    n, received, values = 6000, [], []
    for seed in range(12):
        rewards = np.zeros((n, 2))
        rewards[rng.random(n) < 0.002] = 50.0
        bandit = small_bandit(n_actions=2, max_depth=1, batch_size=64, random_state=seed)
        received.append(bandit.replay(rng.normal(size=(n, 1)), rewards).reward.mean())
        values.append(bandit.action_values(rng.normal(size=(500, 1))).mean())
    assert np.mean(values) == pytest.approx(np.mean(received), rel=0.5)


@pytest.mark.parametrize(("scale", "offset"), [(100.0, 100.0), (5.0, -10.0), (1.0, 1e6)])
def test_rewards_may_be_of_another_scale_than_the_start_tree(rng, scale, offset):
    X = contexts(rng, 1500)
    start = DGTClassifier(max_depth=3, max_epochs=5, random_state=0).fit(X[:300], labels(X)[:300])
    bandit = small_bandit(batch_size=64, init=start)
    bandit.replay(X, offset + scale * np.eye(3)[labels(X)])
    assert np.mean(bandit.predict(X) == labels(X)) > 0.85
    assert bandit.action_values(X).max() == pytest.approx(offset + scale, abs=0.5 * scale)


def test_actions_have_names(rounds):
    X, y = rounds
    names = ["left", "middle", "right"]
    named, numbered = small_bandit(n_actions=names), small_bandit()
    history = named.replay(X, np.array(names)[y])
    assert history.action.tolist() == np.array(names)[numbered.replay(X, y).action].tolist()
    assert named.actions_ == ("left", "middle", "right")
    assert set(named.predict(X)) <= set(names)
    decision = named.decide(X[0])
    assert isinstance(decision, Decision)
    assert type(decision.action) is str
    assert named.tree_.target_names == ("left", "middle", "right")
    assert named.policy().classes == ("left", "middle", "right")
    assert type(numbered.decide(X[0]).action) is int


@pytest.mark.parametrize("method", METHODS)
def test_propensities_are_what_action_probabilities_say(rounds, method):
    X, _ = rounds
    bandit = learned_bandit(rounds, method=method)
    for x, allowed in zip(X[:20], np.tile([[1, 0, 1], [0, 0, 1], [1, 1, 1]], (7, 1)), strict=False):
        allowed = allowed.astype(bool)
        before = all_of(bandit)
        probabilities = bandit.action_probabilities(x[None], mask=allowed)[0]
        assert all_of(bandit) == before
        decision = bandit.decide(x, allowed)
        # Deciding counts the context into the columns' statistics first, which may change its leaf.
        assert allowed[decision.action]
        assert 0 < decision.propensity <= 1
        assert (probabilities[~allowed] == 0).all()
        np.testing.assert_allclose(probabilities.sum(), 1.0)


@pytest.mark.parametrize("make", [small_bandit, small_regressor])
@pytest.mark.parametrize("is_paper", [False, True])
def test_decisions_name_their_leaf_and_the_version_of_their_tree(rng, make, is_paper):
    """Equal versions are equal trees, also after a learner was saved and loaded."""
    method = {} if not is_paper else {"method": "paper"}
    if make is small_regressor and is_paper:
        method = {"method": "paper_one_point"}
    learner = make(**method)
    trees, leaves = {}, set()
    for i, x in enumerate(contexts(rng, 70)):
        tree_before = learner.tree_ if i else None
        decision = learner.decide(x)
        assert decision.version <= learner.n_rounds_
        if i:
            assert trees.setdefault(decision.version, tree_before) == tree_before
        leaves.add(decision.leaf)
        given = {"reward": float(i % 2)} if make is small_bandit else feedback_of(decision, i)
        learner.learn(decision.token, **given)
        if i % 20 == 7:
            learner = file.loads(file.dumps(learner))
    assert decision.version == learner.n_rounds_ - 1 - (1 if is_paper else 0)
    assert leaves <= set(range(8))
    assert len(leaves) > 1
    assert len(trees) > 10


def feedback_of(decision, i):
    if isinstance(decision.action, tuple):
        return {"losses": (float(i % 3), float(i % 2))}
    return {"loss": float(i % 3)}


def test_leaves_are_those_that_decide(rounds):
    X, _ = rounds
    bandit = learned_bandit(rounds)
    leaves = bandit.apply(X)
    assert [bandit.decide(x).leaf for x in X] == leaves.tolist()
    assert np.unique(leaves).size > 2
    values = bandit.action_values(X)
    for leaf in np.unique(leaves):  # one leaf, one answer
        assert (values[leaves == leaf] == values[leaves == leaf][0]).all()


def test_decisions_are_as_frequent_as_their_propensities(rounds):
    X, _ = rounds
    bandit = learned_bandit(rounds, method="paper", epsilon=0.5)
    taken = np.bincount([bandit.decide(X[0]).action for _ in range(6000)], minlength=3) / 6000
    expected = bandit.action_probabilities(X[:1])[0]
    np.testing.assert_allclose(sorted(expected), [1 / 6, 1 / 6, 2 / 3])  # Eq. (7)
    np.testing.assert_allclose(taken, expected, atol=0.03)


def test_masks_of_a_replay_hold(rounds, rng):
    X, y = rounds
    mask = rng.random((300, 3)) < 0.6
    mask[~mask.any(axis=1), 1] = True
    history = small_bandit().replay(X, y, mask)
    assert mask[np.arange(300), history.action].all()
    bandit = small_bandit()
    assert set(bandit.replay(X, y, [False, True, True]).action) == {1, 2}
    assert set(bandit.predict(X, mask=[True, False, False])) == {0}


@pytest.mark.parametrize("method", METHODS)
def test_the_tree_predicts_as_the_learner(rounds, method):
    X, _ = rounds
    bandit = learned_bandit(rounds, method=method)
    before = all_of(bandit)
    tree, policy = bandit.tree_, bandit.policy()
    np.testing.assert_array_equal(tree.predict(X), bandit.action_values(X))
    np.testing.assert_array_equal(policy.predict(X), bandit.predict(X))
    np.testing.assert_array_equal(bandit.predict(X), bandit.action_values(X).argmax(axis=1))
    assert (tree.task, policy.task) == ("regression", "classification")
    assert policy.n_splits <= tree.n_splits <= 7
    assert "x0" in tree.to_text()
    assert all_of(bandit) == before


def test_a_tree_that_was_taken_does_not_change(rounds):
    bandit = learned_bandit(rounds)
    tree = bandit.tree_
    as_it_was = tree.replace()
    bandit.replay(*rounds)
    assert tree == as_it_was
    assert bandit.tree_ != tree


def test_large_offsets_lose_no_precision(rng):
    X = contexts(rng, 400)
    shifted = X + [0.0, 2.0**30, 2.0**30]
    plain, offset = small_bandit(), small_bandit()
    # Equal except for the rounding of the shifted numbers.
    assert (
        plain.replay(X, labels(X)).action == offset.replay(shifted, labels(X)).action
    ).mean() > 0.9
    np.testing.assert_array_equal(offset.tree_.predict(shifted), offset.action_values(shifted))


def at_the_edges(values_of, low, high):
    """Rows on both sides of a split between two rows, one float64 apart."""
    for _ in range(80):
        middle = low + (high - low) / 2
        is_low = (values_of(middle) == values_of(low)).all(axis=1)[:, None]
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return np.concatenate([low, high])


@pytest.mark.parametrize("n_features", [1, 7, 8, 33])
def test_the_tree_splits_where_the_learner_does_bit_for_bit(rng, n_features):
    X = rng.normal(size=(400, n_features)) * 10.0 ** rng.uniform(-4, 4, n_features)
    X += 1000 * rng.normal(size=n_features)
    bandit = DGTBandit(3, max_depth=5, random_state=0)
    bandit.replay(X, rng.integers(3, size=400))
    edges = at_the_edges(bandit.action_values, X[:200], X[200:])
    np.testing.assert_array_equal(bandit.tree_.predict(edges), bandit.action_values(edges))


def test_so_does_a_tree_of_categories_and_gaps(rng):
    """Indicators and flags are added up in the order of prediction, too."""
    n = 400

    def as_table(numbers):
        table = pd.DataFrame(numbers, columns=["a", "b", "c"])
        table.loc[gaps, "b"] = np.nan
        return table.assign(town=towns, color=colors)[["town", "a", "color", "b", "c"]]

    towns = pd.Categorical(rng.choice(["Ulm", "Bonn", "Kiel"], n))
    colors = pd.Categorical(rng.choice(["red", "blue"], n))
    gaps, X = rng.random(n) < 0.3, rng.normal([0, 5, -300], [1, 2, 40], size=(n, 3))
    bandit = DGTBandit(3, max_depth=5, random_state=0, features=as_table(X))
    bandit.replay(as_table(X), rng.integers(3, size=n))

    def values_of(numbers):
        return bandit.action_values(as_table(numbers))

    edges = at_the_edges(values_of, X, X[::-1])
    for rows in (edges[:n], edges[n:]):
        found = bandit.tree_.predict(as_table(rows))
        np.testing.assert_array_equal(found, values_of(rows))


def test_deciding_alone_does_not_change_the_tree(rounds):
    X, _ = rounds
    bandit = learned_bandit(rounds)
    tree = bandit.tree_
    for x in X[:50] * 3 + 1:
        bandit.decide(x)
    assert bandit.tree_ == tree


@pytest.mark.parametrize("exploration", [5e-324, 1e-310, 1e-200])
def test_tiny_exploration_is_no_exploration(rounds, exploration):
    X, y = rounds
    bandit = small_bandit(exploration=exploration)
    history = bandit.replay(X, y)
    assert all_of_rows_sum_to_one(bandit.action_probabilities(X))
    assert ((history.propensity > 0) & (history.propensity <= 1)).all()


def all_of_rows_sum_to_one(probabilities):
    return np.abs(probabilities.sum(axis=1) - 1).max() < 1e-12


def test_the_rarest_logged_actions_leave_finite_values(rng):
    X = contexts(rng, 60)
    bandit = small_bandit(method="paper")
    bandit.learn_logged(X, labels(X), np.ones(60), 1e-300)
    bandit.learn_logged(X, labels(X), np.ones(60), 0.5)
    assert np.isfinite(bandit.action_values(X)).all()


def test_learning_from_the_log_of_another_policy(rng):
    X = contexts(rng, 2500)
    y = labels(X)
    action = rng.integers(3, size=2500)
    bandit = small_bandit(batch_size=64)
    assert bandit.learn_logged(X, action, action == y, 1 / 3) is bandit
    assert bandit.n_rounds_ == 2500
    assert (bandit.predict(X) == y).mean() > 0.8
    one = small_bandit().learn_logged(X[:1], [2], [1.0], [0.5], mask=[False, False, True])
    assert one.n_rounds_ == 1


@pytest.mark.parametrize("method", METHODS)
def test_it_starts_from_a_classifier(rounds, method):
    X, y = rounds
    names = np.array(["left", "middle", "right"])
    model = DGTClassifier(max_depth=3, random_state=0, max_epochs=20).fit(X, names[y])
    actions = ["right", "left", "middle"]  # in another order
    for init in (model, model.tree_):
        bandit = small_bandit(n_actions=actions, init=init, method=method)
        np.testing.assert_array_equal(bandit.predict(X), model.predict(X))
        expected = model.predict_proba(X)[:, [2, 0, 1]]
        if method == "paper":  # leaves hold scores of a sigmoid, which must not be infinite
            expected = np.clip(expected, 0.01, 0.99)
        np.testing.assert_allclose(bandit.action_values(X), expected, atol=1e-5)
        np.testing.assert_allclose(bandit.tree_.predict(X), expected, atol=1e-5)
    skilled = bandit.replay(X, names[y]).reward[:100].mean()
    assert skilled > small_bandit(method=method).replay(X, y).reward[:100].mean() + 0.2


@pytest.mark.parametrize("lowest", [-4.0, 1000.0])
def test_it_starts_from_a_regressor_of_all_rewards(rounds, lowest):
    X, y = rounds
    rewards = 10.0 * np.eye(3)[y] + lowest
    model = DGTRegressor(max_depth=2, random_state=0, max_epochs=20).fit(X, rewards)
    bandit = small_bandit(init=model)
    np.testing.assert_allclose(bandit.action_values(X), model.predict(X), atol=1e-4)


def test_the_first_rewards_do_not_move_the_values_of_a_start(rounds):
    X, y = rounds
    model = DGTClassifier(max_depth=2, random_state=0, max_epochs=20).fit(X, y)
    bandit = small_bandit(init=model, updates_per_round=0.0)
    before = bandit.tree_.values
    bandit.replay(X[:100], y[:100])  # enough to compute the scale of rewards
    np.testing.assert_allclose(bandit.tree_.values, before, atol=1e-5)


def test_it_starts_from_another_bandit(rounds):
    X, _ = rounds
    first = learned_bandit(rounds)
    second = small_bandit(init=first, random_state=5)
    np.testing.assert_allclose(second.action_values(X), first.action_values(X), atol=1e-5)


def test_it_starts_from_a_tree_with_categories_and_missing_values():
    table = pd.DataFrame(
        {
            "age": [20.0, np.nan, 50.0, 60.0] * 10,
            "town": pd.Categorical(["Ulm", "Bonn", None, "Kiel"] * 10),
        }
    )
    y = np.array(["a", "b", "b", "a"] * 10)
    model = DGTClassifier(max_depth=2, random_state=0, max_epochs=20).fit(table, y)
    bandit = DGTBandit(["a", "b"], init=model, max_depth=3, random_state=0)
    np.testing.assert_allclose(bandit.action_values(table), model.predict_proba(table), atol=1e-5)
    for i in range(4):
        assert bandit.decide(table.iloc[i].to_dict()).action in ("a", "b")
    with pytest.raises(ValueError, match="init has the columns"):
        DGTBandit(["a", "b"], init=model, features=table[["age"]])


def test_a_single_leaf_is_a_start():
    leaf = ObliqueTree.of(np.zeros((0, 2)), bias=[], values=[[1.0, 3.0, 2.0]])
    bandit = small_bandit(init=leaf)
    assert bandit.predict([[0.0, 0.0]]).tolist() == [1]
    np.testing.assert_allclose(bandit.action_values([[9.0, 9.0]]), [[1.0, 3.0, 2.0]], rtol=1e-6)


def test_the_same_seed_gives_the_same_run(rounds):
    runs = [small_bandit(random_state=s).replay(*rounds).action.tolist() for s in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    seeds = {small_bandit(random_state=None)._seed for _ in range(5)}
    assert len(seeds) == 5
    state = np.random.RandomState(3)
    assert small_bandit(random_state=state)._seed != small_bandit(random_state=state)._seed
    generator = np.random.default_rng(3)
    assert small_bandit(random_state=generator)._seed != small_bandit(random_state=generator)._seed


@pytest.mark.parametrize("buffer", ["uniform", "recent"])
def test_memory_of_stored_rounds_is_bounded(rounds, buffer):
    bandit = learned_bandit(rounds, buffer_size=50, buffer=buffer)
    assert len(bandit._engine.state()["actions"]) == 50
    size = len(all_of(bandit))
    bandit.replay(*rounds)
    assert abs(len(all_of(bandit)) - size) < 100  # digits of counters


@pytest.mark.parametrize("how", ["replay", "learn_logged"])
def test_ctrl_c_keeps_what_was_learned(rng, how):
    X = np.repeat(contexts(rng, 2000), 50, axis=0)
    y = labels(X)
    bandit = small_bandit(features=3, batch_size=256)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    given = (X, y) if how == "replay" else (X, y, np.ones(len(y)), 0.5)
    with pytest.warns(FitInterruptedWarning, match="of 100000 rows"):
        found = getattr(bandit, how)(*given)
    assert found is bandit or len(found) == bandit.n_rounds_
    timer.join()
    assert 0 < bandit.n_rounds_ < 100_000
    bandit.learn(bandit.decide(X[0]).token, 1.0)


def test_ctrl_c_in_a_feedback_function_keeps_what_was_learned(rounds):
    def feedback(i, action):
        if i == 30:
            raise KeyboardInterrupt
        return 1.0

    bandit = small_bandit()
    with pytest.warns(FitInterruptedWarning, match="after 30 of 300 rows"):
        history = bandit.replay(rounds[0], feedback)
    assert len(history) == len(history.action) == bandit.n_rounds_ == 30


@pytest.mark.parametrize("depth", [1, 10])
def test_heights_from_1_to_10(rounds, depth):
    bandit = learned_bandit(rounds, max_depth=depth)
    assert bandit.tree_.depth <= depth
    assert len(bandit._engine.tree()["bias"]) == 2**depth - 1


def test_columns_that_never_change_do_not_matter(rounds):
    X, y = rounds
    bandit = small_bandit()
    bandit.replay(np.column_stack([X, np.full(300, 7.0)]), y)
    assert (bandit.tree_.weights[:, 3] == 0).all()


def test_repr(rounds):
    bandit = learned_bandit(rounds)
    bandit.decide(rounds[0][0])
    assert repr(bandit) == "DGTBandit('replay', max_depth=3, 300 rounds, 1 open)"
    assert repr(small_bandit().replay(*rounds)).startswith("History(300 rounds, mean reward 0.")
