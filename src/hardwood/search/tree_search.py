"""The search for one tree: candidates from cheap to expensive, scored on held-out rows.

Axis-aligned trees of several depths come first, so that a more expensive tree is chosen only if it
is better. Then TAO refines them; then come reinforced trees; then distilled trees, if the teacher
is about as good as the best tree so far. The restarts of a candidate form a group, and groups are
compared by their average score: the best score of many restarts is mostly luck. The best group is
restarted until that brings no improvement, and its best tree is kept.

Of a large table, candidates see a sample of the rows. Then the best candidate of each kind, a
finalist, is tried again on all training rows, since some kinds gain more from rows than others. The
search stops early when a tree is as good as its teacher and makes so few validation errors that
the validation rows cannot show whether another tree is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hardwood.clock import Clock
from hardwood.learn.finish import outputs_of
from hardwood.learn.tao import TAO, Leaves
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.search.augment import Augmentation
from hardwood.search.candidates import (
    Candidate,
    CandidateBuilder,
    Kind,
    OutOfTime,
    reinforced_epochs,
)
from hardwood.search.distill import Teacher
from hardwood.search.fit_report import Outcome, Trial
from hardwood.search.measured import CandidateResult, measured
from hardwood.search.scorer import Scorer
from hardwood.text.numbers import format_number, plural

_AXIS_ALIGNED_DEPTHS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32)
_LARGE_DEPTHS = (4, 6, 8, 10, 12, 16, 24, 32)
_DEPTH_PATIENCE = 3
_LINEAR_DEPTHS = (1, 2, 3, 4, 5)
# The first is used to compare candidates, the others only for the best candidate.
_AUGMENTATIONS = (Augmentation(4, 0.1), Augmentation(12, 0.1), Augmentation(12, 0.05))
_PENALTIES = ((0.1, 1.0), (0.3, 10.0), (0.03, 0.1))  # l1 and l2; the first is the default
_SWEEPS = 10
_ROUNDS = 2  # of runs, before groups are compared
_MOST_COMPARED = 3  # groups that get more than one round
# Standard errors by which a distilled tree may score less and still win: augmented rows reduce
# overfitting, which a small validation part does not always show.
_DISTILLATION_BONUS = 0.5
_DISTILLATION_TIMES = 2.0  # first estimate: how much longer a candidate takes with augmented rows
_TOLERANCE = 2.0  # standard errors below the best score: still promising, for a teacher or a kind
_CLEARLY = 2.0  # standard errors below the best on the first fold: the other folds are left out
_FEW_ERRORS = 25  # on validation rows: too few to compare trees by,
_MANY_ROWS = 1_000  # if there are at least this many validation rows
_ROWS_PER_LEAF = 4  # at least, on average, for trees that keep all their leaves
_MAX_REINFORCED_DEPTH = 12  # every row visits every node during training
_REFINE_FRACTION = 0.4  # of the time to build a tree: estimate for refining it on all rows
_PATIENCE = 4  # restarts in a row without improvement
FINAL_RESTARTS = 4  # of an oblique tree that is built again from all rows
_FINALISTS = 3  # kinds of candidates that are tried again on all rows of a large table
_FINAL_FRACTION = 0.5  # of the time limit is reserved for that


class ClearlyWorse(Exception):
    """A candidate is clearly worse on the first fold."""


OnTrial = Callable[[Trial], Any]
"""Called after every candidate; returning True stops the search."""


@dataclass(frozen=True)
class Limits:
    """Limits of the search.

    Attributes
    ----------
    max_depth
        Maximum depth of an oblique tree.
    axis_depth
        Maximum depth of an axis-aligned tree.
    leaves
        "constant" or "linear".
    max_features_per_split
        Maximum number of features per split; None for no limit.
    max_trials
        Maximum number of candidates; None for no limit.
    """

    max_depth: int
    axis_depth: int
    leaves: Leaves
    max_features_per_split: int | None
    max_trials: int | None

    def tao(self, penalty: tuple[float, float] = _PENALTIES[0]) -> TAO:
        """Return the TAO that refines candidates, with penalties l1 and l2."""
        l1, l2 = penalty
        return TAO(
            max_depth=32,  # enough for every start tree
            l1=l1,
            l2=l2,
            early_stopping=True,
            max_sweeps=_SWEEPS,
            leaves=self.leaves,
            max_features_per_split=self.max_features_per_split,
        )


@dataclass(frozen=True)
class Group:
    """The runs of one candidate, which differ only in their random choices."""

    members: tuple[CandidateResult, ...]

    @property
    def candidate(self) -> Candidate:
        """The candidate, as it was in the first run."""
        return self.members[0].candidate.first_run

    @property
    def score(self) -> float:
        """The average validation score."""
        return float(np.mean([member.validation_score for member in self.members]))

    @property
    def n_leaves(self) -> float:
        """The average number of leaves."""
        return float(np.mean([member.n_leaves for member in self.members]))

    @property
    def best(self) -> CandidateResult:
        """The run with the highest score; the first one of several."""
        return max(self.members, key=lambda member: member.validation_score)


@dataclass
class TreeSearch:
    """The search for the best tree of one fit.

    Parameters
    ----------
    task
        The whole task.
    builder, scorer, limits
        What builds candidates, what scores them, and the limits of the search.
    folds
        Tasks with a training and a validation part each.
    make_teacher
        Makes a teacher for a task, perhaps from an earlier teacher that has seen some of its rows;
        returns None if there is not enough time. None for no distillation.
    finish_ratio
        Number of rows of the final fit, relative to the training rows of a candidate.
    on_trial
        Called after every candidate.
    full_task
        For a large table: a task with all training rows and the validation rows of the only fold;
        finalists are tried again on it. None if the folds have all rows.
    finalists
        The candidates to try, and then restart; () for all candidates.
    score_to_beat
        The best score of an earlier search.
    rival
        Losses of a tree of another search on the held-out rows of the folds. With several folds, an
        oblique tree that is worse on the first one is left out.
    tolerated
        By how many standard errors it may be worse.
    reserve
        Seconds that the caller needs after the search.
    """

    task: Task
    builder: CandidateBuilder
    scorer: Scorer
    limits: Limits
    folds: Sequence[Task]
    make_teacher: Callable[..., Teacher | None] | None
    finish_ratio: float = 1.0
    on_trial: Sequence[OnTrial] = ()
    full_task: Task | None = None
    finalists: Sequence[Candidate] = ()
    score_to_beat: float = -math.inf
    rival: np.ndarray | None = None
    tolerated: float = _CLEARLY
    reserve: float = 0.0
    trials: list[Trial] = field(default_factory=list)
    groups: dict[Candidate, Group] = field(default_factory=dict)
    ending: str = ""
    interrupted: bool = False
    is_stopped: bool = False
    teacher_note: str = ""
    _teachers: list[Teacher | None] = field(default_factory=list)
    _teacher_seconds: float = 0.0
    _teacher_score: float = math.nan
    _seconds_of: dict[Kind, float] = field(default_factory=dict)
    _dropped: set[Kind] = field(default_factory=set)

    def run(self, *, only_axis_aligned: bool = False) -> None:
        """Try candidates until there is no time, no trial or no candidate left.

        After a run of the axis-aligned candidates another one tries the others.

        Raises
        ------
        KeyboardInterrupt
            If Ctrl-C comes before the first candidate is finished.
        """
        was_skipped = False
        try:
            for candidate in self._axis_aligned() if only_axis_aligned else self._candidates():
                if self._is_ended():
                    break
                if self._has_time_for(candidate):
                    self._try(candidate)
                else:
                    was_skipped = True
        except KeyboardInterrupt:
            if not self.groups:
                raise
            self.interrupted, self.ending = True, "Interrupted by the user."
        last = "Stopped at time_limit." if was_skipped else "All candidates were tried."
        self.ending = self.ending or last

    def on_all_rows(self) -> TreeSearch | None:
        """Return a search that tries the best candidate of each kind again, on all training rows.

        None if there is no time for any of them, or no trial left.
        """
        assert self.full_task is not None
        most = self.limits.max_trials
        is_last = most is not None and len(self.trials) >= most
        finalists = [] if is_last else self._finalists()
        if not finalists:
            return None
        begun, teachers = self._clock.spent, self._teachers
        if any(candidate.augmentation is not None for candidate in finalists):
            assert self.make_teacher is not None
            least = min(self._full_seconds(candidate.kind) for candidate in finalists)
            teacher = self.make_teacher(self.full_task, is_over=lambda: not self._clock.has(least))
            teachers = [teacher or self._teachers[0]]
        return replace(
            self,
            folds=[self.full_task],
            finish_ratio=self.finish_ratio * len(self.folds[0].train) / len(self.full_task.train),
            full_task=None,
            finalists=finalists,
            score_to_beat=self.best.validation_score,
            groups={},
            ending="",
            _teachers=teachers,
            _teacher_seconds=self._clock.spent - begun,
            _seconds_of={kind: self._full_seconds(kind) for kind in self._seconds_of},
        )

    def _finalists(self) -> list[Candidate]:
        """Return the best candidates of the best kinds that there is time for, the fastest first.

        Without a time limit the best comes first, so that the result does not depend on a clock.
        """
        kinds: dict[Kind, Candidate] = {}
        for group in self._ranked:
            kinds.setdefault(group.candidate.kind, group.candidate)
        best = list(kinds)[:_FINALISTS]
        if math.isinf(self._clock.limit):
            return [kinds[kind] for kind in best]

        def seconds(kind: Kind) -> float:
            teacher_seconds = self._full_times(kind) * self._teacher_seconds * kind[2]
            return self._full_seconds(kind) + teacher_seconds

        return [kinds[kind] for kind in sorted(best, key=seconds) if self._clock.has(seconds(kind))]

    def _full_seconds(self, kind: Kind) -> float:
        """Estimate the time for a kind of candidate on all rows, without that of its teacher."""
        return self._full_times(kind) * self._seconds_of[kind]

    def _full_times(self, kind: Kind) -> float:
        """Estimate how many times longer a kind of candidate takes on all rows."""
        assert self.full_task is not None
        start, is_refined, is_distilled = kind
        n, n_full = (
            len(task.train) + is_distilled * self.builder.n_augmented(_AUGMENTATIONS[0], task)
            for task in (self.folds[0], self.full_task)
        )
        if start != "reinforced" or is_refined:
            return n_full / n
        n_epochs, n_full_epochs = (reinforced_epochs(each, is_distilled) for each in (n, n_full))
        return n_full * n_full_epochs / (n * n_epochs)

    @property
    def best(self) -> CandidateResult:
        """The best run of the best group."""
        return self._ranked[0].best

    @property
    def _ranked(self) -> list[Group]:
        """All groups, the best first; ties go to the axis-aligned tree, then to fewer leaves."""
        bonus = _DISTILLATION_BONUS * self._standard_error(self._highest.best)

        def rank(group: Group) -> tuple[float, bool, float]:
            score = group.score + (bonus if group.candidate.augmentation is not None else 0.0)
            return (score, group.candidate.is_axis_aligned, -group.n_leaves)

        return sorted(self.groups.values(), key=rank, reverse=True)

    @property
    def _highest(self) -> Group:
        return max(self.groups.values(), key=lambda group: group.score)

    def _standard_error(self, result: CandidateResult) -> float:
        """Estimate the standard error of a validation score; 0 for custom scorers."""
        mean = float(result.losses.mean())
        if self.scorer.function is not None or mean <= 0 or result.validation_score >= 1:
            return 0.0
        # The score is 1 - loss / (loss of a constant).
        per_loss = (1 - result.validation_score) / mean
        return per_loss * float(result.losses.std()) / math.sqrt(len(result.losses))

    def _is_ended(self) -> bool:
        most = self.limits.max_trials
        # One trial is reserved for the best candidate on all rows.
        if most is not None and len(self.trials) >= max(1, most - (self.full_task is not None)):
            self.ending = self.ending or "Stopped at max_trials."
        if not self.groups or self.ending:
            return bool(self.ending)
        if not self._clock.has(self._reserved_seconds):
            self.ending = "Stopped at time_limit."
        elif self._has_few_errors:
            self.ending = (
                f"Stopped early: the best tree makes fewer than {_FEW_ERRORS} errors on "
                f"{plural(self._n_valid, 'validation row', form=',')}."
            )
        return bool(self.ending)

    @property
    def _has_few_errors(self) -> bool:
        """Whether validation could not show a better tree, after a strong candidate was tried."""
        if self.scorer.task != "classification" or self.scorer.function:
            return False
        if self._n_valid < _MANY_ROWS:
            return False
        best = self.best
        is_distilled = best.candidate.augmentation is not None
        if is_distilled and best.validation_score < self._teacher_score:
            return False
        is_strong = any(each.augmentation or each.start == "reinforced" for each in self.groups)
        return is_strong and best.n_wrong < _FEW_ERRORS

    @property
    def _n_valid(self) -> int:
        return sum(len(task.valid) for task in self.folds)

    @property
    def _clock(self) -> Clock:
        return self.builder.clock

    @property
    def finish_seconds(self) -> float:
        """Estimate the time to fit the best candidate to all rows."""
        best = self.best
        fraction = 1.0 if self.is_rebuilt(best.candidate) else _REFINE_FRACTION
        seconds = best.seconds / len(self.folds)
        if best.candidate.augmentation:
            seconds += self._teacher_seconds / max(len(self._teachers), 1)
        return fraction * seconds * self.finish_ratio

    @property
    def _reserved_seconds(self) -> float:
        """Time reserved for what follows the search: the finalists, or the final fit."""
        if self.full_task is not None:
            return _FINAL_FRACTION * self._clock.limit
        return self.finish_seconds + self.reserve

    def is_rebuilt(self, candidate: Candidate) -> bool:
        """Whether the final fit builds a new tree; otherwise TAO refines the best one."""
        return len(self.folds) > 1 or candidate.tao is None or not len(self.folds[0].valid)

    def _has_time_for(self, candidate: Candidate) -> bool:
        """Whether there is time for a candidate and the final fit.

        The estimate is the time of the last candidate of its kind. For the first of its kind, it is
        the time of a kind with another start; for the first distilled one, twice the time without
        distillation.
        """
        start, is_refined, is_distilled = candidate.kind
        known = self._seconds_of
        similar = [known[kind] for kind in known if kind[1:] == (is_refined, is_distilled)]
        undistilled = _DISTILLATION_TIMES * known.get((start, is_refined, False), 0.0)
        seconds = known.get(candidate.kind, max(similar, default=undistilled))
        return not self.groups or self._clock.has(seconds + self._reserved_seconds)

    # The candidates, in order

    def _candidates(self) -> Iterator[Candidate]:
        yield from self.finalists or self._all_candidates()
        if self.groups and len(self.folds) == 1 and self.full_task is None:
            yield from self._restarts()

    def _all_candidates(self) -> Iterator[Candidate]:
        if not self.groups:
            yield from self._axis_aligned()
        # The kinds differ most from each other: beside a rival, each has a turn before the search
        # is given up.
        if self.rival is None:
            yield from self._refined()
            yield from self._reinforced(None)
        else:
            yield from self._reinforced(None)
            yield from self._refined()
        augmentation, *further = _AUGMENTATIONS if self._fit_teachers() else (None,)
        if augmentation is not None:
            yield from self._reinforced(augmentation)
            yield from self._distilled(augmentation)
            yield from self._further(further)
        yield from self._oblique(augmentation)
        yield from self._sparse()
        if self.full_task is None:
            yield from self._rounds()

    def _axis_aligned(self) -> Iterator[Candidate]:
        """Axis-aligned trees, deeper and deeper, until several depths in a row bring nothing."""
        n_without = 0
        # The search that has a rival has measured small trees already.
        depths = _AXIS_ALIGNED_DEPTHS if self.rival is None else _LARGE_DEPTHS
        for depth in sorted({min(depth, self.limits.axis_depth) for depth in depths}):
            before = self.best if self.groups else None
            yield Candidate("axis", depth)
            n_without = 0 if self.groups and self.best is not before else n_without + 1
            if n_without == _DEPTH_PATIENCE:
                return

    def _refined(self) -> Iterator[Candidate]:
        """TAO from axis-aligned trees: of the best depth, then of the maximum depth.

        Few rows may not fill a deep tree: then also from half the maximum depth. With linear leaves
        a small tree may be enough: then from all small depths.
        """
        most = self.limits.max_depth
        depths = {min(self.best.candidate.max_depth or most, most)}
        if len(self.folds) > 1:
            depths.add(max(1, most // 2))
        if self.limits.leaves == "linear":
            depths |= {depth for depth in _LINEAR_DEPTHS if depth < most}
        for depth in sorted(depths - {most}):
            yield Candidate("axis", depth, self.limits.tao())
        for penalty in _PENALTIES:
            yield Candidate("axis", most, self.limits.tao(penalty))

    def _distilled(self, augmentation: Augmentation) -> Iterator[Candidate]:
        """TAO from axis-aligned trees with augmented rows; more penalties while it is promising."""
        for depth in self._filled_depths:
            for penalty in self._penalties:
                yield Candidate("axis", depth, self.limits.tao(penalty), augmentation)
                if not self._is_promising(augmentation):
                    break

    def _further(self, augmentations: Sequence[Augmentation]) -> Iterator[Candidate]:
        """Other augmentations for the best candidate, if it is distilled."""
        best = self._ranked[0].candidate
        if best.augmentation is None:
            return
        n_rows = self.builder.n_augmented(best.augmentation, self.folds[0])
        for augmentation in augmentations:
            is_larger = self.builder.n_augmented(augmentation, self.folds[0]) > n_rows
            if is_larger or augmentation.noise != best.augmentation.noise:
                yield replace(best, augmentation=augmentation)

    def _oblique(self, augmentation: Augmentation | None) -> Iterator[Candidate]:
        """TAO from oblique trees with the best penalty, if TAO from axis-aligned is promising."""
        for depth in self._filled_depths:
            if self._is_promising(augmentation):
                tao = self._ranked[0].candidate.tao or self.limits.tao()
                yield Candidate("co2", depth, tao, augmentation)

    def _sparse(self) -> Iterator[Candidate]:
        """TAO with fewer and fewer features per split, while they are about as good as all."""
        refined = [each for each in self._ranked if each.candidate.tao is not None]
        if self.limits.max_features_per_split is not None or not refined:
            return
        best, n_features = refined[0], len(self.task.schema.features) // 2
        tao = best.candidate.tao
        assert tao is not None
        lowest = best.score - _TOLERANCE * self._standard_error(best.best)
        while n_features >= 1:
            few = replace(tao, max_features_per_split=n_features)
            candidate = replace(best.candidate, tao=few)
            yield candidate
            if candidate not in self.groups or self.groups[candidate].score < lowest:
                return
            n_features //= 2

    def _is_promising(self, augmentation: Augmentation | None) -> bool:
        """Whether TAO from axis-aligned trees is within the tolerance of the best score."""
        kind = Candidate("axis", 1, self.limits.tao(), augmentation).kind
        scores = [each.score for each in self.groups.values() if each.candidate.kind == kind]
        if not scores:
            return kind not in self._dropped
        best = self._ranked[0]
        return max(scores) >= best.score - _TOLERANCE * self._standard_error(best.best)

    @property
    def _filled_depths(self) -> list[int]:
        """Depths to start from; a smaller one, too, where few rows may not fill a deep tree."""
        depths = {self.limits.max_depth}
        if len(self.folds) > 1 or self.limits.leaves == "linear":
            best = self.best.candidate.max_depth or self.limits.max_depth
            depths.add(min(best, self.limits.max_depth))
        return sorted(depths)

    def _reinforced(self, augmentation: Augmentation | None) -> Iterator[Candidate]:
        """Reinforced trees, which learn splits and leaves together; then refined by TAO.

        Their splits use all columns and their leaves are constant. All leaves stay, so the depth is
        limited by the number of rows.
        """
        if self.limits.leaves == "linear" or self.limits.max_features_per_split is not None:
            return
        n_leaves = max(2, len(self.folds[0].train) // _ROWS_PER_LEAF)
        depth = min(self.limits.max_depth, int(math.log2(n_leaves)), _MAX_REINFORCED_DEPTH)
        candidate = Candidate("reinforced", depth, None, augmentation)
        yield candidate
        if candidate.kind not in self._dropped:
            yield replace(candidate, tao=self.limits.tao(self._penalties[0]))

    @property
    def _penalties(self) -> list[tuple[float, float]]:
        """Penalties, the best without distillation first."""

        def score(penalty: tuple[float, float]) -> float:
            candidate = Candidate("axis", self.limits.max_depth, self.limits.tao(penalty))
            return self.groups[candidate].score if candidate in self.groups else -math.inf

        return sorted(_PENALTIES, key=score, reverse=True)

    def _rounds(self) -> Iterator[Candidate]:
        """Restart the best few groups once, so that luck does not decide between them."""
        oblique = [each for each in self._ranked if not each.candidate.is_axis_aligned]
        for seed in range(1, _ROUNDS):
            for group in oblique[:_MOST_COMPARED]:
                yield replace(group.candidate, seed=seed)

    def _restarts(self) -> Iterator[Candidate]:
        """Restart the best group until there is no improvement for a while."""
        n_without = 0
        while n_without < _PATIENCE:
            group = self._ranked[0]
            if group.candidate.is_axis_aligned:
                return
            before, candidate = self.best, replace(group.candidate, seed=len(group.members))
            if not self._has_time_for(candidate):
                self.ending = "Stopped at time_limit."
                return
            yield candidate
            n_without = 0 if self.best is not before else n_without + 1
        self.ending = f"Stopped after {_PATIENCE} restarts in a row without improvement."

    # How a candidate is tried

    def _try(self, candidate: Candidate) -> None:
        begun = self._clock.spent
        outcome: Outcome = "not better"
        message, result = "", None
        try:
            result = self._result(candidate)
        except OutOfTime:
            outcome = "out of time"
        except ClearlyWorse:
            outcome = "left out"
        except ValueError as error:
            if not self.groups and not self.finalists:
                raise  # the first candidate is a single leaf: the cause is in the table
            outcome, message = "failed", str(error)
        if result is not None:
            group = self.groups.get(candidate.first_run, Group(()))
            self.groups[candidate.first_run] = Group((*group.members, result))
            is_best = self.best is result and result.validation_score >= self.score_to_beat
            outcome = "best so far" if is_best else "not better"
        seconds = self._clock.spent - begun
        self._seconds_of[candidate.kind] = seconds
        self._log(candidate, result, outcome, message, seconds)

    def _result(self, candidate: Candidate) -> CandidateResult:
        trees: list[ObliqueTree] = []
        begun = self._clock.spent
        for i, task in enumerate(self.folds):
            teacher = self._teacher(i) if candidate.augmentation is not None else None
            trees.append(self.builder.build(candidate, task, teacher))
            if len(trees) == len(self.folds):
                break
            if self.groups and self._clock.is_past():
                raise OutOfTime
            if (
                i == 0
                and not candidate.is_axis_aligned
                and self._is_clearly_worse(candidate, trees)
            ):
                self._dropped.add(candidate.kind)
                raise ClearlyWorse
        return self._measured(candidate, trees, self._clock.spent - begun)

    def _measured(
        self, candidate: Candidate, trees: Sequence[ObliqueTree], seconds: float
    ) -> CandidateResult:
        return measured(candidate, trees, self.folds, self.scorer, self.builder.n_jobs, seconds)

    def _is_clearly_worse(self, candidate: Candidate, trees: list[ObliqueTree]) -> bool:
        """Whether a tree is worse on the first fold than a rival, or the best so far.

        By more than is tolerated; but a tree that takes a teacher for each fold must be better.
        """
        if self.scorer.function is not None:
            return False
        losses = self._measured(candidate, trees, 0.0).losses
        rivals = [self.best.losses, *([] if self.rival is None else [self.rival])]
        least = min((rival[: len(losses)] for rival in rivals), key=np.mean)
        worse = losses - least
        allowed = min(self.tolerated, 0.0) if candidate.augmentation else self.tolerated
        return float(worse.mean()) > allowed * float(worse.std()) / math.sqrt(len(worse))

    def describe(self, candidate: Candidate) -> str:
        """Describe a candidate; a finalist together with its number of rows."""
        n_rows = f", {plural(len(self.folds[0].train), 'row', form=',')}" if self.finalists else ""
        return f"{candidate}{n_rows}"

    def _log(
        self,
        candidate: Candidate,
        result: CandidateResult | None,
        outcome: Outcome,
        message: str,
        seconds: float,
    ) -> None:
        trees = result.trees if result else ()
        trial = Trial(
            len(self.trials) + 1,
            self.describe(candidate),
            float(np.mean([tree.depth for tree in trees])) if trees else math.nan,
            result.n_leaves if result else math.nan,
            result.train_score if result else math.nan,
            result.validation_score if result else math.nan,
            outcome,
            seconds,
            message,
        )
        self.trials.append(trial)
        wants_stop = [bool(callback(trial)) for callback in self.on_trial]  # call all of them
        if any(wants_stop):
            self.is_stopped, self.ending = True, "Stopped by a callback."

    # The teacher

    def _fit_teachers(self) -> bool:
        """Fit a teacher for the first fold; return whether it is good enough to learn from."""
        if self.make_teacher is None or self._is_ended():
            return False
        task = self.folds[0]
        teacher = self._teacher(0)
        if teacher is None:
            self.teacher_note = "No teacher: there was not enough time, or the table is sparse."
            return False
        outputs = teacher.predict(task, task.matrix[task.valid])
        outputs = outputs * task.target_scale + task.target_center
        truth, weight = self.task.target[task.valid], task.weight[task.valid]
        self._teacher_score = self.scorer.score(outputs, truth, weight)
        rival = outputs_of(self.best.trees[0], task.matrix, task.valid, self.builder.n_jobs)
        least = self.scorer.score(rival, truth, weight)
        error = self._standard_error(self.best) * math.sqrt(len(self.folds))
        is_good = self._teacher_score >= least - _TOLERANCE * error
        self.teacher_note = (
            f"Teacher: {teacher.name}, {self.scorer.name} {format_number(self._teacher_score)}"
            f"{'' if is_good else '; not used, because it is worse than the best tree'}."
        )
        return is_good

    def _teacher(self, fold: int) -> Teacher | None:
        """Return the teacher of a fold, fitted when it is first needed; None without time for it.

        The final fit has priority: there is a tree without a teacher, too.
        """
        assert self.make_teacher is not None
        while len(self._teachers) <= fold:
            begun = self._clock.spent
            self.builder.progress.update("the teacher")
            self._teachers.append(
                self.make_teacher(self.folds[len(self._teachers)], is_over=self._is_late)
            )
            self._teacher_seconds += self._clock.spent - begun
        if self._teachers[fold] is None and fold > 0:
            raise OutOfTime
        return self._teachers[fold]

    def _is_late(self) -> bool:
        """Whether to end the training of a teacher; keeps the line of progress up to date."""
        self.builder.progress.update()
        return not self._clock.has(self._reserved_seconds)

    def final_teacher(self, best: CandidateResult, all_rows: Task) -> Teacher | None:
        """Return the teacher for the final fit; None if the candidate is not distilled.

        If there is no time to train one on all rows, it is the one from the search.
        """
        if best.candidate.augmentation is None:
            return None
        assert self.make_teacher is not None
        earlier, is_refined = self._teachers[0], len(self.folds) == 1
        teacher = self.make_teacher(all_rows, earlier=earlier, continues=is_refined)
        return teacher or earlier
