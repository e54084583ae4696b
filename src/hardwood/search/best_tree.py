"""Fitting `TreeClassifier` and `TreeRegressor`: rows for the search, the search, and its finish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hardwood.estimators import exercise as exercises
from hardwood.estimators import parameters
from hardwood.estimators.exercise import Exercise
from hardwood.learn.clock import Clock
from hardwood.learn.finish import assemble
from hardwood.learn.task import Problem
from hardwood.model import ObliqueTree
from hardwood.search.candidates import CutOff, Kitchen
from hardwood.search.distill import Teacher, check_teacher, fitted_teacher, learned_networks
from hardwood.search.fit_report import FitReport, Trial
from hardwood.search.scorer import Judge
from hardwood.search.tree_search import Candidate, Plan, Search
from hardwood.text.numbers import format_number

MAX_DEPTH = 16
_MAX_TRIALS = 100_000
# Fewer distinct rows than this are judged by folds, since a part of them says too little.
_FOLDED_BELOW = 1_500
_FOLDS = 4
# Rows that candidates learn from and are judged by: more take longer and hardly choose better.
_SEARCH_ENTRIES = 6_000_000
_JUDGING_ROWS = 20_000
_LAST_SWEEPS = 3


@dataclass(frozen=True)
class Fitted:
    """What a fit gives: the tree, the log, and whether the user stopped it."""

    tree: ObliqueTree
    report: FitReport
    interrupted: bool


def fit_tree(estimator: Any, exercise: Exercise, X: Any, clock: Clock) -> Fitted:
    """Check the parameters, search, finish, and make the tree."""
    plan = _plan_of(estimator)
    check_teacher(estimator.teacher, exercise.task)
    judge = Judge.of(exercise.task, exercise.classes, estimator.scoring)
    seed = exercises.drawn_seed(estimator.random_state)
    n_jobs = parameters.n_threads(estimator.n_jobs)
    whole = _posed(estimator, exercise, seed)
    folds = _folds(whole, exercise, seed)
    is_part = len(whole.valid) > 0 and len(folds[0].train) < len(whole.train)
    search = Search(
        exercise,
        Kitchen(exercise, n_jobs, seed, clock),
        judge,
        plan,
        folds,
        _teaching(estimator, exercise, X, seed, clock),
        (len(whole.train) + len(whole.valid)) / len(folds[0].train),
        _callbacks(estimator, judge),
        replace(whole, valid=folds[0].valid) if is_part else None,
    )
    search.run()
    n_before = len(search.trials)
    if is_part:
        search = _widened(search)
    best = search.best
    tree, finish = _finished(search, best, whole)
    report = FitReport(
        tuple(search.trials),
        search.words(best.recipe),
        judge.name,
        search.teacher_words,
        _rows_in_words(folds, whole, is_wider=len(search.trials) > n_before),
        search.ending,
        finish,
        clock.spent,
    )
    return Fitted(_assembled(estimator, exercise, tree, search, n_jobs), report, search.interrupted)


def _plan_of(estimator: Any) -> Plan:
    most, trials = estimator.max_features_per_split, estimator.max_trials
    return Plan(
        parameters.integer("max_depth", estimator.max_depth, 1, MAX_DEPTH),
        parameters.choice("leaves", estimator.leaves, ("constant", "linear")),
        most if most is None else parameters.integer("max_features_per_split", most, 1, 2**31 - 1),
        trials if trials is None else parameters.integer("max_trials", trials, 1, _MAX_TRIALS),
    )


def _callbacks(estimator: Any, judge: Judge) -> list[Any]:
    callbacks: list[Any] = list(parameters.callback_list(estimator.callbacks))
    if parameters.level("verbose", estimator.verbose):
        callbacks.append(partial(_print, judge))
    return callbacks


def _print(judge: Judge, trial: Trial) -> None:
    score = f"{judge.name} {format_number(trial.validation_score)}"
    print(
        f"{trial.number}  {trial.recipe}  {score}  {trial.seconds:.1f} s  {trial.outcome}",
        flush=True,
    )


def _posed(estimator: Any, exercise: Exercise, seed: int) -> Problem:
    """Pose the problem, with a validation part for tables that are not judged by folds."""
    parameters.real("validation_fraction", estimator.validation_fraction, 0.0, 1.0, open_low=True)
    has_part = len(exercise.data.rows) >= _FOLDED_BELOW
    return exercises.problem_of(estimator, exercise, has_part, seed)


def _folds(whole: Problem, exercise: Exercise, seed: int) -> list[Problem]:
    """Return the problems that candidates are made and judged on."""
    if len(whole.valid):
        n_rows = max(1, _SEARCH_ENTRIES // whole.schema.n_columns)
        return [replace(whole, train=whole.train[:n_rows], valid=whole.valid[:_JUDGING_ROWS])]
    rows = whole.train
    group = whole.y[rows, 0] if exercise.task == "classification" else np.zeros(len(rows))
    random = np.random.default_rng(seed)
    fold = np.empty(len(rows), dtype=np.int64)
    fold[np.lexsort((random.random(len(rows)), group))] = np.arange(len(rows)) % _FOLDS
    _, member, sizes = np.unique(group, return_inverse=True, return_counts=True)
    is_alone = sizes[member] == 1  # the only row of a class teaches in every fold
    parts = [(fold == i) & (~is_alone | is_alone.all()) for i in range(_FOLDS)]
    return [
        replace(whole, train=rows[~part], valid=rows[part])
        for part in parts
        if part.any() and not part.all()
    ]


def _teaching(
    estimator: Any, exercise: Exercise, X: Any, seed: int, clock: Clock
) -> Callable[..., Teacher | None] | None:
    """Return what makes the teacher of a problem, from one that knows a part of its rows."""
    teacher = estimator.teacher
    if teacher is None:
        return None
    if isinstance(teacher, str):
        return partial(learned_networks, exercise=exercise, seed=seed, is_over=clock.is_past)

    def teach(problem: Problem, **known: Any) -> Teacher:
        target = exercise.data.target
        y: Any = target if target.shape[1] > 1 else target[:, 0]
        if exercise.task == "classification":
            assert exercise.classes is not None
            y = exercise.classes[y.astype(np.int64)]
        return fitted_teacher(problem, exercise, teacher, X, y)

    return teach


def _widened(search: Search) -> Search:
    """Let the best recipes of a large table learn from more rows; go on with what is better."""
    if search.interrupted or search.is_stopped:
        return search
    wide = None
    try:
        wide = search.widened()
        if wide is None:
            return search
        wide.run()
    except KeyboardInterrupt:
        search.interrupted = True
    if wide is not None and wide.families and wide.best.validation_score >= wide.to_beat:
        return wide
    if search.interrupted or (wide is not None and wide.interrupted):
        search.interrupted, search.ending = True, "Interrupted by the user."
    return search


def _finished(search: Search, best: Candidate, whole: Problem) -> tuple[ObliqueTree, str]:
    """Use all rows: those that did not fit into the search, and those that judged it."""
    tree = best.trees[0]
    try:
        if not search.interrupted:
            return _used_all(search, best, whole)
    except CutOff:
        return tree, "Not finished on all rows: there was no time left."
    except KeyboardInterrupt:
        search.interrupted = True
    return tree, "Not finished on all rows, since it was interrupted."


def _used_all(search: Search, best: Candidate, whole: Problem) -> tuple[ObliqueTree, str]:
    """Make or polish the best tree with all rows, as it suits the table."""
    tree, kitchen = best.trees[0], search.kitchen
    everything = replace(
        whole, train=np.concatenate([whole.train, whole.valid]), valid=whole.valid[:0]
    )
    if search.is_made_again(best.recipe) and not kitchen.clock.has(search.finish_seconds):
        raise CutOff  # half a tree is none
    if best.recipe.is_plain:
        return kitchen.made(best.recipe, everything, None), "Grown again from all rows."
    teacher = search.teacher_of(best, everything)
    if search.is_made_again(best.recipe):
        return kitchen.made(best.recipe, everything, teacher), "Made again from all rows."
    if teacher is not None:
        everything = kitchen.lesson(best.recipe, everything, teacher)
    polish = replace(best.recipe.polish, max_sweeps=_LAST_SWEEPS)
    return kitchen.polished(tree, polish, everything), "Polished with all rows."


def _rows_in_words(folds: list[Problem], whole: Problem, is_wider: bool) -> str:
    n_train, n_valid = len(folds[0].train), len(folds[0].valid)
    words = f"Candidates learned from {n_train:,} rows and were judged by {n_valid:,} others"
    if len(folds) > 1:
        return f"{words}, {len(folds)} times over."
    if is_wider:
        return f"{words}; the best few learned again, from {len(whole.train):,} rows."
    if n_train < len(whole.train):
        return f"{words}, of {len(whole.train) + len(whole.valid):,} rows in all."
    return f"{words}."


def _assembled(
    estimator: Any, exercise: Exercise, tree: ObliqueTree, search: Search, n_jobs: int
) -> ObliqueTree:
    """Count the rows, drop what none of them reaches, and note how it came about."""
    return assemble(
        exercise.data,
        tree.weights,
        tree.bias,
        tree.children,
        tree.values,
        task=exercise.task,
        classes=exercise.labels,
        target_names=exercise.target_names,
        record={
            **exercises.parameter_record(estimator),
            "distinct_rows": len(exercise.data.rows),
            "validation_rows": len(search.folds[0].valid),
            "resolved": {"recipe": str(search.best.recipe)},
        },
        leaf_weights=tree.leaf_weights,
        link=tree.link,
        n_jobs=n_jobs,
        keeps_unreached=search.best.recipe.has_soft_leaves,
    )
