"""Headers in integers: equal to their tables, close to the model, small, and never overflowing."""

from __future__ import annotations

import re

import numpy as np
import pytest

from hardwood import ObliqueForest, ObliqueTree
from hardwood.errors import ExportError
from hardwood.export import to_c
from hardwood.export.c import integer_header
from hardwood.export.c.compiler import Compiler
from hardwood.export.c.float_header import float_header
from hardwood.export.c.quantize import _placed, quantized
from hardwood.export.plan import plan_of
from hardwood.export.probes import Probes
from hardwood.table import Feature, Schema
from trees import make_tree

PRECISIONS = ["int16", "int8"]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_kind_of_model(model, precision):
    """The export itself checks that C equals the tables; this tests its agreement and size."""
    plan = plan_of(model)
    if plan.model.has_linear_leaves and len(plan.trees) > 1:
        with pytest.raises(ExportError, match="forest with linear leaves has no integer form"):
            to_c(model, precision=precision)
        return
    if plan.exponent:
        with pytest.raises(ExportError, match="have no integer form"):
            to_c(model, precision=precision)
        return
    if precision == "int8" and plan.schema.n_levels.max() > 127:
        with pytest.raises(ExportError, match="has 200 categories, more than the 127"):
            to_c(model, precision=precision)
        return
    check = to_c(model, precision=precision, min_agreement=0.0).check
    # Without data, int8 cuts numbers off at four standard deviations.
    # Simulated rows may exceed them.
    assert check.agreement >= (0.995 if precision == "int16" else 0.75)
    assert check.same_leaf >= (0.995 if precision == "int16" else 0.75)
    assert check.n_bytes < float_header(plan, "m")[1]


def learned_like(n=4000, seed=0):
    """A tree whose splits leave rows on both sides, and a table."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8)) * [1, 10, 100, 1, 1, 1, 1, 1] + [0, 5, -300, 0, 0, 0, 0, 0]
    X[:, 3] = rng.integers(0, 40, n)
    features = [
        Feature(
            f"x{j}",
            "numeric",
            center=float(x.mean()),
            scale=float(2.0 ** np.round(np.log2(x.std()))),
        )
        for j, x in enumerate(X.T)
    ]
    schema = Schema(tuple(features))
    weights = rng.normal(size=(15, 8)) / X.std(axis=0)
    tree = ObliqueTree.of(
        weights,
        bias=rng.normal(size=15) * 0.3,
        values=rng.dirichlet(np.ones(3), size=16),
        schema=schema,
        classes=["a", "b", "c"],
    )
    return tree, X


def test_data_determine_the_ranges():
    tree, X = learned_like()
    sixteen = to_c(tree, precision="int16", data=X).check
    eight = to_c(tree, precision="int8", data=X).check
    assert sixteen.agreement >= 0.999
    assert eight.agreement >= 0.97
    assert eight.n_bytes < sixteen.n_bytes < to_c(tree).check.n_bytes


def test_integers_stay_exact():
    tree, X = learned_like()
    model = quantized(plan_of(tree), 8, Probes.of(plan_of(tree), X))
    q = model.grid.quantized(X)[:, 3]
    back = q * model.grid.step[3] + model.grid.zero[3]
    np.testing.assert_allclose(back, X[:, 3], atol=1e-9)


def test_too_little_agreement_is_refused(tmp_path):
    tree, X = learned_like()
    path = tmp_path / "m.h"
    with pytest.raises(ExportError, match=r"in int8 only .* less than min_agreement=1.0.*'int16'"):
        to_c(tree, path, precision="int8", data=X, min_agreement=1.0)
    assert not path.exists()


@pytest.mark.parametrize("share", [float("nan"), 2, -0.1])
def test_a_share_is_from_0_to_1(share):
    with pytest.raises(ValueError, match="min_agreement must be a number from 0 to 1, found"):
        to_c(learned_like()[0], precision="int8", min_agreement=share)


def test_a_header_that_differs_from_its_tables_is_refused(monkeypatch):
    """As if the compiler had a bug."""
    if Compiler.find() is None:
        pytest.skip("there is no C compiler here")
    tree, X = learned_like(500)
    honest = integer_header._score_code
    monkeypatch.setattr(
        integer_header,
        "_score_code",
        lambda *arguments: honest(*arguments).replace("sum += (int32_t)w", "sum -= (int32_t)w"),
    )
    with pytest.raises(ExportError, match="differs from its int16 tables"):
        to_c(tree, precision="int16", data=X)


def test_without_a_compiler_the_tables_are_interpreted(monkeypatch):
    tree, X = learned_like(500)
    compiled = to_c(tree, precision="int8", data=X)
    monkeypatch.setattr(Compiler, "find", lambda: None)
    interpreted = to_c(tree, precision="int8", data=X)
    assert compiled == interpreted
    assert interpreted.check.agreement == compiled.check.agreement
    assert "interpreted in Python" in interpreted.check.method


def test_the_path_from_values_to_the_class_has_no_floating_point():
    tree, X = learned_like(500)
    for model in (tree, ObliqueForest([tree, tree.replace(bias=-tree.bias)])):
        text = to_c(model, precision="int16", data=X, min_agreement=0)
        functions = dict(
            re.findall(r"^static inline [\w ]+?[ *](\w+)\(.*?\{\n(.*?)^\}", text, re.M | re.S)
        )
        path = ["encode", "score", "walk", "leaves", "sums", "predict"]
        for name in path:
            assert not re.search(r"float|double|[0-9]\.[0-9]", functions[f"model_{name}"]), name


@pytest.mark.parametrize("bits", [8, 16])
def test_sums_cannot_overflow(bits):
    """For any values, the largest sum of any split fits 32 bits."""
    tree = make_tree(1, n_splits=31, n_features=60, mixed=True, sparsity=0.0)
    plan = plan_of(tree.replace(bias=tree.bias * 1e6))
    model = quantized(plan, bits, Probes.of(plan))
    splits, one = model.splits, model.grid.one
    reach = one * np.abs(splits.weights).sum(axis=1)
    features = np.array([item.feature for item in plan.encoding.indicators])
    for feature in np.unique(features):
        reach += one * np.abs(splits.indicators[:, features == feature]).max(axis=1)
    assert (reach + np.abs(splits.bias)).max() < 2**31
    assert np.abs(splits.weights).max() <= model.grid.largest


@pytest.mark.parametrize("seed", range(20))
def test_a_constant_is_placed_where_the_fewest_rows_are_wrong(seed):
    rng = np.random.default_rng(seed)
    score = rng.integers(-20, 20, size=rng.integers(1, 30))
    right = score + rng.normal(size=len(score)) * 5 >= 2
    nominal = int(rng.integers(-10, 10))
    constant, n_wrong = _placed(score, right, nominal)
    wrong = {c: int(((score + c >= 0) != right).sum()) for c in range(-60, 61)}
    assert n_wrong == wrong[constant] == min(wrong.values())
    nearest = min(abs(c - nominal) for c, w in wrong.items() if w == n_wrong)
    assert abs(constant - nominal) == nearest


def test_too_many_categories_are_refused():
    levels = tuple(f"level {i}" for i in range(200))
    schema = Schema((Feature("a", "categorical", levels=levels), Feature("b", "numeric")))
    tree = ObliqueTree.of(np.ones((1, 201)), bias=[0.0], values=[0.0, 1.0], schema=schema)
    with pytest.raises(ExportError, match="'a' has 200 categories, more than the 127"):
        to_c(tree, precision="int8")
    assert to_c(tree, precision="int16").check.agreement == 1.0


def test_probabilities_that_round_to_a_tie_keep_their_class():
    values = [[0.3333, 0.3335, 0.3332], [0.2, 0.3, 0.5]]
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=values, classes=["a", "b", "c"])
    assert to_c(tree, precision="int8", data=[[-1.0], [1.0]]).check.agreement == 1.0


def test_columns_too_wide_for_integers_are_named():
    schema = Schema((Feature("a", "numeric"), Feature("b", "numeric", center=3e299, scale=1e299)))
    tree = ObliqueTree.of([[1.0, 1e-299]], bias=[0.0], values=[0.0, 1.0], schema=schema)
    rows = [[0.0, 1e299], [1.0, -1e299]]
    for precision in ("int8", "int16"):
        with pytest.raises(ExportError, match=r"'b' has a mean of 3e\+299 .* within 1e\+150"):
            to_c(tree, precision=precision, data=rows)
    assert to_c(tree, data=rows).check.n_on_edge == 0


def test_leaves_beyond_float32_have_no_integers():
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 1e39])
    with pytest.raises(ExportError, match=r"values of 1e\+39 have no integer form"):
        to_c(tree, precision="int16")
    assert to_c(tree).check.largest_difference == 0
