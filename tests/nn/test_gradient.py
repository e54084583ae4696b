"""The layer's forward pass and gradient: the definition, the NumPy reference, the engine."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from path_matrix import path_matrix, prediction

from hardwood.nn import DenseGradientTree, dgt_op, engine_available, operators
from reference import dgt as reference

SIZES = [(1, 1), (2, 3), (3, 1), (4, 2), (6, 10), (8, 1)]  # depth, outputs


def dyadic(generator: torch.Generator, shape, unit: float, bound: float) -> torch.Tensor:
    """Multiples of a power of two, of which dot products are exact: scores of 0 and 1 occur."""
    n = int(bound / unit)
    return torch.randint(-n, n + 1, shape, generator=generator) * unit


def make_case(depth, k, n=40, d=7, *, seed=0, dtype=torch.float64, exact=False):
    """Samples, splits, leaves and slopes: x, weight, bias, leaves, slope."""
    generator = torch.Generator().manual_seed(1000 * depth + seed)
    m = 2**depth - 1

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    if exact:
        x, weight = dyadic(generator, (n, d), 0.25, 2.0), dyadic(generator, (m, d), 0.125, 0.5)
        bias = dyadic(generator, (m,), 0.125, 1.0)
    else:
        x, weight, bias = normal(n, d), normal(m, d) / d**0.5, 0.3 * normal(m)
    return tuple(part.to(dtype) for part in (x, weight, bias, normal(m + 1, k), normal(n, k)))


def by_autograd(depth, x, weight, bias, leaves, slope):
    """Return the prediction and the gradients by x, weight, bias and leaves of the definition."""
    parts = [part.clone().requires_grad_() for part in (x, weight, bias, leaves)]
    answer = prediction(*parts, path_matrix(depth, x))
    return answer.detach(), torch.autograd.grad(answer, parts, slope)


@pytest.mark.parametrize("exact", [False, True], ids=["random", "ties"])
@pytest.mark.parametrize(("depth", "k"), SIZES)
def test_gradients_equal_the_definition(depth, k, exact):
    x, weight, bias, leaves, slope = make_case(depth, k, exact=exact)
    expected_answer, expected = by_autograd(depth, x, weight, bias, leaves, slope)
    answer, leaf = dgt_op.torch_forward(x, weight, bias, leaves)
    found = dgt_op.torch_backward(x, weight, bias, leaves, leaf, slope, with_x=True)
    torch.testing.assert_close(answer, expected_answer, rtol=0, atol=1e-14)
    for f, e in zip(found, expected, strict=True):
        torch.testing.assert_close(f, e, rtol=0, atol=1e-10)


@pytest.mark.parametrize("layers", [1, 2, 3, [5], [4, 9, 6]], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_gradients_by_every_parameter_of_a_layer_equal_the_definition(layers, bias):
    layer = DenseGradientTree(5, 3, 4, layers=layers, bias=bias, dtype=torch.float64)
    if bias:
        torch.nn.init.normal_(layer.bias, std=0.3)
    x = torch.randn(30, 5, dtype=torch.float64, requires_grad=True)
    slope = torch.randn(30, 3, dtype=torch.float64)
    weight = layer.factors[0]
    for factor in layer.factors[1:]:
        weight = factor @ weight
    offsets = layer.bias if bias else torch.zeros(15, dtype=torch.float64)
    definition = prediction(x, weight, offsets, layer.leaves, path_matrix(4, x))
    parts = [x, *layer.parameters()]
    expected = torch.autograd.grad(definition, parts, slope)
    answer = layer(x)
    torch.testing.assert_close(answer, definition, rtol=0, atol=1e-14)
    for f, e in zip(torch.autograd.grad(answer, parts, slope), expected, strict=True):
        torch.testing.assert_close(f, e, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("depth", "k"), SIZES)
def test_gradients_equal_the_numpy_twin(depth, k):
    case = make_case(depth, k, exact=True)
    x, weight, bias, leaves, slope = (part.numpy() for part in case)
    answer, leaf = dgt_op.torch_forward(*case[:4])
    _, *found = dgt_op.torch_backward(*case[:4], leaf, case[4], with_x=False)
    np.testing.assert_array_equal(answer, reference.forward(x, weight, bias, leaves))
    for f, e in zip(found, reference.backward(x, weight, bias, leaves, slope), strict=True):
        np.testing.assert_allclose(f, e, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("n", "d", "depth", "k"),
    [
        (1, 1, 1, 1),
        (17, 5, 3, 2),
        (128, 16, 6, 1),
        (600, 9, 6, 10),
        (1500, 33, 8, 3),
        (70, 8, 10, 1),
    ],
)
@pytest.mark.skipif(not engine_available(), reason="the engine is not built")
def test_the_engine_agrees_with_torch(n, d, depth, k):
    x, weight, bias, leaves, slope = make_case(depth, k, n, d, dtype=torch.float32, exact=True)
    wide = [part.double() for part in (x, weight, bias, leaves)]
    answer, leaf = dgt_op.engine_forward(x, weight, bias, leaves)
    expected_answer, expected_leaf = dgt_op.torch_forward(*wide)
    torch.testing.assert_close(answer.double(), expected_answer, rtol=0, atol=0)
    assert torch.equal(leaf, expected_leaf)
    found = dgt_op.engine_backward(x, weight, bias, leaves, leaf, slope, with_x=True)
    expected = dgt_op.torch_backward(*wide, leaf, slope.double(), with_x=True)
    for f, e in zip(found, expected, strict=True):
        torch.testing.assert_close(f.double(), e, rtol=0, atol=1e-5 * float(e.abs().max()))


@pytest.mark.skipif(not engine_available(), reason="the engine is not built")
def test_the_engine_gives_one_answer_for_any_number_of_threads(monkeypatch):
    case = make_case(5, 3, n=3000, dtype=torch.float32)
    answers = []
    for n_threads in (1, 2, 5):
        monkeypatch.setattr(torch, "get_num_threads", lambda n=n_threads: n)
        answer, leaf = dgt_op.engine_forward(*case[:4])
        answers.append(
            (answer, leaf, *dgt_op.engine_backward(*case[:4], leaf, case[4], with_x=True))
        )
    for other in answers[1:]:
        assert all(torch.equal(a, b) for a, b in zip(answers[0], other, strict=True))


@pytest.mark.skipif(not engine_available(), reason="the engine is not built")
def test_float32_on_the_cpu_runs_in_the_engine_and_float64_in_torch(monkeypatch):
    calls = []
    run = operators.run_engine
    monkeypatch.setattr(
        operators, "run_engine", lambda name, *a: (calls.append(name), run(name, *a))
    )
    for dtype in (torch.float64, torch.float32):
        layer = DenseGradientTree(3, 1, 2, dtype=dtype)
        layer(torch.ones(4, 3, dtype=dtype)).sum().backward()
        assert calls == (
            [] if dtype == torch.float64 else ["dgt_layer_forward", "dgt_layer_backward"]
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_score_that_is_not_a_number_goes_left(dtype):
    layer = DenseGradientTree(2, 1, 3, dtype=dtype)
    assert layer.route(torch.full((9, 2), torch.nan, dtype=dtype)).tolist() == [0] * 9


def test_leaves_receive_the_slopes_of_the_samples_that_reached_them():
    layer = DenseGradientTree(3, 2, 3)
    x, slope = torch.randn(50, 3), torch.randn(50, 2)
    layer(x).backward(slope)
    for leaf in range(8):
        expected = slope[layer.route(x) == leaf].sum(dim=0)
        torch.testing.assert_close(layer.leaves.grad[leaf], expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_deep_tree_needs_no_matrix_of_paths(dtype):
    """A matrix of paths of height 15 would take 4 GB in float32."""
    layer = DenseGradientTree(4, 1, 15, dtype=dtype)
    layer(torch.randn(3, 4, dtype=dtype)).sum().backward()
    assert layer.weight_1.grad.any()


def test_there_is_no_second_derivative():
    layer = DenseGradientTree(3, 1, 2)
    x = torch.randn(4, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivative"):
        gradient.sum().backward()
