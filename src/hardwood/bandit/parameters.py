"""The hyperparameters of `DGTBandit` and `DGTBanditRegressor`: ranges, defaults, what each is for.

The learners check what they are given by making one of these, and the engine takes it as a
dictionary. The command line builds its options from the same fields.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from hardwood.parameters import (
    Parameters,
    choice_field,
    flag_field,
    integer_field,
    is_auto,
    real_field,
)

MAX_DEPTH = 10
MAX_OPEN = 100_000_000
_MAX_BATCH = 65_536
_MAX_HIDDEN = 4096
_NETWORK_LIMITS = {"learning_rate": 1.0, "batch_size": 1024, "updates_per_round": 100.0}
_MAX_RATE = 1000.0  # far beyond any useful learning rate; weights are float32


@dataclass(frozen=True, kw_only=True)
class OnlineParameters(Parameters):
    """Hyperparameters of both learners.

    Once made, every "auto" is replaced by its value for the method. A parameter that the method
    does not use must have its default.
    """

    method: str
    max_depth: int
    learning_rate: float = real_field(
        "auto", 0.0, _MAX_RATE, open_low=True, open_high=False, or_auto=True
    )
    batch_size: int
    updates_per_round: float = real_field("auto", 0.0, 1000.0, open_high=False, or_auto=True)
    buffer_size: int = integer_field(100_000, 1)
    input_noise: float = real_field(1.0, 0.0)
    gradient_accumulation: int = integer_field(4, 1, _MAX_BATCH)
    max_open: int = integer_field(100_000, 1, MAX_OPEN)

    METHODS: ClassVar[tuple[str, ...]]
    USED_BY: ClassVar[dict[str, tuple[str, ...]]]
    """The methods that use a parameter, unless all do."""
    AUTO: ClassVar[dict[str, dict[str, float]]]
    """Values that "auto" stands for, by parameter and method."""

    def __post_init__(self) -> None:
        super().__post_init__()
        defaults = {each.name: each.default for each in fields(self)}
        for name in sorted(self._unused):
            if getattr(self, name) != defaults[name]:
                raise ValueError(
                    f"{name} is not used with method={self.method!r}, only with "
                    f"{' or '.join(map(repr, self.USED_BY[name]))}. Leave it out."
                )
        for name, values in self.AUTO.items():
            if is_auto(getattr(self, name)):
                object.__setattr__(self, name, values[self.method])

    @property
    def is_paper(self) -> bool:
        """Whether the method is the paper's, which stores no rounds."""
        return is_paper(self.method)

    @property
    def _unused(self) -> frozenset[str]:
        return frozenset(n for n, methods in self.USED_BY.items() if self.method not in methods)

    def used(self) -> dict[str, Any]:
        """Return the parameters that the method uses, by name."""
        names = [each.name for each in fields(self) if each.name not in self._unused]
        return {name: getattr(self, name) for name in names}

    def _shared(self) -> dict[str, Any]:
        return {
            "is_paper": self.is_paper,
            "batch_size": self.gradient_accumulation if self.is_paper else self.batch_size,
            "updates_per_round": self.updates_per_round,
            "buffer_size": self.buffer_size,
            "input_noise": self.input_noise,
            "learning_rate": self.learning_rate,
            "slowing": math.inf,
            "starts_level": not self.is_paper,
            **(_RMSPROP if self.is_paper else _ADAM),
        }


@dataclass(frozen=True, kw_only=True)
class BanditParameters(OnlineParameters):
    """Hyperparameters of a `DGTBandit`, which documents them."""

    METHODS = ("replay", "network", "paper")
    USED_BY: ClassVar[dict[str, tuple[str, ...]]] = {
        **dict.fromkeys(
            ("batch_size", "updates_per_round", "buffer_size", "buffer", "exploration"),
            ("replay", "network"),
        ),
        **dict.fromkeys(
            ("hidden_size", "loss", "who_decides", "explore_by", "detect_change"), ("network",)
        ),
        "epsilon": ("network", "paper"),
        "input_noise": ("replay",),
        "gradient_accumulation": ("paper",),
        "quantizer": ("paper",),
    }
    # [DGT22], Sec. C.3.2, has the learning rate, epsilon and the accumulation over 4 rounds.
    AUTO: ClassVar[dict[str, dict[str, float]]] = {
        "learning_rate": {"replay": 5e-3, "network": 2e-3, "paper": 1e-3},
        "batch_size": {"replay": 64, "network": 256, "paper": 64},
        "updates_per_round": {"replay": 1.0, "network": 0.5, "paper": 1.0},
    }

    method: str = choice_field("replay", METHODS)
    max_depth: int = integer_field(8, 1, MAX_DEPTH)
    exploration: float = real_field(1.0, 0.0)
    epsilon: float = real_field(0.3, 0.0, 1.0, open_high=False)
    quantizer: str = choice_field("sign", ("sign", "scaled"))
    min_propensity: float = real_field(0.0, 0.0, 1.0)
    batch_size: int = integer_field("auto", 1, _MAX_BATCH, or_auto=True)
    buffer: str = choice_field("uniform", ("uniform", "recent"))
    hidden_size: int = integer_field(256, 1, _MAX_HIDDEN)
    loss: str = choice_field("auto", ("auto", "logistic", "squared", "huber"))
    who_decides: str = choice_field("network", ("network", "tree", "auto"))
    explore_by: str = choice_field("gaps", ("gaps", "epsilon"))
    detect_change: bool = flag_field(True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, most in _NETWORK_LIMITS.items() if self.has_network else ():
            if getattr(self, name) > most:
                raise ValueError(
                    f"{name} must be at most {most:g} with method='network', got "
                    f"{getattr(self, name):g}."
                )

    @property
    def has_network(self) -> bool:
        """Whether a network explores and teaches the tree."""
        return self.method == "network"

    @property
    def explores_by_gaps(self) -> bool:
        """Whether exploration is by inverse gap weighting, else by Eq. (7)."""
        return not self.is_paper and self.explore_by == "gaps"

    def for_engine(self, n_columns: int, n_actions: int) -> dict[str, Any]:
        """Return what the engine takes."""
        rate = _TAUGHT_RATE if self.has_network else self.learning_rate
        widening = 1.0 if self.is_paper else 4.0 / math.sqrt(n_columns)
        options = self._shared() | {
            "learning_rate": rate,
            "split_rate": rate * widening,
            "explores_by_gaps": self.explores_by_gaps,
            "exploration": self._gamma() if self.explores_by_gaps else self.epsilon,
            "min_propensity": self.min_propensity,
            "quantizer": self.quantizer,
            "shares_bias": self.is_paper,
            "keeps_recent": self.buffer == "recent",
            "n_first": min(max(_FIRST_ROUNDS, 2 * n_actions), _MOST_FIRST_ROUNDS),
            "hidden": [],
        }
        return options | self._of_network() if self.has_network else options

    def _gamma(self) -> float:
        """Return gamma per square root of the round; huge if there is (almost) no exploration."""
        gamma = _NETWORK_GAMMA if self.has_network else _GAMMA
        return min(gamma / self.exploration, _GREEDY) if self.exploration > 0 else _GREEDY

    def _of_network(self) -> dict[str, Any]:
        return {
            "hidden_size": self.hidden_size,
            "network_rate": self.learning_rate,
            "weight_decay": _WEIGHT_DECAY,
            "loss": self.loss,
            "who_decides": self.who_decides,
            "detects_change": self.detect_change,
            "averaging": _AVERAGED,
        }


@dataclass(frozen=True, kw_only=True)
class RegressionParameters(OnlineParameters):
    """Hyperparameters of a `DGTBanditRegressor`, which documents them."""

    METHODS = ("two_point", "one_point", "paper_two_point", "paper_one_point")
    USED_BY: ClassVar[dict[str, tuple[str, ...]]] = {
        **dict.fromkeys(
            ("batch_size", "updates_per_round", "buffer_size", "input_noise"), METHODS[:2]
        ),
        "gradient_accumulation": METHODS[2:],
    }
    AUTO: ClassVar[dict[str, dict[str, float]]] = {
        "learning_rate": {
            "two_point": 5e-3,
            "one_point": 5e-3,
            "paper_two_point": 1e-3,  # [DGT22], Sec. C.3.2
            "paper_one_point": 1e-3,
        },
        "updates_per_round": dict.fromkeys(METHODS, 1.0),
        # With one point, a loss close to the prediction is mostly noise.
        "perturbation": {
            "two_point": 0.5,
            "one_point": 0.7,
            "paper_two_point": 0.5,
            "paper_one_point": 0.5,
        },
    }

    method: str = choice_field("two_point", METHODS)
    max_depth: int = integer_field(6, 1, MAX_DEPTH)
    perturbation: float = real_field("auto", 1e-6, 1e6, or_auto=True)
    start: float = real_field(0.0, -math.inf)
    scale: float = real_field(1.0, 1e-30, 1e30)  # losses are divided by it
    batch_size: int = integer_field(256, 1, _MAX_BATCH)

    @property
    def has_two_points(self) -> bool:
        """Whether two numbers are tried per round."""
        return self.method.endswith("two_point")

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


def is_paper(method: str) -> bool:
    """Whether a method is one of the paper's."""
    return method.startswith("paper")


# gamma of inverse gap weighting is this times the square root of the round. Without exploration it
# is so large that only the best action is ever taken.
_GAMMA = 100.0
_NETWORK_GAMMA = 30.0
_GREEDY = 1e300
# Minimum number of rounds before the first step: they show the size of rewards.
_FIRST_ROUNDS = 20
_MOST_FIRST_ROUNDS = 500
# For a network: the weight decay of AdamW, and the learning rate of the tree that it teaches.
_WEIGHT_DECAY = 0.01
_TAUGHT_RATE = 5e-3
# The fraction of all steps over which the tree that decides is averaged: for regression, and beside
# a network.
_AVERAGED = 0.1
# For regression: widths between the three linear layers of the tree.
_HIDDEN = [32, 32]
# Rounds that are drawn for each one that is replayed; the most recent of them is used. Old rounds
# say little about a loss that is not quadratic.
_RECENCY = 2
# The largest step that a single loss may suggest, in perturbations.
_REACH = 6.0
_ADAM = {"optimizer": "adam", "momentum": 0.9, "decay": 0.999, "epsilon": 1e-8}
# The paper has no momentum; epsilon is that of the authors' code.
_RMSPROP = {"optimizer": "rmsprop", "momentum": 0.0, "decay": 0.99, "epsilon": 1e-5}
