"""Every number that a learner from bandit feedback can be given, by name, with its default.

The engine is handed them as a dictionary. What is added here is a parameter of `DGTBandit` or
`DGTBanditRegressor` at once: checked, saved and listed.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from hardwood import parameters
from hardwood.parameters import Parameters, choice_field, integer_field, real_field

MAX_HEIGHT = 10
MAX_BATCH = 65_536
MAX_RATE = 1000.0  # far beyond what learns anything; parameters are float32


class OnlineOptions(Parameters):
    """What both kinds of learners have, and how the engine takes it."""

    estimator: str
    learning_rate: float
    accumulate: int
    batch_size: int
    batches_per_round: float
    reservoir: int
    blur: float

    @property
    def is_paper(self) -> bool:
        """Whether nothing is stored."""
        return self.estimator.startswith("paper")

    def _shared(self) -> dict[str, Any]:
        return {
            "is_paper": self.is_paper,
            "batch_size": self.accumulate if self.is_paper else self.batch_size,
            "batches_per_round": self.batches_per_round,
            "capacity": self.reservoir,
            "blur": self.blur,
            "learning_rate": self.learning_rate,
            "slowing": math.inf,
            "starts_level": not self.is_paper,
            **(_RMSPROP if self.is_paper else _ADAM),
        }


@dataclass(frozen=True)
class BanditOptions(OnlineOptions):
    """How a `DGTBandit` learns and explores.

    Parameters
    ----------
    estimator
        ``"replay"``: the tree regresses the reward of the action that was taken, explores by
        inverse gap weighting and replays stored rounds. ``"paper"``: the estimator of the paper,
        Eqs. (7) and (8), one gradient per round.
    exploration
        ``"paper"``: the probability of a random action, Eq. (7). ``"replay"``: how much it
        explores, relative to the default.
    learning_rate
        Of the leaves, by Adam (``"replay"``) or RMSprop (``"paper"``). ``"replay"``: that of the
        splits is 4 / sqrt(columns) times as large, so that a step moves the score of a split by
        about as much, however many columns there are.
    accumulate
        ``"paper"``: rounds whose gradients are put together, as their mean, before a step.
    batch_size
        ``"replay"``: stored rounds per step.
    batches_per_round
        ``"replay"``: steps per round, in the mean.
    reservoir
        ``"replay"``: rounds that are kept.
    blur
        ``"replay"``: deviation of the noise that stored contexts are replayed with, in deviations
        of the columns, times the fourth root of the number of stored rounds.
    keep
        ``"replay"``: which rounds are kept, ``"all"``: a uniform sample of all, ``"newest"``: the
        newest ones, for a world that changes.
    """

    estimator: str = choice_field("replay", ("replay", "paper"))
    exploration: float = real_field(1.0, 0.0)
    learning_rate: float = real_field(5e-3, 0.0, MAX_RATE, open_low=True, open_high=False)
    accumulate: int = integer_field(4, 1, MAX_BATCH)
    batch_size: int = integer_field(64, 1, MAX_BATCH)
    batches_per_round: float = real_field(1.0, 0.0, 1000.0, open_high=False)
    reservoir: int = integer_field(100_000, 1)
    blur: float = real_field(1.0, 0.0)
    keep: str = choice_field("all", ("all", "newest"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_paper:  # there it is a probability
            parameters.real("exploration", self.exploration, low=0.0, high=1.0, open_high=False)

    def for_engine(self, n_columns: int, n_actions: int) -> dict[str, Any]:
        """Return what the engine takes."""
        if self.is_paper:
            gamma = self.exploration
        else:  # so little exploration as to make it infinite is none
            gamma = min(_GAMMA / self.exploration, _GREEDY) if self.exploration > 0 else _GREEDY
        widening = 1.0 if self.is_paper else 4.0 / math.sqrt(n_columns)
        return self._shared() | {
            "split_rate": self.learning_rate * widening,
            "exploration": gamma,
            "keeps_newest": self.keep == "newest",
            "n_first": min(max(_FIRST_ROUNDS, 2 * n_actions), _MOST_FIRST_ROUNDS),
            "hidden": [],
        }


@dataclass(frozen=True)
class RegressionOptions(OnlineOptions):
    """How a `DGTBanditRegressor` learns.

    Parameters
    ----------
    estimator
        ``"two_point"``: two numbers are tried per round. ``"one_point"``: one. Both store rounds
        and replay them: the tree regresses where the loss was least, as its slope and its bend
        have it. ``"paper_two_point"``, ``"paper_one_point"``: one gradient per round, by Eq. (10)
        or (9) of the paper.
    perturbation
        How far from the prediction numbers are tried, delta, in units of `scale`;
        ``"one_point"``: in half of the rounds twice as far, which tells how much the loss bends.
    learning_rate
        Of the leaves, by Adam; that of the splits as for a `DGTBandit`. Estimators of the paper:
        of RMSprop.
    accumulate
        Estimators of the paper: rounds whose gradients are summed before a step.
    batch_size
        Stored rounds per step.
    batches_per_round
        Steps per round, in the mean.
    reservoir
        Rounds that are kept, the newest ones.
    blur
        Deviation of the noise that stored contexts are replayed with, in deviations of the columns,
        times the fourth root of the number of stored rounds.
    start
        What is predicted at first.
    scale
        How far good predictions lie from `start`, roughly.
    """

    estimator: str = choice_field(
        "two_point", ("two_point", "one_point", "paper_two_point", "paper_one_point")
    )
    perturbation: float = real_field(0.5, 0.0, open_low=True)
    learning_rate: float = real_field(5e-3, 0.0, open_low=True)
    accumulate: int = integer_field(4, 1, MAX_BATCH)
    batch_size: int = integer_field(256, 1, MAX_BATCH)
    batches_per_round: float = real_field(1.0, 0.0, 1000.0, open_high=False)
    reservoir: int = integer_field(100_000, 1)
    blur: float = real_field(1.0, 0.0)
    start: float = real_field(0.0, -math.inf)
    scale: float = real_field(1.0, 0.0, open_low=True)

    @property
    def has_two_points(self) -> bool:
        """Whether two numbers are tried per round."""
        return self.estimator.endswith("two_point")

    def for_engine(self, n_columns: int) -> dict[str, Any]:
        """Return what the engine takes."""
        rate = self.learning_rate
        return self._shared() | {
            "split_rate": rate if self.is_paper else rate * 4.0 / math.sqrt(n_columns),
            "has_two_points": self.has_two_points,
            "perturbation": self.perturbation,
            "start": self.start,
            "scale": self.scale,
            "n_first": _FIRST_ROUNDS,
            "recency": _RECENCY,
            "reach": _REACH,
            "path": "sum" if self.is_paper else "product",
            "hidden": [] if self.is_paper else _HIDDEN,
            "averaging": 0.0 if self.is_paper else _AVERAGED,
        }


# gamma of inverse gap weighting is this times the square root of the round; without exploration,
# so large that what is not the best is never taken.
_GAMMA = 100.0
_GREEDY = 1e300
# Rounds before the first step, at least: they say what rewards are like.
_FIRST_ROUNDS = 20
_MOST_FIRST_ROUNDS = 500
# Of a tree of numbers: widths between its three linear layers, and the part of all steps that the
# tree it decides by is the mean of.
_HIDDEN = [32, 32]
_AVERAGED = 0.1
# Rounds that are drawn for one to be replayed, the newest of them: old ones know little of a loss
# that is not quadratic.
_RECENCY = 2
# The farthest that one loss may tell to go, in perturbations.
_REACH = 6.0
_ADAM = {"optimizer": "adam", "momentum": 0.9, "decay": 0.999, "epsilon": 1e-8}
# The paper has no momentum; epsilon is that of the authors' code.
_RMSPROP = {"optimizer": "rmsprop", "momentum": 0.0, "decay": 0.99, "epsilon": 1e-5}

# The defaults of each estimator.
BANDIT_DEFAULTS: dict[str, BanditOptions] = {
    "replay": BanditOptions(),
    # Sec. C.3.2
    "paper": BanditOptions(estimator="paper", exploration=0.3, learning_rate=1e-3),
}
REGRESSION_DEFAULTS: dict[str, RegressionOptions] = {
    "two_point": RegressionOptions(),
    # Closer to the prediction, what one loss says is mostly noise.
    "one_point": RegressionOptions(estimator="one_point", perturbation=0.7),
    # Sec. C.3.2
    "paper_two_point": RegressionOptions(estimator="paper_two_point", learning_rate=1e-3),
    "paper_one_point": RegressionOptions(estimator="paper_one_point", learning_rate=1e-3),
}

_Kind = TypeVar("_Kind", BanditOptions, RegressionOptions)


def chosen(defaults: Mapping[str, _Kind], estimator: Any, given: Mapping[str, Any]) -> _Kind:
    """Return an estimator's defaults with what was given in their place.

    Raises
    ------
    TypeError
        For an option that does not exist.
    ValueError
        For one out of its range; the message names it.
    """
    base = defaults[parameters.choice("estimator", estimator, tuple(defaults))]
    known = {option.name for option in dataclasses.fields(base)}
    for name in given:
        if name not in known:
            raise TypeError(
                f"{name!r} is no option of the estimator {estimator!r}. It has: "
                f"{', '.join(sorted(known))}."
            )
    return dataclasses.replace(base, **given)


def with_options(signature: inspect.Signature, options: Parameters) -> inspect.Signature:
    """Return a constructor's signature with every option and its default in place of ``**``."""
    parameters = [
        parameter
        for name, parameter in signature.parameters.items()
        if name != "self" and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    named = {parameter.name for parameter in parameters}
    for option in dataclasses.fields(options):
        if option.name not in named:
            value = getattr(options, option.name)
            parameters.append(
                inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=value)
            )
    return signature.replace(parameters=parameters)
