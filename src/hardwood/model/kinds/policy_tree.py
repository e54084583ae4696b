"""The policy tree: nodes with any number of children, chosen with probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from hardwood.model import cost, engine, paths, structure
from hardwood.model.base import SingleTree, not_hard
from hardwood.model.importances import Explained
from hardwood.model.structure import Array, Link, TaskKind
from hardwood.model.views import PolicySplit
from hardwood.table import Schema
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from hardwood._native import PolicyRouter
    from hardwood.model.cost import Flops
    from hardwood.model.kinds.tree import ObliqueTree

Path = Literal["greedy", "most_probable"]


class PolicyTree(SingleTree):
    r"""A decision tree whose nodes have any number of children, in raw feature units.

    A row x has, for moving to node i, the score

    .. math:: s_i(x) = b_i + \sum_{j\ \text{number}} w_{ij} (x_j - c_j)
              + \sum_{j\ \text{level or flag that is on}} w_{ij}

    where a missing number adds nothing. From a node p, the row moves to child i with probability

    .. math:: \pi(i \mid p, x) = \frac{\exp s_i(x)}{\sum_{i' : \mathrm{parent}(i') = p}
              \exp s_{i'}(x)}

    and the probability of a leaf is the product of those on the path to it. The prediction is the
    link of the scores of one leaf: the leaf at the end of the **greedy** path, which goes to the
    most probable child at every node, or the **most probable** leaf. The two may differ: the most
    probable leaf may be below a child that is not the most probable one.

    A tree is immutable: its arrays are read-only copies, it compares by value, and methods that
    change it return a new tree.

    Parameters
    ----------
    parents
        (N,) int32, the parent of each node. Node 0 is the root, whose parent is -1; parents come
        before their children. Nodes without children are the leaves, numbered in the order of
        nodes. ``[-1]`` is a single leaf.
    weights
        (N, c) float64, the weights of the score for moving to each node, per column of the schema:
        per raw unit of a number, or for a level or a missing indicator. 0 for the root.
    bias
        (N,) float64, the score if all numbers are at their centers and all indicators are 0; 0 for
        the root.
    scores
        (L, k) float64, the scores of the leaves, before the link.
    schema
        How a table becomes the columns that the weights multiply.
    task
        ``"classification"``, ``"regression"`` or ``"multilabel"`` (k binary labels).
    link
        From scores to outputs: ``"softmax"`` for classification, ``"identity"`` or ``"exp"`` for
        regression, ``"logistic"`` for multilabel tasks. By default the first for the task.
    counts
        (N,) weighted number of training samples at each node; optional.
    classes
        The k distinct labels, for classification.
    target_names
        Names of the targets: one for classification, k otherwise; optional.
    record
        JSON-compatible training record; optional.

    Raises
    ------
    ValueError, TypeError
        If the arrays do not form exactly one tree of finite numbers that matches the schema; or if
        siblings differ by more than the maximum of float64.

    Notes
    -----
    On ties between children or leaves, the last one is taken: a tree with two children at every
    split goes right if :math:`s_{right} \ge s_{left}`, like `ObliqueTree`, and sends every row to
    the same leaf as `to_oblique`.

    Splits are scored in float32, as differences from the first child, and probabilities are
    computed from these in float64. Predictions do not depend on other rows or on ``n_jobs``.

    Examples
    --------
    >>> from hardwood.model import PolicyTree
    >>> from hardwood.table import Schema, encode_row
    >>> tree = PolicyTree([-1, 0, 0, 0], [[0.0], [-2.0], [0.0], [2.0]], [0.0, -1.0, 0.0, -1.0],
    ...                   [[10.0], [20.0], [30.0]], schema=Schema.numeric(1), task="regression")
    >>> tree.predict([[-4.0], [0.1], [4.0]]).tolist()
    [10.0, 20.0, 30.0]
    >>> tree.leaf_probabilities([[0.0]]).round(2).tolist()
    [[0.21, 0.58, 0.21]]
    """

    noun = "a policy tree"
    arrays = (
        Array("parents", "N", is_whole=True, check=structure.check_parents),
        Array("weights", "N c"),
        Array("bias", "N"),
        Array("scores", "L k"),
        Array("counts", "N", is_optional=True, check=structure.check_counts),
    )
    parents: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    scores: np.ndarray
    counts: np.ndarray | None

    def __init__(
        self,
        parents: Any,
        weights: Any,
        bias: Any,
        scores: Any,
        *,
        schema: Schema,
        task: TaskKind,
        link: Link | None = None,
        counts: Any = None,
        classes: Iterable[Any] | None = None,
        target_names: Iterable[str] | str | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> None:
        arrays = (parents, weights, bias, scores, counts)
        self._keep(arrays, schema, task, classes, target_names, record, link=link)

    def _check(self) -> None:
        n_leaves = self.n_nodes - np.unique(self.parents[1:]).size
        structure.check_shape("scores", self.scores, (n_leaves, None))
        if self.weights[0].any() or self.bias[0] != 0:
            raise ValueError(
                "weights[0] and bias[0] must be 0: the root is where rows begin, nothing moves "
                "there"
            )
        structure.check_values(self.scores, self.task, self.classes, are_scores=True, name="scores")
        self.__dict__["link"] = structure.score_link(self.link, self.task, "policy tree")
        self._check_differences()

    def _check_differences(self) -> None:
        for what, array in (("weights", self.relative_weights), ("bias", self.relative_bias)):
            bad = ~np.isfinite(array)
            if bad.any():
                node = int(np.argwhere(bad)[0, 0])
                raise ValueError(
                    f"the {what} of node {node} and of its sibling {self._first_sibling[node]} "
                    "differ by more than the maximum of float64"
                )

    # Properties

    @property
    def n_nodes(self) -> int:
        """Number of nodes, N."""
        return int(self.parents.size)

    @property
    def n_splits(self) -> int:
        """Number of internal nodes."""
        return self.n_nodes - self.n_leaves

    @property
    def n_leaves(self) -> int:
        """Number of leaves, L."""
        return int(self.scores.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of columns of ``scores``: classes, labels, or regression outputs."""
        return int(self.scores.shape[1])

    @property
    def n_weights(self) -> int:
        """Number of nonzero weights, relative to those of the first sibling."""
        return int(np.count_nonzero(self.relative_weights))

    def _full_sizes(self, height: Any = None) -> tuple[int, int, int]:
        """Count splits, leaves and weights of a policy tree with the same nodes, without zeros."""
        if height is not None:
            raise ValueError(
                f"for a policy tree, of must be the earlier tree; found {height!r:.80}"
            )
        n_rows = self.n_nodes - 1 - self.n_splits
        return self.n_splits, self.n_leaves, n_rows * self.schema.n_columns

    @property
    def hard_trees(self) -> tuple[ObliqueTree, ...]:
        """The oblique tree, if every split has two branches."""
        return (self.to_oblique(),) if self.is_binary else ()

    def hard(self, what: str) -> ObliqueTree:
        """Return the oblique tree, if every split has two branches."""
        if self.is_binary:
            return self.to_oblique()
        branches = self.n_children[self.split_nodes]
        raise not_hard(
            what,
            f"a policy tree with a split of {branches[branches != 2][0]}. Read it with to_text(), "
            "draw it with plot()",
        )

    def split_weights(self) -> Iterator[np.ndarray]:
        """Yield the absolute weight differences of the branches of each split."""
        sizes = np.zeros((self.n_nodes, self.schema.n_columns))
        np.add.at(sizes, self.parents[1:], np.abs(self.relative_weights[1:]))
        yield sizes[self.split_nodes]

    def _explained(self) -> tuple[Explained]:
        return (Explained.of_policy(self),)

    @cached_property
    def n_children(self) -> np.ndarray:
        """Number of children of each node, (N,) int32; 0 for leaves."""
        counts = np.bincount(self.parents[1:], minlength=self.n_nodes).astype(np.int32)
        return _read_only(counts)

    @property
    def max_children(self) -> int:
        """Maximum number of children of a node; 0 for a single leaf."""
        return int(self.n_children.max())

    @cached_property
    def leaf_nodes(self) -> np.ndarray:
        """Node of each leaf, (L,) int32."""
        return _read_only(np.flatnonzero(self.n_children == 0).astype(np.int32))

    @cached_property
    def split_nodes(self) -> np.ndarray:
        """Nodes that have children, (m,) int32, in the order of nodes."""
        return _read_only(np.flatnonzero(self.n_children).astype(np.int32))

    @property
    def split_numbers(self) -> Sequence[int]:
        """Numbers of the nodes that are splits."""
        numbers: list[int] = self.split_nodes.tolist()
        return numbers

    @cached_property
    def leaf_numbers(self) -> np.ndarray:
        """Number of each node among the leaves, (N,) int32; -1 for splits."""
        numbers = np.full(self.n_nodes, -1, dtype=np.int32)
        numbers[self.leaf_nodes] = np.arange(self.n_leaves, dtype=np.int32)
        return _read_only(numbers)

    def children(self, node: int) -> tuple[int, ...]:
        """Return the children of a node, in the order of nodes; empty for a leaf."""
        self._check_node(node)
        first = int(self._first_child[node])
        children: list[int] = self._siblings[first : first + int(self.n_children[node])].tolist()
        return tuple(children)

    def split(self, node: int) -> PolicySplit:
        """Return a view of an internal node: its branches with their scores."""
        self._check_node(node)
        if not self.n_children[node]:
            raise IndexError(f"node {node} is leaf {self.leaf_numbers[node]}, not a split")
        return PolicySplit(self, int(node))

    def _check_node(self, node: int) -> None:
        if not 0 <= node < self.n_nodes:
            raise IndexError(f"the tree has nodes 0 to {self.n_nodes - 1}, got {node}")

    @cached_property
    def node_depths(self) -> np.ndarray:
        """Depth of each node, (N,) int32; the root has depth 0."""
        depths = [0] * self.n_nodes
        for i, parent in enumerate(self.parents[1:].tolist(), start=1):
            depths[i] = depths[parent] + 1
        return _read_only(np.array(depths, dtype=np.int32))

    @cached_property
    def is_binary(self) -> bool:
        """Whether every internal node has two children, so that `to_oblique` works."""
        return bool((self.n_children[self.split_nodes] == 2).all())

    # Only differences between siblings matter: each node is compared with its first sibling.

    @cached_property
    def relative_weights(self) -> np.ndarray:
        """Weights of each node minus those of its first sibling, (N, c); 0 for the root."""
        with np.errstate(over="ignore"):
            return _read_only(self.weights - self.weights[self._first_sibling])

    @cached_property
    def relative_bias(self) -> np.ndarray:
        """Bias of each node minus that of its first sibling, (N,); 0 for the root."""
        with np.errstate(over="ignore"):
            return _read_only(self.bias - self.bias[self._first_sibling])

    @cached_property
    def _siblings(self) -> np.ndarray:
        """All nodes except the root, grouped by parent, (N - 1,) int32."""
        order = np.argsort(self.parents[1:], kind="stable").astype(np.int32)
        return _read_only(order + np.int32(1))

    @cached_property
    def _first_child(self) -> np.ndarray:
        """Where the children of each node begin in ``_siblings``, (N,)."""
        return _read_only(np.cumsum(self.n_children, dtype=np.int64) - self.n_children)

    @cached_property
    def _first_sibling(self) -> np.ndarray:
        """First child of each node's parent, (N,) int32; the root itself for the root."""
        first = np.zeros(self.n_nodes, dtype=np.int32)
        first[1:] = self._siblings[self._first_child[self.parents[1:]]]
        return _read_only(first)

    # Predictions

    def apply(self, X: Any, *, path: Path = "greedy", n_jobs: int | None = 1) -> np.ndarray:
        """Leaf number of each row, (n,) int32.

        Parameters
        ----------
        X
            Any table.
        path
            ``"greedy"``: the most probable child at every node, which takes O(depth).
            ``"most_probable"``: the most probable of all leaves, exactly, by best-first search. It
            scores the nodes that are at least as probable as that leaf: few if the tree is certain,
            all nodes in the worst case.
        n_jobs
            Number of threads; -1 uses all processors.
        """
        most_probable = _is_most_probable(path)
        router = self._router
        return engine.run(
            self.schema,
            X,
            lambda table, n: router.apply(table, most_probable, n),
            n_jobs=n_jobs,
            who="PolicyTree",
        )

    def leaf_probabilities(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Return the probability of each leaf for each row, (n, L) float64; scores all nodes."""
        probabilities = self._router.leaf_probabilities
        return engine.run(self.schema, X, probabilities, n_jobs=n_jobs, who="PolicyTree")

    def predict(self, X: Any, *, path: Path = "greedy", n_jobs: int | None = 1) -> np.ndarray:
        """Predict each row, from the leaf that `apply` finds with this ``path``.

        Returns
        -------
        predictions
            (n,) class labels, the first one on ties; (n,) values, or (n, k) if k > 1; or (n, k)
            int64 labels, 1 where the probability is at least 0.5.
        """
        decided: np.ndarray = self._leaf_predictions[self.apply(X, path=path, n_jobs=n_jobs)]
        return decided

    def predict_proba(self, X: Any, *, path: Path = "greedy", n_jobs: int | None = 1) -> np.ndarray:
        """Return the probabilities at the leaf that `apply` finds, (n, k): of classes or labels."""
        if self.task == "regression":
            return super().predict_proba(X, n_jobs=n_jobs)  # raises the error for regression
        outputs: np.ndarray = self.values[self.apply(X, path=path, n_jobs=n_jobs)]
        return outputs

    def decision_path(self, X: Any, *, path: Path = "greedy", n_jobs: int | None = 1) -> csr_array:
        """Return the nodes on the path of each row to its leaf: 0/1 CSR (n, N)."""
        leaves = self.apply(X, path=path, n_jobs=n_jobs)
        return paths.ways_to(self.parents, self.leaf_nodes[leaves])

    @cached_property
    def values(self) -> np.ndarray:  # type: ignore[override]  # read-only here
        """The outputs of each leaf, (L, k): the link of its scores."""
        return _read_only(engine.linked(self.scores.copy(), self.link, 1))

    @cached_property
    def _router(self) -> PolicyRouter:
        return engine.packed_policy(self)

    def outputs(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        outputs: np.ndarray = self.values[self.apply(X, n_jobs=n_jobs)]
        return outputs

    @cached_property
    def _output_of(self) -> Callable[[Any], np.ndarray]:
        leaf_of, values = self._leaf_of, self.values
        return lambda x: values[leaf_of(x)].copy()

    # Other forms

    def flops(self, X: Any = None) -> Flops:
        return cost.policy_flops(self, X)

    def to_oblique(self) -> ObliqueTree:
        """Convert a tree with two branches at every split to an oblique tree.

        It sends every row to the leaf of the greedy path, with the same prediction. Probabilities
        of leaves, and with them the most probable leaf, are lost.

        Raises
        ------
        ValueError
            If a node does not have exactly two children.
        """
        from hardwood.model.edit.rewrite import to_oblique

        return to_oblique(self)

    def simplify(self) -> PolicyTree:
        """Remove what the greedy path does not need: see `rewrite.simplify_policy`."""
        from hardwood.model.edit.rewrite import simplify_policy

        return simplify_policy(self)

    def _splits_text(self) -> str:
        splits = super()._splits_text()
        if self.is_binary:
            return splits
        return f"{splits} of up to {plural(self.max_children, 'branch', 'branches')}"

    def __repr__(self) -> str:
        return f"PolicyTree({self._outputs_text()}, {self.shape_words})"


def _is_most_probable(path: Any) -> bool:
    if path not in get_args(Path):
        raise ValueError(f"path must be 'greedy' or 'most_probable', not {path!r:.80}")
    return bool(path == "most_probable")


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
