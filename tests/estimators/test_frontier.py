"""`TreeClassifier` and `TreeRegressor` with leaves="auto": linear and constant leaves compete."""

from __future__ import annotations

import copy
import json
import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from hardwood import TreeClassifier, TreeRegressor, load
from hardwood.errors import FitInterruptedWarning
from hardwood.learn.learner import Run
from hardwood.learn.linear_tree import LinearTree
from hardwood.search.frontier import HeldOut, chosen, most_terms, pareto, standard_error
from hardwood.search.frontier_search import FrontierSearch
from hardwood.search.linear_search import LinearSearch

QUICK = {"time_limit": None, "max_trials": 8, "random_state": 0, "teacher": None}


@pytest.fixture(scope="module")
def lines():
    """Two lines, one on each side of a threshold, and a category that shifts them."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(900, 5)), columns=list("abcde"))
    X["group"] = rng.choice(["u", "v", "w"], size=900)
    y = np.where(X["a"] > 0.3, 2 + 3 * X["b"], -1 - 2 * X["c"]) + 2.0 * (X["group"] == "w")
    return X, np.asarray(y + 0.3 * rng.normal(size=900))


@pytest.fixture(scope="module")
def fitted(lines):
    return TreeRegressor(**QUICK).fit(*lines)


def test_few_linear_leaves_say_it_all(fitted, lines):
    X, y = lines
    assert fitted.tree_.leaf_weights is not None
    assert fitted.tree_.n_leaves <= 4
    assert fitted.score(X, y) > 0.95
    assert "linear leaves" in fitted.fit_report_.best


def test_the_frontier_has_a_tree_of_every_size(fitted, lines):
    X, y = lines
    points = fitted.frontier_.points
    sizes = [point.size for point in points]
    assert sizes == sorted(sizes)
    assert points[0].n_leaves == 1
    assert sum(point.is_chosen for point in points) == 1
    kept = next(point for point in points if point.is_chosen)
    assert np.array_equal(kept.tree.predict(X), fitted.predict(X))
    for point in points:
        assert point.tree.n_leaves <= point.n_leaves
        assert point.tree.predict(X).shape == y.shape
        assert point.tree.counts[-point.tree.n_leaves :].sum() == len(y)
    assert kept.tree is fitted.tree_


def test_the_frontier_is_a_report(fitted):
    frontier = fitted.frontier_
    text = str(frontier)
    assert text.count("chosen") == 1
    losses = [point.loss for point in frontier.steps]
    assert losses == sorted(losses, reverse=True)
    assert len(losses) < len(frontier.points)
    assert f"{len(frontier.points) - len(losses)} more trees" in text
    assert len(re.findall(r"^ .* best(  chosen)?$", text, re.MULTILINE)) == 2  # header and row
    assert list(frontier.to_frame()["n_leaves"]) == [p.n_leaves for p in frontier.points]
    assert len(frontier.to_frame("measured")) == len(frontier.measured)
    assert json.loads(frontier.to_json())["points"][0]["n_leaves"] == 1
    assert "<img" in frontier.to_html()
    same = pickle.loads(pickle.dumps(frontier))
    assert str(same) == text
    assert same.points == frontier.points
    assert len(pickle.dumps(frontier.measured)) < 20_000
    assert copy.deepcopy(frontier) == frontier


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_plot_has_a_curve_for_numbers_of_terms_and_one_for_cart(fitted, tmp_path, ending):
    path = tmp_path / f"frontier.{ending}"
    figure = fitted.plot_frontier(path)
    assert path.stat().st_size > 5_000
    (ax,) = figure.axes
    curves = {line.get_label(): line for line in ax.lines}
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"linear leaves, 1 term at most", "linear leaves, any number of terms"} <= set(words)
    frontier = fitted.frontier_
    assert f"chosen: {frontier.chosen.words}" in words
    cart = curves["CART (axis-aligned, constant leaves)"]
    measured = [each for each in frontier.measured if each.kind == "constant"]
    assert list(cart.get_xdata()) == [each.n_leaves for each in measured]
    assert list(cart.get_ydata()) == [each.loss for each in measured]
    assert min(curves["linear leaves, any number of terms"].get_ydata()) == frontier.best.loss


def test_a_plot_that_cannot_be_written_leaves_nothing(fitted, tmp_path):
    with pytest.raises(ValueError, match="xyz"):
        fitted.plot_frontier(tmp_path / "frontier.xyz")
    with pytest.raises(FileNotFoundError, match="cannot write a plot to .*nowhere"):
        fitted.plot_frontier(tmp_path / "nowhere" / "frontier.png")
    assert list(tmp_path.iterdir()) == []


def test_the_plot_goes_into_given_axes(fitted):
    from matplotlib import pyplot

    _, (left, right) = pyplot.subplots(1, 2)
    assert fitted.frontier_.plot(ax=right) is right.figure
    assert right.lines
    assert not left.lines
    pyplot.close(right.figure)


def test_cart_on_the_frontier_is_scikit_learns(monkeypatch):
    """Best-first growth on the same folds: nearly the same losses for every number of leaves."""
    searches = []
    fit = FrontierSearch.fit
    monkeypatch.setattr(FrontierSearch, "fit", lambda s, note: searches.append(s) or fit(s, note))
    X, y = load_digits(return_X_y=True)  # few values in a column, so that no threshold is left out
    X = X[:, ::3]
    model = TreeRegressor(**QUICK | {"max_trials": 4}).fit(X, y)
    cart = [m for m in model.frontier_.measured if m.kind == "constant" and m.n_leaves > 1]
    assert len(cart) > 5
    for each in cart:
        tree = DecisionTreeRegressor(
            max_leaf_nodes=each.n_leaves, min_samples_leaf=5, random_state=0
        )
        errors = [
            (tree.fit(X[fold.train], y[fold.train]).predict(X[fold.valid]) - y[fold.valid]) ** 2
            for fold in searches[0].linear.folds
        ]
        assert each.loss == pytest.approx(np.concatenate(errors).mean() / y.var(), rel=0.03)


def test_trees_of_the_frontier_have_the_record_of_the_fit(fitted):
    for point in fitted.frontier_.points:
        record = point.tree.record
        assert record["parameters"] == fitted.tree_.record["parameters"]
        assert record["distinct_rows"] == fitted.tree_.record["distinct_rows"]
        is_linear = point.kind == "linear"
        assert ("linear" in record["resolved"]["candidate"]) == is_linear


def test_a_fit_without_a_frontier_forgets_the_last_one(lines):
    model = TreeRegressor(**QUICK).fit(*lines)
    model.set_params(leaves="constant", max_depth=2, max_trials=2).fit(*lines)
    with pytest.raises(ValueError, match="leaves='constant' kept one tree"):
        model.at(max_leaves=2)
    with pytest.raises(ValueError, match="leaves='constant' kept one tree"):
        model.plot_frontier()


def test_at_gives_the_best_tree_within_limits(fitted):
    tree = fitted.at(max_leaves=2, max_terms=1)
    assert tree.n_leaves <= 2
    feature = tree.schema.column_feature
    for leaf in tree.leaf_weights:
        assert len(set(feature[np.flatnonzero(leaf.any(axis=0))])) <= 1
    for limits in ({"max_leaves": 0}, {"max_leaves": 2.5}, {"max_terms": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(limits))} must be an integer >="):
            fitted.at(**limits)


@pytest.mark.parametrize("max_leaves", [1, 2, 3, 6, None])
@pytest.mark.parametrize("max_terms", [0, 1, 2, 3, None])
def test_no_measured_tree_within_limits_is_better(fitted, max_leaves, max_terms):
    frontier = fitted.frontier_
    tree = frontier.at(max_leaves, max_terms)
    (point,) = [p for p in frontier.points if p.tree is tree]
    within = [
        each.loss
        for each in frontier.measured
        if each.n_leaves <= (max_leaves or np.inf)
        and each.n_terms <= (np.inf if max_terms is None else max_terms)
    ]
    assert point.loss <= min(within)


def test_limits_hold_for_the_tree_of_all_rows_not_for_that_of_a_fold(fitted):
    """A column may be constant in a fold, and then has no coefficient in the tree of that fold."""
    widest = max(fitted.frontier_.points, key=lambda point: most_terms(point.tree))
    few = replace(fitted.frontier_, points=(replace(widest, n_terms=1, n_leaves=1),))
    assert few.at(max_terms=most_terms(widest.tree)) is widest.tree
    with pytest.raises(ValueError, match="no tree of the frontier"):
        few.at(max_terms=1)


def test_without_a_tree_as_small_the_error_names_the_smallest(fitted):
    few = replace(fitted.frontier_, points=fitted.frontier_.points[-1:])
    words = f"has {few.points[0].words}"
    with pytest.raises(ValueError, match=rf"at most 1 leaf and 0 terms. The smallest {words}"):
        few.at(max_leaves=1, max_terms=0)


def test_a_tree_of_the_frontier_is_like_any_other(fitted, lines, tmp_path):
    tree = fitted.at(max_leaves=2)
    tree.save(tmp_path / "two.hardwood")
    assert np.array_equal(load(tmp_path / "two.hardwood").predict(lines[0]), tree.predict(lines[0]))
    assert tree.to_text()


@pytest.mark.parametrize("prefer", ["balanced", "accuracy", "readable"])
def test_preferences(lines, prefer):
    model = TreeRegressor(prefer=prefer, **QUICK).fit(*lines)
    kept = next(point for point in model.frontier_.points if point.is_chosen)
    best = min(model.frontier_.points, key=lambda point: point.loss)
    if prefer == "accuracy":
        assert kept.loss == best.loss
    if prefer == "balanced":
        assert kept.loss - best.loss <= kept.error
    if prefer == "readable":
        assert kept.n_leaves <= 12
        assert kept.n_terms <= 3
    assert f'prefer="{prefer}"' in str(model.fit_report_)


def test_limits_are_kept(lines):
    model = TreeRegressor(max_depth=1, max_terms=2, **QUICK).fit(*lines)
    feature = model.tree_.schema.column_feature
    assert model.tree_.depth <= 1
    for leaf in model.tree_.leaf_weights:
        assert len(set(feature[np.flatnonzero(leaf.any(axis=0))])) <= 2
    assert TreeRegressor(max_leaves=2, **QUICK).fit(*lines).tree_.n_leaves <= 2


@pytest.mark.parametrize("most", [1, 5, 6, 40])
def test_the_limit_of_terms_is_among_the_sizes(most):
    terms = LinearSearch([], Run(), max_terms=most)._terms(LinearTree())
    assert terms[-1] == most
    assert list(terms) == sorted(set(terms))


def test_on_a_linear_table_it_is_as_good_as_a_linear_model():
    table, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    losses = []
    for seed in range(5):
        X, test_X, y, test_y = train_test_split(table, classes, random_state=seed, stratify=classes)
        tree = TreeClassifier(prefer="accuracy", **QUICK).fit(X, y)
        linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y)
        losses.append([log_loss(test_y, m.predict_proba(test_X)) for m in (tree, linear)])
    of_tree, of_linear = np.mean(losses, axis=0)
    assert of_tree < of_linear + 0.05
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, test_X, y, test_y = train_test_split(X, y, random_state=0)
    tree = TreeRegressor(**QUICK).fit(X, y)
    ridge = RidgeCV(np.logspace(-3, 3, 13)).fit(X, y)
    errors = [mean_squared_error(test_y, model.predict(test_X)) for model in (tree, ridge)]
    assert errors[0] < 1.1 * errors[1]


def test_no_probability_is_zero():
    X, y = load_breast_cancer(return_X_y=True)
    p = TreeClassifier(**QUICK).fit(X, y).predict_proba(X)
    assert p.min() > 0


def test_the_same_tree_whatever_the_threads(lines):
    trees = [TreeRegressor(n_jobs=n, **QUICK).fit(*lines).tree_ for n in (1, 3)]
    assert np.array_equal(trees[0].weights, trees[1].weights)
    assert np.array_equal(trees[0].leaf_weights, trees[1].leaf_weights)


@pytest.mark.parametrize("n_before", [1, 6])
def test_an_interrupt_keeps_what_there_is(lines, n_before):
    def interrupt(trial):
        if trial.number == n_before:
            raise KeyboardInterrupt

    model = TreeRegressor(callbacks=interrupt, **QUICK)
    with pytest.warns(FitInterruptedWarning, match=f"after {n_before} candidate"):
        model.fit(*lines)
    assert np.isfinite(model.predict(lines[0])).all()
    assert len(model.fit_report_.trials) == n_before


def test_no_time_still_gives_a_tree(lines):
    model = TreeRegressor(time_limit=1e-9, random_state=0).fit(*lines)
    assert len(model.fit_report_.trials) == 1
    assert np.isfinite(model.predict(lines[0])).all()


def test_linear_leaves_are_left_out_where_they_take_too_long():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 300))
    y = rng.integers(0, 8, size=2000)
    model = TreeClassifier(time_limit=1.0, teacher=None, random_state=0).fit(X, y)
    names = [trial.candidate for trial in model.fit_report_.trials]
    assert names[0] == "axis-aligned, constant leaves"
    assert not any("linear" in name for name in names)


def test_scoring_decides_among_the_best_of_each_size():
    X, y = load_breast_cancer(return_X_y=True)
    model = TreeClassifier(scoring="roc_auc", **QUICK).fit(X, y)
    assert model.score(X, y) > 0.9
    assert "Chosen by roc_auc" in str(model.fit_report_)


def test_oblique_trees_with_constant_leaves_win_where_they_are_better():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(3000, 2))
    y = (np.floor(2 * (X[:, 0] + X[:, 1])) % 2).astype(int)
    model = TreeClassifier(time_limit=None, max_trials=40, teacher=None, random_state=0).fit(X, y)
    assert model.tree_.leaf_weights is None
    assert (np.count_nonzero(model.tree_.weights, axis=1) > 1).any()
    assert model.score(X, y) > 0.9


def test_settings_are_checked(lines):
    model = TreeRegressor(prefer="readable", max_leaves=3, **QUICK)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(ValueError, match="prefer must be"):
        TreeRegressor(prefer="small").fit(*lines)
    for options in ({"max_leaves": 3}, {"max_terms": 2}, {"prefer": "accuracy"}):
        with pytest.raises(ValueError, match=f"{next(iter(options))}=.* needs leaves"):
            TreeRegressor(leaves="constant", **options, **QUICK).fit(*lines)
    constant = TreeRegressor(leaves="constant", max_depth=2, **QUICK).fit(*lines)
    assert constant.tree_.depth <= 2


def held_out(n_leaves: int, size: float, losses: list[float]) -> HeldOut:
    return HeldOut("linear", n_leaves, 1, size, np.array(losses))


def test_the_smallest_within_one_standard_error():
    weight = np.ones(4)
    best = held_out(8, 30, [1.0, 1.0, 1.0, 1.0])
    near = held_out(2, 5, [1.3, 0.9, 1.2, 0.8])  # 0.05 worse, with a standard error of 0.1
    far = held_out(1, 2, [1.2, 1.3, 1.2, 1.3])
    trees = [best, near, far]
    assert standard_error(near.losses - best.losses, weight) == pytest.approx(0.1037, abs=1e-3)
    assert chosen(trees, weight) == 1
    assert chosen(trees, weight, "accuracy") == 0
    assert chosen(trees, weight, "readable") == 0
    assert pareto(trees, weight) == [2, 1, 0]


def test_a_tree_is_not_chosen_where_a_smaller_one_is_better():
    weight = np.ones(4)
    best = held_out(8, 30, [1.0, 1.0, 1.0, 1.0])
    uncertain = held_out(4, 20, [2.0, 0.0, 2.6, 0.2])  # 0.2 worse, with a standard error of 0.55
    better = held_out(2, 10, [1.1, 1.1, 1.1, 1.1])  # 0.1 worse, for certain
    assert chosen([best, uncertain], weight) == 1
    assert chosen([best, uncertain, better], weight) == 0


def test_weights_of_rows_count_in_the_choice():
    a = held_out(1, 1, [0.0, 4.0])
    b = held_out(2, 2, [1.0, 1.0])
    assert chosen([a, b], np.array([9.0, 1.0]), "accuracy") == 0
    assert chosen([a, b], np.array([1.0, 9.0]), "accuracy") == 1


def test_pareto_keeps_the_best_within_any_limits():
    weight = np.ones(2)
    linear = replace(held_out(1, 7, [0.1, 0.1]), n_terms=6)  # few numbers, but many terms
    stump = held_out(2, 4, [0.6, 0.6])
    axis_aligned = held_out(3, 10, [0.2, 0.2])
    worse = held_out(4, 10, [0.3, 0.3])  # as many numbers as the last, and more leaves
    trees = [worse, axis_aligned, stump, linear, linear]
    assert pareto(trees, weight) == [2, 3, 1]


def test_of_equal_trees_pareto_keeps_the_smallest():
    larger = held_out(3, 10, [0.2, 0.2])
    assert pareto([larger, held_out(2, 8, [0.2, 0.2])], np.ones(2)) == [1]
    assert pareto([larger, held_out(3, 8, [0.2, 0.2])], np.ones(2)) == [1]
