"""The interface of all learners: frozen hyperparameters with a method `fit` that returns a model.

A learner is a frozen dataclass. Its fields are the parameters that users set, and each checks its
own range. `Task` is what to learn, `Run` how to run, and `Learned` is the result. Code that uses
other learners (a forest, a refinement, the search for the best tree) relies only on this interface.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from hardwood.clock import Clock
from hardwood.learn.losses import GRADIENT_LOSSES, Loss, loss_of
from hardwood.learn.training import epoch_follower, epoch_printer
from hardwood.model.structure import TaskKind
from hardwood.parameters import Parameters, is_auto
from hardwood.progress import Progress
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from hardwood.learn.task import Task
    from hardwood.learn.training import Epoch
    from hardwood.model.base import Model

# early_stopping="auto": tables with at least this many distinct rows have a validation part.
EARLY_STOPPING_FROM = 100


@dataclass(frozen=True)
class Run:
    """Settings of a run that do not belong to the learner.

    Attributes
    ----------
    seed
        Seed of all random choices.
    n_jobs
        Number of threads; the result does not depend on it.
    callbacks
        Called after every epoch. Returning True ends that run with its best model.
    clock
        The time that is left.
    progress
        Where to say what is done now.
    """

    seed: int = 0
    n_jobs: int = 1
    callbacks: tuple[Callable[[Any], Any], ...] = ()
    clock: Clock = field(default_factory=lambda: Clock(None))
    progress: Progress = field(default_factory=Progress)

    def notify(self, event: Any) -> bool:
        """Call all callbacks; return whether one of them asks to stop."""
        answers = [bool(callback(event)) for callback in self.callbacks]  # each gets every event
        return any(answers)


@dataclass(frozen=True)
class Learned:
    """The result of a learner.

    Attributes
    ----------
    model
        The model in the user's units, not yet simplified, without counts and record.
    history
        One record per epoch, run by run; None for learners without epochs.
    best_run, best_epoch
        The best run and its best epoch; -1 for the model before the first epoch.
    interrupted
        Whether the user interrupted it.
    resolved
        The values of parameters that were "auto".
    facts
        Further attributes of the fitted estimator, such as the objective or the trials of a search.
    record
        Further entries of the model's record.
    task
        The task that the model was learned from, if it differs from the given one.
    keeps_unreached
        Whether to keep leaves that no row reaches, because they have learned something.
    members
        For a forest: the results of its new trees, which are the last trees of `model`.
    """

    model: Model
    history: tuple[Epoch, ...] | None = ()
    best_run: int = 0
    best_epoch: int = -1
    interrupted: bool = False
    resolved: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)
    task: Task | None = None
    keeps_unreached: bool = False
    members: tuple[Learned, ...] = ()

    @property
    def n_epochs(self) -> int:
        """Number of epochs of the best run."""
        return sum(epoch.restart == self.best_run for epoch in self.history or ())

    @property
    def best(self) -> Epoch | None:
        """The best epoch; None if there is none."""
        kept = (self.best_run, self.best_epoch)
        return next((e for e in self.history or () if (e.restart, e.epoch) == kept), None)


class Learner(Parameters, ABC):
    """Base of all learners.

    Subclasses are frozen dataclasses. A new learner needs one file in `learn/` and one line in
    `learn/registry.py`; `estimators/` adds scikit-learn's interface.
    """

    losses: ClassVar[frozenset[str]] = GRADIENT_LOSSES
    """Names of the losses it can minimize; "custom" stands for functions."""

    takes_start: ClassVar[bool] = True
    """Whether it can start from a tree."""

    run_name: ClassVar[str] = "restart"
    """The word for one of its runs in the output of `verbose`."""

    searched: ClassVar[tuple[str, ...]] = ()
    """Parameters that are chosen on validation rows if they are "auto"."""

    early_stopping: bool | str = False
    n_restarts: int | str = 1

    def fit(self, task: Task, run: Run | None = None, start: Start = None) -> Learned:
        """Learn a model.

        Parameters
        ----------
        task
            Rows, target, weights, loss, training rows and validation rows.
        run
            Settings of the run; None for one thread and seed 0.
        start
            A model to start from, or a learner that is fitted on the training rows first.

        Raises
        ------
        ValueError
            For a start, if the learner takes none.
        """
        if start is not None and not self.takes_start:
            raise ValueError(f"{type(self).__name__} has its own start and takes no other.")
        return self._fit(task, run or Run(), start)

    @abstractmethod
    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Learn a model."""

    def find_loss(self, spec: Any, kind: TaskKind, n_classes: int | None) -> Loss:
        """Return the loss that `spec` stands for, if this learner can minimize it."""
        return loss_of(spec, kind, n_classes, allowed=self.losses)

    def default_loss_name(self, kind: TaskKind) -> str:
        """Return the name of the default loss."""
        return "squared_error" if kind == "regression" else "log_loss"

    def default_loss(self, kind: TaskKind, n_classes: int | None) -> Loss:
        """Return the default loss."""
        return self.find_loss(self.default_loss_name(kind), kind, n_classes)

    def record(self, task: Task) -> dict[str, Any]:
        """Return the learner, its parameters and its default loss, for JSON."""
        parameters = {each.name: writable(getattr(self, each.name)) for each in fields(self)}
        parameters["loss"] = self.default_loss_name(task.kind)
        return {"learner": type(self).__name__, "parameters": parameters}

    @property
    def needs_validation(self) -> str:
        """The setting that needs validation rows, as a user would write it; or ""."""
        for name in self.searched:
            if is_auto(getattr(self, name)):
                return f"{name}='auto'"
        return "early_stopping=True" if self.early_stopping is True else ""

    def wants_validation(self, task: Task) -> bool:
        """Whether to hold out validation rows."""
        return self.is_searched or self.stops_early(task)

    @property
    def is_searched(self) -> bool:
        """Whether parameters are chosen on validation rows."""
        return any(is_auto(getattr(self, name)) for name in self.searched)

    def keeps_best(self, task: Task) -> bool:
        """Whether to return to the best epoch on the validation rows, and there are such rows."""
        return len(task.valid) > 0 and self.stops_early(task)

    def stops_early(self, task: Task) -> bool:
        """Whether to stop early, provided that there are validation rows.

        Raises
        ------
        ValueError
            If losses have to be compared, but the loss is a function that returns none.
        """
        asked = self.early_stopping
        if not task.has_loss_values:
            for setting, needs in (
                ("early_stopping=True", asked is True),
                ("n_restarts > 1", self.compares_runs),
            ):
                if needs:
                    raise ValueError(
                        f"{setting} compares models by their losses, but the loss function returns "
                        "only a gradient. Return (losses, gradient)."
                    )
            return False
        if is_auto(asked):
            return len(task.rows) >= EARLY_STOPPING_FROM
        return bool(asked)

    @property
    def compares_runs(self) -> bool:
        """Whether the user asked for the best of several runs."""
        return not isinstance(self.n_restarts, str) and self.n_restarts > 1

    def interrupted_message(self, learned: Learned) -> str:
        """Return the message for an interrupted fit."""
        n = plural(len(learned.history or ()), "epoch")
        return f"Learning was interrupted after {n}; the best model so far is kept."

    def printer(self, task: Task, verbose: int) -> Callable[[Any], Any]:
        """Return the callback that prints a line per event."""
        return epoch_printer(verbose, self.run_name)

    def follower(self, task: Task, progress: Progress) -> Callable[[Any], Any]:
        """Return the callback that keeps the line of progress up to date."""
        return epoch_follower(progress, self.run_name, self.n_runs)

    @property
    def n_runs(self) -> int | None:
        """How many runs there will be; None if that is not known before."""
        return None if self.is_searched or isinstance(self.n_restarts, str) else self.n_restarts


Start: TypeAlias = "Model | Learner | None"
"""The start of a learner; another learner is first fitted on the training rows."""


def drawn_seed(random_state: Any) -> int:
    """Draw the seed of all random choices of a fit."""
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def writable(value: Any) -> Any:
    """Convert a parameter to a value for JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): writable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [writable(entry) for entry in value]
    if is_dataclass(value) and not hasattr(value, "get_params"):
        options = {field.name: writable(getattr(value, field.name)) for field in fields(value)}
        return {type(value).__name__: options} if options else type(value).__name__
    return getattr(value, "__qualname__", None) or type(value).__name__
