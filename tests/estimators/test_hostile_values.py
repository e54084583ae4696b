"""Values that real tables, weights and parameters hold now and then: a clear error, in time."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from hardwood import (
    DGTClassifier,
    DGTForestClassifier,
    DGTForestRegressor,
    DGTRegressor,
    NonGreedyTreeClassifier,
    NonGreedyTreeRegressor,
    ReinforcedTreeRegressor,
    SemanticTreeClassifier,
    SemanticTreeRegressor,
    TAOClassifier,
    TAORegressor,
    TELClassifier,
    TELRegressor,
)
from hardwood.errors import TableError
from hardwood.learn import Relaxation, Training


@pytest.fixture
def table(rng):
    X = rng.normal(size=(120, 4))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def test_missing_labels_in_a_list_are_not_a_class(table):
    X, y = table
    with pytest.raises(ValueError, match="NaN"):
        DGTClassifier().fit(X, ["a" if label else float("nan") for label in y])


def test_labels_of_several_kinds_are_refused(table):
    X, y = table
    with pytest.raises(ValueError, match=r"int.*str|Unknown label type"):
        DGTClassifier().fit(X, [1 if label else "1b" for label in y])


@pytest.mark.parametrize("estimator", [DGTClassifier, DGTRegressor])
def test_masked_targets_are_missing(table, estimator):
    X, y = table
    with pytest.raises(ValueError, match="masked"):
        estimator().fit(X, np.ma.masked_array(y, mask=np.arange(120) % 2 == 0))


def test_labels_that_a_file_cannot_hold_are_refused_before_learning(table):
    X, y = table
    labels = y.astype(np.uint64) + np.uint64(2**63 + 5)
    with pytest.raises(TypeError, match="a class must be"):
        DGTClassifier(callbacks=lambda epoch: pytest.fail("learning began")).fit(X, labels)


def test_labels_that_numpy_would_merge_are_refused(table):
    X, y = table
    with pytest.raises(ValueError, match="NUL"):
        DGTClassifier().fit(X, ["a" if label else "a\0" for label in y])


def test_weights_that_add_up_to_infinity_are_refused(table):
    with pytest.raises(ValueError, match="adds up to infinity"):
        DGTClassifier().fit(*table, sample_weight=np.full(120, 1.7e308))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_epochs", 2**31),
        ("n_restarts", 2**33),
        ("n_jobs", 0),
        ("n_jobs", 1.5),
        ("n_jobs", "a"),
        ("verbose", None),
    ],
)
def test_parameters_out_of_range_are_named(table, name, value):
    with pytest.raises(ValueError, match=name):
        DGTClassifier(**{name: value}).fit(*table)


@pytest.mark.parametrize("options", [{"batch_size": 2**40}, {"n_jobs": 1024}, {"n_jobs": -1}])
def test_large_parameters_mean_all_there_is(table, options):
    assert DGTClassifier(max_epochs=3, random_state=0, **options).fit(*table).n_iter_ == 3


@pytest.mark.parametrize("wrong", [{"schedule_restarts": 1.5}, {"epsilon": np.inf}])
def test_training_options_out_of_range_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Training(**wrong)


def test_endless_patience_is_patience_to_the_end(table):
    model = DGTClassifier(max_epochs=5, training=Training(patience=np.inf), n_restarts=1)
    assert model.fit(*table).n_iter_ == 5


def test_divergence_is_called_that(table):
    with pytest.raises(ValueError, match="diverged"):
        DGTRegressor(max_epochs=20, learning_rate=1e30).fit(*table)


@pytest.mark.parametrize("Estimator", [DGTRegressor, DGTForestRegressor, NonGreedyTreeRegressor])
def test_large_weights_of_a_start_are_no_divergence(Estimator, rng):
    X = rng.normal(size=(60, 2)) * 1e-18
    y = (X[:, 0] > 0).astype(float)
    start = NonGreedyTreeRegressor(max_depth=1, init="axis", max_epochs=1, random_state=0).fit(X, y)
    model = Estimator(max_depth=1, init=start, max_epochs=1, random_state=0).fit(X * 1e18, y)
    assert np.isfinite(model.predict(X)).all()


def test_large_numbers_are_learned_from_where_the_loss_takes_them_as_they_are(rng):
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, 1e16, 3e16)
    start = TAORegressor(max_depth=1, random_state=0).fit(X, y).tree_
    options = {"max_depth": 1, "init": start, "max_epochs": 1, "random_state": 0}
    model = DGTRegressor(loss=lambda score, target: np.sign(score - target), **options).fit(X, y)
    assert (np.abs(model.predict(X) - y) < 0.1 * y).mean() > 0.9


@pytest.mark.parametrize("name", ["learning_rate", "l1", "l2"])
def test_numbers_that_float32_cannot_hold_are_refused(table, name):
    with pytest.raises(ValueError, match=f"{name} must be a number in .* got 1e"):
        DGTRegressor(max_epochs=20, **{name: 1e300}).fit(*table)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda f, y: (f[:, 0] * np.nan, f - y), "finite loss per row"),
        (lambda f, y: (f[:1, 0], f - y), "finite loss per row"),
        (lambda f, y: (f[:, 0], f - y, f), "a tuple of length 3"),
        (lambda f, y: (f - y)[:, 0], "shape"),
        (lambda f, y: (f - y) * np.nan, "not finite"),
    ],
)
def test_a_custom_loss_that_answers_wrongly_is_told_so(table, loss, message):
    with pytest.raises(ValueError, match=message):
        DGTRegressor(loss=loss).fit(*table)


def test_early_stopping_needs_a_validation_part(table):
    with pytest.raises(ValueError, match="validation_fraction is 0"):
        DGTClassifier(early_stopping=True, validation_fraction=0.0).fit(*table)
    model = DGTClassifier(validation_fraction=0.0, max_epochs=2, random_state=0).fit(*table)
    assert {epoch.restart for epoch in model.history_} == {0}


def test_momentum_is_the_optimizers_own_by_default(table):
    def weights(**options):
        model = DGTClassifier(max_epochs=5, n_restarts=1, random_state=0, **options).fit(*table)
        return model.tree_.weights.tolist()

    adam = Training(optimizer="adam")
    assert weights(training=adam) == weights(training=adam, momentum=0.9)
    assert weights(training=adam) != weights(training=adam, momentum=0.0)
    assert weights() == weights(momentum=0.0)


# Every way of learning, on every odd table

QUICK = {"max_depth": 3, "max_epochs": 8, "random_state": 0}
ANNEALED = Relaxation(path="product", routing="annealed")


def alternated(Estimator, *, max_epochs=2, **options):
    """Sweeps are the passes of alternation."""
    return Estimator(max_sweeps=max_epochs, **options)


WAYS = {
    "forest of classes": (partial(DGTForestClassifier, n_estimators=3, oob_score=True), "class"),
    "forest of numbers": (partial(DGTForestRegressor, n_estimators=3, oob_score=True), "number"),
    "forest of labels": (
        partial(DGTForestClassifier, n_estimators=3, combine="vote", leaves="linear"),
        "labels",
    ),
    "linear classes": (partial(DGTClassifier, leaves="linear"), "class"),
    "linear numbers": (partial(DGTRegressor, leaves="linear"), "number"),
    "linear counts": (partial(DGTRegressor, leaves="linear", loss="poisson"), "count"),
    "layers": (partial(DGTClassifier, layers=[20, 20]), "class"),
    "annealed": (partial(DGTRegressor, relaxation=ANNEALED), "number"),
    "labels": (DGTClassifier, "labels"),
    "soft trees of classes": (partial(TELClassifier, n_estimators=3), "class"),
    "soft trees of numbers": (partial(TELRegressor, n_estimators=3, gamma=0.01), "number"),
    "soft trees of counts": (partial(TELRegressor, n_estimators=2, loss="poisson"), "count"),
    "soft trees of labels": (partial(TELClassifier, activation="logistic"), "labels"),
    "non-greedy classes": (NonGreedyTreeClassifier, "class"),
    "non-greedy numbers": (partial(NonGreedyTreeRegressor, init="axis"), "number"),
    "non-greedy counts": (partial(NonGreedyTreeRegressor, loss="poisson"), "count"),
    "non-greedy labels": (partial(NonGreedyTreeClassifier, max_features_per_split=1), "labels"),
    "semantic classes": (partial(SemanticTreeClassifier, noise=0.1), "class"),
    "semantic numbers": (partial(SemanticTreeRegressor, n_mixed=3), "number"),
    "semantic counts": (partial(SemanticTreeRegressor, loss="poisson"), "count"),
    "semantic labels": (SemanticTreeClassifier, "labels"),
    "alternated classes": (partial(alternated, TAOClassifier), "class"),
    "alternated numbers": (partial(alternated, TAORegressor), "number"),
    "alternated counts": (
        partial(alternated, TAORegressor, loss="poisson", leaves="linear"),
        "count",
    ),
    "alternated labels": (partial(alternated, TAOClassifier, max_features_per_split=1), "labels"),
}


def frame(X, **columns):
    return pd.DataFrame({"a": X[:, 0], **columns})


ODD_TABLES = {
    "constant columns": lambda X: np.ones((len(X), 2)),
    "gaps": lambda X: np.where(X > 0.8, np.nan, X),
    "the same column twice": lambda X: np.hstack([X, X]),
    "as many levels as rows": lambda X: frame(X, b=[f"v{i}" for i in range(len(X))]),
    "dates": lambda X: frame(X, day=pd.date_range("2020", periods=len(X))),
    "numbers as text": lambda X: frame(X, b=[str(i % 7) for i in range(len(X))]),
    "odd names": lambda X: pd.DataFrame(X, columns=['a"b', "c\nd", "é", "🌲"]),
    "1e30": lambda X: X * 1e30,
    "1e-300": lambda X: X * 1e-300,
    "far from zero": lambda X: X + 1e9,
    "one outlier": lambda X: np.where(np.arange(len(X))[:, None] == 3, 1e12, X),
    "sparse": lambda X: sparse.csr_array(np.where(X > 0, X, 0)),
    "every other column": lambda X: np.hstack([X, X])[:, ::2],
    "float16": lambda X: X.astype(np.float16),
    "booleans": lambda X: X > 0,
    "more columns than rows": lambda X: np.hstack([X] * 50),
}


@pytest.mark.parametrize("odd", ODD_TABLES)
@pytest.mark.parametrize("way", WAYS)
def test_an_odd_table_is_learned_from(way, odd, table):
    X, y = table
    Estimator, kind = WAYS[way]
    target = {
        "class": y,
        "number": 3 * X[:, 0],
        "count": np.abs(X[:, 0]),
        "labels": np.column_stack([y, X[:, 1] > 0]),
    }[kind]
    given = ODD_TABLES[odd](X)
    model = Estimator(**QUICK).fit(given, target)
    answers = [model.predict(given)]
    if hasattr(model, "predict_proba"):
        answers.append(model.predict_proba(given))
        assert (answers[1] >= 0).all()
        assert (answers[1] <= 1).all()
    for answer in answers:
        assert np.isfinite(answer).all()
        assert len(answer) == len(X)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bad", [np.inf, "gap"])
def test_what_no_tree_learns_from_is_refused_by_every_way(way, bad, table):
    X, y = table
    Estimator, kind = WAYS[way]
    target = np.column_stack([y, y]) if kind == "labels" else y
    X = X.copy()
    X[:, 2] = np.nan if bad == "gap" else bad
    with pytest.raises(ValueError, match="no values" if bad == "gap" else "infinity"):
        Estimator(**QUICK).fit(X, target)


@pytest.mark.parametrize("weight", [1e300, 1e-300])
@pytest.mark.parametrize("Forest", [DGTForestClassifier, DGTForestRegressor])
def test_the_unit_of_weights_does_not_matter_out_of_bag(Forest, weight, table):
    X, y = table
    options = {"n_estimators": 3, "oob_score": True, **QUICK}
    plain = Forest(**options).fit(X, y)
    found = Forest(**options).fit(X, y, sample_weight=np.full(len(y), weight))
    assert found.oob_score_ == pytest.approx(plain.oob_score_, rel=1e-9)


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_the_unit_of_the_target_does_not_matter_out_of_bag(unit, table):
    X, _ = table
    y = np.round(X[:, 0], 1)
    options = {"n_estimators": 3, "oob_score": True, **QUICK}
    scores = [DGTForestRegressor(**options).fit(X, y * u).oob_score_ for u in (1.0, unit)]
    assert scores[1] == pytest.approx(scores[0], abs=0.1)
    assert 0.1 < scores[1] < 0.95


def test_rows_far_from_those_of_training_get_probabilities(table):
    X, y = table
    model = DGTClassifier(leaves="linear", **QUICK).fit(X, y)
    labels = DGTClassifier(leaves="linear", **QUICK).fit(X, np.column_stack([y, 1 - y]))
    for factor in (1e6, 1e300):
        np.testing.assert_allclose(model.predict_proba(X * factor).sum(axis=1), 1.0)
        assert np.isfinite(labels.predict_proba(X * factor)).all()


@pytest.mark.parametrize(
    "layers",
    [True, 1.0, np.array([[3]]), [True], ["a"], {3}, None, "16", b"ab", [2**16 + 1], 2**70],
)
def test_layers_that_make_no_sense_are_named(layers, table):
    with pytest.raises(ValueError, match="layers"):
        DGTClassifier(layers=layers, **QUICK).fit(*table)


@pytest.mark.parametrize("layers", [np.int64(2), np.array(2), range(6, 8), (6, 7), [65536]])
def test_layers_may_be_any_numbers(layers, table):
    assert DGTClassifier(layers=layers, **QUICK).fit(*table).n_iter_ == 8


@pytest.mark.parametrize("options", [{"layers": [8]}, {"leaves": "linear"}])
def test_every_way_calls_divergence_that(options, table):
    with pytest.raises(ValueError, match="diverged"):
        DGTRegressor(learning_rate=1e30, **QUICK, **options).fit(*table)
    with pytest.raises(ValueError, match="diverged"):
        DGTForestRegressor(n_estimators=2, learning_rate=1e30, **QUICK, **options).fit(*table)


def test_a_forest_is_no_start(table):
    forest = DGTForestClassifier(n_estimators=2, **QUICK).fit(*table)
    for init in (forest, forest.forest_):
        with pytest.raises(TypeError, match="init must be None, an ObliqueTree"):
            DGTClassifier(init=init).fit(*table)


@pytest.mark.parametrize(
    "estimator",
    [
        DGTRegressor(leaves="linear", max_depth=1, max_epochs=3),
        TAORegressor(leaves="linear", max_depth=1, max_sweeps=1, early_stopping=False),
    ],
)
def test_a_slope_beyond_float64_names_its_column(estimator, rng):
    """Numbers of 1e-7 that predict numbers of 1e307: the weight per unit is no float64."""
    X = pd.DataFrame({"wide": rng.normal(size=120), "narrow": 1e-7 * rng.normal(size=120)})
    y = 1e307 * np.sign(X["narrow"] + 1e-8 * X["wide"])
    with pytest.raises(TableError, match=r"weight of column 'narrow' exceeds float64.*Multiply"):
        clone(estimator).fit(X, y)


def test_a_reinforced_tree_may_start_from_a_single_leaf():
    X = [[0.0], [1.0], [2.0], [3.0]]
    model = ReinforcedTreeRegressor(init="axis", max_depth=2, max_epochs=2).fit(X, [1e300] * 4)
    assert model.tree_.n_splits == 0
    np.testing.assert_array_equal(model.predict(X), [1e300] * 4)
