"""Nothing leaks at exit: the engine reports on stderr what outlived the interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

# Objects of every kind, kept by names of the module, by cycles, by each other and by exceptions.
PROGRAM = """
import numpy as np
import hardwood
from hardwood import bandit, explain
from hardwood.model import dumps, loads

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3))
y = np.digitize(X[:, 0], [-0.4, 0.4])
few = {"max_depth": 2, "random_state": 0}
tree = hardwood.DGTClassifier(max_epochs=2, **few).fit(X, y)
linear = hardwood.DGTClassifier(max_epochs=2, leaves="linear", **few).fit(X, y)
forest = hardwood.DGTForestClassifier(max_epochs=2, n_estimators=2, **few).fit(X, y)
soft = hardwood.TELClassifier(max_epochs=2, n_estimators=2, **few).fit(X, y)
policy = hardwood.ReinforcedTreeClassifier(max_epochs=2, **few).fit(X, y)
tao = hardwood.TAOClassifier(max_sweeps=1, **few).fit(X, y)
greedy = hardwood.GreedyTreeClassifier(max_depth=2).fit(X, y)
everything = [tree, linear, forest, soft, policy, tao, greedy]
for model in everything:
    model.predict(X)
    model.itself = model  # a cycle
tree.tree_.predict_one(X[0])
forest.forest_.predict_one(X[0])
copy = loads(dumps(tree.tree_))
copy.apply(X)
explain.shapley(tree, X[:2], X[2:9])
explain.counterfactual(tree, X[:2])
learner = bandit.DGTBandit(3, max_depth=2, random_state=0)
learner.replay(X, y)
learner.decide(X[0])
numbers = bandit.DGTBanditRegressor(max_depth=2, random_state=0)
numbers.replay(X, X[:, 0])
numbers.decide(X[0])


def fails(scores, index):
    raise RuntimeError("a loss that fails")


for kind in (hardwood.DGTClassifier, hardwood.DGTForestClassifier, hardwood.TELClassifier):
    try:
        kind(loss=fails, n_jobs=2).fit(X, y)
    except RuntimeError as error:
        kept = error  # with its traceback, which holds what was being learned
    try:
        kind(callbacks=lambda epoch: 1 / 0).fit(X, y)
    except ZeroDivisionError as error:
        also_kept = error
"""
LATENT = """
latent = hardwood.LatentTreeClassifier(max_epochs=2, **few).fit(X, y)
latent.predict(X)
latent.itself = latent
"""


def said_at_exit(program: str, folder) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "HARDWOOD_LEAK_WARNINGS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_nothing_outlives_the_interpreter(tmp_path):
    assert said_at_exit(PROGRAM, tmp_path) == ""


def test_nothing_of_torch_outlives_it_either(tmp_path):
    pytest.importorskip("torch", reason="latent trees are learned by torch")
    assert said_at_exit(PROGRAM + LATENT, tmp_path) == ""


def test_a_session_that_ends_with_an_error_leaves_nothing_but_that(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + "\nraise ValueError('the end')"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stderr.splitlines()[-1] == "ValueError: the end"


def test_what_outlives_the_interpreter_is_said(tmp_path):
    """Otherwise the other tests would pass if leaks were never reported."""
    kept = """
    import ctypes
    from hardwood.table import Schema
    encoder = Schema.numeric(2).encoder
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(encoder))  # nobody gives this reference back
    """
    assert "nanobind: leaked 1 instances" in said_at_exit(kept, tmp_path)
