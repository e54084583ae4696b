"""One line that says what is going on, for those who watch; it vanishes at the end.

It is shown in a terminal, on stderr, and in a notebook; not where output is a pipe or a file, and
not in worker processes and threads. HARDWOOD_PROGRESS=0 in the environment turns it off;
HARDWOOD_PROGRESS=1 shows it on stderr, whatever that is. Nothing runs in the background: the line
is drawn when a learner says what it does.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

_DELAY = 0.5  # seconds before the line appears: what is quick needs none
_INTERVAL = 0.1  # seconds between two drawings


class Progress:
    """What is going on, as one line that is shown within this context.

    There is one line at a time: within the context of another one, nothing more is shown.

    Parameters
    ----------
    title
        What is done, such as the name of an estimator.
    time_left
        Returns the seconds that are left at most. None, or infinity: the time left is estimated
        from the share that is done.
    stream
        Where to show it, such as `watched_stream()`; None for nowhere.
    """

    _in_use = False  # by any line of this process

    def __init__(
        self,
        title: str = "",
        time_left: Callable[[], float] | None = None,
        stream: TextIO | None = None,
    ) -> None:
        self._title = title
        self._time_left = time_left
        self._target = stream
        self._stream: TextIO | None = None  # within the context
        self._now = self._best = ""
        self._share = 0.0
        self._begun, self._drawn_at = 0.0, -math.inf
        self._width = 0  # of what is on the screen

    def __enter__(self) -> Progress:
        self._stream = None if Progress._in_use else self._target
        if self._stream is not None:
            Progress._in_use = True
            self._begun = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self.erase()
            self._stream, Progress._in_use = None, False

    def update(
        self, now: str | None = None, *, best: str | None = None, share: float | None = None
    ) -> None:
        """Say what is new, and draw the line unless it was drawn just before.

        Parameters
        ----------
        now
            What is done now.
        best
            The best result so far.
        share
            The share of everything that is done, from 0 to 1.
        """
        if self._stream is None:
            return
        self._now = self._now if now is None else now
        self._best = self._best if best is None else best
        self._share = self._share if share is None else share
        at = time.monotonic()
        if at - self._begun >= _DELAY and at - self._drawn_at >= _INTERVAL:
            self._drawn_at = at
            self._draw(self._text(at))

    def erase(self) -> None:
        """Take the line away, until the next update."""
        if self._stream is not None and self._width:
            self._draw("")
            self._drawn_at = -math.inf

    def _text(self, at: float) -> str:
        left = math.inf if self._time_left is None else self._time_left()
        if math.isinf(left) and self._share > 0:
            left = (at - self._begun) * (1 / self._share - 1)
        seconds = "" if math.isinf(left) else f"{max(left, 0.0):.0f} s left"
        parts = " | ".join(filter(None, (seconds, self._best, self._now)))  # the end may not fit
        return f"{self._title}: {parts}" if self._title else parts

    def _draw(self, text: str) -> None:
        """Replace what is on the screen; a stream that fails shows nothing more."""
        assert self._stream is not None
        text = text[: shutil.get_terminal_size().columns - 1]  # a full line would wrap
        encoding = getattr(self._stream, "encoding", None) or "ascii"
        shown = text.encode(encoding, "replace").decode(encoding)
        try:
            self._stream.write("\r" + shown.ljust(self._width) + ("" if text else "\r"))
            self._stream.flush()
        except (OSError, ValueError):  # a terminal that was closed is no reason to end a fit
            self._stream, Progress._in_use = None, False
        self._width = len(shown)


def watched_stream() -> TextIO | None:
    """Return the stream that somebody watches: a terminal or the output of a notebook's cell."""
    is_worker = (
        threading.current_thread() is not threading.main_thread()
        or multiprocessing.current_process().name != "MainProcess"
    )
    wish = os.environ.get("HARDWOOD_PROGRESS")
    if is_worker or wish == "0":
        return None
    if _is_in_notebook():
        return sys.stdout  # what is on stderr looks like an error there
    stream: TextIO | None = sys.stderr  # None without a console
    is_terminal = stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    return stream if is_terminal or wish == "1" else None


def _is_in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")
