"""Errors of the command line: their messages and exit codes.

Exit codes: 0 success; 1 an unexpected error, with a traceback; 2 an invalid argument, file, column
or disk, explained in a sentence; 130 interrupted by Ctrl-C; 141 the output pipe was closed (shells
use this code for other programs, too).
"""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from hardwood.cli.process.interrupts import INTERRUPTED, interrupts_of_command
from hardwood.cli.process.streams import open_standard_streams
from hardwood.errors import HardwoodError
from hardwood.text.numbers import shortened

USER_ERROR = 2
BROKEN_PIPE = 141


class CommandError(HardwoodError):
    """A command cannot run; the message says what to change."""


class Commands(TyperGroup):
    """The group of all commands, which turns expected errors into a message and an exit code."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line; standard streams may be closed or break."""
        open_standard_streams()
        try:
            return super().main(*arguments, **options)
        except SystemExit as end:
            # Both rich and typer exit like this when the output pipe is closed.
            if isinstance(end.__context__, BrokenPipeError):
                sys.exit(BROKEN_PIPE)
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            with interrupts_of_command():
                return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the output pipe was closed (`| head`): `main` exits without a message
        except HardwoodError as error:
            _say(str(error))
        except OSError as error:
            _say(_os_words(error))
        except MemoryError as error:
            _say(f"not enough memory: {error}")
        except KeyboardInterrupt as interrupt:
            _say(str(interrupt) or "interrupted; nothing was written")
            raise typer.Exit(INTERRUPTED) from None
        raise typer.Exit(USER_ERROR)


def _say(message: str) -> None:
    typer.echo(f"error: {message}", err=True)


def _os_words(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the closest matches to ``name`` in ``known``, or an empty string."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    if not close:
        by_case = {entry.casefold(): entry for entry in known}
        close = [by_case[name.casefold()]] if name.casefold() in by_case else []
    return f" Did you mean {_either(close)}?" if close else ""


def _either(names: list[str]) -> str:
    quoted = [f"'{shortened(name)}'" for name in names]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def check_readable(path: Path, expected: str) -> None:
    """Raise CommandError unless ``path`` is a readable file; ``expected`` names its kind."""
    if path.is_dir():
        raise CommandError(f"{path} is a directory; expected {expected}.")
    if not path.exists():
        neighbors = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        hint = did_you_mean(path.name, neighbors)
        raise CommandError(f"{path} does not exist; expected {expected}.{hint}")
    try:
        with path.open("rb"):
            return
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error


@contextmanager
def data_errors() -> Iterator[None]:
    """Turn the ValueError of an estimator into a CommandError."""
    try:
        yield
    except HardwoodError:
        raise
    except ValueError as error:
        raise CommandError(str(error)) from error


@contextmanager
def naming_the_file(path: Path) -> Iterator[None]:
    """Turn an OSError while writing ``path`` (a full disk, a lost folder) into a CommandError."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise CommandError(f"{path} cannot be written: {reason}. Nothing was changed.") from error


def check_writable(path: Path, inputs: Iterable[Path] = (), option: str = "--output") -> None:
    """Raise CommandError if ``path`` cannot be written or is one of the ``inputs``.

    Called before the work starts, so that a wrong folder is found in a second and not after an
    hour. ``option`` is the option that named the file.
    """
    if path.is_dir():
        raise CommandError(f"{path} is a directory; {option} needs the name of a file.")
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} is a device or pipe; {option} needs the name of a file.")
    if not path.parent.is_dir():
        raise CommandError(f"{path} cannot be written: the folder {path.parent} does not exist.")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise CommandError(f"{path} is an input of this command; choose another {option}.")
    _check_folder(path)


def _check_folder(path: Path) -> None:
    folder = Path(os.path.realpath(path)).parent  # a link is followed
    try:
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
