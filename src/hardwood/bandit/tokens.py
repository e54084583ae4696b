"""Decisions that wait for their reward, and the tokens that identify them.

A token is an integer below 2^53, which JSON and spreadsheets store exactly. Its high bits are the
learner's life, its low bits the number of the decision in that life. A life ends when the learner
is saved and loaded: what is loaded draws a new one at its first decision. So a token that was
issued after the file was saved, and lost in a crash, never equals one that is issued later.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hardwood.errors import TokenError

COUNT_BITS = 28  # 268 million decisions in a life; then the next one begins
LIFE_BITS = 53 - COUNT_BITS
MAX_LIVES = 1000  # lives whose tokens are recognized; of older ones, only those still open

Held = tuple[np.ndarray, int, float]
"""A stored decision: encoded context (c,), number of the action, propensity."""

ARRAYS = {
    "open.token": ("I64", 1),
    "open.context": ("F32", 2),
    "open.action": ("I32", 1),
    "open.propensity": ("F64", 1),
    "expired": ("I64", 1),
    "lives": ("I64", 1),
}
"""Arrays of open decisions in a file: dtype and number of dimensions."""


class Decision(NamedTuple):
    """An action, its propensity, the token to report its reward with, and what it was decided by.

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
    leaf
        Number of the leaf that the context reached, counted from the left of a perfect tree of
        depth ``max_depth``. None for a baseline without a tree.
    version
        Version of the tree that decided: the number of rounds that it was learned from.
    """

    action: Any
    propensity: float
    token: int
    leaf: int | None = None
    version: int | None = None


class OpenDecisions:
    """Open decisions by their tokens; beyond ``limit`` of them, the oldest expire.

    Parameters
    ----------
    life
        Number of the first life, below 2^25.
    limit
        How many decisions may be open.
    """

    def __init__(self, life: int, limit: int) -> None:
        self.limit = limit
        self.n_expired = 0
        self._life = life
        self.next_token = life << COUNT_BITS
        self._end = _end_of(life)  # no token from here on may be issued in this life
        # The next token of every life that ended, the oldest first.
        self._ended: dict[int, int] = {}
        self._held: OrderedDict[int, Held] = OrderedDict()
        # The tokens that expired last, the oldest first; enough to tell "expired" from "already
        # learned" for the last `limit` of them.
        self._expired: deque[int] = deque(maxlen=limit)

    def __len__(self) -> int:
        return len(self._held)

    @property
    def is_untouched(self) -> bool:
        """Whether no decision was ever made."""
        return not self._ended and self.next_token == self._life << COUNT_BITS

    def add(self, held: Held) -> int:
        """Open a decision and return its token."""
        if self.next_token == self._end:
            self._begin_life()
        token = self.next_token
        self.next_token = token + 1
        self._held[token] = held
        if len(self._held) > self.limit:
            self._expired.append(self._held.popitem(last=False)[0])
            self.n_expired += 1
        return token

    def _begin_life(self) -> None:
        """Begin a life with a random number that no known token has."""
        self._ended = dict(list(self._lives().items())[-MAX_LIVES + 1 :])
        taken = self._ended.keys() | {_life_of(token) for token in self._held}
        while self._life in taken:
            self._life = secrets.randbits(LIFE_BITS)
        self.next_token, self._end = self._life << COUNT_BITS, _end_of(self._life)

    def _lives(self) -> dict[int, int]:
        """Return the next token of every life, the oldest first."""
        return self._ended | {self._life: self.next_token}

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
        lives, life = self._lives(), _life_of(token)
        if life not in lives:
            return (
                "is unknown: it belongs to another learner, or to a run of this one that was not "
                "saved after that decision"
            )
        if token >= lives[life]:
            if life == self._life and self.next_token < self._end:
                return "is unknown: this learner has not issued it yet"
            return (
                "is lost: this learner was loaded from a file that was saved before that decision, "
                "so it does not know what was decided. If you keep a log, use learn_logged"
            )
        if token in self._expired:
            return (
                f"has expired: {self.limit} newer decisions were open. Raise max_open to wait "
                "longer for rewards"
            )
        places = {each: i for i, each in enumerate(lives)}

        def age(of: int) -> tuple[int, int]:
            return places.get(_life_of(of), -1), of

        if len(self._expired) == self.limit and age(token) < age(self._expired[0]):
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
            "lives": np.array(list(self._lives().values()), np.int64),
        }

    def restore(self, n_expired: int, arrays: Mapping[str, np.ndarray]) -> None:
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
        lives = _read_lives(arrays["lives"].tolist())
        _check_issued([*expired, *tokens], lives)
        for token, context, action, propensity in zip(tokens, *parts, strict=True):
            # A copy, because a view would keep the whole file in memory.
            self._held[token] = (context.copy(), int(action), float(propensity))
        self._expired.extend(expired)
        self._ended, self.n_expired = lives, n_expired
        self._life, self.next_token = self._ended.popitem()
        self._end = self.next_token  # the next decision begins a new life


def _life_of(token: int) -> int:
    return token >> COUNT_BITS


def _end_of(life: int) -> int:
    """Return the last token of a life, which is never issued: the next token tells its life."""
    return ((life + 1) << COUNT_BITS) - 1


def _read_lives(next_tokens: list[int]) -> dict[int, int]:
    """Return the lives of a file by their number, at least one."""
    lives = {_life_of(token): token for token in next_tokens}
    if not lives or len(lives) < len(next_tokens) or not all(map(_is_token, next_tokens)):
        raise ValueError("lives must hold the next token of each life, at least one")
    return lives


def _check_issued(tokens: list[int], lives: Mapping[int, int]) -> None:
    """Refuse tokens of a file that occur twice or were never issued."""
    if len(set(tokens)) < len(tokens) or not all(map(_is_token, tokens)):
        raise ValueError("tokens must be different numbers from 0 to 2^53")
    for token in tokens:
        if token >= lives.get(_life_of(token), token + 1):
            raise ValueError(f"the token {token} was not issued in its life")


def _is_token(number: int) -> bool:
    return 0 <= number < 1 << (COUNT_BITS + LIFE_BITS)


def _whole(token: Any) -> int | None:
    """Return an integer of Python or NumPy as a plain int, else None."""
    if isinstance(token, bool) or not hasattr(token, "__index__"):
        return None
    try:
        return int(token.__index__())
    except TypeError:  # an array of several numbers, or a boolean of NumPy
        return None
