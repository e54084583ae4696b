"""Overparameterized splits: the engine's factors, product and steps equal the NumPy reference.

The engine contracts on the side of the columns or of the nodes, whichever is smaller, and never
forms the gradient of a factor whole. Sizes here make either side the smaller one.
"""

from __future__ import annotations

import numpy as np
import pytest

from hardwood import _probes
from reference import layers, optimize

# nodes, columns, hidden sizes
SIZES = [
    (1, 1, []),
    (7, 3, []),
    (3, 20, []),
    (7, 3, [5]),  # d + 1 < m
    (3, 20, [11]),  # d + 1 > m
    (7, 6, [9]),  # d + 1 = m
    (15, 4, [17, 12]),
    (3, 40, [16, 33]),
    (31, 1, [6, 64]),
    (1, 5, [7, 3]),
    (15, 9, [2, 3]),  # a bottleneck narrower than both sides
    (7, 2, [8, 5, 10]),
    (3, 17, [4, 9, 6]),
    (63, 16, [100, 100]),
]
OPTIMIZERS = {
    "sgd": ({"optimizer": "sgd", "momentum": 0.0}, optimize.SGD),
    "sgd with momentum": (
        {"optimizer": "sgd", "momentum": 0.8},
        lambda: optimize.SGD(momentum=0.8),
    ),
    "rmsprop": (
        {"optimizer": "rmsprop", "decay": 0.9, "epsilon": 0.01},
        lambda: optimize.RMSprop(alpha=0.9, eps=0.01),
    ),
    "rmsprop with momentum": (
        {"optimizer": "rmsprop", "momentum": 0.5, "decay": 0.95, "epsilon": 0.1},
        lambda: optimize.RMSprop(momentum=0.5, alpha=0.95, eps=0.1),
    ),
    "adam": (
        {"optimizer": "adam", "momentum": 0.7, "decay": 0.95, "epsilon": 0.01},
        lambda: optimize.Adam(momentum=0.7, beta2=0.95, eps=0.01),
    ),
}
PENALTIES = [
    {},
    {"l2": 0.3},
    {"l1": 0.05},
    {"l1": 0.02, "l2": 0.2},
    {"clip_norm": 0.1},
    {"clip_norm": 0.5, "squared_norm_elsewhere": 9.0},
    {"clip_norm": 0.3, "squared_norm_elsewhere": 1.0, "l1": 0.02, "l2": 0.1},
]
NEUTRAL = {
    "momentum": 0.0,
    "decay": 0.99,
    "epsilon": 1e-8,
    "l1": 0.0,
    "l2": 0.0,
    "clip_norm": np.inf,
    "squared_norm_elsewhere": 0.0,
}


def random_factors(m: int, d: int, hidden: list[int]) -> list[np.ndarray]:
    rng = np.random.default_rng([m, d, *hidden])
    shapes = layers.shapes(m, d, hidden)
    return [(rng.normal(size=shape) / np.sqrt(shape[1])).astype(np.float32) for shape in shapes]


def random_gradients(m: int, d: int, n_steps: int) -> np.ndarray:
    return np.random.default_rng([m, d]).normal(size=(n_steps, m, d + 1)).astype(np.float32)


def engine(factors: list[np.ndarray]) -> _probes.LinearLayers:
    hidden = [len(W) for W in factors[:-1]]
    found = _probes.LinearLayers(len(factors[-1]), factors[0].shape[1] - 1, hidden=hidden)
    found.set(factors)
    return found


def assert_close(found, expected, tolerance: float) -> None:
    assert found.shape == expected.shape
    atol = tolerance * max(1e-3, np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def assert_same_layers(found: _probes.LinearLayers, expected: list[np.ndarray], tolerance: float):
    for W, E in zip(found.factors(), expected, strict=True):
        assert_close(W, E, tolerance)
    assert_close(found.weights(), layers.product(expected), 4 * tolerance)


@pytest.mark.parametrize(("m", "d", "hidden"), SIZES)
def test_the_product_equals_the_reference(m, d, hidden):
    factors = random_factors(m, d, hidden)
    found = engine(factors)
    for W, E in zip(found.factors(), factors, strict=True):
        np.testing.assert_array_equal(W, E)
    assert_close(found.weights(), layers.product(factors), 2e-6)


@pytest.mark.parametrize("hidden", [[], [4], [9, 5], [3, 8, 2]])
@pytest.mark.parametrize(("m", "d"), [(7, 2), (3, 12)])
def test_whole_numbers_collapse_exactly(m, d, hidden):
    rng = np.random.default_rng(m)
    shapes = layers.shapes(m, d, hidden)
    factors = [rng.integers(-3, 4, size=shape).astype(np.float32) for shape in shapes]
    np.testing.assert_array_equal(engine(factors).weights(), layers.product(factors))


@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(("m", "d", "hidden"), SIZES)
def test_one_step_equals_the_reference(m, d, hidden, name, penalties):
    follow(random_factors(m, d, hidden), random_gradients(m, d, 1), name, penalties, 2e-5)


@pytest.mark.parametrize("penalties", [PENALTIES[i] for i in (0, 3, 6)], ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(("m", "d", "hidden"), SIZES)
def test_ten_steps_equal_the_reference(m, d, hidden, name, penalties):
    follow(random_factors(m, d, hidden), random_gradients(m, d, 10), name, penalties, 1e-4)


def follow(factors, gradients, name, penalties, tolerance, learning_rate=0.02):
    options, make = OPTIMIZERS[name]
    found, optimizers = engine(factors), [make() for _ in factors]
    for G in gradients:
        found.step(G, **{**NEUTRAL, **options, **penalties}, learning_rate=learning_rate)
        factors = layers.step(factors, G, optimizers, learning_rate, **penalties)
    assert_same_layers(found, factors, tolerance)


@pytest.mark.parametrize(("m", "d", "hidden"), [(15, 4, [17, 12]), (3, 40, [16, 33])])
def test_clipping_makes_a_step_of_the_given_length(m, d, hidden):
    """The norm is over all factors, not over their product, and includes the other parameters."""
    factors, (G,) = random_factors(m, d, hidden), random_gradients(m, d, 1)
    options = {**NEUTRAL, "optimizer": "sgd", "learning_rate": 2.0}
    norm = np.sqrt(optimize.squared_norm(layers.factor_gradients(factors, G)))

    def length(clip_norm: float, elsewhere: float) -> float:
        found = engine(factors)
        limits = {"clip_norm": clip_norm, "squared_norm_elsewhere": elsewhere}
        found.step(G, **{**options, **limits})
        moves = [W - E for W, E in zip(found.factors(), factors, strict=True)]
        return np.sqrt(optimize.squared_norm(moves))

    assert length(0.01 * norm, 0.0) == pytest.approx(2 * 0.01 * norm, rel=1e-3)
    assert length(0.01 * norm, 3 * norm**2) == pytest.approx(0.01 * norm, rel=1e-3)
    assert length(1.01 * norm, 0.0) == pytest.approx(2 * norm, rel=1e-4)


@pytest.mark.parametrize(("m", "d", "hidden"), [(15, 4, [17, 12]), (3, 40, [16, 33])])
def test_l1_makes_weights_of_factors_exactly_zero(m, d, hidden):
    found = engine(random_factors(m, d, hidden))
    options = {**NEUTRAL, "optimizer": "sgd", "learning_rate": 0.1, "l1": 0.5}
    for G in 0.01 * random_gradients(m, d, 30):
        found.step(G, **options)
    assert all((W == 0).mean() > 0.9 for W in found.factors())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_single_layer_takes_the_optimizers_own_steps(name):
    """L = 1: the only factor is W, including the bias."""
    options, _ = OPTIMIZERS[name]
    (W,), G = random_factors(7, 3, []), random_gradients(7, 3, 6)
    found = engine([W])
    for g in G:
        found.step(g, **{**NEUTRAL, **options, "l1": 0.02}, learning_rate=0.05)
    plain = {key: value for key, value in {**NEUTRAL, **options}.items() if "norm" not in key}
    expected = _probes.optimize(
        W.ravel(), G.reshape(6, -1), **{**plain, "l1": 0.02}, learning_rate=0.05
    )
    np.testing.assert_allclose(found.weights().ravel(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("m", "d", "hidden"), [(7, 3, [4]), (15, 6, [30, 7]), (3, 20, [50, 25])])
def test_a_start_is_the_product_of_random_factors(m, d, hidden):
    """All factors except the last are random, so seeds differ, and gradients reach every factor."""
    W = np.random.default_rng([m, d]).normal(size=(m, d + 1)).astype(np.float32)
    starts = []
    for seed in (0, 1):
        found = _probes.LinearLayers(m, d, hidden=hidden)
        found.start_from(W, seed)
        assert_close(found.weights(), W.astype(np.float64), 2e-5)
        starts.append(found.factors())
        pulls = layers.factor_gradients(found.factors(), np.ones((m, d + 1)))
        assert all((np.abs(pull).max() > 1e-3) for pull in pulls)
    assert all((a != b).mean() > 0.9 for a, b in zip(*starts, strict=True))


@pytest.mark.parametrize("hidden", [[3], [9, 3], [3, 9]])
def test_a_start_needs_layers_at_least_as_wide_as_its_table(hidden):
    found = _probes.LinearLayers(7, 3, hidden=hidden)
    with pytest.raises(ValueError, match="every hidden size must be at least"):
        found.start_from(np.ones((7, 4), np.float32), 0)


@pytest.mark.parametrize(
    "change", [lambda f: f[:-1], lambda f: [*f[:-1], f[-1][:, :-1]], lambda f: [f[0].T, *f[1:]]]
)
def test_factors_of_other_shapes_are_refused(change):
    factors = random_factors(7, 3, [5, 6])
    found = engine(factors)
    with pytest.raises(ValueError, match=r"size|shape|layer"):
        found.set([np.ascontiguousarray(W) for W in change(factors)])
