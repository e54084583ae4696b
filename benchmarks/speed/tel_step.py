"""Speed of one TEL step, forward and backward, compared with dense soft trees in PyTorch.

    python -m benchmarks.speed.tel_step [--quick]

10 trees, a batch of 256, one output; gradients for W, b, O and the input. `start`: weights uniform
in +-0.01, as at the start of training, where (nearly) all leaves are reached. `learned`: weights so
large that few leaves are reached, as at the end. Ours are the functions behind
`hardwood.nn.TreeEnsembleLayer`, which repeat the forward pass in the backward pass, as the layer
does. The PyTorch versions are `soft_trees.py` with the logistic function and with the smooth step.
The floor is that ours is never slower than either.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch

from benchmarks.record import Column, Table, asks_quick, verdict
from benchmarks.speed.soft_trees import Activation, dense_ensemble, logistic, smooth_step
from benchmarks.timing import interleaved, one_thread
from hardwood import _native

N_TREES = 10
BATCH = 256
COLUMNS = [
    Column("d", "d"),
    Column("depth", "depth"),
    Column("state", "state", width=8, words=True),
    Column("gamma", "gamma"),
    Column("leaves", "leaves reached", ".1f"),
    Column("ours", "ours, ms", ".2f"),
    Column("logistic", "logistic, ms", ".2f"),
    Column("smooth", "smooth step, ms", ".2f"),
    Column("ratio", "logistic / ours", ".1f"),
    Column("verdict", ""),
]
Arrays = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def arrays(d: int, depth: int, state: str) -> Arrays:
    generator = torch.Generator().manual_seed(0)
    m, bound = 2**depth - 1, 0.01 if state == "start" else 6 / d**0.5

    def uniform(*shape: int) -> torch.Tensor:
        return (2 * torch.rand(shape, generator=generator) - 1) * bound

    x = torch.randn(BATCH, d, generator=generator)
    return x, uniform(N_TREES, m, d), torch.zeros(N_TREES, m), uniform(N_TREES, m + 1, 1)


def our_step(parts: Arrays, gamma: float) -> Callable[[], None]:
    out, slope = torch.empty(BATCH, 1), torch.ones(BATCH, 1)
    gradients = [torch.empty_like(part) for part in parts]

    def step() -> None:
        _native.tel_forward(*parts, out, gamma, "smooth_step", 1)
        _native.tel_backward(*parts, slope, *gradients, gamma, "smooth_step", 1)

    return step


def dense_step(parts: Arrays, activation: Activation) -> Callable[[], None]:
    leaves = [part.clone().requires_grad_() for part in parts]
    slope = torch.ones(BATCH, 1)

    def step() -> None:
        for leaf in leaves:
            leaf.grad = None
        dense_ensemble(*leaves, activation).backward(slope)

    return step


def leaves_reached(parts: Arrays, gamma: float) -> float:
    found = torch.empty(BATCH, N_TREES, dtype=torch.int32)
    _native.tel_reachable(*parts[:3], found, gamma, "smooth_step", 1)
    return float(found.float().mean())


def measure(report: Table, d: int, depth: int, state: str, gamma: float, rounds: int) -> None:
    parts = arrays(d, depth, state)
    times = interleaved(
        {
            "ours": lambda: our_step(parts, gamma),
            "logistic": lambda: dense_step(parts, logistic(gamma)),
            "smooth": lambda: dense_step(parts, smooth_step(gamma)),
        },
        rounds=rounds,
    )
    row = {name: 1e3 * time.best for name, time in times.items()}
    report.add(
        d=d,
        depth=depth,
        state=state,
        gamma=gamma,
        leaves=leaves_reached(parts, gamma),
        **row,
        ratio=times["logistic"] / times["ours"],
        **verdict(row["ours"] <= min(row["logistic"], row["smooth"])),
    )


def main() -> int:
    one_thread()
    is_quick = asks_quick(__doc__, "two depths, once")
    report = Table(
        "tel_step",
        f"One step of {N_TREES} soft trees on {BATCH} rows, forward and backward, one thread: ms.",
        COLUMNS,
        kept=not is_quick,
    )
    for d in (20,) if is_quick else (20, 100, 784):
        for depth in (4, 8) if is_quick else (2, 4, 6, 8, 10):
            for state, gamma in (
                ("start", 1.0),
                ("start", 0.1),
                ("learned", 1.0),
                ("learned", 0.1),
            ):
                measure(report, d, depth, state, gamma, 1 if is_quick else 4)
    return 0 if report.finish() else 1


if __name__ == "__main__":
    sys.exit(main())
