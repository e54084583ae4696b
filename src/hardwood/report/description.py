"""Description of a model: the tree as text, its size, the features it uses, how it was learned."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from hardwood.model.base import Ensemble, Model, model_of
from hardwood.model.files.container import METADATA_KEY
from hardwood.model.files.file import dumps
from hardwood.model.kinds.soft_ensemble import TreeEnsemble
from hardwood.model.views import PolicySplit
from hardwood.report.feature_use import FeatureUse, feature_use, n_linear_leaves
from hardwood.text.blocks import Block, Text, TextTable
from hardwood.text.frames import columns_of
from hardwood.text.numbers import format_bytes, format_digits, format_percent, plural
from hardwood.text.report import Report
from hardwood.text.terms import MAX_TERMS, measure_of

if TYPE_CHECKING:
    from hardwood.text.report import Tables

_MAX_TREES_LISTED = 10
_MAX_FEATURES_LISTED = 10
_MAX_WEIGHTS_LISTED = 40

# Entries of the training record in the order of display, with their names; others follow.
_RECORD_NAMES = {
    "learner": "learner",
    "table": "table",
    "table_rows": "rows of the table",
    "training_rows": "training rows",
    "distinct_rows": "distinct training rows",
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
CURVES = "curves"  # plotted, not printed


@dataclass(frozen=True)
class FileFacts:
    """The model file: format, kind, size and checksum."""

    format: int
    kind: str
    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class TreeSizes:
    """Size of one tree of an ensemble."""

    depth: int
    n_splits: int
    n_leaves: int


@dataclass(frozen=True, repr=False, eq=False)
class Description(Report):
    """Description of a model, made by `describe`.

    Attributes
    ----------
    model
        The model.
    max_terms, max_depth, node
        Terms per split and levels that the text shows, and the split that it begins with.
    features
        Every feature with its use and importance, the most important first.
    n_weights
        Number of nonzero weights.
    file
        Facts about the file that `save` writes.
    """

    model: Model
    max_terms: int | None
    max_depth: int | Literal["auto"] | None
    node: int
    features: tuple[FeatureUse, ...]
    n_weights: int
    file: FileFacts

    @property
    def title(self) -> str:
        """Task and size of the model."""
        return _first_line(self.model)

    def _blocks(self) -> Sequence[Block]:
        return [
            self._trees_grid() if self.model.is_ensemble else self._tree_text(),
            *self._weights_grid(),
            *self._use_blocks(),
            self._cost_text(),
            *self._record_text(),
        ]

    def _tree_text(self) -> Text:
        lines = self._text(self.max_terms).splitlines()[1:]
        return Text("\n".join(lines).strip("\n"))

    def _text(self, max_terms: int | None) -> str:
        return self.model.to_text(max_terms=max_terms, max_depth=self.max_depth, node=self.node)

    def _weights_grid(self) -> list[TextTable]:
        """Return the weights of sums; nothing if standard deviations are not known, or no sums."""
        if self.model.is_ensemble:
            return []
        rows = _weights_of_sums(self.model)
        left_out = len(rows) - _MAX_WEIGHTS_LISTED
        more = f"... and {plural(left_out, 'more weight')} (JSON has all)" if left_out > 0 else ""
        table = TextTable.of(
            "Weights of the sums, with the signs of the text",
            ["split", "column", "per unit", "per standard deviation"],
            rows[:_MAX_WEIGHTS_LISTED],
            text_columns=(0, 1),
            note=more,
        )
        return [table] if rows else []

    def _trees_grid(self) -> TextTable:
        trees = _trees(self.model)
        rows = [
            [str(i), str(tree.depth), str(tree.n_splits), str(tree.n_leaves)]
            for i, tree in enumerate(trees[:_MAX_TREES_LISTED], start=1)
        ]
        left_out = len(trees) - len(rows)
        more = f"... and {plural(left_out, 'more tree')}" if left_out else ""
        return TextTable.of("Trees", ["tree", "depth", "splits", "leaves"], rows, note=more)

    def _use_blocks(self) -> list[Block]:
        model, used = self.model, [use for use in self.features if use.is_used]
        if not used:
            what = "The model has no weights" if model.n_splits else "The tree is a single leaf"
            if self.model.is_ensemble and not model.n_splits:
                what = "Every tree is a single leaf"
            return [Text(f"{what} and uses no feature.")]
        header = ["feature", "splits", "importance"]
        rows = [
            [u.name, f"{u.n_splits} of {model.n_splits}", format_percent(u.importance)]
            for u in used
        ]
        if n_linear := n_linear_leaves(model):
            header.append("linear leaves")
            rows = [
                [*row, f"{u.n_leaves} of {n_linear}"] for row, u in zip(rows, used, strict=True)
            ]
        left_out = len(rows) - _MAX_FEATURES_LISTED
        more = f"... and {plural(left_out, 'more feature')} (JSON has all)"
        shown = rows[:_MAX_FEATURES_LISTED]
        grid = TextTable.of("Feature use", header, shown, note=more if left_out > 0 else "")
        unused = [use.name for use in self.features if not use.is_used]
        return [grid, Text(f"Not used: {', '.join(unused)}")] if unused else [grid]

    def _cost_text(self) -> Text:
        cost = self.model.flops()
        lines = [] if cost.mean is None else [f"  mean: {cost.mean}"]
        lines += [
            f"  worst: {cost.worst}",
            f"  {plural(self.n_weights, 'nonzero weight')}; model file of "
            f"{format_bytes(self.file.n_bytes)}, format {self.file.format}",
        ]
        return Text("\n".join(lines), "Cost of one prediction")

    def _record_text(self) -> list[Text]:
        entries = readable_record(self.model.record)
        lines = [f"  {name}: {value}" for name, value in entries.items()]
        return [Text("\n".join(lines), "Training record")] if lines else []

    def _content(self) -> dict[str, Any]:
        model = self.model
        common = {
            "kind": type(model).__name__,
            "task": model.task,
            "target": list(model.target_names or ()),
            "classes": model.classes,
            "depth": model.depth,
            "n_splits": model.n_splits,
            "n_leaves": model.n_leaves,
            "n_weights": self.n_weights,
            "has_linear_leaves": n_linear_leaves(model) > 0,
            "n_features": model.n_features,
            "features": [
                {
                    "name": use.name,
                    "n_splits": use.n_splits,
                    "importance": use.importance,
                    "n_linear_leaves": use.n_leaves,
                }
                for use in self.features
            ],
            "cost": asdict(model.flops()),
            "file": asdict(self.file),
            "record": model.record,
        }
        return common | (self._trees_content() if self.model.is_ensemble else self._tree_content())

    def _tree_content(self) -> dict[str, Any]:
        tree: Any = self.model  # a kind that has splits to show
        return {
            "splits": [tree.split(i).describe(max_terms=None) for i in tree.split_numbers],
            "terms": [_terms(tree, i) for i in tree.split_numbers],
            "text": self._text(max_terms=None),
        }

    def _trees_content(self) -> dict[str, Any]:
        model = self.model
        assert isinstance(model, Ensemble)
        softness = {"gamma": model.gamma} if isinstance(model, TreeEnsemble) else {}
        trees = {"n_trees": model.n_trees, "trees": list(map(asdict, _trees(model)))}
        return {"combine": model.combine} | softness | trees

    def _tables(self) -> Tables:
        content = self._content()
        tables: Tables = {"features": _columns(content["features"])}
        if self.model.is_ensemble:
            return tables | {"trees": columns_of(TreeSizes, _trees(self.model))}
        numbered = zip(self.model.split_numbers, content["terms"], strict=True)
        terms = [{"split": i} | term for i, of in numbered for term in of]
        return tables | ({"terms": _columns(terms)} if terms else {})


def describe(
    model: Any,
    *,
    max_terms: int | None = MAX_TERMS,
    max_depth: int | Literal["auto"] | None = "auto",
    node: int = 0,
) -> Description:
    """Describe a model.

    Parameters
    ----------
    model
        A tree, a forest, or a fitted estimator.
    max_terms
        Number of terms to show per split, the largest first; None for all. JSON and data frames
        always have all terms.
    max_depth, node
        Number of levels to show, and the split to begin with, of a single tree: see
        `hardwood.ObliqueTree.to_text`.

    Returns
    -------
    report
        The tree as text, its size, the features that it uses, the cost of a prediction, and how it
        was learned. For a forest, the sizes of its trees; pass ``forest.trees[0]`` to see one.
    """
    model = model_of(model)
    return Description(
        model=model,
        max_terms=max_terms,
        max_depth=max_depth,
        node=node,
        features=tuple(feature_use(model)),
        n_weights=model.n_weights,
        file=_file_facts(model),
    )


def _first_line(model: Model) -> str:
    return model.to_text(max_depth=0).splitlines()[0]


def _trees(model: Model) -> list[TreeSizes]:
    trees = map(model.hard_tree, range(model.n_trees))
    return [TreeSizes(tree.depth, tree.n_splits, tree.n_leaves) for tree in trees]


def _file_facts(model: Model) -> FileFacts:
    content = dumps(model)
    length = int.from_bytes(content[:8], "little")
    head = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][METADATA_KEY])
    return FileFacts(
        head["format"], head["kind"], len(content), hashlib.sha256(content).hexdigest()
    )


def _weights_of_sums(tree: Any) -> list[list[str]]:
    """List split, column and weight, per unit and per training standard deviation."""
    rows = []
    for i in tree.split_numbers:
        terms = _one_sum(tree.split(i)).terms
        if len(terms) < 2 or not all(tree.schema.features[term.feature].spread for term in terms):
            continue
        sign = math.copysign(1.0, terms[0].weight)
        for place, term in enumerate(terms):
            measure = measure_of(tree.schema, term, 3)
            is_number = term.kind == "number"
            name = measure.name if is_number else tree.schema.column_names[term.column]
            weight = sign * term.weight * measure.unit
            comparable = math.copysign(term.importance, weight)
            number = str(i) if place == 0 else ""
            rows.append([number, name, format_digits(weight, "auto"), format_digits(comparable, 3)])
    return rows


def _one_sum(view: Any) -> Any:
    """Return what has the terms of a condition: the split, or the second of its two branches."""
    return view.branches[-1] if isinstance(view, PolicySplit) and len(view.branches) == 2 else view


def _terms(tree: Any, split: int) -> list[dict[str, Any]]:
    view = tree.split(split)
    if isinstance(view, PolicySplit):
        return [
            {"branch": i} | of
            for i, branch in enumerate(view.branches, start=1)
            for of in _of(branch)
        ]
    return _of(view)


def _of(view: Any) -> list[dict[str, Any]]:
    return [
        {
            "feature": term.name,
            "kind": term.kind,
            "level": None if term.level is None else str(term.level),
            "weight": term.weight,
            "importance": term.importance,
        }
        for term in view.terms
    ]


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


# The training record as text


def readable_record(record: dict[str, Any]) -> dict[str, str]:
    """Return a record as text, in order, with the value that each "auto" parameter was given."""
    entries = {name: entry for name, entry in record.items() if name != CURVES}
    resolved = entries.pop("resolved", {})
    if isinstance(entries.get("parameters"), dict) and isinstance(resolved, dict):
        entries["parameters"] = entries["parameters"] | resolved
    order = [name for name in _RECORD_NAMES if name in entries]
    order += [name for name in entries if name not in _RECORD_NAMES]
    return {_RECORD_NAMES.get(name, name): _entry_text(entries[name]) for name in order}


def _entry_text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_entry_text(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(_entry_text, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return str(value)
