"""Claims of the non-greedy paper (Norouzi et al., NIPS 2015), held against the NumPy reference.

Bounds are maxima over all 2^m decisions, written out as in the paper. The reference computes them
by paths to leaves, and the engine by branch and bound; all must agree.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from hardwood import GreedyTreeClassifier, NonGreedyTreeClassifier
from reference import non_greedy as reference
from reference.probes import augment

LOSSES = ("cross_entropy", "squared_error")


def random_tree(rng, n_splits, scale) -> reference.Tree:
    children = np.full((n_splits, 2), -1)
    for split in range(1, n_splits):
        parent, side = rng.choice(np.argwhere(children[:split] < 0))
        children[parent, side] = split
    tree = reference.Tree(
        scale * rng.normal(size=(n_splits, 3)),
        scale * rng.normal(size=n_splits),
        children,
        2 * rng.normal(size=(n_splits + 1, 3)),
    )
    for leaf, (_, path) in enumerate(tree.paths()):  # from left to right
        if path:
            split, decision = path[-1]
            children[split, int(decision > 0)] = -1 - leaf
    return tree


@st.composite
def cases(draw):
    """A tree of at most 6 splits, a row and its target."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tree = random_tree(rng, draw(st.integers(0, 6)), draw(st.sampled_from([0.1, 0.5, 2.0])))
    loss = draw(st.sampled_from(LOSSES))
    y = rng.integers(3, size=1) if loss == "cross_entropy" else rng.normal(size=3)
    return tree, rng.normal(size=3), y.astype(np.float64), loss, rng


def losses_of(tree, y, loss):
    return lambda leaf: reference.leaf_loss(tree, leaf, y, loss, 0.0)


def natural_loss(tree, x, y, loss) -> float:
    return losses_of(tree, y, loss)(tree.leaf(reference.decisions(tree.scores(x))))


@given(cases())
def test_eq_7_and_13_bound_the_loss_and_the_ball_gives_the_smaller_bound(case):
    tree, x, y, loss, _ = case
    of_tree = natural_loss(tree, x, y, loss)
    in_ball = reference.brute_force_bound(tree, x, losses_of(tree, y, loss), radius=1)
    everywhere = reference.brute_force_bound(tree, x, losses_of(tree, y, loss))
    assert of_tree <= in_ball + 1e-12
    assert in_ball <= everywhere + 1e-12


@given(cases())
def test_eq_7_is_tight_where_augmented_and_plain_inference_agree(case):
    """The bound is the loss when g = h (Sec. 5), and only then unless another leaf draws level."""
    tree, x, y, loss, _ = case
    found = reference.augment(tree, x, y, inference="exhaustive", loss=loss)
    is_tight = found.bound == pytest.approx(found.loss, abs=1e-12)
    assert is_tight == (found.chosen == found.natural)


@given(cases())
def test_eq_7_is_tight_when_the_natural_leaf_suffers_most(case):
    tree, x, y, loss, _ = case
    largest = max(losses_of(tree, y, loss)(leaf) for leaf in range(len(tree.theta)))
    of_tree = natural_loss(tree, x, y, loss)
    if of_tree == largest:
        bound = reference.brute_force_bound(tree, x, losses_of(tree, y, loss))
        assert bound == pytest.approx(of_tree, abs=1e-12)


@given(cases())
def test_eq_14_bounds_eq_13_and_is_equal_to_it_where_the_row_stays(case):
    tree, x, y, loss, rng = case
    free = reference.augment(tree, x, y, inference="fast", loss=loss)
    leaf = int(rng.integers(len(tree.theta)))
    fixed = reference.augment(tree, x, y, inference="fast", loss=loss, assigned=leaf)
    assert fixed.bound >= free.bound - 1e-12
    at_home = reference.augment(tree, x, y, inference="fast", loss=loss, assigned=free.natural)
    assert at_home.bound == pytest.approx(free.bound, abs=1e-12)
    if leaf != free.natural:
        assert fixed.bound > free.bound


@given(cases())
def test_eq_14_is_a_maximum_over_all_decisions_that_lead_to_the_leaf(case):
    tree, x, y, loss, rng = case
    leaf = int(rng.integers(len(tree.theta)))
    found = reference.augment(tree, x, y, inference="fast", loss=loss, assigned=leaf)
    scores = tree.scores(x)
    sign = reference.decisions(scores)
    of_ball = reference.brute_force_bound(tree, x, losses_of(tree, y, loss), radius=1)
    ways = map(np.array, itertools.product((-1, 1), repeat=len(scores)))
    led = [float(h @ scores) for h in ways if tree.leaf(h) == leaf]
    assert found.bound == pytest.approx(of_ball + sign @ scores - max(led), abs=1e-9)


@given(cases(), st.floats(0.01, 10.0), st.floats(1.0, 10.0))
def test_proposition_1_longer_splits_make_the_bound_tighter(case, b, factor):
    tree, x, y, loss, _ = case
    at = [
        reference.brute_force_bound(
            replace(tree, W=scale * tree.W, b=scale * tree.b), x, losses_of(tree, y, loss)
        )
        for scale in (b * factor, b)
    ]
    assert at[0] <= at[1] + 1e-9


@given(cases())
def test_in_the_limit_the_bound_is_the_loss(case):
    tree, x, y, loss, _ = case
    if (np.abs(tree.scores(x)) < 1e-6).any():
        return
    long = replace(tree, W=1e9 * tree.W, b=1e9 * tree.b)
    bound = reference.brute_force_bound(long, x, losses_of(tree, y, loss))
    assert bound == pytest.approx(natural_loss(tree, x, y, loss), abs=1e-4)


@settings(max_examples=60)
@given(cases())
def test_searches_by_leaves_are_maxima_over_all_decisions(case):
    """Eq. (10) to (13): the engine's three searches, against all 2^m decisions."""
    tree, x, y, loss, _ = case
    parts = [np.asarray(part, dtype=np.float32) for part in (tree.W, tree.b, tree.theta)]
    rounded = reference.Tree(
        *(part.astype(np.float64) for part in parts[:2]), tree.children, parts[2]
    )
    x, y = x.astype(np.float32), y.astype(np.float32)
    for inference, radius in (("exhaustive", None), ("exact", None), ("fast", 1)):
        expected = reference.brute_force_bound(
            rounded, x.astype(np.float64), losses_of(rounded, y, loss), radius=radius
        )
        children = tree.children.astype(np.int32)
        found = augment(x[None], y[None], children, tuple(parts), inference, loss, 0.0, None)
        assert found["bound"][0] == pytest.approx(expected, rel=1e-4, abs=1e-4)
        of_reference = reference.augment(rounded, x, y, inference=inference, loss=loss)
        assert of_reference.bound == pytest.approx(expected, abs=1e-9)


@given(cases())
def test_the_gradient_is_that_of_the_bound(case):
    """Line 6 of Algorithm 1: (g - h) x^T, by finite differences."""
    tree, x, y, loss, rng = case
    m = len(tree.b)
    found = reference.augment(tree, x, y, inference="exact", loss=loss)
    direction, shift, size = rng.normal(size=(m, 3)), rng.normal(size=m), 1e-7
    moved = [
        reference.augment(
            replace(tree, W=tree.W + s * direction, b=tree.b + s * shift),
            x,
            y,
            inference="exact",
            loss=loss,
        )
        for s in (-size, size)
    ]
    if any((each.moves != found.moves).any() for each in moved):
        return  # a kink
    slope = found.moves @ (direction @ x + shift)
    assert (moved[1].bound - moved[0].bound) / (2 * size) == pytest.approx(slope, abs=1e-5)


def test_at_most_depth_decisions_differ():
    """Sec. 6, computational complexity: what makes a step cheap."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        tree = random_tree(rng, 12, 0.3)
        depth = max(len(path) for _, path in tree.paths())
        x, y = rng.normal(size=3), rng.integers(3, size=1).astype(np.float64)
        exact = reference.augment(tree, x, y, inference="exact", loss="cross_entropy")
        fast = reference.augment(tree, x, y, inference="fast", loss="cross_entropy")
        assert (exact.moves != 0).sum() <= depth
        assert (fast.moves != 0).sum() <= 1


def inactive_leaves(X, y, start, solver, seed) -> int:
    """Leaves of the start that no training row reaches when learning ends."""
    options = {"max_depth": 7, "nu": 1.0, "max_epochs": 15, "early_stopping": False}
    model = NonGreedyTreeClassifier(**options, init=start, solver=solver, random_state=seed)
    return start.tree_.n_leaves - model.fit(X, y).tree_.n_leaves


def test_stable_sgd_leaves_no_more_leaves_inactive_than_sgd():
    """Sec. 6: the median of 11 runs from the same start, with rows in another order in each."""
    X, y = load_digits(return_X_y=True)
    start = GreedyTreeClassifier(max_depth=7).fit(X, y)
    sgd, ssgd = (
        np.median([inactive_leaves(X, y, start, solver, seed) for seed in range(11)])
        for solver in ("sgd", "ssgd")
    )
    assert ssgd <= sgd
    assert sgd > 0  # else there would be nothing to see


def test_a_smaller_nu_uses_fewer_leaves():
    """Fig. 3, in small."""
    X, y = load_digits(return_X_y=True)
    options = {"max_depth": 9, "init": "axis", "max_epochs": 40, "early_stopping": False}
    few, many = (
        NonGreedyTreeClassifier(**options, nu=nu, random_state=0).fit(X, y).tree_.n_leaves
        for nu in (0.1, 100.0)
    )
    assert few < 0.9 * many


def test_learning_together_beats_the_greedy_start():
    """Fig. 2, in small: rows that neither has seen."""
    X, y = load_digits(return_X_y=True)
    seen = np.arange(len(y)) % 3 > 0
    start = GreedyTreeClassifier(splitter="co2", max_depth=8, random_state=0)
    together = NonGreedyTreeClassifier(max_depth=8, random_state=0, early_stopping=False)
    scores = [model.fit(X[seen], y[seen]).score(X[~seen], y[~seen]) for model in (start, together)]
    assert scores[1] > scores[0] + 0.01
