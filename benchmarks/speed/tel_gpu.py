"""Speed of the tree ensemble layer on a GPU, compared with dense soft trees in PyTorch.

    PYTHONPATH=src python -m benchmarks.speed.tel_gpu [--depths 4 6] [--out FILE]

One step is forward and backward, for the input and all parameters, in float32. It is compared with
the soft trees of `soft_trees.py` and gradients by autograd: with the same smooth step, with the
logistic function, and with the compiled smooth step. Gradients are compared before anything is
timed.

There are two times: on the GPU alone, from steps replayed as a CUDA graph, and of a step launched
from Python, which is what a small network waits for. Both are measured at the start, where most
rows reach most leaves, and after training on the labels of a random network, where they reach few.
Needs torch with Triton, but neither NumPy nor the engine.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.record import Column, Table, file_of, replace
from benchmarks.speed.soft_trees import dense_ensemble, logistic, smooth_step
from hardwood.nn import TreeEnsembleLayer

N_TREES, D, K = 10, 64, 10
BATCHES, DEPTHS, GAMMAS = (256, 4096), (4, 6, 8, 10), (1.0, 0.1)
COMPILED_DEPTHS = (10,)
TRAINING_STEPS, TRAINING_BATCH = 400, 512
TOLERANCE = 1e-4  # of the largest entry
COLUMNS = [
    Column("n", "batch"),
    Column("depth", "depth"),
    Column("gamma", "gamma", "g"),
    Column("state", "", words=True, width=7),
    Column("leaves", "leaves", ".1f"),
    Column("ours_ms", "layer, ms", ".2f"),
    Column("dense_ms", "dense, ms", ".2f"),
    Column("over_dense", "times", ".1f"),
    Column("logistic_ms", "logistic, ms", ".2f"),
    Column("over_logistic", "times", ".1f"),
    Column("compiled_ms", "compiled, ms", ".2f"),
    Column("over_compiled", "times", ".1f"),
    Column("ours_python_ms", "from Python: layer", ".2f"),
    Column("dense_python_ms", "dense", ".2f"),
    Column("ours_mib", "layer, MiB", ".0f"),
    Column("dense_mib", "dense, MiB", ".0f"),
]


def train(layer: TreeEnsembleLayer, teacher: nn.Module) -> None:
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
    for _ in range(TRAINING_STEPS):
        x = torch.randn(TRAINING_BATCH, D, device="cuda")
        optimizer.zero_grad()
        nn.functional.cross_entropy(layer(x), teacher(x).argmax(dim=1)).backward()
        optimizer.step()


def step_of(model: Callable[[Tensor], Tensor], x: Tensor, layer: nn.Module) -> Callable:
    parts = [x, *layer.parameters()]
    slope = torch.randn(len(x), K, device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    return lambda: torch.autograd.grad(model(x), parts, slope)


def difference(step: Callable, other: Callable) -> float:
    """Return the largest difference of gradients, relative to the largest entry of each."""
    pairs = zip(step(), other(), strict=True)
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


def milliseconds(run: Callable, repeats: int = 15) -> float:
    """Return the median time between events around a run."""
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times)[repeats // 2]


def measure(step: Callable) -> dict[str, float]:
    """Return the milliseconds of a step, replayed and from Python, and its peak memory."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    python_ms = milliseconds(step)
    mib = (torch.cuda.max_memory_allocated() - before) / 2**20
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    graph.replay()
    return {"ms": milliseconds(graph.replay), "python_ms": python_ms, "mib": mib}


def compare(layer: TreeEnsembleLayer, n: int, is_compiled: bool) -> dict[str, float]:
    """Time the layer, whose input is normalized, and the other versions with its parameters."""
    x = torch.randn(n, D, device="cuda", requires_grad=True)
    parameters = (layer.weight, layer.bias, layer.leaves)

    def dense(x: Tensor) -> Tensor:
        return dense_ensemble(x, *parameters, smooth_step(layer.gamma))

    smooth = step_of(dense, x, layer)
    ours = step_of(layer, x, layer)
    figures = {"difference": difference(ours, smooth)}
    if not figures["difference"] <= TOLERANCE:
        raise AssertionError(f"gradients differ by {figures['difference']:.1e} of the largest")
    figures["leaves"] = layer.reachable_leaves(x).double().mean().item()
    steps = {"ours": ours, "dense": smooth}
    sigmoid = logistic(layer.gamma)
    steps["logistic"] = step_of(lambda x: dense_ensemble(x, *parameters, sigmoid), x, layer)
    if is_compiled:
        torch.compiler.reset()
        steps["compiled"] = step_of(torch.compile(dense, dynamic=False), x, layer)
    for name, step in steps.items():
        figures |= {f"{name}_{what}": value for what, value in measure(step).items()}
        figures[f"over_{name}"] = figures[f"{name}_ms"] / figures["ours_ms"]
    return figures


def write(table: Table, path: Path) -> str:
    """Record the rows so far; return a note about them."""
    largest = max(row["difference"] for row in table.rows)
    note = f"Gradients differ from the dense ones by at most {largest:.1e} of their largest entry."
    replace(path, table.records)
    return note


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--depths", type=int, nargs="+", default=DEPTHS)
    parser.add_argument("--out", type=Path, default=file_of("tel_gpu"))
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("torch sees no GPU here", file=sys.stderr)
        return 2
    title = (
        f"Forward and backward of {N_TREES} trees over {D} columns with {K} outputs on a GPU, "
        "float32: milliseconds, and how many times faster the layer is."
    )
    settings = {"training_steps": TRAINING_STEPS, "training_batch": TRAINING_BATCH}
    device = torch.cuda.get_device_name()
    table = Table("tel_gpu", title, COLUMNS, settings, device=device)
    torch.manual_seed(0)
    teacher = nn.Sequential(nn.Linear(D, 64), nn.Tanh(), nn.Linear(64, K)).cuda().eval()
    for depth, gamma in itertools.product(options.depths, GAMMAS):
        layer = TreeEnsembleLayer(D, K, N_TREES, depth, gamma, batch_norm=False, device="cuda")
        for state in ("start", "trained"):
            if state == "trained":
                train(layer, teacher)
            for n in BATCHES:
                is_compiled = depth in COMPILED_DEPTHS and gamma == 1.0 and state == "trained"
                figures = compare(layer, n, is_compiled)
                table.add(n=n, depth=depth, gamma=gamma, state=state, **figures)
                note = write(table, options.out)
    print(f"\n{note}\n{device}, torch {torch.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
