"""The effect of each option of reinforced trees at depth 10, as errors on validation rows.

    python -m benchmarks.quality.reinforced_options --data FOLDER [--seeds 2] [--passes 60]

Parts have the paper's sizes (`reinforced_paper.py`). Trees are trained on training rows and scored
on validation rows; test rows are not used. Each line changes only the named option. The defaults of
`ReinforcedTreeClassifier` are the best options over these data sets.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from benchmarks.quality.parts import Parts
from benchmarks.quality.reinforced_paper import paper_parts, task_of
from benchmarks.quality.trials import add_options
from benchmarks.record import Column, Table
from benchmarks.timing import one_thread
from hardwood import ReinforcedTreeClassifier
from hardwood.learn import Training

NAMES = ("pendigits", "optdigits", "letter")
DEPTH = 10
SAMPLED: dict[str, Any] = {"gradient": "sampled", "entropy_bonus": 0.0}
EXACT: dict[str, Any] = {"gradient": "exact", "entropy_bonus": 0.0}
SGD = Training(optimizer="sgd", schedule_restarts=0, clip_norm=None)
LINES: dict[str, dict[str, Any]] = {
    "sampled, no baseline": {**SAMPLED, "baseline": "none"},
    "sampled, baseline: value": {**SAMPLED, "baseline": "value"},
    "sampled, baseline: leave-one-out": SAMPLED,
    "sampled, leave-one-out, entropy 0.6": {**SAMPLED, "entropy_bonus": 0.6},
    "sampled, value, entropy 0.6": {**SAMPLED, "baseline": "value", "entropy_bonus": 0.6},
    "sampled, leave-one-out, entropy 0.6, M = 3": {
        **SAMPLED,
        "entropy_bonus": 0.6,
        "n_trajectories": 3,
    },
    "sampled, leave-one-out, entropy 0.6, M = 30": {
        **SAMPLED,
        "entropy_bonus": 0.6,
        "n_trajectories": 30,
    },
    "exact": EXACT,
    "exact, entropy 0.3": {**EXACT, "entropy_bonus": 0.3},
    "exact, entropy 0.6 (default)": {**EXACT, "entropy_bonus": 0.6},
    "exact, entropy 1": {**EXACT, "entropy_bonus": 1.0},
    "exact, temperature 3 to 1": {**EXACT, "temperature": (3.0, 1.0)},
    "exact, entropy 0.6, temperature 3 to 1": {
        **EXACT,
        "entropy_bonus": 0.6,
        "temperature": (3.0, 1.0),
    },
    "exact, entropy 0.6, squared_error": {**EXACT, "entropy_bonus": 0.6, "loss": "squared_error"},
    "exact, entropy 0.6, hinge": {**EXACT, "entropy_bonus": 0.6, "loss": "hinge"},
    "exact, entropy 0.6, learning_rate 0.01": {
        **EXACT,
        "entropy_bonus": 0.6,
        "learning_rate": 0.01,
    },
    "exact, entropy 0.6, learning_rate 0.1": {**EXACT, "entropy_bonus": 0.6, "learning_rate": 0.1},
    "exact, entropy 0.6, SGD at 1": {
        **EXACT,
        "entropy_bonus": 0.6,
        "training": SGD,
        "learning_rate": 1.0,
    },
}
COLUMNS = (
    Column("line", "options", width=44, words=True),
    *(Column(name, name, ".2f", width=9) for name in NAMES),
    Column("mean", "mean", ".2f"),
)


def error(table: Parts, options: dict[str, Any], passes: int, seed: int) -> float:
    """Return the error on validation rows, in percent."""
    model = ReinforcedTreeClassifier(
        max_depth=DEPTH, max_epochs=passes, random_state=seed, **options
    )
    model.fit(table.X[table.train], table.y[table.train])
    return 100 * (1 - float(model.score(table.X[table.valid], table.y[table.valid])))


def main() -> int:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.set_defaults(seeds=2)
    parser.add_argument("--passes", type=int, default=60)
    arguments = parser.parse_args()
    passes, seeds = (1, 1) if arguments.quick else (arguments.passes, arguments.seeds)
    most = 300 if arguments.quick else None
    tables = {name: paper_parts(arguments.data, task_of(name), max_rows=most) for name in NAMES}
    found = Table(
        "reinforced_options",
        __doc__.splitlines()[0],
        COLUMNS,
        {"passes": passes, "seeds": seeds, "depth": DEPTH},
        kept=not arguments.quick,
    )
    for line, options in LINES.items():
        errors = {
            name: float(np.mean([error(table, options, passes, s) for s in range(seeds)]))
            for name, table in tables.items()
        }
        found.add(line=line, **errors, mean=float(np.mean(list(errors.values()))))
    found.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
