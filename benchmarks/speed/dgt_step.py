"""Speed of the fused DGT step, compared with PyTorch.

    python -m benchmarks.speed.dgt_step [--quick]

One step is forward, backward and RMSprop over one batch. There are two eager PyTorch versions, with
PyTorch's RMSprop: path sums as a product with the dense (leaves, nodes) path matrix, and path sums
by doubling, level by level. The gradients of all three are compared before anything is timed.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.record import Column, Table, asks_quick, verdict
from benchmarks.timing import Call, interleaved, one_thread
from benchmarks.workloads import Batch, dgt_batch
from hardwood import _probes

TOLERANCE = 1e-5
LEARNING_RATE = 1e-3
GRID = list(itertools.product((16, 100), (128, 1024), (4, 6, 8, 10), (1, 10)))  # d, n, h, k
QUICK = [cell for cell in GRID if cell[2] in (4, 8) and cell[1] == 128]
COLUMNS = [
    Column("d", "d"),
    Column("n", "batch"),
    Column("h", "h"),
    Column("k", "k"),
    Column("dense_us", "dense, us", ".0f"),
    Column("doubling_us", "doubling, us", ".0f"),
    Column("ours_us", "hardwood, us", ".1f"),
    Column("gflops", "GFLOP/s", ".0f"),
    Column("ratio", "ratio", ".1f"),
    Column("floor", "floor", ".0f"),
    Column("verdict", ""),
]


class Sign(torch.autograd.Function):
    """Sign with sign(0) = 1; straight-through estimator where abs(a) <= 1."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return torch.where(a >= 0, 1.0, -1.0).to(a.dtype)

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * (a.abs() <= 1)


class HardMax(torch.autograd.Function):
    """One-hot of the largest path sum; backward like the softmax."""

    @staticmethod
    def forward(ctx, q):
        ctx.save_for_backward(q)
        return F.one_hot(q.argmax(1), q.shape[1]).to(q.dtype)

    @staticmethod
    def backward(ctx, g):
        (q,) = ctx.saved_tensors
        p = torch.softmax(q, 1)
        return p * (g - (p * g).sum(1, keepdim=True))


def path_matrix(h: int) -> torch.Tensor:
    """Return (L, m): +1, -1 or 0 for a leaf right of a node, left of it, or not below it."""
    S = np.zeros((2**h, 2**h - 1), dtype=np.float32)
    for leaf in range(2**h):
        for depth in range(h):
            node = 2**depth - 1 + (leaf >> (h - depth))
            S[leaf, node] = 2 * ((leaf >> (h - 1 - depth)) & 1) - 1
    return torch.from_numpy(S)


def dense_path_sums(h: int) -> Callable[[torch.Tensor], torch.Tensor]:
    S = path_matrix(h)
    return lambda s: s @ S.t()


def doubling_path_sums(h: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def path_sums(s: torch.Tensor) -> torch.Tensor:
        q = s.new_zeros(len(s), 1)
        for depth in range(h):
            level = s[:, 2**depth - 1 : 2 ** (depth + 1) - 1]
            q = torch.stack([q - level, q + level], 2).reshape(len(s), -1)
        return q

    return path_sums


class TorchStep:
    """The step in eager PyTorch; the bias is one more column, which saves a tensor."""

    def __init__(self, batch: Batch, path_sums: Callable[[torch.Tensor], torch.Tensor]) -> None:
        ones = np.ones((len(batch.X), 1), dtype=np.float32)
        self.X = torch.from_numpy(np.hstack([batch.X, ones]))
        target = torch.from_numpy(batch.target)
        self.target = target if batch.theta.shape[1] == 1 else target[:, 0].long()
        self.loss = F.mse_loss if batch.theta.shape[1] == 1 else F.cross_entropy
        self.W = torch.from_numpy(np.hstack([batch.W, batch.b[:, None]])).requires_grad_()
        self.theta = torch.from_numpy(batch.theta.copy()).requires_grad_()
        self.path_sums = path_sums
        # The default loop over tensors: foreach=True is no faster for two of them.
        self.optimizer = torch.optim.RMSprop([self.W, self.theta], lr=LEARNING_RATE)

    def backward(self) -> None:
        prediction = HardMax.apply(self.path_sums(Sign.apply(self.X @ self.W.t()))) @ self.theta
        self.loss(prediction, self.target).backward()

    def __call__(self) -> None:
        self.optimizer.zero_grad()
        self.backward()
        self.optimizer.step()

    def gradient(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.optimizer.zero_grad()
        self.backward()
        dW = self.W.grad.numpy()
        return dW[:, :-1], dW[:, -1], self.theta.grad.numpy()


def our_step(batch: Batch, h: int) -> _probes.LearnerProbe:
    k = batch.theta.shape[1]
    weight = np.ones(len(batch.X), dtype=np.float32)
    loss = "squared_error" if k == 1 else "cross_entropy"
    probe = _probes.LearnerProbe(
        "dgt",
        batch.X,
        batch.target,
        weight,
        n_outputs=k,
        loss=loss,
        options={
            "height": h,
            "linear_leaves": False,
            "path": "sum",
            "quantizer": "sign",
            "routing": "quantized",
            "sharpness": (1.0, 1.0),
            "annealing": "linear",
        },
    )
    probe.set(batch.W, batch.b, batch.theta)
    return probe


def largest_error(
    found: tuple[np.ndarray, ...], expected: tuple[np.ndarray, ...], what: str
) -> float:
    """Return the largest difference of gradients, relative to the largest entry of each part."""
    errors = [np.abs(a - e).max() / np.abs(e).max() for a, e in zip(found, expected, strict=True)]
    if not max(errors) <= TOLERANCE:
        raise AssertionError(f"gradients of {what} differ by {errors} (dW, db, dtheta)")
    return float(max(errors))


def measure(d: int, n: int, h: int, k: int, rounds: int) -> dict[str, float]:
    batch = dgt_batch(n, d, h, k)
    dense, doubling = dense_path_sums(h), doubling_path_sums(h)
    ours = our_step(batch, h).gradient()[1:4]
    error = largest_error(ours, TorchStep(batch, dense).gradient(), "the dense version")
    error = max(error, largest_error(ours, TorchStep(batch, doubling).gradient(), "doubling"))

    def make_ours() -> Call:
        probe = our_step(batch, h)
        return lambda: probe.steps(1, LEARNING_RATE)

    # Fresh trees in every round: after thousands of steps on one batch, the moments of fitted rows
    # would be denormal numbers, which do not occur in real training.
    times = interleaved(
        {
            "dense": lambda: TorchStep(batch, dense),
            "doubling": lambda: TorchStep(batch, doubling),
            "ours": make_ours,
        },
        rounds=rounds,
        seconds=0.03,
    )
    better = min(times["dense"].best, times["doubling"].best)
    return {
        "error": error,
        **{f"{name}_us": 1e6 * timing.best for name, timing in times.items()},
        **{f"{name}_median_us": 1e6 * timing.median for name, timing in times.items()},
        "ratio": better / times["ours"].best,
        "gflops": 4e-9 * n * (2**h - 1) * d / times["ours"].best,
    }


def main() -> int:
    one_thread()
    quick = asks_quick(__doc__, "a few cells")
    table = Table(
        "dgt_step",
        "One training step of DGT (forward, backward, RMSprop), one thread: microseconds, and how "
        "many times faster hardwood is than the better of two eager PyTorch versions.",
        COLUMNS,
        {"rounds": 3 if quick else 12},
        kept=not quick,
    )
    for d, n, h, k in QUICK if quick else GRID:
        figures = measure(d, n, h, k, table.settings["rounds"])
        floor = 15.0 if (d, n) == (16, 128) else 5.0
        table.add(d=d, n=n, h=h, k=k, **figures, floor=floor, **verdict(figures["ratio"] >= floor))
    worst = max(row["error"] for row in table.rows)
    passed = table.finish(
        f"Gradients differ from PyTorch's by at most {worst:.1e} of their largest entry.",
        "GFLOP/s counts the two matrix products only, at the time of the whole step.",
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
