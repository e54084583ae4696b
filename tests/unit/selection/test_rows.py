from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.model_selection import KFold

from hardwood.selection.rows import LabeledRows, digest_of, folds_of

N = 60


@pytest.fixture
def rows(rng):
    y = np.repeat(["a", "b", "c"], [40, 19, 1])
    return LabeledRows.of(rng.normal(size=(N, 2)), y)


def divided(rows, validation, *, is_classifier=True, seed=0):
    rng = np.random.default_rng(seed)
    return folds_of(validation, rows, is_classifier=is_classifier, rng=rng)


def test_a_fraction_has_every_class_in_proportion(rows):
    (fold,) = divided(rows, 0.25)
    train, kept = fold.parts(rows)
    assert (len(train), len(kept)) == (45, 15) or (len(train), len(kept)) == (46, 14)
    assert (np.asarray(kept.y) == "a").sum() == 10
    assert "c" in train.y  # a class of one row teaches
    assert set(fold.train) | set(fold.validation) == set(range(N))


def test_folds_keep_every_row_of_a_frequent_class_once(rows):
    folds = divided(rows, 4)
    kept = np.concatenate([fold.validation for fold in folds])
    assert sorted(kept) == list(range(N - 1))  # all but the single row of class c
    for fold in folds:
        assert not np.intersect1d(fold.train, fold.validation).size
        assert fold.train.size + fold.validation.size == N
        assert (rows.y[fold.validation] == "a").sum() == 10


def test_numbers_and_several_labels_are_not_sorted_by_class(rng):
    for y in (rng.normal(size=N), rng.integers(0, 2, size=(N, 3)), [0.5] * N):
        rows = LabeledRows.of(np.zeros((N, 1)), y)
        (fold,) = divided(rows, 0.2, is_classifier=isinstance(y, np.ndarray) and y.ndim == 2)
        assert fold.validation.size == N // 5


def test_the_seed_decides(rows):
    assert digest_of(divided(rows, 0.2)) == digest_of(divided(rows, 0.2))
    assert digest_of(divided(rows, 0.2)) != digest_of(divided(rows, 0.2, seed=1))


def test_rows_of_another_table(rows, rng):
    (fold,) = divided(rows, (rng.normal(size=(5, 2)), ["a"] * 5, np.ones(5)))
    train, kept = fold.parts(rows)
    assert train is rows
    assert (len(kept), kept.weight.sum()) == (5, 5)


def test_row_numbers_and_splitters(rows):
    (fold,) = divided(rows, [(np.arange(50), range(50, 60))])
    assert fold.validation.tolist() == list(range(50, 60))
    mask = np.arange(N) < 10
    (fold,) = divided(rows, [(mask, ~mask)])
    assert fold.train.tolist() == list(range(10))
    assert len(divided(rows, KFold(3))) == 3


TABLES = {
    "array": lambda a: a,
    "sparse": sparse.coo_matrix,
    "list": lambda a: a.tolist(),
    "pandas": lambda a: pd.DataFrame(a, columns=["p", "q"]),
    "polars": lambda a: pl.DataFrame({"p": a[:, 0], "q": a[:, 1]}),
    "arrow": lambda a: pa.table({"p": a[:, 0], "q": a[:, 1]}),
}


@pytest.mark.parametrize("kind", TABLES)
def test_rows_of_any_table_keep_its_kind(kind, rng):
    a = rng.normal(size=(6, 2))
    X = TABLES[kind](a)
    taken = LabeledRows.of(X, np.arange(6)).take(np.array([4, 1]))
    values = taken.X.toarray() if kind == "sparse" else np.asarray(taken.X)
    assert np.array_equal(values, a[[4, 1]])
    assert kind == "sparse" or type(taken.X) is type(X)
    assert taken.y.tolist() == [4, 1]


def test_targets_of_any_kind():
    X = np.zeros((4, 1))
    for y in (["a", "b", "c", "d"], pd.Series(list("abcd")), pl.Series(list("abcd"))):
        assert list(LabeledRows.of(X, y).take(np.array([2, 0])).y) == ["c", "a"]
    labels = sparse.csr_matrix(np.eye(4))
    assert LabeledRows.of(X, labels).take(np.array([3])).y.tolist() == [[0, 0, 0, 1]]


def test_a_digest_tells_rows_apart(rng):
    X, y, w = rng.normal(size=(N, 2)), rng.normal(size=N), rng.random(N)
    digests = [
        LabeledRows.of(*parts).digest()
        for parts in (
            (X, y),
            (X, y[::-1]),
            (X, y, w),
            (X[:, :1], y),
            (pd.DataFrame(X, columns=["a", "b"]), y),
            (pd.DataFrame(X, columns=["a", "c"]), y),
            (X, [str(number) for number in y]),
        )
    ]
    assert len(set(digests)) == len(digests)
    assert LabeledRows.of(X.copy(), list(y)).digest() == digests[0]


@pytest.mark.parametrize(
    ("validation", "words"),
    [
        (0.0, "between 0 and 1"),
        (1.0, "between 0 and 1"),
        (1, "number of folds"),
        (61, "number of folds"),
        (0.001, "too small to hold out"),
        (True, "validation must be"),
        ("5", "validation must be"),
        (None, "validation must be"),
        ((1, 2, 3, 4), "a tuple of 4"),
        ((np.zeros((0, 2)), []), "are empty"),
        ((np.zeros((3, 2)), [1]), "X has 3 rows, y has 1"),
        ([], "no fold"),
        ([1, 2], "pairs of row numbers"),
        ([(range(60), range(3))], "both parts"),
        ([(range(50), range(50, 61))], "go from 0 to 59"),
        ([(range(50), [])], "list of row numbers"),
        ([(range(50), [0.5])], "list of row numbers"),
    ],
)
def test_what_divides_no_rows_is_refused(rows, validation, words):
    with pytest.raises((ValueError, TypeError), match=words):
        divided(rows, validation)


def test_rows_that_score_must_have_weight(rng):
    weight = np.ones(N)
    weight[50:] = 0
    rows = LabeledRows.of(np.zeros((N, 1)), rng.normal(size=N), weight)
    with pytest.raises(ValueError, match="weight 0"):
        divided(rows, [(range(50), range(50, 60))], is_classifier=False)


def test_rows_without_a_target_are_refused():
    with pytest.raises(ValueError, match="X has 4 rows, y has 3"):
        LabeledRows.of(np.zeros((4, 1)), [1, 2, 3])
    with pytest.raises(TypeError, match="Expected a table"):
        LabeledRows.of(np.zeros((4, 1)), None)
