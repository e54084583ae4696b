"""Speed compared with other libraries: predictions, fits, a DGT step and a bandit's round.

Everything uses one thread. Libraries that are not installed are left out. All models predict
scikit-learn's digits; DGT steps and bandits use the rows of their own benchmarks
(`speed/dgt_step.py`, `speed/bandit.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

from benchmarks.record import Result
from benchmarks.timing import Call, Timing, in_turns, interleaved
from benchmarks.workloads import onnx_session
from hardwood import TreeClassifier

DEPTH = 4
CART_DEPTH = 10
N_TREES = 100  # of boosting
N_SINGLE = 64  # different rows that are predicted one by one
N_BULK = 100_000
N_ROUNDS = 2_000
OURS = "hardwood"
CART = f"CART, depth {CART_DEPTH}"
XGBOOST = f"XGBoost, {N_TREES} rounds"
LIGHTGBM = f"LightGBM, {N_TREES} rounds"
Set_up = Callable[[], Call]


def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X.astype(np.float32), y


def unfitted() -> dict[str, Any]:
    """Return a model of every library that is installed."""
    models = {
        OURS: TreeClassifier(max_depth=DEPTH, random_state=0),
        CART: DecisionTreeClassifier(max_depth=CART_DEPTH, random_state=0),
    }
    if find_spec("xgboost"):
        from xgboost import XGBClassifier

        models[XGBOOST] = XGBClassifier(n_estimators=N_TREES, n_jobs=1, random_state=0)
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        models[LIGHTGBM] = LGBMClassifier(
            n_estimators=N_TREES, n_jobs=1, random_state=0, verbose=-1
        )
    return models


@cache
def fitted() -> dict[str, Any]:
    X, y = digits()
    return {title: model.fit(X, y) for title, model in unfitted().items()}


def predicting(model: Any) -> Callable[[np.ndarray], object]:
    """Return the fastest way to predict a table with a fitted model."""
    if isinstance(model, TreeClassifier):
        return model.tree_.predict
    if type(model).__module__.startswith("xgboost"):
        return model.get_booster().inplace_predict
    if type(model).__module__.startswith("lightgbm"):
        return lambda X: model.booster_.predict(X, num_threads=1)
    return model.predict


def times_of(times: Mapping[str, Timing], unit: float) -> Result:
    return {
        title: {"best": unit * timing.best, "median": unit * timing.median}
        for title, timing in times.items()
    }


def row(name: str, what: str, unit: str, models: Result) -> Result:
    return {"name": name, "kind": "speed", "what": what, "unit": unit, "models": models}


def one_row(is_quick: bool) -> Result:
    """Time the prediction of one row, called from Python."""
    X, _ = digits()
    rows = [np.ascontiguousarray(x) for x in X[:N_SINGLE]]
    tables = [x[None, :] for x in rows]

    def each(function: Callable[[Any], object], inputs: list[Any]) -> Set_up:
        def call() -> None:
            for given in inputs:
                function(given)

        return lambda: call

    calls = {
        title: each(model.tree_.predict_one, rows)
        if title == OURS
        else each(predicting(model), tables)
        for title, model in fitted().items()
    }
    if find_spec("onnxruntime") and find_spec("skl2onnx"):
        session = onnx_session(fitted()[CART], X.shape[1])
        calls["CART in onnxruntime"] = each(
            lambda feed: session.run(None, feed), [{"X": table} for table in tables]
        )
    times = interleaved(calls, rounds=2 if is_quick else 10)
    what = f"predict one row of {X.shape[1]} columns"
    return row("predict_one", what, "µs", times_of(times, 1e6 / N_SINGLE))


def bulk(is_quick: bool) -> Result:
    """Time the prediction of a large table."""
    X, _ = digits()
    n = N_BULK // 10 if is_quick else N_BULK
    table = np.ascontiguousarray(X[np.random.default_rng(0).integers(len(X), size=n)])
    calls = {title: _of(predicting(model), table) for title, model in fitted().items()}
    times = interleaved(calls, rounds=2 if is_quick else 6)
    return row("bulk", f"predict {n:,} rows, per row", "µs", times_of(times, 1e6 / n))


def _of(function: Callable[[Any], object], given: Any) -> Set_up:
    return lambda: lambda: function(given)


def fit(is_quick: bool) -> Result:
    """Time a fit with default hyperparameters."""
    X, y = digits()
    if is_quick:
        X, y = X[:400], y[:400]
    calls = {title: _fitting(model, X, y) for title, model in unfitted().items()}
    times = in_turns(calls, rounds=1 if is_quick else 3)
    return row("fit", f"fit {len(X):,} rows of {X.shape[1]} columns", "s", times_of(times, 1.0))


def _fitting(model: Any, X: np.ndarray, y: np.ndarray) -> Call:
    return lambda: model.fit(X, y)


def dgt_step(d: int, n: int, is_quick: bool) -> Result | None:
    """Time a training step of DGT; None without PyTorch."""
    if not find_spec("torch"):
        return None
    from benchmarks.speed.dgt_step import measure

    found = measure(d, n, 6, 10, 2 if is_quick else 10)
    peer = min(("doubling", "dense"), key=lambda way: found[f"{way}_us"])
    models = {
        title: {"best": found[f"{key}_us"], "median": found[f"{key}_median_us"]}
        for title, key in ((OURS, "ours"), ("PyTorch, the faster of two versions", peer))
    }
    return row(f"dgt_step_{d}", f"DGT training step, {n:,} rows, {d} columns", "µs", models)


def bandit(is_quick: bool) -> Result | None:
    """Time a bandit's round, `decide` and `learn`, called from Python; None without PyTorch."""
    if not find_spec("torch"):
        return None
    from benchmarks.speed.bandit import CASES, PEERS, our_rounds, problem, vw_rounds

    case, n = CASES[0], N_ROUNDS // 10 if is_quick else N_ROUNDS
    given = problem(case, n)
    calls = {OURS: our_rounds(case, given, "replay")}
    if find_spec("vowpalwabbit"):
        calls[f"Vowpal Wabbit, `{PEERS['replay']}`"] = vw_rounds(case, given, PEERS["replay"])
    times = in_turns(calls, rounds=1 if is_quick else 5)
    what = f"one bandit round, {case.k} actions, {case.d} columns"
    return row("bandit_round", what, "µs", times_of(times, 1e6 / n))


MEASURES: dict[str, Callable[[bool], Result | None]] = {
    "predict_one": one_row,
    "bulk": bulk,
    "fit": fit,
    "dgt_step_16": lambda is_quick: dgt_step(16, 128, is_quick),
    "dgt_step_100": lambda is_quick: dgt_step(100, 1024, is_quick),
    "bandit_round": bandit,
}
