"""Ways to learn the same kind of tree: linear layers, relaxations, penalties."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris

from hardwood import DGTClassifier, DGTRegressor
from hardwood.learn import Quantile, Relaxation, Training
from hardwood.learn.dgt import DGT
from reference import losses as reference

ALL_RELAXATIONS = [
    Relaxation(path=path, routing=routing)
    for path in ("sum", "product", "product_softmax")
    for routing in ("quantized", "annealed")
] + [Relaxation(quantizer="scaled")]


def words(relaxation: Relaxation) -> str:
    return f"{relaxation.path} {relaxation.quantizer} {relaxation.routing}"


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


# Noise


@pytest.mark.parametrize("layers", [1, [6]])
def test_noise_changes_learning_alike_on_any_number_of_threads(layers, iris):
    options = {"max_depth": 2, "max_epochs": 10, "n_restarts": 2, "random_state": 0}
    default, none, noisy, again = (
        DGTClassifier(layers=layers, n_jobs=n_jobs, **noise, **options).fit(*iris).tree_
        for noise, n_jobs in (
            ({}, 1),
            ({"noise": 0.0}, 1),
            ({"noise": 0.3}, 1),
            ({"noise": 0.3}, 2),
        )
    )
    np.testing.assert_array_equal(default.weights, none.weights)
    assert not np.array_equal(default.weights, noisy.weights)
    np.testing.assert_array_equal(noisy.weights, again.weights)


def test_noise_is_a_remedy_against_overfitting():
    """Few rows, many columns of which one matters: the trees with noise are better on new rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1100, 20))
    y = (X[:, 0] > 0).astype(int)
    scores = {
        noise: np.mean(
            [
                DGTClassifier(
                    max_depth=4, noise=noise, max_epochs=60, early_stopping=False, random_state=seed
                )
                .fit(X[:100], y[:100])
                .score(X[100:], y[100:])
                for seed in range(3)
            ]
        )
        for noise in (0.0, 0.5)
    }
    assert scores[0.5] > scores[0.0] + 0.01


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf])
def test_noise_out_of_range_is_named(noise, iris):
    with pytest.raises(ValueError, match="noise must be"):
        DGTClassifier(noise=noise).fit(*iris)


# Layers


@pytest.mark.parametrize(("height", "size"), [(2, 240), (4, 600), (6, 1008), (8, 1530), (10, 2046)])
def test_hidden_sizes_follow_table_12(height, size):
    assert DGT(max_depth=height, layers=3).hidden_sizes == (size, size)
    assert DGT(max_depth=height, layers=1).hidden_sizes == ()
    assert DGT(max_depth=height, layers=(7, 9)).hidden_sizes == (7, 9)


def test_heights_without_a_row_of_table_12_lie_between_their_neighbors():
    sizes = [DGT(max_depth=height, layers=2).hidden_sizes[0] for height in range(1, 17)]
    assert sizes == sorted(sizes)
    assert sizes[2] == (240 + 600) // 2


@pytest.mark.parametrize("layers", [2, 3, [5], [16, 16], (8, 8, 8), np.array([12, 6])])
def test_layers_learn(layers, iris):
    model = DGTClassifier(max_depth=2, layers=layers, learning_rate=0.003, random_state=0)
    assert model.fit(*iris).score(*iris) > 0.9


def test_the_narrowest_layer_bounds_the_rank_of_the_splits(digits):
    model = DGTClassifier(max_depth=4, layers=[3, 9], max_epochs=5, random_state=0).fit(*digits)
    tree = model.tree_
    splits = np.column_stack([tree.weights * tree.schema.column_scale, tree.bias])
    assert tree.n_splits > 3
    assert np.linalg.matrix_rank(splits, tol=1e-5 * np.abs(splits).max()) == 3


def test_a_layer_of_one_is_one_split(cancer):
    """All splits are then the same hyperplane, and those below the root decide nothing."""
    model = DGTClassifier(max_depth=3, layers=[1], max_epochs=30, random_state=0).fit(*cancer)
    assert model.tree_.n_splits == 1
    assert model.score(*cancer) > 0.9


def test_layers_by_number_are_those_of_the_table(iris):
    options = {"max_depth": 2, "max_epochs": 10, "random_state": 0}
    by_number = DGTClassifier(layers=3, **options).fit(*iris).tree_
    by_size = DGTClassifier(layers=[240, 240], **options).fit(*iris).tree_
    one, none = (DGTClassifier(layers=layers, **options).fit(*iris).tree_ for layers in (1, []))
    np.testing.assert_array_equal(by_number.weights, by_size.weights)
    np.testing.assert_array_equal(one.weights, none.weights)
    assert not np.array_equal(by_number.weights, one.weights)
    assert by_number.record["parameters"]["layers"] == 3
    assert by_size.record["parameters"]["layers"] == [240, 240]


@pytest.mark.parametrize("layers", [2, [20, 30]])
def test_layers_start_from_a_tree(layers, iris):
    X, y = iris
    first = DGTClassifier(max_depth=2, random_state=0).fit(X, y)
    again = DGTClassifier(
        max_depth=2, layers=layers, init=first, max_epochs=1, learning_rate=1e-9, random_state=1
    ).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), first.predict(X))
    np.testing.assert_allclose(again.predict_proba(X), first.predict_proba(X), atol=1e-5)


def test_layers_learn_on_from_a_tree(cancer):
    X, y = cancer
    options = {"max_depth": 2, "early_stopping": False, "random_state": 0}
    first = DGTClassifier(max_epochs=2, **options).fit(X, y)
    more = DGTClassifier(layers=[40], init=first, max_epochs=60, **options).fit(X, y)
    assert more.history_[-1].train_loss < 0.7 * first.history_[-1].train_loss


def test_narrow_layers_cannot_start_from_a_tree(iris):
    first = DGTClassifier(max_depth=2, max_epochs=3, random_state=0).fit(*iris)
    with pytest.raises(ValueError, match="number of columns, 4"):
        DGTClassifier(max_depth=2, layers=[4], init=first).fit(*iris)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_penalties_reach_the_layers(penalty, cancer):
    X, y = cancer
    options = {"max_depth": 2, "layers": [16, 16], "max_epochs": 60, "early_stopping": False}
    options |= {"random_state": 0, "training": Training(clip_norm=None)}
    free = DGTClassifier(**options).fit(X, y)
    bound = DGTClassifier(**options, **{penalty: 3e-3}).fit(X, y)
    scale = free.tree_.schema.column_scale

    def size(model):
        return np.abs(model.tree_.weights * scale).mean()

    assert size(bound) < 0.5 * size(free)
    assert bound.score(X, y) > 0.9


# Relaxations


@pytest.mark.parametrize("relaxation", ALL_RELAXATIONS, ids=words)
def test_every_relaxation_learns(relaxation, iris, digits):
    options = {"relaxation": relaxation, "random_state": 0}
    assert DGTClassifier(max_depth=3, **options).fit(*iris).score(*iris) > 0.93
    X, y = digits
    many = DGTClassifier(max_depth=5, max_epochs=12, n_restarts=1, **options).fit(X, y)
    assert many.score(X, y) > 0.5


def test_the_design_choices_make_different_trees(cancer):
    def weights(**options):
        relaxation = Relaxation(**options) if options else None
        model = DGTClassifier(max_depth=3, max_epochs=3, relaxation=relaxation, random_state=0)
        return model.fit(*cancer).tree_.weights.tolist()

    annealed = {"routing": "annealed"}
    found = [
        weights(),
        weights(quantizer="scaled"),
        weights(path="product"),
        weights(**annealed),
        weights(path="product", **annealed),
        weights(**annealed, annealing="linear"),
        weights(**annealed, sharpness=(2.0, 50.0)),
    ]
    assert all(a != b for i, a in enumerate(found) for b in found[:i])
    assert weights() == weights(path="sum", quantizer="sign", routing="quantized")


@pytest.mark.parametrize("relaxation", ALL_RELAXATIONS, ids=words)
def test_the_cost_of_hardening_is_recorded_where_there_is_any(relaxation, iris):
    model = DGTClassifier(max_depth=3, max_epochs=20, relaxation=relaxation, random_state=0)
    record = model.fit(*iris).tree_.record
    assert ("hardening_loss" in record) == (relaxation.routing == "annealed")


@pytest.mark.parametrize("path", ["sum", "product"])
def test_the_cost_of_hardening_is_the_hard_loss_less_the_soft_one(path, diabetes):
    """One split, so that the soft tree of the last step can be written down."""
    X, y = diabetes
    relaxation = Relaxation(path=path, routing="annealed", sharpness=(1.0, 3.0))
    options = {"max_depth": 1, "early_stopping": False, "max_epochs": 40, "random_state": 0}
    tree = DGTRegressor(relaxation=relaxation, **options).fit(X, y).tree_
    s, a = 3.0, (X - tree.schema.column_center) @ tree.weights[0] + tree.bias[0]
    toward_right = s * a if path == "product" else 2 * s * np.tanh(s * a / 2)
    right = 1 / (1 + np.exp(-toward_right))
    low, high = (tree.values[~child, 0] for child in tree.children[0])
    soft = (1 - right) * low + right * high
    gap = ((tree.predict(X) - y) ** 2).mean() - ((soft - y) ** 2).mean()
    assert tree.record["hardening_loss"] == pytest.approx(gap / y.var(), rel=1e-3)
    assert abs(gap) > 1.0


def test_sharper_trees_lose_less_by_hardening(cancer):
    def lost(last):
        relaxation = Relaxation(path="product", routing="annealed", sharpness=(1.0, last))
        model = DGTClassifier(max_depth=4, max_epochs=30, relaxation=relaxation, random_state=0)
        return model.fit(*cancer).tree_.record["hardening_loss"]

    assert abs(lost(300.0)) < 0.1 * abs(lost(1.0))


def test_history_of_an_annealed_tree_watches_the_hard_one(cancer):
    """Early stopping must choose by what `predict` will answer."""
    X, y = cancer
    model = DGTClassifier(
        max_depth=3, max_epochs=30, relaxation=Relaxation(routing="annealed"), random_state=0
    ).fit(X, y)
    assert model.tree_.record["validation_loss"] == min(e.validation_loss for e in model.history_)


def cross_entropy(scores, index):
    return reference.cross_entropy(scores, index), reference.cross_entropy_gradient(scores, index)


@pytest.mark.parametrize("relaxation", ALL_RELAXATIONS, ids=words)
def test_a_function_as_loss_follows_the_built_in_one(relaxation, iris):
    options = {"max_depth": 3, "max_epochs": 20, "early_stopping": False, "random_state": 0}
    options["relaxation"] = relaxation
    built_in = DGTClassifier(**options).fit(*iris)
    own = DGTClassifier(loss=cross_entropy, **options).fit(*iris)
    np.testing.assert_allclose(
        [epoch.train_loss for epoch in own.history_[:5]],
        [epoch.train_loss for epoch in built_in.history_[:5]],
        rtol=1e-3,
    )
    if relaxation.routing == "annealed":
        assert own.tree_.record["hardening_loss"] == pytest.approx(
            built_in.tree_.record["hardening_loss"], abs=0.1
        )


def test_a_gradient_alone_will_do_for_annealed_routing(iris):
    model = DGTClassifier(
        loss=lambda f, y: reference.cross_entropy_gradient(f, y),
        relaxation=Relaxation(path="product", routing="annealed"),
        max_depth=3,
        random_state=0,
    ).fit(*iris)
    assert model.score(*iris) > 0.9
    assert "hardening_loss" not in model.tree_.record  # there is no loss to compare


@pytest.mark.parametrize(
    "options",
    [
        {"path": "max"},
        {"quantizer": "tanh"},
        {"routing": "soft"},
        {"annealing": "cosine"},
        {"sharpness": (0.0, 1.0)},
        {"sharpness": (2.0, 1.0)},
        {"sharpness": (1.0, np.inf)},
        {"sharpness": (np.nan, 1.0)},
    ],
    ids=str,
)
def test_relaxations_out_of_range_are_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Relaxation(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"quantizer": "scaled", "path": "product"},
        {"quantizer": "scaled", "path": "product_softmax"},
        {"quantizer": "scaled", "routing": "annealed"},
        {"quantizer": "scaled", "path": "product", "routing": "annealed"},
        {"sharpness": (1.0, 50.0)},
        {"sharpness": [10, 100], "path": "product"},
        {"annealing": "linear"},
    ],
    ids=str,
)
def test_relaxations_that_would_change_nothing_are_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}=.* nothing for"):
        Relaxation(**options)


def test_defaults_may_be_spelt_out():
    for options in ({}, {"path": "product"}, {"quantizer": "scaled"}):
        spelt = Relaxation(sharpness=[1, 100], annealing="log", routing="quantized", **options)
        assert spelt.sharpness == (1, 100)
        model = clone(DGTClassifier(relaxation=spelt))
        assert model.get_params()["relaxation"] == spelt


def test_linear_leaves_are_learned_with_hard_decisions(iris):
    model = DGTClassifier(leaves="linear", relaxation=Relaxation(routing="annealed"))
    with pytest.raises(ValueError, match="needs quantized routing"):
        model.fit(*iris)


@pytest.mark.parametrize("relaxation", ALL_RELAXATIONS, ids=words)
def test_an_annealed_tree_may_start_from_another(relaxation, iris):
    X, y = iris
    first = DGTClassifier(max_depth=2, random_state=0).fit(X, y)
    again = DGTClassifier(
        max_depth=2,
        init=first,
        relaxation=relaxation,
        max_epochs=1,
        learning_rate=1e-9,
        random_state=1,
    ).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), first.predict(X))


# Exact zeros


@pytest.mark.parametrize("optimizer", ["rmsprop", "adam"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("task", ["cancer", "diabetes"])
def test_l1_leaves_nothing_between_zero_and_a_weight_that_counts(task, seed, optimizer, request):
    """Weights that only the last, short steps kept from zero are zero."""
    X, y = request.getfixturevalue(task)
    Estimator, l1 = (DGTClassifier, 3e-4) if task == "cancer" else (DGTRegressor, 1e-3)
    model = Estimator(
        max_depth=3,
        l1=l1,
        max_epochs=60,
        early_stopping=False,
        training=Training(optimizer=optimizer),
        random_state=seed,
    ).fit(X, y)
    weights = np.abs(model.tree_.weights * model.tree_.schema.column_scale)
    share = weights / weights.max(axis=1, keepdims=True)
    assert ((share == 0) | (share >= 1e-6)).all()
    assert model.score(X, y) > (0.9 if task == "cancer" else 0.2)


def test_more_l1_means_fewer_terms(cancer):
    def n_terms(l1):
        model = DGTClassifier(max_depth=2, l1=l1, max_epochs=100, random_state=0).fit(*cancer)
        return np.count_nonzero(model.tree_.weights) / model.tree_.n_splits

    assert n_terms(0.0) == 30
    assert n_terms(2e-3) < n_terms(5e-4) < 30


def test_the_record_tells_option_objects_in_full():
    model = DGTRegressor(
        max_depth=1,
        max_epochs=1,
        loss=Quantile(0.9),
        relaxation=Relaxation(path="product"),
        training=Training(clip_norm=None),
    ).fit(np.arange(20.0).reshape(-1, 1), np.arange(20.0))
    parameters = model.tree_.record["parameters"]
    assert parameters["loss"] == {"Quantile": {"level": 0.9}}
    assert parameters["relaxation"]["Relaxation"]["path"] == "product"
    assert parameters["training"]["Training"]["clip_norm"] is None


@pytest.mark.parametrize("sharpness", [5, "ab", (1, 2, 3), None, (0, 1), (2, 1), (1, 1e300)])
def test_a_sharpness_that_makes_no_sense_is_refused(sharpness):
    with pytest.raises(ValueError, match="sharpness must be two numbers"):
        Relaxation(sharpness=sharpness)
