"""A search that has ended, in whatever way, is continued by the same call."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import optuna
import pytest
from optuna.storages._heartbeat import HeartbeatThread

from hardwood import DGTClassifier
from hardwood.errors import FitInterruptedWarning
from hardwood.selection import tune
from hardwood.selection.study import found_before


def search(storage, on_epoch=None, on_trial=None, n_trials=12):
    """Make 12 trials: ten drawn at random, the others by their values."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(150, 3))
    return tune(
        DGTClassifier(max_epochs=12, n_restarts=1, callbacks=on_epoch),
        X,
        X[:, 0] * X[:, 1] > 0,
        space={"max_depth": [1, 2, 3], "learning_rate": [1e-5, 0.003, 0.03], "momentum": [0, 0.3]},
        n_trials=n_trials,
        storage=storage,
        random_state=5,
        callbacks=on_trial,
    )


def seen(result):
    return [(t.number, t.state, t.value, t.params, t.curve) for t in result.trials]


@pytest.fixture(scope="module")
def uninterrupted():
    """The whole search in memory."""
    return search(None)


def kill_during(storage):
    """Search in another process, and kill it in the middle of its fourth trial."""
    program = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "import test_resume\n"
        "def on_epoch(epoch):\n"
        "    if n_ended == 3: print('here', flush=True); sys.stdin.read()\n"
        "def on_trial(trial):\n"
        "    global n_ended\n"
        "    n_ended += 1\n"
        "n_ended = 0\n"
        f"test_resume.search({str(storage)!r}, on_epoch, on_trial=on_trial)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:
        assert process.stdout.readline()
        process.kill()


@pytest.mark.parametrize("name", ["s.db", "s.log"])
def test_a_search_that_was_killed_is_continued(tmp_path, uninterrupted, name):
    kill_during(tmp_path / name)
    assert found_before(tmp_path / name, "DGTClassifier")[0] == 3
    result = search(tmp_path / name)
    assert [t.params for t in result.trials[:3]] == [t.params for t in uninterrupted.trials[:3]]
    assert len(result.trials) == 12
    assert len({tuple(t.params.items()) for t in result.trials}) == 12
    assert len(result.study.trials) > 12  # the attempt that was killed is kept


def test_a_trial_whose_worker_has_gone_silent_is_made_again(tmp_path):
    kill_during(tmp_path / "s.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as database:
        database.execute("UPDATE trial_heartbeats SET heartbeat = '2020-01-01 00:00:00'")
        database.commit()
    result = search(tmp_path / "s.db")
    killed, again = result.study.trials[3:5]
    assert killed.state.name == "FAIL"
    assert again.params == killed.params
    assert [t.number for t in result.trials] == list(range(12))


class Interrupt:
    """Ctrl-C in the middle of the trial after `n_trials`; epochs wait until it arrives."""

    def __init__(self, n_trials):
        self.n_trials = n_trials
        self.arrived = threading.Event()

    def __enter__(self):
        self.before = signal.signal(signal.SIGINT, self.interrupt)
        return self

    def __exit__(self, *error):
        signal.signal(signal.SIGINT, self.before)

    def interrupt(self, number, frame):
        self.arrived.set()
        raise KeyboardInterrupt

    def on_trial(self, trial):
        self.n_trials -= 1

    def on_epoch(self, epoch):
        if self.arrived.is_set():
            time.sleep(0.01)
        elif self.n_trials == 0 and epoch.epoch == 1:
            os.kill(os.getpid(), signal.SIGINT)
            self.arrived.wait()


def test_ctrl_c_returns_what_was_found(tmp_path, uninterrupted):
    with (
        Interrupt(3) as fourth,
        pytest.warns(FitInterruptedWarning, match="interrupted after 3 trials"),
    ):
        result = search(tmp_path / "s.log", fourth.on_epoch, fourth.on_trial)
    assert result.interrupted
    assert seen(result) == seen(uninterrupted)[:3]
    assert result.best_estimator.tree_.n_features == 3
    again = search(tmp_path / "s.log")
    assert not again.interrupted
    assert seen(again) == seen(uninterrupted)


def test_ctrl_c_while_a_result_is_written_keeps_it(monkeypatch):
    write, n_written = optuna.storages.InMemoryStorage.set_trial_state_values, []

    def interrupted(self, trial_id, state, values=None):
        if state.is_finished():
            n_written.append(trial_id)
            if len(n_written) == 3:
                signal.raise_signal(signal.SIGINT)
        return write(self, trial_id, state, values)

    monkeypatch.setattr(optuna.storages.InMemoryStorage, "set_trial_state_values", interrupted)
    with pytest.warns(FitInterruptedWarning, match="interrupted after 3 trials"):
        result = search(None)
    assert len(result.trials) == 3


def test_ctrl_c_while_a_heartbeat_begins_leaves_no_thread(monkeypatch, tmp_path):
    start, n_started = HeartbeatThread.start, []

    def interrupted(self):
        n_started.append(self)
        start(self)
        if len(n_started) == 3:  # the thread runs, and Optuna does not know it yet
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(HeartbeatThread, "start", interrupted)
    before = signal.getsignal(signal.SIGINT)
    with pytest.warns(FitInterruptedWarning, match="interrupted after 2 trials"):
        search(tmp_path / "s.db")
    assert [each for each in n_started if each._thread.is_alive()] == []
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_ends_trials_side_by_side():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))

    def on_trial(trial):
        if trial.number == 0:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(FitInterruptedWarning):
        result = tune(
            DGTClassifier(max_epochs=10, n_restarts=1, callbacks=lambda epoch: time.sleep(0.01)),
            X,
            X[:, 0] > 0,
            space={"learning_rate": np.linspace(0.001, 0.1, 100)},
            n_trials=100,
            n_jobs=2,
            refit=False,
            callbacks=on_trial,
        )
    assert result.interrupted
    assert 1 <= len(result.trials) < 100


def test_ctrl_c_before_any_trial_is_complete_raises():
    with Interrupt(0) as first, pytest.raises(KeyboardInterrupt):
        search(None, first.on_epoch)


def test_more_trials_continue_a_finished_search(tmp_path, uninterrupted):
    storage = tmp_path / "s.sqlite3"
    search(storage, n_trials=5)
    assert found_before(storage, "DGTClassifier")[0] == 5
    same = search(storage, n_trials=3)  # nothing left to do
    assert seen(same) == seen(uninterrupted)[:5]
    assert seen(search(storage)) == seen(uninterrupted)
    assert found_before(storage, "DGTClassifier") == (12, uninterrupted.best_value)
    assert found_before(storage, "other") == (0, None)
    assert sorted(os.listdir(tmp_path)) == ["s.sqlite3"]  # no log of writes is left


def test_the_seed_is_kept_in_the_storage(tmp_path, rng):
    X = rng.normal(size=(100, 2))
    y = X[:, 0] > 0

    def go_on(n_trials, random_state=None):
        model = DGTClassifier(max_epochs=2, n_restarts=1)
        space = {"max_depth": [1, 2, 3]}
        return tune(
            model,
            X,
            y,
            space=space,
            n_trials=n_trials,
            storage=tmp_path / "t.log",
            random_state=random_state,
        )

    first = go_on(2)
    seed = first.best_estimator.random_state
    assert go_on(3).best_estimator.random_state == seed
    assert seen(go_on(3, seed))[:2] == seen(first)
    with pytest.raises(ValueError, match=f"random_state was {seed}, is {seed + 1}"):
        go_on(3, seed + 1)


def test_another_search_is_not_continued(tmp_path, rng):
    X = rng.normal(size=(100, 2))
    y = X[:, 0] > 0
    first = {
        "estimator": DGTClassifier(max_epochs=2, n_restarts=1),
        "X": X,
        "y": y,
        "space": {"max_depth": [1, 2]},
        "storage": tmp_path / "t.log",
        "n_trials": 1,
        "random_state": 0,
        "n_jobs": None,
    }
    tune(**first)
    for change, words in (
        ({"estimator": DGTClassifier(max_epochs=3, n_restarts=1)}, "max_epochs was 2, is 3"),
        ({"space": {"max_depth": [1, 3]}}, "space was"),
        ({"y": ~y}, "the rows are others"),
        ({"validation": 0.3}, "the validation rows are others"),
        ({"scoring": "accuracy"}, "metric was log loss, is accuracy"),
        ({"sampler": "random"}, "sampler was tpe, is random"),
    ):
        with pytest.raises(ValueError, match=f"of another search: .*{words}"):
            tune(**first | change)
    # What does not change a trial may change, and another name is another search.
    verbose = DGTClassifier(max_epochs=2, n_restarts=1, n_jobs=2, callbacks=lambda epoch: None)
    tune(**first | {"estimator": verbose, "pruner": None})
    tune(**first | {"y": ~y, "study_name": "other"})


def test_a_study_of_somebody_else_is_left_alone(tmp_path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    study = optuna.create_study(storage=url, study_name="mine")
    study.tell(study.ask(), 1.0)
    X = np.arange(40.0)[:, None]
    with pytest.raises(ValueError, match="'mine' in this storage was not made by hardwood.tune"):
        tune(DGTClassifier(), X, X[:, 0] > 20, storage=url, study_name="mine")


@pytest.mark.parametrize("name", ["broken.db", "broken.log"])
def test_a_file_that_is_no_storage_is_named(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"the text of a book, and not of a study\n" * 100)
    X = np.arange(40.0)[:, None]
    with pytest.raises(ValueError, match=f"{name} (cannot be opened|is no journal)"):
        tune(DGTClassifier(), X, X[:, 0] > 20, storage=path)
    assert path.read_bytes().startswith(b"the text of a book")


def test_a_table_of_other_entries_is_another_search(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    options = {"space": {"l2": [0.0, 0.1]}, "n_trials": 1, "storage": tmp_path / "s.db"}
    estimator = DGTClassifier(max_depth=1, max_epochs=1, n_restarts=1)
    tune(estimator, X, y, **options)
    with pytest.raises(ValueError, match="rows"):
        tune(estimator, X[:, ::-1].copy(), y, **options)
