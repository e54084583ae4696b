"""Ctrl-C: the process ends with exit code 130, at once or after its best model is written.

Python turns Ctrl-C into a KeyboardInterrupt wherever the program happens to be. Within an import, a
finalizer or the callback of a weak reference that exception is lost, or becomes another one. So
Ctrl-C ends the process right in its handler (`end_at_interrupts`). Only a command that has
something to keep gets one KeyboardInterrupt (`first_interrupt_only`).
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130

_MESSAGE = b"error: interrupted; no file was left half-written\n"
_ERASE_LINE = b"\r\x1b[K"  # there may be a line of progress
_SOON = 0.02  # seconds


def end_at_interrupts(clean_up: Callable[[], None] | None = None) -> None:
    """Let Ctrl-C end the process from here on, after ``clean_up``.

    Does nothing if Ctrl-C is ignored (a background job) or handled by another program.
    """
    known = signal.getsignal(signal.SIGINT)
    if known is signal.default_int_handler or isinstance(known, _End):
        signal.signal(signal.SIGINT, _End(clean_up))


class _End:
    """The handler that ends the process."""

    def __init__(self, clean_up: Callable[[], None] | None) -> None:
        self._clean_up = clean_up

    def __call__(self, number: int, frame: FrameType | None) -> None:
        try:
            if self._clean_up is not None:
                self._clean_up()
            if sys.stderr is not None:
                erase = _ERASE_LINE if sys.stderr.isatty() else b""
                # Not by the stream, which may be writing just now.
                os.write(sys.stderr.fileno(), erase + _MESSAGE)
        finally:
            os._exit(INTERRUPTED)


class _Hear:
    """The handler of a command that has something to keep.

    Attributes
    ----------
    is_raising
        Whether the next Ctrl-C raises KeyboardInterrupt.
    n_heard
        How many there were.
    n_before
        How many of them came before the part of the command that may be interrupted.
    """

    def __init__(self) -> None:
        self.is_raising = False
        self.n_heard = self.n_before = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.is_raising and _is_importing(frame):
            _thread.start_new_thread(_interrupt_soon, ())
            return
        self.n_heard += 1
        if self.is_raising:
            self.is_raising = False
            raise KeyboardInterrupt


_hear = _Hear()


def was_interrupted() -> bool:
    """Whether Ctrl-C came since the last `first_interrupt_only` began."""
    return _hear.n_heard > _hear.n_before


@contextmanager
def first_interrupt_only() -> Iterator[None]:
    """Let the first Ctrl-C raise KeyboardInterrupt in the context.

    Later ones, and those between the context and the end of `interrupts_of_command`, are only
    noted. Does nothing outside the main thread, which alone receives signals, or if Ctrl-C is
    ignored or handled by another program.
    """
    known = signal.getsignal(signal.SIGINT)
    is_ours = known is signal.default_int_handler or isinstance(known, _End | _Hear)
    if is_ours and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _hear)
        _hear.n_before = _hear.n_heard
        _hear.is_raising = True
    try:
        yield
    finally:
        _hear.is_raising = False


@contextmanager
def interrupts_of_command() -> Iterator[None]:
    """Restore the handler of Ctrl-C when the context ends.

    Raises
    ------
    KeyboardInterrupt
        At a regular end, if Ctrl-C was noted and the command has not ended because of it.
    """
    before, n_before = signal.getsignal(signal.SIGINT), _hear.n_heard
    try:
        yield
        if _hear.n_heard > n_before:
            raise KeyboardInterrupt("interrupted when the work was nearly done; it was finished")
    finally:
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether an exception could be lost in an import, or become an ImportError."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


def _interrupt_soon() -> None:
    time.sleep(_SOON)
    _thread.interrupt_main()
