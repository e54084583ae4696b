"""What a row counts: weights, repetitions, order, classes. Models are compared bit for bit."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from hardwood import (
    DGTClassifier,
    DGTForestClassifier,
    DGTForestRegressor,
    DGTRegressor,
    NonGreedyTreeClassifier,
    NonGreedyTreeRegressor,
    SemanticTreeClassifier,
    SemanticTreeRegressor,
    TAOClassifier,
    TAORegressor,
    TELClassifier,
    TELRegressor,
    TreeClassifier,
    TreeRegressor,
)
from hardwood.learn import Relaxation

OPTIONS = {"max_depth": 3, "max_epochs": 25, "random_state": 3}
ESTIMATORS = [DGTClassifier, DGTRegressor]
ANNEALED = Relaxation(path="product", routing="annealed")


def alternated(Estimator, *, max_epochs=2, **options):
    """Sweeps are the passes of alternation."""
    return Estimator(max_sweeps=max_epochs, **options)


EVERY_WAY = {
    "classifier": DGTClassifier,
    "regressor": DGTRegressor,
    "layers": partial(DGTClassifier, layers=[8, 6]),
    "linear leaves": partial(DGTRegressor, leaves="linear"),
    "annealed": partial(DGTClassifier, relaxation=ANNEALED),
    "forest of classes": partial(DGTForestClassifier, n_estimators=3),
    "forest of numbers": partial(DGTForestRegressor, n_estimators=3, sample_fraction=0.6),
    "forest of linear leaves": partial(DGTForestClassifier, n_estimators=2, leaves="linear"),
    "forest on all rows": partial(DGTForestRegressor, n_estimators=2, bootstrap=False),
    "soft trees of classes": partial(TELClassifier, n_estimators=3),
    "soft trees of numbers": partial(TELRegressor, n_estimators=2, batch_norm=False),
    "non-greedy classes": NonGreedyTreeClassifier,
    "non-greedy numbers": partial(NonGreedyTreeRegressor, inference="fast", solver="sgd"),
    "searched": partial(NonGreedyTreeClassifier, nu="auto", init="axis"),
    "semantic classes": partial(SemanticTreeClassifier, noise=0.1),
    "semantic numbers": partial(SemanticTreeRegressor, n_mixed=3, leaves="linear"),
    "alternated classes": partial(alternated, TAOClassifier),
    "alternated numbers": partial(alternated, TAORegressor, leaves="linear", l1=1.0, l2=0.0),
}
every_way = pytest.mark.parametrize("Estimator", EVERY_WAY.values(), ids=EVERY_WAY)


def mixed_table(n: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.1, np.nan, rng.normal(1e6, 3.0, n).round(1)),
            "small": rng.normal(size=n).round(1),
            "kind": rng.choice(["a", "b", "c", None], n),
        }
    )
    y = ((X["small"] > 0) ^ (X["kind"] == "a")).astype(int).to_numpy()
    return X, y


def trees_of(model):
    if hasattr(model, "ensemble_"):
        return (model.ensemble_,)
    return model.forest_.trees if hasattr(model, "forest_") else (model.tree_,)


def assert_same_tree(a, b):
    assert trees_of(a) == trees_of(b)
    assert [e.train_loss for e in a.history_] == [e.train_loss for e in b.history_]


@pytest.mark.parametrize("early_stopping", [False, True])
@every_way
def test_the_order_of_rows_does_not_matter(Estimator, early_stopping):
    X, y = mixed_table()
    weight = np.random.default_rng(1).uniform(0, 2, len(y))
    p = np.random.default_rng(2).permutation(len(y))
    model = Estimator(early_stopping=early_stopping, **OPTIONS)
    a = model.fit(X, y, weight)
    b = Estimator(early_stopping=early_stopping, **OPTIONS).fit(X.iloc[p], y[p], weight[p])
    assert_same_tree(a, b)


@pytest.mark.parametrize("form", ["frame", "array", "sparse"])
@pytest.mark.parametrize("early_stopping", [False, True])
@every_way
def test_a_weight_is_that_many_rows(Estimator, early_stopping, form):
    X, y = mixed_table()
    if form != "frame":
        X = X[["number", "small"]].to_numpy()
    times = np.random.default_rng(1).integers(0, 4, len(y))
    times[:5] = 0
    order = np.random.default_rng(2).permutation(np.repeat(np.arange(len(y)), times))
    repeated = X.iloc[order] if form == "frame" else X[order]
    if form == "sparse":
        X, repeated = sparse.csr_array(np.nan_to_num(X)), sparse.csr_array(np.nan_to_num(repeated))
    a = Estimator(early_stopping=early_stopping, **OPTIONS).fit(X, y, sample_weight=times)
    b = Estimator(early_stopping=early_stopping, **OPTIONS).fit(repeated, y[order])
    assert_same_tree(a, b)
    roots = np.concatenate([np.atleast_2d(tree.counts)[:, 0] for tree in trees_of(a)])
    shares_round = hasattr(a, "ensemble_")  # of which soft trees add up many
    np.testing.assert_allclose(roots, times.sum(), rtol=1e-5 if shares_round else 0)


def test_a_level_of_no_weight_is_as_if_absent():
    X, y = mixed_table()
    X = pd.concat([X, pd.DataFrame({"number": [5.0], "small": [0.0], "kind": ["aardvark"]})])
    y = np.append(y, 1)
    weight = np.append(np.ones(len(y) - 1), 0.0)
    with_it = DGTClassifier(**OPTIONS).fit(X, y, weight)
    without = DGTClassifier(**OPTIONS).fit(X[:-1], y[:-1])
    assert_same_tree(with_it, without)


@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e200])
@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_only_ratios_of_weights_matter(Estimator, factor):
    X, y = mixed_table()
    weight = np.random.default_rng(1).integers(1, 5, len(y)).astype(float)
    a = Estimator(**OPTIONS).fit(X, y, weight)
    b = Estimator(**OPTIONS).fit(X, y, weight * factor)
    np.testing.assert_allclose(a.tree_.weights, b.tree_.weights, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(a.tree_.counts * factor, b.tree_.counts, rtol=1e-9)


def test_a_single_number_as_weight_changes_nothing():
    X, y = mixed_table()
    assert_same_tree(DGTClassifier(**OPTIONS).fit(X, y, 2.0), DGTClassifier(**OPTIONS).fit(X, y))


def test_weights_move_the_answer():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    y = np.tile([0, 1], 20)
    heavy = DGTClassifier(**OPTIONS).fit(X, y, np.where(y == 1, 9.0, 1.0))
    assert heavy.predict(X).tolist() == [1] * 40
    proba = DGTClassifier(max_depth=1, random_state=0).fit(X, y, np.where(y == 1, 9.0, 1.0))
    np.testing.assert_allclose(proba.predict_proba(X)[:, 1], 0.9, atol=0.03)


def test_class_weight_is_a_weight_per_row():
    X, y = mixed_table()
    by_class = DGTClassifier(class_weight={0: 1.0, 1: 3.0}, **OPTIONS).fit(X, y)
    by_row = DGTClassifier(**OPTIONS).fit(X, y, np.where(y == 1, 3.0, 1.0))
    np.testing.assert_array_equal(by_class.tree_.weights, by_row.tree_.weights)
    np.testing.assert_array_equal(by_class.tree_.values, by_row.tree_.values)
    assert by_class.tree_.schema == by_row.tree_.schema
    assert by_class.tree_.counts[0] == len(y)  # counts are rows, in the user's own weights


def test_a_class_of_no_weight_is_as_if_absent():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), rng.integers(0, 3, 90)
    by_class = DGTClassifier(class_weight={2: 0.0}, **OPTIONS).fit(X, y)
    by_row = DGTClassifier(**OPTIONS).fit(X, y, np.where(y == 2, 0.0, 1.0))
    np.testing.assert_array_equal(by_class.tree_.weights, by_row.tree_.weights)
    np.testing.assert_array_equal(by_class.tree_.counts, by_row.tree_.counts)
    assert by_class.classes_.tolist() == [0, 1, 2]
    assert not (by_class.predict(X) == 2).any()


def test_balanced_counts_weights():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), (rng.random(60) < 0.2).astype(int)
    times = rng.integers(1, 4, 60)
    a = DGTClassifier(class_weight="balanced", **OPTIONS).fit(X, y, times)
    b = DGTClassifier(class_weight="balanced", **OPTIONS).fit(X.repeat(times, 0), y.repeat(times))
    assert_same_tree(a, b)


def test_balanced_gives_classes_the_same_say():
    X = np.zeros((40, 1))
    X[:, 0] = np.arange(40) % 2  # tells nothing of y
    y = (np.arange(40) >= 36).astype(int)
    plain = DGTClassifier(max_depth=1, random_state=0).fit(X, y).predict_proba(X)
    balanced = DGTClassifier(max_depth=1, class_weight="balanced", random_state=0).fit(X, y)
    np.testing.assert_allclose(plain[:, 1], 0.1, atol=0.03)
    np.testing.assert_allclose(balanced.predict_proba(X)[:, 1], 0.5, atol=0.03)


def test_class_weight_is_honored_by_name():
    X, y = mixed_table()
    labels = np.where(y == 1, "yes", "no")
    model = DGTClassifier(class_weight={"yes": 1000.0, "no": 1e-4}, **OPTIONS).fit(X, labels)
    assert (model.predict(X) == "yes").mean() > 0.95


def test_out_of_bag_scores_take_a_weight_for_that_many_rows():
    X, y = mixed_table()
    times = np.random.default_rng(1).integers(1, 4, len(y))
    order = np.random.default_rng(2).permutation(np.repeat(np.arange(len(y)), times))
    for Forest in (DGTForestClassifier, DGTForestRegressor):
        a = Forest(n_estimators=5, oob_score=True, **OPTIONS).fit(X, y, sample_weight=times)
        b = Forest(n_estimators=5, oob_score=True, **OPTIONS).fit(X.iloc[order], y[order])
        assert a.oob_score_ == pytest.approx(b.oob_score_, abs=1e-12)
        name = "oob_prediction_" if Forest is DGTForestRegressor else "oob_decision_function_"
        np.testing.assert_array_equal(getattr(a, name)[order], getattr(b, name))


@pytest.mark.parametrize("n_jobs", [2, -1])
@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_threads_do_not_change_the_tree(Estimator, n_jobs):
    X, y = mixed_table(400)
    a = Estimator(n_restarts=4, n_jobs=1, **OPTIONS).fit(X, y)
    b = Estimator(n_restarts=4, n_jobs=n_jobs, **OPTIONS).fit(X, y)
    assert_same_tree(a, b)


def test_a_seed_makes_the_tree():
    X, y = mixed_table()
    fits = [DGTClassifier(**{**OPTIONS, "random_state": seed}).fit(X, y) for seed in (1, 1, 2)]
    assert_same_tree(fits[0], fits[1])
    assert fits[0].tree_ != fits[2].tree_


def test_a_generator_as_seed_moves_on():
    X, y = mixed_table()
    random = np.random.RandomState(0)
    fits = [DGTClassifier(**{**OPTIONS, "random_state": random}).fit(X, y) for _ in range(2)]
    assert fits[0].tree_ != fits[1].tree_


def test_nobody_elses_random_numbers_are_used():
    X, y = mixed_table()
    before = np.random.get_state()[1].copy()  # noqa: NPY002  # the global state is what is tested
    DGTClassifier(**OPTIONS).fit(X, y)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("Tree", [TreeClassifier, TreeRegressor])
def test_rows_beside_far_larger_weights_are_left_out(Tree):
    """Else held-out rows could have a total weight of zero in float32."""
    X, y = mixed_table(60)
    weight = np.where(np.arange(60) < 20, 1e30, 1e-30)
    options = {"time_limit": None, "max_trials": 2, "max_depth": 2, "random_state": 0}
    all_rows = Tree(**options).fit(X, y, sample_weight=weight)
    heavy = Tree(**options).fit(X[:20], y[:20], sample_weight=weight[:20])
    assert all_rows.tree_ == heavy.tree_


@pytest.mark.parametrize("Classifier", [DGTClassifier, TAOClassifier, TreeClassifier])
def test_a_class_of_negligible_weight_counts_as_one_of_weight_0(Classifier):
    X, _ = mixed_table(90)
    y = np.arange(90) % 3
    options = {"max_depth": 2, "random_state": 0}
    if Classifier is TreeClassifier:
        options |= {"time_limit": None, "max_trials": 2}
    expected = Classifier(**options, class_weight={0: 1, 1: 0, 2: 1}).fit(X, y)
    found = Classifier(**options, class_weight={0: 1, 1: 1e-300, 2: 1}).fit(X, y)
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    light = np.where(y == 2, 1e-20, 1.0)
    product = Classifier(**options, class_weight={0: 1, 1: 0, 2: 1e-20})
    with pytest.raises(ValueError, match=r"2 classes.* times the largest counts as 0"):
        product.fit(X, y, sample_weight=light)
