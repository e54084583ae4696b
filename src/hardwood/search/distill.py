"""Distillation: training a tree (the student) on the predictions of a stronger model (the teacher).

The training rows of a tree say nothing about the space between them. A smooth model that was
trained on the same rows predicts there. `distillation_task` adds augmented rows, labeled by the
teacher, to a task of any learner. The teacher is an estimator of the user's, fitted or not, or
three small neural networks of scikit-learn.
"""

from __future__ import annotations

import warnings
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
from hardwood.search.augment import Augmentation, augmented_rows
from hardwood.table.canonical_rows import Matrix
from hardwood.table.restore import table_like
from hardwood.table.subset import taken
from hardwood.text.numbers import plural

# Chosen on validation rows of letter, pendigits, satimage, optdigits and segment.
_NETWORKS = 3
_HIDDEN = 128
_BATCH = 256
_LEARNING_RATES = {"classification": 1e-2, "multilabel": 1e-2, "regression": 5e-3}
_STEPS = 2_000  # gradient steps of a network
_EPOCHS = (10, 100)
_CONTINUED_EPOCHS = 0.25  # of the epochs so far: how long training continues on all rows
# Classification: stop when the validation loss exceeds this fraction of the lowest so far. The
# validation loss of regression is too noisy for that.
_MIN_IMPROVEMENT = 0.9
_CHECKPOINTS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75)  # fractions of the epochs: validate after these
_MAX_VALIDATION_ROWS = 5_000
_MAX_ENTRIES = 20_000_000  # of the encoded training rows
_PREDICTION_BATCH = 2**14
_MIN_PROBABILITY = 0.05  # less probable classes are left out

IsOver = Callable[[], bool]


class Teacher(Protocol):
    """Predicts the target of rows of a task's matrix."""

    @property
    def name(self) -> str:
        """Name of the model, for reports."""

    def predict(self, task: Task, matrix: Matrix) -> np.ndarray:
        """Predict for rows.

        Returns probabilities of classes (n, k), or targets (n, t) in the units of `task.y`.
        """


def distillation_task(
    task: Task, teacher: Teacher, augmentation: Augmentation, n_rows: int, seed: int
) -> Task:
    """Add augmented rows, labeled by a teacher, to the training rows of a task.

    An augmented row appears once for every class that the teacher considers possible, weighted by
    the probability (soft labels).
    """
    augmented = augmented_rows(task, augmentation, n_rows, seed)
    targets = teacher.predict(task, augmented.matrix)
    weight = np.full(n_rows, augmentation.weight)
    row = np.arange(n_rows)
    if isinstance(task.loss, CrossEntropy | Logistic):
        probability = np.where(targets >= _MIN_PROBABILITY, targets, 0.0)
        probability /= probability.sum(axis=1, keepdims=True)
        row, label = np.nonzero(probability)
        weight = weight[row] * probability[row, label]
        targets = label[:, None]
    return _extended(task, augmented.matrix[row], targets, weight, augmented.origin[row])


def _extended(
    task: Task, matrix: Matrix, target: np.ndarray, weight: np.ndarray, origin: np.ndarray
) -> Task:
    """Append training rows to a task, each with a part of the weight of the row it comes from."""
    n = len(task.y)
    if sparse.issparse(matrix):
        matrix = sparse.csr_matrix(sparse.vstack([task.matrix, matrix]))
    else:
        matrix = np.concatenate([task.matrix, matrix])
    return replace(
        task,
        matrix=matrix,
        target=np.concatenate([task.target, target * task.target_scale + task.target_center]),
        y=np.concatenate([task.y, target.astype(np.float32)]),
        row_weight=np.concatenate([task.row_weight, weight * task.row_weight[origin]]),
        weight=np.concatenate([task.weight, (weight * task.weight[origin]).astype(np.float32)]),
        train=np.concatenate([task.train, np.arange(n, n + len(target))]),
    )


@dataclass(frozen=True)
class NetworkTeacher:
    """An ensemble of small neural networks on encoded, standardized columns.

    `n_epochs` is the number of epochs for which they were trained.
    """

    members: tuple[Any, ...]
    n_epochs: int
    name: str = f"{_NETWORKS} neural networks"

    def predict(self, task: Task, matrix: Matrix) -> np.ndarray:
        """Return average class probabilities, the more probable labels, or average numbers."""
        parts = [
            self._predict(np.ascontiguousarray(matrix[first : first + _PREDICTION_BATCH]), task)
            for first in range(0, matrix.shape[0], _PREDICTION_BATCH)
        ]
        return np.concatenate(parts)

    def _predict(self, rows: np.ndarray, task: Task) -> np.ndarray:
        from sklearn.base import is_classifier

        columns = task.schema.encoder.encode(rows)
        with threadpool_limits(limits=1):
            if not is_classifier(self.members[0]):
                numbers = [each.predict(columns) for each in self.members]
                return _mean(numbers).reshape(len(rows), -1)
            probability = _mean([each.predict_proba(columns) for each in self.members])
        if isinstance(task.loss, LabelwiseLogistic):
            return (probability >= 0.5).astype(np.float32)
        return probability


def _mean(parts: list[np.ndarray]) -> np.ndarray:
    mean: np.ndarray = np.mean(parts, axis=0)
    return mean


def train_networks(
    task: Task,
    seed: int,
    is_over: IsOver,
    earlier: NetworkTeacher | None = None,
    continues: bool = False,
) -> NetworkTeacher | None:
    """Train neural networks on the training rows of a task.

    Parameters
    ----------
    task
        The task. If it has a validation part, its loss is measured at a few checkpoints: training
        stops when it hardly improves, and the networks of the best checkpoint are returned.
    seed
        Seed of the first network; the others count up.
    is_over
        Called before every epoch; training stops when it returns True.
    earlier
        Networks that were trained on some of the rows. Without a validation part, they determine
        the number of epochs.
    continues
        Whether to continue training the earlier networks, for a fraction of their epochs.

    Returns
    -------
    teacher
        None if `is_over` returned True before every network had completed an epoch, and for a
        sparse table, which would have to be made dense.
    """
    if sparse.issparse(task.matrix):
        return None
    rows = task.train[: max(1, _MAX_ENTRIES // task.schema.n_columns)]
    columns = task.schema.encoder.encode(np.ascontiguousarray(task.matrix[rows]))
    most = n_epochs = min(max(_STEPS * _BATCH // len(rows), _EPOCHS[0]), _EPOCHS[1])
    members = [_network(task.kind, seed + i) for i in range(_NETWORKS)]
    if earlier is not None and not len(task.valid):
        n_epochs = earlier.n_epochs
        if continues:
            members = deepcopy(list(earlier.members))
            n_epochs = max(1, round(_CONTINUED_EPOCHS * n_epochs))
    run_epochs = [_epoch_runner(each, columns, task, rows) for each in members]
    checkpoints = {max(1, round(fraction * most)) for fraction in _CHECKPOINTS}
    best, lowest = None, np.inf
    # One thread: with several, floating-point sums would depend on their number.
    with threadpool_limits(limits=1):
        for epoch in range(1, n_epochs + 1):
            for run_epoch in run_epochs:
                if is_over():
                    return best
                run_epoch()
            if epoch in checkpoints or epoch == n_epochs:
                latest = NetworkTeacher(tuple(members), epoch)
                loss = _loss(latest, task)
                is_enough = task.kind != "regression" and loss > _MIN_IMPROVEMENT * lowest
                if not loss >= lowest:  # NaN without a validation part
                    best, lowest = replace(latest, members=tuple(deepcopy(members))), loss
                if is_enough:
                    break
    return best


def _loss(networks: NetworkTeacher, task: Task) -> float:
    """Return the validation loss of networks; NaN without a validation part."""
    rows = task.valid[:_MAX_VALIDATION_ROWS]
    if not len(rows):
        return np.nan
    outputs, truth = networks.predict(task, task.matrix[rows]), task.y[rows]
    if isinstance(task.loss, CrossEntropy | Logistic):
        probability = np.take_along_axis(outputs, truth.astype(np.int64), axis=1)[:, 0]
        losses = -np.log(np.maximum(probability, _MIN_PROBABILITY / 10))
    else:
        losses = ((outputs - truth) ** 2).mean(axis=1)
    return float(np.average(losses, weights=task.weight[rows]))


def _network(task: TaskKind, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    kind = MLPRegressor if task == "regression" else MLPClassifier
    return kind(
        hidden_layer_sizes=(_HIDDEN,),
        batch_size=_BATCH,
        learning_rate_init=_LEARNING_RATES[task],
        max_iter=10**9,  # epochs are counted by `train_networks`
        random_state=seed,
    )


def _epoch_runner(
    network: Any, columns: np.ndarray, task: Task, rows: np.ndarray
) -> Callable[[], Any]:
    """Return a function that trains a network for one epoch."""
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

    def run() -> None:
        # scikit-learn turns Ctrl-C into this warning, and its caller would learn on.
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Training interrupted by user")
            try:
                network.partial_fit(columns, target, **options)
            except UserWarning:
                raise KeyboardInterrupt from None

    return run


def _weighted(
    network: Any,
    columns: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    options: dict[str, Any],
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Use row weights; before scikit-learn 1.7, by repeating rows in proportion to them."""
    from sklearn.utils.validation import has_fit_parameter

    if has_fit_parameter(network, "sample_weight"):
        return columns, target, {**options, "sample_weight": weight}
    total = np.cumsum(weight)
    drawn = np.searchsorted(total, (np.arange(len(weight)) + 0.5) * total[-1] / len(weight))
    return columns[drawn], target[drawn], options


@dataclass(frozen=True)
class UserTeacher:
    """A fitted estimator of the user's, called with the kind of table that it was fitted on.

    Attributes
    ----------
    estimator
        The estimator; it has `predict`.
    like
        The table given to `fit`: augmented rows are converted to the same kind.
    task
        The task, with the classes and their order.
    """

    estimator: Any
    like: Any
    task: Task

    @property
    def name(self) -> str:
        """The class of the estimator."""
        return type(self.estimator).__name__

    def predict(self, task: Task, matrix: Matrix) -> np.ndarray:
        """Call the estimator, and convert its predictions to the units of the task."""
        table = table_like(self.like, task.schema, matrix)
        with _naming_the_teacher(self.name, "predict for this table"):
            if self.task.kind == "classification":
                return self._probabilities(table)
            outputs = np.asarray(self.estimator.predict(table), dtype=np.float64)
        n, t = matrix.shape[0], task.y.shape[1]
        if outputs.shape not in ((n,), (n, t)) or outputs.size != n * t:
            raise ValueError(
                f"The teacher {self.name} returned predictions of shape {outputs.shape} for "
                f"{plural(n, 'row')}; expected {plural(t, 'target')} per row."
            )
        if not np.isfinite(outputs).all():
            raise ValueError(f"The teacher {self.name} predicted NaN or infinite numbers.")
        return (outputs.reshape(n, t) - task.target_center) / task.target_scale

    def _probabilities(self, table: Any) -> np.ndarray:
        """Return probabilities (n, k) in the order of the classes; 0 or 1 without predict_proba."""
        if hasattr(self.estimator, "predict_proba"):
            given = np.asarray(self.estimator.predict_proba(table), dtype=np.float64)
            probabilities = np.zeros((len(given), self.task.n_targets))
            probabilities[:, self._class_indices(self.estimator.classes_)] = given
            return probabilities
        indices = self._class_indices(np.asarray(self.estimator.predict(table)))
        return one_hot(indices, self.task.n_targets)

    def _class_indices(self, labels: np.ndarray) -> np.ndarray:
        """Return the position of each label among the classes of the task."""
        classes = self.task.classes
        assert classes is not None
        index = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        is_known = classes[index] == labels
        if not np.all(is_known):
            unknown = labels[~is_known].tolist()[0]
            raise _TeacherError(
                f"The teacher {self.name} was fitted on a class {unknown!r} that is not in y "
                f"(classes: {classes[:10].tolist()}). Use a teacher fitted on the same classes."
            )
        return index


def check_teacher(teacher: Any, task: str) -> None:
    """Raise an error unless `teacher` is None, "auto" or an estimator for the same task."""
    from sklearn.base import is_classifier, is_regressor

    if teacher is None or (isinstance(teacher, str) and teacher == "auto"):
        return
    if isinstance(teacher, str | type) or not hasattr(teacher, "predict"):
        raise TypeError(
            "teacher must be None, 'auto', or an estimator with predict, fitted or not, got "
            f"{teacher!r:.200}."
        )
    is_wrong = is_classifier(teacher) if task == "regression" else is_regressor(teacher)
    if is_wrong:
        wanted = "a regressor" if task == "regression" else "a classifier"
        raise TypeError(f"teacher must be {wanted}, got {teacher!r:.200}.")


def is_fitted(estimator: Any) -> bool:
    """Whether an estimator is fitted."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def fitted_teacher(task: Task, estimator: Any, X: Any, y: np.ndarray) -> UserTeacher:
    """Return the user's estimator as a teacher; fit it on the training rows if it is not fitted.

    Parameters
    ----------
    task
        The task, which says which rows are training rows.
    estimator
        The user's estimator; it is cloned before it is fitted.
    X, y
        The table and the target, as they were given to `fit`.
    """
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    if is_fitted(estimator):
        return UserTeacher(estimator, X, task)
    rows = np.sort(task.train)
    options = {}
    weight = task.weight_of(rows)
    if not (weight == weight[0]).all() and has_fit_parameter(estimator, "sample_weight"):
        options["sample_weight"] = weight
    with _naming_the_teacher(type(estimator).__name__, "be fitted on this table"):
        fitted = clone(estimator).fit(taken(X, rows), y[rows], **options)
    return UserTeacher(fitted, X, task)


class _TeacherError(ValueError):
    """An error whose message already names the teacher."""


@contextmanager
def _naming_the_teacher(name: str, what: str) -> Iterator[None]:
    """Turn errors of the user's estimator into ones that name it and suggest a remedy."""
    try:
        yield
    except _TeacherError:
        raise
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"The teacher {name} cannot {what}: {str(error).strip()} Use one that accepts these "
            "columns, such as a pipeline that encodes text and imputes missing values, or "
            "teacher='auto'."
        ) from error
