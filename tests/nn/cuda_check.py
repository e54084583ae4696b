"""The layer on a GPU against the CPU: run by hand, where torch sees one.

    PYTHONPATH=src python tests/nn/cuda_check.py

Needs torch and nothing else (no NumPy, no engine). Prints what it checked and how fast the layer is
beside a tree written with a matrix of paths; the exit status is 1 where anything disagrees, 2 where
there is no GPU.
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
from torch import Tensor, nn

from hardwood.nn import DenseGradientTree, engine_available

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
TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-5}  # of the largest entry

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


def losses_of_training(device: str) -> list[float]:
    """Train convolutions under a tree for a few steps from a fixed start, in float64."""
    torch.manual_seed(3)
    network = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 16), DenseGradientTree(16, 3, 5)
    ).double()
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


def training_agrees() -> None:
    on_cpu, on_gpu = losses_of_training("cpu"), losses_of_training("cuda")
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


def never_waits_for_the_gpu() -> None:
    """Forward and backward only queue work: a wait in a layer stalls the whole network."""
    layer = DenseGradientTree(12, 3, 6, device="cuda")
    x = torch.randn(256, 12, device="cuda", requires_grad=True)
    layer(x).sum().backward()  # the first call may set things up
    torch.cuda.set_sync_debug_mode("error")
    try:
        layer(x).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def is_deterministic_on_request() -> None:
    layer = DenseGradientTree(12, 3, 6, device="cuda")
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


def main() -> int:
    if not torch.cuda.is_available():
        print("torch sees no GPU here", file=sys.stderr)
        return 2
    start = time.perf_counter()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or no product is deterministic
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    print(f"float32 on the CPU runs in {'the engine' if engine_available() else 'torch'}\n")
    torch.manual_seed(0)
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
        training_agrees()
    for layers in (1, 3):
        with check(f"torch.compile without graph breaks, layers={layers}"):
            compiles(layers)
    with check("autocast"):
        autocast_keeps_precision()
    with check("never waits for the GPU"):
        never_waits_for_the_gpu()
    with check("deterministic on request"):
        is_deterministic_on_request()
    with check("speed"):
        print_speeds()
    print(f"\n{len(failures)} failures, {time.perf_counter() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
