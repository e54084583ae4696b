"""The line of progress: where it is shown, what it says, and that it vanishes."""

from __future__ import annotations

import io
import multiprocessing
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

from hardwood import (
    DGTClassifier,
    DGTForestClassifier,
    GreedyTreeClassifier,
    TAOClassifier,
    TELClassifier,
    TreeClassifier,
    progress,
)
from hardwood.progress import Progress, watched_stream

SEARCH = {"time_limit": None, "max_trials": 3, "teacher": None, "random_state": 0}


class Terminal(io.StringIO):
    """A terminal, and what is on its current line."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.lines += [part.rstrip() for part in text.split("\r") if part]
        return len(text)


@pytest.fixture
def terminal(monkeypatch):
    """Somebody watches stderr, and every update is drawn at once."""
    screen = Terminal()
    streams = SimpleNamespace(stderr=screen, stdout=io.StringIO(), modules={})
    monkeypatch.setattr(progress, "sys", streams)  # pytest has a stderr of its own
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    monkeypatch.setattr(progress, "_INTERVAL", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.delenv("HARDWOOD_PROGRESS", raising=False)
    return screen


def test_the_line_says_what_is_done_and_vanishes(terminal):
    with Progress("Learning", lambda: 7.2, watched_stream()) as line:
        line.update("a tree")
        line.update(best="score 0.5")
        line.update("a forest")
    assert terminal.lines == [
        "Learning: 7 s left | a tree",
        "Learning: 7 s left | score 0.5 | a tree",
        "Learning: 7 s left | score 0.5 | a forest",
        "",
    ]


def test_the_time_left_is_estimated_from_what_is_done(terminal, monkeypatch):
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with Progress("Learning", stream=terminal) as line:
        now = 110.0
        line.update("half", share=0.25)
    assert terminal.lines[0] == "Learning: 30 s left | half"


def test_what_is_drawn_later_covers_what_was_there(terminal):
    """A shorter line is filled up with blanks."""
    written = []
    terminal.write = written.append
    with Progress(stream=terminal) as line:
        line.update("a long story")
        line.update("short")
    assert written == ["\ra long story", "\rshort       ", "\r     \r"]


def test_a_line_is_shorter_than_the_terminal_is_wide(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    with Progress("Learning", stream=terminal) as line:
        line.update("x" * 50)
    assert terminal.lines == ["Learning: xxxxxxxxx", ""]


def test_what_a_console_cannot_show_is_replaced(terminal):
    terminal.encoding = "cp1252"
    with Progress(stream=terminal) as line:
        line.update("λ = 1 ± 2")
    assert terminal.lines == ["? = 1 ± 2", ""]


def test_what_is_quick_is_not_shown_and_what_comes_often_not_every_time(terminal, monkeypatch):
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    monkeypatch.setattr(progress, "_DELAY", 0.5)
    monkeypatch.setattr(progress, "_INTERVAL", 0.1)
    with Progress(stream=terminal) as line:
        for now in (0.1, 0.4, 0.6, 0.65, 0.71):
            line.update(f"at {now}")
    assert terminal.lines == ["at 0.6", "at 0.71", ""]


def test_there_is_one_line_at_a_time(terminal):
    with Progress("outer", stream=terminal) as outer:
        with Progress("inner", stream=terminal) as inner:
            inner.update("unseen")
        outer.update("seen")
    with Progress("next", stream=terminal) as later:
        later.update("seen, too")
    assert terminal.lines == ["outer: seen", "", "next: seen, too", ""]


@pytest.mark.parametrize("error", [OSError, ValueError])
def test_a_terminal_that_was_closed_ends_no_fit(terminal, error):
    def fails(_: str) -> int:
        raise error

    terminal.write = fails
    with Progress(stream=terminal) as line:
        line.update("lost")
        line.update("lost")
    del terminal.write
    with Progress(stream=terminal) as line:
        line.update("seen")
    assert terminal.lines == ["seen", ""]


# --- who watches ------------------------------------------------------------------------------


def test_a_terminal_is_watched(terminal):
    assert watched_stream() is terminal


def test_pipes_and_files_are_not(terminal, monkeypatch):
    monkeypatch.setattr(progress.sys, "stderr", io.StringIO())
    assert watched_stream() is None
    monkeypatch.setattr(progress.sys, "stderr", None)  # without a console
    assert watched_stream() is None


def test_a_terminal_that_cannot_go_back_is_not(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert watched_stream() is None


def test_a_wish_decides(terminal, monkeypatch):
    monkeypatch.setenv("HARDWOOD_PROGRESS", "0")
    assert watched_stream() is None
    monkeypatch.setenv("HARDWOOD_PROGRESS", "1")
    pipe = io.StringIO()
    monkeypatch.setattr(progress.sys, "stderr", pipe)
    assert watched_stream() is pipe


@pytest.mark.parametrize(("shell", "watched"), [(SimpleNamespace(kernel=1), True), (None, False)])
def test_a_cell_of_a_notebook_is_watched(terminal, monkeypatch, shell, watched):
    """IPython in a terminal has a shell without a kernel."""
    monkeypatch.setattr(progress.sys, "stderr", io.StringIO())
    progress.sys.modules["IPython"] = SimpleNamespace(get_ipython=lambda: shell)
    assert watched_stream() is (progress.sys.stdout if watched else None)


def test_other_threads_and_processes_are_silent(terminal, monkeypatch):
    found = []
    thread = threading.Thread(target=lambda: found.append(watched_stream()))
    thread.start()
    thread.join()
    assert found == [None]
    worker = SimpleNamespace(name="LokyProcess-1")
    monkeypatch.setattr(multiprocessing, "current_process", lambda: worker)
    assert watched_stream() is None


# --- fits -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (TreeClassifier(**SEARCH), ["one linear leaf", "best D2 of log loss"]),
        (TreeClassifier(**SEARCH, leaves="constant"), ["axis-aligned, depth 1", "best D2"]),
        (
            TreeClassifier(**SEARCH | {"max_trials": 40, "max_depth": 2}, leaves="constant"),
            ["TAO from axis-aligned, depth 2", "reinforced, depth 2"],
        ),
        (
            DGTClassifier(max_depth=2, n_restarts=2, max_epochs=5, random_state=0),
            ["restart 1 of 2, epoch 1 of 5", "restart 2 of 2, epoch 5 of 5, validation loss"],
        ),
        (
            DGTForestClassifier(n_estimators=3, max_epochs=3, random_state=0),
            ["tree 3 of 3, epoch 3 of 3, training loss"],
        ),
        (TELClassifier(n_estimators=2, max_epochs=4, random_state=0), ["epoch 4 of 4"]),
        (TAOClassifier(max_depth=2), ["epoch 1 of"]),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_a_fit_is_followed(terminal, estimator, words, capsys):
    estimator.fit(*load_iris(return_X_y=True))
    shown = "\n".join(terminal.lines)
    for each in words:
        assert each in shown
    assert all(line.startswith(type(estimator).__name__) for line in terminal.lines if line)
    assert terminal.lines[-1] == ""
    assert capsys.readouterr().out == ""


def test_progress_changes_no_model(terminal, monkeypatch):
    X, y = load_iris(return_X_y=True)
    estimators = [
        TreeClassifier(**SEARCH),
        DGTClassifier(max_depth=2, max_epochs=20, random_state=0),
        GreedyTreeClassifier(max_depth=2),
    ]
    watched = [one.fit(X, y).tree_ for one in estimators]
    monkeypatch.setenv("HARDWOOD_PROGRESS", "0")
    assert [one.fit(X, y).tree_ for one in estimators] == watched


def test_verbose_prints_lines_instead(terminal, capsys):
    TreeClassifier(**SEARCH, verbose=1).fit(*load_iris(return_X_y=True))
    assert terminal.lines == []
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_what_callbacks_print_does_not_stand_behind_the_line(terminal):
    seen = []
    options = {"max_depth": 2, "max_epochs": 5, "n_restarts": 1, "random_state": 0}
    model = DGTClassifier(**options, callbacks=lambda _: seen.append(terminal.lines[-1:]))
    model.fit(*load_iris(return_X_y=True))
    assert seen == [[], *[[""]] * 4]


def test_a_line_that_was_erased_comes_back_at_once(terminal, monkeypatch):
    monkeypatch.setattr(progress, "_INTERVAL", 1e9)
    with Progress(stream=terminal) as line:
        for _ in range(2):
            line.update("here")
            line.update("too soon")
            line.erase()
    assert terminal.lines == ["here", "", "here", ""]


def test_own_callbacks_do_not_erase_it(terminal):
    def silent(_):
        return False

    silent.__module__ = "hardwood.cli.fit"
    options = {"max_depth": 2, "max_epochs": 5, "n_restarts": 1, "random_state": 0}
    DGTClassifier(**options, callbacks=silent).fit(*load_iris(return_X_y=True))
    assert terminal.lines.count("") == 1


def test_an_error_takes_the_line_away(terminal):
    def fails(_):
        raise RuntimeError("of a callback")

    X, y = load_iris(return_X_y=True)
    with pytest.raises(RuntimeError, match="of a callback"):
        TreeClassifier(**SEARCH, callbacks=fails).fit(X, y)
    assert terminal.lines[-1] == ""
    TreeClassifier(**SEARCH).fit(X, y)
    assert "best D2" in terminal.lines[-2]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_in_cross_validation_the_main_process_alone_is_followed(terminal, n_jobs):
    X, y = load_iris(return_X_y=True)
    scores = cross_val_score(TreeClassifier(**SEARCH), X, y, cv=2, n_jobs=n_jobs)
    assert np.isfinite(scores).all()
    assert terminal.lines[-1:] == ([""] if n_jobs is None else [])


def test_a_pipe_holds_nothing_of_it():
    code = (
        "from sklearn.datasets import load_iris; from hardwood import TreeClassifier;"
        "TreeClassifier(time_limit=None, max_trials=2, teacher=None).fit(*load_iris(True))"
    )
    code = code.replace("load_iris(True)", "load_iris(return_X_y=True)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
def test_a_real_terminal_shows_it():
    import pty

    code = (
        "from hardwood import progress, TreeClassifier; progress._DELAY = 0;"
        "from sklearn.datasets import load_iris; X, y = load_iris(return_X_y=True);"
        "TreeClassifier(time_limit=None, max_trials=3, teacher=None).fit(X, y); print('done')"
    )
    pid, screen = pty.fork()
    if pid == 0:
        environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
        environment.pop("HARDWOOD_PROGRESS", None)
        os.execve(sys.executable, [sys.executable, "-c", code], environment)
    shown = b""
    while True:
        try:
            part = os.read(screen, 4096)
        except OSError:  # its end, on Linux
            break
        if not part:
            break
        shown += part
    assert os.waitpid(pid, 0)[1] == 0
    *drawn, last = [line.strip() for line in shown.decode().split("\r") if line.strip()]
    assert last == "done"
    assert "TreeClassifier: one linear leaf, l2 10" in drawn
