"""The tree ensemble layer: its gradient, and the layer as torch users meet it."""

from __future__ import annotations

import copy
import io
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.fx.experimental.proxy_tensor
from soft_trees import leaf_probabilities, prediction

from hardwood.nn import TreeEnsembleLayer, engine_available, operators, tel_op
from reference import tel as reference

ACTIVATIONS = ["smooth_step", "smooth_step_5", "logistic"]
DTYPES = [torch.float32, torch.float64]
SIZES = [(1, 1, 1), (2, 3, 2), (3, 1, 4), (5, 10, 3), (6, 2, 1)]  # depth, outputs, trees
IN_TORCH = SimpleNamespace(
    forward=tel_op.torch_forward,
    backward=tel_op.torch_backward,
    reachable_leaves=tel_op.torch_reachable_leaves,
)
IN_ENGINE = SimpleNamespace(
    forward=tel_op.engine_forward,
    backward=tel_op.engine_backward,
    reachable_leaves=tel_op.engine_reachable_leaves,
)
WAYS = [
    IN_TORCH,
    pytest.param(
        IN_ENGINE,
        marks=pytest.mark.skipif(not engine_available(), reason="the engine is not built"),
    ),
]
each_activation = pytest.mark.parametrize("activation", ACTIVATIONS)
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_way = pytest.mark.parametrize("way", WAYS, ids=["torch", "engine"])


def make_case(depth, k, trees, n=30, d=5, *, dtype=torch.float64, seed=0, scale=1.0):
    """Samples, splits, leaves and slopes: x, weight, bias, leaves, slope."""
    generator = torch.Generator().manual_seed(100 * depth + seed)
    m = 2**depth - 1

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    weight, bias = scale * normal(trees, m, d) / d**0.5, 0.3 * scale * normal(trees, m)
    parts = (normal(n, d), weight, bias, normal(trees, m + 1, k), normal(n, k))
    return tuple(part.to(dtype) for part in parts)


def at_the_edges(gamma, n=60, d=3, trees=2, depth=5, k=2):
    """Scores that are multiples of gamma/8 without a rounding error, many at -+gamma/2."""
    generator = torch.Generator().manual_seed(0)

    def whole(*shape):
        return torch.randint(-2, 3, shape, generator=generator).double()

    m = 2**depth - 1
    x, bias = gamma / 8 * whole(n, d), gamma / 8 * whole(trees, m)
    leaves = torch.randn(trees, m + 1, k, generator=generator, dtype=torch.float64)
    slope = torch.randn(n, k, generator=generator, dtype=torch.float64)
    return x, whole(trees, m, d), bias, leaves, slope


def by_autograd(x, weight, bias, leaves, slope, gamma, activation):
    """Return the answer and the gradients by x, weight, bias and leaves of the definition."""
    parts = [part.clone().requires_grad_() for part in (x, weight, bias, leaves)]
    answer = prediction(*parts, gamma, activation)
    return [answer.detach(), *torch.autograd.grad(answer, parts, slope)]


def both_passes(way, x, weight, bias, leaves, slope, gamma, activation):
    answer = way.forward(x, weight, bias, leaves, gamma, activation)
    found = way.backward(x, weight, bias, leaves, slope, gamma, activation, with_x=True)
    return [answer, *found]


def assert_near(found, expected, tolerance):
    for f, e in zip(found, expected, strict=True):
        assert f.shape == e.shape
        atol = tolerance * max(1.0, float(e.abs().max()))
        torch.testing.assert_close(f.double(), e.double(), rtol=0, atol=atol)


@each_way
@each_activation
@pytest.mark.parametrize(("depth", "k", "trees"), SIZES)
def test_gradients_equal_autograd_of_the_definition(depth, k, trees, activation, way):
    case = make_case(depth, k, trees)
    for gamma in (1e-4, 0.1, 1.0, 10.0):
        found = both_passes(way, *case, gamma, activation)
        assert_near(found, by_autograd(*case, gamma, activation), 1e-10)


@each_way
@pytest.mark.parametrize("activation", ACTIVATIONS[:2])
@pytest.mark.parametrize("gamma", [1.0, 0.125, 2.0**-14])
def test_gradients_equal_the_definition_on_the_edges_of_the_bands(gamma, activation, way):
    case = at_the_edges(gamma)
    t = torch.einsum("nd,tmd->ntm", *case[:2]) + case[2]
    assert (t.abs() == gamma / 2).double().mean() > 0.05
    found = both_passes(way, *case, gamma, activation)
    assert_near(found, by_autograd(*case, gamma, activation), 1e-12)


@each_way
@each_activation
def test_gradients_equal_the_numpy_twin(activation, way):
    case = make_case(4, 3, 3)
    x, weight, bias, leaves, slope = (part.numpy() for part in case)
    answer, *found = both_passes(way, *case, 0.5, activation)
    expected = reference.forward(x, weight, bias, leaves, 0.5, activation)
    np.testing.assert_allclose(answer, expected, rtol=0, atol=1e-13)
    gradients = reference.backward(x, weight, bias, leaves, slope, 0.5, activation)
    for f, e in zip(found, gradients, strict=True):
        np.testing.assert_allclose(f, e, rtol=0, atol=1e-12)
    counts = way.reachable_leaves(*case[:3], 0.5, activation)
    of_reference = reference.reachable_leaves(x, weight, bias, 0.5, activation)
    np.testing.assert_array_equal(counts, of_reference)


@each_way
@each_activation
def test_float32_is_as_exact_as_it_can_be(activation, way):
    case = make_case(7, 4, 3, n=300, d=9)
    expected = both_passes(IN_TORCH, *case, 0.5, activation)
    found = both_passes(way, *(part.float() for part in case), 0.5, activation)
    assert_near(found, expected, 2e-5)


@each_way
def test_reachable_leaves_are_those_of_positive_probability(way):
    for gamma in (0.125, 1.0):
        x, weight, bias, *_ = at_the_edges(gamma)
        expected = (leaf_probabilities(x, weight, bias, gamma, "smooth_step") > 0).sum(dim=2)
        found = way.reachable_leaves(x, weight, bias, gamma, "smooth_step")
        assert found.dtype == torch.int32
        assert torch.equal(found.long(), expected)
        assert 1 < expected.double().mean() < 16


@each_activation
def test_gradcheck(activation):
    x, weight, bias, leaves, _ = make_case(3, 2, 2, n=4, d=3, scale=0.4)
    parts = [part.requires_grad_() for part in (x, weight, bias, leaves)]
    assert torch.autograd.gradcheck(lambda *parts: tel_op.answer(*parts, 0.7, activation), parts)


def test_gradcheck_of_the_layer_with_its_normalization():
    layer = TreeEnsembleLayer(3, 2, 2, 3, bias=False, dtype=torch.float64)
    torch.nn.init.normal_(layer.leaves)
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, *_: layer(x), (x, *layer.parameters()))


def gradients(layer, x, slope):
    """Return what the layer answers, and its gradients by x and by the parameters."""
    x = x.detach().clone().requires_grad_()
    answer = layer(x)
    return answer.detach(), *torch.autograd.grad(answer, [x, *layer.parameters()], slope)


def make_layer(d=4, k=2, n_trees=3, depth=3, gamma=0.7, **options):
    """Make a layer some of whose splits are sure of a normal sample."""
    layer = TreeEnsembleLayer(d, k, n_trees, depth, gamma, **options)
    torch.nn.init.normal_(layer.weight, std=0.3)
    torch.nn.init.normal_(layer.leaves)
    return layer


@pytest.mark.parametrize("shape", [(), (4,), (0,), (2, 3), (2, 0, 3)])
@each_dtype
def test_any_leading_shape(shape, dtype):
    layer = make_layer(dtype=dtype).eval()
    x = torch.randn(*shape, 4, dtype=dtype, requires_grad=True)
    answer = layer(x)
    assert answer.shape == (*shape, 2)
    assert layer.reachable_leaves(x).shape == (*shape, 3)
    answer.sum().backward()
    assert x.grad.shape == x.shape
    # Every sample leaves a share of one in every tree, for each output.
    share = layer.leaves.grad.sum(dim=(1, 2))
    torch.testing.assert_close(share, torch.full_like(share, 2.0 * x[..., 0].numel()))


@pytest.mark.parametrize("training", [True, False])
def test_an_empty_batch_leaves_the_statistics_alone(training):
    layer = make_layer().train(training)
    assert layer(torch.zeros(0, 4)).shape == (0, 2)
    assert layer.reachable_leaves(torch.zeros(0, 4)).shape == (0, 3)
    assert not layer.batch_norm.running_mean.any()
    assert layer.batch_norm.num_batches_tracked == 0


@each_dtype
def test_strides_do_not_matter(dtype):
    layer = make_layer(6, dtype=dtype)
    x, slope = torch.randn(6, 40, dtype=dtype).T[::2], torch.randn(2, 20, dtype=dtype).T
    expected = gradients(layer, x.contiguous(), slope.contiguous())
    for f, e in zip(gradients(layer, x, slope), expected, strict=True):
        torch.testing.assert_close(f, e)
    layer(x).sum().backward()  # its slope is one number, expanded


def test_input_that_needs_no_gradient_gets_none():
    layer = make_layer(batch_norm=False)
    x = torch.randn(5, 4)
    layer(x).sum().backward()
    assert x.grad is None
    assert layer.weight.grad is not None


@pytest.mark.parametrize("frozen", ["weight", "bias", "leaves"])
def test_frozen_parameters_stay_without_gradient(frozen):
    layer = make_layer()
    getattr(layer, frozen).requires_grad_(False)
    layer(torch.randn(5, 4)).sum().backward()
    for name, parameter in layer.named_parameters():
        assert (parameter.grad is None) == (name == frozen)


def test_the_normalization_is_torchs_own():
    layer = make_layer()
    bare = make_layer(batch_norm=False)
    bare.load_state_dict({n: p for n, p in layer.state_dict().items() if "batch_norm" not in n})
    norm = torch.nn.BatchNorm1d(4, affine=False)
    for x in 3 * torch.randn(5, 40, 4) + 1:
        assert torch.equal(layer(x), bare(norm(x)))
    layer.eval(), norm.eval()
    assert torch.equal(layer(x), bare(norm(x)))
    assert torch.equal(layer.reachable_leaves(x), bare.reachable_leaves(norm(x)))


def test_scale_and_shift_are_where_splits_have_no_bias():
    assert make_layer().batch_norm.weight is None
    without = make_layer(bias=False)
    assert without.batch_norm.weight.shape == without.batch_norm.bias.shape == (4,)
    torch.nn.init.normal_(without.batch_norm.bias)
    without(torch.randn(9, 4)).sum().backward()
    assert without.batch_norm.bias.grad.any()


@pytest.mark.parametrize("training", [True, False])
def test_counting_leaves_changes_no_statistics(training):
    layer = make_layer().train(training)
    x = 3 * torch.randn(50, 4) + 1
    before = copy.deepcopy(layer.state_dict())
    counts = layer.reachable_leaves(x)
    for name, part in layer.state_dict().items():
        assert torch.equal(part, before[name])
    by_batch = (x - x.mean(dim=0)) / (x.var(dim=0, unbiased=False) + 1e-5).sqrt()
    rows = by_batch if training else x / (1 + 1e-5) ** 0.5
    parts = (rows.double(), layer.weight.double(), layer.bias.double())
    expected = (leaf_probabilities(*parts, 0.7, "smooth_step") > 0).sum(dim=2)
    assert counts.dtype == torch.int64
    assert torch.equal(counts, expected)


def test_the_logistic_function_reaches_everything():
    layer = make_layer(activation="logistic", gamma=1e-3)
    assert (layer.reachable_leaves(torch.randn(9, 4)) == 8).all()


@pytest.mark.parametrize("needs_gradient", [True, False])
@pytest.mark.parametrize("n", [5, 0])
@each_dtype
def test_torch_finds_the_operators_well_registered(dtype, n, needs_gradient):
    layer = make_layer(dtype=dtype).requires_grad_(needs_gradient)
    x = torch.randn(n, 4, dtype=dtype, requires_grad=needs_gradient)
    case, rest = (x, layer.weight, layer.bias, layer.leaves), (0.7, "smooth_step")
    torch.library.opcheck(tel_op.tree_ensemble, (*case, *rest))
    slope, order = torch.randn(n, 2, dtype=dtype), torch.empty((0, 0), dtype=torch.int64)
    if not needs_gradient:
        for with_x in (True, False):
            inputs = (*case, order, slope, *rest, with_x)
            torch.library.opcheck(tel_op.tree_ensemble_backward, inputs)


def assert_compiles(network, backend, dtype=torch.float32):
    torch.compiler.reset()
    compiled = torch.compile(network, fullgraph=True, backend=backend, dynamic=True)
    for n in (8, 5):
        x, slope = torch.randn(n, 4, dtype=dtype), torch.randn(n, 2, dtype=dtype)
        expected = gradients(network, x, slope)
        for f, e in zip(gradients(compiled, x, slope), expected, strict=True):
            torch.testing.assert_close(f, e, rtol=1e-4, atol=1e-5)


torchs_own_warnings = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # while it compiles


@torchs_own_warnings
@each_dtype
def test_compiles_without_a_graph_break_inside_a_network(dtype):
    network = torch.nn.Sequential(
        torch.nn.Linear(4, 6), make_layer(6, 5), torch.nn.Tanh(), make_layer(5, 2, bias=False)
    )
    assert_compiles(network.to(dtype), "aot_eager", dtype)


@torchs_own_warnings
def test_compiles_by_the_default_backend():
    assert_compiles(make_layer(), "inductor")


@torchs_own_warnings
@pytest.mark.parametrize("has_engine", [True, False])
def test_a_compiler_sees_into_the_layer_where_the_engine_does_not_compute(has_engine, monkeypatch):
    torch.compiler.reset()
    monkeypatch.setattr(tel_op, "takes_engine", lambda x: has_engine and engine_available())
    seen = []

    def backend(module, example):
        seen.extend(str(node.target) for node in module.graph.nodes)
        return module

    layer, x = make_layer().eval(), torch.randn(3, 4)
    answer = torch.compile(layer, fullgraph=True, backend=backend)(x)
    torch.testing.assert_close(answer, layer(x))
    assert any("hardwood" in target for target in seen) == (has_engine and engine_available())


@torchs_own_warnings
def test_a_compiled_layer_without_the_engine_has_the_same_gradient(monkeypatch):
    monkeypatch.setattr(tel_op, "takes_engine", lambda x: False)
    assert_compiles(make_layer(depth=2), "aot_eager")


@torchs_own_warnings
def test_compiles_under_autocast():
    torch.compiler.reset()
    layer = make_layer().eval()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    x = torch.randn(50, 4).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(compiled(x), layer(x.float()))


def test_who_traces_a_layer_sees_its_operator_and_not_its_numbers():
    layer = make_layer().eval().requires_grad_(False)
    graph = torch.fx.experimental.proxy_tensor.make_fx(layer)(torch.randn(6, 4))
    assert any("tree_ensemble" in str(node.target) for node in graph.graph.nodes)
    x = torch.randn(6, 4)
    assert torch.equal(graph(x), layer(x))
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert layer(mode.from_tensor(x)).shape == (6, 2)


def test_exports():
    layer = make_layer().eval()
    x = torch.randn(6, 4)
    program = torch.export.export(layer, (x,))
    assert torch.equal(program.module()(x), layer(x))


@pytest.mark.skipif(not engine_available(), reason="the engine is not built")
def test_one_answer_for_any_number_of_threads(monkeypatch):
    case = make_case(6, 3, 20, n=2000, dtype=torch.float32)
    answers = []
    for n_threads in (1, 2, 5):
        monkeypatch.setattr(torch, "get_num_threads", lambda n=n_threads: n)
        answers.append(both_passes(IN_ENGINE, *case, 0.5, "smooth_step"))
    for other in answers[1:]:
        assert all(torch.equal(a, b) for a, b in zip(answers[0], other, strict=True))


@pytest.mark.skipif(not engine_available(), reason="the engine is not built")
@each_dtype
def test_the_cpu_computes_in_the_engine(dtype, monkeypatch):
    calls = []
    run = operators.run_engine
    monkeypatch.setattr(
        operators, "run_engine", lambda name, *a: (calls.append(name), run(name, *a))
    )
    layer, x = make_layer(dtype=dtype), torch.randn(5, 4, dtype=dtype)
    layer(x).sum().backward()
    layer.reachable_leaves(x)
    assert calls == ["tel_forward", "tel_backward", "tel_reachable"]


def test_there_is_no_second_derivative():
    layer = make_layer()
    x = torch.randn(4, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="TreeEnsembleLayer has no second derivative"):
        gradient.sum().backward()


def test_autocast_leaves_the_layer_in_its_own_precision():
    layer = make_layer().eval()
    for half in (torch.bfloat16, torch.float16):
        x = torch.randn(200, 4).to(half)
        with torch.autocast("cpu", dtype=half):
            answer, counts = layer(x), layer.reachable_leaves(x)
        assert answer.dtype == torch.float32
        assert torch.equal(answer, layer(x.float()))
        assert torch.equal(counts, layer.reachable_leaves(x.float()))
    answer.sum().backward()
    assert layer.weight.grad.dtype == torch.float32


def test_half_precision_is_refused():
    with pytest.raises(TypeError, match="TreeEnsembleLayer computes in float32 or float64, got"):
        TreeEnsembleLayer(4, 2, dtype=torch.bfloat16)
    with pytest.raises(TypeError, match=r"float32 or float64, got torch\.float16"):
        TreeEnsembleLayer(4, 2).half()(torch.zeros(2, 4).half())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64])
def test_input_of_another_dtype_is_refused(dtype):
    for use in (TreeEnsembleLayer(4, 2), TreeEnsembleLayer(4, 2).reachable_leaves):
        with pytest.raises(TypeError, match=rf"layer's dtype, torch\.float32, got {dtype}"):
            use(torch.zeros(5, 4, dtype=dtype))


@pytest.mark.parametrize("shape", [(), (5,), (3, 5), (4, 3)])
def test_input_of_another_width_is_refused(shape):
    with pytest.raises(ValueError, match=r"expected input of shape \(\.\.\., 4\), got"):
        TreeEnsembleLayer(4, 2)(torch.zeros(shape))


@pytest.mark.parametrize("x", [[[0.0, 1.0]], None, "rows"])
def test_what_is_no_tensor_is_named(x):
    with pytest.raises(TypeError, match="TreeEnsembleLayer takes a tensor"):
        TreeEnsembleLayer(2, 1)(x)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"in_features": 0}, "in_features must be an integer >= 1, got 0"),
        ({"out_features": 1.5}, "out_features must be an integer >= 1, got 1.5"),
        ({"n_estimators": 0}, "n_estimators must be an integer >= 1, got 0"),
        ({"max_depth": 0}, "max_depth must be an integer from 1 to 20, got 0"),
        ({"max_depth": 21}, "max_depth must be an integer from 1 to 20, got 21"),
        ({"gamma": 0}, r"gamma must be a number in \[1e-30, 1e\+30\], got 0"),
        ({"gamma": float("nan")}, r"gamma must be a number in \[1e-30, 1e\+30\], got nan"),
        ({"gamma": float("inf")}, r"gamma must be a number in \[1e-30, 1e\+30\], got inf"),
        ({"gamma": "1"}, r"gamma must be a number in \[1e-30, 1e\+30\], got '1'"),
        ({"gamma": None}, r"gamma must be a number in \[1e-30, 1e\+30\], got None"),
        ({"gamma": True}, r"gamma must be a number in \[1e-30, 1e\+30\], got True"),
        ({"activation": "relu"}, "activation must be one of .* got 'relu'"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        TreeEnsembleLayer(**{"in_features": 4, "out_features": 2, **arguments})


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_norm", [True, False])
def test_state_and_copies(batch_norm, bias):
    layer = make_layer(batch_norm=batch_norm, bias=bias)
    layer(torch.randn(20, 4) + 1)  # moves the statistics
    layer.eval()
    x, stream = torch.randn(9, 4), io.BytesIO()
    torch.save(layer.state_dict(), stream)
    stream.seek(0)
    other = make_layer(batch_norm=batch_norm, bias=bias).eval()
    other.load_state_dict(torch.load(stream, weights_only=True))
    for copied in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(copied(x), layer(x))
        assert copied.state_dict().keys() == layer.state_dict().keys()
        with torch.no_grad():
            copied.leaves += 1
        assert not torch.equal(copied(x), layer(x))


def test_the_names_of_parameters_are_a_promise():
    state = TreeEnsembleLayer(4, 2, 5, 3).state_dict()
    assert {name: tuple(part.shape) for name, part in state.items()} == {
        "weight": (5, 7, 4),
        "bias": (5, 7),
        "leaves": (5, 8, 2),
        "batch_norm.running_mean": (4,),
        "batch_norm.running_var": (4,),
        "batch_norm.num_batches_tracked": (),
    }
    bare = TreeEnsembleLayer(4, 2, bias=False, batch_norm=False)
    assert list(bare.state_dict()) == ["weight", "leaves"]


def test_repr():
    assert repr(TreeEnsembleLayer(4, 2)).startswith(
        "TreeEnsembleLayer(\n  4, 2, n_estimators=10, max_depth=5, gamma=1\n"
        "  (batch_norm): BatchNorm1d(4,"
    )
    bare = TreeEnsembleLayer(4, 2, 3, 2, 0.5, activation="logistic", batch_norm=False, bias=False)
    assert repr(bare) == (
        "TreeEnsembleLayer(4, 2, n_estimators=3, max_depth=2, gamma=0.5, activation='logistic', "
        "batch_norm=False, bias=False)"
    )


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 10.0])
@pytest.mark.parametrize("d", [1, 25, 400])
def test_the_start_reaches_most_leaves_whatever_gamma_and_the_width_are(d, gamma):
    layer = TreeEnsembleLayer(
        d, 1, n_estimators=4, max_depth=5, gamma=gamma, generator=torch.Generator().manual_seed(0)
    )
    bound = gamma / 2 / d**0.5
    assert 0.8 * bound < layer.weight.abs().max() <= bound
    assert not layer.bias.any()
    assert layer.leaves.abs().max() <= 0.01
    assert layer.reachable_leaves(torch.randn(200, d)).double().mean() > 20


def test_the_start_comes_from_the_generator_and_makes_different_trees():
    make = lambda seed: TreeEnsembleLayer(  # noqa: E731
        5, 3, 4, 2, generator=torch.Generator().manual_seed(seed)
    )
    first, again, other = make(0), make(0), make(1)
    for a, b, c in zip(first.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a, c) == (not a.any())
    for parameter in (first.weight, first.leaves):
        assert len(parameter.unique(dim=0)) == 4


def test_a_new_start_forgets_the_statistics():
    layer = make_layer()
    layer(torch.randn(9, 4) + 5)
    layer.reset_parameters()
    assert not layer.batch_norm.running_mean.any()


def test_shapes_on_the_meta_device():
    layer = TreeEnsembleLayer(4, 2, 3, 3, device="meta")
    x = torch.empty(5, 4, device="meta", requires_grad=True)
    answer = layer(x)
    assert (answer.shape, answer.device.type) == ((5, 2), "meta")
    answer.sum().backward()
    assert x.grad.shape == x.shape


def rings(n=500):
    """Two rings, which no single split tells apart."""
    angle, label = 6.2832 * torch.rand(n), torch.arange(n) % 2
    return torch.stack([angle.cos(), angle.sin()], dim=1) * (1.0 + label)[:, None], label


def learn(network, x, label, steps=200):
    optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x), label).backward()
        optimizer.step()
    return (network(x).argmax(dim=1) == label).float().mean()


@each_activation
def test_learns_what_no_single_split_can(activation):
    gamma = 0.2 if activation == "logistic" else 1.0
    layer = TreeEnsembleLayer(2, 2, 5, 3, gamma, activation=activation)
    assert learn(layer, *rings()) > 0.97


def test_samples_reach_fewer_leaves_while_the_layer_learns():
    x, label = rings()
    layer = TreeEnsembleLayer(2, 2, 5, 5)
    before = layer.reachable_leaves(x).double().mean()
    learn(layer, x, label)
    assert layer.reachable_leaves(x).double().mean() < 0.5 * before


def test_learns_in_the_middle_of_a_network_together_with_what_is_below():
    """The trees see one number, which tells the rings apart only once the layer below learns."""
    network = torch.nn.Sequential(
        torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1),
        TreeEnsembleLayer(1, 4, 3, 3), torch.nn.Linear(4, 2),
    )  # fmt: skip
    first = network[0].weight.detach().clone()
    assert learn(network, *rings()) > 0.95
    assert not torch.equal(first, network[0].weight)


@each_way
@each_activation
def test_a_score_that_is_not_a_number_goes_right(activation, way):
    x, weight, bias, leaves, _ = make_case(3, 2, 2)
    nothing = torch.full_like(x, torch.nan)
    answer = way.forward(nothing, weight, bias, leaves, 1.0, activation)
    torch.testing.assert_close(answer, leaves[:, -1].sum(dim=0).expand_as(answer))


@pytest.mark.skipif(not engine_available(), reason="the engine is not built")
def test_a_deep_tree_costs_what_it_reaches():
    """A million leaves of which a sample reaches a few: all nodes would take gigabytes."""
    layer = TreeEnsembleLayer(2, 1, 1, 18, batch_norm=False)
    torch.nn.init.normal_(layer.weight, std=100.0)
    x = torch.randn(2000, 2)
    layer(x).sum().backward()
    assert layer.leaves.grad.sum() == pytest.approx(2000, rel=1e-4)
    assert layer.reachable_leaves(x).double().mean() < 3
