"""Importances: shares of the variance of the predictions, from what a model stores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ensembles import ensembles, make_ensemble
from forests import make_forest
from hardwood import ObliqueForest, ObliqueTree, from_sklearn
from hardwood.model import PolicyTree, dumps, loads
from hardwood.model.kinds.latent_tree import LatentTreeModel
from hardwood.table import Feature, Schema
from policies import policies
from trees import trees


def numbers(*spreads: float) -> Schema:
    """Return a schema of numbers with these standard deviations."""
    return Schema(
        tuple(
            Feature(f"x{j}", "numeric", spread=(float(spread),)) for j, spread in enumerate(spreads)
        )
    )


def assert_shares(model) -> None:
    shares = model.feature_importances
    assert shares.shape == (model.n_features,)
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1) or not shares.any()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("tree", "load"),
    [
        (DecisionTreeClassifier(max_depth=4, random_state=0), load_breast_cancer),
        (DecisionTreeRegressor(max_depth=4, random_state=0), load_diabetes),
    ],
)
def test_an_axis_aligned_tree_has_the_importances_of_scikit_learn(tree, load, weighted, rng):
    X, y = load(return_X_y=True)
    theirs = tree.fit(X, y, rng.random(len(y)) if weighted else None)
    ours = from_sklearn(theirs)
    np.testing.assert_allclose(ours.feature_importances, theirs.feature_importances_, atol=1e-12)


def test_an_oblique_split_divides_its_part_by_the_variance_of_its_terms():
    tree = ObliqueTree.of([[3.0, 2.0, 0.0]], bias=[0.0], values=[0, 1], schema=numbers(1, 3, 9))
    np.testing.assert_allclose(tree.feature_importances, [9 / 45, 36 / 45, 0])


def test_the_columns_of_a_category_add_up():
    colors = Feature("color", "categorical", levels=("red", "blue"), spread=(0.5, 0.5))
    schema = Schema((colors, Feature("width", "numeric", spread=(2.0,), has_missing=False)))
    tree = ObliqueTree.of([[4.0, -4.0, 1.0]], bias=[0.0], values=[0, 1], schema=schema)
    np.testing.assert_allclose(tree.feature_importances, [8 / 12, 4 / 12])


def test_splits_count_by_rows_and_by_what_they_change():
    """Squared deviations of 90 zeros, 5 fours and 5 eights, split by split."""
    tree = ObliqueTree.of(
        [[1.0, 0.0], [0.0, 5.0]],
        bias=[0, 0],
        children=[[-1, 1], [-2, -3]],
        values=[0, 4, 8],
        counts=[100, 10, 90, 5, 5],
    )
    root, below = 90 * 0.6**2 + 10 * 5.4**2, 10 * 2.0**2
    np.testing.assert_allclose(tree.feature_importances, np.array([root, below]) / (root + below))


def test_without_counts_branches_get_the_same_number_of_rows():
    parts = {"children": [[-1, 1], [-2, -3]], "values": [0, 4, 8]}
    tree = ObliqueTree.of([[1.0, 0.0], [0.0, 5.0]], bias=[0, 0], **parts)
    counted = tree.replace(counts=[4, 2, 2, 1, 1])
    np.testing.assert_allclose(tree.feature_importances, counted.feature_importances)


def test_the_slopes_of_a_leaf_count_by_the_spread_of_their_columns():
    leaf = ObliqueTree.of(
        np.empty((0, 2)), bias=[], values=[7.0], leaf_weights=[[2.0, -1.0]], schema=numbers(1, 4)
    )
    np.testing.assert_allclose(leaf.feature_importances, [4 / 20, 16 / 20])


def test_a_split_that_turns_a_slope_around_gets_half_of_it():
    tree = ObliqueTree.of([[1.0, 0.0]], bias=[0], values=[0, 0], leaf_weights=[[0, -1], [0, 1]])
    np.testing.assert_allclose(tree.feature_importances, [0.5, 0.5])


def by_rows(tree: ObliqueTree, X: np.ndarray) -> np.ndarray:
    """Return the importances of a tree of numbers with linear leaves, from rows."""
    leaf, found = tree.apply(X), np.zeros(tree.n_features)
    inside = [X[leaf == i] for i in range(tree.n_leaves)]
    slopes = np.array([tree.leaf_weights[i, 0] * x.std(axis=0) for i, x in enumerate(inside)])
    means = np.array([tree.outputs(x).mean() for x in inside])
    passed = tree.decision_path(X).toarray()
    nodes = np.where(tree.children >= 0, tree.children, tree.n_splits + ~tree.children)
    found += np.bincount(leaf) @ slopes**2
    for split, branches in enumerate(nodes):
        rows = passed[:, split] == 1
        for row_values, is_slope in ((means[leaf], False), *((s, True) for s in slopes[leaf].T)):
            part = 0.0
            for branch in branches:
                here = passed[:, branch] == 1
                part += here.sum() * (row_values[here].mean() - row_values[rows].mean()) ** 2
            found[np.argmax(tree.weights[split] != 0)] += part / 2 if is_slope else part
    for split, branches in enumerate(nodes):
        rows = passed[:, split] == 1
        for branch in branches:
            here = passed[:, branch] == 1
            apart = slopes[leaf[here]].mean(axis=0) - slopes[leaf[rows]].mean(axis=0)
            found -= here.sum() * apart**2 / 2
    return found / found.sum()


def test_linear_leaves_get_what_their_rows_show(rng):
    """A model knows only how columns vary in the whole table; rows of normal columns tell more."""
    X = rng.normal(size=(40_000, 3)) * [1.0, 2.0, 0.5]
    tree = ObliqueTree.of(
        [[1.0, 0, 0], [0, 1.0, 0], [1.0, 0, 0]],
        bias=[-1.0, 1.0, -2.0],
        values=[1.0, 2.0, -6.0, 5.0],
        leaf_weights=[[0.5, 1, 3], [0.2, 2, -1], [6, 0.1, 1], [-2, 0, 1]],
        schema=numbers(1, 2, 0.5),
    )
    counted = tree.prune(X)  # sets the counts
    assert counted.n_leaves == 4
    np.testing.assert_allclose(counted.feature_importances, by_rows(tree, X), atol=0.03)


@given(st.one_of(trees(), ensembles(), policies()))
def test_importances_are_shares(model):
    assert_shares(model)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
def test_units_do_not_matter(size):
    spreads, weights = np.array([1.0, 2.0]), np.array([[1.0, 3.0], [0.5, -1.0]])
    parts = {"bias": [0, 0], "children": [[-1, 1], [-2, -3]], "counts": [9, 5, 4, 3, 2]}
    slopes = np.array([[1.0, 0.5], [0.2, 1.0], [2.0, 0.0]])

    def tree(unit_of_columns: float, unit_of_values: float) -> ObliqueTree:
        return ObliqueTree.of(
            weights / unit_of_columns,
            values=np.array([1.0, 2.0, 5.0]) * unit_of_values,
            leaf_weights=slopes * (unit_of_values / unit_of_columns),
            schema=numbers(*spreads * unit_of_columns),
            **parts,
        )

    expected = tree(1.0, 1.0).feature_importances
    np.testing.assert_allclose(tree(1.0, size).feature_importances, expected)
    np.testing.assert_allclose(tree(size, size).feature_importances, expected)


def test_all_targets_of_a_regression_count_the_same():
    parts = {"bias": [0, 0], "children": [[-1, 1], [-2, -3]], "task": "regression"}
    values = np.array([[0, 0], [1e6, 0], [1e6, 1]])
    tree = ObliqueTree.of([[1.0, 0], [0, 1.0]], values=values, **parts)
    other = ObliqueTree.of([[1.0, 0], [0, 1.0]], values=values / [1e6, 1], **parts)
    np.testing.assert_allclose(tree.feature_importances, other.feature_importances)


def test_leaves_that_agree_leave_nothing_to_share():
    counts = [10, 3, 7, 0.1, 2.9, 3, 4]  # sums of which are rounded
    same = ObliqueTree.of(np.eye(3), bias=[0] * 3, values=[[0.3, 0.7]] * 4, counts=counts)
    leaf = ObliqueTree.of(np.empty((0, 2)), thresholds=[], values=[1.5])
    empty = ObliqueTree.of([[1.0, 2.0]], thresholds=[0.0], values=[0, 1], counts=[0, 0, 0])
    for tree in (same, leaf, empty):
        assert not tree.feature_importances.any()


def test_the_trees_of_a_mean_count_the_same_and_those_of_a_sum_by_what_they_add():
    large = ObliqueTree.of([[1.0, 0.0]], thresholds=[0.0], values=[0.0, 3.0])
    small = ObliqueTree.of([[0.0, 1.0]], thresholds=[0.0], values=[0.0, 1.0])
    shares = ObliqueForest([large, small]).feature_importances
    np.testing.assert_allclose(shares, [0.5, 0.5])
    shares = ObliqueForest([large, small], combine="sum").feature_importances
    np.testing.assert_allclose(shares, [0.9, 0.1])


def test_what_all_scores_of_a_softmax_have_in_common_is_ignored(rng):
    soft = make_ensemble(0)
    shift = rng.normal(size=(*soft.values.shape[:2], 1))
    moved = soft.replace(values=soft.values + shift)
    np.testing.assert_allclose(moved.feature_importances, soft.feature_importances)
    leaf_weights = rng.normal(size=(2, 3, 2))
    parts = {"thresholds": [0.0], "values": rng.normal(size=(2, 3)), "classes": "abc"}
    tree = ObliqueTree.of([[1.0, 0.5]], leaf_weights=leaf_weights, **parts)
    other = tree.replace(leaf_weights=leaf_weights + rng.normal(size=(2, 1, 2)))
    np.testing.assert_allclose(other.feature_importances, tree.feature_importances)


def test_a_policy_tree_with_two_branches_is_an_oblique_tree():
    policy = PolicyTree(
        [-1, 0, 0, 1, 1],
        [[0.0, 0], [1, 2], [3, -1], [0, 1], [1, 1]],
        [0.0, 1, 2, 3, 4],
        [[0.0], [3.0], [7.0]],
        schema=numbers(1, 2),
        task="regression",
        counts=[10, 6, 4, 1, 5],
    )
    np.testing.assert_allclose(policy.feature_importances, policy.to_oblique().feature_importances)


def test_the_columns_of_a_split_with_three_branches():
    """What all branches weigh alike tells none from another."""
    policy = PolicyTree(
        [-1, 0, 0, 0],
        [[0.0, 0], [1, 5], [2, 5], [3, 9]],
        [0.0, 0, 0, 0],
        [[0.0], [3.0], [7.0]],
        schema=numbers(1, 1),
        task="regression",
    )
    apart = np.array([np.var([1, 2, 3]), np.var([5, 5, 9])])
    np.testing.assert_allclose(policy.feature_importances, apart / apart.sum())


def latent(**head) -> LatentTreeModel:
    """Return a latent tree with one split on the first column, and a predictor."""
    return LatentTreeModel(
        [0, 1, 2],
        [1.0, 1.0, 1.0],
        [[1.0, 0.0]],
        [0.0],
        **head,
        schema=numbers(1, 2),
        task="regression",
    )


def test_a_latent_tree_shares_by_what_its_predictor_makes_of_the_leaves():
    of_tree = {"head_weights": [0, -1.0, 3.0], "head_bias": [0.0]}
    np.testing.assert_allclose(latent(**of_tree).feature_importances, [1, 0])
    both = {"head_weights": [0, -1.0, 3.0, 0, 1.0], "head_bias": [0.0], "skip_connection": True}
    np.testing.assert_allclose(latent(**both).feature_importances, [0.5, 0.5])  # 4 of each


def test_a_nonlinear_predictor_counts_by_its_tangent():
    """Hidden values are 1 and -1 at the leaves, where an ELU has the slopes 1 and exp(-1)."""
    model = latent(
        head_weights=[0, 1.0, -1.0, 0.0, 0.5, 1.0],
        head_bias=[0.0, 0.0],
        widths=(1,),
        skip_connection=True,
    )
    values, slopes = np.array([1.0, np.expm1(-1)]), np.array([1.0, np.exp(-1)])
    between, apart = np.var(values), np.var(slopes)
    column = np.mean(slopes**2) - apart / 2
    total = between + apart / 2 + column
    expected = [(between + apart / 2) / total, column / total]
    np.testing.assert_allclose(model.feature_importances, expected)


@pytest.mark.parametrize(
    "model",
    [make_forest(0), make_ensemble(0), latent(head_weights=[0, -1.0, 3.0], head_bias=[0.0])],
    ids=["forest", "ensemble", "latent"],
)
def test_a_file_keeps_what_importances_need(model):
    again = loads(dumps(model))
    np.testing.assert_array_equal(again.feature_importances, model.feature_importances)
    assert not model.feature_importances.flags.writeable


def test_a_feature_that_goes_takes_its_importance_along():
    """Importances are those of the model as it is, not as it was when it was learned."""
    tree = ObliqueTree.of([[1.0, 1.0]], thresholds=[0.0], values=[0, 1])
    shorter = tree.replace(weights=[[1.0, 0.0]])
    np.testing.assert_allclose(tree.feature_importances, [0.5, 0.5])
    np.testing.assert_allclose(shorter.feature_importances, [1.0, 0.0])
