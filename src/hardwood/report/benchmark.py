"""How fast a model predicts on this machine, how large it is, and how long it takes to load."""

from __future__ import annotations

import itertools
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model import dumps, loads
from hardwood.model.base import Model, model_of
from hardwood.parameters import integer, n_threads, real
from hardwood.report.resampling import generator
from hardwood.table.sample import sample_rows, single_rows
from hardwood.text.blocks import Block, Text, TextTable
from hardwood.text.frames import columns_of
from hardwood.text.numbers import format_bytes, format_duration, plural
from hardwood.text.report import Report

if TYPE_CHECKING:
    from hardwood.model.cost import Flops
    from hardwood.text.report import Tables

SECONDS = 1.0  # of repeated calls for each kind of call
BATCH_SIZES = (1000, 100_000)
_WARM_UP = 200  # calls at most before timing starts
_N_SINGLE = 512  # different single rows, used in turn


@dataclass(frozen=True)
class Timing:
    """How long one kind of call takes.

    Attributes
    ----------
    api
        The method and its argument.
    n_rows
        Rows per call.
    n_calls
        Number of timed calls.
    rows_per_second
        Rows per second, at the median.
    p50_us, p25_us, p75_us, p99_us
        Quantiles of the time of a call, in microseconds.
    """

    api: str
    n_rows: int
    n_calls: int
    rows_per_second: float
    p50_us: float
    p25_us: float
    p75_us: float
    p99_us: float


@dataclass(frozen=True, repr=False)
class Benchmark(Report):
    """Speed and size of a model, made by `benchmark`.

    Attributes
    ----------
    what
        Kind and size of the model, as text.
    threads
        Threads for batches, as given by ``n_jobs``; single rows use one.
    timings
        Timings of batches, then of single rows.
    load
        Time to read the model from the bytes of its file.
    file_bytes, array_bytes
        Size of the model file, and of the model's arrays in memory.
    flops
        Arithmetic operations of one prediction.
    machine
        The machine and the software.
    """

    what: str
    threads: int
    timings: tuple[Timing, ...]
    load: Timing
    file_bytes: int
    array_bytes: int
    flops: Flops
    machine: dict[str, Any]

    @property
    def title(self) -> str:
        """What was timed."""
        return f"Benchmark: {self.what}"

    def _blocks(self) -> Sequence[Block]:
        threads = "all processors" if self.threads == -1 else plural(self.threads, "thread")
        header = ["call", "rows per call", "rows per second", "median", "25 % to 75 %", "p99"]
        rows = [
            [
                t.api,
                f"{t.n_rows:,}",
                f"{t.rows_per_second:,.0f}",
                format_duration(t.p50_us),
                f"{format_duration(t.p25_us)} to {format_duration(t.p75_us)}",
                format_duration(t.p99_us),
            ]
            for t in self.timings
        ]
        half = f"{format_duration(self.load.p25_us)} to {format_duration(self.load.p75_us)}"
        lines = [
            f"  file: {format_bytes(self.file_bytes)}; "
            f"arrays in memory: {format_bytes(self.array_bytes)}",
            f"  load: {format_duration(self.load.p50_us)} (25 % to 75 %: {half})",
            *(f"  {line}" for line in str(self.flops).splitlines()),
        ]
        machine = ", ".join(f"{name} {value}" for name, value in self.machine.items())
        return [
            TextTable.of(f"Time per call: batches on {threads}, single rows on one", header, rows),
            Text("\n".join(lines), "Size and cost"),
            Text(f"Measured on: {machine}"),
        ]

    def _content(self) -> dict[str, Any]:
        return asdict(self)

    def _tables(self) -> Tables:
        return {"timings": columns_of(Timing, [*self.timings, self.load])}


def benchmark(
    model: Any,
    X: Any = None,
    *,
    batch_sizes: Sequence[int] = BATCH_SIZES,
    n_jobs: int = 1,
    seconds: float = SECONDS,
    random_state: int | np.random.Generator = 0,
) -> Benchmark:
    """Time a model: prediction of batches and of single rows, and loading.

    Parameters
    ----------
    model
        A tree, a forest, or a fitted estimator, whose model is timed.
    X
        A table to time the model on, as one batch. By default, rows are simulated from the
        statistics of the training table, in batches of ``batch_sizes``. The mean cost is counted
        over these rows, or else over the training rows.
    batch_sizes
        Rows per call.
    n_jobs
        Number of threads for batches; -1 uses all processors.
    seconds
        How long each kind of call is repeated.
    random_state
        Seed of the simulated rows, or a generator.
    """
    seconds = real("seconds", seconds, 0, open_low=True)
    if isinstance(batch_sizes, str | int) or len(batch_sizes) == 0:
        raise ValueError(f"batch_sizes must be a list of integers >= 1, got {batch_sizes!r:.80}.")
    batch_sizes = [integer("each of batch_sizes", size, 1) for size in batch_sizes]
    n_threads(n_jobs)  # refuses an invalid number of threads
    n_jobs, rng = n_jobs or 1, generator(random_state)
    model = model_of(model)
    timings = [
        _time_batch(model, table, kind, n_jobs, seconds)
        for table, kind in _batches(model, X, batch_sizes, rng)
    ]
    timings += _time_single_rows(model, X, rng, seconds)
    content = dumps(model)
    return Benchmark(
        what=f"{type(model).__name__}, {model.size_words}",
        timings=tuple(timings),
        threads=n_jobs,
        load=_timing("hardwood.model.loads", 1, _repeat(lambda: loads(content), seconds)),
        file_bytes=len(content),
        array_bytes=model.n_bytes,
        flops=model.flops(X),
        machine=machine(),
    )


def machine() -> dict[str, Any]:
    """Return the processor, its number of cores, the engine's instruction set, and Python."""
    from hardwood._native import instruction_set

    return {
        "processor": platform.machine(),
        "processors": os.cpu_count() or 1,
        "instruction set": instruction_set(),
        "Python": platform.python_version(),
    }


def _batches(
    model: Model, X: Any, batch_sizes: Sequence[int], rng: np.random.Generator
) -> list[tuple[Any, str]]:
    if X is not None:
        return [(X, type(X).__name__)]
    return [sample_rows(model.schema, n, rng) for n in batch_sizes]


def _time_batch(model: Model, table: Any, kind: str, n_jobs: int, seconds: float) -> Timing:
    n_rows = len(model.predict(table))
    micros = _repeat(lambda: model.predict(table, n_jobs=n_jobs), seconds)
    return _timing(f"{type(model).__name__}.predict({kind})", n_rows, micros)


def _time_single_rows(
    model: Model, X: Any, rng: np.random.Generator, seconds: float
) -> list[Timing]:
    """Time `predict_one`, one call at a time: rows as 1-D arrays if all are numbers, as dicts."""
    table = sample_rows(model.schema, _N_SINGLE, rng)[0] if X is None else X
    arrays, dicts = single_rows(model.schema, table, _N_SINGLE)
    kinds: list[tuple[str, list[Any]]] = [("1-D float64 array", arrays), ("dict", dicts)]
    return [_time_calls(model, rows, what, seconds) for what, rows in kinds if rows]


def _time_calls(model: Model, rows: list[Any], what: str, seconds: float) -> Timing:
    turn = itertools.cycle(rows)
    micros = _repeat(lambda: model.predict_one(next(turn)), seconds)
    return _timing(f"{type(model).__name__}.predict_one({what})", 1, micros)


def _repeat(call: Callable[[], Any], seconds: float) -> np.ndarray:
    """Return the microseconds of each call, for as long as `seconds`, after a warm-up."""
    clock = time.perf_counter_ns
    warm_until = clock() + int(0.1e9 * seconds)
    for _ in range(_WARM_UP):
        call()
        if clock() > warm_until:
            break
    times: list[int] = []
    end = clock() + int(1e9 * seconds)
    start = clock()
    while start < end or len(times) < 3:
        call()
        stop = clock()
        times.append(stop - start)
        start = clock()
    return np.asarray(times) / 1e3


def _timing(api: str, n_rows: int, micros: np.ndarray) -> Timing:
    p25, p50, p75, p99 = np.percentile(micros, [25, 50, 75, 99]).tolist()
    return Timing(api, n_rows, micros.size, n_rows / p50 * 1e6, p50, p25, p75, p99)
