"""The engine's policy trees against the NumPy reference, and the errors of the engine."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from hardwood._native import PolicyRouter
from hardwood.model import PolicyTree
from hardwood.table import Schema
from policies import make_parents, make_perfect_parents, make_policy
from reference import policy as by_hand
from trees import columns_of, make_rows


def exact_policy(rng: np.random.Generator, parents: np.ndarray, d: int) -> PolicyTree:
    """Return a tree whose scores are exact in float32 at rows of small integers, including ties."""
    weights = rng.integers(-4, 5, size=(len(parents), d)) / 4
    bias = rng.integers(-4, 5, size=len(parents)) / 4
    weights[0], bias[0] = 0, 0
    n_leaves = len(parents) - len(set(parents[1:].tolist()))
    scores = rng.normal(size=(n_leaves, 1))
    return PolicyTree(parents, weights, bias, scores, schema=Schema.numeric(d), task="regression")


@pytest.mark.parametrize("d", [1, 3, 8, 17, 40])
@pytest.mark.parametrize("n_nodes", [1, 2, 15, 60])
def test_leaves_are_those_of_the_reference(rng, d, n_nodes):
    tree = exact_policy(rng, make_parents(rng, n_nodes), d)
    X = rng.integers(-3, 4, size=(70, d)).astype(np.float64)
    expected = by_hand.greedy_leaves(tree.parents, tree.weights, tree.bias, X)
    logs = by_hand.node_log_probabilities(tree.parents, tree.weights, tree.bias, X)
    logs = logs[:, tree.leaf_nodes]
    for table in (X, X.astype(np.float32), csr_array(X)):
        for n_jobs in (1, 3):
            np.testing.assert_array_equal(tree.apply(table, n_jobs=n_jobs), expected)
            found = tree.apply(table, path="most_probable", n_jobs=n_jobs)
            np.testing.assert_allclose(logs[np.arange(70), found], logs.max(axis=1), atol=1e-12)
            shares = tree.leaf_probabilities(table, n_jobs=n_jobs)
            np.testing.assert_allclose(shares, np.exp(logs), rtol=1e-12, atol=1e-300)
    assert [tree._router.apply_one(x) for x in X] == expected.tolist()


@pytest.mark.parametrize("depth", [1, 2, 4, 6])
def test_mixed_columns_and_missing_entries(rng, depth):
    tree = make_policy(rng, parents=make_perfect_parents(depth, 3), n_features=6, mixed=True)
    rows = make_rows(rng, tree.schema, 40)
    columns = columns_of(tree, rows)
    logs = by_hand.node_log_probabilities(tree.parents, tree.weights, tree.bias, columns)
    np.testing.assert_allclose(
        tree.leaf_probabilities(rows), np.exp(logs[:, tree.leaf_nodes]), rtol=1e-4, atol=1e-30
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_score_that_is_not_a_number_is_never_the_largest(dtype):
    """Lanes overflow to both infinities; the oblique tree goes left, too."""
    weights = np.zeros((3, 32))
    weights[2] = [1.0, -1.0] * 16
    tree = PolicyTree(
        [-1, 0, 0],
        weights,
        np.zeros(3),
        [[0.0], [1.0]],
        schema=Schema.numeric(32),
        task="regression",
    )
    X = np.ones((9, 32), dtype)
    X[1::2] = 3e38
    expected = (np.arange(9) % 2 == 0).astype(np.int32)
    np.testing.assert_array_equal(tree.apply(X), expected)
    np.testing.assert_array_equal(tree.to_oblique().apply(X), expected)
    np.testing.assert_array_equal(tree.apply(X, path="most_probable"), expected)
    np.testing.assert_allclose(tree.leaf_probabilities(X)[1], [1.0, 0.0], atol=1e-300)


def test_what_the_engine_refuses():
    encoder = Schema.numeric(2).encoder
    good = {
        "weights": np.zeros((1, 2)),
        "bias": np.zeros(1),
        "child": np.array([1, 2], np.int32),
        "n_children": np.array([2, 0, 0], np.int32),
        "exponents": np.zeros(3, np.int32),
    }
    PolicyRouter(encoder, **good)
    none = np.zeros(0, np.int32)
    wrong = {
        "every node but the root": {"n_children": none, "exponents": none},
        "n_children and exponents differ": {"exponents": none},
        "weights and bias differ": {"bias": np.zeros(2)},
        "match the schema's columns": {"weights": np.zeros((1, 3))},
        "a child is out of range": {"child": np.array([0, 2], np.int32)},
        "a child has two parents": {"child": np.array([1, 1], np.int32)},
        "n_children and child differ": {"n_children": np.array([1, 0, 0], np.int32)},
    }
    for words, change in wrong.items():
        with pytest.raises(ValueError, match=words):
            PolicyRouter(encoder, **(good | change))
