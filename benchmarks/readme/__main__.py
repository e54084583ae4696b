"""Measure the table of results in README.md, record it and print it.

    python -m benchmarks.readme [--data FOLDER] [--only NAME] [--quick] [--check]

A full run takes at most 15 minutes on two cores. It writes ``results/readme.jsonl`` and puts the
table between the two comments in README.md that mark its place. With ``--only`` one row is measured
again and the others are kept. ``--quick`` measures with few seeds and records nothing. ``--check``
measures nothing and says whether README.md shows what is recorded.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.provenance import provenance
from benchmarks.readme import accuracy, speed
from benchmarks.readme.table import in_readme, markdown, put_in_readme
from benchmarks.record import Record, Result, file_of, read, replace
from benchmarks.timing import one_thread

RECORD = file_of("readme")
NAMES = (*accuracy.QUESTIONS, *speed.MEASURES)


def measured(name: str, folder: Path | None, is_quick: bool) -> Result | None:
    """Return a row; None if its table or library is missing."""
    if name in accuracy.QUESTIONS:
        return accuracy.measure(name, folder, is_quick)
    return speed.MEASURES[name](is_quick)


def merged(old: list[Record], new: list[Record]) -> list[Record]:
    """Replace rows by new ones of the same name, in the order of the table."""
    rows = {record.result["name"]: record for record in (*old, *new)}
    return [rows[name] for name in NAMES if name in rows]


def check() -> int:
    """Say whether README.md shows what is recorded."""
    shown, recorded = in_readme(), markdown(read(RECORD))
    is_current = shown is None or shown == recorded
    print(f"README.md: {'as' if is_current else 'NOT as'} the results say")
    return 0 if is_current else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder of NAME.npz, for more tables")
    parser.add_argument("--only", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="few seeds, not recorded")
    parser.add_argument("--check", action="store_true", help="compare README.md with the record")
    options = parser.parse_args()
    if options.check:
        return check()
    one_thread()
    provenance()  # the commit is that of the start
    records = []
    for name in [options.only] if options.only else NAMES:
        row = measured(name, options.data, options.quick)
        if row is None:
            print(f"{name}: left out, its table or library is missing", flush=True)
            continue
        print(f"{name}: done", flush=True)
        records.append(Record(row, provenance()))
    if not options.quick:
        records = merged(read(RECORD) if options.only else [], records)
        replace(RECORD, records)
        put_in_readme(markdown(records))
    print(f"\n{markdown(records)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
