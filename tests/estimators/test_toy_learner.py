"""What it takes to add a learner: one class, one entry of the registry, and a pair of estimators.

The toy of this module knows nothing but the interface of learners. Where it gets along, so will a
new learner; `test_every_learner` asks of it what it asks of all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

import hardwood
from hardwood import GreedyTreeClassifier, TAORegressor, refine
from hardwood.estimators.base import SingleTreeClassifier, SingleTreeRegressor
from hardwood.learn.finish import routed_leaves
from hardwood.learn.greedy import one_hot
from hardwood.learn.learner import Learned, Learner, Run, Start
from hardwood.learn.registry import LEARNERS
from hardwood.learn.start import start_tree
from hardwood.learn.task import Task
from hardwood.learn.units import splits_in_raw_units, start_parameters
from hardwood.model import ObliqueTree
from hardwood.parameters import real_field


@dataclass(frozen=True)
class Toy(Learner):
    """One split along the difference of the means; the leaves of a start are learned anew."""

    losses: ClassVar[frozenset[str]] = frozenset({"squared_error", "logistic", "cross_entropy"})

    smallest_side: float = real_field(0.05, 0, 0.5)

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        run, target, weight = run, task.target[task.train], task.weight[task.train]
        if task.kind == "classification":
            target = one_hot(target[:, 0], task.n_targets)
        mean = np.average(target, axis=0, weights=weight)
        tree = start_tree(start, task, run)
        if tree is None:
            splits = self._split(task.encoded(task.train), target - mean, weight.astype(float))
            children = np.array([[-1, -2]])[: len(splits[0])]
        else:
            splits, children = start_parameters(tree, task)[:2], tree.children
        tree = ObliqueTree(
            *splits_in_raw_units(*splits, task),
            children,
            np.tile(mean, (len(children) + 1, 1)),
            schema=task.schema,
            task=task.kind,
            classes=task.labels,
            target_names=task.target_names,
        )
        leaf = routed_leaves(tree, task.matrix, task.train, run.n_jobs)
        values = tree.values.copy()
        for one in np.unique(leaf):
            values[one] = np.average(target[leaf == one], axis=0, weights=weight[leaf == one])
        return Learned(tree.replace(values=values), history=None)

    def _split(
        self, x: np.ndarray, residual: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights (1, c) and bias (1,); of no split where there is no threshold to choose from."""
        goal = residual[:, np.argmax(weight @ residual**2)]
        direction = (weight * goal) @ (x - np.average(x, axis=0, weights=weight))
        direction /= max(np.linalg.norm(direction), 1e-12)
        order = np.argsort(x @ direction, kind="stable")
        place = (x @ direction)[order]
        left = np.cumsum(weight[order])[:-1]
        gain = np.cumsum((weight * goal)[order])[:-1] ** 2 / left / (weight.sum() - left)
        side = np.minimum(left, weight.sum() - left) / weight.sum()
        gain[(np.diff(place) < 1e-6) | (side < self.smallest_side)] = -1
        best = int(np.argmax(gain))
        n_splits = int(gain[best] >= 0)
        threshold = (place[best] + place[best + 1]) / 2
        return direction[None][:n_splits], np.array([-threshold])[:n_splits]


@dataclass(kw_only=True, eq=False, repr=False)
class _ToyParameters:
    _learner_type: ClassVar[type[Learner]] = Toy

    smallest_side: float = 0.05
    init: Any = None
    n_jobs: int | None = None
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = tags.classifier_tags or tags.regressor_tags
        own.poor_score = True  # one split is too few for three classes
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class ToyClassifier(_ToyParameters, SingleTreeClassifier):
    loss = "log_loss"

    class_weight: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class ToyRegressor(_ToyParameters, SingleTreeRegressor):
    loss = "squared_error"


# The shares of classes in a leaf may be exactly 0 or 1.
SHARES = {"check_classifiers_multilabel_output_format_predict_proba": "shares may be 0 or 1"}


@parametrize_with_checks([ToyClassifier(), ToyRegressor()], expected_failed_checks=lambda _: SHARES)
def test_scikit_learn_has_nothing_to_object(estimator, check):
    check(estimator)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(LEARNERS, "toy", Toy)


def test_it_learns():
    assert ToyClassifier().fit(*load_iris(return_X_y=True)).score(*load_iris(return_X_y=True)) > 0.6
    X, y = load_diabetes(return_X_y=True)
    model = ToyRegressor().fit(X, y)
    assert model.tree_.n_splits == 1
    assert model.score(X, y) > 0.25
    assert model.tree_.record["learner"] == "ToyRegressor"
    assert not hasattr(model, "history_")


def test_a_loss_that_it_does_not_minimize_is_named():
    model = ToyRegressor()
    model.loss = "huber"
    with pytest.raises(ValueError, match="This learner cannot minimize loss='huber'"):
        model.fit(*load_diabetes(return_X_y=True))


def test_its_parameters_are_checked_by_the_learner():
    with pytest.raises(ValueError, match="smallest_side must be a number in"):
        ToyClassifier(smallest_side=2).fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize("init", ["axis", "tree"])
def test_it_goes_on_from_a_start(init):
    X, y = load_iris(return_X_y=True)
    start = GreedyTreeClassifier(max_depth=2).fit(X, y)
    model = ToyClassifier(init=start if init == "tree" else init).fit(X, y)
    assert model.tree_.n_splits >= 2
    assert model.score(X, y) > 0.9


def test_it_refines_by_its_name():
    X, y = load_iris(return_X_y=True)
    start = GreedyTreeClassifier(max_depth=2).fit(X, y)
    spoiled = start.tree_.replace(values=start.tree_.values[:, ::-1])
    refined = refine(spoiled, X, y, learners=["toy", "tao"], random_state=0)
    assert [stage.name for stage in refined.stages] == ["start", "toy", "tao"]
    assert refined.stages[1].kept
    assert refined.stages[1].validation_score > 0.8
    assert refined.stages[1].tree.record["learner"] == "Toy"


def test_refining_does_not_give_it_linear_leaves():
    X, y = load_diabetes(return_X_y=True)
    tree = TAORegressor(leaves="linear", max_depth=1, l1=1.0, l2=1.0, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="'toy', which learns constant leaves"):
        refine(tree, X, y, learners=["toy"], random_state=0)


def test_its_tree_is_one_like_all_others(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    tree = ToyClassifier().fit(X, y).tree_
    tree.save(tmp_path / "toy.hardwood")
    assert hardwood.load(tmp_path / "toy.hardwood") == tree
    assert "petal" in tree.to_text()
