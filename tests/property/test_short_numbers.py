"""Numbers rounded to what the rows support: same leaves, as good, short, and reproducible."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardwood.model import ObliqueTree
from hardwood.model.edit.criterion import criterion_for
from hardwood.model.edit.short_numbers import short_numbers
from hardwood.table import Feature, Schema
from hardwood.text.leaf import decision_words
from hardwood.text.numbers import n_digits
from trees import make_rows, make_tree, trees


def targets(rng: np.random.Generator, tree: ObliqueTree, X: Any) -> np.ndarray:
    """Draw targets from the predictions of a tree, so that it fits them."""
    outputs = tree.outputs(X)
    if tree.task == "regression":
        return outputs + rng.normal(size=outputs.shape) * outputs.std(axis=0)
    if tree.task == "multilabel":
        return (rng.random(outputs.shape) < outputs).astype(np.float64)
    return np.array([rng.choice(len(p), p=p / p.sum()) for p in outputs])


@settings(max_examples=150, deadline=None)
@given(trees(), st.integers(0, 2**32 - 1), st.integers(2, 80), st.booleans())
def test_rounding_changes_nothing_that_the_rows_tell(tree, seed, n, weighted):
    rng = np.random.default_rng(seed)
    X = make_rows(rng, tree.schema, n)
    truth = targets(rng, tree, X)
    weight = rng.integers(0, 3, n) + (np.arange(n) == 0) if weighted else np.ones(n)
    short = short_numbers(tree, X, truth, weight)
    used = weight > 0
    np.testing.assert_array_equal(short.apply(X)[used], tree.apply(X)[used])
    share = weight[used] / weight[used].sum()
    before, after = tree.outputs(X)[used], short.outputs(X)[used]
    criterion = criterion_for(tree, "squared_error" if tree.task == "regression" else "log_loss")
    losses = criterion.losses(before, truth[used])
    change = share @ (criterion.losses(after, truth[used]) - losses)
    error = max(
        np.sqrt(share**2 @ (losses - share @ losses) ** 2), share @ losses * (share @ share)
    )
    assert abs(change) <= 0.02 * error * (1 + 1e-9)
    assert short == short_numbers(tree, X, truth, weight)


@settings(max_examples=150, deadline=None)
@given(trees(), st.integers(0, 2**32 - 1))
def test_probabilities_stay_probabilities(tree, seed):
    rng = np.random.default_rng(seed)
    X = make_rows(rng, tree.schema, 50)
    short = short_numbers(tree, X, targets(rng, tree, X))
    is_certain = tree.task == "classification" and tree.n_outputs == 1
    if tree.has_linear_leaves or tree.task == "regression" or is_certain:
        return
    np.testing.assert_array_equal(short.values == 0, tree.values == 0)
    np.testing.assert_array_equal(short.values == 1, tree.values == 1)
    if tree.task == "classification":
        np.testing.assert_allclose(short.values.sum(axis=1), 1, rtol=0, atol=1e-15)
        np.testing.assert_array_equal(short.values.argmax(axis=1), tree.values.argmax(axis=1))


def text_of(tree: ObliqueTree, digits: Any) -> str:
    """Write a tree without the notes below it, which list the means of missing numbers."""
    return tree.to_text(max_terms=None, digits=digits).split("A missing number counts")[0]


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_text_of_rounded_numbers_leaves_out_no_digit(task, linear, k):
    rng = np.random.default_rng(k)
    tree = make_tree(rng, n_features=4, task=task, linear=linear, k=k, sparsity=0.5, mixed=True)
    X = make_rows(rng, tree.schema, 2000)
    tree = tree.prune(X)
    short = short_numbers(tree, X, targets(rng, tree, X))
    assert text_of(tree, digits="auto") != text_of(tree, digits=12)
    assert text_of(short, digits="auto") == text_of(short, digits=12)


def test_more_rows_keep_more_digits():
    rng = np.random.default_rng(0)
    tree = make_tree(rng, n_splits=0, n_features=3, task="regression", k=1, linear=True, sparsity=0)
    lengths = []
    for n in (30, 30_000):
        X = rng.normal(size=(n, 3)) * tree.schema.column_scale + tree.schema.column_center
        short = short_numbers(tree, X, targets(rng, tree, X))
        lengths.append(sum(map(n_digits, short.leaf_weights.ravel().tolist())))
    assert lengths[0] < lengths[1]


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("size", [1e-290, 1e-200, 1e200, 1e303])
def test_targets_near_the_limits_of_float64_are_rounded_like_others(size, linear):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(300, 2)), rng.normal(size=(300, 1))
    tree = ObliqueTree.of(
        [[1.0, 0.0]],
        thresholds=[0.0],
        values=[[-0.123456], [1.23456]],
        leaf_weights=[[[0.0, 0.123456]]] * 2 if linear else None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short = short_numbers(tree, X, y)
        scaled = short_numbers(_with_leaves_times(tree, size), X, size * y)
    expected = _with_leaves_times(short, size)
    np.testing.assert_allclose(scaled.outputs(X), expected.outputs(X), rtol=1e-9)


def _with_leaves_times(tree, factor):
    weights = None if tree.leaf_weights is None else factor * tree.leaf_weights
    return tree.replace(values=factor * tree.values, leaf_weights=weights)


def test_two_classes_have_one_score():
    rng = np.random.default_rng(0)
    tree = make_tree(rng, k=2, linear=True)
    X = make_rows(rng, tree.schema, 500)
    short = short_numbers(tree, X, targets(rng, tree, X))
    assert not short.leaf_weights[:, 0].any()
    assert not short.values[:, 0].any()
    np.testing.assert_allclose(short.outputs(X), tree.outputs(X), atol=0.2)


def test_a_change_that_is_small_by_chance_is_not_taken():
    """The rounded value is as far from the mean of the rows as the exact one."""
    value, rounded = 0.81234, 1.0
    noise = np.random.default_rng(0).normal(size=10_000)
    noise = 3 * (noise - noise.mean()) / noise.std()
    truth = (value + rounded) / 2 + noise[:, None]
    tree = ObliqueTree.of(np.zeros((0, 1)), bias=[], values=[value])
    short = short_numbers(tree, np.zeros((10_000, 1)), truth)
    assert short.values[0, 0] == 0.8


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("k", [2, 4])
def test_decisions_stay_and_have_short_numbers(k, linear):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        tree = make_tree(rng, k=k, linear=linear, decides=True)
        X = make_rows(rng, tree.schema, 300)
        short = short_numbers(tree, X, targets(rng, tree, X))
        weights = short.decision_weights
        exact = short.replace(decision_weights=tree.decision_weights)
        np.testing.assert_array_equal(short.predict(X), exact.predict(X))
        assert max(map(n_digits, weights.tolist())) <= (9 if linear else 2)
        number = r"> ([\d.e-]+)$" if k == 2 else r" ([\d.e-]+)[,)]"
        written = re.findall(number, decision_words(short))
        expected = [weights[0]] if k == 2 else weights
        np.testing.assert_array_equal([float(text) for text in written], expected)


def test_dates_count_in_days_and_levels_are_rounded_alike():
    joined = Feature("joined", "numeric", center=1.5e9, scale=1e7, spread=(1e7,), origin="date")
    color = Feature("color", "categorical", levels=("red", "green", "blue"))
    schema = Schema((joined, color))
    tree = ObliqueTree.of(
        np.zeros((0, 4)),
        bias=[],
        values=[1.2345678],
        leaf_weights=[[0.0123456 / 86400, 0.81234, 0.80932, -0.3456]],
        schema=schema,
    )
    rng = np.random.default_rng(1)
    days = np.datetime64("2017-07-14") + rng.integers(-200, 200, 3000).astype("timedelta64[D]")
    colors = rng.choice(color.levels, 3000, p=[0.6, 0.395, 0.005])
    X = [list(row) for row in zip(days.tolist(), colors, strict=True)]
    short = short_numbers(tree, X, targets(rng, tree, X))
    weights = short.linear_leaf(0).weights
    assert n_digits(weights[0] * 86400) <= 4
    np.testing.assert_array_equal(weights[1:], [0.81, 0.81, -0.35])
    formula = short.linear_leaf(0).formula
    assert formula.endswith(" + (0.81 if color is one of red, green) - (0.35 if color is blue)")


@pytest.mark.parametrize("origin", ["number", "date", "duration"])
@pytest.mark.parametrize("flag", [1e8, -1e8, 12400.0, 12300.0])
@pytest.mark.parametrize("has_missing_rows", [False, True])
def test_a_threshold_is_short_and_missing_values_keep_their_side(origin, flag, has_missing_rows):
    hour = Feature(
        "t",
        "numeric",
        center=1.5e9,
        scale=2.0**22,
        has_missing=True,
        spread=(4e6, 0.3),
        origin=origin,
    )
    schema = Schema((hour,))
    tree = ObliqueTree.of([[1.0, flag]], bias=[-12345.678], values=[0.0, 1.0], schema=schema)
    rng = np.random.default_rng(2)
    X = 1.5e9 + rng.normal(size=(400, 1)) * 4e6
    if has_missing_rows:
        X[::9] = np.nan
    short = short_numbers(tree, X, tree.outputs(X))
    X[0] = np.nan
    np.testing.assert_array_equal(short.apply(X), tree.apply(X))
    words = short.split(0).condition
    assert words == short.split(0).describe(digits=15)
    assert words.endswith("or missing" if flag > 12345.678 else "and not missing")
    assert len(words) <= len("t >= 2017-07-14 00:00 and not missing")
