"""Made-up rows, and the teachers that answer for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from hardwood import TreeClassifier, TreeRegressor
from hardwood.learn.dgt import DGT
from hardwood.learn.task import Task
from hardwood.search import distill as teachers
from hardwood.search.augment import Lesson, made_up_rows


def posed(X, y, weight=None, fraction=0.0):
    """A task of classes or numbers."""
    is_class = np.asarray(y).dtype.kind in "iUO"
    task = Task.read(X, y, weight, classifies=is_class, loss=DGT().default_loss)
    return task.divided(fraction, 0)


@pytest.fixture(scope="module")
def mixed():
    """Numbers, a number of two values, a category, with missing entries."""
    random = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "number": np.where(random.random(60) < 0.2, np.nan, random.normal(5, 2, 60)),
            "flag": random.integers(0, 2, 60),
            "level": random.choice(["x", "y", "z"], 60),
        }
    )
    return X, np.where(X["number"].fillna(5) > 5, "high", "low")


@settings(max_examples=30, deadline=None)
@given(noise=st.floats(0, 2), mix=st.floats(0, 1), seed=st.integers(0, 1000))
def test_missing_entries_levels_and_flags_stay_what_they_are(mixed, noise, mix, seed):
    problem = posed(*mixed)
    made = made_up_rows(problem, Lesson(2.0, noise, mix), 100, seed)
    origin = problem.matrix[made.origin]
    assert np.array_equal(np.isnan(made.matrix[:, 0]), np.isnan(origin[:, 0]))
    assert set(np.unique(made.matrix[:, 1])) <= {0.0, 1.0}
    assert set(np.unique(made.matrix[:, 2])) <= {0.0, 1.0, 2.0}
    assert set(made.origin) <= set(problem.train)


def test_without_noise_and_mixing_rows_are_real_ones(mixed):
    problem = posed(*mixed)
    made = made_up_rows(problem, Lesson(noise=0.0, mix=0.0), 50, 1)
    assert np.array_equal(made.matrix, problem.matrix[made.origin], equal_nan=True)


def test_noise_is_a_part_of_each_columns_deviation():
    X = np.random.default_rng(0).normal(size=(500, 2)) * [1.0, 1000.0]
    problem = posed(X, X[:, 0])
    made = made_up_rows(problem, Lesson(noise=0.1, mix=0.0), 5000, 0)
    error = (made.matrix - problem.matrix[made.origin]).std(axis=0)
    assert error == pytest.approx(0.1 * X.std(axis=0), rel=0.05)


def test_mixed_rows_lie_between_two_real_ones_nearer_the_first():
    X = np.random.default_rng(0).normal(size=(40, 3))
    problem = posed(X, X[:, 0])
    made = made_up_rows(problem, Lesson(noise=0.0, mix=1.0), 200, 0).matrix
    near = np.abs(made - made_up_rows(problem, Lesson(noise=0.0, mix=0.0), 200, 0).matrix)
    assert (made >= X.min(axis=0)).all()
    assert (made <= X.max(axis=0)).all()
    assert near.max() > 0.5


def test_sparse_rows_stay_sparse():
    X = sparse.random(80, 30, density=0.1, random_state=0, format="csr")
    problem = posed(X, np.arange(80) % 2)
    made = made_up_rows(problem, Lesson(), 100, 0).matrix
    assert sparse.issparse(made)
    assert made.nnz < 0.4 * made.shape[0] * made.shape[1]
    same = made_up_rows(problem, Lesson(noise=0.0, mix=0.0), 100, 0)
    assert abs(same.matrix - problem.matrix[same.origin]).max() == 0


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"rows_per_row": 0}, "rows_per_row"),
        ({"noise": -1}, "noise"),
        ({"mix": 2}, "mix"),
        ({"weight": 0}, "weight"),
    ],
)
def test_a_lesson_checks_itself(options, name):
    with pytest.raises(ValueError, match=name):
        Lesson(**options)


class Coin:
    """A teacher of two classes that is never sure."""

    name = "coin"

    def answers(self, problem, matrix):
        return np.tile([0.75, 0.25, 0.0], (matrix.shape[0], 1))


def test_a_row_is_there_for_every_class_that_its_teacher_holds_possible(mixed):
    X, _ = mixed
    y = np.arange(60) % 3
    problem = posed(X, y, weight=np.arange(1.0, 61.0), fraction=0.2)
    lesson = Lesson(noise=0.1, weight=0.5)
    more = teachers.taught(problem, Coin(), lesson, 10, seed=3)
    made = made_up_rows(problem, lesson, 10, 3)
    assert np.array_equal(more.valid, problem.valid)
    assert np.array_equal(more.y[:60], problem.y)
    added = more.train[len(problem.train) :]
    assert more.y[added, 0].tolist() == [0.0, 1.0] * 10
    expected = np.outer(0.5 * problem.weight[made.origin], [0.75, 0.25]).ravel()
    assert more.weight[added] == pytest.approx(expected)


def test_networks_learn_and_do_so_alike_every_time(mixed):
    problem = posed(*mixed, fraction=0.2)
    first, second = (teachers.learned_networks(problem, 0, lambda: False) for _ in range(2))
    answers = first.answers(problem, problem.matrix)
    assert answers.shape == (60, 2)
    assert (answers.argmax(axis=1) == problem.y[:, 0]).mean() > 0.85
    assert np.array_equal(answers, second.answers(problem, problem.matrix))


def test_networks_of_numbers_answer_in_the_units_of_the_problem():
    X = np.random.default_rng(0).normal(size=(300, 2))
    problem = posed(X, 1000 + 50 * X[:, 0])
    networks = teachers.learned_networks(problem, 0, lambda: False)
    assert np.abs(networks.answers(problem, problem.matrix) - problem.y).mean() < 0.2


def test_networks_honor_weights():
    X = np.repeat(np.arange(4.0), 25)[:, None] + np.random.default_rng(0).normal(0, 0.01, (100, 1))
    y = np.tile([0, 1], 50)
    problem = posed(X, y, weight=np.where(y == 1, 50.0, 1.0))
    networks = teachers.learned_networks(problem, 0, lambda: False)
    assert (networks.answers(problem, problem.matrix).argmax(axis=1) == 1).all()


def test_networks_stop_when_told_and_say_when_there_are_none(mixed):
    problem = posed(*mixed)
    assert teachers.learned_networks(problem, 0, lambda: True) is None
    wide = replace(problem, matrix=sparse.csr_matrix(np.nan_to_num(problem.matrix)))
    assert teachers.learned_networks(wide, 0, lambda: False) is None


def test_networks_stop_learning_when_they_only_learn_by_heart():
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 30))
    problem = posed(X, X[:, 0] + 3 * random.normal(size=120), fraction=0.3)
    part = teachers.learned_networks(problem, 0, lambda: False)
    whole = replace(problem, valid=problem.valid[:0])
    assert part.n_passes < 50
    assert teachers.learned_networks(whole, 0, lambda: False, part).n_passes == (part.n_passes)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_teacher_of_the_users_is_asked_with_its_own_kind_of_table(kind):
    random = np.random.default_rng(0)
    columns = {"a": random.choice(["p", "q"], 80), "b": random.choice(["r", "s"], 80)}
    X = kind(columns)
    y = np.where(columns["a"] == "p", "yes", "no")
    problem = posed(X, y)
    pipeline = make_pipeline(OneHotEncoder(), LogisticRegression())
    teacher = teachers.fitted_teacher(problem, pipeline, X, y)
    shares = teacher.answers(problem, problem.matrix)
    assert (shares.argmax(axis=1) == problem.y[:, 0]).all()
    assert teacher.name == "Pipeline"
    assert not hasattr(pipeline[-1], "coef_")  # the user's own was cloned


def test_a_fitted_teacher_is_asked_as_it_is(mixed):
    X, y = mixed[0][["flag"]].to_numpy(dtype=float), mixed[1]
    problem = posed(X, y)
    fitted = RandomForestClassifier(random_state=0).fit(X, np.full(60, "low"))
    teacher = teachers.fitted_teacher(problem, fitted, X, y)
    assert teacher.estimator is fitted
    assert (teacher.answers(problem, problem.matrix)[:, 1] == 1).all()


def test_a_teacher_without_probabilities_is_taken_at_its_word():
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = (X[:, 0] > 0).astype(int)
    problem = posed(X, y)
    teacher = teachers.fitted_teacher(problem, Perceptron(), X, y)
    assert set(np.unique(teacher.answers(problem, problem.matrix))) == {0.0, 1.0}


def test_a_teacher_of_other_classes_is_refused():
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = (X[:, 0] > 0).astype(int)
    other = LogisticRegression().fit(X, y + 1)
    with pytest.raises(ValueError, match=r"knows the class .*2.*, which y has not: \[0, 1\]"):
        TreeClassifier(teacher=other, time_limit=None, max_trials=20, max_depth=2).fit(X, y)


@pytest.mark.parametrize("is_fitted", [True, False])
def test_a_teacher_that_does_not_take_the_table_is_named(is_fitted):
    X = pd.DataFrame({"a": np.arange(60.0), "b": ["up", "down", "up"] * 20})
    y = np.arange(60) % 2
    teacher = LogisticRegression()
    if is_fitted:
        teacher.fit(X[["a"]], y)
    what = "answer rows of" if is_fitted else "learn from"
    message = (
        f"(?s)The teacher LogisticRegression cannot {what} this table: .*a pipeline that encodes"
    )
    with pytest.raises(ValueError, match=message):
        TreeClassifier(teacher=teacher, time_limit=None, max_trials=20, max_depth=2).fit(X, y)


def test_a_teacher_of_another_number_of_targets_is_refused():
    X = np.random.default_rng(0).normal(size=(50, 2))
    other = LinearRegression().fit(X, X)
    with pytest.raises(ValueError, match=r"50|expected 1 target"):
        TreeRegressor(teacher=other, time_limit=None, max_trials=20, max_depth=2).fit(X, X[:, 0])


def test_weights_reach_an_unfitted_teacher():
    X = np.zeros((40, 1)) + np.arange(40)[:, None] % 2
    y = np.tile([0, 0, 1, 1], 10)
    problem = posed(X, y, weight=np.where(y == 1, 9.0, 1.0))
    teacher = teachers.fitted_teacher(problem, LogisticRegression(), X, y)
    assert teacher.answers(problem, problem.matrix)[:, 1].min() > 0.7
