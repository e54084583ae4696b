"""Claims of the DGT paper (Karthikeyan et al., TMLR 2022), held against the NumPy reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import fractional_matrix_power
from scipy.special import softmax

from hardwood.parameters import hidden_size
from reference import dgt, layers, losses, optimize
from reference.dgt import Relaxation

HEIGHTS = range(1, 9)

SCALED = Relaxation(quantizer="scaled")
PRODUCT = Relaxation(path="product")
PRODUCT_SOFTMAX = Relaxation(path="product_softmax")


def annealed(path: str, sharpness: float) -> Relaxation:
    return Relaxation(path=path, routing="annealed", sharpness=sharpness)


ALL_FORMS = [
    Relaxation(),
    SCALED,
    PRODUCT,
    PRODUCT_SOFTMAX,
    *(annealed(path, 1.5) for path in ("sum", "product", "product_softmax")),
]
seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=40)


def random_scores(height: int, n: int = 50, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([height, seed]).normal(size=(n, 2**height - 1))


def all_signs(height: int) -> np.ndarray:
    m = 2**height - 1
    return 2.0 * ((np.arange(2**m)[:, None] >> np.arange(m)) & 1) - 1.0


def tied_scores(height: int, n: int = 50) -> np.ndarray:
    """Scores on the two edges that matter: exactly 0, and exactly 1 away from it."""
    rng = np.random.default_rng(height)
    return rng.choice([-1.5, -1.0, -0.25, 0.0, 0.25, 1.0, 1.5], size=(n, 2**height - 1))


@pytest.mark.parametrize("height", HEIGHTS)
def test_proposition_1_the_sum_form_of_a_path_equals_its_product_form(height):
    for a in (random_scores(height), tied_scores(height)):
        np.testing.assert_array_equal(dgt.path_functions_sum(a), dgt.path_functions_product(a))


@pytest.mark.parametrize("height", HEIGHTS)
def test_exactly_one_path_is_open_and_it_leads_to_the_leaf(height):
    a = random_scores(height)
    q = dgt.path_functions_product(a)
    np.testing.assert_array_equal(q.sum(axis=1), 1.0)
    np.testing.assert_array_equal(q.argmax(axis=1), dgt.leaf_of(a))


@pytest.mark.parametrize("height", HEIGHTS)
def test_the_leaf_is_the_one_arg_max_of_the_path_sums_also_at_ties(height):
    for a in (random_scores(height), tied_scores(height)):
        sums = dgt.path_sums(dgt.sign(a))
        assert ((sums == height).sum(axis=1) == 1).all()
        np.testing.assert_array_equal(sums.argmax(axis=1), dgt.leaf_of(a))


def test_a_score_of_zero_goes_right():
    assert dgt.leaf_of(np.zeros((1, 7)))[0] == 7
    assert dgt.leaf_of(np.full((1, 7), -0.0))[0] == 7


@pytest.mark.parametrize("height", [1, 2, 3])
def test_softmax_over_path_sums_is_a_product_over_nodes_for_every_sign_pattern(height):
    s = all_signs(height)
    np.testing.assert_allclose(
        dgt.path_probabilities(s), dgt.path_probabilities_by_nodes(s), rtol=1e-13
    )


@pytest.mark.parametrize("height", HEIGHTS)
def test_softmax_over_path_sums_is_a_product_over_nodes(height):
    s = dgt.sign(random_scores(height))
    q = dgt.path_probabilities(s)
    np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-13)
    np.testing.assert_allclose(q, dgt.path_probabilities_by_nodes(s), rtol=1e-12)


def test_the_product_over_nodes_needs_hard_signs():
    s = 0.3 * dgt.sign(random_scores(3)) * np.arange(1, 8)
    gap = np.abs(dgt.path_probabilities(s) - dgt.path_probabilities_by_nodes(s)).max()
    assert gap > 1e-2


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("height", [1, 2, 3, 5])
def test_the_backward_pass_is_the_derivative_of_the_soft_prediction_straight_through(height, K):
    rng = np.random.default_rng([height, K])
    a, Theta = random_scores(height, n=6), rng.normal(size=(2**height, K))
    g = rng.normal(size=(6, K))
    s, step = dgt.sign(a), 1e-6
    expected = np.zeros_like(a)
    for i in range(a.shape[1]):
        e = step * (np.arange(a.shape[1]) == i)
        change = dgt.soft_prediction(s + e, Theta) - dgt.soft_prediction(s - e, Theta)
        expected[:, i] = (g * change).sum(axis=1) / (2 * step)
    expected *= np.abs(a) <= 1
    np.testing.assert_allclose(dgt.score_gradient(a, Theta, g), expected, rtol=1e-6, atol=1e-9)


def test_gradients_pass_at_a_distance_of_exactly_one_and_not_beyond():
    a = np.array([[1.0], [-1.0], [np.nextafter(1.0, 2.0)], [np.nextafter(-1.0, -2.0)]])
    da = dgt.score_gradient(a, np.array([[0.0], [1.0]]), np.ones((4, 1)))
    assert (da[:2] != 0).all()
    assert (da[2:] == 0).all()


def test_depth_one_with_one_output_has_the_gradient_written_out_by_hand():
    # q_right = sigma(2 s), so d q_right / ds = 2 q_right (1 - q_right)
    a, Theta, g = np.array([[0.5], [-0.5]]), np.array([[1.0], [4.0]]), np.array([[1.0], [1.0]])
    q = 1 / (1 + np.exp(-2 * dgt.sign(a)))
    np.testing.assert_allclose(dgt.score_gradient(a, Theta, g), 2 * q * (1 - q) * 3.0)


def test_only_the_leaf_reached_is_updated():
    rng = np.random.default_rng(0)
    X, W, b = rng.normal(size=(5, 3)), rng.normal(size=(7, 3)), rng.normal(size=7)
    g = rng.normal(size=(5, 2))
    leaf = dgt.leaf_of(dgt.scores(X, W, b))
    _, _, dTheta = dgt.backward(X, W, b, rng.normal(size=(8, 2)), g)
    for l in range(8):
        np.testing.assert_allclose(dTheta[l], g[leaf == l].sum(axis=0))


def test_gradients_are_dense():
    """One sample moves every node within reach of the estimator, not only those on its own path."""
    a = np.full((1, 31), 0.5)
    da = dgt.score_gradient(a, np.random.default_rng(0).normal(size=(32, 1)), np.ones((1, 1)))
    assert (da != 0).all()


def derivative(f: Callable[[np.ndarray], float], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences of a number by every entry of an array."""
    answer = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = step
        answer[i] = (f(x + e) - f(x - e)) / (2 * step)
    return answer


def random_tree(height: int, d: int, K: int, seed: int = 0) -> list[np.ndarray]:
    """W, b, Theta and the weights A of linear leaves."""
    rng = np.random.default_rng([height, d, K, seed])
    m, L = 2**height - 1, 2**height
    return [rng.normal(size=shape) for shape in ((m, d), (m,), (L, K), (L, K, d))]


# Sum or product, Eq. (2) and (4), Table 7 (a)


@pytest.mark.parametrize("height", HEIGHTS)
def test_the_sum_form_pulls_every_node_and_the_product_form_those_on_the_path(height):
    rng = np.random.default_rng(height)
    a = rng.uniform(-1, 1, size=(20, 2**height - 1))
    Theta, g = rng.normal(size=(2**height, 2)), rng.normal(size=(20, 2))
    assert (dgt.score_gradient(a, Theta, g) != 0).all()
    pulled = dgt.score_gradient(a, Theta, g, PRODUCT) != 0
    assert (pulled.sum(axis=1) == height).all()
    path = dgt.predecessors(height)[:, dgt.leaf_of(a)].T  # (n, h)
    assert np.take_along_axis(pulled, path, axis=1).all()


def hard_leaf_below(a: np.ndarray, node: int) -> int:
    """Walk from a node by the signs of one sample's scores; a leaf's number."""
    while node < len(a):
        node = 2 * node + 1 + (a[node] >= 0)
    return node - len(a)


@pytest.mark.parametrize("height", [1, 2, 3, 5])
def test_the_product_form_compares_the_two_leaves_that_a_node_chooses_between(height):
    """Half of <g, theta of the right side's hard leaf - theta of the left side's>, on the path."""
    rng = np.random.default_rng(height)
    Theta, g = rng.normal(size=(2**height, 3)), rng.normal(size=(50, 3))
    for a in (random_scores(height), tied_scores(height)):
        expected = np.zeros_like(a)
        path = dgt.predecessors(height)[:, dgt.leaf_of(a)].T
        for i, j in ((i, j) for i, nodes in enumerate(path) for j in nodes if abs(a[i, j]) <= 1):
            left, right = (hard_leaf_below(a[i], 2 * j + side) for side in (1, 2))
            expected[i, j] = 0.5 * g[i] @ (Theta[right] - Theta[left])
        found = dgt.score_gradient(a, Theta, g, PRODUCT)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_the_product_form_is_the_limit_of_its_softmax_mean():
    """The same recursion with decisions that are certain: the sum form's mu to infinity."""
    a, Theta = random_scores(4), np.random.default_rng(0).normal(size=(16, 1))
    hard = Theta[dgt.leaf_of(a)]
    gaps = [np.abs(dgt.soft_prediction(mu * dgt.sign(a), Theta) - hard).max() for mu in (1, 5, 20)]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-12


# The softmax after the product, C.3.1


def product_of_decisions(s: np.ndarray) -> np.ndarray:
    """Eq. (2) as a smooth function of decisions of any size, (1 + s S) / 2 for the step."""
    return (0.5 * (1.0 + dgt.towards_leaves(s))).prod(axis=1)


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("height", [1, 2, 3, 5])
def test_the_softmax_after_the_product_is_differentiated_straight_through(height, K):
    rng = np.random.default_rng([height, K])
    Theta, g = rng.normal(size=(2**height, K)), rng.normal(size=(50, K))
    for a in (random_scores(height), tied_scores(height)):

        def soft(s: np.ndarray, g: np.ndarray = g) -> float:
            return (g * (softmax(product_of_decisions(s), axis=1) @ Theta)).sum()

        expected = derivative(soft, dgt.sign(a))
        expected[np.abs(a) > 1] = 0
        found = dgt.score_gradient(a, Theta, g, PRODUCT_SOFTMAX)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("height", HEIGHTS)
def test_the_softmax_after_the_product_leaves_little_to_the_leaf_reached(height):
    """It has e / (e + L - 1) of the weight, so deep trees average all leaves alike."""
    a = random_scores(height)
    q = dgt.path_probabilities_softmax(a, PRODUCT_SOFTMAX)
    expected = np.full(q.shape, 1 / (np.e + 2**height - 1))
    np.put_along_axis(expected, dgt.leaf_of(a)[:, None], np.e / (np.e + 2**height - 1), axis=1)
    np.testing.assert_allclose(q, expected, rtol=1e-12)
    pulled = dgt.score_gradient(
        a, np.arange(2.0**height)[:, None], np.ones((50, 1)), PRODUCT_SOFTMAX
    )
    assert ((pulled != 0).sum(axis=1) <= height).all()


# The scaled quantiser, Sec. 3.3


@some
@given(st.integers(1, 6), st.floats(1e-3, 30.0), seeds)
def test_softmax_over_path_sums_is_a_product_over_nodes_for_any_common_size(height, mu, seed):
    s = mu * dgt.sign(random_scores(height, n=10, seed=seed))
    q = dgt.path_probabilities(s)
    np.testing.assert_allclose(q, dgt.path_probabilities_by_nodes(s), rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("height", [1, 2, 4])
def test_the_scaled_quantiser_is_the_straight_through_derivative_at_the_mean_size(height):
    """A constant mu, so no sample pulls another's scores through the mean."""
    rng = np.random.default_rng(height)
    a, Theta, g = random_scores(height), rng.normal(size=(2**height, 2)), rng.normal(size=(50, 2))
    s = np.abs(a).mean() * dgt.sign(a)
    expected = derivative(lambda s: (g * dgt.soft_prediction(s, Theta)).sum(), s)
    expected[np.abs(a) > 1] = 0
    found = dgt.score_gradient(a, Theta, g, SCALED)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)
    assert np.abs(found - dgt.score_gradient(a, Theta, g)).max() > 1e-3


def test_scores_of_mean_size_one_make_the_two_quantisers_one():
    a = random_scores(4)
    a /= np.abs(a).mean()
    Theta, g = np.random.default_rng(1).normal(size=(16, 1)), np.ones((50, 1))
    np.testing.assert_allclose(
        dgt.score_gradient(a, Theta, g, SCALED), dgt.score_gradient(a, Theta, g), rtol=1e-12
    )


# Annealed routing, Sec. 3.3, C.3.1, Table 7 (c)


@pytest.mark.parametrize("is_linear", [False, True])
@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("path", ["sum", "product", "product_softmax"])
@pytest.mark.parametrize(("height", "K"), [(1, 1), (2, 3), (3, 2)])
def test_annealed_gradients_are_exact(height, K, path, sharpness, is_linear):
    rng = np.random.default_rng(height)
    X, y = rng.normal(size=(7, 2)), rng.normal(size=(7, K))
    tree = random_tree(height, 2, K)[: 4 if is_linear else 3]
    form = annealed(path, sharpness)

    def forward(parts: list[np.ndarray]) -> np.ndarray:
        return dgt.forward(X, *parts, *([] if is_linear else [None]), form)

    def loss_with(i: int, part: np.ndarray) -> float:
        return losses.squared_error(forward([*tree[:i], part, *tree[i + 1 :]]), y).sum()

    g = losses.squared_error_gradient(forward(tree), y)
    found = dgt.gradients(X, *tree[:3], g, tree[3] if is_linear else None, form)
    for i, part in enumerate(tree):
        expected = derivative(lambda w, i=i: loss_with(i, w), part)
        np.testing.assert_allclose(found[i], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("path", ["sum", "product", "product_softmax"])
@pytest.mark.parametrize("is_linear", [False, True])
def test_annealing_hardens(path, is_linear):
    """The soft prediction tends to the hard one as sharpness grows."""
    W, b, Theta, A = random_tree(4, 3, 2)
    X = np.random.default_rng(0).normal(size=(60, 3))
    X = X[np.abs(dgt.scores(X, W, b)).min(axis=1) > 0.02]
    assert len(X) > 20
    A = A if is_linear else None
    hard = dgt.forward(X, W, b, Theta, A)
    gaps = [
        np.abs(dgt.forward(X, W, b, Theta, A, annealed(path, s)) - hard).mean()
        for s in (1, 4, 16, 1000)
    ]
    assert (np.diff(gaps) < 0).all()
    assert gaps[0] > 0.1
    assert gaps[-1] < 1e-6


@some
@given(st.integers(1, 6), st.floats(0.1, 50.0), seeds)
def test_a_leaf_of_the_annealed_product_is_as_certain_as_its_decisions(height, sharpness, seed):
    """At least the product of h times the least certain decision on the path."""
    a = random_scores(height, n=10, seed=seed)
    q = dgt.path_functions(a, annealed("product", sharpness))
    leaf = dgt.leaf_of(a)
    path = dgt.predecessors(height)[:, leaf].T
    least = np.abs(np.take_along_axis(a, path, axis=1)).min(axis=1)
    assert (q[np.arange(10), leaf] >= dgt.sigma_s(least, sharpness) ** height * (1 - 1e-12)).all()


def test_the_annealed_product_of_depth_one_is_logistic_regression_between_two_values():
    a, Theta = np.linspace(-3, 3, 13)[:, None], np.array([[0.0], [1.0]])
    f = dgt.path_functions(a, annealed("product", 2.0)) @ Theta
    np.testing.assert_allclose(f, 1 / (1 + np.exp(-2 * a)))


# Linear leaves, Table 5


@pytest.mark.parametrize("form", ALL_FORMS, ids=str)
def test_linear_leaves_take_the_gradient_of_constant_leaves(form):
    """For one sample x, leaves theta_l + A_l x are the constants that they are at x."""
    W, b, Theta, A = random_tree(3, 2, 2)
    for x in np.random.default_rng(0).normal(size=(20, 1, 2)):
        values, g = Theta + A @ x[0], np.array([[1.0, -2.0]])
        np.testing.assert_allclose(
            dgt.forward(x, W, b, Theta, A, form), dgt.forward(x, W, b, values, None, form)
        )
        found = dgt.gradients(x, W, b, Theta, g, A, form)
        expected = dgt.gradients(x, W, b, values, g, None, form)
        for part, e in zip(found[:3], expected[:3], strict=True):
            np.testing.assert_allclose(part, e, atol=1e-14)
        np.testing.assert_allclose(found[3], found[2][:, :, None] * x[0])


def test_a_tree_with_one_linear_model_in_all_leaves_is_that_model():
    W, b, Theta, A = random_tree(3, 2, 2)
    Theta[:], A[:] = Theta[0], A[0]
    X, g = np.random.default_rng(0).normal(size=(30, 2)), np.ones((30, 2))
    for form in ALL_FORMS:
        f = dgt.forward(X, W, b, Theta, A, form)
        np.testing.assert_allclose(f, Theta[0] + X @ A[0].T, rtol=1e-12)
        dW, db, _, _ = dgt.gradients(X, W, b, Theta, g, A, form)
        np.testing.assert_allclose(dW, 0, atol=1e-12)
        np.testing.assert_allclose(db, 0, atol=1e-12)


# Invariants of all forms


@some
@given(st.integers(1, 6), st.sampled_from(ALL_FORMS), seeds)
def test_path_functions_are_a_distribution_over_the_leaves(height, form, seed):
    q = dgt.path_functions(random_scores(height, n=10, seed=seed), form)
    assert (q >= 0).all()
    np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)


@some
@given(st.integers(1, 5), st.sampled_from(ALL_FORMS), seeds)
def test_what_all_leaves_share_does_not_pull_a_score(height, form, seed):
    rng = np.random.default_rng(seed)
    a, g = random_scores(height, n=10, seed=seed), rng.normal(size=(10, 2))
    Theta = rng.normal(size=(10, 2**height, 2))
    shared = rng.normal(size=(10, 1, 2))
    np.testing.assert_allclose(
        dgt.score_gradient(a, Theta + shared, g, form),
        dgt.score_gradient(a, Theta, g, form),
        atol=1e-12,
    )


def mirrored(a: np.ndarray) -> np.ndarray:
    """Scores of the tree with left and right exchanged everywhere: levels back to front."""
    h = dgt.height_of(a.shape[1])
    return np.hstack([a[:, 2**i - 1 : 2 ** (i + 1) - 1][:, ::-1] for i in range(h)])


@some
@given(st.integers(1, 5), st.sampled_from(ALL_FORMS), seeds)
def test_left_and_right_are_names(height, form, seed):
    rng = np.random.default_rng(seed)
    a, g = random_scores(height, n=10, seed=seed), rng.normal(size=(10, 2))
    Theta = rng.normal(size=(2**height, 2))
    q, r = dgt.path_functions(a, form), dgt.path_functions(mirrored(-a), form)
    np.testing.assert_allclose(r[:, ::-1], q, atol=1e-13)
    da = dgt.score_gradient(a, Theta, g, form)
    db = dgt.score_gradient(mirrored(-a), Theta[::-1], g, form)
    np.testing.assert_allclose(-mirrored(db), da, atol=1e-13)


@some
@given(st.sampled_from([f for f in ALL_FORMS if f != SCALED]), seeds)
def test_gradients_of_a_batch_are_the_sums_of_its_samples(form, seed):
    rng = np.random.default_rng(seed)
    W, b, Theta, A = random_tree(3, 2, 2, seed)
    X, g = rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    whole = dgt.gradients(X, W, b, Theta, g, A, form)
    alone = [dgt.gradients(X[[i]], W, b, Theta, g[[i]], A, form) for i in range(5)]
    for part, parts in zip(whole, zip(*alone, strict=True), strict=True):
        np.testing.assert_allclose(part, sum(parts), atol=1e-12)


# Overparameterisation, Sec. 3.2, Tables 7 (b) and 12


def random_factors(sizes: list[int], seed: int = 0) -> list[np.ndarray]:
    """W^(1), ..., W^(L) for the sizes d + 1, d_1, ..., m."""
    rng = np.random.default_rng([*sizes, seed])
    pairs = zip(sizes[1:], sizes[:-1], strict=True)
    return [rng.normal(size=shape) / np.sqrt(shape[1]) for shape in pairs]


@pytest.mark.parametrize("hidden", [[], [4], [9, 5], [3, 8, 2]])
def test_collapsing_the_layers_is_exact(hidden):
    """Whole numbers, so that nothing is rounded: the same scores, leaves and predictions."""
    rng = np.random.default_rng(0)
    X, Theta = rng.integers(-3, 4, size=(100, 4)), rng.normal(size=(8, 2))
    shapes = layers.shapes(7, 4, hidden)
    assert shapes[0][1] == 5
    assert shapes[-1][0] == 7
    factors = [rng.integers(-3, 4, size=shape) for shape in shapes]
    deep = layers.with_one(X)
    for factor in factors:
        deep = deep @ factor.T  # W^(L) (... (W^(1) [x; 1])), Alg. 2, line 7
    W = layers.product(factors)
    np.testing.assert_array_equal(dgt.scores(X, W[:, :-1], W[:, -1]), deep)
    assert len(np.unique(dgt.leaf_of(deep))) > 3
    np.testing.assert_array_equal(
        dgt.forward(X, W[:, :-1], W[:, -1], Theta), Theta[dgt.leaf_of(deep)]
    )


@pytest.mark.parametrize("hidden", [[], [4], [6, 5], [3, 8, 2]])
def test_gradients_of_the_factors_are_the_derivatives(hidden):
    factors = random_factors([4, *hidden, 3])
    target = np.random.default_rng(1).normal(size=(3, 4))

    def loss(j: int, factor: np.ndarray) -> float:
        W = layers.product([*factors[:j], factor, *factors[j + 1 :]])
        return float(((W - target) ** 2).sum())

    found = layers.factor_gradients(factors, 2 * (layers.product(factors) - target))
    for j, factor in enumerate(factors):
        expected = derivative(lambda w, j=j: loss(j, w), factor)
        np.testing.assert_allclose(found[j], expected, rtol=1e-6, atol=1e-8)


def preconditioned(factors: list[np.ndarray], G: np.ndarray) -> np.ndarray:
    """Arora et al. (2018), Eq. (6): what gradient flow on the factors makes of G."""
    answer = np.zeros_like(G)
    for j in range(len(factors)):
        above = layers.multiply(factors[j + 1 :], factors[j].shape[0])
        below = layers.multiply(factors[:j], factors[0].shape[1])
        answer += above @ above.T @ G @ below.T @ below
    return answer


def descend(factors: list[np.ndarray], G: np.ndarray, lr: float) -> np.ndarray:
    """How much the product changes by one plain step on the factors, per unit of learning rate."""
    stepped = layers.step(factors, G, [optimize.SGD() for _ in factors], lr)
    return (layers.product(stepped) - layers.product(factors)) / lr


@pytest.mark.parametrize("hidden", [[], [4], [6, 5], [9, 8, 7]])
def test_one_step_on_the_factors_is_a_preconditioned_step_on_their_product(hidden):
    """Arora et al. (2018), Theorem 1: equal but for what vanishes with the learning rate."""
    factors = random_factors([5, *hidden, 7])
    G = np.random.default_rng(2).normal(size=(7, 5))
    expected = -preconditioned(factors, G)
    rates = np.array([1e-2, 1e-3, 1e-4, 1e-5])
    gaps = np.array([np.abs(descend(factors, G, lr) - expected).max() for lr in rates])
    assert gaps[-1] < 1e-3 * np.abs(expected).max()
    if hidden:  # the remainder is of first order: its slope on logarithmic axes is one
        assert np.polyfit(np.log(rates), np.log(gaps), 1)[0] == pytest.approx(1.0, abs=0.02)
        assert np.abs(expected + G).max() > 0.1  # and not the step of L = 1
    else:
        np.testing.assert_allclose(descend(factors, G, 0.1), -G, rtol=1e-12)


@pytest.mark.parametrize("L", [2, 3, 4])
def test_balanced_factors_are_preconditioned_by_powers_of_their_product(L):
    """Theorem 1 as it is stated, where W^(j+1)' W^(j+1) = W^(j) W^(j)'."""
    rng = np.random.default_rng(L)
    U, V = (np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(2))
    root = np.diag(np.array([0.5, 0.8, 1.0, 1.4]) ** (1 / L))
    factors = [root @ V, *[root] * (L - 2), U @ root]
    W, G = layers.product(factors), rng.normal(size=(4, 4))
    expected = np.zeros_like(G)
    for j in range(1, L + 1):
        left = fractional_matrix_power(W @ W.T, (L - j) / L)
        right = fractional_matrix_power(W.T @ W, (j - 1) / L)
        expected += left @ G @ right
    np.testing.assert_allclose(preconditioned(factors, G), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(descend(factors, G, 1e-7), -expected, rtol=1e-4, atol=1e-5)


@some
@given(st.lists(st.integers(1, 6), min_size=2, max_size=6), seeds)
def test_gradient_flow_conserves_the_balance_of_neighbors(sizes, seed):
    """d/dt (W^(j+1)' W^(j+1)) = d/dt (W^(j) W^(j)'), and every factor is as steep as the product.

    The product is linear in each factor, so <W^(j), dW^(j)> = <W, G> for all j (Euler).
    """
    factors = random_factors(sizes, seed)
    G = np.random.default_rng(seed).normal(size=(sizes[-1], sizes[0]))
    pulls = layers.factor_gradients(factors, G)
    along = (layers.product(factors) * G).sum()
    for W, dW in zip(factors, pulls, strict=True):
        np.testing.assert_allclose((W * dW).sum(), along, rtol=1e-9, atol=1e-12)
    for j in range(len(factors) - 1):
        above, below = factors[j + 1].T @ pulls[j + 1], pulls[j] @ factors[j].T
        np.testing.assert_allclose(above, below, rtol=1e-9, atol=1e-12)


def test_hidden_sizes_of_table_12_are_multiples_of_the_number_of_nodes():
    for height, size in layers.HIDDEN.items():
        assert size % (2**height - 1) == 0
    assert [size // (2**h - 1) for h, size in layers.HIDDEN.items()] == [80, 40, 16, 6, 2]


def test_default_hidden_sizes_are_those_of_table_12():
    assert {height: hidden_size(height) for height in layers.HIDDEN} == layers.HIDDEN
    sizes = [hidden_size(height) for height in range(1, 13)]
    assert sizes == sorted(sizes)  # also between and beyond the rows of the table


@pytest.mark.parametrize("n_nodes", [0, 2, 4, 6, 8])
def test_only_perfect_trees_have_a_height(n_nodes):
    with pytest.raises(ValueError, match="perfect tree"):
        dgt.height_of(n_nodes)
