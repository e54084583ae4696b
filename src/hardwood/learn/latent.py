"""Latent trees: hyperparameters, and the model of the network that `latent_network` learns.

Zantedeschi, Kusner, Niculae. Learning Binary Decision Trees by Argmin Differentiation. ICML 2021.
[LT21]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from hardwood.errors import MissingExtraError
from hardwood.learn.learner import Learned, Learner, Run, Start
from hardwood.learn.task import Task
from hardwood.learn.training import Epoch
from hardwood.learn.units import leaves_in_raw_units, splits_in_raw_units
from hardwood.model import LatentTreeModel
from hardwood.parameters import (
    Values,
    checked,
    choice_field,
    flag_field,
    integer,
    integer_field,
    real_field,
    switch_field,
)

Activation = Literal["linear", "elu"]
SplitInit = Literal["random", "bisect"]
INITS: tuple[str, ...] = get_args(SplitInit)

# max_epochs="auto": enough epochs for this many steps, within these bounds.
_STEPS = 4000
_EPOCHS = (20, 200)

_MAX_DEPTH = 12
_MAX_WIDTH = 100_000


def _widths(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, str) and value == "linear":
        return ()
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray):
        raise ValueError(f"{name} must be 'linear' or a list of widths, got {value!r}.")
    return tuple(integer(f"{name}[{i}]", width, 1, _MAX_WIDTH) for i, width in enumerate(value))


@dataclass(frozen=True)
class Latent(Learner):
    """A latent tree; `LatentTreeClassifier` describes most parameters.

    `head`: widths of the hidden layers of the predictor f(x, z); () for a linear predictor.
    `min_activity`: nodes less active than this after learning are removed. `split_init`: how splits
    start, either as random directions through the middle of each node's rows or by 2-means at every
    node. `solves_head`: whether a linear predictor with squared error starts as the solution of
    ridge regression.
    """

    takes_start: ClassVar[bool] = False

    max_depth: int = integer_field(5, 1, _MAX_DEPTH)
    pruning: float = real_field(1.0, 0, 1e30, open_high=False)
    activation: Activation = choice_field("linear", get_args(Activation))
    head: tuple[int, ...] = checked((), _widths, Values("sequence", choices=("linear",)))
    skip_connection: bool = flag_field(True)
    dropout: float = real_field(0.0, 0, 1)
    weight_decay: float = real_field(0.1, 0)
    learning_rate: float = real_field(0.01, 0, open_low=True)
    batch_size: int = integer_field(256, 1, None)
    max_epochs: int | Literal["auto"] = integer_field("auto", 1, or_auto=True)
    patience: float = real_field(0.3, 0, open_low=True)
    min_activity: float = real_field(0.01, 0)
    early_stopping: bool | str = switch_field()
    split_init: SplitInit = choice_field("random", INITS)
    solves_head: bool = flag_field(False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learning_rate * self.weight_decay > 1:  # a step would flip the signs of parameters
            raise ValueError(
                "weight_decay times learning_rate must be at most 1, got "
                f"{self.weight_decay:g} times {self.learning_rate:g}."
            )

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Learn a latent tree and its predictor jointly, by QHAdam [LT21, Algorithm 2].

        Weights apply to the loss; the program counts each distinct row once. Torch runs on one
        thread, so that the same seed gives the same bits.

        Raises
        ------
        MissingExtraError
            If torch is not installed.
        ValueError
            If learning diverges, and for a start.
        """
        if find_spec("torch") is None:
            raise MissingExtraError("torch", extra="torch", purpose="Learning a latent tree")
        from hardwood.learn.latent_network import training

        network = training.learn(task, self, run)
        return Learned(
            self._model(task, network),
            network.history,
            best_epoch=network.best_epoch,
            interrupted=network.interrupted,
        )

    def epochs(self, n_rows: int) -> int:
        """Return the number of epochs over this many rows."""
        if not isinstance(self.max_epochs, str):
            return self.max_epochs
        n_batches = -(-n_rows // self.batch_size)
        return min(max(_STEPS // n_batches, _EPOCHS[0]), _EPOCHS[1])

    def _model(self, task: Task, network: LatentNetwork) -> LatentTreeModel:
        """Return the learned model in raw units."""
        weights, bias = splits_in_raw_units(network.weights, network.bias, task)
        layers = list(network.layers)
        last, constants = layers[-1]
        values, slopes = task.linear_leaves(constants[None], last[None])
        layers[-1] = slopes[0], values[0]
        if self.skip_connection:
            first, constants = layers[0]
            n_nodes = len(network.nodes)
            moved, raw = leaves_in_raw_units(constants[None], first[None, :, n_nodes:], task)
            layers[0] = np.hstack([first[:, :n_nodes], raw[0]]), moved[0]
        return LatentTreeModel(
            network.nodes,
            network.activity,
            weights,
            bias,
            np.concatenate([layer[0].ravel() for layer in layers]),
            np.concatenate([layer[1] for layer in layers]),
            widths=self.head,
            skip_connection=self.skip_connection,
            activation=self.activation,
            schema=task.schema,
            task=task.kind,
            link=task.loss.link_name,
            classes=task.labels,
            target_names=task.target_names,
        )


@dataclass(frozen=True)
class LatentNetwork:
    """The learned network, on encoded columns, without inactive nodes.

    Attributes
    ----------
    nodes
        (A,) heap numbers, ascending.
    activity
        (A,) float64.
    splits
        (S,) heap numbers of the splits above these nodes, ascending.
    weights, bias
        (S, c) and (S,) float64, of the scores before a possible ELU.
    layers
        The predictor: weights (out, in) and biases (out,) of each layer, with ELU between them. The
        first layer takes z of the nodes and, with `skip_connection`, the encoded columns.
    history, best_epoch, interrupted
        Same as in `Learned`.
    """

    nodes: np.ndarray
    activity: np.ndarray
    splits: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    history: tuple[Epoch, ...]
    best_epoch: int
    interrupted: bool
