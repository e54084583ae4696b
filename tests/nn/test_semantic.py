"""The layer of semantic logits: the engine's step, the hard tree, and the way to a model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits, load_iris

from hardwood import SemanticTreeClassifier, _probes
from hardwood.nn import SemanticTree

DTYPES = [torch.float32, torch.float64]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def dyadic(shape, unit: float, bound: float) -> torch.Tensor:
    """Multiples of a power of two, whose sums are exact: ties are ties everywhere."""
    n = int(bound / unit)
    return torch.randint(-n, n + 1, shape, generator=generator(shape[0])) * unit


@pytest.mark.parametrize(
    ("height", "d", "n_classes"), [(1, 1, 2), (3, 4, 3), (5, 9, 7), (8, 16, 3)]
)
def test_it_is_the_step_of_the_engine(height, d, n_classes):
    layer = SemanticTree(d, n_classes, height)
    with torch.no_grad():
        layer.weight_1.copy_(dyadic(layer.weight_1.shape, 0.125, 0.5))
        layer.bias.copy_(dyadic(layer.bias.shape, 0.125, 1.0))
    x, y = dyadic((60, d), 0.25, 2.0), torch.randint(0, n_classes, (60,), generator=generator())
    loss = F.cross_entropy(layer(x), y)
    loss.backward()
    options = {"height": height, "linear_leaves": False, "n_mixed": 1}
    probe = _probes.LearnerProbe(
        "semantic",
        x.numpy(),
        y.numpy()[:, None].astype(np.float32),
        np.ones(60, np.float32),
        n_outputs=n_classes,
        loss="cross_entropy",
        options=options | {"classes": layer.classes.tolist()},
    )
    none = np.zeros((0, n_classes), np.float32)
    probe.set(layer.weight_1.detach().numpy(), layer.bias.detach().numpy(), none)
    found, dW, db, *_ = probe.gradient()
    assert loss.item() == pytest.approx(found, rel=1e-5)
    for a, e in ((layer.weight_1.grad, dW), (layer.bias.grad, db)):
        np.testing.assert_allclose(a, e, atol=1e-5 * np.abs(e).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (4,), (0,), (2, 3)])
def test_any_leading_shape(shape, dtype):
    layer = SemanticTree(3, 3, 4, dtype=dtype)
    x = torch.randn(*shape, 3, dtype=dtype, requires_grad=True)
    answer = layer(x)
    assert answer.shape == (*shape, 3)
    assert layer.leaf_scores(x).shape == (*shape, 16)
    assert torch.equal(answer.argmax(dim=-1), layer.classes[layer.route(x)])
    answer.sum().backward()
    assert x.grad.shape == x.shape


def test_the_gradient_is_exact():
    layer = SemanticTree(4, 3, 4, layers=[5], dtype=torch.float64, generator=generator())
    x = torch.randn(6, 4, dtype=torch.float64, generator=generator(1), requires_grad=True)
    slope = torch.randn(6, 3, dtype=torch.float64, generator=generator(2))

    def weighted(x, *parameters):
        names = [name for name, _ in layer.named_parameters()]
        state = dict(zip(names, parameters, strict=True))
        return (torch.func.functional_call(layer, state, (x,)) * slope).sum()

    assert torch.autograd.gradcheck(weighted, (x, *layer.parameters()))


def test_it_learns_and_becomes_a_model():
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    layer = SemanticTree(64, 10, 6, generator=generator())
    rows, classes = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    optimizer = torch.optim.Adam(layer.parameters(), 0.03)
    for _ in range(150):
        optimizer.zero_grad()
        F.cross_entropy(layer(rows), classes).backward()
        optimizer.step()
    predicted = layer(rows).argmax(dim=1).numpy()
    assert (predicted == y).mean() > 0.88
    tree = layer.to_tree(classes=[f"digit {c}" for c in range(10)], target_names="digit")
    found = tree.predict(rows.numpy())
    assert found[0] == "digit 0"
    np.testing.assert_array_equal([int(label[-1]) for label in found], predicted)


def test_a_tree_becomes_a_layer_and_a_tree_again():
    X, y = load_iris(return_X_y=True)
    tree = SemanticTreeClassifier(max_depth=2, max_epochs=30, random_state=0).fit(X, y).tree_
    layer = SemanticTree.from_tree(tree, max_depth=4, dtype=torch.float64)
    found = layer(torch.tensor(X)).argmax(dim=1)
    np.testing.assert_array_equal(found, tree.predict(X))
    again = layer.to_tree(schema=tree.schema, classes=tree.classes)
    np.testing.assert_array_equal(again.predict(X), tree.predict(X))


def test_it_compiles():
    layer = SemanticTree(4, 3, 3)
    x = torch.randn(7, 4)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), layer(x))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"out_features": 9}, "each of the 9 classes needs a leaf"),
        ({"out_features": 1}, "out_features"),
        ({"max_depth": 21}, "max_depth"),
        ({"layers": [0]}, "hidden size"),
    ],
)
def test_what_it_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        SemanticTree(**{"in_features": 4, "out_features": 3, "max_depth": 3, **arguments})


def test_conversions_say_what_does_not_fit():
    layer = SemanticTree(4, 3, 3)
    with pytest.raises(ValueError, match="expected 3 classes"):
        layer.to_tree(classes=["a", "b"])
    tree = SemanticTree(4, 2, 1).to_tree()
    sure = tree.replace(values=np.array([[1.0, 0.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="no leaf of the tree prefers the class number 1"):
        SemanticTree.from_tree(sure)
    assert repr(layer) == "SemanticTree(4, 3, max_depth=3)"
