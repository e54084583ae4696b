"""A search that stops, in whatever way, goes on as if it had not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta

import numpy as np
import optuna
import pytest

from hardwood import DGTClassifier
from hardwood.errors import FitInterruptedWarning
from hardwood.selection import tune
from hardwood.selection.pruning import pruner_of
from hardwood.selection.study import Worker, found_before


def search(storage, seconds=0.0, pruner="median", on_trial=None, n_trials=12):
    """Make 12 trials: ten drawn at random, the others by their values; each epoch takes a while."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(150, 3))
    return tune(
        DGTClassifier(max_epochs=12, restarts=1, callbacks=lambda epoch: time.sleep(seconds)),
        X,
        X[:, 0] * X[:, 1] > 0,
        space={"max_depth": [1, 2, 3], "learning_rate": [1e-5, 0.003, 0.03], "momentum": [0, 0.3]},
        n_trials=n_trials,
        pruner=pruner,
        storage=storage,
        random_state=5,
        callbacks=on_trial,
    )


def seen(result):
    return [(t.number, t.state, t.value, t.params, t.curve) for t in result.trials]


@pytest.fixture(scope="module")
def uninterrupted():
    """The whole search in memory, by pruner."""
    return {pruner: search(None, pruner=pruner) for pruner in ("median", "halving")}


def kill_during(storage, pruner):
    """Search in another process, slowly, and kill it in the middle of its fourth trial."""
    program = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "from test_resume import search\n"
        f"search({str(storage)!r}, 0.02, {pruner!r}, lambda t: print(t.number, flush=True))"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        for _ in range(3):
            assert process.stdout.readline()
        time.sleep(0.05)
        process.kill()


@pytest.mark.filterwarnings("ignore:The existing lock file")  # that of the process killed
@pytest.mark.parametrize(("name", "pruner"), [("s.db", "halving"), ("s.log", "median")])
def test_a_search_that_was_killed_goes_on_as_if_it_had_not_been(
    tmp_path, uninterrupted, name, pruner
):
    kill_during(tmp_path / name, pruner)
    before, _ = found_before(tmp_path / name, "DGTClassifier")
    assert 3 <= before < 12
    result = search(tmp_path / name, pruner=pruner)
    assert seen(result) == seen(uninterrupted[pruner])
    assert result.best_estimator.tree_ == uninterrupted[pruner].best_estimator.tree_
    assert len(result.study.trials) > 12  # the attempt that was killed is kept


def test_ctrl_c_returns_what_was_found(tmp_path, uninterrupted):
    timer = []

    def on_trial(trial):
        if trial.number == 2:  # in the middle of the next trial
            timer.append(threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)))
            timer[0].start()

    with pytest.warns(FitInterruptedWarning, match="interrupted after 3 trial"):
        result = search(tmp_path / "s.log", 0.02, on_trial=on_trial)
    assert result.interrupted
    assert seen(result) == seen(uninterrupted["median"])[:3]
    assert result.best_estimator.tree_.n_features == 3
    again = search(tmp_path / "s.log")
    assert not again.interrupted
    assert seen(again) == seen(uninterrupted["median"])


def test_ctrl_c_ends_trials_side_by_side(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    timer = threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.warns(FitInterruptedWarning):
        result = tune(
            DGTClassifier(max_epochs=10, restarts=1, callbacks=lambda epoch: time.sleep(0.01)),
            X,
            X[:, 0] > 0,
            space={"learning_rate": np.linspace(0.001, 0.1, 100)},
            n_trials=100,
            n_jobs=2,
            refit=False,
        )
    assert time.monotonic() - began < 10
    assert result.interrupted
    assert 1 <= len(result.trials) < 100


def test_ctrl_c_before_any_trial_is_complete_raises():
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        search(None, 0.2)


def test_more_trials_continue_a_finished_search(tmp_path, uninterrupted):
    storage = tmp_path / "s.sqlite3"
    search(storage, n_trials=5)
    assert found_before(storage, "DGTClassifier")[0] == 5
    same = search(storage, n_trials=3)  # nothing left to do
    assert seen(same) == seen(uninterrupted["median"])[:5]
    assert seen(search(storage)) == seen(uninterrupted["median"])
    assert found_before(storage, "DGTClassifier") == (12, uninterrupted["median"].best_value)
    assert found_before(storage, "other") == (0, None)
    assert sorted(os.listdir(tmp_path)) == ["s.sqlite3"]  # no log of writes is left


def test_the_seed_is_kept_in_the_storage(tmp_path, rng):
    X = rng.normal(size=(100, 2))
    y = X[:, 0] > 0

    def go_on(n_trials, random_state=None):
        model = DGTClassifier(max_epochs=2, restarts=1)
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
        "estimator": DGTClassifier(max_epochs=2, restarts=1),
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
        ({"estimator": DGTClassifier(max_epochs=3, restarts=1)}, "max_epochs was 2, is 3"),
        ({"space": {"max_depth": [1, 3]}}, "space was"),
        ({"y": ~y}, "the rows are others"),
        ({"validation": 0.3}, "the validation rows are others"),
        ({"scoring": "accuracy"}, "metric was log loss, is accuracy"),
        ({"sampler": "random"}, "sampler was tpe, is random"),
    ):
        with pytest.raises(ValueError, match=f"of another search: .*{words}"):
            tune(**first | change)
    # What does not change a trial may change, and another name is another search.
    verbose = DGTClassifier(max_epochs=2, restarts=1, n_jobs=2, callbacks=lambda epoch: None)
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


def test_trials_of_a_living_process_are_left_to_it(tmp_path):
    other = Worker()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as living:
        other.name["pid"] = living.pid
        study = optuna.create_study()
        other.ask(study)
        Worker().repair(study)
        assert study.trials[0].state == optuna.trial.TrialState.RUNNING
        living.communicate(b"\n")
    Worker().repair(study)
    assert [t.state.name for t in study.trials] == ["FAIL", "WAITING"]
    Worker().repair(study)  # once is enough
    assert len(study.trials) == 2


def test_trials_of_other_machines_are_given_up_after_an_hour(monkeypatch):
    other = Worker()
    other.name["host"] = "elsewhere"
    study = optuna.create_study()
    other.ask(study)
    Worker().repair(study)
    assert study.trials[0].state.name == "RUNNING"

    class Later(datetime):
        @classmethod
        def now(cls):
            return super().now() + timedelta(hours=2)

    monkeypatch.setattr("hardwood.selection.study.datetime", Later)
    Worker().repair(study)
    assert study.trials[0].state.name == "FAIL"


def test_a_trial_of_an_earlier_call_in_this_process_is_made_again():
    study = optuna.create_study()
    worker = Worker()
    worker.ask(study)
    worker.repair(study)
    assert [t.state.name for t in study.trials] == ["RUNNING"]  # its own
    Worker().repair(study)
    assert [t.state.name for t in study.trials] == ["FAIL", "WAITING"]


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_a_process_that_was_killed_and_not_waited_for_has_gone():
    other = Worker()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as killed:
        other.name["pid"] = killed.pid
        study = optuna.create_study()
        other.ask(study)
        killed.kill()
        os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
        Worker().repair(study)
        assert study.trials[0].state.name == "FAIL"


def test_attempts_that_were_interrupted_do_not_compete():
    study = optuna.create_study(pruner=pruner_of("halving"))
    interrupted, other = study.ask(), study.ask()
    for trial, value in ((interrupted, 0.1), (other, 0.2)):
        trial.report(value, 3)
        if trial is interrupted:
            assert not trial.should_prune()
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
    assert not other.should_prune()
    worse = study.ask()
    worse.report(0.3, 3)
    assert worse.should_prune()


def test_parameters_that_were_queued_are_tried_after_an_interruption():
    study = optuna.create_study()
    study.enqueue_trial({"depth": 7})
    Worker().ask(study)
    worker = Worker()
    worker.repair(study)
    assert worker.ask(study).suggest_int("depth", 1, 9) == 7


def test_a_table_of_other_entries_is_another_search(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    options = {"space": {"l2": [0.0, 0.1]}, "n_trials": 1, "storage": tmp_path / "s.db"}
    estimator = DGTClassifier(max_depth=1, max_epochs=1, restarts=1)
    tune(estimator, X, y, **options)
    with pytest.raises(ValueError, match="rows"):
        tune(estimator, X[:, ::-1].copy(), y, **options)


def test_a_journal_cut_within_a_line_is_refused_and_left_alone(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    path = tmp_path / "s.log"
    options = {"space": {"l2": [0.0, 0.1]}, "n_trials": 1, "storage": path}
    estimator = DGTClassifier(max_depth=1, max_epochs=1, restarts=1)
    tune(estimator, X, y, **options)
    path.write_bytes(path.read_bytes()[:-15])
    before = path.read_bytes()
    with pytest.raises(ValueError, match="ends within a line"):
        tune(estimator, X, y, **options)
    assert path.read_bytes() == before
