"""From the tree ensemble layer to the model and back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import hardwood
from hardwood.model import ObliqueTree, TreeEnsemble
from hardwood.nn import TreeEnsembleLayer
from hardwood.table import Feature, Schema


def make_layer(k=3, d=5, depth=4, gamma=0.6, **options) -> TreeEnsembleLayer:
    """Make a layer whose normalization has seen columns far from zero."""
    layer = TreeEnsembleLayer(d, k, 4, depth, gamma, **options)
    torch.nn.init.normal_(layer.weight, std=0.3)
    torch.nn.init.normal_(layer.leaves)
    for part in (layer.bias, layer.batch_norm and layer.batch_norm.bias):
        if part is not None:
            torch.nn.init.normal_(part, std=0.2)
    if layer.batch_norm is not None and layer.batch_norm.weight is not None:
        torch.nn.init.uniform_(layer.batch_norm.weight, 0.5, 2.0)
    for _ in range(30):
        layer(make_rows(100, d).to(layer.weight.dtype))
    return layer.eval()


def make_rows(n, d=5):
    return (torch.randn(n, d) * torch.logspace(-2, 2, d) + 3.0 * torch.arange(d)).double()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("activation", ["smooth_step", "smooth_step_5", "logistic"])
def test_the_model_predicts_what_the_layer_returns(activation, batch_norm, bias, dtype):
    layer = make_layer(activation=activation, batch_norm=batch_norm, bias=bias, dtype=dtype)
    x = make_rows(500) if batch_norm else torch.randn(500, 5).double()
    x = x.to(dtype)
    model = layer.to_ensemble()
    assert (model.task, model.gamma, model.activation) == ("regression", 0.6, activation)
    expected = layer.double()(x.double()).detach().numpy()
    np.testing.assert_allclose(model.predict(x.numpy()), expected, atol=2e-5)
    counts = layer.reachable_leaves(x.double()).numpy()
    assert (model.reachable_leaves(x.numpy()) != counts).mean() < 0.01  # scores are float32


def test_classes_get_the_softmax_of_their_scores():
    layer, x = make_layer(k=3), make_rows(200)
    model = layer.to_ensemble(
        classes=["a", "b", "c"], feature_names=list("uvwxy"), target_names="letter"
    )
    expected = torch.softmax(layer(x.float()), dim=1).detach().numpy()
    np.testing.assert_allclose(model.predict_proba(x.numpy()), expected, atol=1e-4)
    assert (model.feature_names, model.target_names) == (tuple("uvwxy"), ("letter",))
    assert model.record == {"learner": "TreeEnsembleLayer"}


def test_one_output_is_the_score_of_the_second_of_two_classes():
    layer, x = make_layer(k=1), make_rows(200)
    model = layer.to_ensemble(classes=["no", "yes"], record={"epochs": 3})
    expected = torch.sigmoid(layer(x.float()))[:, 0].detach().numpy()
    np.testing.assert_allclose(model.predict_proba(x.numpy())[:, 1], expected, atol=1e-4)
    assert model.record == {"epochs": 3}


def test_labels_get_the_logistic_function_of_their_scores():
    layer, x = make_layer(k=2), make_rows(200)
    model = layer.to_ensemble(task="multilabel", target_names=["a", "b"])
    expected = torch.sigmoid(layer(x.float())).detach().numpy()
    np.testing.assert_allclose(model.predict_proba(x.numpy()), expected, atol=1e-4)


@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("of_norm", [True, False])
def test_there_and_back(of_norm, batch_norm):
    model = make_layer(batch_norm=of_norm, dtype=torch.float64).to_ensemble()
    x = make_rows(300)
    layer = TreeEnsembleLayer.from_ensemble(model, batch_norm=batch_norm, dtype=torch.float64)
    np.testing.assert_allclose(layer.eval()(x).detach(), model.predict(x.numpy()), atol=2e-5)
    back = layer.to_ensemble(schema=model.schema)
    assert back.schema == model.schema
    np.testing.assert_allclose(back.weights, model.weights, rtol=1e-12)
    np.testing.assert_allclose(back.bias, model.bias, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(back.values, model.values)


def test_the_model_knows_what_the_normalization_knew():
    layer = make_layer()
    schema = layer.to_ensemble().schema
    np.testing.assert_allclose(schema.column_center, layer.batch_norm.running_mean, rtol=1e-6)
    deviation = layer.batch_norm.running_var.sqrt().numpy()
    np.testing.assert_allclose(schema.column_spread, deviation, rtol=0.1)
    assert (np.abs(np.log2(schema.column_scale / schema.column_spread)) <= 0.5).all()


def test_an_estimators_ensemble_can_be_learned_further():
    rng = np.random.default_rng(0)
    X = 100 + 10 * rng.normal(size=(300, 3))
    y = ((X[:, 0] > 100) ^ (X[:, 1] > 100)).astype(int)
    model = hardwood.TELClassifier(n_estimators=3, max_depth=3, max_epochs=3, random_state=0)
    ensemble = model.fit(X, y).ensemble_
    layer = TreeEnsembleLayer.from_ensemble(ensemble, batch_norm=True)
    x, label = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    answer = torch.softmax(layer.eval()(x), dim=1).detach()
    np.testing.assert_allclose(answer, ensemble.predict_proba(X), atol=1e-4)
    loss = torch.nn.CrossEntropyLoss()
    before = loss(layer(x), label).item()
    optimizer = torch.optim.Adam(layer.train().parameters(), lr=0.01)
    for _ in range(100):
        optimizer.zero_grad()
        loss(layer(x), label).backward()
        optimizer.step()
    learned = layer.to_ensemble(schema=ensemble.schema, classes=ensemble.classes)
    assert loss(layer.eval()(x), label).item() < before
    assert (learned.predict(X) == y).mean() >= (ensemble.predict(X) == y).mean()


def test_the_model_can_be_saved_and_hardened(tmp_path):
    model = make_layer().to_ensemble()
    model.save(tmp_path / "layer.hardwood")
    assert hardwood.load(tmp_path / "layer.hardwood") == model
    assert len(model.harden().trees) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "ranking"}, "task must be .* got 'ranking'"),
        ({"task": "classification"}, "classes go together"),
        ({"classes": [0, 1]}, "got 2 classes for 3 outputs"),
        ({"feature_names": ["a"]}, "expected 5 names, one for each feature, got 1"),
        ({"feature_names": list("abcde"), "schema": Schema.numeric(5)}, "not both"),
        ({"schema": Schema((Feature("mass", "numeric", has_missing=True),))}, "column 'mass'"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_layer(k=3).to_ensemble(**options)


def test_a_normalization_without_statistics_is_refused():
    layer = TreeEnsembleLayer(2, 1)
    layer.batch_norm = torch.nn.BatchNorm1d(2, track_running_stats=False)
    assert layer.reachable_leaves(torch.randn(5, 2)).shape == (5, 10)
    with pytest.raises(ValueError, match="keeps no running statistics"):
        layer.to_ensemble()


def test_only_ensembles_of_numbers_are_taken():
    tree = ObliqueTree.of([[1.0]], bias=[0.0], values=[1.0, 2.0])
    with pytest.raises(TypeError, match=r"of type TreeEnsemble, got ObliqueTree.*ensemble_"):
        TreeEnsembleLayer.from_ensemble(tree)
    schema = Schema((Feature("species", "categorical", levels=("Adelie", "Gentoo")),))
    model = TreeEnsemble(
        [[[1.0, 0.0]]], [[0.0]], [[[0.0], [1.0]]], gamma=1.0, schema=schema, task="regression"
    )
    with pytest.raises(ValueError, match="the ensemble's column 'species' is categorical"):
        TreeEnsembleLayer.from_ensemble(model)


def test_numbers_beyond_float32_are_refused():
    model = TreeEnsemble(
        [[[1.0]]], [[0.0]], [[[0.0], [1e300]]], gamma=1.0, schema=Schema.numeric(1),
        task="regression",
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"leaves are too large for torch\.float32"):
        TreeEnsembleLayer.from_ensemble(model)
    assert TreeEnsembleLayer.from_ensemble(model, dtype=torch.float64).leaves.max() == 1e300
