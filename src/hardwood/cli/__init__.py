"""The `hardwood` command, which needs the packages of the ``cli`` extra."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from hardwood.errors import MissingExtraError

_NEEDED = ("typer", "rich", "pyarrow")


def main() -> None:
    """Run the command line and exit with its exit code (see `hardwood --help`)."""
    try:
        _check_extras()
    except MissingExtraError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    from hardwood.cli.app import app

    app()


def _check_extras() -> None:
    for package in _NEEDED:
        if find_spec(package) is None:
            raise MissingExtraError(package, extra="cli", purpose="The hardwood command")
