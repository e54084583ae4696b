"""Results of experiments: kept as one JSON line each with its provenance, printed as a table.

An experiment has one file, ``results/NAME.jsonl``. Each line is one result and says by itself where
it was measured::

    {"result": {...}, "provenance": {"commit": ..., "is_clean": ..., "date": ..., ...}}

Only this module reads and writes these files.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.provenance import Provenance, provenance

RESULTS = Path(__file__).resolve().parent / "results"
Result = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """One line of a file: what was measured, and where and how."""

    result: Result
    provenance: Provenance

    def line(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"), ensure_ascii=False) + "\n"


def file_of(experiment: str, folder: Path = RESULTS) -> Path:
    """Return where the results of an experiment are."""
    return folder / f"{experiment}.jsonl"


def read(path: Path) -> list[Record]:
    """Return all results of a file, oldest first; none where there is no file."""
    if not path.exists():
        return []
    status = path.stat()
    return list(_parsed(path, status.st_ino, status.st_mtime_ns, status.st_size))


def results(experiment: str, folder: Path = RESULTS) -> list[Result]:
    """Return the results of an experiment without their provenance."""
    return [record.result for record in read(file_of(experiment, folder))]


def append(path: Path, record: Record) -> None:
    """Add a result to a file; several processes may do so at once."""
    with _locked(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(record.line())


def replace(path: Path, records: Iterable[Record]) -> None:
    """Write a file anew, in one step."""
    with _locked(path):
        _write(path, records)


def keep(path: Path, is_kept: Callable[[Record], bool]) -> None:
    """Drop the results of a file that are not kept, in one step."""
    with _locked(path):
        found = read(path)
        kept = [record for record in found if is_kept(record)]
        if len(kept) < len(found):
            _write(path, kept)


@contextmanager
def alone(name: str) -> Iterator[bool]:
    """Yield whether this process may work on something: one process at a time may."""
    with _lock_file(name).open("w") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the file for one change; wait until others have made theirs."""
    with _lock_file(f"change {path.resolve()}").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        yield


def _lock_file(name: str) -> Path:
    folder = Path(tempfile.gettempdir()) / f"hardwood-benchmarks-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    return folder / hashlib.sha256(name.encode()).hexdigest()[:24]


def _write(path: Path, records: Iterable[Record]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text("".join(record.line() for record in records), encoding="utf-8")
    os.replace(fresh, path)


@lru_cache(maxsize=32)
def _parsed(path: Path, *_state: int) -> tuple[Record, ...]:
    """Return the lines of a file in one of its states; pages read the same file very often."""
    with path.open(encoding="utf-8") as lines:
        return tuple(Record(**json.loads(line)) for line in lines)


# --- tables ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """One column: the key of a row, its header, and the format of its values.

    ``width`` is the minimum; words are left-aligned, numbers right-aligned.
    """

    key: str
    header: str
    form: str = ""
    width: int = 6
    words: bool = False

    def cell(self, row: dict[str, Any]) -> str:
        value = row.get(self.key)
        if value is None:
            return self.fit("-" if self.header else "")
        return self.fit(format(value, self.form))

    def fit(self, text: str) -> str:
        width = max(len(self.header), self.width)
        return text.ljust(width) if self.words else text.rjust(width)

    @property
    def head(self) -> str:
        return self.fit(self.header)

    @property
    def rule(self) -> str:
        return "-" * (len(self.head) + 1) + ("-" if self.words else ":")


@dataclass
class Table:
    """A printed table whose rows are recorded.

    Parameters
    ----------
    name
        Of the experiment and its file in ``results/``; never changes.
    title
        The question, with what is timed.
    columns
        The printed part of a row; the file has all of it.
    settings
        Options of this run.
    kept
        Whether to write the file; a quick run is only printed.
    device
        The accelerator, where one is used.
    """

    name: str
    title: str
    columns: Sequence[Column]
    settings: dict[str, Any] = field(default_factory=dict)
    kept: bool = True
    device: str | None = None
    records: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        provenance()  # the commit is that of the start
        print(f"\n{self.title}\n")
        print("| " + " | ".join(c.head for c in self.columns) + " |")
        print("|" + "|".join(c.rule for c in self.columns) + "|", flush=True)

    @property
    def rows(self) -> list[Result]:
        """All rows so far."""
        return [record.result for record in self.records]

    def add(self, **row: Any) -> None:
        """Print a row and keep it."""
        found = provenance(title=self.title, settings=self.settings, device=self.device)
        self.records.append(Record(row, found))
        print("| " + " | ".join(c.cell(row) for c in self.columns) + " |", flush=True)

    def finish(self, *notes: str) -> bool:
        """Print the notes and write the file; return whether every row keeps its floor."""
        passed = [row["passed"] for row in self.rows if "passed" in row]
        if passed:
            notes = (*notes, f"Floors: {sum(passed)} of {len(passed)} rows keep theirs.")
        here = provenance()
        words = ", ".join(f"{name} {version}" for name, version in here["versions"].items())
        print()
        for note in (*notes, f"{here['processor']}; {words}."):
            print(note)
        if self.kept:
            replace(file_of(self.name), self.records)
        return all(passed)


def asks_quick(about: str, how: str) -> bool:
    """Return whether ``--quick``, the only option of a script, asks for an unrecorded quick run.

    ``about`` is the script's docstring, ``how`` says what makes it quick.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{how}, not recorded")
    return bool(parser.parse_args().quick)


def verdict(passed: bool) -> dict[str, Any]:
    """Return the entries of a row that has a floor."""
    return {"passed": passed, "verdict": "pass" if passed else "MISS"}
