"""The record: a JSON file of hashes and, optionally, a folder with the hashed contents."""

from __future__ import annotations

import difflib
import hashlib
import json
import platform
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ledger.cases import Case, parts_of

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "optuna", "pandas", "onnx", "typer")
_DIFFERENCE_LINES = 24  # maximum per part


def record(cases: Sequence[Case], file: Path, *, keep: Path | None = None) -> int:
    """Run the cases and write their hashes; with `keep` also the contents."""
    hashes = {}
    for case in _with_progress(cases):
        parts = parts_of(case)
        if "raised" in parts and not case.name.startswith("errors/"):
            print(f"raises: {case.name}: {parts['raised'].decode()[:200]}")
        hashes[case.name] = {part: _hash(content) for part, content in parts.items()}
        if keep is not None:
            _keep(keep, case.name, parts)
    file.write_text(json.dumps({"about": _about(), "cases": hashes}, indent=1) + "\n")
    print(f"recorded: {_counted(hashes.values())} of {len(hashes)} cases")
    return 0


def compare(
    cases: Sequence[Case], file: Path, *, keep: Path | None = None, is_all: bool = True
) -> int:
    """Run the cases and print the differences from a record; return 1 if there are any."""
    written = json.loads(file.read_text())
    _compare_machines(written["about"])
    recorded = written["cases"]
    found, n_same = [], 0
    for case in _with_progress(cases):
        parts = parts_of(case)
        differences = _differences(case.name, recorded.get(case.name), parts, keep)
        n_same += not differences
        for difference in differences:
            print(difference, flush=True)
        found += differences
    if is_all:
        gone = sorted(recorded.keys() - {case.name for case in cases})
        found += gone
        for name in gone:
            print(f"recorded, but no longer a case: {name}")
    print(f"{n_same} of {len(cases)} cases are equal")
    return 1 if found else 0


def _differences(
    name: str, recorded: Mapping[str, str] | None, parts: Mapping[str, bytes], keep: Path | None
) -> list[str]:
    if recorded is None:
        return [f"not recorded: {name}"]
    found = [f"gone: {name}/{part}" for part in recorded if part not in parts]
    for part, content in parts.items():
        if part not in recorded:
            found.append(f"new: {name}/{part}: {_shortened(content)}")
        elif recorded[part] != _hash(content):
            found.append(f"differs: {name}/{part}" + _shown(keep, name, part, content))
    return found


def _shown(keep: Path | None, name: str, part: str, content: bytes) -> str:
    """Return the lines that differ, if the earlier contents were kept and are text."""
    if keep is None:
        return ""
    path = _path(keep, name, part)
    if not path.exists():
        return " (was not kept)"
    before = path.read_bytes()
    try:
        lines = before.decode().splitlines(), content.decode().splitlines()
    except UnicodeDecodeError:
        return f" ({len(before)} bytes before, {len(content)} now)"
    lines_of_both = list(difflib.unified_diff(*lines, "before", "now", lineterm="", n=1))
    shown = [line[:200] for line in lines_of_both[2 : 2 + _DIFFERENCE_LINES]]
    n_more = len(lines_of_both) - 2 - len(shown)
    return "\n    " + "\n    ".join([*shown, *([f"... {n_more} more lines"] if n_more > 0 else [])])


def _with_progress(cases: Sequence[Case]) -> Iterable[Case]:
    """Iterate over the cases, and print the progress on stderr."""
    begun = time.monotonic()
    for number, case in enumerate(cases):
        if number % 20 == 0:
            seconds = time.monotonic() - begun
            print(f"[{seconds:4.0f} s] {number}/{len(cases)} {case.name}", file=sys.stderr)
        yield case
    print(f"[{time.monotonic() - begun:4.0f} s] all", file=sys.stderr)


def _keep(folder: Path, name: str, parts: Mapping[str, bytes]) -> None:
    for part, content in parts.items():
        path = _path(folder, name, part)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _path(folder: Path, name: str, part: str) -> Path:
    return folder / name / part


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]


def _shortened(content: bytes) -> str:
    return content.decode(errors="replace")[:200]


def _counted(parts: Iterable[Mapping[str, str]]) -> str:
    return f"{sum(len(each) for each in parts)} hashes"


def _about() -> dict[str, str]:
    return {"python": platform.python_version(), "machine": platform.machine()} | {
        name: _version(name) for name in _LIBRARIES
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _compare_machines(recorded: Mapping[str, str]) -> None:
    for name, now in _about().items():
        if recorded.get(name) != now:
            print(f"note: recorded with {name} {recorded.get(name)}, now {now}")
