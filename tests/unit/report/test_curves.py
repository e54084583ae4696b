from __future__ import annotations

import json
import math

import matplotlib.pyplot as plt
import numpy as np
import pytest

from hardwood import DGTClassifier, DGTForestRegressor, ObliqueForest, ObliqueTree, load
from hardwood.learn.finish import MAX_POINTS, MAX_POINTS_OF_MEMBER, learning_curve
from hardwood.learn.training import Epoch
from hardwood.report import learning_curves
from hardwood.report.curves import NoLearningCurve, has_learning_curve


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


@pytest.fixture(scope="module")
def model(table):
    options = {"max_depth": 2, "max_epochs": 12, "n_restarts": 3, "random_state": 0}
    return DGTClassifier(validation_fraction=0.2, early_stopping=True, **options).fit(*table)


def epochs(n, **measured):
    return [Epoch(0, i, n, measured.get("train", 1.0 / (i + 1)), math.nan, 0.01) for i in range(n)]


# What a record keeps


def test_a_curve_is_thinned_and_keeps_its_ends_and_the_best():
    curves = learning_curve(epochs(5000), best=1234)
    assert len(curves["epoch"]) <= MAX_POINTS + 1
    assert (curves["epoch"][0], curves["epoch"][-1]) == (1, 5000)
    assert 1235 in curves["epoch"]
    assert np.diff(curves["epoch"]).max() <= 27
    assert curves["train_loss"] == pytest.approx(1 / np.array(curves["epoch"]), rel=1e-3)
    assert "validation_loss" not in curves  # nothing was measured


def test_a_short_curve_is_kept_whole():
    curves = learning_curve(epochs(3))
    assert curves["epoch"] == [1, 2, 3]
    assert curves["train_loss"] == [1.0, 0.5, 0.3333]
    assert learning_curve([]) == {}


def test_values_that_are_not_finite_are_none():
    points = [Epoch(0, 0, 2, math.inf, 0.5, 0.1), Epoch(0, 1, 2, 0.25, math.nan, 0.1)]
    curves = learning_curve(points)
    assert curves["train_loss"] == [None, 0.25]
    assert curves["validation_loss"] == [0.5, None]
    json.dumps(curves, allow_nan=False)


def test_the_record_has_the_best_run(model):
    record = model.tree_.record
    run = [e for e in model.history_ if e.epoch + 1 == record["best_pass"]]
    kept = min(run, key=lambda e: e.validation_loss).restart
    history = [e for e in model.history_ if e.restart == kept]
    curves = record["curves"]
    assert curves["epoch"] == [e.epoch + 1 for e in history]
    for name in ("train_loss", "validation_loss", "learning_rate"):
        assert curves[name] == pytest.approx([getattr(e, name) for e in history], rel=1e-3)
    assert min(curves["validation_loss"]) == pytest.approx(record["validation_loss"], rel=1e-3)


def test_each_tree_of_a_forest_has_its_own(table):
    forest = DGTForestRegressor(n_estimators=2, max_depth=2, max_epochs=80, random_state=0)
    forest.fit(*table)
    for number, tree in enumerate(forest.forest_.trees):
        curves = tree.record["curves"]
        history = [e for e in forest.history_ if e.restart == number]
        assert len(curves["epoch"]) == MAX_POINTS_OF_MEMBER
        assert curves["epoch"][-1] == len(history) == 80
        assert curves["train_loss"][-1] == pytest.approx(history[-1].train_loss, rel=1e-3)
    assert [curve.tree for curve in learning_curves(forest).curves] == [1, 2]


# Learning curves from the record


def test_curves_are_read_from_the_model_file(model, tmp_path):
    model.save(tmp_path / "m.hardwood")
    found = learning_curves(load(tmp_path / "m.hardwood"))
    assert found == learning_curves(model)
    (curve,) = found.curves
    record = model.tree_.record
    assert list(curve.at) == record["curves"]["epoch"]
    assert curve.best == record["best_pass"]
    frame = found.to_frame(backend="pandas")
    assert frame["validation_loss"].tolist() == record["curves"]["validation_loss"]
    assert json.loads(found.to_json()) == found.to_dict()


def test_the_text_shows_first_best_and_last(model):
    text = str(learning_curves(model))
    best = model.tree_.record["best_pass"]
    assert f"{best} (best)" in text
    assert "training loss" in text
    assert "learning rate" in text


def test_everything_that_a_learner_measures_is_plotted():
    curves = {
        "epoch": [1, 2, 3],
        "train_loss": [1.0, None, 0.5],
        "reachable_leaves": [8.0, 4.0, 2.0],
        "active_nodes": [7, 5, 3],
    }
    tree = ObliqueTree.of(
        [[1.0]], thresholds=[0.0], values=[0.0, 1.0], record={"curves": curves, "best_pass": 3}
    )
    found = learning_curves(tree)
    assert found.names == ("train_loss", "active_nodes", "reachable_leaves")
    figure = found.plot()
    assert [ax.get_ylabel() for ax in figure.axes] == ["loss", "active nodes", "reachable leaves"]
    assert figure.axes[-1].get_xlabel() == "epoch"
    drawn = figure.axes[2].lines[0]
    assert drawn.get_xydata().tolist() == [[1, 8], [2, 4], [3, 2]]
    assert np.isnan(figure.axes[0].lines[0].get_ydata()[1])
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend == ["training loss", "best epoch: 3"]
    plt.close(figure)


def test_a_stream_counts_steps():
    record = {"curves": {"step": [10, 20], "regret": [1.0, 3.0]}, "best_pass": 10}
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 1.0], record=record)
    (curve,) = learning_curves(tree).curves
    assert (curve.counter, curve.best, curve.series) == ("step", None, {"regret": (1.0, 3.0)})
    figure = learning_curves(tree).plot()
    assert figure.axes[0].get_ylabel() == "regret"
    plt.close(figure)


@pytest.mark.parametrize(
    ("losses", "scale"), [([1.0, 0.5], "linear"), ([1.0, 0.001], "log"), ([1.0, -1.0], "linear")]
)
def test_losses_of_different_magnitudes_have_a_log_axis(losses, scale):
    record = {"curves": {"epoch": [1, 2], "train_loss": losses}}
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 1.0], record=record)
    figure = learning_curves(tree).plot()
    assert figure.axes[0].get_yscale() == scale
    plt.close(figure)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"curves": 3},
        {"curves": {}},
        {"curves": {"epoch": []}},
        {"curves": {"epoch": [1, 2]}},
        {"curves": {"epoch": [1, 2], "train_loss": [1.0]}},
        {"curves": {"epoch": ["a"], "train_loss": [1.0]}},
        {"curves": {"epoch": [1], "train_loss": ["x"]}},
        {"curves": {"epoch": [True], "train_loss": [1.0]}},
    ],
)
def test_records_without_a_usable_curve_are_refused(record):
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 1.0], record=record)
    assert not has_learning_curve(tree)
    with pytest.raises(NoLearningCurve, match="no learning curve"):
        learning_curves(tree)
    with pytest.raises(NoLearningCurve):
        learning_curves(ObliqueForest([tree, tree]))


def test_a_forest_of_some_curves_shows_those(model):
    plain = model.tree_.replace(record={})
    forest = ObliqueForest([plain, model.tree_])
    assert has_learning_curve(forest)
    assert [curve.tree for curve in learning_curves(forest).curves] == [2]
