"""The hard oblique tree: a frozen value of arrays, and the one way it routes and answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hardwood.errors import TableError, TableTypeError
from hardwood.model import strict_json, structure
from hardwood.model.split import Column, Split, columns_of
from hardwood.model.structure import Label
from hardwood.table import Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from scipy.sparse import csr_array

    from hardwood._native import Router

Task = Literal["classification", "regression"]


class ObliqueTree:
    r"""A hard oblique decision tree in raw feature units.

    A row ``x`` has the score

    .. math:: s_i(x) = b_i + \sum_{j\ \text{number}} w_{ij} (x_j - c_j)
              + \sum_{j\ \text{level or flag that is on}} w_{ij}

    at split ``i``, where a missing number adds nothing, and goes **right when** ``s_i(x) >= 0``.

    The value is frozen: its arrays are read-only copies, it compares by value, and whatever changes
    a tree returns a new one.

    Parameters
    ----------
    weights
        (m, c) float64, per column of the schema: per raw unit of a number, or what a level or a
        missing flag adds.
    bias
        (m,) float64.
    children
        (m, 2) int32, left and right: a split by its number, leaf ``l`` as ``-1 - l``. Parents come
        before their children; split 0 is the root. ``m = 0`` is a single leaf.
    values
        (L, k) float64, the answer at each leaf: class probabilities, or the regression outputs.
    schema
        How a table becomes the columns that the weights multiply.
    task
        ``"classification"`` or ``"regression"``.
    counts
        (m + L,) weighted training samples that reached each split, then each leaf; optional.
    classes
        The k distinct labels of a classification tree.
    target_names
        What is predicted: k names for regression, one for classification; optional.
    record
        JSON-able notes of the training; optional.

    Raises
    ------
    ValueError, TypeError
        If the arrays do not form exactly one tree with finite numbers that fits the schema.
    """

    weights: np.ndarray
    bias: np.ndarray
    children: np.ndarray
    values: np.ndarray
    counts: np.ndarray | None
    schema: Schema
    task: Task
    classes: tuple[Label, ...] | None
    target_names: tuple[str, ...] | None
    _record: str

    __hash__ = None  # type: ignore[assignment]  # equality by value over arrays; nothing to gain

    def __init__(
        self,
        weights: Any,
        bias: Any,
        children: Any,
        values: Any,
        *,
        schema: Schema,
        task: Task,
        counts: Any = None,
        classes: Iterable[Any] | None = None,
        target_names: Iterable[str] | str | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> None:
        weights = structure.float_array("weights", weights, (None, schema.n_columns))
        m = weights.shape[0]
        bias = structure.float_array("bias", bias, (m,))
        values = structure.float_array("values", values, (None, None))
        if values.shape[1] == 0:
            raise ValueError("values must have at least one column")
        children = structure.children_array(children, n_leaves=values.shape[0])
        if children.shape[0] != m:
            raise ValueError(f"weights has {m} rows, but children has {children.shape[0]}")
        if counts is not None:
            counts = structure.float_array("counts", counts, (m + values.shape[0],))
            structure.check_counts(counts)
        labels = structure.class_labels(classes, task)
        if labels is not None:
            structure.check_probabilities(values, labels)
        self.__dict__.update(
            weights=weights,
            bias=bias,
            children=children,
            values=values,
            counts=counts,
            schema=schema,
            task=task,
            classes=labels,
            target_names=structure.target_names(target_names, task, values.shape[1]),
            _record=structure.record_text(record),
        )

    @classmethod
    def of(
        cls,
        weights: Any,
        *,
        values: Any,
        thresholds: Any = None,
        bias: Any = None,
        children: Any = None,
        feature_names: Iterable[str] | None = None,
        schema: Schema | None = None,
        classes: Iterable[Any] | None = None,
        counts: Any = None,
        target_names: Iterable[str] | str | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> ObliqueTree:
        """Make a tree from plain arrays.

        Give ``thresholds`` (a split reads ``w.x >= t``) or ``bias``. Without ``children`` the tree
        is perfect and in heap order: split ``i`` has the children ``2i + 1`` and ``2i + 2``.
        Without ``schema`` every column is a number. With ``classes`` it classifies, otherwise
        it is a regression tree, whose ``values`` may be a plain list with one number per leaf.

        Examples
        --------
        >>> from hardwood import ObliqueTree
        >>> tree = ObliqueTree.of([[0.8, -1.1]], thresholds=[2.3], values=[[1, 0], [0, 1]],
        ...                       feature_names=["length", "width"], classes=["no", "yes"])
        >>> tree.split(0).condition
        '1.1*width - 0.8*length <= -2.3'
        >>> tree.predict([[5.0, 1.0], [1.0, 1.0]]).tolist()
        ['yes', 'no']
        """
        weights = np.atleast_2d(np.asarray(weights))
        names = None if feature_names is None else list(feature_names)
        if schema is None:
            schema = Schema.numeric(weights.shape[1], names)
        elif names is not None:
            raise ValueError("give feature_names or a schema, which has names of its own; not both")
        if (thresholds is None) == (bias is None):
            raise ValueError(
                "give thresholds (w.x >= threshold) or bias (w.x + bias >= 0), one of the two"
            )
        if bias is None:
            right_sides = structure.float_array("thresholds", thresholds, (weights.shape[0],))
            bias = weights @ schema.column_center - right_sides
        values = np.asarray(values)
        return cls(
            weights,
            bias,
            heap_children(weights.shape[0]) if children is None else children,
            values[:, None] if values.ndim == 1 and classes is None else values,
            schema=schema,
            task="regression" if classes is None else "classification",
            counts=counts,
            classes=classes,
            target_names=target_names,
            record=record,
        )

    # What it is

    @property
    def record(self) -> dict[str, Any]:
        """Notes of the training, a fresh copy at each access."""
        return dict(strict_json.parse(self._record))

    @property
    def n_splits(self) -> int:
        """Number of internal nodes, m."""
        return int(self.weights.shape[0])

    @property
    def n_leaves(self) -> int:
        """Number of leaves, L."""
        return int(self.values.shape[0])

    @property
    def n_nodes(self) -> int:
        """Number of splits and leaves together."""
        return self.n_splits + self.n_leaves

    @property
    def n_outputs(self) -> int:
        """Number of columns of ``values``: classes, or regression outputs."""
        return int(self.values.shape[1])

    @property
    def n_features(self) -> int:
        """Number of features of the table, before categories become columns."""
        return int(self.schema.n_features)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of an unnamed table."""
        return self.schema.names

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What each column of ``weights`` multiplies."""
        return columns_of(self.schema)

    @cached_property
    def thresholds(self) -> np.ndarray:
        """Right-hand sides in raw units, (m,): with no entry missing, right is ``w.x >= t``."""
        thresholds: np.ndarray
        with np.errstate(over="ignore", invalid="ignore"):
            thresholds = self.weights @ self.schema.column_center - self.bias
        thresholds.flags.writeable = False
        return thresholds

    @cached_property
    def node_depths(self) -> np.ndarray:
        """Depth of each split, then of each leaf, (m + L,); the root has depth 0."""
        m = self.n_splits
        depths = np.zeros(self.n_nodes, dtype=np.int32)
        level, depth = np.zeros(min(m, 1), dtype=np.int32), 0
        while level.size:
            depth += 1
            below = self.children[level].ravel()
            depths[np.where(below >= 0, below, m + ~below)] = depth
            level = below[below >= 0]
        depths.flags.writeable = False
        return depths

    @property
    def depth(self) -> int:
        """Number of splits on the longest way from root to leaf."""
        return int(self.node_depths.max())

    def split(self, index: int) -> Split:
        """View one split: its terms, threshold, children and its ``condition`` in words."""
        if not 0 <= index < self.n_splits:
            raise IndexError(f"the tree has splits 0 to {self.n_splits - 1}, asked for {index}")
        return Split(self, int(index))

    # What it answers

    def apply(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Leaf number of each row, (n,) int32; ``n_jobs=-1`` uses all processors."""
        table = self.schema.read(X, who="ObliqueTree")
        router = self._router
        threads = 1 if n_jobs == 1 else _n_threads(n_jobs)
        leaves: np.ndarray
        try:
            if isinstance(table, np.ndarray):
                leaves = router.apply(table, threads)
            else:
                leaves = router.apply_csr(table.data, table.indices, table.indptr, threads)
        except ValueError as error:
            raise self._infinity_error(table) or error from None
        return leaves

    def predict(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Predict each row: its class label, or its value, (n,), or values, (n, k) for k > 1."""
        answers: np.ndarray = self._leaf_answers[self.apply(X, n_jobs=n_jobs)]
        return answers

    def predict_proba(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Class probabilities of each row, (n, k), in the order of ``classes``."""
        if self.task != "classification":
            raise TypeError(
                "predict_proba needs a classification tree; this one predicts numbers: use predict"
            )
        probabilities: np.ndarray = self.values[self.apply(X, n_jobs=n_jobs)]
        return probabilities

    def predict_one(self, x: Any) -> Any:
        """Predict one row: a 1-D array, a sequence in the order of the features, or a mapping.

        A float array of a table of numbers goes straight to the engine; anything else is read as
        carefully as a table with one row.

        Returns
        -------
        answer
            The class label, a float, or for several outputs a read-only array (k,).
        """
        try:
            return self._answers[self._leaf_of(x)]
        except (TypeError, ValueError):
            return self._answers[self._leaf_of_row(x)]

    def decision_path(self, X: Any, *, n_jobs: int | None = 1) -> csr_array:
        """Nodes visited by each row: 0/1 CSR (n, m + L), splits first, then leaves."""
        from scipy.sparse import csr_array

        leaves, inverse = np.unique(self.apply(X, n_jobs=n_jobs), return_inverse=True)
        paths = [self._path_to(leaf) for leaf in leaves.tolist()]
        lengths = np.array([path.size for path in paths], dtype=np.int64)
        indptr = np.concatenate([[0], np.cumsum(lengths[inverse])])
        indices = np.concatenate([paths[i] for i in inverse.tolist()])
        ones = np.ones(indices.size, dtype=np.uint8)
        return csr_array((ones, indices, indptr), shape=(inverse.size, self.n_nodes))

    @cached_property
    def _router(self) -> Router:
        from hardwood._native import Router

        # The engine computes in float32. A split may be multiplied by any positive number; by a
        # power of two, and nothing but the range changes: even 1e300 then fits.
        exponents = _exponents(self.weights, self.schema.column_scale, self.bias)
        return Router(
            self.schema.encoder,
            np.ldexp(self.weights, -exponents[:, None]),
            np.ldexp(self.bias, -exponents),
            self.children,
            self.n_leaves,
        )

    @cached_property
    def _leaf_of(self) -> Callable[[Any], int]:
        # Only in a table of numbers are the entries of an array what the engine takes; levels of
        # categories have to be looked up.
        if self.schema.is_numeric:
            leaf_of: Callable[[Any], int] = self._router.apply_one
            return leaf_of
        return _not_an_engine_row

    def _leaf_of_row(self, x: Any) -> int:
        if hasattr(x, "keys"):  # a mapping, or a pandas Series
            return int(self.apply([[_entry(x, name) for name in self.feature_names]])[0])
        if isinstance(x, np.ndarray):
            if x.ndim != 1:
                raise TableError(
                    f"predict_one takes one row, found an array of shape {x.shape}. "
                    "Use predict for several rows, or give one of them, as X[0]"
                )
            return int(self.apply(x[None, :])[0])
        if isinstance(x, str | bytes) or not hasattr(x, "__iter__"):
            raise TableTypeError(
                f"predict_one takes a row (array, list or mapping of names), found {x!r:.80}"
            )
        return int(self.apply([list(x)])[0])

    @cached_property
    def _answers(self) -> list[Any]:
        if self.classes is not None:
            return [self.classes[i] for i in self.values.argmax(axis=1).tolist()]
        if self.n_outputs == 1:
            return list(self.values[:, 0].tolist())
        return list(self.values)

    @cached_property
    def _leaf_answers(self) -> np.ndarray:
        if self.classes is not None:
            labels: np.ndarray = label_array(self.classes)[self.values.argmax(axis=1)]
            return labels
        return self.values[:, 0] if self.n_outputs == 1 else self.values

    @cached_property
    def _parents(self) -> np.ndarray:
        m = self.n_splits
        parents = np.full(self.n_nodes, -1, dtype=np.int32)
        nodes = np.where(self.children >= 0, self.children, m + ~self.children)
        parents[nodes] = np.arange(m, dtype=np.int32)[:, None]
        return parents

    def _path_to(self, leaf: int) -> np.ndarray:
        """Node numbers from the root to a leaf; increasing, because parents come first."""
        path = [self.n_splits + leaf]
        while path[-1] != 0 and self._parents[path[-1]] >= 0:
            path.append(int(self._parents[path[-1]]))
        return np.array(path[::-1], dtype=np.int64)

    def _infinity_error(self, table: Any) -> TableError | None:
        """Name the column and row of the first infinity, if there is one."""
        dense = isinstance(table, np.ndarray)
        entries = table if dense else table.data
        where = np.argwhere(np.isinf(entries))
        if where.size == 0:
            return None
        if dense:
            row, column = where[0].tolist()
        else:
            row = int(np.searchsorted(table.indptr, where[0, 0], side="right")) - 1
            column = int(table.indices[where[0, 0]])
        return TableError(
            f"column {self.feature_names[column]!r} holds infinity "
            f"({entries[tuple(where[0])]} at row {row}). Expected finite numbers; NaN marks a "
            "missing entry. Replace or clip such values."
        )

    # Other forms

    def to_text(
        self,
        *,
        max_depth: int | None = None,
        max_terms: int | None = 4,
        digits: int | None = 3,
    ) -> str:
        """Write the tree in words.

        Parameters
        ----------
        max_depth
            Levels of splits to write; deeper ones are counted, not shown. ``None`` writes all.
        max_terms
            Terms to write per split, the largest; the text says how many were left out.
            ``None`` writes all.
        digits
            Significant digits; ``None`` writes every number in full.
        """
        from hardwood.show.text import tree_text

        return tree_text(self, max_depth=max_depth, max_terms=max_terms, digits=digits)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        max_depth: int | None = 4,
        max_terms: int | None = 4,
        digits: int | None = 3,
        fontsize: float = 9.0,
    ) -> Axes:
        """Draw the tree with matplotlib.

        Without ``ax`` a figure of the size that the tree needs is made. In a given ``ax`` the
        drawing is scaled down to fit. Other arguments are as in :meth:`to_text`.
        """
        from hardwood.show.plot import plot_tree

        return plot_tree(
            self, ax, max_depth=max_depth, max_terms=max_terms, digits=digits, fontsize=fontsize
        )

    def simplify(self) -> ObliqueTree:
        """Drop what does not matter: see :func:`hardwood.model.rewrite.simplify`."""
        from hardwood.model.rewrite import simplify

        return simplify(self)

    def to_perfect(self, depth: int | None = None) -> ObliqueTree:
        """Expand to a perfect tree: see :func:`hardwood.model.rewrite.to_perfect`."""
        from hardwood.model.rewrite import to_perfect

        return to_perfect(self, self.depth if depth is None else depth)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree to a file, in whole or not at all: see :func:`hardwood.model.save`."""
        from hardwood.model.file import save

        save(self, path)

    def to_json(self) -> str:
        """Write the tree as JSON text, in full precision."""
        from hardwood.model.document import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> ObliqueTree:
        """Read what :meth:`to_json` wrote; ``ModelFileError`` says what is wrong otherwise."""
        from hardwood.model.document import from_json

        return from_json(text)

    # A frozen value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"an ObliqueTree is frozen: cannot set {name!r}; make a new tree instead"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an ObliqueTree is frozen: cannot delete {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObliqueTree):
            return NotImplemented
        return (
            all(
                np.array_equal(getattr(self, name), getattr(other, name))
                for name in ("children", "bias", "weights", "values")
            )
            and _same_counts(self.counts, other.counts)
            and (self.task, self.target_names) == (other.task, other.target_names)
            and _typed(self.classes) == _typed(other.classes)
            and self.schema == other.schema
            and self._record == other._record
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (
            self.weights,
            self.bias,
            self.children,
            self.values,
            self.counts,
            self.schema,
            self.task,
            self.classes,
            self.target_names,
            self._record,
        )

    def __repr__(self) -> str:
        what = "regression" if self.classes is None else f"{len(self.classes)} classes"
        return (
            f"ObliqueTree({what}, {self.n_features} features, depth {self.depth}, "
            f"{self.n_splits} splits, {self.n_leaves} leaves)"
        )


def heap_children(n_splits: int) -> np.ndarray:
    """Children of a perfect tree in heap order, (m, 2); ``n_splits`` is 0, 1, 3, 7, ..."""
    if n_splits & (n_splits + 1):
        raise ValueError(
            f"{n_splits} splits do not fill a perfect tree (0, 1, 3, 7, ...): give children"
        )
    nodes = 2 * np.arange(n_splits, dtype=np.int64)[:, None] + np.array([1, 2])
    children: np.ndarray = np.where(nodes < n_splits, nodes, ~(nodes - n_splits))
    return children.astype(np.int32)


def label_array(classes: Sequence[Label]) -> np.ndarray:
    """Labels as an array that keeps their types; mixed types, as an array of objects."""
    if len({type(label) for label in classes}) == 1:
        return np.asarray(classes)
    labels = np.empty(len(classes), dtype=object)
    labels[:] = classes
    return labels


def _exponents(weights: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Power of two that bounds the largest of a split's standardised weights and bias, (m,)."""
    terms = np.where(weights == 0, -9999, np.frexp(weights)[1] + np.frexp(scale)[1])
    exponents: np.ndarray = np.maximum(terms.max(axis=1, initial=-9999), np.frexp(bias)[1])
    return np.where((weights == 0).all(axis=1) & (bias == 0), 0, exponents)


def _n_threads(n_jobs: int | None) -> int:
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs must be a positive number of threads, or -1 for all processors")
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def _entry(row: Any, name: str) -> Any:
    try:
        return row[name]
    except KeyError:
        raise TableError(
            f"the row has no entry {name!r}, which the tree needs. It has: "
            f"{', '.join(repr(key) for key in list(row.keys())[:20])}. "
            "Give every feature; a missing one as None or NaN."
        ) from None


def _not_an_engine_row(x: Any) -> int:
    raise TypeError("rows with categories are read as a table")


def _same_counts(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    if a is None or b is None:
        return a is b
    return np.array_equal(a, b)


def _typed(classes: tuple[Label, ...] | None) -> tuple[tuple[type, Label], ...] | None:
    return None if classes is None else tuple((type(label), label) for label in classes)


def _rebuild(
    weights: np.ndarray,
    bias: np.ndarray,
    children: np.ndarray,
    values: np.ndarray,
    counts: np.ndarray | None,
    schema: Schema,
    task: Task,
    classes: tuple[Label, ...] | None,
    target_names: tuple[str, ...] | None,
    record: str,
) -> ObliqueTree:
    return ObliqueTree(
        weights,
        bias,
        children,
        values,
        schema=schema,
        task=task,
        counts=counts,
        classes=classes,
        target_names=target_names,
        record=strict_json.parse(record),
    )
