"""The default tree on real tables, beside tuned CART, linear models, boosting, EBM and FIGS.

    python -m benchmarks.quality.default_tree --data FOLDER [FOLDER ...] [--tables a,b]
        [--models x,y] [--splits 5] [--jobs 1] [--threads 1] [--budget SECONDS]
        [--unit-seconds 300] [--record FILE] [--quick]
    python -m benchmarks.quality.default_tree --rows ...      # one problem, more and more rows
    python -m benchmarks.quality.default_tree --learners --data FOLDER ...  # our own learners
    python -m benchmarks.quality.default_tree --report
    python -m benchmarks.quality.default_tree --merge FILE ...
    python -m benchmarks.quality.default_tree --forget [--failures] [--models x,y] [--tables a,b]

`default_tree_tables.py` describes the tables and splits, `default_tree_models.py` the models, and
`default_tree_shares.py` what is compared. Every (table, split, model) is recorded in
``results/default_tree.jsonl`` as it comes and is not repeated: start a stopped run again, or merge
the record of another machine. `default_tree_page.py` writes the page.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.provenance import provenance
from benchmarks.quality import default_tree_shares as shares
from benchmarks.quality.default_tree_measure import Unit, measured
from benchmarks.quality.default_tree_models import COMPARED, LEARNERS, MODELS
from benchmarks.quality.default_tree_tables import N_SPLITS, Source, generated_sources, sources
from benchmarks.quality.default_tree_tables import n_splits as splits_of
from benchmarks.quality.trials import some_of
from benchmarks.quality.units import finished
from benchmarks.record import Column, Record, Result, Table, append, file_of, keep, read, replace
from benchmarks.timing import threads

RECORDED = file_of(shares.NAME)
_QUICK_SPLITS = 1


@dataclass(frozen=True)
class Selection:
    """A part of the units, by table, model and split; no tables mean all of them."""

    tables: tuple[str, ...]
    models: tuple[str, ...]
    n_splits: int

    def has(self, result: Result) -> bool:
        return (
            (not self.tables or result["table"] in self.tables)
            and result["model"] in self.models
            and result["split"] < self.n_splits
        )


def units_of(
    tables: Iterable[Source], selection: Selection, n_threads: int, *, is_quick: bool
) -> Iterator[Unit]:
    """Yield the units, large tables first, split by split: a stopped run has whole splits."""
    chosen = [t for t in tables if not selection.tables or t.name in selection.tables]
    chosen.sort(key=lambda table: -table.size)
    for split in range(selection.n_splits):
        for table in chosen:
            if split < splits_of(table):
                for model in selection.models:
                    yield Unit(table, split, model, n_threads, is_quick)


def run(units: Iterable[Unit], path: Path, arguments: argparse.Namespace) -> None:
    """Do the units that are not recorded yet, and record each as it comes."""
    provenance()  # the commit is that of the start
    done = {shares.key_of(record.result) for record in read(path)}
    missing = [unit for unit in units if unit.key not in done]
    print(f"{len(missing)} units to do.", flush=True)
    if not missing:
        return
    os.environ.update(threads(arguments.threads))  # of the processes that do them
    found = finished(
        missing,
        measured,
        n_processes=arguments.jobs,
        unit_seconds=arguments.unit_seconds,
        deadline=time.monotonic() + arguments.budget,
    )
    n_done = 0
    for unit, result in found:
        append(path, Record({**unit.facts, **result}, provenance()))
        words = result.get("failure") or f"{result['score']:.4f}  {result['seconds']:.1f} s"
        print(f"{unit.source.name} {unit.split} {unit.model}: {words}", flush=True)
        n_done += 1
    if n_done < len(missing):
        print(f"The budget is spent, {len(missing) - n_done} units are left; run again.")


def merge(path: Path, others: Iterable[Path]) -> int:
    """Add the units of other files; return how many. Of two results the newer one counts."""
    newest: dict[tuple[str, int, str], Record] = {}
    for record in (*read(path), *(record for other in others for record in read(other))):
        key = shares.key_of(record.result)
        if key not in newest or newest[key].provenance["date"] < record.provenance["date"]:
            newest[key] = record
    before = len(read(path))
    replace(path, newest.values())
    return len(newest) - before


def forget(path: Path, selection: Selection, *, only_failures: bool) -> None:
    """Drop the selected units from a record, all of them or those without a result."""

    def is_dropped(result: Result) -> bool:
        return selection.has(result) and ("failure" in result or not only_failures)

    keep(path, lambda record: not is_dropped(record.result))


# --- printing ----------------------------------------------------------------------------------


def report(path: Path) -> bool:
    """Print all comparisons; return whether every floor is kept."""
    found = shares.Found.of(read(path))
    for section in shares.sections(found):
        widths = [max(map(len, cells)) for cells in zip(*section.rows, strict=True)]
        columns = [
            Column(name, name, words=True, width=width)
            for name, width in zip(section.head, widths, strict=True)
        ]
        table = Table(shares.NAME, section.title, columns, kept=False)
        for row in section.rows:
            table.add(**dict(zip(section.head, row, strict=True)))
        print("\n".join(["", *section.notes]))
    floors = shares.floors(found)
    return bool(floors) and all(floor.is_kept for floor in floors)


# --- the command line --------------------------------------------------------------------------


def main() -> int:
    parser = _parser()
    arguments = parser.parse_args()
    record: Path = arguments.record
    if arguments.report:
        return 0 if report(record) else 1
    if arguments.merge:
        print(f"{merge(record, arguments.merge)} new units in {record}")
    elif arguments.forget:
        forget(record, _selection(arguments), only_failures=arguments.failures)
    else:
        if not arguments.rows and not arguments.data:
            parser.error("--data FOLDER is needed, or --rows")
        known = generated_sources() if arguments.rows else sources(arguments.data)
        if strange := [name for name in arguments.tables if name not in known]:
            parser.error(f"--tables: {', '.join(strange)} not among {', '.join(known)}")
        _run_selected(known.values(), arguments)
    return 0


def _selection(arguments: argparse.Namespace) -> Selection:
    models = COMPARED
    if arguments.rows:
        models = ("default",)
    elif arguments.learners:
        models = ("default", "accuracy", *LEARNERS)
    n_splits = _QUICK_SPLITS if arguments.quick else arguments.splits
    return Selection(tuple(arguments.tables), tuple(arguments.models or models), n_splits)


def _run_selected(tables: Iterable[Source], arguments: argparse.Namespace) -> None:
    is_quick = arguments.quick
    units = units_of(tables, _selection(arguments), arguments.threads, is_quick=is_quick)
    if not is_quick:
        run(units, arguments.record, arguments)
        return
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / RECORDED.name
        run(units, path, arguments)
        report(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", action="extend", default=[])
    parser.add_argument("--tables", type=lambda text: text.split(","), default=[])
    parser.add_argument("--models", type=some_of(MODELS), default=[], help=", ".join(MODELS))
    parser.add_argument("--splits", type=int, default=N_SPLITS, help="only the first ones")
    parser.add_argument("--jobs", type=int, default=1, help="units at once")
    parser.add_argument("--threads", type=int, default=1, help="of each unit")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds of the run")
    parser.add_argument("--unit-seconds", type=float, default=300.0, help="limit of each unit")
    parser.add_argument("--record", type=Path, default=RECORDED, help="where results are")
    parser.add_argument("--quick", action="store_true", help="a smoke run, not recorded")
    parser.add_argument("--rows", action="store_true", help="one problem, more and more rows")
    parser.add_argument("--learners", action="store_true", help="our own learners")
    parser.add_argument("--report", action="store_true", help="print the record, fit nothing")
    parser.add_argument("--merge", type=Path, nargs="+", help="add the units of other records")
    parser.add_argument("--forget", action="store_true", help="drop the selected units")
    parser.add_argument("--failures", action="store_true", help="with --forget: only failures")
    return parser


if __name__ == "__main__":
    sys.exit(main())
