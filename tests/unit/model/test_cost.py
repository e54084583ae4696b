"""The cost of a prediction, compared with a walk down the tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardwood.model import ObliqueForest, ObliqueTree
from hardwood.model.cost import Flops, Operations, Remaining, remaining
from hardwood.table import Feature, Schema
from trees import make_rows, make_tree


def most_operations(tree, weights):
    """Return the maximum number of products and sums of one weighted sum."""
    used = {tree.columns[j].feature for j in np.flatnonzero(weights)}
    numbers = [j for j in np.flatnonzero(weights) if tree.columns[j].kind == "number"]
    return np.array([len(numbers), len(used), 0])


def splits_above(tree, leaf):
    """Return the splits on the path to a leaf."""
    place = np.argwhere(tree.children == ~leaf)
    above = []
    while place.size:
        above.append(int(place[0, 0]))
        place = np.argwhere(tree.children == above[-1])
    return above


def cost_of_leaf(tree, leaf):
    """Count the operations on the path to a leaf."""
    total = np.zeros(3)
    for node in splits_above(tree, leaf):
        total += most_operations(tree, tree.weights[node]) + [0, 0, 1]
    if tree.leaf_weights is not None:
        total += sum(most_operations(tree, weights) for weights in tree.leaf_weights[leaf])
    return total


def as_array(operations):
    return [operations.multiplications, operations.additions, operations.comparisons]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_splits=st.integers(0, 12),
    mixed=st.booleans(),
    linear=st.booleans(),
)
def test_operations_equal_those_of_a_walk(seed, n_splits, mixed, linear):
    rng = np.random.default_rng(seed)
    tree = make_tree(rng, n_splits=n_splits, mixed=mixed, task="regression", k=2)
    if linear:
        leaf_weights = rng.normal(size=(tree.n_leaves, 2, tree.schema.n_columns))
        tree = tree.replace(leaf_weights=leaf_weights * (rng.random(leaf_weights.shape) < 0.5))
    costs = np.array([cost_of_leaf(tree, leaf) for leaf in range(tree.n_leaves)])
    found = tree.flops()
    at_leaves = tree.counts[tree.n_splits :]
    if at_leaves.sum() > 0:
        expected = np.average(costs, axis=0, weights=at_leaves)
        assert as_array(found.mean) == pytest.approx(expected)
    else:
        assert found.mean is None
    assert found.worst.total == costs[:, :2].sum(axis=1).max()
    assert as_array(found.worst) in costs.tolist()
    X = make_rows(rng, tree.schema, 17)
    of_rows = tree.flops(X)
    assert as_array(of_rows.mean) == pytest.approx(costs[tree.apply(X)].mean(axis=0))
    assert of_rows.worst == found.worst


def test_a_dense_tree_costs_depth_times_numbers():
    rng = np.random.default_rng(0)
    tree = ObliqueTree.of(rng.normal(size=(7, 5)), bias=np.zeros(7), values=np.arange(8.0))
    assert tree.flops().worst == Operations(15, 15, 3)
    assert tree.flops().mean is None
    assert tree.flops(np.ones((3, 5))).mean == tree.flops().worst


def test_a_category_costs_at_most_one_addition():
    schema = Schema(
        (
            Feature("size", "numeric", has_missing=True),
            Feature("color", "categorical", levels=("blue", "green", "red"), has_missing=True),
        )
    )
    tree = ObliqueTree.of(
        [[2.0, 1.0, 1.0, 2.0, 3.0, 4.0]], bias=[0.0], values=[0.0, 1.0], schema=schema
    )
    assert tree.flops().worst == Operations(1, 2, 1)


def test_the_cost_of_a_forest_is_that_of_its_trees():
    first = make_tree(0, n_splits=4)
    others = [make_tree(seed, n_splits=3 + seed) for seed in (1, 2)]
    trees = [first, *(tree.replace(schema=first.schema) for tree in others)]
    forest = ObliqueForest(trees)
    whole, parts = forest.flops(), [tree.flops() for tree in trees]
    assert whole.worst.total == sum(part.worst.total for part in parts)
    assert whole.mean.total == pytest.approx(sum(part.mean.total for part in parts))
    X = np.zeros((1, 4))
    assert forest.flops(X).mean.total == sum(tree.flops(X).mean.total for tree in trees)
    assert forest.replace(trees=[*trees, first.replace(counts=None)]).flops().mean is None
    sizes = remaining(forest)
    assert (sizes.n_splits, sizes.of_splits) == (4 + 4 + 5, 3 * (2**forest.depth - 1))
    assert sizes.n_weights == sum(np.count_nonzero(tree.weights) for tree in trees)


def test_a_cost_prints_well():
    cost = Flops(Operations(2.5, 3.0, 1.25), Operations(1234, 1300, 6))
    assert str(cost) == (
        "per prediction, mean: 2.5 multiplications, 3 additions, 1.25 comparisons\n"
        "per prediction, worst: 1,234 multiplications, 1,300 additions, 6 comparisons"
    )
    assert "unknown" in str(Flops(None, cost.worst))
    assert str(Remaining(47, 63, 48, 64, 1000, 2520)) == (
        "47 of 63 splits, 48 of 64 leaves, 1,000 of 2,520 weights"
    )


def test_the_remaining_size_is_relative_to_a_tree_or_a_perfect_tree():
    tree = make_tree(1, n_splits=5, n_features=4, sparsity=0.5)
    n_weights = np.count_nonzero(tree.weights)
    smaller = tree.replace(weights=tree.weights * (np.arange(4) > 0))
    assert remaining(smaller, tree) == Remaining(
        5, 5, 6, 6, np.count_nonzero(smaller.weights), n_weights
    )
    h = tree.depth
    assert remaining(tree) == Remaining(5, 2**h - 1, 6, 2**h, n_weights, 4 * (2**h - 1))
    assert remaining(tree, of=h + 1).of_splits == 2 ** (h + 1) - 1
    with pytest.raises(ValueError, match=f"at least {h}"):
        remaining(tree, of=h - 1)
    with pytest.raises(ValueError, match="found 'all'"):
        remaining(tree, of="all")


def test_weights_of_linear_leaves_count():
    tree = ObliqueTree.of(
        [[1.0, 0.0]], bias=[0.0], values=[0.0, 0.0], leaf_weights=[[1.0, 2.0], [0.0, 3.0]]
    )
    assert remaining(tree) == Remaining(1, 1, 2, 2, 4, 2 + 4)
    assert tree.flops().worst == Operations(3, 3, 1)
