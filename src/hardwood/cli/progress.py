"""Progress bars on stderr: over the epochs of learning, and over the trees of a search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hardwood.text.numbers import plural


@contextmanager
def epoch_bar(n_restarts: int | None) -> Iterator[Callable[[Any], bool]]:
    """Show a bar while the context lasts; yield the callback that moves it.

    The bar counts the epochs of all trees (one per restart), which may be learned at the same time,
    or of those begun so far where ``n_restarts`` is None. A tree that stops early leaves its
    remaining epochs undone; the bar jumps to its end with the context's.
    """
    epochs_done: dict[int, int] = {}
    with _learning() as progress:
        bar = progress.add_task("", total=None)

        def on_epoch(epoch: Any) -> bool:
            epochs_done[epoch.restart] = epoch.epoch + 1
            progress.update(
                bar,
                description=_words(epoch, n_restarts),
                completed=sum(epochs_done.values()),
                total=(n_restarts or len(epochs_done)) * epoch.max_epochs,
            )
            return False

        yield on_epoch
        progress.update(bar, completed=progress.tasks[0].total)


@contextmanager
def tree_bar(max_trials: int | None) -> Iterator[Callable[[Any], bool]]:
    """Show a bar over the trees that a search tries; yield the callback that moves it."""
    best = math.nan
    with _learning() as progress:
        bar = progress.add_task("", total=max_trials)

        def on_trial(trial: Any) -> bool:
            nonlocal best
            best = trial.validation_score if trial.outcome == "best so far" else best
            words = f"{plural(trial.number, 'tree')} tried, the best scores {best:.4g}"
            progress.update(bar, description=words, completed=trial.number)
            return False

        yield on_trial
        progress.update(bar, total=progress.tasks[0].completed)


def _learning() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("Learning"),
        BarColumn(bar_width=20),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=Console(stderr=True))


def _words(epoch: Any, n_restarts: int | None) -> str:
    tree = ""
    if n_restarts != 1:
        of_all = "" if n_restarts is None else f" of {n_restarts}"
        tree = f"tree {epoch.restart + 1}{of_all}, "
    where = f"{tree}epoch {epoch.epoch + 1} of {epoch.max_epochs}"
    if math.isfinite(epoch.validation_loss):
        return f"{where}, validation loss {epoch.validation_loss:.4g}"
    return f"{where}, loss {epoch.train_loss:.4g}"
