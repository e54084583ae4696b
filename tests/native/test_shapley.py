"""Shapley values of the engine equal the definition, exactly or up to sampling errors."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

from forests import make_forest
from hardwood import _native
from hardwood.explain import ShapleyValues, shapley
from hardwood.explain.shapley import _packed
from hardwood.model import ObliqueForest, ObliqueTree
from reference.shapley import shapley as by_definition
from trees import LINKS, make_rows, make_tree

TASKS = sorted(LINKS)
NO_VOTES = ("regression", "vote")


def rows_of(rng: np.random.Generator, model: Any, n: int) -> np.ndarray:
    """Return rows of plain Python values, (n, p) objects."""
    rows = np.empty((n, model.n_features), dtype=object)
    rows[:] = make_rows(rng, model.schema, n)
    return rows


def answers(model: Any, rows: Any) -> np.ndarray:
    rows = rows.tolist() if rows.dtype == object else rows
    asked = model.predict if model.task == "regression" else model.predict_proba
    return asked(rows).reshape(len(rows), -1)


def check(model: Any, X: np.ndarray, background: np.ndarray, **options: Any) -> ShapleyValues:
    """Compare with the definition, which predicts every mixed row."""
    given = shapley(model, X.tolist(), background.tolist(), exact=True, **options)
    expected = by_definition(lambda rows: answers(model, rows), X, background)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(given.values, expected, rtol=0, atol=1e-13 * scale)
    assert given.is_exact.all()
    assert given.standard_errors is None
    return given


def check_sum(model: Any, X: np.ndarray, given: ShapleyValues) -> None:
    outputs = answers(model, X)
    np.testing.assert_allclose(
        given.base + given.values.sum(axis=1),
        outputs,
        rtol=0,
        atol=1e-13 * max(1.0, np.abs(outputs).max()),
    )


# Splits that weigh most features are enumerated by sets, others by cases.
@pytest.mark.parametrize("sparsity", [0.0, 0.7], ids=["sets", "cases"])
@pytest.mark.parametrize("linear", [False, True], ids=["constant", "linear"])
@pytest.mark.parametrize("mixed", [False, True], ids=["numbers", "mixed"])
@pytest.mark.parametrize("task", TASKS)
def test_trees_by_definition(rng, task, mixed, linear, sparsity):
    for n_features, n_splits in [(1, 1), (3, 4), (5, 12), (6, 0)]:
        tree = make_tree(
            rng,
            n_splits=n_splits,
            n_features=n_features,
            task=task,
            mixed=mixed,
            linear=linear,
            sparsity=sparsity,
        )
        X, background = rows_of(rng, tree, 3), rows_of(rng, tree, 4)
        check_sum(tree, X, check(tree, X, background))


@pytest.mark.parametrize("sparsity", [0.0, 0.8], ids=["sets", "cases"])
def test_ten_features_by_definition(rng, sparsity):
    tree = make_tree(rng, n_splits=31, n_features=10, k=2, sparsity=sparsity)
    X, background = rows_of(rng, tree, 2), rows_of(rng, tree, 3)
    check_sum(tree, X, check(tree, X, background))


def test_exp_leaves_by_definition(rng):
    tree = make_tree(rng, n_features=4, task="regression", linear=True, link="exp", k=2)
    X, background = rows_of(rng, tree, 3), rows_of(rng, tree, 4)
    check_sum(tree, X, check(tree, X, background))


@pytest.mark.parametrize("linear", [(False,), (True, False)], ids=["constant", "linear"])
@pytest.mark.parametrize(
    ("task", "combine"),
    [(task, how) for task in TASKS for how in ("mean", "vote") if (task, how) != NO_VOTES],
)
def test_forests_by_definition(rng, task, combine, linear):
    forest = make_forest(
        rng, sizes=(5, 0, 3), n_features=5, task=task, mixed=True, linear=linear, combine=combine
    )
    X, background = rows_of(rng, forest, 3), rows_of(rng, forest, 4)
    check_sum(forest, X, check(forest, X, background))


@pytest.mark.parametrize("linear", [(False,), (True, False)], ids=["constant", "linear"])
@pytest.mark.parametrize("link", ["identity", "exp", "softmax", "logistic"])
def test_sums_of_trees_by_definition(rng, link, linear):
    members = make_forest(
        rng, sizes=(4, 2, 0), n_features=4, k=2, task="regression", mixed=True, linear=linear
    ).trees
    smaller = [tree.replace(values=tree.values / 10) for tree in members]
    classes = ["a", "b"] if link == "softmax" else None
    forest = ObliqueForest(smaller, combine="sum", link=link, classes=classes)
    X, background = rows_of(rng, forest, 3), rows_of(rng, forest, 4)
    check_sum(forest, X, check(forest, X, background))
    sampled = shapley(forest, X.tolist(), background.tolist(), exact=False)
    check_sum(forest, X, sampled)


@pytest.mark.parametrize("sparsity", [0.0, 0.6], ids=["sets", "cases"])
def test_rows_on_thresholds_go_where_the_model_sends_them(rng, sparsity):
    """Integers: every second score is exactly 0, in float32 too."""
    m, p = 15, 6
    weights = rng.integers(-2, 3, size=(m, p)) * (rng.random((m, p)) >= sparsity)
    tree = ObliqueTree.of(weights, thresholds=np.zeros(m), values=rng.normal(size=m + 1))
    X = rng.integers(-1, 2, size=(6, p)).astype(np.float64)
    background = rng.integers(-1, 2, size=(8, p)).astype(np.float64)
    check_sum(tree, X, check(tree, X, background))
    sampled = shapley(tree, X, background, exact=False, n_permutations=400)
    expected = by_definition(lambda rows: answers(tree, rows), X, background)
    assert errors_over_estimate(sampled, expected) < 1.3


def test_scores_within_rounding_errors_go_where_the_model_sends_them(rng):
    """Sums that are 0 except for float32 rounding, which depends on the order."""
    p = 7
    weights = np.array([[0.1, 0.2, -0.3, 0.7, -0.7, 1e-9, -1e-9]])
    tree = ObliqueTree.of(weights, thresholds=[0.0], values=[0.0, 1.0])
    X = rng.choice([1.0, -1.0, 1 / 3, 0.1], size=(40, p)).astype(np.float32)
    background = X[rng.permutation(40)[:6]]
    given = shapley(tree, X, background, exact=True)
    expected = by_definition(lambda rows: answers(tree, rows), X, background)
    np.testing.assert_allclose(given.values, expected, rtol=0, atol=1e-14)
    check_sum(tree, X, given)
    check_sum(tree, X, shapley(tree, X, background, exact=False))


def test_huge_numbers_by_definition(rng):
    """Changes that overflow float32 make scores useless, so rows are routed again."""
    tree = make_tree(rng, n_features=4, n_splits=9, sparsity=0.0)
    X = rng.choice([3e38, -3e38, 1.0], size=(4, 4))
    background = rng.choice([3e38, -3e38, 0.0], size=(5, 4))
    check_sum(tree, X, check(tree, X, background))
    check_sum(tree, X, shapley(tree, X, background, exact=False))


def errors_over_estimate(sampled: ShapleyValues, expected: np.ndarray) -> float:
    """Return the root of squared errors over squared standard errors; near 1 if these are right."""
    assert sampled.standard_errors is not None
    squares = ((sampled.values - expected) ** 2).sum()
    return float(np.sqrt(squares / (sampled.standard_errors**2).sum()))


@pytest.mark.parametrize("kind", ["dense", "sparse", "mixed", "linear", "forest", "sum"])
def test_sampled_values_are_off_by_their_standard_errors(rng, kind):
    """Over thousands of values, estimates that are too small or too large are detected."""
    model: Any
    if kind in ("forest", "sum"):
        model = make_forest(rng, sizes=(12, 7), n_features=7, k=1, task="regression")
        if kind == "sum":
            trees = [tree.replace(values=tree.values / 10) for tree in model.trees]
            model = ObliqueForest(trees, combine="sum", link="exp")
    else:
        model = make_tree(
            rng,
            n_splits=20,
            n_features=8,
            k=2,
            mixed=kind == "mixed",
            linear=kind == "linear",
            sparsity=0.6 if kind == "sparse" else 0.0,
        )
    X, background = rows_of(rng, model, 60).tolist(), rows_of(rng, model, 25).tolist()
    exact = shapley(model, X, background, exact=True)
    for n_permutations in (2, 5):
        ratios = [
            errors_over_estimate(
                shapley(
                    model,
                    X,
                    background,
                    exact=False,
                    n_permutations=n_permutations,
                    random_state=seed,
                ),
                exact.values,
            )
            for seed in range(12)
        ]
        assert 0.9 < np.sqrt(np.mean(np.square(ratios))) < 1.1


@pytest.mark.parametrize("kind", ["dense", "mixed", "forest"])
@pytest.mark.parametrize("exact", [True, False])
def test_neither_threads_nor_company_change_a_row(rng, kind, exact):
    model: Any = (
        make_forest(rng, sizes=(9, 4), n_features=6)
        if kind == "forest"
        else make_tree(rng, n_splits=12, n_features=6, mixed=kind == "mixed")
    )
    X, background = rows_of(rng, model, 50).tolist(), rows_of(rng, model, 9).tolist()
    options: dict[str, Any] = {"exact": exact, "random_state": 3}
    together = shapley(model, X, background, **options)
    for n_jobs in (2, 3, 64):
        again = shapley(model, X, background, n_jobs=n_jobs, **options)
        np.testing.assert_array_equal(again.values, together.values)
    alone = shapley(model, X[17:18], background, **options)
    np.testing.assert_array_equal(alone.values[0], together.values[17])
    if not exact:
        assert together.standard_errors is not None
        assert alone.standard_errors is not None
        np.testing.assert_array_equal(alone.standard_errors[0], together.standard_errors[17])
        other = shapley(model, X, background, exact=False, random_state=4)
        assert not np.array_equal(other.values, together.values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tables_of_either_float(rng, dtype):
    tree = make_tree(rng, n_splits=9, n_features=5)
    X = np.array(rows_of(rng, tree, 5), dtype=dtype)
    background = np.array(rows_of(rng, tree, 6), dtype=dtype)
    given = shapley(tree, X, background, exact=True)
    expected = by_definition(lambda rows: answers(tree, rows), X, background)
    np.testing.assert_allclose(given.values, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("exact", [True, False])
def test_one_output_is_what_it_is_among_all(rng, linear, exact):
    tree = make_tree(rng, n_splits=9, n_features=5, k=4, linear=linear)
    X, background = rows_of(rng, tree, 6).tolist(), rows_of(rng, tree, 5).tolist()
    every = shapley(tree, X, background, exact=exact)
    one = shapley(tree, X, background, exact=exact, output=2)
    np.testing.assert_array_equal(one.values[:, :, 0], every.values[:, :, 2])
    assert one.base[0] == every.base[2]


def test_trees_larger_than_a_few_changes(rng):
    """Many sets in sequence: scores are recomputed regularly, and stay right."""
    tree = make_tree(rng, n_splits=60, n_features=9, k=1, task="regression", sparsity=0.0)
    X, background = rows_of(rng, tree, 3), rows_of(rng, tree, 2)
    check_sum(tree, X, check(tree, X, background))


@pytest.mark.parametrize("sparsity", [0.0, 0.6], ids=["sets", "cases"])
def test_long_paths(rng, sparsity):
    """A chain of splits: paths of 1 to 20 levels, more than go into a vector."""
    m, p = 20, 5
    weights = rng.normal(size=(m, p)) * (rng.random((m, p)) >= sparsity)
    children = np.array([[~i, i + 1 if i + 1 < m else ~m] for i in range(m)], dtype=np.int32)
    tree = ObliqueTree.of(
        weights, bias=np.full(m, 1.5), children=children, values=rng.normal(size=m + 1)
    )
    X, background = rng.normal(size=(12, p)), rng.normal(size=(6, p))
    exact = check(tree, X, background)
    check_sum(tree, X, exact)
    sampled = shapley(tree, X, background, exact=False, n_permutations=300)
    check_sum(tree, X, sampled)
    assert errors_over_estimate(sampled, exact.values) < 1.3


def test_more_rows_than_move_together(rng):
    tree = make_tree(rng, n_splits=31, n_features=6, k=1, task="regression", sparsity=0.0)
    X = np.array(rows_of(rng, tree, 700), dtype=float)
    together = shapley(tree, X, X[:3], exact=False)
    check_sum(tree, X, together)
    parts = [shapley(tree, part, X[:3], exact=False).values for part in np.array_split(X, 9)]
    np.testing.assert_array_equal(np.concatenate(parts), together.values)


def packed(tree: ObliqueTree) -> Any:
    return _packed(tree)[0]


def test_what_cannot_be_is_refused(rng):
    tree = make_tree(rng, n_features=3)
    X = np.zeros((2, 3))
    usual = {"output": -1, "n_orders": 2, "most_cases": 0, "seed": 0, "n_threads": 1}
    for rows, others, link, changes, words in [
        (X, X, "softmax", {}, "only a sum"),
        (X, X, "probit", {}, "link must be"),
        (X, X, "identity", {"output": 3}, "no such output"),
        (X, X, "identity", {"n_orders": 1}, "n_orders must lie between 2 and"),
        (X, X, "identity", {"most_cases": -1}, "most_cases must lie between"),
        (X, X[:0], "identity", {}, "no rows"),
        (X[:, :2], X, "identity", {}, "found 2 features"),
        (X, X[:, :2], "identity", {}, "found 2 features"),
        (X + np.inf, X, "identity", {}, "infinity at row 0, feature 0"),
    ]:
        rows, others = np.ascontiguousarray(rows), np.ascontiguousarray(others)
        with pytest.raises(ValueError, match=words):
            _native.shapley(packed(tree), link, rows, others, **(usual | changes))


def test_no_rows_have_no_values(rng):
    tree = make_tree(rng, n_features=3, k=2)
    values, variances, is_exact = _native.shapley(
        packed(tree),
        "identity",
        np.zeros((0, 3)),
        np.zeros((2, 3)),
        output=-1,
        n_orders=2,
        most_cases=9,
        seed=0,
        n_threads=2,
    )
    assert values.shape == variances.shape == (0, 3, 2)
    assert is_exact.shape == (0,)


@pytest.mark.parametrize(
    ("n_features", "sparsity", "exact"),
    [(24, 0.0, True), (40, 0.6, True), (40, 0.0, False)],
    ids=["sets", "cases", "walks"],
)
def test_ctrl_c_ends_a_long_search(rng, n_features, sparsity, exact):
    tree = make_tree(rng, n_splits=63, n_features=n_features, sparsity=sparsity)
    X = rng.normal(size=(200, n_features)) * tree.schema.column_scale + tree.schema.column_center
    options: dict[str, Any] = {"exact": exact, "n_permutations": 100_000}
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        shapley(tree, X, **options)
    timer.join()
