"""A teacher: a stronger model, whose answers to made-up rows a tree learns from.

A tree sees its few rows only where they are; a smooth model that learned from the same rows says
what to answer between them. `taught` adds made-up rows with a teacher's answers to a task, for
any learner. A teacher is the user's, fitted or not, or three small networks of scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from hardwood.learn.greedy import one_hot
from hardwood.learn.losses import CrossEntropy, LabelwiseLogistic, Logistic
from hardwood.learn.task import Task
from hardwood.model.structure import TaskKind
from hardwood.search.augment import Lesson, made_up_rows
from hardwood.table.canonical_rows import Matrix
from hardwood.table.restore import table_like
from hardwood.table.subset import taken

# Chosen on validation rows of letter, pendigits, satimage, optdigits and segment.
_NETWORKS = 3
_HIDDEN = 128
_BATCH = 256
_LEARNING_RATES = {"classification": 1e-2, "multilabel": 1e-2, "regression": 5e-3}
_STEPS = 2_000  # of a network
_EPOCHS = (10, 100)
_LAST_PASSES = 0.25  # of these, over more rows, in the end
# Classes: enough when the loss is more than this part of the least so far. Of numbers it goes up
# and down too much to tell.
_HARDLY_BETTER = 0.9
_LOOKS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75)  # parts of the passes after which networks are judged
_LOOKED_AT = 5_000  # rows, at most
_MAX_ENTRIES = 20_000_000  # of the encoded rows that networks learn from
_ANSWERED_AT_ONCE = 2**14
_LEAST_SHARE = 0.05  # less probable classes are left out

IsOver = Callable[[], bool]


class Teacher(Protocol):
    """What answers for rows of a task's matrix."""

    @property
    def name(self) -> str:
        """In words."""

    def answers(self, task: Task, matrix: Matrix) -> np.ndarray:
        """Return what a tree should answer.

        Probabilities of classes (n, k); else targets (n, t) as the task has them.
        """


def taught(task: Task, teacher: Teacher, lesson: Lesson, n_rows: int, seed: int) -> Task:
    """Return a task with made-up rows besides its training rows; validation stays as it is.

    A made-up row is there once for every class that its teacher holds possible, weighted by the
    probability, so that a tree is not told more than the teacher knows.
    """
    made = made_up_rows(task, lesson, n_rows, seed)
    answers = teacher.answers(task, made.matrix)
    weight = lesson.weight * task.weight[made.origin]
    row = np.arange(n_rows)
    if isinstance(task.loss, CrossEntropy | Logistic):
        answers = np.where(answers >= _LEAST_SHARE, answers, 0.0)
        answers /= answers.sum(axis=1, keepdims=True)
        row, answer = np.nonzero(answers)
        weight = weight[row] * answers[row, answer]
        answers = answer[:, None]
    return _extended(task, made.matrix[row], answers, weight)


def _extended(task: Task, matrix: Matrix, target: np.ndarray, weight: np.ndarray) -> Task:
    """Return a task with more training rows."""
    n = len(task.y)
    if sparse.issparse(matrix):
        matrix = sparse.csr_matrix(sparse.vstack([task.matrix, matrix]))
    else:
        matrix = np.concatenate([task.matrix, matrix])
    return replace(
        task,
        matrix=matrix,
        y=np.concatenate([task.y, target.astype(np.float32)]),
        weight=np.concatenate([task.weight, weight.astype(np.float32)]),
        train=np.concatenate([task.train, np.arange(n, n + len(target))]),
    )


@dataclass(frozen=True)
class Networks:
    """Small networks whose mean answers; they see encoded columns, in standard units.

    `n_passes` is how many passes over their rows they have learned for.
    """

    members: tuple[Any, ...]
    n_passes: int
    name: str = f"{_NETWORKS} networks"

    def answers(self, task: Task, matrix: Matrix) -> np.ndarray:
        """Return mean probabilities of classes, labels that are probable, or mean numbers."""
        parts = [
            self._of(np.ascontiguousarray(matrix[first : first + _ANSWERED_AT_ONCE]), task)
            for first in range(0, matrix.shape[0], _ANSWERED_AT_ONCE)
        ]
        return np.concatenate(parts)

    def _of(self, rows: np.ndarray, task: Task) -> np.ndarray:
        from sklearn.base import is_classifier

        columns = task.schema.encoder.encode(rows)
        with threadpool_limits(limits=1):
            if not is_classifier(self.members[0]):
                numbers = [each.predict(columns) for each in self.members]
                return _mean(numbers).reshape(len(rows), -1)
            shares = _mean([each.predict_proba(columns) for each in self.members])
        if isinstance(task.loss, LabelwiseLogistic):
            return (shares >= 0.5).astype(np.float32)
        return shares


def _mean(parts: list[np.ndarray]) -> np.ndarray:
    mean: np.ndarray = np.mean(parts, axis=0)
    return mean


def learned_networks(
    task: Task,
    seed: int,
    is_over: IsOver,
    known: Networks | None = None,
    goes_on: bool = False,
) -> Networks | None:
    """Train networks on the training rows of a task, pass by pass.

    Parameters
    ----------
    task
        What is learned, from which rows. With a validation part, the networks are kept as they were
        when they answered it best, and stop when they hardly get better; a few looks at it are all
        that they know of it.
    seed
        Of the networks.
    is_over
        Whether to stop, asked before every pass.
    known
        Networks that learned from some of the rows: how long to learn where there is no validation
        part.
    goes_on
        Whether to go on with those, for a part of their passes.

    Returns
    -------
    teacher
        None where `is_over` said so before every network had seen every row, and for sparse tables,
        which networks would have to hold in full.
    """
    if sparse.issparse(task.matrix):
        return None
    rows = task.train[: max(1, _MAX_ENTRIES // task.schema.n_columns)]
    columns = task.schema.encoder.encode(np.ascontiguousarray(task.matrix[rows]))
    most = n_passes = min(max(_STEPS * _BATCH // len(rows), _EPOCHS[0]), _EPOCHS[1])
    members = [_network(task.kind, seed + i) for i in range(_NETWORKS)]
    if known is not None and not len(task.valid):
        n_passes = known.n_passes
        if goes_on:
            members = deepcopy(list(known.members))
            n_passes = max(1, round(_LAST_PASSES * n_passes))
    learn = [_pass_over(each, columns, task, rows) for each in members]
    looks = {max(1, round(part * most)) for part in _LOOKS}
    best, least = None, np.inf
    # One thread: sums of several depend on how many there are.
    with threadpool_limits(limits=1):
        for done in range(1, n_passes + 1):
            for one in learn:
                if is_over():
                    return best
                one()
            if done in looks or done == n_passes:
                latest = Networks(tuple(members), done)
                loss = _loss(latest, task)
                is_enough = task.kind != "regression" and loss > _HARDLY_BETTER * least
                if not loss >= least:  # of no validation part it is NaN
                    best, least = replace(latest, members=tuple(deepcopy(members))), loss
                if is_enough:
                    break
    return best


def _loss(networks: Networks, task: Task) -> float:
    """Return how wrong networks are about the validation part; NaN without one."""
    rows = task.valid[:_LOOKED_AT]
    if not len(rows):
        return np.nan
    answers, truth = networks.answers(task, task.matrix[rows]), task.y[rows]
    if isinstance(task.loss, CrossEntropy | Logistic):
        given = np.take_along_axis(answers, truth.astype(np.int64), axis=1)[:, 0]
        losses = -np.log(np.maximum(given, _LEAST_SHARE / 10))
    else:
        losses = ((answers - truth) ** 2).mean(axis=1)
    return float(np.average(losses, weights=task.weight[rows]))


def _network(task: TaskKind, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    kind = MLPRegressor if task == "regression" else MLPClassifier
    return kind(
        hidden_layer_sizes=(_HIDDEN,),
        batch_size=_BATCH,
        learning_rate_init=_LEARNING_RATES[task],
        max_iter=10**9,  # passes are counted here
        random_state=seed,
    )


def _pass_over(
    network: Any, columns: np.ndarray, task: Task, rows: np.ndarray
) -> Callable[[], Any]:
    """Return what makes one pass over the rows."""
    target = task.y[rows]
    options: dict[str, Any] = {}
    if task.kind == "classification":
        target = target[:, 0].astype(np.int64)
        options["classes"] = np.arange(task.n_targets)
    elif task.kind == "multilabel":
        target = target.astype(np.int64)
        options["classes"] = np.arange(task.n_targets)
    elif target.shape[1] == 1:
        target = target[:, 0]
    weight = task.weight[rows]
    if not (weight == weight[0]).all():
        columns, target, options = _weighted(network, columns, target, weight, options)
    network.batch_size = min(_BATCH, len(columns))
    return lambda: network.partial_fit(columns, target, **options)


def _weighted(
    network: Any,
    columns: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    options: dict[str, Any],
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Let rows count by their weights; before scikit-learn 1.7, by how often they are there."""
    from sklearn.utils.validation import has_fit_parameter

    if has_fit_parameter(network, "sample_weight"):
        return columns, target, {**options, "sample_weight": weight}
    total = np.cumsum(weight)
    drawn = np.searchsorted(total, (np.arange(len(weight)) + 0.5) * total[-1] / len(weight))
    return columns[drawn], target[drawn], options


@dataclass(frozen=True)
class Given:
    """A fitted estimator of the user's, asked with tables of the kind it knows.

    Attributes
    ----------
    estimator
        With `predict`.
    like
        The table that `fit` was given: made-up rows become one of that kind.
    task
        What is learned: the classes and their order.
    """

    estimator: Any
    like: Any
    task: Task

    @property
    def name(self) -> str:
        """The class of the estimator."""
        return type(self.estimator).__name__

    def answers(self, task: Task, matrix: Matrix) -> np.ndarray:
        """Ask the estimator, and put its answers into the units of the task."""
        table = table_like(self.like, task.schema, matrix)
        with _naming_the_teacher(self.name, "answer rows of this table"):
            if self.task.kind == "classification":
                return self._shares(table)
            answers = np.asarray(self.estimator.predict(table), dtype=np.float64)
        n, t = matrix.shape[0], task.y.shape[1]
        if answers.shape not in ((n,), (n, t)) or answers.size != n * t:
            raise ValueError(
                f"The teacher {self.name} answered {n} rows with an array of shape "
                f"{answers.shape}; expected {t} target(s) for each."
            )
        if not np.isfinite(answers).all():
            raise ValueError(f"The teacher {self.name} answered with numbers that are not finite.")
        return (answers.reshape(n, t) - task.target_center) / task.target_scale

    def _shares(self, table: Any) -> np.ndarray:
        """Return probabilities (n, k) in the order of the classes; of a bare class, 1."""
        if hasattr(self.estimator, "predict_proba"):
            given = np.asarray(self.estimator.predict_proba(table), dtype=np.float64)
            shares = np.zeros((len(given), self.task.n_targets))
            shares[:, self._places(self.estimator.classes_)] = given
            return shares
        places = self._places(np.asarray(self.estimator.predict(table)))
        return one_hot(places, self.task.n_targets)

    def _places(self, labels: np.ndarray) -> np.ndarray:
        """Return which classes labels are."""
        classes = self.task.classes
        assert classes is not None
        place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        is_known = classes[place] == labels
        if not np.all(is_known):
            unknown = labels[~is_known].tolist()[0]
            raise _TeacherError(
                f"The teacher {self.name} knows the class {unknown!r}, which y has not: "
                f"{classes[:10].tolist()}. Give one that learned the same classes."
            )
        return place


def check_teacher(teacher: Any, task: str) -> None:
    """Refuse what cannot teach: anything but None, "auto" and an estimator for the same task."""
    from sklearn.base import is_classifier, is_regressor

    if teacher is None or (isinstance(teacher, str) and teacher == "auto"):
        return
    if isinstance(teacher, str | type) or not hasattr(teacher, "predict"):
        raise TypeError(
            "teacher must be None, 'auto', or an estimator with predict, fitted or to be fitted, "
            f"got {teacher!r:.200}."
        )
    is_wrong = is_classifier(teacher) if task == "regression" else is_regressor(teacher)
    if is_wrong:
        wanted = "a regressor" if task == "regression" else "a classifier"
        raise TypeError(f"teacher must be {wanted} here, got {teacher!r:.200}.")


def is_fitted(estimator: Any) -> bool:
    """Whether an estimator has learned already."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def fitted_teacher(task: Task, estimator: Any, X: Any, y: np.ndarray) -> Given:
    """Return the user's estimator, fitted on the training rows of a task unless it is.

    Parameters
    ----------
    task
        What is learned, and from which rows.
    estimator
        The user's; it is cloned before it is fitted.
    X, y
        The table as `fit` was given it, and its targets as the user has them.
    """
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    if is_fitted(estimator):
        return Given(estimator, X, task)
    rows = np.sort(task.train)
    options = {}
    weight = task.weight_of(rows)
    if not (weight == weight[0]).all() and has_fit_parameter(estimator, "sample_weight"):
        options["sample_weight"] = weight
    with _naming_the_teacher(type(estimator).__name__, "learn from this table"):
        fitted = clone(estimator).fit(taken(X, rows), y[rows], **options)
    return Given(fitted, X, task)


class _TeacherError(ValueError):
    """Says already what is wrong with a teacher."""


@contextmanager
def _naming_the_teacher(name: str, what: str) -> Iterator[None]:
    """Say whose mistake it is, and what to do, where the user's estimator raises one."""
    try:
        yield
    except _TeacherError:
        raise
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"The teacher {name} cannot {what}: {str(error).strip()} Give one that takes the same "
            "columns, such as a pipeline that encodes text and fills in what is missing; "
            "teacher='auto' does."
        ) from error
