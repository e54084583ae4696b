"""`hardwood benchmark`: how fast a model answers on this machine."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hardwood.cli.models import is_forest, open_model, size_words
from hardwood.cli.options import AsJson, Jobs, ModelFile, Seed
from hardwood.cli.report import counted, figure, print_json, print_table, print_text

if TYPE_CHECKING:
    from hardwood.cli.models import Model
    from hardwood.table import Schema

_SECONDS = 1.0  # of repeated batches, and of single rows
_WARM_UP = 200  # single rows before the clock starts
_BATCH_SIZES = (1000, 100_000)
_N_SINGLE = 512  # different single rows, asked in turn


@dataclass(frozen=True)
class Timing:
    """Speed of one way to ask: what was called, on what, and how long it took."""

    api: str
    n_rows: int
    rows_per_second: float
    p50_us: float
    p99_us: float


def benchmark(
    model: ModelFile,
    rows: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Rows per batch.", show_default="1,000 and 100,000"),
    ] = None,
    jobs: Jobs = 1,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Time a model on made-up rows.

    Batches: rows per second of `predict`. A single row: time of one call of `predict_one`, with the
    row as a dict by names and, where all features are numbers, as a 1-D array, which is the fast
    way.
    """
    opened = open_model(model)
    rng = np.random.default_rng(seed)
    timings = [time_batches(opened, n, jobs, rng) for n in ([rows] if rows else _BATCH_SIZES)]
    timings += time_single_rows(opened, rng)
    if as_json:
        kind = "forest" if is_forest(opened) else "tree"
        print_json({kind: _sizes(opened), "threads": jobs, "timings": [asdict(t) for t in timings]})
        return
    trees = f"{counted(opened.n_trees, 'tree')}, " if is_forest(opened) else ""
    print_text(f"{model}: {trees}{size_words(opened)}")
    header = ["timed", "rows per call", "rows per second", "p50 of a call", "p99 of a call"]
    cells = [
        [
            t.api,
            f"{t.n_rows:,}",
            f"{t.rows_per_second:,.0f}",
            _time_words(t.p50_us),
            _time_words(t.p99_us),
        ]
        for t in timings
    ]
    threads = "all processors" if jobs == -1 else counted(jobs, "thread")
    print_table(f"Batches on {threads}, single rows on one", header, cells)


def _sizes(model: Model) -> dict[str, int]:
    n_trees = {"n_trees": model.n_trees} if is_forest(model) else {}
    sizes = {"depth": model.depth, "n_leaves": model.n_leaves, "n_features": model.n_features}
    return n_trees | sizes


def time_batches(model: Model, n_rows: int, n_jobs: int, rng: np.random.Generator) -> Timing:
    """Time `predict` on tables of ``n_rows`` made-up rows."""
    data, kind = made_up_rows(model.schema, n_rows, rng)
    micros = _repeat(lambda: model.predict(data, n_jobs=n_jobs))
    return _timing(f"{type(model).__name__}.predict({kind})", n_rows, micros)


def time_single_rows(model: Model, rng: np.random.Generator) -> list[Timing]:
    """Time `predict_one` on made-up rows, one call at a time.

    Rows are dicts; where all features are numbers they are also, before that, 1-D arrays.
    """
    data, _ = made_up_rows(model.schema, _N_SINGLE, rng)
    if not isinstance(data, np.ndarray):
        return [_time_calls(model, data.to_pylist(), "dict")]
    dicts = [dict(zip(model.feature_names, row, strict=True)) for row in data.tolist()]
    return [_time_calls(model, list(data), "1-D float64 array"), _time_calls(model, dicts, "dict")]


def _time_calls(model: Model, rows: list[Any], what: str) -> Timing:
    turn = itertools.cycle(rows)
    micros = _repeat(lambda: model.predict_one(next(turn)))
    return _timing(f"{type(model).__name__}.predict_one({what})", 1, micros)


def made_up_rows(schema: Schema, n: int, rng: np.random.Generator) -> tuple[Any, str]:
    """Return rows like those of training, without its dependences: an array, or an Arrow table.

    Numbers are normal with the training mean and spread, levels are equally likely, and one entry
    in twenty is missing in a feature that had missing entries.
    """
    columns: dict[str, Any] = {}
    for feature in schema.features:
        missing = (rng.random(n) < 0.05) & feature.has_missing
        if feature.kind == "numeric":
            values = rng.normal(feature.center, feature.scale, n)
            columns[feature.name] = np.where(missing, np.nan, values)
        else:
            codes = rng.integers(0, max(1, len(feature.levels)), n)
            columns[feature.name] = [
                None if gone or not feature.levels else feature.levels[code]
                for code, gone in zip(codes.tolist(), missing.tolist(), strict=True)
            ]
    if all(feature.kind == "numeric" for feature in schema.features):
        return np.ascontiguousarray(np.column_stack(list(columns.values()))), "float64 array"
    import pyarrow as pa

    return pa.table(columns), "Arrow table"


def _repeat(call: Callable[[], Any]) -> np.ndarray:
    """Return microseconds of each call, in a second of calls after a warm-up."""
    clock = time.perf_counter_ns
    warm_until = clock() + int(0.1e9 * _SECONDS)
    for _ in range(_WARM_UP):
        call()
        if clock() > warm_until:
            break
    times = []
    end = clock() + int(1e9 * _SECONDS)
    start = clock()
    while start < end or len(times) < 3:
        call()
        stop = clock()
        times.append(stop - start)
        start = clock()
    return np.asarray(times) / 1e3


def _timing(api: str, n_rows: int, micros: np.ndarray) -> Timing:
    p50, p99 = np.percentile(micros, [50, 99])
    return Timing(api, n_rows, float(n_rows / p50 * 1e6), float(p50), float(p99))


def _time_words(micros: float) -> str:
    return f"{figure(micros)} us" if micros < 1e4 else f"{figure(micros / 1e3)} ms"
