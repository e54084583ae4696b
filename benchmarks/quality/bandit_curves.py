"""Figure 2 of the DGT paper: accuracy on held-out rows by the number of queries.

The rows of the training and validation parts come in an order drawn with the seed. If there are
more queries than rows, they come again in new orders. At each mark, the best actions are predicted
for the test rows (at most 10,000, always the same). ``paper`` has the paper's settings and depth 6,
and the quantizer and the number of rounds per step that are best on validation rows (the mean over
the second half of the marks, one seed); ``tree`` has our defaults. VW has the best setting of
`bandit_replay.py` for the data set among those that need at most a minute per run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality import bandit_replay
from benchmarks.quality.bandit_learners import LEARNERS, Setting, VWPolicy
from benchmarks.quality.dgt_paper import TASKS
from benchmarks.quality.ledger import Entry, Ledger
from benchmarks.quality.parts import parts
from benchmarks.quality.trials import OutOfTimeError
from benchmarks.record import alone, file_of

RECORDED = file_of("bandit_figures")
QUERIES = {
    "covtype": 50_000,
    "mnist": 76_000,
    "connect4": 50_000,
    "letter": 50_000,
    "pendigits": 30_000,
    "satimage": 20_000,
}
FLOORS = {"covtype": (10_000, 62.5), "mnist": (76_000, 80.0)}
CURVES = {"tree": "DGTBandit", "paper": 'DGTBandit(method="paper")', "vw": "Vowpal Wabbit"}
PAPER_HEIGHT = 6
PAPER_GRID = [
    {"quantizer": quantizer, "gradient_accumulation": rounds}
    for quantizer in ("sign", "scaled")
    for rounds in (1, 4)
]
_CHOOSING_SEED = 1000
MOST_TEST_ROWS = 10_000
LONGEST_PASS = 60.0  # seconds of one run of VW


class Run(NamedTuple):
    """How a figure is computed; ``divisor`` makes a quick run with fewer queries."""

    data: Path
    results: Path
    n_seeds: int
    deadline: float
    divisor: int = 1


class Rows(NamedTuple):
    """Training rows and held-out rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def marks(run: Run, name: str) -> list[int]:
    """Return the numbers of queries at which accuracy is measured, with that of the floor."""
    last = QUERIES[name] // run.divisor
    spread = np.geomspace(last / 100, last, 13).astype(int).tolist()
    floor = [FLOORS[name][0]] if name in FLOORS and run.divisor == 1 else []
    return sorted({*spread, *floor})


def rows_of(run: Run, name: str, *, is_choosing: bool = False) -> Rows:
    """Return the rows of a final run, or training and validation rows to choose a setting by."""
    table = parts(run.data, TASKS[name], 0)
    held_out, learned = (table.valid, table.train) if is_choosing else (table.test, table.learnable)
    test = np.random.default_rng(0).permutation(held_out)[:MOST_TEST_ROWS]
    y = np.unique(table.y, return_inverse=True)[1].astype(np.int32)
    return Rows(table.X[learned], y[learned], table.X[test], y[test])


def order(n: int, queries: int, seed: int) -> np.ndarray:
    """Return row numbers in the order in which they come, epoch after epoch."""
    rng = np.random.default_rng(seed)
    passes = -(-queries // n)
    return np.concatenate([rng.permutation(n) for _ in range(passes)])[:queries]


def vw_setting(name: str) -> Setting | None:
    """Return the best setting of VW's grid that is fast enough; None before it is recorded."""
    ledger = bandit_replay.ledger_of(bandit_replay.RECORDED, name, LEARNERS["vw"])
    quick = [
        entry
        for entry in ledger.choosing
        if entry["repeat"] == 0 and entry["score"] is not None and entry["seconds"] <= LONGEST_PASS
    ]
    return max(quick, key=lambda entry: entry["score"])["setting"] if quick else None


def setting_of(run: Run, name: str, curve: str) -> Setting | None:
    if curve == "vw":
        return vw_setting(name)
    setting = LEARNERS[curve].settings()[0]
    if curve == "tree":
        return setting
    settings = [setting | {"max_depth": PAPER_HEIGHT} | options for options in PAPER_GRID]
    return max(settings, key=lambda option: _score_on_validation(run, name, curve, option))


def _score_on_validation(run: Run, name: str, curve: str, setting: Setting) -> float:
    ledger = ledger_of(run, name, curve)
    entry = ledger.choice(0, setting, 0)
    if entry is None:
        found = curve_of(run, name, curve, setting, _CHOOSING_SEED, is_choosing=True)
        late = found["values"][len(found["values"]) // 2 :]
        entry = found | {"repeat": 0, "score": float(np.mean(late))}
        ledger.add_choice(entry)
        print(f"{name} {curve} {setting}: {entry['score']:.2f} % of validation rows", flush=True)
    return entry["score"]


@contextmanager
def policy_of(setting: Setting, curve: str, rows: Rows, seed: int) -> Iterator[Any]:
    """Yield a learner that has `replay` and `predict`."""
    n_actions = int(rows.y.max()) + 1
    if curve == "vw":
        with VWPolicy(setting, rows.X.shape[1], n_actions, seed) as policy:
            yield policy
    else:
        from hardwood.bandit import DGTBandit

        yield DGTBandit(n_actions, **setting, random_state=seed)


def scaled(rows: Rows) -> Rows:
    mean, deviation = rows.X.mean(axis=0), rows.X.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1)
    return rows._replace(X=(rows.X - mean) / deviation, X_test=(rows.X_test - mean) / deviation)


def curve_of(
    run: Run, name: str, curve: str, setting: Setting, seed: int, *, is_choosing: bool = False
) -> Entry:
    """Return accuracies at the marks, in percent."""
    if time.monotonic() > run.deadline:
        raise OutOfTimeError
    rows = rows_of(run, name, is_choosing=is_choosing)
    if setting.get("standardized"):
        rows = scaled(rows)
    queries, start = marks(run, name), time.process_time()
    coming = order(len(rows.y), queries[-1], seed)
    accuracy, seen = [], 0
    with policy_of(setting, curve, rows, seed) as policy:
        for mark in queries:
            policy.replay(rows.X[coming[seen:mark]], rows.y[coming[seen:mark]])
            accuracy.append(100 * float(np.mean(policy.predict(rows.X_test) == rows.y_test)))
            seen = mark
    return {
        "split": 0,
        "seed": seed,
        "setting": setting,
        "queries": queries,
        "values": accuracy,
        "seconds": time.process_time() - start,
    }


def ledger_of(run: Run, name: str, curve: str) -> Ledger:
    measure = {"measure": "accuracy on held-out rows, percent"}
    return Ledger(run.results, {"name": name, "curve": curve}, measure)


def work(run: Run, names: list[str], curves: list[str]) -> None:
    """Compute the curves that are not recorded yet."""
    for name in names:
        for curve in curves:
            with alone(ledger_of(run, name, curve).name) as is_alone:
                if is_alone:
                    _seeds(run, name, curve)


def _seeds(run: Run, name: str, curve: str) -> None:
    setting = setting_of(run, name, curve)
    if setting is None:
        print(f"{name} {curve}: no grid of bandit_replay yet, left out.", flush=True)
        return
    ledger = ledger_of(run, name, curve)
    ledger.forget_runs(0, other_than=setting)
    for seed in range(run.n_seeds):
        if ledger.run(0, seed) is None:
            entry = curve_of(run, name, curve, setting, seed)
            ledger.add_run(entry)
            print(f"{name} {curve} seed {seed}: {entry['values'][-1]:.2f} %", flush=True)
