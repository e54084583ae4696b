"""Decisions that wait for their reward, and the tokens that identify them.

A token is an integer below 2^53, which JSON and spreadsheets store exactly. Its high bits are the
learner's own number, so that a token of another learner is recognized; its low bits are a count.
Since counts only grow and the oldest decisions expire first, a short list of expired tokens is
enough to say why a token is not open.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hardwood.errors import TokenError

COUNT_BITS = 35  # 34 billion decisions
LEARNER_BITS = 53 - COUNT_BITS

Held = tuple[np.ndarray, int, float]
"""A stored decision: encoded context (c,), number of the action, propensity."""

ARRAYS = {
    "open.token": ("I64", 1),
    "open.context": ("F32", 2),
    "open.action": ("I32", 1),
    "open.propensity": ("F64", 1),
    "expired": ("I64", 1),
}
"""Arrays of open decisions in a file: dtype and number of dimensions."""


class Decision(NamedTuple):
    """An action, its propensity, and the token to report its reward with.

    Parameters
    ----------
    action
        Name of the action to take. For a `DGTBanditRegressor`: the number to try, or the pair of
        numbers ``(below, above)``.
    propensity
        The probability with which the action was chosen. Keep it in every log.
    token
        The argument of ``learn`` that identifies this decision: an integer, which JSON or a
        database can store.
    """

    action: Any
    propensity: float
    token: int


class OpenDecisions:
    """Open decisions by their tokens; beyond ``limit`` of them, the oldest expire.

    Parameters
    ----------
    learner
        Number of the learner, below 2^18.
    limit
        How many decisions may be open.
    """

    def __init__(self, learner: int, limit: int) -> None:
        self.first_token = learner << COUNT_BITS
        self.limit = limit
        self.next_token = self.first_token
        self.n_expired = 0
        self._held: OrderedDict[int, Held] = OrderedDict()
        # The tokens that expired last, ascending; enough to tell "expired" from "already learned"
        # for the last `limit` of them.
        self._expired: deque[int] = deque(maxlen=limit)

    def __len__(self) -> int:
        return len(self._held)

    def add(self, held: Held) -> int:
        """Open a decision and return its token."""
        token = self.next_token
        self.next_token = token + 1
        self._held[token] = held
        if len(self._held) > self.limit:
            self._expired.append(self._held.popitem(last=False)[0])
            self.n_expired += 1
        return token

    def get(self, token: Any) -> Held:
        """Return the decision of a token.

        Raises
        ------
        TokenError
            If it is unknown, expired or closed; the message says which.
        """
        # Only a plain int: 1.0 and True are equal to 1 and would be found.
        held = self._held.get(token) if type(token) is int else None
        return self._held[self._checked(token)] if held is None else held

    def close(self, token: Any) -> None:
        """Remove a decision that was learned from; it may have expired in the meantime."""
        self._held.pop(int(token), None)

    def _checked(self, token: Any) -> int:
        """Return the token as a plain int if it is open."""
        number = _whole(token)
        if number is None:
            raise TokenError(
                f"token must be the integer that decide returned, got {token!r:.80} "
                f"({type(token).__name__})"
            )
        if number in self._held:
            return number
        raise TokenError(f"token {number} {self._fate(number)}")

    def _fate(self, token: int) -> str:
        """Return why a token is not open, as the end of a sentence."""
        if not self.first_token <= token < self.first_token + (1 << COUNT_BITS):
            return "is unknown: it belongs to another learner, or to none"
        if token >= self.next_token:
            return (
                "is unknown: this learner has not issued it yet. If the learner was loaded from a "
                "file, the file was saved before that decision"
            )
        if token in self._expired:
            return (
                f"has expired: {self.limit} newer decisions were open. Raise max_open to wait "
                "longer for rewards"
            )
        if len(self._expired) == self.limit and token < self._expired[0]:
            return "is too old: it was learned from, or expired, long ago"
        return "was already learned from: a decision takes one reward"

    # For the file

    def to_arrays(self, n_columns: int) -> dict[str, np.ndarray]:
        """Return the open decisions and the last expired tokens as the arrays of a file."""
        held = list(self._held.values())
        contexts = np.zeros((len(held), n_columns), np.float32)
        for i, (context, _, _) in enumerate(held):
            contexts[i] = context
        return {
            "open.token": np.array(list(self._held), np.int64),
            "open.context": contexts,
            "open.action": np.array([action for _, action, _ in held], np.int32),
            "open.propensity": np.array([propensity for _, _, propensity in held], np.float64),
            "expired": np.array(self._expired, np.int64),
        }

    def restore(self, next_token: int, n_expired: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore what `to_arrays` returned; the caller checks the contents of decisions.

        Raises
        ------
        ValueError
            If the arrays or tokens contradict each other.
        """
        tokens, expired = arrays["open.token"].tolist(), arrays["expired"].tolist()
        parts = [arrays[name] for name in ("open.context", "open.action", "open.propensity")]
        if any(len(part) != len(tokens) for part in parts):
            raise ValueError("the arrays of open decisions differ in length")
        if len(tokens) > self.limit or len(expired) != min(self.limit, n_expired):
            raise ValueError("the numbers of open and of expired decisions are inconsistent")
        if next_token >= self.first_token + (1 << COUNT_BITS):
            raise ValueError(f"the next token {next_token} does not belong to this learner")
        bounds = [self.first_token - 1, *expired, *tokens, next_token]
        if any(a >= b for a, b in zip(bounds, bounds[1:], strict=False)):
            raise ValueError("tokens must ascend, the expired before the open, up to the next one")
        for token, context, action, propensity in zip(tokens, *parts, strict=True):
            # A copy, because a view would keep the whole file in memory.
            self._held[token] = (context.copy(), int(action), float(propensity))
        self._expired.extend(expired)
        self.next_token, self.n_expired = next_token, n_expired


def _whole(token: Any) -> int | None:
    """Return an integer of Python or NumPy as a plain int, else None."""
    if isinstance(token, bool) or not hasattr(token, "__index__"):
        return None
    try:
        return int(token.__index__())
    except TypeError:  # an array of several numbers, or a boolean of NumPy
        return None
