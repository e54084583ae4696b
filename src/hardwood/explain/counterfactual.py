"""Counterfactuals: the smallest change to a row that gives it the wanted prediction.

The rows that reach a leaf of an oblique tree are those for which every split on the path has the
right sign: a polyhedron of at most `depth` half-spaces. To find the nearest point of such a leaf is
a small projection, which the engine computes (native/explain/). The nearest point over all leaves
with the wanted prediction is the counterfactual. The search uses no gradients and no sampling, and
it can prove that no counterfactual exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args, overload

import numpy as np

from hardwood.errors import ModelKindError
from hardwood.explain.constraints import WHOLE, Constraints, deviations
from hardwood.explain.goal import Goal, Regions, other_classes, read_goal, regions_of
from hardwood.explain.values import dense_matrix, value_of
from hardwood.model import ObliqueTree, engine
from hardwood.model.base import model_of
from hardwood.parameters import choice, integer, n_threads, real
from hardwood.table import Schema
from hardwood.table.restore import entries_of
from hardwood.text.frames import Backend, make_frame
from hardwood.text.numbers import format_quantity, plural
from hardwood.text.terms import label_text

Norm = Literal["l2", "l1", "l0"]

_BLOCK = 2**22  # values of a matrix to hold at a time
_WIDER = 8.0  # factor for the margin, where rounding errors were larger than it
_WIDEST = 1.0  # standard deviations: larger than any rounding error that matters
_MICROSECONDS = 1e6  # per second, the resolution of dates and durations
_COSTS = (1e-300, 1e300)  # the engine takes neither 0 nor infinity
_LITTLE = 1e-9  # more than the rounding error of a length, relative to it


@dataclass(frozen=True)
class FeatureChange:
    """The change of one feature.

    ``size`` is the change times the feature's weight; with default weights it is in standard
    deviations. A change of category has the size of its weight.
    """

    feature: str
    before: Any
    after: Any
    size: float
    text: str = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Counterfactual:
    """The smallest change to one row that gives it the wanted prediction.

    Attributes
    ----------
    row
        Position of the row in the table.
    found
        Whether a counterfactual was found.
    is_exact
        Whether the search was complete. If so, no smaller change exists; with ``found`` false, no
        counterfactual exists.
    distance
        Size of the whole change: 0 where the prediction was already as wanted, infinity where no
        counterfactual was found.
    changes
        The features that change, the largest change first.
    x
        The changed row, by feature name; None where no counterfactual was found.
    leaf, prediction
        The leaf that the changed row reaches and its prediction; None where no counterfactual was
        found.
    """

    row: int
    found: bool
    is_exact: bool
    distance: float
    changes: tuple[FeatureChange, ...]
    x: dict[str, Any] | None
    leaf: int | None
    prediction: Any

    def __str__(self) -> str:
        if not self.found:
            return (
                "no counterfactual exists"
                if self.is_exact
                else "no counterfactual found within max_steps"
            )
        text = ", ".join(map(str, self.changes)) or "no change needed"
        is_array = isinstance(self.prediction, np.ndarray | np.generic)
        return f"{text}: {self.prediction.tolist() if is_array else self.prediction!r}"


@dataclass(frozen=True, eq=False)
class Counterfactuals(Sequence[Counterfactual]):
    """The counterfactuals of a table's rows: a sequence of `Counterfactual`, and arrays.

    Attributes
    ----------
    tree
        The tree that predicts.
    norm
        How the size of a change was measured.
    found, is_exact, distance
        (n,) as in `Counterfactual`.
    before, after
        (n, p) float64: the rows and the changed rows, with categories as the positions of their
        levels. A row without a counterfactual is unchanged.
    leaf
        (n,) leaves that the changed rows reach; -1 where no counterfactual was found.
    outputs
        (n, k) probabilities or values that the tree predicts for the changed rows.
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
        """The changed rows as a table that the model can predict, (n, p).

        Float64 if all features are numbers. Otherwise an array of objects: numbers, categories,
        dates, durations, and None where a value is missing.
        """
        schema = self.tree.schema
        is_plain = schema.is_numeric and not _in_seconds(schema).any()
        return self.after if is_plain else entries_of(schema, self.after)

    @cached_property
    def has_changed(self) -> np.ndarray:
        """Which features change, (n, p)."""
        return self._sizes > 0

    @cached_property
    def _sizes(self) -> np.ndarray:
        return self.constraints.sizes(self.before, self.after)

    def _feature_change(self, i: int, j: int) -> FeatureChange:
        schema, feature = self.tree.schema, self.tree.schema.features[j]
        numbers = [float(rows[i, j]) for rows in (self.before, self.after)]
        before, after = (value_of(schema, j, number) for number in numbers)
        if feature.levels:
            texts = [label_text(level) for level in (before, after)]
        else:
            # Enough digits for the standard deviation and for the change, whichever is smaller.
            is_whole = self.constraints.kind[j] == WHOLE
            fine = min(1 / self.constraints.cost[j], abs(numbers[1] - numbers[0]))
            digits = None if is_whole else 3
            texts = [format_quantity(x, feature.origin, digits, spread=fine) for x in numbers]
        text = f"{feature.name} {texts[0]} -> {texts[1]}"
        return FeatureChange(feature.name, before, after, float(self._sizes[i, j]), text)

    def _counterfactual(self, i: int) -> Counterfactual:
        changed = np.flatnonzero(self.has_changed[i]).tolist()
        changed.sort(key=lambda j: -self._sizes[i, j])
        found = bool(self.found[i])
        entries = entries_of(self.tree.schema, self.after[i : i + 1])[0].tolist()
        return Counterfactual(
            row=i,
            found=found,
            is_exact=bool(self.is_exact[i]),
            distance=float(self.distance[i]),
            changes=tuple(self._feature_change(i, j) for j in changed),
            x=dict(zip(self.tree.schema.names, entries, strict=True)) if found else None,
            leaf=int(self.leaf[i]) if found else None,
            prediction=self.predictions[i] if found else None,
        )

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, which: int) -> Counterfactual: ...
    @overload
    def __getitem__(self, which: slice) -> list[Counterfactual]: ...
    def __getitem__(self, which: int | slice) -> Counterfactual | list[Counterfactual]:
        places = range(len(self))[which]
        if isinstance(places, range):
            return [self._counterfactual(i) for i in places]
        return self._counterfactual(places)

    def __iter__(self) -> Iterator[Counterfactual]:
        return map(self._counterfactual, range(len(self)))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the changed rows as columns, followed by columns that describe the result.

        These are ``(found)``, ``(is_exact)``, ``(distance)``, ``(leaf)`` and, for a model with one
        output, ``(prediction)``.
        """
        rows = self.X.tolist()
        table = {name: [row[j] for row in rows] for j, name in enumerate(self.tree.schema.names)}
        for name in ("found", "is_exact", "distance", "leaf"):
            table[f"({name})"] = getattr(self, name).tolist()
        if self.predictions.ndim == 1:
            pairs = zip(self.predictions.tolist(), self.found.tolist(), strict=True)
            table["(prediction)"] = [value if found else None for value, found in pairs]
        return table

    def to_frame(self, *, backend: Backend | None = None) -> Any:
        """Return `to_dict` as a data frame of pandas, polars or pyarrow: the first installed."""
        return make_frame(self.to_dict(), backend, purpose="Counterfactuals as a data frame")

    def __str__(self) -> str:
        lines = [f"row {one.row}: {one}" for one in self[:20]]
        more = len(self) - len(lines)
        return "\n".join([*lines, *([f"... and {plural(more, 'more row')}"] if more else [])])

    def __repr__(self) -> str:
        n, stay = len(self), int((self.distance == 0).sum())
        found = int(self.found.sum())
        return (
            f"Counterfactuals({plural(n, 'row')}, {self.norm}: {found - stay} changed, "
            f"{stay} already as wanted, {n - found} not found)"
        )


def counterfactual(
    model: Any,
    X: Any,
    *,
    wanted: Any = None,
    norm: Norm = "l2",
    weights: Mapping[Any, float] | None = None,
    fixed: Iterable[Any] = (),
    bounds: Mapping[Any, Any] | None = None,
    integers: Iterable[Any] | Literal["auto"] = "auto",
    margin: float = 1e-6,
    max_steps: int = 1_000,
    n_jobs: int | None = 1,
) -> Counterfactuals:
    r"""Find the smallest change to each row that gives it the wanted prediction.

    .. math:: \min_{x'} \|x' - x\| \quad\text{where the tree's prediction for } x' \text{ is wanted}

    The search is exact: it covers all leaves with the wanted prediction, each a polyhedron. The
    tree itself has confirmed the prediction of every row that is returned.

    Parameters
    ----------
    model
        A tree, or a fitted estimator whose model is one tree. Not a forest: see Notes.
    X
        Rows to change.
    wanted
        For classification, a class or a list of classes; None means any class but the predicted
        one. For regression, an interval ``(low, high)`` that includes its ends; None is an open
        end. For several targets, a mapping or a list of intervals; for labels, of 1 and 0. None
        accepts any prediction for that target.
    norm
        What to minimize. ``"l2"``: the root of the sum of squared change sizes. ``"l1"``: the sum
        of change sizes, which changes few features. ``"l0"``: the number of features that change;
        among those with the fewest, the smallest by ``"l2"``. The size of a change is its absolute
        value times the feature's weight; a change of category has the size of its weight.
    weights
        Weights by feature. Default: one over the standard deviation in training; 1 for a category.
    fixed
        Features that must not change.
    bounds
        Limits by feature: ``(low, high)`` with numbers or dates, None for an open end; for a
        categorical feature, the list of categories that may be chosen. A number that is already
        outside its bounds may stay or move toward them.
    integers
        Features that must stay whole numbers. ``"auto"``: those that held only whole numbers in
        training, unless a row of X has a fraction there. Boolean features always do.
    margin
        How far beyond every threshold a changed row must lie, in standard deviations of the score,
        so that rounding cannot undo the change. Where this is not enough, the margin is widened
        for that row. Splits on integers and categories alone need no margin, and a value that was
        already closer to a threshold, on the right side, may stay there.
    max_steps
        Largest number of projections per row. Continuous features alone need at most one per leaf;
        integers, categories and ``"l0"`` can need many, above all many integers with ``"l2"``. When
        they run out, the best result so far is returned with ``is_exact`` false.
    n_jobs
        Number of threads; -1 uses all processors. The result does not depend on it.

    Returns
    -------
    counterfactuals
        One `Counterfactual` per row.

    Raises
    ------
    ModelKindError
        For a forest or a soft ensemble.
    TypeError
        For a prediction that the tree cannot make.
    ValueError, TableError
        For names, bounds or rows that do not fit; the message says which.

    Notes
    -----
    Missing values stay missing and no value becomes missing, because the distance to a missing
    value is not defined. Categories that were not seen in training count as missing.

    Forests are refused: the leaves of their trees overlap in a number of regions that grows
    exponentially with the number of trees. Search one of ``forest.trees``, or learn a single tree.

    Examples
    --------
    >>> from hardwood import ObliqueTree
    >>> from hardwood.explain import counterfactual
    >>> tree = ObliqueTree.of([[1.0, 1.0]], thresholds=[10.0], values=[[1, 0], [0, 1]],
    ...                       feature_names=["income", "savings"], classes=["no", "yes"])
    >>> print(counterfactual(tree, [[4.0, 2.0]], wanted="yes")[0])
    income 4 -> 6, savings 2 -> 4: 'yes'
    >>> print(counterfactual(tree, [[4.0, 2.0]], wanted="yes", fixed=["savings"])[0])
    income 4 -> 8: 'yes'
    """
    tree = _tree_of(model)
    norm = choice("norm", norm, get_args(Norm))
    margin = real("margin", margin, 0, open_low=True)
    max_steps = integer("max_steps", max_steps, 1)
    rows = _Rows.of(tree, X)
    constraints = Constraints.of(tree.schema, weights, fixed, bounds, integers, rows.matrix)
    low, high = constraints.boxes(rows.matrix)
    after, outputs = rows.matrix.copy(), rows.outputs()
    found, is_exact = np.zeros(len(after), dtype=bool), np.ones(len(after), dtype=bool)
    threads = n_threads(n_jobs)
    for goal, members in _goals(tree, wanted, outputs):
        is_met = goal.holds(outputs[members])
        found[members[is_met]] = True
        search = _Search(tree, goal, constraints, norm, margin, max_steps, threads)
        for block in search.blocks(members[~is_met]):
            part = _Rows(tree, rows.matrix[block])
            outcome = search.solve(part, low[block], high[block])
            after[block], found[block], is_exact[block] = outcome
    return _counterfactuals(tree, norm, constraints, rows.matrix, after, found, is_exact)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows as the engine reads them, (n, p) float64: positions of levels, NaN where missing."""

    tree: ObliqueTree
    matrix: np.ndarray

    @classmethod
    def of(cls, tree: ObliqueTree, X: Any) -> _Rows:
        matrix = dense_matrix(tree.schema, X, "counterfactual")
        tree.apply(X)  # raises an error that names the column if one holds infinity
        return cls(tree, np.array(matrix, dtype=np.float64))

    def leaves(self) -> np.ndarray:
        """Leaf of each row, (n,)."""
        return self.tree._router.apply(self.matrix, 1)

    def outputs(self) -> np.ndarray:
        """Return the tree's outputs, (n, k)."""
        if self.tree.leaf_weights is None:
            constants: np.ndarray = self.tree.values[self.leaves()]
            return constants
        return self.tree._router.answer(self.tree._leaf_models, self.matrix, 1)

    def columns(self) -> np.ndarray:
        """Return the encoded columns that splits weigh, (n, c), in float64."""
        schema = self.tree.schema
        columns = schema.encoder.encode(self.matrix).astype(np.float64)
        numbers = np.flatnonzero(schema.n_levels == 0)
        at = schema.first_column[numbers]
        values = self.matrix[:, numbers] - schema.column_center[at]
        columns[:, at] = np.where(np.isnan(values), 0.0, values)
        return columns

    def sides(self) -> np.ndarray:
        """Whether each row would go right at each split, on its path or not, (n, m) uint8.

        The engine computes this, because its arithmetic decides for rows on a threshold.
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
    """The search for one goal, over many rows."""

    tree: ObliqueTree
    goal: Goal
    constraints: Constraints
    norm: Norm
    margin: float
    max_steps: int
    n_threads: int

    @cached_property
    def regions(self) -> Regions:
        """Regions where the goal holds."""
        return regions_of(self.tree, self.goal)

    def blocks(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Split row positions into blocks whose matrices fit into memory."""
        size = max(1, _BLOCK // (self.tree.n_splits + self.tree.schema.n_columns))
        return (rows[i : i + size] for i in range(0, rows.size, size))

    def solve(
        self, rows: _Rows, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return changed rows (n, p), which of them were found, and which results are proven."""
        n, margin = len(rows.matrix), self.margin
        after, found, is_exact = rows.matrix.copy(), np.zeros(n, bool), np.ones(n, bool)
        if not len(self.regions):
            return after, found, is_exact
        columns, sides = rows.columns(), rows.sides()
        left, everywhere = np.arange(n), False
        while left.size and margin <= max(_WIDEST, self.margin):
            after[left], found[left], is_exact[left] = self._nearest(
                rows.matrix[left],
                low[left],
                high[left],
                columns=columns[left],
                sides=sides[left],
                margin=margin,
                everywhere=everywhere,
            )
            is_met = self.goal.holds(_Rows(self.tree, after[left]).outputs())
            left = left[found[left] & ~is_met]
            margin, everywhere = margin * _WIDER, True
        after[left], found[left], is_exact[left] = rows.matrix[left], False, False
        return after, found, is_exact

    def _nearest(
        self, X: np.ndarray, low: np.ndarray, high: np.ndarray, **how: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return changed rows, which of them were found, and which results are proven.

        The shortest vector of integers takes long to find by its relaxations, which spread a change
        over all features. But k^2 >= |k| for integers, so that the least sum of squared costs,
        which is quickly found, is about as short. No shorter change has a part beyond its length.
        """
        constraints = self.constraints
        if self.norm != "l2" or not (constraints.kind == WHOLE).any():
            return self._solve(X, low, high, norm=self.norm, cost=constraints.cost, **how)
        with np.errstate(over="ignore", under="ignore"):
            squares = np.clip(np.square(constraints.cost), *_COSTS)
        first, found, _ = self._solve(X, low, high, norm="l1", cost=squares, **how)
        length = np.where(found, _length(constraints.sizes(X, first)), np.inf)
        reach = length[:, None] * (1 + _LITTLE) / constraints.cost
        low, high = np.fmax(low, X - reach), np.fmin(high, X + reach)
        second, is_found, is_exact = self._solve(
            X, low, high, norm="l2", cost=constraints.cost, **how
        )
        is_shorter = is_found & (_length(constraints.sizes(X, second)) < length)
        return np.where(is_shorter[:, None], second, first), found | is_found, is_exact

    def _solve(
        self,
        X: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        *,
        norm: Norm,
        cost: np.ndarray,
        columns: np.ndarray,
        sides: np.ndarray,
        margin: float,
        everywhere: bool,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from hardwood._native import CounterfactualSearch

        schema, regions = self.tree.schema, self.regions
        search = CounterfactualSearch(
            self.constraints.kind,
            schema.first_column,
            schema.n_levels,
            cost,
            self.constraints.may_become,
            regions.normals,
            regions.bias,
            regions.sizes(deviations(schema), margin),
            regions.first,
            regions.members,
        )
        after, found, is_exact = search.search(
            X,
            low,
            high,
            columns,
            sides,
            norm=norm,
            margin=margin,
            everywhere=everywhere,
            most_steps=self.max_steps,
            n_threads=self.n_threads,
        )
        is_rounded = (after != X) & _in_seconds(schema)
        after[is_rounded] = np.rint(after[is_rounded] * _MICROSECONDS) / _MICROSECONDS
        return after, found, is_exact


def _length(sizes: np.ndarray) -> np.ndarray:
    length: np.ndarray = np.sqrt(np.square(sizes).sum(axis=1))
    return length


def _in_seconds(schema: Schema) -> np.ndarray:
    """Whether each feature is a date or a duration, (p,)."""
    return np.array([feature.origin in ("date", "duration") for feature in schema.features])


def _tree_of(model: Any) -> ObliqueTree:
    model = model_of(model).hard("an explanation")
    if isinstance(model, ObliqueTree):
        return model
    raise ModelKindError(
        f"counterfactual needs a single tree, found a forest of {model.n_trees}: the leaves of its "
        "trees overlap in too many regions for an exact search. Pass one of its trees "
        "(forest.trees[0]), or learn a single tree"
    )


def _goals(
    tree: ObliqueTree, wanted: Any, outputs: np.ndarray
) -> Iterator[tuple[Goal, np.ndarray]]:
    """Yield each goal with the positions of its rows."""
    if wanted is not None:
        yield read_goal(tree, wanted), np.arange(len(outputs))
        return
    if tree.classes is None:
        raise TypeError(
            "wanted is required, because only a classifier has other classes to choose from. Pass "
            + ("1, 0 or None for each label" if tree.task == "multilabel" else "wanted=(low, high)")
        )
    predicted = tree.class_positions(outputs)
    for position in np.unique(predicted).tolist():
        yield other_classes(tree, position), np.flatnonzero(predicted == position)


def _counterfactuals(
    tree: ObliqueTree,
    norm: Norm,
    constraints: Constraints,
    before: np.ndarray,
    after: np.ndarray,
    found: np.ndarray,
    is_exact: np.ndarray,
) -> Counterfactuals:
    rows = _Rows(tree, after)
    outputs, sizes = rows.outputs(), constraints.sizes(before, after)
    distance = {
        "l2": _length(sizes),
        "l1": sizes.sum(axis=1),
        "l0": (sizes > 0).sum(axis=1).astype(np.float64),
    }[norm]
    return Counterfactuals(
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
        predictions=tree.predictions_for(outputs),
    )
