"""Read and check logged rounds, and policies to evaluate on them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from hardwood import parameters
from hardwood.table.subset import n_rows
from hardwood.table.target import check_finite, positions

_LARGEST = float(np.finfo(np.float64).max)
_MAX_ACTIONS = 100_000
_SUM_TOLERANCE = 1e-6  # probabilities are often float32


@dataclass(frozen=True, eq=False)
class Log:
    """Contexts, actions and rewards of n rounds.

    Attributes
    ----------
    X
        The contexts, a table of any kind.
    action
        (n,) int64, positions in `actions`.
    reward
        (n,) float64, finite.
    propensity
        (n,) float64 in (0, 1], the probability with which the action was taken; None if unknown.
    mask
        (n, K) bool, which actions could be taken; None for all.
    actions
        K names of the actions.
    """

    X: Any
    action: np.ndarray
    reward: np.ndarray
    propensity: np.ndarray | None
    mask: np.ndarray | None
    actions: tuple[Hashable, ...]

    @classmethod
    def of(
        cls,
        X: Any,
        action: Any,
        reward: Any,
        propensity: Any,
        mask: Any,
        actions: Sequence[Hashable],
    ) -> Log:
        """Read and check a log.

        Raises
        ------
        ValueError
            If lengths differ, an action is not in ``actions`` or not allowed by its mask, a reward
            is not finite, or a propensity is outside (0, 1].
        """
        n = n_rows(X)
        if n < 2:
            raise ValueError(f"X must have at least 2 logged rounds, found {n}.")
        taken = action_positions("action", column("action", action, n), actions)
        rewards = numbers("reward", reward, n)
        chances = None if propensity is None else propensities(propensity, n)
        masks = None if mask is None else masks_of(mask, n, len(actions))
        if masks is not None:
            check_within("action", np.arange(n), taken, masks, actions)
        return cls(X, taken, rewards, chances, masks, tuple(actions))

    def __len__(self) -> int:
        return len(self.action)


def column(name: str, values: Any, n: int) -> np.ndarray:
    """Return n values as a 1-D array."""
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) != n:
        raise ValueError(f"{name} must hold one entry for each row, ({n},), got {array.shape}.")
    return array


def numbers(name: str, values: Any, n: int) -> np.ndarray:
    """Return n finite numbers as float64."""
    array = column(name, values, n)
    if array.dtype.kind not in "biuf":
        found = next((e for e in array.tolist() if not isinstance(e, Real)), array.dtype)
        raise ValueError(f"{name} must hold numbers, found entries such as {found!r:.60}.")
    array = array.astype(np.float64)
    check_finite(name, array)
    return array


def number_table(
    name: str,
    values: Any,
    n: int,
    n_actions: int | None = None,
    *,
    largest: float = _LARGEST,
    instead: str = "",
) -> np.ndarray:
    """Return numbers as (n, K) float64, rows by actions; any K if ``n_actions`` is None.

    All must be finite and at most ``largest`` in absolute value. ``instead`` adds alternatives to
    the error message.
    """
    array = np.asarray(values)
    expected = (n, *(array.shape[1:2] if n_actions is None else (n_actions,)))
    if array.ndim != 2 or array.shape != expected or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold numbers of shape ({n}, {n_actions or 'actions'}), rows by actions"
            f"{instead}, got {array.dtype} of shape {array.shape}."
        )
    array = np.ascontiguousarray(array, np.float64)
    wrong = np.argwhere(~(np.abs(array) <= largest))
    if wrong.size:
        row, place = wrong[0].tolist()
        raise ValueError(
            f"{name} holds {array[row, place]} at row {row}, column {place}. Expected finite "
            f"numbers up to {largest:g}."
        )
    return array


def propensities(values: Any, n: int) -> np.ndarray:
    """Return n probabilities in (0, 1] as float64."""
    array = numbers("propensity", values, n)
    wrong = np.flatnonzero((array <= 0) | (array > 1))
    if wrong.size:
        raise ValueError(
            f"propensity must lie in (0, 1], found {array[wrong[0]]:g} in row {wrong[0]}: it is "
            "the probability with which the logged action was taken."
        )
    return array


def masks_of(mask: Any, n: int, n_actions: int) -> np.ndarray:
    """Return masks as (n, K) bool; every row allows an action."""
    array = np.asarray(mask)
    if array.shape == (n_actions,):
        array = np.broadcast_to(array, (n, n_actions))
    if array.shape != (n, n_actions) or not np.isin(array, (0, 1)).all():
        raise ValueError(
            f"mask must be booleans of shape ({n}, {n_actions}), True where an action may be "
            f"taken, got {array.dtype} of shape {array.shape}."
        )
    array = array.astype(bool)
    empty = np.flatnonzero(~array.any(axis=1))
    if empty.size:
        raise ValueError(f"mask allows no action in row {empty[0]}; at least one must be allowed.")
    return array


def action_names(actions: Any) -> tuple[Hashable, ...]:
    """Return the names of the actions: as given, or 0 to K - 1 for a number."""
    if isinstance(actions, Sequence | np.ndarray) and not isinstance(actions, str):
        values = actions.tolist() if isinstance(actions, np.ndarray) else actions
        names = tuple(values)
        if len(set(names)) != len(names) or not names:
            raise ValueError(f"actions must be different names, at least one, got {actions!r:.200}")
        return names
    return tuple(range(parameters.integer("actions", actions, 1, _MAX_ACTIONS)))


def action_positions(name: str, values: np.ndarray, actions: Sequence[Hashable]) -> np.ndarray:
    """Return the positions of actions among the names, (n,) int64."""
    found = positions(values, actions)
    unknown = np.flatnonzero(found < 0)
    if unknown.size:
        strange = values[unknown[:1]].tolist()[0]
        known = ", ".join(map(repr, actions[:8])) + (", ..." if len(actions) > 8 else "")
        raise ValueError(f"{name} holds {strange!r:.60}, which is not one of the actions {known}.")
    return found


def policy_of(
    policy: Any, X: Any, action: Any, mask: Any, actions: Any
) -> tuple[np.ndarray, tuple[Hashable, ...]]:
    """Return the probabilities of a policy, (n, K), and the names of the K actions.

    Parameters
    ----------
    policy
        (n, K) probabilities; (n,) chosen actions; or an object with ``action_probabilities(X)``
        or else ``predict(X)``, or a function of X, that returns one of these.
    X, action, mask
        The log.
    actions
        Names of the actions, or their number; None to take them from the policy, or from the log
        if the policy has none.
    """
    n = n_rows(X)
    output = np.asarray(_output_of(policy, X, mask))
    if output.ndim == 2 and output.shape[1] == 1:
        output = output[:, 0]
    if actions is None:
        actions = _names_of(policy, output, np.asarray(action))
    names = action_names(actions)
    if output.ndim == 1:
        chosen = action_positions("policy", column("policy", output, n), names)
        probabilities = np.zeros((n, len(names)))
        probabilities[np.arange(n), chosen] = 1.0
    else:
        probabilities = _probabilities(output, n, len(names))
    if mask is not None:
        rows, taken = np.nonzero(probabilities > 0)
        check_within("policy", rows, taken, masks_of(mask, n, len(names)), names)
    return probabilities, names


def _output_of(policy: Any, X: Any, mask: Any) -> Any:
    if hasattr(policy, "action_probabilities"):
        return policy.action_probabilities(X, **({} if mask is None else {"mask": mask}))
    if hasattr(policy, "predict"):
        return policy.predict(X)
    return policy(X) if callable(policy) else policy


def _names_of(policy: Any, output: np.ndarray, action: np.ndarray) -> Any:
    """Return the policy's names of the actions, and other names that occur."""
    names: list[Any] = []
    for attribute in ("actions_", "actions", "classes_", "classes"):
        found = getattr(policy, attribute, None)
        if found is not None and not callable(found):
            names = list(found.tolist() if isinstance(found, np.ndarray) else found)
            break
    if output.ndim == 2:  # one column per action
        return names or output.shape[1]
    others = occurring(action) if names else occurring(action, output)
    return names + [name for name in others if name not in names]


def occurring(*columns: np.ndarray) -> list[Any]:
    """Return the names that occur in arrays of actions: sorted numbers, then sorted text."""
    found = {name for column in columns for name in column.reshape(-1).tolist()}
    return sorted(found, key=lambda name: (isinstance(name, str), name))


def _probabilities(output: np.ndarray, n: int, n_actions: int) -> np.ndarray:
    probabilities = number_table(
        "policy", output, n, n_actions, instead=f" (or ({n},) chosen actions)"
    )
    off = np.abs(probabilities.sum(axis=1) - 1)
    wrong = np.flatnonzero(~((off <= _SUM_TOLERANCE) & (probabilities >= 0).all(axis=1)))
    if wrong.size:
        raise ValueError(
            "policy must return probabilities that are at least 0 and sum to 1 in every row, got "
            f"{probabilities[wrong[0]]} in row {wrong[0]}."
        )
    return probabilities


def check_within(
    name: str, rows: np.ndarray, taken: np.ndarray, masks: np.ndarray, actions: Sequence[Hashable]
) -> None:
    """Refuse actions, given by position, that the masks of their rows do not allow."""
    outside = np.flatnonzero(~masks[rows, taken])
    if outside.size:
        i = outside[0]
        raise ValueError(
            f"{name} takes {actions[taken[i]]!r:.60} in row {rows[i]}, which mask does not allow."
        )
