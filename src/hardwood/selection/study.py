"""Optuna's study of a search: where it is kept, what it searches, and how its trials are drawn."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.storages import (
    BaseStorage,
    JournalStorage,
    RDBStorage,
    RetryHeartbeatStaleTrialCallback,
)
from optuna.storages.journal import (
    JournalFileBackend,
    JournalFileOpenLock,
    JournalFileSymlinkLock,
)
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

ROWS = "the rows"
VALIDATION = "the validation rows"
"""Names of settings that are digests: that they differ can be said, but not how."""

SAMPLERS = ("tpe", "random", "grid")
PRUNERS = ("median", "halving")
STEPS = 12
"""How many times a trial reports to the pruner, at equal parts of its epochs."""

# The cosine schedule starts anew after each quarter: the end of the first is the first fair look.
_FIRST_LOOK = STEPS // 4
_STARTUP_TRIALS = 5

ERROR = "error"
"""Attribute of a trial that has failed; one that was interrupted has none, and does not count."""

Direction = Literal["minimize", "maximize"]

_SETTINGS = "hardwood"  # attribute of the study: what it searches
_SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_JOURNAL_SUFFIXES = (".log", ".journal", ".jsonl")
_HEARTBEAT_SECONDS = 30  # a trial that is silent for twice as long is made again


# --- storage -----------------------------------------------------------------------------------


@contextmanager
def opened(storage: Any) -> Iterator[BaseStorage | None]:
    """Open a storage, and close its file when the context ends; a study opens it again if used.

    Parameters
    ----------
    storage
        None (memory), a path, a database URL, or a storage of Optuna.

    Raises
    ------
    ValueError
        For a path whose suffix does not tell what it is, or where no file can be, and for a file
        or URL that is no database.
    """
    found = _open(storage)
    try:
        yield found
    finally:
        if isinstance(found, RDBStorage):
            found.remove_session()
            found.engine.dispose()


def _open(storage: Any) -> BaseStorage | None:
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
        return _journal(str(path.resolve()), name)
    raise ValueError(
        f"storage {name}: the name must end in {', '.join(_SQLITE_SUFFIXES)} (SQLite) or "
        f"{', '.join(_JOURNAL_SUFFIXES)} (a journal, for folders on a network), or be a URL such "
        "as postgresql://..."
    )


def _database(url: str, name: str) -> RDBStorage:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)  # heartbeats
            return RDBStorage(
                url,
                heartbeat_interval=_HEARTBEAT_SECONDS,
                heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(),
            )
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


def _journal(path: str, name: str) -> BaseStorage:
    lock = JournalFileSymlinkLock if os.name == "posix" else JournalFileOpenLock
    try:
        return JournalStorage(JournalFileBackend(path, lock_obj=lock(path)))
    except ValueError as error:  # a line that is no JSON
        raise ValueError(f"storage {name} is no journal of Optuna: {error}") from error


# --- studies and trials ------------------------------------------------------------------------


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Optuna's messages to itself: what the user should know, the search says."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.ERROR))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def found_study(storage: BaseStorage | None, name: str) -> Study | None:
    """Return the study of this name; None where there is no such study yet.

    Raises
    ------
    ValueError
        For a study that something else has made.
    """
    if storage is None:
        return None
    try:
        with quiet():
            study = optuna.load_study(study_name=name, storage=storage)
    except KeyError:
        return None
    if _SETTINGS not in study.user_attrs:
        raise ValueError(
            f"The study '{name}' in this storage was not made by hardwood.tune; give another "
            "study_name."
        )
    return study


def settings_of(study: Study) -> dict[str, Any]:
    """Return what a study searches."""
    settings: dict[str, Any] = study.user_attrs[_SETTINGS]
    return settings


def new_study(
    storage: BaseStorage | None, name: str, direction: Direction, settings: Mapping[str, Any]
) -> Study:
    """Make a study that holds what it searches."""
    with quiet():
        study = optuna.create_study(storage=storage, study_name=name, direction=direction)
    study.set_user_attr(_SETTINGS, dict(settings))
    return study


def check_settings(study: Study, settings: Mapping[str, Any]) -> None:
    """Raise a ValueError that says what differs, unless a study searches what is searched now."""
    known = settings_of(study)
    differing = [
        f"{key} are others"
        if key in (ROWS, VALIDATION)
        else f"{key} was {_shown(known.get(key))}, is {_shown(value)}"
        for key, value in settings.items()
        if known.get(key) != value
    ]
    if differing:
        raise ValueError(
            f"The study '{study.study_name}' in this storage is of another search: "
            f"{'; '.join(differing)}. Give the same to continue it, or another study_name (or "
            "storage) for a new one."
        )


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def has_result(trial: FrozenTrial) -> bool:
    """Whether a trial has ended with a value, by the pruner, or with an error; so it counts."""
    return trial.state in (TrialState.COMPLETE, TrialState.PRUNED) or ERROR in trial.user_attrs


def found_before(storage: Any, name: str) -> tuple[int, float | None]:
    """Return how many trials of a study have ended, and the best value; 0 where it is new."""
    if isinstance(storage, str) and "://" not in storage and not Path(storage).exists():
        return 0, None  # opening it would make it
    with opened(storage) as found:
        study = found_study(found, name)
        trials = [] if study is None else study.get_trials(deepcopy=False)
        is_complete = any(trial.state == TrialState.COMPLETE for trial in trials)
        best = study.best_value if study is not None and is_complete else None
    return sum(map(has_result, trials)), best


# --- samplers and pruners ----------------------------------------------------------------------


def is_name_of_sampler(sampler: Any) -> bool:
    """Tell a name from a sampler of Optuna, which may be anything; raise for what is neither."""
    if isinstance(sampler, BaseSampler):
        return False
    if not isinstance(sampler, str) or sampler not in SAMPLERS:
        raise ValueError(
            f"sampler must be one of {list(SAMPLERS)} or a sampler of Optuna, got {sampler!r}."
        )
    return True


def sampler_of(name: str, seed: int, place: int) -> BaseSampler:
    """Return a sampler for the trial at a place of the search: new, since its state is not kept.

    So a search that is continued draws what it would have drawn without the break.
    """
    own_seed = int(np.random.SeedSequence([seed, place]).generate_state(1)[0])
    return TPESampler(seed=own_seed) if name == "tpe" else RandomSampler(seed=own_seed)


def pruner_of(pruner: Any) -> BasePruner:
    """Return Optuna's pruner for a name, None (no pruning) or itself."""
    if pruner is None:
        return NopPruner()
    if isinstance(pruner, BasePruner):
        return pruner
    if isinstance(pruner, str) and pruner == "median":
        return MedianPruner(n_startup_trials=_STARTUP_TRIALS, n_warmup_steps=_FIRST_LOOK)
    if isinstance(pruner, str) and pruner == "halving":
        return SuccessiveHalvingPruner(min_resource=_FIRST_LOOK, reduction_factor=2)
    raise ValueError(
        f"pruner must be one of {list(PRUNERS)}, None or a pruner of Optuna, got {pruner!r}."
    )
