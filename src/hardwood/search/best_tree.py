"""The best tree: candidates of several kinds, compared on rows that they did not learn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from hardwood.learn.clock import Clock
from hardwood.learn.learner import Learned, Learner, Run, Start
from hardwood.learn.tao import Leaves
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.parameters import choice_field, integer_field, unchecked_field
from hardwood.search.candidates import CutOff, Kitchen
from hardwood.search.distill import Teacher, check_teacher, fitted_teacher, learned_networks
from hardwood.search.fit_report import FitReport, Trial
from hardwood.search.scorer import Judge
from hardwood.search.tree_search import Candidate, Limits, Search
from hardwood.table.split import validation_folds
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
class BestTree(Learner):
    """The best tree that is found; `TreeClassifier` says what each parameter means."""

    takes_start: ClassVar[bool] = False

    max_depth: int = integer_field(8, 1, MAX_DEPTH)
    leaves: Leaves = choice_field("constant", ("constant", "linear"))
    max_features_per_split: int | None = integer_field(None, 1, or_none=True)
    teacher: Any = unchecked_field("auto", "object", or_none=True, or_auto=True)
    max_trials: int | None = integer_field(None, 1, _MAX_TRIALS, or_none=True)
    scoring: Any = unchecked_field(None, "text", or_none=True)

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Search, and finish with all rows.

        `Run.clock` limits the time; callbacks hear of every `Trial`.
        """
        check_teacher(self.teacher, task.kind)
        judge = Judge.of(task.kind, task.classes, self.scoring)
        folds = _folds(task, run.seed)
        is_part = len(task.valid) > 0 and len(folds[0].train) < len(task.train)
        search = Search(
            task,
            Kitchen(run.n_jobs, run.seed, run.clock),
            judge,
            Limits(self.max_depth, self.leaves, self.max_features_per_split, self.max_trials),
            folds,
            _teaching(self.teacher, task, run.seed, run.clock),
            (len(task.train) + len(task.valid)) / len(folds[0].train),
            run.callbacks,
            replace(task, valid=folds[0].valid) if is_part else None,
        )
        search.run()
        n_before = len(search.trials)
        if is_part:
            search = _widened(search)
        best = search.best
        tree, finish = _finished(search, best, task)
        report = FitReport(
            tuple(search.trials),
            search.words(best.recipe),
            judge.name,
            search.teacher_words,
            _rows_in_words(folds, task, is_wider=len(search.trials) > n_before),
            search.ending,
            finish,
            run.clock.spent,
        )
        return Learned(
            tree,
            history=None,
            interrupted=search.interrupted,
            facts={"fit_report": report},
            record={
                "validation_rows": len(search.folds[0].valid),
                "resolved": {"recipe": str(search.best.recipe)},
            },
            keeps_unreached=search.best.recipe.has_soft_leaves,
        )

    @property
    def needs_validation(self) -> str:
        return "The choice of a tree"

    def wants_validation(self, task: Task) -> bool:
        """Whether there are too many rows for folds."""
        return len(task.rows) >= _FOLDED_BELOW

    def printer(self, task: Task, verbose: int) -> Callable[[Any], Any]:
        return partial(_print, Judge.of(task.kind, task.classes, self.scoring))

    def interrupted_message(self, learned: Learned) -> str:
        n = len(learned.facts["fit_report"].trials)
        return f"The search was interrupted after {n} candidate(s); the best tree so far is kept."


def _print(judge: Judge, trial: Trial) -> None:
    score = f"{judge.name} {format_number(trial.validation_score)}"
    print(
        f"{trial.number}  {trial.recipe}  {score}  {trial.seconds:.1f} s  {trial.outcome}",
        flush=True,
    )


def _folds(whole: Task, seed: int) -> list[Task]:
    """Return the tasks that candidates are made and judged on."""
    if len(whole.valid):
        n_rows = max(1, _SEARCH_ENTRIES // whole.schema.n_columns)
        return [replace(whole, train=whole.train[:n_rows], valid=whole.valid[:_JUDGING_ROWS])]
    rows = whole.train
    group = whole.y[rows, 0] if whole.kind == "classification" else np.zeros(len(rows))
    folds = validation_folds(group, _FOLDS, np.random.default_rng(seed))
    return [replace(whole, train=rows[~fold], valid=rows[fold]) for fold in folds]


def _teaching(
    teacher: Any, task: Task, seed: int, clock: Clock
) -> Callable[..., Teacher | None] | None:
    """Return what makes the teacher of a task, from one that knows a part of its rows."""
    if teacher is None:
        return None
    if isinstance(teacher, str):
        return partial(learned_networks, seed=seed, is_over=clock.is_past)

    def teach(part: Task, **known: Any) -> Teacher:
        y: Any = task.target if task.target.shape[1] > 1 else task.target[:, 0]
        if task.kind == "classification":
            assert task.classes is not None
            y = task.classes[y.astype(np.int64)]
        return fitted_teacher(part, teacher, task.given, y)

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


def _finished(search: Search, best: Candidate, whole: Task) -> tuple[ObliqueTree, str]:
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


def _used_all(search: Search, best: Candidate, whole: Task) -> tuple[ObliqueTree, str]:
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
    assert best.recipe.polish is not None
    polish = replace(best.recipe.polish, max_sweeps=_LAST_SWEEPS)
    return kitchen.polished(tree, polish, everything), "Polished with all rows."


def _rows_in_words(folds: list[Task], whole: Task, is_wider: bool) -> str:
    n_train, n_valid = len(folds[0].train), len(folds[0].valid)
    words = f"Candidates learned from {n_train:,} rows and were judged by {n_valid:,} others"
    if len(folds) > 1:
        return f"{words}, {len(folds)} times over."
    if is_wider:
        return f"{words}; the best few learned again, from {len(whole.train):,} rows."
    if n_train < len(whole.train):
        return f"{words}, of {len(whole.train) + len(whole.valid):,} rows in all."
    return f"{words}."
