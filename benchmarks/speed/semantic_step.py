"""Speed of a step by semantic logits, compared with PyTorch.

    python -m benchmarks.speed.semantic_step [--quick]

One step is forward, backward and RMSprop over one batch, for leaves that are dealt to classes.
There are two eager PyTorch versions, with PyTorch's RMSprop: scores of leaves as a product with the
dense matrix of paths, as in the authors' network, and level by level down the tree. The gradients
of all three are compared before anything is timed.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.record import Column, Table, asks_quick, verdict
from benchmarks.speed.dgt_step import largest_error, path_matrix
from benchmarks.timing import Call, interleaved, one_thread
from benchmarks.workloads import Batch, dgt_batch
from hardwood import _probes

LEARNING_RATE = 1e-3
N_CLASSES = 10
GRID = list(itertools.product((16, 100), (128,), (4, 6, 8, 10)))  # d, n, h
QUICK = [cell for cell in GRID if cell[2] in (4, 8)]
COLUMNS = [
    Column("d", "d"),
    Column("n", "batch"),
    Column("h", "h"),
    Column("dense_us", "dense, us", ".0f"),
    Column("levels_us", "by levels, us", ".0f"),
    Column("ours_us", "hardwood, us", ".1f"),
    Column("gflops", "GFLOP/s", ".0f"),
    Column("ratio", "ratio", ".1f"),
    Column("floor", "floor", ".0f"),
    Column("verdict", ""),
]
LeafScores = Callable[[torch.Tensor], torch.Tensor]


def dense_scores(h: int) -> LeafScores:
    """Scores by one product: what each leaf wants of a split, times what the row does instead."""
    wanted = path_matrix(h)  # (L, m)
    paths = torch.cat([(wanted < 0).float(), (wanted > 0).float()], dim=1).t().contiguous()
    return lambda a: -(torch.cat([F.relu(a), F.relu(-a)], dim=1) @ paths)


def scores_by_levels(h: int) -> LeafScores:
    def scores(a: torch.Tensor) -> torch.Tensor:
        z = a.new_zeros(len(a), 1)
        for depth in range(h):
            level = a[:, 2**depth - 1 : 2 ** (depth + 1) - 1]
            z = torch.stack([z - F.relu(level), z - F.relu(-level)], 2).reshape(len(a), -1)
        return z

    return scores


class TorchStep:
    """The step in eager PyTorch; the bias is one more column, which saves a tensor."""

    def __init__(self, batch: Batch, leaf_scores: LeafScores) -> None:
        ones = np.ones((len(batch.X), 1), dtype=np.float32)
        self.X = torch.from_numpy(np.hstack([batch.X, ones]))
        self.target = torch.from_numpy(batch.target)[:, 0].long()
        self.W = torch.from_numpy(np.hstack([batch.W, batch.b[:, None]])).requires_grad_()
        self.leaf_scores = leaf_scores
        self.missing = -len(batch.theta) % N_CLASSES  # leaves that deal the classes a last time
        self.optimizer = torch.optim.RMSprop([self.W], lr=LEARNING_RATE)

    def backward(self) -> None:
        z = self.leaf_scores(self.X @ self.W.t())
        turns = F.pad(z, (0, self.missing), value=-torch.inf).view(len(z), -1, N_CLASSES)
        # Of equal leaves `max` gives one the gradient, and `amax` splits it.
        F.cross_entropy(turns.max(dim=1).values, self.target).backward()

    def __call__(self) -> None:
        self.optimizer.zero_grad()
        self.backward()
        self.optimizer.step()

    def gradient(self) -> tuple[np.ndarray, np.ndarray]:
        self.optimizer.zero_grad()
        self.backward()
        dW = self.W.grad.numpy()
        return dW[:, :-1], dW[:, -1]


def our_step(batch: Batch, h: int) -> _probes.LearnerProbe:
    probe = _probes.LearnerProbe(
        "semantic",
        batch.X,
        batch.target,
        np.ones(len(batch.X), dtype=np.float32),
        n_outputs=N_CLASSES,
        loss="cross_entropy",
        options={
            "height": h,
            "linear_leaves": False,
            "classes": (np.arange(2**h) % N_CLASSES).tolist(),
            "n_mixed": 1,
        },
    )
    probe.set(batch.W, batch.b, np.zeros((0, N_CLASSES), dtype=np.float32))
    return probe


def without_ties(batch: Batch) -> Batch:
    """Move scores off 0 and apart, because derivatives at ties are a matter of choice.

    Scores are multiples of 2^-14 and stay exact in float32.
    """
    odd = 2 * np.random.default_rng(0).integers(8, size=len(batch.b)) + 1
    return batch._replace(b=batch.b + (odd * 2.0**-18).astype(np.float32))


def measure(d: int, n: int, h: int, rounds: int) -> dict[str, float]:
    batch = without_ties(dgt_batch(n, d, h, N_CLASSES))
    dense, by_levels = dense_scores(h), scores_by_levels(h)
    ours = our_step(batch, h).gradient()[1:3]
    error = largest_error(ours, TorchStep(batch, dense).gradient(), "the dense version")
    error = max(error, largest_error(ours, TorchStep(batch, by_levels).gradient(), "levels"))

    def make_ours() -> Call:
        probe = our_step(batch, h)
        return lambda: probe.steps(1, LEARNING_RATE)

    # Fresh trees in every round: see dgt_step.
    times = interleaved(
        {
            "dense": lambda: TorchStep(batch, dense),
            "levels": lambda: TorchStep(batch, by_levels),
            "ours": make_ours,
        },
        rounds=rounds,
        seconds=0.03,
    )
    better = min(times["dense"].best, times["levels"].best)
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
        "semantic_step",
        "One training step by semantic logits (forward, backward, RMSprop), leaves dealt to ten "
        "classes, one thread: microseconds, and how many times faster hardwood is than the better "
        "of two eager PyTorch versions.",
        COLUMNS,
        {"rounds": 3 if quick else 12},
        kept=not quick,
    )
    for d, n, h in QUICK if quick else GRID:
        figures = measure(d, n, h, table.settings["rounds"])
        floor = 5.0 if d == 16 else 3.0
        table.add(d=d, n=n, h=h, **figures, floor=floor, **verdict(figures["ratio"] >= floor))
    worst = max(row["error"] for row in table.rows)
    passed = table.finish(
        f"Gradients differ from PyTorch's by at most {worst:.1e} of their largest entry.",
        "GFLOP/s counts the two matrix products only, at the time of the whole step.",
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
