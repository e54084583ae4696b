"""Tasks: what a learner is given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardwood.learn.bagging import _sampled
from hardwood.learn.losses import CrossEntropy, Poisson, Quantile, SquaredError
from hardwood.learn.start import cautious_scores
from hardwood.learn.task import Task
from hardwood.table import Schema, Table
from hardwood.table.split import validation_part


def numbers(X: np.ndarray, target: np.ndarray, weight=None, loss=None) -> Task:
    return Task.of(Table.of(X), target, weight, kind="regression", loss=loss or SquaredError())


def random_task(n: int = 60, seed: int = 0, kind="regression", loss=None, **options) -> Task:
    rng = np.random.default_rng(seed)
    X, target = rng.normal(size=(n, 3)), rng.integers(0, 3, size=(n, 1)).astype(float)
    return Task.of(Table.of(X), target, kind=kind, loss=loss or SquaredError(), **options)


def test_the_schema_is_that_of_the_whole_table():
    """Learned a few columns at a time, in canonical order; the same but for rounding."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(5, 2, size=(200, 5)), columns=list("abcde"))
    X["kind"] = rng.choice(["x", "y", None], 200)
    X.loc[3, "b"] = np.nan
    weight = rng.integers(0, 3, 200).astype(float)
    table = Table.of(X)
    task = Task.of(table, np.arange(200.0)[:, None], weight, kind="regression", loss=SquaredError())
    found = task.schema
    expected = Schema.learn(table, weight)
    assert found.column_names == expected.column_names
    np.testing.assert_allclose(found.column_center, expected.column_center, rtol=1e-12)
    np.testing.assert_allclose(found.column_scale, expected.column_scale, rtol=1e-12)


def test_weights_have_mean_one_over_the_rows_used():
    weight = np.random.default_rng(1).uniform(0, 9, 60)
    weight[:10] = 0
    posed = random_task(weight=weight).divided(0.2, 0)
    used = np.concatenate([posed.train, posed.valid])
    assert len(used) == 50
    assert posed.weight[used].mean() == pytest.approx(1.0, rel=1e-6)
    assert posed.weight.sum() == pytest.approx(50, rel=1e-6)
    np.testing.assert_allclose(
        posed.weight[used] / posed.weight[used[0]], weight[used] / weight[used[0]], rtol=1e-5
    )


def test_train_and_valid_are_apart_and_all():
    posed = random_task().divided(0.25, 0)
    assert len(posed.valid) == 15
    assert sorted([*posed.train, *posed.valid]) == list(range(60))
    assert posed.train.dtype == posed.valid.dtype == np.int64


def test_the_seed_draws_the_validation_part():
    parts = [random_task().divided(0.3, seed).valid.tolist() for seed in (0, 0, 1)]
    assert parts[0] == parts[1] != parts[2]


def test_without_a_fraction_nothing_is_kept_apart():
    task = random_task()
    assert len(task.valid) == len(task.divided(0.0, 0).valid) == 0


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    fraction=st.floats(0.0, 0.99),
    seed=st.integers(0, 5),
)
def test_every_class_gives_its_part_and_keeps_a_row(sizes, fraction, seed):
    group = np.repeat(np.arange(len(sizes)), sizes)
    chosen = validation_part(group, fraction, np.random.default_rng(seed))
    for g, size in enumerate(sizes):
        taken = int(chosen[group == g].sum())
        assert taken <= size - 1
        assert abs(taken - size * fraction) <= 1 + 1e-9 or taken == size - 1
    room = sum(size - 1 for size in sizes)
    if fraction == 0:
        assert not chosen.any()
    elif all(size > 1 for size in sizes) and fraction < 0.5:
        assert chosen.sum() == min(room, max(1, round(len(group) * fraction)))


def test_targets_are_learned_in_units_of_their_deviation():
    rng = np.random.default_rng(0)
    target, weight = rng.normal(50, 4, size=(80, 2)), rng.uniform(0.1, 2, 80)
    posed = numbers(rng.normal(size=(80, 1)), target, weight)
    np.testing.assert_allclose(posed.target_center, np.average(target, axis=0, weights=weight))
    mean = np.average(posed.y, axis=0, weights=weight)
    spread = np.average((posed.y - mean) ** 2, axis=0, weights=weight)
    np.testing.assert_allclose(mean, 0, atol=1e-5)
    np.testing.assert_allclose(spread, 1, rtol=1e-5)
    np.testing.assert_allclose(posed.leaf_values(posed.y), target, rtol=1e-5)


def test_counts_are_learned_in_units_of_their_mean():
    posed = numbers(np.arange(40.0)[:, None], np.arange(40.0)[:, None], loss=Poisson())
    assert posed.y.mean() == pytest.approx(1.0, rel=1e-6)
    np.testing.assert_allclose(posed.leaf_values(np.zeros((1, 1))), [[19.5]])


def test_class_indices_are_left_alone():
    posed = random_task(kind="classification", loss=CrossEntropy(), classes=np.arange(3))
    np.testing.assert_array_equal(posed.y, posed.target)


def test_a_constant_target_has_unit_scale():
    posed = numbers(np.arange(9.0)[:, None], np.full((9, 1), 3.0), loss=Quantile(0.3))
    assert posed.target_scale == [1.0]
    assert not posed.y.any()


def test_equal_rows_are_one_row():
    X, y = np.repeat([[1.0], [2.0]], 5, axis=0), np.zeros((10, 1))
    data = numbers(X, y)
    assert data.rows.weight.tolist() == [5.0, 5.0]
    with pytest.raises(ValueError, match="n_samples=1"):
        numbers(np.ones((4, 1)), np.zeros((4, 1)))


def test_rows_of_no_factor_are_dropped():
    factor = np.where(np.arange(60) < 20, 0.0, 2.0)
    data = random_task(factor=factor)
    assert sorted(data.rows.index) == list(range(20, 60))
    assert data.rows.weight.sum() == 40


def test_the_users_table_is_not_copied_and_not_changed():
    X = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    before = X.copy()
    data = numbers(X, X[:, :1].astype(float))
    assert data.matrix is X
    np.testing.assert_array_equal(X, before)


def test_linear_leaves_of_the_poisson_loss_count_in_the_targets_units():
    task = random_task(loss=Poisson())
    scores = np.array([[0.5], [-1.0]])
    values, weights = task.linear_leaves(scores, np.zeros((2, 1, 3)))
    np.testing.assert_allclose(np.exp(values), task.leaf_values(scores), rtol=1e-6)
    assert not weights.any()
    back, _ = task.scores_of(values, weights)
    np.testing.assert_allclose(back, scores, rtol=1e-6)


def test_drawn_rows_count_as_often_as_drawn_with_mean_one():
    task = random_task().divided(0.2, 0)
    counts = np.arange(len(task.train)) % 4
    sample = _sampled(task, counts)
    used = np.concatenate([sample.train, sample.valid])
    assert set(sample.train) == set(task.train[counts > 0])
    assert sample.weight[used].mean() == pytest.approx(1.0, rel=1e-6)


def test_cautious_leaves_have_five_rows_more_of_the_mean_target():
    task = random_task(n=8)
    leaf = np.array([0] * 6 + [1] * 2)
    n = np.bincount(leaf, task.weight[task.train])[:, None]
    values = np.array([[1.0], [-2.0]])
    mean = (n * values).sum() / n.sum()
    expected = (n * values + 5 * mean) / (n + 5)
    np.testing.assert_allclose(cautious_scores(task, values, leaf), expected, rtol=1e-6)
