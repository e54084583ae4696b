"""`TreeClassifier` and `TreeRegressor` with one kind of leaves: the search for oblique trees."""

from __future__ import annotations

import json
import re
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_digits, load_iris

import hardwood
from hardwood import TreeClassifier, TreeRegressor
from hardwood.clock import Clock, FinishOrSkip, StopAtDeadline
from hardwood.errors import FitInterruptedWarning
from hardwood.learn.tao import TAO
from hardwood.learn.training import Epoch
from hardwood.search import candidates
from hardwood.search.augment import Augmentation
from hardwood.search.candidates import Candidate
from hardwood.search.tree_search import TreeSearch

SHORT = {
    "leaves": "constant",
    "time_limit": None,
    "max_depth": 2,
    "random_state": 0,
    "teacher": None,
}


@pytest.fixture(autouse=True)
def quick_networks(monkeypatch):
    monkeypatch.setattr("hardwood.search.distill._EPOCHS", (2, 60))


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def wedges():
    """1,600 rows of three classes with oblique borders and some label noise."""
    random = np.random.default_rng(0)
    X = random.normal(size=(1600, 2)).astype(np.float32)
    y = np.array(["a", "b", "c"])[(X[:, 0] > X[:, 1]) + (X[:, 0] + X[:, 1] > 1).astype(int)]
    y[::20] = "a"
    return X, y


def short(**options) -> TreeClassifier:
    return TreeClassifier(
        **{"leaves": "constant", "time_limit": None, "max_depth": 3, "random_state": 0, **options}
    )


@pytest.fixture
def held_out(monkeypatch):
    """Tables of 1,500 rows and more have one validation part, as larger tables do."""
    monkeypatch.setattr("hardwood.search.best_tree._FOLDED_BELOW", 1_500)


@pytest.fixture
def many_rows(wedges, held_out, monkeypatch):
    """The wedges, treated as a large table: the search uses a sample of the rows."""
    monkeypatch.setattr("hardwood.search.best_tree._SEARCH_ENTRIES", 600)
    return wedges


@pytest.mark.parametrize("is_distilled", [False, True])
def test_finalists_of_a_large_table_are_trained_on_all_rows(many_rows, is_distilled):
    teacher = short(max_trials=7, teacher=None).fit(*many_rows) if is_distilled else None
    model = short(max_trials=30, teacher=teacher).fit(*many_rows)
    report = model.fit_report_
    assert report.rows == (
        "Candidates were trained on 300 of 1,600 rows and scored on 320 others; the best few were "
        "also trained on 1,280 rows."
    )
    wide = [trial for trial in report.trials if trial.candidate.endswith(", 1,280 rows")]
    assert wide
    assert wide == list(report.trials[-len(wide) :])
    narrow = report.trials[: -len(wide)]
    assert any("reinforced" in trial.candidate for trial in narrow)
    assert {trial.candidate.removesuffix(", 1,280 rows") for trial in wide[:3]} <= {
        trial.candidate for trial in narrow
    }
    assert any("distilled" in trial.candidate for trial in narrow) == is_distilled
    assert max(t.validation_score for t in wide) >= max(t.validation_score for t in narrow) - 0.02
    assert model.tree_.counts[0] == len(many_rows[1])
    assert model.score(*many_rows) > 0.94


def test_max_trials_reserves_one_trial_for_all_rows(many_rows):
    report = short(max_trials=6, teacher=None).fit(*many_rows).fit_report_
    assert len(report.trials) == 6
    assert [trial.candidate.endswith(", 1,280 rows") for trial in report.trials] == [False] * 5 + [
        True
    ]
    assert report.ending == "Stopped at max_trials."
    single = short(max_trials=1, teacher=None).fit(*many_rows).fit_report_
    assert [trial.candidate for trial in single.trials] == ["a single leaf"]
    assert single.rows.endswith("on 300 of 1,600 rows and scored on 320 others.")


@pytest.mark.parametrize("seed", range(4))
def test_the_score_of_a_large_table_is_that_of_the_tree(many_rows, seed):
    report = short(teacher=None, max_depth=2, random_state=seed).fit(*many_rows).fit_report_
    [best] = [trial for trial in report.trials if trial.candidate == report.best]
    assert report.score == best.validation_score
    assert report.to_dict()["score"] == best.validation_score
    best_so_far = [trial for trial in report.trials if trial.outcome == "best so far"]
    scores = [trial.validation_score for trial in best_so_far if "rows" in trial.candidate]
    narrow = [t.validation_score for t in report.trials if "rows" not in t.candidate]
    assert all(score >= max(narrow) for score in scores)


@pytest.mark.parametrize(
    "max_trials", [8, *(pytest.param(each, marks=pytest.mark.slow) for each in (12, None))]
)
def test_without_a_time_limit_a_large_table_does_not_depend_on_the_clock(
    many_rows, monkeypatch, max_trials
):
    tree = short(teacher=None, max_trials=max_trials).fit(*many_rows).tree_
    seconds = TreeSearch._full_seconds
    monkeypatch.setattr(TreeSearch, "_full_seconds", lambda search, kind: -seconds(search, kind))
    assert short(teacher=None, max_trials=max_trials, n_jobs=2).fit(*many_rows).tree_ == tree


def test_a_callback_that_ends_the_search_ends_it_before_all_rows(many_rows):
    report = (
        short(teacher=None, callbacks=lambda trial: trial.number == 3).fit(*many_rows).fit_report_
    )
    assert len(report.trials) == 3
    assert report.ending == "Stopped by a callback."


def test_a_finalist_that_fails_loses_nothing(many_rows, monkeypatch):
    build = candidates.CandidateBuilder.build

    def failing(builder, candidate, task, teacher):
        if len(task.train) == 1280 and len(task.valid):
            raise ValueError("too many rows")
        return build(builder, candidate, task, teacher)

    monkeypatch.setattr(candidates.CandidateBuilder, "build", failing)
    report = short(teacher=None, max_trials=9).fit(*many_rows).fit_report_
    assert report.trials[-1].outcome == "failed"
    assert "rows" not in report.best


def test_a_large_table_out_of_time_is_not_fitted_to_all_rows(many_rows, monkeypatch):
    spent = []
    monkeypatch.setattr(Clock, "spent", property(lambda clock: 100.0 * len(spent)))
    model = short(time_limit=10, teacher=None, callbacks=spent.append).fit(*many_rows)
    assert [trial.candidate for trial in model.fit_report_.trials] == ["a single leaf"]
    assert model.fit_report_.ending == "Stopped at time_limit."
    assert model.fit_report_.finish == "Not fitted to all rows: there was no time left."


@pytest.mark.parametrize("leaves", ["constant", "linear"])
def test_large_tables_of_numbers_and_sparse_ones(many_rows, leaves):
    X, _ = many_rows
    y = np.abs(X[:, 0] - X[:, 1])
    model = TreeRegressor(
        time_limit=None,
        max_trials=14,
        max_depth=3,
        teacher=None,
        leaves=leaves,
        random_state=0,
    )
    report = model.fit(sparse.csr_array(X), y).fit_report_
    assert any(trial.candidate.endswith("1,280 rows") for trial in report.trials)
    assert model.score(sparse.csr_array(X), y) > (0.75 if leaves == "constant" else 0.95)


def test_half_of_the_time_is_reserved_for_all_rows(many_rows, monkeypatch):
    """When every candidate takes a twentieth of the time limit."""
    spent = []
    monkeypatch.setattr(Clock, "spent", property(lambda clock: 1.0 * len(spent)))
    note = spent.append
    report = short(time_limit=20, teacher=None, callbacks=note).fit(*many_rows).fit_report_
    is_wide = [trial.candidate.endswith(", 1,280 rows") for trial in report.trials]
    assert 10 <= is_wide.index(True) <= 11


def test_finalists_that_run_out_of_time_leave_the_best_so_far(many_rows, monkeypatch):
    build = candidates.CandidateBuilder.build

    def out_of_time(builder, candidate, task, teacher):
        if len(task.train) == 1280 and len(task.valid):
            raise candidates.OutOfTime
        return build(builder, candidate, task, teacher)

    monkeypatch.setattr(candidates.CandidateBuilder, "build", out_of_time)
    model = short(max_trials=12, teacher=None).fit(*many_rows)
    trials = model.fit_report_.trials
    assert len(trials) == 12
    assert {trial.outcome for trial in trials if "rows" in trial.candidate} == {"out of time"}
    narrow = max(trial.validation_score for trial in trials if "rows" not in trial.candidate)
    assert model.score(*many_rows) > narrow - 0.05


def test_ctrl_c_among_the_finalists_keeps_the_best_so_far(many_rows):
    def interrupt(trial):
        if trial.candidate.endswith("rows"):
            raise KeyboardInterrupt

    with pytest.warns(FitInterruptedWarning):
        model = short(max_trials=12, teacher=None, callbacks=interrupt).fit(*many_rows)
    assert model.fit_report_.ending == "Interrupted by the user."
    assert model.score(*many_rows) > 0.85


def test_oblique_trees_win_on_the_validation_rows_of_a_larger_table(wedges, held_out):
    model = short(max_trials=10, teacher=None, max_features_per_split=2).fit(*wedges)
    report = model.fit_report_
    assert "scored on 320 others." in report.rows
    assert "TAO" in report.best
    assert report.finish == "Refined by TAO on all rows."
    plain = max(t.validation_score for t in report.trials if "TAO" not in t.candidate)
    assert max(t.validation_score for t in report.trials) > plain
    assert model.score(*wedges) > 0.94


def test_a_reinforced_tree_may_be_the_best_and_keeps_all_its_leaves(held_out):
    X, y = load_digits(return_X_y=True)
    model = short(max_depth=4, max_trials=9, teacher=None).fit(X, y)
    report = model.fit_report_
    assert report.best.startswith("reinforced, depth 4")
    assert report.finish == "Refitted on all rows."
    assert model.tree_.n_leaves == 16
    assert model.score(X, y) > 0.94
    assert model.tree_.counts[: model.tree_.n_splits].max() == len(y)


@pytest.mark.slow
def test_reinforced_trees_are_left_out_if_they_cannot_honor_the_parameters():
    """Their splits use all columns, and their leaves are constant."""
    X, y = load_digits(return_X_y=True)
    for options in ({"max_features_per_split": 1}, {"leaves": "linear"}):
        report = short(max_trials=12, teacher=None, **options).fit(X[:300], y[:300]).fit_report_
        assert not any("reinforced" in trial.candidate for trial in report.trials)


def test_the_search_stops_if_validation_could_not_show_a_better_tree():
    random = np.random.default_rng(0)
    X = random.normal(size=(6000, 2)).astype(np.float32)
    report = short(teacher=None).fit(X, X[:, 0] > X[:, 1]).fit_report_
    assert report.ending == (
        "Stopped early: the best tree makes fewer than 25 errors on 6,000 validation rows."
    )
    assert "reinforced" in report.trials[-1].candidate


class FakeTime:
    """A fake clock that tests set."""

    def __init__(self):
        self.seconds = 100.0

    def __call__(self):
        return self.seconds


def test_a_run_that_cannot_finish_in_time_is_skipped_at_once():
    now = FakeTime()
    finish_or_skip = FinishOrSkip(Clock(30.0, now))
    now.seconds += 2.0
    assert not finish_or_skip(
        Epoch(0, 0, 15, 0.1, 0.1, 0.01)
    )  # 14 more epochs of 2 seconds: in time
    assert not finish_or_skip.is_skipped
    now.seconds += 2.5
    assert finish_or_skip(
        Epoch(0, 1, 15, 0.1, 0.1, 0.01)
    )  # 13 more of 2.25: too late, by 3.75 seconds
    assert finish_or_skip.is_skipped


def test_a_clock_starts_when_it_is_created():
    now = FakeTime()
    clock = Clock(10.0, now)
    now.seconds += 4.0
    assert (clock.spent, clock.left, clock.is_past()) == (4.0, 6.0, False)
    assert clock.has(6.0)
    assert not clock.has(6.1)
    now.seconds += 6.5
    assert clock.is_past()
    assert clock.left == -0.5


def test_a_small_table_is_scored_by_cross_validation(iris):
    report = short(max_trials=6, teacher=None).fit(*iris).fit_report_
    assert report.rows == "Candidates were scored by 4-fold cross-validation on 149 rows."
    assert report.finish == "Refitted on all rows."


@pytest.mark.slow
def test_a_good_teacher_is_used():
    X = np.random.default_rng(0).normal(size=(1200, 6))
    y = np.where((X**2).sum(axis=1) > 5.3, "outside", "inside")  # a ball, which has no corners
    report = short(max_trials=12).fit(X, y).fit_report_
    assert report.teacher.startswith("Teacher: 3 neural networks, D2 of log loss 0.8")
    assert any("distilled" in trial.candidate for trial in report.trials)


def test_splits_lose_features_while_the_score_stays():
    X = np.random.default_rng(0).normal(size=(600, 8))
    y = X[:, 0] + X[:, 1] > 0
    trials = short(max_depth=1, teacher=None).fit(X, y).fit_report_.trials
    limited = [trial for trial in trials if "at most" in trial.candidate]
    most = [int(re.search(r"at most (\d+)", trial.candidate)[1]) for trial in limited]
    first = most.index(1) + 1
    assert most[:first] == [4, 2, 1]  # before restarts
    dense = next(t.validation_score for t in trials if t.candidate.startswith("TAO"))
    assert limited[1].validation_score > dense - 0.01
    assert not limited[2].validation_score > dense - 0.3  # one feature says little


class Wrong(TreeClassifier):
    """A teacher that always predicts the first class."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def predict_proba(self, X):
        return np.eye(len(self.classes_))[np.zeros(len(X), dtype=int)]

    def __sklearn_is_fitted__(self):
        return hasattr(self, "classes_")


def test_teachers_leave_time_for_the_final_fit(iris, monkeypatch):
    ends = []

    def train_nothing(task, seed, is_over):
        ends.append(is_over)

    monkeypatch.setattr("hardwood.search.best_tree.train_networks", train_nothing)
    short(max_trials=30).fit(*iris)
    assert not ends[0]()
    monkeypatch.setattr(Clock, "has", lambda self, seconds: False)
    assert ends[0]()


def test_a_teacher_that_is_worse_than_the_tree_is_not_used(wedges):
    report = short(max_trials=12, teacher=Wrong()).fit(*wedges).fit_report_
    assert "Wrong" in report.teacher
    assert "worse than the best tree" in report.teacher
    assert not any("distilled" in trial.candidate for trial in report.trials)


def test_an_axis_aligned_tree_wins_ties():
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = short(max_trials=8, teacher=None).fit(X, X[:, 1] > 0)
    assert model.fit_report_.best == "axis-aligned, depth 1"
    assert model.tree_.n_splits == 1
    assert np.count_nonzero(model.tree_.weights) == 1


def test_noise_gets_a_single_leaf():
    random = np.random.default_rng(1)
    y = np.where(random.random(400) < 0.2, "rare", "common")
    model = short(max_trials=5, teacher=None).fit(random.normal(size=(400, 2)), y)
    assert model.tree_.n_leaves == 1
    assert set(model.predict(np.zeros((2, 2)))) == {"common"}


@pytest.mark.parametrize("teacher", [None, "auto"])
def test_the_same_tree_every_time_on_any_number_of_threads(wedges, teacher):
    X, y = (part[:400] for part in wedges)
    models = [short(max_trials=9, teacher=teacher, n_jobs=n).fit(X, y) for n in (1, 2)]
    assert models[0].tree_ == models[1].tree_
    scores = [[t.validation_score for t in m.fit_report_.trials] for m in models]
    assert scores[0] == scores[1]


@pytest.mark.parametrize("teacher", [None, "auto"])
def test_a_row_of_weight_two_is_the_row_twice_in_any_order(wedges, teacher):
    X, y = (part[:300] for part in wedges)
    weight = np.where(np.arange(300) % 3 == 0, 2.0, 1.0)
    twice = np.random.default_rng(0).permutation(np.repeat(np.arange(300), weight.astype(int)))
    model = short(max_trials=9, teacher=teacher)
    weighted = model.fit(X, y, sample_weight=weight).tree_
    assert weighted == model.fit(X[twice], y[twice]).tree_


def test_more_trials_continue_the_same_search(iris):
    first = short(max_trials=3, teacher=None).fit(*iris).fit_report_
    second = short(max_trials=5, teacher=None).fit(*iris).fit_report_
    assert first.ending == "Stopped at max_trials."
    assert [len(report.trials) for report in (first, second)] == [3, 5]
    names = [[trial.candidate for trial in report.trials] for report in (first, second)]
    assert names[0] == names[1][:3]


def test_without_a_limit_the_search_ends_after_all_candidates(iris):
    report = short(max_trials=None, teacher=None, max_depth=2).fit(*iris).fit_report_
    assert report.ending == "All candidates were tried."


def test_even_without_time_there_is_a_tree(iris):
    model = TreeClassifier(leaves="constant", time_limit=1e-9, random_state=0).fit(*iris)
    assert model.fit_report_.ending == "Stopped at time_limit."
    assert len(model.fit_report_.trials) == 1
    assert model.predict(iris[0]).shape == (150,)


def test_a_run_stops_if_another_epoch_would_take_too_long():
    epoch = Epoch(0, 0, 10, 0.0, 0.0, 0.0)
    assert not StopAtDeadline(Clock(None))(epoch)
    now = FakeTime()
    stop = StopAtDeadline(Clock(10.0, now))
    now.seconds += 4.0
    assert not stop(epoch)  # 6 seconds are left, the last epoch took 4
    now.seconds += 3.5
    assert stop(epoch)  # 2.5 are left, the last took 3.5


def test_ctrl_c_keeps_the_best_so_far(iris):
    def interrupt(trial):
        if trial.number == 4:
            raise KeyboardInterrupt

    with pytest.warns(FitInterruptedWarning, match=r"after 4 candidates"):
        model = short(max_trials=9, teacher=None, callbacks=interrupt).fit(*iris)
    assert model.fit_report_.ending == "Interrupted by the user."
    assert model.score(*iris) > 0.9


def test_ctrl_c_in_the_final_fit_keeps_the_best_too(iris, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("hardwood.search.best_tree._fitted_to_all_rows", interrupt)
    with pytest.warns(FitInterruptedWarning, match=r"after 4 candidates"):
        model = short(max_trials=4, teacher=None).fit(*iris)
    assert model.fit_report_.finish == "Not fitted to all rows: the fit was interrupted."
    assert model.score(*iris) > 0.9


def test_ctrl_c_before_the_first_tree_leaves_the_estimator_as_it_was(iris, monkeypatch):
    model = short(max_trials=2, teacher=None).fit(*iris)
    before = model.tree_

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("hardwood.search.candidates.CandidateBuilder.build", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*iris)
    assert model.tree_ is before


def test_a_callback_sees_every_candidate_and_can_stop_the_search(iris):
    seen = []

    def third(trial):
        seen.append(trial)
        return trial.number == 3

    report = short(max_trials=9, teacher=None, callbacks=[third]).fit(*iris).fit_report_
    assert report.ending == "Stopped by a callback."
    assert seen == list(report.trials)
    assert len(seen) == 3


def test_a_candidate_that_fails_is_logged_and_left_out(iris, monkeypatch):
    def fail(*args, **options):
        raise ValueError("no such luck")

    monkeypatch.setattr("hardwood.search.candidates.CandidateBuilder.refine", fail)
    report = short(max_trials=6, teacher=None).fit(*iris).fit_report_
    failed = [trial for trial in report.trials if trial.outcome == "failed"]
    assert failed
    assert all(trial.message == "no such luck" for trial in failed)
    assert "no such luck" in str(report)


def test_splits_use_no_more_features_than_allowed(wedges):
    X = np.column_stack([wedges[0], np.random.default_rng(0).normal(size=(1600, 3))])
    model = short(max_trials=12, teacher=None, max_features_per_split=1).fit(X, wedges[1])
    assert "TAO" in str(model.fit_report_)
    assert (np.count_nonzero(model.tree_.weights, axis=1) <= 1).all()


@pytest.mark.parametrize("unit", [1e300, 1e-320])
def test_numbers_whose_squares_overflow_or_vanish(unit):
    X, y = load_diabetes(return_X_y=True)
    options = {"time_limit": None, "max_trials": 8, "max_depth": 3, "random_state": 0}
    model = TreeRegressor(leaves="constant", **options, teacher=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = model.fit(X, y / y.max() * unit).fit_report_
    assert 0.3 < report.score < 0.6


def test_linear_leaves_for_regression():
    random = np.random.default_rng(0)
    X = random.normal(size=(1600, 3))
    y = np.where(X[:, 0] + X[:, 1] > 0, 3 * X[:, 2], -X[:, 1]) + 0.1 * random.normal(size=1600)
    options = {"time_limit": None, "max_trials": 12, "max_depth": 3, "random_state": 0}
    constant = TreeRegressor(leaves="constant", **options, teacher=None).fit(X, y)
    linear = TreeRegressor(**options, teacher=None, leaves="linear").fit(X, y)
    assert linear.tree_.has_linear_leaves
    assert linear.score(X, y) > max(0.95, constant.score(X, y))


@pytest.mark.parametrize("classes", [["no", "yes"], ["low", "middle", "high"]])
def test_linear_leaves_for_classes(classes):
    """The sign of a third column selects the linear function that determines the class."""
    X = np.random.default_rng(0).normal(size=(1600, 3))
    slope = np.where(X[:, 2] > 0, X[:, 0] + X[:, 1], X[:, 0] - X[:, 1])
    y = np.array(classes)[np.digitize(slope, [-0.5, 0.5][: len(classes) - 1])]
    model = short(max_depth=2, max_trials=8, teacher=None, leaves="linear").fit(X, y)
    assert not any(trial.outcome == "failed" for trial in model.fit_report_.trials)
    assert model.tree_.has_linear_leaves
    assert model.score(X, y) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-6)


@pytest.mark.slow
def test_a_table_with_categories_missing_values_and_names():
    random = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame(
        {
            "size": np.where(random.random(n) < 0.1, np.nan, random.normal(size=n)),
            "kind": pd.Categorical(random.choice(["x", "y", "z"], n)),
            "is_old": random.random(n) < 0.5,
        }
    )
    y = np.where((X["size"].fillna(1) > 0) == (X["kind"] == "x"), "good", "bad")
    model = short(max_trials=12).fit(X, y)
    assert list(model.feature_names_in_) == ["size", "kind", "is_old"]
    assert model.score(X, y) > 0.9


def test_a_sparse_table(wedges):
    X = sparse.csr_matrix(np.where(np.abs(wedges[0]) < 0.3, 0, wedges[0]))
    model = short(max_trials=11).fit(X, wedges[1])
    assert "sparse" in model.fit_report_.teacher
    assert model.score(X, wedges[1]) > 0.85


def test_multilabel_and_multioutput_targets(iris):
    X, _ = iris
    labels = (X[:, :2] > X[:, :2].mean(axis=0)).astype(int)
    model = short(max_trials=8).fit(X, labels)
    assert model.predict(X).shape == (150, 2)
    assert model.score(X, labels) > 0.8
    regressor = TreeRegressor(
        leaves="constant", time_limit=None, max_trials=8, max_depth=3, random_state=0
    )
    assert regressor.fit(X[:, :2], X[:, 2:]).predict(X[:, :2]).shape == (150, 2)
    assert regressor.score(X[:, :2], X[:, 2:]) > 0.6


@pytest.mark.parametrize("scoring", ["average_precision", "f1", "neg_brier_score", "roc_auc"])
def test_a_scorer_by_name_takes_the_second_of_two_texts_as_positive(wedges, scoring):
    X, y = wedges
    y = (y == "c").astype(int)
    numbers = short(max_trials=3, teacher=None, scoring=scoring).fit(X, y)
    texts = short(max_trials=3, teacher=None, scoring=scoring).fit(X, np.array(["a", "b"])[y])
    assert texts.fit_report_.score == numbers.fit_report_.score


def test_scoring_decides(wedges):
    X, y = wedges[0], wedges[1] == "c"
    model = short(max_trials=6, teacher=None, scoring="roc_auc").fit(X, y)
    assert model.fit_report_.metric == "roc_auc"
    assert all(0.4 < trial.validation_score <= 1 for trial in model.fit_report_.trials)


def test_class_weight_counts(wedges):
    X = wedges[0]
    share = np.where(X[:, 0] > 0.5, 0.4, 0.05)
    y = np.where(np.random.default_rng(0).random(1600) < share, "rare", "common")
    options = {"max_trials": 8, "teacher": None}
    even = short(**options).fit(X, y).predict(X)
    balanced = short(**options, class_weight="balanced").fit(X, y).predict(X)
    assert (balanced == "rare").sum() > (even == "rare").sum()


def test_the_report_as_text_json_frame_and_file(iris, tmp_path):
    report = short(max_trials=4, teacher=None).fit(*iris).fit_report_
    assert str(report).startswith("Best of 4 candidates: axis-aligned, depth")
    assert "Stopped at max_trials." in str(report)
    content = json.loads(report.to_json())
    assert [trial["number"] for trial in content["trials"]] == [1, 2, 3, 4]
    assert list(report.to_frame()["candidate"])[0] == "a single leaf"
    report.save(tmp_path / "report.html")
    assert "<table>" in (tmp_path / "report.html").read_text()


def test_the_score_of_the_report_is_that_of_the_chosen_tree(wedges):
    report = short(max_trials=8, teacher=None).fit(*wedges).fit_report_
    scores = [trial.validation_score for trial in report.trials]
    assert report.score == report.to_dict()["score"] == max(scores)


def test_a_candidate_describes_itself():
    tao = TAO(l1=0.03, l2=10.0, max_sweeps=1)
    assert str(Candidate("axis", 3)) == "axis-aligned, depth 3"
    words = "TAO from CO2, depth 8, restart 2, l1 0.03, l2 10, distilled 12x, noise 0.05"
    assert str(Candidate("co2", 8, tao, Augmentation(12, 0.05), 2)) == words


def test_a_reinforced_tree_of_few_rows_has_few_leaves():
    X, y = load_diabetes(return_X_y=True)
    model = TreeRegressor(leaves="constant", time_limit=None, random_state=0, teacher=None).fit(
        X[:12], y[:12]
    )
    reinforced = [t for t in model.fit_report_.trials if t.candidate.startswith("reinforced")]
    assert reinforced
    assert all(trial.leaves <= 4 for trial in reinforced)


def test_an_error_names_a_scorer_for_other_targets(iris):
    with pytest.raises(ValueError, match="scoring='roc_auc' cannot score .* 'roc_auc_ovr'"):
        short(scoring="roc_auc").fit(*iris)


def test_verbose_prints_a_line_per_candidate(iris, capsys):
    short(max_trials=3, teacher=None, verbose=1).fit(*iris)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "axis-aligned, depth 2" in lines[2]
    assert "D2 of log loss" in lines[2]


def test_the_tree_is_saved_with_its_candidate(iris, tmp_path):
    model = short(max_trials=4, teacher=None).fit(*iris)
    model.save(tmp_path / "tree.hardwood")
    tree = hardwood.load(tmp_path / "tree.hardwood")
    assert tree == model.tree_
    assert tree.record["learner"] == "TreeClassifier"
    assert tree.record["resolved"]["candidate"] == model.fit_report_.best
    assert tree.counts[0] == 150


def test_warnings_of_the_networks_do_not_reach_the_user(iris):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short(max_trials=8, max_depth=2).fit(*iris)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_limit": 0}, "time_limit must be a number in"),
        ({"max_trials": 0}, "max_trials must be an integer from 1"),
        ({"max_depth": 0}, "max_depth must be an integer from 1 to 16"),
        ({"leaves": "round"}, "leaves must be one of"),
        ({"validation_fraction": 0.0}, "needs validation rows"),
        ({"teacher": "me"}, "teacher must be None, 'auto', or an estimator"),
        ({"teacher": TreeRegressor()}, "teacher must be a classifier"),
        ({"scoring": "beauty"}, "not a scikit-learn scorer"),
        ({"max_features_per_split": 0}, "max_features_per_split must be an integer"),
        ({"callbacks": 3}, "callbacks must be"),
    ],
)
def test_bad_parameters(iris, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        TreeClassifier(**{"leaves": "constant", "max_trials": 3, **options}).fit(*iris)


def test_regression_is_better_than_an_axis_aligned_tree():
    X, y = load_diabetes(return_X_y=True)
    report = (
        TreeRegressor(
            leaves="constant",
            time_limit=None,
            max_trials=10,
            max_depth=3,
            teacher=None,
            random_state=0,
        )
        .fit(X, y)
        .fit_report_
    )
    plain = max(t.validation_score for t in report.trials if t.candidate.startswith("axis-aligned"))
    assert max(t.validation_score for t in report.trials) > plain
    assert report.metric == "R2"


def test_tao_is_given_the_clock(iris, monkeypatch):
    """It must stop within a sweep, too: one sweep over a large table may take too long."""
    left = []
    fit = TAO.fit

    def noted(self, task, run, start):
        left.append(run.clock.left)
        return fit(self, task, run, start)

    monkeypatch.setattr(TAO, "fit", noted)
    begun = time.monotonic()
    options = {"max_trials": 5, "max_depth": 2, "teacher": None, "random_state": 0}
    TreeClassifier(leaves="constant", time_limit=1e6, **options).fit(*iris)
    assert left
    assert all(1e6 - (time.monotonic() - begun) < each < 1e6 for each in left)
    left.clear()
    TreeClassifier(leaves="constant", time_limit=None, **options).fit(*iris)
    assert left
    assert all(each == np.inf for each in left)
