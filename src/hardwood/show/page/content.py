"""A model, and rows if given, as the JSON that the page draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.model.kinds.forest import HardModel, ObliqueForest
from hardwood.show.page.colors import Colors, colors_of
from hardwood.show.page.exact import (
    exact_splits,
    has_fused_products,
    value_factors,
    weight_factors,
)
from hardwood.show.page.histograms import N_BINS, histograms_of
from hardwood.show.page.packing import packed
from hardwood.show.page.rows import DataRows
from hardwood.show.page.sizes import Sizes, sizes_content
from hardwood.show.text import summary
from hardwood.text.condition import Axis, Phrase, phrase
from hardwood.text.leaf import Equation, leaf_equations, says_equations
from hardwood.text.terms import MAX_TERMS, label_text, name_text

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree
    from hardwood.model.views import Split
    from hardwood.table import Feature, Schema

TERMS_ON_CARD = 3  # of a linear leaf
MAX_UNUSED_NAMES = 200
MAX_ROWS = 300


def content_of(
    model: HardModel,
    X: Any = None,
    y: Any = None,
    *,
    max_rows: int = MAX_ROWS,
    sizes: Sizes | None = None,
) -> dict[str, Any]:
    """Return everything that a page shows.

    Parameters
    ----------
    model
        A tree or a forest.
    X, y
        Rows and their true targets, for the histograms; optional.
    max_rows
        Largest number of rows that readers can choose from.
    sizes
        Trees of other sizes, and the model, which is shown first; None for the model alone.

    Raises
    ------
    TableError
        If the rows do not fit the model, or the targets do not fit the rows.
    """
    if X is None and y is not None:
        raise ValueError("y was given without X: pass the rows as well")
    if max_rows < 0:
        raise ValueError(f"max_rows must not be negative, got {max_rows}")
    rows = None if X is None else DataRows.of(model, X, y)
    colors = colors_of(model, rows)
    shown = _shown(model, rows, sizes)
    features = _used_features([tree for tree, _ in shown])
    columns = np.flatnonzero(np.isin(model.schema.column_feature, features))
    return {
        "summary": summary(model),
        "task": model.task,
        "combine": model.combine if isinstance(model, ObliqueForest) else None,
        "link": model.link,
        "decisionWeights": _decision_weights(model),
        "outputs": _output_names(model),
        "target": _target_name(model),
        "fused": has_fused_products(),
        "features": _features(model, features),
        "unused": _unused(model.schema, features),
        "spread": packed(model.schema.column_spread[columns]),
        "knowsSpread": all(model.schema.features[i].spread for i in features.tolist()),
        "bins": N_BINS,
        "colors": colors.to_dict(),
        "sizes": None
        if sizes is None
        else sizes_content(sizes, [own for _, own in shown], features, max_rows),
        "trees": [_tree(tree, columns, own, colors) for tree, own in shown],
        "rows": None if rows is None else _rows(rows, features, max_rows),
    }


def _shown(
    model: HardModel, rows: DataRows | None, sizes: Sizes | None
) -> list[tuple[ObliqueTree, DataRows | None]]:
    """Return the trees, each with the rows and what is predicted for them."""
    if sizes is None:
        return [(tree, rows) for tree in model.hard_trees]
    trees = [point.tree for point in sizes.points]
    return [(tree, None if rows is None else rows.predicted_by(tree)) for tree in trees]


def _output_names(model: HardModel) -> list[str]:
    """Return the name of each output: a class, a label, or a target."""
    if model.classes is not None:
        return [label_text(label) for label in model.classes]
    if model.target_names is not None:
        return [name_text(name) for name in model.target_names]
    if model.n_outputs == 1:
        return ["value"]
    word = "label" if model.task == "multilabel" else "output"
    return [f"{word} {i}" for i in range(model.n_outputs)]


def _decision_weights(model: HardModel) -> list[float] | None:
    return None if model.decision_weights is None else model.decision_weights.tolist()


def _target_name(model: HardModel) -> str | None:
    """Return the name of the target, if there is only one."""
    names = model.target_names
    return name_text(names[0]) if names is not None and len(names) == 1 else None


# Features


def _used_features(trees: Sequence[ObliqueTree]) -> np.ndarray:
    """Return the positions of the features that have a weight."""
    schema = trees[0].schema
    is_used = np.zeros(schema.n_columns, dtype=bool)
    for tree in trees:
        is_used |= (tree.weights != 0).any(axis=0)
        if tree.leaf_weights is not None:
            is_used |= (tree.leaf_weights != 0).any(axis=(0, 1))
    return np.unique(schema.column_feature[is_used])


def _features(model: HardModel, used: np.ndarray) -> list[dict[str, Any]]:
    schema = model.schema
    factors = value_factors(schema)
    is_number = np.array([feature.kind == "numeric" for feature in schema.features])
    slots = np.cumsum(is_number) - 1  # the engine lines up all numeric features
    return [
        _feature(schema.features[i], int(slots[i]), float(factors[schema.first_column[i]]))
        | {"importance": float(model.feature_importances[i])}
        for i in used.tolist()
    ]


def _feature(feature: Feature, slot: int, factor: float) -> dict[str, Any]:
    common = {"name": name_text(feature.name), "flag": feature.has_missing}
    if feature.kind == "categorical":
        return common | {"levels": [label_text(level) for level in feature.levels]}
    return common | {
        "slot": slot,
        "center": feature.center,
        "factor": factor,
        "origin": feature.origin,
    }


def _unused(schema: Schema, used: np.ndarray) -> dict[str, Any]:
    unused = np.setdiff1d(np.arange(schema.n_features), used)
    names = [name_text(schema.names[i]) for i in unused[:MAX_UNUSED_NAMES].tolist()]
    return {"count": unused.size, "names": names}


# Trees


def _tree(
    tree: ObliqueTree, columns: np.ndarray, rows: DataRows | None, colors: Colors
) -> dict[str, Any]:
    """Return one tree; ``columns`` are those of its schema that the page has."""
    exact = exact_splits(tree)
    splits = [_split(tree.split(i)) for i in range(tree.n_splits)]
    return {
        "task": tree.task,
        "children": packed(tree.children),
        "weights": packed(exact.weights[:, columns]),
        "bias": packed(exact.bias),
        "exponent": packed(exact.exponent),
        "values": packed(tree.values),
        "counts": None if tree.counts is None else packed(tree.counts),
        "conditions": [words for words, _ in splits],
        "axes": [axis for _, axis in splits],
        "link": tree.link,
        "leafWeights": _leaf_weights(tree, columns),
        "equations": _equations(tree),
        "scorecards": _scorecards(tree),
        "histograms": None if rows is None else histograms_of(tree, rows, colors),
    }


def _split(split: Split) -> tuple[list[Any], list[Any]]:
    """Return a condition as text, and the axis for its scores."""
    words = phrase(split, max_terms=MAX_TERMS, digits="auto")
    right_side = f"{words.relation} {words.threshold}" if words.relation else ""
    return [list(words.terms), words.n_left_out, right_side], _axis(words)


def _axis(words: Phrase) -> list[Any]:
    """Return threshold, factor and origin; those of the score where they exceed float64."""
    is_drawable = np.isfinite([words.axis.threshold, words.axis.factor]).all()
    return list(astuple(words.axis if is_drawable else Axis()))


def _leaf_weights(tree: ObliqueTree, columns: np.ndarray) -> Any:
    if tree.leaf_weights is None:
        return None
    return packed((tree.leaf_weights * weight_factors(tree.schema))[:, :, columns])


def _equations(tree: ObliqueTree) -> list[list[str]] | None:
    """Return linear leaves as text."""
    if not says_equations(tree):
        return None
    return [
        [e.line() for e in leaf_equations(tree, leaf, max_outputs=None, digits="auto")]
        for leaf in range(tree.n_leaves)
    ]


def _scorecards(tree: ObliqueTree) -> list[list[Any]] | None:
    """Return what each linear leaf predicts, its largest terms, and how many are left out.

    None where a leaf has more than one equation, or none.
    """
    if not says_equations(tree):
        return None
    leaves = [
        leaf_equations(tree, leaf, max_terms=None, digits="auto") for leaf in range(tree.n_leaves)
    ]
    return [_scorecard(*equations) for equations in leaves] if len(leaves[0]) == 1 else None


def _scorecard(equation: Equation) -> list[Any]:
    terms = [str(term) for term in equation.formula.terms]
    shown = terms[:TERMS_ON_CARD]
    return [equation.left_side or "linear", shown, len(terms) - len(shown)]


# Rows


def _rows(rows: DataRows, features: np.ndarray, max_rows: int) -> dict[str, Any]:
    chosen = rows.chosen(max_rows)
    truth = rows.truth
    return {
        "inTable": rows.n_table_rows,
        "counted": len(rows),
        "number": packed(rows.number[chosen]),
        "columns": [packed(rows.matrix[chosen, j]) for j in features.tolist()],
        "truth": None if truth is None else packed(truth[chosen]),
        "outputs": packed(rows.outputs[chosen]),
    }
