"""Ctrl-C during work that consists of many fits or many parts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from hardwood.errors import FitInterruptedWarning


@contextmanager
def all_or_interrupt() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt.

    A learner alone keeps what it has by then and warns; of many, the next would only go on.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitInterruptedWarning)
        try:
            yield
        except FitInterruptedWarning:
            raise KeyboardInterrupt from None
