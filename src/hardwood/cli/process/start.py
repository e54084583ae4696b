"""When the process started, which is when the time limit of a command begins."""

from __future__ import annotations

import os
import time
from pathlib import Path

_IMPORTED = time.monotonic()
_STAT = Path("/proc/self/stat")
_START_TIME = 22  # the field of it that has the start, in ticks since the boot


def process_start() -> float:
    """Return when the process was created, by `time.monotonic`.

    Where the system does not say, when this module was imported.
    """
    if not _STAT.exists() or not hasattr(time, "CLOCK_BOOTTIME"):
        return _IMPORTED
    fields = _STAT.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    started = int(fields[_START_TIME - 3]) / os.sysconf("SC_CLK_TCK")  # the first two are cut off
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    return time.monotonic() - max(age, 0.0)
