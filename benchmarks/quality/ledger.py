"""Finished fits of one method on one data set: written one by one, never made twice.

One file per data set and method, so that several processes can share the work: start the same
command twice. A file is replaced in one step, and a process that finds another at work on it goes
on with the next.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.record import versions

Entry = dict[str, Any]

# Parameters that had another name when older files were recorded.
_RENAMED = {"restarts": "n_restarts", "entropy": "entropy_bonus"}


class Ledger:
    """The fits of one method on one data set.

    ``choosing`` has one entry per setting, split and repeat, scored on validation rows; ``runs``
    one per split and seed, scored on test rows.
    """

    def __init__(self, path: Path, head: Entry) -> None:
        self.path = path
        self.head = head
        self.choosing: list[Entry] = []
        self.runs: list[Entry] = []
        if path.exists():
            document = json.loads(path.read_text(encoding="utf-8"))
            self.choosing, self.runs = (
                [_renamed(entry) for entry in document[part]] for part in ("choosing", "runs")
            )

    def choice(self, split: int, setting: Entry, repeat: int) -> Entry | None:
        """Return the entry of a fit that was made to choose a setting."""
        key = (split, setting, repeat)
        return _first(self.choosing, lambda e: (e["split"], e["setting"], e["repeat"]) == key)

    def run(self, split: int, seed: int) -> Entry | None:
        """Return the entry of a fit that counts."""
        return _first(self.runs, lambda e: (e["split"], e["seed"]) == (split, seed))

    def forget_runs(self, split: int, *, other_than: Entry) -> None:
        """Drop the fits of a split that had another setting than the one chosen now."""
        self.runs = [e for e in self.runs if e["split"] != split or e["setting"] == other_than]

    def add_choice(self, entry: Entry) -> None:
        self.choosing.append(entry)
        self._write()

    def add_run(self, entry: Entry) -> None:
        self.runs.append(entry)
        self._write()

    def _write(self) -> None:
        document = {**self.head, **_versions(), "runs": self.runs, "choosing": self.choosing}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(f".{os.getpid()}.tmp")
        fresh.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        os.replace(fresh, self.path)


_versions = cache(versions)  # they ask git, which takes longer than many a fit


def _renamed(entry: Entry) -> Entry:
    """Return a recorded fit with today's names of the parameters."""
    setting = entry.get("setting")
    if not isinstance(setting, dict):
        return entry
    return {**entry, "setting": {_RENAMED.get(key, key): setting[key] for key in setting}}


def _first(entries: list[Entry], matches: Callable[[Entry], bool]) -> Entry | None:
    return next((entry for entry in entries if matches(entry)), None)


@contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Yield whether this process may work on a file; others get False until it is done or dead."""
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:24]
    folder = Path(tempfile.gettempdir()) / f"hardwood-benchmarks-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    with (folder / name).open("w") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
