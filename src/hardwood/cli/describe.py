"""`hardwood describe`: what a tree does, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hardwood.cli.models import open_model
from hardwood.cli.options import AsJson, ModelFile
from hardwood.cli.report import print_json, print_table, print_text

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree


@dataclass(frozen=True)
class FeatureUse:
    """In how many splits a feature has a weight, and its share of all weight (sum 1)."""

    name: str
    n_splits: int
    share: float


def describe(
    model: ModelFile,
    terms: Annotated[int, typer.Option(min=1, help="Terms to write per split, the largest.")] = 4,
    as_json: AsJson = False,
) -> None:
    """Print a model: the tree in words, its sizes, the features it uses, how it was learned."""
    tree = open_model(model)
    use = feature_use(tree)
    if as_json:
        print_json(_payload(tree, use))
        return
    print_text(tree.to_text(max_terms=terms))
    _print_use(tree, use)
    _print_record(tree.record)


def feature_use(tree: ObliqueTree) -> list[FeatureUse]:
    """Features by their share of the weights, largest first.

    A weight counts in standard units (per standard deviation of a number; as it is for a level or
    a missing flag). Each split has one vote to divide among its features, and votes count by the
    training rows that pass through the split, where the model knows them.
    """
    scale = tree.schema.column_scale
    feature = np.array([column.feature for column in tree.columns], dtype=np.int64)
    by_feature = np.zeros((tree.n_splits, tree.n_features))
    np.add.at(by_feature, (slice(None), feature), np.abs(tree.weights) * scale)
    total = by_feature.sum(axis=1, keepdims=True)
    votes = np.divide(by_feature, total, out=np.zeros_like(by_feature), where=total > 0)
    if tree.counts is not None:
        votes = votes * tree.counts[: tree.n_splits, None]
    share = votes.sum(axis=0) / max(votes.sum(), np.finfo(np.float64).tiny)
    n_splits = (by_feature > 0).sum(axis=0)
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
    for key, value in record.items():
        words = (
            ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
        )
        print_text(f"  {key}: {words}")


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
