"""Time to predict one row from Python.

    python -m benchmarks.speed.one_row [--quick]

54 features, depth 8. `ObliqueTree.predict_one` is compared with onnxruntime for a CART and with
scikit-learn's bare `tree_.apply`; `DGTClassifier.predict` on a table of one row with
`DecisionTreeClassifier.predict`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks import workloads
from benchmarks.record import Column, Table, asks_quick, verdict
from benchmarks.timing import Call, Timing, interleaved, one_thread
from hardwood import DGTClassifier

D, H = 54, 8
N_TRAIN = 20_000
N_ROWS = 64  # different rows, predicted in turn
FLOOR = 1 / 5  # of the other library's time

COLUMNS = [
    Column("what", "hardwood", width=34, words=True),
    Column("us", "us", ".2f"),
    Column("peer", "peer", width=34, words=True),
    Column("peer_us", "peer, us", ".2f"),
    Column("ratio", "time / peer's", ".3f"),
    Column("floor", "at most", ".3f"),
    Column("verdict", ""),
]


def ask_each(function: Callable[[Any], Any], inputs: Sequence[Any]) -> Callable[[], Call]:
    """Return a call that predicts every row, one by one."""

    def call() -> None:
        for row in inputs:
            function(row)

    return lambda: call


def measure(rounds: int) -> tuple[dict[str, Timing], dict[str, int]]:
    X = workloads.rows(N_TRAIN, D)
    cart = workloads.full_cart(X, H)
    session = workloads.onnx_session(cart, D)
    dgt = DGTClassifier(max_depth=H, max_epochs=3, random_state=0)
    dgt.fit(X, workloads.noisy_labels(X))
    tree = workloads.perfect_tree(D, H)
    vectors = [np.ascontiguousarray(x) for x in X[:N_ROWS]]
    tables = [np.ascontiguousarray(x[None, :]) for x in X[:N_ROWS]]
    inputs = [{"X": x} for x in tables]
    times = interleaved(
        {
            "predict_one": ask_each(tree.predict_one, vectors),
            "dgt_predict": ask_each(dgt.predict, tables),
            "tree_predict": ask_each(tree.predict, tables),
            "onnx": ask_each(lambda feed: session.run(None, feed), inputs),
            "cart_apply": ask_each(cart.tree_.apply, tables),
            "cart_predict": ask_each(cart.predict, tables),
        },
        rounds=rounds,
        seconds=0.05,
    )
    depths = {"CART": int(cart.get_depth()), "DGTClassifier": dgt.tree_.depth, "ObliqueTree": H}
    return times, depths


def main() -> int:
    one_thread()
    quick = asks_quick(__doc__, "a few rounds")
    rounds = 3 if quick else 15
    table = Table(
        "one_row",
        f"One row of {D} float32 features, depth {H}, from Python, one thread: microseconds.",
        COLUMNS,
        {"rounds": rounds},
        kept=not quick,
    )
    times, depths = measure(rounds)
    for ours, what, peer, peer_words, floor in (
        ("predict_one", "ObliqueTree.predict_one(x)", "onnx", "onnxruntime, CART", FLOOR),
        ("predict_one", "ObliqueTree.predict_one(x)", "cart_apply", "CART's tree_.apply(X)", None),
        ("tree_predict", "ObliqueTree.predict(X)", "cart_apply", "CART's tree_.apply(X)", None),
        (
            "dgt_predict",
            "DGTClassifier.predict(X)",
            "cart_predict",
            "DecisionTreeClassifier.predict(X)",
            FLOOR,
        ),
        ("dgt_predict", "DGTClassifier.predict(X)", "onnx", "onnxruntime, CART", None),
    ):
        us, peer_us = 1e6 * times[ours].best / N_ROWS, 1e6 * times[peer].best / N_ROWS
        row = {
            "what": what,
            "us": us,
            "peer": peer_words,
            "peer_us": peer_us,
            "ratio": us / peer_us,
        }
        medians = {name: 1e6 * times[name].median / N_ROWS for name in (ours, peer)}
        floors = {} if floor is None else {"floor": floor, **verdict(us <= floor * peer_us)}
        table.add(**row, medians_us=medians, **floors)
    words = ", ".join(f"{name} {depth}" for name, depth in depths.items())
    return 0 if table.finish(f"Depths: {words}. x is (54,), X is (1, 54).") else 1


if __name__ == "__main__":
    sys.exit(main())
