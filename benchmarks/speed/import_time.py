"""Time of `import hardwood`, compared with `import sklearn`.

    python -m benchmarks.speed.import_time [--quick]

Wall time of new interpreters, in turns, minus that of one that imports nothing. The script also
checks that importing never loads torch. The environment is the user's: threads are not limited.
"""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.record import Column, Table, asks_quick, verdict
from benchmarks.timing import interleaved

FLOOR = 0.5  # of the additional time of `import sklearn`
PEER = "import sklearn"
STATEMENTS = (
    "pass",
    PEER,
    "import hardwood",
    "from hardwood import ObliqueTree, load",
    "from hardwood import DGTClassifier",
    "import numpy",
    "from sklearn.tree import DecisionTreeClassifier",
)
# Names are imported on first use, so the second line shows the time for using a saved model, and
# the third the time for training one.
OURS = tuple(statement for statement in STATEMENTS if "hardwood" in statement)
COLUMNS = [
    Column("statement", "statement", width=47, words=True),
    Column("ms", "additional ms", ".1f"),
    Column("ratio", "part of import sklearn", ".3f"),
    Column("floor", "at most", ".2f"),
    Column("verdict", ""),
]


def run(statement: str) -> None:
    subprocess.run([sys.executable, "-c", statement], check=True)


def assert_no_torch() -> None:
    for statement in OURS:
        run(f"import sys; {statement}; assert 'torch' not in sys.modules, 'torch was imported'")


def main() -> int:
    quick = asks_quick(__doc__, "a few rounds")
    rounds = 2 if quick else 8
    assert_no_torch()
    table = Table(
        "import_time",
        "Time of an import in a fresh interpreter, beyond that of `python -c pass`.",
        COLUMNS,
        {"rounds": rounds},
        kept=not quick,
    )
    makers = {
        statement: (lambda statement=statement: lambda: run(statement)) for statement in STATEMENTS
    }
    times = interleaved(makers, rounds=rounds, seconds=0, clock=time.perf_counter)
    start = times["pass"].best
    peer = times[PEER].best - start
    for statement in STATEMENTS[1:]:
        seconds = times[statement].best - start
        floors = {}
        if statement == "import hardwood":
            floors = {"floor": FLOOR, **verdict(seconds < FLOOR * peer)}
        table.add(
            statement=statement,
            ms=1e3 * seconds,
            median_ms=1e3 * (times[statement].median - times["pass"].median),
            ratio=seconds / peer,
            **floors,
        )
    passed = table.finish(
        f"`python -c pass` takes {1e3 * start:.1f} ms. No statement with hardwood imports torch."
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
