"""Record what the package learns, writes and prints, and compare it with another commit.

The ledger runs several hundred cases through the public names of the package: fits of every
estimator, the command line, exports, explanations, error messages. It stores a hash of each result.
To check a refactoring, record on the parent commit and compare on the child::

    git worktree add ../parent HEAD~1              # and build the engine there
    PYTHONPATH=../parent/src python tests/ledger record parent.json --keep parent.d
    PYTHONPATH=src python tests/ledger compare parent.json --keep parent.d

The ledger itself may be newer than the package it runs on. Hashes depend on the processor and on
the versions of NumPy, SciPy, scikit-learn and torch: record and compare on one machine, in one
environment; none are checked in. No case has a time limit, and times are removed from printed text,
so that the hashes do not depend on the load of the machine.

``--keep FOLDER`` stores the contents besides the hashes; `compare` then shows the differences.
``--quick`` selects cases that take about a minute. ``--only "fit/DGT*/iris"`` selects the cases
whose name contains this pattern; `list` prints the names. A record of all cases works with every
selection.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# Before NumPy is imported: the number of threads may change the last bits of a sum.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

if not __package__:  # called as `python tests/ledger`
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from ledger import book  # noqa: E402
from ledger.cases import Case, chosen  # noqa: E402


def all_cases() -> list[Case]:
    """Return all cases of the ledger, in the order in which they run."""
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
    options = _parser().parse_args(arguments)
    cases = chosen(all_cases(), only=options.only, quick=options.quick)
    if options.command == "list":
        print(*(case.name for case in cases), sep="\n")
        return 0
    if options.command == "record":
        return book.record(cases, options.file, keep=options.keep)
    is_all = not options.quick and options.only is None
    return book.compare(cases, options.file, keep=options.keep, is_all=is_all)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ledger", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("record", "compare", "list"))
    parser.add_argument("file", nargs="?", type=Path, help="the record, a JSON file")
    parser.add_argument(
        "--quick", action="store_true", help="a selection that takes about a minute"
    )
    parser.add_argument("--only", metavar="PATTERN", help="cases whose name contains this pattern")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where to store the contents")
    return parser


if __name__ == "__main__":
    sys.exit(main())
