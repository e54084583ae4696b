"""The rewards of the tree and of the network of a bandit, and who decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

from hardwood.text.numbers import format_interval, format_number


class RewardInterval(NamedTuple):
    """An estimated mean reward per round and the bounds of its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{format_number(self.value)} ({format_interval(self.low, self.high)})"


@dataclass(frozen=True)
class DeciderReport:
    """How the tree of a bandit compares with its network, returned by `decider_report`.

    The estimates are doubly robust, on the bandit's own recent rounds, each taken before the round
    was learned from. They are rewards without exploration and without masks.

    Attributes
    ----------
    decides
        Who decides now: "network" or "tree".
    agreement
        Share of the rounds in which both would take the same action.
    tree, network
        The reward of each per round, with an interval.
    difference
        The reward of the tree less that of the network, with an interval.
    n_effective
        Effective number of rounds that the estimates rest on, at most 2,000: recent ones count
        most, and the weight of a round falls to a third within 1,000 rounds.
    confidence
        Confidence level of the intervals.
    """

    decides: Literal["network", "tree"]
    agreement: float
    tree: RewardInterval
    network: RewardInterval
    difference: RewardInterval
    n_effective: float
    confidence: float

    def __str__(self) -> str:
        return (
            f"The {self.decides} decides. In {100 * self.agreement:.1f} % of the rounds the tree "
            f"agrees with the network.\nreward per round: tree {self.tree}, network "
            f"{self.network}\ntree less network: {self.difference}; {100 * self.confidence:g} % "
            f"intervals, effective number of rounds: {self.n_effective:.0f}"
        )


def report_of(
    found: Mapping[str, Any], decides: Literal["network", "tree"], confidence: float
) -> DeciderReport:
    """Return the engine's means and standard errors as a report."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)

    def interval_of(name: str) -> RewardInterval:
        mean, error = found[name]
        return RewardInterval(mean, mean - z * error, mean + z * error)

    return DeciderReport(
        decides,
        found["agreement"],
        interval_of("tree"),
        interval_of("network"),
        interval_of("difference"),
        found["n_effective"],
        confidence,
    )
