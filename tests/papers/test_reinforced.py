"""What the paper on reinforced trees rests on: an estimate of the gradient whose mean is right.

Leon, Denoyer. Policy-gradient Methods for Decision Trees. ESANN 2016.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hardwood import ReinforcedTreeClassifier, learn_from_rewards
from hardwood.learn.reinforced import Reinforced, perfect_parents
from hardwood.learn.rewards import Rewards, row_target
from hardwood.learn.training import Training
from reference import reinforced as reference
from reference.probes import policy_gradient

BASELINES = ("none", "leave_one_out", "value")
# The terms of the gradient: of log pi times the loss, and of the loss itself.
TERMS = {"log-policy": ("weights", "bias"), "loss": ("scores",)}
TOPOLOGIES = {"binary": perfect_parents(2), "n-ary": (-1, 0, 0, 0, 2, 2, 2, 5, 5)}


def policy_of(parents, seed=0) -> reference.Policy:
    rng = np.random.default_rng(seed)
    m = len(parents) - len(set(parents[1:])) - 1
    return reference.Policy(
        parents,
        (0.7 * rng.normal(size=(m, 3))).astype(np.float32),
        (0.7 * rng.normal(size=m)).astype(np.float32),
        rng.normal(size=(m + 1, 3)).astype(np.float32),
    )


def estimates(
    policy,
    baseline,
    *,
    n_repeats,
    n_batches,
    n_trajectories=3,
    entropy=0.0,
    loss="hinge",
    by_lanes=True,
):
    """Gradients of one row, each the mean over n_repeats: arrays (n_batches, ...)."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=3).astype(np.float32)
    X = np.repeat(x[None], n_repeats, axis=0)
    Y, weight = np.ones((n_repeats, 1), np.float32), np.ones(n_repeats, np.float32)
    config = Reinforced(parents=policy.parents, n_trajectories=n_trajectories, baseline=baseline)
    values = None
    if baseline == "value":  # near what trajectories cost from the nodes on, as when learned
        values = np.full((len(policy.parents), 3), 4.0, np.float32)
    found = [
        policy_gradient(
            X,
            Y,
            weight,
            np.array(policy.parents, dtype=np.int32),
            (policy.W, policy.b, policy.alpha),
            loss,
            0.0,
            None,
            values,
            seed,
            1,
            config.policy_options(entropy, "sampled", baseline) | {"by_lanes": by_lanes},
        )
        for seed in range(n_batches)
    ]
    exact = reference.exact_gradient(policy, x.astype(float), Y[0], loss=loss, entropy=entropy)
    return (
        {part: np.stack([f[part] for f in found]) for part in ("weights", "bias", "scores")},
        {"weights": exact.W, "bias": exact.b, "scores": exact.alpha},
    )


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("entropy", [0.0, 0.5])
@pytest.mark.parametrize("by_lanes", [True, False])
def test_the_mean_of_the_estimate_is_the_exact_gradient(
    topology, term, baseline, entropy, by_lanes
):
    """Sec. 2.3: each term alone, with and without a baseline, within five standard errors."""
    policy = policy_of(TOPOLOGIES[topology])
    found, exact = estimates(
        policy, baseline, n_repeats=1000, n_batches=40, entropy=entropy, by_lanes=by_lanes
    )
    for part in TERMS[term]:
        error = found[part].std(axis=0, ddof=1) / np.sqrt(len(found[part]))
        away = np.abs(found[part].mean(axis=0) - exact[part])
        assert (away <= 5 * error + 1e-5).all(), (part, away / error)
        assert np.abs(exact[part]).max() > 20 * error.max(), "too few samples to tell"


@pytest.mark.parametrize("baseline", ["leave_one_out", "value"])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_baseline_makes_the_variance_smaller(topology, baseline):
    policy = policy_of(TOPOLOGIES[topology])
    variance = {}
    for each in ("none", baseline):
        found, _ = estimates(policy, each, n_repeats=1, n_batches=2000)
        variance[each] = sum(found[part].var(axis=0).sum() for part in TERMS["log-policy"])
    assert variance[baseline] < 0.6 * variance["none"]


def test_more_trajectories_make_the_variance_smaller_as_one_over_their_number():
    policy = policy_of(TOPOLOGIES["binary"])
    variance = {}
    for n_trajectories in (2, 8):
        found, _ = estimates(
            policy, "none", n_repeats=1, n_batches=2000, n_trajectories=n_trajectories
        )
        variance[n_trajectories] = found["weights"].var(axis=0).sum()
    assert variance[2] / variance[8] == pytest.approx(4.0, rel=0.15)


def test_a_policy_that_is_sure_is_a_hard_tree():
    """As scores grow, the expected loss becomes that of the greedy path."""
    rng = np.random.default_rng(2)
    policy = policy_of(TOPOLOGIES["n-ary"])
    sure = reference.Policy(policy.parents, 1e3 * policy.W, 1e3 * policy.b, policy.alpha)
    for x in rng.normal(size=(20, 3)):
        path, node = [], 0
        while children := sure.children(node):
            path.append(node)
            node = children[int(sure.pi(node, x).argmax())]
        hard = reference.leaf_loss(sure, sure.leaf(node), np.zeros(1), "hinge", 0.0)
        soft = reference.expected_cost(
            sure, x, np.zeros(1), loss="hinge", parameter=0.0, entropy=0.0
        )
        assert soft == pytest.approx(hard, abs=1e-3)


# All signs of three columns: they are in standard units as they are, so a tree in raw units is the
# one that was learned.
SIGNS = np.array(list(itertools.product([-1.0, 1.0], repeat=3)))
# One batch per pass, and steps along the gradient itself.
PLAIN = Training(optimizer="sgd", schedule="constant", schedule_restarts=0, clip_norm=None)
STEPS = {"parents": perfect_parents(2), "batch_size": len(SIGNS), "training": PLAIN}


def as_reference(tree, temperature=1.0) -> reference.Policy:
    """The policy of a binary tree, whose branches but the first have weights."""
    second = np.arange(2, tree.n_nodes, 2)
    parts = (tree.weights[second], tree.bias[second], tree.scores)
    return reference.Policy(tuple(tree.parents.tolist()), *(p.copy() for p in parts), temperature)


def test_entropy_and_temperature_change_over_the_first_half_of_the_steps():
    """The entropy's price along a line to zero, the temperature geometrically to its last."""
    y, rate, first, last = np.arange(8) % 3, 0.5, 4.0, 0.5
    options = {**STEPS, "entropy_bonus": 0.5, "temperature": (first, last), "random_state": 0}
    start = ReinforcedTreeClassifier(**options, max_epochs=1, learning_rate=1e-30).fit(SIGNS, y)
    learned = ReinforcedTreeClassifier(**options, max_epochs=4, learning_rate=rate).fit(SIGNS, y)
    policy = as_reference(start.policy_)
    for array in (policy.W, policy.b):
        array *= last  # a model's policies have the temperature 1
    price = 0.5 * np.log(3) / np.log(4)  # of the loss of knowing nothing, by the most entropy
    for part in (0.0, 0.5, 1.0, 1.0):
        now = reference.Policy(
            policy.parents, policy.W, policy.b, policy.alpha, first * (last / first) ** part
        )
        slopes = [
            reference.exact_gradient(
                now, x, np.array([c]), loss="cross_entropy", entropy=price * (1 - part)
            )
            for x, c in zip(SIGNS, y, strict=True)
        ]
        for array, name in ((policy.W, "W"), (policy.b, "b"), (policy.alpha, "alpha")):
            array -= rate * np.mean([getattr(slope, name) for slope in slopes], axis=0)
    found = as_reference(learned.policy_)
    np.testing.assert_allclose(last * found.W, policy.W, atol=1e-5)
    np.testing.assert_allclose(last * found.b, policy.b, atol=1e-5)
    np.testing.assert_allclose(found.alpha, policy.alpha, atol=1e-5)


def expected_reward(policy: reference.Policy, reward: np.ndarray) -> float:
    """Mean over the rows, of all trajectories and actions; reward (rows, actions)."""
    total = 0.0
    for x, of_row in zip(SIGNS, reward, strict=True):
        for _, node, p in policy.trajectories(x):
            scores = np.exp(policy.alpha[policy.leaf(node)])
            total += p * (scores / scores.sum()) @ of_row
    return total / len(reward)


def slope_of(policy: reference.Policy, name: str, reward: np.ndarray) -> np.ndarray:
    """Derivative of the expected reward by a part of the policy, from differences."""
    array, step = getattr(policy, name), 1e-5
    slope = np.empty_like(array)
    for at in np.ndindex(array.shape):
        before = array[at]
        array[at] = before + step
        up = expected_reward(policy, reward)
        array[at] = before - step
        slope[at] = (up - expected_reward(policy, reward)) / (2 * step)
        array[at] = before
    return slope


def test_rewards_move_policies_and_actions_along_the_gradient_of_the_expected_reward():
    """One step from many trajectories, after some that have made the leaves differ."""
    reward = np.random.default_rng(0).normal(size=(8, 3))
    rate = 5.0
    options = {**STEPS, "entropy_bonus": 0.0, "learning_rate": rate, "n_trajectories": 5_000}
    parts = ("W", "b", "alpha")
    away, exact = ({name: [] for name in parts} for _ in range(2))
    for seed in range(3):
        start, learned = (
            as_reference(
                learn_from_rewards(
                    SIGNS,
                    lambda rows, done: reward[rows, done],
                    actions=[0, 1, 2],
                    max_epochs=n_steps,
                    random_state=seed,
                    **options,
                ).policy_
            )
            for n_steps in (8, 9)
        )
        for name in parts:
            slope = slope_of(start, name, reward)
            step = getattr(learned, name) - getattr(start, name)
            away[name].append(step / rate - slope)
            exact[name].append(slope)
    for name in parts:
        error = np.sqrt(np.mean(np.square(away[name])) / len(away[name]))
        assert np.abs(np.mean(away[name], axis=0)).max() < 5 * error, name
    for names in (("W", "b"), ("alpha",)):
        slopes, noise = (max(np.abs(of[name]).max() for name in names) for of in (exact, away))
        assert slopes > 5 * noise, "too few samples to tell"


def test_a_reward_of_a_batch_is_credited_to_all_its_rows():
    """Each try less the mean of the others, the same for every row."""
    observed = iter([1.0, 4.0, 7.0])
    rewards = Rewards(lambda rows, done: next(observed), (0, 1), "batch", np.array([0, 1]))
    cost, advantage = rewards(np.zeros((5, 3), np.float32), row_target(5).astype(np.float32))
    np.testing.assert_allclose(cost, -4.0)
    np.testing.assert_allclose(advantage, np.tile([4.5, 0.0, -4.5], (5, 1)))
