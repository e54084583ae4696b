"""Timing of alternatives: interleaved, warmed up, one thread, best of many."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# glibc returns freed memory to the kernel above a size that it adapts at run time. Every large
# PyTorch step then needs new pages (3,000 page faults per step for three (1024, 1023) arrays, none
# with these settings). 32 MiB is the largest value that it accepts for the first: larger ones are
# silently ignored.
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
_THREADED = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB")

Call = Callable[[], object]
Clock = Callable[[], float]


def threads(n: int) -> dict[str, str]:
    """Return the environment in which libraries start with a number of threads."""
    return {f"{library}_NUM_THREADS": str(n) for library in _THREADED}


ENVIRONMENT = _MALLOC | threads(1)


def one_thread() -> None:
    """Continue with one thread per library, and without returning memory: call it first in `main`.

    Both settings are read from the environment at the start of a process, so this process replaces
    itself with one that has them. Then it checks that every loaded library has one thread.
    """
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | ENVIRONMENT)
    from threadpoolctl import threadpool_info

    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    busy = [pool["filepath"] for pool in threadpool_info() if pool["num_threads"] != 1]
    if busy:
        raise RuntimeError(f"expected one thread in every library, found more in {busy}")


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: the best sample is compared, the median shows the noise."""

    best: float
    median: float
    n_samples: int

    def __truediv__(self, other: Timing) -> float:
        """Ratio of the best times."""
        return self.best / other.best


def interleaved(
    make: Mapping[str, Callable[[], Call]],
    *,
    rounds: int = 8,
    seconds: float = 0.05,
    shortest_sample: float = 1e-3,
    clock: Clock = time.process_time,
) -> dict[str, Timing]:
    """Time alternatives in turns, so that a busy moment of the machine affects all of them.

    Parameters
    ----------
    make
        By name, a function that sets up an alternative, untimed and again in every round, and
        returns the call to time.
    rounds
        Turns of each alternative.
    seconds
        Length of a turn; at least two samples are taken.
    shortest_sample
        A call shorter than this is repeated within a sample, and the sample is its mean.
    clock
        By default the processor time of this process. With one thread and no waiting, it is the
        time on an idle machine. On a busy machine it excludes other processes, which interrupt a
        call of 100 ms more often than one of 10 us and would thus favor the shorter one. Times of
        several threads add up.

    Returns
    -------
    timings
        By name, over all samples of all rounds.
    """
    samples: dict[str, list[float]] = {name: [] for name in make}
    for _ in range(rounds):
        for name, set_up in make.items():
            samples[name] += _turn(set_up(), seconds, shortest_sample, clock)
    return {
        name: Timing(min(times), statistics.median(times), len(times))
        for name, times in samples.items()
    }


def in_turns(
    calls: Mapping[str, Call], *, rounds: int, clock: Clock = time.process_time
) -> dict[str, Timing]:
    """Time calls of seconds in turns, once each in every round.

    Such long calls need neither warming up nor repeats within a sample. Taking turns evens out
    differences between moments of the machine. ``clock`` as for `interleaved`.
    """
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(_sample(call, 1, clock))
    return {
        name: Timing(min(times), statistics.median(times), len(times))
        for name, times in samples.items()
    }


def _turn(call: Call, seconds: float, shortest_sample: float, clock: Clock) -> list[float]:
    """Return seconds per call, sample by sample."""
    call()
    repeats = _repeats(call, shortest_sample, clock)
    times: list[float] = []
    end = clock() + seconds
    while len(times) < 2 or clock() < end:
        times.append(_sample(call, repeats, clock))
    return times


def _repeats(call: Call, shortest_sample: float, clock: Clock) -> int:
    """Return the number of calls for a sample that is long enough; also warms the call up."""
    repeats = 1
    while (once := _sample(call, repeats, clock)) * repeats < shortest_sample:
        repeats = max(2 * repeats, min(10 * repeats, int(shortest_sample / max(once, 1e-9))))
    return repeats


def _sample(call: Call, repeats: int, clock: Clock) -> float:
    turns = range(repeats)
    start = clock()
    for _ in turns:
        call()
    return (clock() - start) / repeats
