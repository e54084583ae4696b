"""Download the tables of the DGT benchmarks from OpenML.

    python -m benchmarks.quality.fetch FOLDER [--names pendigits,letter]

Writes ``FOLDER/NAME.npz`` in the form that `parts.py` reads: categories one-hot encoded, classes as
integers from 0. OpenML's copies have no split, so 64/16/20 splits are drawn, even if the paper has
an official one. Such scores cannot be compared with the paper's, and the page says so. BACE and HIV
are not on OpenML; MoleculeNet has them, to be converted to 2048 Morgan bits of radius 2.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality.dgt_paper import TASKS
from benchmarks.quality.trials import some_of


class Source(NamedTuple):
    """A data set of OpenML: its number, its name there, and the expected number of rows."""

    data_id: int
    name: str
    n_rows: int


SOURCES = {
    "pendigits": Source(32, "pendigits", 10_992),
    "satimage": Source(182, "satimage", 6_430),  # 5 rows fewer than at UCI
    "segment": Source(36, "segment", 2_310),
    "letter": Source(6, "letter", 20_000),
    "mnist": Source(554, "mnist_784", 70_000),
    "connect4": Source(40668, "connect-4", 67_557),
    "covtype": Source(1596, "covertype", 581_012),
    "optdigits": Source(28, "optdigits", 5_620),
    "ailerons": Source(296, "ailerons", 13_750),
    "abalone": Source(183, "abalone", 4_177),
    "cpu_act": Source(573, "cpu_act", 8_192),
}


def arrays(bunch: Any, has_classes: bool) -> dict[str, np.ndarray]:
    """Return X and y of the result of `fetch_openml`, as numbers."""
    import pandas as pd

    X = pd.get_dummies(bunch.data, dtype=np.float32).to_numpy(dtype=np.float32)
    if not has_classes:
        return {"X": X, "y": bunch.target.astype(float).to_numpy()}
    classes, y = np.unique(bunch.target.astype(str), return_inverse=True)
    return {"X": X, "y": y.astype(np.int64), "classes": classes.astype(str)}


def fetch(name: str, folder: Path) -> Path:
    """Write one table; raise an error if OpenML has a different one under that number."""
    from sklearn.datasets import fetch_openml

    source = SOURCES[name]
    bunch = fetch_openml(data_id=source.data_id, as_frame=True, parser="auto")
    found = (bunch.details["name"].lower(), len(bunch.data))
    if found != (source.name, source.n_rows):
        raise ValueError(
            f"OpenML's data set {source.data_id} is {found[0]!r} with {found[1]} rows, expected "
            f"{source.name!r} with {source.n_rows}."
        )
    path = folder / f"{name}.npz"
    np.savez_compressed(path, **arrays(bunch, TASKS[name].has_classes))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where to write; created if necessary")
    parser.add_argument("--names", type=some_of(SOURCES), default="", help=", ".join(SOURCES))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or SOURCES:
        print(fetch(name, arguments.folder), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
