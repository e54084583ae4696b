from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from ensembles import make_ensemble
from forests import make_forest
from hardwood import DGTForestRegressor, ObliqueTree
from hardwood.model import dumps
from hardwood.model.files.arrays import kind_of
from hardwood.report import describe
from hardwood.report.feature_use import feature_use
from hardwood.table import Feature, Schema
from trees import make_tree


@pytest.mark.parametrize(
    "model",
    [
        make_tree(0, mixed=True),
        make_tree(0, task="regression", linear=True),
        make_forest(0),
        make_ensemble(0),
        make_ensemble(0).harden(),
    ],
    ids=["tree", "linear", "forest", "ensemble", "hardened"],
)
def test_facts_are_those_of_the_model(model, tmp_path):
    found = describe(model)
    content = found.to_dict()
    assert content["kind"] == type(model).__name__
    for name in ("depth", "n_splits", "n_leaves", "n_features", "task"):
        assert content[name] == getattr(model, name)
    model.save(tmp_path / "m.hardwood")
    written = (tmp_path / "m.hardwood").read_bytes()
    assert found.file.n_bytes == len(written)
    assert found.file.sha256 == hashlib.sha256(written).hexdigest()
    assert (found.file.format, found.file.kind) == (1, kind_of(model))
    assert content["record"] == model.record
    assert sum(use["importance"] for use in content["features"]) == pytest.approx(1)
    assert str(found).splitlines()[0] == found.title
    assert found.title.startswith(("Oblique tree", "Oblique forest", "Tree ensemble"))


def test_every_term_of_every_split_is_listed():
    tree = make_tree(0, mixed=True)
    found = describe(tree, max_terms=1)
    content = found.to_dict()
    assert len(content["terms"]) == len(content["splits"]) == tree.n_splits
    for i, terms in enumerate(content["terms"]):
        weights = np.sort([term["weight"] for term in terms])
        assert weights == pytest.approx(np.sort(tree.weights[i][tree.weights[i] != 0]))
        importance = [term["importance"] for term in terms]
        assert importance == sorted(importance, reverse=True)
    frame = found.to_frame("terms", backend="pandas")
    assert len(frame) == np.count_nonzero(tree.weights)
    assert "smaller terms left out" in str(found)
    assert "smaller terms left out" not in str(describe(tree, max_terms=None))


def test_weights_of_sums_are_shown_per_unit_and_per_standard_deviation():
    day = 86400.0
    features = (
        Feature("mass", "numeric", center=4.0, scale=2.0, spread=(2.0,)),
        Feature("sex", "categorical", levels=("f", "m"), spread=(0.5, 0.5)),
        Feature("since", "numeric", scale=day, spread=(10 * day,), origin="date"),
    )
    weights = [[-1.5, 0.0, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.25 / day]]
    tree = ObliqueTree.of(weights, bias=[0, 0, 0], values=np.arange(4.0), schema=Schema(features))
    table = next(block for block in describe(tree)._blocks() if "Weights" in block.title)
    assert table.rows == (
        ("0", "mass", "1.5", "3"),  # with the signs of 1.5*mass - (0.5 if sex is m) <= ...
        ("", "sex = m", "-0.5", "-0.25"),
        ("2", "(since - 1970-01-01 in days)", "0.25", "2.5"),
        ("", "mass", "1", "2"),
    )
    by_hand = ObliqueTree.of(np.ones((1, 2)), bias=[0], values=[0, 1])  # no deviations are known
    assert "per standard deviation" not in str(describe(by_hand))


def test_many_weights_of_sums_are_cut():
    tree = make_tree(1, n_splits=20, n_features=6, sparsity=0.0)
    features = tuple(replace(feature, spread=(1.0,)) for feature in tree.schema.features)
    assert "... and 80 more weights (JSON has all)" in str(
        describe(tree.replace(schema=Schema(features)))
    )


def test_nonzero_weights_are_counted():
    tree = make_tree(0, task="regression", linear=True)
    expected = np.count_nonzero(tree.weights) + np.count_nonzero(tree.leaf_weights)
    assert describe(tree).n_weights == expected
    soft = make_ensemble(0)
    assert describe(soft).n_weights == np.count_nonzero(soft.weights)


def test_a_forest_is_described_by_its_trees():
    forest = make_forest(0, sizes=tuple([3] * 12))
    found = describe(forest)
    assert "... and 2 more trees" in str(found)
    assert len(found.to_frame("trees", backend="polars")) == 12
    assert found.to_dict()["combine"] == "mean"
    soft = describe(make_ensemble(0, n_trees=2, depth=3)).to_dict()
    assert soft["trees"] == [{"depth": 3, "n_splits": 7, "n_leaves": 8}] * 2


def test_soft_trees_use_features_by_the_shares_that_pass():
    soft = make_ensemble(0, n_trees=1, task="regression")
    hard = soft.hard_tree(0).replace(counts=soft.counts[0])
    assert feature_use(soft) == feature_use(hard)


def test_unused_features_are_listed():
    tree = ObliqueTree.of([[1.0, 0.0]], thresholds=[0.0], values=[0.0, 1.0])
    assert "Not used: x1" in str(describe(tree))
    leaf = ObliqueTree.of(np.empty((0, 2)), thresholds=[], values=[1.5])
    assert "The tree is a single leaf and uses no feature." in str(describe(leaf))
    assert describe(leaf).tables == ("features",)
    assert len(dumps(leaf)) == describe(leaf).file.n_bytes


def test_an_estimator_is_described_by_its_model(rng):
    X = rng.normal(size=(60, 2))
    model = DGTForestRegressor(n_estimators=2, max_depth=2, max_epochs=2, random_state=0)
    model.fit(X, X[:, 0])
    text = str(describe(model))
    assert text == str(describe(model.forest_))
    assert "learner: DGTForestRegressor" in text
    tree = str(describe(model.forest_.trees[0]))
    assert "training loss" in tree
    assert "curves" not in tree  # they are plotted, not printed
