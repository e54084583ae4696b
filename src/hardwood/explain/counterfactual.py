"""The nearest change of mind: the smallest change of a row that makes a tree answer as wanted.

A leaf of an oblique tree is reached by the rows for which each split on the way to it has the right
sign: a polyhedron of at most `depth` half-spaces. The nearest row of every leaf with the wanted
answer is a small projection, done in the engine (native/explain/), and the nearest of all leaves is
the answer: no gradient, no sampling, and a proof where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from hardwood.explain.changes import Changes, Norm
from hardwood.explain.constraints import Freedom, deviations
from hardwood.explain.entries import dense_matrix
from hardwood.explain.goal import Wanted, other_classes, read_wanted
from hardwood.explain.regions import Regions, regions_of
from hardwood.explain.subject import hard_model_of
from hardwood.model import ObliqueTree, engine
from hardwood.model.outputs import answers
from hardwood.model.structure import positive_number

if TYPE_CHECKING:
    from hardwood._native import NearestChange

_BLOCK = 2**22  # entries of a matrix to hold at a time
_WIDER = 8.0  # times the margin, where rounding errors spoiled it
_WIDEST = 1.0  # standard deviation: no rounding error is larger that a tree could be asked about


def nearest_change(
    model: Any,
    X: Any,
    *,
    wanted: Any = None,
    norm: Norm = "l2",
    weights: Mapping[Any, float] | None = None,
    fixed: Iterable[Any] = (),
    bounds: Mapping[Any, Any] | None = None,
    integers: Iterable[Any] = (),
    margin: float = 1e-6,
    max_steps: int = 20_000,
    n_jobs: int | None = 1,
) -> Changes:
    r"""Find the smallest change of each row that makes a tree answer as wanted.

    .. math:: \min_{x'} \|x' - x\| \quad\text{where the tree's answer to } x' \text{ is wanted}

    Exact: over all leaves with the wanted answer, each a polyhedron. Every row that is returned has
    been put to the tree, and is answered as wanted.

    Parameters
    ----------
    model
        A tree, or an estimator that has learned one. Not a forest: see Notes.
    X
        Rows to change.
    wanted
        A class, or several in a list; None for any class but the present one. Of a regression an
        interval ``(low, high)`` with its ends, None for an open end; of several outputs or labels a
        mapping or a list of intervals, or of 1 and 0, with None where any answer will do.
    norm
        ``"l2"``: the root of the sum of squared steps. ``"l1"``: the sum of steps, which moves few
        features. ``"l0"``: the number of features that move, and of all such changes the shortest.
        A *step* is the change of a number times its weight; another level counts its weight.
    weights
        By feature. Where nothing is said: one over the standard deviation in training, and 1 for
        another level.
    fixed
        Features that may not move.
    bounds
        By feature, where it may move: ``(low, high)``, None for an open end, numbers or dates; of a
        categorical feature the levels that may be chosen. A number that is outside already may
        stay, or come nearer to its bounds.
    integers
        Features that are whole numbers. True and false are, without being named.
    margin
        How far beyond every threshold a changed row must be, in standard deviations of the score:
        a row on the threshold itself would be at the mercy of rounding. Where it still is, the
        margin is widened for that row. Integers and levels may be on a threshold, and what was
        nearer to one already, on the right side, may stay there.
    max_steps
        Projections to make for one row. Numbers alone take at most one per leaf; whole numbers,
        categories and ``"l0"`` may take many. Where they run out, the best so far is returned, and
        ``is_exact`` is false.
    n_jobs
        Threads, by rows; -1 for all processors. The changes do not depend on it.

    Returns
    -------
    changes
        One `Change` per row.

    Raises
    ------
    TypeError
        For a forest or a soft ensemble, or an answer that the tree cannot give.
    ValueError, TableError
        For names, bounds or rows that do not fit; the message says which.

    Notes
    -----
    Missing entries stay missing, and none are made: there is no distance between something and
    nothing. Levels that training did not see are missing entries.

    The leaves of a forest's trees overlap in as many regions as there are combinations of them; an
    exact search of these is not small, and is refused. Ask one of ``forest.trees``, or learn one
    tree.

    Examples
    --------
    >>> from hardwood import ObliqueTree
    >>> from hardwood.explain import nearest_change
    >>> tree = ObliqueTree.of([[1.0, 1.0]], thresholds=[10.0], values=[[1, 0], [0, 1]],
    ...                       feature_names=["income", "savings"], classes=["no", "yes"])
    >>> change = nearest_change(tree, [[4.0, 2.0]], wanted="yes")[0]
    >>> print(change)
    income 4 -> 6, savings 2 -> 4: 'yes'
    >>> print(nearest_change(tree, [[4.0, 2.0]], wanted="yes", fixed=["savings"])[0])
    income 4 -> 8: 'yes'
    """
    tree = _tree_of(model)
    if norm not in get_args(Norm):
        raise ValueError(f"norm must be 'l2', 'l1' or 'l0', found {norm!r:.80}")
    margin = positive_number("margin", margin)
    if not isinstance(max_steps, int | np.integer) or max_steps < 1:
        raise ValueError(f"max_steps must be a positive integer, found {max_steps!r:.80}")
    freedom = Freedom.of(tree.schema, weights, fixed, bounds, integers)
    rows = _Rows.of(tree, X)
    low, high = freedom.boxes(rows.matrix)
    after, outputs = rows.matrix.copy(), rows.outputs()
    found, is_exact = np.zeros(len(after), dtype=bool), np.ones(len(after), dtype=bool)
    threads = engine.n_threads(n_jobs)
    for goal, asked in _goals(tree, wanted, outputs):
        is_there = goal.holds(outputs[asked])
        found[asked[is_there]] = True
        task = _Task(tree, goal, freedom, norm, margin, int(max_steps), threads)
        for block in task.blocks(asked[~is_there]):
            part = _Rows(tree, rows.matrix[block])
            after[block], found[block], is_exact[block] = task.solve(part, low[block], high[block])
    return _changes(tree, norm, freedom, rows.matrix, after, found, is_exact)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows as the engine takes them, (n, p) float64: levels by position, NaN where missing."""

    tree: ObliqueTree
    matrix: np.ndarray

    @classmethod
    def of(cls, tree: ObliqueTree, X: Any) -> _Rows:
        matrix = dense_matrix(tree.schema, X, "nearest_change")
        tree.apply(X)  # says which column holds infinity, if one does
        return cls(tree, np.array(matrix, dtype=np.float64))

    def leaves(self) -> np.ndarray:
        """Leaf of each row, (n,)."""
        return self.tree._router.apply(self.matrix, 1)

    def outputs(self) -> np.ndarray:
        """Return what the tree answers, (n, k)."""
        if self.tree.leaf_weights is None:
            constants: np.ndarray = self.tree.values[self.leaves()]
            return constants
        return self.tree._router.answer(self.tree._leaf_models, self.matrix, 1)

    def columns(self) -> np.ndarray:
        """Return the columns that splits weigh, (n, c), in float64."""
        schema = self.tree.schema
        columns = schema.encoder.encode(self.matrix).astype(np.float64)
        numbers = np.flatnonzero(schema.n_levels == 0)
        at = schema.first_column[numbers]
        values = self.matrix[:, numbers] - schema.column_center[at]
        columns[:, at] = np.where(np.isnan(values), 0.0, values)
        return columns

    def sides(self) -> np.ndarray:
        """Whether each row would go right at each split, met or not, (n, m) uint8.

        Asked of the engine, whose arithmetic decides on a threshold.
        """
        from hardwood._native import Router

        weights, bias, _ = engine.scaled_splits(self.tree)
        children = np.array([[-1, -2]], dtype=np.int32)
        sides = np.empty((len(self.matrix), bias.size), dtype=np.uint8)
        for i in range(bias.size):
            one = slice(i, i + 1)
            split = Router(self.tree.schema.encoder, weights[one], bias[one], children, 2)
            sides[:, i] = split.apply(self.matrix, 1)
        return sides


class _Task:
    """One question about many rows."""

    def __init__(
        self,
        tree: ObliqueTree,
        goal: Wanted,
        freedom: Freedom,
        norm: Norm,
        margin: float,
        max_steps: int,
        n_threads: int,
    ) -> None:
        self.tree, self.goal, self.freedom, self.norm = tree, goal, freedom, norm
        self.margin, self.max_steps, self.n_threads = margin, max_steps, n_threads
        self.regions: Regions = regions_of(tree, goal)

    def blocks(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Split rows into parts, of which everything there is to know fits into memory."""
        size = max(1, _BLOCK // (self.tree.n_splits + self.tree.schema.n_columns))
        return (rows[i : i + size] for i in range(0, rows.size, size))

    def solve(
        self, rows: _Rows, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return changed rows (n, p), which of them were found, and which outcomes are proven."""
        n, margin = len(rows.matrix), self.margin
        after, found, is_exact = rows.matrix.copy(), np.zeros(n, bool), np.ones(n, bool)
        if not len(self.regions):
            return after, found, is_exact
        columns, sides = rows.columns(), rows.sides()
        left, everywhere = np.arange(n), False
        while left.size and margin <= max(_WIDEST, self.margin):
            after[left], found[left], is_exact[left] = self._engine(margin).ask(
                rows.matrix[left],
                low[left],
                high[left],
                columns[left],
                sides[left],
                norm=self.norm,
                margin=margin,
                everywhere=everywhere,
                most_steps=self.max_steps,
                n_threads=self.n_threads,
            )
            there = self.goal.holds(_Rows(self.tree, after[left]).outputs())
            left = left[found[left] & ~there]
            margin, everywhere = margin * _WIDER, True
        after[left], found[left], is_exact[left] = rows.matrix[left], False, False
        return after, found, is_exact

    def _engine(self, margin: float) -> NearestChange:
        from hardwood._native import NearestChange

        schema, regions = self.tree.schema, self.regions
        return NearestChange(
            self.freedom.kind,
            schema.first_column,
            schema.n_levels,
            self.freedom.cost,
            self.freedom.may_become,
            regions.normals,
            regions.bias,
            regions.sizes(deviations(schema), margin),
            regions.first,
            regions.members,
        )


def _tree_of(model: Any) -> ObliqueTree:
    model = hard_model_of(model)
    if isinstance(model, ObliqueTree):
        return model
    raise TypeError(
        f"nearest_change needs one tree, found a forest of {model.n_trees}: where its trees agree "
        "on an answer is not a small number of regions, so that no exact answer is at hand. Ask "
        "one of its trees (forest.trees[0]), or learn a single tree"
    )


def _goals(
    tree: ObliqueTree, wanted: Any, outputs: np.ndarray
) -> Iterator[tuple[Wanted, np.ndarray]]:
    """Yield what is wanted, and of which rows."""
    if wanted is not None:
        yield read_wanted(tree, wanted), np.arange(len(outputs))
        return
    if tree.classes is None:
        raise TypeError(
            "any other answer is a change of mind about classes only. Say what is wanted: "
            + ("1, 0 or None for each label" if tree.task == "multilabel" else "(low, high)")
        )
    present = outputs.argmax(axis=1)
    for position in np.unique(present).tolist():
        yield other_classes(tree, position), np.flatnonzero(present == position)


def _changes(
    tree: ObliqueTree,
    norm: Norm,
    freedom: Freedom,
    before: np.ndarray,
    after: np.ndarray,
    found: np.ndarray,
    is_exact: np.ndarray,
) -> Changes:
    rows = _Rows(tree, after)
    outputs, steps = rows.outputs(), freedom.steps(before, after)
    distance = {
        "l2": np.sqrt(np.square(steps).sum(axis=1)),
        "l1": steps.sum(axis=1),
        "l0": (steps > 0).sum(axis=1).astype(np.float64),
    }[norm]
    return Changes(
        tree=tree,
        norm=norm,
        freedom=freedom,
        found=found,
        is_exact=is_exact,
        distance=np.where(found, distance, np.inf),
        before=before,
        after=after,
        leaf=np.where(found, rows.leaves(), -1).astype(np.int32),
        outputs=outputs,
        predictions=answers(outputs, tree.task, tree.classes),
    )
