"""A model as an ONNX graph of standard operators: a matrix product and a tree node.

The graph does the engine's steps. Numbers minus their centers are rounded to float32. One MatMul
computes the sums of all splits in float64. Whether each sum is at least 0 goes into a
TreeEnsembleRegressor, with all thresholds one half, that returns the number of the leaf, which
selects the leaf's values. Because sums are in float64 rather than the engine's float32, a row
within rounding of a split on several features may take the other side; splits on one feature agree
for all rows.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hardwood import __version__
from hardwood.errors import ExportError, MissingExtraError
from hardwood.export.conditions import exact_splits
from hardwood.export.exported import ExportedBytes, check_path, exported
from hardwood.export.names import identifiers
from hardwood.export.onnx.graph import Graph, Kind
from hardwood.export.plan import LARGEST, Plan, PlannedTree, plan_of
from hardwood.export.probes import Probes, unseen_level
from hardwood.export.verify import Check, Predictions, verified

if TYPE_CHECKING:
    from hardwood.table.feature import Feature

Inputs = Literal["auto", "columns", "matrix"]
_OUTPUTS = ("label", "labels", "probabilities", "prediction", "leaf")
_NODES = "treeids nodeids featureids modes values truenodeids falsenodeids"
_TREE_ATTRIBUTES = (
    *(f"nodes_{name}" for name in _NODES.split()),
    *(f"target_{name}" for name in ("treeids", "nodeids", "ids", "weights")),
)
_MAX_LEAVES = 2**24  # float32 represents every smaller integer


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    inputs: Inputs = "auto",
    data: Any = None,
) -> ExportedBytes:
    """Write a model as an ONNX graph of standard operators.

    Outputs: ``label`` (N,) and ``probabilities`` (N, k) for classes; ``labels`` and
    ``probabilities`` (N, k) for labels; ``prediction`` (N, k) for regression; and ``leaf`` (N, T),
    the leaf in each tree. Numbers are float64.

    Parameters
    ----------
    model
        An ObliqueTree or ObliqueForest.
    path
        File to write; None only returns the bytes.
    inputs
        ``"columns"``: an input (N, 1) for each feature, float64 for numbers with NaN where missing,
        text for categories that are text, any unknown text where missing. ``"matrix"``: one input
        ``X`` (N, p) of float64, if all features are numbers. ``"auto"``: a matrix if the features
        are numbers without names.
    data
        A table to check the export on. By default, rows are simulated from the schema.

    Returns
    -------
    content
        The file's bytes; ``content.check`` says how they were checked.

    Raises
    ------
    MissingExtraError
        If the package onnx is not installed.
    ExportError
        If ONNX Runtime (or without it ONNX's own reference evaluator) predicts differently from
        the library.
    """
    try:
        import onnx  # noqa: F401  (only to see whether it is installed)
    except ImportError as error:
        raise MissingExtraError("onnx", extra="onnx", purpose="An export to ONNX") from error
    check_path(path, "model.onnx")
    plan = plan_of(model)
    as_matrix = _as_matrix(plan, inputs)
    names = _input_names(plan, as_matrix)
    content = _GraphWriter(plan, names, as_matrix).content()
    check = _check(Probes.of(plan, data), content, as_matrix)
    return exported(ExportedBytes(content), check, path)


def _as_matrix(plan: Plan, inputs: Inputs) -> bool:
    if inputs not in ("auto", "columns", "matrix"):
        raise ExportError(f"inputs must be 'auto', 'columns' or 'matrix', not {inputs!r:.80}")
    if inputs == "matrix" and not plan.schema.is_numeric:
        raise ExportError("inputs='matrix' needs features that are all numbers; use 'columns'")
    return inputs == "matrix" or (
        inputs == "auto" and plan.schema.is_numeric and not plan.schema.named
    )


def _input_names(plan: Plan, as_matrix: bool) -> list[str]:
    """Names of the inputs: those of the features, if they are valid identifiers."""
    return ["X"] if as_matrix else identifiers(plan.schema.names, taken=_OUTPUTS)


def _is_text(feature: Feature) -> bool:
    """Whether the levels of a feature are text; it must be all of them or none."""
    kinds = {isinstance(level, str) for level in feature.levels}
    if len(kinds) > 1:
        raise ExportError(
            f"feature {feature.name!r:.80} has categories that are text and categories that are "
            "numbers; an input of a graph has one type. Learn from a column of one type."
        )
    return kinds == {True}


class _GraphWriter:
    """Writes the graph of a model."""

    def __init__(self, plan: Plan, names: list[str], as_matrix: bool) -> None:
        self.plan, self.names, self.as_matrix = plan, names, as_matrix
        prefix = "hw"
        while any(name.lower().startswith(prefix) for name in names):
            prefix += "_"
        self.graph = Graph(prefix)

    def content(self) -> bytes:
        plan, graph = self.plan, self.graph
        if max(tree.n_leaves for tree in plan.trees) >= _MAX_LEAVES:
            raise ExportError(f"a tree of {_MAX_LEAVES} leaves or more has no form in ONNX")
        row, indicators = self._encoded()
        leaf = self._leaves(row, indicators)
        self._answer(row, indicators, leaf)
        metadata = {
            "hardwood.version": __version__,
            "hardwood.task": plan.model.task,
            "hardwood.features": json.dumps(list(plan.schema.names)),
            "hardwood.inputs": json.dumps(self.names),
            "hardwood.outputs": json.dumps(list(plan.output_names)),
        }
        return graph.model("hardwood", plan.summary, __version__, metadata)

    # From inputs to encoded columns

    def _encoded(self) -> tuple[str, list[int]]:
        """Return the encoded rows (N, c): all values, then the indicators that are listed."""
        graph, encoding = self.graph, self.plan.encoding
        inputs = {}
        for j, feature in enumerate(self.plan.schema.features):
            kind = Kind.STRING if _is_text(feature) else Kind.DOUBLE
            if not self.as_matrix:
                inputs[j] = graph.input(self.names[j], kind, 1, feature.name)
        parts, indicators = [], []
        if encoding.n_values:
            numbers = self._numbers(inputs)
            missing = graph.node("IsNaN", numbers)
            parts.append(self._values(numbers, missing))
            flagged = [j for j, f in enumerate(encoding.numeric.tolist()) if f in encoding.flag]
            if flagged:
                of_flagged = graph.node("Gather", missing, graph.constant(flagged), axis=1)
                parts.append(graph.cast(of_flagged, Kind.DOUBLE))
                indicators += [encoding.flag[int(encoding.numeric[j])] for j in flagged]
        for j, feature in enumerate(self.plan.schema.features):
            if feature.kind == "categorical":
                parts.append(self._levels(inputs[j], feature))
                first = encoding.first_level[j]
                indicators += range(first, first + len(feature.levels) + feature.has_missing)
        row = parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)
        return row, indicators

    def _numbers(self, inputs: dict[int, str]) -> str:
        """Return the raw numbers (N, n)."""
        graph, encoding = self.graph, self.plan.encoding
        if self.as_matrix:
            return graph.input("X", Kind.DOUBLE, encoding.n_values, "one column a feature")
        numbers = [inputs[j] for j in encoding.numeric.tolist()]
        return numbers[0] if len(numbers) == 1 else graph.node("Concat", *numbers, axis=1)

    def _values(self, numbers: str, missing: str) -> str:
        """Return the numbers minus their centers, rounded to float32, 0 where missing."""
        graph, encoding = self.graph, self.plan.encoding
        value = graph.node("Sub", numbers, graph.constant(encoding.center))
        if encoding.is_scaled:
            value = graph.node("Mul", value, graph.constant(encoding.inverse_scale))
        value = graph.node("Where", missing, graph.constant(np.float64(0)), value)
        limits = (graph.constant(np.float64(-LARGEST)), graph.constant(np.float64(LARGEST)))
        value = graph.node("Min", graph.node("Max", value, limits[0]), limits[1])
        return graph.cast(graph.cast(value, Kind.FLOAT), Kind.DOUBLE)

    def _levels(self, source: str, feature: Feature) -> str:
        """Return the indicators (N, levels and missing) of a categorical feature."""
        graph, n = self.graph, len(feature.levels)
        if _is_text(feature):
            code = graph.node(
                "LabelEncoder",
                graph.node("Reshape", source, graph.constant([-1])),
                domain="ai.onnx.ml",
                keys_strings=[str(level) for level in feature.levels],
                values_int64s=list(range(n)),
                default_int64=n,
            )
            width = n + feature.has_missing
            return graph.node("Gather", graph.constant(np.eye(n + 1, width)), code, axis=0)
        in_range = all(abs(level) < 2**1024 for level in feature.levels)  # type: ignore[arg-type]
        numbers = np.array([[float(level) if in_range else 0.0 for level in feature.levels]])
        if not in_range or len(set(numbers[0].tolist())) < n:
            raise ExportError(
                f"categories of feature {feature.name!r:.80} are integers too large for float64"
            )
        equal = graph.node("Equal", source, graph.constant(numbers))
        on = graph.cast(equal, Kind.DOUBLE)
        if not feature.has_missing:
            return on
        known = graph.node("ReduceSum", on, graph.constant([1]))
        flag = graph.node("Sub", graph.constant(np.float64(1)), known)
        return graph.node("Concat", on, flag, axis=1)

    # From columns to leaves

    def _leaves(self, row: str, indicators: list[int]) -> str:
        """Return the leaf of each row in each tree, (N, T) int64."""
        graph, trees = self.graph, self.plan.trees
        weights, biases = (
            [np.zeros((self.plan.encoding.n_values + len(indicators), 0))],
            [np.zeros(0)],
        )
        for tree in trees:
            of_values, of_indicators, bias = exact_splits(tree, self.plan.encoding)
            weights.append(np.concatenate([of_values, of_indicators[:, indicators]], axis=1).T)
            biases.append(bias)
        matrix, bias = np.concatenate(weights, axis=1), np.concatenate(biases)
        if len(bias) == 0:  # a tree node needs a column
            matrix, bias = np.zeros((len(matrix), 1)), np.zeros(1)
        score = graph.node("MatMul", row, graph.constant(matrix))
        score = graph.node("Add", score, graph.constant(bias))
        right = graph.node("GreaterOrEqual", score, graph.constant(np.float64(0)))
        right = graph.cast(right, Kind.FLOAT)
        leaf = graph.node(
            "TreeEnsembleRegressor", right, domain="ai.onnx.ml", **_tree_attributes(trees)
        )
        return graph.cast(leaf, Kind.INT64)

    # From leaves to predictions

    def _answer(self, row: str, indicators: list[int], leaf: str) -> None:
        plan, graph = self.plan, self.graph
        first = np.cumsum([0, *(tree.n_leaves for tree in plan.trees)])[:-1]
        place = graph.node("Add", leaf, graph.constant(first[None, :]))
        table = graph.constant(np.concatenate([tree.values for tree in plan.trees]))
        total = None
        for trees in self._groups():
            chosen = place
            if len(trees) < len(plan.trees):
                chosen = graph.node("Gather", place, graph.constant(trees), axis=1)
            leaf_outputs = graph.node("Gather", table, chosen, axis=0)  # (N, trees, k)
            if plan.trees[trees[0]].leaf_weights is not None:
                leaf_outputs = self._linear(row, indicators, trees, leaf, leaf_outputs)
            added = graph.node("ReduceSum", leaf_outputs, graph.constant([1]), keepdims=0)
            total = added if total is None else graph.node("Add", total, added)
        assert total is not None
        self._results(self._combined(total))
        graph.output("leaf", leaf, Kind.INT64, ["N", len(plan.trees)])

    def _groups(self) -> list[list[int]]:
        """Group trees with constant leaves, and those with linear leaves by their link."""
        groups: dict[str, list[int]] = {}
        for t, tree in enumerate(self.plan.trees):
            groups.setdefault("" if tree.leaf_weights is None else tree.link, []).append(t)
        return list(groups.values())

    def _linear(
        self,
        row: str,
        indicators: list[int],
        trees: list[int],
        leaf: str,
        constants: str,
    ) -> str:
        """Return the outputs of linear leaves, (N, trees, k)."""
        graph, members = self.graph, [self.plan.trees[t] for t in trees]
        weights = [
            np.concatenate(
                [tree.leaf_weights, tree.leaf_indicators[:, :, indicators]],  # type: ignore[index]
                axis=2,
            )
            for tree in members
        ]
        first = np.cumsum([0, *(tree.n_leaves for tree in members)])[:-1]
        own = graph.node("Gather", leaf, graph.constant(trees), axis=1)
        place = graph.node("Add", own, graph.constant(first[None, :]))
        chosen = graph.node("Gather", graph.constant(np.concatenate(weights)), place, axis=0)
        column = graph.node("Reshape", row, graph.constant([-1, 1, weights[0].shape[2], 1]))
        score = graph.node("MatMul", chosen, column)  # (N, trees, k, 1)
        score = graph.node(
            "Reshape", score, graph.constant([-1, len(trees), self.plan.model.n_outputs])
        )
        output = self._linked(graph.node("Add", score, constants), members[0].link)
        return self._voted(output, members[0].vote)

    def _linked(self, scores: str, link: str) -> str:
        if link == "identity":
            return scores
        if link == "softmax":
            return self.graph.node("Softmax", scores, axis=-1)
        return self.graph.node("Exp" if link == "exp" else "Sigmoid", scores)

    def _voted(self, output: str, vote: str) -> str:
        graph = self.graph
        if vote == "class":
            best = graph.node("ArgMax", output, axis=-1, keepdims=0)
            return graph.node(
                "Gather", graph.constant(np.eye(self.plan.model.n_outputs)), best, axis=0
            )
        if vote == "labels":
            yes = graph.node("GreaterOrEqual", output, graph.constant(np.float64(0.5)))
            return graph.cast(yes, Kind.DOUBLE)
        return output

    def _combined(self, total: str) -> str:
        """Return the outputs (N, k)."""
        plan, graph = self.plan, self.graph
        if plan.divisor > 1:
            total = graph.node("Div", total, graph.constant(np.float64(plan.divisor)))
        if plan.exponent:
            limit = np.ldexp(np.finfo(np.float64).max, -plan.exponent)
            total = graph.node("Max", total, graph.constant(-limit))
            total = graph.node("Min", total, graph.constant(limit))
            total = graph.node("Mul", total, graph.constant(np.ldexp(1.0, plan.exponent)))
        return self._linked(total, plan.link)

    def _results(self, outputs: str) -> None:
        plan, graph = self.plan, self.graph
        many = ["N", plan.model.n_outputs]
        if plan.model.task == "regression":
            graph.output("prediction", outputs, Kind.DOUBLE, many)
            return
        if plan.model.classes is not None:
            labels, kind = _label_tensor(plan)
            weighted = outputs
            if plan.decision_weights is not None:
                weighted = graph.node("Mul", outputs, graph.constant(plan.decision_weights))
            best = graph.node("ArgMax", weighted, axis=1, keepdims=0)
            label = graph.node("Gather", graph.constant(labels), best, axis=0)
            graph.output("label", label, kind, ["N"])
        else:
            yes = graph.node("GreaterOrEqual", outputs, graph.constant(np.float64(0.5)))
            graph.output("labels", graph.cast(yes, Kind.INT64), Kind.INT64, many)
        graph.output("probabilities", outputs, Kind.DOUBLE, many)


def _label_tensor(plan: Plan) -> tuple[np.ndarray, Kind]:
    """Return the classes as a tensor of their type, or as text if they have several types."""
    classes = plan.model.classes or ()
    kinds = {type(label) for label in classes}
    if kinds == {int}:
        return np.array(classes, np.int64), Kind.INT64
    if kinds == {bool}:
        return np.array(classes, np.bool_), Kind.BOOL
    if kinds <= {int, float}:
        return np.array(classes, np.float64), Kind.DOUBLE
    names = [str(label) for label in classes]
    for name in names:
        if name.endswith("\0"):
            raise ExportError(
                f"the class {name!r:.80} ends in the character NUL, which ONNX text loses. "
                "Rename it."
            )
    return np.array(names, dtype=object), Kind.STRING


def _tree_attributes(trees: tuple[PlannedTree, ...]) -> dict[str, Any]:
    """Return attributes of a TreeEnsembleRegressor on columns that are 1 where a split goes right.

    Its targets are the trees; what a leaf adds to its tree's target is its number.
    """
    nodes: list[tuple[Any, ...]] = []
    targets: list[tuple[Any, ...]] = []
    first_split = 0
    for t, tree in enumerate(trees):
        m = max(tree.n_splits, 1)
        children = tree.children if tree.n_splits else np.array([[-1, -1]])
        for i, (left, right) in enumerate(children.tolist()):
            below, above = (child if child >= 0 else m + ~child for child in (left, right))
            column = first_split + i if tree.n_splits else 0
            nodes.append((t, i, column, "BRANCH_LEQ", 0.5, below, above))
        for leaf in range(tree.n_leaves):
            nodes.append((t, m + leaf, 0, "LEAF", 0.0, 0, 0))
            targets.append((t, m + leaf, t, float(leaf)))
        first_split += tree.n_splits
    columns = [list(column) for table in (nodes, targets) for column in zip(*table, strict=True)]
    attributes: dict[str, Any] = dict(zip(_TREE_ATTRIBUTES, columns, strict=True))
    return attributes | {"n_targets": len(trees), "aggregate_function": "SUM"}


# Running the graph


def _check(probes: Probes, content: bytes, as_matrix: bool) -> Check:
    predictions, method = run_graph(probes, content, as_matrix=as_matrix)
    return verified(probes, predictions, target="onnx", method=method)


def run_graph(probes: Probes, content: bytes, *, as_matrix: bool) -> tuple[Predictions, str]:
    """Run a graph on the probes; also return the name of the runtime."""
    plan = probes.plan
    feed = inputs_of(probes, _input_names(plan, as_matrix), as_matrix)
    found, method = _run(content, feed)
    outputs = found["prediction" if plan.model.task == "regression" else "probabilities"]
    positions = None
    if plan.model.classes is not None:
        labels, _ = _label_tensor(plan)
        position = {label: o for o, label in enumerate(labels.tolist())}
        positions = np.array([position.get(label, -1) for label in found["label"].tolist()])
    elif plan.model.task == "multilabel":
        positions = found["labels"]
    return Predictions(np.array(outputs), positions, found["leaf"]), method


def inputs_of(probes: Probes, names: list[str], as_matrix: bool) -> dict[str, np.ndarray]:
    """Return the probes as inputs of a runtime."""
    if as_matrix:
        return {"X": np.ascontiguousarray(probes.matrix)}
    feed = {}
    features = probes.plan.schema.features
    for name, feature, column in zip(names, features, probes.raw_columns, strict=True):
        if _is_text(feature):
            gone = "" if "" not in feature.levels else str(unseen_level(feature))
            texts = [gone if entry is None else entry for entry in column]
            feed[name] = np.array(texts, dtype=object)[:, None]
        else:
            numbers = [np.nan if entry is None else float(entry) for entry in column]
            feed[name] = np.array(numbers)[:, None]
    return feed


def _run(content: bytes, feed: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], str]:
    try:
        import onnxruntime
    except ImportError:
        return _run_by_reference(content, feed)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(names, feed), strict=True))
    return found, f"run by ONNX Runtime {onnxruntime.__version__}"


def _run_by_reference(
    content: bytes, feed: dict[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], str]:
    import onnx
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(onnx.load_from_string(content))
    with np.errstate(all="ignore"):
        found = evaluator.run(None, feed)
    method = f"run by the reference evaluator of onnx {onnx.__version__}"
    return dict(zip(evaluator.output_names, found, strict=True)), method
