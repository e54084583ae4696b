"""The latent tree model with its predictor: the predictive form of `hardwood.nn.LatentTree`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from hardwood.model import engine, structure
from hardwood.model.base import Model, not_hard
from hardwood.model.cost import Flops, Operations
from hardwood.model.importances import Explained
from hardwood.model.kinds.tree import ObliqueTree
from hardwood.model.paths import child_nodes, visited_nodes
from hardwood.model.structure import Array, Link, TaskKind
from hardwood.model.views import Split
from hardwood.table import Schema
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from hardwood.model.edit.harden import HardeningCost

MAX_DEPTH = 16
ACTIVATIONS = ("linear", "elu")

# Rows are multiplied in blocks of this size, so that the order of BLAS sums does not depend on
# other rows.
_BLOCK = 64
_CHUNK = 4096
_FURTHEST = 2.0**64  # scales from the center, like soft ensembles


def _check_nodes(nodes: np.ndarray) -> None:
    """Check that node numbers form one tree."""
    if len(nodes) == 0 or nodes[0] != 0:
        raise ValueError("nodes must begin with the root, 0")
    if (nodes[1:] <= nodes[:-1]).any() or nodes[-1] >= 2 ** (MAX_DEPTH + 1) - 1:
        raise ValueError(f"nodes must ascend and be those of a tree of depth <= {MAX_DEPTH}")
    orphans = nodes[1:][~np.isin((nodes[1:] - 1) // 2, nodes)]
    if len(orphans):
        raise ValueError(f"nodes must hold the parent of each, but that of {orphans[0]} is missing")


class LatentTreeModel(Model):
    r"""A soft tree with a predictor on top of its traversals, in raw feature units.

    Node t has the reward :math:`q_t(x)`, the score of the least certain split on the path to it,
    and the traversal :math:`z_t(x) = \min(\max(q_t(x) + 1/2, 0), a_t)` [LT21, Proposition 1]. The
    prediction is :math:`\mathrm{link}(f(z(x), x))`. The activities a are part of the model, so that
    a prediction depends only on its row. Inactive nodes are not stored.

    The model is immutable, like all models.

    Parameters
    ----------
    nodes
        (A,) node numbers in the heap order of a perfect tree, ascending, with the root 0 first and
        the parent of every node: the children of t are 2t + 1 (left) and 2t + 2 (right).
    activity
        (A,) float64 in (0, 1], at most that of the parent.
    weights, bias
        (S, c) and (S,) float64, per column of the schema in raw units, of the splits that lead to
        these nodes, in ascending order: see `splits`.
    head_weights, head_bias
        Weights (out, in) and biases (out,) of the predictor's layers, flat, one after the other.
        The input of the first layer is z and, with `skip_connection`, the columns of the schema;
        the last layer has k scores.
    widths
        Number of outputs of all layers except the last; () for a linear predictor. ELU between
        layers.
    skip_connection
        Whether the row is an input of the predictor besides its traversals.
    activation
        ``"linear"``, or ``"elu"`` to apply an ELU to the scores of splits.
    schema
        How a table becomes the columns that the weights multiply.
    task, link, classes, target_names, record
        See `TreeEnsemble`.

    Raises
    ------
    ValueError, TypeError
        If the arrays do not form such a tree of finite numbers that matches the schema.

    Notes
    -----
    Predictions are computed by NumPy in float64; torch is not needed.
    """

    noun = "a latent tree"
    arrays = (
        Array("nodes", "A", is_whole=True, check=_check_nodes),
        Array("activity", "A"),
        Array("weights", "S c"),
        Array("bias", "S"),
        Array("head_weights", "H"),
        Array("head_bias", "B"),
    )
    options = ("widths", "skip_connection", "activation", "link")
    nodes: np.ndarray
    activity: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    head_weights: np.ndarray
    head_bias: np.ndarray
    widths: tuple[int, ...]
    skip_connection: bool
    activation: Literal["linear", "elu"]

    def __init__(
        self,
        nodes: Any,
        activity: Any,
        weights: Any,
        bias: Any,
        head_weights: Any,
        head_bias: Any,
        *,
        widths: Sequence[int] = (),
        skip_connection: bool = False,
        activation: Literal["linear", "elu"] = "linear",
        schema: Schema,
        task: TaskKind,
        link: Link | None = None,
        classes: Iterable[Any] | None = None,
        target_names: Iterable[str] | str | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> None:
        arrays = (nodes, activity, weights, bias, head_weights, head_bias)
        head = {"widths": widths, "skip_connection": skip_connection, "activation": activation}
        self._keep(arrays, schema, task, classes, target_names, record, link=link, **head)

    def _check(self) -> None:
        _check_activity(self.nodes, self.activity)
        self.__dict__["widths"] = _widths(self.widths)
        if not isinstance(self.skip_connection, bool):
            raise TypeError(
                f"skip_connection must be true or false, not {self.skip_connection!r:.80}"
            )
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation must be 'linear' or 'elu', not {self.activation!r:.80}")
        if self.n_outputs < 1 or (self.classes and self.n_outputs != len(self.classes)):
            wanted = "at least 1" if self.classes is None else str(len(self.classes))
            raise ValueError(
                f"head_bias leaves {plural(self.n_outputs, 'output')}, expected {wanted}"
            )
        n_weights = sum(n_in * n_out for n_in, n_out in self._layer_sizes)
        structure.check_shape("head_weights", self.head_weights, (n_weights,))
        structure.check_shape("weights", self.weights, (len(self.splits), None))
        self.__dict__["link"] = structure.score_link(self.link, self.task, "latent tree")
        _check_reach(self.weights, self.bias, self.schema)
        if self.link in structure.PROBABILITY_LINKS:
            self._check_head_reach()

    def _check_head_reach(self) -> None:
        """Check that the predictor's scores are finite, whatever the row."""
        largest = np.ones(self.n_nodes)  # traversals
        if self.skip_connection:
            largest = np.concatenate([largest, _furthest(self.schema)])
        with np.errstate(over="ignore", invalid="ignore"):
            for i, (weights, bias) in enumerate(self.layers):
                # An ELU is at least -1, and above 0 changes nothing.
                largest = np.abs(weights) @ np.maximum(largest, 1.0) + np.abs(bias)
                if not np.isfinite(largest).all():
                    raise ValueError(
                        f"head_weights and head_bias of layer {i} are too large: its output for a "
                        f"row {_FURTHEST:.3g} scales from the center is no float64"
                    )

    # Properties

    @cached_property
    def splits(self) -> np.ndarray:
        """The node numbers of splits, ascending: the parents of all other nodes."""
        return _splits(self.nodes)

    @property
    def n_splits(self) -> int:
        """Number of splits that are computed."""
        return len(self.bias)

    @property
    def n_nodes(self) -> int:
        """Number of active nodes, A."""
        return len(self.nodes)

    @property
    def n_leaves(self) -> int:
        """Number of active nodes without an active child."""
        return self.n_nodes - self.n_splits

    @property
    def n_outputs(self) -> int:
        """Number of classes, labels, or regression outputs, k."""
        return len(self.head_bias) - sum(self.widths)

    @property
    def depth(self) -> int:
        """Number of splits on the longest path from the root to an active node."""
        return int(self.nodes[-1] + 1).bit_length() - 1

    @property
    def hard_trees(self) -> tuple[ObliqueTree, ...]:
        """The tree of its splits, without predictions: see `routes`."""
        return (self._routes,)

    def hard(self, what: str) -> NoReturn:
        """Raise an error: the tree is soft; use `harden`."""
        raise not_hard(what, "a latent tree, which is soft: pass the result of its harden(X, y)")

    def plot(self, *_: Any, **__: Any) -> NoReturn:
        """Raise an error: the tree is soft; use `harden`."""
        self.hard("a plot")

    @property
    def _layer_sizes(self) -> list[tuple[int, int]]:
        """How many inputs and outputs each layer of the predictor has."""
        n_inputs = self.n_nodes + (self.schema.n_columns if self.skip_connection else 0)
        sizes = (n_inputs, *self.widths, self.n_outputs)
        return list(zip(sizes, sizes[1:], strict=False))

    @cached_property
    def layers(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """The predictor: weights (out, in) and biases (out,) of each layer."""
        made, w, b = [], 0, 0
        for n_in, n_out in self._layer_sizes:
            weights = self.head_weights[w : w + n_in * n_out].reshape(n_out, n_in)
            made.append((weights, self.head_bias[b : b + n_out]))
            w, b = w + n_in * n_out, b + n_out
        return tuple(made)

    def split(self, index: int) -> Split:
        """Return a view of a split, numbered as in `splits`; its scores are those before an ELU."""
        return self._routes.split(index)

    # Predictions

    def traversals(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Return the traversals z (n, A) float64: how much of each row passes each node."""
        return self._run(X, lambda columns: self._traversals(self._scores(columns)), n_jobs)

    def apply(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        """Return the number of the last active node on each row's hard path, (n,) int64.

        A row goes right if the score is at least 0, and stays at a node if the child on that side
        is not active.
        """
        return self._run(X, lambda columns: self._ends(self._scores(columns)), n_jobs)

    def outputs(self, X: Any, *, n_jobs: int | None = 1) -> np.ndarray:
        return engine.linked(self._run(X, self._head_scores, n_jobs), self.link, n_jobs)

    @property
    def _output_of(self) -> Callable[[Any], np.ndarray]:
        return engine.not_for_the_engine

    def _run(
        self, X: Any, function: Callable[[np.ndarray], np.ndarray], n_jobs: int | None = 1
    ) -> np.ndarray:
        """Read a table, and apply a function to its columns (n, c) float64 in blocks of rows."""

        def in_chunks(table: Any, n_threads: int) -> np.ndarray:
            chunks = [slice(i, i + _CHUNK) for i in range(0, table.shape[0], _CHUNK)]
            with ThreadPoolExecutor(n_threads) as threads:  # NumPy releases the GIL
                parts = threads.map(lambda rows: function(self._columns(table[rows])), chunks)
                return np.concatenate(list(parts))

        return engine.run(self.schema, X, in_chunks, n_jobs=n_jobs, who="LatentTreeModel")

    def _columns(self, table: Any) -> np.ndarray:
        furthest = _furthest(self.schema)
        with np.errstate(over="ignore"):
            raw = self.schema.encoder.encode(table) * self.schema.column_scale
        return np.clip(raw, -furthest, furthest)

    def _scores(self, columns: np.ndarray) -> np.ndarray:
        scores = times(columns, self.weights) + self.bias
        return elu(scores) if self.activation == "elu" else scores

    @cached_property
    def _ways(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For every node but the root: positions of its parent and of its split, and the side."""
        above = (self.nodes[1:] - 1) // 2
        place, own = np.searchsorted(self.nodes, above), np.searchsorted(self.splits, above)
        return place, own, np.where(self.nodes[1:] % 2 == 0, 1.0, -1.0)

    def _traversals(self, scores: np.ndarray) -> np.ndarray:
        place, own, sign = self._ways
        q = np.empty((len(scores), self.n_nodes))
        q[:, 0] = np.inf
        for i in range(1, self.n_nodes):  # parents come before their children
            np.minimum(q[:, place[i - 1]], sign[i - 1] * scores[:, own[i - 1]], out=q[:, i])
        q[:, 0] = 1.0
        return np.clip(q + 0.5, 0.0, self.activity)

    def _ends(self, scores: np.ndarray) -> np.ndarray:
        at = np.zeros(len(scores), dtype=np.int64)
        rows = np.arange(len(scores))
        for _ in range(self.depth):
            split = np.minimum(np.searchsorted(self.splits, at), max(self.n_splits - 1, 0))
            is_split = self.splits[split] == at
            child = 2 * at + 1 + (scores[rows, split] >= 0)
            place = np.minimum(np.searchsorted(self.nodes, child), self.n_nodes - 1)
            at = np.where(is_split & (self.nodes[place] == child), child, at)
        return at

    def _head_scores(self, columns: np.ndarray) -> np.ndarray:
        return self.predicted(self._traversals(self._scores(columns)), columns)

    def predicted(self, z: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the predictor's scores (n, k) for traversals (n, A) and columns (n, c)."""
        values = np.hstack([z, columns]) if self.skip_connection else z
        with np.errstate(over="ignore", invalid="ignore"):  # numbers may be infinite, as in leaves
            for i, (weights, bias) in enumerate(self.layers):
                values = times(elu(values) if i else values, weights) + bias
        return values

    def _explained(self) -> tuple[Explained]:
        return (Explained.of_tree(self._scores_at_leaves()),)

    def _scores_at_leaves(self) -> ObliqueTree:
        """Return `routes` with the scores of rows that are far from every split.

        The scores are linear functions of the columns. A nonlinear predictor is replaced by its
        tangent at the centers of the columns.
        """
        routes = self._routes
        left, right = child_nodes(routes.children).T
        passed = visited_nodes(routes.children, np.arange(routes.n_leaves)).astype(np.float64)
        z = self._traversals((passed[:, right] - passed[:, left]).toarray())
        values = self.predicted(z, np.zeros((len(z), self.schema.n_columns)))
        return routes.replace(values=values, leaf_weights=self._slopes(z))

    def _slopes(self, z: np.ndarray) -> np.ndarray | None:
        """Return the derivative of the scores by the columns, at their centers, (n, k, c)."""
        if not self.skip_connection:
            return None
        (first, bias), *further = self.layers
        values = z @ first[:, : self.n_nodes].T + bias
        slopes = np.broadcast_to(first[:, self.n_nodes :], (*values.shape, self.schema.n_columns))
        for weights, bias in further:
            slopes = weights @ (np.exp(np.minimum(values, 0.0))[:, :, None] * slopes)
            values = elu(values) @ weights.T + bias
        return slopes

    # Other forms

    def routes(self) -> ObliqueTree:
        """Return the hard tree of the model's splits, without predictions (all values are 0).

        A side without an active node is a leaf, too: rows that go there stay at the split.
        """
        return self._routes

    @cached_property
    def _routes(self) -> ObliqueTree:
        place = {int(t): i for i, t in enumerate(self.splits)}
        children = np.empty((self.n_splits, 2), dtype=np.int32)
        n_leaves = 0
        for t, i in place.items():
            for side in (0, 1):
                child = place.get(2 * t + 1 + side)
                children[i, side] = ~n_leaves if child is None else child
                n_leaves += child is None
        return ObliqueTree(
            self.weights,
            self.bias,
            children,
            np.zeros((self.n_splits + 1, self.n_outputs)),
            schema=self.schema,
            task="regression",
        )

    def harden(
        self,
        X: Any,
        y: Any = None,
        *,
        leaves: Literal["constant", "linear"] = "constant",
        sample_weight: Any = None,
    ) -> ObliqueTree:
        """Return a hard tree with the same splits and refitted leaves.

        Parameters
        ----------
        X
            Rows to fit the leaves to: the training rows.
        y
            Their targets. None: the model's own predictions.
        leaves
            ``"constant"``: means, or class frequencies. ``"linear"``: linear models of the row by
            ridge regression. For classes, labels, and numbers with the link exp, they are fitted to
            the model's scores instead of y.
        sample_weight
            (n,) at least 0; None for equal weights.

        Returns
        -------
        tree
            Simplified; `hardening_cost` compares it with this model.
        """
        from hardwood.model.edit.harden import hardened

        return hardened(self, X, y, leaves=leaves, sample_weight=sample_weight)

    def hardening_cost(
        self, tree: ObliqueTree, X: Any, y: Any, sample_weight: Any = None
    ) -> HardeningCost:
        """Compare the model with a hard tree (see `harden`) on rows with known targets."""
        from hardwood.model.edit.harden import compared

        z = self.traversals(X)
        ends = np.isin(self.nodes, self.splits, invert=True)
        reached = (z[:, ends] > 0).sum(axis=1)
        return compared(self, tree, X, y, sample_weight, reached=reached, n_leaves=self.n_leaves)

    def flops(self, X: Any = None) -> Flops:
        """Count the operations per prediction, of all splits and the predictor, for any row."""
        of_weights = np.count_nonzero(self.weights) + np.count_nonzero(self.head_weights)
        all_rows = Operations(float(of_weights), float(of_weights), float(2 * self.n_nodes))
        return Flops(all_rows, all_rows)

    def __repr__(self) -> str:
        head = "linear" if not self.widths else "-".join(map(str, self.widths))
        return (
            f"LatentTreeModel({self._outputs_text()}, {plural(self.n_features, 'feature')}, "
            f"{plural(self.n_nodes, 'active node')}, depth {self.depth}, {head} head)"
        )


def times(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return rows (n, c) times weights (m, c); the result of a row does not depend on others."""
    n, c = rows.shape
    padded = np.zeros((-(-n // _BLOCK) * _BLOCK, c))
    padded[:n] = rows
    product = padded.reshape(-1, _BLOCK, c) @ weights.T
    return product.reshape(len(padded), len(weights))[:n]


def elu(values: np.ndarray) -> np.ndarray:
    """Return the ELU of values: v above 0, and e^v - 1 below."""
    return np.where(values > 0, values, np.expm1(np.minimum(values, 0.0)))


def _splits(nodes: np.ndarray) -> np.ndarray:
    return np.unique((nodes[1:] - 1) // 2)


def _check_activity(nodes: np.ndarray, activity: np.ndarray) -> None:
    if (activity <= 0).any() or (activity > 1).any():
        raise ValueError("activity must lie in (0, 1]: nodes that are not active are left out")
    above = activity[np.searchsorted(nodes, (nodes[1:] - 1) // 2)]
    if (activity[1:] > above).any():
        raise ValueError("no node may be more active than its parent")


def _furthest(schema: Schema) -> np.ndarray:
    """(c,) how far from the center the numbers of a column may be; others count as this far."""
    with np.errstate(over="ignore"):
        return np.minimum(_FURTHEST * schema.column_scale, np.finfo(np.float64).max)


def _check_reach(weights: np.ndarray, bias: np.ndarray, schema: Schema) -> None:
    """Check that the scores of all splits are finite for every row."""
    with np.errstate(over="ignore", invalid="ignore"):
        reach = np.abs(weights) @ _furthest(schema) + np.abs(bias)
    if not np.isfinite(reach).all():
        split = int(np.argmin(np.isfinite(reach)))
        raise ValueError(
            f"weights and bias of split {split} are too large: its score for a row {_FURTHEST:.3g} "
            "scales from the center exceeds float64"
        )


def _widths(value: Any) -> tuple[int, ...]:
    if isinstance(value, str) or not all(
        isinstance(width, int | np.integer) and not isinstance(width, bool) and width > 0
        for width in value
    ):
        raise ValueError(f"widths must be whole numbers above 0, not {value!r:.80}")
    return tuple(int(width) for width in value)
