"""What was measured: printed as a table while it arrives, kept as JSON with versions."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
RESULTS = _HERE / "results"
_PACKAGES = (
    "hardwood",
    "numpy",
    "scipy",
    "scikit-learn",
    "torch",
    "lightgbm",
    "xgboost",
    "onnxruntime",
    "skl2onnx",
    "vowpalwabbit",
    "contextualbandits",
)


@dataclass(frozen=True)
class Column:
    """One column: the key of a row, what stands above it, and the format of its values.

    ``width`` is the least; words start at the left, numbers end at the right.
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
    """One question and its answer.

    Parameters
    ----------
    name
        Of the file in ``results/``; never changes.
    title
        The question, with what is timed.
    columns
        What is printed of a row; the file has everything.
    settings
        Options of this run.
    kept
        Whether to write the file; a quick look is only printed.
    """

    name: str
    title: str
    columns: Sequence[Column]
    settings: dict[str, Any] = field(default_factory=dict)
    kept: bool = True
    rows: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        print(f"\n{self.title}\n")
        print("| " + " | ".join(c.head for c in self.columns) + " |")
        print("|" + "|".join(c.rule for c in self.columns) + "|", flush=True)

    def add(self, **row: Any) -> None:
        """Print a row and keep it."""
        self.rows.append(row)
        print("| " + " | ".join(c.cell(row) for c in self.columns) + " |", flush=True)

    def finish(self, *notes: str) -> bool:
        """Print the notes and versions, write the file; True where every row keeps its floor."""
        passed = [row["passed"] for row in self.rows if "passed" in row]
        if passed:
            notes = (*notes, f"Floors: {sum(passed)} of {len(passed)} rows keep theirs.")
        facts = versions()
        words = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
        print()
        for note in (*notes, f"{facts['hardware']['processor']}; {words}."):
            print(note)
        if self.kept:
            self._write(facts, notes)
        return all(passed)

    def _write(self, facts: dict[str, Any], notes: Sequence[str]) -> None:
        document = {
            "name": self.name,
            "title": self.title,
            "settings": self.settings,
            **facts,
            "notes": list(notes),
            "rows": self.rows,
        }
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.name}.json"
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def asks_quick(about: str, how: str) -> bool:
    """Read the command line of a script whose only option is ``--quick``: a look, not recorded.

    ``about`` is the script's docstring, ``how`` says what makes it quick.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{how}, not recorded")
    return bool(parser.parse_args().quick)


def verdict(passed: bool) -> dict[str, Any]:
    """Entries of a row that has a floor."""
    return {"passed": passed, "verdict": "pass" if passed else "MISS"}


def versions() -> dict[str, Any]:
    """Return what figures depend on: packages, commit, machine, and how busy the machine was."""
    return {
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
        "commit": _commit(),
        "python": platform.python_version(),
        "hardware": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.release()}, {' '.join(platform.libc_ver())}",
            "instruction_set": _instruction_set(),
            "load_average": [round(load, 2) for load in os.getloadavg()],
        },
    }


def _version(name: str) -> str | None:
    if name == "hardwood":  # also where it is on the path without being installed
        import hardwood

        return hardwood.__version__
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Return the commit, marked as dirty where files differ from it; None outside a checkout."""
    command = ["git", "-C", str(_HERE), "describe", "--always", "--abbrev=12", "--dirty"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def _instruction_set() -> str:
    from hardwood import _native

    return _native.instruction_set()
