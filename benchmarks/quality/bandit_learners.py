"""Bandit learners, each with the settings to try.

Ours has one setting for all data sets: its defaults. Vowpal Wabbit (VW) has a grid, and care is
taken not to make it look worse than it is. Its columns have names (VW takes bare integers for
indices of its weight table, where they collide with those of actions). Costs are -1 for a reward
of 1 and 0 otherwise (with costs 0 and 1, an action never taken looks best). Pairs of columns have a
large enough weight table. Columns are tried both unchanged and standardized with the mean and
standard deviation of the whole stream, which nobody knows beforehand in practice.
contextualbandits has trees, one per action (the policies of Elmachtoub et al., 2017). It keeps all
rows and fits the trees again whenever the number of rows has grown by a tenth.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Setting = dict[str, Any]

LONGEST_PASS = 900.0  # processor seconds, estimated from VW's first rows
_ROWS_TO_JUDGE_BY = 100
_ROWS_PER_LOOK = 200  # how often the tree is read in the last quarter
_FIRST_REFIT, _REFIT_GROWTH = 100, 1.1


class Stream(NamedTuple):
    """Rows in the order in which they come, and for each the action with a reward of 1."""

    X: np.ndarray
    y: np.ndarray
    n_actions: int


class Pass(NamedTuple):
    """The rewards of a learner in one run.

    Parameters
    ----------
    rewards
        The reward of every row.
    tree_right
        For each row of the last quarter, whether the policy's tree, without exploration and before
        it learned from the row (or the 199 before it), would have taken the right action. None for
        a learner without a tree to read.
    """

    rewards: np.ndarray
    tree_right: np.ndarray | None = None


class TooLongError(Exception):
    """One run would take too long: ``seconds``, estimated from the first rows."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"one pass would take {seconds:.0f} s")
        self.seconds = seconds


class Learner(NamedTuple):
    """A learner to compare.

    Parameters
    ----------
    name
        In the records.
    title
        Of its column.
    settings
        The settings to try; the best on the first order of the rows is run on all orders.
    replay
        Processes a stream once, with a setting and a seed.
    """

    name: str
    title: str
    settings: Callable[[], list[Setting]]
    replay: Callable[[Stream, Setting, int], Pass]


# --- ours --------------------------------------------------------------------------------------


_WITHOUT_EFFECT = ("max_open", "min_propensity")  # as long as they have their defaults


def _defaults(method: str, **given: Any) -> Callable[[], list[Setting]]:
    """Return the one setting with every default by name, so that a changed default is run again."""

    def settings() -> list[Setting]:
        from hardwood.bandit import DGTBandit

        used = DGTBandit(2, method=method, **given).parameters_
        return [{name: value for name, value in used.items() if name not in _WITHOUT_EFFECT}]

    return settings


def _tree(stream: Stream, setting: Setting, seed: int) -> Pass:
    from hardwood.bandit import DGTBandit

    bandit = DGTBandit(stream.n_actions, **setting, random_state=seed)
    n = len(stream.X)
    edges = [0, *range(n - n // 4, n, _ROWS_PER_LOOK), n]
    rewards, right = [], []
    for first, last in itertools.pairwise(edges):
        X, y = stream.X[first:last], stream.y[first:last]
        if first:
            right.append(bandit.policy().predict(X) == y)
        rewards.append(bandit.replay(X, y).reward)
    return Pass(np.concatenate(rewards), np.concatenate(right))


# --- Vowpal Wabbit -----------------------------------------------------------------------------

_EXPLORATION = {
    "squarecb": "--squarecb",
    "epsilon 0.1": "--epsilon 0.1",
    "epsilon 0.05": "--epsilon 0.05",
    "cover": "--cover 5",
}


def vw_grid() -> list[Setting]:
    """Return all settings, starting with those that are usually good."""
    return [
        {"exploration": exploration, "pairs": pairs, "learning_rate": rate, "standardized": scaled}
        for some in (tuple(_EXPLORATION)[:-1], tuple(_EXPLORATION)[-1:])
        for scaled in (True, False)
        for pairs in (False, True)
        for exploration in some
        for rate in (1.0, 0.5, 0.1)
    ]


def _vw_wide_grid() -> list[Setting]:
    """Return learning rates above those of the grid, with the options that are usually best."""
    return [
        {"exploration": "squarecb", "pairs": pairs, "learning_rate": rate, "standardized": True}
        for pairs in (True, False)
        for rate in (2.0, 4.0, 8.0)
    ]


def vw_options(setting: Setting, n_columns: int, n_actions: int) -> str:
    options = f"--cb_explore {n_actions} {_EXPLORATION[setting['exploration']]} --quiet"
    options += f" -l {setting['learning_rate']:g}"
    if setting["pairs"]:
        n_weights = n_actions * (n_columns + 1) * (n_columns + 2) // 2
        # Four slots per weight, so that few collide; never fewer bits than VW's default.
        options += f" -q ff -b {max(18, math.ceil(math.log2(4 * n_weights)))}"
    return options


def vw_text(row: np.ndarray) -> str:
    """Return a row in the format of VW: named columns, zeros left out."""
    columns = np.flatnonzero(row)
    pairs = zip(columns.tolist(), row[columns].tolist(), strict=True)
    return "|f " + " ".join([f"f{column}:{value:.6g}" for column, value in pairs])


def drawn(probabilities: list[float], rng: np.random.Generator) -> int:
    """Draw an action; probabilities add up to one except for rounding."""
    edges = np.cumsum(probabilities)
    place = np.searchsorted(edges, rng.random() * edges[-1], side="right")
    return min(int(place), len(probabilities) - 1)


def standardized(X: np.ndarray) -> np.ndarray:
    deviation = X.std(axis=0, dtype=np.float64)
    scaled = (X - X.mean(axis=0, dtype=np.float64)) / np.where(deviation > 0, deviation, 1.0)
    return scaled.astype(np.float32)


class VWPolicy:
    """VW called from Python: predict, draw, learn."""

    def __init__(self, setting: Setting, n_columns: int, n_actions: int, seed: int) -> None:
        from vowpalwabbit import Workspace

        self._learner = Workspace(vw_options(setting, n_columns, n_actions))
        self._rng = np.random.default_rng([seed, 1])  # not the numbers that orders came from

    def __enter__(self) -> VWPolicy:
        return self

    def __exit__(self, *error: object) -> None:
        self._learner.finish()

    def replay(self, X: np.ndarray, y: np.ndarray, longest: float = math.inf) -> np.ndarray:
        """Process rows and return rewards; ``longest`` limits the total seconds."""
        rewards, start = np.empty(len(X)), time.process_time()
        for i, (row, label) in enumerate(zip(X, y, strict=True)):
            if i == _ROWS_TO_JUDGE_BY:
                seconds = (time.process_time() - start) / i * len(X)
                if seconds > longest:
                    raise TooLongError(seconds)
            rewards[i] = self._round(vw_text(row), label)
        return rewards

    def _round(self, text: str, label: int) -> float:
        probabilities = self._learner.predict(text)
        action = drawn(probabilities, self._rng)
        reward = float(action == label)
        self._learner.learn(f"{action + 1}:{-reward:g}:{probabilities[action]:.6g} {text}")
        return reward

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the best actions: every exploration used here takes them most often."""
        return np.array([np.argmax(self._learner.predict(vw_text(row))) for row in X])


def _vw(stream: Stream, setting: Setting, seed: int) -> Pass:
    X = standardized(stream.X) if setting["standardized"] else stream.X
    with VWPolicy(setting, X.shape[1], stream.n_actions, seed) as policy:
        return Pass(policy.replay(X, stream.y, LONGEST_PASS))


# --- trees of contextualbandits ----------------------------------------------------------------

_TREE_POLICIES = ("PartitionedUCB", "PartitionedTS", "BootstrappedUCB")


def _refit_grid() -> list[Setting]:
    return [{"policy": policy} for policy in _TREE_POLICIES]


def _refit_policy(name: str, n_actions: int, seed: int) -> Any:
    """Return a policy of contextualbandits; it does not take a seed of 0."""
    from contextualbandits import online
    from sklearn.tree import DecisionTreeClassifier

    if name != "BootstrappedUCB":
        return getattr(online, name)(n_actions, random_state=seed + 1, njobs=1)
    tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=seed)
    return online.BootstrappedUCB(tree, n_actions, random_state=seed + 1, njobs_arms=1)


def _refit(stream: Stream, setting: Setting, seed: int) -> Pass:
    """Fit again on all rows so far whenever their number has grown by a tenth."""
    n, start = len(stream.X), time.process_time()
    policy = _refit_policy(setting["policy"], stream.n_actions, seed)
    actions = np.random.default_rng([seed, 1]).integers(stream.n_actions, size=n)
    rewards = (actions == stream.y).astype(np.float64)
    X, i = stream.X.astype(np.float64), min(_FIRST_REFIT, n)
    while i < n:
        policy.fit(X[:i], actions[:i], rewards[:i])
        end = min(n, math.ceil(_REFIT_GROWTH * i))
        actions[i:end] = policy.predict(X[i:end])
        rewards[i:end] = actions[i:end] == stream.y[i:end]
        i = end
        seconds = (time.process_time() - start) * n / i
        if i > n / 10 and seconds > LONGEST_PASS:
            raise TooLongError(seconds)
    return Pass(rewards)


VW = Learner("vw", "Vowpal Wabbit, best of its grid", vw_grid, _vw)
LEARNERS = {
    learner.name: learner
    for learner in (
        Learner("tree", "DGTBandit", _defaults("replay"), _tree),
        Learner("network", "network decides", _defaults("network"), _tree),
        Learner(
            "network_tree",
            "network teaches, tree decides",
            _defaults("network", who_decides="tree"),
            _tree,
        ),
        Learner(
            "network_auto",
            "network, then tree once nothing is lost",
            _defaults("network", who_decides="auto"),
            _tree,
        ),
        Learner("paper", "the paper's estimator", _defaults("paper"), _tree),
        VW,
        Learner("vw_wide", "Vowpal Wabbit, higher rates", _vw_wide_grid, _vw),
        Learner("refit", "contextualbandits, best of its tree policies", _refit_grid, _refit),
    )
}
