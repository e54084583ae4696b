"""Linear trees and oblique trees with constant leaves compete; the frontier keeps every size.

Linear trees come first: they cost little, and a single linear leaf is a linear model. Oblique trees
follow, as in `hardwood.search.tree_search`, until they are clearly worse. All of them are compared
by their losses on the same held-out rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hardwood.learn.finish import outputs_of, tree_counts
from hardwood.learn.learner import Learned, Run
from hardwood.learn.linear_tree import LinearTree
from hardwood.learn.linear_trees.growth import Growth
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.search.fit_report import FitReport, Trial
from hardwood.search.frontier import (
    Frontier,
    FrontierPoint,
    HeldOut,
    Preference,
    best_of_each_size,
    chosen,
    measured_sizes,
    most_terms,
    pareto,
    standard_error,
    unbeaten_by_size,
)
from hardwood.search.linear_search import LinearSearch, Setting, SizedTree
from hardwood.search.measured import CandidateResult
from hardwood.search.probabilities import Probabilities
from hardwood.search.rounded import with_short_numbers
from hardwood.search.scorer import Scorer
from hardwood.search.tree_search import FINAL_RESTARTS, TreeSearch
from hardwood.text.numbers import format_number, plural

_HOPE = -0.5  # standard errors that an oblique tree must be better on the first fold
_CLEARLY = 2.0  # standard errors that an oblique tree may be worse before the search gives it up
_INTERRUPTED = "Not fitted to all rows: the fit was interrupted."
_HURRIED = " The frontier has other trees of fewer rows, or lacks some: there was no more time."
_CLOSING_SHARE = 0.15  # of the time limit, at least, for sets of levels and the last tree, and
_RESERVED_SHARE = 0.35  # of the time limit, for a linear tree of all rows, at most
_SAFE_SHARE = 0.7  # of the time left, for a tree of more rows than the search had
_WORTH_MORE = 1.5  # times the rows of the first fold
_OBLIQUE_TRIALS = 3  # of oblique trees, reinforced ones among them, before that is asked

Finish = Callable[[TreeSearch, CandidateResult, Task, int], tuple[ObliqueTree, str]]
"""Fits an oblique tree to all rows, the best of several restarts."""


@dataclass(frozen=True)
class ObliqueResult(HeldOut):
    """A candidate of the oblique search; its leaves are constant."""

    result: CandidateResult | None = None


@dataclass
class FrontierSearch:
    """One fit: the linear search, the oblique one, and what is chosen of both.

    Parameters
    ----------
    task, run, scorer
        What is learned, how, and the score that trials report.
    linear, oblique
        The two searches, over the same folds; `oblique` is None for linear trees alone.
    prefer
        What is chosen.
    finish
        Fits an oblique tree to all rows.
    probabilities
        Makes the final probabilities of a tree.
    """

    task: Task
    run: Run
    scorer: Scorer
    linear: LinearSearch
    oblique: TreeSearch | None
    prefer: Preference
    finish: Finish
    probabilities: Probabilities
    max_trials: int | None = None
    interrupted: bool = False
    ending: str = ""

    def fit(self, rows_note: str) -> Learned:
        """Search, choose, and fit to all rows."""
        self._search()
        trees, place = self._chosen()
        growths: dict[LinearTree, Growth] = {}
        tree, finish = self._final(trees[place], growths)
        tree, held_out = self.probabilities.finished(tree, self._trees_by_fold(trees[place]))
        tree = with_short_numbers(tree, self.task)
        frontier = self._frontier(trees, place, tree, growths)
        report = FitReport(
            tuple(self._trials),
            self._words(trees[place]),
            self.scorer.name,
            self.oblique.teacher_note if self.oblique else "",
            rows_note,
            self.ending,
            f"{finish}{_HURRIED if self._is_hurried else ''}\n{self._choice_note(trees)}",
            self.run.clock.spent,
            held_out,
        )
        return Learned(
            tree,
            history=None,
            interrupted=self.interrupted,
            facts={"fit_report": report, "frontier": frontier},
            record={
                "validation_rows": len(self.linear.folds[0].valid),
                "resolved": {"candidate": self._words(trees[place])},
            },
            keeps_unreached=_keeps_unreached(trees[place]),
        )

    # --- the search --------------------------------------------------------------------------

    def _search(self) -> None:
        try:
            self.linear.run_all(self._note_setting, self._search_axis_aligned)
            if self.oblique is not None and not self._is_over():
                self._search_oblique()
        except KeyboardInterrupt:
            if not self.linear.settings:
                raise
            self.interrupted, self.ending = True, "Interrupted by the user."
        self.ending = self.ending or "Every kind of tree was tried."

    def _search_axis_aligned(self) -> bool:
        """Try deep trees with splits on one feature, which cost little; whether to end."""
        if self.oblique is not None and not self._is_over():
            self._meet_linear(self.oblique)
            self.oblique.run(only_axis_aligned=True)
            if self.oblique.interrupted or self.oblique.is_stopped:
                self.interrupted, self.ending = self.oblique.interrupted, self.oblique.ending
            self.oblique.ending = ""
        return self._is_over()

    def _meet_linear(self, oblique: TreeSearch) -> None:
        oblique.trials = self._trials
        oblique.rival = self._best_linear.losses
        limit = self.run.clock.limit
        least = 0.0 if math.isinf(limit) else _CLOSING_SHARE * limit
        oblique.reserve = min(max(self.linear.reserved_seconds, least), _RESERVED_SHARE * limit)

    def _search_oblique(self) -> None:
        assert self.oblique is not None
        self._meet_linear(self.oblique)
        self.oblique.tolerated = _CLEARLY if self.prefer == "accuracy" else _HOPE
        self.oblique.on_trial = (*self.oblique.on_trial, self._gives_up)
        self.oblique.run()
        self.interrupted = self.oblique.interrupted
        self.ending = self.ending or self.oblique.ending

    def _gives_up(self, trial: Trial) -> bool:
        """Whether oblique trees are worse than linear ones: clearly, if the best is wanted.

        They have many more numbers to read, so that otherwise one must be better to be chosen.
        """
        assert self.oblique is not None
        self._n_oblique += "TAO" in trial.candidate or "reinforced" in trial.candidate
        if self._n_oblique < _OBLIQUE_TRIALS:
            return False
        worse = self.oblique.best.losses - self._best_linear.losses
        allowed = _CLEARLY if self.prefer == "accuracy" else 0.0
        error = standard_error(worse, self._weight)
        if float(np.average(worse, weights=self._weight)) > allowed * error:
            self.ending = "Stopped: oblique trees with constant leaves were worse."
            return True
        return False

    @property
    def _best_linear(self) -> SizedTree:
        return min((t for _, t in self.linear.trees), key=lambda t: float(t.losses.mean()))

    def _note_setting(self, setting: Setting) -> bool:
        """Report a setting as a trial; whether the search is to end."""
        best = setting.best
        is_best = all(
            other.best.losses.mean() > best.losses.mean() for other in self.linear.settings[:-1]
        )
        trees = [best.of(growth) for growth in setting.growths]
        train, valid = (
            float(np.mean([self._score(tree, fold, part) for tree, fold in self._by_fold(trees)]))
            for part in ("train", "valid")
        )
        trial = Trial(
            len(self._trials) + 1,
            str(setting),
            float(np.mean([tree.depth for tree in trees])),
            best.n_leaves,
            train,
            valid,
            "best so far" if is_best else "not better",
            setting.seconds,
        )
        self._trials.append(trial)
        if self.run.notify(trial):
            self.ending = "Stopped by a callback."
        return self._is_over()

    def _by_fold(self, trees: Sequence[ObliqueTree]) -> Iterator[tuple[ObliqueTree, Task]]:
        return zip(trees, self.linear.folds, strict=True)

    def _score(self, tree: ObliqueTree, task: Task, part: str) -> float:
        rows = getattr(task, part)
        outputs = outputs_of(tree, task.matrix, rows, self.run.n_jobs)
        return self.scorer.score(outputs, task.target[rows], task.weight[rows])

    def _is_over(self) -> bool:
        if self.max_trials is not None and len(self._trials) >= self.max_trials:
            self.ending = "Stopped at max_trials."
        elif self.run.clock.is_past():
            self.ending = "Stopped at time_limit."
        return bool(self.ending)

    def __post_init__(self) -> None:
        self._trials: list[Trial] = []
        self._n_oblique = 0
        self._is_hurried = False
        folds = self.linear.folds
        self._weight = np.concatenate([fold.weight[fold.valid] for fold in folds]).astype(float)
        self._metric = "squared error / variance" if self.task.kind == "regression" else "log loss"

    # --- the choice --------------------------------------------------------------------------

    def _chosen(self) -> tuple[list[HeldOut], int]:
        """Return what may be chosen, and the place of what is.

        Few sets of levels are tried for the linear tree that is chosen without them.
        """
        trees = self._trees()
        first = trees[self._place(trees)]
        if isinstance(first, SizedTree):
            self.linear.add_level_groups(first)
            trees = self._trees()
        return trees, self._place(trees)

    def _trees(self) -> list[HeldOut]:
        """Return what may be chosen.

        An oblique tree must be clearly better than the best linear one: it is the best of many
        random ones, and fitted to all rows it is another one.
        """
        trees: list[HeldOut] = [tree for _, tree in self.linear.trees]
        if self.oblique is None:
            return trees
        for group in self.oblique.groups.values():
            gained = self._best_linear.losses - group.best.losses
            error = standard_error(gained, self._weight)
            if group.candidate.is_axis_aligned or np.average(gained, weights=self._weight) > error:
                trees.append(_oblique_result(group.best))
        return trees

    def _place(self, trees: list[HeldOut]) -> int:
        """Choose by the loss, or by the user's own scoring among the best tree of each size."""
        if self.scorer.function is None:
            return chosen(trees, self._weight, self.prefer)
        places = [*pareto(trees, self._weight)]
        places += [i for i in range(len(trees)) if isinstance(trees[i], ObliqueResult)]
        if self.prefer == "readable":
            places = [i for i in places if trees[i].is_readable] or places[:1]
        return max(places, key=lambda i: self._score_of(trees[i]))

    def _score_of(self, tree: HeldOut) -> float:
        if isinstance(tree, ObliqueResult):
            assert tree.result is not None
            return tree.result.validation_score
        trees = self._by_fold(self._trees_by_fold(tree))
        return float(np.mean([self._score(each, fold, "valid") for each, fold in trees]))

    def _trees_by_fold(self, tree: HeldOut) -> Sequence[ObliqueTree]:
        """Return the tree that was learned from the training rows of each fold."""
        if isinstance(tree, ObliqueResult):
            assert tree.result is not None
            return tree.result.trees
        assert isinstance(tree, SizedTree)
        setting = next(s for s in self.linear.settings if any(each is tree for each in s.trees))
        return [tree.of(growth) for growth in setting.growths]

    def _learner_of(self, tree: HeldOut) -> LinearTree:
        return next(learner for learner, each in self.linear.trees if each is tree)

    def _words(self, tree: HeldOut) -> str:
        if isinstance(tree, ObliqueResult):
            assert self.oblique is not None
            assert tree.result is not None
            return self.oblique.describe(tree.result.candidate)
        return next(str(s) for s in self.linear.settings if any(each is tree for each in s.trees))

    def _choice_note(self, trees: list[HeldOut]) -> str:
        """Say what the other preferences would have chosen."""
        notes = []
        for preference in ("balanced", "accuracy", "readable"):
            other = trees[chosen(trees, self._weight, preference)]
            loss = float(np.average(other.losses, weights=self._weight))
            notes.append(
                f"{preference}: {plural(other.n_leaves, 'leaf', 'leaves')}, "
                f"{plural(other.n_terms, 'term')}, "
                f"{self._metric} {format_number(loss)}"
            )
        how = f'prefer="{self.prefer}"'
        if self.scorer.function is not None:
            how = f"{self.scorer.name} among the best trees of every size"
        without = "" if self.oblique else "max_leaves leaves out oblique trees. "
        return f"{without}Chosen by {how}. By preference: {'; '.join(notes)}."

    # --- all rows ----------------------------------------------------------------------------

    def _final(self, tree: HeldOut, growths: dict[LinearTree, Growth]) -> tuple[ObliqueTree, str]:
        if isinstance(tree, ObliqueResult):
            assert self.oblique is not None
            assert tree.result is not None
            return self.finish(self.oblique, tree.result, self.task, FINAL_RESTARTS)
        assert isinstance(tree, SizedTree)
        learner = self._learner_of(tree)
        try:
            note, rows = self._rows_in_time(learner)
            if rows is not None:
                growths[learner] = self.linear.grown(learner, rows)
        except KeyboardInterrupt:
            self.interrupted, note = True, _INTERRUPTED
        if learner not in growths:
            growths[learner] = self._first_growth(learner)
        return tree.of(growths[learner]), note

    def _rows_in_time(self, learner: LinearTree) -> tuple[str, Task | None]:
        """Return the rows that a linear tree can be grown from in the time left, and a note.

        None if they are hardly more than those of the first fold.
        """
        if self.interrupted:
            return _INTERRUPTED, None
        all_rows, needed = self._all_rows, self.linear.finish_seconds(learner)
        if self.run.clock.has(needed):
            return "Refitted on all rows.", all_rows
        n_rows = len(all_rows.train)
        n_taken = int(n_rows * _SAFE_SHARE * max(self.run.clock.left, 0.0) / needed)
        if n_taken < _WORTH_MORE * len(self.linear.folds[0].train):
            return "Not fitted to all rows: there was no time left.", None
        sample = np.random.default_rng(self.run.seed).permutation(all_rows.train)[:n_taken]
        note = f"Refitted on {n_taken:,} of {n_rows:,} rows: there was no time for more."
        return note, replace(all_rows, train=np.sort(sample))

    def _first_growth(self, learner: LinearTree) -> Growth:
        return next(s.growths[0] for s in self.linear.settings if s.learner is learner)

    @property
    def _all_rows(self) -> Task:
        train = np.concatenate([self.task.train, self.task.valid])
        return replace(self.task, train=train, valid=self.task.valid[:0])

    def _frontier(
        self,
        trees: list[HeldOut],
        place: int,
        tree: ObliqueTree,
        growths: dict[LinearTree, Growth],
    ) -> Frontier:
        """Return the trees of the frontier, as far as there is time to fit them.

        Those that only the limits of `at` ask for come last.
        """
        sizes = measured_sizes(trees, self._weight)
        found = []
        steps = {*unbeaten_by_size(trees, self._weight), place}
        others = {*pareto(trees, self._weight)} - steps
        for i in (*sorted(steps), *sorted(others, key=lambda i: sizes[i].size)):
            if i in others and self.run.clock.is_past():
                self._is_hurried = True
                break
            each = trees[i]
            own = tree if i == place else self._tree_of(each, growths)
            if own is not None:
                if i != place:
                    own = self.probabilities.of_tree(own, self._trees_by_fold(each))
                    own = with_short_numbers(own, self.task)
                finished = self._counted(own, each)
                point = FrontierPoint(**vars(sizes[i]), is_chosen=i == place, tree=finished)
                if isinstance(each, ObliqueResult):  # measured by trees of several sizes
                    n_leaves, n_terms, size = _shape(finished)
                    point = replace(point, n_leaves=n_leaves, n_terms=n_terms, size=size)
                found.append(point)
        found.sort(key=lambda point: (point.size, point.loss))
        return Frontier(tuple(found), best_of_each_size(sizes), self._metric)

    def _counted(self, tree: ObliqueTree, measured: HeldOut) -> ObliqueTree:
        """Return a tree of the frontier with its counts, simplified, and what it is in words."""
        tree = tree.replace(
            counts=tree_counts(tree, self.task, self.run.n_jobs),
            record={"resolved": {"candidate": self._words(measured)}},
        )
        return tree if _keeps_unreached(measured) else tree.simplify()

    def _tree_of(self, tree: HeldOut, growths: dict[LinearTree, Growth]) -> ObliqueTree | None:
        """Fit a tree to all rows; without time for that, to those of the first fold.

        None for an oblique tree without time, and after an interrupt.
        """
        if self.interrupted:
            return None
        if isinstance(tree, ObliqueResult):
            assert self.oblique is not None
            assert tree.result is not None
            if not self.run.clock.has(self.oblique.finish_seconds):
                return None
            return self.finish(self.oblique, tree.result, self.task, 1)[0]
        assert isinstance(tree, SizedTree)
        learner = self._learner_of(tree)
        if learner not in growths:
            try:
                has_time = self.run.clock.has(self.linear.finish_seconds(learner))
                self._is_hurried |= not has_time
                growths[learner] = (
                    self.linear.grown(learner, self._all_rows)
                    if has_time
                    else self._first_growth(learner)
                )
            except KeyboardInterrupt:
                self.interrupted = True
                return None
        return tree.of(growths[learner])


def _keeps_unreached(tree: HeldOut) -> bool:
    """Whether the tree keeps leaves that no row reaches."""
    result = tree.result if isinstance(tree, ObliqueResult) else None
    return result is not None and result.candidate.has_soft_leaves


def _oblique_result(result: CandidateResult) -> ObliqueResult:
    shape = [_shape(tree) for tree in result.trees]
    return ObliqueResult(
        "smoothed" if result.candidate.is_axis_aligned else "oblique",
        round(np.mean([s[0] for s in shape])),
        max(s[1] for s in shape),
        float(np.mean([s[2] for s in shape])),
        result.losses,
        result,
    )


def _shape(tree: ObliqueTree) -> tuple[int, int, float]:
    """Return the leaves, the most features in a split, and the numbers to read."""
    n_numbers = np.count_nonzero(tree.weights) + len(tree.bias)
    n_values = tree.values.shape[1] - (tree.task == "classification")
    return tree.n_leaves, most_terms(tree), float(n_numbers + tree.n_leaves * n_values)
