"""From the layer to the model and back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import hardwood
from hardwood.model import ObliqueTree
from hardwood.nn import DenseGradientTree
from hardwood.table import Feature, Schema
from trees import make_tree


def make_layer(k=3, depth=5, d=6, **options) -> DenseGradientTree:
    layer = DenseGradientTree(d, k, depth, **options)
    if layer.bias is not None:
        torch.nn.init.normal_(layer.bias, std=0.2)
    return layer


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("layers", [1, 3, [4, 9]], ids=str)
def test_the_tree_predicts_what_the_layer_returns(layers, bias, dtype):
    layer = make_layer(layers=layers, bias=bias, dtype=dtype)
    x = torch.randn(3000, 6, dtype=dtype)
    tree = layer.to_tree()
    assert tree.task == "regression"
    assert np.array_equal(tree.apply(x.numpy()), layer.route(x).numpy())
    assert np.array_equal(tree.predict(x.numpy()), layer(x).detach().numpy().astype(np.float64))


def test_collapsed_factors_are_the_weights_of_the_tree():
    layer = make_layer(layers=[40, 50])
    weights = torch.tensor(layer.to_tree().weights)
    assert torch.equal(weights, layer.weight.detach().double())
    product = layer.weight_3.double() @ layer.weight_2.double() @ layer.weight_1.double()
    torch.testing.assert_close(weights, product.detach(), rtol=0, atol=1e-6)


def test_classes_get_the_softmax_of_their_scores():
    layer = make_layer(k=3)
    x = torch.randn(200, 6)
    tree = layer.to_tree(
        classes=["a", "b", "c"], feature_names=list("uvwxyz"), target_names="letter"
    )
    expected = torch.softmax(layer(x).double(), dim=1).detach().numpy()
    np.testing.assert_allclose(tree.predict_proba(x.numpy()), expected, rtol=1e-12)
    assert tree.predict(x.numpy()).tolist() == ["abc"[i] for i in layer(x).argmax(dim=1)]
    assert (tree.feature_names, tree.target_names) == (tuple("uvwxyz"), ("letter",))


def test_one_output_is_the_score_of_the_second_of_two_classes():
    layer = make_layer(k=1)
    x = torch.randn(200, 6)
    tree = layer.to_tree(classes=["no", "yes"])
    expected = torch.sigmoid(layer(x).double())[:, 0].detach().numpy()
    np.testing.assert_allclose(tree.predict_proba(x.numpy())[:, 1], expected, rtol=1e-12)


def test_labels_get_the_logistic_function_of_their_scores_and_come_back():
    layer = make_layer(k=3)
    x = torch.randn(200, 6)
    tree = layer.to_tree(task="multilabel", target_names=["a", "b", "c"])
    expected = torch.sigmoid(layer(x).double()).detach().numpy()
    np.testing.assert_allclose(tree.predict_proba(x.numpy()), expected, rtol=1e-12)
    back = DenseGradientTree.from_tree(tree)
    torch.testing.assert_close(back(x), layer(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "ranking"}, "task must be .* got 'ranking'"),
        ({"task": "classification"}, "classes go together"),
        ({"task": "multilabel", "classes": [0, 1, 2]}, "classes go together"),
    ],
)
def test_a_task_that_does_not_fit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_layer(k=3).to_tree(**options)


def test_linear_leaves_are_refused():
    tree = ObliqueTree.of(
        [[1.0]], bias=[0.0], values=[1.0, 2.0], leaf_weights=np.ones((2, 1, 1)), task="regression"
    )
    with pytest.raises(ValueError, match="constant leaves"):
        DenseGradientTree.from_tree(tree)


def test_a_wrong_number_of_classes_is_refused():
    with pytest.raises(ValueError, match="got 2 classes for 3 outputs"):
        make_layer(k=3).to_tree(classes=[0, 1])


def test_parameters_that_are_not_finite_are_refused():
    layer = make_layer()
    torch.nn.init.constant_(layer.leaves, torch.inf)
    with pytest.raises(ValueError, match="values"):
        layer.to_tree()


def test_the_tree_keeps_a_record():
    assert make_layer().to_tree().record == {"learner": "DenseGradientTree"}
    assert make_layer().to_tree(record={"epochs": 3}).record == {"epochs": 3}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_layer_made_of_a_tree_goes_on_where_it_stands(task, seed):
    tree = make_tree(seed, n_splits=6, n_features=4, task=task)  # centers far from 0, any shape
    rng = np.random.default_rng(seed)
    X = tree.schema.column_center + tree.schema.column_scale * rng.normal(size=(500, 4))
    layer = DenseGradientTree.from_tree(tree, dtype=torch.float64)
    assert (layer.in_features, layer.out_features, layer.max_depth) == (4, 3, tree.depth)
    answer = layer(torch.tensor(X)).detach()
    if task == "regression":
        np.testing.assert_array_equal(answer, tree.predict(X))
    else:
        np.testing.assert_allclose(torch.softmax(answer, 1), tree.predict_proba(X), atol=1e-5)


def test_there_and_back_with_the_schema():
    tree = make_tree(3, n_splits=7, task="regression", counts=False)
    X = tree.schema.column_center + np.random.default_rng(0).normal(size=(500, 4))
    layer = DenseGradientTree.from_tree(tree, dtype=torch.float64)
    back = layer.to_tree(schema=tree.schema, target_names=tree.target_names)
    assert back.schema == tree.schema
    np.testing.assert_array_equal(back.predict(X), tree.predict(X))
    perfect = tree.to_perfect()
    np.testing.assert_array_equal(back.weights, perfect.weights)
    np.testing.assert_allclose(back.bias, perfect.bias, rtol=1e-12, atol=1e-9)


def test_a_layer_may_be_deeper_than_its_tree():
    tree = ObliqueTree.of([[1.0]], thresholds=[0.5], values=[1.0, 2.0])
    layer = DenseGradientTree.from_tree(tree, max_depth=4)
    assert layer.max_depth == 4
    assert layer(torch.tensor([[0.0], [1.0]])).flatten().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="depth"):
        DenseGradientTree.from_tree(make_tree(0, n_splits=7), max_depth=1)


def test_a_single_leaf_becomes_a_layer_of_depth_one():
    leaf = ObliqueTree.of(np.zeros((0, 2)), bias=np.zeros(0), values=[[3.0]])
    layer = DenseGradientTree.from_tree(leaf)
    assert layer.max_depth == 1
    assert layer(torch.randn(4, 2)).flatten().tolist() == [3.0] * 4


def test_pure_leaves_get_finite_scores():
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[[1, 0], [0, 1]], classes=["a", "b"])
    layer = DenseGradientTree.from_tree(tree)
    assert layer.leaves.isfinite().all()
    back = layer.to_tree(classes=tree.classes)
    np.testing.assert_allclose(back.values, tree.values, atol=2e-6)


def test_trees_that_need_more_than_numbers_are_refused():
    weights, values = [[1.0, 0.0]], [1.0, 2.0]
    categorical = Schema((Feature("species", "categorical", levels=("Adelie", "Gentoo")),))
    missing = Schema((Feature("mass", "numeric", has_missing=True),))
    for schema, why in (
        (categorical, "column 'species' is categorical"),
        (missing, "column 'mass' is allowed to be missing"),
    ):
        tree = ObliqueTree.of(weights, bias=[0.0], values=values, schema=schema)
        with pytest.raises(ValueError, match=f"numbers only, but the tree's {why}"):
            DenseGradientTree.from_tree(tree)
    with pytest.raises(ValueError, match="the schema's column 'mass'"):
        make_layer(k=1, d=2).to_tree(schema=missing)


def test_only_trees_are_taken():
    with pytest.raises(TypeError, match=r"of type ObliqueTree, got str.*estimator\.tree_"):
        DenseGradientTree.from_tree("tree")


def test_weights_beyond_float32_are_refused():
    tree = ObliqueTree.of([[1e300]], bias=[0.0], values=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"weight_1 are too large for torch\.float32"):
        DenseGradientTree.from_tree(tree)
    assert DenseGradientTree.from_tree(tree, dtype=torch.float64).weight_1.item() == 1e300


def test_an_estimators_tree_can_be_learned_further():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] > 0) ^ (X[:, 2] > 0)
    model = hardwood.DGTClassifier(max_depth=2, max_epochs=5, n_restarts=1, random_state=0).fit(
        X, y
    )
    layer = DenseGradientTree.from_tree(model.tree_, max_depth=3)
    loss = torch.nn.CrossEntropyLoss()
    x, label = torch.tensor(X), torch.tensor(y.astype(np.int64))
    before = loss(layer(x), label).item()
    optimizer = torch.optim.RMSprop(layer.parameters(), lr=1e-2)
    for _ in range(200):
        optimizer.zero_grad()
        loss(layer(x), label).backward()
        optimizer.step()
    tree = layer.to_tree(schema=model.tree_.schema, classes=model.tree_.classes)
    assert loss(layer(x), label).item() < before
    assert (tree.predict(X) == y).mean() >= model.score(X, y)
