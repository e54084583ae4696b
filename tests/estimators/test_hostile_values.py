"""Values that real tables, weights and parameters hold now and then: a clear error, in time."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood import DGTClassifier, DGTRegressor, Training


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
        ("restarts", 2**33),
        ("n_jobs", 0),
        ("n_jobs", 1.5),
        ("n_jobs", "a"),
        ("verbose", None),
    ],
)
def test_parameters_out_of_range_are_named(table, name, value):
    with pytest.raises(ValueError, match=name):
        DGTClassifier(**{name: value}).fit(*table)


@pytest.mark.parametrize("options", [{"batch_size": 2**40}, {"n_jobs": 2**20}, {"n_jobs": -1}])
def test_large_parameters_mean_all_there_is(table, options):
    assert DGTClassifier(max_epochs=3, random_state=0, **options).fit(*table).n_iter_ == 3


@pytest.mark.parametrize("wrong", [{"schedule_restarts": 1.5}, {"epsilon": np.inf}])
def test_training_options_out_of_range_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Training(**wrong)


def test_endless_patience_is_patience_to_the_end(table):
    model = DGTClassifier(max_epochs=5, training=Training(patience=np.inf), restarts=1)
    assert model.fit(*table).n_iter_ == 5


@pytest.mark.parametrize("options", [{"learning_rate": 1e300}, {"l2": 1e300}])
def test_divergence_is_called_that(table, options):
    with pytest.raises(ValueError, match="diverged"):
        DGTRegressor(max_epochs=20, **options).fit(*table)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda f, y: (f[:, 0] * np.nan, f - y), "finite loss per row"),
        (lambda f, y: (f[:1, 0], f - y), "finite loss per row"),
        (lambda f, y: (f[:, 0], f - y, f), "3 things"),
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


def test_momentum_is_the_optimisers_own_by_default(table):
    def weights(**options):
        model = DGTClassifier(max_epochs=5, restarts=1, random_state=0, **options).fit(*table)
        return model.tree_.weights.tolist()

    adam = Training(optimizer="adam")
    assert weights(training=adam) == weights(training=adam, momentum=0.9)
    assert weights(training=adam) != weights(training=adam, momentum=0.0)
    assert weights() == weights(momentum=0.0)
