"""Probe rows: they reach leaves, come close to splits, and are the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood import ObliqueTree
from hardwood.errors import TableError
from hardwood.export import to_c, to_json, to_python, to_rules, to_sql
from hardwood.export.plan import plan_of
from hardwood.export.probes import Probes, unseen_level
from hardwood.table import Feature, Schema
from trees import make_rows, make_tree


def test_simulated_rows_reach_leaves_that_random_rows_do_not():
    tree = make_tree(3, n_splits=63, n_features=12, sparsity=0.0)
    probes = Probes.of(plan_of(tree))
    typical = tree.apply(probes.matrix[: probes.n_typical])
    assert len(np.unique(typical)) < 60
    assert probes.n_leaves_reached == 64


def test_rows_are_close_to_both_sides_of_splits():
    tree = make_tree(1, n_splits=1, n_features=5, sparsity=0.0)
    plan = plan_of(tree)
    probes = Probes.of(plan)
    values, _ = plan.encoding.encode(probes.matrix)
    score = values @ tree.weights[0] + tree.bias[0]
    spread = np.linalg.norm(tree.weights[0] * tree.schema.column_scale)
    for low, high in ((-1e-4, 0), (0, 1e-4)):
        assert ((score / spread > low) & (score / spread < high)).sum() > 100


def test_rows_have_missing_values_and_unseen_categories():
    plan = plan_of(make_tree(2, mixed=True, n_features=8))
    probes = Probes.of(plan)
    assert np.isnan(probes.matrix).any(axis=0).all()
    for feature, column in zip(plan.schema.features, probes.raw_columns, strict=True):
        assert None in column
        if feature.kind == "categorical":
            assert unseen_level(feature) in column
            assert {*feature.levels} <= {*column}


def test_the_same_rows_every_time():
    plan = plan_of(make_tree(2, mixed=True))
    np.testing.assert_array_equal(Probes.of(plan).matrix, Probes.of(plan).matrix)


def test_given_rows_come_first():
    tree = make_tree(2, mixed=True)
    rows = make_rows(0, tree.schema, 30)
    probes = Probes.of(plan_of(tree), rows)
    assert (probes.n_typical, probes.are_given) == (30, True)
    np.testing.assert_array_equal(probes.matrix[:30], tree.schema.read(rows))
    np.testing.assert_array_equal(probes.leaves[:30, 0], tree.apply(rows))


def test_a_table_that_does_not_fit_is_refused():
    with pytest.raises(TableError, match="3 features"):
        Probes.of(plan_of(make_tree(1)), np.ones((2, 3)))


def test_thinned_rows_keep_some_of_each_kind():
    probes = Probes.of(plan_of(make_tree(1)))
    few = probes.thinned(10**7)
    assert 200 <= few.n_rows < probes.n_rows
    np.testing.assert_array_equal(few.leaves, probes.leaves[:: probes.n_rows // few.n_rows])
    assert probes.thinned(1).n_rows == probes.n_rows


@pytest.mark.parametrize(
    ("levels", "unseen"), [((1, 2, 5), 6.5), ((False, True), 2.5), (("never seen",), "never seen!")]
)
def test_an_unseen_category_has_the_type_of_the_others(levels, unseen):
    assert unseen_level(Feature("x", "categorical", levels=levels)) == unseen


@pytest.mark.parametrize(
    "levels",
    [(10**17, 10**17 + 1, 5), (2.0**53 + 2, 0.5), (1.7e308, 0.5, 1.5), (2**63, -1), (10**400,)],
)
def test_an_unseen_category_differs_from_all_others_at_any_size(levels):
    unseen = unseen_level(Feature("x", "categorical", levels=levels))
    assert unseen not in levels
    assert unseen not in [float(level) for level in levels if level < 10**309]


@pytest.mark.parametrize("export", [to_c, to_python, to_rules, to_sql, to_json])
def test_integers_beyond_float64_stay_distinct(export):
    schema = Schema((Feature("x", "categorical", levels=(10**17, 10**17 + 1, 5)),))
    tree = ObliqueTree.of([[1.0, -1.0, -1.0]], bias=[0.0], values=[0.0, 1.0], schema=schema)
    assert export(tree).check.n_leaves_reached == 2
