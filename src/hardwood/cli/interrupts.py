"""Ctrl-C around learning: the first ends it, and no other loses the tree before it is written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
