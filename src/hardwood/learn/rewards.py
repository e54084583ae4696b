"""Rewards instead of losses: policy trees learned from a black-box reward function.

A loss is known for every leaf and has a gradient. A reward is only a number for the chosen action,
and policy gradients need nothing else. Leaves hold scores of actions, and the choice of an action
is the last decision of a trajectory [Reinforced16, Sec. 2.3 without its second term].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from hardwood.learn.gradient.engine import run_engine
from hardwood.learn.learner import Learned, Run, Start
from hardwood.learn.losses import Loss
from hardwood.learn.reinforced import MAX_DEPTH, MAX_TRAJECTORIES, Policies
from hardwood.learn.task import Task
from hardwood.learn.training import LARGEST
from hardwood.model.structure import Link
from hardwood.parameters import integer_field, real_field
from hardwood.text.numbers import plural

RewardPer = Literal["row", "batch"]
Reward: TypeAlias = Callable[[np.ndarray, np.ndarray], Any]
"""``reward(rows (B,), actions (B,))``: a number per row, or one for all of them."""

# The engine computes in float32, and squares rewards.
_LARGEST_REWARD = 1e15
# Row numbers go through the engine as targets, in two parts that float32 holds exactly.
_ROWS_PER_PART = 2**20


def row_target(n_rows: int) -> np.ndarray:
    """Return a target that identifies each row, (n, 2) float64."""
    return np.stack(np.divmod(np.arange(n_rows), _ROWS_PER_PART), axis=1).astype(np.float64)


@dataclass(frozen=True)
class Rewards(Loss):
    """The loss for the engine: the negative reward.

    Parameters
    ----------
    function
        The reward function.
    actions
        The actions to choose from.
    reward_per
        Whether the function returns a reward per row or one for the batch.
    """

    function: Reward
    actions: tuple[Any, ...]
    reward_per: RewardPer
    labels: np.ndarray = field(compare=False)
    name: ClassVar[str] = "custom"
    link_name: ClassVar[Link] = "softmax"

    def link(self, scores: np.ndarray) -> np.ndarray:
        """Convert scores of actions (L, k) to probabilities."""
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Convert probabilities to scores."""
        return np.log(np.clip(values, 1e-6, 1.0))

    def __call__(self, drawn: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return costs (B,), and each trajectory's cost minus the mean of the others, (B, M)."""
        rows = (target[:, 0].astype(np.int64) * _ROWS_PER_PART) + target[:, 1].astype(np.int64)
        cost = -self._rewards(rows, drawn.astype(np.int64))  # (B, M)
        M = cost.shape[1]
        advantage = (M * cost - cost.sum(axis=1, keepdims=True)) / (M - 1)
        return (
            cost.mean(axis=1).astype(np.float32),
            np.ascontiguousarray(advantage, dtype=np.float32),
        )

    def _rewards(self, rows: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        n, M = drawn.shape
        if self.reward_per == "row":
            flat = self._asked(np.tile(rows, M), drawn.T.ravel(), n * M)
            return flat.reshape(M, n).T
        of_batch = [self._asked(rows, drawn[:, s], 1)[0] for s in range(M)]
        return np.repeat(np.array(of_batch)[None], n, axis=0)

    def _asked(self, rows: np.ndarray, action: np.ndarray, n_expected: int) -> np.ndarray:
        answer = np.asarray(self.function(rows, self.labels[action]))
        if answer.size != n_expected or answer.dtype.kind not in "biuf":
            expected = (
                f"one number for each of {plural(n_expected, 'action')}"
                if self.reward_per == "row"
                else "one number for the batch"
            )
            raise ValueError(
                f"The reward function returned {answer.dtype} of shape {answer.shape}; expected "
                f"{expected}. reward_per={self.reward_per!r} says which."
            )
        answer = answer.reshape(n_expected).astype(np.float64)
        if not np.isfinite(answer).all():
            raise ValueError("The reward function returned a reward that is not finite.")
        if (largest := np.abs(answer).max()) > _LARGEST_REWARD:
            raise ValueError(
                f"The reward function returned a reward of {largest:g}; expected at most "
                f"{_LARGEST_REWARD:g} in size. Divide rewards so that they differ by about 1."
            )
        return answer


@dataclass(frozen=True)
class RewardedPolicies(Policies):
    """A policy tree, learned from the rewards of its trajectories.

    The task's loss is a `Rewards`, and its target is `row_target`. `entropy_bonus` is the initial
    bonus per nat of entropy, in units of the reward. Each trajectory is compared with the others of
    its row, or of its batch, so there are at least two.
    """

    losses: ClassVar[frozenset[str]] = frozenset({"custom"})
    takes_start: ClassVar[bool] = False

    max_depth: int = integer_field(4, 1, MAX_DEPTH)
    n_trajectories: int = integer_field(10, 2, MAX_TRAJECTORIES)
    learning_rate: float = real_field(0.1, 0, LARGEST, open_low=True)
    entropy_bonus: float = real_field(0.1, 0)

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Learn from random policies."""
        assert isinstance(task.loss, Rewards)
        # The rows of a batch share its reward, and so the bonus for their entropy.
        n_sharing = self.batch_size if task.loss.reward_per == "batch" else 1
        runs = run_engine(
            "reinforced",
            task,
            self.engine_options(
                task,
                self.topology,
                gradient="sampled",
                baseline="none",  # the costs of trajectories are relative already
                entropy_bonus=self.entropy_bonus / n_sharing,
                n_actions=len(task.loss.actions),
            ),
            run,
            n_outputs=self.n_trajectories,
        )
        return self.learned(task, self.topology, runs)
