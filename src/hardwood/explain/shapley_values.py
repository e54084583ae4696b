"""The Shapley values of a table's rows, as arrays, text, plot and data frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import MissingExtraError
from hardwood.explain.values import value_text
from hardwood.model.structure import TaskKind
from hardwood.report.plot_style import BLUE, VERMILION, name_axes, ticks
from hardwood.table import Schema
from hardwood.table.restore import entries_of
from hardwood.text.blocks import Block, Text, TextTable
from hardwood.text.numbers import format_number, plural
from hardwood.text.report import PlottedReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hardwood.text.report import Tables

_MAX_SHOWN = 12  # features in print and in the plot
_MAX_OUTPUTS = 4


@dataclass(frozen=True, repr=False, eq=False)
class ShapleyValues(PlottedReport):
    """Shapley values of the predictions for n rows, made by `shapley`.

    Attributes
    ----------
    values
        (n, p, k) contribution of each feature to each output.
    base
        (k,) mean prediction for the background. ``base + values.sum(axis=1)`` equals `outputs`.
    outputs
        (n, k) the model's predictions: probabilities or values.
    standard_errors
        (n, p, k) standard errors of sampled values, 0 for exact ones; None if all are exact.
    is_exact
        (n,) bool, whether the values of a row are exact; others were sampled.
    feature_names, output_names
        Names of the p features and the k outputs.
    data
        (n, p) the rows as the model reads them: numbers, positions of levels, NaN where missing.
    schema
        Schema of the table.
    task
        Task of the model.
    n_background, n_permutations
        Number of background rows, and of orders per background row where values were sampled.
    """

    values: np.ndarray
    base: np.ndarray
    outputs: np.ndarray
    standard_errors: np.ndarray | None
    is_exact: np.ndarray
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    data: np.ndarray
    schema: Schema
    task: TaskKind
    n_background: int
    n_permutations: int

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: int | slice | Sequence[int] | np.ndarray) -> ShapleyValues:
        """Return the explanation of one row, by its position, or of several rows."""
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        errors = self.standard_errors
        return replace(
            self,
            values=self.values[chosen],
            outputs=self.outputs[chosen],
            standard_errors=None if errors is None else errors[chosen],
            is_exact=self.is_exact[chosen],
            data=self.data[chosen],
        )

    @property
    def importance(self) -> np.ndarray:
        """Mean absolute value of each feature over the rows, (p, k)."""
        importance: np.ndarray = np.abs(self.values).mean(axis=0)
        return importance

    @property
    def title(self) -> str:
        """Number of rows and of background rows."""
        return (
            f"Shapley values: {plural(len(self), 'row')} compared with "
            f"{plural(self.n_background, 'background row')}"
        )

    # For other programs

    def to_shap(self) -> Any:
        """Return a ``shap.Explanation`` for the plots of shap; (n, p) if there is one output.

        Raises
        ------
        MissingExtraError
            If shap is not installed.
        """
        try:
            import shap
        except ImportError as error:
            raise MissingExtraError(
                "shap", extra="explain", purpose="An explanation as a shap.Explanation"
            ) from error
        one = len(self.output_names) == 1
        base = np.tile(self.base, (len(self), 1))
        return shap.Explanation(
            values=self.values[:, :, 0] if one else self.values,
            base_values=base[:, 0] if one else base,
            data=self.data,
            display_data=entries_of(self.schema, self.data),
            feature_names=list(self.feature_names),
            output_names=None if one else list(self.output_names),
        )

    def _content(self) -> dict[str, Any]:
        return {
            "feature_names": self.feature_names,
            "output_names": self.output_names,
            "base": self.base,
            "outputs": self.outputs,
            "values": self.values,
            "standard_errors": self.standard_errors,
            "is_exact": self.is_exact,
            "data": entries_of(self.schema, self.data),
            "n_background": self.n_background,
            "n_permutations": None if self.is_exact.all() else self.n_permutations,
        }

    def _tables(self) -> Tables:
        n, p, k = self.values.shape
        errors = (
            np.zeros_like(self.values) if self.standard_errors is None else self.standard_errors
        )
        texts = [
            value_text(self.schema, j, value)
            for row in self.data.tolist()
            for j, value in enumerate(row)
        ]
        importance = self.importance
        return {
            "values": {
                "row": np.repeat(np.arange(n), p * k).tolist(),
                "feature": list(np.tile(np.repeat(self.feature_names, k), n)),
                "feature_value": [text for text in texts for _ in range(k)],
                "output": list(np.tile(self.output_names, n * p)),
                "value": self.values.ravel().tolist(),
                "standard_error": errors.ravel().tolist(),
            },
            "importance": {
                "feature": list(np.repeat(self.feature_names, k)),
                "output": list(np.tile(self.output_names, p)),
                "importance": importance.ravel().tolist(),
            },
        }

    # Text and plot

    @property
    def _shown(self) -> list[int]:
        """Outputs that are shown; of two classes, only the second."""
        k = len(self.output_names)
        is_pair = k == 2 and self.task == "classification"
        return [1] if is_pair else list(range(min(k, _MAX_OUTPUTS)))

    def _largest(self) -> list[int]:
        """Features by importance for the outputs that are shown, the largest first."""
        order = np.argsort(-self.importance[:, self._shown].sum(axis=1), kind="stable")
        return [int(j) for j in order]

    def _blocks(self) -> Sequence[Block]:
        grid = self._row_grid() if len(self) == 1 else self._importance_grid()
        hidden = len(self.output_names) - len(self._shown)
        is_pair = len(self._shown) == 1 and hidden == 1
        notes = [self._method()]
        if hidden and not is_pair:
            notes.append(f"{plural(hidden, 'more output')} not shown")
        return [grid, *map(Text, notes)]

    def _method(self) -> str:
        if self.is_exact.all():
            return "The values are exact."
        assert self.standard_errors is not None
        sampled = int(np.count_nonzero(~self.is_exact))
        typical = float(np.sqrt((self.standard_errors[~self.is_exact] ** 2).mean()))
        which = "The values" if sampled == len(self) else f"Values of {plural(sampled, 'row')}"
        return (
            f"{which} are sampled with {plural(self.n_permutations, 'feature order')} per "
            f"background row; typical standard error {format_number(typical)}."
        )

    def _names(self) -> list[str]:
        return [self.output_names[o] for o in self._shown]

    def _importance_grid(self) -> TextTable:
        order, importance = self._largest(), self.importance
        rows = [
            [self.feature_names[j], *(format_number(importance[j, o]) for o in self._shown)]
            for j in order[:_MAX_SHOWN]
        ]
        return TextTable.of(
            "Mean absolute contribution to the prediction",
            ["feature", *self._names()],
            rows,
            note=_left_out(len(order)),
        )

    def _row_grid(self) -> TextTable:
        order = self._largest()
        rows = [
            [
                self.feature_names[j],
                value_text(self.schema, j, float(self.data[0, j])),
                *(self._with_error(j, o) for o in self._shown),
            ]
            for j in order[:_MAX_SHOWN]
        ]
        left = order[_MAX_SHOWN:]
        if left:
            rest = [f"{self.values[0, left, o].sum():+.4g}" for o in self._shown]
            rows.append([f"{plural(len(left), 'other feature')}", "", *rest])
        ends = [
            ("mean prediction for the background", self.base),
            ("prediction for this row", self.outputs[0]),
        ]
        rows.insert(0, [ends[0][0], "", *(format_number(ends[0][1][o]) for o in self._shown)])
        rows.append([ends[1][0], "", *(format_number(ends[1][1][o]) for o in self._shown)])
        return TextTable.of(
            "Contributions to the prediction",
            ["feature", "value", *self._names()],
            rows,
            text_columns=(0, 1),
        )

    def _with_error(self, feature: int, output: int) -> str:
        text = f"{self.values[0, feature, output]:+.4g}"
        if self.standard_errors is None or self.is_exact[0]:
            return text
        return f"{text} (se {self.standard_errors[0, feature, output]:.1g})"

    @property
    def _image_text(self) -> str:
        what = "contributions" if len(self) == 1 else "mean absolute contributions"
        return f"Bars of {what} by feature"

    def _figure_size(self) -> tuple[float, float]:
        bars = min(len(self.feature_names), _MAX_SHOWN)
        return 4.5 * len(self._shown) + 1.5, 0.3 * bars + 1.2

    def _draw(self, figure: Figure) -> None:
        order = self._largest()[:_MAX_SHOWN][::-1]
        one = len(self) == 1
        axes = figure.subplots(1, len(self._shown), sharex=True, sharey=True, squeeze=False)[0]
        for ax, o in zip(axes, self._shown, strict=True):
            bars = self.values[0, order, o] if one else self.importance[order, o]
            ax.barh(range(len(order)), bars, color=[BLUE if b >= 0 else VERMILION for b in bars])
            ax.axvline(0, color="black", linewidth=0.8)
            what = "contribution" if one else "mean |contribution|"
            name_axes(ax, self.output_names[o], what, "")
        ticks(axes[0].yaxis, range(len(order)), [self._bar_name(j, one) for j in order])

    def _bar_name(self, feature: int, with_entry: bool) -> str:
        name = self.feature_names[feature]
        if not with_entry:
            return name
        return f"{name} = {value_text(self.schema, feature, float(self.data[0, feature]), 3)}"


def _left_out(n_features: int) -> str:
    more = n_features - _MAX_SHOWN
    return f"... and {plural(more, 'more feature')}" if more > 0 else ""
