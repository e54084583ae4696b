"""The `hardwood` command, which needs the packages of the ``cli`` extra."""

from __future__ import annotations

import sys

from hardwood.cli.process.interrupts import end_at_interrupts

_NEEDED = ("typer", "rich", "pyarrow")


def main() -> None:
    """Run the command line and exit with its exit code (see `hardwood --help`)."""
    end_at_interrupts()  # first of all: the imports below take a while
    _check_extras()
    from hardwood.atomic_file import remove_open_parts
    from hardwood.cli.app import app
    from hardwood.cli.process.start import process_start
    from hardwood.clock import counted_from

    end_at_interrupts(remove_open_parts)
    with counted_from(process_start()):
        app()


def _check_extras() -> None:
    from importlib.util import find_spec

    from hardwood.errors import MissingExtraError

    for package in _NEEDED:
        if find_spec(package) is None:
            error = MissingExtraError(package, extra="cli", purpose="The hardwood command")
            print(f"error: {error}", file=sys.stderr)
            sys.exit(2)
