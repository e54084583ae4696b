"""Compare bandit learners by their reward when every row comes once.

    python -m benchmarks.quality.bandit_replay --data FOLDER [--names a,b] [--learners tree,vw]
        [--seeds 5] [--budget SECONDS] [--report] [--quick]

Each row is a context. The action that equals its class has reward 1, all others 0, and the learner
observes only the reward of its own action. The rows of all parts are pooled (covtype: the first
50,000 of a fixed shuffle) and come once, in an order drawn with the seed, the same for every
learner. The score is the mean reward over all rows. Recorded as well: the mean over the last
quarter, over the first 4,096 and the first 10,000 rows, and, of our learners, how often the tree by
itself would have been right in the last quarter.

A learner with several settings runs all of them on the order of seed 0, and the best three (only
the best if a run takes more than a minute) on every seed. The best of these counts, chosen by the
reported rewards, which favors it. Ours has one setting for all data sets. A setting that would need
more than 15 minutes per run, estimated from its first rows, is left out and recorded as such. Every
finished run is recorded in ``results/bandit_replay.jsonl`` at once and is not repeated.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality.bandit_learners import LEARNERS, Learner, Setting, Stream, TooLongError
from benchmarks.quality.ledger import Entry, Ledger
from benchmarks.quality.trials import OutOfTimeError, some_of
from benchmarks.record import Column, Table, alone, file_of
from benchmarks.timing import one_thread

RECORDED = file_of("bandit_replay")
NAMES = (
    "segment",
    "satimage",
    "optdigits",
    "pendigits",
    "letter",
    "covtype",
    "connect4",
    "mnist",
)
MOST_ROWS = {"covtype": 50_000}
N_FINALISTS = 3
LONGEST_FINAL = 60.0  # seconds of a run
FIRST = (4096, 10_000)  # rows, after which published results give the mean reward
N_MARKS = 20  # points of the recorded learning curve
_QUICK_ROWS, _QUICK_SETTINGS = 300, 2


class Run(NamedTuple):
    """How the comparison is computed."""

    data: Path
    results: Path
    n_seeds: int
    deadline: float
    is_quick: bool = False

    def ledger(self, name: str, learner: Learner) -> Ledger:
        return ledger_of(self.results, name, learner)

    def settings(self, learner: Learner) -> list[Setting]:
        return learner.settings()[: _QUICK_SETTINGS if self.is_quick else None]


def ledger_of(results: Path, name: str, learner: Learner) -> Ledger:
    key = {"name": name, "learner": learner.name}
    return Ledger(results, key, {"measure": "mean reward"})


@lru_cache(maxsize=1)
def pooled(data: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows of a table and their classes, 0 to K - 1."""
    with np.load(data / f"{name}.npz") as arrays:
        X, y = arrays["X"], arrays["y"]
    if name in MOST_ROWS:
        rows = np.random.default_rng(0).permutation(len(y))[: MOST_ROWS[name]]
        X, y = X[rows], y[rows]
    return X.astype(np.float32), np.unique(y, return_inverse=True)[1].astype(np.int32)


def stream(run: Run, name: str, seed: int) -> Stream:
    X, y = pooled(run.data, name)
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[: _QUICK_ROWS if run.is_quick else None]
    return Stream(X[order], y[order], int(y.max()) + 1)


# --- the procedure -----------------------------------------------------------------------------


def one_pass(run: Run, name: str, learner: Learner, setting: Setting, seed: int) -> Entry:
    """Return the rewards of one run, or that it would take too long."""
    if time.monotonic() > run.deadline:
        raise OutOfTimeError
    rows = stream(run, name, seed)
    start = time.process_time()
    try:
        rewards, tree_right = learner.replay(rows, setting, seed)
    except TooLongError as error:
        return {"score": None, "left_out": str(error)}
    marks = np.linspace(0, len(rewards), N_MARKS + 1).astype(int)[1:]
    return {
        "score": float(rewards.mean()),
        "last_quarter": float(rewards[-(len(rewards) // 4) :].mean()),
        "curve": [round(float(rewards[:mark].mean()), 5) for mark in marks],
        "rows": len(rewards),
        "seconds": time.process_time() - start,
        "tree_right": None if tree_right is None else float(tree_right.mean()),
        **{f"first_{n}": float(rewards[:n].mean()) for n in FIRST if len(rewards) >= n},
    }


def tried(run: Run, name: str, learner: Learner, ledger: Ledger, key: tuple[Setting, int]) -> Entry:
    """Return the result of a setting with a seed; run it if it is not recorded."""
    setting, seed = key
    entry = ledger.choice(0, setting, seed)
    if entry is None:
        found = one_pass(run, name, learner, setting, seed)
        entry = {"split": 0, "repeat": seed, "setting": setting, **found}
        ledger.add_choice(entry)
        print(f"{name} {learner.name} {words(setting)}, seed {seed}: {found['score']}", flush=True)
    return entry


def finalists(ledger: Ledger) -> list[Setting]:
    """Return the best settings on the order of seed 0, the best first."""
    first = [e for e in ledger.choosing if e["repeat"] == 0 and e["score"] is not None]
    best = sorted(first, key=lambda entry: -entry["score"])[:N_FINALISTS]
    quick = [entry for entry in best[1:] if entry["seconds"] <= LONGEST_FINAL]
    return [entry["setting"] for entry in [best[0], *quick]]


def choose(run: Run, name: str, learner: Learner, ledger: Ledger) -> Setting:
    """Return the setting that is best over all seeds, among the best on the first order."""
    settings = run.settings(learner)
    if len(settings) == 1:
        return settings[0]
    for setting in settings:
        tried(run, name, learner, ledger, (setting, 0))
    best = finalists(ledger)
    means = [
        np.mean([tried(run, name, learner, ledger, (s, k))["score"] for k in range(run.n_seeds)])
        for s in best
    ]
    return best[int(np.argmax(means))]


def work_on(run: Run, name: str, learner: Learner) -> None:
    """Make all runs of a learner on a data set that are not recorded yet."""
    ledger = run.ledger(name, learner)
    setting = choose(run, name, learner, ledger)
    ledger.forget_runs(0, other_than=setting)
    for seed in range(run.n_seeds):
        if ledger.run(0, seed) is not None:
            continue
        # A run is deterministic given its seed, so one that was made to choose a setting is reused.
        found = ledger.choice(0, setting, seed) or one_pass(run, name, learner, setting, seed)
        ledger.add_run({**found, "split": 0, "seed": seed, "setting": setting})
        print(f"{name} {learner.name} seed {seed}: {found['score']}", flush=True)


def work(run: Run, names: list[str], learners: list[Learner]) -> None:
    for name in names:
        if not (run.data / f"{name}.npz").exists():
            print(f"{name}: no {name}.npz in {run.data}, left out.", flush=True)
            continue
        for learner in learners:
            with alone(run.ledger(name, learner).name) as is_alone:
                if is_alone:
                    work_on(run, name, learner)
                else:
                    print(f"{name} {learner.name}: another process is working on it.", flush=True)


# --- results ----------------------------------------------------------------------------------


def words(setting: Setting) -> str:
    return ", ".join(
        key if value is True else f"{key} {value}"
        for key, value in setting.items()
        if value is not False
    )


def mean_of(runs: list[Entry], key: str) -> float | None:
    """Return the mean over the runs that have this entry; earlier ones may not."""
    found = [entry[key] for entry in runs if entry.get(key) is not None]
    return float(np.mean(found)) if found else None


def summary(run: Run, name: str, learner: Learner) -> Entry | None:
    """Return the row of a learner on a data set; None if nothing is recorded.

    While settings are still being compared, it is the best so far on the order of seed 0.
    """
    ledger = run.ledger(name, learner)
    first = [e for e in ledger.choosing if e["repeat"] == 0 and e["score"] is not None]
    runs = ledger.runs or sorted(first, key=lambda entry: entry["score"])[-1:]
    if not runs:
        return None
    scores = np.array([entry["score"] for entry in runs])
    return {
        "mean": float(scores.mean()),
        "sd": float(scores.std(ddof=1)) if len(scores) > 1 else None,
        "last_quarter": float(np.mean([entry["last_quarter"] for entry in runs])),
        "seconds": float(np.mean([entry["seconds"] for entry in runs])),
        **{key: mean_of(runs, key) for key in ("tree_right", *(f"first_{n}" for n in FIRST))},
        "passes": len(scores),
        "rows": runs[0]["rows"],
        "is_chosen": bool(ledger.runs),
        "setting": runs[0]["setting"],
        "tried": sum(entry["repeat"] == 0 for entry in ledger.choosing),
        "left_out": [entry["setting"] for entry in ledger.choosing if entry["score"] is None],
    }


def report(run: Run, names: list[str], learners: list[Learner]) -> None:
    columns = [
        Column("name", "data", width=10, words=True),
        Column("learner", "learner", width=10, words=True),
        Column("mean", "mean reward", ".4f"),
        Column("sd", "deviation", ".4f"),
        Column("last_quarter", "last quarter", ".4f"),
        Column("tree_right", "tree right, last quarter", ".4f"),
        *(Column(f"first_{n}", f"first {n:,}", ".4f") for n in FIRST),
        Column("passes", "passes"),
        Column("seconds", "s a pass", ".1f"),
        Column("setting", "setting", width=20, words=True),
    ]
    table = Table("bandit_replay", "Mean reward over one pass", columns, kept=False)
    for name in names:
        for learner in learners:
            row: dict[str, Any] | None = summary(run, name, learner)
            if row is None:
                continue
            settings = words(row["setting"]) if len(learner.settings()) > 1 else ""
            if not row["is_chosen"]:
                settings += f" (best of {row['tried']} tried so far)"
            table.add(**row | {"name": name, "learner": learner.name, "setting": settings})


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of NAME.npz")
    parser.add_argument("--names", type=some_of(NAMES), default=list(NAMES))
    parser.add_argument("--learners", type=some_of(LEARNERS), default=list(LEARNERS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=np.inf, help="seconds; then no new pass")
    parser.add_argument("--report", action="store_true", help="print what is recorded, run nothing")
    parser.add_argument("--quick", action="store_true", help="a smoke run, not recorded")
    options = parser.parse_args(argv)
    one_thread()
    learners = [LEARNERS[name] for name in options.learners]
    with tempfile.TemporaryDirectory() as scratch:
        run = Run(
            options.data,
            Path(scratch) / RECORDED.name if options.quick else RECORDED,
            2 if options.quick else options.seeds,
            time.monotonic() + options.budget,
            options.quick,
        )
        if not options.report:
            try:
                work(run, options.names, learners)
            except OutOfTimeError:
                print("The budget is spent; run again to continue.", flush=True)
        report(run, options.names, learners)


if __name__ == "__main__":
    main(sys.argv[1:])
