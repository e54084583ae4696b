"""`hardwood describe`: what a model does, in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hardwood.cli.failures import CommandError, check_writable
from hardwood.cli.models import is_forest, open_model, trees_of
from hardwood.cli.options import AsJson, ModelFile
from hardwood.cli.pictures import check_drawable, draw
from hardwood.cli.report import counted, print_json, print_table, print_text

if TYPE_CHECKING:
    from hardwood.cli.models import Model
    from hardwood.model import ObliqueForest, ObliqueTree

_MAX_TREES_LISTED = 10
_MAX_FEATURES_LISTED = 10
# What the record of a forest says of each of its trees, too.
_OF_ALL_TREES = ("table", "table_rows", "training_rows", "test_rows", "resolved")

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
    "oob_score": "out-of-bag score",
    "parameters": "parameters",
}


@dataclass(frozen=True)
class FeatureUse:
    """In how many splits a feature has a weight, and its share of all their weight (sum 1).

    ``n_leaves`` counts the linear leaves in which it has a weight.
    """

    name: str
    n_splits: int
    share: float
    n_leaves: int = 0


def describe(
    model: ModelFile,
    terms: Annotated[
        int, typer.Option(min=1, metavar="N", help="Terms to show per split, the largest.")
    ] = 4,
    tree: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Describe this tree of a forest, counted from 1."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the tree, too: .png, .svg, .pdf, ..."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a model: the tree in words, its sizes, the features it uses, how it was learned.

    Of a forest: its sizes, the features that its trees use, and with --tree N one of the trees.
    With --plot also draw the tree, which needs matplotlib (the extra `plot`).
    """
    if plot is not None:
        check_writable(plot, inputs=(model,), option="--plot")
        check_drawable(plot)
    shown = _chosen(open_model(model), model, tree)
    use = feature_use(shown)
    if plot is not None:
        draw(_drawable(shown), plot, max_terms=terms)
    if as_json:
        print_json(_payload(shown, use) | {"picture": None if plot is None else str(plot)})
        return
    if is_forest(shown):
        _print_forest(shown)
    else:
        print_text(shown.to_text(max_terms=terms))
    _print_use(shown, use)
    _print_cost(shown)
    _print_record(shown.record)
    if is_forest(shown):
        print_text(f"One of the trees in words: hardwood describe {model} --tree 1")
    if plot is not None:
        print_text(f"Drew the tree: {plot}")


def _chosen(model: Model, path: Path, number: int | None) -> Model:
    """Return what is to be described: the model, or one tree of a forest."""
    if number is None:
        return model
    trees = trees_of(model)
    if not is_forest(model):
        raise CommandError(f"{path} holds a single tree; --tree chooses one of a forest.")
    if number > len(trees):
        raise CommandError(f"{path} has the trees 1 to {len(trees)}, not --tree {number}.")
    tree = trees[number - 1]
    common = {name: model.record[name] for name in _OF_ALL_TREES if name in model.record}
    return tree.replace(record=common | tree.record)


def _drawable(model: Model) -> ObliqueTree:
    if is_forest(model):
        raise CommandError("A drawing shows one tree: choose it with --tree N.")
    return model


def feature_use(model: Model) -> list[FeatureUse]:
    """Features by their share of the weights of splits, largest first.

    A weight counts per standard deviation of its column, levels and missing flags included. Each
    split has one vote to divide among its features, and votes count by the training rows that pass
    through the split, where the model knows them. The trees of a forest count alike.
    """
    trees = trees_of(model)
    votes = np.sum([_votes(tree) for tree in trees], axis=0)
    share = votes / max(votes.sum(), np.finfo(np.float64).tiny)
    n_splits = np.sum([_times_used(tree, tree.weights) for tree in trees], axis=0)
    n_leaves = np.sum([_leaves_used(tree) for tree in trees], axis=0)
    uses = [
        FeatureUse(name, int(n), float(s), int(leaves))
        for name, n, s, leaves in zip(model.feature_names, n_splits, share, n_leaves, strict=True)
    ]
    return sorted(uses, key=lambda use: (-use.share, -use.n_leaves))


def _votes(tree: ObliqueTree) -> np.ndarray:
    """Share of each feature in the weights of a tree's splits, (p,); 0 of a single leaf."""
    feature = tree.schema.column_feature
    by_feature = np.zeros((tree.n_splits, tree.n_features))
    np.add.at(by_feature, (slice(None), feature), np.abs(tree.weights) * tree.schema.column_spread)
    total = by_feature.sum(axis=1, keepdims=True)
    votes = np.divide(by_feature, total, out=np.zeros_like(by_feature), where=total > 0)
    if tree.counts is not None:
        votes = votes * tree.counts[: tree.n_splits, None]
    shares: np.ndarray = votes.sum(axis=0) / max(votes.sum(), np.finfo(np.float64).tiny)
    return shares


def _times_used(tree: ObliqueTree, weights: np.ndarray) -> np.ndarray:
    """Count the rows of weights (r, c) in which each feature has one other than zero, (p,)."""
    is_used = np.zeros((len(weights), tree.n_features), dtype=bool)
    np.logical_or.at(is_used, (slice(None), tree.schema.column_feature), weights != 0)
    times: np.ndarray = is_used.sum(axis=0)
    return times


def _leaves_used(tree: ObliqueTree) -> np.ndarray:
    if tree.leaf_weights is None:
        return np.zeros(tree.n_features, dtype=np.int64)
    return _times_used(tree, (tree.leaf_weights != 0).any(axis=1))


def _print_forest(forest: ObliqueForest) -> None:
    print_text(forest.to_text(max_trees=0).splitlines()[0] + "\n")
    shown = forest.trees[:_MAX_TREES_LISTED]
    rows = [
        [str(i), str(tree.depth), str(tree.n_splits), str(tree.n_leaves)]
        for i, tree in enumerate(shown, start=1)
    ]
    print_table("Trees", ["tree", "depth", "splits", "leaves"], rows)
    left_out = forest.n_trees - len(shown)
    if left_out:
        print_text(f"... and {counted(left_out, 'more tree', 'more trees')}\n")


def _print_use(model: Model, use: list[FeatureUse]) -> None:
    used = [u for u in use if u.n_splits + u.n_leaves > 0]
    if not used:
        what = "The tree is a single leaf" if model.n_splits == 0 else "The model has no weights"
        if is_forest(model) and model.n_splits == 0:
            what = "Every tree is a single leaf"
        print_text(f"{what} and uses no feature.")
        return
    header = ["feature", "splits", "share of weight"]
    rows = [[u.name, f"{u.n_splits} of {model.n_splits}", f"{u.share:.1%}"] for u in used]
    if model.has_linear_leaves:
        header.append("linear leaves")
        for row, u in zip(rows, used, strict=True):
            row.append(f"{u.n_leaves} of {_n_linear_leaves(model)}")
    print_table("Feature use", header, rows[:_MAX_FEATURES_LISTED])
    if len(rows) > _MAX_FEATURES_LISTED:
        left_out = counted(len(rows) - _MAX_FEATURES_LISTED, "more feature")
        print_text(f"... and {left_out} (--json has all)\n")
    unused = [u.name for u in use if u.n_splits + u.n_leaves == 0]
    if unused:
        print_text(f"Not used: {', '.join(unused)}\n")


def _n_linear_leaves(model: Model) -> int:
    return sum(tree.n_leaves for tree in trees_of(model) if tree.has_linear_leaves)


def _print_cost(model: Model) -> None:
    cost = model.flops()
    print_text("Cost of a prediction")
    if cost.mean is not None:
        print_text(f"  mean: {cost.mean}")
    print_text(f"  worst: {cost.worst}\n")


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


def _payload(model: Model, use: list[FeatureUse]) -> dict[str, Any]:
    common = {
        "kind": type(model).__name__,
        "task": model.task,
        "target": list(model.target_names or ()),
        "classes": None if model.classes is None else list(model.classes),
        "depth": model.depth,
        "n_splits": model.n_splits,
        "n_leaves": model.n_leaves,
        "has_linear_leaves": model.has_linear_leaves,
        "n_features": model.n_features,
        "features": [
            {
                "name": u.name,
                "n_splits": u.n_splits,
                "share_of_weight": u.share,
                "n_linear_leaves": u.n_leaves,
            }
            for u in use
        ],
        "cost": asdict(model.flops()),
        "record": model.record,
    }
    return common | (_forest_payload(model) if is_forest(model) else _tree_payload(model))


def _tree_payload(tree: ObliqueTree) -> dict[str, Any]:
    return {
        "splits": [tree.split(i).describe(max_terms=None) for i in range(tree.n_splits)],
        "text": tree.to_text(max_terms=None),
    }


def _forest_payload(forest: ObliqueForest) -> dict[str, Any]:
    return {
        "combine": forest.combine,
        "n_trees": forest.n_trees,
        "trees": [
            {"depth": tree.depth, "n_splits": tree.n_splits, "n_leaves": tree.n_leaves}
            for tree in forest.trees
        ],
    }
