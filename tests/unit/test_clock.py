"""The time that counts: from the start of the process to the end of the last stage of a fit."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time

import numpy as np
import pytest

from hardwood import TreeClassifier
from hardwood.clock import Clock, beginning, counted_from
from hardwood.estimators import base
from hardwood.learn.linear_tree import LinearTree
from hardwood.search.linear_search import LinearSearch


@pytest.fixture
def table(rng):
    X = rng.normal(size=(600, 3))
    return X, X[:, 0] + X[:, 1] * X[:, 2] > 0


def test_the_first_work_begins_when_it_is_told_to():
    before = time.monotonic()
    with counted_from(before - 100):
        assert beginning() == before - 100
        assert beginning() >= before  # work within that work
    assert beginning() >= before


def test_a_clock_may_have_begun():
    clock = Clock(10.0, lambda: 50.0, begun=43.0)
    assert (clock.spent, clock.left) == (7.0, 3.0)


def test_time_before_the_fit_counts(table):
    with counted_from(time.monotonic() - 100):
        late = TreeClassifier(time_limit=50, random_state=0).fit(*table).fit_report_
        again = TreeClassifier(time_limit=50, random_state=0, max_trials=2).fit(*table).fit_report_
    assert late.ending == "Stopped at time_limit."
    assert late.finish.startswith("Not fitted to all rows: there was no time left.")
    assert late.seconds > 100
    assert again.ending == "Stopped at max_trials."


@pytest.mark.parametrize("limit", [1, 20, 60, 100, 150, 250, 1000])
def test_all_stages_of_a_fit_keep_to_the_limit(table, monkeypatch, limit):
    """By a clock that only growing moves: a second for each hundred rows."""
    now, grow = [0.0], LinearTree.grow

    def slow(learner, task, *arguments):
        now[0] += len(task.train) / 100
        return grow(learner, task, *arguments)

    monkeypatch.setattr(LinearTree, "grow", slow)
    monkeypatch.setattr(base, "clock_of", lambda estimator: Clock(limit, lambda: now[0]))
    model = TreeClassifier(max_leaves=4, random_state=0).fit(*table)  # linear trees alone
    assert model.fit_report_.seconds == now[0]
    assert now[0] <= max(1.1 * limit, 4 * 4.5)  # one tree is grown on its four folds


def test_where_time_is_short_deep_axis_aligned_trees_come_before_linear_leaves(table, monkeypatch):
    now, grow = [0.0], LinearTree.grow

    def slow(learner, task, *arguments):
        now[0] += len(task.train) / 100
        return grow(learner, task, *arguments)

    monkeypatch.setattr(LinearTree, "grow", slow)
    monkeypatch.setattr(base, "clock_of", lambda estimator: Clock(150, lambda: now[0]))
    model = TreeClassifier(teacher=None, random_state=0).fit(*table)
    words = [trial.candidate for trial in model.fit_report_.trials]
    deep = next(i for i, name in enumerate(words) if name.startswith("axis-aligned, depth"))
    linear = next(i for i, name in enumerate(words) if name.startswith("linear leaves"))
    assert words.index("axis-aligned, constant leaves") < deep < linear


def test_a_frontier_without_time_for_all_rows_is_whole_and_the_report_says_so(table, monkeypatch):
    monkeypatch.setattr(base, "clock_of", lambda estimator: Clock(1000, lambda: 0.0))
    model = TreeClassifier(max_leaves=4, random_state=0)
    words = "The frontier has other trees of fewer rows"
    sizes = {}
    for seconds in (0.0, 1e9):
        monkeypatch.setattr(LinearSearch, "finish_seconds", lambda *_, seconds=seconds: seconds)
        model.fit(*table)
        assert (words in str(model.fit_report_)) == (seconds > 0)
        sizes[seconds] = [(p.kind, p.n_leaves, p.n_terms) for p in model.frontier_.points]
    assert len(sizes[0.0]) > 3
    assert sizes[1e9] == sizes[0.0]


def test_a_part_of_a_clock_ends_within_its_time():
    now = [0.0]
    clock = Clock(10, lambda: now[0])
    now[0] = 4.0
    part = clock.part(0.5)
    assert (part.spent, part.left) == (4.0, 3.0)
    now[0] = 11.0
    assert clock.part(0.5).left == 0.0
    assert Clock(None).part(0.5).limit == math.inf


def test_a_process_starts_before_its_first_line():
    program = (
        "import time; first = time.monotonic()\n"
        "from hardwood.cli.process.start import process_start\n"
        "print(first - process_start())"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert float(ran.stdout) > -0.02  # the system counts hundredths of a second


def test_the_time_limit_of_a_command_begins_with_its_process(table, tmp_path):
    X, y = table
    rows = np.column_stack([X, y])
    np.savetxt(tmp_path / "t.csv", rows, delimiter=",", header="a,b,c,y", comments="")
    program = (
        "import time\n"
        "from hardwood.cli import main\n"
        "from hardwood.cli.process import start\n"
        "start.process_start = lambda: time.monotonic() - 1000\n"
        "main()"
    )
    command = ["fit", "t.csv", "-t", "y", "--time-limit", "500", "--json"]
    ran = subprocess.run(
        [sys.executable, "-c", program, *command], cwd=tmp_path, capture_output=True, text=True
    )
    search = json.loads(ran.stdout)["search"]
    assert search["seconds"] > 1000
    assert search["ending"] == "Stopped at time_limit."
