"""Speed of greedy trees: exact axis-aligned splits compared with scikit-learn, and oblique ones.

    python -m benchmarks.speed.greedy --data FOLDER [--depth 18] [--quick]

FOLDER holds ``mnist.npz``, ``covtype.npz`` and ``letter.npz`` with arrays X and y. Both libraries
use one thread, all rows, the same depth and the same criterion, and are timed from the array to the
fitted estimator; ours also sorts the rows, merges equal ones and computes the scale of the columns.
Times are processor times, which other work on the machine hardly affects. Accuracies on training
rows show that both find trees of the same quality; they break ties differently. Small tables have
no floor: the work around growing takes a few hundredths of a second.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from benchmarks.record import Column, Table, verdict
from benchmarks.timing import in_turns, one_thread
from hardwood import GreedyTreeClassifier

LEAST_RATIO = 1.0  # times as fast as scikit-learn, on tables where growing takes most of the time
LEAST_ROWS = 50_000
TABLES = ("letter", "covtype", "mnist")
OBLIQUE = ("random", "oc1", "co2")
COLUMNS = [
    Column("table", "table", width=10, words=True),
    Column("split", "split", width=8, words=True),
    Column("n", "rows", ",d"),
    Column("ours", "hardwood, s", ".2f"),
    Column("theirs", "scikit-learn, s", ".2f"),
    Column("ratio", "ratio", ".2f"),
    Column("leaves", "leaves", ",d"),
    Column("accuracy", "accuracy", ".4f"),
    Column("their_accuracy", "scikit-learn's", ".4f"),
    Column("verdict", ""),
]


def read(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
        return np.ascontiguousarray(arrays["X"], dtype=np.float32), arrays["y"]


def compare_axis(
    report: Table, name: str, X: np.ndarray, y: np.ndarray, depth: int, rounds: int
) -> None:
    ours = GreedyTreeClassifier(max_depth=depth)
    theirs = DecisionTreeClassifier(max_depth=depth, criterion="entropy", random_state=0)
    calls = {"ours": lambda: ours.fit(X, y), "theirs": lambda: theirs.fit(X, y)}
    times = in_turns(calls, rounds=rounds, clock=time.process_time)
    ratio = times["theirs"] / times["ours"]
    report.add(
        table=name,
        split="axis",
        n=len(X),
        ours=times["ours"].best,
        theirs=times["theirs"].best,
        ratio=ratio,
        leaves=ours.tree_.n_leaves,
        accuracy=ours.score(X, y),
        their_accuracy=theirs.score(X, y),
        **(verdict(ratio >= LEAST_RATIO) if len(X) >= LEAST_ROWS else {}),
    )


def time_oblique(report: Table, name: str, X: np.ndarray, y: np.ndarray, depth: int) -> None:
    for split in OBLIQUE:
        model = GreedyTreeClassifier(splitter=split, max_depth=depth, random_state=0)
        start = time.process_time()
        model.fit(X, y)
        figures: dict[str, Any] = {"ours": time.process_time() - start}
        report.add(
            table=name,
            split=split,
            n=len(X),
            leaves=model.tree_.n_leaves,
            accuracy=model.score(X, y),
            **figures,
        )


def main() -> int:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of NAME.npz")
    parser.add_argument("--depth", type=int, default=18)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="few rows, once, not recorded")
    arguments = parser.parse_args()
    rounds = 1 if arguments.quick else arguments.rounds
    report = Table(
        "greedy",
        f"Greedy trees of depth {arguments.depth}, entropy: seconds of one processor to fit.",
        COLUMNS,
        {"depth": arguments.depth, "rounds": rounds},
        kept=not arguments.quick,
    )
    for name in TABLES:
        X, y = read(arguments.data, name)
        if arguments.quick:
            chosen = np.random.default_rng(0).permutation(len(X))[:2000]
            X, y = X[chosen], y[chosen]
        compare_axis(report, name, X, y, arguments.depth, rounds)
        if name != "covtype":  # half a million rows: OC1 would take almost an hour
            time_oblique(report, name, X, y, arguments.depth)
    return 0 if report.finish("Oblique splits are not compared with another library.") else 1


if __name__ == "__main__":
    sys.exit(main())
