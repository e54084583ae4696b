"""The progress bar on stderr, and what moves it while trees are learned or searched for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from hardwood.text.numbers import plural


class MoveBar(Protocol):
    """Moves a bar: what is going on, how much of it is done, and how much there is, if known."""

    def __call__(self, words: str, done: float, total: float | None = None) -> None: ...


@contextmanager
def progress_bar(title: str, total: float | None = None, done: int = 0) -> Iterator[MoveBar]:
    """Show a bar while the context lasts; yield what moves it.

    Work that turns out not to be needed is left undone: the bar jumps to its end with the
    context's.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(title),
        BarColumn(bar_width=20),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=total, completed=done)

        def move(words: str, done: float, total: float | None = None) -> None:
            progress.update(bar, description=words, completed=done, total=total)

        yield move
        shown = progress.tasks[0]
        end = shown.completed if shown.total is None else shown.total
        progress.update(bar, completed=end, total=end)


def epoch_callback(move: MoveBar, n_restarts: int | None) -> Callable[[Any], bool]:
    """Return the callback of a learner that counts the epochs of all trees.

    There is one tree per restart, and they may be learned at the same time. Where ``n_restarts`` is
    None, those begun so far are counted.
    """
    epochs_done: dict[int, int] = {}

    def on_epoch(epoch: Any) -> bool:
        epochs_done[epoch.restart] = epoch.epoch + 1
        total = (n_restarts or len(epochs_done)) * epoch.max_epochs
        move(epoch_words(epoch, n_restarts), sum(epochs_done.values()), total)
        return False

    return on_epoch


def epoch_words(epoch: Any, n_restarts: int | None) -> str:
    """Say which epoch of which tree is over, with its loss."""
    tree = ""
    if n_restarts != 1:
        of_all = "" if n_restarts is None else f" of {n_restarts}"
        tree = f"tree {epoch.restart + 1}{of_all}, "
    where = f"{tree}epoch {epoch.epoch + 1} of {epoch.max_epochs}"
    if math.isfinite(epoch.validation_loss):
        return f"{where}, validation loss {epoch.validation_loss:.4g}"
    return f"{where}, loss {epoch.train_loss:.4g}"


def search_callback(move: MoveBar) -> Callable[[Any], bool]:
    """Return the callback of the best-tree search, which counts the trees that were tried."""
    best = math.nan

    def on_trial(trial: Any) -> bool:
        nonlocal best
        best = trial.validation_score if trial.outcome == "best so far" else best
        words = f"{plural(trial.number, 'tree')} tried, the best scores {best:.4g}"
        move(words, trial.number)
        return False

    return on_trial
