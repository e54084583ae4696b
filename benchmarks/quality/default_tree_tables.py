"""The tables on which the default tree is compared, and their training and test rows.

Messy tables are CSV files with names, categories, dates and missing entries; a manifest beside
them names the target of each. Stored tables are ``NAME.npz`` (`parts.py`), all columns numbers.
Generated tables are one problem with more and more rows.

Published splits are used as they are, with validation rows among the training rows. Without one,
split k puts 30 % of the rows, drawn with seed k and stratified by class, into the test part. Of
larger tables, `MOST_ROWS` rows are drawn first, with seed 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

Kind = Literal["messy", "stored", "generated"]

TEST_PART = 0.3
N_SPLITS = 5
MOST_ROWS = 100_000
LEFT_OUT = {
    "mnist": "images",
    "fashion_mnist": "images",
    "cifar10_12k": "images",
    "bace": "2,048 bits of a fingerprint",
    "hiv": "2,048 bits of a fingerprint",
    "pima": "the rows of diabetes again",
}
GENERATED_ROWS = (10_000, 100_000, 1_000_000)
_GENERATED_TEST_ROWS = 20_000
_COLUMNS, _HIDDEN, _CLASSES, _NOISE = 20, 20, 5, 0.3
_ISO_DATE = r"\d{4}-\d{2}-\d{2}"


@dataclass(frozen=True)
class Source:
    """Where a table comes from.

    Parameters
    ----------
    name, kind
        The table.
    path
        Its file; None for a generated one.
    target
        The column to predict, of a CSV file.
    has_classes
        Whether the target is a class; None if the file says so by its type.
    n_rows
        Training rows of a generated table.
    """

    name: str
    kind: Kind
    path: Path | None = None
    target: str = ""
    has_classes: bool | None = None
    n_rows: int = 0

    @property
    def size(self) -> int:
        """What orders tables by how long they take: bytes, or rows of a generated table."""
        return self.n_rows if self.path is None else self.path.stat().st_size


@dataclass(frozen=True)
class Loaded:
    """A table; ``published`` is (s, n) with 0 training, 1 validation, 2 test, or None."""

    X: pd.DataFrame
    y: np.ndarray
    has_classes: bool
    published: np.ndarray | None = None


@dataclass(frozen=True)
class Parts:
    """The rows of one split: labels or numbers in ``y``, and the number of all splits."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    has_classes: bool
    n_splits: int


def sources(folders: Iterable[Path]) -> dict[str, Source]:
    """Return the tables of some folders by name: CSV files with a manifest, or NAME.npz."""
    found = [
        source
        for folder in folders
        for source in (*_messy_sources(folder), *_stored_sources(folder))
    ]
    return {source.name: source for source in found}


def generated_sources() -> dict[str, Source]:
    """Return the problem with more and more rows."""
    return {f"rows_{n}": Source(f"rows_{n}", "generated", n_rows=n) for n in GENERATED_ROWS}


def n_splits(source: Source) -> int:
    """Return the number of splits of a table: the published ones, or those drawn."""
    if source.kind == "stored":
        assert source.path is not None
        with np.load(source.path) as arrays:
            return len(np.atleast_2d(arrays["split"])) if "split" in arrays.files else N_SPLITS
    return N_SPLITS


def parts(source: Source, split: int) -> Parts:
    """Return the rows of a split."""
    if source.kind == "generated":
        return _generated(source.n_rows, split)
    table = _loaded(source)
    train, test = _rows(table, split)
    return Parts(
        table.X.iloc[train],
        table.y[train],
        table.X.iloc[test],
        table.y[test],
        table.has_classes,
        n_splits(source),
    )


def _rows(table: Loaded, split: int) -> tuple[np.ndarray, np.ndarray]:
    rows = np.arange(len(table.y))
    if table.published is not None:
        is_test = table.published[split] == 2
        return rows[~is_test], rows[is_test]
    stratify = table.y if table.has_classes else None
    train, test = train_test_split(rows, test_size=TEST_PART, random_state=split, stratify=stratify)
    return train, test


@lru_cache(maxsize=1)
def _loaded(source: Source) -> Loaded:
    table = _messy(source) if source.kind == "messy" else _stored(source)
    if len(table.y) <= MOST_ROWS or table.published is not None:
        return table
    stratify = table.y if table.has_classes else None
    drawn, _ = train_test_split(
        np.arange(len(table.y)), train_size=MOST_ROWS, random_state=0, stratify=stratify
    )
    return Loaded(table.X.iloc[drawn].reset_index(drop=True), table.y[drawn], table.has_classes)


# --- CSV files ---------------------------------------------------------------------------------


def _messy_sources(folder: Path) -> list[Source]:
    """Read the rows ``| file | rows | columns | target | task | ...`` of the manifest."""
    manifest = folder / "MANIFEST.md"
    if not manifest.exists():
        return []
    cells = [
        [cell.strip() for cell in line.split("|")]
        for line in manifest.read_text(encoding="utf-8").splitlines()
    ]
    return [
        Source(Path(row[1]).stem, "messy", folder / row[1], row[4], row[5].startswith("classes"))
        for row in cells
        if len(row) > 5 and row[1].endswith(".csv") and (folder / row[1]).exists()
    ]


def _messy(source: Source) -> Loaded:
    assert source.path is not None
    X = pd.read_csv(source.path)
    y = X.pop(source.target)
    for name in X.columns:
        if _holds_dates(X[name]):
            X[name] = pd.to_datetime(X[name], format="ISO8601").dt.tz_localize(None)
    if source.has_classes:
        return Loaded(X, y.astype(str).to_numpy(dtype=object), has_classes=True)
    return Loaded(X, y.to_numpy(np.float64), has_classes=False)


def _holds_dates(column: pd.Series) -> bool:
    if pd.api.types.is_numeric_dtype(column):
        return False
    return bool(column.dropna().astype(str).str.match(_ISO_DATE).all())


# --- stored arrays -----------------------------------------------------------------------------


def _stored_sources(folder: Path) -> list[Source]:
    return [
        Source(path.stem, "stored", path)
        for path in sorted(folder.glob("*.npz"))
        if path.stem not in LEFT_OUT
    ]


def _stored(source: Source) -> Loaded:
    assert source.path is not None
    with np.load(source.path) as arrays:
        X, y = arrays["X"].astype(np.float32), arrays["y"]
        names = arrays["feature_names"] if "feature_names" in arrays.files else range(X.shape[1])
        published = np.atleast_2d(arrays["split"]) if "split" in arrays.files else None
    names = [f"x{name}" if str(name).isdigit() else str(name) for name in names]
    frame = pd.DataFrame(X, columns=names)
    return Loaded(frame, y, bool(np.issubdtype(y.dtype, np.integer)), published)


# --- one problem with more and more rows -------------------------------------------------------


@lru_cache(maxsize=1)
def _generated(n_rows: int, seed: int) -> Parts:
    """Draw ``y = argmax(tanh(X W) V + 0.3 noise)``; a larger table begins with the smaller one."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(_COLUMNS, _HIDDEN)) / np.sqrt(_COLUMNS)
    V = rng.normal(size=(_HIDDEN, _CLASSES))

    def draw(n: int) -> tuple[pd.DataFrame, np.ndarray]:
        X = rng.normal(size=(n, _COLUMNS)).astype(np.float32)
        scores = np.tanh(X @ W) @ V + _NOISE * rng.normal(size=(n, _CLASSES))
        return pd.DataFrame(X, columns=[f"x{i}" for i in range(_COLUMNS)]), scores.argmax(axis=1)

    X_test, y_test = draw(_GENERATED_TEST_ROWS)
    X, y = draw(max(GENERATED_ROWS))
    return Parts(X.iloc[:n_rows], y[:n_rows], X_test, y_test, True, N_SPLITS)
