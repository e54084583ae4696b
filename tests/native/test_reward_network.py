"""The network that explores for a bandit equals its NumPy reference: values, gradients, rounds."""

from __future__ import annotations

import numpy as np
import pytest

from bandit_engines import HEIGHT, N_COLUMNS, K, engine_of, environment, options_of
from hardwood import _probes
from reference import bandit as bandit_reference
from reference import reward_network as reference

HIDDEN, RATE, DECAY = 11, 0.01, 0.1  # a width that is not a multiple of a vector
LOSSES = ("logistic", "squared", "huber")


def network_and_batch(n=20, seed=0):
    rng = np.random.default_rng(seed)
    network = _probes.RewardNetwork(N_COLUMNS, K, HIDDEN, 32, RATE, DECAY)
    layers = reference.layers_of(network.parameters(), N_COLUMNS, HIDDEN, K)
    layers = [rng.normal(scale=0.5, size=W.shape) for W in layers]
    network.set_parameters(flat_of(layers))
    X = rng.normal(size=(n, N_COLUMNS)).astype(np.float32)
    action = rng.integers(K, size=n).astype(np.int32)
    reward, weight = rng.random(n).astype(np.float32), rng.random(n).astype(np.float32)
    return network, layers, (X, action, reward, weight)


def flat_of(layers):
    parts = []
    for W in layers:
        padded = np.zeros((len(W), -(-W.shape[1] // 8) * 8))
        padded[:, : W.shape[1]] = W
        parts.append(padded.ravel())
    return np.concatenate(parts).tolist()


def test_values_equal_the_numpy_reference():
    network, layers, (X, *_) = network_and_batch()
    expected = reference.activations(layers, X)[-1]
    np.testing.assert_allclose(network.outputs(X), expected, atol=1e-5)
    np.testing.assert_array_equal(network.outputs(X)[:1], network.outputs(X[:1]))  # bit for bit


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_equal_the_numpy_reference(loss):
    network, layers, batch = network_and_batch()
    found = reference.layers_of(network.gradient(*batch, loss), N_COLUMNS, HIDDEN, K)
    for G, expected in zip(found, reference.gradient(layers, *batch, loss), strict=True):
        np.testing.assert_allclose(G, expected, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_differences_of_the_loss(loss):
    _, layers, batch = network_and_batch()
    found = reference.gradient(layers, *batch, loss)
    rng, h = np.random.default_rng(1), 1e-6
    for W, G in zip(layers, found, strict=True):
        for _ in range(8):
            place = rng.integers(W.shape[0]), rng.integers(W.shape[1])
            before, losses = W[place], []
            for step in (-h, h):
                W[place] = before + step
                losses.append(reference.mean_loss(layers, *batch, loss))
            W[place] = before
            assert np.diff(losses)[0] / (2 * h) == pytest.approx(G[place], abs=1e-7)


def test_steps_equal_the_numpy_reference():
    network, layers, batch = network_and_batch()
    by_hand = reference.Network([W.copy() for W in layers], RATE, DECAY)
    for _ in range(10):
        network.step(*batch, "logistic")
        by_hand.step(*batch, "logistic")
    found = reference.layers_of(network.parameters(), N_COLUMNS, HIDDEN, K)
    for W, expected, start in zip(found, by_hand.layers, layers, strict=True):
        np.testing.assert_allclose(W, expected, atol=1e-4)
        assert np.abs(W - start).max() > 0.02


def quick(**changes):
    fields = {"hidden_size": HIDDEN, "batch_size": 16, "updates_per_round": 0.25}
    return options_of("network") | fields | changes


ROUNDS = {
    "network": {},
    "tree": {"who_decides": "tree"},
    "epsilon": {"explores_by_gaps": False, "exploration": 0.2},
    "floor": {"min_propensity": 0.05},
    "squared": {"loss": "squared"},
    "huber": {"loss": "huber"},
}


@pytest.mark.parametrize("name", ROUNDS)
def test_rounds_equal_the_numpy_reference(name):
    n = SAME_TREE + 1 if name == "tree" else 150
    check_rounds(quick(**ROUNDS[name]), environment(n, missing=0.1))


def test_rounds_of_other_rewards_equal_the_numpy_reference():
    """The first rewards are 0 and 1; then the loss and the units change."""
    X, rewards, masks = environment(150)
    rewards[80:] = 5 * rewards[80:] - 1
    by_hand = check_rounds(quick(), (X, rewards, masks))
    assert by_hand.loss == "squared"


def test_rounds_that_change_equal_the_numpy_reference():
    X, rewards, masks = environment(400)
    rewards[250:] = 0.0
    by_hand = check_rounds(quick(), (X, rewards, masks))
    assert len(by_hand.changes) == 1
    assert by_hand.changes[0] > 250


SAME_TREE = 60  # rounds; later, rounding decides on which side of a split a context lies


def check_rounds(options, rounds):
    """Compare all rounds; return the reference.

    Values of about zero, with which the tree begins unless the loss is logistic, have gradients in
    which rounding decides: then its splits drift apart at once, and only the network is compared.
    """
    has_same_tree = options["loss"] == "auto"
    engine = engine_of(options)
    start = engine.state()
    by_hand = reference.Bandit(
        start["parameters"], start["network"], N_COLUMNS, K, HEIGHT, options, seed=7
    )
    for i, (x, reward, mask) in enumerate(zip(*rounds, strict=True)):
        action, propensity, leaf, version = engine.decide(x, mask.astype(np.uint8))
        expected_action, expected_propensity, *expected_place = by_hand.decide(x, mask)
        assert (action, version) == (expected_action, expected_place[1])
        assert leaf == expected_place[0] or not has_same_tree or i > SAME_TREE
        assert propensity == pytest.approx(expected_propensity, abs=2e-3)
        engine.learn(x, action, reward[action], propensity)
        by_hand.learn(x, action, reward[action], propensity)
        if i == SAME_TREE and has_same_tree:
            check_tree(engine, by_hand)
    check_network(start, engine.state(), by_hand)
    assert engine.changes == by_hand.changes
    assert engine.report()["n_effective"] == pytest.approx(n_effective(by_hand))
    return by_hand


def check_network(start, state, by_hand):
    hidden = by_hand.options["hidden_size"]
    found = reference.layers_of(state["network"], N_COLUMNS, hidden, K)
    first = reference.layers_of(start["network"], N_COLUMNS, hidden, K)
    for W, expected in zip(found, by_hand.network.layers, strict=True):
        np.testing.assert_allclose(W, expected, atol=1e-4)
    assert np.abs(found[0] - first[0]).max() > 0.005  # it has learned something at all


def check_tree(engine, by_hand):
    parameters = engine.state()["parameters"]
    tree = bandit_reference.Tree(parameters, N_COLUMNS, K, HEIGHT, by_hand.options)
    np.testing.assert_allclose(tree.W, by_hand.tree.W, atol=5e-3)
    np.testing.assert_allclose(tree.Theta, by_hand.tree.Theta, atol=1e-3)
    assert np.ptp(tree.Theta) > 0.01
    report = engine.report()
    watched = reference.compared(*map(np.array, zip(*by_hand.watched, strict=True)))
    found = [report["n_effective"], report["agreement"]]
    for name in ("tree", "network", "difference"):
        found += report[name]
    np.testing.assert_allclose(found, watched, atol=1e-3)


def n_effective(by_hand):
    return reference.compared(*map(np.array, zip(*by_hand.watched, strict=True)))[0]


def test_falls_are_detected_as_in_the_numpy_reference():
    rng = np.random.default_rng(0)
    values = (rng.random(1500) < np.repeat([0.8, 0.3], 750)).astype(float)
    found = _probes.falls(values.tolist(), 0.05, 20.0)
    assert found == reference.falls(values, threshold=20.0)
    assert [750 <= i < 900 for i in found] == [True]


def test_noise_alone_is_no_fall():
    """As often as not, the rewards are 1: their variance is the largest."""
    values = np.random.default_rng(1).integers(2, size=200_000).astype(float)
    assert _probes.falls(values.tolist(), 0.05, 50.0) == []


def test_deciders_are_compared_as_in_the_numpy_reference():
    rng = np.random.default_rng(0)
    n = 3000
    expected = rng.random((n, K)).astype(np.float32)
    parts = [rng.integers(K, size=n).astype(np.int32) for _ in range(3)]
    propensity, reward = rng.uniform(0.001, 1.0, n), rng.random(n)
    arguments = (expected, *parts, propensity, reward)
    found = _probes.compared_deciders(*arguments)
    np.testing.assert_allclose(found, reference.compared(*arguments), rtol=1e-5, atol=1e-7)


def test_what_a_policy_earns_is_estimated_without_bias():
    """The expectations are wrong; the propensities are right."""
    rng, n = np.random.default_rng(3), 40_000
    true = np.array([0.2, 0.5, 0.8])
    p = np.array([0.5, 0.3, 0.2])
    action = rng.choice(K, size=n, p=p).astype(np.int32)
    reward = (rng.random(n) < true[action]).astype(float)
    wrong = np.full((n, K), 0.4, np.float32)
    tree, network = np.full(n, 2, np.int32), np.full(n, 1, np.int32)
    found = _probes.compared_deciders(wrong, tree, network, action, p[action], reward)
    for (mean, error), value in zip(np.reshape(found[2:], (3, 2)), (0.8, 0.5, 0.3), strict=True):
        assert abs(mean - value) < 4 * error < 0.15


@pytest.mark.parametrize("stop", [3, 18, 37, 150, 260])
@pytest.mark.parametrize("name", ["network", "tree", "auto", "other rewards", "change"])
def test_a_resumed_run_equals_an_uninterrupted_one(name, stop):
    decides = name if name in ("tree", "auto") else "network"
    options = quick(buffer_size=100, who_decides=decides)
    X, rewards, _ = environment(400)
    if name == "other rewards":
        rewards = 3 * rewards
    if name == "change":
        rewards[150:] = 0
    whole, first, second = (engine_of(options) for _ in range(3))
    expected = whole.replay(X, rewards, None)
    found = first.replay(X[:stop], rewards[:stop], None)
    second.set_state(first.state())
    rest = second.replay(X[stop:], rewards[stop:], None)
    for a, b, c in zip(expected, found, rest, strict=True):
        np.testing.assert_array_equal(a, np.concatenate([b, c]))
    for key, value in whole.state().items():
        np.testing.assert_array_equal(value, second.state()[key])
