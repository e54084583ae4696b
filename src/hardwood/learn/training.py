"""Settings of the training loop, and its reports."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hardwood.parameters import Parameters, choice_field, integer_field, real_field

if TYPE_CHECKING:
    from hardwood.progress import Progress

# Table 11 of DGT: 30 to 400 epochs "depending on dataset size"; here, enough for this many steps.
_STEPS = 20_000
_EPOCHS = (30, 400)
LARGEST = 1e37  # of step sizes and penalties: the engine counts in float32
_LINES = 20  # that `verbose` prints per run


@dataclass(frozen=True)
class Training(Parameters):
    """Settings of the training loop that are not parameters of the estimators.

    Parameters
    ----------
    optimizer
        "rmsprop" (the papers' choice for DGT), "adam" or "sgd".
    schedule
        Schedule of the learning rate: "cosine", "one_cycle" or "constant".
    schedule_restarts
        Number of warm restarts of the cosine schedule: 3 restarts give 4 cycles.
    clip_norm
        Largest Euclidean norm of the gradient of a batch; None for no clipping.
    patience
        Early stopping: fraction of ``max_epochs`` without a better validation loss after which
        learning stops.
    decay
        Decay of the running mean of squared gradients: alpha of RMSprop, beta_2 of Adam. None: 0.99
        for RMSprop, 0.999 for Adam.
    epsilon
        Constant added to its root.
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
        noise: float = 0.0,
    ) -> dict[str, object]:
        """Return all options of a run, for the engine."""
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
            "noise": noise,
            "schedule": self.schedule,
            "schedule_cycles": self.schedule_restarts + 1,
            "clip_norm": math.inf if self.clip_norm is None else self.clip_norm,
            "batch_size": batch_size,
            "max_epochs": max_epochs,
            "patience": patience if stops_early else 0,
        }


def epochs_for(max_epochs: int | str, n_rows: int, batch_size: int) -> int:
    """Return the number of epochs for this many rows, which resolves "auto"."""
    if not isinstance(max_epochs, str):
        return max_epochs
    n_batches = -(-n_rows // batch_size)
    return min(max(_STEPS // n_batches, _EPOCHS[0]), _EPOCHS[1])


@dataclass(frozen=True)
class Epoch:
    """One pass over the training rows, for callbacks and `history_`.

    Losses are weighted means. `train_loss` is measured while the tree changes. `validation_loss` is
    NaN without validation rows. `reachable_leaves` (soft trees): mean number of leaves that a row
    reached per tree during the epoch; NaN for hard trees. `train_bound`: the bound on the loss, for
    learners that minimize one; else NaN. `active_nodes` (latent trees): fraction of nodes that are
    active after the epoch; else NaN.
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
"""Called after every epoch of every restart; returning True ends that restart."""


def epoch_printer(verbose: int, run: str) -> Callback:
    """Return a callback that prints about 20 lines per run, or every epoch for verbose > 1.

    `run` is the word for a run: "restart", or "tree" in a forest.
    """

    def report(epoch: Epoch) -> None:
        every = 1 if verbose > 1 else max(1, epoch.max_epochs // _LINES)
        if epoch.epoch % every == 0 or epoch.epoch == epoch.max_epochs - 1:
            print(epoch_line(epoch, run), flush=True)

    return report


def epoch_follower(progress: Progress, run: str, n_runs: int | None) -> Callback:
    """Return a callback that shows each epoch in the line of progress.

    Runs may be learned in parallel. If ``n_runs`` is None, only those that have begun are counted.
    """
    epochs_done: dict[int, int] = {}

    def follow(epoch: Epoch) -> None:
        epochs_done[epoch.restart] = epoch.epoch + 1
        n_epochs = (n_runs or len(epochs_done)) * epoch.max_epochs
        progress.update(
            epoch_words(epoch, run, n_runs), share=min(sum(epochs_done.values()) / n_epochs, 1.0)
        )

    return follow


def epoch_words(epoch: Epoch, run: str, n_runs: int | None) -> str:
    """Describe an epoch and its loss, and the run if it is not the only one."""
    of_all = "" if n_runs is None else f" of {n_runs}"
    which = "" if n_runs == 1 else f"{run} {epoch.restart + 1}{of_all}, "
    is_validated = math.isfinite(epoch.validation_loss)
    name, loss = (
        ("validation loss", epoch.validation_loss)
        if is_validated
        else ("training loss", epoch.train_loss)
    )
    return f"{which}epoch {epoch.epoch + 1} of {epoch.max_epochs}, {name} {loss:.4g}"


def epoch_line(epoch: Epoch, run: str) -> str:
    """Describe an epoch on one line."""
    parts = [f"{run} {epoch.restart}", f"epoch {epoch.epoch + 1}/{epoch.max_epochs}"]
    if not math.isnan(epoch.train_loss):
        parts.append(f"training loss {epoch.train_loss:.5g}")
    if not math.isnan(epoch.validation_loss):
        parts.append(f"validation loss {epoch.validation_loss:.5g}")
    return "  ".join(parts)
