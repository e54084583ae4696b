"""Counterfactuals equal those of a solver that tries every leaf, category, integer and subset."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls

from hardwood import DGTClassifier, GreedyTreeClassifier, ObliqueForest, ObliqueTree
from hardwood.errors import TableError, TableWarning
from hardwood.explain import counterfactual
from hardwood.explain.constraints import deviations
from hardwood.table import Feature, Schema, Table
from trees import make_rows, make_tree

NORMS = ("l2", "l1", "l0")
MARGIN = 1e-5
TOLERANCE = 1e-3  # a thousand times what a margin adds, a thousandth of a usual distance


# A brute-force solver


def least_length(G, h):
    """min |u| with G u >= h, by Lawson and Hanson's least distance programming; None if empty."""
    if (h <= 0).all():
        return 0.0
    E = np.vstack([G.T, h])
    y, residual = nnls(E, np.append(np.zeros(G.shape[1]), 1.0), maxiter=10_000)
    if residual < 1e-7:
        return None
    r = E @ y - np.append(np.zeros(G.shape[1]), 1.0)
    u = -r[:-1] / r[-1]
    return float(np.linalg.norm(u)) if (G @ u >= h - 1e-6).all() else None


def least_sum(G, h):
    """min of the sum of |u| with G u >= h; None if empty."""
    if (h <= 0).all():
        return 0.0
    n = G.shape[1]
    found = linprog(np.ones(2 * n), A_ub=-np.hstack([G, -G]), b_ub=-h, bounds=(0, None))
    return float(found.fun) if found.status == 0 else None


def columns_of(schema, x):
    columns = np.zeros(schema.n_columns)
    for j, feature in enumerate(schema.features):
        first, flag = schema.first_column[j], schema.flag_column[j]
        if np.isnan(x[j]):
            columns[flag] = 1.0 if flag >= 0 else columns[flag]
        elif feature.kind == "categorical":
            columns[first + int(x[j])] = 1.0
        else:
            columns[first] = x[j] - feature.center
    return columns


def leaf_paths(tree):
    """(leaf, [(split, +1 or -1), ...]) of every leaf."""

    def walk(node, way):
        if node < 0:
            yield ~node, way
            return
        yield from walk(tree.children[node, 0], [*way, (node, -1.0)])
        yield from walk(tree.children[node, 1], [*way, (node, 1.0)])

    yield from walk(0 if tree.n_splits else -1, [])


@dataclasses.dataclass
class BruteForce:
    """The smallest change to a row, with given extra half-spaces per leaf."""

    tree: ObliqueTree
    in_leaf: object  # leaf -> list of lists of (normal, bias), empty where it is not wanted
    norm: str
    low: np.ndarray  # (p,) numbers
    high: np.ndarray
    whole: tuple = ()
    fixed: tuple = ()

    def distance(self, x):
        options = [self.options_of(x, j) for j in range(len(x))]
        best = np.inf
        for choice in itertools.product(*options):
            decided = x.copy()
            free = []
            for j, value in enumerate(choice):
                if value is None:
                    free.append(j)
                else:
                    decided[j] = value
            best = min(best, self.of_numbers(x, decided, free))
        return best

    def options_of(self, x, j):
        feature = self.tree.schema.features[j]
        if np.isnan(x[j]) or j in self.fixed:
            return [x[j]]
        if feature.kind == "categorical":
            return list(range(len(feature.levels)))
        if j in self.whole:
            return list(np.arange(self.low[j], self.high[j] + 1))
        return [None] if self.norm != "l0" else [x[j], None]

    def of_numbers(self, x, decided, free):
        """Distance for one choice of levels and integers, over all leaves."""
        cost = self.costs
        moved = decided != x
        moved &= ~np.isnan(x)
        is_level = self.tree.schema.n_levels > 0
        sizes = np.where(is_level, moved, np.abs(np.nan_to_num(decided - x))) * cost
        columns = columns_of(self.tree.schema, decided)
        best = np.inf
        for leaf, way in leaf_paths(self.tree):
            for extra in self.in_leaf(leaf):
                G, h = self.half_spaces(columns, free, way, extra)
                if G is None:
                    continue
                G, h = self.with_bounds(G, h, x, free)
                if self.norm == "l0":
                    if least_length(G, h) is not None:
                        best = min(best, moved.sum() + len(free))
                    continue
                of_numbers = least_length(G, h) if self.norm == "l2" else least_sum(G, h)
                if of_numbers is not None:
                    joined = np.hypot if self.norm == "l2" else np.add
                    rest = np.linalg.norm(sizes) if self.norm == "l2" else sizes.sum()
                    best = min(best, joined(of_numbers, rest))
        return best

    @property
    def costs(self):
        schema = self.tree.schema
        spread = deviations(schema)[schema.first_column]
        return np.where(schema.n_levels > 0, 1.0, 1.0 / spread)

    def half_spaces(self, columns, free, way, extra):
        """G u >= h for u of the free numbers, by unit normals; None where one cannot hold."""
        tree = self.tree
        first = tree.schema.first_column
        conditions = [(sign * tree.weights[i], sign * tree.bias[i], sign > 0) for i, sign in way]
        conditions += [(normal, bias, True) for normal, bias in extra]
        G, h = [], []
        for normal, bias, may_be_zero in conditions:
            score = normal @ columns + bias
            g = normal[first[free]] / self.costs[free]
            size = np.linalg.norm(normal * deviations(tree.schema))
            if not g.any():
                if score < 0 or (score == 0 and not may_be_zero):
                    return None, None
                continue
            G.append(g / np.linalg.norm(g))
            h.append((MARGIN * size - score) / np.linalg.norm(g))
        return np.array(G).reshape(len(h), len(free)), np.array(h)

    def with_bounds(self, G, h, x, free):
        for k, j in enumerate(free):
            for bound, sign in ((self.low[j], 1.0), (self.high[j], -1.0)):
                if np.isfinite(bound):
                    G = np.vstack([G, sign * np.eye(len(free))[k]])
                    h = np.append(h, sign * (bound - x[j]) * self.costs[j])
        return G, h


def unbounded(tree):
    return np.full(tree.n_features, -np.inf), np.full(tree.n_features, np.inf)


def constant_leaves(tree, classes):
    good = {c for c in range(tree.n_outputs) if tree.classes[c] in classes}
    weights = 1.0 if tree.decision_weights is None else tree.decision_weights
    return lambda leaf: [[]] if (tree.values[leaf] * weights).argmax() in good else []


def assert_equal_to(brute, results, rows):
    for i, x in enumerate(rows):
        expected = 0.0 if results.distance[i] == 0 else brute.distance(x)
        assert results.is_exact[i]
        assert results.distance[i] == pytest.approx(expected, abs=TOLERANCE, rel=TOLERANCE), i


def read(tree, rows):
    return np.array(tree.schema.read(rows), dtype=np.float64)


def numeric_rows(tree, seed, n=6):
    return read(tree, make_rows(seed, tree.schema, n))


# Comparison with brute force


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("decides", [False, True])
def test_numbers_equal_brute_force(norm, seed, decides):
    tree = make_tree(seed, n_splits=7, n_features=4, counts=False, decides=decides)
    rows = np.nan_to_num(numeric_rows(tree, seed), nan=0.5)
    wanted = tree.classes[seed % 3]
    results = counterfactual(tree, rows, wanted=wanted, norm=norm, margin=MARGIN)
    brute = BruteForce(tree, constant_leaves(tree, {wanted}), norm, *unbounded(tree))
    assert_equal_to(brute, results, rows)
    assert (results.predictions[results.found] == wanted).all()


@pytest.mark.parametrize("norm", NORMS)
def test_bounds_and_fixed_features_equal_brute_force(norm):
    n_without = 0
    for seed in range(6):
        tree = make_tree(seed, n_splits=6, n_features=4, counts=False)
        rows = np.nan_to_num(numeric_rows(tree, seed, 4), nan=0.5)
        scale = 1 / BruteForce(tree, None, norm, None, None).costs
        low, high = rows.min(axis=0) - 0.3 * scale, rows.max(axis=0) + 0.3 * scale
        bounds = {f"f{j}": (low[j], high[j]) for j in range(4)}
        results = counterfactual(
            tree, rows, wanted="class 0", norm=norm, bounds=bounds, fixed=["f2"], margin=MARGIN
        )
        wanted = constant_leaves(tree, {"class 0"})
        assert_equal_to(BruteForce(tree, wanted, norm, low, high, fixed=(2,)), results, rows)
        assert (results.after[:, 2] == rows[:, 2]).all()
        assert (low <= results.after).all()
        assert (results.after <= high).all()
        n_without += int((~results.found).sum())
    assert n_without > 0


def integer_tree(seed, n_features=4):
    """A tree whose first two features are counts, with scores of up to a few."""
    rng = np.random.default_rng(seed)
    tree = make_tree(rng, n_splits=5, n_features=n_features, counts=False)
    features = [
        dataclasses.replace(f, center=float(rng.integers(3)), scale=1.0) if j < 2 else f
        for j, f in enumerate(tree.schema.features)
    ]
    weights = tree.weights * tree.schema.column_scale
    schema = Schema(tuple(features))
    return ObliqueTree(
        weights / schema.column_scale,
        tree.bias,
        tree.children,
        tree.values,
        schema=schema,
        task="classification",
        classes=tree.classes,
    )


@pytest.mark.parametrize("norm", NORMS)
def test_integers_equal_enumeration(norm):
    n_changed = 0
    for seed in range(3):
        tree = integer_tree(seed)
        rng = np.random.default_rng(seed)
        rows = np.nan_to_num(numeric_rows(tree, seed, 3), nan=0.5)
        rows[:, :2] = rng.integers(0, 4, size=(3, 2))
        low, high = unbounded(tree)
        low[:2], high[:2] = -1, 4
        results = counterfactual(
            tree,
            rows,
            wanted="class 1",
            norm=norm,
            bounds={"f0": (-1.5, 4.9), "f1": (-1, 4)},
            integers=["f0", 1],
            margin=MARGIN,
        )
        brute = BruteForce(tree, constant_leaves(tree, {"class 1"}), norm, low, high, whole=(0, 1))
        assert_equal_to(brute, results, rows)
        assert (results.after[:, :2] == np.round(results.after[:, :2])).all()
        n_changed += int((results.after[:, :2] != rows[:, :2]).any(axis=1).sum())
    assert n_changed > 0


@pytest.mark.parametrize("norm", NORMS)
def test_categories_and_missing_values_equal_enumeration(norm):
    n_changed = n_missing = 0
    for seed in range(5):
        tree = make_tree(seed, n_splits=6, n_features=4, mixed=True, counts=False)
        table = make_rows(seed, tree.schema, 5)
        rows = read(tree, table)
        results = counterfactual(tree, table, wanted="class 2", norm=norm, margin=MARGIN)
        brute = BruteForce(tree, constant_leaves(tree, {"class 2"}), norm, *unbounded(tree))
        assert_equal_to(brute, results, rows)
        assert (np.isnan(results.after) == np.isnan(rows)).all()
        n_changed += int(results.has_changed[:, 1::2].sum())
        n_missing += int(np.isnan(rows).sum())
        assert (tree.predict(results.X)[results.found] == "class 2").all()
    assert n_changed > 0
    assert n_missing > 0


def tree_of_levels(seed, n_levels, n_numbers, depth):
    rng = np.random.default_rng(seed)
    levels = tuple(f"level {i}" for i in range(n_levels))
    features = [Feature(f"c{j}", "categorical", levels=levels) for j in range(2)]
    features += [Feature(f"n{j}", "numeric") for j in range(n_numbers)]
    schema, m = Schema(tuple(features)), 2**depth - 1
    return ObliqueTree.of(
        rng.normal(size=(m, schema.n_columns)),
        bias=rng.normal(size=m),
        values=rng.dirichlet(np.ones(3), size=m + 1),
        classes=["a", "b", "c"],
        schema=schema,
    )


@pytest.mark.parametrize("norm", NORMS)
def test_many_levels_equal_enumeration(norm):
    """Changes of numbers are expensive, so that categories change."""
    n_changed = 0
    for seed in range(3):
        tree = tree_of_levels(seed, n_levels=9, n_numbers=1, depth=3)
        rows = np.array([[1.0, 2.0, 0.3], [0.0, 8.0, -0.7], [4.0, 4.0, 1.2]])
        table = [[f"level {a:.0f}", f"level {b:.0f}", x] for a, b, x in rows]
        results = counterfactual(tree, table, wanted="b", norm=norm, margin=MARGIN)
        brute = BruteForce(tree, constant_leaves(tree, {"b"}), norm, *unbounded(tree))
        assert_equal_to(brute, results, rows)
        n_changed += int(results.has_changed[:, :2].sum())
    assert n_changed > 0


def test_a_search_that_is_cut_short_returns_its_best_result():
    tree = tree_of_levels(0, n_levels=4, n_numbers=8, depth=7)
    rng = np.random.default_rng(0)
    table = [["level 0", "level 1", *rng.integers(-3, 4, size=8).tolist()] for _ in range(30)]
    integers = [f"n{j}" for j in range(8)]
    full = counterfactual(tree, table, wanted="b", integers=integers)
    cut = counterfactual(tree, table, wanted="b", integers=integers, max_steps=40)
    assert full.is_exact.all()
    assert not cut.is_exact.all()
    assert (cut.found & ~cut.is_exact).any()
    assert (tree.predict(cut.X)[cut.found] == "b").all()
    assert (full.distance <= cut.distance).all()
    assert (full.distance == cut.distance)[cut.is_exact].all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("decides", [False, True])
def test_linear_leaves_with_classes_equal_brute_force(norm, decides):
    for seed in range(3):
        tree = make_tree(seed, n_splits=4, n_features=3, linear=True, counts=False, decides=decides)
        rows = np.nan_to_num(numeric_rows(tree, seed, 4), nan=0.5)

        def in_leaf(leaf, tree=tree):
            W, v = tree.leaf_weights[leaf], tree.values[leaf]
            if decides:
                v = v + np.log(tree.decision_weights)
            return [[(W[1] - W[j], v[1] - v[j]) for j in (0, 2)]]

        results = counterfactual(tree, rows, wanted="class 1", norm=norm, margin=MARGIN)
        assert_equal_to(BruteForce(tree, in_leaf, norm, *unbounded(tree)), results, rows)
        assert results.found.any()
        assert (tree.predict(results.X)[results.found] == "class 1").all()


@pytest.mark.parametrize("link", ["identity", "exp"])
@pytest.mark.parametrize("interval", [(0.5, 1.5), (2.0, None), (None, 0.25)])
def test_linear_leaves_with_intervals_equal_brute_force(link, interval):
    tree = make_tree(
        3, n_splits=4, n_features=3, k=1, task="regression", linear=True, link=link, counts=False
    )
    rows = np.nan_to_num(numeric_rows(tree, 0, 5), nan=0.5)
    low, high = interval
    if link == "exp":
        low, high = (None if end is None else np.log(end) for end in interval)

    def in_leaf(leaf):
        w, v = tree.leaf_weights[leaf, 0], tree.values[leaf, 0]
        above = [] if low is None else [(w, v - low)]
        below = [] if high is None else [(-w, high - v)]
        return [above + below]

    results = counterfactual(tree, rows, wanted=interval, margin=MARGIN)
    assert_equal_to(BruteForce(tree, in_leaf, "l2", *unbounded(tree)), results, rows)
    values = tree.outputs(results.X)[results.found, 0]  # the largest is infinite
    assert (values >= (interval[0] or -np.inf)).all()
    assert (values <= (np.inf if interval[1] is None else interval[1])).all()


def test_several_outputs_and_labels():
    tree = make_tree(0, n_splits=6, k=2, task="regression", counts=False)
    rows = np.nan_to_num(numeric_rows(tree, 0), nan=0.5)
    high = float(np.median(tree.values[:, 1]))
    results = counterfactual(tree, rows, wanted={"y1": (None, high)})
    assert results.found.all()
    assert (tree.predict(results.X)[:, 1] <= high).all()
    same = counterfactual(tree, rows, wanted=[None, (None, high)])
    assert (same.after == results.after).all()

    for linear in (False, True):
        tree = make_tree(1, n_splits=6, k=3, task="multilabel", linear=linear, counts=False)
        rows = np.nan_to_num(numeric_rows(tree, 0), nan=0.5)
        results = counterfactual(tree, rows, wanted={"y0": 1, "y2": 0})
        assert results.found.all()
        answers = tree.predict(results.X)
        assert (answers[:, [0, 2]] == [1, 0]).all()


# Promises of the docstring


@st.composite
def questions(draw):
    task = draw(st.sampled_from(["classification", "regression"]))
    tree = make_tree(
        draw(st.integers(0, 10_000)),
        n_splits=draw(st.integers(0, 9)),
        n_features=draw(st.integers(1, 5)),
        k=3 if task == "classification" else 1,
        task=task,
        mixed=draw(st.booleans()),
        counts=False,
        sparsity=draw(st.sampled_from([0.0, 0.5, 0.9])),
        linear=draw(st.booleans()),
    )
    table = make_rows(draw(st.integers(0, 10_000)), tree.schema, 4)
    wanted = (0.0, 2.0)
    if task == "classification":
        wanted = draw(st.sampled_from([None, "class 0", ["class 1", "class 2"]]))
    fixed = draw(st.sets(st.sampled_from(tree.feature_names), max_size=2))
    return tree, table, wanted, draw(st.sampled_from(NORMS)), sorted(fixed)


def is_wanted(tree, wanted, before, after):
    if tree.task == "regression":
        return (wanted[0] <= after) & (after <= wanted[1])
    if wanted is None:
        return after != before
    return np.isin(after, wanted)


@settings(max_examples=60, deadline=None)
@given(questions())
def test_every_counterfactual_is_wanted_and_allowed(question):
    tree, table, wanted, norm, fixed = question
    results = counterfactual(tree, table, wanted=wanted, norm=norm, fixed=fixed)
    before, after = tree.predict(table), tree.predict(results.X)
    there = is_wanted(tree, wanted, before, after)
    assert there[results.found].all()
    stays = results.distance == 0
    already = (
        np.zeros(len(table), bool) if wanted is None else is_wanted(tree, wanted, before, before)
    )
    assert (stays == already).all()
    assert (results.before[stays] == results.after[stays])[~np.isnan(results.before[stays])].all()
    assert (np.isnan(results.before) == np.isnan(results.after)).all()
    for name in fixed:
        assert not results.has_changed[:, tree.feature_names.index(name)].any()
    assert not results.has_changed[~results.found].any()
    assert (results.leaf[results.found] == tree.apply(results.X)[results.found]).all()
    for result in results:
        assert result.found == np.isfinite(result.distance)
        if result.found:
            sizes = np.array([change.size for change in result.changes])
            expected = {"l2": np.linalg.norm(sizes), "l1": sizes.sum(), "l0": sizes.size}[norm]
            assert result.distance == pytest.approx(expected)
            assert (np.diff(sizes) <= 0).all()


@settings(max_examples=25, deadline=None)
@given(questions())
def test_norms_bound_each_other(question):
    """The smallest change by one norm is at least as large, by another, as the smallest by that."""
    tree, table, wanted, _, fixed = question
    by = {
        norm: counterfactual(tree, table, wanted=wanted, norm=norm, fixed=fixed) for norm in NORMS
    }
    sizes = {norm: by[norm].constraints.sizes(by[norm].before, by[norm].after) for norm in NORMS}
    for norm in NORMS:
        assert (by[norm].found == by["l2"].found).all()
        found = by[norm].found
        length = np.sqrt(np.square(sizes[norm]).sum(axis=1))
        assert (by["l2"].distance[found] <= length[found] + 1e-4).all()
        assert (by["l1"].distance[found] <= sizes[norm].sum(axis=1)[found] + 1e-4).all()
        assert (by["l0"].distance[found] <= (sizes[norm] > 0).sum(axis=1)[found]).all()


# Thresholds


def test_integers_may_lie_on_a_threshold():
    """x >= 3 holds for 3; a margin would require 4."""
    tree = ObliqueTree.of([[1.0]], thresholds=[3.0], values=[0.0, 1.0])
    up = counterfactual(tree, [[1.0]], wanted=(1, 1), integers=["x0"])
    assert up.X.tolist() == [[3.0]]
    down = counterfactual(tree, [[5.0]], wanted=(0, 0), integers=["x0"])
    assert down.X.tolist() == [[2.0]]
    assert up.is_exact.all()
    assert down.is_exact.all()


def test_a_value_on_a_threshold_may_stay_there():
    """The row lies on the threshold of the second split: only the first feature changes."""
    tree = ObliqueTree.of(
        [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]],
        thresholds=[1.0, 2.0, 2.0],
        values=[0.0, 0.0, 0.0, 1.0],
    )
    for norm in NORMS:
        result = counterfactual(tree, [[0.0, 2.0]], wanted=(1, 1), norm=norm)[0]
        assert [change.feature for change in result.changes] == ["x0"]


def test_far_from_the_center_rounding_widens_the_margin():
    """Without a center, float32 values near 1e9 are 64 apart; the tree itself decides there."""
    tree = ObliqueTree.of([[1.0, 1e-3]], thresholds=[1e9], values=[0.0, 1.0])
    rows = 1e9 - np.random.default_rng(0).random((20, 2)) * 100
    results = counterfactual(tree, rows, wanted=(1, 1))
    assert results.found.all()
    assert (tree.predict(results.X) == 1).all()


def test_the_margin_is_kept():
    """A changed row is beyond every threshold on its path, or where it was on the right side."""
    tree = make_tree(1, n_splits=5, n_features=3, k=1, task="regression", counts=False)
    rows = np.nan_to_num(numeric_rows(tree, 0, 20), nan=0.5)
    wanted = tree.values[2, 0]
    sizes = np.linalg.norm(tree.weights * deviations(tree.schema), axis=1)

    def heights(rows):
        columns = np.array([columns_of(tree.schema, x) for x in rows])
        return (columns @ tree.weights.T + tree.bias) / sizes

    for margin in (1e-6, 0.01, 0.1):
        results = counterfactual(tree, rows, wanted=(wanted, wanted), margin=margin)
        assert results.found.all()
        before, after = heights(rows), heights(results.after)
        nearer = (before * after > 0) & (np.abs(before) < margin)
        needed = np.where(nearer, np.abs(before), margin)
        visited = tree.decision_path(results.X).toarray()[:, : tree.n_splits] > 0
        visited &= results.distance[:, None] > 0
        assert visited.any()
        assert (np.abs(after) >= needed * (1 - 1e-3))[visited].all()
        assert np.isclose(np.abs(after), margin, rtol=1e-3)[visited].any()


# Results


def loan_tree():
    schema = Schema(
        (
            Feature("income", "numeric", center=3000.0, scale=1024.0, spread=(1000.0,)),
            Feature("children", "numeric", center=1.0, scale=1.0, spread=(1.0,)),
            Feature("owner", "numeric", center=0.5, scale=0.5, spread=(0.5,), origin="boolean"),
            Feature("job", "categorical", levels=("none", "part", "full"), spread=(0.5, 0.5, 0.5)),
            Feature("since", "numeric", center=1.6e9, scale=2.0**25, spread=(3e7,), origin="date"),
        )
    )
    #           income  children owner none part full since
    weights = [[1e-3, -0.3, 0.5, -1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1e-8]]
    return ObliqueTree(
        weights,
        [0.2, 0.0],
        [[-1, 1], [-2, -3]],
        [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]],
        schema=schema,
        task="classification",
        classes=["no", "yes"],
    )


ROW = [2500.0, 2.0, False, "part", datetime.datetime(2019, 1, 1)]


WHOLE_COLUMNS = {
    "integers": np.arange(-20, 20),
    "small integers": np.arange(40, dtype=np.uint8),
    "whole floats": np.arange(40.0) * 3,
    "float32": np.arange(40, dtype=np.float32),
    "with gaps": np.where(np.arange(40) % 5 == 1, np.nan, np.arange(40.0)),
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", WHOLE_COLUMNS)
def test_what_was_whole_in_training_stays_whole(kind, norm):
    column, other = WHOLE_COLUMNS[kind], np.random.default_rng(0).normal(size=40)
    X = pd.DataFrame({"count": column, "size": other})
    y = np.nan_to_num(column.astype(float), nan=-50.0) / 10 + other > 1.2
    tree = GreedyTreeClassifier(splitter="oc1", max_depth=3, random_state=0).fit(X, y).tree_
    changed = counterfactual(tree, X, norm=norm, weights={"count": 0.1})
    assert changed.found.all()
    assert changed.has_changed[:, 0].any()
    counts = changed.after[:, 0]
    assert (np.isnan(counts) | (np.rint(counts) == counts)).all()
    for one in changed:
        assert isinstance(one.x["count"], int | None)
        for change in one.changes:
            if change.feature == "count":
                assert isinstance(change.after, int)
                assert str(change) == f"count {change.before} -> {change.after}"
    assert (tree.predict(changed.X) != tree.predict(X)).all()


def test_whole_numbers_may_be_broken_by_those_who_say_so():
    X = np.arange(20)[:, None]
    tree = GreedyTreeClassifier(max_depth=1).fit(X, X[:, 0] > 9).tree_
    assert counterfactual(tree, X[:1])[0].x == {"x0": 10}
    free = counterfactual(tree, X[:1], integers=())
    assert free.X[0, 0] == pytest.approx(9.5, abs=1e-3)
    fraction = counterfactual(tree, [[0.25]])  # no whole number to begin with
    assert fraction.X[0, 0] == pytest.approx(9.5, abs=1e-3)


@pytest.mark.parametrize("norm", NORMS)
def test_many_integers_get_a_change_near_the_best(norm):
    """The nearest integers of dense splits are too many to try; those found are not far off."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 17, size=(400, 40)) * (rng.random((400, 40)) < rng.random(40))
    y = X @ rng.normal(size=40) > 0
    tree = DGTClassifier(max_depth=2, max_epochs=5, random_state=0).fit(X, y).tree_
    rows = X[:5]
    whole = counterfactual(tree, rows, norm=norm)
    free = counterfactual(tree, rows, norm=norm, integers=())
    assert whole.found.all()
    assert (np.rint(whole.after) == whole.after).all()
    assert (whole.distance >= free.distance - 1e-9).all()
    least = counterfactual(tree, rows, norm="l1")  # quickly found, and no shorter than the shortest
    length = np.sqrt(np.square(least.constraints.sizes(least.before, least.after)).sum(axis=1))
    if norm == "l2":
        assert (whole.distance <= 1.5 * length).all()


def test_dates_and_durations_come_back_as_they_were_given():
    days = pd.date_range("2019-01-22", periods=40)
    waits = pd.to_timedelta(np.arange(40), unit="h")
    X = pd.DataFrame({"joined": days, "wait": waits, "member": np.arange(40) % 2 == 0})
    y = np.arange(40) > 15
    for name in ("joined", "wait"):
        tree = GreedyTreeClassifier(max_depth=1).fit(X[[name, "member"]], y).tree_
        changed = counterfactual(tree, X[[name, "member"]])
        assert (tree.predict(changed.X) != y).all()
        value = changed[0].x[name]
        assert isinstance(value, datetime.datetime if name == "joined" else datetime.timedelta)
        assert changed[0].x["member"] is True
        assert tree.predict_one(changed[0].x)
        beyond = counterfactual(tree, X[[name, "member"]], wanted=True)
        assert beyond.found.all()


def test_booleans_and_categories_keep_valid_values():
    tree = loan_tree()
    result = counterfactual(tree, [ROW], wanted="yes", norm="l0")[0]
    assert result.found
    assert len(result.changes) == 1
    for norm in ("l1", "l2"):
        results = counterfactual(
            tree, [ROW], wanted="yes", norm=norm, weights={"income": 1.0}, integers=["children"]
        )
        assert results.found.all()
        after = results[0].x
        assert after["owner"] in (0.0, 1.0)
        assert after["job"] in ("none", "part", "full")
        assert after["children"] == round(after["children"])


def test_bounds_of_categories_and_dates():
    tree = loan_tree()
    options = {"wanted": "yes", "fixed": ["income", "children", "owner"]}
    result = counterfactual(tree, [ROW], **options)[0]
    assert [(m.feature, m.before, m.after) for m in result.changes] == [("job", "part", "full")]
    assert not counterfactual(tree, [ROW], **options, bounds={"job": ["none"]}).found.any()
    assert str(result).startswith("job part -> full: 'yes'")

    late = [*ROW[:3], "full", datetime.datetime(2022, 1, 1)]
    result = counterfactual(tree, [late], **options)[0]
    assert [m.feature for m in result.changes] == ["since"]
    assert "2022-01-01" in str(result)
    limits = {"since": (datetime.datetime(2021, 6, 1), None)}
    assert not counterfactual(tree, [late], **options, bounds=limits).found.any()


def test_a_number_outside_its_bounds_may_stay_or_move_toward_them():
    tree = ObliqueTree.of([[1.0, 0.0]], thresholds=[0.0], values=[0.0, 1.0])
    results = counterfactual(
        tree, [[-5.0, 7.0], [5.0, -5.0]], wanted=(1, 1), bounds={"x0": (0, 1), "x1": (0, 1)}
    )
    assert results.found.all()
    assert results.X[0] == pytest.approx([0, 7], abs=1e-5)
    assert results.X[1].tolist() == [5.0, -5.0]


def test_any_other_class():
    tree = make_tree(2, n_splits=8, counts=False)
    rows = np.nan_to_num(numeric_rows(tree, 0, 20), nan=0.5)
    results = counterfactual(tree, rows)
    assert (tree.predict(results.X) != tree.predict(rows)).all()
    for label in tree.classes:
        of_one = counterfactual(tree, rows, wanted=label)
        others = tree.predict(rows) != label
        assert (of_one.distance >= results.distance - 1e-5)[others].all()


def test_a_prediction_that_no_leaf_makes_has_no_counterfactual():
    tree = make_tree(0, n_splits=3, k=1, task="regression", counts=False)
    results = counterfactual(tree, numeric_rows(tree, 0), wanted=(1e6, None))
    assert not results.found.any()
    assert results.is_exact.all()
    assert np.isinf(results.distance).all()
    assert results[0].x is None
    assert results[0].prediction is None
    assert str(results[0]) == "no counterfactual exists"


def test_a_search_over_unbounded_integers_gives_up_and_says_so():
    """0.2 <= x0 - x1 <= 0.8 has no integer solution, and infinitely many candidates."""
    tree = ObliqueTree.of(
        [[1.0, -1.0], [1.0, -1.0], [1.0, -1.0]],
        thresholds=[0.2, 0.8, 0.8],
        values=[0.0, 0.0, 1.0, 0.0],
    )
    for norm in NORMS:
        results = counterfactual(
            tree, [[0.0, 0.0]], wanted=(1, 1), integers=["x0", "x1"], norm=norm, max_steps=500
        )
        assert not results.found.any()
        assert not results.is_exact.any()
        assert str(results[0]) == "no counterfactual found within max_steps"
    bounded = counterfactual(
        tree,
        [[0.0, 0.0]],
        wanted=(1, 1),
        integers=["x0", "x1"],
        bounds={"x0": (-3, 3), "x1": (-3, 3)},
    )
    assert not bounded.found.any()
    assert bounded.is_exact.all()


def test_few_features_where_finding_the_fewest_takes_too_long():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(63, 30))
    tree = ObliqueTree.of(weights, thresholds=rng.normal(size=63), values=np.arange(64.0))
    rows = rng.normal(size=(6, 30))
    options = {"wanted": (63, 63), "norm": "l0"}
    patient = counterfactual(tree, rows, **options)
    hurried = counterfactual(tree, rows, **options, max_steps=10)
    assert patient.is_exact.all()
    assert not hurried.is_exact.all()
    assert hurried.found.all()
    assert (tree.predict(hurried.X) == 63).all()
    assert (patient.distance <= hurried.distance).all()
    assert (hurried.distance <= 6).all()  # no more than splits on the path


def test_the_result_as_sequence_table_and_text():
    tree = loan_tree()
    results = counterfactual(tree, [ROW, ROW], wanted="yes")
    assert len(results) == 2
    assert results[-1].row == 1
    assert len(results[:1]) == 1
    assert [result.row for result in results] == [0, 1]
    with pytest.raises(IndexError):
        results[2]
    columns = results.to_dict()
    assert list(columns)[:5] == list(tree.feature_names)
    assert columns["(found)"] == [True, True]
    assert columns["(prediction)"] == ["yes", "yes"]
    pd = pytest.importorskip("pandas")
    frame = results.to_frame(backend="pandas")
    assert isinstance(frame, pd.DataFrame)
    assert tree.predict(frame).tolist() == ["yes", "yes"]
    assert repr(results).startswith("Counterfactuals(2 rows, l2: 2 changed")
    assert str(results).startswith("row 0: ")
    assert Table.of(results.X).n_rows == 2
    assert pickle.loads(pickle.dumps(results))[0].x == results[0].x


def test_estimators_and_sparse_tables_are_accepted():
    from scipy.sparse import csr_array

    from hardwood import DGTClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    estimator = DGTClassifier(max_depth=2, max_epochs=3, random_state=0).fit(X, X[:, 0] > X[:, 1])
    dense = counterfactual(estimator, X[:9])
    assert (estimator.predict(dense.X) != estimator.predict(X[:9])).all()
    sparse = counterfactual(estimator, csr_array(X[:9]))
    assert (sparse.after == dense.after).all()


# Refusals


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"wanted": "perhaps"}, ValueError, r"one of the classes \['no', 'yes'\]"),
        ({"wanted": []}, ValueError, "empty list"),
        ({"norm": "l3"}, ValueError, "norm must be one of"),
        ({"fixed": ["incone"]}, ValueError, "names the feature 'incone'"),
        ({"fixed": [9]}, ValueError, "the model has 5 features"),
        ({"integers": ["job"]}, ValueError, "categorical"),
        ({"weights": {"income": 0.0}}, ValueError, r"a number in \(0, inf\)"),
        ({"weights": {"income": "much"}}, ValueError, "must be a number"),
        ({"bounds": {"income": (5, 1)}}, ValueError, "low > high"),
        ({"bounds": {"income": 5}}, TypeError, r"\(low, high\)"),
        ({"bounds": {"income": (1, 2, 3)}}, ValueError, r"\(low, high\)"),
        ({"bounds": {"income": ("a", "b")}}, TypeError, "text"),
        ({"bounds": {"job": ["chef"]}}, ValueError, "'chef'"),
        ({"bounds": {"job": "full"}}, TypeError, "list of the categories"),
        ({"margin": 0.0}, ValueError, "margin"),
        ({"max_steps": 0}, ValueError, "max_steps"),
    ],
)
def test_invalid_arguments_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        counterfactual(loan_tree(), [ROW], **({"wanted": "yes"} | options))


def test_a_fraction_of_an_integer_is_refused():
    rows = [ROW, [2500.0, 1.5, *ROW[2:]]]
    with pytest.raises(TableError, match=r"'children' holds 1.5 at row 1"):
        counterfactual(loan_tree(), rows, wanted="yes", integers=["children"])
    fixed = counterfactual(loan_tree(), rows, wanted="yes", integers=["children"], fixed="children")
    assert fixed.found.all()


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        (None, TypeError, "wanted is required"),
        (3.0, TypeError, r"interval \(low, high\)"),
        ((2.0, 1.0), ValueError, "low <= high"),
        ((float("nan"), 1.0), ValueError, "low <= high"),
        ((None, None), ValueError, "at least one bound"),
        ({"z": (0, 1)}, ValueError, "'z'"),
    ],
)
def test_invalid_intervals_are_refused(wanted, error, words):
    tree = make_tree(0, k=1, task="regression")
    with pytest.raises(error, match=words):
        counterfactual(tree, numeric_rows(tree, 0), wanted=wanted)


def test_other_invalid_goals_are_refused():
    tree = make_tree(0, k=1, task="regression", linear=True)
    with pytest.raises(ValueError, match="low < high"):
        counterfactual(tree, numeric_rows(tree, 0), wanted=(1.0, 1.0))
    tree = make_tree(0, k=3, task="multilabel")
    for wanted, words in (([1, 0], "3 labels"), ([2, 0, 0], "1, 0, or None")):
        with pytest.raises(ValueError, match=words):
            counterfactual(tree, numeric_rows(tree, 0), wanted=wanted)
    with pytest.raises(TypeError, match="one value per label"):
        counterfactual(tree, numeric_rows(tree, 0), wanted="y0")


def test_forests_and_other_objects_are_refused():
    tree = make_tree(0)
    with pytest.raises(TypeError, match="forest of 2"):
        counterfactual(ObliqueForest([tree, tree]), numeric_rows(tree, 0), wanted="class 0")
    with pytest.raises(TypeError, match="got a dict"):
        counterfactual({}, numeric_rows(tree, 0), wanted="class 0")


def test_infinity_is_named():
    tree = loan_tree()
    with pytest.raises(TableError, match="column 0 .* holds infinity"):
        counterfactual(tree, [[np.inf, *ROW[1:]]], wanted="yes")
    tree = make_tree(0)
    with pytest.raises(TableError, match="'f1' holds infinity"):
        counterfactual(tree, np.array([[0.0, np.inf, 0.0, 0.0]]), wanted="class 0")


def test_an_unseen_category_is_missing_and_stays():
    tree = loan_tree()
    with pytest.warns(TableWarning, match="column 'job'"):
        results = counterfactual(tree, [[2500.0, 2.0, False, "chef", ROW[4]]], wanted="yes")
    assert results.X[0, 3] is None


@pytest.mark.parametrize("scale", [1e-290, 1e-160, 1e160, 1e290])
def test_whole_numbers_beside_numbers_of_any_size(scale):
    """The squares of costs, which are one over the deviation, are no float64."""
    features = (
        Feature("size", "numeric", scale=scale, spread=(scale,)),
        Feature("count", "numeric", origin="integer"),
    )
    tree = ObliqueTree.of(
        [[1 / scale, 1.0]], thresholds=[3.0], values=[0.0, 1.0], schema=Schema(features)
    )
    (found,) = counterfactual(tree, [[0.0, 0.0]], wanted=(0.5, None))
    assert found.found
    assert tree.predict_one(found.x) == 1.0
