"""`hardwood evaluate`: how good a model is on a table with known answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.cli.failures import CommandError
from hardwood.cli.metrics import (
    Score,
    classification_scores,
    confusion,
    n_resamples,
    regression_scores,
)
from hardwood.cli.models import open_model
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
from hardwood.cli.targets import known_answers, label_positions, read_weights

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree

_MAX_CONFUSION_CLASSES = 12  # wider than this, a terminal cannot show the table


def evaluate(
    model: ModelFile,
    table: TableFile,
    target: TargetColumn,
    weight: WeightColumn = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Score a model on a table: metrics with 95 % intervals and, for classes, a confusion table."""
    tree = open_model(model)
    if tree.n_outputs > 1 and tree.task == "regression":
        raise CommandError(f"{model} predicts {tree.n_outputs} numbers; evaluate handles one.")
    notes = Notes()
    with notes.collecting():
        data = read_table(table)
        rows, truth = known_answers(data, target, table, tree.task)
        weights = np.ones(data.num_rows) if weight is None else read_weights(data, weight, table)
        scores, counts, n_unknown = score(
            tree, data.take(rows), truth, weights[rows], np.random.default_rng(seed)
        )
    if was_learned_from(tree, table, data.num_rows):
        advice = (
            "; `describe` shows the score on the rows kept back" if tree.record.get("test") else ""
        )
        notes.add(
            f"{model} was learned from {table.name}, it seems (same name, same number of rows): "
            f"scores on rows that taught the tree are too good{advice}"
        )
    if n_unknown:
        notes.add(f"{n_unknown} rows have a class the model does not know; they count as wrong")
    if as_json:
        print_json(
            {
                "task": tree.task,
                "n_rows": rows.size,
                "n_missing_target": data.num_rows - rows.size,
                "n_unknown_class": n_unknown,
                "metrics": scores_json(scores),
                "n_resamples": n_resamples(rows.size),
                "classes": None if tree.classes is None else list(tree.classes),
                "confusion": counts,
                "notes": notes.messages,
            }
        )
        return
    print_scores(f"{model} on {_rows_words(rows.size, data.num_rows)} of {table}", scores)
    if counts is not None:
        _print_confusion(tree, counts)


def was_learned_from(tree: ObliqueTree, table: Path, n_rows: int) -> bool:
    """Whether the tree's record names this file and this number of rows as its origin."""
    record = tree.record
    return (record.get("table"), record.get("table_rows")) == (table.name, n_rows)


def score(
    tree: ObliqueTree, rows: Any, truth: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> tuple[list[Score], np.ndarray | None, int]:
    """Return a tree's scores, its confusion counts (of classes), and the number of unknowns.

    A row whose class the tree does not know counts as wrong, and is counted in the third answer.
    """
    if tree.classes is None:
        return regression_scores(truth, tree.predict(rows), weight, rng), None, 0
    positions = label_positions(truth, tree.classes)
    n_unknown = int((positions < 0).sum())
    if n_unknown == positions.size:
        raise CommandError(
            f"None of the target's values, for example {truth.tolist()[0]!r}, is a class of "
            f"the model: {', '.join(map(repr, tree.classes[:8]))}. Is it the right column?"
        )
    probabilities = tree.predict_proba(rows)
    scores = classification_scores(positions, probabilities, weight, rng)
    counts = confusion(positions, probabilities.argmax(axis=1), len(tree.classes))
    return scores, counts, n_unknown


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


def _print_confusion(tree: ObliqueTree, counts: np.ndarray) -> None:
    assert tree.classes is not None
    if len(tree.classes) > _MAX_CONFUSION_CLASSES:
        print_text(
            f"The confusion table of {len(tree.classes)} classes is in the output of --json."
        )
        return
    names = [str(label) for label in tree.classes]
    rows = [[name, *map(str, row)] for name, row in zip(names, counts.tolist(), strict=True)]
    print_table("Confusion: true class by row, predicted class by column", ["", *names], rows)
