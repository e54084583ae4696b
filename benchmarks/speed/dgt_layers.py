"""Speed of the overparameterized DGT step, compared with PyTorch.

    python -m benchmarks.speed.dgt_layers [--quick]

One step is forward, backward and RMSprop over one batch; the splits are a product of three factors
with the hidden sizes of Table 12. There are two eager PyTorch versions: naive, with the batch
through three linear layers, and collapsed, with the factors multiplied first in the cheapest order
(``torch.linalg.multi_dot``) and the batch through the product. Both use the faster of two ways to
compute path sums. Gradients, and the result of a few steps, are compared before anything is timed.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.record import Column, Table, asks_quick, verdict
from benchmarks.speed.dgt_step import HardMax, Sign, dense_path_sums, doubling_path_sums
from benchmarks.timing import Call, interleaved, one_thread
from benchmarks.workloads import Batch, dgt_batch
from hardwood import _probes

HIDDEN = {4: 600, 6: 1008, 8: 1530, 10: 2046}  # Table 12, twice each
N_OUTPUTS = 10
LEARNING_RATE = 1e-3
# RMSprop's first steps are nearly the sign of the gradient. An entry that is zero except for
# rounding can have either sign, so the result of a few steps agrees less well than the gradient.
GRADIENT_TOLERANCE = 1e-5
WAY_TOLERANCE = 5e-3
WAY_STEPS, WAY_RATE = 3, 1e-6
MARGIN = 1e-4
GRID = list(itertools.product((16, 100), (128, 1024), (4, 6, 8, 10)))  # d, n, h
QUICK = [(16, 1024, 4), (100, 128, 4), (16, 128, 6)]
NAIVE_FLOOR = 20.0  # at d = 16, n = 1024
COLLAPSED_FLOOR = 1.0  # everywhere
COLUMNS = [
    Column("d", "d"),
    Column("n", "batch"),
    Column("h", "h"),
    Column("naive_ms", "naive, ms", ".2f"),
    Column("collapsed_ms", "collapsed, ms", ".2f"),
    Column("ours_ms", "hardwood, ms", ".2f"),
    Column("over_naive", "over naive", ".1f"),
    Column("over_collapsed", "over collapsed", ".2f"),
    Column("floors", "floors", words=True, width=11),
    Column("verdict", ""),
]

Splits = Callable[["TorchLayers"], torch.Tensor]


def naive(step: TorchLayers) -> torch.Tensor:
    a = step.X
    for W in step.factors:
        a = a @ W.t()
    return a


def collapsed(step: TorchLayers) -> torch.Tensor:
    return step.X @ torch.linalg.multi_dot(step.factors[::-1]).t()


class TorchLayers:
    """The step in eager PyTorch: factors W1, W2, W3 over the columns and a one, leaves theta."""

    def __init__(
        self,
        batch: Batch,
        factors: list[np.ndarray],
        scores: Splits,
        path_sums: Callable[[torch.Tensor], torch.Tensor],
        learning_rate: float = LEARNING_RATE,
    ) -> None:
        ones = np.ones((len(batch.X), 1), dtype=np.float32)
        self.X = torch.from_numpy(np.hstack([batch.X, ones]))
        self.target = torch.from_numpy(batch.target)[:, 0].long()
        self.factors = [torch.from_numpy(W.copy()).requires_grad_() for W in factors]
        self.theta = torch.from_numpy(batch.theta.copy()).requires_grad_()
        self.scores, self.path_sums = scores, path_sums
        self.optimizer = torch.optim.RMSprop([*self.factors, self.theta], lr=learning_rate)

    def backward(self) -> None:
        prediction = HardMax.apply(self.path_sums(Sign.apply(self.scores(self)))) @ self.theta
        F.cross_entropy(prediction, self.target).backward()

    def __call__(self) -> None:
        self.optimizer.zero_grad()
        self.backward()
        self.optimizer.step()

    def weights(self) -> np.ndarray:
        with torch.no_grad():
            return torch.linalg.multi_dot(self.factors[::-1]).numpy()


def clear_batch(n: int, d: int, h: int) -> Batch:
    """Draw a batch whose scores are far from 0 and +-1, where the gradient jumps.

    Each side rounds a product of factors differently. A score near zero could then send a row to
    another leaf, and gradients could not be compared.
    """
    drawn = dgt_batch(2 * n, d, h, N_OUTPUTS)
    a = np.abs(drawn.X.astype(np.float64) @ drawn.W.T + drawn.b)
    is_clear = ((a > MARGIN) & (np.abs(a - 1) > MARGIN)).all(axis=1)
    rows = np.flatnonzero(is_clear)[:n]
    if len(rows) < n:
        raise AssertionError(f"only {len(rows)} of {2 * n} rows are clear of every jump")
    X, target = (np.ascontiguousarray(part[rows]) for part in (drawn.X, drawn.target))
    return Batch(X, target, drawn.W, drawn.b, drawn.theta)


def our_step(batch: Batch, h: int) -> _probes.LearnerProbe:
    weight = np.ones(len(batch.X), dtype=np.float32)
    probe = _probes.LearnerProbe(
        "dgt",
        batch.X,
        batch.target,
        weight,
        n_outputs=N_OUTPUTS,
        loss="cross_entropy",
        hidden=[HIDDEN[h]] * 2,
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


def same_factors(batch: Batch, h: int) -> list[np.ndarray]:
    """Return random factors with the product that `our_step` starts from."""
    layers = _probes.LinearLayers(2**h - 1, batch.X.shape[1], hidden=[HIDDEN[h]] * 2)
    layers.start_from(np.hstack([batch.W, batch.b[:, None]]), seed=0)
    return layers.factors()


def check_gradients(batch: Batch, h: int, factors: list[np.ndarray]) -> float:
    """Compare our gradient by the product with PyTorch's; return the largest relative error."""
    step = TorchLayers(batch, factors, naive, dense_path_sums(h))
    W = torch.linalg.multi_dot(step.factors[::-1]).detach().requires_grad_()
    step.scores = lambda step: step.X @ W.t()
    step.backward()
    _, dW, db, dtheta = our_step(batch, h).gradient()[:4]
    found = (np.hstack([dW, db[:, None]]), dtheta)
    expected = (W.grad.numpy(), step.theta.grad.numpy())
    error = max(np.abs(f - e).max() / np.abs(e).max() for f, e in zip(found, expected, strict=True))
    if not error <= GRADIENT_TOLERANCE:
        raise AssertionError(f"gradients differ by {error:.1e} of their largest entry")
    return float(error)


def check_way(batch: Batch, h: int, factors: list[np.ndarray], scores: Splits) -> float:
    """Compare the result of a few steps; return the difference, relative to the change."""
    ours = our_step(batch, h)
    theirs = TorchLayers(batch, factors, scores, dense_path_sums(h), WAY_RATE)
    start = theirs.weights()
    ours.steps(WAY_STEPS, WAY_RATE)
    for _ in range(WAY_STEPS):
        theirs()
    W, b, *_ = ours.parameters()
    way = theirs.weights() - start
    difference = np.hstack([W, b[:, None]]) - start - way
    error = np.linalg.norm(difference) / np.linalg.norm(way)
    if not error <= WAY_TOLERANCE:
        raise AssertionError(f"after {WAY_STEPS} steps the ways differ by {error:.1e} of the way")
    return float(error)


def measure(d: int, n: int, h: int, rounds: int) -> dict[str, float]:
    batch = clear_batch(n, d, h)
    factors = same_factors(batch, h)
    figures = {"gradient_error": check_gradients(batch, h, factors)}
    figures["way_error"] = max(check_way(batch, h, factors, s) for s in (naive, collapsed))

    def make_ours() -> Call:
        probe = our_step(batch, h)
        return lambda: probe.steps(1, LEARNING_RATE)

    alternatives: dict[str, Callable[[], Call]] = {"ours": make_ours}
    for scores, sums in itertools.product(
        (naive, collapsed), (dense_path_sums, doubling_path_sums)
    ):
        path_sums = sums(h)
        alternatives[f"{scores.__name__} {sums.__name__}"] = (
            lambda scores=scores, path_sums=path_sums: TorchLayers(
                batch, factors, scores, path_sums
            )
        )
    times = interleaved(alternatives, rounds=rounds, seconds=0.03)
    for name in ("naive", "collapsed", "ours"):
        of_name = [timing for key, timing in times.items() if key.startswith(name)]
        better = min(of_name, key=lambda timing: timing.best)
        figures[f"{name}_ms"], figures[f"{name}_median_ms"] = 1e3 * better.best, 1e3 * better.median
    for name in ("naive", "collapsed"):
        figures[f"over_{name}"] = figures[f"{name}_ms"] / figures["ours_ms"]
    return figures


def floors(d: int, n: int, figures: dict[str, float]) -> dict[str, object]:
    """Return the floors of a cell and whether they are kept."""
    has_naive_floor = (d, n) == (16, 1024)
    passed = figures["over_collapsed"] >= COLLAPSED_FLOOR and (
        not has_naive_floor or figures["over_naive"] >= NAIVE_FLOOR
    )
    words = f"{NAIVE_FLOOR:.0f}, {COLLAPSED_FLOOR:.0f}" if has_naive_floor else "-, 1"
    return {"floors": words, **verdict(passed)}


def main() -> int:
    one_thread()
    quick = asks_quick(__doc__, "a few cells")
    table = Table(
        "dgt_layers",
        f"One overparameterized training step of DGT (L = 3, {N_OUTPUTS} classes; RMSprop "
        "included), one thread: milliseconds, and how many times faster hardwood is.",
        COLUMNS,
        {"rounds": 2 if quick else 5, "hidden": HIDDEN},
        kept=not quick,
    )
    for d, n, h in QUICK if quick else GRID:
        figures = measure(d, n, h, table.settings["rounds"])
        table.add(d=d, n=n, h=h, **figures, **floors(d, n, figures))
    passed = table.finish(
        "Gradients by the product of the factors differ from PyTorch's by at most "
        f"{max(row['gradient_error'] for row in table.rows):.1e} of their largest entry, and "
        f"after {WAY_STEPS} steps the products by {max(row['way_error'] for row in table.rows):.1e}"
        " of the way.",
        "Floors: times faster than naive, and than collapsed.",
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
