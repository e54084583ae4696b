"""Weighted statistics against rational arithmetic, on columns that break the naive formulas."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from hardwood.table.statistics import column_statistics, level_weights, mean_of_rows

nan = np.nan


def exact(x, w):
    """Return the weighted mean and standard deviation, in rational arithmetic except the root."""
    pairs = [
        (Fraction(float(a)), Fraction(float(b)))
        for a, b in zip(x, w, strict=True)
        if b > 0 and a == a
    ]
    total = sum(b for _, b in pairs)
    mean = sum(a * b for a, b in pairs) / total
    variance = sum(b * (a - mean) ** 2 for a, b in pairs) / total
    # The root of a rational that may be beyond float64: scale by a power of four first.
    shift = (variance.numerator.bit_length() - variance.denominator.bit_length()) // 2
    root = math.sqrt(variance / Fraction(4) ** shift)
    return float(mean), math.ldexp(root, shift)


def make(rng, name, n=300):
    normal = rng.normal(size=n)
    return {
        "plain": normal,
        "timestamp": 1.7e9 + rng.choice([-1.0, 1.0], n),
        "timestamp and an outlier": np.where(np.arange(n) == 7, 0.0, 1.7e9 + normal),
        "huge": 1e300 * normal,
        "near the largest float": 1.7e308 * rng.choice([-1.0, 1.0], n),
        "tiny": 1e-300 * normal,
        "huge offset, small spread": 1e15 + rng.integers(0, 5, n),
        "gaps": np.where(rng.random(n) < 0.4, nan, normal),
        "mostly zero": np.where(rng.random(n) < 0.9, 0.0, normal),
    }[name]


NAMES = [
    "plain",
    "timestamp",
    "timestamp and an outlier",
    "huge",
    "near the largest float",
    "tiny",
    "huge offset, small spread",
    "gaps",
    "mostly zero",
]
WEIGHTS = {
    "equal": lambda rng, n: np.ones(n),
    "integers, many zero": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "over twelve decades": lambda rng, n: 10.0 ** rng.uniform(-12, 0, n),
}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", NAMES)
def test_mean_and_standard_deviation_equal_those_of_rational_arithmetic(name, weights, form):
    rng = np.random.default_rng(3)
    x = make(rng, name)
    w = WEIGHTS[weights](rng, len(x))
    found = column_statistics(form(x[:, None]), w)
    mean, deviation = exact(x, w)
    # The documented limit of sparse sums: the one zero here is light, and not stored.
    is_lone_zero = (name, weights, form) == (NAMES[2], "over twelve decades", sp.csr_matrix)
    tolerance = 1e-3 if is_lone_zero else 1e-11
    assert abs(found.mean[0] - mean) <= 0.1 * tolerance * deviation + 4e-16 * abs(mean)
    assert found.deviation[0] == pytest.approx(deviation, rel=tolerance)
    assert found.has_missing[0] == np.isnan(x[w > 0]).any()
    assert not found.is_empty[0]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("value", [0.0, 0.1, 1.7e9 + 0.1, -1e300, 1.7e308, 5e-324])
def test_a_constant_column_has_its_value_as_mean_and_deviation_one(form, value):
    found = column_statistics(form(np.full((700, 1), value)), np.full(700, 0.3))
    assert (found.mean[0], found.deviation[0]) == (value, 1.0)


def test_equal_huge_values_among_zeros_that_are_not_stored():
    found = column_statistics(sp.csr_matrix(np.array([[1e300], [0.0], [1e300], [0.0]])), np.ones(4))
    assert found.mean[0] == pytest.approx(5e299, rel=1e-15)
    assert found.deviation[0] == pytest.approx(5e299, rel=1e-15)


def test_the_reciprocal_of_the_deviation_is_finite_for_the_smallest_values():
    found = column_statistics(np.array([[0.0], [5e-324], [1e-323]]), np.ones(3))
    with np.errstate(over="raise"):
        assert np.isfinite(1.0 / found.deviation[0])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_rows_of_weight_zero_are_ignored(form):
    X = np.array([[1.0, nan, 5], [2.0, 3, nan], [9e9, 7, nan], [nan, nan, 5]])
    w = np.array([1.0, 2.0, 0.0, 0.0])
    full, part = column_statistics(form(X), w), column_statistics(form(X[:2]), w[:2])
    for field in ("mean", "deviation", "has_missing", "is_empty"):
        np.testing.assert_array_equal(getattr(full, field), getattr(part, field))
    np.testing.assert_array_equal(full.has_missing, [False, True, True])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_columns_without_values_are_marked(form):
    found = column_statistics(form(np.array([[nan, 1.0], [nan, 2.0]])), np.ones(2))
    np.testing.assert_array_equal(found.is_empty, [True, False])


def test_an_integer_weight_equals_repeated_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) + 1e6
    w = rng.integers(0, 4, 60)
    weighted = column_statistics(X, w.astype(float))
    repeated = column_statistics(np.repeat(X, w, axis=0), np.ones(w.sum()))
    np.testing.assert_allclose(weighted.mean, repeated.mean, rtol=1e-15)
    np.testing.assert_allclose(weighted.deviation, repeated.deviation, rtol=1e-12)


def test_statistics_do_not_depend_on_the_chunk_size():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(10_000, 70)) * (rng.random((10_000, 70)) < 0.5)
    w = rng.random(10_000)
    w[5000:9500] = 0  # whole chunks of zero weight
    dense, sparse = column_statistics(X, w), column_statistics(sp.csr_matrix(X), w)
    mean = np.average(X, axis=0, weights=w)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))
    for found in (dense, sparse):
        np.testing.assert_allclose(found.mean, mean, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(found.deviation, deviation, rtol=1e-12)


def test_temporaries_are_small_for_a_large_table():
    X = np.ones((200_000, 32), np.float32)  # 25.6 MB
    tracemalloc.start()
    column_statistics(X, np.broadcast_to(1.0, len(X)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12e6


def test_level_weights_add_up_over_chunks_and_ignore_missing_values():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 5, 600_000).astype(np.float32)
    codes[::7] = nan
    w = rng.integers(0, 4, 600_000).astype(float)
    expected = [w[codes == level].sum() for level in range(6)]
    np.testing.assert_array_equal(level_weights(codes, w, 6), expected)


@pytest.mark.parametrize("size", [1e-300, 1.0, np.finfo(np.float64).max])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_mean_is_right_where_the_sum_exceeds_float64(size, weighted):
    rng = np.random.default_rng(3)
    values = size * np.stack([rng.random(50), rng.uniform(-1, 1, 50), np.ones(50)], axis=1)
    w = 1e90 * rng.random(50) if weighted else None
    found = mean_of_rows(values, w)
    expected = [exact(column, np.ones(50) if w is None else w)[0] for column in values.T]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15 * size)
    ordinary = values / size
    np.testing.assert_array_equal(mean_of_rows(ordinary, w), np.average(ordinary, 0, weights=w))
