"""The one interface of every learner: a value of hyperparameters whose `fit` returns a model.

A learner is a frozen dataclass; its fields are the parameters that users know, each with the range
it checks itself. `Task` says what is to be learned, `Run` how, and `Learned` what came of it. Who
holds other learners (a forest, a refinement, the search for the best tree) knows nothing else of
them.
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
from hardwood.learn.training import epoch_printer
from hardwood.model.structure import TaskKind
from hardwood.parameters import Parameters, is_auto

if TYPE_CHECKING:
    from hardwood.learn.task import Task
    from hardwood.learn.training import Epoch
    from hardwood.model.base import Model

# early_stopping="auto": tables with at least this many distinct rows have a validation part.
EARLY_STOPPING_FROM = 100


@dataclass(frozen=True)
class Run:
    """How to learn.

    Attributes
    ----------
    seed
        All random choices follow from it.
    n_jobs
        Threads; what is learned does not depend on their number.
    callbacks
        Called after every epoch; one that returns True ends that run with its best model.
    clock
        How much time is left.
    """

    seed: int = 0
    n_jobs: int = 1
    callbacks: tuple[Callable[[Any], Any], ...] = ()
    clock: Clock = field(default_factory=lambda: Clock(None))

    def hears(self, event: Any) -> bool:
        """Tell all callbacks what happened; whether one of them asks to stop."""
        answers = [bool(callback(event)) for callback in self.callbacks]  # all hear of every event
        return any(answers)


@dataclass(frozen=True)
class Learned:
    """What came of it.

    Attributes
    ----------
    model
        In the user's units; without counts and record, and nothing is dropped yet.
    history
        One record per epoch, run by run; None for learners without epochs.
    best_run, best_epoch
        The run that was kept, and its epoch; -1 for the model as it was before the first one.
    interrupted
        Whether the user stopped it.
    resolved
        What parameters that were "auto" became.
    facts
        What else a fitted estimator shows as attributes: the objective, the trials of a search.
    record
        What else the model's record notes.
    task
        What the kept model was learned from, where that is not the task that was given.
    keeps_unreached
        Whether leaves that no row reaches have learned something, too, and are to stay.
    members
        Of a forest: what its new trees were learned by, in their order, the last trees of `model`.
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
        """Epochs that the run which was kept has taken."""
        return sum(epoch.restart == self.best_run for epoch in self.history or ())

    @property
    def best(self) -> Epoch | None:
        """The epoch that was kept; None where there is none."""
        kept = (self.best_run, self.best_epoch)
        return next((e for e in self.history or () if (e.restart, e.epoch) == kept), None)


class Learner(Parameters, ABC):
    """Base of all learners.

    Subclasses are frozen dataclasses. One file in `learn/` and one line in `learn/registry.py` make
    a learner; `estimators/` adds the signature that scikit-learn wants.
    """

    losses: ClassVar[frozenset[str]] = GRADIENT_LOSSES
    """Names of the losses it can minimize; "custom" where it takes functions."""

    takes_start: ClassVar[bool] = True
    """Whether it can start from a tree."""

    run_name: ClassVar[str] = "restart"
    """What `verbose` calls one of its runs."""

    searched: ClassVar[tuple[str, ...]] = ()
    """Parameters that are chosen on the validation part where they are "auto"."""

    early_stopping: bool | str = False
    n_restarts: int | str = 1

    def fit(self, task: Task, run: Run | None = None, start: Start = None) -> Learned:
        """Learn a model.

        Parameters
        ----------
        task
            Rows, target, weights, loss, training and validation part.
        run
            How; None for one thread and seed 0.
        start
            What to start from: a model, or a learner that is fitted on the training rows first.

        Raises
        ------
        ValueError
            For a start, where the learner takes none.
        """
        if start is not None and not self.takes_start:
            raise ValueError(f"{type(self).__name__} makes its own start: it takes no other.")
        return self._fit(task, run or Run(), start)

    @abstractmethod
    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Learn a model, from a start that the learner takes."""

    def find_loss(self, spec: Any, kind: TaskKind, n_classes: int | None) -> Loss:
        """Return the loss that `spec` names, if this learner can minimize it."""
        return loss_of(spec, kind, n_classes, allowed=self.losses)

    def default_loss_name(self, kind: TaskKind) -> str:
        """Name the loss that it minimizes unless told otherwise."""
        return "squared_error" if kind == "regression" else "log_loss"

    def default_loss(self, kind: TaskKind, n_classes: int | None) -> Loss:
        """Return the loss that it minimizes unless told otherwise."""
        return self.find_loss(self.default_loss_name(kind), kind, n_classes)

    def record(self, task: Task) -> dict[str, Any]:
        """Note the learner, its parameters and its usual loss, as JSON can hold them."""
        parameters = {each.name: writable(getattr(self, each.name)) for each in fields(self)}
        parameters["loss"] = self.default_loss_name(task.kind)
        return {"learner": type(self).__name__, "parameters": parameters}

    @property
    def needs_validation(self) -> str:
        """The setting that cannot do without a validation part, as a user would write it; or ""."""
        for name in self.searched:
            if is_auto(getattr(self, name)):
                return f"{name}='auto'"
        return "early_stopping=True" if self.early_stopping is True else ""

    def wants_validation(self, task: Task) -> bool:
        """Whether a part of the rows is to be held out for validation."""
        return self.is_searched or self.stops_early(task)

    @property
    def is_searched(self) -> bool:
        """Whether parameters are chosen on the validation part."""
        return any(is_auto(getattr(self, name)) for name in self.searched)

    def keeps_best(self, task: Task) -> bool:
        """Whether the best epoch on the validation part is kept: there is one, and it is wanted."""
        return len(task.valid) > 0 and self.stops_early(task)

    def stops_early(self, task: Task) -> bool:
        """Whether the best epoch on a validation part is to be kept, if there is such a part.

        Raises
        ------
        ValueError
            Where losses are to be compared, but the loss is a function that returns none.
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
                        "a gradient only. Let it return (losses, gradient)."
                    )
            return False
        if is_auto(asked):
            return len(task.rows) >= EARLY_STOPPING_FROM
        return bool(asked)

    @property
    def compares_runs(self) -> bool:
        """Whether the best of several runs is asked for by name."""
        return not isinstance(self.n_restarts, str) and self.n_restarts > 1

    def interrupted_message(self, learned: Learned) -> str:
        """Say what is left of a fit that the user stopped."""
        n_epochs = len(learned.history or ())
        return f"Learning was interrupted after {n_epochs} epoch(s); the best model so far is kept."

    def printer(self, task: Task, verbose: int) -> Callable[[Any], Any]:
        """Return the callback that prints what `verbose` asks for."""
        return epoch_printer(verbose, self.run_name)


Start: TypeAlias = "Model | Learner | None"
"""What a learner starts from; a learner is fitted on the training rows at hand."""


def drawn_seed(random_state: Any) -> int:
    """Return the one number that all random choices of a fit follow from."""
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def writable(value: Any) -> Any:
    """Return a parameter as JSON can hold it."""
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
