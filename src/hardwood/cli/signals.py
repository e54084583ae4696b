"""What the system sends: Ctrl-C around learning, and standard streams that can be written to.

The first Ctrl-C ends learning, and no other loses the tree before it is written.
"""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ESCAPE = "hardwood.escape"


@contextmanager
def interrupts_as_before() -> Iterator[None]:
    """Give Ctrl-C back the effect that it had, when the context ends."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


@contextmanager
def first_interrupt_only() -> Iterator[None]:
    """Let one Ctrl-C raise KeyboardInterrupt in the context; ignore others, also after it.

    `interrupts_as_before`, around it, says how long after it. Nothing changes outside the main
    thread, which alone hears of signals, nor where Ctrl-C does not raise KeyboardInterrupt to
    begin with (a job in the background, a program with a handler of its own).
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
    """Replace closed standard streams by the null device, and let narrow encodings escape.

    A stream may be closed (``>&-``, a service without a terminal) or its encoding may lack a
    character of a name (``PYTHONIOENCODING=ascii``): no reason to fail, least of all after
    learning.
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
    """Open the null device as ``descriptor``; otherwise the next file would be given its number."""
    null = os.open(os.devnull, os.O_RDWR)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)


def _escape(error: UnicodeError) -> tuple[str, int]:
    r"""Write what an encoding lacks as JSON does (``\u00e9``), so that JSON stays JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    units = lacking.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4)), error.end
