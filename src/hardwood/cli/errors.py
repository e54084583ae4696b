"""Errors of the command line: their messages and exit codes.

Exit codes: 0 success; 1 an unexpected error, with a traceback; 2 an invalid argument, file, column
or disk, explained in a sentence; 130 interrupted by Ctrl-C; 141 the output pipe was closed (shells
use this code for other programs, too).

Signals and standard streams are handled here, too. The first Ctrl-C stops learning; later ones are
ignored until the model is written. Closed standard streams are replaced by the null device.
"""

from __future__ import annotations

import codecs
import difflib
import io
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup

from hardwood.errors import HardwoodError
from hardwood.text.numbers import shortened

USER_ERROR = 2
INTERRUPTED = 130
BROKEN_PIPE = 141

_ESCAPE = "hardwood.escape"


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
            with interrupts_as_before():
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


# --- Ctrl-C and standard streams --------------------------------------------------------------


@contextmanager
def interrupts_as_before() -> Iterator[None]:
    """Restore the handler of Ctrl-C when the context ends."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


@contextmanager
def first_interrupt_only() -> Iterator[None]:
    """Let the first Ctrl-C raise KeyboardInterrupt in the context, and ignore later ones.

    Later ones are ignored until the surrounding `interrupts_as_before` ends. Does nothing outside
    the main thread, which alone receives signals, or if Ctrl-C does not raise KeyboardInterrupt
    anyway (a background job, a program with a handler of its own).
    """
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt_once)
    yield
    _ignore_from_here_on()


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    _ignore_from_here_on()
    raise KeyboardInterrupt


def _ignore_from_here_on() -> None:
    if signal.getsignal(signal.SIGINT) is _interrupt_once:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def open_standard_streams() -> None:
    """Replace closed standard streams by the null device, and escape unencodable characters.

    A stream may be closed (``>&-``, a service without a terminal), or its encoding may lack a
    character of a name (``PYTHONIOENCODING=ascii``). Neither should make a command fail, above all
    not after learning.
    """
    codecs.register_error(_ESCAPE, _escape)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _occupy(descriptor)
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors=_ESCAPE)


def _occupy(descriptor: int) -> None:
    """Open the null device as ``descriptor``, so that no other file gets its number."""
    null = os.open(os.devnull, os.O_RDWR)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)


def _escape(error: UnicodeError) -> tuple[str, int]:
    r"""Escape characters that an encoding lacks as JSON does (``\u00e9``), so JSON stays valid."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    units = lacking.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4)), error.end
