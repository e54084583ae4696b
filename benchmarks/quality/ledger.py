"""The finished fits of one method on one data set: recorded one by one and never repeated.

All fits of an experiment are in one file (`benchmarks.record`). Several processes can share the
work: start the same command twice, and each takes the methods that the other is not working on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.provenance import provenance
from benchmarks.record import Record, append, keep, read

Entry = dict[str, Any]

_CHOICE, _RUN = "choice", "run"


class Ledger:
    """The fits of one method on one data set.

    ``choosing`` has one entry per setting, split and repeat, scored on validation rows; ``runs``
    one per split and seed, scored on test rows.

    Parameters
    ----------
    path
        File of the experiment.
    key
        Entries that all of these fits share, and no other fits of the experiment have.
    facts
        Further entries that are recorded with every fit, such as the measure.
    """

    def __init__(self, path: Path, key: Entry, facts: Entry | None = None) -> None:
        provenance()  # the commit is that of the start
        self.path = path
        self.key = key
        self.facts = facts or {}
        entries = [record.result for record in read(path) if _has(record.result, key)]
        self.choosing = [entry for entry in entries if entry["phase"] == _CHOICE]
        self.runs = [entry for entry in entries if entry["phase"] == _RUN]

    @property
    def name(self) -> str:
        """Name for `benchmarks.record.alone`."""
        return f"{self.path.resolve()} {self.key}"

    def choice(self, split: int, setting: Entry, repeat: int) -> Entry | None:
        """Return the entry of a fit that was made to choose a setting."""
        key = (split, setting, repeat)
        return _first(self.choosing, lambda e: (e["split"], e["setting"], e["repeat"]) == key)

    def run(self, split: int, seed: int) -> Entry | None:
        """Return the entry of a fit that counts."""
        return _first(self.runs, lambda e: (e["split"], e["seed"]) == (split, seed))

    def forget_runs(self, split: int, *, other_than: Entry) -> None:
        """Drop the fits of a split that had another setting than the one chosen now."""
        kept = [e for e in self.runs if e["split"] != split or e["setting"] == other_than]
        if len(kept) == len(self.runs):
            return
        self.runs = kept
        keep(self.path, lambda record: not self._is_run(record.result) or record.result in kept)

    def add_choice(self, entry: Entry) -> None:
        self.choosing.append(self._recorded(entry, _CHOICE))

    def add_run(self, entry: Entry) -> None:
        self.runs.append(self._recorded(entry, _RUN))

    def _recorded(self, entry: Entry, phase: str) -> Entry:
        result = {**self.key, "phase": phase, **self.facts, **entry}
        append(self.path, Record(result, provenance()))
        return result

    def _is_run(self, entry: Entry) -> bool:
        return _has(entry, self.key) and entry["phase"] == _RUN


def _has(entry: Entry, key: Entry) -> bool:
    return all(entry.get(name) == value for name, value in key.items())


def _first(entries: list[Entry], matches: Callable[[Entry], bool]) -> Entry | None:
    return next((entry for entry in entries if matches(entry)), None)
