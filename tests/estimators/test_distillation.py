"""Distillation: augmented rows, and the teachers that label them."""

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
from hardwood.search.augment import Augmentation, augmented_rows


def task_of(X, y, weight=None, fraction=0.0):
    """A task of classification or regression."""
    is_class = np.asarray(y).dtype.kind in "iUO"
    task = Task.read(X, y, weight, classifies=is_class, loss=DGT().default_loss)
    return task.divided(fraction, 0)


@pytest.fixture(scope="module")
def mixed():
    """Numbers with missing values, a binary column and a category."""
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
@given(noise=st.floats(0, 2), mixup=st.floats(0, 1), seed=st.integers(0, 1000))
def test_missing_values_categories_and_binary_columns_keep_their_values(mixed, noise, mixup, seed):
    task = task_of(*mixed)
    augmented = augmented_rows(task, Augmentation(2.0, noise, mixup), 100, seed)
    origin = task.matrix[augmented.origin]
    assert np.array_equal(np.isnan(augmented.matrix[:, 0]), np.isnan(origin[:, 0]))
    assert set(np.unique(augmented.matrix[:, 1])) <= {0.0, 1.0}
    assert set(np.unique(augmented.matrix[:, 2])) <= {0.0, 1.0, 2.0}
    assert set(augmented.origin) <= set(task.train)


def test_without_noise_and_mixup_the_rows_are_training_rows(mixed):
    task = task_of(*mixed)
    augmented = augmented_rows(task, Augmentation(noise=0.0, mixup=0.0), 50, 1)
    assert np.array_equal(augmented.matrix, task.matrix[augmented.origin], equal_nan=True)


def test_noise_is_relative_to_the_standard_deviation_of_the_column():
    X = np.random.default_rng(0).normal(size=(500, 2)) * [1.0, 1000.0]
    task = task_of(X, X[:, 0])
    augmented = augmented_rows(task, Augmentation(noise=0.1, mixup=0.0), 5000, 0)
    error = (augmented.matrix - task.matrix[augmented.origin]).std(axis=0)
    assert error == pytest.approx(0.1 * X.std(axis=0), rel=0.05)


def test_mixup_rows_lie_between_two_training_rows():
    X = np.random.default_rng(0).normal(size=(40, 3))
    task = task_of(X, X[:, 0])
    augmented = augmented_rows(task, Augmentation(noise=0.0, mixup=1.0), 200, 0).matrix
    near = np.abs(
        augmented - augmented_rows(task, Augmentation(noise=0.0, mixup=0.0), 200, 0).matrix
    )
    assert (augmented >= X.min(axis=0)).all()
    assert (augmented <= X.max(axis=0)).all()
    assert near.max() > 0.5


def test_sparse_rows_stay_sparse():
    X = sparse.random(80, 30, density=0.1, random_state=0, format="csr")
    task = task_of(X, np.arange(80) % 2)
    augmented = augmented_rows(task, Augmentation(), 100, 0).matrix
    assert sparse.issparse(augmented)
    assert augmented.nnz < 0.4 * augmented.shape[0] * augmented.shape[1]
    same = augmented_rows(task, Augmentation(noise=0.0, mixup=0.0), 100, 0)
    assert abs(same.matrix - task.matrix[same.origin]).max() == 0


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"rows_per_row": 0}, "rows_per_row"),
        ({"noise": -1}, "noise"),
        ({"mixup": 2}, "mixup"),
        ({"weight": 0}, "weight"),
    ],
)
def test_an_augmentation_checks_itself(options, name):
    with pytest.raises(ValueError, match=name):
        Augmentation(**options)


class Coin:
    """A teacher with the same probabilities for every row."""

    name = "coin"

    def predict(self, task, matrix):
        return np.tile([0.75, 0.25, 0.0], (matrix.shape[0], 1))


def test_an_augmented_row_has_a_copy_for_every_possible_class(mixed):
    X, _ = mixed
    y = np.arange(60) % 3
    task = task_of(X, y, weight=np.arange(1.0, 61.0), fraction=0.2)
    augmentation = Augmentation(noise=0.1, weight=0.5)
    more = teachers.distillation_task(task, Coin(), augmentation, 10, seed=3)
    augmented = augmented_rows(task, augmentation, 10, 3)
    assert np.array_equal(more.valid, task.valid)
    assert np.array_equal(more.y[:60], task.y)
    added = more.train[len(task.train) :]
    assert more.y[added, 0].tolist() == [0.0, 1.0] * 10
    expected = np.outer(0.5 * task.weight[augmented.origin], [0.75, 0.25]).ravel()
    assert more.weight[added] == pytest.approx(expected)


def test_networks_learn_and_are_reproducible(mixed):
    task = task_of(*mixed, fraction=0.2)
    first, second = (teachers.train_networks(task, 0, lambda: False) for _ in range(2))
    outputs = first.predict(task, task.matrix)
    assert outputs.shape == (60, 2)
    assert (outputs.argmax(axis=1) == task.y[:, 0]).mean() > 0.85
    assert np.array_equal(outputs, second.predict(task, task.matrix))


def test_networks_predict_numbers_in_the_units_of_the_task():
    X = np.random.default_rng(0).normal(size=(300, 2))
    task = task_of(X, 1000 + 50 * X[:, 0])
    networks = teachers.train_networks(task, 0, lambda: False)
    assert np.abs(networks.predict(task, task.matrix) - task.y).mean() < 0.2


def test_networks_honor_weights():
    X = np.repeat(np.arange(4.0), 25)[:, None] + np.random.default_rng(0).normal(0, 0.01, (100, 1))
    y = np.tile([0, 1], 50)
    task = task_of(X, y, weight=np.where(y == 1, 50.0, 1.0))
    networks = teachers.train_networks(task, 0, lambda: False)
    assert (networks.predict(task, task.matrix).argmax(axis=1) == 1).all()


def test_without_time_or_for_a_sparse_table_there_are_no_networks(mixed):
    task = task_of(*mixed)
    assert teachers.train_networks(task, 0, lambda: True) is None
    wide = replace(task, matrix=sparse.csr_matrix(np.nan_to_num(task.matrix)))
    assert teachers.train_networks(wide, 0, lambda: False) is None


def test_networks_stop_when_they_overfit():
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 30))
    task = task_of(X, X[:, 0] + 3 * random.normal(size=120), fraction=0.3)
    part = teachers.train_networks(task, 0, lambda: False)
    whole = replace(task, valid=task.valid[:0])
    assert part.n_epochs < 50
    assert teachers.train_networks(whole, 0, lambda: False, part).n_epochs == part.n_epochs


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_user_teacher_is_called_with_its_own_kind_of_table(kind):
    random = np.random.default_rng(0)
    columns = {"a": random.choice(["p", "q"], 80), "b": random.choice(["r", "s"], 80)}
    X = kind(columns)
    y = np.where(columns["a"] == "p", "yes", "no")
    task = task_of(X, y)
    pipeline = make_pipeline(OneHotEncoder(), LogisticRegression())
    teacher = teachers.fitted_teacher(task, pipeline, X, y)
    probabilities = teacher.predict(task, task.matrix)
    assert (probabilities.argmax(axis=1) == task.y[:, 0]).all()
    assert teacher.name == "Pipeline"
    assert not hasattr(pipeline[-1], "coef_")  # the user's estimator was cloned


def test_a_fitted_teacher_is_used_as_it_is(mixed):
    X, y = mixed[0][["flag"]].to_numpy(dtype=float), mixed[1]
    task = task_of(X, y)
    fitted = RandomForestClassifier(random_state=0).fit(X, np.full(60, "low"))
    teacher = teachers.fitted_teacher(task, fitted, X, y)
    assert teacher.estimator is fitted
    assert (teacher.predict(task, task.matrix)[:, 1] == 1).all()


def test_a_teacher_without_probabilities_gives_hard_labels():
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = (X[:, 0] > 0).astype(int)
    task = task_of(X, y)
    teacher = teachers.fitted_teacher(task, Perceptron(), X, y)
    assert set(np.unique(teacher.predict(task, task.matrix))) == {0.0, 1.0}


def test_a_teacher_of_other_classes_is_refused():
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = (X[:, 0] > 0).astype(int)
    other = LogisticRegression().fit(X, y + 1)
    with pytest.raises(ValueError, match=r"fitted on a class .*2.* not in y \(classes: \[0, 1\]\)"):
        TreeClassifier(
            leaves="constant", teacher=other, time_limit=None, max_trials=20, max_depth=2
        ).fit(X, y)


@pytest.mark.parametrize("is_fitted", [True, False])
def test_a_teacher_that_does_not_take_the_table_is_named(is_fitted):
    X = pd.DataFrame({"a": np.arange(60.0), "b": ["up", "down", "up"] * 20})
    y = np.arange(60) % 2
    teacher = LogisticRegression()
    if is_fitted:
        teacher.fit(X[["a"]], y)
    what = "predict for" if is_fitted else "be fitted on"
    message = (
        f"(?s)The teacher LogisticRegression cannot {what} this table: .*a pipeline that encodes"
    )
    with pytest.raises(ValueError, match=message):
        TreeClassifier(
            leaves="constant", teacher=teacher, time_limit=None, max_trials=20, max_depth=2
        ).fit(X, y)


def test_a_teacher_of_another_number_of_targets_is_refused():
    X = np.random.default_rng(0).normal(size=(50, 2))
    other = LinearRegression().fit(X, X)
    with pytest.raises(ValueError, match=r"50|expected 1 target"):
        TreeRegressor(
            leaves="constant", teacher=other, time_limit=None, max_trials=20, max_depth=2
        ).fit(X, X[:, 0])


def test_weights_reach_an_unfitted_teacher():
    X = np.zeros((40, 1)) + np.arange(40)[:, None] % 2
    y = np.tile([0, 0, 1, 1], 10)
    task = task_of(X, y, weight=np.where(y == 1, 9.0, 1.0))
    teacher = teachers.fitted_teacher(task, LogisticRegression(), X, y)
    assert teacher.predict(task, task.matrix)[:, 1].min() > 0.7


def test_ctrl_c_while_a_network_learns_is_no_warning(mixed, monkeypatch):
    task = task_of(*mixed, fraction=0.2)

    def interrupted(self, *args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "sklearn.neural_network._multilayer_perceptron.BaseMultilayerPerceptron._backprop",
        interrupted,
    )
    with pytest.raises(KeyboardInterrupt):
        teachers.train_networks(task, 0, lambda: False)
