"""A model as one Python file that imports nothing but ``math``.

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
from hardwood.export.blocks import Blocks
from hardwood.export.conditions import (
    Always,
    Condition,
    Levels,
    LevelWeights,
    Linear,
    Missing,
    Threshold,
    conditions_of,
    leaf_sums,
)
from hardwood.export.exported import ExportedText, check_path, exported_text
from hardwood.export.names import comment, identifiers
from hardwood.export.plan import Plan, PlannedTree, plan_of
from hardwood.export.probes import Probes
from hardwood.export.verify import FLOAT_VALUES, Answers, Check, verified
from hardwood.table.feature import Level

_BLOCK_LEVELS = 16  # Python takes 100 levels of indentation
_MAX_TERMS = 30  # of a sum that is written out
_MAX_LEVELS = 4  # of a feature whose weights are written out
_RESERVED = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "v", "gone", "math"}


def to_python(
    model: Any, path: str | os.PathLike[str] | None = None, *, data: Any = None
) -> ExportedText:
    """Write a model as one Python file without dependencies.

    The file has ``predict(row)``, ``leaves(row)``, and ``predict_proba(row)`` for classes and
    labels. A row is a sequence in the order of ``FEATURES`` or a mapping by their names, with None
    or NaN for what is missing.

    Parameters
    ----------
    model
        An ObliqueTree or ObliqueForest.
    path
        File to write; None only returns the text.
    data
        A table to compare on; by default rows are made up from the schema.

    Returns
    -------
    text
        The program; ``text.check`` says how it was checked.

    Raises
    ------
    ExportError
        If the program answers differently from the library.

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
    text = _Writer(plan).program()
    return exported_text(text, _check(Probes.of(plan, data), text), path)


def _check(probes: Probes, text: str) -> Check:
    probes = probes.thinned(_cost(probes.plan))
    program: dict[str, Any] = {"__name__": "exported"}
    exec(compile(text, "<exported by hardwood>", "exec"), program)
    plan = probes.plan
    rows = list(zip(*probes.raw_columns, strict=True))
    outputs = np.array([program["outputs"](row) for row in rows])
    positions = None
    if plan.classes is not None:
        predicted = [program["predict"](row) for row in rows]
        positions = np.array([plan.classes.index(label) for label in predicted])
    elif plan.task == "multilabel":
        positions = np.array([program["predict"](row) for row in rows])
    leaves = np.array([program["leaves"](row) for row in rows])
    return verified(
        probes,
        Answers(outputs, positions, leaves),
        target="python",
        method="run by this Python",
        precision=FLOAT_VALUES,
    )


def _cost(plan: Plan) -> int:
    """Multiplications of a row, at most; about as many tenths of a microsecond."""
    width = plan.schema.n_columns
    linear = width * plan.n_outputs if plan.has_linear_leaves else 0
    depths = [int(np.log2(tree.n_leaves)) + 1 for tree in plan.trees]
    return sum(depth * width + linear for depth in depths)


class _Writer:
    """Writes a program, and collects the tables that it needs on the way."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        names = [name.lower() for name in plan.schema.names]
        self.variables = identifiers(names, taken=_RESERVED)
        self.tables: list[str] = []

    def program(self) -> str:
        trees = [self._tree(t, tree) for t, tree in enumerate(self.plan.trees)]
        parts = [
            self._top(),
            "import math\n",
            self._constants(),
            _READ,
            *self.tables,
            *trees,
            self._answers(),
        ]
        return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"

    def _top(self) -> str:
        plan = self.plan
        units = {"date": "seconds since 1970-01-01 (UTC)", "duration": "seconds"}
        lines = [
            comment(plan.summary, 400),
            f"Exported by hardwood {__version__}; needs nothing but Python.",
            "",
            "predict(row), leaves(row)" + ", predict_proba(row)" * (plan.task != "regression"),
            "A row is a sequence in the order of FEATURES, or a mapping by their names; None or",
            "NaN is a missing entry, and so is a level that is not in LEVELS.",
        ]
        lines += [
            f"Entry {i} is in {units[feature.origin]}."
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
        if plan.classes is not None:
            items.append(("CLASSES", list(plan.classes)))
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
        lines: list[str] = []
        used: set[int] = set()
        self._nested(lines, used, blocks, conditions, root, 1)
        names = [f"    {self.variables[j]} = v[{j}]" for j in sorted(used)]
        return "\n".join([f"def {name}(v, gone):", *names, *lines])

    def _nested(
        self,
        lines: list[str],
        used: set[int],
        blocks: Blocks,
        conditions: list[Condition],
        node: int,
        level: int,
    ) -> None:
        indent = "    " * level
        if node < 0:
            lines.append(f"{indent}return {~node}")
        elif level > blocks.n_levels:
            lines.append(f"{indent}return {~blocks.number(node)}")
        else:
            left, right = blocks.tree.children[node].tolist()
            lines.append(f"{indent}if {self._condition(conditions[node], used)}:")
            self._nested(lines, used, blocks, conditions, right, level + 1)
            lines.append(f"{indent}else:")
            self._nested(lines, used, blocks, conditions, left, level + 1)

    def _condition(self, condition: Condition, used: set[int]) -> str:
        if isinstance(condition, Always):
            return str(condition.right)
        if isinstance(condition, Linear):
            return f"{self._sum(condition, used)} >= 0.0"
        if isinstance(condition, Missing):
            return f"{'' if condition.right_if_missing else 'not '}gone[{condition.feature}]"
        name = self._variable(condition.feature, used)
        if isinstance(condition, Threshold):
            return self._threshold(condition, name)
        return self._levels(condition, name)

    def _threshold(self, condition: Threshold, name: str) -> str:
        words = f"{name} {condition.relation} {condition.value!r}"
        # A missing number stands at its centre, and goes where that goes unless a flag differs.
        center = self.plan.schema.features[condition.feature].center
        at_center = (
            center >= condition.value if condition.relation == ">=" else center <= condition.value
        )
        if at_center == condition.missing_right:
            return words
        gone = f"gone[{condition.feature}]"
        return f"{words} or {gone}" if condition.missing_right else f"{words} and not {gone}"

    def _levels(self, condition: Levels, name: str) -> str:
        levels = self.plan.schema.features[condition.feature].levels
        if condition.missing_right:
            others = [level for i, level in enumerate(levels) if i not in condition.right]
            return f"{name} not in {_tuple(others)}"
        return f"{name} in {_tuple([levels[i] for i in sorted(condition.right)])}"

    # Sums

    def _sum(self, linear: Linear, used: set[int]) -> str:
        terms = []
        if len(linear.numbers) > _MAX_TERMS:
            pairs = _pairs([(j, weight) for j, weight, _ in linear.numbers])
            terms.append(f"_weigh({self._table(pairs)}, v)")
        else:
            for feature, weight, center in linear.numbers:
                terms.append(f"{weight!r} * {self._centered(feature, center, used)}")
        if len(linear.flags) > _MAX_TERMS:
            terms.append(f"_count({self._table(_pairs(linear.flags))}, gone)")
        else:
            terms += [f"{weight!r} * gone[{feature}]" for feature, weight in linear.flags]
        if len(linear.levels) > _MAX_TERMS:
            pairs = ", ".join(
                f"({item.feature}, {_weights(self.plan, item)})" for item in linear.levels
            )
            terms.append(f"_look_up({self._table(f'[{pairs}]')}, v)")
        else:
            terms += [self._level_term(item, used) for item in linear.levels]
        if linear.constant or not terms:
            terms.append(repr(linear.constant))
        return terms[0] + "".join(
            f" - {term[1:]}" if term.startswith("-") else f" + {term}" for term in terms[1:]
        )

    def _centered(self, feature: int, center: float, used: set[int]) -> str:
        name = self._variable(feature, used)
        if center == 0:
            return name
        return f"({name} - {center!r})" if center > 0 else f"({name} + {-center!r})"

    def _level_term(self, item: LevelWeights, used: set[int]) -> str:
        name = self._variable(item.feature, used)
        levels: list[Level | None] = [*self.plan.schema.features[item.feature].levels, None]
        weights = zip(levels, [*item.weights, item.missing], strict=True)
        others = [(level, weight) for level, weight in weights if weight]
        if len(others) > _MAX_LEVELS:
            return f"{self._table(_weights(self.plan, item))}[{name}]"
        choices = "".join(
            f"{weight!r} if {name} {'is' if level is None else '=='} {level!r} else "
            for level, weight in others
        )
        return f"({choices}0.0)"

    def _table(self, text: str) -> str:
        name = f"_T{len(self.tables)}"
        self.tables.append(f"{name} = {text}")
        return name

    def _variable(self, feature: int, used: set[int]) -> str:
        used.add(feature)
        return self.variables[feature]

    # Leaves and answers

    def _leaves(self, t: int, tree: PlannedTree) -> str:
        head = f"def _answer_{t}(leaf, v, gone):\n"
        if tree.leaf_weights is None:
            values = _list([tuple(value) for value in tree.values.tolist()])
            return f"_values_{t} = {values}\n\n\n{head}    return _values_{t}[leaf]"
        parts = []
        for leaf, sums in enumerate(leaf_sums(tree, self.plan.encoding)):
            used: set[int] = set()
            scores = [self._sum(linear, used) for linear in sums]
            names = "".join(f"    {self.variables[j]} = v[{j}]\n" for j in sorted(used))
            body = ",\n        ".join(scores)
            parts.append(
                f"def _leaf_{t}_{leaf}(v, gone):\n{names}    return [\n        {body},\n    ]"
            )
        functions = ", ".join(f"_leaf_{t}_{leaf}" for leaf in range(tree.n_leaves))
        parts.append(f"_leaves_{t} = [{functions}]")
        link, vote = _LINKS[tree.link].replace("s_", "s"), _VOTES[tree.vote]
        parts.append(f"{head}    s = _leaves_{t}[leaf](v, gone)\n{link}{vote}    return s")
        return "\n\n\n".join(parts)

    def _answers(self) -> str:
        plan = self.plan
        end = f"    out = [s / {plan.divisor} for s in out]\n" if plan.divisor > 1 else ""
        if plan.exponent:
            end += _HEADROOM.replace("@exponent@", str(plan.exponent))
        end += _LINKS[plan.link].replace("s_", "out")
        numbers = range(len(plan.trees))
        code = _OUTPUTS.replace("@trees@", ", ".join(f"_tree_{t}" for t in numbers))
        code = code.replace("@answers@", ", ".join(f"_answer_{t}" for t in numbers))
        code = code.replace("@k@", str(plan.n_outputs)).replace("@end@", end)
        last = _PREDICT[plan.task if plan.n_outputs > 1 else f"{plan.task} of one"]
        return "\n\n".join(part.strip("\n") for part in (code, last))


def _list(values: Any) -> str:
    if len(values) <= 4 and len(repr(list(values))) <= 80:
        return repr(list(values))
    return "[\n" + "".join(f"    {value!r},\n" for value in values) + "]"


def _pairs(pairs: Sequence[tuple[int, float]]) -> str:
    """Write places and weights as text that the program reads: much faster than to compile them."""
    places, weights = zip(*pairs, strict=True)
    return f'_pairs("{" ".join(map(str, places))}", "{" ".join(map(repr, weights))}")'


def _tuple(levels: list[Level]) -> str:
    return repr(tuple(levels))


def _weights(plan: Plan, item: LevelWeights) -> str:
    levels = plan.schema.features[item.feature].levels
    weights = dict(zip([*levels, None], [*item.weights, item.missing], strict=True))
    return repr(weights)


_READ = '''
_SEEN = [None if levels is None else set(levels) for levels in LEVELS]


def _read(row):
    """Return the entries, numbers that are missing at their centre; and which are missing."""
    if hasattr(row, "keys"):
        row = [row[name] for name in FEATURES]
    if len(row) != len(FEATURES):
        raise ValueError("a row has %d entries, found %d" % (len(FEATURES), len(row)))
    v, gone = [], []
    for x, center, seen in zip(row, CENTERS, _SEEN):
        if seen is not None:
            missing = x not in seen
            x = None if missing else x
        else:
            missing = x is None or x != x
            x = center if missing else float(x)
            if math.isinf(x):
                raise ValueError("an entry is infinite; NaN or None is a missing one")
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
_ANSWERS = [@answers@]


def leaves(row):
    """Return the leaf that a row reaches in each tree."""
    v, gone = _read(row)
    return [tree(v, gone) for tree in _TREES]


def outputs(row):
    """Return probabilities of classes or labels, or the predicted numbers."""
    v, gone = _read(row)
    out = [0.0] * @k@
    for tree, answer in zip(_TREES, _ANSWERS):
        out = [a + b for a, b in zip(out, answer(tree(v, gone), v, gone))]
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
    """Return the probability of each class, or of yes for each label."""
    return outputs(row)
'''

_PREDICT_CLASS = (
    _PROBA
    + '''

def predict(row):
    """Return the most probable class, the first where several are."""
    out = outputs(row)
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
