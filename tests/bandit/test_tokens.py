"""Tokens: each decision is learned from once, in any order; the oldest decisions expire."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import all_of, contexts, small_bandit

from hardwood.bandit import DGTBandit
from hardwood.bandit.tokens import COUNT_BITS, LEARNER_BITS, OpenDecisions
from hardwood.errors import HardwoodError, TokenError

HELD = (np.zeros(1, np.float32), 0, 0.5)

STEPS = st.lists(
    st.one_of(st.just("add"), st.tuples(st.just("close"), st.integers(0, 30))), max_size=60
)


@settings(max_examples=200)
@given(steps=STEPS, limit=st.integers(1, 5), learner=st.integers(0, 2**LEARNER_BITS - 1))
def test_each_token_is_open_closed_expired_or_unknown(steps, limit, learner):
    """Against a model that remembers everything."""
    decisions = OpenDecisions(learner, limit)
    open_, closed, expired = [], set(), []
    for step in steps:
        if step == "add":
            token = decisions.add(HELD)
            assert token == (learner << COUNT_BITS) + len(open_) + len(closed) + len(expired)
            open_.append(token)
            if len(open_) > limit:
                expired.append(open_.pop(0))
        elif open_:
            token = open_.pop(step[1] % len(open_))
            assert decisions.get(token) is HELD
            decisions.close(token)
            closed.add(token)
    assert len(decisions) == len(open_) <= limit
    assert decisions.n_expired == len(expired)
    remembered = set(expired[-limit:])
    for token in range((learner << COUNT_BITS) - 2, decisions.next_token + 3):
        if token in open_:
            assert decisions.get(token) is HELD
            continue
        with pytest.raises(TokenError) as raised:
            decisions.get(token)
        said = str(raised.value)
        if token in remembered:
            assert "has expired" in said
        elif token in closed or token in expired:
            # Older tokens than those remembered may be either.
            is_old = len(expired) >= limit and token < min(remembered)
            assert ("too old" if is_old else "already") in said
            assert is_old or token in closed
        else:
            assert "unknown" in said


@given(
    token=st.one_of(
        st.none(), st.booleans(), st.text(max_size=5), st.floats(), st.integers(), st.binary()
    )
)
def test_nothing_but_an_open_token_is_taken(token):
    decisions = OpenDecisions(0, 5)
    decisions.add(HELD)
    decisions.add(HELD)
    if type(token) is int and token in (0, 1):
        assert decisions.get(token) is HELD
        return
    with pytest.raises(TokenError, match="token"):
        decisions.get(token)
    assert len(decisions) == 2


def test_integers_of_numpy_and_json_are_taken(rng):
    bandit = small_bandit()
    X = contexts(rng)
    bandit.learn(np.int64(bandit.decide(X[0]).token), 1.0)
    bandit.learn(json.loads(json.dumps(bandit.decide(X[1]).token)), 1.0)
    token = bandit.decide(X[2]).token
    assert int(float(token)) == token  # exact in a spreadsheet
    for strange in (np.bool_(True), np.array([1, 2]), 1.0, [1]):
        with pytest.raises(TokenError, match="must be the integer"):
            bandit.learn(strange, 1.0)


@settings(max_examples=25)
@given(order=st.permutations(range(12)), lost=st.sets(st.integers(0, 11)))
def test_rewards_may_come_in_any_order_or_never(order, lost):
    rng = np.random.default_rng(0)
    X = contexts(rng, 12)
    bandit = small_bandit()
    tokens = [bandit.decide(x).token for x in X]
    for i in order:
        if i not in lost:
            bandit.learn(tokens[i], reward=float(i))
    assert bandit.n_rounds_ == 12 - len(lost)
    assert bandit.n_open_ == len(lost)
    before = all_of(bandit)
    for i in set(order) - lost:
        with pytest.raises(TokenError, match="already"):
            bandit.learn(tokens[i], reward=1.0)
    assert all_of(bandit) == before


def test_memory_of_open_decisions_is_bounded(rng):
    bandit = small_bandit(max_open=4)
    x = contexts(rng, 1)[0]
    tokens = [bandit.decide(x).token for _ in range(10)]
    assert (bandit.n_open_, bandit.n_expired_) == (4, 6)
    for token in tokens[:2]:  # older than those remembered
        with pytest.raises(TokenError, match="too old"):
            bandit.learn(token, 1.0)
    for token in tokens[2:6]:
        with pytest.raises(TokenError, match=r"expired: 4 newer .* Raise max_open"):
            bandit.learn(token, 1.0)
    for token in tokens[6:]:
        bandit.learn(token, 1.0)
    assert (bandit.n_open_, bandit.n_rounds_) == (0, 4)


def test_tokens_of_another_learner_are_unknown(rng):
    x = contexts(rng, 1)[0]
    mine, yours = small_bandit(random_state=1), small_bandit(random_state=2)
    mine.decide(x)
    with pytest.raises(TokenError, match="another learner"):
        mine.learn(yours.decide(x).token, 1.0)


def test_a_token_error_is_a_value_error_of_hardwood():
    assert issubclass(TokenError, ValueError)
    assert issubclass(TokenError, HardwoodError)


def test_the_same_rounds_with_the_same_seed_have_the_same_tokens(rng):
    X = contexts(rng, 5)
    a, b = (DGTBandit(2, random_state=7, max_depth=2) for _ in range(2))
    assert [a.decide(x) for x in X] == [b.decide(x) for x in X]
