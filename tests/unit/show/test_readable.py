"""Splits with few terms and short numbers, which are the model's own."""

from __future__ import annotations

import datetime
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_iris

from hardwood import DGTClassifier
from hardwood.model import ObliqueTree
from hardwood.model.edit.readable import readable
from hardwood.model.edit.rounding import short_number
from hardwood.table import Feature, Schema
from hardwood.text.numbers import n_digits
from trees import LEVELS, make_rows, make_tree


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_splits=st.integers(0, 10),
    mixed=st.booleans(),
    n=st.integers(1, 60),
    weighted=st.booleans(),
    tolerance=st.sampled_from([0.0, 0.05, 0.3]),
)
def test_at_most_the_tolerance_of_rows_moves(seed, n_splits, mixed, n, weighted, tolerance):
    rng = np.random.default_rng(seed)
    tree = make_tree(rng, n_splits=n_splits, n_features=5, mixed=mixed, sparsity=0.1)
    X = make_rows(rng, tree.schema, n)
    weight = rng.integers(0, 3, n) + (np.arange(n) == 0) if weighted else np.ones(n)
    found = readable(tree, X, tolerance=tolerance, sample_weight=weight)
    same = weight @ (found.tree.apply(X) == tree.apply(X)) / weight.sum()
    assert found.share_same == pytest.approx(same)
    assert found.share_same >= 1 - tolerance - 1e-12
    assert found.n_rows == np.count_nonzero(weight)
    # Splits alone are changed, and never lengthened.
    assert found.tree.replace(weights=tree.weights, bias=tree.bias) == tree
    before, after = (
        np.count_nonzero(tree.weights, axis=1),
        np.count_nonzero(found.tree.weights, axis=1),
    )
    assert [split.terms_before for split in found.splits] == before.tolist()
    assert [split.terms_after for split in found.splits] == after.tolist()
    assert (after <= before).all()
    for split in found.splits:
        if split.digits is None:
            i = split.split
            assert found.tree.weights[i].tolist() == tree.weights[i].tolist()
            assert found.tree.bias[i] == tree.bias[i]


def written(text: str, rows: dict[str, np.ndarray]) -> np.ndarray:
    """Evaluate the text of a condition: numbers, and categories with their weights."""
    text = re.sub(r"\((\S+) if (\S+) is missing\)", r"\1*is_missing(\2)", text)
    text = re.sub(r"\((\S+) if (\S+) is (\S+)\)", r"\1*(\2 == '\3')", text)
    text = re.sub(r"^(\S+) is not (\S+)$", r"\1 != '\2'", text)
    text = re.sub(r"^(\S+) is (\S+)$", r"\1 == '\2'", text)
    return eval(text, {"is_missing": np.isnan}, rows)


def route(tree: ObliqueTree, conditions: list[str], rows: dict[str, np.ndarray]) -> np.ndarray:
    """Leaves of rows that follow the printed conditions."""
    n = len(next(iter(rows.values())))
    node = np.zeros(n, dtype=int) if tree.n_splits else np.full(n, -1)
    for i, text in enumerate(conditions):
        here = node == i
        right = np.broadcast_to(written(text, rows), n)
        node[here] = tree.children[i, right[here].astype(int)]
    return ~node


@pytest.mark.parametrize("tolerance", [0.0, 0.05])
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_what_is_printed_is_the_model(load, tolerance):
    X, y = load(return_X_y=True)
    tree = DGTClassifier(max_depth=3, max_epochs=60, random_state=0).fit(X, y).tree_
    found = tree.readable(X, tolerance=tolerance)
    assert found.digits is not None
    conditions = [split.condition for split in found.splits]
    # Of all rows between those that were given, too: nothing is rounded away in the text.
    rng = np.random.default_rng(0)
    more = np.concatenate(
        [X, X[rng.permutation(len(X))] + rng.normal(size=X.shape) * X.std(axis=0)]
    )
    rows = {f"x{j}": column for j, column in enumerate(more.T)}
    assert (route(tree, conditions, rows) == found.tree.apply(more)).all()
    text = found.to_text()
    assert all(f"if {condition}:" in text for condition in conditions)
    assert found.terms_after <= found.terms_before / 2


def test_numbers_are_as_short_as_they_are_counted():
    X, y = load_breast_cancer(return_X_y=True)
    tree = DGTClassifier(max_depth=3, max_epochs=60, random_state=0).fit(X, y).tree_
    found = tree.readable(X)
    for split in found.splits:
        numbers = re.findall(r"(?<![\w.])[\d.]+(?:e-?\d+)?", split.condition)
        assert max(map(n_digits, map(float, numbers))) == split.digits
        first = split.condition.split()[0]
        assert re.fullmatch(r"x\d+", first)  # its weight, 1, is not written


def test_categories_and_missing_values_among_numbers(rng):
    features = (
        Feature(
            "mass", "numeric", center=4200.0, scale=512.0, has_missing=True, spread=(800.0, 0.1)
        ),
        Feature("species", "categorical", levels=LEVELS),
    )
    tree = ObliqueTree.of(
        [[0.00123456, 0.654321, 0.0, 1.98765, -2.34567]],
        bias=[0.34567],
        values=[0.0, 1.0],
        schema=Schema(features),
    )
    mass = np.where(rng.random(500) < 0.1, np.nan, 4200 + 800 * rng.normal(size=500))
    species = rng.choice(LEVELS, 500)
    X = [[m, s] for m, s in zip(mass.tolist(), species.tolist(), strict=True)]
    found = readable(tree, X, tolerance=0.02)
    assert found.splits[0].digits <= 4
    centered = np.where(np.isnan(mass), 4200.0, mass)  # as the text says below the tree
    text = found.splits[0].condition.replace("if mass is missing", "if gone is missing")
    rows = {"mass": centered, "gone": mass, "species": species}
    assert (written(text, rows) == found.tree.apply(X)).all()


def test_splits_on_categories_keep_their_rows(rng):
    schema = Schema((Feature("f", "categorical", levels=LEVELS), Feature("g", "numeric")))
    weights = np.zeros((1, len(LEVELS) + 1))
    weights[0, : len(LEVELS)] = [1.37, -0.42, *([-0.9] * (len(LEVELS) - 2))]
    tree = ObliqueTree.of(weights, bias=[-0.123], values=[0.0, 1.0], schema=schema)
    seen = [[LEVELS[0], 0.0], [LEVELS[1], 0.0]]
    everything = [[level, 0.0] for level in (*LEVELS, None)]
    found = readable(tree, everything)
    assert found.tree.apply(everything).tolist() == tree.apply(everything).tolist()
    assert found.splits[0].condition == f"f is {LEVELS[0]}"
    assert found.splits[0].terms_after == 1
    assert found.splits[0].digits == 0
    # Levels that no given row has may go anywhere; those that have one may not.
    assert readable(tree, seen).tree.apply(seen).tolist() == [1, 0]


DAY = 86400.0
DATED = Schema(
    (
        Feature("joined", "numeric", center=1.6e9, scale=2.0**24, spread=(1.5e7,), origin="date"),
        Feature("delay", "numeric", center=3e5, scale=2.0**18, spread=(2e5,), origin="duration"),
        Feature("age", "numeric", center=40.0, scale=16.0, spread=(12.0,)),
    )
)


def dated_rows(rng, n: int) -> np.ndarray:
    joined = 1.6e9 + 1.5e7 * rng.normal(size=n)
    return np.column_stack([joined, 3e5 + 2e5 * rng.normal(size=n), 40 + 12 * rng.normal(size=n)])


def test_a_date_is_a_day(rng):
    tree = ObliqueTree.of([[3.21e-8, 0, 0]], bias=[0.0123], values=[0.0, 1.0], schema=DATED)
    X = dated_rows(rng, 100)
    found = readable(tree, X)
    assert found.share_same == 1
    text = found.splits[0].condition
    match = re.fullmatch(r"joined >= (\d+-\d+-\d+)", text)
    assert match, text
    day = datetime.datetime.fromisoformat(match[1]).replace(tzinfo=datetime.timezone.utc)
    assert (X[:, 0] >= day.timestamp()).astype(int).tolist() == tree.apply(X).tolist()


def test_a_duration_has_a_unit(rng):
    tree = ObliqueTree.of([[0, -4.321e-6, 0]], bias=[0.321], values=[0.0, 1.0], schema=DATED)
    X = dated_rows(rng, 100)
    found = readable(tree, X)
    assert found.share_same == 1
    match = re.fullmatch(r"delay <= ([\d.]+) days?", found.splits[0].condition)
    assert match, found.splits[0].condition
    assert (X[:, 1] <= float(match[1]) * DAY).astype(int).tolist() == tree.apply(X).tolist()


def test_dates_among_other_terms_count_in_days(rng):
    weights = [[3.2109e-8, -1.0987e-6, 0.0123456]]
    tree = ObliqueTree.of(weights, bias=[0.0123], values=[0.0, 1.0], schema=DATED)
    X = dated_rows(rng, 200)
    found = readable(tree, X, tolerance=0.02)
    text = found.splits[0].condition
    term = r"(?:[\d.]+\*)?"
    zero = re.search(r"joined - (\d+-\d+-\d+) in days", text)
    assert zero, text
    start = datetime.datetime.fromisoformat(zero[1]).replace(tzinfo=datetime.timezone.utc)
    rows = {
        "joined": (X[:, 0] - start.timestamp()) / DAY,
        "delay": X[:, 1] / DAY,
        "age": X[:, 2],
    }
    plain = re.sub(r"\(joined - \S+ in days\)", "joined", text)
    plain = plain.replace("(delay in days)", "delay")
    assert re.fullmatch(rf"{term}\w+(?: [+-] {term}\w+)* [<>]= -?[\d.]+", plain), plain
    assert (written(plain, rows).astype(int) == found.tree.apply(X)).all()


def test_tolerance_saves_terms_and_keeps_both_sides(rng):
    weights = rng.normal(size=(7, 12)) * 0.5 ** np.arange(12)
    tree = ObliqueTree.of(weights, bias=rng.normal(size=7) / 4, values=np.arange(8.0))
    X = rng.normal(size=(1500, 12))
    found = [readable(tree, X, tolerance=share) for share in (0.0, 0.02, 0.1)]
    terms = [one.terms_after for one in found]
    assert terms[0] > terms[1] > terms[2]
    for one, share in zip(found, (0.0, 0.02, 0.1), strict=True):
        assert 1 - share <= one.share_same
        assert (np.bincount(one.tree.apply(X), minlength=8) > 0).all()
    fresh = rng.normal(size=(3000, 12))
    assert np.mean(found[0].tree.apply(fresh) == tree.apply(fresh)) > 0.98


def test_rows_on_the_threshold_are_not_moved_unnoticed():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.integers(-3, 4, size=(300, 6)) / 10
        weights = rng.integers(-9, 10, size=(1, 6)) / 10
        weights[0, 0], X[:, 0] = 0.01, rng.integers(1, 9)
        tree = ObliqueTree.of(weights, bias=[rng.integers(-30, 31) / 100], values=[0.0, 1.0])
        assert readable(tree, X).share_same == 1


def test_large_offsets_keep_their_digits(rng):
    schema = Schema((Feature("t", "numeric", center=1.7e9, scale=1.0), Feature("u", "numeric")))
    tree = ObliqueTree.of([[1.234567, 0.3456]], bias=[0.1], values=[0.0, 1.0], schema=schema)
    X = np.column_stack([1.7e9 + rng.normal(size=300), rng.normal(size=300)])
    found = readable(tree, X)
    assert found.share_same == 1
    rows = {"t": X[:, 0], "u": X[:, 1]}
    assert (written(found.splits[0].condition, rows).astype(int) == tree.apply(X)).all()


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e300])
def test_any_finite_numbers_are_accepted(size, rng):
    X = rng.normal(size=(50, 3))
    weights, bias = rng.normal(size=(3, 3)) * size, rng.normal(size=3) * size / 4
    tree = ObliqueTree.of(weights, bias=bias, values=np.arange(4.0))
    found = readable(tree, X)
    assert found.share_same == 1
    assert found.digits <= 4
    X *= [1.0, 1e30, 1e-30]
    tree = ObliqueTree.of(rng.normal(size=(3, 3)), bias=np.zeros(3), values=np.arange(4.0))
    assert readable(tree, X).share_same == 1


def test_a_split_without_rows_stays_as_it_is():
    tree = ObliqueTree.of(
        [[1.01, 0.1], [1.01, 0.1], [1.01, 0.1]], bias=[0.0, 1.0, 1.0], values=np.arange(4.0)
    )
    found = readable(tree, [[3.0, 0.0], [5.0, 0.0]])
    assert [split.digits for split in found.splits] == [1, None, 1]
    assert [split.terms_after for split in found.splits] == [1, 2, 1]
    assert found.digits is None
    assert "1.01*x0 + 0.1*x1 >= -1" in found.to_text()
    assert "all digits" in str(found)


def test_the_result_describes_the_changes():
    tree = ObliqueTree.of(
        [[0.7912, -1.5837, 0.0021]],
        thresholds=[1.0791],
        values=[0.0, 1.0],
        feature_names=["length", "width", "age"],
    )
    X = [[2.0, 0.1, 30.0], [3.1, 1.0, 41.0], [4.1, 1.2, 40.0], [5.0, 2.0, 25.0]]
    found = tree.readable(X)
    assert (found.terms_before, found.terms_after, found.n_rows, found.share_same) == (3, 2, 4, 1)
    assert found.splits[0].condition == "width - 0.5*length <= -0.7"
    text = str(found)
    assert "3.0 terms per split before, 2.0 after (3 and 2 in all)" in text
    assert "All 4 rows reach the same leaf as before" in text
    assert found.splits[0].condition in text
    assert found.splits[0].condition in found.to_text()


def test_sparse_rows_are_rows(rng):
    X = rng.normal(size=(50, 8)) * (rng.random((50, 8)) < 0.3)
    tree = ObliqueTree.of(rng.normal(size=(3, 8)), bias=rng.normal(size=3), values=np.arange(4.0))
    assert readable(tree, csr_matrix(X)).tree == readable(tree, X).tree


def test_a_single_leaf_is_readable_already():
    tree = make_tree(0, n_splits=0)
    found = tree.readable(make_rows(0, tree.schema, 3))
    assert found.tree == tree
    assert found.digits == 1
    assert "All 3 rows" in str(found)


@pytest.mark.parametrize("tolerance", [-0.1, 1.0, float("nan")])
def test_a_tolerance_is_a_share(tolerance):
    with pytest.raises(ValueError, match="fraction of the rows"):
        readable(make_tree(0), [[0.0] * 4], tolerance=tolerance)


@given(low=st.floats(-1e6, 1e6), width=st.floats(1e-9, 1e5), part=st.floats(0.0, 1.0))
def test_no_shorter_number_lies_between(low, width, part):
    high = low + width
    near = low + part * width
    found = short_number(low, high, near)
    if found is None:  # too few numbers of 15 digits
        assert width < 1e-14 * max(abs(low), abs(high))
        return
    assert low < found < high
    top = int(np.floor(np.log10(max(abs(low), abs(high))))) + 1
    last = top + 1 if found == 0 else int(f"{found:.14e}".split("e")[1]) - n_digits(found) + 1
    for exponent in range(top, last, -1):
        step = Fraction(10) ** exponent
        next_one = (math.floor(Fraction(low) / step) + 1) * step
        assert not low < float(next_one) < high
