r"""Off-policy evaluation: estimate the reward of a policy from the log of another policy.

In round i the logging policy observed :math:`x_i`, took :math:`a_i` with probability :math:`p_i`
and received :math:`r_i`. The policy to evaluate takes a with probability :math:`\pi(a \mid x)`;
:math:`w_i = \pi(a_i \mid x_i) / p_i` is the weight of the round, :math:`q(x, a)` a model of the
reward. Each method estimates :math:`V = E\,[\sum_a \pi(a \mid x)\, r(x, a)]`:

========== =================================================================================
``ips``    inverse propensity (Horvitz and Thompson 1952): the mean of :math:`w_i r_i`; unbiased
``snips``  self-normalized (Swaminathan and Joachims 2015): :math:`\sum w_i r_i / \sum w_i`
``dm``     direct: the mean of :math:`\hat q_i = \sum_a \pi(a \mid x_i) q(x_i, a)`
``dr``     doubly robust (Dudik et al. 2011): the mean of :math:`\hat q_i + w_i (r_i - q(x_i,
           a_i))`
``switch`` SWITCH-DR (Wang et al. 2017): as ``dr``, but rounds of a weight above ``max_weight``
           are left to the model
========== =================================================================================

Every method is a ratio of two means, whose denominator is 1 except for ``snips``. Variances and
intervals are computed for a ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from hardwood import parameters
from hardwood.bandit.log import Log, policy_of
from hardwood.bandit.reward_model import cross_fitted, given_estimates
from hardwood.report.resampling import Kinds, effective_rows, n_resamples
from hardwood.text.numbers import format_interval, format_number, plural

METHODS = ("ips", "snips", "dm", "dr", "switch")
INTERVALS = ("normal", "bootstrap", "bernstein")


@dataclass(frozen=True)
class Estimate:
    """Estimated mean reward of a policy per round, returned by `evaluate`.

    Attributes
    ----------
    value
        The estimate.
    low, high
        Bounds of its confidence interval.
    standard_error
        Estimated standard deviation of the estimate.
    n
        Logged rounds.
    effective_n
        Effective sample size: the squared sum of the weights, divided by the sum of their squares.
        About this many rounds logged by the policy itself would be as informative. Equal to ``n``
        for ``dm``, which has no weights.
    method, interval, confidence
        The arguments of `evaluate`.
    n_cut
        Number of rounds whose weight was above ``max_weight``.
    """

    value: float
    low: float
    high: float
    standard_error: float
    n: int
    effective_n: float
    method: str
    interval: str
    confidence: float
    n_cut: int

    def __str__(self) -> str:
        interval = f"{100 * self.confidence:g} % interval: {format_interval(self.low, self.high)}"
        rounds = f"{plural(self.n, 'round')}, effectively {self.effective_n:.0f}"
        return f"{format_number(self.value)} ({interval}; {self.method}, {rounds})"


def evaluate(
    policy: Any,
    X: Any,
    action: Any,
    reward: Any,
    propensity: Any = None,
    *,
    method: str = "dr",
    confidence: float = 0.95,
    interval: str = "normal",
    mask: Any = None,
    actions: Any = None,
    reward_model: Any = None,
    folds: int = 5,
    max_weight: float | None = None,
    reward_range: tuple[float, float] | None = None,
    random_state: int | None = 0,
) -> Estimate:
    """Estimate the mean reward of a policy from logged rounds of another policy.

    Parameters
    ----------
    policy
        (n, K) probabilities of the actions; (n,) chosen actions; an object with
        ``action_probabilities`` (a bandit, as it would act now, with exploration) or else with
        ``predict`` (a tree, which always takes the action it predicts); or a function of X that
        returns one of these.
    X
        (n, d) contexts: any table that the policy and the reward model accept.
    action
        (n,) actions taken.
    reward
        (n,) their rewards, any finite numbers.
    propensity
        (n,) probability with which the logged action was taken, in (0, 1]. May be None for ``dm``.
    method
        "ips", "snips", "dm", "dr" or "switch"; the module docstring defines them.
    confidence
        Confidence level of the interval.
    interval
        "normal"; "bootstrap", the quantiles over resampled rounds, which need not be symmetric; or
        "bernstein" (Maurer and Pontil 2009), only for "ips", which is valid for any number of
        rounds and needs ``reward_range`` and ``max_weight``, the bound on weights.
    mask
        (n, K) or (K,) booleans, True where an action could be taken.
    actions
        Names of the K actions in the order of the columns, or their number. By default those of
        the policy, or else those that occur.
    reward_model
        For "dm", "dr" and "switch": a regressor, cross-fitted as in `reward_estimates`, by default
        a `DGTRegressor`; or an (n, K) array of estimates.
    folds
        Folds of the cross-fitting.
    max_weight
        Larger weights are cut to this, which reduces the variance and adds bias. "switch" requires
        it, and leaves rounds with larger weights to the reward model.
    reward_range
        (lowest, highest) possible reward, for "bernstein".
    random_state
        Seed of folds, models and bootstrap.

    Returns
    -------
    estimate
        Compare its ``effective_n`` with ``n``: if it is small, a few rounds dominate the estimate
        and the interval is unreliable. The interval of "dm" ignores the error of the model.

    Raises
    ------
    ValueError
        If the log is invalid, or if the policy would never have taken a logged action.
    """
    parameters.choice("method", method, METHODS)
    parameters.choice("interval", interval, INTERVALS)
    parameters.real("confidence", confidence, 0, 1, open_low=True)
    _check_options(method, interval, propensity, max_weight, reward_range)
    _check_model(method, reward_model)
    probabilities, names = policy_of(policy, X, action, mask, actions)
    log = Log.of(X, action, reward, propensity, mask, names)
    if reward_range is not None:
        _check_range(log.reward, reward_range)
    weight, n_cut = _weights(log, probabilities, method, max_weight)
    estimates = None
    if method in ("dm", "dr", "switch"):
        estimates = _estimates(log, reward_model, folds, random_state)
    above, below = _terms(method, log, probabilities, weight, estimates)
    value, error = _ratio(above, below)
    if interval == "bootstrap":
        low, high = _bootstrap(above, below, confidence, random_state)
    elif interval == "bernstein":
        assert max_weight is not None
        assert reward_range is not None
        reach = _bernstein(above, confidence, _span_of_terms(reward_range, max_weight))
        low, high = value - reach, value + reach
    else:
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
        low, high = value - reach, value + reach
    effective = float(len(log)) if method == "dm" else effective_rows(weight)
    return Estimate(
        value, low, high, error, len(log), effective, method, interval, confidence, n_cut
    )


def _terms(
    method: str,
    log: Log,
    probabilities: np.ndarray,
    weight: np.ndarray,
    estimates: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the terms of numerator and denominator, (n,) each."""
    ones = np.ones(len(log))
    if estimates is None:
        return weight * log.reward, weight if method == "snips" else ones
    direct = (probabilities * estimates).sum(axis=1)
    if method == "dm":
        return direct, ones
    of_logged = estimates[np.arange(len(log)), log.action]
    return direct + weight * (log.reward - of_logged), ones


def _ratio(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """Return a ratio of means and its standard error by the delta method, exact for a mean."""
    value = float(above.sum() / below.sum())
    residual = above - value * below
    n = len(above)
    deviation = math.sqrt(float((residual**2).sum()) / (n - 1))
    return value, deviation / math.sqrt(n) / float(below.mean())


def _bootstrap(
    above: np.ndarray, below: np.ndarray, confidence: float, random_state: int | None
) -> tuple[float, float]:
    """Return quantiles of the ratio over resampled rounds; the reward model is not refitted."""
    rng = np.random.default_rng(random_state)
    n = len(above)
    rows = Kinds(np.arange(n), np.ones(n, dtype=np.int64), np.ones(n))
    ratios = np.full(n_resamples(n), np.nan)
    for i in range(len(ratios)):
        drawn = rows.resample(rng)
        total = float((drawn * below).sum())
        if total > 0:  # else the resample has no action that the policy takes
            ratios[i] = float((drawn * above).sum()) / total
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    low, high = np.quantile(ratios[np.isfinite(ratios)], tails)
    return float(low), float(high)


def _bernstein(terms: np.ndarray, confidence: float, width: float) -> float:
    """Return half the width of the empirical Bernstein interval.

    Maurer and Pontil (2009), Theorem 4, for numbers in an interval of the given width, with half of
    the risk on either side.
    """
    n = len(terms)
    log_risk = math.log(4 / (1 - confidence))
    variance = float(terms.var(ddof=1))
    return math.sqrt(2 * variance * log_risk / n) + 7 * width * log_risk / (3 * (n - 1))


def _span_of_terms(reward_range: tuple[float, float], max_weight: float) -> float:
    low, high = reward_range
    return max_weight * (max(high, 0.0) - min(low, 0.0))


def _weights(
    log: Log, probabilities: np.ndarray, method: str, max_weight: float | None
) -> tuple[np.ndarray, int]:
    """Return the weights of the rounds, (n,), cut at ``max_weight``, and how many were cut."""
    if method == "dm" or log.propensity is None:
        return np.ones(len(log)), 0
    weight = probabilities[np.arange(len(log)), log.action] / log.propensity
    limit = math.inf if max_weight is None else max_weight
    is_cut = weight > limit
    weight = np.where(is_cut, 0.0 if method == "switch" else limit, weight)
    if not weight.any():
        raise ValueError(
            f"the log says nothing about this policy with method={method!r}: the policy would "
            "never have taken a logged action, or max_weight leaves no round. Only method='dm' "
            "extrapolates."
        )
    return weight, int(is_cut.sum())


def _estimates(log: Log, model: Any, folds: int, random_state: int | None) -> np.ndarray:
    if model is None or hasattr(model, "fit"):
        return cross_fitted(log, model, folds, random_state)
    return given_estimates(model, log)


def _check_options(
    method: str,
    interval: str,
    propensity: Any,
    max_weight: float | None,
    reward_range: tuple[float, float] | None,
) -> None:
    if propensity is None and method != "dm":
        raise ValueError(
            f"method={method!r} needs the propensity of every logged action; only 'dm' does not."
        )
    if max_weight is not None:
        parameters.real("max_weight", max_weight, 0, math.inf, open_low=True)
    elif method == "switch":
        raise ValueError(
            "method='switch' needs max_weight; rounds with larger weights are left to the model."
        )
    if method == "dm" and max_weight is not None:
        raise ValueError("max_weight is not used with method='dm', which has no weights.")
    if interval != "bernstein":
        if reward_range is not None:
            raise ValueError("reward_range is only used with interval='bernstein'; leave it out.")
        return
    if method != "ips":
        raise ValueError(f"interval='bernstein' is for method='ips', not for {method!r}.")
    if max_weight is None or reward_range is None:
        raise ValueError(
            "interval='bernstein' needs reward_range=(lowest, highest) and max_weight, which is "
            "1 / the smallest propensity of the logging policy."
        )


def _check_model(method: str, reward_model: Any) -> None:
    if reward_model is not None and method in ("ips", "snips"):
        raise ValueError(f"reward_model is not used with method={method!r}; leave it out.")


def _check_range(reward: np.ndarray, reward_range: tuple[float, float]) -> None:
    low, high = reward_range
    if not low < high:
        raise ValueError(f"reward_range must be (lowest, highest), got {reward_range!r}.")
    if reward.min() < low or reward.max() > high:
        raise ValueError(
            f"reward_range is {reward_range!r}, but reward goes from {reward.min():g} to "
            f"{reward.max():g}."
        )
