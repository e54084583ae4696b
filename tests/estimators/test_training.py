"""Learning as an estimator drives it: losses, callbacks, restarts, starting trees, Ctrl-C."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from hardwood import DGTClassifier, DGTRegressor, ObliqueTree
from hardwood.errors import FitInterruptedWarning
from hardwood.learn import Training
from hardwood.learn.losses import CrossEntropy, Custom, Huber, Logistic, Quantile
from reference import losses as reference


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


# Losses


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", "quantile", "poisson"]
)
def test_every_loss_of_numbers_learns(loss, diabetes):
    X, y = diabetes
    model = DGTRegressor(loss=loss, max_depth=3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.35


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_a_quantile_has_that_part_of_the_rows_below_it(level):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2000, 1))
    y = X[:, 0] + rng.normal(size=2000)
    model = DGTRegressor(loss=Quantile(level), max_depth=2, random_state=0).fit(X, y)
    assert (y < model.predict(X)).mean() == pytest.approx(level, abs=0.05)


def test_robust_losses_resist_outliers():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [1.0]], 200, axis=0) + rng.normal(0, 0.01, size=(400, 1))
    clean = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    y = clean + rng.normal(0, 0.05, 400)
    y[::20] += 100.0
    errors = {}
    for loss in ("squared_error", "absolute_error", Huber(0.1)):
        model = DGTRegressor(loss=loss, max_depth=1, early_stopping=False, random_state=0).fit(X, y)
        errors[str(loss)] = np.abs(model.predict(X) - clean).mean()
    assert errors["absolute_error"] < 0.5
    assert errors[str(Huber(0.1))] < 0.5 * errors["squared_error"]


def test_poisson_predicts_rates():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1500, 1))
    y = rng.poisson(np.where(X[:, 0] > 0, 8.0, 0.5))
    model = DGTRegressor(loss="poisson", max_depth=1, random_state=0).fit(X, y)
    low, high = model.predict([[-0.9], [0.9]])
    assert low == pytest.approx(0.5, abs=0.3)
    assert high == pytest.approx(8.0, rel=0.15)


@pytest.mark.parametrize("factor", [1e-12, 1e6, 1e150])
def test_the_units_of_the_target_do_not_matter(factor, diabetes):
    X, y = diabetes
    model = DGTRegressor(max_depth=3, random_state=0).fit(X, y * factor)
    assert model.score(X, y * factor) > 0.35


def test_a_constant_target_is_predicted():
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = DGTRegressor(random_state=0).fit(X, np.full(50, 7.25))
    np.testing.assert_allclose(model.predict(X), 7.25, atol=0.05)


def test_two_classes_have_one_score_and_two_probabilities(cancer):
    X, y = cancer
    model = DGTClassifier(max_depth=2, random_state=0).fit(X, y)
    assert model.tree_.values.shape[1] == 2
    assert model.score(X, y) > 0.95


def test_loss_objects_are_taken_as_they_are(cancer):
    X, y = cancer
    options = {"max_depth": 2, "max_epochs": 20, "random_state": 0}
    by_name = DGTClassifier(**options).fit(X, y).tree_
    by_object = DGTClassifier(loss=Logistic(), **options).fit(X, y).tree_
    np.testing.assert_array_equal(by_name.values, by_object.values)
    assert DGTClassifier(loss=CrossEntropy(), **options).fit(X, y).score(X, y) > 0.9


def squared(prediction, target):
    return reference.squared_error(prediction, target), reference.squared_error_gradient(
        prediction, target
    )


def squared_gradient(prediction, target):
    return reference.squared_error_gradient(prediction, target)


def cross_entropy(scores, index):
    return reference.cross_entropy(scores, index), reference.cross_entropy_gradient(scores, index)


def test_a_function_as_loss_follows_the_built_in_one(iris):
    X, y = iris
    options = {"max_depth": 3, "max_epochs": 30, "early_stopping": False, "random_state": 0}
    built_in = DGTClassifier(**options).fit(X, y)
    own = DGTClassifier(loss=cross_entropy, **options).fit(X, y)
    found = [epoch.train_loss for epoch in own.history_]
    expected = [epoch.train_loss for epoch in built_in.history_]
    np.testing.assert_allclose(found[:5], expected[:5], rtol=1e-3)
    assert own.score(X, y) > 0.85


@pytest.mark.parametrize("loss", [squared, squared_gradient, Custom(squared)])
def test_a_function_as_loss_of_numbers(loss, diabetes):
    X, y = diabetes
    y = (y - y.mean()) / y.std()  # functions see targets in the user's units
    model = DGTRegressor(loss=loss, max_depth=2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.35
    has_values = loss is not squared_gradient
    assert math.isnan(model.history_[0].train_loss) != has_values
    assert math.isnan(model.history_[0].validation_loss) != has_values


def test_a_function_sees_batches_in_the_users_units(diabetes):
    X, y = diabetes
    seen = []

    def loss(prediction, target):
        seen.append((prediction.shape, target.copy()))
        return prediction - target

    DGTRegressor(loss=loss, max_epochs=1, batch_size=100, random_state=0).fit(X, y)
    batches = [target for shape, target in seen if len(target) > 2]
    assert sum(map(len, batches)) == 442
    np.testing.assert_allclose(np.sort(np.concatenate(batches)[:, 0]), np.sort(y), rtol=1e-6)
    assert all(shape == target.shape for shape, target in seen)


@pytest.mark.parametrize("options", [{"early_stopping": True}, {"n_restarts": 2}])
def test_a_gradient_alone_cannot_choose_among_trees(options, diabetes):
    with pytest.raises(ValueError, match="returns only a gradient"):
        DGTRegressor(loss=squared_gradient, **options).fit(*diabetes)


def test_an_error_in_a_function_comes_through(diabetes):
    def loss(prediction, target):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        DGTRegressor(loss=loss).fit(*diabetes)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda p, t: p[:, 0], "gradient of shape"),
        (lambda p, t: p * np.nan, "not finite"),
        (lambda p, t: (np.zeros(1), p), "returned . loss"),
    ],
)
def test_a_wrong_answer_of_a_function_is_named(answer, message, diabetes):
    with pytest.raises(ValueError, match=message):
        DGTRegressor(loss=answer, max_epochs=2).fit(*diabetes)


# Epochs


def test_history_tells_every_pass(iris):
    options = {"max_depth": 2, "max_epochs": 12, "n_restarts": 3, "early_stopping": False}
    model = DGTClassifier(random_state=0, **options).fit(*iris)
    assert [(e.restart, e.epoch) for e in model.history_] == [
        (r, e) for r in range(3) for e in range(12)
    ]
    assert model.n_iter_ == 12
    assert all(
        math.isfinite(e.train_loss) and math.isnan(e.validation_loss) for e in model.history_
    )
    assert model.history_[-1].train_loss < model.history_[0].train_loss
    assert {e.max_epochs for e in model.history_} == {12}


def test_callbacks_hear_of_every_pass_and_may_stop(iris):
    seen, others = [], []

    def stop_after_five(epoch):
        seen.append(epoch)
        return epoch.epoch == 4

    callbacks = [stop_after_five, others.append]
    options = {"max_depth": 2, "max_epochs": 50, "n_restarts": 1, "random_state": 0}
    model = DGTClassifier(callbacks=callbacks, **options).fit(*iris)
    assert [epoch.epoch for epoch in seen] == [0, 1, 2, 3, 4]
    for records in (others, model.history_):
        assert [repr(epoch) for epoch in records] == [repr(epoch) for epoch in seen]
    assert model.n_iter_ == 5


def test_one_function_will_do_as_callbacks(iris):
    model = DGTClassifier(callbacks=lambda epoch: True, random_state=0).fit(*iris)
    assert model.n_iter_ == 1


def test_an_error_in_a_callback_comes_through(iris):
    def fail(epoch):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        DGTClassifier(callbacks=fail, n_restarts=3, n_jobs=2).fit(*iris)


def test_early_stopping_returns_to_the_best_pass(cancer):
    X, y = cancer
    model = DGTClassifier(early_stopping=True, max_epochs=200, n_restarts=2, random_state=0).fit(
        X, y
    )
    losses = [e.validation_loss for e in model.history_]
    assert model.tree_.record["validation_loss"] == min(losses)
    assert model.tree_.record["validation_rows"] == 57
    assert len(model.history_) < 400


def test_early_stopping_is_off_for_small_tables_and_on_for_larger_ones(iris, cancer):
    few = np.arange(0, 150, 2)
    small = DGTClassifier(max_epochs=5, random_state=0).fit(iris[0][few], iris[1][few])
    large = DGTClassifier(max_epochs=5, random_state=0).fit(*cancer)
    assert small.tree_.record["validation_rows"] == 0
    assert large.tree_.record["validation_rows"] > 0
    assert {epoch.restart for epoch in small.history_} == {0}
    assert {epoch.restart for epoch in large.history_} == {0, 1, 2, 3}


def test_the_best_restart_is_kept(cancer):
    X, y = cancer
    options = {"max_depth": 3, "max_epochs": 15, "early_stopping": True, "random_state": 0}
    model = DGTClassifier(n_restarts=4, **options).fit(X, y)
    best = min(e.validation_loss for e in model.history_)
    assert model.tree_.record["validation_loss"] == best
    assert best <= DGTClassifier(n_restarts=1, **options).fit(X, y).tree_.record["validation_loss"]


def test_verbose_prints_progress(iris, capsys):
    options = {"max_epochs": 40, "early_stopping": False, "random_state": 0}
    DGTClassifier(verbose=1, **options).fit(*iris)
    few = capsys.readouterr().out.splitlines()
    DGTClassifier(verbose=2, **options).fit(*iris)
    every = capsys.readouterr().out.splitlines()
    assert 10 < len(few) < 30
    assert len(every) == 40
    assert every[-1].startswith("restart 0  epoch 40/40  training loss ")
    DGTClassifier(**options).fit(*iris)
    assert capsys.readouterr().out == ""


# Options


@pytest.mark.parametrize("optimizer", ["sgd", "rmsprop", "adam"])
@pytest.mark.parametrize("schedule", ["constant", "cosine", "one_cycle"])
def test_every_optimizer_and_schedule_learns(optimizer, schedule, iris):
    training = Training(optimizer=optimizer, schedule=schedule, clip_norm=None)
    rate, momentum = (0.1, 0.9) if optimizer == "sgd" else (0.01, 0.5)
    model = DGTClassifier(
        max_depth=3, learning_rate=rate, momentum=momentum, training=training, random_state=0
    )
    assert model.fit(*iris).score(*iris) > 0.9


def test_the_learning_rate_follows_the_schedule(iris):
    def rates(**options):
        model = DGTClassifier(max_epochs=20, batch_size=1000, training=Training(**options))
        return np.array([epoch.learning_rate for epoch in model.fit(*iris).history_])

    np.testing.assert_allclose(rates(schedule="constant"), 0.01, rtol=1e-6)
    cosine = rates(schedule="cosine", schedule_restarts=1)
    np.testing.assert_allclose(cosine[[0, 10]], 0.01, rtol=1e-6)
    assert cosine[9] < 0.001
    assert rates(schedule="one_cycle").argmax() == 5


def test_l1_makes_splits_sparse(cancer):
    X, y = cancer
    options = {"max_depth": 2, "max_epochs": 100, "random_state": 0, "early_stopping": False}
    dense = DGTClassifier(**options).fit(X, y).tree_.weights
    thin = DGTClassifier(l1=0.02, training=Training(clip_norm=None), **options).fit(X, y)
    assert (dense != 0).all()
    assert (thin.tree_.weights == 0).mean() > 0.2
    assert thin.score(X, y) > 0.9


def test_l2_makes_weights_small(cancer):
    X, y = cancer
    options = {"max_depth": 2, "max_epochs": 100, "random_state": 0, "early_stopping": False}
    free, bound = DGTClassifier(**options).fit(X, y), DGTClassifier(l2=1e-2, **options).fit(X, y)
    scale = free.tree_.schema.column_scale

    def size(model):
        return np.abs(model.tree_.weights * scale).mean()

    assert size(bound) < 0.5 * size(free)


@pytest.mark.parametrize("max_depth", [1, 2, 8, 12])
def test_depth_bounds_the_tree(max_depth, iris):
    model = DGTClassifier(max_depth=max_depth, max_epochs=5, random_state=0).fit(*iris)
    assert 1 <= model.tree_.depth <= max_depth
    assert model.tree_.n_leaves <= 2**max_depth


# Starting from a tree


def test_a_start_is_where_learning_begins(iris):
    X, y = iris
    first = DGTClassifier(max_depth=3, random_state=0).fit(X, y)
    options = {"max_depth": 3, "max_epochs": 1, "learning_rate": 1e-9, "random_state": 1}
    for init in (first, first.tree_):
        again = DGTClassifier(init=init, **options).fit(X, y)
        np.testing.assert_array_equal(again.predict(X), first.predict(X))
        np.testing.assert_allclose(again.predict_proba(X), first.predict_proba(X), atol=1e-5)


def test_a_start_of_numbers(diabetes):
    X, y = diabetes
    first = DGTRegressor(max_depth=2, random_state=0).fit(X, y)
    options = {"max_epochs": 1, "learning_rate": 1e-9, "random_state": 1}
    again = DGTRegressor(init=first, max_depth=4, **options).fit(X, y)
    np.testing.assert_allclose(again.predict(X), first.predict(X), rtol=1e-4)


def test_a_start_of_counts():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, 1))
    y = rng.poisson(np.where(X[:, 0] > 0, 300.0, 100.0))
    first = DGTRegressor(loss="poisson", max_depth=2, random_state=0).fit(X, y)
    options = {"max_epochs": 1, "learning_rate": 1e-9, "random_state": 1}
    again = DGTRegressor(loss="poisson", init=first, max_depth=2, **options).fit(X, y)
    np.testing.assert_allclose(again.predict(X), first.predict(X), rtol=1e-4)


def test_learning_goes_on_from_a_start(diabetes):
    X, y = diabetes
    options = {"max_depth": 3, "early_stopping": False, "random_state": 0}
    first = DGTRegressor(max_epochs=5, **options).fit(X, y)
    more = DGTRegressor(init=first, max_epochs=100, **options).fit(X, y)
    assert more.score(X, y) > first.score(X, y)


def test_a_start_must_fit(iris, diabetes):
    X, y = iris
    classes = DGTClassifier(max_depth=3, max_epochs=3, random_state=0).fit(X, y)
    with pytest.raises(
        ValueError, match="init is a tree for the classes 0, 1, 2, but the target has"
    ):
        DGTClassifier(init=classes).fit(X, y + 1)
    with pytest.raises(ValueError, match="but the target has numbers"):
        DGTRegressor(init=classes).fit(X, y)
    with pytest.raises(ValueError, match="more than max_depth=2"):
        DGTClassifier(init=classes, max_depth=2).fit(X, y)
    with pytest.raises(ValueError, match="columns"):
        DGTClassifier(init=classes).fit(X[:, :3], y)
    with pytest.raises(TypeError, match="init must be"):
        DGTClassifier(init="tree").fit(X, y)


def test_a_hand_made_start(iris):
    X, y = iris
    start = ObliqueTree.of(
        [[0, 0, 1, 0], [0, 0, 1, 0]],
        thresholds=[2.5, 4.8],
        children=[[-1, 1], [-2, -3]],
        values=np.eye(3),
        classes=[0, 1, 2],
    )
    model = DGTClassifier(init=start, max_depth=2, max_epochs=20, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.93


# Interrupts


PROGRAM = """
    import sys, warnings
    import numpy as np
    from hardwood import DGTClassifier
    from hardwood.errors import FitInterruptedWarning

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20)).astype(np.float32)
    y = (X[:, 0] > X[:, 1]).astype(int)
    started = lambda epoch: print("epoch", epoch.epoch, flush=True) if epoch.epoch == 1 else None
    model = DGTClassifier(max_depth=6, max_epochs=100_000, n_restarts={n_restarts}, n_jobs=2,
                          early_stopping=False, callbacks=started, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert [w.category for w in caught] == [FitInterruptedWarning], caught
    print("score", model.score(X, y), "passes", model.n_iter_, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_restarts", [1, 2])
def test_ctrl_c_keeps_the_best_tree_so_far(n_restarts):
    code = textwrap.dedent(PROGRAM.format(n_restarts=n_restarts))
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout.readline().startswith("epoch")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    words = out.split()
    assert float(words[words.index("score") + 1]) > 0.8
    assert int(words[words.index("passes") + 1]) < 100_000


def test_ctrl_c_in_this_process_warns(iris):
    begun = threading.Event()

    def press_ctrl_c():
        begun.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press_ctrl_c)
    model = DGTClassifier(
        max_epochs=10_000_000,
        random_state=0,
        callbacks=lambda epoch: begun.set() if epoch.epoch == 200 else None,
    )
    thread.start()
    with pytest.warns(FitInterruptedWarning, match="the best model so far is kept"):
        model.fit(*iris)
    thread.join()
    assert model.score(*iris) > 0.9


def test_predictions_follow_a_tree_that_is_replaced():
    X, y = load_iris(return_X_y=True)
    model = DGTClassifier(max_depth=3, max_epochs=30, random_state=0).fit(X, y)
    model.predict(X)
    model.tree_ = model.tree_.prune(X, y, alpha=1.0)
    assert model.tree_.n_leaves == 1
    assert (model.predict(X) == model.tree_.predict(X)).all()


@pytest.mark.parametrize("n_restarts", [2, np.int64(2)])
def test_gradients_alone_cannot_choose_among_restarts(n_restarts):
    X, y = load_iris(return_X_y=True)
    model = DGTRegressor(loss=lambda f, y: f - y, n_restarts=n_restarts, max_epochs=2)
    with pytest.raises(ValueError, match="n_restarts > 1"):
        model.fit(X, y)


def test_switches_of_numpy_are_switches():
    X, y = load_iris(return_X_y=True)
    model = DGTRegressor(early_stopping=np.True_, max_epochs=2, max_depth=1).fit(X, y)
    assert model.tree_.record["validation_rows"] > 0
