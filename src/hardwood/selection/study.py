"""The study on disk: opened by a path or URL, recognised, and repaired after an interruption."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import (
    JournalFileBackend,
    JournalFileOpenLock,
    JournalFileSymlinkLock,
)
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from hardwood.selection.samplers import POSITION, position_of
from hardwood.selection.settings import ROWS, VALIDATION

_SETTINGS = "hardwood"  # of the study: what it searches, to be compared when it goes on
_WORKER = "worker"  # of a trial: who is at it
_RETRY_OF = "retry_of"  # of a trial: the number of the attempt before it, which had no answer
ERROR = "error"
"""Attribute of a failed trial; one without it was interrupted, and is made again."""

_SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_JOURNAL_SUFFIXES = (".log", ".journal", ".jsonl")
# A process that is killed while it writes leaves its lock; nobody writes for so long.
_LOCK_SECONDS = 5
# A trial of a machine that cannot be asked is given up after so long, and so many longest trials.
_GIVEN_UP_AFTER = timedelta(hours=1)
_GIVEN_UP_TRIALS = 10


def open_storage(storage: Any) -> BaseStorage | None:
    """Open what a user names: None (memory), a path, a database URL, or a storage of Optuna.

    Raises
    ------
    ValueError
        For a path whose suffix does not tell what it is, or where no file can be, and for a file
        or URL that is no database.
    """
    if storage is None or isinstance(storage, BaseStorage):
        return storage
    if not isinstance(storage, str | os.PathLike):
        raise TypeError(
            f"storage must be None, a path, a URL or a storage of Optuna, got {storage!r}."
        )
    name = os.fspath(storage)
    if "://" in name:
        return _database(name, name)
    path = Path(name)
    if path.is_dir() or not path.parent.is_dir():
        what = "is a directory" if path.is_dir() else f"is in no folder: {path.parent} is absent"
        raise ValueError(f"storage {name} {what}; give the name of a file.")
    if path.suffix.lower() in _SQLITE_SUFFIXES:
        return _sqlite(path.resolve(), name)
    if path.suffix.lower() in _JOURNAL_SUFFIXES:
        return _journal(path.resolve(), name)
    raise ValueError(
        f"storage {name}: the name must end in {', '.join(_SQLITE_SUFFIXES)} (SQLite) or "
        f"{', '.join(_JOURNAL_SUFFIXES)} (a journal, for folders on a network), or be a URL such "
        "as postgresql://..."
    )


def _database(url: str, name: str) -> RDBStorage:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        return RDBStorage(url)
    except (SQLAlchemyError, ImportError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"storage {name} cannot be opened as a database: {reason}") from error


def _sqlite(path: Path, name: str) -> RDBStorage:
    """Open a file that is ours: with a log of writes, or each would wait for the disk.

    A process that is killed loses nothing by that; a power cut may lose the last trials.
    """
    from sqlalchemy import event

    storage = _database(f"sqlite:///{path}", name)
    event.listen(storage.engine, "connect", _log_writes)
    storage.engine.dispose()  # the connections made so far
    return storage


def _log_writes(connection: Any, record: Any) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode == "wal":  # some file systems have no shared memory
        connection.execute("PRAGMA synchronous=NORMAL")


@contextmanager
def opened(storage: Any) -> Iterator[BaseStorage | None]:
    """Open a storage, and close its file when the context ends; a study opens it again if used."""
    found = open_storage(storage)
    try:
        yield found
    finally:
        if isinstance(found, RDBStorage):
            found.remove_session()
            found.engine.dispose()


def _check_whole(path: Path, name: str) -> None:
    """Refuse a journal that ends within a line, before anything is written behind it."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        is_whole = file.read(1) == b"\n"
    if not is_whole:
        raise ValueError(
            f"storage {name} ends within a line: its last entry was not written whole (a full "
            "disk, a power cut). Delete that last, unfinished line and start again; all trials "
            "before it are kept."
        )


def _journal(path: Path, name: str) -> BaseStorage:
    kind = JournalFileSymlinkLock if os.name == "posix" else JournalFileOpenLock
    lock = kind(str(path), grace_period=_LOCK_SECONDS)
    _check_whole(path, name)
    try:
        return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))
    except ValueError as error:  # a line that is no JSON
        raise ValueError(f"storage {name} is no journal of Optuna: {error}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Optuna's messages about studies that were made or found to itself."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.WARNING))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def known_settings(storage: BaseStorage | None, name: str) -> dict[str, Any] | None:
    """Return what the study of this name searches; None where there is no such study yet.

    Raises
    ------
    ValueError
        For a study with trials that something else has made.
    """
    if storage is None:
        return None
    try:
        with quiet():
            study = optuna.load_study(study_name=name, storage=storage)
    except KeyError:
        return None
    settings = study.user_attrs.get(_SETTINGS)
    if settings is None and study.get_trials(deepcopy=False):
        raise ValueError(
            f"The study '{name}' in this storage was not made by hardwood.tune; give another "
            "study_name."
        )
    return settings


def check_settings(name: str, known: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Raise a ValueError that says what differs, unless a study searches what is searched now."""
    differing = [
        f"{key} are others"
        if key in (ROWS, VALIDATION)
        else f"{key} was {_shown(known.get(key))}, is {_shown(value)}"
        for key, value in settings.items()
        if known.get(key) != value
    ]
    if differing:
        raise ValueError(
            f"The study '{name}' in this storage is of another search: {'; '.join(differing)}. "
            "Give the same to continue it, or another study_name (or storage) for a new one."
        )


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def open_study(
    storage: BaseStorage | None, name: str | None, settings: Mapping[str, Any], **options: Any
) -> Study:
    """Make a study, or continue one; `options` are those of `optuna.create_study`."""
    with quiet():
        study = optuna.create_study(
            storage=storage, study_name=name, load_if_exists=storage is not None, **options
        )
    if _SETTINGS not in study.user_attrs:
        study.set_user_attr(_SETTINGS, dict(settings))
    return study


class Worker:
    """Who is at a trial: the machine, the process and the call, for others to see if it lives."""

    def __init__(self) -> None:
        self.name = {"host": socket.gethostname(), "pid": os.getpid(), "call": uuid.uuid4().hex}

    def ask(self, study: Study) -> optuna.Trial:
        """Begin a trial under this worker's name.

        It is queued with the name first, or a process that is killed would leave a trial of nobody.
        """
        if not study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
            study.enqueue_trial({}, {_WORKER: self.name})
        trial = study.ask()
        if trial.user_attrs.get(_WORKER) != self.name:  # somebody else, or the user, has queued it
            trial.set_user_attr(_WORKER, self.name)
        return trial

    def repair(self, study: Study) -> None:
        """Give up trials whose worker has gone, and queue all that were interrupted once more."""
        trials = study.get_trials(deepcopy=False)
        longest = max((trial.duration or timedelta() for trial in trials), default=timedelta())
        patience = max(_GIVEN_UP_AFTER, _GIVEN_UP_TRIALS * longest)
        for trial in trials:
            if trial.state == TrialState.RUNNING and self._has_gone(trial, patience):
                study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
        trials = study.get_trials(deepcopy=False)
        retried = {trial.user_attrs.get(_RETRY_OF) for trial in trials}
        for trial in trials:
            if was_interrupted(trial) and trial.number not in retried:
                queued = trial.system_attrs.get("fixed_params", {})
                self._try_again(study, trial.number, position_of(trial, trials), queued)

    def replace(self, study: Study, number: int, position: int, params: Mapping[str, Any]) -> None:
        """Give up a trial and queue its position with other parameters."""
        study.tell(number, state=TrialState.FAIL)
        self._try_again(study, number, position, params)

    def _try_again(
        self, study: Study, number: int, position: int, params: Mapping[str, Any]
    ) -> None:
        attributes = {POSITION: position, _RETRY_OF: number, _WORKER: self.name}
        study.enqueue_trial(dict(params), attributes)

    def _has_gone(self, trial: FrozenTrial, patience: timedelta) -> bool:
        worker = trial.user_attrs.get(_WORKER, {})
        if worker.get("host") == self.name["host"] and os.name == "posix":
            if worker["pid"] == self.name["pid"]:
                return worker["call"] != self.name["call"]
            return not _is_alive(worker["pid"])
        return trial.datetime_start is None or datetime.now() - trial.datetime_start > patience


def was_interrupted(trial: FrozenTrial) -> bool:
    """Whether a trial has ended without an answer and without an error: its position is open."""
    return trial.state == TrialState.FAIL and ERROR not in trial.user_attrs


def counts(trial: FrozenTrial) -> bool:
    """Whether a trial is one of the search's: finished, failed by an error, or under way."""
    return trial.state != TrialState.WAITING and not was_interrupted(trial)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody else's
    try:  # killed, and its parent has not noticed
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True


def in_order(trials: Sequence[FrozenTrial]) -> list[tuple[int, FrozenTrial]]:
    """Return the trials that have an answer or an error, by their position."""
    first_attempts = [t.number for t in trials if POSITION not in t.user_attrs]
    position = {number: place for place, number in enumerate(first_attempts)}
    ended = [
        (int(t.user_attrs[POSITION]) if POSITION in t.user_attrs else position[t.number], t)
        for t in trials
        if t.state.is_finished() and not was_interrupted(t)
    ]
    return sorted(ended, key=lambda pair: pair[0])


def found_before(storage: Any, name: str) -> tuple[int, float | None]:
    """Return how many trials of a study have ended, and the best value; 0 where it is new."""
    if isinstance(storage, str) and "://" not in storage and not Path(storage).exists():
        return 0, None  # opening it would make it
    with opened(storage) as found:
        if found is None or known_settings(found, name) is None:
            return 0, None
        with quiet():
            study = optuna.load_study(study_name=name, storage=found)
        trials = study.get_trials(deepcopy=False)
    values = [t.value for t in trials if t.state == TrialState.COMPLETE and t.value is not None]
    best = min if study.direction == optuna.study.StudyDirection.MINIMIZE else max
    return len(in_order(trials)), best(values, default=None)
