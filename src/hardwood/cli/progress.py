"""A progress bar over the epochs of learning, on stderr, which also sees Ctrl-C."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@contextmanager
def epoch_bar(description: str) -> Iterator[Callable[[Any], bool]]:
    """Show a bar while the context lasts; yield the callback that moves it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("epoch {task.completed} of {task.total}"),
        TextColumn("{task.fields[loss]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=False) as progress:
        bar = progress.add_task(description, total=None, loss="")

        def on_epoch(epoch: Any) -> bool:
            name = f"{description}, tree {epoch.restart + 1}" if epoch.restart else description
            progress.update(
                bar,
                description=name,
                completed=epoch.epoch + 1,
                total=epoch.max_epochs,
                loss=_loss_words(epoch),
            )
            return False

        yield on_epoch


def _loss_words(epoch: Any) -> str:
    words = f"loss {epoch.train_loss:.4g}"
    if epoch.validation_loss is not None and math.isfinite(epoch.validation_loss):
        words += f", validation {epoch.validation_loss:.4g}"
    return words
