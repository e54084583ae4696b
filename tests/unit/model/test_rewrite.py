"""Rewritten trees have the same predictions."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood.model import ObliqueTree


def test_an_unreached_side_is_removed() -> None:
    tree = ObliqueTree.of(
        [[1.0, 0], [0, 1.0], [1.0, 1.0]],
        thresholds=[0, 0, 0],
        values=[1, 2, 3, 4],
        counts=[10, 4, 6, 4, 0, 1, 5],
    )
    small = tree.simplify()
    assert small.weights.tolist() == [[1, 0], [1, 1]]
    assert small.children.tolist() == [[-1, 1], [-2, -3]]
    assert small.values.ravel().tolist() == [1, 3, 4]
    assert small.counts is not None
    assert small.counts.tolist() == [10, 6, 4, 1, 5]


def test_equal_siblings_are_merged_up_to_the_root() -> None:
    tree = ObliqueTree.of(
        np.ones((3, 2)), bias=[0, 0, 0], values=[2, 2, 2, 2], counts=[9, 4, 5, 1, 3, 2, 3]
    )
    small = tree.simplify()
    assert (small.n_splits, small.n_leaves) == (0, 1)
    assert small.counts is not None
    assert small.counts.tolist() == [9]


def test_probabilities_that_differ_are_not_merged() -> None:
    tree = ObliqueTree.of([[1.0]], bias=[0], values=[[0.9, 0.1], [0.8, 0.2]], classes=["a", "b"])
    assert tree.simplify() == tree


@pytest.mark.parametrize(("bias", "kept"), [(1.0, 5.0), (0.0, 5.0), (-1.0, 4.0)])
def test_a_split_without_weights_always_goes_to_one_side(bias: float, kept: float) -> None:
    tree = ObliqueTree.of([[0.0]], bias=[bias], values=[4.0, 5.0])
    assert tree.simplify().values.tolist() == [[kept]]
    assert tree.predict([[7.0]]).tolist() == [kept]


def test_linear_leaves_with_equal_weights_are_merged() -> None:
    def simplified(leaf_weights: list[list[float]]) -> ObliqueTree:
        values = [1.0, 1.0, 1.0, 2.0]
        return ObliqueTree.of(
            np.ones((3, 1)), bias=[0, 1, 2], values=values, leaf_weights=leaf_weights
        ).simplify()

    assert simplified([[1.0], [2.0], [3.0], [3.0]]).n_leaves == 4
    merged = simplified([[2.0], [2.0], [3.0], [3.0]])
    assert merged.values.ravel().tolist() == [1, 1, 2]
    assert merged.leaf_weights.ravel().tolist() == [2, 3, 3]


def test_perfect_trees_have_copies_of_linear_leaves() -> None:
    tree = ObliqueTree.of(
        [[1.0], [2.0]],
        bias=[0.5, 0.25],
        children=[[-1, 1], [-2, -3]],
        values=[7, 8, 9],
        leaf_weights=[[1.0], [2.0], [3.0]],
        link="exp",
    )
    perfect = tree.to_perfect()
    assert perfect.values.ravel().tolist() == [7, 7, 8, 9]
    assert perfect.leaf_weights.ravel().tolist() == [1, 1, 2, 3]
    assert perfect.simplify() == tree


def test_a_tree_that_no_sample_reached_stays() -> None:
    tree = ObliqueTree.of([[1.0]], bias=[0], values=[1, 2], counts=[0, 0, 0])
    assert tree.simplify() == tree


def test_perfect_by_hand() -> None:
    tree = ObliqueTree.of(
        [[1.0], [2.0]],
        bias=[0.5, 0.25],
        children=[[-1, 1], [-2, -3]],
        values=[7, 8, 9],
        counts=[6, 5, 1, 2, 3],
    )
    perfect = tree.to_perfect()
    assert perfect.weights.ravel().tolist() == [1, 0, 2]
    assert perfect.bias.tolist() == [0.5, 1, 0.25]
    assert perfect.children.tolist() == [[1, 2], [-1, -2], [-3, -4]]
    assert perfect.values.ravel().tolist() == [7, 7, 8, 9]
    assert perfect.counts is not None
    assert perfect.counts.tolist() == [6, 1, 5, 0, 1, 2, 3]
    assert perfect.simplify() == tree


def test_depth_zero_and_bounds() -> None:
    leaf = ObliqueTree.of(np.zeros((0, 1)), bias=[], values=[3.0])
    assert leaf.to_perfect(0) == leaf
    assert leaf.to_perfect(2).values.ravel().tolist() == [3] * 4
    tree = leaf.to_perfect(2)
    for depth in (1, -1, 21):
        with pytest.raises(ValueError, match="depth must be at least 2"):
            tree.to_perfect(depth)


def test_other_parts_are_kept() -> None:
    tree = ObliqueTree.of(
        np.ones((3, 2)),
        bias=[0, 0, 0],
        values=np.full((4, 2), 0.5),
        classes=["a", 1],
        target_names="y",
        feature_names=["u", "v"],
        record={"a": 1},
    )
    for other in (tree.simplify(), tree.to_perfect(3)):
        assert (other.classes, other.target_names) == (tree.classes, tree.target_names)
        assert (other.schema, other.record, other.task) == (tree.schema, tree.record, tree.task)
        assert (other.link, other.leaf_weights) == ("identity", None)
