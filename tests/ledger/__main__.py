"""Record what the package learns, writes and prints, and compare it with what another commit does.

The ledger runs several hundred cases through the public names of the package: fits of every
estimator, the command line, exports, explanations, error messages. Of what each case gives it keeps
a hash. A refactoring is proved by recording on the parent commit and comparing on the child::

    git worktree add ../parent HEAD~1              # and build the engine there
    PYTHONPATH=../parent/src python tests/ledger record parent.json --keep parent.d
    PYTHONPATH=src python tests/ledger compare parent.json --keep parent.d

The ledger itself may be newer than the package it runs on. Hashes depend on the processor and on
the versions of NumPy, SciPy, scikit-learn and torch: record and compare on one machine, in one
environment; none are checked in. No case has a time limit, and times are taken out of what is
printed, so that two runs give the same hashes however busy the machine is.

``--keep FOLDER`` keeps the contents beside the hashes; `compare` then shows what differs.
``--quick`` takes a selection of about a minute. ``--only "fit/DGT*/iris"`` takes the cases whose
name has this in it; `list` says what they are called. A record of all cases serves every selection.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# Before NumPy is imported: how many threads share a sum may change its last bits.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

if not __package__:  # called as `python tests/ledger`
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from ledger import book  # noqa: E402
from ledger.cases import Case, chosen  # noqa: E402


def all_cases() -> list[Case]:
    """Every case of the ledger, in the order in which they run."""
    from ledger import (
        bandits,
        command_line,
        explanations,
        exports,
        fits,
        refusals,
        searches,
    )

    parts = (fits, searches, bandits, exports, explanations, command_line, refusals)
    return [case for part in parts for case in part.cases()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands; 0 if nothing differs."""
    asked = _parser().parse_args(arguments)
    cases = chosen(all_cases(), only=asked.only, quick=asked.quick)
    if asked.command == "list":
        print(*(case.name for case in cases), sep="\n")
        return 0
    if asked.command == "record":
        return book.record(cases, asked.file, keep=asked.keep)
    is_all = not asked.quick and asked.only is None
    return book.compare(cases, asked.file, keep=asked.keep, is_all=is_all)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ledger", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("record", "compare", "list"))
    parser.add_argument("file", nargs="?", type=Path, help="the record, a JSON file")
    parser.add_argument("--quick", action="store_true", help="a selection that takes a minute")
    parser.add_argument("--only", metavar="PATTERN", help="cases whose name has this in it")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the contents are kept")
    return parser


if __name__ == "__main__":
    sys.exit(main())
