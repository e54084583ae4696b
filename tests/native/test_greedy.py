"""Greedy trees of the engine equal those of the NumPy reference."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardwood import _native
from hardwood.learn.greedy import Greedy
from hardwood.table import Schema, Table
from reference import greedy

TASKS = {
    "class entropy": ("classification", "entropy"),
    "class gini": ("classification", "gini"),
    "label entropy": ("multilabel", "entropy"),
    "label gini": ("multilabel", "gini"),
    "variance": ("regression", "variance"),
}
each_measure = pytest.mark.parametrize("measure", TASKS)


@dataclass(frozen=True)
class Case:
    """A table with its schema, a target and weights that add up exactly."""

    matrix: np.ndarray
    schema: Schema
    y: np.ndarray
    weight: np.ndarray
    measure: str
    n_outputs: int

    def grow(self, config: Greedy, *, count=None, seed: int = 5, n_threads: int = 1) -> dict:
        return _native.fit_greedy(
            self.schema.encoder,
            self.matrix,
            self.y,
            self.weight,
            self.weight.astype(np.float64) if count is None else count,
            np.arange(len(self.y)),
            n_outputs=self.n_outputs,
            seed=seed,
            n_threads=n_threads,
            options=config.engine_options(TASKS[self.measure][0]),
        )

    def config(self, split: str, max_depth: int, **options) -> Greedy:
        return Greedy(
            splitter=split, criterion=TASKS[self.measure][1], max_depth=max_depth, **options
        )

    @property
    def order(self) -> np.ndarray:
        """The engine's order of columns: numbers, then levels and flags."""
        numbers = self.schema.first_column[self.schema.n_levels == 0].tolist()
        rest = sorted(set(range(self.schema.n_columns)) - set(numbers))
        return np.array([*numbers, *rest])

    @property
    def rows(self) -> greedy.Rows:
        order = self.order.tolist()
        flag = [-1] * len(order)
        for j in np.flatnonzero((self.schema.n_levels == 0) & self.schema.has_missing):
            value, its_flag = self.schema.first_column[j], self.schema.flag_column[j]
            flag[order.index(value)] = order.index(its_flag)
        target = self.y.astype(np.float64)
        if self.measure.startswith("class"):
            target = np.eye(self.n_outputs)[target[:, 0].astype(int)]
        X = self.schema.encoder.encode(self.matrix)[:, order]
        return greedy.Rows(X, target, self.weight.astype(np.float64), self.measure, tuple(flag))

    def as_reference(self, answer: dict) -> tuple[np.ndarray, ...]:
        weights = answer["weights"][:, self.order]
        return weights, answer["bias"], answer["children"], answer["leaf"]


def make_case(
    seed: int, measure: str, *, n: int = 40, digits: int = 1, missing: float = 0.15, levels=3
) -> Case:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 3)).round(digits)
    numbers[rng.random(numbers.shape) < missing] = np.nan
    columns = [[None if np.isnan(v) else float(v) for v in column] for column in numbers.T]
    columns.append([str(v) if v else None for v in rng.integers(0, levels + 1, n)])
    table = Table.of([list(row) for row in zip(*columns, strict=True)])
    schema = Schema.learn(table)
    weight = rng.integers(1, 5, n) / 4 if seed % 2 else np.ones(n)
    if measure.startswith("class"):
        y, n_outputs = rng.integers(0, 3, (n, 1)), 3
    elif measure.startswith("label"):
        y, n_outputs = rng.integers(0, 2, (n, 2)), 2
    else:
        y, n_outputs = rng.integers(-8, 9, (n, 2)) / 4, 2
    return Case(
        np.ascontiguousarray(schema.read(table)),
        schema,
        y.astype(np.float32),
        weight.astype(np.float32),
        measure,
        n_outputs,
    )


@each_measure
@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), digits=st.integers(0, 6), n=st.sampled_from([5, 40]))
def test_axis_splits_equal_the_reference(measure, seed, digits, n):
    case = make_case(seed, measure, n=n, digits=digits)
    found = case.as_reference(case.grow(case.config("axis", 4)))
    expected = greedy.grow(case.rows, 4, lambda rows, node: greedy.axis_split(rows))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_sorted_and_counted_columns_agree_on_a_table_large_enough_for_both():
    case = make_case(4, "class entropy", n=700, digits=1)  # the top counts, nodes below sort
    found = case.as_reference(case.grow(case.config("axis", 3)))
    expected = greedy.grow(case.rows, 3, lambda rows, node: greedy.axis_split(rows))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_of_equal_columns_the_first_wins_where_threads_share_the_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8192, 128))  # large enough to be cut into parts, by columns
    X[:, -1] = X[:, 0]
    y, weight = (X[:, :1] > 0.3).astype(np.float32), np.ones(len(X), np.float32)
    case = Case(X, Schema.numeric(128), y, weight, "class entropy", 2)
    for n_threads in (1, 3):
        answer = case.grow(case.config("axis", 1), n_threads=n_threads)
        assert np.flatnonzero(answer["weights"][0]).tolist() == [0]


def assert_nearly_same_tree(found, expected) -> None:
    """The engine adds up scores in float32, the reference in float64."""
    for a, b in zip(found[2:], expected[2:], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-5)


@each_measure
@settings(max_examples=6)
@given(seed=st.integers(0, 10**6))
def test_random_splits_equal_the_reference(measure, seed):
    case = make_case(seed, measure, digits=6, missing=0.1)
    found = case.grow(case.config("random", 2, n_candidates=20), seed=seed)
    expected = greedy.grow(
        case.rows, 2, lambda rows, node: greedy.random_split(rows, 20, seed, node)
    )
    assert_nearly_same_tree(case.as_reference(found), expected)


@each_measure
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6))
def test_oc1_equals_the_reference(measure, seed):
    case = make_case(seed, measure, n=24, digits=6, missing=0.1)
    options = {"n_split_restarts": 2, "n_jumps": 2, "n_coordinates": 4, "max_sweeps": 4}
    found = case.grow(case.config("oc1", 2, **options), seed=seed)
    expected = greedy.grow(
        case.rows, 2, lambda rows, node: greedy.oc1_split(rows, seed, node, **options)
    )
    assert_nearly_same_tree(case.as_reference(found), expected)


def root_worth(case: Case, answer: dict) -> float:
    weights, bias, _, _ = case.as_reference(answer)
    rows = case.rows
    score = (rows.X.astype(np.float64) @ weights[0].astype(np.float64)).astype(np.float32)
    return greedy.worth(rows, score + bias[0] >= 0)


@each_measure
@pytest.mark.parametrize("split", ["oc1", "co2"])
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_oblique_searches_are_never_worse_than_the_axis_split(split, measure, seed):
    case = make_case(seed, measure, n=60, digits=6)
    oblique = root_worth(case, case.grow(case.config(split, 1)))
    assert oblique >= root_worth(case, case.grow(case.config("axis", 1))) - 1e-9


def test_co2_is_the_non_greedy_learner_on_one_split():
    case = make_case(11, "class entropy", n=80, digits=6, missing=0.0)
    oblique = np.digitize(case.matrix[:, 0] - case.matrix[:, 1], [-1.0, 0.5])
    case = replace(case, y=oblique[:, None].astype(np.float32))
    config = case.config("co2", 1, nu=2.0, learning_rate=0.05, batch_size=16, max_epochs=5)
    found = case.grow(config, seed=3)
    axis = case.grow(case.config("axis", 1))
    start = np.append(axis["weights"][0], axis["bias"][0]).astype(np.float64)
    start *= np.sqrt(2.0 / (start**2).sum())
    target, weight = case.rows.target, case.rows.weight
    shares = np.array(
        [
            np.average(target[axis["leaf"] == j], axis=0, weights=weight[axis["leaf"] == j])
            for j in axis["children"][0] * -1 - 1
        ]
    )
    learned = _native.fit(
        "non_greedy",
        case.schema.encoder,
        case.matrix,
        case.y,
        case.weight,
        np.arange(len(case.y)),
        np.arange(0),
        custom=None,
        start=(
            start[None, :-1].astype(np.float32),
            start[-1:].astype(np.float32),
            np.log(np.clip(shares, 1e-3, 1 - 1e-3)).astype(np.float32),
        ),
        n_outputs=3,
        loss="cross_entropy",
        loss_parameter=0.0,
        first_run=0,
        n_runs=1,
        n_draws=None,
        keep_all=False,
        seed=3,
        n_threads=1,
        callback=None,
        options={
            "children": np.array([[-1, -2]], dtype=np.int32),
            "nu": [2.0],
            "hidden": [],
            "inference": "exact",
            "stable": False,
            "max_features": 0,
            "feature_of_column": case.schema.column_feature.tolist(),
            "optimizer": "sgd",
            "learning_rate": 0.05,
            "momentum": 0.9,
            "decay": 0.0,
            "epsilon": 1e-5,
            "l1": 0.0,
            "l2": 0.0,
            "schedule": "cosine",
            "schedule_cycles": 1,
            "clip_norm": np.inf,
            "batch_size": 16,
            "max_epochs": 5,
            "noise": 0.0,
            "patience": 0,
        },
    )
    weights = learned["trees"][0]["weights"][0].astype(np.float64)
    np.testing.assert_allclose(
        found["weights"][0], weights / np.linalg.norm(weights), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("split", ["axis", "random", "oc1", "co2"])
@each_measure
def test_the_number_of_threads_changes_nothing(split, measure):
    case = make_case(3, measure, n=300, digits=4)
    config = case.config(split, 5, n_split_restarts=2, max_epochs=5)
    one = case.grow(config)
    for n_threads in (2, 5):
        other = case.grow(config, n_threads=n_threads)
        for part in ("weights", "bias", "children", "leaf"):
            np.testing.assert_array_equal(one[part], other[part])


def test_columns_of_a_large_node_are_shared_among_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 300)).round(2)
    y = (X[:, 7] + X[:, 250] > 0)[:, None].astype(np.float32)
    case = Case(X, Schema.numeric(300), y, np.ones(4000, np.float32), "class entropy", 2)
    for split in ("axis", "oc1", "co2"):
        config = case.config(split, 2, n_split_restarts=2, n_coordinates=5, max_epochs=1)
        one, many = case.grow(config), case.grow(config, n_threads=3)
        for part in ("weights", "bias", "children", "leaf"):
            np.testing.assert_array_equal(one[part], many[part])
    assert set(np.flatnonzero(case.grow(case.config("axis", 2))["weights"][0])) < {7, 250}


@pytest.mark.parametrize("split", ["axis", "random", "oc1", "co2"])
@each_measure
@settings(max_examples=5)
@given(seed=st.integers(0, 10**6), least=st.sampled_from([1.5, 3.0, 7.25]))
def test_sides_have_as_many_rows_as_asked_for(split, measure, seed, least):
    case = make_case(seed, measure)
    count = np.random.default_rng(seed).integers(1, 9, len(case.y)) / 4
    config = case.config(
        split, 6, min_samples_leaf=least, min_samples_split=12, n_split_restarts=2, max_epochs=3
    )
    answer = case.grow(config, count=count)
    of_leaf = np.bincount(answer["leaf"], count)
    assert len(of_leaf) == len(answer["children"]) + 1
    assert len(of_leaf) == 1 or of_leaf.min() >= least
    for i, (left, right) in enumerate(answer["children"]):
        if left < 0 and right < 0:  # what reaches a split is what reaches its leaves
            assert of_leaf[-1 - left] + of_leaf[-1 - right] >= 12, i


def test_a_split_must_be_worth_it():
    case = make_case(2, "class entropy", n=200, digits=1)
    sizes = [
        len(case.grow(case.config("axis", 8, min_impurity_decrease=least))["children"])
        for least in (0.0, 0.002, 0.02, 2.0)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0 < sizes[-2] < sizes[0]


def test_equal_rows_of_different_classes_are_a_leaf():
    schema = Schema.numeric(2)
    case = Case(
        np.ones((6, 2)),
        schema,
        np.array([[0], [1], [0], [1], [2], [2]], dtype=np.float32),
        np.ones(6, dtype=np.float32),
        "class entropy",
        3,
    )
    for split in ("axis", "random", "oc1", "co2"):
        answer = case.grow(case.config(split, 3))
        assert answer["children"].shape == (0, 2)
        assert answer["leaf"].tolist() == [0] * 6


@pytest.mark.parametrize("value", [np.finfo(np.float32).max, 1e-45, 1e30])
def test_extreme_columns_are_split_where_they_should(value):
    X = np.array([[-value], [0.0], [value], [value]], dtype=np.float64)
    schema = Schema.numeric(1)
    y = np.array([[0], [0], [1], [1]], dtype=np.float32)
    case = Case(X, schema, y, np.ones(4, dtype=np.float32), "class gini", 2)
    for split in ("axis", "oc1", "co2"):
        assert case.grow(case.config(split, 1))["leaf"].tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])


def test_wrong_input_is_refused():
    case = make_case(1, "class entropy")
    config = case.config("axis", 2)
    with pytest.raises(ValueError, match="differ in length"):
        case.grow(config, count=np.ones(3))
    with pytest.raises(ValueError, match="class index"):
        replace(case, y=case.y + 1).grow(config)
    labels = make_case(1, "label entropy")
    with pytest.raises(ValueError, match="neither 0 nor 1"):
        replace(labels, y=labels.y * 2).grow(labels.config("axis", 2))
    for name, value, words in [
        ("splitter", "cart", "splitter must be"),
        ("criterion", "mse", "criterion must be"),
        ("max_depth", 0, "max_depth"),
        ("n_candidates", 0, "n_candidates"),
        ("n_jumps", -1, "n_jumps"),
    ]:
        with pytest.raises(ValueError, match=words):
            Greedy(**{name: value})
    with pytest.raises(ValueError, match="is not for regression"):
        Greedy(criterion="gini").engine_options("regression")
