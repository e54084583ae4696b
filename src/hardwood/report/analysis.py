"""Which features a model relies on, and where in the tree it makes errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model.base import Model, model_of
from hardwood.parameters import integer, n_threads
from hardwood.report.analysis_plots import draw, figure_size
from hardwood.report.dependence import Dependence, dependences
from hardwood.report.errors_by_node import NodeErrors, errors_by_node
from hardwood.report.feature_use import feature_use
from hardwood.report.importance import Importance, column_groups, importances
from hardwood.report.resampling import generator
from hardwood.report.row_losses import row_loss
from hardwood.report.scored_rows import ScoredRows, scored_rows
from hardwood.table.target import UnknownClasses
from hardwood.text.blocks import Block, Text, TextTable
from hardwood.text.frames import columns_of
from hardwood.text.numbers import (
    format_count,
    format_interval,
    format_number,
    format_percent,
    plural,
)
from hardwood.text.report import PlottedReport

if TYPE_CHECKING:
    from hardwood.text.report import Tables

N_REPEATS = 5
N_GRID = 20
N_FEATURES = 6  # with partial dependence, unless features are named
_MAX_SHOWN = 10  # rows of a table in print
_MAX_PATHS = 5  # leaves whose paths are shown
_MAX_OUTPUTS = 6
_LEAST, _MOST = 2, 1000  # shuffles, and values of a grid


@dataclass(frozen=True, repr=False)
class Analysis(PlottedReport):
    """Which features a model relies on and where it makes errors, made by `analyze`.

    Attributes
    ----------
    what
        What is predicted, as text.
    n_rows
        Rows with a positive weight.
    metric, score
        The metric that importance is measured by, and its value on the unchanged rows.
    is_score
        Whether a larger value of the metric is better.
    n_repeats
        How often each feature was shuffled.
    importance
        Importance of each feature or group, the largest first.
    dependence
        Partial dependence on the most important features, or on those that were named.
    leaves, splits
        Nodes of the tree, ordered by their share of the loss minus their share of the rows.
    notes
        Remarks for the reader.
    """

    what: str
    n_rows: int
    metric: str
    score: float
    is_score: bool
    n_repeats: int
    importance: tuple[Importance, ...]
    dependence: tuple[Dependence, ...]
    leaves: tuple[NodeErrors, ...]
    splits: tuple[NodeErrors, ...]
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """Task and number of rows."""
        return f"Analysis: {self.what}, {plural(self.n_rows, 'row')}"

    @property
    def _change(self) -> str:
        return f"{'decrease' if self.is_score else 'increase'} of {self.metric}"

    def _blocks(self) -> Sequence[Block]:
        blocks: list[Block] = [self._importance_grid()]
        if self.dependence:
            blocks.append(self._dependence_grid())
        if self.leaves and np.isfinite(self.leaves[0].share_of_loss):
            blocks += [self._nodes_grid("Leaves", "leaf", self.leaves), self._paths()]
            blocks += [self._nodes_grid("Splits", "split", self.splits)] if self.splits else []
        return [*blocks, *(Text(f"note: {note}") for note in self.notes)]

    def _importance_grid(self) -> TextTable:
        shown = self.importance[:_MAX_SHOWN]
        rows = [
            [i.name, format_number(i.importance), format_interval(i.low, i.high)] for i in shown
        ]
        more = len(self.importance) - len(shown)
        return TextTable.of(
            f"Permutation importance: {self._change} (now {format_number(self.score)}) when a "
            f"feature is shuffled, mean of {plural(self.n_repeats, 'shuffle')}",
            ["feature", "importance", "95 % interval"],
            rows,
            note=f"... and {plural(more, 'more feature')}" if more else "",
        )

    def _dependence_grid(self) -> TextTable:
        rows = []
        for entry in self.dependence:
            mean = np.array(entry.mean)
            shown = range(len(entry.outputs))[1:] if len(entry.outputs) == 2 else None
            for k in shown or range(min(len(entry.outputs), _MAX_OUTPUTS)):
                ends = [int(mean[:, k].argmin()), int(mean[:, k].argmax())]
                words = [f"{format_number(mean[i, k])} at {entry.labels[i]}" for i in ends]
                rows.append([entry.feature, entry.outputs[k], *words])
        return TextTable.of(
            "Partial dependence: mean prediction when a feature has the same value in all rows",
            ["feature", "prediction of", "lowest", "highest"],
            rows,
            text_columns=(0, 1, 2, 3),
        )

    def _nodes_grid(self, title: str, kind: str, nodes: tuple[NodeErrors, ...]) -> TextTable:
        shown = nodes[:_MAX_SHOWN]
        loss = {"accuracy": "error rate", "label accuracy": "error rate"}.get(self.metric, "loss")
        rows = [
            [
                n.name,
                format_count(n.rows),
                format_percent(n.share_of_rows),
                format_number(n.loss),
                format_percent(n.share_of_loss),
            ]
            for n in shown
        ]
        header = [kind, "rows", "share of rows", loss, "share of loss"]
        if kind == "split":
            header.append("condition")
            rows = [[*row, n.condition] for row, n in zip(rows, shown, strict=True)]
        more = len(nodes) - len(shown)
        return TextTable.of(
            f"{title}, worst first (by share of loss minus share of rows)",
            header,
            rows,
            text_columns=(0, 5),
            note=f"... and {more} more" if more else "",
        )

    def _paths(self) -> Text:
        lines = []
        for leaf in [n for n in self.leaves if n.excess > 0][:_MAX_PATHS]:
            first, *further = leaf.path or ("all rows",)
            lines += [f"  leaf {leaf.name}: {first}", *(f"      and {step}" for step in further)]
        return Text("\n".join(lines), "Paths to the first of these leaves")

    def _content(self) -> dict[str, Any]:
        content = asdict(self)
        del content["is_score"]
        return content

    def _tables(self) -> Tables:
        points = [
            (entry.feature, label, output, mean)
            for entry in self.dependence
            for label, means in zip(entry.labels, entry.mean, strict=True)
            for output, mean in zip(entry.outputs, means, strict=True)
        ]
        names = ("feature", "value", "output", "mean")
        dependence = {name: [point[i] for point in points] for i, name in enumerate(names)}
        return {
            "importance": columns_of(("name", "importance", "low", "high"), self.importance),
            "dependence": dependence,
            "leaves": _node_columns(self.leaves),
            "splits": _node_columns(self.splits),
        }

    _image_text = "Importance of features, loss by leaf, and partial dependence"
    _figure_size, _draw = figure_size, draw


def analyze(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    metric: str | None = None,
    features: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    n_repeats: int = N_REPEATS,
    n_grid: int = N_GRID,
    unknown_classes: UnknownClasses = "error",
    random_state: int | np.random.Generator = 0,
    n_jobs: int | None = 1,
) -> Analysis:
    """Find which features a model relies on, and where in the tree it makes errors.

    Parameters
    ----------
    model
        A tree, a forest, or a fitted estimator.
    X, y, sample_weight
        Rows with known targets, as for `evaluate`. Held-out rows are best.
    metric
        What importance and errors are measured by. For classes: ``"accuracy"`` (the default),
        ``"log loss"``, ``"Brier score"``. For labels: ``"label accuracy"`` (the default), ``"log
        loss"``, ``"Brier score"``. For regression: ``"R2"`` (the default), ``"MAE"``, ``"MSE"``.
    features
        Features to compute partial dependence for. Default: the six most important.
    groups
        Features to shuffle together, by name of the group: ``{"place": ["north", "east"]}``.
    n_repeats
        Number of shuffles per feature.
    n_grid
        Number of values of a numeric feature at which partial dependence is computed, between its
        5 % and 95 % quantiles; all distinct values if there are fewer. Categories are all used.
    unknown_classes
        Same as in `evaluate`.
    random_state
        Seed of the shuffles, or a generator.
    n_jobs
        Number of threads for prediction; -1 uses all processors.

    Notes
    -----
    Two features that carry the same information both get little importance, even if the model uses
    them. Shuffle such features as a group. The intervals include the chance in the choice of the
    rows and in the shuffles.
    """
    n_repeats = integer("n_repeats", n_repeats, _LEAST, _MOST)
    n_grid = integer("n_grid", n_grid, _LEAST, _MOST)
    n_jobs, rng = n_threads(n_jobs), generator(random_state)
    model = model_of(model)
    columns = column_groups(model.feature_names, groups)
    rows = scored_rows(model, X, y, sample_weight, unknown_classes=unknown_classes, n_jobs=n_jobs)
    loss = row_loss(rows, metric)
    used = _used(model)
    found = importances(rows, loss, columns, used, n_repeats=n_repeats, rng=rng, n_jobs=n_jobs)
    chosen = _chosen(model, features, found)
    losses = loss.of_rows(rows.truth, rows.outputs)
    leaves, splits = errors_by_node(rows, losses.mean(axis=1))
    return Analysis(
        what=model.target_words,
        n_rows=len(rows),
        metric=loss.metric,
        score=loss.value(losses, rows.weight),
        is_score=loss.is_score,
        n_repeats=n_repeats,
        importance=found,
        dependence=dependences(rows, chosen, n_grid=n_grid, n_jobs=n_jobs),
        leaves=leaves,
        splits=splits,
        notes=tuple(_notes(rows, float(losses.mean()))),
    )


def _used(model: Model) -> np.ndarray:
    """Whether each feature has a nonzero weight, (p,)."""
    used = {use.name for use in feature_use(model) if use.is_used}
    return np.array([name in used for name in model.feature_names])


def _chosen(
    model: Model, features: Sequence[str] | None, found: tuple[Importance, ...]
) -> list[int]:
    """Return the columns to compute partial dependence for."""
    names = list(model.feature_names)
    if features is None:
        ranked = [name for entry in found if entry.importance > 0 for name in entry.features]
        return [names.index(name) for name in ranked[:N_FEATURES]]
    if not isinstance(features, Iterable):
        raise TypeError(f"features must be a list of names, got {features!r:.80}")
    features = [features] if isinstance(features, str) else list(features)
    for name in features:
        if name not in names:
            raise ValueError(f"features names {name!r:.80}, which the model does not have")
    return [names.index(name) for name in features]


def _notes(rows: ScoredRows, loss: float) -> list[str]:
    notes = rows.notes
    if loss == 0:
        notes.append("all predictions are correct: there is no loss to divide among the nodes")
    if rows.model.hard_trees:
        where = "leaves and splits belong to single trees; the losses are those of the whole forest"
        return [*notes, where] if rows.model.is_ensemble else notes
    if rows.model.is_ensemble:
        notes.append(
            "no loss by leaf: a row reaches several leaves of a soft tree. harden() returns a "
            "forest of hard trees"
        )
    else:
        notes.append(
            "no loss by leaf: this is available for trees with two branches at every split only"
        )
    return notes


def _node_columns(nodes: tuple[NodeErrors, ...]) -> dict[str, list[Any]]:
    names = ("tree", "node", "depth", "rows", "share_of_rows", "loss", "share_of_loss")
    return columns_of(names, nodes) | {"where": [node.text for node in nodes]}
