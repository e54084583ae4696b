"""Checks that arrays form a tree, for the constructor, the file and the JSON form.

Each check is vectorized, so that creating a tree takes microseconds, and each message says which
array is wrong, where, and what was expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from hardwood.model.files import strict_json
from hardwood.table import target
from hardwood.table.feature import check_text
from hardwood.table.target import Label as Label
from hardwood.table.target import TaskKind as TaskKind
from hardwood.text.numbers import plural

PROBABILITY_TOLERANCE = 1e-6

Link = Literal["identity", "exp", "softmax", "logistic"]
Activation = Literal["smooth_step", "smooth_step_5", "logistic"]

# The links, from scores to outputs, by task.
LINKS: dict[str, tuple[Link, ...]] = {
    "classification": ("softmax",),
    "regression": ("identity", "exp"),
    "multilabel": ("logistic",),
}


@dataclass(frozen=True)
class Array:
    """The declaration of an array of a kind of model, for its constructor, files and JSON form.

    Attributes
    ----------
    name
        Its name in the constructor, as an attribute, and in files.
    sizes
        The sizes of its axes: a letter, ``"2"``, or a sum such as ``"m+1"``. ``"c"`` is the number
        of columns of the schema. Other letters are defined by their first occurrence.
    is_whole
        Whether it holds int32 instead of float64.
    is_optional
        Whether it may be None.
    check
        Raises an error if the array is invalid by itself.
    """

    name: str
    sizes: str
    is_whole: bool = False
    is_optional: bool = False
    check: Callable[[np.ndarray], None] | None = None

    @property
    def axes(self) -> list[str]:
        """The size of each axis, from ``sizes``."""
        return self.sizes.split()

    def read(self, value: Any, known: dict[str, int]) -> np.ndarray | None:
        """Copy a value to a read-only array, check its shape, and record its sizes in ``known``."""
        if value is None and self.is_optional:
            return None
        shape = tuple(_size(axis, known) for axis in self.axes)
        array = (whole_array if self.is_whole else float_array)(self.name, value, shape)
        if self.check is not None:
            self.check(array)
        known.update(zip(self.axes, array.shape, strict=True))
        return array


def _size(axis: str, known: Mapping[str, int]) -> int | None:
    sizes = [int(term) if term.isdigit() else known.get(term, -1) for term in axis.split("+")]
    return None if min(sizes) < 0 else sum(sizes)


def float_array(name: str, value: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """Copy ``value`` to a read-only float64 array; sizes that are ``None`` are not checked."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}")
    check_shape(name, array, shape)
    array = np.array(array, dtype=np.float64, order="C", copy=True)
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, but {name}{list(where)} is {array[where]}")
    array.flags.writeable = False
    return array


def whole_array(name: str, value: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """Copy ``value`` to a read-only int32 array; sizes that are ``None`` are not checked."""
    array = np.asarray(value)
    if array.size == 0 and array.dtype.kind == "f":  # np.asarray([]) is float64
        array = array.astype(np.int32)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, not {array.dtype}")
    check_shape(name, array, shape)
    if array.size and (int(array.max()) >= 2**31 or int(array.min()) < -(2**31)):
        raise ValueError(f"{name} must fit int32, but go from {array.min()} to {array.max()}")
    array = np.array(array, dtype=np.int32, order="C", copy=True)
    array.flags.writeable = False
    return array


def check_children(children: np.ndarray) -> None:
    """Check that children (m, 2) form one tree with m + 1 leaves.

    Every child index is in range, parents come before their children, and every node except the
    root has exactly one parent. This excludes cycles, shared subtrees and unreachable nodes.
    """
    m = children.shape[0]
    if m and (int(children.max()) >= m or int(children.min()) < -1 - m):
        raise ValueError(
            f"children must lie between {-1 - m} and {m - 1} (a split by its number, "
            f"leaf l as -1 - l), but go from {children.min()} to {children.max()}"
        )
    _check_reached_once(children)


def check_parents(parents: np.ndarray) -> None:
    """Check that parents (N,) form one tree.

    The first node is the root, whose parent is -1, and parents come before their children. This
    excludes cycles and unreachable nodes.
    """
    if parents.size == 0 or int(parents[0]) != -1:
        raise ValueError("parents must begin with -1, the root, which has none")
    after = parents[1:]
    bad = (after < 0) | (after >= np.arange(1, parents.size))
    if bad.any():
        i = int(np.argmax(bad)) + 1
        raise ValueError(
            f"parents must come before their children, but parents[{i}] is {parents[i]}, expected "
            f"0 to {i - 1}"
        )


def _check_reached_once(children: np.ndarray) -> None:
    m = children.shape[0]
    if m == 0:
        return
    inner = children >= 0
    backwards = inner & (children <= np.arange(m, dtype=np.int32)[:, None])
    if backwards.any():
        i = int(np.argwhere(backwards)[0, 0])
        raise ValueError(
            f"parents must come before their children, but split {i} has children "
            f"{children[i].tolist()}: the arrays hold a cycle or are out of order"
        )
    for what, ids, first, size in (
        ("split", children[inner], 1, m),
        ("leaf", ~children[~inner], 0, m + 1),
    ):
        times = np.bincount(ids, minlength=size)[first:]
        if (times != 1).any():
            i = int(np.argmax(times != 1))
            raise ValueError(
                f"every split and leaf must have exactly one parent, but {what} {i + first} "
                f"has {times[i]}"
            )


def check_shape(name: str, array: np.ndarray, shape: tuple[int | None, ...]) -> None:
    """Check the shape of an array; sizes that are ``None`` are not checked."""
    fits = array.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits:
        words = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} must have shape ({words}), not {array.shape}")


def check_values(
    values: np.ndarray,
    task: str,
    classes: tuple[Label, ...] | None,
    *,
    are_scores: bool,
    name: str = "values",
) -> None:
    """Check leaf values: a column per class; probabilities unless they are numbers or scores."""
    if values.shape[1] == 0:
        raise ValueError(f"{name} must have at least one column")
    if classes is not None and values.shape[1] != len(classes):
        raise ValueError(
            f"{name} has {plural(values.shape[1], 'column')} for "
            f"{plural(len(classes), 'class', 'classes')}: one per class is needed"
        )
    if are_scores or task == "regression":
        return
    if task == "multilabel":
        _check_shares(values)
    else:
        _check_distributions(values)


def _check_shares(values: np.ndarray) -> None:
    bad = (values < 0) | (values > 1)
    if bad.any():
        leaf, label = np.argwhere(bad)[0].tolist()
        raise ValueError(
            "leaf values of a multilabel tree are probabilities, between 0 and 1, but "
            f"values[{leaf}, {label}] is {values[leaf, label]}"
        )


def _check_distributions(values: np.ndarray) -> None:
    with np.errstate(over="ignore"):  # a sum beyond float64 is infinity, and not 1
        total = values.sum(axis=1)
    bad = (values < 0).any(axis=1) | (np.abs(total - 1) > PROBABILITY_TOLERANCE)
    if bad.any():
        leaf = int(np.argmax(bad))
        raise ValueError(
            "leaf values of a classification tree are probabilities that sum to 1, "
            f"but those of leaf {leaf} are {values[leaf].tolist()[:10]}"
        )


def check_sums(values: Iterable[np.ndarray]) -> None:
    """Check that scores of several trees, each (L, k), add up to finite numbers for all leaves."""
    with np.errstate(over="ignore"):
        largest = sum(np.abs(of_tree).max(axis=0) for of_tree in values)
    if not np.isfinite(largest).all():
        raise ValueError(
            "the largest scores of all trees add up to more than the maximum of float64"
        )


PROBABILITY_LINKS = ("softmax", "logistic")
"""Links of which the probabilities are NaN where scores overflow."""
MAX_LEAF_WEIGHT = 1e200


def check_leaf_weights(leaf_weights: np.ndarray, column_scale: np.ndarray) -> None:
    """Check that scores of linear leaves (L, k, c) are finite, whatever the row.

    Encoded values lie within float32, so a weight in standard units may be as large as
    `MAX_LEAF_WEIGHT`.
    """
    with np.errstate(over="ignore"):
        size = np.abs(leaf_weights) * column_scale
    if not (size <= MAX_LEAF_WEIGHT).all():
        where = tuple(int(i) for i in np.argwhere(~(size <= MAX_LEAF_WEIGHT))[0])
        raise ValueError(
            f"leaf_weights must be at most {MAX_LEAF_WEIGHT:g} in standard units, or scores would "
            f"overflow, but leaf_weights{list(where)} is {leaf_weights[where]:g}"
        )


def check_link(link: Any, task: str, *, has_linear_leaves: bool) -> None:
    """Check the link: linear leaves need one for the task, constant leaves have none."""
    allowed = LINKS[task] if has_linear_leaves else ("identity",)
    if link in allowed:
        return
    words = " or ".join(repr(name) for name in allowed)
    if has_linear_leaves:
        raise ValueError(
            f"the link of a {task} tree with linear leaves must be {words}, not {link!r:.80}"
        )
    raise ValueError(
        f"without leaf_weights the values are the predictions and link must be {words}, "
        f"not {link!r:.80}"
    )


def score_link(link: Any, task: str, noun: str) -> Link:
    """Return the link of scores, by default the first one for the task; check it."""
    for allowed in LINKS[task]:
        if link is None or link == allowed:
            return allowed
    words = " or ".join(repr(name) for name in LINKS[task])
    raise ValueError(f"the link of a {task} {noun} must be {words}, not {link!r:.80}")


def check_activation(activation: Any) -> None:
    """Check the activation, from the score of a soft split to the probability of going right."""
    if activation not in get_args(Activation):
        words = ", ".join(map(repr, get_args(Activation)))
        raise ValueError(f"activation must be one of {words}, not {activation!r:.80}")


def positive_number(name: str, value: Any) -> float:
    """Return a finite number above 0; raise an error for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number, not {type(value).__name__} {value!r:.80}")
    try:
        number = float(value)
    except OverflowError:  # an integer
        raise ValueError(f"{name} must be a float64, not {value!r:.80}") from None
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be finite and above 0, not {value!r:.80}")
    return number


def check_counts(counts: np.ndarray) -> None:
    """Check that weighted sample counts are not negative."""
    if (counts < 0).any():
        where = tuple(int(i) for i in np.argwhere(counts < 0)[0])
        raise ValueError(f"counts must not be negative, but counts{list(where)} is {counts[where]}")


def check_decision_weights(weights: np.ndarray) -> None:
    """Check that all decision weights are above 0."""
    if (weights <= 0).any():
        where = int(np.argmax(weights <= 0))
        raise ValueError(
            "decision_weights multiply the probabilities of the classes and must be above 0, but "
            f"decision_weights[{where}] is {weights[where]:g}"
        )


def class_labels(classes: Iterable[Any] | None, task: str) -> tuple[Label, ...] | None:
    """Return class labels as distinct Python values; ``None`` for other tasks."""
    if not isinstance(task, str) or task not in LINKS:
        raise ValueError(
            f"task must be 'classification', 'regression' or 'multilabel', not {task!r:.80}"
        )
    if task != "classification":
        if classes is not None:
            hint = "; its labels are its target_names" if task == "multilabel" else ""
            raise ValueError(f"a {task} tree has no classes{hint}")
        return None
    if classes is None:
        raise ValueError("a classification tree needs its classes")
    return target.class_labels(classes)


def target_names(names: Iterable[Any] | None, task: str, n_outputs: int) -> tuple[str, ...] | None:
    """Return the target names: one per output or label, or a single one for a classifier."""
    if names is None:
        return None
    names = tuple(names) if not isinstance(names, str) else (names,)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"target names must be text, not {type(name).__name__} {name!r:.80}")
        check_text("target name", name)
    expected = 1 if task == "classification" else n_outputs
    if len(names) != expected:
        raise ValueError(f"expected {plural(expected, 'target name')}, got {len(names)}")
    return names


def record_text(record: Any) -> str:
    """Return the training record as JSON with sorted keys, for storing and comparing it."""
    if record is None:
        return "{}"
    if not isinstance(record, dict):
        raise TypeError(f"record must be a dict, not {type(record).__name__}")
    try:
        return strict_json.write(record)
    except ValueError as error:
        raise ValueError(f"record cannot be stored as JSON: {error}") from error


def typed(classes: tuple[Label, ...] | None) -> list[tuple[type, Label]] | None:
    """Return classes with their types, for comparison: 1, 1.0 and True are different."""
    return None if classes is None else [(type(label), label) for label in classes]
