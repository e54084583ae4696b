"""Bad input: an error that names the argument, and an unchanged learner."""

from __future__ import annotations

import numpy as np
import pytest
from rounds import all_of, contexts, labels, small_bandit, small_regressor

from hardwood import ObliqueTree
from hardwood.bandit import DGTBandit, DGTBanditRegressor
from hardwood.errors import NotStartedError, TableError

NAN, INF = float("nan"), float("inf")

CONTEXTS = {
    "too short": ([1.0, 2.0], "x has 2 entries, but DGTBandit expects 3"),
    "too long": (np.zeros(4), "x has 4 entries"),
    "empty": ([], "x has 0 entries"),
    "nan": ([1.0, NAN, 2.0], r"x: feature 'x1' is missing \(NaN\)"),
    "nan array": (np.array([1.0, NAN, 2.0]), "x: feature 'x1' is missing"),
    "nan float32": (np.array([1.0, NAN, 2.0], np.float32), "x: feature 'x1' is missing"),
    "none": ([1.0, None, 2.0], "x: feature 'x1' is missing"),
    "infinity": ([1.0, 2.0, INF], "x: .*x2|x: column 2"),
    "infinity array": (np.array([-INF, 2.0, 1.0]), "x: .*-inf"),
    "too large": (np.array([1.0, 1e60, 1.0]), "x: feature 'x1' is 1e.60"),
    "text": (["a", "b", "c"], "x: .*text 'a'"),
    "mixed": ([1.0, "b", 2.0], "x: .*text 'b'"),
    "digits": (["1", "2", "3"], "x: .*text '1'"),
    "complex": (np.array([1.0 + 1j, 0, 0]), "x: Complex"),
    "nested": ([[1.0], [1.0, 2.0], 3.0], "x: |x must"),
    "matrix": (np.zeros((1, 3)), "one row"),
    "number": (3.0, "row"),
    "word": ("abc", "row"),
    "nothing": (None, "row"),
}


@pytest.fixture(params=["fresh", "after some rounds"])
def bandit(request, rng):
    if request.param == "fresh":
        return small_bandit(features=3)
    bandit = small_bandit()
    X = contexts(rng)
    bandit.replay(X, labels(X))
    bandit.decide(X[0])
    return bandit


@pytest.mark.parametrize("name", CONTEXTS)
def test_contexts(bandit, name):
    x, words = CONTEXTS[name]
    before = all_of(bandit)
    with pytest.raises(TableError, match=words):
        bandit.decide(x)
    assert all_of(bandit) == before


@pytest.mark.parametrize("name", ["nan", "infinity", "text", "number", "matrix"])
def test_an_invalid_first_context_starts_nothing(name):
    bandit = small_bandit()
    before = all_of(bandit)
    with pytest.raises(TableError, match=r"x|row"):
        bandit.decide(CONTEXTS[name][0])
    assert all_of(bandit) == before
    assert bandit.decide([1.0, 2.0]).action in range(3)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ([False] * 3, "mask allows no action"),
        ([True] * 2, "mask must be 3 booleans"),
        ([[True] * 3], "mask must be 3 booleans"),
        ([1, 0, 1], "mask must be 3 booleans"),
        ([0.5, 1.0, 1.0], "mask must be 3 booleans"),
        ("yes", "mask must be 3 booleans"),
    ],
)
def test_masks(bandit, mask, words):
    before = all_of(bandit)
    with pytest.raises(ValueError, match=words):
        bandit.decide([0.0, 1.0, 2.0], mask)
    assert all_of(bandit) == before


REWARDS = [
    (NAN, ValueError),
    (INF, ValueError),
    (-INF, ValueError),
    (np.float32("nan"), ValueError),
    (10**400, ValueError),
    (1e101, ValueError),
    ("1", TypeError),
    (1 + 0j, TypeError),
    ([1.0], TypeError),
    (np.array([1.0, 2.0]), TypeError),
]


@pytest.mark.parametrize("name", ["reward", "loss"])
@pytest.mark.parametrize(("value", "error"), REWARDS, ids=lambda v: repr(v)[:20])
def test_rewards(bandit, name, value, error):
    token = bandit.decide([0.0, 1.0, 2.0]).token
    before = all_of(bandit)
    with pytest.raises(error, match=f"{name} must be a"):
        bandit.learn(token, **{name: value})
    assert all_of(bandit) == before
    bandit.learn(token, **{name: True})  # the decision is still open, and 1 is 1


@pytest.mark.parametrize("given", [{}, {"reward": 1.0, "loss": -1.0}])
def test_a_reward_or_a_loss(bandit, given):
    token = bandit.decide([0.0, 1.0, 2.0]).token
    with pytest.raises(TypeError, match="give either reward= or loss="):
        bandit.learn(token, **given)


LOGS = {
    "propensity 0": ({"propensity": [0.5, 0.0]}, r"propensity must lie in \(0, 1\], found 0"),
    "propensity above 1": ({"propensity": [0.5, 1.1]}, "propensity must lie in"),
    "propensity below 0": ({"propensity": -0.5}, "propensity must lie in"),
    "propensity nan": ({"propensity": [0.5, NAN]}, "Input propensity contains"),
    "propensity text": ({"propensity": ["a", "b"]}, "propensity must hold numbers"),
    "propensity short": ({"propensity": [0.5]}, "propensity must hold one entry for each"),
    "reward nan": ({"reward": [NAN, 1.0]}, "Input reward contains"),
    "reward infinite": ({"reward": [1.0, INF]}, "Input reward contains"),
    "reward too large": ({"reward": [1.0, -1e101]}, "largest reward must be a finite"),
    "reward none": ({"reward": [1.0, None]}, "reward must hold numbers, .* None"),
    "reward short": ({"reward": [1.0]}, "reward must hold one entry"),
    "action unknown": ({"action": [0, 3]}, "action holds 3, which is not one"),
    "action negative": ({"action": [-1, 0]}, "action holds -1"),
    "action text": ({"action": ["a", "b"]}, "action holds 'a'"),
    "outside mask": ({"mask": [[True] * 3, [True, False, True]]}, "action takes 1 in row 1"),
    "mask empty": ({"mask": [[True] * 3, [False] * 3]}, "mask allows no action in row 1"),
    "mask short": ({"mask": [[True] * 2] * 2}, "mask must be booleans"),
    "contexts short": ({"X": [[1.0, 2.0]] * 2}, "X: .* 2 features"),
    "contexts nan": ({"X": [[1.0, 2.0, 3.0], [NAN, 2.0, 3.0]]}, "X: feature 'x0' is missing"),
    "contexts infinite": ({"X": [[1.0, 2.0, 3.0], [INF, 2.0, 3.0]]}, "X: .*infinity"),
}


@pytest.mark.parametrize("name", LOGS)
def test_logs(bandit, name):
    change, words = LOGS[name]
    whole = {
        "X": [[0.0, 1.0, 2.0], [1.0, 0.0, 2.0]],
        "action": [0, 1],
        "reward": [1.0, 0.0],
        "propensity": [0.5, 0.5],
    }
    before = all_of(bandit)
    with pytest.raises(ValueError, match=words):
        bandit.learn_logged(**(whole | change))
    assert all_of(bandit) == before
    assert bandit.learn_logged(**whole).n_rounds_ in (2, 42)


@pytest.mark.parametrize(
    ("feedback", "words"),
    [
        ([0, 1, 5], "feedback holds 5, which is not one"),
        ([0, 1], "feedback must hold one entry"),
        (np.zeros((3, 2)), "feedback must hold numbers of shape .*or 3 labels"),
        (np.zeros((3, 3, 1)), "feedback must hold numbers of shape .*or 3 labels"),
        (np.full((3, 3), "a"), "feedback must hold numbers of shape .*or 3 labels"),
        ([[0.0, NAN, 0.0]] * 3, "feedback holds nan at row 0, column 1"),
        ([[0.0, 0.0, 1e101]] * 3, "feedback holds 1e.101 at row 0, column 2"),
    ],
)
def test_replayed_feedback(bandit, feedback, words):
    X = np.arange(9.0).reshape(3, 3)
    before = all_of(bandit)
    with pytest.raises(ValueError, match=words):
        bandit.replay(X, feedback)
    with pytest.raises(ValueError, match="mask allows no action in row 0"):
        bandit.replay(X, [0, 1, 2], mask=np.zeros((3, 3), bool))
    assert all_of(bandit) == before


def test_a_feedback_function_that_fails_keeps_the_rounds_before():
    bandit = small_bandit()
    X = np.arange(12.0).reshape(4, 3)
    with pytest.raises(ValueError, match="feedback of row 2 must be a finite"):
        bandit.replay(X, lambda i, action: NAN if i == 2 else 1.0)
    assert bandit.n_rounds_ == 2
    with pytest.raises(KeyError):
        bandit.replay(X, lambda i, action: {}[action])
    assert bandit.n_rounds_ == 2


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"n_actions": 1}, ValueError, "n_actions must be an integer from 2"),
        ({"n_actions": 2.0}, ValueError, "n_actions"),
        ({"n_actions": "ab"}, ValueError, "n_actions"),
        ({"n_actions": ["a"]}, ValueError, "n_actions must be from 2"),
        ({"n_actions": ["a", "a"]}, ValueError, "n_actions.*occurs twice"),
        ({"n_actions": [None, 1]}, TypeError, "n_actions"),
        ({"n_actions": {"a", "b"}}, TypeError, "n_actions .* got a set"),
        ({"method": "best"}, ValueError, "method must be one of"),
        ({"max_depth": 0}, ValueError, "max_depth must be an integer from 1 to 10"),
        ({"max_depth": 11}, ValueError, "max_depth"),
        ({"max_open": 0}, ValueError, "max_open"),
        ({"learning_rate": 0.0}, ValueError, "learning_rate must be a number in"),
        ({"learning_rate": NAN}, ValueError, "learning_rate"),
        ({"learning_rate": 1e30}, ValueError, "learning_rate"),
        ({"exploration": -0.1}, ValueError, "exploration"),
        ({"method": "paper", "epsilon": 1.1}, ValueError, "epsilon.* 1]"),
        (
            {"method": "paper", "exploration": 2.0},
            ValueError,
            "exploration is not used with .*'replay'",
        ),
        (
            {"method": "paper", "batch_size": 8},
            ValueError,
            "batch_size is not used with method='paper'",
        ),
        ({"method": "paper", "buffer": "recent"}, ValueError, "buffer is not used"),
        (
            {"epsilon": 0.1},
            ValueError,
            "epsilon is not used with method='replay', only with 'network' or 'paper'",
        ),
        ({"gradient_accumulation": 2}, ValueError, "gradient_accumulation is not used"),
        ({"learning_rate": "fast"}, ValueError, "learning_rate must be a number"),
        ({"buffer": "newest"}, ValueError, "buffer must be one of"),
        ({"buffer_size": 0}, ValueError, "buffer_size"),
        ({"batch_size": True}, ValueError, "batch_size"),
        ({"learning_speed": 1.0}, TypeError, "argument 'learning_speed'"),
        ({"random_state": -1}, ValueError, "random_state"),
        ({"random_state": "a"}, ValueError, "random_state"),
        ({"features": 0}, ValueError, "features must be an integer"),
        ({"features": True}, ValueError, "features"),
        ({"features": "abc"}, ValueError, "features must be None"),
        ({"features": []}, ValueError, "features must be None"),
        ({"features": ["a", "a"]}, ValueError, "must be unique"),
        ({"features": [1, 2]}, ValueError, "features: .*2D"),
        ({"init": 3}, TypeError, "init must be None"),
    ],
)
def test_constructor(given, error, words):
    with pytest.raises(error, match=words):
        small_bandit(**given)


def tree(depth=1, classes=("a", "b", "c"), k=3, **more):
    m = 2**depth - 1
    values = np.full((m + 1, k), 1 / k)
    return ObliqueTree.of(np.ones((m, 2)), bias=np.zeros(m), values=values, classes=classes, **more)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"init": tree(4)}, "init has depth 4, more than max_depth=3"),
        ({"init": tree(classes=("a", "b", "x"))}, "init has the classes"),
        ({"init": tree(classes=None, k=2)}, "init has 2 outputs"),
        ({"init": tree(), "features": 5}, "features says otherwise"),
        ({"init": tree(), "features": ["u", "v"]}, "features says otherwise"),
        ({"init": tree(), "features": np.zeros((2, 5))}, "init has the columns"),
        (
            {"init": tree(classes=None, leaf_weights=np.ones((2, 3, 2)))},
            "init has linear leaves",
        ),
    ],
)
def test_trees_to_start_from(given, words):
    with pytest.raises(ValueError, match=words):
        small_bandit(n_actions=["a", "b", "c"], **given)


@pytest.mark.parametrize("make", [small_bandit, small_regressor])
@pytest.mark.parametrize("call", [lambda b: b.predict(np.zeros((1, 2))), lambda b: b.tree_])
def test_a_learner_without_contexts_says_so(make, call):
    with pytest.raises(NotStartedError, match="no context yet"):
        call(make())
    assert not hasattr(make(), "tree_")


REGRESSION = [
    ("two_point", {"loss": 1.0}, TypeError, "give losses"),
    ("two_point", {}, TypeError, "give losses"),
    ("two_point", {"losses": 3.0}, TypeError, "losses must be the pair"),
    ("two_point", {"losses": (1.0, 2.0, 3.0)}, TypeError, "losses must be the pair"),
    ("two_point", {"losses": (1.0, NAN)}, ValueError, r"losses\[1\] must be a finite"),
    ("two_point", {"losses": (INF, 1.0)}, ValueError, r"losses\[0\] must be a finite"),
    ("two_point", {"losses": ("1", 1.0)}, TypeError, r"losses\[0\] must be a number"),
    ("two_point", {"losses": (-1e308, 1e308)}, ValueError, r"losses\[0\] must be a finite"),
    ("two_point", {"losses": (-9e99, 9e99)}, ValueError, "slope of the loss must be a finite"),
    ("one_point", {"losses": (1.0, 2.0)}, TypeError, "give loss="),
    ("one_point", {}, TypeError, "give loss="),
    ("one_point", {"loss": 1.0, "losses": (1.0, 2.0)}, TypeError, "give loss= only"),
    ("one_point", {"loss": NAN}, ValueError, "loss must be a finite"),
    ("one_point", {"loss": INF}, ValueError, "loss must be a finite"),
    ("one_point", {"loss": "a"}, TypeError, "loss must be a number"),
    ("one_point", {"loss": 9e99}, ValueError, "slope of the loss must be a finite"),
]


@pytest.mark.parametrize(("method", "given", "error", "words"), REGRESSION)
def test_losses_of_numbers(method, given, error, words):
    learner = small_regressor(method=method)
    token = learner.decide([1.0, 2.0]).token
    before = all_of(learner)
    with pytest.raises(error, match=words):
        learner.learn(token, **given)
    assert all_of(learner) == before


@pytest.mark.parametrize(
    ("feedback", "given", "error", "words"),
    [
        ([1.0, NAN], {}, ValueError, "Input feedback contains"),
        ([1.0], {}, ValueError, "feedback must hold one entry"),
        (["a", "b"], {}, ValueError, "feedback must hold numbers"),
        ([1.0, 2.0], {"loss": "absolute"}, ValueError, "loss must be one of"),
        ([1.0, 2.0], {"loss": "huber", "delta": 0.0}, ValueError, "delta must be a number"),
        ([1.0, 2.0], {"delta": 0.5}, ValueError, "delta is only used with loss='huber'"),
        (lambda i, tried: tried**2, {"loss": "huber"}, ValueError, "loss is not used when"),
    ],
)
def test_replayed_losses(feedback, given, error, words):
    learner = small_regressor()
    before = all_of(learner)
    with pytest.raises(error, match=words):
        learner.replay([[1.0, 2.0], [3.0, 4.0]], feedback, **given)
    assert all_of(learner) == before


@pytest.mark.parametrize("answer", [1.0, [1.0], [1.0, NAN], ["a", "b"], None])
def test_a_loss_function_must_return_one_number_for_each_try(answer):
    learner = small_regressor()
    with pytest.raises((ValueError, TypeError), match="loss of row 0"):
        learner.replay([[1.0, 2.0]], lambda i, tried: answer)
    assert learner.n_rounds_ == 0


@pytest.mark.parametrize("init", [tree(), tree(classes=None, k=2)])
def test_a_regressor_starts_from_one_regression_output(init):
    with pytest.raises(ValueError, match="init must be a regression tree of one output"):
        DGTBanditRegressor(init=init)


def test_positional_arguments_are_few():
    with pytest.raises(TypeError):
        DGTBandit(3, "paper")  # type: ignore[misc]
