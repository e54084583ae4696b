"""The call of the native training loop, for all learners that use gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hardwood.learn.learner import Learner, Run
from hardwood.learn.task import Task
from hardwood.learn.training import LARGEST, Epoch, Training, epochs_for
from hardwood.parameters import integer_field, object_field, real_field, switch_field

# Far larger than any sensible parameters if the start and the targets are about 1.
_HUGE = 1e15


@dataclass(frozen=True)
class GradientLearner(Learner):
    """A learner that uses the native training loop; subclasses have other defaults."""

    learning_rate: Any = real_field(0.01, 0, LARGEST, open_low=True)
    batch_size: int = integer_field(128, 1, None)
    max_epochs: int | Literal["auto"] = integer_field("auto", 1, or_auto=True)
    early_stopping: bool | str = switch_field()
    training: Training = object_field(Training(), named="hardwood.learn.Training")

    def loop_options(
        self,
        task: Task,
        *,
        learning_rate: float | None = None,
        momentum: float | None = None,
        l1: float = 0.0,
        l2: float = 0.0,
        noise: float = 0.0,
    ) -> dict[str, Any]:
        """Return the options of the training loop, for the engine."""
        n_rows = len(task.train)
        return self.training.engine_options(
            learning_rate=self.learning_rate if learning_rate is None else learning_rate,
            momentum=momentum,
            batch_size=min(self.batch_size, n_rows),
            max_epochs=epochs_for(self.max_epochs, n_rows, self.batch_size),
            l1=l1,
            l2=l2,
            noise=noise,
            stops_early=self.keeps_best(task),
        )


@dataclass(frozen=True)
class EngineRuns:
    """The result of the engine.

    Attributes
    ----------
    trees
        Arrays and numbers of each run that was kept, by name.
    histories
        One record per epoch, for each run.
    best_run
        The run with the smallest loss.
    interrupted
        Whether the user interrupted it.
    """

    trees: list[dict[str, Any]]
    histories: list[tuple[Epoch, ...]]
    best_run: int
    interrupted: bool

    @property
    def history(self) -> tuple[Epoch, ...]:
        """All epochs, run by run."""
        return sum(self.histories, ())


def run_engine(
    method: str,
    task: Task,
    options: Mapping[str, Any],
    run: Run,
    *,
    n_outputs: int | None = None,
    start: Any = None,
    first_run: int = 0,
    n_runs: int = 1,
    n_draws: int | None = None,
    keep_all: bool = False,
) -> EngineRuns:
    """Learn from several starts in parallel, in mini-batches.

    Parameters
    ----------
    method
        "dgt", "semantic", "tel", "non_greedy" or "reinforced".
    task, run
        The task, and the settings of the run. Threads share the runs.
    options
        Options of the training loop and of the method, with the engine's names.
    n_outputs
        Number of scores per leaf; None for that of the task.
    start
        Arrays to start from, in the units of the task; None for a random start.
    first_run
        Number of the first run, which determines its random numbers.
    n_runs
        Number of runs.
    n_draws
        Number of rows drawn with replacement for each run; None for all rows, each once.
    keep_all
        Whether to keep all runs instead of only the best.
    """
    from hardwood import _native

    max_epochs = options["max_epochs"]
    answer = _native.fit(
        method,
        task.schema.encoder,
        task.matrix,
        task.y,
        task.weight,
        task.train,
        task.valid,
        n_outputs=task.n_outputs if n_outputs is None else n_outputs,
        loss=task.loss.name,
        loss_parameter=task.loss.parameter,
        custom=task.loss if task.loss.name == "custom" else None,
        start=start,
        first_run=first_run,
        n_runs=n_runs,
        n_draws=n_draws,
        keep_all=keep_all,
        seed=run.seed,
        n_threads=run.n_jobs,
        callback=_engine_callback(run, max_epochs),
        options=dict(options),
    )
    bound = _HUGE * max(1.0, _largest(task.y), *(_largest(part) for part in start or ()))
    for tree in answer["trees"]:
        _check_below(bound, tree)
    histories = [
        tuple(Epoch(number, epoch, max_epochs, *figures) for number, epoch, *figures in history)
        for history in answer["history"]
    ]
    return EngineRuns(answer["trees"], histories, answer["best_run"], answer["interrupted"])


def _engine_callback(run: Run, max_epochs: int) -> Any:
    """Return one function that calls all callbacks, for the engine; None if there are none."""
    if not run.callbacks:
        return None

    def on_epoch(number: int, epoch: int, *figures: float) -> bool:
        return run.notify(Epoch(number, epoch, max_epochs, *figures))

    return on_epoch


def _largest(part: Any) -> float:
    """Return the largest magnitude in an array of numbers; 0 for anything else."""
    is_array = isinstance(part, np.ndarray) and part.size
    return float(np.abs(part).max()) if is_array else 0.0


def _check_below(bound: float, tree: dict[str, Any]) -> None:
    arrays = [part for part in tree.values() if isinstance(part, np.ndarray)]
    if not all((np.abs(array) < bound).all() for array in arrays):
        raise ValueError(
            "Learning diverged: weights became huge. Lower learning_rate, l1, l2 or the range of "
            "sample_weight; with init, use a tree learned from targets and columns of about the "
            "same size."
        )
