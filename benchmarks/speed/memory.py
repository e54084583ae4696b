"""Memory of fitting, as a multiple of the table.

    python -m benchmarks.speed.memory [--quick]

Each case is its own process. It creates a float32 table, fits an estimator for two epochs, and
reports its largest resident memory. The memory of a process with all imports and no data is
subtracted; the rest is the table, the target, and the memory of fitting. The environment is the
user's, without the memory settings that help other libraries elsewhere.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from typing import Any

import psutil

from benchmarks.record import Column, Table, verdict

FLOOR = 3.0  # times the table
# A table of few features is the hard case: target, weight and order of rows are as large as a row.
CASES = (
    ("DGTClassifier", 2_000_000, 50),
    ("DGTRegressor", 2_000_000, 50),
    ("DGTClassifier", 200_000, 500),
    ("DGTClassifier", 4_000_000, 8),
)
QUICK = (("DGTClassifier", 400_000, 50), ("DGTRegressor", 400_000, 50))
COLUMNS = [
    Column("estimator", "estimator", width=13, words=True),
    Column("n", "rows", ",d", width=9),
    Column("d", "features"),
    Column("table_mb", "table, MB", ",.0f"),
    Column("peak_mb", "peak, MB", ",.0f"),
    Column("before_mb", "before fit, MB", ",.0f"),
    Column("seconds", "fit, s", ".1f"),
    Column("ratio", "peak / table", ".2f"),
    Column("floor", "at most", ".0f"),
    Column("verdict", ""),
]


def resident() -> int:
    return psutil.Process().memory_info().rss


def peak() -> int:
    """Return the largest resident memory so far.

    On some systems a process inherits its parent's value at the start; the parent here is much
    smaller than any case.
    """
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def fit_case(estimator: str, n: int, d: int) -> dict[str, float]:
    """Fit in this process, which has done nothing else."""
    import time

    import hardwood
    from benchmarks import workloads

    kind = getattr(hardwood, estimator)
    small = workloads.rows(1000, d)
    kind(max_epochs=1).fit(small, workloads.noisy_labels(small))  # everything is imported now
    empty = resident()
    X = workloads.rows(n, d)
    y = (X[:, 0] + X[:, 1] > 0).astype("int64" if estimator == "DGTClassifier" else "float64")
    before, peak_before = resident(), peak()
    start = time.perf_counter()
    kind(max_epochs=2, early_stopping=True, random_state=0).fit(X, y)
    return {
        "seconds": time.perf_counter() - start,
        "table": X.nbytes,
        "before": before - empty,
        "made": peak_before - empty,
        "peak": peak() - empty,
    }


def measure(estimator: str, n: int, d: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.speed.memory"]
    case = json.dumps([estimator, n, d])
    answer = subprocess.run([*command, "--case", case], check=True, capture_output=True, text=True)
    return json.loads(answer.stdout.splitlines()[-1])


def row_of(estimator: str, n: int, d: int) -> dict[str, Any]:
    figures = measure(estimator, n, d)
    ratio = figures["peak"] / figures["table"]
    return {
        "estimator": estimator,
        "n": n,
        "d": d,
        **{f"{key}_mb": figures[key] / 1e6 for key in ("table", "peak", "before", "made")},
        "seconds": figures["seconds"],
        "ratio": ratio,
        "floor": FLOOR,
        **verdict(ratio <= FLOOR),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small tables, not recorded")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(fit_case(*json.loads(arguments.case))))
        return 0
    table = Table(
        "memory",
        "Largest resident memory while a float32 table is fitted for two epochs, the table and the "
        "target included.",
        COLUMNS,
        kept=not arguments.quick,
    )
    for case in QUICK if arguments.quick else CASES:
        table.add(**row_of(*case))
    passed = table.finish("Before the fit: the table and the target, int64 or float64.")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
