"""Speed of alternating optimization: one node's logistic regression, and whole sweeps.

    python -m benchmarks.speed.tao --data FOLDER [--tables node] [--quick]

FOLDER holds ``mnist.npz`` and ``covtype.npz`` with arrays X and y.

`node`: a root that separates digits below 5 from the others, with all rows of mnist (columns that
vary, standardized) and L1 penalty 10. Our solver has the options of a sweep. scikit-learn's solvers
have enough iterations to reach the same objective, up to a maximum. All use one thread, and times
are processor times. The result is the time and the objective reached: the sum of the logistic
losses plus the penalty.

`sweep`: TAO's sweeps over all rows, from an axis-aligned tree, two threads, wall seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from benchmarks.quality.trials import some_of
from benchmarks.record import Column, Table, verdict
from benchmarks.speed.greedy import read
from benchmarks.timing import one_thread
from hardwood import TAOClassifier, _probes
from hardwood.learn.tao import TAO

TABLES = ("node", "sweep")
L1 = 10.0
PEERS: dict[str, dict[str, Any]] = {
    "liblinear": {"tol": 1e-2, "max_iter": 50},
    "saga": {"tol": 1e-3, "max_iter": 50},
}
LEAST_RATIO = 1.0  # times as fast as liblinear, with the same objective
SWEEPS = {"mnist": 8, "covtype": 10}  # depths
N_SWEEPS = 5

NODE_COLUMNS = [
    Column("solver", "solver", width=12, words=True),
    Column("seconds", "s", ".2f"),
    Column("objective", "objective", ",.1f"),
    Column("weights", "weights", "d"),
    Column("ratio", "time / ours", ".1f"),
    Column("verdict", ""),
]
SWEEP_COLUMNS = [
    Column("table", "table", width=10, words=True),
    Column("n", "rows", ",d"),
    Column("depth", "depth", "d"),
    Column("start", "start, error", ".4f"),
    Column("error", "after sweeps", ".4f"),
    Column("per_sweep", "s per sweep", ".1f"),
    Column("seconds", "fit, s", ".1f"),
]


def node_problem(folder: Path, is_quick: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return standardized rows, and signs."""
    X, y = read(folder, "mnist")
    if is_quick:
        X, y = X[:2000], y[:2000]
    spread = X.std(axis=0)
    X = (X[:, spread > 0] - X.mean(axis=0)[spread > 0]) / spread[spread > 0]
    return np.ascontiguousarray(X, dtype=np.float32), np.where(y < 5, -1.0, 1.0).astype(np.float32)


def objective(X: np.ndarray, sign: np.ndarray, w: np.ndarray, b: float) -> float:
    margin = sign * (X.astype(np.float64) @ w + b)
    return float(np.logaddexp(0.0, -margin).sum() + L1 * np.abs(w).sum())


def nodes(folder: Path, is_quick: bool) -> bool:
    X, sign = node_problem(folder, is_quick)
    report = Table(
        "tao_node",
        f"A node's logistic regression: {X.shape[0]:,} rows, {X.shape[1]} columns, one thread.",
        NODE_COLUMNS,
        {"l1": L1, **PEERS},
        kept=not is_quick,
    )
    options = TAO()
    start = time.process_time()
    w, b, _, _ = _probes.solve_logistic(
        X,
        sign,
        np.ones(len(X), dtype=np.float32),
        l1=L1,
        max_passes=options.logistic_passes,
        tolerance=options.logistic_tolerance,
    )
    ours, reached = time.process_time() - start, objective(X, sign, w.astype(np.float64), b)
    report.add(
        solver="ours", seconds=ours, objective=reached, weights=int(np.count_nonzero(w)), ratio=1.0
    )
    for solver, limits in PEERS.items():
        peer = LogisticRegression(l1_ratio=1.0, C=1.0 / L1, solver=solver, **limits)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # some stop at the maximum
            peer.fit(X, sign)
        seconds = time.process_time() - start
        w, b = peer.coef_[0], float(peer.intercept_[0])
        found = objective(X, sign, w, b)
        report.add(
            solver=solver,
            seconds=seconds,
            objective=found,
            weights=int(np.count_nonzero(w)),
            ratio=seconds / ours,
            **verdict(seconds >= LEAST_RATIO * ours and found >= reached * (1 - 1e-2)),
        )
    return report.finish(
        "pass: the solver is no faster than ours, and its objective is at most 1 % lower."
    )


def sweeps(folder: Path, is_quick: bool) -> None:
    report = Table(
        "tao_sweep",
        f"{N_SWEEPS} sweeps of alternating optimization from an axis-aligned tree, two threads.",
        SWEEP_COLUMNS,
        {"l1": 0.3, "l2": 10.0},
        kept=not is_quick,
    )
    for name, depth in SWEEPS.items():
        X, y = read(folder, name)
        if is_quick:
            X, y = X[:2000], y[:2000]
        ends: list[float] = []
        model = TAOClassifier(
            max_depth=depth,
            l1=0.3,
            l2=10.0,
            leaf_prior=0.0,
            max_sweeps=N_SWEEPS,
            early_stopping=False,
            n_jobs=2,
            random_state=0,
            callbacks=lambda _, ends=ends: ends.append(time.perf_counter()),
        )
        start = time.perf_counter()
        model.fit(X, y)
        report.add(
            table=name,
            n=len(X),
            depth=depth,
            start=model.objective_[0],
            error=model.objective_[-1],
            per_sweep=float(np.mean(np.diff(ends))) if len(ends) > 1 else float("nan"),
            seconds=time.perf_counter() - start,
        )
    report.finish(
        "Errors are those on training rows; the fit includes reading and growing the start."
    )


def main() -> int:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of NAME.npz")
    parser.add_argument("--quick", action="store_true", help="few rows, not recorded")
    parser.add_argument("--tables", type=some_of(TABLES), default=list(TABLES))
    options = parser.parse_args()
    passed = "node" not in options.tables or nodes(options.data, options.quick)
    if "sweep" in options.tables:
        sweeps(options.data, options.quick)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
