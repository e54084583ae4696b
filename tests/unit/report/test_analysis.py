from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import log_loss

from ensembles import make_ensemble
from forests import make_forest
from hardwood import DGTClassifier, DGTRegressor, ObliqueTree
from hardwood.errors import TableError
from hardwood.report import analyze
from trees import make_rows, make_tree


@pytest.fixture
def oblique():
    """Class 1 where x0 + x1 >= 0; x2 has no weight."""
    return ObliqueTree.of(
        [[1.0, 1.0, 0.0]], thresholds=[0.0], values=[[0.9, 0.1], [0.2, 0.8]], classes=[0, 1]
    )


def draw(tree, rng, n):
    X = rng.normal(size=(n, 3))
    y = tree.predict(X)
    return X, np.where(rng.random(n) < 0.1, 1 - y, y)


# Importance


def test_importance_equals_shuffling_by_hand(oblique):
    X, y = draw(oblique, np.random.default_rng(0), 60)
    found = {i.name: i for i in analyze(oblique, X, y, n_repeats=3, random_state=7).importance}
    rng = np.random.default_rng(7)
    for j in (0, 1):  # x2 has no weight and is not shuffled
        falls = []
        for _ in range(3):
            shuffled = X.copy()
            shuffled[:, j] = X[rng.permutation(60), j]
            falls.append(np.mean(oblique.predict(X) == y) - np.mean(oblique.predict(shuffled) == y))
        assert found[f"x{j}"].shuffles == pytest.approx(falls)
        assert found[f"x{j}"].importance == pytest.approx(np.mean(falls))
    assert found["x2"].shuffles == (0.0, 0.0, 0.0)
    assert (found["x2"].low, found["x2"].high) == (0.0, 0.0)


def test_importance_agrees_with_scikit_learn_up_to_chance(rng):
    X = rng.normal(size=(150, 3))
    y = 2 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=150)
    model = DGTRegressor(max_depth=3, max_epochs=20, random_state=0).fit(X, y)
    theirs = permutation_importance(model, X, y, n_repeats=100, random_state=0)
    ours = analyze(model, X, y, n_repeats=100, features=[])
    assert ours.metric == "R2"
    assert ours.score == pytest.approx(model.score(X, y))
    for entry in ours.importance:
        j = int(entry.name[1:])
        noise = theirs.importances_std[j] / 10
        assert entry.importance == pytest.approx(theirs.importances_mean[j], abs=6 * noise + 1e-12)
        assert np.std(entry.shuffles) == pytest.approx(theirs.importances_std[j], rel=0.35)


def test_intervals_cover_the_true_importance(oblique):
    # Shuffled, x0 + x1 keeps a correlation of 1/2: it has the same sign with probability 2/3, so
    # that the accuracy falls from 0.9 to 0.9 * 2/3 + 0.1 * 1/3.
    true = 0.9 - (0.9 * 2 / 3 + 0.1 / 3)
    rng = np.random.default_rng(0)
    hits = np.zeros(2)
    n_tables = 250
    for seed in range(n_tables):
        X, y = draw(oblique, rng, 150)
        for entry in analyze(oblique, X, y, n_repeats=3, random_state=seed, features=[]).importance:
            if entry.name != "x2":
                hits[int(entry.name[1])] += entry.low <= true <= entry.high
    assert ((hits / n_tables >= 0.9) & (hits / n_tables <= 0.985)).all()


def test_intervals_are_as_wide_as_importance_varies():
    # R2 of two numbers, with weights: the widths must follow what repetition shows.
    tree = ObliqueTree.of(
        [[1.0, 0.5], [0.3, 1.0], [0.0, 1.0]],
        thresholds=[0.0, -0.5, 0.5],
        values=[[-2.0, 0.0], [0.0, 1.0], [1.0, 1.0], [3.0, -1.0]],
    )
    rng = np.random.default_rng(1)
    means, reaches = [], []
    for seed in range(200):
        X = rng.normal(size=(200, 2))
        y = tree.predict(X) + rng.normal(size=(200, 2))
        w = rng.integers(1, 4, 200)
        found = analyze(tree, X, y, w, n_repeats=2, random_state=seed, features=[]).importance
        by_name = sorted(found, key=lambda entry: entry.name)
        means.append([entry.importance for entry in by_name])
        reaches.append([entry.high - entry.importance for entry in by_name])
    assert np.mean(reaches, axis=0) / 1.96 == pytest.approx(np.std(means, axis=0), rel=0.2)


def test_intervals_of_r2_know_that_the_variance_depends_on_the_rows():
    # One row in ten is 10, others 0, all answered rightly: shuffled, the squared error is twice the
    # variance of y, whatever that is. Only the shuffles are left to chance.
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 10.0])
    rng = np.random.default_rng(0)
    means, reaches = [], []
    for seed in range(100):
        X = np.where(rng.random((400, 1)) < 0.1, 1.0, -1.0)
        (found,) = analyze(tree, X, tree.predict(X), n_repeats=4, random_state=seed).importance
        means.append(found.importance)
        reaches.append(found.high - found.importance)
    assert np.mean(means) == pytest.approx(2, abs=0.02)
    assert np.mean(reaches) / 1.96 == pytest.approx(np.std(means), rel=0.35)
    assert np.mean(reaches) < 0.2


@pytest.mark.parametrize("metric", ["log loss", "Brier score"])
def test_importance_of_a_loss_is_its_increase(oblique, metric):
    X, y = draw(oblique, np.random.default_rng(0), 200)
    found = analyze(oblique, X, y, metric=metric, n_repeats=4)
    assert found.importance[0].importance > 0
    p = oblique.predict_proba(X)
    expected = {"log loss": log_loss(y, p), "Brier score": np.mean((p[:, 1] - y) ** 2)}
    assert found.score == pytest.approx(expected[metric])
    assert f"increase of {metric}" in str(found)


def test_columns_of_a_group_are_shuffled_together(oblique):
    X, y = draw(oblique, np.random.default_rng(0), 80)
    found = analyze(oblique, X, y, groups={"both": ["x1", "x0"]}, n_repeats=2, random_state=3)
    assert [entry.name for entry in found.importance] == ["both", "x2"]
    assert found.importance[0].features == ("x1", "x0")
    rng = np.random.default_rng(3)
    for fall in found.importance[0].shuffles:
        order = rng.permutation(80)
        right = np.mean(oblique.predict(X[order]) == y)
        assert fall == pytest.approx(np.mean(oblique.predict(X) == y) - right)


def test_a_categorical_feature_is_shuffled_as_one_column():
    tree = make_tree(3, n_splits=6, mixed=True)
    frame = pd.DataFrame(make_rows(5, tree.schema, 100), columns=list(tree.feature_names))
    y = tree.predict(frame)
    found = {i.name: i for i in analyze(tree, frame, y, n_repeats=2, random_state=0).importance}
    used = [name for name in tree.feature_names if any(found[name].shuffles)]
    rng = np.random.default_rng(0)
    for name in tree.feature_names:
        if name not in used:
            continue
        for fall in found[name].shuffles:
            shuffled = frame.copy()
            shuffled[name] = frame[name].to_numpy(dtype=object)[rng.permutation(100)]
            if tree.schema.features[list(tree.feature_names).index(name)].kind == "numeric":
                shuffled[name] = shuffled[name].astype(float)
            assert fall == pytest.approx(1 - np.mean(tree.predict(shuffled) == y))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"groups": {"g": ["x9"]}}, "the model does not have"),
        ({"groups": {"g": ["x0"], "h": ["x0"]}}, "in two groups"),
        ({"groups": {"g": "x0"}}, "must list features"),
        ({"groups": {"x1": ["x0"]}}, "has the name of the feature"),
        ({"features": ["x9"]}, "the model does not have"),
        ({"metric": "R2"}, "metric must be one of"),
        ({"n_repeats": 2.5}, "n_repeats must be an integer from 2 to 1000, got 2.5"),
        ({"n_grid": "a"}, "n_grid must be an integer"),
        ({"n_jobs": "a"}, "n_jobs must be .* got 'a'"),
        ({"n_repeats": 1}, "n_repeats must be an integer from 2"),
        ({"n_grid": 1}, "n_grid must be an integer from 2"),
    ],
)
def test_wrong_options_are_explained(oblique, options, words):
    with pytest.raises(ValueError, match=words):
        analyze(oblique, [[0.0, 1.0, 2.0]] * 3, [0, 1, 1], **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"groups": ["x0"]}, "groups must name each group"),
        ({"features": 3}, "features must be a list of names, got 3"),
        ({"random_state": "a"}, "random_state must be .* got 'a'"),
    ],
)
def test_options_of_another_type_are_explained(oblique, options, words):
    with pytest.raises(TypeError, match=words):
        analyze(oblique, [[0.0, 1.0, 2.0]] * 3, [0, 1, 1], **options)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_r2_has_no_unit(rng, size):
    X = rng.normal(size=(50, 1))
    values = np.array([-1.0, 2.0])
    trees = [ObliqueTree.of([[1.0]], thresholds=[0.0], values=values * s) for s in (1.0, size)]
    y = trees[0].predict(X) + rng.normal(size=50)
    plain, scaled = analyze(trees[0], X, y), analyze(trees[1], X, y * size)
    assert scaled.score == pytest.approx(plain.score)
    for part in ("importance", "low", "high"):
        one, other = (getattr(found.importance[0], part) for found in (plain, scaled))
        assert other == pytest.approx(one)
    for metric in ("MAE", "MSE"):
        with pytest.raises(TableError, match=f"to compute {metric} in float64"):
            analyze(trees[1], X, y * size, metric=metric)


def test_targets_far_from_predictions_are_refused():
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 1.0])
    X, y = [[1.0], [-1.0], [2.0]], np.array([1.0, 2.0, 3.0])
    with pytest.raises(TableError, match="so far from y .up to 3e-300. that R2 exceeds float64"):
        analyze(tree, X, y * 1e-300)
    assert analyze(tree, X, y * 1e300).score == pytest.approx(1 - 14 / 2)


def test_extreme_weights_are_noted(oblique, rng):
    X, y = draw(oblique, rng, 50)
    found = analyze(oblique, X, y, np.full(50, 1e-310))
    assert found.score == pytest.approx(analyze(oblique, X, y).score)
    assert "divided by the largest, 1e-310" in str(found)


def test_constant_numbers_need_another_metric():
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 1.0])
    with pytest.raises(TableError, match="metric='MAE'"):
        analyze(tree, [[1.0], [-1.0]], [2.0, 2.0])
    assert analyze(tree, [[1.0], [-1.0]], [2.0, 2.0], metric="MAE").score == 1.5


# Partial dependence


def test_partial_dependence_equals_scikit_learns(rng):
    X = np.column_stack([rng.integers(0, 7, 120), rng.normal(size=120)]).astype(float)
    y = np.where(X[:, 0] + X[:, 1] > 3, "b", "a")
    model = DGTClassifier(max_depth=3, max_epochs=10, random_state=0).fit(X, y)
    w = rng.random(120)
    theirs = partial_dependence(model, X, [0], kind="average", method="brute", sample_weight=w)
    (ours,) = analyze(model, X, y, w, features=["x0"], n_repeats=2).dependence
    assert ours.values == tuple(theirs["grid_values"][0])
    assert np.array(ours.mean)[:, 1] == pytest.approx(theirs["average"][0])
    assert np.array(ours.mean).sum(axis=1) == pytest.approx(np.ones(len(ours.values)))


def test_partial_dependence_of_many_numbers_lies_between_the_tails(oblique):
    X, y = draw(oblique, np.random.default_rng(0), 500)
    (ours,) = analyze(oblique, X, y, features=["x1"], n_grid=9, n_repeats=2).dependence
    low, high = np.quantile(X[:, 1], [0.05, 0.95])
    assert ours.values == pytest.approx(np.linspace(low, high, 9))
    for value, mean in zip(ours.values, ours.mean, strict=True):
        changed = X.copy()
        changed[:, 1] = value
        assert mean == pytest.approx(oblique.predict_proba(changed).mean(axis=0))


def test_partial_dependence_covers_categories_and_missing_values():
    tree = make_tree(3, n_splits=6, mixed=True)
    rows = make_rows(5, tree.schema, 60)
    found = analyze(tree, rows, tree.predict(rows), features=list(tree.feature_names))
    for j, entry in enumerate(found.dependence):
        feature = tree.schema.features[j]
        assert (None in entry.values) == feature.has_missing
        assert ("missing" in entry.labels) == feature.has_missing
        if feature.kind == "categorical":
            assert entry.values[:3] == feature.levels
        for value, mean in zip(entry.values, entry.mean, strict=True):
            changed = [[*row[:j], value, *row[j + 1 :]] for row in rows]
            assert mean == pytest.approx(tree.predict_proba(changed).mean(axis=0))


def test_the_most_important_features_are_shown(oblique):
    X, y = draw(oblique, np.random.default_rng(0), 100)
    found = analyze(oblique, X, y)
    assert {entry.feature for entry in found.dependence} == {"x0", "x1"}
    assert [entry.name for entry in found.importance][-1] == "x2"


def test_dates_are_formatted_as_dates(rng):
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, 200), unit="D")
    X = pd.DataFrame({"joined": days, "x": rng.normal(size=200)})
    y = (X.joined > "2020-06-01").to_numpy()
    model = DGTClassifier(max_depth=1, max_epochs=10, random_state=0).fit(X, y)
    found = analyze(model, X, y, features=["joined"], n_grid=5, n_repeats=2)
    assert all(label.startswith("2020-") for label in found.dependence[0].labels)
    figure = found.plot()
    assert any(t.get_text().startswith("2020-") for t in figure.axes[-1].get_xticklabels())
    plt.close(figure)


# Loss by leaf


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_divided_among_the_nodes(rng, weighted):
    tree = make_tree(2, n_splits=7)
    rows = make_rows(rng, tree.schema, 200)
    y = np.where(rng.random(200) < 0.3, rng.permutation(tree.predict(rows)), tree.predict(rows))
    w = rng.integers(1, 4, 200).astype(float) if weighted else np.ones(200)
    found = analyze(tree, rows, y, w if weighted else None, features=[])
    wrong = (tree.predict(rows) != y) * w
    path = tree.decision_path(rows).toarray().astype(bool)  # splits before leaves
    m = tree.n_splits
    for nodes, first, reached in ((found.splits, 0, path[:, :m]), (found.leaves, m, path[:, m:])):
        for node in nodes:
            here = path[:, first + node.node]
            assert node.rows == pytest.approx(w[here].sum())
            assert node.share_of_rows == pytest.approx(w[here].sum() / w.sum())
            assert node.loss == pytest.approx(wrong[here].sum() / w[here].sum())
            assert node.share_of_loss == pytest.approx(wrong[here].sum() / wrong.sum())
            assert len(node.path) == node.depth == tree.node_depths[first + node.node]
        assert sorted(n.node for n in nodes) == np.flatnonzero(reached.any(axis=0)).tolist()
        assert sorted((n.excess for n in nodes), reverse=True) == [n.excess for n in nodes]
    assert sum(leaf.rows for leaf in found.leaves) == pytest.approx(w.sum())
    assert sum(leaf.share_of_loss for leaf in found.leaves) == pytest.approx(1)


def test_paths_start_at_the_root():
    tree = ObliqueTree.of([[1.0], [1.0], [1.0]], thresholds=[0, -2, 2], values=[0.0, 1.0, 2.0, 3.0])
    found = analyze(tree, [[-3.0], [-1.0], [1.0], [3.0]], [0.0, 1.0, 2.5, 3.0], metric="MAE")
    worst = found.leaves[0]
    assert worst.node == 2
    assert worst.path == ("x0 >= 0", "not (x0 >= 2)")
    assert worst.share_of_loss == 1
    assert "leaf 2: x0 >= 0" in str(found)
    assert "and not (x0 >= 2)" in str(found)
    assert found.splits[0].condition == "x0 >= 2"
    assert found.to_frame("leaves", backend="polars")["where"][0] == worst.text


def test_a_forest_is_divided_by_each_of_its_trees(rng):
    forest = make_forest(1, sizes=(5, 0, 3))
    rows = make_rows(rng, forest.schema, 100)
    y = rng.choice(forest.classes, 100)
    found = analyze(forest, rows, y, features=[])
    wrong = forest.predict(rows) != y
    leaf_of = forest.apply(rows)
    for node in found.leaves:
        here = leaf_of[:, node.tree - 1] == node.node
        assert node.rows == here.sum()
        assert node.loss == pytest.approx(wrong[here].mean())
    assert {node.tree for node in found.leaves} == {1, 2, 3}
    assert "single trees" in str(found)


def test_a_soft_ensemble_has_no_leaves_to_compare(rng):
    soft = make_ensemble(0)
    rows = make_rows(rng, soft.schema, 50)
    y = rng.choice(soft.classes, 50)
    found = analyze(soft, rows, y)
    assert (found.leaves, found.splits) == ((), ())
    assert "harden()" in str(found)
    assert analyze(soft.harden(), rows, y).leaves


def test_a_perfect_model_has_no_errors_to_divide(oblique):
    X = np.random.default_rng(0).normal(size=(30, 3))
    found = analyze(oblique, X, oblique.predict(X))
    assert "all predictions are correct" in str(found)
    assert "Leaves, worst first" not in str(found)
    assert found.to_dict()["leaves"][0]["share_of_loss"] is None


# Other tables and forms


def test_a_sparse_table_is_analyzed_as_a_dense_one(oblique):
    X, y = draw(oblique, np.random.default_rng(0), 60)
    X[np.abs(X) < 0.5] = 0
    dense = analyze(oblique, X, y, features=["x0", "x2"], n_grid=5)
    assert analyze(oblique, csr_array(X), y, features=["x0", "x2"], n_grid=5) == dense


def test_the_table_is_not_changed(oblique):
    X, y = draw(oblique, np.random.default_rng(0), 30)
    before = X.copy()
    analyze(oblique, X, y)
    assert np.array_equal(X, before)


def test_a_single_leaf_relies_on_no_feature():
    leaf = ObliqueTree.of(np.empty((0, 2)), thresholds=[], values=[1.5])
    found = analyze(leaf, [[0.0, 1.0], [1.0, 1.0]], [1.0, 2.5])
    assert [entry.importance for entry in found.importance] == [0.0, 0.0]
    assert (len(found.leaves), found.splits, found.dependence) == (1, (), ())
    assert found.leaves[0].text == "all rows"
    str(found)


def test_json_and_frames_have_everything(oblique):
    X, y = draw(oblique, np.random.default_rng(0), 60)
    found = analyze(oblique, X, y)
    assert json.loads(found.to_json()) == found.to_dict()
    assert found.tables == ("importance", "dependence", "leaves", "splits")
    frame = found.to_frame("dependence", backend="pandas")
    assert len(frame) == sum(len(e.values) * 2 for e in found.dependence)
    assert found.to_frame(backend="pandas")["importance"].is_monotonic_decreasing


def test_the_plot_is_labeled(oblique):
    X, y = draw(oblique, np.random.default_rng(0), 60)
    figure = analyze(oblique, X, y).plot()
    importance, leaves, *dependence = figure.axes
    assert "decrease of accuracy when shuffled" in importance.get_xlabel()
    assert [t.get_text() for t in importance.get_yticklabels()][-1] == "x2"
    assert leaves.get_title() == "Loss by leaf"
    assert sorted(ax.get_title() for ax in dependence) == ["x0", "x1"]
    assert {ax.get_ylabel() for ax in dependence} == {"mean prediction"}
    plt.close(figure)
