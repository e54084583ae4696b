"""The layers on a GPU against the CPU: run by hand, where torch sees one.

    PYTHONPATH=src python tests/nn/cuda_check.py [tree] [ensemble] [policy] [latent]

Needs torch and nothing else (no NumPy, no engine). Prints what it checked, and how fast
`DenseGradientTree` is beside a tree written with a matrix of paths (`TreeEnsembleLayer` is timed by
benchmarks/speed/tel_gpu.py). The exit status is 1 where anything disagrees, 2 without a GPU.
"""

from __future__ import annotations

import copy
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from path_matrix import path_matrix, prediction
from soft_trees import prediction as soft_prediction
from torch import Tensor, nn

from hardwood.nn import (
    DenseGradientTree,
    LatentTree,
    ReinforcedTree,
    TreeEnsembleLayer,
    engine_available,
    latent_op,
    tel_op,
)

SIZES = [  # n, d, depth, k, layers
    (1, 1, 1, 1, 1),
    (0, 4, 3, 2, 1),
    (37, 5, 3, 2, 1),
    (128, 16, 6, 10, 1),
    (300, 33, 8, 1, [20]),
    (1000, 64, 10, 3, 1),
    (20, 8, 13, 2, 1),
]
SPEEDS = [  # n, d, depth, k
    (128, 16, 6, 10),
    (1024, 64, 8, 10),
    (1024, 64, 10, 10),
    (16384, 64, 8, 10),
    (16384, 64, 10, 10),
    (4096, 64, 12, 10),
]
ENSEMBLES = [  # n, d, trees, depth, k
    (1, 1, 1, 1, 1),
    (0, 4, 2, 3, 2),
    (300, 16, 10, 4, 10),
    (129, 33, 2, 6, 100),
    (70, 300, 2, 7, 1),
    (1000, 64, 4, 10, 3),
    (200, 8, 2, 12, 2),
    (20, 4, 1, 13, 2),
]
POLICIES = [  # n, d, parents or depth, k
    (1, 1, 1, 1),
    (0, 4, 3, 2),
    (300, 16, [-1, 0, 0, 0, 1, 1, 4, 3, 3, 3, 3], 10),
    (500, 33, 6, 3),
    (64, 64, 10, 10),
]
GAMMAS = (1.0, 0.125)
TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-5}  # of the largest entry
# Gradients by splits are sums over samples that nearly cancel, times 1 / gamma.
ENSEMBLE_TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-4}

failures: list[str] = []


@contextmanager
def check(name: str) -> Iterator[None]:
    """Report one check; an error in it is a failure, and the next one still runs."""
    start = time.perf_counter()
    try:
        yield
    except Exception as error:  # whatever goes wrong is what is looked for
        failures.append(name)
        print(f"FAILED  {name}: {type(error).__name__}: {error}", flush=True)
    else:
        print(f"ok      {name}  ({time.perf_counter() - start:.1f} s)", flush=True)


def assert_close(name: str, found: Tensor, expected: Tensor, tolerance: float) -> None:
    if found.shape != expected.shape:
        raise AssertionError(f"{name}: shape {tuple(found.shape)}, not {tuple(expected.shape)}")
    expected = expected.to(found.device, torch.float64)
    size = float(expected.abs().max()) if expected.numel() else 0.0
    error = float((found.double() - expected).abs().max()) if expected.numel() else 0.0
    if not error <= tolerance * size:
        raise AssertionError(f"{name}: off by {error:.3g} where the largest is {size:.3g}")


def assert_all_close(found: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    for i, (f, e) in enumerate(zip(found, expected, strict=True)):
        assert_close(("prediction", "x")[i] if i < 2 else f"parameter {i - 2}", f, e, tolerance)


def dyadic(shape: tuple[int, ...], unit: float, bound: float) -> Tensor:
    """Multiples of a power of two: sums of products are exact in any order, ties included."""
    n = int(bound / unit)
    return torch.randint(-n, n + 1, shape) * unit


def make_layer(d: int, depth: int, k: int, layers, dtype: torch.dtype) -> DenseGradientTree:
    """Make a layer whose scores at the rows of `make_rows` are exact in float32."""
    layer = DenseGradientTree(d, k, depth, layers=layers, dtype=dtype)
    with torch.no_grad():
        for factor in layer.factors:
            unit = 0.125 if layers == 1 else 0.5
            factor.copy_(dyadic(tuple(factor.shape), unit, 0.5))
        layer.bias.copy_(dyadic(tuple(layer.bias.shape), 0.125, 1.0))
    return layer


def make_rows(n: int, d: int, dtype: torch.dtype) -> Tensor:
    return dyadic((n, d), 0.25, 2.0).to(dtype)


def gradients(layer: Callable, x: Tensor, slope: Tensor, parameters: list[Tensor]) -> list[Tensor]:
    """Return what the layer answers, and its gradients by the input and the parameters."""
    x = x.detach().clone().requires_grad_()
    answer = layer(x)
    return [answer.detach(), *torch.autograd.grad(answer, [x, *parameters], slope)]


def cuda_equals_cpu(n: int, d: int, depth: int, k: int, layers, dtype: torch.dtype) -> None:
    layer = make_layer(d, depth, k, layers, dtype)
    x, slope = make_rows(n, d, dtype), torch.randn(n, k, dtype=dtype)
    wide = copy.deepcopy(layer).double()
    expected = gradients(wide, x.double(), slope.double(), [*wide.parameters()])
    on_gpu = copy.deepcopy(layer).cuda()
    found = gradients(on_gpu, x.cuda(), slope.cuda(), [*on_gpu.parameters()])
    if not torch.equal(on_gpu.route(x.cuda()).cpu(), layer.route(x)):
        raise AssertionError("rows reach other leaves")
    if not torch.equal(found[0].cpu(), layer(x).detach()):
        raise AssertionError("predictions differ")
    assert_all_close(found, expected, TOLERANCE[dtype])


def random_rows_agree() -> None:
    """float64, where rounding sends no row another way."""
    layer = DenseGradientTree(20, 5, 8, layers=3, dtype=torch.float64)
    x, slope = torch.randn(500, 20).double(), torch.randn(500, 5).double()
    expected = gradients(layer, x, slope, [*layer.parameters()])
    on_gpu = copy.deepcopy(layer).cuda()
    found = gradients(on_gpu, x.cuda(), slope.cuda(), [*on_gpu.parameters()])
    assert_all_close(found, expected, 1e-11)


def equals_the_definition() -> None:
    layer = DenseGradientTree(9, 4, 7, dtype=torch.float64, device="cuda")
    x, slope = torch.randn(200, 9).double().cuda(), torch.randn(200, 4).double().cuda()
    parameters = [layer.weight_1, layer.bias, layer.leaves]
    paths = path_matrix(7, x)
    expected = gradients(lambda x: prediction(x, *parameters, paths), x, slope, parameters)
    assert_all_close(gradients(layer, x, slope, parameters), expected, 1e-11)


def make_tree_network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 16), DenseGradientTree(16, 3, 5)
    )


def make_ensemble_network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 16), nn.ReLU(),
        TreeEnsembleLayer(16, 8, 4, 6, 0.5), TreeEnsembleLayer(8, 3, 4, 3),
    )  # fmt: skip


def losses_of_training(make_network: Callable[[], nn.Module], device: str) -> list[float]:
    """Train convolutions under trees for a few steps from a fixed start, in float64."""
    torch.manual_seed(3)
    network = make_network().double()
    images, labels = torch.randn(64, 1, 8, 8).double(), torch.randint(0, 3, (64,))
    network, images, labels = network.to(device), images.to(device), labels.to(device)
    optimizer = torch.optim.RMSprop(network.parameters(), lr=1e-2, eps=1e-5)
    losses = []
    for _ in range(10):
        loss = nn.functional.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def training_agrees(make_network: Callable[[], nn.Module]) -> None:
    on_cpu, on_gpu = (losses_of_training(make_network, device) for device in ("cpu", "cuda"))
    if max(abs(a - b) for a, b in zip(on_cpu, on_gpu, strict=True)) > 1e-8:
        raise AssertionError(f"losses differ: {on_cpu} and {on_gpu}")
    if not on_gpu[-1] < on_gpu[0]:
        raise AssertionError(f"nothing was learned: {on_gpu}")


def compiles(layers) -> None:
    layer = DenseGradientTree(12, 3, 6, layers=layers, device="cuda")
    compiled = torch.compile(layer, fullgraph=True)
    x, slope = torch.randn(256, 12, device="cuda"), torch.randn(256, 3, device="cuda")
    parameters = [*layer.parameters()]
    expected = gradients(layer, x, slope, parameters)
    assert_all_close(gradients(compiled, x, slope, parameters), expected, 1e-5)


def autocast_keeps_precision() -> None:
    layer = DenseGradientTree(12, 3, 6, layers=3, device="cuda")
    x = torch.randn(500, 12, device="cuda").half()
    with torch.autocast("cuda", dtype=torch.float16):
        answer = layer(x)
    if answer.dtype != torch.float32 or not torch.equal(answer, layer(x.float())):
        raise AssertionError(f"another answer under autocast, {answer.dtype}")


def never_waits_for_the_gpu(layer: nn.Module) -> None:
    """Forward and backward only queue work: a wait in a layer stalls the whole network."""
    x = torch.randn(256, 12, device="cuda", requires_grad=True)
    layer(x).sum().backward()  # the first call may set things up
    torch.cuda.set_sync_debug_mode("error")
    try:
        layer(x).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def is_deterministic_on_request(layer: nn.Module) -> None:
    x, slope = torch.randn(5000, 12, device="cuda"), torch.randn(5000, 3, device="cuda")
    torch.use_deterministic_algorithms(True)
    try:
        first, again = (gradients(layer, x, slope, [*layer.parameters()]) for _ in range(2))
    finally:
        torch.use_deterministic_algorithms(False)
    if not all(torch.equal(a, b) for a, b in zip(first, again, strict=True)):
        raise AssertionError("two runs differ")


def milliseconds(step: Callable[[], object]) -> tuple[float, float]:
    """Median time of a step on the GPU, and the most memory it took, in MiB."""
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    times = []
    for _ in range(30):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        step()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times)[15], (torch.cuda.max_memory_allocated() - before) / 2**20


def step_of(model: Callable, x: Tensor, slope: Tensor, parameters: list[Tensor]) -> Callable:
    return lambda: torch.autograd.grad(model(x), [x, *parameters], slope)


def print_speeds() -> None:
    print(
        "\nforward and backward, ms (MiB): the layer, it compiled, a matrix of paths, it compiled"
    )
    for n, d, depth, k in SPEEDS:
        layer = DenseGradientTree(d, k, depth, device="cuda")
        x = torch.randn(n, d, device="cuda", requires_grad=True)
        slope, parameters = torch.randn(n, k, device="cuda"), [*layer.parameters()]
        paths = path_matrix(depth, x)
        torch.compiler.reset()

        def by_paths(x: Tensor, p: list[Tensor] = parameters, paths: Tensor = paths) -> Tensor:
            return prediction(x, *p, paths)

        figures = []
        for model in (layer, by_paths):
            for run in (model, torch.compile(model, fullgraph=True)):
                figures.append(milliseconds(step_of(run, x, slope, parameters)))
        cells = "   ".join(f"{ms:7.3f} ({mib:5.0f})" for ms, mib in figures)
        faster = min(figures[2:])[0] / min(figures[:2])[0]
        print(f"n={n:6} d={d:3} depth={depth:2} k={k:3}  {cells}  {faster:5.1f}x", flush=True)


def make_ensemble(
    d: int, trees: int, depth: int, k: int, gamma: float, dtype: torch.dtype, **options
) -> TreeEnsembleLayer:
    """Make a layer whose scores are of about unit size, so that gamma decides what is reached."""
    layer = TreeEnsembleLayer(d, k, trees, depth, gamma, dtype=dtype, **options)
    nn.init.normal_(layer.weight, std=0.5 * d**-0.5)
    nn.init.normal_(layer.bias, std=0.1)
    nn.init.normal_(layer.leaves)
    return layer


def ensemble_equals_cpu(size: tuple[int, ...], gamma: float, activation: str, dtype) -> None:
    n, d, trees, depth, k = size
    layer = make_ensemble(d, trees, depth, k, gamma, dtype, activation=activation)
    layer.eval()  # a batch of one cannot be normalized
    x, slope = torch.randn(n, d, dtype=dtype), torch.randn(n, k, dtype=dtype)
    wide = copy.deepcopy(layer).double()
    expected = gradients(wide, x.double(), slope.double(), [*wide.parameters()])
    on_gpu = copy.deepcopy(layer).cuda()
    found = gradients(on_gpu, x.cuda(), slope.cuda(), [*on_gpu.parameters()])
    assert_all_close(found, expected, ENSEMBLE_TOLERANCE[dtype])
    counts, of_cpu = on_gpu.reachable_leaves(x.cuda()).cpu(), wide.reachable_leaves(x.double())
    # In float32 a sample on the edge of a band may fall to either side of it.
    if dtype == torch.float64 and not torch.equal(counts, of_cpu):
        raise AssertionError("other leaves are reached")


def ensemble_equals_the_definition(activation: str) -> None:
    layer = make_ensemble(9, 3, 6, 4, 0.5, torch.float64, activation=activation, batch_norm=False)
    layer.cuda()
    x, slope = torch.randn(200, 9).double().cuda(), torch.randn(200, 4).double().cuda()
    parameters = [layer.weight, layer.bias, layer.leaves]
    expected = gradients(
        lambda x: soft_prediction(x, *parameters, 0.5, activation), x, slope, parameters
    )
    assert_all_close(gradients(layer, x, slope, parameters), expected, 1e-11)


def ensemble_at_the_edges(gamma: float) -> None:
    """Scores that are multiples of gamma/8 without a rounding error, many at -+gamma/2."""
    layer = TreeEnsembleLayer(3, 2, 4, 8, gamma, batch_norm=False)
    with torch.no_grad():
        layer.weight.copy_(torch.randint(-2, 3, layer.weight.shape))
        layer.bias.copy_(gamma / 8 * torch.randint(-2, 3, layer.bias.shape))
    x, slope = gamma / 8 * torch.randint(-2, 3, (500, 3)).float(), torch.randn(500, 2)
    expected = gradients(layer, x, slope, [*layer.parameters()])
    counts = layer.reachable_leaves(x)
    layer.cuda()
    found = gradients(layer, x.cuda(), slope.cuda(), [*layer.parameters()])
    assert_all_close(found, expected, ENSEMBLE_TOLERANCE[torch.float32])
    if not torch.equal(layer.reachable_leaves(x.cuda()).cpu(), counts):
        raise AssertionError("other leaves are reached")


def is_conditional() -> None:
    """Where samples reach one leaf each, most of a deep tree costs nothing."""
    layer = make_ensemble(64, 10, 10, 10, 1.0, torch.float32, batch_norm=False).cuda()
    x, slope = torch.randn(4096, 64, device="cuda"), torch.randn(4096, 10, device="cuda")
    wide = milliseconds(step_of(layer, x.requires_grad_(), slope, [*layer.parameters()]))[0]
    layer.gamma = 1e-3
    narrow = milliseconds(step_of(layer, x, slope, [*layer.parameters()]))[0]
    reached = layer.reachable_leaves(x).float().mean().item()
    print(f"        {wide:.2f} ms, with {reached:.2f} leaves reached {narrow:.2f} ms")
    if not narrow < 0.5 * wide:
        raise AssertionError(f"{narrow:.2f} ms where everything takes {wide:.2f} ms")


def ensemble_compiles(activation: str) -> None:
    network = nn.Sequential(
        nn.Linear(12, 8, bias=False),  # a bias would be normalized away
        make_ensemble(8, 5, 7, 3, 0.5, torch.float32, activation=activation),
    ).cuda()
    compiled = torch.compile(network, fullgraph=True)
    x, slope = torch.randn(256, 12, device="cuda"), torch.randn(256, 3, device="cuda")
    parameters = [*network.parameters()]
    expected = gradients(network, x, slope, parameters)
    assert_all_close(gradients(compiled, x, slope, parameters), expected, 1e-4)


def ensemble_under_autocast() -> None:
    layer = make_ensemble(12, 5, 6, 3, 0.5, torch.float32).cuda().eval()
    x = torch.randn(500, 12, device="cuda").half()
    with torch.autocast("cuda", dtype=torch.float16):
        answer = layer(x)
    if answer.dtype != torch.float32 or not torch.equal(answer, layer(x.float())):
        raise AssertionError(f"another answer under autocast, {answer.dtype}")


def parts_are_always_deterministic(layer: nn.Module) -> None:
    """Answers and gradients by the input are sums in a fixed order."""
    x, slope = torch.randn(5000, 12, device="cuda"), torch.randn(5000, 3, device="cuda")
    first, again = (gradients(layer, x, slope, [*layer.parameters()])[:2] for _ in range(2))
    if not all(torch.equal(a, b) for a, b in zip(first, again, strict=True)):
        raise AssertionError("two runs differ")


def check_ensemble() -> None:
    """Compare `TreeEnsembleLayer` on the two devices."""
    for size in ENSEMBLES:
        for dtype in (torch.float64, torch.float32):
            for gamma in GAMMAS:
                name = "n={} d={} trees={} depth={} k={}".format(*size)
                with check(f"CUDA equals CPU, {name}, gamma={gamma}, {dtype}"):
                    ensemble_equals_cpu(size, gamma, "smooth_step", dtype)
    for activation in ("smooth_step_5", "logistic"):
        for dtype in (torch.float64, torch.float32):
            with check(f"CUDA equals CPU, {activation}, {dtype}"):
                ensemble_equals_cpu((300, 16, 10, 4, 10), 0.5, activation, dtype)
    for activation in ("smooth_step", "smooth_step_5", "logistic"):
        with check(f"CUDA equals the definition, {activation}"):
            ensemble_equals_the_definition(activation)
        with check(f"torch.compile without graph breaks, {activation}"):
            ensemble_compiles(activation)
    for gamma in (1.0, 0.125, 2.0**-10):
        with check(f"samples on the edges of the bands, gamma={gamma}"):
            ensemble_at_the_edges(gamma)
    with check("training goes as on the CPU"):
        training_agrees(make_ensemble_network)
    with check("autocast"):
        ensemble_under_autocast()
    with check("never waits for the GPU"):
        never_waits_for_the_gpu(make_ensemble(12, 5, 8, 3, 0.5, torch.float32).cuda())
    with check("deterministic on request"):
        layer = make_ensemble(12, 5, 8, 3, 0.5, torch.float32).cuda()
        parts_are_always_deterministic(layer)
        is_deterministic_on_request(layer)
    with check("torch finds the operators well registered"):
        layer = make_ensemble(4, 2, 6, 2, 0.5, torch.float32).cuda()
        parts = (torch.randn(40, 4, device="cuda"), layer.weight, layer.bias, layer.leaves)
        torch.library.opcheck(tel_op.tree_ensemble, (*parts, 0.5, "smooth_step"))
    with check("few reachable leaves are faster"):
        is_conditional()


CROSS_ENTROPY = nn.CrossEntropyLoss(reduction="none")


def make_policy(d: int, shape, k: int, dtype: torch.dtype = torch.float32) -> ReinforcedTree:
    """Make a layer whose scores at the rows of `make_rows` are exact in float32."""
    form = {"max_depth": shape} if isinstance(shape, int) else {"parents": shape}
    layer = ReinforcedTree(d, k, **form, dtype=dtype)
    with torch.no_grad():
        for parameter in layer.policy.parameters():
            parameter.copy_(dyadic(tuple(parameter.shape), 0.125, 0.5))
    return layer


def policy_equals_cpu(n: int, d: int, shape, k: int, dtype: torch.dtype) -> None:
    layer = make_policy(d, shape, k, dtype)
    x, y = make_rows(n, d, dtype), torch.randint(k, (n,))
    on_gpu = copy.deepcopy(layer).cuda()
    for path in ("greedy", "most_probable"):
        if not torch.equal(on_gpu.leaf(x.cuda(), path).cpu(), layer.leaf(x, path)):
            raise AssertionError(f"rows reach other leaves, {path}")
    if n == 0:
        return
    wide = copy.deepcopy(layer).double()
    for options in ({}, {"entropy_bonus": 0.1}):
        expected = wide.loss(x.double(), y, CROSS_ENTROPY, gradient="exact", **options)
        found = on_gpu.loss(x.cuda(), y.cuda(), CROSS_ENTROPY, gradient="exact", **options)
        assert_close("loss", found.detach(), expected.detach(), TOLERANCE[dtype])
        parameters = zip(on_gpu.parameters(), wide.parameters(), strict=True)
        for ours, theirs in parameters:
            slopes = (
                torch.autograd.grad(value, of, retain_graph=True)[0]
                for value, of in ((found, ours), (expected, theirs))
            )
            assert_close("gradient", *slopes, ENSEMBLE_TOLERANCE[dtype])


def policy_samples_by_probabilities() -> None:
    layer = make_policy(8, [-1, 0, 0, 0, 1, 1, 4], 3).cuda()
    x, n = torch.randn(3, 8, device="cuda"), 100_000
    ways = layer.sample(x, n, torch.Generator("cuda").manual_seed(0))
    shares = layer.leaf_log_probabilities(x).exp().detach()
    found = torch.stack([torch.bincount(row, minlength=layer.n_leaves) for row in ways.leaf]) / n
    spread = (shares * (1 - shares) / n).sqrt()
    if not ((found - shares).abs() <= 5 * spread + 1e-6).all():
        raise AssertionError(f"leaves are sampled as {found}, expected {shares}")


def policy_step(layer: ReinforcedTree, baseline: str) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, y: layer.loss(x, y, CROSS_ENTROPY, 8, baseline)


def policy_never_waits(baseline: str) -> None:
    layer = make_policy(12, 6, 3).cuda()
    step = policy_step(layer, baseline)
    x, y = torch.randn(256, 12, device="cuda"), torch.randint(3, (256,), device="cuda")
    step(x, y).backward()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step(x, y).backward()
        layer.eval()
        for path in ("greedy", "most_probable"):
            layer.leaf(x, path)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def policy_compiles() -> None:
    layer = make_policy(12, 5, 3).cuda()
    x, y = torch.randn(256, 12, device="cuda"), torch.randint(3, (256,), device="cuda")
    exact = torch.compile(
        lambda x, y: layer.loss(x, y, CROSS_ENTROPY, gradient="exact"), fullgraph=True
    )
    expected = layer.loss(x, y, CROSS_ENTROPY, gradient="exact")
    assert_close("loss", exact(x, y).detach(), expected.detach(), 1e-5)
    torch.compile(policy_step(layer, "value"), fullgraph=True)(x, y).backward()
    layer.eval()
    if not torch.equal(torch.compile(layer, fullgraph=True)(x), layer(x)):
        raise AssertionError("another answer when compiled")


def policy_learns() -> None:
    """Convolutions at each node, from ways that are sampled on the GPU."""

    def node(n_children: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(n_children))

    layer = ReinforcedTree(None, 4, max_depth=1, n_children=4, policy=node, device="cuda").cuda()
    y = torch.randint(4, (512,), device="cuda")
    x = torch.randn(512, 1, 6, 6, device="cuda") + 3 * nn.functional.one_hot(y, 36).view(
        -1, 1, 6, 6
    )
    layer.loss(x, y, CROSS_ENTROPY)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    for _ in range(200):
        optimizer.zero_grad()
        layer.loss(x, y, CROSS_ENTROPY, entropy_bonus=0.1).backward()
        optimizer.step()
    accuracy = (layer.eval()(x).argmax(1) == y).double().mean().item()
    if accuracy < 0.9:
        raise AssertionError(f"accuracy {accuracy:.3f}")


def print_policy_speeds() -> None:
    for n, d, depth, k in SPEEDS[:5]:
        layer = ReinforcedTree(d, k, max_depth=depth, device="cuda")
        x, y = torch.randn(n, d, device="cuda"), torch.randint(k, (n,), device="cuda")
        for name in ("sampled", "exact"):
            if name == "exact" and n * 2**depth * k > 2**28:
                continue

            def step(name: str = name, x: Tensor = x, y: Tensor = y) -> None:
                layer.loss(x, y, CROSS_ENTROPY, gradient=name).backward()  # noqa: B023

            time_, memory = milliseconds(step)
            print(
                f"        n={n} d={d} depth={depth} k={k}, {name}: {time_:.2f} ms, {memory:.0f} MiB"
            )


def check_policy() -> None:
    """Compare `ReinforcedTree` on the two devices, and time it."""
    for size in POLICIES:
        for dtype in (torch.float64, torch.float32):
            with check("CUDA equals CPU, n={} d={} shape={} k={}, {}".format(*size, dtype)):
                policy_equals_cpu(*size, dtype)
    with check("leaves are sampled by their probabilities"):
        policy_samples_by_probabilities()
    for baseline in ("none", "leave_one_out", "value"):
        with check(f"never waits for the GPU, baseline={baseline}"):
            policy_never_waits(baseline)
    with check("torch.compile without graph breaks"):
        policy_compiles()
    with check("convolutions at the nodes learn"):
        policy_learns()
    with check("speed"):
        print_policy_speeds()


def check_tree() -> None:
    """Compare `DenseGradientTree` on the two devices, and time it."""
    for size in SIZES:
        for dtype in (torch.float64, torch.float32):
            name = "n={} d={} depth={} k={} layers={}".format(*size)
            with check(f"CUDA equals CPU, {name}, {dtype}"):
                cuda_equals_cpu(*size, dtype)
    with check("CUDA equals CPU on random rows"):
        random_rows_agree()
    with check("CUDA equals the definition by a matrix of paths"):
        equals_the_definition()
    with check("training goes as on the CPU"):
        training_agrees(make_tree_network)
    for layers in (1, 3):
        with check(f"torch.compile without graph breaks, layers={layers}"):
            compiles(layers)
    with check("autocast"):
        autocast_keeps_precision()
    with check("never waits for the GPU"):
        never_waits_for_the_gpu(DenseGradientTree(12, 3, 6, device="cuda"))
    with check("deterministic on request"):
        is_deterministic_on_request(DenseGradientTree(12, 3, 6, device="cuda"))
    with check("speed"):
        print_speeds()


def latent_equals_cpu(n: int, depth: int, pruning: float, is_q: bool, dtype: torch.dtype) -> None:
    rows = 0.6 * torch.randn(n, 2 ** (depth + is_q) - 1, dtype=dtype)
    slope = torch.randn(n, 2 ** (depth + 1) - 1, dtype=dtype)
    found = []
    for device in ("cpu", "cuda"):
        own = rows.clone().to(device).requires_grad_()
        z, a = latent_op.solve(own, pruning, is_q=is_q)
        ((z * slope.to(device)).sum() + (a**2).sum()).backward()
        found.append([z.detach(), a.detach(), own.grad])
    assert_all_close(found[1], found[0], 1e-10 if dtype == torch.float64 else 1e-4)


def settled_latent_tree_agrees() -> None:
    layer = LatentTree(6, 4, 20.0)
    x = torch.randn(300, 6)
    layer(x)
    layer.settle(x, batch_size=100, min_activity=0.05)
    expected = layer.eval()(x)
    other = copy.deepcopy(layer).cuda()
    assert_all_close(list(other(x.cuda())), list(expected), 1e-5)
    pruned = other.pruned()
    assert_close("pruned", pruned(x.cuda())[0], expected[0][:, pruned.nodes.cpu()], 1e-5)


def check_latent() -> None:
    """Compare `LatentTree` on the two devices."""
    for n, depth in ((1, 1), (40, 3), (500, 6)):
        for pruning in (0.0, 0.3, n / 8):
            for is_q in (False, True):
                for dtype in (torch.float64, torch.float32):
                    what = "q" if is_q else "scores"
                    with check(f"CUDA equals CPU, n={n} {depth=} {pruning=} {what}, {dtype}"):
                        latent_equals_cpu(n, depth, pruning, is_q, dtype)
    with check("settled and pruned as on the CPU"):
        settled_latent_tree_agrees()
    with check("torch finds the operators well registered"):
        rows = torch.randn(20, 7, device="cuda", requires_grad=True)
        torch.library.opcheck(latent_op.latent_program, (rows, False, 0.8))
    with check("torch.compile without graph breaks"):
        layer, x = LatentTree(6, 3).cuda(), torch.randn(30, 6, device="cuda")
        compiled = torch.compile(copy.deepcopy(layer), fullgraph=True)
        assert_all_close(list(compiled(x)), list(layer(x)), 1e-5)


def main() -> int:
    if not torch.cuda.is_available():
        print("torch sees no GPU here", file=sys.stderr)
        return 2
    start = time.perf_counter()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or no product is deterministic
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    print(f"float32 on the CPU runs in {'the engine' if engine_available() else 'torch'}\n")
    parts = {
        "tree": check_tree,
        "ensemble": check_ensemble,
        "policy": check_policy,
        "latent": check_latent,
    }
    for name in sys.argv[1:] or parts:
        torch.manual_seed(0)
        parts[name]()
    print(f"\n{len(failures)} failures, {time.perf_counter() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
