"""Latent trees: hyper-parameters, and what is learned; `latent_training` learns it, in torch.

Zantedeschi, Kusner, Niculae. Learning Binary Decision Trees by Argmin Differentiation. ICML 2021.
[LT21]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, get_args

import numpy as np

from hardwood.errors import MissingExtraError
from hardwood.learn.task import Problem
from hardwood.learn.training import Callback, Epoch, one_of

Split = Literal["linear", "elu"]
Init = Literal["random", "bisect"]
INITS: tuple[str, ...] = get_args(Init)

# Passes: so many that they make these steps, within bounds.
_STEPS = 4000
_EPOCHS = (20, 200)


@dataclass(frozen=True)
class Latent:
    """Hyper-parameters of a latent tree, as the estimators have them.

    `head` are the widths of the hidden layers of the predictor f(x, z), of which () is linear;
    `skip` is whether it sees x beside z. `least_activity`: nodes that are less active than this
    when learning has ended are removed. `init` is the start of the splits: random directions
    through the middle of each node's rows, or 2-means at every node. `solves_head`: a linear
    predictor of the squared error starts as the solution of ridge regression.
    """

    max_depth: int = 5
    pruning: float = 1.0
    split: Split = "linear"
    head: tuple[int, ...] = ()
    skip: bool = True
    dropout: float = 0.0
    weight_decay: float = 0.0
    learning_rate: float = 0.01
    batch_size: int = 256
    max_epochs: int | None = None
    patience: float = 0.3
    least_activity: float = 0.01
    early_stopping: bool = True
    init: Init = "random"
    solves_head: bool = False

    def __post_init__(self) -> None:
        one_of("split", self.split, ("linear", "elu"))
        one_of("init", self.init, INITS)

    def epochs(self, n_rows: int) -> int:
        """Return the number of passes over so many training rows."""
        n_batches = -(-n_rows // self.batch_size)
        return self.max_epochs or min(max(_STEPS // n_batches, _EPOCHS[0]), _EPOCHS[1])


@dataclass(frozen=True)
class GrownLatentTree:
    """What was learned, of encoded columns, without the nodes that are not active.

    Attributes
    ----------
    nodes
        (A,) heap numbers, ascending.
    activity
        (A,) float64.
    splits
        (S,) heap numbers of the splits that lead to these nodes, ascending.
    weights, bias
        (S, c) and (S,) float64: scores, before the ELU where there is one.
    layers
        The predictor: weights (out, in) and biases (out,) of each layer, with ELU between them. The
        first takes z of the nodes and then, with `skip`, the encoded columns.
    history, best_restart, best_epoch, interrupted
        As of every learner.
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
    best_restart: int = 0


def learn(
    problem: Problem,
    config: Latent,
    *,
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
) -> GrownLatentTree:
    """Learn a latent tree and its predictor together, by QHAdam [LT21, Algorithm 2].

    Parameters
    ----------
    problem
        Rows, target, weights, loss and validation part. Weights are those of the loss; the program
        counts each distinct row once.
    config
        The hyper-parameters.
    seed
        Of the random start, the order of rows and dropout.
    callbacks
        Called after every epoch; a true answer ends learning.

    Raises
    ------
    MissingExtraError
        Where torch is not installed.
    ValueError
        Where learning diverged.

    Notes
    -----
    Torch runs on one thread meanwhile, so that the same seed gives the same bits.
    """
    if find_spec("torch") is None:
        raise MissingExtraError("torch", extra="torch", purpose="Learning a latent tree")
    from hardwood.learn import latent_torch as latent_training

    return latent_training.learn(problem, config, seed=seed, callbacks=callbacks)
