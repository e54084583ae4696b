"""`hardwood evaluate`: how good a model is on a table with known answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, check_writable
from hardwood.cli.output import Notes, check_drawable, tell
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
    """Rows of a table whose answers are known.

    ``truth`` is (n,) labels or numbers, or (n, k); ``weight`` is None where none was asked for,
    ``names`` are the columns with the truth, in the order of the model's outputs.
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
        """How many rows there are, of how many."""
        if len(self) == self.n_table_rows:
            return plural(len(self), "row")
        return f"{plural(len(self), 'row')} with a known target, of {self.n_table_rows},"


def evaluate(
    model: opt.ModelFile,
    table: opt.TableFile,
    target: opt.TargetColumn,
    weight: opt.WeightColumn = None,
    plot: opt.PlotFile = None,
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Score a model on a table: metrics with 95 % intervals, confusion, calibration.

    With --plot also draw calibration and confusion, or the residuals of numbers.
    """
    check_plot(plot, model, table)
    opened = open_model(model)
    notes = Notes()
    with notes.collecting():
        rows = read_known_rows(opened, model, table, target, weight)
        rng = np.random.default_rng(seed)
        found = judge(opened, rows.features, rows.truth, rows.weight, rng, rows.names)
    note_origin(opened, model, table, rows.n_table_rows, notes)
    tell_of_rows(found, f"{model} on {rows.words} of {table}", rows, plot, notes, as_json=as_json)


def read_known_rows(
    model: Model, path: Path, table: Path, target: str, weight: str | None
) -> KnownRows:
    """Read a table with the truth in it."""
    data = read_table(table)
    names = target_columns(model, data, target, table, path)
    rows, truth = true_answers(model, data, names, table)
    weights = None if weight is None else read_weights(data, weight, table)[rows]
    return KnownRows(data.take(rows), truth, weights, names, data.num_rows)


def tell_of_rows(
    found: Evaluation | Analysis,
    what: str,
    rows: KnownRows,
    plot: Path | None,
    notes: Notes,
    *,
    as_json: bool,
) -> None:
    """Draw and print what was found out on rows; ``what`` says of which model and table."""
    of_rows = {"target": list(rows.names), "n_missing_target": rows.n_table_rows - len(rows)}
    for note in found.notes:
        notes.add(note)
    shown = f"{what}\n\n{replace(found, notes=())}"  # which were said
    tell(found, shown, of_rows, notes, as_json=as_json, plot=plot)


def check_plot(plot: Path | None, *inputs: Path, option: str = "--plot") -> None:
    """Raise unless the file of ``option`` can be drawn and written."""
    if plot is not None:
        check_writable(plot, inputs=inputs, option=option)
        check_drawable(plot)


def target_columns(
    model: Model, data: pa.Table, target: str, table: Path, path: Path
) -> tuple[str, ...]:
    """Return the columns with the truth, in the order of the model's outputs."""
    names = columns_named(data, target, table)
    expected = 1 if model.classes is not None else model.n_outputs
    if len(names) != expected:
        known = f" ({', '.join(model.target_names)})" if model.target_names else ""
        raise CommandError(
            f"{path} predicts {plural(expected, 'column')}{known}, but --target names "
            f"{len(names)}. Give all of them, with commas between: --target a,b"
        )
    if model.target_names and set(names) == set(model.target_names):
        return model.target_names  # named in another order, they are still these
    return names


def true_answers(
    model: Model, data: pa.Table, names: tuple[str, ...], table: Path
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that have an answer in all columns, and the answers: (n,), or (n, k).

    Labels are as the model has them.
    """
    rows, columns = complete_columns(data, names, table)
    if model.classes is not None:
        return rows, as_labels(columns[0], model.classes)
    if model.task == "multilabel":
        advice = "the model predicts labels. Is this the right column?"
        columns = [zeros_and_ones(*each, advice) for each in zip(columns, names, strict=True)]
        return rows, np.column_stack(columns)
    columns = list(map(finite_numbers, columns, names))
    return rows, columns[0] if len(names) == 1 else np.column_stack(columns)


def note_origin(model: Model, path: Path, table: Path, n_rows: int, notes: Notes) -> None:
    """Add a note where a model seems to have been learned from the table."""
    if not was_learned_from(model, table, n_rows):
        return
    advice = (
        "; `describe` shows the score on the rows kept back" if model.record.get("test") else ""
    )
    notes.add(
        f"{path} was learned from {table.name}, it seems (same name, same number of rows): "
        f"scores on rows that taught the model are too good{advice}"
    )


def was_learned_from(model: Model, table: Path, n_rows: int) -> bool:
    """Whether the model's record names this file and this number of rows as its origin."""
    record = model.record
    return (record.get("table"), record.get("table_rows")) == (table.name, n_rows)


def judge(
    model: Model,
    rows: Any,
    truth: np.ndarray,
    weight: np.ndarray | None,
    rng: np.random.Generator,
    names: Sequence[str] = (),
) -> Evaluation:
    """Score a model on rows of a file: classes that it does not know are answered wrongly.

    Arguments as of `hardwood.report.evaluate`.
    """
    from hardwood.report import evaluate as report_on

    return report_on(
        model, rows, truth, weight, unknown_classes="wrong", names=names, random_state=rng
    )
