"""Models of the reward of each action, for off-policy evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardwood import parameters
from hardwood.bandit.log import Log, action_names, number_table, occurring
from hardwood.bandit.online import all_or_interrupt
from hardwood.table.split import fold_numbers
from hardwood.table.subset import taken

_DEFAULT_DEPTH = 4
_MIN_ROWS = 10  # with fewer rounds of an action, their mean is used


def reward_estimates(
    X: Any,
    action: Any,
    reward: Any,
    *,
    actions: Any = None,
    model: Any = None,
    folds: int = 5,
    random_state: int | None = None,
) -> np.ndarray:
    """Estimate the reward of every action in every logged round, cross-fitted.

    The rounds are divided into folds. The estimates for a fold come from models trained on the
    other folds: one model per action, on the rounds in which it was taken. So no estimate depends
    on the reward of its own round, which makes the doubly robust method unbiased.

    Parameters
    ----------
    X
        (n, d) contexts: any table that the model accepts.
    action
        (n,) actions taken.
    reward
        (n,) their rewards.
    actions
        Names of the actions, or their number; by default those that occur, sorted.
    model
        A regressor, which is cloned; by default `hardwood.DGTRegressor` with depth 4.
    folds
        Number of folds, at least 2.
    random_state
        Seed of the folds, and of models whose own seed is None.

    Returns
    -------
    estimates
        (n, K). If an action was taken in fewer than 10 rounds of the other folds, or always had the
        same reward there, its estimate is its mean; if it was never taken, the mean of all rewards.
    """
    names = action_names(occurring(np.asarray(action)) if actions is None else actions)
    log = Log.of(X, action, reward, None, None, names)
    return cross_fitted(log, model, folds, random_state)


def cross_fitted(log: Log, model: Any, folds: int, random_state: int | None) -> np.ndarray:
    """Return the cross-fitted estimates for a log."""
    folds = parameters.integer("folds", folds, 2, len(log))
    rng = np.random.default_rng(random_state)
    fold = fold_numbers(len(log), folds, rng, log.action)
    estimates = np.empty((len(log), len(log.actions)))
    for k in range(folds):
        test = np.flatnonzero(fold == k)
        rows = taken(log.X, test)
        otherwise = float(log.reward[fold != k].mean())
        for a in range(len(log.actions)):
            others = np.flatnonzero((fold != k) & (log.action == a))
            seed = int(rng.integers(2**31))
            estimates[test, a] = _estimates_of_one(log, others, rows, model, otherwise, seed)
    return estimates


def _estimates_of_one(
    log: Log, others: np.ndarray, rows: Any, model: Any, otherwise: float, seed: int
) -> Any:
    """Return the estimates of one action's reward on the rows of a fold, trained on the others."""
    reward = log.reward[others]
    if reward.size == 0:
        return otherwise
    if reward.size < _MIN_ROWS or np.ptp(reward) == 0:
        return float(reward.mean())
    with all_or_interrupt():
        fitted = _regressor(model, seed).fit(taken(log.X, others), reward)
    found = np.asarray(fitted.predict(rows), dtype=np.float64).reshape(-1)
    if not np.isfinite(found).all():
        raise ValueError(f"The reward model {model!r:.80} predicts NaN or infinity.")
    return found


def _regressor(model: Any, seed: int) -> Any:
    from sklearn.base import clone

    from hardwood.estimators.dgt import DGTRegressor

    if model is None:
        return DGTRegressor(max_depth=_DEFAULT_DEPTH, random_state=seed)
    if not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise TypeError(
            "The reward model must be a regressor with fit and predict, or an array of estimates "
            f"of shape (rows, actions), got {model!r:.80}."
        )
    copy = clone(model)
    if copy.get_params().get("random_state", 0) is None:
        copy.set_params(random_state=seed)
    return copy


def given_estimates(model: Any, log: Log) -> np.ndarray:
    """Check estimates given as an array, (n, K)."""
    return number_table("reward_model as an array", model, len(log), len(log.actions))
