"""Learning from rewards: two objectives that no gradient gives, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import fbeta_score
from sklearn.model_selection import train_test_split

import hardwood
from hardwood import ReinforcedTreeClassifier, learn_from_rewards
from hardwood.model import PolicyTree

QUICK = {"max_depth": 2, "max_epochs": 5, "random_state": 0}


def imbalanced(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """One row in ten is positive, and most of those lie among negatives."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = 1.5 * X[:, 0] - X[:, 1] + rng.normal(size=n)
    return X, (score > 2.6).astype(int)


def test_f_beta_of_a_batch_is_learned():
    """A measure of all rows together, F2, where the likeliest class is the wrong answer."""
    X, y = imbalanced(3000, 0)
    test_X, test_y = imbalanced(3000, 1)

    def f2(rows, done):
        hits = (y[rows] & done).sum()
        return 5 * hits / (4 * y[rows].sum() + done.sum() + 1e-9)

    learned = learn_from_rewards(
        X,
        f2,
        actions=[0, 1],
        reward_per="batch",
        max_depth=2,
        n_trajectories=50,
        batch_size=100,
        max_epochs=60,
        random_state=0,
    )
    likeliest = ReinforcedTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    ours, theirs = (
        fbeta_score(test_y, model.predict(test_X), beta=2) for model in (learned, likeliest)
    )
    assert ours > theirs + 0.05


def test_a_cost_matrix_is_learned_by_asking_for_entries():
    """Errors cost differently, and only the cost of what was done is ever told."""
    X, y = load_iris(return_X_y=True)
    X = X[:, :2]  # where the last two kinds overlap
    cost = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [10.0, 10.0, 0.0]])
    asked = []

    def reward(rows, done):
        asked.append(len(rows))
        return -cost[y[rows], done]

    learned = learn_from_rewards(
        X,
        reward,
        actions=[0, 1, 2],
        max_depth=3,
        entropy_bonus=1.0,
        batch_size=32,
        max_epochs=400,
        random_state=0,
    )
    likeliest = ReinforcedTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    ours, theirs = (cost[y, model.predict(X)].mean() for model in (learned, likeliest))
    assert ours < 0.6 * theirs
    assert {32 * 10, 22 * 10} <= set(asked)  # ten tries of each row of a batch, at once


def test_what_is_learned_is_a_tree_like_any_other(tmp_path):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, test_X, y, test_y = train_test_split(X, y, random_state=0)
    names = np.array(["malignant", "benign"])
    right = names[y.to_numpy()]
    learned = learn_from_rewards(
        X,
        lambda rows, done: done == right[rows],
        actions=list(names),
        max_depth=2,
        max_epochs=100,
        random_state=0,
    )
    assert (learned.predict(test_X) == names[test_y]).mean() > 0.9
    assert learned.tree_.classes == ("malignant", "benign")
    assert learned.tree_.record["learner"] == "learn_from_rewards"
    learned.save(tmp_path / "tree.hardwood")
    assert hardwood.load(tmp_path / "tree.hardwood") == learned.tree_
    assert -1.0 <= learned.history_[-1].train_loss < -0.8


def test_three_ways_and_a_validation_part():
    X, y = load_iris(return_X_y=True)
    learned = learn_from_rewards(
        X,
        lambda rows, done: done == y[rows],
        actions=[0, 1, 2],
        parents=(-1, 0, 0, 0),
        early_stopping=True,
        max_epochs=200,
        random_state=0,
    )
    assert isinstance(learned.tree_, PolicyTree)
    best = min(epoch.validation_loss for epoch in learned.history_)
    assert best < -0.85
    assert learned.tree_.record["validation_loss"] == best


def test_the_same_seed_gives_the_same_tree_for_any_threads():
    X, y = load_iris(return_X_y=True)
    one, two, other = (
        learn_from_rewards(
            X,
            lambda rows, done: done == y[rows],
            actions=[0, 1, 2],
            **QUICK | {"random_state": seed},
            n_jobs=n_jobs,
        ).policy_
        for seed, n_jobs in ((0, 1), (0, 3), (1, 1))
    )
    assert one == two
    assert one != other


@pytest.mark.parametrize(
    ("reward", "options", "message"),
    [
        ("f1", {}, "reward must be a function"),
        (None, {"actions": [1]}, "at least two"),
        (None, {"actions": [1, 1]}, "actions must differ"),
        (None, {"actions": [0.5, 1.5]}, "texts, integers or booleans"),
        (None, {"actions": ["stay", 1]}, "all of one kind"),
        (None, {"actions": [True, 2]}, "all of one kind"),
        (None, {"actions": [None, 1]}, "texts, integers or booleans"),
        (None, {"actions": {0, 1}}, "texts, integers or booleans"),
        (None, {"reward_per": "table"}, "reward_per must be one of"),
        (None, {"n_trajectories": 1}, "n_trajectories must be an integer from 2 to"),
        (None, {"entropy_bonus": -1}, "entropy_bonus must be a number"),
        (lambda rows, done: 1.0, {}, "expected one number for each of"),
        (lambda rows, done: done, {"reward_per": "batch"}, "expected one number for the batch"),
        (lambda rows, done: done * np.nan, {}, "not finite"),
        (lambda rows, done: None, {}, "expected one number for each of"),
        (lambda rows, done: np.ones((len(done), 2)), {}, "expected one number for each of"),
        (lambda rows, done: 1e30 * done, {}, "a reward of .*e.30; expected at most 1e.15"),
        (lambda rows, done: done.astype(str), {}, "expected one number for each of"),
    ],
)
def test_bad_arguments_are_named(reward, options, message):
    X, y = load_iris(return_X_y=True)
    reward = reward or (lambda rows, done: done == y[rows])
    with pytest.raises((ValueError, TypeError), match=message):
        learn_from_rewards(X, reward, **({"actions": [0, 1, 2]} | QUICK | options))


def test_a_reward_that_is_always_the_same_teaches_nothing():
    """Nothing is better than anything, for rows or batches: policies stay where they started."""
    X, _ = load_iris(return_X_y=True)
    options = {**QUICK, "actions": [0, 1, 2], "entropy_bonus": 0.0}
    start = learn_from_rewards(X, lambda rows, done: np.zeros(len(done)), **options).policy_
    for per, reward in (("row", lambda rows, done: np.ones(len(done))), ("batch", lambda *_: 7)):
        learned = learn_from_rewards(X, reward, reward_per=per, **options).policy_
        for part in ("weights", "bias", "scores"):
            np.testing.assert_array_equal(getattr(learned, part), getattr(start, part))


def test_what_all_rewards_have_in_common_changes_nothing():
    X, y = load_iris(return_X_y=True)
    one, other = (
        learn_from_rewards(
            X, lambda rows, done, add=add: add + (done == y[rows]), actions=[0, 1, 2], **QUICK
        ).policy_
        for add in (0.0, 2.0**20)
    )
    assert one.replace(record=None) == other.replace(record=None)


def test_what_the_reward_raises_is_raised():
    X, _ = load_iris(return_X_y=True)

    def broken(rows, done):
        raise RuntimeError("the other side does not answer")

    with pytest.raises(RuntimeError, match="the other side does not answer"):
        learn_from_rewards(X, broken, actions=[0, 1], **QUICK)
