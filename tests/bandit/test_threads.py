"""Several threads decide and learn: every decision is learned from once, and none is lost."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from rounds import contexts, labels, small_bandit, small_regressor

from hardwood.bandit import file
from hardwood.errors import TokenError


def test_deciding_and_learning_in_several_threads(rng):
    X = contexts(rng, 400)
    y = labels(X)
    bandit = small_bandit()

    def serve(part):
        tokens = []
        for i in part:
            decision = bandit.decide(X[i])
            bandit.learn(decision.token, float(decision.action == y[i]))
            tokens.append(decision.token)
        return tokens

    with ThreadPoolExecutor(4) as pool:
        tokens = [t for part in pool.map(serve, np.array_split(range(400), 4)) for t in part]
    assert len(set(tokens)) == 400
    assert (bandit.n_rounds_, bandit.n_open_) == (400, 0)


@pytest.mark.parametrize("method", ["replay", "paper"])
def test_deciding_and_saving_while_another_thread_learns(rng, method):
    X = contexts(rng, 200)
    y = labels(X)
    bandit = small_bandit(method=method, features=3)
    bandit.replay(X[:50], y[:50])
    ended = threading.Event()

    def learn():
        for _ in range(10):
            bandit.replay(X, y)
        ended.set()

    with ThreadPoolExecutor(1) as pool:
        learning = pool.submit(learn)
        decided = 0
        while not ended.is_set() or decided < 5:
            token = bandit.decide(X[decided % 200]).token
            assert bandit.tree_.n_leaves >= 1
            assert bandit.predict(X[:3]).shape == (3,)
            assert file.loads(file.dumps(bandit)).n_open_ == bandit.n_open_
            bandit.learn(token, 0.5)
            decided += 1
        learning.result()
    assert bandit.n_rounds_ == 50 + 2000 + decided


def test_a_token_is_learned_from_once_however_many_threads_try(rng):
    X = contexts(rng, 100)
    bandit = small_bandit()
    tokens = [bandit.decide(x).token for x in X]

    def learn_all(_):
        done = 0
        for token in tokens:
            with contextlib.suppress(TokenError):
                bandit.learn(token, 1.0)
                done += 1
        return done

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(learn_all, range(4))) == bandit.n_rounds_ == 100


def test_the_first_context_may_come_from_several_threads(rng):
    X = contexts(rng, 50)
    for make in (small_bandit, small_regressor):
        learner = make()
        start = threading.Barrier(4)

        def decide(part, learner=learner, start=start):
            start.wait()
            return [learner.decide(x).token for x in part]

        with ThreadPoolExecutor(4) as pool:
            tokens = sum(pool.map(decide, np.array_split(X, 4)), [])
        assert len(set(tokens)) == learner.n_open_ == 50


def test_a_table_that_comes_second_is_read_as_the_first_has_it(rng, monkeypatch):
    """Another thread's context came between reading the table and the start of the engine."""
    X = contexts(rng, 20)
    late, expected = small_bandit(), small_bandit()
    begin = type(late)._begin

    def overtaken(learner, contexts):
        monkeypatch.undo()
        learner.decide(X[7])
        return begin(learner, contexts)

    monkeypatch.setattr(type(late), "_begin", overtaken)
    history = late.replay(X, labels(X))
    expected.decide(X[7])
    np.testing.assert_array_equal(history.action, expected.replay(X, labels(X)).action)
    assert file.dumps(late) == file.dumps(expected)


def test_saving_does_not_wait_for_a_bulk_run_to_end(rng):
    X = contexts(rng, 30_000)
    y = labels(X)
    bandit = small_bandit(features=3)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(bandit.replay, X, y)
        while bandit.n_rounds_ == 0:
            time.sleep(1e-3)
        saved = [file.loads(file.dumps(bandit)).n_rounds_ for _ in range(3)]
        assert not running.done()
        running.result()
    assert 0 < saved[0] <= saved[2] < len(X)


def test_bulk_runs_in_several_threads_lose_no_round_and_no_step(rng):
    n, part = 4, contexts(rng, 2000)
    bandit = small_bandit(buffer_size=500)
    with ThreadPoolExecutor(n) as pool:
        list(pool.map(lambda _: bandit.replay(part, labels(part)), range(n)))
    state, n_rounds = bandit._engine.state(), n * len(part)
    assert state["counters"][:4].tolist() == [n_rounds] * 4  # decided, learned, stored, rewarded
    assert state["steps"].tolist() == [n_rounds - 19]  # one per round, from the twentieth on
    assert len(state["actions"]) == 500
