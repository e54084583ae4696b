"""Speed of training a reinforced tree, compared with PyTorch: seconds per epoch at depths 5, 8, 10.

    python -m benchmarks.speed.reinforced [--passes 3] [--quick]

Rows are drawn with seed 0 in the shapes of letter (6,661 x 16, 26 classes) and of a tenth of mnist
(5,000 x 784, 10 classes), as in the paper's Table 1. Both sides train a perfect binary tree by Adam
with batches of 128 and the cross-entropy, either by 10 sampled trajectories per row with the
leave-one-out baseline or by the exact expectation. Ours is `Reinforced.fit`, from a task to a
model. The other is a straightforward version in eager PyTorch, given encoded rows: the scores of
all nodes by one matrix product, trajectories level by level for all rows and samples at once, and
autograd. The floor is for sampled trajectories at depth 8 on the smaller table. One thread each, in
turns, by processor time.
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple, get_args

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.record import Column, verdict
from benchmarks.record import Table as Printed
from benchmarks.timing import in_turns, one_thread
from hardwood.learn.losses import CrossEntropy
from hardwood.learn.reinforced import Gradient, Reinforced
from hardwood.learn.task import Task

BATCH, LEARNING_RATE, N_SAMPLES = 128, 0.03, 10
DEPTHS = (5, 8, 10)
FLOOR, FLOOR_AT = 10.0, ("letter's shape", 8, "sampled")
COLUMNS = [
    Column("name", "rows", width=16, words=True),
    Column("depth", "depth"),
    Column("gradient", "gradient", width=8, words=True),
    Column("ours", "ours, ms per pass", ".1f"),
    Column("peer", "PyTorch, ms per pass", ".1f"),
    Column("ratio", "times ours", ".1f"),
    Column("floor", "floor", ".0f"),
    Column("verdict", ""),
]


class Rows(NamedTuple):
    """A randomly drawn table."""

    name: str
    X: np.ndarray
    y: np.ndarray

    @classmethod
    def drawn(cls, name: str, n: int, d: int, n_classes: int) -> Rows:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d)).astype(np.float32)
        scores = X @ rng.normal(size=(d, n_classes)) + rng.gumbel(size=(n, n_classes))
        return cls(name, X, scores.argmax(axis=1))


class TorchPolicy:
    """A reinforced tree in eager PyTorch; the bias is one more column of ones."""

    def __init__(self, d: int, depth: int, n_classes: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.depth, m = depth, 2**depth - 1
        self.W = torch.randn((m, d + 1), generator=generator).div_(d**0.5).requires_grad_()
        self.alpha = (0.1 * torch.randn((m + 1, n_classes), generator=generator)).requires_grad_()
        self.generator = generator

    def sampled_loss(self, X: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return a loss whose gradient is the estimate of Sec. 2.3."""
        scores = X @ self.W.t()  # (B, m)
        B, M = len(X), N_SAMPLES
        node = torch.zeros((B, M), dtype=torch.long)
        log_pi = torch.zeros((B, M))
        for _ in range(self.depth):
            score = scores.gather(1, node)  # (B, M)
            right = torch.rand((B, M), generator=self.generator) < torch.sigmoid(score.detach())
            log_pi = log_pi + F.logsigmoid(torch.where(right, score, -score))
            node = 2 * node + 1 + right.long()
        leaf = node - (2**self.depth - 1)
        of_leaf = self.alpha[leaf].flatten(0, 1)  # (B M, k)
        loss = F.cross_entropy(of_leaf, y.repeat_interleave(M), reduction="none").view(B, M)
        cost = loss.detach()
        baseline = (cost.sum(1, keepdim=True) - cost) / (M - 1)
        return (log_pi * (cost - baseline) + loss).mean()

    def exact_loss(self, X: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the expected loss over all leaves."""
        right = torch.sigmoid(X @ self.W.t())  # (B, m)
        reach = torch.ones((len(X), 1))
        for level in range(self.depth):
            at = right[:, 2**level - 1 : 2 ** (level + 1) - 1]
            reach = torch.stack([reach * (1 - at), reach * at], dim=2).flatten(1)
        of_class = -F.log_softmax(self.alpha, dim=1)[:, y].t()  # (B, L)
        return (reach * of_class).sum(1).mean()

    def fit(self, X: torch.Tensor, y: torch.Tensor, passes: int, gradient: str) -> None:
        optimizer = torch.optim.Adam([self.W, self.alpha], lr=LEARNING_RATE)
        loss_of = self.sampled_loss if gradient == "sampled" else self.exact_loss
        for _ in range(passes):
            for rows in torch.randperm(len(X), generator=self.generator).split(BATCH):
                optimizer.zero_grad()
                loss_of(X[rows], y[rows]).backward()
                optimizer.step()


def peer_fit(rows: Rows, depth: int, passes: int, gradient: str) -> None:
    X = torch.from_numpy(np.hstack([rows.X, np.ones((len(rows.X), 1), np.float32)]))
    policy = TorchPolicy(rows.X.shape[1], depth, int(rows.y.max()) + 1)
    policy.fit(X, torch.from_numpy(rows.y), passes, gradient)


def task_of(rows: Rows) -> Task:
    return Task.read(rows.X, rows.y, classifies=True, loss=lambda *_: CrossEntropy())


def our_fit(task: Task, depth: int, passes: int, gradient: Gradient) -> None:
    learner = Reinforced(
        max_depth=depth,
        gradient=gradient,
        n_trajectories=N_SAMPLES,
        entropy_bonus=0.0,
        learning_rate=LEARNING_RATE,
        batch_size=BATCH,
        max_epochs=passes,
    )
    learner.fit(task)


def measure(
    rows: Rows, depth: int, gradient: Gradient, passes: int, rounds: int
) -> dict[str, object]:
    task = task_of(rows)
    times = in_turns(
        {
            "ours": lambda: our_fit(task, depth, passes, gradient),
            "peer": lambda: peer_fit(rows, depth, passes, gradient),
        },
        rounds=rounds,
    )
    row: dict[str, object] = {
        "name": rows.name,
        "depth": depth,
        "gradient": gradient,
        "ours": 1e3 * times["ours"].best / passes,
        "peer": 1e3 * times["peer"].best / passes,
        "ratio": times["peer"] / times["ours"],
    }
    if (rows.name, depth, gradient) == FLOOR_AT:
        row |= {"floor": FLOOR, **verdict(times["peer"] / times["ours"] >= FLOOR)}
    return row


def main() -> int:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a smoke run, not recorded")
    arguments = parser.parse_args()
    passes, rounds = (1, 1) if arguments.quick else (arguments.passes, 3)
    tables = [
        Rows.drawn("letter's shape", 6661, 16, 26),
        Rows.drawn("mnist's shape", 5000, 784, 10),
    ]
    table = Printed(
        "reinforced_speed",
        __doc__.splitlines()[0],
        COLUMNS,
        {"passes": passes, "batch": BATCH, "samples": N_SAMPLES},
        kept=not arguments.quick,
    )
    for rows in tables[:1] if arguments.quick else tables:
        for depth in DEPTHS:
            for gradient in get_args(Gradient):
                table.add(**measure(rows, depth, gradient, passes, rounds))
    return 0 if table.finish() else 1


if __name__ == "__main__":
    sys.exit(main())
