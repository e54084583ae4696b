"""Canonical rows: one order for every order of the same table, one row for equal ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from hardwood.table.canonical_rows import canonical_rows


def contents(X, y, weight=None, **options):
    """Return what a learner sees: rows, targets and weights in canonical order."""
    rows = canonical_rows(X, y, weight, **options)
    x = X[rows.index]
    x = x.toarray() if sparse.issparse(x) else x
    return x + 0.0, y[rows.index], rows.weight


def one_bucket(matrix, y, rows, levels):
    """A hash function that always collides."""
    return np.zeros(len(rows), dtype=np.uint64)


HASHES = [None, one_bucket]

tables = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.float64, (n, 2), elements=st.sampled_from([-0.0, 0.0, 1.0, -2.5, np.nan])),
        hnp.arrays(np.float64, (n, 1), elements=st.sampled_from([0.0, 1.0])),
        hnp.arrays(np.float64, n, elements=st.sampled_from([0.0, 0.1, 0.2, 0.7, 1.0, 3.0])),
        st.permutations(range(n)),
    )
)


@pytest.mark.parametrize("hash_rows", HASHES)
@given(case=tables)
def test_the_order_of_the_rows_does_not_matter(hash_rows, case):
    X, y, weight, permutation = case
    if not weight.any():
        return
    p = list(permutation)
    before = contents(X, y, weight, hash_rows=hash_rows)
    after = contents(X[p], y[p], weight[p], hash_rows=hash_rows)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("hash_rows", HASHES)
@given(case=tables, counts=st.lists(st.integers(0, 4), min_size=12, max_size=12))
def test_a_weight_equals_that_many_repetitions(hash_rows, case, counts):
    X, y, _, _ = case
    counts = np.array(counts[: len(X)])
    if not counts.any():
        return
    weighted = contents(X, y, counts.astype(float), hash_rows=hash_rows)
    repeated = contents(X.repeat(counts, axis=0), y.repeat(counts, axis=0), hash_rows=hash_rows)
    for a, b in zip(weighted, repeated, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("hash_rows", HASHES)
@given(case=tables)
def test_rows_are_distinct_and_weight_is_conserved(hash_rows, case):
    X, y, weight, _ = case
    if not weight.any():
        return
    x, target, merged = contents(X, y, weight, hash_rows=hash_rows)
    keys = {tuple(map(repr, row)) for row in np.hstack([x, target])}
    assert len(keys) == len(x)
    assert merged.sum() == pytest.approx(weight.sum())
    assert (merged > 0).all()


def test_nan_equals_nan_and_minus_zero_equals_zero():
    odd_nan = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)[0]
    X = np.array([[np.nan, 0.0], [odd_nan, -0.0], [-np.nan, 0.0]])
    rows = canonical_rows(X, np.zeros((3, 1)))
    assert len(rows) == 1
    np.testing.assert_array_equal(rows.weight, [3.0])


def test_equal_features_with_different_targets_are_not_merged():
    assert len(canonical_rows(np.zeros((2, 3)), np.array([[0.0], [1.0]]))) == 2


def test_float32_and_float64_tables_of_equal_values_have_the_same_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5)).astype(np.float32)
    y = rng.normal(size=(500, 1))
    a, b = canonical_rows(X, y), canonical_rows(X.astype(np.float64), y)
    np.testing.assert_array_equal(a.index, b.index)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_a_sparse_table_has_the_same_order_as_the_dense_table(container):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(300, 6)) * rng.integers(0, 3, size=(300, 6)).astype(float)
    y = rng.integers(0, 2, size=(300, 1)).astype(float)
    weight = rng.integers(0, 3, size=300).astype(float)
    for a, b in zip(contents(X, y, weight), contents(container(X), y, weight), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("hash_rows", HASHES)
@given(table=tables)
def test_sparse_rows_are_compared_like_dense_ones(hash_rows, table):
    X, y, weight, _ = table
    stored = sparse.csr_array(np.ones_like(X))
    stored.data = X.ravel()  # with zeros and minus zeros
    dense, thin = (canonical_rows(x, y, weight, hash_rows=hash_rows) for x in (X, stored))
    np.testing.assert_array_equal(dense.index, thin.index)
    np.testing.assert_array_equal(dense.repeats, thin.repeats)
    np.testing.assert_array_equal(dense.weight, thin.weight)


def test_equal_sparse_rows_are_merged_without_their_zeros(monkeypatch):
    """A table of a million columns would take hours."""
    X = sparse.csr_matrix(([1.0, 2.0, 1.0], [3, 9, 3], [0, 1, 2, 3]), shape=(3, 10**6))
    monkeypatch.setattr(sparse.csr_matrix, "toarray", lambda _: pytest.fail("made dense"))
    rows = canonical_rows(X, np.zeros((3, 1)))
    assert sorted(rows.weight.tolist()) == [1.0, 2.0]


def test_explicit_zeros_of_a_sparse_table_are_zeros():
    X = sparse.csr_array(
        (np.array([0.0, 2.0]), np.array([0, 1]), np.array([0, 2, 2])), shape=(2, 2)
    )
    Z = sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0]]))
    y = np.zeros((2, 1))
    np.testing.assert_array_equal(canonical_rows(X, y).index, canonical_rows(Z, y).index)


@pytest.mark.parametrize("hash_rows", HASHES)
def test_a_level_that_no_row_of_weight_has_changes_nothing(hash_rows):
    X, more = np.array([[0.0], [1.0], [np.nan], [1.0]]), np.array([[0.0], [2.0], [np.nan], [2.0]])
    y = np.zeros((4, 1))
    a = canonical_rows(X, y, levels=[("cat", "eel")], hash_rows=hash_rows)
    b = canonical_rows(more, y, levels=[("cat", "dog", "eel")], hash_rows=hash_rows)
    np.testing.assert_array_equal(X[a.index], more[b.index] / [2.0])
    np.testing.assert_array_equal(a.weight, b.weight)


def test_small_integers_do_not_collide():
    """Whole numbers as float64 differ in their upper bits only; the hash must spread them."""
    X = np.stack(np.meshgrid(np.arange(60.0), np.arange(60.0)), axis=-1).reshape(-1, 2)
    from hardwood.table.canonical_rows import _hash_rows

    assert len(np.unique(_hash_rows(X, np.zeros((3600, 1)), np.arange(3600)))) == 3600


def test_columns_are_distinguished():
    from hardwood.table.canonical_rows import _hash_rows

    X = np.array([[1.0, 2.0], [2.0, 1.0]])
    a, b = _hash_rows(X, np.zeros((2, 1)), np.arange(2))
    assert a != b


def test_tables_larger_than_a_block_are_complete():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(40_000, 7)).astype(np.float32)
    y = np.zeros((40_000, 1))
    rows = canonical_rows(X, y)
    assert len(rows) == len(np.unique(X, axis=0))
    assert rows.weight.sum() == 40_000
