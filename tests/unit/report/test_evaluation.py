from __future__ import annotations

import json
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris

from hardwood import DGTClassifier, ObliqueTree
from hardwood.errors import TableError
from hardwood.report import analyze, evaluate
from trees import make_rows, make_tree


def answers(tree, rows, rng, noise=0.2):
    """Return the tree's own predictions, some of them replaced."""
    right = tree.predict(rows)
    if tree.task == "regression":
        return right + rng.normal(size=right.shape)
    return np.where(rng.random(right.shape) < noise, rng.permutation(right), right)


@pytest.fixture
def classified(rng):
    tree = make_tree(3, n_splits=6, mixed=True)
    rows = make_rows(rng, tree.schema, 300)
    return tree, rows, answers(tree, rows, rng)


@pytest.mark.parametrize("weighted", [False, True])
def test_classes_are_scored_as_scikit_learn_does(classified, rng, weighted):
    tree, rows, y = classified
    w = rng.integers(1, 4, 300) if weighted else None
    found = evaluate(tree, rows, y, w)
    predicted = tree.predict(rows)
    labels = list(tree.classes)
    expected = sk.confusion_matrix(y, predicted, labels=labels, sample_weight=w)
    assert np.array_equal(found.confusion, expected)
    assert found.confusion.dtype.kind == ("f" if weighted else "i")
    precision, recall, _, rows_of = sk.precision_recall_fscore_support(
        y, predicted, labels=labels, sample_weight=w, zero_division=np.nan
    )
    np.testing.assert_allclose([c.precision for c in found.by_class], precision)
    np.testing.assert_allclose([c.recall for c in found.by_class], recall)
    np.testing.assert_allclose([c.rows for c in found.by_class], rows_of)
    assert found["accuracy"].value == pytest.approx(
        sk.accuracy_score(y, predicted, sample_weight=w)
    )
    assert (found.n_rows, found.n_unknown, found.task) == (300, 0, "classification")


def test_calibration_is_scikit_learns(rng):
    tree = make_tree(0, n_splits=12, k=2)
    rows = make_rows(rng, tree.schema, 400)
    y = answers(tree, rows, rng)
    (found,) = evaluate(tree, rows, y).calibration
    p = tree.predict_proba(rows)[:, 1]
    observed, predicted = calibration_curve(y == tree.classes[1], p, n_bins=10)
    np.testing.assert_allclose([b.observed for b in found.bins], observed)
    np.testing.assert_allclose([b.predicted for b in found.bins], predicted)
    assert sum(b.rows for b in found.bins) == 400
    assert found.of == "class 1"
    for b in found.bins:
        assert b.low <= b.predicted <= b.high
        assert b.observed_low <= b.observed <= b.observed_high
    n = np.array([b.rows for b in found.bins])
    assert found.error == pytest.approx(np.average(abs(observed - predicted), weights=n))


def test_probabilities_on_an_edge_fall_to_the_lower_bin():
    values = [[1 - p, p] for p in (0.0, 0.25, 0.5, 1.0)]
    tree = ObliqueTree.of(
        [[1.0]] * 3, thresholds=[1.5, 0.5, 2.5], values=values, classes=[False, True]
    )
    X, y = [[0.0], [1.0], [1.0], [2.0], [3.0]], [False, True, False, False, True]
    (found,) = evaluate(tree, X, y, n_bins=4).calibration
    assert [(b.low, b.high) for b in found.bins] == [(0, 0.25), (0.25, 0.5), (0.75, 1)]
    observed, _ = calibration_curve(y, tree.predict_proba(X)[:, 1], n_bins=4)
    assert [b.observed for b in found.bins] == pytest.approx(observed)


def test_calibration_of_more_classes_starts_with_the_predicted_one(classified):
    tree, rows, y = classified
    found = evaluate(tree, rows, y, n_bins=4).calibration
    assert [c.of for c in found] == ["the predicted class", "class 0", "class 1", "class 2"]
    p = tree.predict_proba(rows)
    observed, predicted = calibration_curve(y == tree.predict(rows), p.max(axis=1), n_bins=4)
    np.testing.assert_allclose([b.observed for b in found[0].bins], observed)
    np.testing.assert_allclose([b.predicted for b in found[0].bins], predicted)


def test_numbers_and_labels(rng):
    tree = make_tree(1, task="regression", k=2)
    rows = make_rows(rng, tree.schema, 80)
    y = answers(tree, rows, rng)
    found = evaluate(tree, rows, y)
    assert found["R2 of y1"].value == pytest.approx(sk.r2_score(y[:, 1], tree.predict(rows)[:, 1]))
    assert (found.confusion, found.by_class, found.calibration) == (None, (), ())
    labels = make_tree(1, task="multilabel", k=3)
    y = rng.integers(0, 2, (80, 3))
    found = evaluate(labels, rows, y, names=["a", "b", "c"])
    assert found["accuracy of b"].value == pytest.approx(
        np.mean(labels.predict(rows)[:, 1] == y[:, 1])
    )
    assert [c.of for c in found.calibration] == ["all labels, pooled", "a", "b", "c"]
    assert found.target == ("a", "b", "c")


def test_rows_of_weight_zero_are_left_out(classified):
    tree, rows, y = classified
    w = np.ones(300)
    w[100:] = 0
    alone = evaluate(tree, rows[:100], y[:100], w[:100])
    assert evaluate(tree, rows, y, w).to_dict() == alone.to_dict()


@pytest.mark.parametrize("library", [pd, pl])
def test_an_estimator_is_scored_as_its_tree_is(library):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = DGTClassifier(max_depth=2, max_epochs=3, random_state=0).fit(X, y)
    table = library.DataFrame(X.to_dict("list"))
    target = library.Series(y.tolist())
    assert evaluate(model, table, target).to_dict() == evaluate(model.tree_, X, y).to_dict()
    assert evaluate(model, X, y).title == "Evaluation: classification of target, 150 rows"


def test_random_state_seeds_the_resamples(classified):
    tree, rows, y = classified
    first, again, other = (evaluate(tree, rows, y, random_state=seed).scores for seed in (0, 0, 1))
    assert first == again != other
    assert [s.value for s in first] == [s.value for s in other]


@pytest.fixture
def sign():
    """Class b where x >= 0."""
    return ObliqueTree.of(
        [[1.0]], thresholds=[0.0], values=[[0.8, 0.2], [0.1, 0.9]], classes=["a", "b"]
    )


@pytest.mark.parametrize(
    ("X", "y", "options", "words"),
    [
        ([[1.0], [2.0]], ["a", "c"], {}, "'c' at row 1, which is not a class of the model: 'a'"),
        ([[1.0], [2.0]], ["a", None], {}, "None (first at row 1)"),
        ([[1.0], [2.0]], [np.nan, "b"], {}, "NaN or None (first at row 0)"),
        ([[1.0], [2.0]], pd.Series(["a", pd.NA]), {}, "(first at row 1)"),
        ([[1.0], [2.0]], ["a"], {}, "X has 2 rows, y has 1"),
        ([[1.0]], [["a", "b"]], {}, "should be a 1d array"),
        (np.empty((0, 1)), [], {}, "0 sample(s)"),
        ([[1.0]], ["a"], {"sample_weight": [0.0]}, "at least one non-zero"),
        ([[1.0]], ["a"], {"sample_weight": [-1.0]}, "Negative values"),
        ([[np.inf]], ["a"], {}, "infinity"),
        ([["x"]], ["a"], {}, "text"),
        ([[1.0], [2.0]], ["c", "d"], {"unknown_classes": "wrong"}, "None of the target's values"),
    ],
)
def test_invalid_rows_are_refused_with_the_reason(sign, X, y, options, words):
    with pytest.raises(TableError) as error:
        evaluate(sign, X, y, **options)
    assert words in str(error.value)


@pytest.mark.parametrize("y", [[1.0, np.nan], [1.0, None], [1.0, np.inf]])
def test_missing_numbers_are_refused_with_their_row(y):
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 1.0])
    with pytest.raises(TableError, match="row 1"):
        evaluate(tree, [[1.0], [2.0]], y)


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e300])
def test_weights_of_any_size_count_by_their_parts(classified, size):
    tree, rows, y = classified
    weight = np.arange(1.0, 301.0)
    plain, scaled = evaluate(tree, rows, y, weight), evaluate(tree, rows, y, weight * size)
    for one, other in zip(plain.scores, scaled.scores, strict=True):
        assert other.value == pytest.approx(one.value), one.name
        assert other.low == pytest.approx(one.low), one.name
    assert scaled.calibration[0].error == pytest.approx(plain.calibration[0].error)
    assert "divided by the largest" in str(scaled)
    assert "divided by the largest" not in str(plain)


@pytest.mark.parametrize("large", [1.0, 1e300])
def test_rows_of_negligible_weight_count_nothing(sign, large):
    small = large * 1e-200 if large == 1 else 1e-300
    found = evaluate(sign, [[1.0], [-1.0], [2.0]], ["b", "b", "a"], [large, small, small])
    assert found.n_rows == 1
    assert found["accuracy"].value == 1
    assert len(found.calibration[0].bins) == 1


def numbered(rng):
    """Return a tree of one number, rows, and targets close to its predictions."""
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[-1.0, 2.0])
    rows = rng.normal(size=(60, 1))
    return tree, rows, tree.predict(rows) + rng.normal(size=60)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_numbers_of_any_size_are_scored(rng, size):
    tree, rows, y = numbered(rng)
    far = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[-size, 2 * size])
    plain, scaled = evaluate(tree, rows, y), evaluate(far, rows, y * size)
    for one, other in zip(plain.scores, scaled.scores, strict=True):
        unit = 1 if one.name == "R2" else size
        for part in ("value", "low", "high"):
            assert getattr(other, part) / unit == pytest.approx(getattr(one, part)), one.name
    assert not scaled.notes


def test_targets_far_from_predictions_are_scored_or_noted(rng):
    tree, rows, y = numbered(rng)
    above = evaluate(tree, rows, y * 1e300)
    assert above["R2"].value == pytest.approx(1 - np.mean(y**2) / np.var(y))
    assert above["RMSE"].value == pytest.approx(1e300 * np.sqrt(np.mean(y**2)))
    below = evaluate(tree, rows, y * 1e-300)
    assert below["RMSE"].value == pytest.approx(np.sqrt(np.mean(tree.predict(rows) ** 2)))
    assert below["R2"].value == -np.inf
    assert "too large for a float64 number: R2" in str(below)
    assert "same value in all rows" not in str(below)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_jobs": "a"}, ValueError, "n_jobs must be .* got 'a'"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be .* got 0"),
        ({"random_state": "a"}, TypeError, "random_state must be .* got 'a'"),
        ({"random_state": -1}, ValueError, "random_state must be .* got -1"),
        ({"n_bins": "a"}, ValueError, "n_bins must be an integer from 1 to 100, got 'a'"),
        ({"n_bins": True}, ValueError, "n_bins must be an integer"),
        ({"n_bins": 0}, ValueError, "n_bins must be an integer from 1 to 100, got 0"),
    ],
)
def test_wrong_options_are_explained(sign, options, error, words):
    with pytest.raises(error, match=words):
        evaluate(sign, [[1.0]], ["a"], **options)


def test_unknown_classes_may_count_as_wrong(sign):
    found = evaluate(sign, [[1.0], [2.0]], ["b", "c"], unknown_classes="wrong")
    assert found["accuracy"].value == 0.5
    assert found.n_unknown == 1
    assert "1 row has a class that the model does not know" in str(found)
    assert found.by_class[1].precision == 0.5  # the unknown row was predicted as b
    with pytest.raises(ValueError, match="unknown_classes must be"):
        evaluate(sign, [[1.0]], ["a"], unknown_classes="skip")


def test_auc_is_undefined_for_one_class_and_noted(sign):
    found = evaluate(sign, [[1.0], [2.0]], ["b", "b"])
    assert np.isnan(found["AUC"].value)
    assert found.to_dict()["metrics"]["AUC"]["value"] is None
    assert "no rows of 1 of the 2 classes" in str(found)


@pytest.mark.parametrize(
    ("thing", "error", "words"),
    [
        (DGTClassifier(), ValueError, "Call fit"),
        ("model.hardwood", TypeError, "hardwood.load"),
        (ObliqueTree, TypeError, "the class ObliqueTree"),
        (None, TypeError, "got a NoneType"),
    ],
)
def test_other_objects_are_refused(thing, error, words):
    with pytest.raises(error, match=words):
        evaluate(thing, [[1.0]], ["a"])


def test_many_classes_are_shown_by_their_errors(rng):
    tree = make_tree(0, n_splits=20, k=15)
    rows = make_rows(rng, tree.schema, 200)
    y = rng.choice(tree.classes, 200)
    found = evaluate(tree, rows, y)
    assert "Most frequent errors" in str(found)
    assert "Confusion matrix" not in str(found)
    assert np.array(found.to_dict()["confusion"]).shape == (15, 15)
    worst = (found.confusion * (1 - np.eye(15))).max()
    line = str(found).split("Most frequent errors")[1].splitlines()[3]
    assert line.split()[-1] == str(int(worst))


def test_plots_are_labeled(classified, rng):
    tree, rows, y = classified
    figure = evaluate(tree, rows, y).plot()
    calibration, confusion = figure.axes
    assert calibration.get_xlabel() == "predicted probability"
    assert calibration.get_ylabel() == "observed frequency, 95 % interval"
    assert (confusion.get_xlabel(), confusion.get_ylabel()) == ("predicted class", "true class")
    assert [t.get_text() for t in confusion.get_xticklabels()] == list(tree.classes)
    plt.close(figure)
    numbers = make_tree(1, task="regression", k=2)
    rows = make_rows(rng, numbers.schema, 50)
    figure = evaluate(numbers, rows, answers(numbers, rows, rng)).plot()
    assert len(figure.axes) == 6
    assert figure.axes[3].get_ylabel() == "y1"
    assert figure.axes[4].get_ylabel() == "y1 - prediction"
    assert all(ax.get_title() for ax in figure.axes)
    plt.close(figure)


def test_a_dollar_in_a_name_is_not_a_formula(sign):
    tree = sign.replace(classes=["$x_{", "<b>"], target_names="a$b$^{")
    figure = evaluate(tree, [[1.0], [-2.0]], ["$x_{", "<b>"]).plot()
    figure.canvas.draw()
    plt.close(figure)


def test_residuals_are_plotted():
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[-1.0, 1.0])
    figure = evaluate(tree, [[-1.0], [1.0], [2.0]], [-1.5, 1.0, 2.0]).plot()
    points = figure.axes[1].lines[0].get_xydata().tolist()
    assert points == [[-1.0, -0.5], [1.0, 0.0], [1.0, 1.0]]
    plt.close(figure)


def test_numbers_near_the_largest_float_are_drawn_in_units():
    """Matplotlib places no numbers of 1e300 on both axes."""
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[-1e300, 1e300])
    rows = np.array([[-1.0], [1.0], [2.0], [-2.0]] * 5) * 1e299
    y = [-1e300, 1e300, -1e300, 0.0] * 5
    figure = evaluate(tree, rows, y).plot()
    figure.canvas.draw()
    assert figure.axes[0].get_ylabel() == "true value / 1e300"
    assert figure.axes[1].get_ylabel() == "(true value - prediction) / 1e300"
    assert set(figure.axes[1].lines[0].get_ydata()) == {0.0, -2.0, 1.0}
    plt.close(figure)
    figure = analyze(tree, rows, y).plot()
    figure.canvas.draw()
    assert figure.axes[-1].get_ylabel() == "mean prediction / 1e300"
    plt.close(figure)


def test_reports_need_no_scikit_learn(tmp_path, sign):
    sign.save(tmp_path / "sign.hardwood")
    code = """
import sys
sys.modules["sklearn"] = sys.modules["torch"] = None
import hardwood
from hardwood.report import analyze, benchmark, describe, evaluate
tree = hardwood.load("sign.hardwood")
X, y = [[1.0], [-1.0], [2.0]], ["a", "a", "b"]
for report in (describe(tree), evaluate(tree, X, y), analyze(tree, X, y)):
    str(report), report.to_json(), report.to_html()
benchmark(tree, batch_sizes=[3], seconds=0.001)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_json_has_everything(classified):
    tree, rows, y = classified
    found = evaluate(tree, rows, y)
    content = json.loads(found.to_json())
    assert content == found.to_dict()
    assert content["metrics"]["accuracy"]["value"] == found["accuracy"].value
    assert content["confusion"] == found.confusion.tolist()
    assert content["classes"] == list(tree.classes)
    with pytest.raises(KeyError, match="the scores are"):
        found["sharpness"]
