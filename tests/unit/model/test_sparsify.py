"""Shorter splits that keep the paths of given rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from hardwood.model import ObliqueTree
from hardwood.model.edit import sparsify
from trees import make_rows, make_tree


@settings(max_examples=80)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_splits=st.integers(0, 12),
    mixed=st.booleans(),
    n=st.integers(1, 60),
    weighted=st.booleans(),
    tolerance=st.sampled_from([0.0, 0.05, 0.3]),
)
def test_rows_move_within_the_tolerance(seed, n_splits, mixed, n, weighted, tolerance):
    rng = np.random.default_rng(seed)
    tree = make_tree(rng, n_splits=n_splits, n_features=6, mixed=mixed, sparsity=0.1)
    X = make_rows(rng, tree.schema, n)
    weight = rng.integers(0, 3, n) + (np.arange(n) == 0) if weighted else np.ones(n)
    found = sparsify(tree, X, tolerance=tolerance, sample_weight=weight)
    moved = weight @ (found.tree.apply(X) != tree.apply(X)) / weight.sum()
    assert found.share_moved == pytest.approx(moved)
    assert found.share_moved <= tolerance
    # A weight is unchanged or zero; at least one stays, and nothing else changes.
    before, after = tree.weights, found.tree.weights
    assert ((after == before) | (after == 0)).all()
    assert ((after != 0).any(axis=1) == (before != 0).any(axis=1)).all()
    assert found.n_weights == np.count_nonzero(before)
    assert found.n_removed == np.count_nonzero(before) - np.count_nonzero(after)
    assert found.tree.replace(weights=before, bias=tree.bias) == tree


def test_small_weights_are_removed_and_large_ones_stay(rng):
    # Five columns matter, forty-five hardly do, like after learning a product of layers.
    weights = rng.normal(size=(7, 50)) * 1e-4
    weights[:, :5] = rng.normal(size=(7, 5)) + 1
    tree = ObliqueTree.of(weights, bias=rng.normal(size=7), values=np.arange(8.0))
    X = rng.normal(size=(2000, 50))
    found = sparsify(tree, X)
    assert found.share_moved == 0
    assert (found.tree.predict(X) == tree.predict(X)).all()
    kept = found.tree.weights != 0
    assert found.n_removed > 0.5 * 7 * 45
    fresh = rng.normal(size=(5000, 50))
    assert np.mean(found.tree.apply(fresh) == tree.apply(fresh)) > 0.99
    tolerant = sparsify(tree, X, tolerance=0.02)
    assert tolerant.n_removed >= 7 * 45
    assert tolerant.share_moved <= 0.02
    assert kept[:, :5].all()
    assert "weights removed" in str(tolerant)


def test_a_term_is_replaced_by_its_mean():
    # x1 is 100 everywhere: it adds 1 to the score, which the bias can do.
    tree = ObliqueTree.of([[1.0, 0.01]], bias=[0.0], values=[0.0, 1.0])
    X = np.array([[-2.0, 100.0], [-1.5, 100.0], [0.5, 100.0]])
    found = sparsify(tree, X)
    assert found.tree.weights.tolist() == [[1.0, 0.0]]
    assert found.tree.bias == pytest.approx([1.0])
    assert found.tree.apply(X).tolist() == [0, 0, 1]


def test_importance_is_in_standard_units():
    # Per gram the weight is small, but grams are many.
    schema = make_tree(0, n_features=2).schema
    tree = ObliqueTree.of([[1e-3, 1.0]], bias=[0.0], values=[0.0, 1.0])
    heavy = type(schema.features[0])("mass", "numeric", scale=4096.0, spread=(4000.0,))
    light = type(schema.features[0])("length", "numeric", scale=0.25, spread=(0.2,))
    tree = tree.replace(schema=type(schema)((heavy, light)))
    X = np.array([[-4000.0, 0.1], [4000.0, -0.1]])
    assert sparsify(tree, X).tree.weights.tolist() == [[1e-3, 0.0]]


def test_rows_at_the_threshold_are_not_moved_by_rounding():
    # For terms that add up to about zero, float32 and float64 sums may differ in sign: without a
    # margin for rounding, some of these trees would send rows elsewhere.
    for seed in range(120):
        rng = np.random.default_rng(seed)
        X = rng.integers(-3, 4, size=(300, 6)) / 10
        weights = rng.integers(-9, 10, size=(1, 6)) / 10
        weights[0, 0], X[:, 0] = 0.01, rng.integers(1, 9)
        tree = ObliqueTree.of(weights, bias=[rng.integers(-30, 31) / 100], values=[0.0, 1.0])
        assert sparsify(tree, X).share_moved == 0


def test_a_split_without_rows_does_not_change():
    tree = ObliqueTree.of(
        [[1.0, 0.1], [1.0, 0.1], [1.0, 0.1]], bias=[0.0, 1.0, 1.0], values=np.arange(4.0)
    )
    found = sparsify(tree, [[3.0, 0.0], [5.0, 0.0]])
    assert found.tree.weights.tolist() == [[1.0, 0.0], [1.0, 0.1], [1.0, 0.0]]


def test_sparse_rows_are_accepted(rng):
    X = rng.normal(size=(50, 8)) * (rng.random((50, 8)) < 0.3)
    tree = ObliqueTree.of(rng.normal(size=(3, 8)), bias=rng.normal(size=3), values=np.arange(4.0))
    assert sparsify(tree, csr_matrix(X)).tree == sparsify(tree, X).tree


@pytest.mark.parametrize("tolerance", [-0.1, 1.0, float("nan")])
def test_a_tolerance_is_a_fraction(tolerance):
    with pytest.raises(ValueError, match="fraction of the rows"):
        sparsify(make_tree(0), [[0.0] * 4], tolerance=tolerance)
