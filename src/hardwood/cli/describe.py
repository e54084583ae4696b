"""`hardwood describe`: what a tree does, in words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hardwood.cli.failures import check_writable
from hardwood.cli.models import open_model
from hardwood.cli.options import AsJson, ModelFile
from hardwood.cli.pictures import check_drawable, draw
from hardwood.cli.report import print_json, print_table, print_text

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree


# A record's entries in the order of a story, by the names they have here; others follow.
_RECORD_NAMES = {
    "learner": "learner",
    "table": "table",
    "table_rows": "rows of the table",
    "training_rows": "training rows",
    "distinct_rows": "different training rows",
    "validation_rows": "validation rows",
    "test_rows": "test rows",
    "passes": "epochs",
    "best_pass": "best epoch",
    "train_loss": "training loss",
    "validation_loss": "validation loss",
    "test": "test score",
    "parameters": "parameters",
}


@dataclass(frozen=True)
class FeatureUse:
    """In how many splits a feature has a weight, and its share of all weight (sum 1)."""

    name: str
    n_splits: int
    share: float


def describe(
    model: ModelFile,
    terms: Annotated[
        int, typer.Option(min=1, metavar="N", help="Terms to show per split, the largest.")
    ] = 4,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the tree, too: .png, .svg, .pdf, ..."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a model: the tree in words, its sizes, the features it uses, how it was learned.

    With --plot also draw it, which needs matplotlib (the extra `plot`).
    """
    if plot is not None:
        check_writable(plot, inputs=(model,), option="--plot")
        check_drawable(plot)
    tree = open_model(model)
    use = feature_use(tree)
    if plot is not None:
        draw(tree, plot, max_terms=terms)
    if as_json:
        print_json(_payload(tree, use) | {"picture": None if plot is None else str(plot)})
        return
    print_text(tree.to_text(max_terms=terms))
    _print_use(tree, use)
    _print_record(tree.record)
    if plot is not None:
        print_text(f"Drew the tree: {plot}")


def feature_use(tree: ObliqueTree) -> list[FeatureUse]:
    """Features by their share of the weights, largest first.

    A weight counts per standard deviation of its column, levels and missing flags included. Each
    split has one vote to divide among its features, and votes count by the training rows that pass
    through the split, where the model knows them.
    """
    spread = tree.schema.column_spread
    feature = np.array([column.feature for column in tree.columns], dtype=np.int64)
    by_feature = np.zeros((tree.n_splits, tree.n_features))
    np.add.at(by_feature, (slice(None), feature), np.abs(tree.weights) * spread)
    total = by_feature.sum(axis=1, keepdims=True)
    votes = np.divide(by_feature, total, out=np.zeros_like(by_feature), where=total > 0)
    if tree.counts is not None:
        votes = votes * tree.counts[: tree.n_splits, None]
    share = votes.sum(axis=0) / max(votes.sum(), np.finfo(np.float64).tiny)
    is_used = np.zeros((tree.n_splits, tree.n_features), dtype=bool)
    np.logical_or.at(is_used, (slice(None), feature), tree.weights != 0)
    n_splits = is_used.sum(axis=0)
    uses = [
        FeatureUse(name, int(n), float(s))
        for name, n, s in zip(tree.feature_names, n_splits, share, strict=True)
    ]
    return sorted(uses, key=lambda use: -use.share)


def _print_use(tree: ObliqueTree, use: list[FeatureUse]) -> None:
    if tree.n_splits == 0:
        print_text("The tree is a single leaf and uses no feature.")
        return
    used = [u for u in use if u.n_splits > 0]
    rows = [[u.name, f"{u.n_splits} of {tree.n_splits}", f"{u.share:.1%}"] for u in used]
    print_table("Feature use", ["feature", "splits", "share of weight"], rows)
    unused = [u.name for u in use if u.n_splits == 0]
    if unused:
        print_text(f"Not used: {', '.join(unused)}\n")


def _print_record(record: dict[str, Any]) -> None:
    if not record:
        return
    print_text("Training record")
    for name, value in readable_record(record).items():
        print_text(f"  {name}: {value}")
    print_text()


def readable_record(record: dict[str, Any]) -> dict[str, str]:
    """Return a record in words, in order, with what was used where a parameter was "auto"."""
    entries = dict(record)
    resolved = entries.pop("resolved", {})
    if isinstance(entries.get("parameters"), dict) and isinstance(resolved, dict):
        entries["parameters"] = entries["parameters"] | resolved
    order = [name for name in _RECORD_NAMES if name in entries]
    order += [name for name in entries if name not in _RECORD_NAMES]
    return {_RECORD_NAMES.get(name, name): _words(entries[name]) for name in order}


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return str(value)


def _payload(tree: ObliqueTree, use: list[FeatureUse]) -> dict[str, Any]:
    return {
        "task": tree.task,
        "target": list(tree.target_names or ()),
        "classes": None if tree.classes is None else list(tree.classes),
        "depth": tree.depth,
        "n_splits": tree.n_splits,
        "n_leaves": tree.n_leaves,
        "n_features": tree.n_features,
        "features": [
            {"name": u.name, "n_splits": u.n_splits, "share_of_weight": u.share} for u in use
        ],
        "splits": [tree.split(i).describe(max_terms=None) for i in range(tree.n_splits)],
        "text": tree.to_text(max_terms=None),
        "record": tree.record,
    }
