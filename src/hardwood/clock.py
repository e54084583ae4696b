"""The time that a fit has left, and callbacks that stop a learner in time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hardwood.learn.training import Epoch

_earlier: ContextVar[float | None] = ContextVar("_earlier", default=None)


@contextmanager
def counted_from(begun: float) -> Iterator[None]:
    """Let the first limited work in the context begin at an earlier time, by `time.monotonic`.

    So the time limit of a command includes the time that Python took to start and import.
    """
    token = _earlier.set(begun)
    try:
        yield
    finally:
        _earlier.reset(token)


def beginning() -> float:
    """Return when limited work begins, by `time.monotonic`: now, or as `counted_from` says."""
    earlier = _earlier.get()
    _earlier.set(None)  # work within this work begins later
    return time.monotonic() if earlier is None else earlier


class Clock:
    """A stopwatch with a time limit.

    Parameters
    ----------
    limit
        Seconds that a fit may take; None for no limit (`limit` is then infinite).
    now
        Returns the current time in seconds; tests pass a fake clock.
    begun
        When it starts; None for when it is created.
    """

    def __init__(
        self,
        limit: float | None,
        now: Callable[[], float] | None = None,
        begun: float | None = None,
    ) -> None:
        self.limit = math.inf if limit is None else limit
        self._now = time.monotonic if now is None else now
        self._begun = self._now() if begun is None else begun

    def part(self, share: float) -> Clock:
        """Return a clock for work that may take this share of the time that is left."""
        limit = self.limit if math.isinf(self.limit) else self.spent + share * max(self.left, 0.0)
        return Clock(limit, self._now, self._begun)

    @property
    def left(self) -> float:
        """Seconds until the limit; negative after it."""
        return self.limit - self.spent

    @property
    def spent(self) -> float:
        """Seconds since the clock started."""
        return self._now() - self._begun

    def is_past(self) -> bool:
        """Whether the limit has passed."""
        return self.spent > self.limit

    def has(self, seconds: float) -> bool:
        """Whether this many more seconds fit within the limit."""
        return self.spent + seconds <= self.limit


class StopAtDeadline:
    """A callback that stops a run when another epoch as long as the last would be too late."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock.spent

    def __call__(self, epoch: Epoch) -> bool:
        """Return whether to stop after this epoch."""
        before, self._last = self._last, self._clock.spent
        return not self._clock.has(self._last - before)


class FinishOrSkip:
    """A callback that stops a run as soon as it is clear that it will not finish in time.

    For learners whose step size decays to the end: an unfinished run is worth little.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun = clock.spent
        self.is_skipped = False

    def __call__(self, epoch: Epoch) -> bool:
        """Return whether to stop after this epoch."""
        done = epoch.epoch + 1
        left = (self._clock.spent - self._begun) / done * (epoch.max_epochs - done)
        self.is_skipped = not self._clock.has(left)
        return self.is_skipped
