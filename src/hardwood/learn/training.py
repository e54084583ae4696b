"""Options of the engine's one training loop, and what it reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

# Table 11 of DGT: 30 to 400 epochs "depending on dataset size"; here, so many that they make these
# steps.
_STEPS = 20_000
_EPOCHS = (30, 400)


@dataclass(frozen=True)
class Training:
    """How a learner takes its steps, beyond what estimators have as parameters of their own.

    Parameters
    ----------
    optimizer
        "rmsprop" (the papers' choice for DGT), "adam" or "sgd".
    schedule
        Of the learning rate: "cosine", "one_cycle" or "constant".
    schedule_restarts
        How often the cosine starts anew from the full learning rate: 3 restarts are 4 cycles.
    clip_norm
        Largest Euclidean norm of the gradient of a batch; None for no limit.
    patience
        Early stopping: part of ``max_epochs`` that may pass without a better validation loss.
    decay
        Of the squared gradients' running mean: RMSprop's alpha (0.99), Adam's beta_2 (0.999); None
        for these.
    epsilon
        Added to its root.
    """

    optimizer: Literal["rmsprop", "adam", "sgd"] = "rmsprop"
    schedule: Literal["cosine", "one_cycle", "constant"] = "cosine"
    schedule_restarts: int = 3
    clip_norm: float | None = 0.01
    patience: float = 0.3
    decay: float | None = None
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        one_of("optimizer", self.optimizer, ("rmsprop", "adam", "sgd"))
        one_of("schedule", self.schedule, ("cosine", "one_cycle", "constant"))
        if not isinstance(self.schedule_restarts, int) or not 0 <= self.schedule_restarts <= 10**6:
            raise ValueError(
                f"schedule_restarts must be an integer >= 0, found {self.schedule_restarts!r}"
            )
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ValueError(f"clip_norm must be positive or None, found {self.clip_norm!r}")
        if not self.patience > 0:
            raise ValueError(
                f"patience must be a positive part of max_epochs, found {self.patience!r}"
            )
        if self.decay is not None and not 0 <= self.decay < 1:
            raise ValueError(f"decay must lie in [0, 1), found {self.decay!r}")
        if not 0 < self.epsilon < math.inf:
            raise ValueError(f"epsilon must be positive, found {self.epsilon!r}")

    def engine_options(
        self,
        *,
        learning_rate: float,
        momentum: float | None,
        batch_size: int,
        max_epochs: int,
        l1: float,
        l2: float,
        stops_early: bool,
    ) -> dict[str, object]:
        """All options of a run, as the engine takes them."""
        beta, decay = {"rmsprop": (0.0, 0.99), "adam": (0.9, 0.999), "sgd": (0.0, 0.0)}[
            self.optimizer
        ]
        patience = max(1, math.ceil(min(self.patience, 1.0) * max_epochs))
        return {
            "optimizer": self.optimizer,
            "learning_rate": learning_rate,
            "momentum": beta if momentum is None else momentum,
            "decay": decay if self.decay is None else self.decay,
            "epsilon": self.epsilon,
            "l1": l1,
            "l2": l2,
            "schedule": self.schedule,
            "schedule_cycles": self.schedule_restarts + 1,
            "clip_norm": math.inf if self.clip_norm is None else self.clip_norm,
            "batch_size": batch_size,
            "max_epochs": max_epochs,
            "patience": patience if stops_early else 0,
        }


def epochs_for(n_rows: int, batch_size: int) -> int:
    """Return how many passes learners take over so many rows, unless told."""
    n_batches = -(-n_rows // batch_size)
    return min(max(_STEPS // n_batches, _EPOCHS[0]), _EPOCHS[1])


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise unless an option is one of those allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, found {value!r}")


@dataclass(frozen=True)
class Epoch:
    """One pass over the training rows, as callbacks and `history_` see it.

    Losses are weighted means. `train_loss` is taken while the tree was changing, `validation_loss`
    is NaN without a validation part. `reachable_leaves` of soft trees: leaves that a row reached,
    per tree, in the mean over the pass; NaN for hard trees, where it is 1. `train_bound`: of
    learners that minimise a bound on the loss, that bound, taken as `train_loss` is; else NaN.
    `active_nodes`: share of a latent tree's nodes that are active after the pass; else NaN.
    """

    restart: int
    epoch: int
    max_epochs: int
    train_loss: float
    validation_loss: float
    learning_rate: float
    reachable_leaves: float = math.nan
    train_bound: float = math.nan
    active_nodes: float = math.nan


Callback = Callable[[Epoch], bool | None]
"""Called after every epoch of every restart; a true answer ends that restart with its best tree."""


def engine_callback(
    callbacks: Sequence[Callback], max_epochs: int
) -> Callable[[int, int, float, float, float, float, float], bool] | None:
    """All callbacks as the one function the engine calls; None when there are none."""
    if not callbacks:
        return None

    def on_epoch(restart: int, epoch: int, *figures: float) -> bool:
        record = Epoch(restart, epoch, max_epochs, *figures)
        answers = [bool(callback(record)) for callback in callbacks]  # all hear of every epoch
        return any(answers)

    return on_epoch
