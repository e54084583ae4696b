"""Tables 1, 2, 4 and 5 of the DGT paper, with our scores beside the paper's.

    python -m benchmarks.quality.dgt_tables --data FOLDER [--tables 1,2] [--names a,b]
        [--methods dgt,cart] [--seeds 5] [--jobs 1] [--budget SECONDS] [--report] [--quick]

FOLDER holds ``NAME.npz`` (`parts.py` describes them, `fetch.py` downloads them from OpenML).
`trials.py` describes the procedure; the grids are in `learners.py`. Every finished fit is recorded
in ``results/dgt_tables.jsonl`` at once and is not repeated, so a stopped run continues, and two
processes share the work. ``--report`` only prints; `dgt_page.py` writes the page.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Iterator

from benchmarks.quality.dgt_paper import TASKS
from benchmarks.quality.learners import METHODS
from benchmarks.quality.trials import (
    Pair,
    Run,
    add_options,
    paper_words,
    run_of,
    some_of,
    split_counts,
    summary,
    work,
)
from benchmarks.record import Column, Table, file_of, verdict
from benchmarks.timing import one_thread

RECORDED = file_of("dgt_tables")
# The methods of each table, ours first. CART of any depth is in none of the paper's tables, but
# users compare with it. Data sets in no table get the methods of Table 2.
METHODS_BY_TABLE = {
    1: ("dgt", "pat", "ridge", "cart", "cart_free"),
    2: ("dgt", "cart", "cart_free"),
    4: ("forest", "xgboost", "adaboost"),
    5: ("dgt", "linear"),
}
COLUMNS = [
    Column("name", "data", width=10, words=True),
    Column("measure", "measure", width=8, words=True),
    Column("title", "method", width=22, words=True),
    Column("here", "here", width=15),
    Column("runs", "runs"),
    Column("paper", "paper", width=15),
    Column("floor", "floor"),
    Column("verdict", ""),
    Column("left", "splits left", width=14),
    Column("flops", "flops", ".0f"),
    Column("seconds", "fit, s", ".2f"),
    Column("chosen", "chosen", words=True),
]


def selected(tables: list[int], names: list[str], methods: list[str]) -> Iterator[Pair]:
    """Yield the data sets and methods of some tables, restricted to given names and methods."""
    for name in names or TASKS:
        task = TASKS[name]
        of_task = [table for table in task.tables or (2,) if table in METHODS_BY_TABLE]
        wanted = methods or [
            method
            for table in of_task
            if not tables or table in tables
            for method in METHODS_BY_TABLE[table]
        ]
        for method in dict.fromkeys(wanted):
            if method != "ridge" or not task.has_classes:
                yield task, METHODS[method]


def report(run: Run, pairs: list[Pair]) -> bool:
    """Print all recorded rows; return whether all are recorded and keep their floors."""
    table = Table(
        "dgt_tables",
        "DGT and others: test score, mean ± standard deviation over seeds; settings chosen on "
        "validation rows.",
        COLUMNS,
        kept=False,
    )
    missing = []
    for task, method in pairs:
        row = summary(run, task, method)
        if row is None:
            missing.append(f"{task.name} {method.name}")
            continue
        row["left"] = split_counts(row)
        row["paper"] = paper_words(task, method.name)
        floor = None if run.is_quick else task.floors.get(method.name)
        if floor is not None:
            row |= {"floor": floor, **verdict(task.keeps(row["mean"], floor))}
        table.add(**row)
    notes = [f"Not recorded: {', '.join(missing)}."] if missing else []
    return table.finish(*notes) and not missing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--tables", type=some_of(METHODS_BY_TABLE), default="", help="1,2,4,5")
    parser.add_argument("--names", type=some_of(TASKS), default="", help=", ".join(TASKS))
    parser.add_argument("--methods", type=some_of(METHODS), default="", help=", ".join(METHODS))
    arguments = parser.parse_args()
    if arguments.jobs == 1:
        one_thread()
    warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
    tables = [int(table) for table in arguments.tables]
    pairs = list(selected(tables, arguments.names, arguments.methods))
    with tempfile.TemporaryDirectory() as scratch:
        run = run_of(arguments, RECORDED, scratch)
        if not arguments.report:
            work(run, pairs)
        return 0 if report(run, pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
