"""What all learners have in common, those of the registry and one simulated for the tests."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import hardwood
from estimators.test_toy_learner import Toy, ToyClassifier, ToyRegressor
from hardwood import GreedyTreeClassifier, refine
from hardwood.estimators.base import ForestEstimator
from hardwood.learn.bagging import Bagging
from hardwood.learn.finish import finished
from hardwood.learn.greedy import Greedy
from hardwood.learn.latent import Latent
from hardwood.learn.learner import Learned, Learner, Run
from hardwood.learn.registry import LEARNERS
from hardwood.learn.task import Task
from hardwood.learn.tel import TEL
from hardwood.learn.training import Epoch
from hardwood.model import ObliqueForest
from hardwood.model.base import Model
from hardwood.parameters import parameters_of

EVERY = {**LEARNERS, "toy": Toy}
NOT_ONE_HARD_TREE = (TEL, Latent)
ESTIMATORS: list[Any] = [
    ToyClassifier,
    ToyRegressor,
    *(one for name in hardwood.__all__ if hasattr(one := getattr(hardwood, name), "_learner_type")),
]
# Of the fields that a learner has, those that make a test short.
SMALL = {
    "max_depth": 2,
    "max_epochs": 3,
    "max_sweeps": 2,
    "n_estimators": 2,
    "n_restarts": 1,
    "l1": 0.01,
    "l2": 0.01,
}

every_learner = pytest.mark.parametrize("kind", EVERY.values(), ids=EVERY)
every_kind_of_task = pytest.mark.parametrize(
    "classifies", [True, False], ids=["classes", "numbers"]
)


def small(kind: type[Learner]) -> Learner:
    if kind is Latent and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    names = {each.name for each in fields(kind)}
    return kind(**{name: value for name, value in SMALL.items() if name in names})


def table(classifies: bool) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True) if classifies else load_diabetes(return_X_y=True)
    return X[::2][:100], y[::2][:100]


def task_for(learner: Learner, classifies: bool) -> Task:
    task = Task.read(*table(classifies), classifies=classifies, loss=learner.default_loss)
    return task.divided(0.2, seed=0)


def start_for(learner: Learner) -> Learner | None:
    return Greedy(max_depth=1) if learner.takes_start else None


def learned_by(kind: type[Learner], classifies: bool, **how: Any) -> Learned:
    learner = small(kind)
    return learner.fit(task_for(learner, classifies), Run(**how), start_for(learner))


@cache
def learned(kind: type[Learner], classifies: bool) -> Learned:
    return learned_by(kind, classifies)


@every_learner
def test_it_is_a_value(kind):
    learner = small(kind)
    assert learner == small(kind)
    assert hash(learner) == hash(small(kind))
    assert pickle.loads(pickle.dumps(learner)) == learner
    for each in fields(kind):
        with pytest.raises(FrozenInstanceError):
            setattr(learner, each.name, getattr(learner, each.name))


@pytest.mark.parametrize("value", [object(), "no such word", float("nan"), -float("inf"), b""])
@every_learner
def test_fields_check_themselves(kind, value):
    for each in fields(kind):
        with pytest.raises((ValueError, TypeError), match=rf"^{each.name}\b.* must be "):
            kind(**{each.name: value})


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: one.__name__)
def test_defaults_are_those_of_the_estimator(estimator):
    kind = estimator._learner_type
    made = parameters_of(kind, estimator())
    default = Bagging().base if issubclass(estimator, ForestEstimator) else kind()
    names = [each.name for each in fields(kind) if hasattr(estimator, each.name)]
    if kind is Greedy:  # whose one default is that of all tasks
        names.remove("criterion")
    assert names
    assert {n: getattr(made, n) for n in names} == {n: getattr(default, n) for n in names}


def test_every_learner_has_estimators():
    assert {one._learner_type for one in ESTIMATORS} >= set(EVERY.values())


@every_kind_of_task
@every_learner
def test_it_learns_a_bare_model(kind, classifies):
    answer = learned(kind, classifies)
    assert isinstance(answer, Learned)
    assert isinstance(answer.model, Model)
    assert not answer.model.record
    assert getattr(answer.model, "counts", None) is None
    assert not answer.interrupted
    X, y = table(classifies)
    found = answer.model.predict(X)
    assert found.shape == y.shape
    if classifies:
        assert set(found.tolist()) <= set(y.tolist())
    task = task_for(small(kind), classifies)
    whole = finished(answer, task, small(kind).record(task))
    assert whole.record["learner"] == kind.__name__
    np.testing.assert_allclose(whole.predict(X), found)


@every_kind_of_task
@every_learner
def test_a_seed_says_it_all(kind, classifies):
    assert learned_by(kind, classifies, n_jobs=2).model == learned(kind, classifies).model


@every_kind_of_task
@every_learner
def test_callbacks_hear_of_its_epochs(kind, classifies):
    heard: list[Epoch] = []
    answer = learned_by(kind, classifies, callbacks=(heard.append,))
    assert answer.model == learned(kind, classifies).model
    assert all(isinstance(epoch, Epoch) for epoch in heard)
    if answer.history is None:
        assert not heard
    else:
        assert len(heard) >= len(answer.history) > 0


@every_learner
def test_a_start_is_used_or_refused(kind):
    learner = small(kind)
    task = task_for(learner, True)
    tree = Greedy(max_depth=1).fit(task).model
    if learner.takes_start:
        for start in (tree, Greedy(max_depth=1)):
            assert learner.fit(task, Run(), start).model.predict(table(True)[0]).shape == (75,)
    else:
        with pytest.raises(ValueError, match="start"):
            learner.fit(task, Run(), tree)


@every_kind_of_task
@every_learner
def test_a_forest_of_it(kind, classifies):
    learner = small(kind)
    forest = Bagging(base=learner, n_estimators=2, member_start=start_for(learner))
    task = task_for(forest, classifies)
    if kind in NOT_ONE_HARD_TREE:
        with pytest.raises((TypeError, ValueError), match="forest"):
            forest.fit(task, Run())
        return
    answer = forest.fit(task, Run())
    assert isinstance(answer.model, ObliqueForest)
    assert len(answer.members) == 2
    X, y = table(classifies)
    whole = finished(answer, task, forest.record(task))
    assert whole.n_trees == 2
    assert whole.predict(X).shape == y.shape


@every_learner
def test_it_refines_by_its_name_where_it_takes_a_start(kind, monkeypatch):
    monkeypatch.setitem(LEARNERS, "toy", Toy)
    name = next(name for name in EVERY if EVERY[name] is kind)
    X, y = table(True)
    start = GreedyTreeClassifier(max_depth=1).fit(X, y)
    if not kind.takes_start:
        with pytest.raises(ValueError, match="each of learners must be one of"):
            refine(start, X, y, learners=[name], random_state=0)
        return
    assert refine(start, X, y, learners=[name], random_state=0).stages[1].name == name
