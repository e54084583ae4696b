"""Plots of an evaluation: calibration and confusion matrix, or true values and residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.report.plot_style import (
    BLUE,
    GRAY,
    VERMILION,
    label,
    legend,
    name_axes,
    some,
    ticks,
    unit_of,
)
from hardwood.text.numbers import format_count, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hardwood.report.evaluation import Evaluation

_SIDE = 4.2  # inches of one panel
_MAX_OUTPUTS = 4  # outputs that get a row of panels
_MAX_CELLS = 30  # classes of a confusion matrix that is still readable
_MAX_NUMBERS = 12  # classes up to which its cells have numbers


def figure_size(found: Evaluation) -> tuple[float, float]:
    """Width and height of the plot in inches."""
    if found.task == "regression":
        return 3 * _SIDE, _SIDE * min(found.rows.outputs.shape[1], _MAX_OUTPUTS)
    return (2 if _shows_confusion(found) else 1) * _SIDE * 1.15, _SIDE


def draw(found: Evaluation, figure: Figure) -> None:
    """Draw into an empty figure."""
    if found.task == "regression":
        n_outputs = min(found.rows.outputs.shape[1], _MAX_OUTPUTS)
        panels = figure.subplots(n_outputs, 3, squeeze=False)
        for output, row in enumerate(panels):
            _truth_and_prediction(found, output, row[0])
            _residuals(found, output, row[1])
            _histogram(found, output, row[2])
        return
    panels = figure.subplots(1, 2 if _shows_confusion(found) else 1, squeeze=False)[0]
    _calibration(found, panels[0])
    if len(panels) > 1:
        _confusion(found, panels[1])


def _shows_confusion(found: Evaluation) -> bool:
    return found.classes is not None and 1 < len(found.classes) <= _MAX_CELLS


def _calibration(found: Evaluation, ax: Any) -> None:
    ax.plot([0, 1], [0, 1], color=GRAY, linewidth=1, linestyle="--", label="perfect calibration")
    first = found.calibration[0]
    x = np.array([b.predicted for b in first.bins])
    y = np.array([b.observed for b in first.bins])
    reach = [
        y - [b.observed_low for b in first.bins],
        [b.observed_high for b in first.bins] - y,
    ]
    ax.errorbar(x, y, yerr=reach, color=BLUE, marker="o", capsize=3, label=f"{label(first.of)}")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    words = f"Calibration, {plural(found.n_rows, 'row')}"
    name_axes(ax, words, "predicted probability", "observed frequency, 95 % interval")
    legend(ax, loc="upper left")


def _confusion(found: Evaluation, ax: Any) -> None:
    assert found.confusion is not None
    counts = found.confusion.astype(np.float64)
    total = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    names = [str(name) for name in found.classes or ()]
    places = list(range(len(names)))
    ticks(ax.xaxis, places, names, rotation=0 if len(names) < 4 else 90)
    ticks(ax.yaxis, places, names)
    if len(names) <= _MAX_NUMBERS:
        for i, j in np.ndindex(counts.shape):
            ink = "white" if shares[i, j] > 0.6 else "black"
            text = format_count(float(counts[i, j]))
            ax.text(j, i, text, ha="center", va="center", color=ink, fontsize="small")
    name_axes(
        ax, "Confusion matrix, shaded by share of the true class", "predicted class", "true class"
    )


def _truth_and_prediction(found: Evaluation, output: int, ax: Any) -> None:
    truth, prediction, name, unit = _drawn(found, output)
    shown = some(truth.size)
    ax.plot(prediction[shown], truth[shown], ".", color=BLUE, markersize=3, alpha=0.5)
    ends = [min(truth.min(), prediction.min()), max(truth.max(), prediction.max())]
    ax.plot(ends, ends, color=GRAY, linewidth=1, linestyle="--", label="true = predicted")
    more = (
        ""
        if shown.size == truth.size
        else f" ({shown.size:,} of {plural(truth.size, 'row', form=',')})"
    )
    name_axes(ax, f"True values against predictions{more}", f"prediction{unit}", name + unit)
    legend(ax)


def _residuals(found: Evaluation, output: int, ax: Any) -> None:
    truth, prediction, name, unit = _drawn(found, output)
    residual = truth - prediction
    shown = some(residual.size)
    ax.plot(prediction[shown], residual[shown], ".", color=BLUE, markersize=3, alpha=0.5)
    ax.axhline(0, color=GRAY, linewidth=1, linestyle="--")
    middle = _middle_by_prediction(prediction, residual, found.rows.weight)
    ax.plot(*middle, color=VERMILION, marker="o", markersize=4, label="mean in each tenth of rows")
    name_axes(ax, "Residuals", f"prediction{unit}", _difference(name, unit))
    legend(ax)


def _histogram(found: Evaluation, output: int, ax: Any) -> None:
    truth, prediction, name, unit = _drawn(found, output)
    residual = truth - prediction
    ax.hist(
        residual, bins=min(40, max(5, residual.size // 5)), weights=found.rows.weight, color=BLUE
    )
    ax.axvline(0, color=GRAY, linewidth=1, linestyle="--")
    of_rows = "weight" if found.rows.is_weighted else "rows"
    name_axes(ax, "Distribution of residuals", _difference(name, unit), of_rows)


def _drawn(found: Evaluation, output: int) -> tuple[np.ndarray, np.ndarray, str, str]:
    """Return true values and predictions as they are drawn, their name, and their unit."""
    truth, prediction = found.rows.truth[:, output], found.rows.outputs[:, output]
    unit, words = unit_of(truth, prediction)
    return truth / unit, prediction / unit, _name(found, output), words


def _difference(name: str, unit: str) -> str:
    return f"({name} - prediction){unit}" if unit else f"{name} - prediction"


def _middle_by_prediction(
    prediction: np.ndarray, residual: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean prediction and mean residual of each tenth of the rows, by prediction."""
    edges = np.unique(np.quantile(prediction, np.linspace(0, 1, 11)[1:-1]))
    place = np.searchsorted(edges, prediction, side="right")
    total = np.bincount(place, weight)
    filled = total > 0
    x = np.bincount(place, weight * prediction)[filled] / total[filled]
    y = np.bincount(place, weight * residual)[filled] / total[filled]
    return x, y


def _name(found: Evaluation, output: int) -> str:
    if output < len(found.target):
        return label(found.target[output])
    return "true value" if found.rows.outputs.shape[1] == 1 else f"output {output}"
