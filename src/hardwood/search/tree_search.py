"""The search for one tree: candidates from cheap to dear, judged by rows they did not learn from.

Every candidate is a `Recipe`. Ordinary trees of several depths come first, so that nothing dearer
is chosen without being better; then alternation from them; then trees that are learned as
policies; then what a teacher adds, where the teacher is on a par with the best tree so far.
Restarts of a recipe are a family, and families are compared by their means: the luckiest of many
restarts says little about the next row. The best family is restarted until that helps no more, and
its best tree is kept. Of a large table candidates see a part of the rows; then the best of each
kind is tried again with all of them, since some gain more by rows than others. Where a tree is as
good as its teacher and hardly ever wrong, the search ends at once: the rows that judge could tell
no better one from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hardwood.learn.clock import Clock
from hardwood.learn.finish import outputs_of
from hardwood.learn.tao import TAO, Leaves
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.search.augment import Lesson
from hardwood.search.candidates import CutOff, Kind, Kitchen, Recipe, reinforced_passes
from hardwood.search.distill import Teacher
from hardwood.search.fit_report import Outcome, Trial
from hardwood.search.scorer import Judge
from hardwood.text.numbers import format_number

_PLAIN_DEPTHS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
_LINEAR_DEPTHS = (1, 2, 3, 4, 5)
# The first compares, the others are for what did best with it.
_LESSONS = (Lesson(4, 0.1), Lesson(12, 0.1), Lesson(12, 0.05))
_PENALTIES = ((0.1, 1.0), (0.3, 10.0), (0.03, 0.1))  # l1 and l2; the first is the usual one
_SWEEPS = 10
_ROUNDS = 2  # that families of restarts are compared by
_MOST_COMPARED = 3  # families that have more than one round
# Standard errors that a taught tree may score less: made-up rows keep it from learning by heart,
# which few rows that judge do not show.
_TAUGHT_BONUS = 0.5
_TAUGHT_TIMES = 2.0  # as long as without made-up rows, at least
_PAR = 2.0  # standard errors that a teacher or a promising tree may score less than the best
_FEW_WRONG = 25  # rows that judge: fewer tell no trees apart,
_MANY = 1_000  # where so many judge
_ROWS_PER_LEAF = 4  # at least, in the mean, of trees whose leaves all stay
_MAX_REINFORCED_DEPTH = 12  # every row asks all nodes
_POLISH_SHARE = 0.4  # of the time that finding a tree took, to polish it with all rows
_PATIENCE = 4  # restarts in a row that are not better
_FINALISTS = 3  # kinds of recipes that are tried again with all rows of a large table,
_FINAL_SHARE = 0.5  # for which this part of the time is kept back

OnTrial = Callable[[Trial], Any]
"""Called after every candidate; a true answer ends the search."""


@dataclass(frozen=True)
class Limits:
    """What may be tried.

    Attributes
    ----------
    max_depth
        Of any tree.
    leaves
        "constant" or "linear".
    max_features_per_split
        That a split may weigh; None for all.
    max_trials
        Candidates at most; None for no limit.
    """

    max_depth: int
    leaves: Leaves
    max_features_per_split: int | None
    max_trials: int | None

    def polish(self, penalty: tuple[float, float] = _PENALTIES[0]) -> TAO:
        """Return how candidates are polished, with penalties l1 and l2."""
        l1, l2 = penalty
        return TAO(
            max_depth=32,  # of any start
            l1=l1,
            l2=l2,
            early_stopping=True,
            max_sweeps=_SWEEPS,
            leaves=self.leaves,
            max_features_per_split=self.max_features_per_split,
        )


@dataclass(frozen=True)
class Candidate:
    """A recipe, the tree it gave on each fold, how they were judged and how long they took."""

    recipe: Recipe
    trees: tuple[ObliqueTree, ...]
    train_score: float
    validation_score: float
    seconds: float

    @property
    def size(self) -> float:
        """Leaves, in the mean over folds."""
        return float(np.mean([tree.n_leaves for tree in self.trees]))


@dataclass(frozen=True)
class Family:
    """Candidates that differ in their random choices alone."""

    members: tuple[Candidate, ...]

    @property
    def recipe(self) -> Recipe:
        """What they have in common."""
        return self.members[0].recipe.family

    @property
    def score(self) -> float:
        """The mean score."""
        return float(np.mean([member.validation_score for member in self.members]))

    @property
    def size(self) -> float:
        """The mean number of leaves."""
        return float(np.mean([member.size for member in self.members]))

    @property
    def best(self) -> Candidate:
        """The member with the highest score, the first among equals."""
        return max(self.members, key=lambda member: member.validation_score)


@dataclass
class Search:
    """Candidates of one fit.

    Parameters
    ----------
    task, kitchen, judge, limits
        What is learned, with what, judged by what, within which limits.
    folds
        Tasks with a training and a validation part each.
    teach
        From a task, and perhaps a teacher that knows a part of its rows, to its teacher, or None
        where there was no time; None for no teachers.
    n_finish
        How many times the rows of a candidate its finish has.
    on_trial
        Called after every candidate.
    wide
        A task with more training rows than the only fold, which the same rows judge: the best
        are to be tried again with it. None where the folds have all rows.
    finalists
        What is tried, and restarted; () for all that there is.
    to_beat
        The best score before.
    """

    task: Task
    kitchen: Kitchen
    judge: Judge
    limits: Limits
    folds: Sequence[Task]
    teach: Callable[..., Teacher | None] | None
    n_finish: float = 1.0
    on_trial: Sequence[OnTrial] = ()
    wide: Task | None = None
    finalists: Sequence[Recipe] = ()
    to_beat: float = -math.inf
    trials: list[Trial] = field(default_factory=list)
    families: dict[Recipe, Family] = field(default_factory=dict)
    ending: str = ""
    interrupted: bool = False
    is_stopped: bool = False
    teacher_words: str = ""
    _teachers: list[Teacher | None] = field(default_factory=list)
    _teacher_seconds: float = 0.0
    _teacher_score: float = math.nan
    _seconds_of: dict[Kind, float] = field(default_factory=dict)

    def run(self) -> None:
        """Try candidates until time, patience or ideas are out.

        Raises
        ------
        KeyboardInterrupt
            When Ctrl-C comes before the first candidate is finished.
        """
        was_short = False
        try:
            for recipe in self._recipes():
                if self._is_ended():
                    break
                if self._has_time_for(recipe):
                    self._try(recipe)
                else:
                    was_short = True
        except KeyboardInterrupt:
            if not self.families:
                raise
            self.interrupted, self.ending = True, "Interrupted by the user."
        last = "Ended by time_limit." if was_short else "Nothing was left to try."
        self.ending = self.ending or last

    def widened(self) -> Search | None:
        """Return a search that tries the best of each kind again, with more rows.

        None where there is no time for any of them, or no trial left.
        """
        assert self.wide is not None
        is_last = self.limits.max_trials is not None and len(self.trials) >= self.limits.max_trials
        finalists = [] if is_last else self._finalists()
        if not finalists:
            return None
        begun, known = self._clock.spent, self._teachers
        if any(recipe.lesson is not None for recipe in finalists):
            assert self.teach is not None
            least = min(self._wide_seconds(recipe.kind) for recipe in finalists)
            teacher = self.teach(self.wide, is_over=lambda: not self._clock.has(least))
            known = [teacher or self._teachers[0]]
        return replace(
            self,
            folds=[self.wide],
            n_finish=self.n_finish * len(self.folds[0].train) / len(self.wide.train),
            wide=None,
            finalists=finalists,
            to_beat=self.best.validation_score,
            families={},
            ending="",
            _teachers=known,
            _teacher_seconds=self._clock.spent - begun,
            _seconds_of={kind: self._wide_seconds(kind) for kind in self._seconds_of},
        )

    def _finalists(self) -> list[Recipe]:
        """Return the best of the best kinds that there is time for, the fastest first.

        Without a time limit the best is first: no clock may decide what is tried.
        """
        kinds: dict[Kind, Recipe] = {}
        for family in self._ranked:
            kinds.setdefault(family.recipe.kind, family.recipe)
        best = list(kinds)[:_FINALISTS]
        if math.isinf(self._clock.limit):
            return [kinds[kind] for kind in best]

        def seconds(kind: Kind) -> float:
            return (
                self._wide_seconds(kind) + self._wide_times(kind) * self._teacher_seconds * kind[2]
            )

        return [kinds[kind] for kind in sorted(best, key=seconds) if self._clock.has(seconds(kind))]

    def _wide_seconds(self, kind: Kind) -> float:
        """Return what a kind of recipe will probably take with more rows, once it has a teacher."""
        return self._wide_times(kind) * self._seconds_of[kind]

    def _wide_times(self, kind: Kind) -> float:
        """Return how many times as much there is to do with more rows."""
        assert self.wide is not None
        start, is_polished, is_taught = kind
        n, n_wide = (
            len(task.train) + is_taught * self.kitchen.n_made_up(_LESSONS[0], task)
            for task in (self.folds[0], self.wide)
        )
        if start != "reinforced" or is_polished:
            return n_wide / n
        n_passes, n_wide_passes = (reinforced_passes(each, is_taught) for each in (n, n_wide))
        return n_wide * n_wide_passes / (n * n_passes)

    @property
    def best(self) -> Candidate:
        """The best tree of the best family."""
        return self._ranked[0].best

    @property
    def _ranked(self) -> list[Family]:
        """All families, the best first; of equal ones the ordinary tree, then the smaller."""
        bonus = _TAUGHT_BONUS * self._error(max(each.score for each in self.families.values()))

        def rank(family: Family) -> tuple[float, bool, float]:
            score = family.score + (bonus if family.recipe.lesson is not None else 0.0)
            return (score, family.recipe.is_plain, -family.size)

        return sorted(self.families.values(), key=rank, reverse=True)

    def _error(self, score: float) -> float:
        """Return the standard error that the number of rows that judge gives a score."""
        if self.judge.scorer is not None or not 0 <= score <= 1:
            return 0.0
        if self.judge.task == "regression":
            return (1 - score) * math.sqrt(2 / self._n_judging)
        return math.sqrt(score * (1 - score) / self._n_judging)

    def _is_ended(self) -> bool:
        most = self.limits.max_trials
        # One trial is kept back for the best with more rows.
        if most is not None and len(self.trials) >= max(1, most - (self.wide is not None)):
            self.ending = self.ending or "Ended by max_trials."
        if not self.families or self.ending:
            return bool(self.ending)
        if not self._clock.has(self._kept_back):
            self.ending = "Ended by time_limit."
        elif self._is_hardly_ever_wrong:
            self.ending = "Ended where the best tree is hardly ever wrong."
        return bool(self.ending)

    @property
    def _is_hardly_ever_wrong(self) -> bool:
        """Whether the rows that judge could show nothing better, once strong recipes were tried."""
        if self.judge.task != "classification" or self.judge.scorer or self._n_judging < _MANY:
            return False
        best = self.best
        if best.recipe.lesson is not None and best.validation_score < self._teacher_score:
            return False
        is_strong = any(each.lesson or each.start == "reinforced" for each in self.families)
        return is_strong and (1 - best.validation_score) * self._n_judging < _FEW_WRONG

    @property
    def _n_judging(self) -> int:
        return sum(len(task.valid) for task in self.folds)

    @property
    def _clock(self) -> Clock:
        return self.kitchen.clock

    @property
    def finish_seconds(self) -> float:
        """What the finish of the best tree will take, going by how long it took to find."""
        best = self.best
        seconds = best.seconds + (self._teacher_seconds if best.recipe.lesson else 0.0)
        share = 1.0 if self.is_made_again(best.recipe) else _POLISH_SHARE
        return share * seconds * self.n_finish / len(self.folds)

    @property
    def _kept_back(self) -> float:
        """Seconds for what comes after the search: trials with more rows, or the finish."""
        if self.wide is not None:
            return _FINAL_SHARE * self._clock.limit
        return self.finish_seconds

    def is_made_again(self, recipe: Recipe) -> bool:
        """Whether all rows make a new tree in the end; else they polish the one that was found."""
        return len(self.folds) > 1 or recipe.polish is None or not len(self.folds[0].valid)

    def _has_time_for(self, recipe: Recipe) -> bool:
        """Whether a recipe may be finished, and its finish, going by the last one of its kind.

        The first of its kind takes as long as what differs from it in the start alone, or, if it is
        the first that is taught, twice as long as without a teacher.
        """
        start, is_polished, is_taught = recipe.kind
        known = self._seconds_of
        alike = [known[kind] for kind in known if kind[1:] == (is_polished, is_taught)]
        untaught = _TAUGHT_TIMES * known.get((start, is_polished, False), 0.0)
        seconds = known.get(recipe.kind, max(alike, default=untaught))
        return not self.families or self._clock.has(seconds + self._kept_back)

    # What is tried

    def _recipes(self) -> Iterator[Recipe]:
        yield from self.finalists or self._all_recipes()
        if self.families and len(self.folds) == 1 and self.wide is None:
            yield from self._restarts()

    def _all_recipes(self) -> Iterator[Recipe]:
        for depth in sorted({min(depth, self.limits.max_depth) for depth in _PLAIN_DEPTHS}):
            yield Recipe("axis", depth)
        yield from self._polished_axis()
        yield from self._reinforced(None)
        lesson, *further = _LESSONS if self._has_able_teacher() else (None,)
        if lesson is not None:
            yield from self._reinforced(lesson)
            yield from self._taught_axis(lesson)
            yield from self._further(further)
        yield from self._oblique(lesson)
        if self.wide is None:
            yield from self._rounds()

    def _polished_axis(self) -> Iterator[Recipe]:
        """TAO from ordinary trees: of the best depth, then of the largest.

        Few rows do not always fill a deep tree: then of half the depth, too. Linear leaves answer
        more, so that small trees may be enough: all depths are tried.
        """
        most = self.limits.max_depth
        depths = {self.best.recipe.max_depth or most}
        if len(self.folds) > 1:
            depths.add(max(1, most // 2))
        if self.limits.leaves == "linear":
            depths |= {depth for depth in _LINEAR_DEPTHS if depth < most}
        for depth in sorted(depths - {most}):
            yield Recipe("axis", depth, self.limits.polish())
        for penalty in _PENALTIES:
            yield Recipe("axis", most, self.limits.polish(penalty))

    def _taught_axis(self, lesson: Lesson) -> Iterator[Recipe]:
        """TAO from ordinary trees with made-up rows: each penalty, if one is promising."""
        for depth in self._filled_depths:
            for penalty in self._penalties:
                yield Recipe("axis", depth, self.limits.polish(penalty), lesson)
                if not self._is_promising(lesson):
                    break

    def _further(self, lessons: Sequence[Lesson]) -> Iterator[Recipe]:
        """Other lessons for the best recipe, if it was taught, where they differ from its own."""
        best = self._ranked[0].recipe
        if best.lesson is None:
            return
        n_rows = self.kitchen.n_made_up(best.lesson, self.folds[0])
        for lesson in lessons:
            is_larger = self.kitchen.n_made_up(lesson, self.folds[0]) > n_rows
            if is_larger or lesson.noise != best.lesson.noise:
                yield replace(best, lesson=lesson)

    def _oblique(self, lesson: Lesson | None) -> Iterator[Recipe]:
        """TAO from oblique starts, with the best penalty, if other starts are promising."""
        for depth in self._filled_depths:
            if self._is_promising(lesson):
                polish = self._ranked[0].recipe.polish or self.limits.polish()
                yield Recipe("co2", depth, polish, lesson)

    def _is_promising(self, lesson: Lesson | None) -> bool:
        """Whether alternation from ordinary trees is on a par with the best."""
        kind = Recipe("axis", 1, self.limits.polish(), lesson).kind
        alike = [each.score for each in self.families.values() if each.recipe.kind == kind]
        best = self._ranked[0].score
        return not alike or max(alike) >= best - _PAR * self._error(best)

    @property
    def _filled_depths(self) -> list[int]:
        """Few rows, or rows with linear leaves, need not fill a deep tree: smaller ones too."""
        depths = {self.limits.max_depth}
        if len(self.folds) > 1 or self.limits.leaves == "linear":
            depths.add(self.best.recipe.max_depth or self.limits.max_depth)
        return sorted(depths)

    def _reinforced(self, lesson: Lesson | None) -> Iterator[Recipe]:
        """Trees that are learned as policies, their splits and leaves all at once; then polished.

        Their splits weigh all columns, and their leaves are constant. All leaves stay, so there
        are fewer where rows are few.
        """
        if self.limits.leaves == "linear" or self.limits.max_features_per_split is not None:
            return
        n_leaves = max(2, len(self.folds[0].train) // _ROWS_PER_LEAF)
        depth = min(self.limits.max_depth, int(math.log2(n_leaves)), _MAX_REINFORCED_DEPTH)
        yield Recipe("reinforced", depth, None, lesson)
        yield Recipe("reinforced", depth, self.limits.polish(self._penalties[0]), lesson)

    @property
    def _penalties(self) -> list[tuple[float, float]]:
        """Penalties, the one that did best without a teacher first."""

        def score(penalty: tuple[float, float]) -> float:
            recipe = Recipe("axis", self.limits.max_depth, self.limits.polish(penalty))
            return self.families[recipe].score if recipe in self.families else -math.inf

        return sorted(_PENALTIES, key=score, reverse=True)

    def _rounds(self) -> Iterator[Recipe]:
        """Try the best few families again, so that luck does not decide between them."""
        oblique = [each for each in self._ranked if not each.recipe.is_plain]
        for seed in range(1, _ROUNDS):
            for family in oblique[:_MOST_COMPARED]:
                yield replace(family.recipe, seed=seed)

    def _restarts(self) -> Iterator[Recipe]:
        """Restart the best family until that has not helped for a while."""
        in_vain = 0
        while in_vain < _PATIENCE:
            family = self._ranked[0]
            if family.recipe.is_plain:
                return
            before, recipe = self.best, replace(family.recipe, seed=len(family.members))
            if not self._has_time_for(recipe):
                self.ending = "Ended by time_limit."
                return
            yield recipe
            in_vain = 0 if self.best is not before else in_vain + 1
        self.ending = f"Ended after {_PATIENCE} restarts in a row that were not better."

    # How it is tried

    def _try(self, recipe: Recipe) -> None:
        begun = self._clock.spent
        outcome: Outcome = "not better"
        message, candidate = "", None
        try:
            candidate = self._candidate(recipe)
        except CutOff:
            outcome = "cut off"
        except ValueError as error:
            if not self.families and not self.finalists:
                raise  # the table is at fault
            outcome, message = "failed", str(error)
        if candidate is not None:
            known = self.families.get(recipe.family, Family(()))
            self.families[recipe.family] = Family((*known.members, candidate))
            is_best = self.best is candidate and candidate.validation_score >= self.to_beat
            outcome = "best so far" if is_best else "not better"
        seconds = self._clock.spent - begun
        self._seconds_of[recipe.kind] = seconds
        self._note(recipe, candidate, outcome, message, seconds)

    def _candidate(self, recipe: Recipe) -> Candidate:
        trees, scores = [], []
        begun = self._clock.spent
        for i, task in enumerate(self.folds):
            teacher = self._teachers[i] if recipe.lesson is not None else None
            tree = self.kitchen.made(recipe, task, teacher)
            trees.append(tree)
            scores.append([self.score(tree, task, part) for part in ("train", "valid")])
            if self.families and len(trees) < len(self.folds) and self._clock.is_past():
                raise CutOff
        train, valid = np.mean(scores, axis=0).tolist()
        return Candidate(recipe, tuple(trees), train, valid, self._clock.spent - begun)

    def score(self, tree: ObliqueTree, task: Task, part: str) -> float:
        """Judge a tree by the training or the validation rows of a task."""
        rows = getattr(task, part)
        outputs = outputs_of(tree, task.matrix, rows, self.kitchen.n_jobs)
        return self.judge.score(outputs, self.task.target[rows], task.weight[rows])

    def words(self, recipe: Recipe) -> str:
        """Return a recipe in words; with the number of rows, if it was tried with fewer before."""
        return str(recipe) + (f", {len(self.folds[0].train):,} rows" if self.finalists else "")

    def _note(
        self,
        recipe: Recipe,
        candidate: Candidate | None,
        outcome: Outcome,
        message: str,
        seconds: float,
    ) -> None:
        trees = candidate.trees if candidate else ()
        trial = Trial(
            len(self.trials) + 1,
            self.words(recipe),
            float(np.mean([tree.depth for tree in trees])) if trees else math.nan,
            candidate.size if candidate else math.nan,
            candidate.train_score if candidate else math.nan,
            candidate.validation_score if candidate else math.nan,
            outcome,
            seconds,
            message,
        )
        self.trials.append(trial)
        answers = [bool(callback(trial)) for callback in self.on_trial]  # all hear of every trial
        if any(answers):
            self.is_stopped, self.ending = True, "Ended by a callback."

    # The teacher

    def _has_able_teacher(self) -> bool:
        """Fit the teachers of all folds; whether they are on a par with the best tree so far."""
        if self.teach is None or self._is_ended():
            return False
        scores = []
        begun = self._clock.spent
        for task in self.folds:
            # Without a teacher there is a tree all the same: its finish comes first.
            teacher = self.teach(task, is_over=lambda: not self._clock.has(self._kept_back))
            self._teachers.append(teacher)
            if teacher is None:
                self.teacher_words = "No teacher: there was no time, or the table is sparse."
                return False
            answers = teacher.answers(task, task.matrix[task.valid])
            answers = answers * task.target_scale + task.target_center
            truth = self.task.target[task.valid]
            scores.append(self.judge.score(answers, truth, task.weight[task.valid]))
        assert teacher is not None
        self._teacher_seconds = self._clock.spent - begun
        score, best = float(np.mean(scores)), self.best.validation_score
        is_able = score >= best - _PAR * self._error(best)
        self._teacher_score = score
        self.teacher_words = (
            f"Teacher: {teacher.name}, {self.judge.name} {format_number(score)}"
            f"{'' if is_able else ': worse than the best tree, and not asked'}."
        )
        return is_able

    def teacher_of(self, best: Candidate, everything: Task) -> Teacher | None:
        """Return who teaches the best recipe with all rows; None where nobody does.

        Where there is no time to learn from all rows, that is who knows a part of them.
        """
        if best.recipe.lesson is None:
            return None
        assert self.teach is not None
        known, is_polished = self._teachers[0], len(self.folds) == 1
        return self.teach(everything, known=known, goes_on=is_polished) or known
