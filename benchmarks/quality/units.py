"""Independent units of work in several processes, each unit with a time limit.

A process does one unit after the other, so that libraries are imported and tables read once. A unit
that raises, takes too long or ends its process is a failure with its reason. It does not end the
run.
"""

from __future__ import annotations

import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.record import Result

Work = Callable[[Any], Result]

_SPAWN = get_context("spawn")
_READY = "ready"


def finished(
    units: Iterable[Any],
    work: Work,
    *,
    n_processes: int,
    unit_seconds: float,
    deadline: float,
) -> Iterator[tuple[Any, Result]]:
    """Yield each unit with its result as it comes; a failure is ``{"failure": reason}``.

    Parameters
    ----------
    units
        What to do, in order; they must be picklable.
    work
        Does one unit; a function of a module.
    n_processes
        How many units are done at once.
    unit_seconds
        Time limit of a unit.
    deadline
        By `time.monotonic`. Units that are not finished by then have no result.
    """
    todo: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for unit in units:
        todo.put(unit)
    done: queue.SimpleQueue[tuple[Any, Result] | None] = queue.SimpleQueue()

    def supervise() -> None:
        try:
            for found in _done_by_one_process(todo, work, unit_seconds, deadline):
                done.put(found)
        finally:
            done.put(None)

    n_supervisors = min(n_processes, todo.qsize())
    for _ in range(n_supervisors):
        threading.Thread(target=supervise, daemon=True).start()
    while n_supervisors:
        found = done.get()
        if found is None:
            n_supervisors -= 1
        else:
            yield found


def _done_by_one_process(
    todo: queue.SimpleQueue[Any], work: Work, unit_seconds: float, deadline: float
) -> Iterator[tuple[Any, Result]]:
    worker = _Worker(work)
    try:
        while True:
            try:
                unit = todo.get_nowait()
            except queue.Empty:
                return
            worker.wait_until_ready()
            seconds_left = deadline - time.monotonic()
            result = worker.result_of(unit, min(unit_seconds, seconds_left))
            if result is None and seconds_left <= unit_seconds:
                return
            yield unit, result or {"failure": f"no result within {unit_seconds:g} s"}
    finally:
        worker.stop()


class _Worker:
    """A process that does units; a new one takes its place when a unit takes too long."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._start()

    def _start(self) -> None:
        self._connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(theirs, self._work), daemon=True)
        self._process.start()
        theirs.close()
        self._is_ready = False

    def wait_until_ready(self) -> None:
        """Wait for the imports of a new process, which no unit should pay for."""
        if not self._is_ready:
            assert self._connection.recv() == _READY
            self._is_ready = True

    def result_of(self, unit: Any, seconds: float) -> Result | None:
        """Return the result of a unit; None if it takes longer."""
        self._connection.send(unit)
        if not self._connection.poll(max(seconds, 0.0)):
            self.stop()
            self._start()
            return None
        try:
            result: Result = self._connection.recv()
        except EOFError:
            self.stop()
            code = self._process.exitcode
            self._start()
            return {"failure": f"its process ended with code {code}"}
        return result

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()


def _serve(connection: Connection, work: Work) -> None:
    connection.send(_READY)
    while True:
        try:
            unit = connection.recv()
        except EOFError:
            return
        try:
            result = work(unit)
        except Exception as error:
            traceback.print_exc()
            result = {"failure": f"{type(error).__name__}: {error}"}
        connection.send(result)
