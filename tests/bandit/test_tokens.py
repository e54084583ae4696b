"""Tokens: each decision is learned from once, in any order; the oldest decisions expire."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import all_of, contexts, small_bandit

from hardwood.bandit import DGTBandit
from hardwood.bandit.tokens import COUNT_BITS, LIFE_BITS, MAX_LIVES, OpenDecisions
from hardwood.errors import HardwoodError, TokenError

HELD = (np.zeros(1, np.float32), 0, 0.5)

STEPS = st.lists(
    st.one_of(
        st.just("add"),
        st.just("save"),
        st.just("crash"),
        st.tuples(st.just("close"), st.integers(0, 30)),
    ),
    max_size=60,
)


def saved_and_loaded(decisions):
    """What a file makes of open decisions of contexts of one column."""
    arrays = decisions.to_arrays(1)
    loaded = OpenDecisions(0, decisions.limit)
    loaded.restore(decisions.n_expired, arrays)
    again = loaded.to_arrays(1)
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)
    return loaded


@settings(max_examples=300)
@given(steps=STEPS, limit=st.integers(1, 5), life=st.integers(0, 2**LIFE_BITS - 1))
def test_each_token_is_open_closed_expired_lost_or_unknown(steps, limit, life):
    """Against a model that remembers everything, also what a crash loses."""
    decisions = OpenDecisions(life, limit)
    open_, closed, expired, lost = [], set(), [], set()
    saved = None
    for step in steps:
        if step == "add":
            token = decisions.add(HELD)
            assert 0 <= token < 2**53
            assert token not in {*open_, *closed, *expired, *lost}
            open_.append(token)
            if len(open_) > limit:
                expired.append(open_.pop(0))
        elif step == "save":
            saved = (
                decisions.to_arrays(1),
                decisions.n_expired,
                list(open_),
                set(closed),
                [*expired],
            )
        elif step == "crash":
            if saved is None:
                continue
            issued = {*open_, *closed, *expired}
            decisions = OpenDecisions(0, limit)
            decisions.restore(saved[1], saved[0])
            open_, closed, expired = list(saved[2]), set(saved[3]), list(saved[4])
            lost |= issued - {*open_, *closed, *expired}
        elif open_:
            token = open_.pop(step[1] % len(open_))
            decisions.get(token)
            decisions.close(token)
            closed.add(token)
    assert len(decisions) == len(open_) <= limit
    assert decisions.n_expired == len(expired)
    remembered = set(expired[-limit:])
    issued = [*open_, *closed, *expired, *lost]
    for token in {*issued, decisions.next_token, (life << COUNT_BITS) - 1}:
        if token in open_:
            assert decisions.get(token)[1:] == HELD[1:]
            continue
        with pytest.raises(TokenError) as raised:
            decisions.get(token)
        said = str(raised.value)
        if token in remembered:
            assert "has expired" in said
        elif token in closed or token in expired:
            # Older tokens than those remembered may be either.
            assert "too old" in said or (token in closed and "already" in said)
            assert "already" in said or len(expired) >= limit
        elif token in lost:
            assert "is lost" in said or "not saved after" in said
        else:
            assert "unknown" in said or "is lost" in said


def test_a_reward_of_a_decision_lost_in_a_crash_is_refused(rng, tmp_path):
    """Each time, also if nothing was saved between two crashes."""
    X = contexts(rng, 6)
    bandit = small_bandit()
    kept = bandit.decide(X[0]).token
    bandit.save(tmp_path / "b")
    lost = [bandit.decide(X[1]).token]
    for x in X[2:]:
        bandit = DGTBandit.load(tmp_path / "b")
        for token in lost:
            with pytest.raises(TokenError, match="is lost: .* saved before|not saved after"):
                bandit.learn(token, 1.0)
        lost.append(bandit.decide(x).token)
        with pytest.raises(TokenError, match=f"token {lost[0]} is lost"):
            bandit.learn(lost[0], 1.0)
    assert len(set(lost)) == len(lost)
    bandit.learn(kept, 1.0)
    assert bandit.n_rounds_ == 1


@pytest.mark.parametrize("again", [copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_a_copy_issues_other_tokens(rng, again):
    x = contexts(rng, 1)[0]
    bandit = small_bandit()
    bandit.decide(x)
    other = again(bandit)
    mine, yours = bandit.decide(x), other.decide(x)
    assert mine[:2] == yours[:2]
    for learner, token in ((bandit, yours.token), (other, mine.token)):
        with pytest.raises(TokenError, match="lost|another learner"):
            learner.learn(token, 1.0)


def test_a_life_ends_when_its_numbers_are_used_up():
    decisions = OpenDecisions(5, 3)
    decisions.next_token = (6 << COUNT_BITS) - 2
    last, first = decisions.add(HELD), decisions.add(HELD)
    assert last >> COUNT_BITS == 5 != first >> COUNT_BITS
    assert decisions.get(last) is decisions.get(first) is HELD
    assert saved_and_loaded(decisions).get(last)[1:] == HELD[1:]


def test_a_learner_that_is_loaded_for_every_decision_keeps_a_bounded_file():
    decisions = OpenDecisions(5, 1)
    tokens = []
    for _ in range(MAX_LIVES + 5):
        tokens.append(decisions.add(HELD))
        decisions = saved_and_loaded(decisions)
    assert len(decisions.to_arrays(1)["lives"]) == MAX_LIVES
    for token in (tokens[-2], tokens[10]):
        with pytest.raises(TokenError, match="expired" if token == tokens[-2] else "too old"):
            decisions.get(token)
    with pytest.raises(TokenError, match="unknown"):
        decisions.get(tokens[0])


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
