"""Speed of batch predictions, compared with other libraries and with reading the table.

    python -m benchmarks.speed.inference [--table peers|reading] [--quick]

Table 1, peers, 54 features: `ObliqueTree.apply` and `.predict` of a perfect tree with dense splits
are compared with scikit-learn's `tree_.apply` (which also returns leaf numbers) and
`DecisionTreeClassifier.predict` of a CART of equal depth, with onnxruntime for that CART, and with
LightGBM with 100 trees. Their splits read one feature; ours multiply all of them.

Table 2, reading: the same compared with the time to read the table once, for 16 to 784 features.
"""

from __future__ import annotations

import argparse
import itertools
import sys

import numpy as np

from benchmarks import workloads
from benchmarks.record import Column, Table, verdict
from benchmarks.timing import Call, Timing, interleaved, one_thread

PEERS_D = 54
HEIGHTS = (4, 6, 8, 10, 12)
FLOOR_APPLY = {4: 1.2, 6: 1.2, 8: 1.0, 10: 1.0, 12: 0.9}  # times tree_.apply
FLOOR_BOOSTED = 40.0  # times LightGBM with 100 trees
N_BOOSTED = 20_000  # rows for LightGBM, which would take seconds for a million
READING_ROWS = {16: 1_000_000, 54: 1_000_000, 100: 1_000_000, 784: 200_000}

PEERS_COLUMNS = [
    Column("h", "h"),
    Column("leaves", "CART leaves"),
    Column("path", "CART path", ".2f"),
    Column("ours_rate", "apply", ".1f"),
    Column("cart_apply_rate", "tree_.apply", ".1f"),
    Column("ours_predict_rate", "predict", ".1f"),
    Column("cart_predict_rate", "CART predict", ".1f"),
    Column("onnx_rate", "onnxruntime", ".1f"),
    Column("boosted_rate", "LightGBM", ".3f"),
    Column("ratio", "x tree_.apply", ".2f"),
    Column("floor", "floor", ".1f"),
    Column("predict_ratio", "x CART predict", ".2f"),
    Column("onnx_ratio", "x onnxruntime", ".2f"),
    Column("boosted_ratio", "x LightGBM", ".0f"),
    Column("boosted_floor", "floor", ".0f"),
    Column("verdict", ""),
]
READING_COLUMNS = [
    Column("d", "d"),
    Column("h", "h"),
    Column("ours_rate", "apply", ".1f"),
    Column("reading_rate", "reading X", ".1f"),
    Column("part", "part of reading speed", ".2f"),
]


def reads_once(X: np.ndarray) -> Call:
    """Read all of X and compute almost nothing: the bitwise or of its 64-bit words.

    This is NumPy's reduction with the least arithmetic.
    """
    words = X.reshape(-1).view(np.int64)
    return lambda: np.bitwise_or.reduce(words)


def measure_peers(X: np.ndarray, h: int, booster: object, rounds: int) -> dict[str, object]:
    tree, cart = workloads.perfect_tree(PEERS_D, h), workloads.full_cart(X, h)
    session = workloads.onnx_session(cart, PEERS_D)
    few = X[:N_BOOSTED]
    agreed = np.mean(session.run(None, {"X": few})[0] == cart.predict(few))
    if agreed < 0.999:
        raise AssertionError(f"onnxruntime and scikit-learn agree on {agreed:.1%} of rows only")
    calls: dict[str, Call] = {
        "ours": lambda: tree.apply(X),
        "cart_apply": lambda: cart.tree_.apply(X),
        "ours_predict": lambda: tree.predict(X),
        "cart_predict": lambda: cart.predict(X),
        "onnx": lambda: session.run(None, {"X": X}),
        "boosted": lambda: booster.predict(few, num_threads=1),
    }
    times = timed(calls, rounds)
    rates = {
        f"{name}_rate": (N_BOOSTED if name == "boosted" else len(X)) / 1e6 / timing.best
        for name, timing in times.items()
    }
    boosted_ratio = rates["ours_rate"] / rates["boosted_rate"]
    return {
        "leaves": int(cart.get_n_leaves()),
        "path": workloads.mean_path(cart, few),
        **rates,
        "medians_s": {name: timing.median for name, timing in times.items()},
        "ratio": times["cart_apply"] / times["ours"],
        "predict_ratio": times["cart_predict"] / times["ours_predict"],
        "onnx_ratio": times["onnx"] / times["ours"],
        "boosted_ratio": boosted_ratio,
    }


def timed(calls: dict[str, Call], rounds: int) -> dict[str, Timing]:
    makers = {name: (lambda call=call: call) for name, call in calls.items()}
    return interleaved(makers, rounds=rounds, seconds=0.1)


def peers(n: int, rounds: int, kept: bool) -> bool:
    table = Table(
        "inference_peers",
        f"Batch inference, {n:,} rows of {PEERS_D} float32 features, one thread: million rows per "
        "second, and how many times faster hardwood is.",
        PEERS_COLUMNS,
        {"rounds": rounds, "n": n},
        kept,
    )
    X = workloads.rows(n, PEERS_D)
    booster = workloads.boosted_trees(X)
    for h in HEIGHTS:
        figures = measure_peers(X, h, booster, rounds)
        floor = FLOOR_APPLY[h]
        passed = figures["ratio"] >= floor and figures["boosted_ratio"] >= FLOOR_BOOSTED
        floors = {"floor": floor, "boosted_floor": FLOOR_BOOSTED}
        table.add(h=h, **figures, **floors, **verdict(passed))
    return table.finish(
        "CART leaves, CART path: leaves of scikit-learn's tree and mean splits on a row's way, "
        "which shows that its depth is as stated.",
        "x tree_.apply, x onnxruntime and x LightGBM compare ObliqueTree.apply; x CART predict "
        "compares ObliqueTree.predict. LightGBM: 100 trees of 31 leaves.",
    )


def reading(scale: float, rounds: int, kept: bool) -> bool:
    table = Table(
        "inference_reading",
        "ObliqueTree.apply against reading the float32 table once (bitwise or of its 64-bit words "
        "by NumPy), one thread: million rows per second.",
        READING_COLUMNS,
        {"rounds": rounds, "n": {str(d): int(scale * n) for d, n in READING_ROWS.items()}},
        kept,
    )
    previous: tuple[int, np.ndarray | None] = (0, None)
    for d, h in itertools.product(READING_ROWS, HEIGHTS):
        if previous[0] != d:
            previous = (d, workloads.rows(int(scale * READING_ROWS[d]), d))
        X, tree = previous[1], workloads.perfect_tree(d, h)
        read = reads_once(X)
        times = timed({"ours": lambda tree=tree, X=X: tree.apply(X), "reading": read}, rounds)
        rates = {f"{name}_rate": len(X) / 1e6 / timing.best for name, timing in times.items()}
        table.add(d=d, h=h, **rates, part=times["reading"] / times["ours"])
    return table.finish()


def main() -> int:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", choices=["peers", "reading"], help="one table only")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, not recorded")
    arguments = parser.parse_args()
    scale, rounds, kept = (0.1, 3, False) if arguments.quick else (1.0, 8, True)
    passed = True
    if arguments.table != "reading":
        passed = peers(int(scale * 1_000_000), rounds, kept)
    if arguments.table != "peers":
        passed = reading(scale, rounds, kept) and passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
