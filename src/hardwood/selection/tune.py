"""`hardwood.tune`: checks of the arguments, and the whole search."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from hardwood.errors import FitInterruptedWarning, MissingExtraError
from hardwood.parameters import callback_list, integer, level, n_threads, real
from hardwood.selection.mapping_space import MappingSpace, Suggest, as_text, described
from hardwood.selection.metric import Metric, metric_of
from hardwood.selection.points import finite_points, grid
from hardwood.selection.result import FinishedTrial, TuningResult, best_of
from hardwood.selection.rows import LabeledRows, digest_of, folds_of
from hardwood.selection.spaces import space_of
from hardwood.text.numbers import plural

DEFAULT_TRIALS = 30
_MAX_SEED = 2**32 - 1
# Parameters that do not change the result, so a search may continue with other values.
_INCIDENTAL = {"n_jobs", "verbose", "callbacks"}


def tune(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    n_trials: int | None = None,
    time_limit: float | None = None,
    space: Any = None,
    fixed: Iterable[str] = (),
    scoring: Any = None,
    validation: Any = 0.2,
    sampler: Any = "tpe",
    pruner: Any = "median",
    storage: Any = None,
    study_name: str | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    refit: bool = True,
    callbacks: Any = None,
    verbose: int = 0,
) -> TuningResult:
    """Search for good hyperparameters of an estimator, by its score on validation rows.

    Parameters
    ----------
    estimator
        The estimator to tune, for example ``DGTClassifier()``. Parameters that are not searched
        keep their values.
    X, y
        The rows, in any form that `fit` accepts.
    sample_weight : array of shape (n,), default=None
        Weight of each row, in the fits and in the score.
    n_trials : int, default=None
        Number of sets of parameters to try, including those of a continued study. None: 30, or all
        points of a grid.
    time_limit : float, default=None
        Seconds after which no trial starts; trials in progress are stopped and do not count. The
        first trial is always completed.
    space : dict or function, default=None
        The search space. None: the values of the estimator's paper (`hardwood.selection.SPACES`),
        without parameters that the estimator sets to other values than their defaults. A dict from
        names to lists, `hardwood.selection.Range` or `hardwood.selection.When`. Or a function that
        takes Optuna's trial and returns a dict of parameters.
    fixed : list of str, default=()
        Parameters of the built-in space that keep their default values.
    scoring : str or function, default=None
        The metric. None: the estimator's loss; smaller is better. The name of a scikit-learn
        scorer, or a function ``(estimator, X, y) -> float``; larger is better.
    validation : float, int, tuple, list or splitter, default=0.2
        The validation rows, the same for all trials: a fraction of the rows, stratified by class; a
        number of folds, over which scores are averaged; separate rows, ``(X, y)`` or
        ``(X, y, sample_weight)``; a list of ``(train, validation)`` row numbers; or a scikit-learn
        splitter.
    sampler : "tpe", "random", "grid" or sampler of Optuna, default="tpe"
        How to draw parameters.
    pruner : "median", "halving", None or pruner of Optuna, default="median"
        How to stop bad trials early, by the validation loss of the first restart after some epochs.
        Without early stopping in the estimator, no trial is pruned.
    storage : path, URL or storage of Optuna, default=None
        Where to store the trials: a ``.db`` file (SQLite), a ``.log`` file (journal), or a
        database. The same call then continues an interrupted search. None: in memory.
    study_name : str, default=None
        Name of the search in the storage. None: the name of the estimator's class.
    random_state : int, RandomState instance or None, default=None
        Seed of the validation rows and of the sampler, and of the estimator if it has none.
    n_jobs : int, default=None
        Number of trials at the same time, on threads; -1 for all processors. With more than one,
        the search depends on which trial ends first. The estimator's ``n_jobs`` is the number of
        threads of each fit.
    refit : bool, default=True
        Whether to fit the best parameters on all rows at the end.
    callbacks : function or list of functions, default=None
        Called with a `FinishedTrial` after every trial; returning True ends the search.
    verbose : int, default=0
        1 prints a line per trial.

    Returns
    -------
    result : TuningResult
        ``best_params``, ``best_value``, ``best_estimator``, ``trials`` and Optuna's ``study``.

    Raises
    ------
    MissingExtraError
        If Optuna is not installed.
    ValueError, TypeError
        For invalid arguments, and for a study of another search. An error in a trial is raised if
        no trial is complete yet; later it becomes a `FitFailedWarning`.

    Notes
    -----
    Ctrl-C ends the search with a `FitInterruptedWarning`; the best parameters so far are fitted and
    returned. Before the first trial is complete, it raises KeyboardInterrupt.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import DGTClassifier
    >>> from hardwood.selection import tune
    >>> X, y = load_iris(return_X_y=True)
    >>> found = tune(
    ...     DGTClassifier(max_epochs=20), X, y, n_trials=3, random_state=0,
    ...     space={"max_depth": [1, 2], "momentum": [0.0, 0.3]},
    ... )
    >>> found.best_params["max_depth"]
    2
    """
    if find_spec("optuna") is None:
        raise MissingExtraError("optuna", extra="tune", purpose="Tuning")
    from hardwood.selection import study as studies
    from hardwood.selection.loop import TuningLoop
    from hardwood.selection.trial import Objective, TrialEstimator

    _check_estimator(estimator)
    if n_trials is not None:
        integer("n_trials", n_trials, 1)
    if time_limit is not None:
        real("time_limit", time_limit, 0, open_low=True)
    on_trial = callback_list(callbacks, "FinishedTrial")
    on_trial += [_print] if level("verbose", verbose) else []
    jobs = n_threads(n_jobs)
    rows = LabeledRows.of(X, y, sample_weight)
    suggest = space_of(estimator, space, fixed)
    metric = metric_of(estimator, scoring)
    if scoring is None:
        _check_comparable(suggest)
    is_grid = studies.is_name_of_sampler(sampler) and sampler == "grid"
    points = grid(suggest) if is_grid else finite_points(suggest)
    pruner = studies.pruner_of(pruner)
    name = study_name or type(estimator).__name__
    with studies.opened(storage) as found:
        study = studies.found_study(found, name)
        seed = _seed(
            random_state, None if study is None else studies.settings_of(study)["random_state"]
        )
        folds = folds_of(
            validation,
            rows,
            is_classifier=is_classifier(estimator),
            rng=np.random.default_rng(seed),
        )
        settings = _settings(estimator, suggest, metric, sampler) | {
            "random_state": seed,
            studies.ROWS: rows.digest(),
            studies.VALIDATION: digest_of(folds),
        }
        if study is None:
            study = studies.new_study(found, name, metric.direction, settings)
        else:
            studies.check_settings(study, settings)
        study.pruner = pruner
        copied = TrialEstimator(estimator, seed)
        search = TuningLoop(
            study,
            Objective(copied, suggest, metric, rows, folds),
            sampler,
            seed,
            n_trials=_n_trials(n_trials, points, is_grid=is_grid),
            time_limit=time_limit,
            on_trial=on_trial,
            points=points,
        )
        was_interrupted = search.run(jobs)
        trials = search.finished()
    best = best_of(trials, metric.direction)
    assert best.value is not None  # it is complete
    result = TuningResult(
        best_params=best.params,
        best_value=best.value,
        best_estimator=copied.learn(best.params, rows) if refit else None,
        trials=trials,
        metric=metric.name,
        direction=metric.direction,
        study=study,
        interrupted=was_interrupted,
    )
    if was_interrupted:  # said last: the result is whole already
        warnings.warn(
            f"The search was interrupted after {plural(len(trials), 'trial')}; the best so far is "
            "kept.",
            FitInterruptedWarning,
            stacklevel=2,
        )
    return result


def _settings(estimator: Any, suggest: Suggest, metric: Metric, sampler: Any) -> dict[str, Any]:
    """Return all that would make trials incomparable if it changed, as JSON can hold it."""
    parameters = estimator.get_params(deep=False).items()
    return {
        "estimator": type(estimator).__name__,
        "space": described(suggest),
        "metric": metric.name,
        "sampler": sampler if isinstance(sampler, str) else type(sampler).__name__,
    } | {f"parameter {k}": as_text(value) for k, value in parameters if k not in _INCIDENTAL}


def _check_estimator(estimator: Any) -> None:
    if isinstance(estimator, type) or not (
        hasattr(estimator, "fit") and hasattr(estimator, "get_params")
    ):
        raise TypeError(f"tune takes an estimator, for example DGTClassifier(), got {estimator!r}.")


def _check_comparable(suggest: Suggest) -> None:
    if isinstance(suggest, MappingSpace) and "loss" in suggest.entries:
        raise ValueError(
            "The space holds 'loss', and values of different losses cannot be compared. Name what "
            "to score by, for example scoring='neg_mean_absolute_error'."
        )


def _n_trials(n_trials: int | None, points: list[dict[str, Any]], *, is_grid: bool) -> int:
    """Return how many trials to make: no more than there are points, where these can be counted."""
    if n_trials is None:
        n_trials = len(points) if is_grid else DEFAULT_TRIALS
    return min(n_trials, len(points)) if points else n_trials


def _seed(random_state: Any, known: int | None) -> int:
    """Return the seed of a search: as given, that of the study which is continued, or a new one."""
    if random_state is None:
        return int(np.random.default_rng().integers(_MAX_SEED)) if known is None else known
    if isinstance(random_state, numbers.Integral):
        return integer("random_state", random_state, 0, _MAX_SEED)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _print(trial: FinishedTrial) -> None:
    value = "pruned" if trial.value is None else f"{trial.value:.6g}"
    words = "failed" if trial.state == "failed" else value
    params = ", ".join(f"{name}={setting!r}" for name, setting in trial.params.items())
    print(f"trial {trial.number}: {words}  {trial.seconds:.1f} s  {params}", flush=True)
