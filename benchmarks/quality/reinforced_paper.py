"""The numbers of the paper on reinforced trees: Table 1, and the sizes of its parts.

Leon, Denoyer. Policy-gradient Methods for Decision Trees. ESANN 2016.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.quality.dgt_paper import TASKS, Task
from benchmarks.quality.parts import Parts, parts

NAMES = ("pendigits", "optdigits", "letter", "mnist")
DEPTHS = (5, 8, 10)

# Rows for training, validation and testing.
SIZES = {
    "pendigits": (3745, 3748, 3497),
    "optdigits": (1911, 1908, 1796),
    "letter": (6661, 6652, 6687),
    "mnist": (50_000, 10_000, 10_000),
}
# Error in percent, mean and standard deviation, by method and data set in the order of NAMES.
TABLE_1 = {
    "svm": ((17.38, 3.62), (6.84, 0.46), (29.98, 0.01), (8.47, 0.02)),
    "cart-05": ((22.61, 0.08), (31.47, 0.13), (63.24, 0.01), (32.53, 0.01)),
    "cart-08": ((11.40, 0.20), (18.89, 0.21), (37.22, 0.08), (18.44, 0.02)),
    "cart-10": ((9.99, 0.24), (16.63, 0.35), (30.73, 0.09), (14.09, 0.06)),
    "cart-free": ((9.74, 0.35), (16.00, 0.24), (17.90, 0.14), (12.87, 0.04)),
    "rdt-05": ((5.35, 1.41), (7.24, 0.83), (30.89, 1.13), (7.73, 0.50)),
    "rdt-08": ((4.45, 1.25), (5.86, 0.26), (15.81, 0.75), (6.25, 0.57)),
    "rdt-10": ((3.43, 0.34), (5.35, 0.71), (12.34, 0.44), (5.41, 0.44)),
}
# Floors at depth 10: the paper's mean plus one standard deviation.
FLOORS = {"pendigits": 3.8, "optdigits": 6.1, "letter": 12.8, "mnist": 5.9}


class PaperParts(Parts):
    """Parts whose validation rows only choose settings."""

    @property
    def learnable(self) -> np.ndarray:
        """Rows of the final fit: only the training rows, as many as in the paper."""
        return self.train


def task_of(name: str) -> Task:
    """Return a data set of the paper."""
    return TASKS[name]


def paper_parts(folder: Path, task: Task, *, max_rows: int | None = None) -> PaperParts:
    """Return a table in parts of the paper's sizes.

    Test rows are drawn from the published test part, the others from the rest. For letter all parts
    are drawn from all rows, since the paper's parts are larger than the published ones.
    """
    stored = parts(folder, task, 0)
    rng = np.random.default_rng(0)
    n_train, n_valid, n_test = SIZES[task.name]
    if task.name == "letter":
        rows = rng.permutation(len(stored.y))
        learnable, test = rows[: n_train + n_valid], rows[n_train + n_valid :]
    else:
        learnable, test = rng.permutation(stored.learnable), rng.permutation(stored.test)
    train, valid = learnable[:n_train], learnable[n_train : n_train + n_valid]
    cut = slice(max_rows)
    return PaperParts(stored.X, stored.y, train[cut], valid[cut], test[:n_test][cut])
