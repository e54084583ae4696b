"""Learning curves: losses and other measurements, epoch by epoch.

The curves are part of the training record in the model file (``record["curves"]``: lists by name,
thinned to a few hundred points), so that they can be plotted at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import HardwoodError
from hardwood.model.base import Model, model_of
from hardwood.report.description import CURVES
from hardwood.report.plot_style import BLUE, GRAY, ORANGE, label, legend, name_axes
from hardwood.text.blocks import Block, TextTable
from hardwood.text.numbers import format_number, plural
from hardwood.text.report import PlottedReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hardwood.text.report import Tables

# Units of the horizontal axis; the first that a record has is used. Streams count steps.
_COUNTERS = ("epoch", "step")
_NAMES = {
    "train_loss": "training loss",
    "validation_loss": "validation loss",
    "train_bound": "bound on the training loss",
}
_LOSSES = {"train_loss": BLUE, "validation_loss": ORANGE}
_MAX_SHOWN = 10
_MAGNITUDES = 50.0
_MAX_DRAWN = 100  # trees whose lines can still be told apart


class NoLearningCurve(HardwoodError, ValueError):
    """The model's record has no learning curve."""


@dataclass(frozen=True)
class Curve:
    """The curve of one run.

    Attributes
    ----------
    tree
        Number of the tree in a forest, from 1; None where one run learned the whole model.
    counter, at
        What the points count, such as epochs, and the position of each point.
    series
        Measurements by name; None where a value was not finite.
    best
        Position of the point whose model was kept, if the record has it.
    """

    tree: int | None
    counter: str
    at: tuple[int, ...]
    series: dict[str, tuple[float | None, ...]]
    best: int | None

    @property
    def kept(self) -> int:
        """Position of the model that was kept: the best, or the last if no best is recorded."""
        return self.at[-1] if self.best is None else self.best

    def value(self, name: str, at: int) -> float:
        """Return the measurement at a position; NaN where there is none."""
        found = self.series[name][self.at.index(at)] if name in self.series else None
        return np.nan if found is None else found


@dataclass(frozen=True, repr=False)
class LearningCurves(PlottedReport):
    """The learning curves of a model, made by `learning_curves`.

    Attributes
    ----------
    what
        What is predicted, as text.
    curves
        One curve, or for a forest one per tree that has a curve.
    """

    what: str
    curves: tuple[Curve, ...]

    @property
    def title(self) -> str:
        """Task and number of runs."""
        of = plural(len(self.curves), "tree") if self.curves[0].tree is not None else "one run"
        return f"Learning curves: {self.what}, {of}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all measurements, losses first."""
        found = dict.fromkeys(name for curve in self.curves for name in curve.series)
        return tuple(sorted(found, key=lambda name: (name not in _LOSSES, name)))

    def _blocks(self) -> Sequence[Block]:
        return [self._run_grid() if len(self.curves) == 1 else self._trees_grid()]

    def _run_grid(self) -> TextTable:
        (curve,) = self.curves
        places = {"first": curve.at[0], "best": curve.kept, "last": curve.at[-1]}
        header = [curve.counter, *(f"{at} ({when})" for when, at in places.items())]
        rows = [
            [_words(name), *(format_number(curve.value(name, at)) for at in places.values())]
            for name in self.names
        ]
        return TextTable.of("Learning", header, rows)

    def _trees_grid(self) -> TextTable:
        counter = self.curves[0].counter
        header = ["tree", f"{counter}s", f"best {counter}", *map(_words, self.names)]
        rows = [
            [str(curve.tree), str(curve.at[-1]), str(curve.kept)]
            + [format_number(curve.value(name, curve.kept)) for name in self.names]
            for curve in self.curves[:_MAX_SHOWN]
        ]
        left_out = len(self.curves) - len(rows)
        more = f"... and {plural(left_out, 'more tree')}" if left_out else ""
        return TextTable.of(f"Learning: values at the best {counter}", header, rows, note=more)

    def _content(self) -> dict[str, Any]:
        return asdict(self)

    def _tables(self) -> Tables:
        counter = self.curves[0].counter
        table: dict[str, list[Any]] = {"tree": [], counter: [], **{n: [] for n in self.names}}
        for curve in self.curves:
            n = len(curve.at)
            table["tree"] += [curve.tree] * n
            table[counter] += curve.at
            for name in self.names:
                table[name] += curve.series.get(name, [None] * n)
        return {"curves": table}

    @property
    def _image_text(self) -> str:
        return f"Curves of {', '.join(map(_words, self.names))}"

    @property
    def _panels(self) -> list[list[str]]:
        """Names in each panel: losses together, every other measurement alone."""
        losses = [name for name in self.names if name in _LOSSES]
        return ([losses] if losses else []) + [[n] for n in self.names if n not in _LOSSES]

    def _figure_size(self) -> tuple[float, float]:
        return 7.0, 1.2 + 2.6 * len(self._panels)

    def _draw(self, figure: Figure) -> None:
        panels = figure.subplots(len(self._panels), 1, squeeze=False, sharex=True)[:, 0]
        for names, ax in zip(self._panels, panels, strict=True):
            for name in names:
                self._draw_series(name, ax)
            single = len(self.curves) == 1
            if single and self.curves[0].best is not None:
                kept = f"best {self.curves[0].counter}: {self.curves[0].best}"
                ax.axvline(self.curves[0].best, color=GRAY, linestyle="--", linewidth=1, label=kept)
            name_axes(ax, "", "", "loss" if names[0] in _LOSSES else _words(names[0]))
            if names[0] in _LOSSES and self._spans_magnitudes(names):
                ax.set_yscale("log")
            if ax is panels[0]:
                legend(ax)
        name_axes(panels[0], self.title, "", panels[0].get_ylabel())
        panels[-1].set_xlabel(self.curves[0].counter)

    def _spans_magnitudes(self, names: list[str]) -> bool:
        """Whether all losses are positive and differ so much that a log axis is needed."""
        values = [v for c in self.curves for name in names for v in c.series.get(name, ()) if v]
        return bool(values) and min(values) > 0 and max(values) > _MAGNITUDES * min(values)

    def _draw_series(self, name: str, ax: Any) -> None:
        color = _LOSSES.get(name, BLUE)
        drawn = [curve for curve in self.curves if name in curve.series][:_MAX_DRAWN]
        single = len(self.curves) == 1
        for i, curve in enumerate(drawn):
            values = [np.nan if v is None else v for v in curve.series[name]]
            style = {"linewidth": 1.5} if single else {"linewidth": 0.7, "alpha": 0.6}
            words = label(_words(name)) + ("" if single else ", each tree")
            ax.plot(curve.at, values, color=color, label=words if i == 0 else None, **style)


def learning_curves(model: Any) -> LearningCurves:
    """Return the learning curves from the record of a model.

    Parameters
    ----------
    model
        A tree, a forest, or a fitted estimator. Each tree of a forest has its own curve.

    Raises
    ------
    NoLearningCurve
        If the record has none: the model was built by hand, or its learner records none.
    """
    model = model_of(model)
    found = [_curve(model.record, None)]
    if model.is_ensemble and found[0] is None:
        found = [_curve(tree.record, i) for i, tree in enumerate(model.hard_trees, start=1)]
    curves = tuple(curve for curve in found if curve is not None)
    if not curves:
        raise NoLearningCurve(
            "the training record of this model has no learning curve: the model was built by hand, "
            "or its learner records none"
        )
    return LearningCurves(model.target_words, curves)


def has_learning_curve(model: Model) -> bool:
    """Whether the model has a learning curve."""
    records = [model.record, *(tree.record for tree in model.hard_trees)]
    return any(_curve(record, None) is not None for record in records)


def _curve(record: dict[str, Any], tree: int | None) -> Curve | None:
    """Read the curve from a record that may come from anywhere; None if it is not usable."""
    curves = record.get(CURVES)
    if not isinstance(curves, dict):
        return None
    counter = next((name for name in _COUNTERS if _are_numbers(curves.get(name))), None)
    if counter is None:
        return None
    at = curves[counter]
    series = {
        name: tuple(values)
        for name, values in curves.items()
        if name != counter and _are_numbers(values, or_none=True) and len(values) == len(at)
    }
    best = record.get("best_pass")
    is_place = isinstance(best, int) and counter == "epoch" and best in at
    return Curve(tree, counter, tuple(at), series, best if is_place else None) if series else None


def _are_numbers(values: Any, *, or_none: bool = False) -> bool:
    return (
        isinstance(values, list)
        and len(values) > 0
        and all(
            (or_none and value is None)
            or (isinstance(value, int | float) and not isinstance(value, bool))
            for value in values
        )
    )


def _words(name: str) -> str:
    return _NAMES.get(name, name.replace("_", " "))
