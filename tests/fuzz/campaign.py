"""Runs numbered cases in processes of their own, so that a crash or a hang costs one case.

A case is a function of its number, which makes every failure repeatable. It returns the name of its
outcome, and fails by any exception, a crash, too much time or too much memory.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

PER_PROCESS = 500  # cases at most, then a process is replaced: its peak of memory only grows
HANGING = 15  # times the seconds of a case, of the wall clock: the machine may be busy
REPORTED = 30.0  # seconds between two lines of progress

TryCase = Callable[[int], str]


@dataclass
class Campaign:
    """Cases to try, and limits.

    Parameters
    ----------
    n_cases, first
        The cases are numbered from the first on.
    n_jobs
        Processes at a time.
    seconds
        No case begins after this time.
    folder
        Where failures are described, ``CASE.txt`` each.
    case_seconds
        Time of the processor that a case may take.
    case_memory
        Bytes that a case may add to the peak of its process.
    """

    n_cases: int
    first: int = 0
    n_jobs: int = 1
    seconds: float = float("inf")
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="hardwood-fuzz-")))
    case_seconds: float = 20.0
    case_memory: int = 64 * 2**20

    @classmethod
    def of(cls, options: argparse.Namespace, **limits: Any) -> Campaign:
        """Return the campaign that the command line asks for."""
        given = {} if options.failures is None else {"folder": options.failures}
        first, n_cases = options.first_seed, options.cases
        return cls(n_cases, first, options.jobs, options.seconds, **given, **limits)

    def run(self, try_case: TryCase) -> Counter[str]:
        """Try all cases; print progress and failures, and return the outcomes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        begun, reported = time.monotonic(), 0.0
        todo, outcomes = self._shares(), Counter[str]()
        workers: list[_Worker] = []
        while todo or workers:
            spent = time.monotonic() - begun
            if spent > self.seconds:
                todo = []
            while todo and len(workers) < self.n_jobs:
                workers.append(_Worker(self, try_case, todo.pop(0), begun + self.seconds))
            for worker in [worker for worker in workers if worker.is_done(outcomes)]:
                workers.remove(worker)
                todo += [worker.rest] if worker.rest else []
            if spent > reported + REPORTED:
                reported = spent
                print(f"{outcomes.total()} cases in {spent:.0f} s: {dict(outcomes)}", flush=True)
            wait([worker.messages for worker in workers], timeout=1.0)
        spent = time.monotonic() - begun
        print(f"{outcomes.total()} cases in {spent:.0f} s: {dict(outcomes)}", flush=True)
        print(f"{outcomes['failed']} failed; they are in {self.folder}")
        return outcomes

    def _shares(self) -> list[range]:
        last = self.first + self.n_cases
        size = min(PER_PROCESS, -(-self.n_cases // self.n_jobs))
        starts = range(self.first, last, size)
        return [range(start, min(start + size, last)) for start in starts]


class _Worker:
    """A process that tries some cases, one after the other."""

    def __init__(
        self, campaign: Campaign, try_case: TryCase, cases: range, deadline: float
    ) -> None:
        self._campaign, self._cases = campaign, cases
        self._case, self._begun = cases.start, time.monotonic()
        context = multiprocessing.get_context("fork")
        self.messages, theirs = context.Pipe(duplex=False)
        arguments = (campaign, try_case, cases, deadline, theirs)
        self._process = context.Process(target=_try_all, args=arguments)
        self._process.start()
        theirs.close()
        self.rest: range | None = None

    def is_done(self, outcomes: Counter[str]) -> bool:
        """Count what has come; whether the process has ended, then with its ``rest`` of cases."""
        try:
            while self.messages.poll():
                self._case, outcome = self.messages.recv()
                self._begun = time.monotonic()
                outcomes.update([outcome] if outcome else [])
        except EOFError:
            self._process.join()
            if self._process.exitcode != 0:
                self._note(f"the process ended with exit code {self._process.exitcode}", outcomes)
            return True
        if time.monotonic() - self._begun > HANGING * self._campaign.case_seconds:
            self._process.kill()
            self._process.join()
            self._note("the case hangs", outcomes)
            return True
        return False

    def _note(self, words: str, outcomes: Counter[str]) -> None:
        path = self._campaign.folder / f"{self._case}.txt"
        known = path.read_text() if path.exists() else ""
        path.write_text(f"{words}\n{known}")
        print(f"case {self._case}: {words}", flush=True)
        outcomes["failed"] += 1
        self.rest = range(self._case + 1, self._cases.stop)


def _try_all(
    campaign: Campaign, try_case: TryCase, cases: range, deadline: float, messages: Connection
) -> None:
    """Try cases in this process; tell which one begins, and how each ended."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _time_out)
    for case in cases:
        if time.monotonic() > deadline:
            break
        messages.send((case, ""))
        with (campaign.folder / f"{case}.txt").open("w+") as report:
            faulthandler.enable(report)
            is_first = case == cases.start  # it imports what all others need
            outcome = _try(campaign, try_case, case, report, is_first=is_first)
            faulthandler.disable()
        if outcome != "failed":
            os.unlink(report.name)
        messages.send((case, outcome))
    messages.close()


def _try(campaign: Campaign, try_case: TryCase, case: int, report: Any, *, is_first: bool) -> str:
    before = _peak()
    signal.setitimer(signal.ITIMER_PROF, campaign.case_seconds)
    try:
        outcome = try_case(case)
        grown = _peak() - before
        if grown > campaign.case_memory and not is_first:
            raise MemoryError(f"the peak of memory grew by {grown >> 20} MB")
    except Exception:
        report.write(traceback.format_exc())
        print(f"case {case}: {traceback.format_exc().splitlines()[-1][:300]}", flush=True)
        return "failed"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return outcome


def _time_out(*_: object) -> None:
    raise TimeoutError("the case takes too long")


def _peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def parser(description: str, cases: int) -> argparse.ArgumentParser:
    """Return the options that all campaigns have."""
    found = argparse.ArgumentParser(description=description)
    found.add_argument("--cases", type=int, default=cases)
    found.add_argument("--first-seed", type=int, default=0)
    found.add_argument("--jobs", type=int, default=1)
    found.add_argument("--seconds", type=float, default=float("inf"))
    found.add_argument("--failures", type=Path, default=None)
    return found
