"""The nearest change of mind: the smallest change of a row that makes a tree answer as wanted.

A leaf of an oblique tree is reached by the rows for which each split on the way to it has the right
sign: a polyhedron of at most `depth` half-spaces. The nearest row of every leaf with the wanted
answer is a small projection, done in the engine (native/explain/), and the nearest of all leaves is
the answer: no gradient, no sampling, and a proof where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np

from hardwood.explain.constraints import Constraints, deviations
from hardwood.explain.entries import dense_matrix, entry
from hardwood.explain.goal import Goal, Regions, other_classes, read_goal, regions_of
from hardwood.model import ObliqueTree, engine
from hardwood.model.base import model_of
from hardwood.model.outputs import answers
from hardwood.parameters import choice, integer, n_threads, real
from hardwood.table.restore import entries_of
from hardwood.text.frames import Backend, make_frame
from hardwood.text.numbers import format_quantity
from hardwood.text.terms import label_text

if TYPE_CHECKING:
    from hardwood._native import NearestChange

Norm = Literal["l2", "l1", "l0"]

_BLOCK = 2**22  # entries of a matrix to hold at a time
_WIDER = 8.0  # times the margin, where rounding errors spoiled it
_WIDEST = 1.0  # standard deviation: no rounding error is larger that a tree could be asked about


@dataclass(frozen=True)
class Move:
    """One feature that changes.

    ``step`` is what it counts: the size of the change times its weight, in standard deviations by
    default; for another level, its weight.
    """

    feature: str
    before: Any
    after: Any
    step: float
    words: str = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Change:
    """The smallest change of one row.

    Attributes
    ----------
    row
        Number of the row in the table.
    found
        Whether there is a change that leads to the wanted answer.
    is_exact
        Whether the search was complete: no smaller change exists, or none at all.
    distance
        0 where the answer is as wanted already; infinity where no change was found.
    moves
        What changes, the largest step first.
    x
        The changed row, by the names of the features; None where no change was found.
    leaf, prediction
        Where the changed row arrives, and what it is answered; None where no change was found.
    """

    row: int
    found: bool
    is_exact: bool
    distance: float
    moves: tuple[Move, ...]
    x: dict[str, Any] | None
    leaf: int | None
    prediction: Any

    def __str__(self) -> str:
        if not self.found:
            return "no change leads there" if self.is_exact else "no change was found"
        words = ", ".join(map(str, self.moves)) or "as it is"
        is_array = isinstance(self.prediction, np.ndarray | np.generic)
        return f"{words}: {self.prediction.tolist() if is_array else self.prediction!r}"


@dataclass(frozen=True, eq=False)
class Changes(Sequence[Change]):
    """The smallest changes of the rows of a table: a sequence of `Change`, and arrays of them all.

    Attributes
    ----------
    tree
        What was asked.
    norm
        How changes were measured.
    found, is_exact, distance
        (n,) as in `Change`.
    before, after
        (n, p) float64: the rows and the changed rows as the engine takes them, levels by their
        positions. A row for which no change was found stays as it was.
    leaf
        (n,) leaves that the changed rows reach; -1 where no change was found.
    outputs
        (n, k) what they are given there: probabilities or values.
    """

    tree: ObliqueTree
    norm: Norm
    constraints: Constraints = field(repr=False)
    found: np.ndarray
    is_exact: np.ndarray
    distance: np.ndarray
    before: np.ndarray
    after: np.ndarray
    leaf: np.ndarray
    outputs: np.ndarray
    predictions: np.ndarray

    @cached_property
    def X(self) -> np.ndarray:
        """The changed rows as a table that the model reads, (n, p).

        Float64, or objects where there are categories: levels, numbers, None where missing.
        """
        schema = self.tree.schema
        return self.after if schema.is_numeric else entries_of(schema, self.after)

    @cached_property
    def has_moved(self) -> np.ndarray:
        """Which features change, (n, p)."""
        return self._steps > 0

    @cached_property
    def _steps(self) -> np.ndarray:
        return self.constraints.steps(self.before, self.after)

    def _move(self, i: int, j: int) -> Move:
        schema, feature = self.tree.schema, self.tree.schema.features[j]
        before, after = (entry(schema, j, float(rows[i, j])) for rows in (self.before, self.after))
        if feature.levels:
            texts = [label_text(level) for level in (before, after)]
        else:
            # Digits enough for the smaller of what it varies by and what it moves by.
            fine = min(1 / self.constraints.cost[j], abs(after - before))
            texts = [format_quantity(x, feature.origin, 3, spread=fine) for x in (before, after)]
        words = f"{feature.name} {texts[0]} -> {texts[1]}"
        return Move(feature.name, before, after, float(self._steps[i, j]), words)

    def _change(self, i: int) -> Change:
        moved = sorted(np.flatnonzero(self.has_moved[i]).tolist(), key=lambda j: -self._steps[i, j])
        found = bool(self.found[i])
        entries = entries_of(self.tree.schema, self.after[i : i + 1])[0].tolist()
        return Change(
            row=i,
            found=found,
            is_exact=bool(self.is_exact[i]),
            distance=float(self.distance[i]),
            moves=tuple(self._move(i, j) for j in moved),
            x=dict(zip(self.tree.schema.names, entries, strict=True)) if found else None,
            leaf=int(self.leaf[i]) if found else None,
            prediction=self.predictions[i] if found else None,
        )

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, which: int) -> Change: ...
    @overload
    def __getitem__(self, which: slice) -> list[Change]: ...
    def __getitem__(self, which: int | slice) -> Change | list[Change]:
        places = range(len(self))[which]
        return (
            [self._change(i) for i in places] if isinstance(places, range) else self._change(places)
        )

    def __iter__(self) -> Iterator[Change]:
        return map(self._change, range(len(self)))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the changed rows column by column, then what is known of them.

        Further columns are ``(found)``, ``(is_exact)``, ``(distance)``, ``(leaf)`` and, but for
        several outputs, ``(prediction)``.
        """
        rows = self.X.tolist()
        table = {name: [row[j] for row in rows] for j, name in enumerate(self.tree.schema.names)}
        for name in ("found", "is_exact", "distance", "leaf"):
            table[f"({name})"] = getattr(self, name).tolist()
        if self.predictions.ndim == 1:
            told = zip(self.predictions.tolist(), self.found.tolist(), strict=True)
            table["(prediction)"] = [answer if found else None for answer, found in told]
        return table

    def to_frame(self, *, backend: Backend | None = None) -> Any:
        """Return `to_dict` as a data frame of pandas, polars or pyarrow: the first there is."""
        return make_frame(self.to_dict(), backend, purpose="Changes as a data frame")

    def __str__(self) -> str:
        lines = [f"row {change.row}: {change}" for change in self[:20]]
        more = len(self) - len(lines)
        return "\n".join([*lines, *([f"... and {more} more rows"] if more else [])])

    def __repr__(self) -> str:
        n, stay = len(self), int((self.distance == 0).sum())
        found = int(self.found.sum())
        return (
            f"Changes({n} rows, {self.norm}: {found - stay} changed, {stay} as wanted already, "
            f"{n - found} without a change)"
        )


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
    norm = choice("norm", norm, get_args(Norm))
    margin = real("margin", margin, 0, open_low=True)
    max_steps = integer("max_steps", max_steps, 1)
    constraints = Constraints.of(tree.schema, weights, fixed, bounds, integers)
    rows = _Rows.of(tree, X)
    low, high = constraints.boxes(rows.matrix)
    after, outputs = rows.matrix.copy(), rows.outputs()
    found, is_exact = np.zeros(len(after), dtype=bool), np.ones(len(after), dtype=bool)
    threads = n_threads(n_jobs)
    for goal, asked in _goals(tree, wanted, outputs):
        is_there = goal.holds(outputs[asked])
        found[asked[is_there]] = True
        search = _Search(tree, goal, constraints, norm, margin, max_steps, threads)
        for block in search.blocks(asked[~is_there]):
            part = _Rows(tree, rows.matrix[block])
            outcome = search.solve(part, low[block], high[block])
            after[block], found[block], is_exact[block] = outcome
    return _changes(tree, norm, constraints, rows.matrix, after, found, is_exact)


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


@dataclass(frozen=True, eq=False)
class _Search:
    """One goal, for many rows."""

    tree: ObliqueTree
    goal: Goal
    constraints: Constraints
    norm: Norm
    margin: float
    max_steps: int
    n_threads: int

    @cached_property
    def regions(self) -> Regions:
        """Where the goal is reached."""
        return regions_of(self.tree, self.goal)

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
            self.constraints.kind,
            schema.first_column,
            schema.n_levels,
            self.constraints.cost,
            self.constraints.may_become,
            regions.normals,
            regions.bias,
            regions.sizes(deviations(schema), margin),
            regions.first,
            regions.members,
        )


def _tree_of(model: Any) -> ObliqueTree:
    model = model_of(model).hard("an explanation")
    if isinstance(model, ObliqueTree):
        return model
    raise TypeError(
        f"nearest_change needs one tree, found a forest of {model.n_trees}: where its trees agree "
        "on an answer is not a small number of regions, so that no exact answer is at hand. Ask "
        "one of its trees (forest.trees[0]), or learn a single tree"
    )


def _goals(
    tree: ObliqueTree, wanted: Any, outputs: np.ndarray
) -> Iterator[tuple[Goal, np.ndarray]]:
    """Yield what is wanted, and of which rows."""
    if wanted is not None:
        yield read_goal(tree, wanted), np.arange(len(outputs))
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
    constraints: Constraints,
    before: np.ndarray,
    after: np.ndarray,
    found: np.ndarray,
    is_exact: np.ndarray,
) -> Changes:
    rows = _Rows(tree, after)
    outputs, steps = rows.outputs(), constraints.steps(before, after)
    distance = {
        "l2": np.sqrt(np.square(steps).sum(axis=1)),
        "l1": steps.sum(axis=1),
        "l0": (steps > 0).sum(axis=1).astype(np.float64),
    }[norm]
    return Changes(
        tree=tree,
        norm=norm,
        constraints=constraints,
        found=found,
        is_exact=is_exact,
        distance=np.where(found, distance, np.inf),
        before=before,
        after=after,
        leaf=np.where(found, rows.leaves(), -1).astype(np.int32),
        outputs=outputs,
        predictions=answers(outputs, tree.task, tree.classes),
    )
