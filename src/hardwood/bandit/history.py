"""Actions, propensities and rewards of a bandit, round by round."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hardwood.text.numbers import plural


@dataclass(frozen=True, eq=False)
class History:
    """Rounds of a `DGTBandit`, in order.

    Parameters
    ----------
    action
        (n,) names of the actions taken.
    propensity
        (n,) float64, the probability with which each was taken.
    reward
        (n,) float64, the reward of each.
    """

    action: np.ndarray
    propensity: np.ndarray
    reward: np.ndarray

    def __len__(self) -> int:
        return len(self.reward)

    @cached_property
    def mean_reward(self) -> np.ndarray:
        """(n,) mean reward of the rounds up to each; the last is the mean of all."""
        return _running_mean(self.reward)

    def __repr__(self) -> str:
        mean = f", mean reward {self.mean_reward[-1]:.4g}" if len(self) else ""
        return f"History({plural(len(self), 'round')}{mean})"


@dataclass(frozen=True, eq=False)
class LossHistory:
    """Rounds of a `DGTBanditRegressor`, in order.

    Parameters
    ----------
    loss
        (n,) float64, the loss of each round: of the number tried, or the mean of the two.
    """

    loss: np.ndarray

    def __len__(self) -> int:
        return len(self.loss)

    @cached_property
    def mean_loss(self) -> np.ndarray:
        """(n,) mean loss of the rounds up to each; the last is the mean of all."""
        return _running_mean(self.loss)

    def __repr__(self) -> str:
        mean = f", mean loss {self.mean_loss[-1]:.4g}" if len(self) else ""
        return f"LossHistory({plural(len(self), 'round')}{mean})"


def name_array(actions: Sequence[Hashable]) -> np.ndarray:
    """Return names of actions as an array that keeps their types.

    NumPy would turn numbers into text if some names are text.
    """
    if len({type(action) for action in actions}) == 1:
        return np.array(actions)
    names = np.empty(len(actions), object)
    names[:] = actions
    return names


def _running_mean(values: np.ndarray) -> np.ndarray:
    mean: np.ndarray = np.cumsum(values) / np.arange(1, len(values) + 1)
    return mean
