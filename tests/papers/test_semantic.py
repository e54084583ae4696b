"""Claims of the paper on semantic logits (Panda et al., ECAI 2024), held against the reference."""

from __future__ import annotations

import numpy as np
import pytest

from reference import dgt, losses, semantic
from reference.semantic import Leaves

HEIGHTS = range(1, 8)


def random_scores(height: int, n: int = 50) -> np.ndarray:
    return np.random.default_rng(height).normal(size=(n, 2**height - 1))


def tied_scores(height: int, n: int = 50) -> np.ndarray:
    """Many scores of exactly 0, and many paths of equal cost."""
    rng = np.random.default_rng(height)
    return rng.choice([-1.0, -0.25, 0.0, 0.0, 0.25, 1.0], size=(n, 2**height - 1))


@pytest.mark.parametrize("height", HEIGHTS)
def test_the_largest_score_is_that_of_the_hard_trees_leaf_and_it_is_zero(height):
    for a in (random_scores(height), tied_scores(height)):
        z, leaf = semantic.leaf_scores(a), dgt.leaf_of(a)
        np.testing.assert_array_equal(z[np.arange(len(z)), leaf], 0.0)
        assert (z <= 0).all()
        last = z.shape[1] - 1 - z[:, ::-1].argmax(axis=1)
        np.testing.assert_array_equal(last, leaf)
    z = semantic.leaf_scores(random_scores(height))
    np.testing.assert_array_equal((z == 0).sum(axis=1), 1)


@pytest.mark.parametrize("height", range(1, 6))
def test_the_papers_scores_differ_by_one_number_per_row(height):
    a = random_scores(height)
    shift = semantic.papers_leaf_scores(a) - semantic.leaf_scores(a)
    expected = np.broadcast_to(np.abs(a).sum(axis=1, keepdims=True), shift.shape)
    np.testing.assert_allclose(shift, expected, rtol=1e-12)


def test_satisfied_decisions_of_the_path_alone_are_not_the_tree():
    a = random_scores(3, n=200)
    satisfied = np.maximum(0.0, dgt.towards_leaves(a)).sum(axis=1)
    assert (satisfied.argmax(axis=1) != dgt.leaf_of(a)).mean() > 0.1


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("height", [3, 5])
def test_the_class_with_the_largest_score_is_the_hard_trees(height, n_classes):
    a = random_scores(height)
    classes = semantic.dealt(2**height, n_classes)
    scores = semantic.class_scores(semantic.leaf_scores(a), classes, n_classes)
    np.testing.assert_array_equal(scores.argmax(axis=1), classes[dgt.leaf_of(a)])


def test_classes_are_dealt_in_turn():
    np.testing.assert_array_equal(semantic.dealt(8, 3), [0, 1, 2, 0, 1, 2, 0, 1])


@pytest.mark.parametrize("n_mixed", [1, 2, 3, 8])
def test_shares_of_the_best_leaves_add_up_to_one(n_mixed):
    for a in (random_scores(3), tied_scores(3)):
        q = semantic.forward_shares(a, n_mixed)
        np.testing.assert_allclose(q.sum(axis=1), 1.0)
        np.testing.assert_array_equal(q.max(axis=1), q[np.arange(len(q)), dgt.leaf_of(a)])
    assert ((semantic.forward_shares(random_scores(3), n_mixed) > 0).sum(axis=1) == n_mixed).all()


# Gradients


def make_tree(rng: np.random.Generator, height: int, d: int, K: int):
    m, L = 2**height - 1, 2**height
    tree = rng.normal(size=(m, d)), rng.normal(size=m), rng.normal(size=(L, K))
    return *tree, rng.normal(size=(L, K, d))


def assert_derivative(f, parts, gradients, step=1e-6):
    """Compare with central differences of the number f(*parts) by every entry of every part."""
    for number, (part, gradient) in enumerate(zip(parts, gradients, strict=True)):
        expected = np.zeros_like(part)
        for at in np.ndindex(part.shape):
            moved = [list(parts), list(parts)]
            for sign, all_parts in zip((1, -1), moved, strict=True):
                all_parts[number] = part.copy()
                all_parts[number][at] += sign * step
            expected[at] = (f(*moved[0]) - f(*moved[1])) / (2 * step)
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("height", "K", "loss"), [(2, 1, "logistic"), (3, 3, "cross_entropy")])
def test_dealt_leaves_have_the_exact_gradient(height, K, loss):
    rng = np.random.default_rng(height)
    X, (W, b, _, _) = rng.normal(size=(9, 2)), make_tree(rng, height, 2, K)
    y = rng.integers(0, max(K, 2), size=(9, 1))
    leaves = Leaves(semantic.dealt(2**height, max(K, 2)))

    def mean_loss(W, b):
        f = semantic.forward(X, W, b, None, None, leaves, K)
        return losses.LOSSES[loss].value(f, y).mean()

    g = losses.LOSSES[loss].gradient(semantic.forward(X, W, b, None, None, leaves, K), y) / 9
    assert_derivative(mean_loss, (W, b), semantic.gradients(X, W, b, None, None, leaves, g)[:2])


@pytest.mark.parametrize("n_mixed", [2, 3, 8])
def test_mixed_leaves_have_the_exact_gradient(n_mixed):
    rng = np.random.default_rng(n_mixed)
    X, tree = rng.normal(size=(7, 2)), make_tree(rng, 3, 2, 2)
    y, leaves = rng.normal(size=(7, 2)), Leaves(n_mixed=n_mixed)

    def half_squares(*tree):
        return 0.5 * ((semantic.forward(X, *tree, leaves, 2) - y) ** 2).sum()

    g = semantic.forward(X, *tree, leaves, 2) - y
    assert_derivative(half_squares, tree, semantic.gradients(X, *tree, leaves, g))


def test_the_hard_prediction_has_the_gradient_of_a_mixture_of_the_best_two():
    rng = np.random.default_rng(0)
    X, (W, b, Theta, A) = rng.normal(size=(7, 2)), make_tree(rng, 3, 2, 2)
    g = rng.normal(size=(7, 2))

    def soft(W, b):
        return (g * semantic.forward(X, W, b, Theta, A, Leaves(n_mixed=2), 2)).sum()

    dW, db, dTheta, _ = semantic.gradients(X, W, b, Theta, A, Leaves(), g)
    assert_derivative(soft, (W, b), (dW, db))
    leaf = dgt.leaf_of(dgt.scores(X, W, b))
    for l in range(8):
        np.testing.assert_allclose(dTheta[l], g[leaf == l].sum(axis=0), atol=1e-12)


def test_only_splits_above_the_best_leaves_learn():
    """One row of one class pulls the splits that its best leaf violates, and no others."""
    a = random_scores(4, n=1)
    classes, g = np.arange(16) % 2, np.array([[1.0, 0.0]])
    z = semantic.leaf_scores(a)
    da = semantic.score_gradient(a, semantic.class_gradient(z, classes, 2, g))
    best = semantic.winners(z, classes, 2)[0, 0]
    violated = semantic.violated(a)[0, :, best] > 0
    expected = np.zeros(15)
    I, S = dgt.predecessors(4)[:, best], dgt.sides(4)[:, best]
    expected[I[violated]] = S[violated]
    np.testing.assert_array_equal(da[0], expected)
