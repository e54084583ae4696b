"""Figure 3 of the TEL paper: training time by depth, conditional and dense.

    python -m benchmarks.speed.tel_depth [--quick]

10 trees, batches of 256, Adam at 0.1 (Sec. 4.1: 50 epochs). Ours is the whole native training of
`TELClassifier` on 5120 random rows of 20 columns, from the start, where rows reach every leaf, to
the end: seconds per epoch, mean over 50 epochs. The PyTorch version trains soft trees with the
logistic function in eager mode (`soft_trees.py`), whose epochs always take the same time: seconds
of one epoch, from at least 4 of its steps. The same version under `torch.compile` is shown too, at
the depths that have a floor; floors are against the eager one. One thread each, warmed up, in
turns, best of several. Writes ``docs/images/tel_depth.png``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import make_classification

from benchmarks.record import Column, Table, asks_quick, verdict
from benchmarks.speed.soft_trees import dense_ensemble, logistic
from benchmarks.timing import Timing, in_turns, one_thread
from hardwood import TELClassifier
from hardwood.learn import Training

N_ROWS, D, N_TREES, BATCH, RATE, PASSES = 5120, 20, 10, 256, 0.1, 50
STEPS = -(-N_ROWS // BATCH)
FLOORS = {(0.1, 8): 10.0, (0.1, 10): 40.0, (1.0, 10): 8.0}
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "tel_depth.png"
COLUMNS = [
    Column("depth", "depth"),
    Column("gamma", "gamma"),
    Column("first", "leaves, first epoch", ".1f"),
    Column("last", "leaves, last epoch", ".2f"),
    Column("ours", "ours, ms per epoch", ".1f"),
    Column("dense", "PyTorch, ms per epoch", ".1f"),
    Column("ratio", "PyTorch / ours", ".1f"),
    Column("compiled", "compiled, ms per epoch", ".1f"),
    Column("compiled_ratio", "compiled / ours", ".1f"),
    Column("floor", "floor", ".0f"),
    Column("verdict", ""),
]


def table() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(N_ROWS, D, n_informative=10, random_state=0)
    return X.astype(np.float32), y


def our_training(X: np.ndarray, y: np.ndarray, depth: int, gamma: float) -> TELClassifier:
    return TELClassifier(
        n_estimators=N_TREES,
        max_depth=depth,
        gamma=gamma,
        learning_rate=RATE,
        batch_size=BATCH,
        max_epochs=PASSES,
        early_stopping=False,
        random_state=0,
        training=Training(optimizer="adam", schedule="constant", clip_norm=None),
    ).fit(X, y)


def dense_steps(
    X: np.ndarray, y: np.ndarray, depth: int, n_steps: int, *, compiles: bool = False
) -> Callable[[], None]:
    generator = torch.Generator().manual_seed(0)
    m = 2**depth - 1

    def uniform(*shape: int) -> torch.Tensor:
        return torch.empty(shape).uniform_(-0.01, 0.01, generator=generator).requires_grad_()

    W, b, O = uniform(N_TREES, m, D), uniform(N_TREES, m), uniform(N_TREES, m + 1, 1)
    inputs, target = torch.from_numpy(X), torch.from_numpy(y).float()
    optimizer = torch.optim.Adam([W, b, O], lr=RATE)

    def loss_of(x: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        scores = dense_ensemble(x, W, b, O, logistic(1.0))[:, 0]
        return F.binary_cross_entropy_with_logits(scores, wanted)

    run = torch.compile(loss_of) if compiles else loss_of

    def steps() -> None:
        for i in range(n_steps):
            rows = slice(i * BATCH, (i + 1) * BATCH)
            optimizer.zero_grad()
            run(inputs[rows], target[rows]).backward()
            optimizer.step()

    steps()  # warm
    return steps


def measure(report: Table, depth: int, rounds: int) -> None:
    X, y = table()
    n_steps = max(4, STEPS if depth <= 6 else 4)
    fits: dict[float, TELClassifier] = {}

    def fit(gamma: float) -> None:
        fits[gamma] = our_training(X, y, depth, gamma)

    calls = {
        "dense": dense_steps(X, y, depth, n_steps),
        "1.0": lambda: fit(1.0),
        "0.1": lambda: fit(0.1),
    }
    if depth in {floor[1] for floor in FLOORS}:
        calls["compiled"] = dense_steps(X, y, depth, n_steps, compiles=True)
    times = in_turns(calls, rounds=rounds)
    for gamma, model in fits.items():
        report.add(**_row(times, depth, gamma, model, n_steps))


def _row(
    times: dict[str, Timing], depth: int, gamma: float, model: TELClassifier, n_steps: int
) -> dict[str, object]:
    ours = 1e3 * times[str(gamma)].best / PASSES
    dense = 1e3 * times["dense"].best / n_steps * STEPS
    row = {
        "depth": depth,
        "gamma": gamma,
        "first": model.history_[0].reachable_leaves,
        "last": model.history_[-1].reachable_leaves,
        "ours": ours,
        "dense": dense,
        "ratio": dense / ours,
    }
    if "compiled" in times:
        compiled = 1e3 * times["compiled"].best / n_steps * STEPS
        row |= {"compiled": compiled, "compiled_ratio": compiled / ours}
    floor = FLOORS.get((gamma, depth))
    return row | ({} if floor is None else {"floor": floor, **verdict(dense / ours >= floor)})


def draw(rows: list[dict[str, float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    depths = sorted({row["depth"] for row in rows})
    dense = {row["depth"]: row["dense"] for row in rows}
    axes.plot(depths, [dense[depth] for depth in depths], "s--", label="logistic, dense, PyTorch")
    for gamma in sorted({row["gamma"] for row in rows}, reverse=True):
        of_gamma = {row["depth"]: row["ours"] for row in rows if row["gamma"] == gamma}
        label = f"smooth step, gamma = {gamma:g}, hardwood"
        axes.plot(depths, [of_gamma[depth] for depth in depths], "o-", label=label)
    axes.set_yscale("log")
    axes.set_xlabel("depth of 10 trees")
    axes.set_ylabel(f"ms for a pass over {N_ROWS} rows")
    axes.legend()
    figure.savefig(PICTURE, dpi=150)


def main() -> int:
    one_thread()
    is_quick = asks_quick(__doc__, "depths 2 and 6, once")
    report = Table(
        "tel_depth",
        f"Training {N_TREES} soft trees on {N_ROWS} rows of {D} columns, one thread: milliseconds "
        f"per epoch, mean over {PASSES} epochs.",
        COLUMNS,
        kept=not is_quick,
    )
    for depth in (2, 6) if is_quick else range(2, 13, 2):
        measure(report, depth, 1 if is_quick else 3)
    passed = report.finish()
    if not is_quick:
        draw(report.rows)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
