"""Claims of the DGT paper (Karthikeyan et al., TMLR 2022), held against the NumPy twin."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood.reference import dgt

HEIGHTS = range(1, 9)


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


@pytest.mark.parametrize("n_nodes", [0, 2, 4, 6, 8])
def test_only_perfect_trees_have_a_height(n_nodes):
    with pytest.raises(ValueError, match="perfect tree"):
        dgt.height_of(n_nodes)
