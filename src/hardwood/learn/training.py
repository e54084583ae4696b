"""Options of the engine's one training loop, and what it reports."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hardwood.parameters import Parameters, choice_field, integer_field, real_field

# Table 11 of DGT: 30 to 400 epochs "depending on dataset size"; here, so many that they make these
# steps.
_STEPS = 20_000
_EPOCHS = (30, 400)
LARGEST = 1e37  # of step sizes and penalties: the engine counts in float32
_LINES = 20  # that `verbose` prints per run


@dataclass(frozen=True)
class Training(Parameters):
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

    optimizer: Literal["rmsprop", "adam", "sgd"] = choice_field(
        "rmsprop", ("rmsprop", "adam", "sgd")
    )
    schedule: Literal["cosine", "one_cycle", "constant"] = choice_field(
        "cosine", ("cosine", "one_cycle", "constant")
    )
    schedule_restarts: int = integer_field(3, 0, 10**6)
    clip_norm: float | None = real_field(0.01, 0, or_none=True, open_low=True, open_high=False)
    patience: float = real_field(0.3, 0, open_low=True, open_high=False)
    decay: float | None = real_field(None, 0, 1, or_none=True)
    epsilon: float = real_field(1e-5, 0, open_low=True)

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


def epochs_for(max_epochs: int | str, n_rows: int, batch_size: int) -> int:
    """Return how many epochs a learner takes over this many rows; "auto" is resolved."""
    if not isinstance(max_epochs, str):
        return max_epochs
    n_batches = -(-n_rows // batch_size)
    return min(max(_STEPS // n_batches, _EPOCHS[0]), _EPOCHS[1])


@dataclass(frozen=True)
class Epoch:
    """One pass over the training rows, as callbacks and `history_` see it.

    Losses are weighted means. `train_loss` is taken while the tree was changing, `validation_loss`
    is NaN without a validation part. `reachable_leaves` of soft trees: leaves that a row reached,
    per tree, in the mean over the pass; NaN for hard trees, where it is 1. `train_bound`: of
    learners that minimize a bound on the loss, that bound, taken as `train_loss` is; else NaN.
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


def epoch_printer(verbose: int, run: str) -> Callback:
    """Return a callback that prints about 20 lines per run, or for verbose > 1 every epoch.

    `run` is what one is called: "restart", or "tree" in a forest.
    """

    def report(epoch: Epoch) -> None:
        every = 1 if verbose > 1 else max(1, epoch.max_epochs // _LINES)
        if epoch.epoch % every == 0 or epoch.epoch == epoch.max_epochs - 1:
            print(epoch_line(epoch, run), flush=True)

    return report


def epoch_line(epoch: Epoch, run: str) -> str:
    """One epoch in words, with what is known of it."""
    parts = [f"{run} {epoch.restart}", f"epoch {epoch.epoch + 1}/{epoch.max_epochs}"]
    if not math.isnan(epoch.train_loss):
        parts.append(f"training loss {epoch.train_loss:.5g}")
    if not math.isnan(epoch.validation_loss):
        parts.append(f"validation loss {epoch.validation_loss:.5g}")
    return "  ".join(parts)
