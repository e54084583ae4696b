r"""Permutation importance: how much worse a model gets when a feature's values are shuffled.

.. math:: \theta = E\,\ell(x_i \text{ with feature } j \text{ of } x_{i'}) - E\,\ell(x_i)

is estimated by the mean over R shuffles of all rows. A row takes part twice: as the *receiver* of
another row's value and as the *giver* of its own. The interval includes both. With e the centered
contribution of a pair, S the variance over rows of (mean of e as receiver + mean of e as giver) and
s^2 the variance of e over all pairs, the variance of the estimate is (S - s^2 / R) / n: averages
over R partners add s^2 / R to S, which is subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hardwood.model.outputs import check_finite
from hardwood.report.permuted import PermutedColumns
from hardwood.report.resampling import Z
from hardwood.report.row_losses import RowLoss
from hardwood.report.scored_rows import ScoredRows

_LEAST = 0.25  # the variance is at least this part of S, whatever is subtracted


@dataclass(frozen=True)
class Importance:
    """How much a model relies on a feature, or on a group of features that are shuffled together.

    Attributes
    ----------
    name
        Name of the feature or group.
    features
        Names of the features.
    importance
        How much worse the metric gets, averaged over the shuffles: a score falls, a loss rises.
    low, high
        Its 95 % interval, over rows and shuffles.
    shuffles
        Importance in each shuffle.
    """

    name: str
    features: tuple[str, ...]
    importance: float
    low: float
    high: float
    shuffles: tuple[float, ...]


def column_groups(
    names: Sequence[str], groups: Mapping[str, Sequence[str]] | None
) -> dict[str, list[int]]:
    """Return the columns to shuffle together, by name: the groups, then each other feature.

    Raises
    ------
    ValueError
        If a group names an unknown feature, or two groups name the same one.
    """
    if groups is not None and not isinstance(groups, Mapping):
        raise TypeError(
            "groups must name each group and list its features, as in "
            f"{{'place': ['north', 'east']}}, got {groups!r:.80}"
        )
    place = {name: j for j, name in enumerate(names)}
    found: dict[str, list[int]] = {}
    taken: dict[str, str] = {}
    for group, members in (groups or {}).items():
        if isinstance(members, str) or not members:
            raise ValueError(f"group {group!r:.80} must list features, found {members!r:.80}")
        for name in members:
            if name not in place:
                raise ValueError(
                    f"group {group!r:.80} names {name!r:.80}, which the model does not have"
                )
            if name in taken:
                raise ValueError(f"{name!r:.80} is in two groups, {taken[name]!r} and {group!r}")
            taken[name] = group
        found[str(group)] = [place[name] for name in members]
    for name in names:
        if name not in taken:
            if name in found:
                raise ValueError(f"a group has the name of the feature {name!r:.80}; rename it")
            found[name] = [place[name]]
    return found


def importances(
    rows: ScoredRows,
    loss: RowLoss,
    groups: Mapping[str, Sequence[int]],
    used: np.ndarray,
    *,
    n_repeats: int,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> tuple[Importance, ...]:
    """Shuffle each group of columns several times; return the most important first.

    ``used``, (p,) bool, marks columns that have a weight; others have importance 0 and are not
    shuffled.
    """
    base = loss.of_rows(rows.truth, rows.outputs)
    table = PermutedColumns(rows.model.schema, rows.matrix)
    found = []
    for name, columns in groups.items():
        features = tuple(rows.model.feature_names[j] for j in columns)
        if not used[list(columns)].any():
            found.append(Importance(name, features, 0.0, 0.0, 0.0, (0.0,) * n_repeats))
            continue
        pairs = _Pairs(loss, rows.weight)
        for _ in range(n_repeats):
            order = rng.permutation(len(rows))
            outputs = rows.model.outputs(table.shuffled(columns, order), n_jobs=n_jobs)
            check_finite(outputs)
            pairs.add(order, loss.of_rows(rows.truth, outputs) - base)
        mean, reach = pairs.estimate()
        found.append(
            Importance(name, features, mean, mean - reach, mean + reach, tuple(pairs.means))
        )
    return tuple(sorted(found, key=lambda entry: -entry.importance))


class _Pairs:
    """Sums over shuffles of the losses of receivers and givers, (n, c) each."""

    def __init__(self, loss: RowLoss, weight: np.ndarray) -> None:
        self._loss = loss
        self._weight = (weight / weight.mean())[:, None]
        self._received = np.zeros(loss.further.shape)
        self._given = np.zeros(loss.further.shape)
        self._weight_given = np.zeros((weight.size, 1))
        self._squares = self._products = 0.0
        self.means: list[float] = []

    def add(self, order: np.ndarray, change: np.ndarray) -> None:
        """Add a shuffle in which row i received the value of row ``order[i]``."""
        weighed = self._weight * change
        self._received += weighed
        self._given[order] += weighed
        self._weight_given[order] += self._weight
        self.means.append(float(weighed.mean()))
        of_rows = weighed.mean(axis=1)
        self._squares += float((of_rows**2).mean())
        self._products += float((of_rows * self._weight[:, 0]).mean())

    def estimate(self) -> tuple[float, float]:
        """Return the mean and the half-width of its 95 % interval."""
        repeats, n = len(self.means), len(self._weight)
        theta = self._received.mean(axis=0) / repeats  # (c,)
        received = self._received / repeats - theta * self._weight
        given = self._given / repeats - theta * self._weight_given / repeats
        further = theta * self._weight * self._loss.further
        influence = (received + given - further).mean(axis=1)  # (n,)
        mean = float(theta.mean())
        over_rows = float(influence @ influence) / n
        over_pairs = (self._squares - 2 * mean * self._products) / repeats
        over_pairs += mean**2 * float((self._weight**2).mean())
        variance = max(over_rows - over_pairs / repeats, _LEAST * over_rows) / n
        return mean, Z * float(np.sqrt(variance))
