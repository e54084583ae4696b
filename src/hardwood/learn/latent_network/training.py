"""Learning of latent trees in torch; see `hardwood.learn.latent`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from hardwood.learn.latent import Latent, LatentNetwork
from hardwood.learn.latent_network.bisection import bisect
from hardwood.learn.latent_network.losses import row_losses
from hardwood.learn.latent_network.start import place_splits, solve_predictor
from hardwood.learn.learner import Run
from hardwood.learn.losses import SquaredError
from hardwood.learn.task import Task
from hardwood.learn.training import Epoch
from hardwood.nn.latent import LatentTree

# The activities are fixed on evenly spaced training rows, with about this many values of z.
_SETTLED_VALUES = 2**23
_CHUNK_ROWS = 2**14
_HUGE = 1e15


class QHAdam:
    """Quasi-hyperbolic Adam (Ma, Yarats. ICLR 2019): Adam's mean, and the gradient itself.

    Weight decay is decoupled from the gradients: `weight_decay` times the learning rate per step.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        weight_decay: float = 0.0,
        nu: float = 0.7,
        betas: tuple[float, float] = (0.95, 0.998),
        epsilon: float = 1e-8,
    ) -> None:
        self.parameters = list(parameters)
        self.weight_decay = weight_decay
        self.nu, self.betas, self.epsilon = nu, betas, epsilon
        self.means = [torch.zeros_like(p) for p in self.parameters]
        self.squares = [torch.zeros_like(p) for p in self.parameters]
        self.n_steps = 0

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Take a step along the gradients, and reset them."""
        self.n_steps += 1
        first, second = (1 - beta**self.n_steps for beta in self.betas)
        for p, mean, square in zip(self.parameters, self.means, self.squares, strict=True):
            if p.grad is None:
                continue
            p.mul_(1 - learning_rate * self.weight_decay)
            mean.lerp_(p.grad, 1 - self.betas[0])
            square.lerp_(p.grad.square(), 1 - self.betas[1])
            direction = (1 - self.nu) * p.grad + self.nu / first * mean
            p.addcdiv_(direction, (square / second).sqrt_() + self.epsilon, value=-learning_rate)
            p.grad = None


class Predictor(nn.Module):
    """f(x, z): layers with ELU between them, and dropout with its own generator."""

    def __init__(self, sizes: Sequence[int], dropout: float, generator: torch.Generator) -> None:
        super().__init__()
        self.dropout, self.generator = dropout, generator
        self.layers = nn.ModuleList(nn.Linear(*size) for size in pairwise(sizes))
        for layer in self.linear_layers:
            bound = layer.in_features**-0.5
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
            nn.init.zeros_(layer.bias)

    @property
    def linear_layers(self) -> list[nn.Linear]:
        """The layers, by their type."""
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    def forward(self, values: Tensor) -> Tensor:
        *hidden, last = self.linear_layers
        for layer in hidden:
            values = self._dropped(nn.functional.elu(layer(values)))
        return last(values)

    def _dropped(self, values: Tensor) -> Tensor:
        if not self.training or self.dropout == 0:
            return values
        kept = torch.rand(values.shape, generator=self.generator) >= self.dropout
        return values * kept / (1 - self.dropout)


class Network(nn.Module):
    """A tree and the predictor on top of it."""

    def __init__(self, n_columns: int, n_outputs: int, config: Latent, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.tree = LatentTree(
            n_columns, config.max_depth, config.pruning, config.activation, generator=generator
        )
        n_inputs = self.tree.n_nodes + (n_columns if config.skip_connection else 0)
        self.skip_connection = config.skip_connection
        self.predictor = Predictor((n_inputs, *config.head, n_outputs), config.dropout, generator)

    def features(self, x: Tensor) -> Tensor:
        """Return the predictor's input: z, and with `skip_connection` the rows themselves."""
        z, _ = self.tree(x)
        return torch.cat([z, x], dim=1) if self.skip_connection else z

    def forward(self, x: Tensor) -> Tensor:
        return self.predictor(self.features(x))


@dataclass
class _Rows:
    """The rows of a task as tensors, encoded."""

    x: Tensor
    y: Tensor
    weight: Tensor

    @classmethod
    def of(cls, task: Task, rows: np.ndarray) -> _Rows:
        return cls(
            torch.from_numpy(task.encoded(rows)),
            torch.from_numpy(task.y[rows]),
            torch.from_numpy(task.weight[rows]),
        )


class _Run:
    """One run: the network, the rows it is evaluated on, and its best state."""

    def __init__(self, task: Task, config: Latent, seed: int) -> None:
        self.task, self.config = task, config
        train = task.train if len(task.train) > 1 else np.repeat(task.train, 2)
        self.train, self.valid = _Rows.of(task, train), _Rows.of(task, task.valid)
        self.batch_size = min(config.batch_size, len(train))
        self.network = Network(self.train.x.shape[1], task.n_outputs, config, seed)
        self.random = np.random.default_rng(seed)
        n_settled = max(1, _SETTLED_VALUES // self.network.tree.n_nodes)
        step = -(-len(train) // n_settled)
        self.settled_rows = self.train.x[::step]
        self.start(seed)
        self.optimizer = QHAdam(self.network.parameters(), weight_decay=config.weight_decay)
        self.history: list[Epoch] = []
        self.best_epoch = -1
        self.best_loss = math.inf
        self.best_state: dict[str, Tensor] = {}
        self.settle()
        if config.solves_head:
            self.solve_head()
        self.keep(-1)

    def start(self, seed: int) -> None:
        """Initialize the splits."""
        tree, rows = self.network.tree, self.settled_rows[:_CHUNK_ROWS]
        if self.config.split_init == "random":
            tree.center(rows)
            return
        weight = self.train.weight.numpy().astype(np.float64)
        weights, bias = bisect(self.train.x.numpy(), weight, tree.max_depth, seed)
        place_splits(tree, weights, bias, rows)

    @torch.no_grad()
    def solve_head(self) -> None:
        """Initialize a linear predictor with squared error by ridge regression."""
        if self.config.head or not isinstance(self.task.loss, SquaredError):
            raise ValueError("solves_head is for linear heads and the squared error")
        network, rows = self.network.eval(), self.train
        features = torch.cat([network.features(x) for x in torch.split(rows.x, _CHUNK_ROWS)])
        solve_predictor(network.predictor.linear_layers[0], features, rows.y, rows.weight)

    @property
    def stops_early(self) -> bool:
        """Whether the best epoch is chosen on validation rows."""
        return self.config.keeps_best(self.task)

    def batches(self) -> list[np.ndarray]:
        """Draw the batches of an epoch, of nearly equal size, with at least two rows each."""
        n = len(self.train.x)
        n_batches = max(1, min(-(-n // self.batch_size), n // 2))
        return np.array_split(self.random.permutation(n), n_batches)

    def one_epoch(self, epoch: int, max_epochs: int) -> float:
        """Take the steps of an epoch; return the mean loss of its rows."""
        network, rows, total = self.network.train(), self.train, 0.0
        batches = self.batches()
        for b, batch in enumerate(batches):
            part = torch.from_numpy(batch)
            network.tree.pruning = self.config.pruning * len(batch) / self.batch_size
            losses = row_losses(self.task.loss, network(rows.x[part]), rows.y[part])
            loss = (rows.weight[part] * losses).mean()
            loss.backward()
            self.optimizer.step(self.rate((epoch + b / len(batches)) / max_epochs))
            total += loss.item() * len(batch)
        network.tree.pruning = self.config.pruning
        return total / len(rows.x)

    def rate(self, progress: float) -> float:
        """Return the learning rate: half a cosine."""
        return self.config.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))

    @torch.no_grad()
    def settle(self) -> None:
        """Set the moments and the activities from training rows, for evaluation."""
        tree = self.network.tree
        if tree.norm is not None and tree.linear is not None:
            scores = tree.linear(self.settled_rows)
            tree.norm.running_mean = scores.mean(0)
            tree.norm.running_var = scores.var(0, correction=0)
        tree.settle(
            self.settled_rows, batch_size=self.batch_size, min_activity=self.config.min_activity
        )

    @torch.no_grad()
    def validation_loss(self) -> float:
        """Return the weighted mean loss of the validation rows; NaN if there are none."""
        network, rows = self.network.eval(), self.valid
        if len(rows.x) == 0:
            return math.nan
        parts = [
            row_losses(self.task.loss, network(x), y)
            for x, y in zip(
                torch.split(rows.x, _CHUNK_ROWS), torch.split(rows.y, _CHUNK_ROWS), strict=True
            )
        ]
        return float((rows.weight * torch.cat(parts)).sum() / rows.weight.sum())

    @torch.no_grad()
    def has_diverged(self) -> bool:
        """Whether parameters are huge or not finite."""
        return not all(bool((p.abs() < _HUGE).all()) for p in self.network.parameters())

    def keep(self, epoch: int) -> None:
        """Store the current state of the network."""
        self.best_epoch = epoch
        self.best_state = {
            name: value.clone() if isinstance(value, Tensor) else value
            for name, value in self.network.state_dict().items()
        }

    def follow(self, run: Run) -> None:
        """Run all epochs."""
        max_epochs = self.config.epochs(len(self.train.x))
        patience = max(1, math.ceil(min(self.config.patience, 1.0) * max_epochs))
        for epoch in range(max_epochs):
            rate = self.rate(epoch / max_epochs)
            train_loss = self.one_epoch(epoch, max_epochs)
            if self.has_diverged():
                if self.stops_early and self.best_epoch >= 0:
                    return
                raise diverged()
            self.settle()
            valid_loss = self.validation_loss()
            active = float((self.network.tree.activity > 0).double().mean())
            record = Epoch(0, epoch, max_epochs, train_loss, valid_loss, rate, active_nodes=active)
            self.history.append(record)
            if not self.stops_early or valid_loss < self.best_loss:
                self.best_loss = valid_loss
                self.keep(epoch)
            if run.notify(record) or (self.stops_early and epoch - self.best_epoch >= patience):
                return


def diverged() -> ValueError:
    """Return the error for diverged learning."""
    return ValueError(
        "Learning diverged: weights became huge. Lower learning_rate, or the range of "
        "sample_weight."
    )


def learn(task: Task, config: Latent, run: Run) -> LatentNetwork:
    """Learn a latent tree; see `hardwood.learn.latent`."""
    interrupted = False
    with _one_thread():
        own = _Run(task, config, run.seed)
        try:
            own.follow(run)
        except KeyboardInterrupt:
            interrupted = True
        own.network.load_state_dict(own.best_state)
        return _learned(own, interrupted)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run torch on one thread, for reproducible sums, and restore its random state."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.enable_grad(), torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(before)


def _learned(run: _Run, interrupted: bool) -> LatentNetwork:
    """Extract the learned network without its inactive nodes, in float64."""
    pruned = run.network.tree.pruned()
    weights, bias = _folded(pruned.split)
    nodes = pruned.nodes.numpy()
    linear_layers = run.network.predictor.linear_layers
    layers = [(_array(layer.weight), _array(layer.bias)) for layer in linear_layers]
    first, n_nodes = layers[0][0], run.network.tree.n_nodes
    layers[0] = (np.hstack([first[:, nodes], first[:, n_nodes:]]), layers[0][1])
    arrays = [weights, bias, *(part for layer in layers for part in layer)]
    if not all((np.abs(array) < _HUGE).all() for array in arrays):
        raise diverged()
    return LatentNetwork(
        nodes=nodes,
        activity=_array(pruned.activity),
        splits=pruned.splits.numpy(),
        weights=weights,
        bias=bias,
        layers=tuple(layers),
        history=tuple(run.history),
        best_epoch=run.best_epoch,
        interrupted=interrupted,
    )


def _folded(split: nn.Module) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and biases of splits, with the normalization folded in."""
    assert isinstance(split, nn.Sequential)
    linear, norm = split[0], split[1]
    assert isinstance(linear, nn.Linear)
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    factor = _array(norm.weight) / np.sqrt(_array(norm.running_var) + norm.eps)
    bias = (_array(linear.bias) - _array(norm.running_mean)) * factor + _array(norm.bias)
    return _array(linear.weight) * factor[:, None], bias


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()
