"""All tables, each in a process of its own: `python -m benchmarks [--quick]`."""

from __future__ import annotations

import argparse
import subprocess
import sys

SCRIPTS = (
    "speed.dgt_step",
    "speed.inference",
    "speed.one_row",
    "speed.gemm",
    "speed.import_time",
    "speed.memory",
    "quality.small_tables",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smoke run: minutes, not recorded")
    quick = ["--quick"] if parser.parse_args().quick else []
    status = {
        script: subprocess.run([sys.executable, "-m", f"benchmarks.{script}", *quick]).returncode
        for script in SCRIPTS
    }
    print()
    for script, code in status.items():
        print(f"{script:24}{'ok' if code == 0 else 'a floor was missed, or an error'}")
    return int(any(status.values()))


if __name__ == "__main__":
    sys.exit(main())
