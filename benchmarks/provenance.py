"""What a measured figure depends on: the commit, the versions, and the machine with its load."""

from __future__ import annotations

import datetime
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

Provenance = dict[str, Any]

_ROOT = Path(__file__).resolve().parent.parent
# Everything that a figure depends on. Results, docs and README.md are not: to record one result
# must not make the next one that of a changed checkout.
_SOURCES = ("src", "native", "benchmarks", "CMakeLists.txt", "pyproject.toml", "constraints.txt")
_NOT_SOURCES = ":!benchmarks/results"
_PACKAGES = (
    "hardwood",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "torch",
    "triton",
    "lightgbm",
    "xgboost",
    "xgboost-cpu",  # XGBoost without GPUs
    "interpret-core",
    "imodels",
    "onnxruntime",
    "skl2onnx",
    "vowpalwabbit",
    "contextualbandits",
)
_LOAD_AT_START = [round(load, 2) for load in os.getloadavg()]  # this module is imported first
# A machine is quiet when other programs keep at most half of its cores busy.
_QUIET_LOAD_PER_CORE = 0.5


def provenance(
    *, title: str | None = None, settings: dict[str, Any] | None = None, device: str | None = None
) -> Provenance:
    """Return where and how a result is measured now.

    Parameters
    ----------
    title
        What is measured, in a sentence.
    settings
        Options of the experiment.
    device
        The accelerator, where one is used.
    """
    return {
        **_unchanging(),
        "device": device,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "title": title,
        "settings": settings or None,
    }


def is_clean(found: Provenance) -> bool:
    """Return whether the sources were those of the commit; an unknown state counts as changed."""
    return found["is_clean"] is True


def is_quiet(found: Provenance) -> bool:
    """Return whether the machine was idle at the start; an unknown load counts as busy."""
    load, cores = found["load_at_start"], found["cores"]
    return load is not None and bool(cores) and load[0] <= _QUIET_LOAD_PER_CORE * cores


@cache
def _unchanging() -> Provenance:
    """Return what stays the same while a process runs; the first call fixes the commit."""
    return {
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "is_clean": _sources_are_committed(),
        "versions": {"python": platform.python_version()}
        | {name: version for name in _PACKAGES if (version := _version(name))},
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}, {' '.join(platform.libc_ver())}",
        "instruction_set": _instruction_set(),
        "load_at_start": _LOAD_AT_START,
    }


def _sources_are_committed() -> bool | None:
    """Return whether all sources are as in the commit; None outside a checkout."""
    changed = _git("status", "--porcelain", "--", *_SOURCES, _NOT_SOURCES)
    if changed is None:
        return None
    return not changed and _runs_these_sources() and engine_is_current(_engine(), _ROOT / "native")


def _runs_these_sources() -> bool:
    """Return whether the imported package, maybe a copy, has the Python files of this checkout."""
    package = importlib.util.find_spec("hardwood")
    if package is None or package.origin is None:
        return False
    imported, own = Path(package.origin).parent, _ROOT / "src" / "hardwood"
    return imported == own or all(
        (imported / path.relative_to(own)).exists()
        and (imported / path.relative_to(own)).read_bytes() == path.read_bytes()
        for path in own.rglob("*.py")
    )


def engine_is_current(engine: Path | None, sources: Path) -> bool:
    """Return whether the engine was built after its last source changed; True without an engine."""
    if engine is None:
        return True
    built = engine.stat().st_mtime
    return all(path.stat().st_mtime <= built for path in sources.rglob("*") if path.is_file())


def _engine() -> Path | None:
    """Return the imported engine, which layers of torch do not need."""
    native = _imported("hardwood._native")
    return None if native is None else Path(native.__file__)


def _git(*arguments: str) -> str | None:
    try:
        command = ["git", "-C", str(_ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _version(name: str) -> str | None:
    if name == "hardwood":  # also where it is on the path without being installed
        return str(getattr(_imported("hardwood"), "__version__", None) or "") or None
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def _instruction_set() -> str | None:
    native = _imported("hardwood._native")
    return None if native is None else native.instruction_set()


def _imported(name: str) -> Any:
    """Import a module; None where the engine is not built, which torch layers do not need."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
