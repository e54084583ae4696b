"""What `verbose` prints while a tree is learned."""

from __future__ import annotations

import math

from hardwood.learn.training import Callback, Epoch

_LINES = 20


def printer(verbose: int, run: str = "restart") -> Callback:
    """Return a callback that prints about 20 lines per run, or for verbose > 1 every epoch.

    `run` is what one is called: "restart", or "tree" in a forest.
    """

    def report(epoch: Epoch) -> None:
        every = 1 if verbose > 1 else max(1, epoch.max_epochs // _LINES)
        if epoch.epoch % every == 0 or epoch.epoch == epoch.max_epochs - 1:
            print(line(epoch, run), flush=True)

    return report


def line(epoch: Epoch, run: str = "restart") -> str:
    """One epoch in words, with what is known of it."""
    parts = [f"{run} {epoch.restart}", f"epoch {epoch.epoch + 1}/{epoch.max_epochs}"]
    if not math.isnan(epoch.train_loss):
        parts.append(f"training loss {epoch.train_loss:.5g}")
    if not math.isnan(epoch.validation_loss):
        parts.append(f"validation loss {epoch.validation_loss:.5g}")
    return "  ".join(parts)
