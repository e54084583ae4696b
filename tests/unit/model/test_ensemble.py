"""The soft ensemble: properties, predictions, and invalid arguments."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensembles import ensembles, make_ensemble, scores_by_hand
from hardwood.errors import ModelFileError, TableError
from hardwood.model import ObliqueForest, ObliqueTree, TreeEnsemble, dumps, load, loads
from hardwood.model.cost import reached_shares, remaining
from hardwood.model.kinds.soft_ensemble import MAX_STEEPNESS
from hardwood.table import Schema
from reference import tel
from trees import columns_of, make_rows

seeds = st.integers(0, 2**32 - 1)


def step(**options: Any) -> TreeEnsemble:
    """Return one split at width 1, from 0 to 8, over a band of width 2."""
    arguments: dict[str, Any] = {
        "weights": [[[1.0]]],
        "bias": [[-1.0]],
        "values": [[[0.0], [8.0]]],
        "gamma": 2.0,
        "schema": Schema.numeric(1, ["width"]),
        "task": "regression",
    }
    return TreeEnsemble(**(arguments | options))


# Properties


def test_sizes_are_totals():
    ensemble = make_ensemble(0, n_trees=3, depth=4, k=2)
    assert (ensemble.n_trees, ensemble.depth, ensemble.n_outputs) == (3, 4, 2)
    assert (ensemble.n_splits, ensemble.n_leaves, ensemble.n_nodes) == (45, 48, 93)
    assert ensemble.n_features == 4
    assert ensemble.feature_names == ("f0", "f1", "f2", "f3")
    assert ensemble.classes == ("class 0", "class 1")
    assert ensemble.target_names == ("species",)
    assert (ensemble.task, ensemble.link, ensemble.activation) == (
        "classification",
        "softmax",
        "smooth_step",
    )
    assert type(ensemble.gamma) is float
    assert ensemble.record == {"seed": 7}
    assert not ensemble.has_linear_leaves


def test_the_repr_describes_it():
    assert repr(make_ensemble(0, gamma=0.25)) == (
        "TreeEnsemble(sum of 3 soft trees, 3 classes, 4 features, depth 3, smooth_step, gamma 0.25)"
    )
    assert "3 labels" in repr(make_ensemble(0, task="multilabel", activation="logistic"))


def test_it_is_immutable_and_not_hashable():
    ensemble = make_ensemble(0)
    with pytest.raises(AttributeError, match="cannot set 'gamma'; make a new ensemble"):
        ensemble.gamma = 2.0
    with pytest.raises(AttributeError, match="cannot delete"):
        del ensemble.weights
    with pytest.raises(TypeError, match="unhashable"):
        hash(ensemble)
    for name in ("weights", "bias", "values", "counts"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(ensemble, name)[...] = 0
    ensemble.record["seed"] = 99
    assert ensemble.record == {"seed": 7}


def test_its_arrays_are_copies():
    weights = np.ones((1, 1, 1))
    ensemble = step(weights=weights)
    weights[:] = 5
    assert ensemble.weights.tolist() == [[[1.0]]]


@settings(max_examples=40)
@given(ensembles())
def test_equal_means_equal_in_everything(ensemble: TreeEnsemble) -> None:
    assert ensemble == ensemble.replace() == copy.deepcopy(ensemble)
    for again in (
        pickle.loads(pickle.dumps(ensemble)),
        loads(dumps(ensemble)),
        TreeEnsemble.from_json(ensemble.to_json()),
        TreeEnsemble.from_json(ensemble.to_json().encode()),
    ):
        assert again == ensemble
        assert repr(again) == repr(ensemble)
    assert dumps(loads(dumps(ensemble))) == dumps(ensemble)
    assert ensemble != ensemble.hard_tree(0)
    for change in (
        {"gamma": ensemble.gamma * 2},
        {"bias": ensemble.bias + 1},
        {"values": ensemble.values + 1},
        {"weights": ensemble.weights + 1},
        {"activation": "logistic" if ensemble.activation != "logistic" else "smooth_step"},
        {"record": {"other": 1}},
        {"counts": None if ensemble.counts is not None else np.ones_like(_nodes(ensemble))},
        {"target_names": None},
    ):
        assert ensemble != ensemble.replace(**change)


def _nodes(ensemble: TreeEnsemble) -> np.ndarray:
    return np.zeros((ensemble.n_trees, ensemble.n_nodes // ensemble.n_trees))


def test_classes_of_different_types_are_different():
    numbers = make_ensemble(0, k=2).replace(classes=[0, 1])
    assert numbers != numbers.replace(classes=[False, True])
    assert numbers.link == "softmax"


# Invalid arguments


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weights": [[1.0]]}, r"weights must have shape \(any, any, 1\)"),
        ({"weights": [[[1.0, 2.0]]]}, r"weights must have shape \(any, any, 1\)"),
        ({"weights": [[["x"]]]}, "weights must hold real numbers"),
        ({"weights": [[[np.nan]]]}, r"weights must be finite, but weights\[0, 0, 0\]"),
        ({"weights": np.zeros((0, 1, 1))}, "needs 1 to 100000 trees, got 0"),
        ({"weights": np.zeros((1, 0, 1))}, "0 splits do not fill a perfect tree of depth 1 to 20"),
        ({"weights": np.zeros((1, 2, 1))}, "2 splits do not fill a perfect tree"),
        ({"weights": np.zeros((1, 2**21 - 1, 1))}, "2097151 splits do not fill"),
        ({"bias": [[0.0, 1.0]]}, r"bias must have shape \(1, 1\)"),
        ({"bias": [[np.inf]]}, "bias must be finite"),
        ({"values": [[[0.0]]]}, r"values must have shape \(1, 2, any\)"),
        ({"values": np.zeros((1, 2, 0))}, "at least one column"),
        ({"values": [[[0.0], [np.nan]]]}, "values must be finite"),
        ({"counts": [[1.0, 2.0]]}, r"counts must have shape \(1, 3\)"),
        ({"counts": [[1.0, 2.0, -1.0]]}, r"counts must not be negative, but counts\[0, 2\]"),
        ({"gamma": 0}, "gamma must be finite and above 0, not 0"),
        ({"gamma": -1.0}, "gamma must be finite and above 0"),
        ({"gamma": float("nan")}, "gamma must be finite and above 0"),
        ({"gamma": float("inf")}, "gamma must be finite and above 0"),
        ({"gamma": 10**400}, "gamma must be a float64"),
        ({"activation": "relu"}, "activation must be one of 'smooth_step', 'smooth_step_5', 'log"),
        ({"activation": ["logistic"]}, "activation must be one of"),
        ({"link": "softmax"}, "link of a regression ensemble must be 'identity' or 'exp', not"),
        ({"task": "ranking"}, "task must be"),
        ({"task": "classification"}, "needs its classes"),
        ({"task": "classification", "classes": ["a", "b"]}, "1 column for 2 classes"),
        ({"classes": ["a"]}, "has no classes"),
        ({"target_names": ["a", "b"]}, "expected 1 target name"),
        ({"weights": [[[1e18]]]}, "split 0 of tree 0 is too steep to be soft"),
        ({"gamma": 1e-300}, "too steep to be soft: .* Use a larger gamma"),
        ({"weights": [[[1e300]]], "gamma": 1e-300}, "too steep"),
        ({"bias": [[-1e18]]}, "too steep"),
    ],
)
def test_the_error_says_what_is_wrong(change: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        step(**change)
    assert len(str(caught.value)) < 500


def test_scores_beyond_float64_are_refused():
    largest = np.finfo(np.float64).max
    values = np.array([[[0.0], [largest]]])
    assert np.isfinite(step(values=values).predict([[9.0]])).all()
    with pytest.raises(ValueError, match="add up to more than the maximum of float64"):
        step(weights=np.ones((2, 1, 1)), bias=np.zeros((2, 1)), values=np.repeat(values, 2, 0))


@pytest.mark.parametrize("gamma", [True, "1", None, 1j])
def test_a_width_is_a_number(gamma: Any) -> None:
    with pytest.raises(TypeError, match="gamma must be a number"):
        step(gamma=gamma)


def test_the_steepest_allowed_split_works():
    soft = step(weights=[[[MAX_STEEPNESS / 2]]], bias=[[0.0]], gamma=0.5)
    x = [[-1e300], [-1.0], [0.0], [1e-30], [1.0], [1e300]]
    assert soft.predict(x).tolist() == [0.0, 0.0, 4.0, pytest.approx(4.0, abs=1e-6), 8.0, 8.0]


def test_only_whole_numbers_count_trees():
    ensemble = make_ensemble(0)
    for index in (-1, 3):
        with pytest.raises(IndexError, match="trees 0 to 2"):
            ensemble.hard_tree(index)


# Predictions


def test_the_band_is_as_wide_as_gamma():
    soft = step()
    x = [[-9.0], [0.0], [0.5], [1.0], [1.5], [2.0], [9.0]]
    assert soft.predict(x).tolist() == [0, 0, 1.25, 4, 6.75, 8, 8]
    assert soft.reachable_leaves(x).tolist() == [[1], [1], [2], [2], [2], [1], [1]]
    assert soft.reachable_leaves(x).dtype == np.int32
    fifth = step(activation="smooth_step_5")
    assert fifth.predict(x).tolist() == [0, 0, 0.828125, 4, 7.171875, 8, 8]
    logistic = step(activation="logistic")
    expected = 8 / (1 + np.exp(-(np.array(x)[:, 0] - 1) / 2))
    np.testing.assert_allclose(logistic.predict(x), expected, rtol=1e-6, atol=1e-6)
    assert (logistic.reachable_leaves(x) == 2).all()


def test_classes_labels_and_numbers():
    ensemble = make_ensemble(1, mixed=True)
    rows = make_rows(1, ensemble.schema, 50)
    probabilities = ensemble.predict_proba(rows)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    labels = np.array(ensemble.classes)[probabilities.argmax(axis=1)]
    assert ensemble.predict(rows).tolist() == labels.tolist()
    yes = make_ensemble(1, task="multilabel")
    rows = make_rows(1, yes.schema, 50)
    np.testing.assert_array_equal(yes.predict(rows), yes.predict_proba(rows) >= 0.5)
    numbers = make_ensemble(1, task="regression")
    np.testing.assert_allclose(
        numbers.predict(rows), scores_by_hand(numbers, rows), rtol=1e-4, atol=1e-5
    )
    with pytest.raises(TypeError, match="predict_proba needs an ensemble for classes or labels"):
        numbers.predict_proba(rows)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
def test_one_row_in_any_form(rng, mixed, task):
    ensemble = make_ensemble(rng, mixed=mixed, task=task)
    rows = make_rows(rng, ensemble.schema, 20)
    for row, expected in zip(rows, ensemble.predict(rows), strict=True):
        forms = [row, tuple(row), dict(zip(ensemble.feature_names, row, strict=True))]
        if not mixed:
            forms.append(np.array(row, dtype=np.float64))
        for form in forms:
            answer = ensemble.predict_one(form)
            np.testing.assert_array_equal(answer, expected)
            assert type(answer) is (str if task == "classification" else np.ndarray)


def test_tables_are_checked_like_those_of_trees():
    soft = step()
    assert type(soft.predict_one(np.array([1.5]))) is float
    with pytest.raises(TableError, match="column 'width' holds infinity"):
        soft.predict(np.array([[np.inf]]))
    with pytest.raises(TableError, match="holds infinity"):
        soft.predict_one(np.array([np.inf]))
    with pytest.raises(TableError, match="TreeEnsemble"):
        soft.predict(np.zeros((3, 2)))
    with pytest.raises(TableError, match="no value for 'width'"):
        soft.predict_one({"length": 1.0})
    with pytest.raises(ValueError, match="n_jobs must be"):
        soft.predict(np.zeros((3, 1)), n_jobs=0)


@settings(max_examples=30)
@given(ensembles(), seeds)
def test_a_prediction_does_not_depend_on_other_rows(ensemble: TreeEnsemble, seed: int) -> None:
    rows = make_rows(seed, ensemble.schema, 12)
    with np.errstate(over="ignore"):  # exp of a large sum
        together = ensemble.predict(rows)
        np.testing.assert_array_equal(ensemble.predict(rows, n_jobs=2), together)
        for row, answer in zip(rows, together, strict=True):
            np.testing.assert_array_equal(ensemble.predict_one(row), answer)
    reached = ensemble.reachable_leaves(rows)
    assert reached.shape == (12, ensemble.n_trees)
    assert ((reached >= 1) & (reached <= 2**ensemble.depth)).all()


# Hardening


@settings(max_examples=30)
@given(ensembles(), seeds)
def test_a_hard_tree_takes_the_more_probable_side(ensemble: TreeEnsemble, seed: int) -> None:
    rows = make_rows(seed, ensemble.schema, 30)
    t = tel.scores(columns_of(ensemble, rows), ensemble.weights, ensemble.bias)  # (n, T, m)
    far = (np.abs(t) > 1e-4).all(axis=(1, 2))
    m = t.shape[2]
    expected = np.zeros((30, ensemble.n_outputs))
    for r in range(30):
        for tree in range(ensemble.n_trees):
            node = 0
            while node < m:
                node = 2 * node + 1 + int(t[r, tree, node] >= 0)
            expected[r] += ensemble.values[tree, node - m]
    forest = ensemble.harden()
    assert (forest.combine, forest.link, forest.task) == ("sum", ensemble.link, ensemble.task)
    assert forest.classes == ensemble.classes
    assert forest.target_names == ensemble.target_names
    scores = sum(tree.predict(rows).reshape(expected.shape) for tree in forest.trees)
    np.testing.assert_allclose(scores[far], expected[far], rtol=1e-12)


def test_a_narrow_band_equals_a_hard_tree(rng):
    ensemble = make_ensemble(rng, gamma=1e-6)
    rows = make_rows(rng, ensemble.schema, 200)
    settled = (ensemble.reachable_leaves(rows) == 1).all(axis=1)
    assert settled.mean() > 0.9
    np.testing.assert_allclose(
        ensemble.harden().predict_proba(rows)[settled],
        ensemble.predict_proba(rows)[settled],
        rtol=1e-13,
    )


def test_hard_trees_are_simplified_and_named():
    ensemble = make_ensemble(0, n_trees=2, depth=2)
    weights, values = ensemble.weights.copy(), ensemble.values.copy()
    weights[0, 1] = 0  # all go right there, the bias being above 0
    values[1] = values[1, 0]  # all leaves are equal
    bias = np.abs(ensemble.bias)
    forest = ensemble.replace(weights=weights, values=values, bias=bias).harden()
    assert [tree.n_splits for tree in forest.trees] == [2, 0]
    assert forest.trees[0].target_names == (
        "score of class 0",
        "score of class 1",
        "score of class 2",
    )
    assert forest.record == {
        "seed": 7,
        "hardened": {"gamma": 1.0, "activation": "smooth_step"},
    }
    assert ensemble.hard_tree(0).n_splits == 3
    assert all(tree.counts is None for tree in forest.trees)
    assert isinstance(forest, ObliqueForest)


def test_the_cost_of_hardening_a_step():
    soft = step()
    cost = soft.hardening_cost([[0.5], [1.5], [9.0]], [0.0, 8.0, 8.0])
    assert cost.loss == "squared_error"
    assert cost.soft_loss == pytest.approx(2 * 1.25**2 / 3)
    assert cost.hard_loss == 0
    assert cost.soft_accuracy is cost.hard_accuracy is None
    assert cost.changed == pytest.approx(2 / 3)
    assert cost.reachable_leaves == pytest.approx(5 / 3)
    assert str(cost) == (
        "squared error: 1.042 soft, 0 hard (-1)\n"
        "rows with a different prediction: 66.67%\n"
        "leaves that a row reaches: 1.667 of 2"
    )
    weighed = soft.hardening_cost([[0.5], [1.5], [9.0]], [0.0, 8.0, 8.0], [0, 0, 3])
    assert (weighed.soft_loss, weighed.changed, weighed.reachable_leaves) == (0, 0, 1)


def test_errors_that_overflow_are_refused():
    with pytest.raises(TableError, match="y goes up to 8e.300 and the predictions to 8: "):
        step().hardening_cost([[0.5], [9.0]], [0.0, 8e300])


def test_hardening_classes_and_labels(rng):
    ensemble = make_ensemble(rng, gamma=4.0)
    rows = make_rows(rng, ensemble.schema, 100)
    y = rng.choice(ensemble.classes, size=100)
    weight = rng.random(100)
    cost = ensemble.hardening_cost(rows, y, weight)
    soft, hard = ensemble.predict_proba(rows), ensemble.harden().predict_proba(rows)
    place = np.searchsorted(ensemble.classes, y)
    for loss, shares in ((cost.soft_loss, soft), (cost.hard_loss, hard)):
        expected = np.average(-np.log(shares[np.arange(100), place]), weights=weight)
        assert loss == pytest.approx(expected)
    is_right = ensemble.predict(rows) == y
    assert cost.soft_accuracy == pytest.approx(np.average(is_right, weights=weight))
    assert cost.changed == pytest.approx(
        np.average(soft.argmax(axis=1) != hard.argmax(axis=1), weights=weight)
    )
    assert "accuracy: " in str(cost)
    yes = make_ensemble(rng, task="multilabel", gamma=4.0)
    rows = make_rows(rng, yes.schema, 100)
    truth = rng.integers(0, 2, size=(100, 3))
    cost = yes.hardening_cost(rows, truth)
    assert cost.hard_accuracy == pytest.approx((yes.harden().predict(rows) == truth).mean())
    other = (yes.harden().predict(rows) != yes.predict(rows)).any(axis=1).mean()
    assert cost.changed == pytest.approx(other)
    with pytest.raises(TableError, match="each value must be 0 or 1"):
        yes.hardening_cost(rows, truth + 1)
    with pytest.raises(TableError, match="X has 100 rows, y has 3"):
        yes.hardening_cost(rows, truth[:3])
    with pytest.raises(TableError, match="not a class of the model"):
        ensemble.hardening_cost(make_rows(rng, ensemble.schema, 2), ["class 0", "oak"])


# Costs


@settings(max_examples=20)
@given(ensembles(), seeds)
def test_only_reached_nodes_cost_operations(ensemble: TreeEnsemble, seed: int) -> None:
    rows = make_rows(seed, ensemble.schema, 20)
    cost = ensemble.flops(rows)
    assert ensemble.flops().worst == cost.worst
    assert cost.mean is not None
    assert cost.mean.total <= cost.worst.total
    k, reached = ensemble.n_outputs, ensemble.reachable_leaves(rows)
    shares = reached_shares(ensemble, rows)
    m = ensemble.bias.shape[1]
    if ensemble.activation == "logistic":
        assert cost.mean == cost.worst
    else:
        near = np.abs(shares[:, m:].sum() - reached.sum(axis=1).mean()) <= 0.2  # a row at an edge
        assert near
        assert ensemble.flops().mean is None
        assert cost.mean.comparisons == pytest.approx(2 * shares[:, :m].sum())
    used = np.count_nonzero(np.abs(ensemble.weights).sum(axis=2))
    assert cost.worst.comparisons == 2 * ensemble.n_splits >= 2 * used
    assert cost.worst.multiplications >= k * ensemble.n_leaves


def test_operations_of_one_step():
    cost = step().flops([[1.0], [9.0]])
    assert str(cost.worst) == "5 multiplications, 3 additions, 2 comparisons"
    assert (cost.mean.multiplications, cost.mean.additions) == (1 + 1.5 + 2 * 0.5, 1 + 1.5)


def test_sparse_rows_cost_the_same_as_dense_ones(rng):
    from scipy.sparse import csr_array

    ensemble = make_ensemble(rng)
    X = rng.normal(size=(30, 4)) * (rng.random((30, 4)) < 0.5)
    assert ensemble.flops(csr_array(X)) == ensemble.flops(X)


def test_the_remaining_size():
    assert str(remaining(make_ensemble(0, n_trees=2, depth=2))).startswith("6 of 6 splits, 8 of 8")


# Other forms


def test_the_text_explains_how_to_read_it():
    ensemble = make_ensemble(0, n_trees=5, depth=2, gamma=0.5)
    text = ensemble.to_text()
    assert text.startswith(
        "Tree ensemble: softmax of the sum of 5 soft trees, classification of species, 3 classes, "
        "4 features, depth 2, 15 splits, 20 leaves, smooth step, gamma 0.5\n"
        "Where a condition reads w.x >= t, a row with w.x within 0.25 of t takes both"
    )
    assert "Tree 3 of 5. Oblique tree: regression of score of class 0, " in text
    assert text.endswith("... 2 more trees not shown\n")
    assert ensemble.to_text(max_trees=None).count("Oblique tree:") == 5
    assert "not shown" in ensemble.to_text(max_depth=1)
    logistic = make_ensemble(0, activation="logistic", task="regression")
    assert "takes both branches at every split" in logistic.to_text()
    assert logistic.to_text().startswith("Tree ensemble: sum of 3 soft trees")


def test_saving_and_loading(tmp_path: Path) -> None:
    ensemble = make_ensemble(3, mixed=True)
    ensemble.save(tmp_path / "soft.hardwood")
    again = load(tmp_path / "soft.hardwood")
    assert isinstance(again, TreeEnsemble)
    assert again == ensemble
    rows = make_rows(1, ensemble.schema, 30)
    np.testing.assert_array_equal(again.predict_proba(rows), ensemble.predict_proba(rows))


def test_the_error_for_json_of_another_kind_names_it():
    ensemble = make_ensemble(0)
    with pytest.raises(ModelFileError, match=r"cannot read a tree .* use TreeEnsemble\.from_json"):
        ObliqueTree.from_json(ensemble.to_json())
    with pytest.raises(ModelFileError, match=r"an ensemble .* use ObliqueForest\.from_json"):
        TreeEnsemble.from_json(ensemble.harden().to_json())
