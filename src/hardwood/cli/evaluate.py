"""`hardwood evaluate`: the scores of a model on a table with known targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, check_writable
from hardwood.cli.output import Notes, check_drawable, print_report
from hardwood.cli.read import (
    as_labels,
    columns_named,
    complete_columns,
    finite_numbers,
    open_model,
    read_table,
    read_weights,
    zeros_and_ones,
)
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from hardwood.model.base import Model
    from hardwood.report import Analysis, Evaluation


@dataclass(frozen=True)
class KnownRows:
    """The rows of a table that have a target.

    ``truth`` is (n,) labels or numbers, or (n, k); ``weight`` is None without weights; ``names``
    are the target columns, in the order of the model's outputs.
    """

    features: pa.Table
    truth: np.ndarray
    weight: np.ndarray | None
    names: tuple[str, ...]
    n_table_rows: int

    def __len__(self) -> int:
        return len(self.truth)

    @property
    def words(self) -> str:
        """The number of rows as text, with the number of rows in the table if it differs."""
        if len(self) == self.n_table_rows:
            return plural(len(self), "row")
        return f"{plural(len(self), 'row')} with a known target (of {self.n_table_rows})"


def evaluate(
    model: opt.ModelFile,
    table: opt.TableFile,
    target: opt.TargetColumn,
    weight: opt.WeightColumn = None,
    threshold: opt.Threshold = None,
    plot: opt.PlotFile = None,
    seed: opt.Seed = 0,
    strict: opt.Strict = False,
    as_json: opt.AsJson = False,
) -> None:
    """Score a model on a table: metrics with 95 % intervals, confusion matrix, calibration.

    --plot draws calibration and confusion matrix, or the residuals of a regression model.
    """
    check_plot(plot, model, table)
    opened = open_model(model, threshold)
    notes = Notes(strict=strict)
    with notes.collecting():
        rows = read_known_rows(opened, model, table, target, weight)
        rng = np.random.default_rng(seed)
        found = score_model(opened, rows.features, rows.truth, rows.weight, rng, rows.names)
    note_origin(opened, model, table, rows.n_table_rows, notes)
    print_row_report(
        found, f"{model} on {rows.words} of {table}", rows, plot, notes, as_json=as_json
    )


def read_known_rows(
    model: Model, path: Path, table: Path, target: str, weight: str | None
) -> KnownRows:
    """Read the rows of a table that have a target."""
    data = read_table(table, model=model, target=target)
    names = target_columns(model, data, target, table, path)
    rows, truth = known_targets(model, data, names, table)
    weights = None if weight is None else read_weights(data, weight, table)[rows]
    return KnownRows(data.take(rows), truth, weights, names, data.num_rows)


def print_row_report(
    found: Evaluation | Analysis,
    what: str,
    rows: KnownRows,
    plot: Path | None,
    notes: Notes,
    *,
    as_json: bool,
) -> None:
    """Draw and print a report on rows; ``what`` names the model and the table."""
    of_rows = {"target": list(rows.names), "n_missing_target": rows.n_table_rows - len(rows)}
    for note in found.notes:
        notes.add(note)
    shown = f"{what}\n\n{replace(found, notes=())}"  # notes are on stderr
    print_report(found, shown, of_rows, notes, as_json=as_json, plot=plot)


def check_plot(plot: Path | None, *inputs: Path, option: str = "--plot") -> None:
    """Raise an error unless the file of ``option`` can be drawn and written."""
    if plot is not None:
        check_writable(plot, inputs=inputs, option=option)
        check_drawable(plot)


def target_columns(
    model: Model, data: pa.Table, target: str, table: Path, path: Path
) -> tuple[str, ...]:
    """Return the target columns, in the order of the model's outputs."""
    names = columns_named(data, target, table)
    expected = 1 if model.classes is not None else model.n_outputs
    if len(names) != expected:
        known = f" ({', '.join(model.target_names)})" if model.target_names else ""
        raise CommandError(
            f"{path} predicts {plural(expected, 'column')}{known}, but --target names "
            f"{len(names)}. Name all of them, separated by commas: --target a,b"
        )
    if model.target_names and set(names) == set(model.target_names):
        return model.target_names  # in the order of the model
    return names


def known_targets(
    model: Model, data: pa.Table, names: tuple[str, ...], table: Path
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that have all targets, and the targets: (n,), or (n, k).

    Labels have the type of the model's classes.
    """
    rows, columns = complete_columns(data, names, table)
    if model.classes is not None:
        return rows, as_labels(columns[0], model.classes)
    if model.task == "multilabel":
        advice = "the model predicts labels of 0 and 1. Is this the right column?"
        columns = [zeros_and_ones(*each, advice) for each in zip(columns, names, strict=True)]
        return rows, np.column_stack(columns)
    columns = list(map(finite_numbers, columns, names))
    return rows, columns[0] if len(names) == 1 else np.column_stack(columns)


def note_origin(model: Model, path: Path, table: Path, n_rows: int, notes: Notes) -> None:
    """Add a note if a model seems to have been learned from the table."""
    if not was_learned_from(model, table, n_rows):
        return
    advice = "; `describe` shows the score on held-out rows" if model.record.get("test") else ""
    notes.add(
        f"{path} was probably learned from {table.name} (same name, same number of rows): "
        f"scores on training rows are too optimistic{advice}"
    )


def was_learned_from(model: Model, table: Path, n_rows: int) -> bool:
    """Whether the model's record names this file and this number of rows as its origin."""
    record = model.record
    return (record.get("table"), record.get("table_rows")) == (table.name, n_rows)


def score_model(
    model: Model,
    rows: Any,
    truth: np.ndarray,
    weight: np.ndarray | None,
    rng: np.random.Generator,
    names: Sequence[str] = (),
) -> Evaluation:
    """Score a model on rows of a file; classes that it does not know count as errors.

    The arguments are those of `hardwood.report.evaluate`.
    """
    from hardwood.report import evaluate as report_on

    return report_on(
        model, rows, truth, weight, unknown_classes="wrong", names=names, random_state=rng
    )
