"""Ctrl-C at the right moment: held while code runs that it would leave half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class InterruptGate:
    """Holds Ctrl-C while Optuna keeps its books, and lets it through while a trial is computed.

    Interrupted at the wrong moment, Optuna leaves a trial half written, or a heartbeat thread that
    keeps the process from ever ending. Does nothing outside the main thread, which alone receives
    signals.
    """

    def __init__(self) -> None:
        self._before: Any = None
        self._is_held = False

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Hold Ctrl-C in the context; deliver it at the end."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or not callable(signal.getsignal(signal.SIGINT)):
            yield
            return
        self._before = signal.signal(signal.SIGINT, self._hold)
        try:
            yield
        finally:
            self._restore()
            self._before = None
            self._deliver()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let Ctrl-C through in the context, within `closed`."""
        if self._before is None or threading.current_thread() is not threading.main_thread():
            yield
            return
        self._restore()
        try:
            self._deliver()
            yield
        finally:
            signal.signal(signal.SIGINT, self._hold)

    def _hold(self, number: int, frame: Any) -> None:
        self._is_held = True

    def _restore(self) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _deliver(self) -> None:
        if self._is_held:
            self._is_held = False
            signal.raise_signal(signal.SIGINT)
