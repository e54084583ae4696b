"""A model as one Python file that imports only ``math``.

Arithmetic is Python's float64. A split on one feature decides every row as the library does; a
split on several agrees wherever its score is not within float32 rounding of zero.
"""

from __future__ import annotations

import builtins
import keyword
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from hardwood import __version__
from hardwood.export.conditions import (
    Condition,
    Levels,
    LevelWeights,
    Linear,
    Threshold,
    conditions_of,
    leaf_sums,
)
from hardwood.export.exported import ExportedText, check_path, exported
from hardwood.export.expressions import Blocks, Expressions, nested
from hardwood.export.names import comment, identifiers
from hardwood.export.plan import Plan, PlannedTree, plan_of
from hardwood.export.probes import Probes
from hardwood.export.verify import FLOAT_VALUES, Check, Predictions, verified
from hardwood.table.feature import Level

_BLOCK_LEVELS = 16  # Python allows 100 levels of indentation
_MAX_TERMS = 30  # of a sum that is written out
_MAX_LEVELS = 4  # of a feature whose weights are written out
_RESERVED = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "v", "gone", "math"}


def to_python(
    model: Any, path: str | os.PathLike[str] | None = None, *, data: Any = None
) -> ExportedText:
    """Write a model as one Python file without dependencies.

    The file has ``predict(row)``, ``leaves(row)``, and for classes and labels
    ``predict_proba(row)``. A row is a sequence in the order of ``FEATURES`` or a mapping by feature
    name, with None or NaN for missing values.

    Parameters
    ----------
    model
        An ObliqueTree or ObliqueForest.
    path
        File to write; None only returns the text.
    data
        A table to check the export on. By default, rows are simulated from the schema.

    Returns
    -------
    text
        The program; ``text.check`` says how it was checked.

    Raises
    ------
    ExportError
        If the program predicts differently from the library.

    Examples
    --------
    >>> from hardwood import ObliqueTree
    >>> tree = ObliqueTree.of([[1.0, -1.0]], thresholds=[0.5], values=[[1, 0], [0, 1]],
    ...                       feature_names=["a", "b"], classes=["no", "yes"])
    >>> program = {}
    >>> exec(to_python(tree), program)
    >>> program["predict"]({"a": 2.0, "b": 1.0})
    'yes'
    """
    check_path(path, "model.py")
    plan = plan_of(model)
    text = _ModuleWriter(plan).program()
    return exported(ExportedText(text), _check(Probes.of(plan, data), text), path)


def _check(probes: Probes, text: str) -> Check:
    probes = probes.thinned(_cost(probes.plan))
    program: dict[str, Any] = {"__name__": "exported"}
    exec(compile(text, "<exported by hardwood>", "exec"), program)
    plan = probes.plan
    rows = list(zip(*probes.raw_columns, strict=True))
    outputs = np.array([program["outputs"](row) for row in rows])
    positions = None
    if plan.model.classes is not None:
        predicted = [program["predict"](row) for row in rows]
        positions = np.array([plan.model.classes.index(label) for label in predicted])
    elif plan.model.task == "multilabel":
        positions = np.array([program["predict"](row) for row in rows])
    leaves = np.array([program["leaves"](row) for row in rows])
    return verified(
        probes,
        Predictions(outputs, positions, leaves),
        target="python",
        method="run by this Python",
        precision=FLOAT_VALUES,
    )


def _cost(plan: Plan) -> int:
    """Return the largest number of multiplications for a row, about tenths of a microsecond."""
    width = plan.schema.n_columns
    linear = width * plan.model.n_outputs if plan.model.has_linear_leaves else 0
    depths = [int(np.log2(tree.n_leaves)) + 1 for tree in plan.trees]
    return sum(depth * width + linear for depth in depths)


class _ModuleWriter(Expressions):
    """Writes a program, and collects the tables that it needs."""

    zero = "0.0"

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        names = [name.lower() for name in plan.schema.names]
        self.variables = identifiers(names, taken=_RESERVED)
        self.tables: list[str] = []
        self.used: set[int] = set()  # features that the current function uses

    def program(self) -> str:
        trees = [self._tree(t, tree) for t, tree in enumerate(self.plan.trees)]
        parts = [
            self._top(),
            "import math\n",
            self._constants(),
            _READ,
            *self.tables,
            *trees,
            self._predictions(),
        ]
        return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"

    def _top(self) -> str:
        plan = self.plan
        units = {"date": "seconds since 1970-01-01 (UTC)", "duration": "seconds"}
        lines = [
            comment(plan.summary, 400),
            f"Exported by hardwood {__version__}; needs only Python.",
            "",
            "predict(row), leaves(row)"
            + ", predict_proba(row)" * (plan.model.task != "regression"),
            "A row is a sequence in the order of FEATURES, or a mapping by their names. None, NaN",
            "and a category that is not in LEVELS count as missing.",
        ]
        lines += [
            f"Feature {i} is in {units[feature.origin]}."
            for i, feature in enumerate(plan.schema.features)
            if feature.origin in units
        ]
        return "\n".join(f"# {line}".rstrip() for line in lines)

    def _constants(self) -> str:
        plan = self.plan
        features = plan.schema.features
        items = [
            ("FEATURES", [f.name for f in features]),
            ("CENTERS", [f.center for f in features]),
            ("LEVELS", [list(f.levels) if f.kind == "categorical" else None for f in features]),
        ]
        if plan.model.classes is not None:
            items.append(("CLASSES", list(plan.model.classes)))
            if plan.decision_weights is not None:
                items.append(("DECISION_WEIGHTS", plan.decision_weights.tolist()))
        elif plan.model.target_names is not None:
            items.append(("OUTPUTS", list(plan.model.target_names)))
        return "\n".join(f"{name} = {_list(values)}" for name, values in items)

    # Trees

    def _tree(self, t: int, tree: PlannedTree) -> str:
        blocks = Blocks.of(tree, _BLOCK_LEVELS)
        conditions = conditions_of(tree, self.plan.encoding)
        name = f"_tree_{t}"
        parts = []
        if len(blocks.roots) == 1:
            parts.append(self._block(name, blocks, conditions, blocks.roots[0]))
        else:
            for number, root in enumerate(blocks.roots):
                parts.append(self._block(f"{name}_{number}", blocks, conditions, root))
            functions = ", ".join(f"{name}_{number}" for number in range(len(blocks.roots)))
            parts.append(_JUMPS.replace("@tree@", name).replace("@functions@", functions))
        parts.append(self._leaves(t, tree))
        return "\n\n".join(part.strip("\n") for part in parts)

    def _block(self, name: str, blocks: Blocks, conditions: list[Condition], root: int) -> str:
        self.used = set()
        lines = nested(
            blocks,
            root,
            leaf=lambda leaf: [f"return {leaf}"],
            deeper=lambda node: [f"return {~blocks.number(node)}"],
            branch=lambda i, yes, no: [
                f"if {self.condition(conditions[i])}:",
                *(f"    {line}" for line in yes()),
                "else:",
                *(f"    {line}" for line in no()),
            ],
        )
        head = f"def {name}(v, gone):\n{self._names()}"
        return head + "\n".join(f"    {line}" for line in lines)

    def _names(self) -> str:
        """Write the assignments of the variables that a function uses."""
        return "".join(f"    {self.variables[j]} = v[{j}]\n" for j in sorted(self.used))

    # Conditions and sums

    def number(self, value: float) -> str:
        return repr(value)

    def value(self, feature: int) -> str:
        self.used.add(feature)
        return self.variables[feature]

    def is_missing(self, feature: int, yes: bool) -> str:
        return f"{'' if yes else 'not '}gone[{feature}]"

    def with_missing(self, condition: Threshold, text: str) -> str:
        # A missing number counts as its center, unless its missing indicator changes the side.
        center = self.plan.schema.features[condition.feature].center
        at_center = (
            center >= condition.value if condition.relation == ">=" else center <= condition.value
        )
        if at_center == condition.missing_right:
            return text
        gone = f"gone[{condition.feature}]"
        return f"{text} or {gone}" if condition.missing_right else f"{text} and not {gone}"

    def is_one_of(self, condition: Levels, listed: list[int]) -> str:
        levels = self.plan.schema.features[condition.feature].levels
        relation = "not in" if condition.missing_right else "in"
        return f"{self.value(condition.feature)} {relation} {tuple(levels[i] for i in listed)!r}"

    def terms(self, linear: Linear) -> list[str]:
        terms = []
        if len(linear.numbers) > _MAX_TERMS:
            pairs = _pairs([(j, weight) for j, weight, _ in linear.numbers])
            terms.append(f"_weigh({self._table(pairs)}, v)")
        else:
            for feature, weight, center in linear.numbers:
                terms.append(f"{weight!r} * {self._centered(feature, center)}")
        if len(linear.flags) > _MAX_TERMS:
            terms.append(f"_count({self._table(_pairs(linear.flags))}, gone)")
        else:
            terms += [f"{weight!r} * gone[{feature}]" for feature, weight in linear.flags]
        if len(linear.levels) > _MAX_TERMS:
            pairs = ", ".join(f"({item.feature}, {self._weights(item)})" for item in linear.levels)
            return [*terms, f"_look_up({self._table(f'[{pairs}]')}, v)"]
        return terms + [self._level_term(item) for item in linear.levels]

    def _centered(self, feature: int, center: float) -> str:
        name = self.value(feature)
        if center == 0:
            return name
        return f"({name} - {center!r})" if center > 0 else f"({name} + {-center!r})"

    def _level_term(self, item: LevelWeights) -> str:
        name, weights = self.value(item.feature), self._weights(item)
        others = [(level, weight) for level, weight in weights.items() if weight]
        if len(others) > _MAX_LEVELS:
            return f"{self._table(repr(weights))}[{name}]"
        choices = "".join(
            f"{weight!r} if {name} {'is' if level is None else '=='} {level!r} else "
            for level, weight in others
        )
        return f"({choices}0.0)"

    def _weights(self, item: LevelWeights) -> dict[Level | None, float]:
        levels = self.plan.schema.features[item.feature].levels
        return dict(zip([*levels, None], [*item.weights, item.missing], strict=True))

    def _table(self, text: str) -> str:
        name = f"_T{len(self.tables)}"
        self.tables.append(f"{name} = {text}")
        return name

    # Leaves and outputs

    def _leaves(self, t: int, tree: PlannedTree) -> str:
        head = f"def _output_{t}(leaf, v, gone):\n"
        if tree.leaf_weights is None:
            values = _list([tuple(value) for value in tree.values.tolist()])
            return f"_values_{t} = {values}\n\n\n{head}    return _values_{t}[leaf]"
        parts = []
        for leaf, sums in enumerate(leaf_sums(tree, self.plan.encoding)):
            self.used = set()
            body = ",\n        ".join(map(self.sum, sums))
            own = f"def _leaf_{t}_{leaf}(v, gone):\n{self._names()}"
            parts.append(f"{own}    return [\n        {body},\n    ]")
        functions = ", ".join(f"_leaf_{t}_{leaf}" for leaf in range(tree.n_leaves))
        parts.append(f"_leaves_{t} = [{functions}]")
        link, vote = _LINKS[tree.link].replace("s_", "s"), _VOTES[tree.vote]
        parts.append(f"{head}    s = _leaves_{t}[leaf](v, gone)\n{link}{vote}    return s")
        return "\n\n\n".join(parts)

    def _predictions(self) -> str:
        plan = self.plan
        end = f"    out = [s / {plan.divisor} for s in out]\n" if plan.divisor > 1 else ""
        if plan.exponent:
            end += _HEADROOM.replace("@exponent@", str(plan.exponent))
        end += _LINKS[plan.link].replace("s_", "out")
        numbers = range(len(plan.trees))
        code = _OUTPUTS.replace("@trees@", ", ".join(f"_tree_{t}" for t in numbers))
        code = code.replace("@outputs@", ", ".join(f"_output_{t}" for t in numbers))
        code = code.replace("@k@", str(plan.model.n_outputs)).replace("@end@", end)
        last = _PREDICT[
            plan.model.task if plan.model.n_outputs > 1 else f"{plan.model.task} of one"
        ]
        if plan.decision_weights is not None:
            last = _PREDICT_WEIGHTED_CLASS
        return "\n\n".join(part.strip("\n") for part in (code, last))


def _list(values: Any) -> str:
    if len(values) <= 4 and len(repr(list(values))) <= 80:
        return repr(list(values))
    return "[\n" + "".join(f"    {value!r},\n" for value in values) + "]"


def _pairs(pairs: Sequence[tuple[int, float]]) -> str:
    """Write positions and weights as text that the program reads: faster than to compile them."""
    places, weights = zip(*pairs, strict=True)
    return f'_pairs("{" ".join(map(str, places))}", "{" ".join(map(repr, weights))}")'


_READ = '''
_SEEN = [None if levels is None else set(levels) for levels in LEVELS]


def _read(row):
    """Return the values, with missing numbers at their centers, and which are missing."""
    if hasattr(row, "keys"):
        row = [row[name] for name in FEATURES]
    if len(row) != len(FEATURES):
        raise ValueError("a row has %d values, found %d" % (len(FEATURES), len(row)))
    v, gone = [], []
    for x, center, seen in zip(row, CENTERS, _SEEN):
        if seen is not None:
            missing = x not in seen
            x = None if missing else x
        else:
            missing = x is None or x != x
            x = center if missing else float(x)
            if math.isinf(x):
                raise ValueError("a value is infinite; use NaN or None for a missing value")
        v.append(x)
        gone.append(missing)
    return v, gone


def _pairs(places, weights):
    return [(int(j), float(weight)) for j, weight in zip(places.split(), weights.split())]


def _weigh(terms, v):
    return sum(weight * (v[j] - CENTERS[j]) for j, weight in terms)


def _count(terms, gone):
    return sum(weight for j, weight in terms if gone[j])


def _look_up(terms, v):
    return sum(weights[v[j]] for j, weights in terms)
'''

_JUMPS = """
@tree@_blocks = [@functions@]


def @tree@(v, gone):
    node = -1
    while node < 0:
        node = @tree@_blocks[~node](v, gone)
    return node
"""

_OUTPUTS = '''
_TREES = [@trees@]
_LEAF_OUTPUTS = [@outputs@]


def leaves(row):
    """Return the leaf that a row reaches in each tree."""
    v, gone = _read(row)
    return [tree(v, gone) for tree in _TREES]


def outputs(row):
    """Return probabilities of classes or labels, or the predicted numbers."""
    v, gone = _read(row)
    out = [0.0] * @k@
    for tree, leaf_output in zip(_TREES, _LEAF_OUTPUTS):
        out = [a + b for a, b in zip(out, leaf_output(tree(v, gone), v, gone))]
@end@    return out
'''

_HEADROOM = """    limit = math.ldexp(1.7976931348623157e308, -@exponent@)
    out = [math.ldexp(min(max(s, -limit), limit), @exponent@) for s in out]
"""

_LINKS = {
    "identity": "",
    "exp": "    s_ = [math.exp(a) if a < 709.78 else math.inf for a in s_]\n",
    "softmax": (
        "    top = max(s_)\n    s_ = [math.exp(a - top) for a in s_]\n"
        "    total = sum(s_)\n    s_ = [a / total for a in s_]\n"
    ),
    "logistic": (
        "    s_ = [1 / (1 + math.exp(-a)) if a >= 0 else math.exp(a) / (1 + math.exp(a))"
        " for a in s_]\n"
    ),
}

_VOTES = {
    "none": "",
    "class": "    best = s.index(max(s))\n    s = [float(i == best) for i in range(len(s))]\n",
    "labels": "    s = [float(a >= 0.5) for a in s]\n",
}

_PROBA = '''
def predict_proba(row):
    """Return the probability of each class or label."""
    return outputs(row)
'''

_PREDICT_CLASS = (
    _PROBA
    + '''

def predict(row):
    """Return the most probable class; the first one if several tie."""
    out = outputs(row)
    return CLASSES[out.index(max(out))]
'''
)

_PREDICT_WEIGHTED_CLASS = (
    _PROBA
    + '''

def predict(row):
    """Return the class with the largest probability times weight; the first one if several tie."""
    out = [p * weight for p, weight in zip(outputs(row), DECISION_WEIGHTS)]
    return CLASSES[out.index(max(out))]
'''
)

_PREDICT_LABELS = (
    _PROBA
    + '''

def predict(row):
    """Return 1 for each label whose probability is at least a half, else 0."""
    return [int(p >= 0.5) for p in outputs(row)]
'''
)

_PREDICT = {
    "classification": _PREDICT_CLASS,
    "classification of one": _PREDICT_CLASS,
    "multilabel": _PREDICT_LABELS,
    "multilabel of one": _PREDICT_LABELS,
    "regression": '''
def predict(row):
    """Return the predicted numbers."""
    return outputs(row)
''',
    "regression of one": '''
def predict(row):
    """Return the predicted number."""
    return outputs(row)[0]
''',
}
