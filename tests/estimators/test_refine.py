"""`refine`: learners one after the other, kept where they help."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier

import hardwood
from hardwood import (
    DGTClassifier,
    GreedyTreeClassifier,
    GreedyTreeRegressor,
    TAOClassifier,
    TAORegressor,
    refine,
)
from hardwood.errors import FitInterruptedWarning


@pytest.fixture(scope="module")
def wedges():
    """Two classes that an oblique line parts, and a tree that cannot: 300 rows to learn from."""
    X = np.random.default_rng(0).normal(size=(600, 2))
    y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
    return X[:300], y[:300], X[300:], y[300:]


@pytest.fixture(scope="module")
def start(wedges):
    return GreedyTreeClassifier(max_depth=2).fit(*wedges[:2])


def test_a_stage_that_helps_on_the_given_validation_rows_is_kept(wedges, start):
    X, y, X_val, y_val = wedges
    refined = refine(start, X, y, learners=["tao"], X_val=X_val, y_val=y_val, random_state=0)
    first, second = refined.stages
    assert (first.name, first.kept, second.name, second.kept) == ("start", True, "tao", True)
    assert first.tree == start.tree_
    assert refined.tree_ is second.tree
    assert first.validation_score == pytest.approx(start.score(X_val, y_val))
    assert second.validation_score == pytest.approx((second.tree.predict(X_val) == y_val).mean())
    assert second.train_score == pytest.approx((second.tree.predict(X) == y).mean())
    assert second.validation_score > 0.95
    assert (refined.n_train, refined.n_validation) == (300, 300)


def test_decision_weights_of_the_start_are_kept(wedges, start):
    X, y, X_val, y_val = wedges
    weighted = start.tree_.with_threshold(0.1)
    refined = refine(weighted, X, y, learners=["tao"], X_val=X_val, y_val=y_val, random_state=0)
    assert refined.stages[1].kept
    for stage in refined.stages:
        assert stage.tree.decision_weights.tolist() == [0.1, 0.9]


class Spoiler(TAOClassifier):
    """A learner that makes any tree worse."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.tree_ = self.tree_.replace(values=self.tree_.values[:, ::-1])
        return self


def test_a_stage_that_does_not_help_is_not_kept_nor_learned_on(wedges, start):
    X, y, X_val, y_val = wedges
    tao = TAOClassifier(max_depth=2, random_state=0)
    stages = refine(
        start, X, y, learners=[Spoiler(max_depth=2), tao], X_val=X_val, y_val=y_val
    ).stages
    assert [stage.kept for stage in stages] == [True, False, True]
    assert stages[1].validation_score < 0.5
    alone = refine(start, X, y, learners=tao, X_val=X_val, y_val=y_val).stages[1]
    assert stages[2].tree == alone.tree


def test_the_validation_score_of_kept_stages_never_falls():
    X, y = load_iris(return_X_y=True)
    tree = GreedyTreeClassifier(splitter="random", max_depth=2, random_state=0).fit(X, y)
    refined = refine(tree, X, y, learners=["dgt", "tao", "non_greedy"], random_state=0)
    kept = [stage.validation_score for stage in refined.stages if stage.kept]
    assert kept == sorted(set(kept))
    assert [stage.name for stage in refined.stages] == ["start", "dgt", "tao", "non_greedy"]
    assert refined.tree_ is [stage for stage in refined.stages if stage.kept][-1].tree


def test_rows_are_held_out_if_none_are_given_and_equal_ones_stay_together(wedges, start):
    X, y = np.repeat(wedges[0], 2, axis=0), np.repeat(wedges[1], 2)
    refined = refine(start, X, y, learners=["tao"], validation_fraction=0.25, random_state=0)
    assert (refined.n_train, refined.n_validation) == (450, 150)
    again = refine(start, X, y, learners=["tao"], validation_fraction=0.25, random_state=0)
    assert again.tree_ == refined.tree_


def test_regression_with_constant_and_linear_leaves():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 3))
    y = np.where(X[:, 0] > X[:, 1], X[:, 2], -X[:, 2])
    start = GreedyTreeRegressor(max_depth=3).fit(X, y)
    refined = refine(start, X, y, learners=["tao"], random_state=0)
    assert refined.metric == "R2"
    linear = TAORegressor(max_depth=3, leaves="linear", random_state=0)
    both = refine(start, X, y, learners=[linear, "dgt"], random_state=0)
    assert [stage.tree.has_linear_leaves for stage in both.stages] == [False, True, True]
    assert both.stages[1].validation_score > refined.stages[-1].validation_score


def test_weights_names_and_a_scorer(wedges):
    X = pd.DataFrame(wedges[0], columns=["left", "right"])
    y = pd.Series(wedges[1], name="where")
    tree = GreedyTreeClassifier(max_depth=1).fit(X, y)
    refined = refine(
        tree,
        X,
        y,
        learners=["tao"],
        sample_weight=np.arange(300) % 3,
        scoring="neg_log_loss",
        random_state=0,
    )
    assert refined.metric == "neg_log_loss"
    assert refined.n_train + refined.n_validation == 200
    assert refined.tree_.schema.names == ("left", "right")
    assert refined.tree_.target_names == ("where",)


def test_it_is_a_table_in_text_frame_and_json(wedges, start):
    refined = refine(start, *wedges[:2], learners=["tao"], random_state=0)
    assert "stage" in str(refined)
    assert "yes" in str(refined)
    assert list(refined.to_frame()["name"]) == ["start", "tao"]
    assert refined.to_dict()["stages"][1]["leaves"] == refined.stages[1].tree.n_leaves


def test_verbose_prints_a_line_per_stage(wedges, start, capsys):
    refine(start, *wedges[:2], learners=["tao"], random_state=0, verbose=1)
    assert capsys.readouterr().out.startswith("tao  accuracy ")


def test_a_tree_of_scikit_learn_is_refined(wedges):
    X, y = wedges[:2]
    sklearn_tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    tree = hardwood.from_sklearn(sklearn_tree)
    assert refine(tree, X, y, learners=["tao"], random_state=0).stages[1].kept
    with pytest.raises(TypeError, match="from_sklearn"):
        refine(sklearn_tree, X, y)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"learners": ["boost"]}, ValueError, "each of learners must be one of"),
        ({"learners": [GreedyTreeClassifier()]}, TypeError, "takes init="),
        ({"learners": [DGTClassifier]}, TypeError, "takes init="),
        ({"learners": 3}, TypeError, "learners must be a sequence of names"),
        ({"learners": [TAORegressor()]}, TypeError, "expected a classifier"),
        (
            {"X_val": np.zeros((2, 2)), "y_val": ["up"]},
            ValueError,
            "X_val has 2 rows, but y_val has 1",
        ),
        ({"X_val": np.zeros((2, 2))}, ValueError, "belong together"),
        ({"validation_fraction": 0.0}, ValueError, "validation_fraction"),
        ({"scoring": "beauty"}, ValueError, "not a scikit-learn scorer"),
        (
            {"X_val": np.zeros((2, 2)), "y_val": ["up", "sideways"]},
            ValueError,
            "sideways.*not a class of the model",
        ),
    ],
)
def test_bad_input(wedges, start, options, error, message):
    with pytest.raises(error, match=message):
        refine(start, *wedges[:2], **options)


def test_a_tree_of_other_classes_is_refused(wedges, start):
    with pytest.raises(ValueError, match="tree is a tree for the classes 'down', 'up'"):
        refine(start, wedges[0], np.where(wedges[1] == "up", 1, 0))


@pytest.mark.parametrize("name", ["non_greedy", "reinforced"])
def test_a_learner_of_constant_leaves_refuses_linear_ones(name):
    X, y = load_diabetes(return_X_y=True)
    tree = TAORegressor(leaves="linear", max_depth=1, l1=1.0, l2=1.0, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=f"'{name}', which learns constant leaves"):
        refine(tree, X, y, learners=["tao", name], random_state=0)


@pytest.mark.parametrize(("learner", "n_stages"), [(DGTClassifier, 1), (TAOClassifier, 2)])
def test_ctrl_c_stops_it_and_keeps_the_stages_so_far(wedges, start, learner, n_stages):
    """An interrupted stage that has a tree is scored like any other; no stage follows it."""

    def interrupt(record):
        raise KeyboardInterrupt

    first = learner(max_depth=2, callbacks=interrupt, random_state=0)
    with pytest.warns(FitInterruptedWarning, match=f"after {n_stages - 1} stage"):
        refined = refine(start, *wedges[:2], learners=[first, "tao"], random_state=0)
    assert len(refined.stages) == n_stages
    assert refined.tree_ is [stage.tree for stage in refined.stages if stage.kept][-1]


def test_a_refined_tree_records_its_learner_and_its_loss():
    """Pruning needs the loss that a tree was learned with."""
    X, y = load_diabetes(return_X_y=True)
    start = hardwood.GreedyTreeRegressor(max_depth=2).fit(X, y)
    refined = hardwood.refine(start, X, y, learners=["tao"], random_state=0)
    record = refined.stages[1].tree.record
    assert record["learner"] == "TAO"
    assert record["parameters"]["loss"] == "squared_error"
