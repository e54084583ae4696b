"""The best tree: candidates of several kinds, compared on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from hardwood.clock import Clock
from hardwood.learn.finish import outputs_of
from hardwood.learn.learner import Learned, Learner, Run, Start
from hardwood.learn.leaves.smoothing import Smoothing
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.parameters import choice_field, flag_field, integer_field, unchecked_field
from hardwood.progress import Progress
from hardwood.search.candidates import Candidate, CandidateBuilder, OutOfTime
from hardwood.search.distill import Teacher, check_teacher, fitted_teacher, train_networks
from hardwood.search.fit_report import FitReport, Trial
from hardwood.search.frontier import READABLE_TERMS, Preference
from hardwood.search.frontier_search import FrontierSearch
from hardwood.search.linear_search import (
    FEW_LEAVES,
    MANY_LEAVES,
    LinearSearch,
    n_modeled_columns,
)
from hardwood.search.measured import CandidateResult
from hardwood.search.probabilities import Probabilities
from hardwood.search.rounded import with_short_means
from hardwood.search.scorer import Scorer, losses_of
from hardwood.search.tree_search import FINAL_RESTARTS, Limits, TreeSearch
from hardwood.table.split import validation_folds
from hardwood.text.numbers import format_number, plural

LeafKind = Literal["auto", "constant", "linear"]

MAX_DEPTH = 16
# Of trees with constant leaves, where no depth is given.
_OBLIQUE_DEPTH = 8
_AXIS_DEPTH = 32
_MAX_TRIALS = 100_000
# Tables with fewer distinct rows are scored by cross-validation: one validation part is too noisy.
_FOLDED_BELOW = 20_000
_FOLDED_ENTRIES = 1_500_000  # at most, encoded: more take too long
_FOLDS = 4
# Size of the training and validation parts of the search: more rows take longer and hardly improve
# the choice.
_SEARCH_ENTRIES = 6_000_000
_SEARCH_VALIDATION_ROWS = 20_000
# Training entries that linear trees are compared on; the chosen one is grown from more.
_LINEAR_ENTRIES = 1_000_000
_LAST_SWEEPS = 3


@dataclass(kw_only=True, eq=False, repr=False)
class TreeParameters:
    """Parameters of `TreeRegressor`, which `TreeClassifier` has, too.

    They load without scikit-learn.
    """

    max_depth: int | None = None
    max_leaves: int | None = None
    max_terms: int | None = None
    leaves: LeafKind = "auto"
    prefer: Preference = "balanced"
    max_features_per_split: int | None = None
    teacher: Any = "auto"
    time_limit: float | None = 20.0
    max_trials: int | None = None
    scoring: Any = None
    validation_fraction: float = 0.2
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    callbacks: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class TreeClassifierParameters(TreeParameters):
    """Parameters of `TreeClassifier`."""

    calibrate: bool = False


@dataclass(frozen=True)
class BestTree(Learner):
    """Search for the best tree; `TreeClassifier` describes the parameters."""

    takes_start: ClassVar[bool] = False

    max_depth: int | None = integer_field(None, 1, MAX_DEPTH, or_none=True)
    max_leaves: int | None = integer_field(None, 1, or_none=True)
    max_terms: int | None = integer_field(None, 0, or_none=True)
    leaves: LeafKind = choice_field("auto", get_args(LeafKind))
    prefer: Preference = choice_field("balanced", get_args(Preference))
    max_features_per_split: int | None = integer_field(None, 1, or_none=True)
    teacher: Any = unchecked_field("auto", "object", or_none=True, or_auto=True)
    max_trials: int | None = integer_field(None, 1, _MAX_TRIALS, or_none=True)
    scoring: Any = unchecked_field(None, "text", or_none=True)
    calibrate: bool = flag_field(False)

    def _fit(self, task: Task, run: Run, start: Start) -> Learned:
        """Search, then fit the best candidate to all rows.

        `Run.clock` limits the time; callbacks are called with every `Trial`.
        """
        self._check_leaves()
        check_teacher(self.teacher, task.kind)
        task = with_short_means(task)
        scorer = Scorer.of(task.kind, task.classes, self.scoring)
        folds = _folds(task, run.seed)
        is_sampled = len(task.valid) > 0 and len(folds[0].train) < len(task.train)
        search = TreeSearch(
            task,
            CandidateBuilder(run.n_jobs, run.seed, run.clock, run.progress),
            scorer,
            self._limits,
            folds,
            _teacher_maker(self.teacher, task, run.seed, run.clock),
            (len(task.train) + len(task.valid)) / len(folds[0].train),
            run.callbacks,
            replace(task, valid=folds[0].valid) if is_sampled else None,
        )
        if self.leaves == "auto":
            return self._frontier_search(task, run, search).fit(
                _describe_rows(folds, task, has_finalists=False)
            )
        search.run()
        n_before = len(search.trials)
        if is_sampled:
            search = _on_all_rows(search)
        best = search.best
        tree, finish = _finished(search, best, task)
        probabilities = Probabilities(task, search.folds, self.calibrate, run.n_jobs)
        tree, held_out = probabilities.finished(tree, best.trees)
        report = FitReport(
            tuple(search.trials),
            search.describe(best.candidate),
            scorer.name,
            search.teacher_note,
            _describe_rows(folds, task, has_finalists=len(search.trials) > n_before),
            search.ending,
            finish,
            run.clock.spent,
            held_out,
        )
        return Learned(
            tree,
            history=None,
            interrupted=search.interrupted,
            facts={"fit_report": report},
            record={
                "validation_rows": len(search.folds[0].valid),
                "resolved": {"candidate": str(best.candidate)},
            },
            keeps_unreached=best.candidate.has_soft_leaves,
        )

    def _check_leaves(self) -> None:
        """Refuse what only `leaves="auto"` takes into account."""
        if self.leaves == "auto":
            return
        for name, default in (("max_leaves", None), ("max_terms", None), ("prefer", "balanced")):
            if getattr(self, name) != default:
                raise ValueError(
                    f'{name}={getattr(self, name)!r} needs leaves="auto", got '
                    f"leaves={self.leaves!r}. max_depth and max_features_per_split limit trees "
                    "with one kind of leaves."
                )

    @property
    def _limits(self) -> Limits:
        """The limits of oblique trees."""
        terms = [self.max_features_per_split, self.max_terms]
        if self.prefer == "readable":
            terms.append(READABLE_TERMS)
        return Limits(
            self.max_depth or _OBLIQUE_DEPTH,
            self.max_depth or _AXIS_DEPTH,
            "linear" if self.leaves == "linear" else "constant",
            min((max(most, 1) for most in terms if most is not None), default=None),
            self.max_trials,
        )

    def _frontier_search(self, task: Task, run: Run, oblique: TreeSearch) -> FrontierSearch:
        most = max(1, _LINEAR_ENTRIES // n_modeled_columns(task))
        folds = [replace(fold, train=fold.train[:most]) for fold in oblique.folds]
        linear = LinearSearch(
            folds,
            run,
            self.max_depth,
            self.max_leaves,
            self.max_terms,
            (len(task.train) + len(task.valid)) / len(folds[0].train),
            MANY_LEAVES if self.prefer == "accuracy" else FEW_LEAVES,
        )
        return FrontierSearch(
            task,
            run,
            oblique.scorer,
            linear,
            oblique if self.max_leaves is None else None,
            self.prefer,
            _finished,
            Probabilities(task, oblique.folds, self.calibrate, run.n_jobs),
            self.max_trials,
        )

    @property
    def needs_validation(self) -> str:
        return "The choice of a tree"

    def wants_validation(self, task: Task) -> bool:
        """Whether there are too many rows for cross-validation."""
        n_rows = len(task.rows)
        return n_rows >= _FOLDED_BELOW or n_rows * n_modeled_columns(task) > _FOLDED_ENTRIES

    def printer(self, task: Task, verbose: int) -> Callable[[Any], Any]:
        return partial(_print, Scorer.of(task.kind, task.classes, self.scoring))

    def follower(self, task: Task, progress: Progress) -> Callable[[Any], Any]:
        """Return a callback that shows the best score so far."""
        return partial(_show_best, Scorer.of(task.kind, task.classes, self.scoring), progress)

    def interrupted_message(self, learned: Learned) -> str:
        n = plural(len(learned.facts["fit_report"].trials), "candidate")
        return f"The search was interrupted after {n}; the best tree so far is kept."


def _print(scorer: Scorer, trial: Trial) -> None:
    score = f"{scorer.name} {format_number(trial.validation_score)}"
    print(
        f"{trial.number}  {trial.candidate}  {score}  {trial.seconds:.1f} s  {trial.outcome}",
        flush=True,
    )


def _show_best(scorer: Scorer, progress: Progress, trial: Trial) -> None:
    if trial.outcome == "best so far":
        progress.update(best=f"best {scorer.name} {format_number(trial.validation_score)}")


def _folds(whole: Task, seed: int) -> list[Task]:
    """Return the tasks that candidates are built and scored on."""
    if len(whole.valid):
        n_rows = max(1, _SEARCH_ENTRIES // whole.schema.n_columns)
        train, valid = whole.train[:n_rows], whole.valid[:_SEARCH_VALIDATION_ROWS]
        return [replace(whole, train=train, valid=valid)]
    rows = whole.train
    group = whole.y[rows, 0] if whole.kind == "classification" else np.zeros(len(rows))
    folds = validation_folds(group, _FOLDS, np.random.default_rng(seed))
    return [replace(whole, train=rows[~fold], valid=rows[fold]) for fold in folds]


def _teacher_maker(
    teacher: Any, task: Task, seed: int, clock: Clock
) -> Callable[..., Teacher | None] | None:
    """Return a function that makes a teacher for a task; it can start from an earlier teacher."""
    if teacher is None:
        return None
    if isinstance(teacher, str):
        return partial(train_networks, seed=seed, is_over=clock.is_past)

    def make_teacher(part: Task, **options: Any) -> Teacher:
        y: Any = task.target if task.target.shape[1] > 1 else task.target[:, 0]
        if task.kind == "classification":
            assert task.classes is not None
            y = task.classes[y.astype(np.int64)]
        return fitted_teacher(part, teacher, task.given, y)

    return make_teacher


def _on_all_rows(search: TreeSearch) -> TreeSearch:
    """Try the finalists of a large table on all training rows; return the better search."""
    if search.interrupted or search.is_stopped:
        return search
    final = None
    try:
        final = search.on_all_rows()
        if final is None:
            return search
        final.run()
    except KeyboardInterrupt:
        search.interrupted = True
    if final is not None and final.groups and final.best.validation_score >= final.score_to_beat:
        return final
    if search.interrupted or (final is not None and final.interrupted):
        search.interrupted, search.ending = True, "Interrupted by the user."
    return search


def _finished(
    search: TreeSearch, best: CandidateResult, whole: Task, restarts: int = FINAL_RESTARTS
) -> tuple[ObliqueTree, str]:
    """Fit the best candidate to all rows, including those that the search left out or held out."""
    tree = best.trees[0]
    try:
        if not search.interrupted:
            tree, words = _fitted_to_all_rows(search, best, whole, restarts)
            return _smoothed(tree, best, whole, search.builder.n_jobs), words
    except OutOfTime:
        return tree, "Not fitted to all rows: there was no time left."
    except KeyboardInterrupt:
        search.interrupted = True
    return tree, "Not fitted to all rows: the fit was interrupted."


def _fitted_to_all_rows(
    search: TreeSearch, best: CandidateResult, whole: Task, restarts: int
) -> tuple[ObliqueTree, str]:
    """Build the best candidate again from all rows, or refine its tree on them."""
    candidate, builder = best.candidate, search.builder
    all_rows = replace(
        whole, train=np.concatenate([whole.train, whole.valid]), valid=whole.valid[:0]
    )
    is_rebuilt = search.is_rebuilt(candidate)
    if is_rebuilt and not builder.clock.has(search.finish_seconds):
        raise OutOfTime  # an unfinished tree is of no use
    if candidate.is_axis_aligned:
        return builder.build(candidate, all_rows, None), "Refitted on all rows."
    teacher = search.final_teacher(best, all_rows)
    if is_rebuilt:
        return _rebuilt(search, candidate, all_rows, teacher, restarts), "Refitted on all rows."
    if teacher is not None:
        all_rows = builder.augment(candidate, all_rows, teacher)
    assert candidate.tao is not None
    tao = replace(candidate.tao, max_sweeps=_LAST_SWEEPS)
    return builder.refine(best.trees[0], tao, all_rows), "Refined by TAO on all rows."


def _smoothed(tree: ObliqueTree, best: CandidateResult, whole: Task, n_jobs: int) -> ObliqueTree:
    """Smooth the leaves of the final tree as those of the candidate."""
    if best.smoothing is None:
        return tree
    rows = replace(whole, train=np.concatenate([whole.train, whole.valid]))
    return Smoothing.of(tree, rows, n_jobs).smoothed(best.smoothing)


def _rebuilt(
    search: TreeSearch,
    candidate: Candidate,
    all_rows: Task,
    teacher: Teacher | None,
    restarts: int,
) -> ObliqueTree:
    """Build a candidate several times, if there is time; return the tree that fits the rows best.

    Oblique trees of different random starts differ much, and no row is left to compare them on.
    """
    builder, rows = search.builder, all_rows.train
    trees = []
    for seed in range(restarts):
        begun = builder.clock.spent
        run = replace(candidate, seed=candidate.seed + seed)
        trees.append(builder.build(run, all_rows, teacher))
        if not builder.clock.has(builder.clock.spent - begun):
            break

    def loss(tree: ObliqueTree) -> float:
        outputs = outputs_of(tree, all_rows.matrix, rows, builder.n_jobs)
        return float(np.average(losses_of(outputs, all_rows, rows), weights=all_rows.weight[rows]))

    return min(trees, key=loss)


def _describe_rows(folds: list[Task], whole: Task, has_finalists: bool) -> str:
    n_train, n_valid = len(folds[0].train), len(folds[0].valid)
    if len(folds) > 1:
        n_rows = n_train + n_valid
        return (
            f"Candidates were scored by {len(folds)}-fold cross-validation on "
            f"{plural(n_rows, 'row', form=',')}."
        )
    n_all = len(whole.train) + len(whole.valid)
    of_all = f" of {n_all:,}" if n_train < len(whole.train) else ""
    text = f"Candidates were trained on {n_train:,}{of_all} rows and scored on {n_valid:,} others"
    if has_finalists:
        return (
            f"{text}; the best few were also trained on "
            f"{plural(len(whole.train), 'row', form=',')}."
        )
    return f"{text}."
