"""The layer as torch users meet it: shapes, dtypes, copies, compilation, errors, learning."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
import torch

from hardwood.learn.dgt import DGT
from hardwood.nn import DenseGradientTree, engine_available
from hardwood.nn.dgt_op import dense_gradient_tree, dense_gradient_tree_backward

DTYPES = [torch.float32, torch.float64]


def gradients(layer, x, slope):
    """Return what the layer answers, and its gradients by x and by the parameters."""
    x = x.detach().clone().requires_grad_()
    answer = layer(x)
    return answer.detach(), *torch.autograd.grad(answer, [x, *layer.parameters()], slope)


def assert_same(found, expected):
    for f, e in zip(found, expected, strict=True):
        assert torch.equal(f, e)


@pytest.mark.parametrize("shape", [(), (4,), (0,), (2, 3), (2, 0, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_leading_shape(shape, dtype):
    layer = DenseGradientTree(3, 2, 4, dtype=dtype)
    x = torch.randn(*shape, 3, dtype=dtype, requires_grad=True)
    answer = layer(x)
    assert answer.shape == (*shape, 2)
    assert torch.equal(answer, layer.leaves[layer.route(x)])
    answer.sum().backward()
    assert x.grad.shape == x.shape
    assert layer.leaves.grad.sum() == 2 * x[..., 0].numel()


@pytest.mark.parametrize("dtype", DTYPES)
def test_strides_do_not_matter(dtype):
    layer = DenseGradientTree(6, 2, 4, dtype=dtype)
    x, slope = torch.randn(6, 40, dtype=dtype).T[::2], torch.randn(2, 20, dtype=dtype).T
    expected = gradients(layer, x.contiguous(), slope.contiguous())
    answer = layer(x)
    found = torch.autograd.grad(answer, list(layer.parameters()), slope)
    assert_same((answer, *found), (expected[0], *expected[2:]))
    layer(x).sum().backward()  # its slope is one number, expanded


def test_input_that_needs_no_gradient_gets_none():
    layer = DenseGradientTree(3, 1, 2)
    x = torch.randn(5, 3)
    layer(x).sum().backward()
    assert x.grad is None
    assert layer.weight_1.grad is not None


@pytest.mark.parametrize("frozen", ["weight_1", "bias", "leaves"])
def test_frozen_parameters_stay_without_gradient(frozen):
    layer = DenseGradientTree(3, 1, 2)
    getattr(layer, frozen).requires_grad_(False)
    layer(torch.randn(5, 3)).sum().backward()
    for name, parameter in layer.named_parameters():
        assert (parameter.grad is None) == (name == frozen)


@pytest.mark.parametrize("needs_gradient", [True, False])
@pytest.mark.parametrize("n", [5, 0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_finds_the_operators_well_registered(dtype, n, needs_gradient):
    layer = DenseGradientTree(4, 2, 3, dtype=dtype).requires_grad_(needs_gradient)
    x = torch.randn(n, 4, dtype=dtype, requires_grad=needs_gradient)
    case = (x, layer.weight, layer.bias, layer.leaves)
    torch.library.opcheck(dense_gradient_tree, case)
    leaf, slope = layer.route(x).int(), torch.randn(n, 2, dtype=dtype)
    if not needs_gradient:
        for with_x in (True, False):
            torch.library.opcheck(dense_gradient_tree_backward, (*case, leaf, slope, with_x))


def assert_compiles(network, backend, dtype=torch.float32):
    torch.compiler.reset()
    compiled = torch.compile(network, fullgraph=True, backend=backend, dynamic=True)
    for n in (8, 5):
        x, slope = torch.randn(n, 4, dtype=dtype), torch.randn(n, 2, dtype=dtype)
        expected = gradients(network, x, slope)
        for f, e in zip(gradients(compiled, x, slope), expected, strict=True):
            torch.testing.assert_close(f, e)


torchs_own_warnings = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # while it compiles


@torchs_own_warnings
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiles_without_a_graph_break_on_top_of_a_network(dtype):
    tree = DenseGradientTree(6, 2, 3, layers=[5], dtype=dtype)
    network = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), tree).to(dtype)
    assert_compiles(network, "aot_eager", dtype)


@torchs_own_warnings
def test_compiles_by_the_default_backend():
    assert_compiles(DenseGradientTree(4, 2, 3), "inductor")


@torchs_own_warnings
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_compiler_sees_into_the_layer_where_the_engine_does_not_compute(dtype):
    torch.compiler.reset()
    seen = []

    def backend(module, example):
        seen.extend(str(node.target) for node in module.graph.nodes)
        return module

    layer = DenseGradientTree(4, 2, 3, dtype=dtype)
    torch.compile(layer, fullgraph=True, backend=backend)(torch.ones(2, 4, dtype=dtype))
    in_engine = engine_available() and dtype == torch.float32
    assert any("hardwood" in target for target in seen) == in_engine


@torchs_own_warnings
@pytest.mark.parametrize("layers", [1, 3])
def test_compiles_under_autocast(layers):
    torch.compiler.reset()
    layer = DenseGradientTree(4, 2, 3, layers=layers)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    x = torch.randn(50, 4).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(compiled(x), layer(x.float()))


def test_exports():
    layer = DenseGradientTree(4, 2, 3).eval()
    x = torch.randn(6, 4)
    program = torch.export.export(layer, (x,))
    assert torch.equal(program.module()(x), layer(x))


@pytest.mark.parametrize("layers", [1, 3])
def test_autocast_leaves_the_tree_in_its_own_precision(layers):
    layer = DenseGradientTree(4, 2, 5, layers=layers)
    x = torch.randn(200, 4).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        answer = layer(x)
    assert answer.dtype == torch.float32
    assert torch.equal(answer, layer(x.float()))
    answer.sum().backward()
    assert layer.weight_1.grad.dtype == torch.float32


def test_half_precision_is_refused():
    with pytest.raises(TypeError, match="float32 or float64, got torch.bfloat16"):
        DenseGradientTree(4, 2, 3, dtype=torch.bfloat16)
    with pytest.raises(TypeError, match="float32 or float64, got torch.float16"):
        DenseGradientTree(4, 2, 3).half()(torch.zeros(1, 4).half())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64])
def test_input_of_another_dtype_is_refused(dtype):
    with pytest.raises(TypeError, match=f"layer's dtype, torch.float32, got {dtype}"):
        DenseGradientTree(4, 2, 3)(torch.zeros(5, 4, dtype=dtype))


@pytest.mark.parametrize("shape", [(), (5,), (3, 5), (4, 3)])
def test_input_of_another_width_is_refused(shape):
    with pytest.raises(ValueError, match=r"expected input of shape \(\.\.\., 4\), got"):
        DenseGradientTree(4, 2, 3)(torch.zeros(shape))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"in_features": 0}, "in_features must be an integer >= 1, got 0"),
        ({"out_features": 1.5}, "out_features must be an integer >= 1, got 1.5"),
        ({"max_depth": 0}, "max_depth must be an integer from 1 to 20, got 0"),
        ({"max_depth": 21}, "max_depth must be an integer from 1 to 20, got 21"),
        ({"max_depth": True}, "max_depth must be an integer from 1 to 20, got True"),
        ({"layers": 0}, "layers must be an integer >= 1, got 0"),
        ({"layers": [8, 0]}, "a hidden size in layers must be an integer >= 1, got 0"),
        ({"layers": "33"}, "a hidden size in layers must be an integer >= 1, got '3'"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        DenseGradientTree(**{"in_features": 4, "out_features": 2, "max_depth": 3, **arguments})


@pytest.mark.parametrize("layers", [1, [5, 6]])
@pytest.mark.parametrize("bias", [True, False])
def test_state_and_copies(layers, bias):
    layer = DenseGradientTree(4, 2, 3, layers=layers, bias=bias)
    x = torch.randn(9, 4)
    stream = io.BytesIO()
    torch.save(layer.state_dict(), stream)
    stream.seek(0)
    other = DenseGradientTree(4, 2, 3, layers=layers, bias=bias)
    other.load_state_dict(torch.load(stream, weights_only=True))
    for copied in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(copied(x), layer(x))
        assert copied.state_dict().keys() == layer.state_dict().keys()
        with torch.no_grad():
            copied.leaves += 1
        assert not torch.equal(copied(x), layer(x))


def test_the_names_of_parameters_are_a_promise():
    assert list(DenseGradientTree(4, 2, 3).state_dict()) == ["weight_1", "bias", "leaves"]
    deep = DenseGradientTree(4, 2, 3, layers=3, bias=False).state_dict()
    assert {name: tuple(part.shape) for name, part in deep.items()} == {
        "weight_1": (420, 4),
        "weight_2": (420, 420),
        "weight_3": (7, 420),
        "leaves": (8, 2),
    }


def test_repr():
    assert repr(DenseGradientTree(4, 2, 3)) == "DenseGradientTree(4, 2, max_depth=3)"
    deep = DenseGradientTree(4, 2, 3, layers=[8, 8], bias=False)
    assert repr(deep) == "DenseGradientTree(4, 2, max_depth=3, layers=[8, 8], bias=False)"


@pytest.mark.parametrize("depth", range(1, 13))
def test_hidden_sizes_are_those_of_table_12_and_of_the_engine(depth):
    layer = DenseGradientTree(1, 1, depth, layers=2, device="meta")
    between = np.interp(depth, [2, 4, 6, 8, 10], [240, 600, 1008, 1530, 2046])
    assert layer.hidden_sizes == (between,) == DGT(max_depth=depth, layers=2).hidden_sizes


def test_the_start_is_that_of_the_authors_and_comes_from_the_generator():
    make = lambda seed: DenseGradientTree(  # noqa: E731
        25, 3, 6, layers=[100], generator=torch.Generator().manual_seed(seed)
    )
    first, again, other = make(0), make(0), make(1)
    assert_same(first.parameters(), again.parameters())
    assert not torch.equal(first.weight_1, other.weight_1)
    assert not first.bias.any()
    for parameter, bound in ((first.weight_1, 0.2), (first.weight_2, 0.1), (first.leaves, 0.125)):
        assert 0.95 * bound < parameter.abs().max() <= bound
        assert abs(parameter.mean()) < 0.2 * bound


def test_shapes_on_the_meta_device():
    layer = DenseGradientTree(4, 2, 3, layers=3, device="meta")
    x = torch.empty(5, 4, device="meta", requires_grad=True)
    answer = layer(x)
    assert (answer.shape, answer.device.type) == ((5, 2), "meta")
    answer.sum().backward()
    assert x.grad.shape == x.shape


@pytest.mark.parametrize("layers", [1, 3])
def test_learns_a_checkerboard_that_no_single_split_can(layers):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(400, 2, generator=generator) * 2 - 1
    label = (x[:, 0] * x[:, 1] > 0).long()
    layer = DenseGradientTree(2, 2, 3, layers=layers, generator=generator)
    optimizer = torch.optim.RMSprop(layer.parameters(), lr=0.01 if layers == 1 else 0.001)
    for _ in range(300):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(layer(x), label).backward()
        optimizer.step()
    assert (layer(x).argmax(dim=1) == label).float().mean() > 0.9


def test_what_stands_below_the_tree_learns_too():
    """Two rings: no tree of depth 1 tells them apart, but one over learned features does."""
    torch.manual_seed(0)
    angle, label = 6.2832 * torch.rand(500), torch.arange(500) % 2
    x = torch.stack([angle.cos(), angle.sin()], dim=1) * (1.0 + label)[:, None]
    network = torch.nn.Sequential(
        torch.nn.Linear(2, 16),
        torch.nn.ReLU(),
        torch.nn.BatchNorm1d(16),
        DenseGradientTree(16, 2, 1),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(300):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x), label).backward()
        optimizer.step()
    assert (network(x).argmax(dim=1) == label).float().mean() > 0.95


@pytest.mark.parametrize("x", [[[0.0, 1.0]], None, "rows"])
def test_what_is_no_tensor_is_named(x):
    with pytest.raises(TypeError, match="takes a tensor"):
        DenseGradientTree(2, 1, 2)(x)
