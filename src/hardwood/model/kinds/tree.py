"""The hard oblique tree: immutable arrays, routing and prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model import cost, engine, paths, structure
from hardwood.model.base import SingleTree
from hardwood.model.importances import Explained
from hardwood.model.structure import LINKS, Array, Link, TaskKind
from hardwood.model.views import LinearLeaf, Split
from hardwood.table import Schema

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from hardwood._native import LeafModels, Router
    from hardwood.model.cost import Flops
    from hardwood.model.edit.pruning_path import Complexity, PruningPath
    from hardwood.model.edit.readable import Readable


class ObliqueTree(SingleTree):
    r"""A hard oblique decision tree in raw feature units.

    A row ``x`` has the score

    .. math:: s_i(x) = b_i + \sum_{j\ \text{number}} w_{ij} (x_j - c_j)
              + \sum_{j\ \text{level or flag that is on}} w_{ij}

    at split ``i``, where a missing number adds nothing, and goes **right if** ``s_i(x) >= 0``. The
    prediction at leaf ``l`` are the values of the leaf or, in a tree with linear leaves, the link
    of the leaf's scores, which are computed like those of a split:

    .. math:: \mathrm{link}\Big(v_l + \sum_{j\ \text{number}} A_{lj} (x_j - c_j)
              + \sum_{j\ \text{level or flag that is on}} A_{lj}\Big)

    A tree is immutable: its arrays are read-only copies, it compares by value, and methods that
    change it return a new tree.

    Parameters
    ----------
    weights
        (m, c) float64, per column of the schema: per raw unit of a number, or for a level or a
        missing indicator.
    bias
        (m,) float64.
    children
        (m, 2) int32, left and right child: a split number, or ``-1 - l`` for leaf ``l``. Parents
        come before their children; split 0 is the root. ``m = 0`` is a single leaf.
    values
        (L, k) float64, the prediction at each leaf: class probabilities, label probabilities, or
        regression outputs. With ``leaf_weights``: its scores at the centers.
    schema
        How a table becomes the columns that the weights multiply.
    task
        ``"classification"``, ``"regression"`` or ``"multilabel"`` (k binary labels).
    counts
        (m + L,) weighted number of training samples at each split, then each leaf; optional.
    classes
        The k distinct labels of a classification tree.
    target_names
        Names of the targets: one for classification, k otherwise; optional.
    record
        JSON-compatible training record; optional.
    leaf_weights
        (L, k, c) float64, the weights of linear leaves per column of the schema, in raw units like
        ``weights``; None for constant leaves.
    link
        From the scores of linear leaves to outputs: ``"softmax"`` for classification,
        ``"identity"`` or ``"exp"`` for regression, ``"logistic"`` for multilabel tasks.
        ``"identity"`` for constant leaves.
    decision_weights
        (k,) float64 > 0: a classification tree predicts the class with the largest product of
        probability and weight; None for the most probable class. Probabilities do not depend on
        them.

    Raises
    ------
    ValueError, TypeError
        If the arrays do not form exactly one tree of finite numbers that matches the schema.

    Notes
    -----
    Rows are converted to float32 after their centers are subtracted, so that large offsets do not
    reduce the accuracy. Splits are scored in float32. Leaves are scored in float64, with an error
    of at most 6e-8 of the sum of the absolute terms. Predictions do not depend on other rows or on
    ``n_jobs``.
    """

    noun = "a tree"
    arrays = (
        Array("weights", "m c"),
        Array("bias", "m"),
        Array("children", "m 2", is_whole=True, check=structure.check_children),
        Array("values", "m+1 k"),
        Array("counts", "m+m+1", is_optional=True, check=structure.check_counts),
        Array("leaf_weights", "m+1 k c", is_optional=True),
        Array("decision_weights", "k", is_optional=True, check=structure.check_decision_weights),
    )
    weights: np.ndarray
    bias: np.ndarray
    children: np.ndarray
    values: np.ndarray
    counts: np.ndarray | None
    leaf_weights: np.ndarray | None

    def __init__(
        self,
        weights: Any,
        bias: Any,
        children: Any,
        values: Any,
        *,
        schema: Schema,
        task: TaskKind,
        counts: Any = None,
        classes: Iterable[Any] | None = None,
        target_names: Iterable[str] | str | None = None,
        record: Mapping[str, Any] | None = None,
        leaf_weights: Any = None,
        link: Link = "identity",
        decision_weights: Any = None,
    ) -> None:
        arrays = (weights, bias, children, values, counts, leaf_weights, decision_weights)
        self._keep(arrays, schema, task, classes, target_names, record, link=link)

    def _check(self) -> None:
        is_linear = self.has_linear_leaves
        structure.check_values(self.values, self.task, self.classes, are_scores=is_linear)
        structure.check_link(self.link, self.task, has_linear_leaves=is_linear)
        if self.leaf_weights is not None and self.link in structure.PROBABILITY_LINKS:
            structure.check_leaf_weights(self.leaf_weights, self.schema.column_scale)
        if self.decision_weights is not None and self.task != "classification":
            raise ValueError(f"decision_weights are for classes, but this is a {self.task} tree")

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
        task: TaskKind | None = None,
        classes: Iterable[Any] | None = None,
        counts: Any = None,
        target_names: Iterable[str] | str | None = None,
        record: Mapping[str, Any] | None = None,
        leaf_weights: Any = None,
        link: Link | None = None,
        decision_weights: Any = None,
    ) -> ObliqueTree:
        """Create a tree from plain arrays.

        Pass ``thresholds`` (a split is ``w.x >= t``) or ``bias``. Without ``children``, the tree is
        perfect and in heap order: split ``i`` has the children ``2i + 1`` and ``2i + 2``. Without
        ``schema``, every column is a number. Without ``task``, it is a classification tree if there
        are ``classes``, and otherwise a regression tree; its ``values`` may be a list with one
        number per leaf, and its ``leaf_weights`` one row per leaf. Without ``link``, linear leaves
        have the link of the task: softmax, identity or logistic.

        Examples
        --------
        >>> from hardwood import ObliqueTree
        >>> tree = ObliqueTree.of([[0.8, -1.1]], thresholds=[2.3], values=[[1, 0], [0, 1]],
        ...                       feature_names=["length", "width"], classes=["no", "yes"])
        >>> tree.split(0).condition
        '1.1*width - 0.8*length <= -2.3'
        >>> tree.predict([[5.0, 1.0], [1.0, 1.0]]).tolist()
        ['yes', 'no']
        >>> tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 1.0],
        ...                       leaf_weights=[[-1.0], [2.0]])
        >>> tree.predict([[-3.0], [3.0]]).tolist()
        [3.0, 7.0]
        """
        weights = np.atleast_2d(np.asarray(weights))
        names = None if feature_names is None else list(feature_names)
        if schema is None:
            schema = Schema.numeric(weights.shape[1], names)
        elif names is not None:
            raise ValueError("give feature_names or a schema, which has names of its own; not both")
        task = task or ("regression" if classes is None else "classification")
        values = np.asarray(values)
        if values.ndim == 1 and classes is None:
            values = values[:, None]
            if leaf_weights is not None and np.ndim(leaf_weights) == 2:
                leaf_weights = np.asarray(leaf_weights)[:, None, :]
        if link is None:
            link = "identity" if leaf_weights is None else LINKS.get(task, ("identity",))[0]
        return cls(
            weights,
            _bias(weights, schema, thresholds, bias),
            heap_children(weights.shape[0]) if children is None else children,
            values,
            schema=schema,
            task=task,
            counts=counts,
            classes=classes,
            target_names=target_names,
            record=record,
            leaf_weights=leaf_weights,
            link=link,
            decision_weights=decision_weights,
        )

    # Properties

    @property
    def n_splits(self) -> int:
        """Number of internal nodes, m."""
        return int(self.weights.shape[0])

    @property
    def n_leaves(self) -> int:
        """Number of leaves, L."""
        return int(self.values.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of columns of ``values``: classes, labels, or regression outputs."""
        return int(self.values.shape[1])

    @property
    def n_weights(self) -> int:
        """Number of nonzero weights, of splits and of linear leaves."""
        return int(cost.node_weights(self).sum())

    @property
    def has_linear_leaves(self) -> bool:
        """Whether leaves predict by a linear model of the row instead of a constant."""
        return self.leaf_weights is not None

    @property
    def hard_trees(self) -> tuple[ObliqueTree, ...]:
        """The tree itself."""
        return (self,)

    def hard(self, what: str) -> ObliqueTree:
        """Return the tree itself."""
        return self

    def _explained(self) -> tuple[Explained]:
        return (Explained.of_tree(self),)

    @cached_property
    def thresholds(self) -> np.ndarray:
        """Thresholds in raw units, (m,): without missing values, right is ``w.x >= t``."""
        thresholds: np.ndarray
        with np.errstate(over="ignore", invalid="ignore"):
            thresholds = self.weights @ self.schema.column_center - self.bias
        thresholds.flags.writeable = False
        return thresholds

    @cached_property
    def node_depths(self) -> np.ndarray:
        """Depth of each split, then of each leaf, (m + L,); the root has depth 0."""
        return paths.node_depths(self.children)

    def split(self, index: int) -> Split:
        """Return a view of one split: its terms, threshold, children and ``condition`` as text."""
        if not 0 <= index < self.n_splits:
            raise IndexError(f"the tree has splits 0 to {self.n_splits - 1}, got {index}")
        return Split(self, int(index))

    def linear_leaf(self, index: int, output: int = 0) -> LinearLeaf:
        """Return a view of one output of a linear leaf: its terms and ``formula`` as text."""
        if self.leaf_weights is None:
            raise TypeError("the leaves of this tree are constant: look at values[leaf]")
        for what, i, n in (("leaves", index, self.n_leaves), ("outputs", output, self.n_outputs)):
            if not 0 <= i < n:
                raise IndexError(f"the tree has {what} 0 to {n - 1}, got {i}")
        return LinearLeaf(self, int(index), int(output))

    # Predictions

    def apply(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Return the leaf number of each row, (n,) int32; ``n_jobs=-1`` uses all processors."""
        return engine.run(self.schema, X, self._router.apply, n_jobs=n_jobs, who="ObliqueTree")

    def decision_path(self, X: Any, *, n_jobs: int | None = 1) -> csr_array:
        """Return the nodes visited by each row: 0/1 CSR (n, m + L), splits first, then leaves."""
        return paths.visited_nodes(self.children, self.apply(X, n_jobs=n_jobs))

    @cached_property
    def _router(self) -> Router:
        return engine.packed_splits(self)

    @cached_property
    def _leaf_models(self) -> LeafModels:
        return engine.packed_leaves(self)

    @cached_property
    def _output_of(self) -> Callable[[Any], np.ndarray]:
        if not self.schema.is_numeric:
            return engine.not_for_the_engine
        answer_one = partial(self._router.answer_one, self._leaf_models)
        # The engine applies the link of linear leaves itself.
        return engine.one_row_outputs(answer_one, self.n_outputs, "identity")

    def outputs(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        if self.leaf_weights is None:
            outputs: np.ndarray = self.values[self.apply(X, n_jobs=n_jobs)]
            return outputs
        answer = partial(self._router.answer, self._leaf_models)
        return engine.run(self.schema, X, answer, n_jobs=n_jobs, who="ObliqueTree")

    # Other forms

    def flops(self, X: Any = None) -> Flops:
        return cost.tree_flops(self, X)

    def simplify(self) -> ObliqueTree:
        """Remove splits without effect: see :func:`hardwood.model.edit.rewrite.simplify`."""
        from hardwood.model.edit.rewrite import simplify

        return simplify(self)

    def to_perfect(self, depth: int | None = None) -> ObliqueTree:
        """Expand to a perfect tree: see :func:`hardwood.model.edit.rewrite.to_perfect`."""
        from hardwood.model.edit.rewrite import to_perfect

        return to_perfect(self, self.depth if depth is None else depth)

    def with_threshold(self, threshold: float) -> ObliqueTree:
        """Return the tree that predicts the second class where it is likelier than a threshold.

        Parameters
        ----------
        threshold
            Between 0 and 1: the probability of the second of two classes that it must exceed.

        Raises
        ------
        ValueError
            If there are not two classes, or the threshold is not between 0 and 1.
        """
        if self.n_outputs != 2 or self.classes is None:
            raise ValueError(
                f"a threshold is for two classes, but this tree predicts {self._outputs_text()}"
            )
        if not 0 < threshold < 1:  # NaN is not
            raise ValueError(f"threshold must be between 0 and 1, got {threshold!r:.80}")
        return self.replace(decision_weights=[threshold, 1 - threshold])

    def prune(
        self,
        X: Any,
        y: Any = None,
        *,
        alpha: float | None = None,
        validation: tuple[Any, ...] | None = None,
        min_samples: float = 0.0,
        sample_weight: Any = None,
        criterion: Any = None,
        complexity: Complexity = "leaves",
        one_standard_error: bool = False,
    ) -> ObliqueTree:
        """Make the tree smaller: see `hardwood.model.edit.prune`.

        ``prune(X)`` removes nodes that no row reaches. ``prune(X, y, alpha=0.01)`` also removes
        splits that reduce the loss by less than alpha per leaf, and
        ``prune(X, y, validation=(X_valid, y_valid))`` those that do not help on validation rows.
        """
        from hardwood.model.edit import prune

        return prune(
            self,
            X,
            y,
            alpha=alpha,
            validation=validation,
            min_samples=min_samples,
            sample_weight=sample_weight,
            criterion=criterion,
            complexity=complexity,
            one_standard_error=one_standard_error,
        )

    def prune_path(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        criterion: Any = None,
        complexity: Complexity = "leaves",
    ) -> PruningPath:
        """Return all optimal prunings: see `hardwood.model.edit.cost_complexity_path`."""
        from hardwood.model.edit import cost_complexity_path

        return cost_complexity_path(
            self, X, y, sample_weight=sample_weight, criterion=criterion, complexity=complexity
        )

    def sparsify(self, X: Any, *, tolerance: float = 0.0, sample_weight: Any = None) -> ObliqueTree:
        """Remove terms of splits that no row needs: see `hardwood.model.edit.sparsify`."""
        from hardwood.model.edit import sparsify

        return sparsify(self, X, tolerance=tolerance, sample_weight=sample_weight).tree

    def readable(self, X: Any, *, tolerance: float = 0.0, sample_weight: Any = None) -> Readable:
        """Rewrite splits with few terms and digits: see `hardwood.model.edit.readable.readable`."""
        from hardwood.model.edit.readable import readable

        return readable(self, X, tolerance=tolerance, sample_weight=sample_weight)

    def __repr__(self) -> str:
        return f"ObliqueTree({self._outputs_text()}, {self.shape_words})"


def _bias(weights: np.ndarray, schema: Schema, thresholds: Any, bias: Any) -> Any:
    if (thresholds is None) == (bias is None):
        raise ValueError(
            "give thresholds (w.x >= threshold) or bias (w.x + bias >= 0), one of the two"
        )
    if thresholds is None:
        return bias
    right_sides = structure.float_array("thresholds", thresholds, (weights.shape[0],))
    return weights @ schema.column_center - right_sides


def heap_children(n_splits: int) -> np.ndarray:
    """Return the children of a perfect tree in heap order, (m, 2); m is 0, 1, 3, 7, ..."""
    if n_splits & (n_splits + 1):
        raise ValueError(
            f"{n_splits} splits do not fill a perfect tree (0, 1, 3, 7, ...): give children"
        )
    nodes = 2 * np.arange(n_splits, dtype=np.int64)[:, None] + np.array([1, 2])
    children: np.ndarray = np.where(nodes < n_splits, nodes, ~(nodes - n_splits))
    return children.astype(np.int32)
