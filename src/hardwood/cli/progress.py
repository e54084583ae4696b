"""The progress bar on stderr, and the callbacks that move it while a model is learned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from hardwood.cli.process.interrupts import was_interrupted
from hardwood.text.numbers import plural


class MoveBar(Protocol):
    """Move the bar: what is going on, how much is done, and the total, if known."""

    def __call__(self, words: str, done: float, total: float | None = None) -> None: ...


@contextmanager
def progress_bar(title: str, total: float | None = None, done: int = 0) -> Iterator[MoveBar]:
    """Show a bar while the context lasts; yield the function that moves it.

    The bar jumps to its end when the context ends, because work may end early.
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


def epoch_callback(move: MoveBar, n_runs: int | None) -> Callable[[Any], bool]:
    """Return the callback of a learner, which counts the epochs of all its runs.

    Runs are the restarts of a tree or the trees of a forest, and may run in parallel. If ``n_runs``
    is None, only the runs that have started are counted. A run ends after Ctrl-C, should the
    learner not have heard of it.
    """
    epochs_done: dict[int, int] = {}

    def on_epoch(epoch: Any) -> bool:
        epochs_done[epoch.restart] = epoch.epoch + 1
        total = (n_runs or len(epochs_done)) * epoch.max_epochs
        move(epoch_words(epoch, n_runs), sum(epochs_done.values()), total)
        return was_interrupted()

    return on_epoch


def epoch_words(epoch: Any, n_runs: int | None) -> str:
    """Describe an epoch of a run, with its loss."""
    run = ""
    if n_runs != 1:
        of_all = "" if n_runs is None else f" of {n_runs}"
        run = f"run {epoch.restart + 1}{of_all}, "
    where = f"{run}epoch {epoch.epoch + 1} of {epoch.max_epochs}"
    if math.isfinite(epoch.validation_loss):
        return f"{where}, validation loss {epoch.validation_loss:.4g}"
    return f"{where}, loss {epoch.train_loss:.4g}"


def search_callback(move: MoveBar) -> Callable[[Any], bool]:
    """Return the callback of the search for the best tree, which counts the candidates.

    The search ends after Ctrl-C, should it not have heard of it.
    """
    best = math.nan

    def on_trial(trial: Any) -> bool:
        nonlocal best
        best = trial.validation_score if trial.outcome == "best so far" else best
        words = f"{plural(trial.number, 'candidate')}, best score {best:.4g}"
        move(words, trial.number)
        return was_interrupted()

    return on_trial
