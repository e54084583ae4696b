"""How much time a fit has left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from hardwood.learn.training import Epoch


class Clock:
    """Counts from when it is made; without a limit, which is infinity, there is always time.

    Parameters
    ----------
    limit
        Seconds that a fit may take; None for no limit.
    now
        What tells the time, in seconds; tests have one that they move.
    """

    def __init__(self, limit: float | None, now: Callable[[], float] | None = None) -> None:
        self.limit = math.inf if limit is None else limit
        self._now = time.monotonic if now is None else now
        self._begun = self._now()

    @property
    def left(self) -> float:
        """Seconds until there is no time left; below 0 after that."""
        return self.limit - self.spent

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return self._now() - self._begun

    def is_past(self) -> bool:
        """Whether there is no time left."""
        return self.spent > self.limit

    def has(self, seconds: float) -> bool:
        """Whether there is time for something that takes so long."""
        return self.spent + seconds <= self.limit


class Stop:
    """A callback that ends a run when there is no time for another pass as long as the last."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock.spent

    def __call__(self, epoch: Epoch) -> bool:
        """Say whether to stop after this pass."""
        before, self._last = self._last, self._clock.spent
        return not self._clock.has(self._last - before)


class Whole:
    """A callback that ends a run as soon as it is seen not to be finished in time.

    For learners whose steps grow smaller to the end: a run that is cut short is worth little.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun = clock.spent
        self.is_cut_off = False

    def __call__(self, epoch: Epoch) -> bool:
        """Say whether to stop after this pass."""
        done = epoch.epoch + 1
        left = (self._clock.spent - self._begun) / done * (epoch.max_epochs - done)
        self.is_cut_off = not self._clock.has(left)
        return self.is_cut_off
