"""Plots of an analysis: importance, loss by leaf, partial dependence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.report.plot_style import (
    BLUE,
    COLORS,
    GRAY,
    VERMILION,
    label,
    legend,
    name_axes,
    ticks,
    unit_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hardwood.report.analysis import Analysis
    from hardwood.report.dependence import Dependence

_MAX_BARS = 12
_MAX_LEAVES = 10
_PER_ROW = 3
_SIDE = 3.6  # inches of a panel of partial dependence
_MAX_LEVELS = 12  # category names that fit below each other


def figure_size(found: Analysis) -> tuple[float, float]:
    """Width and height of the plot in inches."""
    return _PER_ROW * _SIDE + 1, 3.8 + _n_rows(found) * _SIDE * 0.85


def draw(found: Analysis, figure: Figure) -> None:
    """Draw into an empty figure."""
    n_rows = _n_rows(found)
    grid = figure.add_gridspec(1 + n_rows, 6, height_ratios=[3.8, *[_SIDE * 0.85] * n_rows])
    has_leaves = bool(found.leaves) and math.isfinite(found.leaves[0].share_of_loss)
    _importance(found, figure.add_subplot(grid[0, : 3 if has_leaves else 6]))
    if has_leaves:
        _leaves(found, figure.add_subplot(grid[0, 3:]))
    for i, entry in enumerate(found.dependence):
        first = 2 * (i % _PER_ROW)
        ax = figure.add_subplot(grid[1 + i // _PER_ROW, first : first + 2])
        _dependence(entry, ax)


def _n_rows(found: Analysis) -> int:
    return math.ceil(len(found.dependence) / _PER_ROW)


def _importance(found: Analysis, ax: Any) -> None:
    shown = found.importance[:_MAX_BARS]
    places = np.arange(len(shown))
    values = np.array([entry.importance for entry in shown])
    unit, words = unit_of(values)
    reach = (values - np.array([entry.low for entry in shown])) / unit
    values = values / unit
    ax.barh(places, values, xerr=reach, color=BLUE, ecolor="black", capsize=3, height=0.7)
    ax.axvline(0, color=GRAY, linewidth=1)
    ax.invert_yaxis()
    ticks(ax.yaxis, places.tolist(), [entry.name for entry in shown])
    change = f"{found._change} when shuffled, with 95 % interval{words}"
    name_axes(ax, "Importance of features", change, "")


def _leaves(found: Analysis, ax: Any) -> None:
    shown = found.leaves[:_MAX_LEAVES]
    places = np.arange(len(shown))
    names = [f"leaf {leaf.node}" + (f", tree {leaf.tree}" if leaf.tree else "") for leaf in shown]
    rows = [100 * leaf.share_of_rows for leaf in shown]
    losses = [100 * leaf.share_of_loss for leaf in shown]
    ax.barh(places - 0.2, rows, height=0.38, color=GRAY, label="share of rows")
    ax.barh(places + 0.2, losses, height=0.38, color=VERMILION, label="share of loss")
    ax.invert_yaxis()
    ticks(ax.yaxis, places.tolist(), names)
    name_axes(ax, "Loss by leaf", "percent", "")
    legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)


def _dependence(entry: Dependence, ax: Any) -> None:
    unit, words = unit_of(np.array(entry.mean))
    mean = np.array(entry.mean) / unit
    present = [i for i, value in enumerate(entry.values) if value is not None]
    missing = [i for i, value in enumerate(entry.values) if value is None]
    outputs = [1] if len(entry.outputs) == 2 else list(range(len(entry.outputs)))[: len(COLORS)]
    is_number = entry.kind == "numeric" and len(present) > 1
    x = list(range(len(entry.values)))
    if is_number:
        numbers = np.array([entry.values[i] for i in present], np.float64)
        x = (numbers / unit_of(numbers)[0]).tolist()  # the labels of large ones are words
    for color, k in zip(COLORS, outputs, strict=False):
        name = label(entry.outputs[k])
        if is_number:
            ax.plot(x, mean[present, k], color=color, marker=".", label=name)
            for i in missing:  # a line across: a missing value has no place on the axis
                ax.axhline(mean[i, k], color=color, linestyle=":", linewidth=1)
        else:
            ax.plot(x, mean[:, k], "o", color=color, label=name)
    if is_number:
        _number_ticks(entry, ax, present, x)
    else:
        turn = 0 if len(x) <= 4 else 90
        step = math.ceil(len(x) / _MAX_LEVELS)
        ticks(ax.xaxis, x[::step], list(entry.labels)[::step], rotation=turn)
    beside = "; dotted: missing" if is_number and missing else ""
    name_axes(ax, label(entry.feature) + beside, "", f"mean prediction{words}")
    if len(outputs) > 1 or len(entry.outputs) == 2:
        legend(ax)


def _number_ticks(entry: Dependence, ax: Any, present: list[int], x: Sequence[float]) -> None:
    """Write dates as dates; leave other numbers to matplotlib."""
    if all(entry.labels[i].lstrip("-").replace(".", "").isdigit() for i in present):
        return
    chosen = [0, len(present) // 2, -1]
    places, names = [x[i] for i in chosen], [entry.labels[present[i]] for i in chosen]
    ticks(ax.xaxis, places, names, rotation=15, ha="right")
