"""What the paper on reinforced trees rests on: an estimate of the gradient whose mean is right.

Leon, Denoyer. Policy-gradient Methods for Decision Trees. ESANN 2016.
"""

from __future__ import annotations

import numpy as np
import pytest

from hardwood import _native
from hardwood.learn.reinforced import Reinforced, perfect_parents
from hardwood.reference import reinforced as twin

BASELINES = ("none", "leave-one-out", "value")
# The terms of the gradient: of log pi times the loss, and of the loss itself.
TERMS = {"log-policy": ("weights", "bias"), "loss": ("scores",)}
TOPOLOGIES = {"binary": perfect_parents(2), "n-ary": (-1, 0, 0, 0, 2, 2, 2, 5, 5)}


def policy_of(parents, seed=0) -> twin.Policy:
    rng = np.random.default_rng(seed)
    m = len(parents) - len(set(parents[1:])) - 1
    return twin.Policy(
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
    n_samples=3,
    entropy=0.0,
    loss="hinge",
    by_lanes=True,
):
    """Gradients of one row, each the mean over so many repeats: arrays (n_batches, ...)."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=3).astype(np.float32)
    X = np.repeat(x[None], n_repeats, axis=0)
    Y, weight = np.ones((n_repeats, 1), np.float32), np.ones(n_repeats, np.float32)
    config = Reinforced(policy.parents, estimator="sampled", n_samples=n_samples, baseline=baseline)
    values = None
    if baseline == "value":  # near what trajectories cost from the nodes on, as when learned
        values = np.full((len(policy.parents), 3), 4.0, np.float32)
    found = [
        _native.policy_gradient(
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
            config.policy_options(entropy) | {"by_lanes": by_lanes},
        )
        for seed in range(n_batches)
    ]
    exact = twin.exact_gradient(policy, x.astype(float), Y[0], loss=loss, entropy=entropy)
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


@pytest.mark.parametrize("baseline", ["leave-one-out", "value"])
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
    for n_samples in (2, 8):
        found, _ = estimates(policy, "none", n_repeats=1, n_batches=2000, n_samples=n_samples)
        variance[n_samples] = found["weights"].var(axis=0).sum()
    assert variance[2] / variance[8] == pytest.approx(4.0, rel=0.15)


def test_a_policy_that_is_sure_is_a_hard_tree():
    """As scores grow, the expected loss becomes that of the greedy path."""
    rng = np.random.default_rng(2)
    policy = policy_of(TOPOLOGIES["n-ary"])
    sure = twin.Policy(policy.parents, 1e3 * policy.W, 1e3 * policy.b, policy.alpha)
    for x in rng.normal(size=(20, 3)):
        path, node = [], 0
        while children := sure.children(node):
            path.append(node)
            node = children[int(sure.pi(node, x).argmax())]
        hard = twin.leaf_loss(sure, sure.leaf(node), np.zeros(1), "hinge", 0.0)
        soft = twin.expected_cost(sure, x, np.zeros(1), loss="hinge", parameter=0.0, entropy=0.0)
        assert soft == pytest.approx(hard, abs=1e-3)
