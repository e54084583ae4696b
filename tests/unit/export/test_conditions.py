"""Splits as conditions on raw columns: exact where they use one feature."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardwood import ObliqueTree
from hardwood.export import to_c, to_json, to_onnx, to_python, to_rules, to_sql
from hardwood.export.c.compiler import Compiler
from hardwood.export.conditions import (
    Always,
    Levels,
    Linear,
    Missing,
    Threshold,
    conditions_of,
    exact_splits,
    rounding_bound,
    shortest_between,
)
from hardwood.export.plan import plan_of
from hardwood.table import Feature, Schema
from trees import make_tree


def planned(tree):
    plan = plan_of(tree)
    return plan.encoding, plan.trees[0], conditions_of(plan.trees[0], plan.encoding)


def neighbors(x, n=6):
    """The floats of its kind around x."""
    points, ends = [x], np.array([-np.inf, np.inf], np.asarray(x).dtype)
    for _ in range(n):
        points = [np.nextafter(points[0], ends[0]), *points, np.nextafter(points[-1], ends[1])]
    return np.array(points)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    column=st.integers(0, 19),
    exponent=st.integers(-6, 6),
    has_missing=st.booleans(),
)
def test_a_threshold_is_where_the_engine_changes_sides(seed, column, exponent, has_missing):
    """Columns 0 and 16 are added before rounding, others after: both are met."""
    rng = np.random.default_rng(seed)
    features = [
        Feature(f"x{j}", "numeric", center=float(rng.normal() * 100), has_missing=has_missing)
        for j in range(20)
    ]
    schema = Schema(tuple(features))
    weights = np.zeros((1, schema.n_columns))
    weights[0, schema.first_column[column]] = rng.normal() * 10.0**exponent
    if has_missing:
        weights[0, schema.flag_column[column]] = rng.normal() * 10.0**exponent
    tree = ObliqueTree(
        weights,
        [rng.normal() * 10.0**exponent],
        [[-1, -2]],
        [[0.0], [1.0]],
        schema=schema,
        task="regression",
    )
    encoding, plan, (condition,) = planned(tree)
    assert isinstance(condition, Threshold)
    steps = neighbors(np.float32(condition.value - features[column].center))
    entries = features[column].center + steps.astype(np.float64)
    x = np.concatenate([neighbors(condition.value), entries, [np.nan]])
    rows = np.tile(schema.column_center[schema.first_column], (len(x), 1))
    rows[:, column] = x
    with np.errstate(invalid="ignore"):
        inside = x >= condition.value if condition.relation == ">=" else x <= condition.value
    right = np.where(np.isnan(x), condition.missing_right, inside)
    leaves = tree.apply(rows)
    values, on = encoding.encode(rows)
    cut = values[list(x).index(condition.value), column]
    # Numbers that float32 cannot distinguish from the threshold all go right.
    np.testing.assert_array_equal(leaves, np.where(values[:, column] == cut, leaves, right))
    assert leaves[list(x).index(condition.value)] == 1
    assert {0, 1} <= {*leaves[:-1].tolist()}

    exact, flags, bias = exact_splits(plan, encoding)
    np.testing.assert_array_equal((values @ exact[0] + on @ flags[0] + bias[0] >= 0), leaves)


@st.composite
def splits_beside_the_center(draw):
    """A split on one number, its threshold a few floats from the center, in any units."""
    center = draw(st.sampled_from([1.0, -1.1, 0.1, 135802.4679, -(2.0**52)]))
    center *= 2.0 ** draw(st.sampled_from([0, 0, 0, -800, 800]))
    spacing = float(np.spacing(abs(center)))
    floats = draw(st.sampled_from([0, 1, 2, 3, 100, 2**20 + 1])) * draw(st.sampled_from([-1, 1]))
    scale = spacing * 10.0 ** draw(st.integers(-20, 36))
    weight = draw(st.sampled_from([1.0, -1.0, 1e-3, -777.0])) / scale
    feature = Feature("x", "numeric", center=center, scale=scale, has_missing=draw(st.booleans()))
    schema = Schema((feature,))
    weights = np.zeros((1, schema.n_columns))
    weights[0, 0] = weight
    tree = ObliqueTree(
        weights,
        [-weight * floats * spacing],
        [[-1, -2]],
        [[0.0], [1.0]],
        schema=schema,
        task="regression",
    )
    return tree, center + floats * spacing


def rows_beside(tree, threshold):
    """Floats around the threshold and the center, and far from them; each has another value.

    Of the floats that round to the cut, it is the threshold of the export, if there is one.
    """
    encoding, _, (condition,) = planned(tree)
    center = tree.schema.column_center[0]
    points = [condition.value] if isinstance(condition, Threshold) else []
    points += [*neighbors(np.float64(threshold)), *neighbors(np.float64(center))]
    points += [0.0, 1e308, -1e308, center + tree.schema.column_scale[0] * 3, threshold * 1.001]
    x = np.array(points)
    values = encoding.encode(x[:, None])[0][:, 0]
    return x[np.unique(values, return_index=True)[1]][:, None]


@pytest.mark.parametrize(
    "export", [to_c, to_json, to_onnx, to_python, to_rules, to_sql], ids=lambda e: e.__name__
)
@settings(max_examples=60)
@given(split=splits_beside_the_center())
def test_a_threshold_nearer_to_the_center_than_floats_resolve(export, split):
    """Every export decides the floats around it as the model does, none of them by rounding."""
    if export is to_onnx:
        pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    tree, threshold = split
    rows = rows_beside(tree, threshold)
    with mock.patch.object(Compiler, "find", return_value=None):  # compilers are slow
        check = export(tree, data=rows).check
    assert check.n_on_edge == 0
    inside = holds(planned(tree)[2][0], rows, tree.schema)
    np.testing.assert_array_equal(inside, tree.apply(rows).astype(bool))


def test_conditions_on_categories_and_missing_values(zoo):
    tree = zoo("one feature each")
    encoding, _, conditions = planned(tree)
    kinds = {type(condition) for condition in conditions}
    assert {Threshold, Levels, Missing} <= kinds
    assert Linear not in kinds
    rng = np.random.default_rng(0)
    for i, condition in enumerate(conditions):
        split = tree.replace(
            weights=tree.weights[i : i + 1],
            bias=tree.bias[i : i + 1],
            children=[[-1, -2]],
            values=[[1, 0, 0], [0, 1, 0]],
            counts=None,
        )
        n_levels = np.maximum(tree.schema.n_levels, 1)
        rows = np.where(
            tree.schema.n_levels > 0,
            rng.integers(-1, n_levels + 1, size=(200, 6)),
            tree.schema.column_center[tree.schema.first_column] + rng.normal(size=(200, 6)),
        )
        rows[rng.random(rows.shape) < 0.2] = np.nan
        right = split.apply(tree.schema.as_table(rows)).astype(bool)
        np.testing.assert_array_equal(right, holds(condition, rows, tree.schema), str(condition))


def holds(condition, rows, schema):
    if isinstance(condition, Always):
        return np.full(len(rows), condition.right)
    x = rows[:, condition.feature]
    n_levels = schema.n_levels[condition.feature]
    missing = np.isnan(x) | ((n_levels > 0) & ((x < 0) | (x >= n_levels)))
    if isinstance(condition, Missing):
        return missing == condition.right_if_missing
    if isinstance(condition, Levels):
        inside = np.isin(x, sorted(condition.right))
    else:
        inside = x >= condition.value if condition.relation == ">=" else x <= condition.value
    return np.where(missing, condition.missing_right, inside)


@pytest.mark.parametrize(
    ("low", "near", "high", "shortest"),
    [
        (29.999999, 29.9999995, 30.000001, 30.0),
        (-1e-46, 1e-47, 1e-46, 0.0),
        (-2.4500001, -2.45000002, -2.4499999, -2.45),
        (123.2, 123.456, 123.9, 123.5),
        (0.0999999, 0.17, 0.2, 0.2),
        (2.41, 2.45, 2.47, 2.45),
        (1 / 3, 1 / 3, 1 / 3, 1 / 3),
        (9.5, 20.0, 10.5, 10.0),
        (1e300, 1e301, 1.00001e300, 1e300),
    ],
)
def test_the_shortest_number_between_two(low, near, high, shortest):
    assert shortest_between(low, high, near) == shortest


@pytest.mark.parametrize("center", [0.0, 38.7, -1.5, 1e4])
@pytest.mark.parametrize("threshold", [30.0, 2.45, 0.0, 0.1, -7.25, 1000.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_thresholds_set_by_hand_are_written_unchanged(center, threshold, sign):
    schema = Schema((Feature("age", "numeric", center=center),))
    tree = ObliqueTree.of([[sign]], thresholds=[sign * threshold], values=[0.0, 1.0], schema=schema)
    (condition,) = planned(tree)[2]
    assert (condition.relation, condition.value) == (">=" if sign > 0 else "<=", threshold)
    assert tree.apply([[threshold]]) == [1]


def test_a_weight_too_small_to_matter_leaves_one_side():
    tree = ObliqueTree.of([[1e-300, 0.0]], bias=[1.0], values=[0.0, 1.0])
    assert planned(tree)[2] == [Always(True)]
    tree = ObliqueTree.of([[0.0, 0.0]], bias=[-1.0], values=[0.0, 1.0])
    assert planned(tree)[2] == [Always(False)]


@pytest.mark.parametrize("seed", range(5))
def test_sums_agree_with_the_engine_beyond_the_rounding_bound(seed):
    """Rows far closer to the splits than any table has: only those within the bound may differ."""
    rng = np.random.default_rng(seed)
    tree = make_tree(seed, n_splits=1, n_features=30, sparsity=0.0)
    encoding, plan, (condition,) = planned(tree)
    rows = encoding.center + 100 * rng.normal(size=(4000, 30))
    weights = np.array([weight for _, weight, _ in condition.numbers])
    score = (rows - encoding.center) @ weights + condition.constant
    margin = rng.choice([-1, 1], 4000) * 10.0 ** rng.uniform(-9, -4, 4000)
    size = np.abs((rows - encoding.center) * weights).sum(axis=1) + abs(condition.constant)
    rows[:, 0] += (margin * size - score) / weights[0]
    terms = (rows - encoding.center) * weights
    score = terms.sum(axis=1) + condition.constant
    right_leaf = ~tree.children[0, 1]
    differs = (tree.apply(rows) == right_leaf) != (score >= 0)
    closeness = np.abs(score) / (np.abs(terms).sum(axis=1) + abs(condition.constant))
    assert closeness[differs].max(initial=0) <= rounding_bound(encoding)
    assert differs.any()  # otherwise the rows are too far from the splits
