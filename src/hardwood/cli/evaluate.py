"""`hardwood evaluate`: how good a model is on a table with known answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.cli.failures import CommandError
from hardwood.cli.metrics import (
    Score,
    classification_scores,
    confusion,
    label_scores,
    n_resamples,
    regression_scores,
    several_regression_scores,
)
from hardwood.cli.models import open_model, output_names
from hardwood.cli.options import AsJson, ModelFile, Seed, TableFile, TargetColumn, WeightColumn
from hardwood.cli.report import (
    Notes,
    counted,
    figure,
    interval,
    print_json,
    print_table,
    print_text,
    scores_json,
)
from hardwood.cli.tables import read_table
from hardwood.cli.targets import columns_named, known_answers, label_positions, read_weights

if TYPE_CHECKING:
    import pyarrow as pa

    from hardwood.cli.models import Model

_MAX_CONFUSION_CLASSES = 12  # wider than this, a terminal cannot show the table


@dataclass(frozen=True)
class Evaluation:
    """Scores of a model on rows; for classes also who was taken for whom."""

    scores: list[Score]
    confusion: np.ndarray | None = None
    n_unknown: int = 0


def evaluate(
    model: ModelFile,
    table: TableFile,
    target: TargetColumn,
    weight: WeightColumn = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Score a model on a table: metrics with 95 % intervals and, for classes, a confusion table."""
    opened = open_model(model)
    notes = Notes()
    with notes.collecting():
        data = read_table(table)
        names = target_columns(opened, data, target, table, model)
        rows, truth = true_answers(opened, data, names, table)
        weights = np.ones(data.num_rows) if weight is None else read_weights(data, weight, table)
        found = judge(
            opened, data.take(rows), truth, weights[rows], np.random.default_rng(seed), names
        )
    _note_origin(opened, model, table, data.num_rows, notes)
    if found.n_unknown:
        notes.add(
            f"{found.n_unknown} rows have a class the model does not know; they count as wrong"
        )
    if as_json:
        print_json(_payload(opened, names, found, rows.size, data.num_rows, notes))
        return
    print_scores(f"{model} on {_rows_words(rows.size, data.num_rows)} of {table}", found.scores)
    if found.confusion is not None:
        _print_confusion(opened, found.confusion)


def target_columns(
    model: Model, data: pa.Table, target: str, table: Path, path: Path
) -> tuple[str, ...]:
    """Return the columns with the truth, in the order of the model's outputs."""
    names = columns_named(data, target, table)
    expected = 1 if model.classes is not None else model.n_outputs
    if len(names) != expected:
        known = f" ({', '.join(model.target_names)})" if model.target_names else ""
        raise CommandError(
            f"{path} predicts {counted(expected, 'column')}{known}, but --target names "
            f"{len(names)}. Give all of them, with commas between: --target a,b"
        )
    if model.target_names and set(names) == set(model.target_names):
        return model.target_names  # named in another order, they are still these
    return names


def true_answers(
    model: Model, data: pa.Table, names: tuple[str, ...], table: Path
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that have an answer in all columns, and the answers: (n,), or (n, k)."""
    known = [known_answers(data, name, table, model.task) for name in names]
    if model.task == "multilabel":
        known = [(rows, _yes_or_no(v, name)) for (rows, v), name in zip(known, names, strict=True)]
    elif len(names) == 1:
        return known[0]
    rows = reduce(np.intersect1d, [rows for rows, _ in known])
    if rows.size == 0:
        raise CommandError(f"No row of {table} has an entry in all of {', '.join(names)}.")
    columns = [values[np.searchsorted(present, rows)] for present, values in known]
    return rows, np.column_stack(columns)


def _yes_or_no(values: np.ndarray, name: str) -> np.ndarray:
    """Return labels as 0 and 1."""
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        strange = next(v for v in values.tolist() if v not in (0, 1))
        raise CommandError(
            f"Column '{name}' holds {strange!r:.60}; the model predicts labels, whose truth is 0 "
            "and 1, or true and false. Is it the right column?"
        )
    return values.astype(np.int64)


def _note_origin(model: Model, path: Path, table: Path, n_rows: int, notes: Notes) -> None:
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


def score(
    model: Model, rows: Any, truth: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> tuple[list[Score], np.ndarray | None, int]:
    """Return a model's scores, its confusion counts (of classes), and the number of unknowns."""
    found = judge(model, rows, truth, weight, rng)
    return found.scores, found.confusion, found.n_unknown


def judge(
    model: Model,
    rows: Any,
    truth: np.ndarray,
    weight: np.ndarray,
    rng: np.random.Generator,
    names: Sequence[str] = (),
) -> Evaluation:
    """Score a model on rows.

    Parameters
    ----------
    model
        A tree or a forest.
    rows
        A table.
    truth
        (n,) labels or numbers; (n, k) where there are several outputs, or labels of 0 and 1. A row
        whose class the model does not know counts as wrong, and is counted.
    weight
        (n,) of each row.
    rng
        Draws the bootstrap resamples.
    names
        What several outputs are called; by default what the model calls them.
    """
    names = names or output_names(model)
    if model.classes is not None:
        return _judge_classes(model, rows, truth, weight, rng)
    if model.task == "multilabel":
        labels = truth.reshape(-1, model.n_outputs)
        return Evaluation(label_scores(labels, model.predict_proba(rows), names, weight, rng))
    if model.n_outputs == 1:
        return Evaluation(regression_scores(truth.ravel(), model.predict(rows), weight, rng))
    found = several_regression_scores(truth, model.predict(rows), names, weight, rng)
    return Evaluation(found)


def _judge_classes(
    model: Model, rows: Any, truth: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> Evaluation:
    classes = model.classes or ()
    positions = label_positions(truth, classes)
    n_unknown = int((positions < 0).sum())
    if n_unknown == positions.size:
        raise CommandError(
            f"None of the target's values, for example {truth.tolist()[0]!r}, is a class of "
            f"the model: {', '.join(map(repr, classes[:8]))}. Is it the right column?"
        )
    probabilities = model.predict_proba(rows)
    return Evaluation(
        classification_scores(positions, probabilities, weight, rng),
        confusion(positions, probabilities.argmax(axis=1), len(classes)),
        n_unknown,
    )


def _payload(
    model: Model,
    names: tuple[str, ...],
    found: Evaluation,
    n_rows: int,
    n_table_rows: int,
    notes: Notes,
) -> dict[str, Any]:
    return {
        "task": model.task,
        "target": list(names),
        "n_rows": n_rows,
        "n_missing_target": n_table_rows - n_rows,
        "n_unknown_class": found.n_unknown,
        "metrics": scores_json(found.scores),
        "n_resamples": n_resamples(n_rows),
        "classes": None if model.classes is None else list(model.classes),
        "confusion": found.confusion,
        "notes": notes.messages,
    }


def print_scores(
    title: str, scores: Sequence[Score], baseline: Sequence[Score] = (), baseline_name: str = ""
) -> None:
    """Print metrics, one per row, with their intervals; a baseline's values as a last column."""
    header = ["metric", "value", "95 % interval"] + ([baseline_name] if baseline else [])
    rows = [[s.name, figure(s.value), interval(s)] for s in scores]
    for row, other in zip(rows, baseline, strict=False):
        row.append(figure(other.value))
    print_table(title, header, rows)


def _rows_words(used: int, total: int) -> str:
    if used == total:
        return counted(used, "row")
    return f"{counted(used, 'row')} with a known target, of {total},"


def _print_confusion(model: Model, counts: np.ndarray) -> None:
    names = [str(label) for label in model.classes or ()]
    if len(names) > _MAX_CONFUSION_CLASSES:
        print_text(f"The confusion table of {len(names)} classes is in the output of --json.")
        return
    rows = [[name, *map(str, row)] for name, row in zip(names, counts.tolist(), strict=True)]
    print_table("Confusion: true class by row, predicted class by column", ["", *names], rows)
