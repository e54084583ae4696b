"""Speed of predictions of a soft ensemble, which follow only the nodes that a row reaches.

    python -m benchmarks.speed.ensemble_inference [--quick]

`TreeEnsemble.predict` of 10 trees with one output is timed for bands from narrow to as wide as the
scores. It is compared with the same trees with the logistic function, where every row reaches every
leaf, and with `harden().predict`. Floor: at depth 10 a row that reaches fewer than two leaves of a
tree takes at most a tenth of the time of a row that reaches all 1024.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np

from benchmarks import workloads
from benchmarks.record import Column, Table, asks_quick, verdict
from benchmarks.timing import interleaved, one_thread
from hardwood.model import TreeEnsemble
from hardwood.table import Schema

N_TREES = 10
WIDTHS = (16, 100)
DEPTHS = (4, 6, 8, 10)
GAMMAS = (0.01, 0.1, 1.0)
MOST_OF_DENSE = 0.1  # at depth 10, where less than two leaves are reached
COLUMNS = [
    Column("d", "d"),
    Column("depth", "depth"),
    Column("gamma", "gamma"),
    Column("leaves", "leaves reached", ".2f"),
    Column("soft_us", "us a row", ".2f"),
    Column("logistic_us", "logistic", ".2f"),
    Column("hard_us", "hard", ".2f"),
    Column("part", "of logistic", ".3f"),
    Column("most", "at most", ".1f"),
    Column("verdict", ""),
]


def ensemble_of(d: int, depth: int, gamma: float, activation: str) -> TreeEnsemble:
    """Return an ensemble whose splits have scores of about 1 for any d."""
    rng = np.random.default_rng(d + depth)
    m = 2**depth - 1
    return TreeEnsemble(
        rng.normal(size=(N_TREES, m, d)) / np.sqrt(d),
        rng.normal(size=(N_TREES, m)) / 10,
        rng.normal(size=(N_TREES, m + 1, 1)),
        gamma=gamma,
        activation=activation,
        schema=Schema.numeric(d),
        task="regression",
    )


def measure(d: int, depth: int, gamma: float, X: np.ndarray, rounds: int) -> dict[str, float]:
    soft = ensemble_of(d, depth, gamma, "smooth_step")
    # With a unit of 1 no probability underflows: all leaves are reached.
    logistic, hard = ensemble_of(d, depth, 1.0, "logistic"), soft.harden()
    few = X[: len(X) // 10]  # of the time with all leaves
    times = interleaved(
        {
            "soft": lambda: lambda: soft.predict(X),
            "logistic": lambda: lambda: logistic.predict(few),
            "hard": lambda: lambda: hard.predict(X),
        },
        rounds=rounds,
        seconds=0.1,
    )
    rows = {"soft": len(X), "logistic": len(few), "hard": len(X)}
    figures = {f"{name}_us": 1e6 * times[name].best / n for name, n in rows.items()}
    figures["leaves"] = float(soft.reachable_leaves(X).mean())
    return figures | {"part": figures["soft_us"] / figures["logistic_us"]}


def main() -> int:
    one_thread()
    quick = asks_quick(__doc__, "a tenth of the rows")
    n, rounds = (1_000, 2) if quick else (10_000, 5)
    table = Table(
        "ensemble_inference",
        f"Prediction of {N_TREES} soft trees with one output, {n:,} rows of float32, one thread.",
        COLUMNS,
        {"rounds": rounds, "n": n, "n_trees": N_TREES},
        kept=not quick,
    )
    for d, depth, gamma in itertools.product(WIDTHS, DEPTHS, GAMMAS):
        figures = measure(d, depth, gamma, workloads.rows(n, d), rounds)
        has_floor = depth == 10 and figures["leaves"] < 2
        floor = {"most": MOST_OF_DENSE, **verdict(figures["part"] <= MOST_OF_DENSE)}
        table.add(d=d, depth=depth, gamma=gamma, **figures, **(floor if has_floor else {}))
    return 0 if table.finish() else 1


if __name__ == "__main__":
    sys.exit(main())
