"""Which parameters a trial tries, such that a search can stop and go on as if it had not.

A trial's *position* is its place in the search: attempts that were interrupted are made again, at
the same position. Optuna's samplers have a generator that starts anew with every process; here each
position has its own, seeded by the search's seed and the position. What is tried at a position is
then a function of the seed and of the trials before it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

POSITION = "position"


def position_of(trial: FrozenTrial, trials: Sequence[FrozenTrial]) -> int:
    """Return a trial's place in the search; only another attempt at a place has it written down."""
    if POSITION in trial.user_attrs:
        return int(trial.user_attrs[POSITION])
    return sum(t.number < trial.number and POSITION not in t.user_attrs for t in trials)


def untried(
    points: Sequence[dict[str, Any]], trials: Sequence[FrozenTrial], seed: int, position: int
) -> dict[str, Any] | None:
    """Draw one of the points that no trial has tried, or is trying; None where none is left."""
    taken = {_key(t.system_attrs.get("fixed_params") or t.params) for t in trials}
    left = [point for point in points if _key(point) not in taken]
    return left[np.random.default_rng([seed, position]).integers(len(left))] if left else None


def _key(params: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted(params.items()))


def sampler_of(sampler: Any, seed: int, points: list[dict[str, Any]]) -> BaseSampler:
    """Return a sampler for a name or itself; `points` are those of a grid."""
    if isinstance(sampler, BaseSampler):
        return sampler
    if sampler == "grid":
        return GridSampler(points, seed)
    if sampler == "random":
        return PositionSampler(RandomSampler, seed)
    return PositionSampler(lambda own_seed: TPESampler(seed=own_seed), seed)


class PositionSampler(BaseSampler):
    """A sampler of Optuna, made anew for every trial with a seed of the trial's position.

    Parameters
    ----------
    make
        From a seed to the sampler.
    seed
        Of the search.
    """

    def __init__(self, make: Callable[[int], BaseSampler], seed: int) -> None:
        self._make = make
        self._seed = seed
        self._of_trial: dict[int, BaseSampler] = {}
        self._lock = threading.Lock()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return self._sampler(study, trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._sampler(study, trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        sampler = self._sampler(study, trial)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        with self._lock:
            self._of_trial.pop(trial.number, None)

    def _sampler(self, study: Study, trial: FrozenTrial) -> BaseSampler:
        with self._lock:
            if trial.number not in self._of_trial:
                position = position_of(trial, study.get_trials(deepcopy=False))
                words = np.random.SeedSequence([self._seed, position]).generate_state(1)
                self._of_trial[trial.number] = self._make(int(words[0]))
            return self._of_trial[trial.number]


class GridSampler(BaseSampler):
    """Every point of a grid once, in an order drawn from the seed: part of a grid is a fair part.

    Parameters
    ----------
    points
        The value of every name, point by point.
    seed
        Of the search.
    """

    def __init__(self, points: list[dict[str, Any]], seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(points))
        self._points = [points[i] for i in order]

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        position = position_of(trial, study.get_trials(deepcopy=False))
        return self._points[position % len(self._points)][param_name]
