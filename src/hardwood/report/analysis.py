"""Why a model answers as it does, and where it goes wrong."""

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
N_FEATURES = 6  # whose partial dependence is found, unless some are named
_MAX_SHOWN = 10  # entries of a table in print
_MAX_PATHS = 5  # leaves whose paths are shown
_MAX_OUTPUTS = 6
_LEAST, _MOST = 2, 1000  # shuffles, and values of a grid


@dataclass(frozen=True, repr=False)
class Analysis(PlottedReport):
    """What a model relies on and where it errs, made by `analyze`.

    Attributes
    ----------
    what
        What is predicted, in words.
    n_rows
        Rows that count.
    metric, score
        What importance is measured in, and its value on the rows as they are.
    is_score
        Whether more of the metric is better.
    n_repeats
        How often each feature was shuffled.
    importance
        Of each feature or group, the most important first.
    dependence
        Partial dependence on the most important features, or those that were asked for.
    leaves, splits
        Nodes of the tree by how much more of the loss than of the rows falls to them.
    notes
        What a reader should know.
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
        """What was analyzed, on how many rows."""
        return f"Analysis: {self.what}, {plural(self.n_rows, 'row')}"

    @property
    def _change(self) -> str:
        return f"{'fall' if self.is_score else 'rise'} of {self.metric}"

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
            f"Importance: {self._change} ({format_number(self.score)}) when a feature is shuffled, "
            f"{plural(self.n_repeats, 'time')}",
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
            "Partial dependence: mean prediction when all rows have one value of a feature",
            ["feature", "prediction of", "lowest", "highest"],
            rows,
            text_columns=(0, 1, 2, 3),
        )

    def _nodes_grid(self, title: str, kind: str, nodes: tuple[NodeErrors, ...]) -> TextTable:
        shown = nodes[:_MAX_SHOWN]
        loss = {"accuracy": "error rate", "labels right": "error rate"}.get(self.metric, "loss")
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
        header = [kind, "rows", "of rows", loss, "of loss"]
        if kind == "split":
            header.append("asks")
            rows = [[*row, n.condition] for row, n in zip(rows, shown, strict=True)]
        more = len(nodes) - len(shown)
        return TextTable.of(
            f"{title}: those with more of the loss than of the rows come first",
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
        return Text("\n".join(lines), "Where the first of these are")

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
    seed: int | np.random.Generator = 0,
    n_jobs: int | None = 1,
) -> Analysis:
    """Find what a model relies on, and where in the tree its errors live.

    Parameters
    ----------
    model
        A tree, a forest, or a fitted estimator.
    X, y, sample_weight
        Rows with known answers, best not those that the model was learned from, as `evaluate`
        takes them.
    metric
        What importance and errors are measured in. Of classes: ``"accuracy"`` (the default),
        ``"log loss"``, ``"Brier score"``. Of labels: ``"labels right"`` (the default), ``"log
        loss"``, ``"Brier score"``. Of numbers: ``"R2"`` (the default), ``"MAE"``, ``"MSE"``.
    features
        Whose partial dependence to find; by default the six most important.
    groups
        Features that are shuffled together, by the group's name: ``{"place": ["north", "east"]}``.
    n_repeats
        How often each feature is shuffled.
    n_grid
        Values of a number that partial dependence is found at, between its 5 % and 95 % quantiles;
        all of them where there are not more. Levels are all tried.
    unknown_classes
        As of `evaluate`.
    seed
        Shuffles.
    n_jobs
        Threads to predict with.

    Notes
    -----
    A feature that others know as much of has little importance though the model uses it: shuffle
    such features in a group. Intervals count the chance of which rows were given, and of shuffling.
    """
    n_repeats = integer("n_repeats", n_repeats, _LEAST, _MOST)
    n_grid = integer("n_grid", n_grid, _LEAST, _MOST)
    n_jobs, rng = n_threads(n_jobs), generator(seed)
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
    """Whether each feature has a weight anywhere, (p,)."""
    used = {use.name for use in feature_use(model) if use.is_used}
    return np.array([name in used for name in model.feature_names])


def _chosen(
    model: Model, features: Sequence[str] | None, found: tuple[Importance, ...]
) -> list[int]:
    """Return the columns whose partial dependence is asked for."""
    names = list(model.feature_names)
    if features is None:
        ranked = [name for entry in found if entry.importance > 0 for name in entry.features]
        return [names.index(name) for name in ranked[:N_FEATURES]]
    if not isinstance(features, Iterable):
        raise TypeError(f"features must list names, got {features!r:.80}")
    features = [features] if isinstance(features, str) else list(features)
    for name in features:
        if name not in names:
            raise ValueError(f"features names {name!r:.80}, which is no feature of the model")
    return [names.index(name) for name in features]


def _notes(rows: ScoredRows, loss: float) -> list[str]:
    notes = rows.notes
    if loss == 0:
        notes.append("no row is answered wrongly: there are no errors to divide")
    if rows.model.hard_trees:
        where = "leaves and splits are those of single trees, the losses those of the forest"
        return [*notes, where] if rows.model.is_ensemble else notes
    if rows.model.is_ensemble:
        notes.append(
            "rows reach several leaves of a soft tree; harden() gives a forest whose leaves can be "
            "compared"
        )
    else:
        notes.append("leaves are compared of trees with two ways at every split alone")
    return notes


def _node_columns(nodes: tuple[NodeErrors, ...]) -> dict[str, list[Any]]:
    names = ("tree", "node", "depth", "rows", "share_of_rows", "loss", "share_of_loss")
    return columns_of(names, nodes) | {"where": [node.words for node in nodes]}
