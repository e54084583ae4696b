"""Speed of learning from bandit feedback, compared with Vowpal Wabbit (VW) and PyTorch.

    python -m benchmarks.speed.bandit [--tables bulk,rounds,decide,memory] [--quick]

``bulk``: rounds of the paper's method in one native call (decide, draw, learn, one step per four
rounds). It is compared with VW's file mode, on text or on its cache, whichever is faster (VW only
learns from logged actions that it reads), and with a PyTorch loop that does the same row by row.

``rounds``: `decide` and `learn` called from Python, in turns. The paper's method is compared with
VW's linear policy; the default, including its replay buffer, with ``--squarecb -q ff``. VW's text
is prepared beforehand except for the label.

``decide``: the time of one `decide`, alone, and while another thread keeps learning. After each
call the deciding thread is busy for a moment with work that needs no Python (a checksum), as
services are, so that the other thread can run. Wall time of the best of many blocks, since the
machine has other work.

``memory``: of a process during ten million rounds.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.quality.bandit_learners import drawn, vw_text
from benchmarks.quality.trials import some_of
from benchmarks.record import Column, Table, verdict
from benchmarks.speed.dgt_step import HardMax, Sign, dense_path_sums
from benchmarks.timing import Call, in_turns, one_thread
from hardwood.bandit import DGTBandit

EXPLORATION, LEARNING_RATE, ACCUMULATED = 0.3, 1e-3, 4
BULK_FLOORS = {"vw": 2.0, "torch": 100.0}
_OTHER_WORK = bytes(1 << 16)  # its checksum takes about ten microseconds
LONGEST_DECISION = 10.0  # microseconds, 99th percentile
MOST_GROWTH = 0.05  # of memory, between a tenth of the rounds and all


class Case(NamedTuple):
    """Size of a problem: actions, columns, depth of the tree."""

    k: int
    d: int
    h: int


CASES = (Case(7, 54, 6), Case(26, 16, 8))


class Problem(NamedTuple):
    """Rows, and for each the action with reward 1; text for VW."""

    X: np.ndarray
    y: np.ndarray
    text: list[str]


def problem(case: Case, n: int) -> Problem:
    """Draw rows around a center per action, scaled to standard deviation 1."""
    rng = np.random.default_rng(0)
    y = rng.integers(case.k, size=n).astype(np.int32)
    X = 1.2 * rng.standard_normal((case.k, case.d))[y] + rng.standard_normal((n, case.d))
    X = (X / X.std(axis=0)).astype(np.float32)
    return Problem(X, y, [vw_text(row) for row in X])


# --- many rounds in one call -------------------------------------------------------------------


def torch_rounds(case: Case, given: Problem, n: int) -> Call:
    """Return the paper's rounds in eager PyTorch, one row at a time."""
    X = torch.from_numpy(np.hstack([given.X[:n], np.ones((n, 1), np.float32)]))
    generator = torch.Generator().manual_seed(0)
    W = (torch.randn(2**case.h - 1, case.d + 1, generator=generator) / case.d**0.5).requires_grad_()
    theta = (0.1 * torch.randn(2**case.h, case.k, generator=generator)).requires_grad_()
    optimizer = torch.optim.RMSprop([W, theta], lr=LEARNING_RATE)
    path_sums, rng = dense_path_sums(case.h), np.random.default_rng(0)

    def call() -> None:
        for i in range(n):
            values = (HardMax.apply(path_sums(Sign.apply(X[i : i + 1] @ W.t()))) @ theta)[0]
            best = int(values.argmax())
            action = int(rng.integers(case.k)) if rng.random() < EXPLORATION else best
            chance = EXPLORATION / case.k + (1 - EXPLORATION) * (action == best)
            reward = float(action == given.y[i])
            ((torch.sigmoid(values[action]) - reward) ** 2 / chance).backward()
            if i % ACCUMULATED == ACCUMULATED - 1:
                optimizer.step()
                optimizer.zero_grad()

    return call


def write_log(given: Problem, case: Case, path: Path) -> None:
    """Write rounds with random actions in the format of VW."""
    actions = np.random.default_rng(1).integers(case.k, size=len(given.y))
    with path.open("w", encoding="utf-8") as file:
        for action, label, text in zip(actions, given.y, given.text, strict=True):
            file.write(f"{action + 1}:{-int(action == label)}:{1 / case.k:.4f} {text}\n")


def vw_file(case: Case, path: Path, more: str) -> Call:
    from vowpalwabbit import Workspace

    options = f"--cb_explore {case.k} --epsilon {EXPLORATION} --quiet -d {path} {more}"
    return lambda: Workspace(options).finish()


def our_bulk(case: Case, given: Problem) -> Call:
    def call() -> None:
        bandit = DGTBandit(case.k, method="paper", max_depth=case.h, random_state=0)
        bandit.replay(given.X, given.y)

    return call


def bulk(case: Case, n: int, n_torch: int, turns: int) -> dict[str, Any]:
    given = problem(case, n)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.txt"
        write_log(given, case, path)
        cached = f"--cache_file {folder}/log.cache"
        vw_file(case, path, f"{cached} -k")()  # creates the cache
        calls = {
            "ours": our_bulk(case, given),
            "vw_text": vw_file(case, path, ""),
            "vw_cache": vw_file(case, path, cached),
            "torch": torch_rounds(case, given, n_torch),
        }
        times = in_turns(calls, rounds=turns)
    rates = {
        name: (n_torch if name == "torch" else n) / timing.best for name, timing in times.items()
    }
    vw = max(rates["vw_text"], rates["vw_cache"])
    ratios = {"vw": rates["ours"] / vw, "torch": rates["ours"] / rates["torch"]}
    passed = all(ratios[name] >= floor for name, floor in BULK_FLOORS.items())
    return {
        **case._asdict(),
        **rates,
        "over_vw": ratios["vw"],
        "over_torch": ratios["torch"],
        **verdict(passed),
    }


def bulk_table(is_quick: bool) -> bool:
    table = Table(
        "bandit_bulk",
        "Rounds per second of the paper's method in one call, one thread; floors: twice VW's "
        "file mode, 100 times PyTorch row by row.",
        [
            Column("k", "actions"),
            Column("d", "columns"),
            Column("h", "depth"),
            Column("ours", "hardwood", ",.0f"),
            Column("vw_text", "VW, text", ",.0f"),
            Column("vw_cache", "VW, cache", ",.0f"),
            Column("torch", "PyTorch", ",.0f"),
            Column("over_vw", "over VW", ".1f"),
            Column("over_torch", "over PyTorch", ".0f"),
            Column("verdict", ""),
        ],
        kept=not is_quick,
    )
    n, n_torch, turns = (4000, 100, 1) if is_quick else (20_000, 400, 5)
    for case in CASES:
        table.add(**bulk(case, n, n_torch, turns))
    return table.finish("VW's file mode only learns; it makes no decisions.")


# --- round by round from Python ----------------------------------------------------------------


def our_rounds(case: Case, given: Problem, method: str) -> Call:
    def call() -> None:
        bandit = DGTBandit(case.k, method=method, max_depth=case.h, random_state=0)
        for x, label in zip(given.X, given.y, strict=True):
            decision = bandit.decide(x)
            bandit.learn(decision.token, reward=float(decision.action == label))

    return call


def vw_rounds(case: Case, given: Problem, options: str) -> Call:
    from vowpalwabbit import Workspace

    def call() -> None:
        learner = Workspace(f"--cb_explore {case.k} {options} --quiet")
        rng = np.random.default_rng(0)
        for text, label in zip(given.text, given.y, strict=True):
            probabilities = learner.predict(text)
            action = drawn(probabilities, rng)
            learner.learn(
                f"{action + 1}:{-int(action == label)}:{probabilities[action]:.4f} {text}"
            )
        learner.finish()

    return call


PEERS = {"paper": f"--epsilon {EXPLORATION}", "replay": "--squarecb -q ff"}


def rounds_table(is_quick: bool) -> bool:
    table = Table(
        "bandit_rounds",
        "One round called from Python, decide and learn, one thread: microseconds. Floor: no "
        "slower than VW's predict and learn.",
        [
            Column("k", "actions"),
            Column("d", "columns"),
            Column("h", "depth"),
            Column("method", "method", width=9, words=True),
            Column("ours", "hardwood, us", ".1f"),
            Column("vw", "VW, us", ".1f"),
            Column("options", "VW's options", width=18, words=True),
            Column("ratio", "VW / ours", ".2f"),
            Column("verdict", ""),
        ],
        kept=not is_quick,
    )
    n, turns = (500, 1) if is_quick else (5000, 5)
    for case in CASES:
        given = problem(case, n)
        for method, options in PEERS.items():
            calls = {
                "ours": our_rounds(case, given, method),
                "vw": vw_rounds(case, given, options),
            }
            times = in_turns(calls, rounds=turns)
            row = {name: 1e6 * timing.best / n for name, timing in times.items()}
            row |= {f"{name}_median": 1e6 * timing.median / n for name, timing in times.items()}
            ratio = row["vw"] / row["ours"]
            table.add(
                **case._asdict(),
                method=method,
                **row,
                options=options,
                ratio=ratio,
                **verdict(ratio >= 1),
            )
    return table.finish("VW is given prepared text, ours rows of an array.")


# --- one decision ------------------------------------------------------------------------------


def timed_decisions(bandit: DGTBandit, X: np.ndarray, n: int, then: Callable[[int], object]) -> Any:
    """Return the microseconds of n decisions; ``then`` is called with each token, untimed."""
    times = np.empty(n)
    for i in range(n):
        x = X[i % len(X)]
        start = time.perf_counter_ns()
        decision = bandit.decide(x)
        times[i] = time.perf_counter_ns() - start
        then(decision.token)
    return times / 1e3


class LearningThread:
    """A thread that keeps learning from logged rounds while another one decides."""

    def __init__(self, bandit: DGTBandit, given: Problem, k: int) -> None:
        self._bandit, self._given, self._k = bandit, given, k
        self._ends = False
        self.n_learned = 0
        self._thread = threading.Thread(target=self._learn)

    def _learn(self) -> None:
        rows = range(0, len(self._given.y) - 8, 8)
        while not self._ends:
            for i in rows:
                X, y = self._given.X[i : i + 8], self._given.y[i : i + 8]
                action = np.arange(i, i + 8) % self._k
                reward = (action == y).astype(float)
                self._bandit.learn_logged(X, action, reward, np.full(8, 1 / self._k))
                self.n_learned += 8
                if self._ends:
                    return

    def __enter__(self) -> LearningThread:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends = True
        self._thread.join()


def best_block(blocks: list[np.ndarray]) -> dict[str, float]:
    """Return p50 and p99 of the block with the lowest p99, and the median of the blocks' p99."""
    high = [float(np.percentile(block, 99)) for block in blocks]
    best = blocks[int(np.argmin(high))]
    return {
        "p50": float(np.median(best)),
        "p99": min(high),
        "p99_median": float(np.median(high)),
        "blocks": len(blocks),
    }


def decide_rows(case: Case, method: str, n: int, n_blocks: int) -> list[dict[str, Any]]:
    given = problem(case, 2000)
    bandit = DGTBandit(case.k, method=method, max_depth=case.h, random_state=0)
    bandit.replay(given.X, given.y)
    facts = {**case._asdict(), "method": method}

    def wait(token: int) -> None:
        """Leave a decision without a reward, and let the other thread run."""
        zlib.crc32(_OTHER_WORK)

    rows = []
    gc.disable()
    try:
        blocks = [timed_decisions(bandit, given.X, n, wait) for _ in range(n_blocks)]
        rows.append({**facts, "beside": "nothing", **best_block(blocks)})
        with LearningThread(bandit, given, case.k) as thread:
            start, learned = time.perf_counter(), thread.n_learned
            blocks = [timed_decisions(bandit, given.X, n, wait) for _ in range(n_blocks)]
            pace = (thread.n_learned - learned) / (time.perf_counter() - start)
        rows.append({**facts, "beside": "learning", "learned": pace, **best_block(blocks)})
    finally:
        gc.enable()
    return [row | verdict(row["p99"] <= LONGEST_DECISION) for row in rows]


def decide_table(is_quick: bool) -> bool:
    table = Table(
        "bandit_decide",
        "One decision called from Python: microseconds of wall time, best block. Floor: p99 "
        f"within {LONGEST_DECISION:.0f}.",
        [
            Column("k", "actions"),
            Column("d", "columns"),
            Column("h", "depth"),
            Column("method", "method", width=9, words=True),
            Column("beside", "meanwhile", width=8, words=True),
            Column("learned", "rounds learned/s", ",.0f"),
            Column("p50", "p50", ".1f"),
            Column("p99", "p99", ".1f"),
            Column("p99_median", "p99, median block", ".1f"),
            Column("verdict", ""),
        ],
        kept=not is_quick,
    )
    n, n_blocks = (500, 4) if is_quick else (2000, 40)
    for case in CASES:
        for method in PEERS:
            for row in decide_rows(case, method, n, n_blocks):
                table.add(**row)
    return table.finish(f"{os.cpu_count()} cores, shared with others.")


# --- memory ------------------------------------------------------------------------------------


def memory_rows(method: str, n_rounds: int) -> dict[str, Any]:
    """Run rounds of a small problem; the replay buffer is full after a tenth of them."""
    import psutil

    case = Case(3, 4, 3)
    given = problem(case, 10_000)
    options = {"buffer_size": 50_000} if method == "replay" else {}
    bandit = DGTBandit(
        case.k, method=method, max_depth=case.h, max_open=10_000, random_state=0, **options
    )
    process, sizes, start = psutil.Process(), [], time.process_time()
    n_marks = 20
    for _ in range(n_marks):
        for _ in range(max(1, n_rounds // (n_marks * len(given.y)))):
            bandit.replay(given.X, given.y)
        for i in range(n_rounds // (n_marks * 100)):  # and decisions that never get a reward
            bandit.decide(given.X[i % len(given.y)])
        gc.collect()
        sizes.append(process.memory_info().rss / 2**20)
    growth = sizes[-1] / sizes[n_marks // 10] - 1
    return {
        "method": method,
        "rounds": bandit.n_rounds_,
        "early": sizes[n_marks // 10],
        "late": sizes[-1],
        "growth": 100 * growth,
        "sizes": sizes,
        "us": 1e6 * (time.process_time() - start) / bandit.n_rounds_,
        **verdict(growth <= MOST_GROWTH),
    }


def memory_table(is_quick: bool) -> bool:
    table = Table(
        "bandit_memory",
        f"Resident memory over many rounds, MB; floor: at most {100 * MOST_GROWTH:.0f} % more at "
        "the end than after a tenth. One decision without a reward per 100 rounds.",
        [
            Column("method", "method", width=9, words=True),
            Column("rounds", "rounds", ",d", width=12),
            Column("early", "after 15 %", ".1f"),
            Column("late", "at the end", ".1f"),
            Column("growth", "growth, %", ".1f"),
            Column("us", "us per round", ".2f"),
            Column("verdict", ""),
        ],
        kept=not is_quick,
    )
    for method in PEERS:
        table.add(**memory_rows(method, 400_000 if is_quick else 10_000_000))
    return table.finish()


TABLES = {
    "bulk": bulk_table,
    "rounds": rounds_table,
    "decide": decide_table,
    "memory": memory_table,
}


def main() -> int:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=some_of(TABLES), default=list(TABLES))
    parser.add_argument("--quick", action="store_true", help="few rounds, not recorded")
    options = parser.parse_args()
    kept = [TABLES[name](options.quick) for name in options.tables]
    return int(not all(kept))


if __name__ == "__main__":
    sys.exit(main())
