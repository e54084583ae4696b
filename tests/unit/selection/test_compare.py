"""`hardwood.compare`: the folds are shared, the intervals right, and the words what they say."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.tree import DecisionTreeClassifier

from hardwood import DGTClassifier, compare
from hardwood.errors import FitInterruptedWarning, TableError
from hardwood.selection import models, other_libraries
from hardwood.selection.comparison import Comparison, ModelResult, interval
from hardwood.selection.other_libraries import CART_HEIGHTS
from hardwood.selection.size import size_of
from hardwood.table.target import plain_array, suggested_task

QUICK = {"max_depth": 2, "max_epochs": 60, "n_restarts": 2, "random_state": 0}


def slanted(rng, n=500):
    """A band across the diagonal: oblique, and not linear."""
    X = rng.normal(size=(n, 6))
    return X, np.where(np.abs(X[:, :4].sum(axis=1)) > 1.2, "out", "in")


@pytest.fixture(scope="module")
def found():
    X, y = slanted(np.random.default_rng(0))
    tree = DGTClassifier(**QUICK)
    models = {"constant": "constant", "linear": "linear", "CART": "CART", "tree": tree}
    return compare(X, y, models=models | {"forest": "random forest"}, random_state=0)


# --- what is measured --------------------------------------------------------------------------


def test_an_oblique_tree_pays_where_the_boundary_is_slanted(found):
    assert found.answer == "yes"
    assert found.words.startswith("Is an oblique tree worth it here? Yes.")
    assert "better than one axis-aligned tree (CART)" in found.words
    assert "One sum is not enough" in found.words
    assert found.gain("tree", "CART").low > 0
    assert found.lead is found["tree"]


def test_gains_are_paired_and_antisymmetric(found):
    one, other = found.gain("tree", "linear"), found.gain("linear", "tree")
    assert one.mean == pytest.approx(-other.mean)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    by_hand = found["tree"].scores - found["linear"].scores
    assert one.mean == pytest.approx(by_hand.mean())


def test_all_models_have_the_same_folds_and_all_facts(found):
    assert found.n_folds == found.of_folds == 5
    for entrant in found.entrants:
        assert entrant.scores.shape == (5,)
        assert entrant.fit_seconds > 0
        assert entrant.batch_us > 0
        assert entrant.one_row_us > 0
        assert entrant.n_bytes > 0
    assert found["constant"].nodes == 0
    assert found["linear"].weights == 6
    assert found["forest"].nodes > found["CART"].nodes > 0
    assert found["tree"].weights > found["tree"].nodes


def test_the_same_seed_gives_the_same_scores():
    X, y = slanted(np.random.default_rng(1), 120)
    options = {"models": ["CART", DGTClassifier(**QUICK)], "cv": 2, "time_limit": None}
    first, second = (compare(X, y, random_state=3, **options) for _ in range(2))
    for one, other in zip(first.entrants, second.entrants, strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)
    other = compare(X, y, random_state=4, **options)
    assert not np.array_equal(other.entrants[0].scores, first.entrants[0].scores)


def test_intervals_are_nadeau_and_bengios():
    values = np.array([0.9, 0.8, 0.85, 0.95, 0.7])
    got = interval(values, n_train=80, n_test=20)
    reach = stats.t.ppf(0.975, 4) * np.sqrt(values.var(ddof=1) * (1 / 5 + 20 / 80))
    assert (got.mean, got.high - got.mean) == pytest.approx((0.84, reach))
    assert np.isnan(interval(values[:1], 80, 20).low)


def test_intervals_hold_the_truth_more_often_than_naive_ones():
    rng = np.random.default_rng(0)
    hits = naive = 0
    for _ in range(200):
        X = rng.normal(size=(60, 1))
        y = (rng.random(60) < 0.5).astype(int)  # nothing to learn: every rule has accuracy 0.5
        scores = cross_val_score(DecisionTreeClassifier(max_depth=2), X, y, cv=5)
        got = interval(scores, 48, 12)
        hits += got.low <= 0.5 <= got.high
        reach = stats.t.ppf(0.975, 4) * scores.std(ddof=1) / np.sqrt(5)
        naive += abs(scores.mean() - 0.5) <= reach
    assert hits >= 170
    assert hits > naive


# --- tables and targets ------------------------------------------------------------------------


def mixed(rng, n=150):
    width, color = rng.normal(size=n), rng.choice(["red", "blue", "green"], size=n)
    width[::9] = np.nan
    y = np.nan_to_num(width) + 2.0 * (color == "red") + 0.1 * rng.normal(size=n)
    return {"width": width, "color": color.tolist(), "junk": rng.normal(size=n)}, y


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_with_categories_and_missing_entries(frame):
    columns, y = mixed(np.random.default_rng(0))
    names = ["constant", "linear", "CART", "random forest", "gradient boosting", "DGT"]
    found = compare(frame(columns), y, models=names, cv=2, random_state=0)
    assert not found.left_out
    assert (found.task, found.metric, found.larger_is_better) == ("regression", "RMSE", False)
    assert found.gain("linear", "constant").mean > 0.3
    assert found.ranked[-1].name == "constant"
    assert found["linear"].weights == 6  # width, its flag, three colors, junk


def test_many_classes_of_text_and_sparse_tables():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, size=200)
    X = sparse.csr_array(np.eye(4)[y] * rng.normal(3, 0.1, size=(200, 1)))
    labels = np.array(["a", "b", "c", "d"])[y]
    found = compare(X, labels, models=["linear", "CART", "DGT"], cv=2, random_state=0)
    assert [round(entrant.score.mean, 1) for entrant in found.entrants] == [1.0, 1.0, 1.0]


def test_weights_count_in_learning_and_in_the_scores():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, size=200)
    weight = np.where(y == 1, 1.0, 0.01)
    found = compare(X, y, models=["constant"], sample_weight=weight, cv=2, random_state=0)
    assert found["constant"].score.mean > 0.95
    assert compare(X, y, models=["constant"], cv=2, random_state=0)["constant"].score.mean < 0.6


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b"] * 10, "classification"),
        (np.array([True, False] * 10), "classification"),
        (np.arange(20) % 3, "classification"),
        ((np.arange(20) % 3).astype(float), "classification"),
        (np.arange(60), "regression"),
        (np.arange(60) / 7, "regression"),
        ([1, 2, 3], "regression"),
        (pd.Series(["x", "y"] * 5, dtype="category"), "classification"),
    ],
)
def test_the_target_tells_the_task(y, task):
    assert suggested_task(plain_array(y))[0] == task


def test_metrics_by_name_and_by_function():
    X, y = slanted(np.random.default_rng(0), 120)
    loss = compare(X, y, models=["linear"], cv=2, scoring="neg_log_loss", random_state=0)
    assert (loss.metric, loss.larger_is_better) == ("log loss", False)
    assert loss["linear"].score.mean > 0
    area = compare(X, y, models=["linear", "CART"], cv=2, scoring="roc_auc", random_state=0)
    assert area.metric == "AUC"

    def share_of_out(estimator, X, y):
        return float(np.mean(estimator.predict(X) == "out"))

    own = compare(X, y, models=["constant"], cv=2, scoring=share_of_out, random_state=0)
    assert (own.metric, own["constant"].score.mean) == ("share of out", 0.0)


def test_folds_are_a_number_a_list_or_a_splitter():
    X, y = slanted(np.random.default_rng(0), 90)
    half = np.arange(90) < 45
    by_list = compare(X, y, models=["CART"], cv=[(half, ~half), (~half, half)], random_state=0)
    by_splitter = compare(X, y, models=["CART"], cv=KFold(3), random_state=0)
    assert (by_list.n_folds, by_splitter.n_folds) == (2, 3)


# --- models ------------------------------------------------------------------------------------


def test_estimators_of_ones_own_take_part_under_their_names():
    X, y = slanted(np.random.default_rng(0), 100)
    found = compare(X, y, models=["CART", LogisticRegression()], cv=2, random_state=0)
    assert [entrant.name for entrant in found.entrants] == ["CART", "LogisticRegression"]
    assert found["LogisticRegression"].kind == "other"
    assert found.answer is None
    assert "No oblique tree was compared" in found.words


def test_a_model_that_fails_is_left_out_by_name_and_the_others_stay():
    class Broken(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            raise ValueError("no good")

    X, y = slanted(np.random.default_rng(0), 60)
    found = compare(X, y, models={"CART": "CART", "broken": Broken()}, cv=2, random_state=0)
    assert found.left_out == {"broken": "failed: no good"}
    assert "left out: broken, failed: no good" in str(found)
    with pytest.raises(ValueError, match="no good"):
        compare(X, y, models={"broken": Broken()}, cv=2)


def test_libraries_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setattr(other_libraries, "is_there", lambda package: False)
    taking_part, absent = models.chosen(None, has_classes=True)
    assert absent == {"XGBoost": "not installed", "LightGBM": "not installed"}
    assert [c.name for c in taking_part] == [
        *("constant", "linear", "CART", "oblique tree", "random forest", "gradient boosting")
    ]
    with pytest.raises(ValueError, match="LightGBM is not installed"):
        models.chosen(["LightGBM"], has_classes=True)


def test_the_trees_that_choose_for_themselves_take_part():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    names = ["constant", "oblique tree", "oblique tree, linear leaves"]
    options = {"models": names, "cv": 2, "time_limit": None, "random_state": 0}
    found = compare(X, X[:, 0] + np.abs(X[:, 1]), **options)
    assert not found.left_out
    assert found.lead is found["oblique tree"]
    assert found.gain("oblique tree", "constant").mean > 0.2
    again = compare(X, X[:, 0] + np.abs(X[:, 1]), **options)
    np.testing.assert_array_equal(found.lead.scores, again.lead.scores)


def test_the_time_of_such_trees_is_their_share_of_the_limit(monkeypatch):
    given = []
    tree = models.KNOWN["oblique tree"]

    def make(settings):
        given.append(settings.seconds)
        return DummyClassifier()

    stand_in = models.ModelSpec(tree.name, tree.kind, make, is_budgeted=True)
    monkeypatch.setitem(models.KNOWN, "oblique tree", stand_in)
    X, y = slanted(np.random.default_rng(0), 60)
    compare(X, y, models=["oblique tree", "constant"], cv=3, time_limit=30, random_state=0)
    assert given == [5.0, 5.0, 5.0]  # half of 30 seconds, over three folds


def test_numbers_are_also_given_linear_leaves():
    names = [c.name for c in models.chosen(None, has_classes=False)[0]]
    assert "oblique tree, linear leaves" in names


def test_the_height_of_cart_is_tuned_on_its_own_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    y[rng.random(300) < 0.2] ^= 1  # noise, which a deep tree would overfit
    nodes = compare(X, y, models=["CART"], cv=2, random_state=0)["CART"].nodes
    assert nodes <= 2 ** (CART_HEIGHTS[1] + 1)


def test_sizes_count_splits_and_leaves():
    X, y = slanted(np.random.default_rng(0), 100)
    cart = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    assert (size_of(cart).nodes, size_of(cart).weights) == (7, 3)
    tree = DGTClassifier(**QUICK).fit(X, y)
    size = size_of(tree)
    assert size.nodes == tree.tree_.n_splits + tree.tree_.n_leaves
    assert size.weights == np.count_nonzero(tree.tree_.weights)


# --- time and interrupts -----------------------------------------------------------------------


def test_time_is_up_after_two_folds_at_the_earliest():
    X, y = slanted(np.random.default_rng(0), 100)
    found = compare(X, y, models=["constant", "linear"], time_limit=1e-9, random_state=0)
    assert (found.n_folds, found.of_folds) == (2, 5)
    assert "time was up after 2 of 5 folds" in str(found)


def test_an_interrupt_keeps_the_complete_folds():
    def third_fold(name, fold, n_folds):
        if fold == 2 and name == "linear":
            raise KeyboardInterrupt

    X, y = slanted(np.random.default_rng(0), 100)
    options = {"models": ["constant", "linear"], "random_state": 0}
    with pytest.warns(FitInterruptedWarning, match="2 of 5 folds are complete"):
        found = compare(X, y, callbacks=third_fold, **options)
    assert found.interrupted
    assert found["constant"].scores.shape == (2,)
    whole = compare(X, y, **options)
    np.testing.assert_array_equal(whole["linear"].scores[:2], found["linear"].scores)

    def first_fold(name, fold, n_folds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(X, y, callbacks=first_fold, **options)


def test_a_fit_that_was_interrupted_interrupts_the_comparison():
    class Interrupted(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            warnings.warn("stopped", FitInterruptedWarning, stacklevel=2)
            return super().fit(X, y)

    X, y = slanted(np.random.default_rng(0), 60)
    with pytest.raises(KeyboardInterrupt):
        compare(X, y, models={"tree": Interrupted()}, random_state=0)


def test_warnings_of_many_fits_are_said_once_and_slow_convergence_is_a_note():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 30)), rng.integers(0, 2, size=80)
    few_steps = LogisticRegression(max_iter=1)
    found = compare(X, y, models={"linear": few_steps}, cv=3, random_state=0)
    assert found.notes == ("linear did not converge; with more steps its score may differ",)

    class Grumbling(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            warnings.warn("hm", UserWarning, stacklevel=2)
            return super().fit(X, y)

    with pytest.warns(UserWarning, match="hm") as caught:
        compare(X, y, models={"it": Grumbling()}, cv=3, random_state=0)
    assert len(caught) == 1


def test_a_tree_that_had_no_time_is_noted():
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    found = compare(X, y, models=["oblique tree", "CART"], time_limit=0.001, random_state=0)
    assert "oblique tree had no time to try all it would" in str(found)
    assert not any("CART" in note for note in found.notes)


# --- words -------------------------------------------------------------------------------------


def simulated(**means):
    """A comparison whose models have these scores, a little apart on every fold."""
    wobble = np.array([-0.002, -0.001, 0.0, 0.001, 0.002])
    kinds = {"constant": "constant", "linear": "linear", "CART": "axis-aligned tree"}
    kinds |= {"tree": "oblique tree", "other_tree": "oblique tree", "forest": "ensemble"}
    entrants = []
    for i, (name, mean) in enumerate(means.items()):
        scores = mean + np.roll(wobble, i)
        score = interval(scores, 80, 20)
        entrants.append(ModelResult(name, kinds[name], scores, score, 1.0, 1.0, 2.0, 7, 9, 100))
    return Comparison("classification", "accuracy", True, tuple(entrants), 100, 3, 5, 5, 80, 20)


@pytest.mark.parametrize(
    ("means", "answer", "words"),
    [
        ({"constant": 0.5, "CART": 0.8, "tree": 0.9}, "yes", "better than one axis-aligned"),
        ({"CART": 0.9, "tree": 0.8}, "no", "One axis-aligned tree (CART) is better"),
        ({"CART": 0.9, "tree": 0.9}, "unclear", "is not clearly different from one axis-aligned"),
        (
            {"CART": 0.8, "linear": 0.9, "tree": 0.9},
            "no",
            "A linear model is not clearly different",
        ),
        ({"linear": 0.95, "tree": 0.9}, "no", "A linear model is better"),
        ({"linear": 0.8, "tree": 0.9}, "yes", "One sum is not enough"),
        ({"constant": 0.9, "CART": 0.8, "tree": 0.9}, "no", "the same answer for every row"),
        ({"CART": 0.8, "tree": 0.9, "forest": 0.95}, "yes", "The best ensemble (forest) is better"),
        ({"CART": 0.8, "tree": 0.9, "other_tree": 0.95}, "yes", "Better still: other_tree"),
        ({"tree": 0.9, "forest": 0.8}, None, "The best ensemble (forest) is worse"),
    ],
)
def test_the_answer_follows_from_the_intervals(means, answer, words):
    found = simulated(**means)
    assert found.answer == answer
    assert words in found.words


def test_one_alone_is_compared_with_nothing():
    assert simulated(tree=0.9).words == "tree, accuracy 0.9000. It was compared with nothing."


def test_no_difference_is_said_so():
    entrants = simulated(CART=0.9, tree=0.9).entrants
    alike = tuple(replace(each, scores=entrants[0].scores) for each in entrants)
    words = replace(simulated(CART=0.9, tree=0.9), entrants=alike).words
    assert "accuracy 0.9000 against 0.9000, the same on every fold, with 7 nodes" in words


def test_differences_are_written_the_way_they_go():
    text = simulated(CART=0.9, tree=0.8).words
    assert "accuracy 0.8000 against 0.9000, 0.1000 worse (95 % interval 0.0" in text


# --- faces -------------------------------------------------------------------------------------


def test_text_html_json_frames_and_drawing(found, tmp_path):
    text = str(found)
    for words in ("Scores, the best first", "Cost and size", "tree is better by", "forest"):
        assert words in text
    content = json.loads(found.to_json())
    assert content["answer"] == "yes"
    assert [model["name"] for model in content["models"]] == [e.name for e in found.ranked]
    assert content["models"][0]["gain_of_oblique_tree"]["mean"] == 0.0
    assert found.tables == ("models", "folds")
    assert len(found.to_frame("folds")) == 25
    found.save(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text()
    assert "data:image/png" in page
    assert len(found.plot().axes) == 2
    with pytest.raises(KeyError, match="compared were"):
        found["nobody"]


# --- mistakes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"models": ["Cart"]}, ValueError, "'Cart' is not known; known are"),
        ({"models": []}, ValueError, "there is none to compare"),
        ({"models": "CART"}, TypeError, "models must be None, a list"),
        ({"models": ["CART", "CART"]}, ValueError, "'CART' occurs twice"),
        ({"models": {"x": 3}}, TypeError, "'x' must be the name of a known model"),
        ({"models": {"x": DGTClassifier}}, TypeError, "'x' must be the name of a known model"),
        ({"models": {3: "CART"}}, TypeError, "names are text"),
        ({"cv": 1}, ValueError, "cv as a number of folds goes from 2 to the number of rows"),
        ({"cv": "five"}, TypeError, "cv must be a number of folds"),
        ({"cv": []}, ValueError, "cv: there is no fold"),
        ({"cv": 0.2}, TypeError, "cv must be a number of folds"),
        ({"scoring": "speed"}, ValueError, "is not a scikit-learn scorer"),
        ({"task": "rank"}, ValueError, "task must be one of"),
        ({"time_limit": 0}, ValueError, "time_limit must be a number"),
        ({"time_limit": "long"}, ValueError, "time_limit must be a number"),
        ({"callbacks": 3}, TypeError, "callbacks must be None or a function"),
    ],
)
def test_wrong_arguments_are_named(options, error, words):
    X, y = slanted(np.random.default_rng(0), 40)
    with pytest.raises(error, match=words):
        compare(X, y, **({"models": ["constant"]} | options))


def test_wrong_tables_and_targets_are_named():
    X, y = slanted(np.random.default_rng(0), 40)
    models = ["constant"]
    with pytest.raises(ValueError, match="X has 40 rows, y has 39"):
        compare(X, y[:-1], models=models)
    with pytest.raises(ValueError, match="several columns"):
        compare(X, np.zeros((40, 2), dtype=int), models=models)
    with pytest.raises(TableError, match="infinity"):
        compare(np.full((40, 2), np.inf), y, models=models)
    with pytest.raises(ValueError, match="at least 2 classes"):
        compare(X, ["a"] * 40, models=models)
    with pytest.raises(ValueError, match="numbers"):
        compare(X, y, models=models, task="regression")
