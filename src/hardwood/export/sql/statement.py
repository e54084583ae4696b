"""A model as one SQL statement of ``CASE`` expressions, for SQLite, DuckDB and similar databases.

Only standard SQL is used. The first stage reads the table's columns and gives them short names;
splits are nested ``CASE`` expressions, at most eight deep (SQLite's parser accepts about twenty); a
deeper tree continues in the next stage. Names are quoted and qualified, because SQLite treats an
unknown quoted name as text. Arithmetic is float64, as in the export to Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hardwood import __version__
from hardwood.errors import ExportError
from hardwood.export.conditions import (
    Always,
    Condition,
    Levels,
    LevelWeights,
    Linear,
    Threshold,
    conditions_of,
    leaf_sums,
)
from hardwood.export.exported import ExportedText, check_path, exported
from hardwood.export.expressions import Blocks, Expressions, joined, nested
from hardwood.export.names import comment
from hardwood.export.plan import Plan, PlannedTree, plan_of
from hardwood.export.probes import Probes
from hardwood.export.sql.arguments import (
    check_whole_numbers,
    column_names,
    kept_columns,
    table_parts,
)
from hardwood.export.sql.check import check_length, check_sql
from hardwood.export.sql.text import (
    Stages,
    choice,
    choice_of_places,
    identifier,
    label,
    number,
)
from hardwood.model.structure import Label

_BLOCK_LEVELS = 8
_TREES_AT_ONCE = 100  # trees whose leaves are columns at the same time
_MOST_COPIES = 8  # of the splits of a tree, which a database may read again for every output


def to_sql(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    table: str | Sequence[str] = "data",
    keep: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    materialized: bool | None = None,
    data: Any = None,
) -> ExportedText:
    """Write a model as a SELECT statement that predicts every row of a table.

    The result has the columns of ``keep``, then ``prediction``, then ``probability of <class>`` for
    each class; for several outputs, ``prediction of <name>`` and ``probability of <name>``.

    Parameters
    ----------
    model
        An ObliqueTree or ObliqueForest.
    path
        File to write; None only returns the text.
    table
        Name of the table to read, or ``("schema", "table")``.
    keep
        Columns of the table to keep in the result, such as a key.
    columns
        Column names in the database, for features whose name differs there.
    materialized
        Whether stages are ``AS MATERIALIZED``, which SQLite (since 3.35), DuckDB and PostgreSQL
        support: each stage is then computed once, where some databases would recompute it for every
        use. Default: true except for single trees of constant leaves, at most eight levels and at
        most eight outputs.
    data
        A table to check the export on. By default, rows are simulated from the schema.

    Returns
    -------
    text
        The statement; ``text.check`` says how it was checked.

    Raises
    ------
    ExportError
        If SQLite, which is part of Python, predicts differently from the library, or if a name or
        a category has no form in SQL.

    Notes
    -----
    NULL is a missing value, and so is a category that was not seen in training. Dates and durations
    are in seconds, dates since 1970 in UTC.

    Examples
    --------
    >>> from hardwood import ObliqueTree
    >>> tree = ObliqueTree.of([[1.0, 0.0]], thresholds=[0.5], values=[[1, 0], [0, 1]],
    ...                       feature_names=["a", "b"], classes=["no", "yes"])
    >>> 'THEN 1 ELSE 0 END AS "leaf 0"' in to_sql(tree)
    True
    """
    check_path(path, "model.sql")
    plan = plan_of(model)
    parts, in_database = table_parts(table), column_names(plan, columns)
    kept = kept_columns(plan, keep)
    check_whole_numbers(plan)
    if materialized is not None and not isinstance(materialized, bool):
        raise ExportError(f"materialized must be True, False or None, found {materialized!r:.80}")
    if materialized is None:
        materialized = not _is_simple(plan)
    text = _StatementWriter(plan, parts, in_database, kept, materialized).text()
    check_length(text)
    check = check_sql(Probes.of(plan, data), text, parts, in_database, kept, labels_of(plan))
    return exported(ExportedText(text), check, path)


def _is_simple(plan: Plan) -> bool:
    """Whether there are so few stages, used so rarely, that materializing them is not worth it."""
    if not _says_values(plan) or plan.model.n_outputs > _MOST_COPIES:
        return False
    return len(Blocks.of(plan.trees[0], _BLOCK_LEVELS).roots) == 1


def _says_values(plan: Plan) -> bool:
    """Whether the prediction is the value in the leaf of one tree."""
    return len(plan.trees) == 1 and not plan.model.has_linear_leaves and plan.link == "identity"


def labels_of(plan: Plan) -> list[Label]:
    """Return the classes as SQL returns them: of one type, or else all as text."""
    classes = list(plan.model.classes or ())
    kinds = {"text" if isinstance(c, str) else isinstance(c, bool) for c in classes}
    return [str(c) for c in classes] if len(kinds) > 1 else classes


class _StatementWriter(Expressions):
    """Writes a statement."""

    zero = "0E0"

    def __init__(
        self,
        plan: Plan,
        table: tuple[str, ...],
        columns: list[str],
        keep: tuple[str, ...],
        materialized: bool,
    ) -> None:
        super().__init__(plan)
        self.columns, self.keep = columns, keep
        source = ".".join(identifier(part) for part in table)
        self.stages = Stages(source, taken=table, materialized=materialized)
        self.conditions = [conditions_of(tree, plan.encoding) for tree in plan.trees]

    def text(self) -> str:
        self._read()
        if _says_values(self.plan):
            self._descend([0])
            self._values_of_leaf()
        else:
            self.stages.add({f"s{o}": "0E0" for o in range(self.plan.model.n_outputs)})
            for trees in self._groups():
                self._descend(trees)
                self._add_outputs(trees)
            self._combine()
        return self._top() + self.stages.statement([*self._kept(), *self._results()])

    def _top(self) -> str:
        lines = [
            comment(self.plan.summary, 400),
            f"Exported by hardwood {__version__}. NULL is a missing value, and so is a category",
            "not seen in training; dates are seconds since 1970-01-01 (UTC), durations seconds.",
        ]
        return "".join(f"-- {line}\n" for line in lines)

    def _kept(self) -> list[str]:
        return [f'"t"."k{i}" AS {identifier(name)}' for i, name in enumerate(self.keep)]

    def _groups(self) -> list[list[int]]:
        """Group the trees that are computed together; one whose leaves have a link is alone."""
        groups: list[list[int]] = [[]]
        for t, tree in enumerate(self.plan.trees):
            alone = _transforms_scores(tree)
            if groups[-1] and (alone or len(groups[-1]) == _TREES_AT_ONCE):
                groups.append([])
            groups[-1].append(t)
            if alone:
                groups.append([])
        return [group for group in groups if group]

    # The table's columns

    def _read(self) -> None:
        """Read the columns that some split or leaf uses, under short names."""
        columns = {f"k{i}": f'"t".{identifier(name)}' for i, name in enumerate(self.keep)}
        summed, raw = self._used()
        for j, feature in enumerate(self.plan.schema.features):
            name = f'"t".{identifier(self.columns[j])}'
            if feature.kind == "categorical":
                if j in raw or j in summed:
                    columns[f"x{j}"] = name
                continue
            value = f"CAST({name} AS DOUBLE PRECISION)"
            if j in raw:
                columns[f"x{j}"] = value
            if j in summed:
                centered = value if feature.center == 0 else f"{value} - {number(feature.center)}"
                columns[f"d{j}"] = f"COALESCE({centered}, 0E0)".replace("- -", "+ ")
        columns = columns or {"nothing": "0"}
        note = "x: values; d: numbers minus their means, 0 where missing"
        self.stages.add(columns, note=note)

    def _used(self) -> tuple[set[int], set[int]]:
        """Return the features that sums weigh, and those that are used directly."""
        summed: set[int] = set()
        raw: set[int] = set()
        for condition in self._all_conditions():
            if isinstance(condition, Linear):
                summed.update(j for j, _, _ in condition.numbers)
                raw.update(j for j, _ in condition.flags)
                raw.update(item.feature for item in condition.levels)
            elif not isinstance(condition, Always):
                raw.add(condition.feature)
        return summed, raw

    def _all_conditions(self) -> list[Condition]:
        found = [condition for conditions in self.conditions for condition in conditions]
        for tree in self.plan.trees:
            found += [score for scores in leaf_sums(tree, self.plan.encoding) for score in scores]
        return found

    # From the root to a leaf

    def _descend(self, trees: list[int]) -> None:
        """Add stages that find the leaves of all trees, block after block."""
        blocks = {t: Blocks.of(self.plan.trees[t], _BLOCK_LEVELS) for t in trees}
        todo = {t: [blocks[t].roots[0]] for t in trees}
        first = True
        while any(todo.values()):
            columns: dict[str, str] = {}
            following: dict[int, list[int]] = {t: [] for t in trees}
            for t, roots in todo.items():
                nested = {
                    str(-blocks[t].number(root)): self._nested(t, blocks[t], root, following[t])
                    for root in roots
                }
                if first:
                    (columns[f"leaf {t}"],) = nested.values()
                elif nested:
                    columns[f"leaf {t}"] = choice(f'"t"."leaf {t}"', nested, f'"t"."leaf {t}"')
            self.stages.add(columns, note="" if first else "deeper splits")
            todo, first = following, False

    def _nested(self, t: int, blocks: Blocks, root: int, following: list[int]) -> str:
        """Nest the splits of a block; at its end, the number of the next block, negative."""
        conditions = self.conditions[t]

        def deeper(node: int) -> str:
            following.append(node)
            return str(-blocks.number(node))

        def branch(node: int, yes: Callable[[], str], no: Callable[[], str]) -> str:
            condition = conditions[node]
            if isinstance(condition, Always):
                return yes() if condition.right else no()
            return f"CASE WHEN {self.condition(condition)} THEN {yes()} ELSE {no()} END"

        return nested(blocks, root, leaf=str, deeper=deeper, branch=branch)

    # Conditions and sums

    def number(self, value: float) -> str:
        return number(value)

    def value(self, feature: int) -> str:
        return f'"t"."x{feature}"'

    def is_missing(self, feature: int, yes: bool) -> str:
        return f"{self.value(feature)} IS {'' if yes else 'NOT '}NULL"

    def with_missing(self, condition: Threshold, text: str) -> str:
        missing = self.is_missing(condition.feature, True)
        return f"({text} OR {missing})" if condition.missing_right else text

    def is_one_of(self, condition: Levels, listed: list[int]) -> str:
        levels, name = self._level_texts(condition.feature), self.value(condition.feature)
        texts = ", ".join(levels[i] for i in listed)
        if condition.missing_right:
            return f"({name} NOT IN ({texts}) OR {name} IS NULL)"
        return f"{name} IN ({texts})"

    def _level_texts(self, feature: int) -> list[str]:
        levels = self.plan.schema.features[feature].levels
        if len({isinstance(level, str) for level in levels}) > 1:
            name = self.plan.schema.names[feature]
            raise ExportError(
                f"feature {name!r:.80} has categories that are text and categories that are "
                "numbers; a database column has one type. Learn from a column of one type."
            )
        return [label(level) for level in levels]

    def terms(self, linear: Linear) -> list[str]:
        terms = [f'{number(w)} * "t"."d{j}"' for j, w, _ in linear.numbers]
        for j, w in linear.flags:
            terms.append(f"CASE WHEN {self.is_missing(j, True)} THEN {number(w)} ELSE 0E0 END")
        return terms + [self._level_sum(item) for item in linear.levels]

    def added(self, terms: Sequence[str]) -> str:
        return _grouped(terms)

    def _level_sum(self, item: LevelWeights) -> str:
        texts = self._level_texts(item.feature)
        weights = {
            text: number(weight)
            for text, weight in zip(texts, item.weights, strict=True)
            if weight != item.missing
        }
        return choice(self.value(item.feature), weights, number(item.missing))

    # From leaves to predictions

    def _leaf_outputs(self, t: int) -> list[str]:
        """Return the outputs of a tree's leaves, (k,): values, or the scores of linear leaves."""
        tree, of = self.plan.trees[t], f'"t"."leaf {t}"'
        linear = leaf_sums(tree, self.plan.encoding)
        outputs = []
        for o in range(self.plan.model.n_outputs):
            if linear:
                results = [self.sum(scores[o]) for scores in linear]
            else:
                results = [number(value) for value in tree.values[:, o].tolist()]
            outputs.append(choice_of_places(of, results))
        return outputs

    def _values_of_leaf(self) -> None:
        """For a single tree with constant leaves: its outputs, and the class by the leaf."""
        columns = {f"s{o}": text for o, text in enumerate(self._leaf_outputs(0))}
        if self.plan.model.classes is not None:
            texts = [label(c) for c in labels_of(self.plan)]
            best = self.plan.model.class_positions(self.plan.trees[0].values).tolist()
            columns["predicted"] = choice_of_places('"t"."leaf 0"', [texts[o] for o in best])
        self.stages.add(columns, drop=self._temporary([0]))

    def _temporary(self, trees: list[int]) -> list[str]:
        return [f"leaf {t}" for t in trees]

    def _add_outputs(self, trees: list[int]) -> None:
        """Add the outputs of some trees to the sums."""
        if len(trees) == 1 and _transforms_scores(self.plan.trees[trees[0]]):
            self._add_linked(trees[0])
            return
        outputs = [self._leaf_outputs(t) for t in trees]
        columns = {
            f"s{o}": " + ".join([f'"t"."s{o}"', *(f"({output[o]})" for output in outputs)])
            for o in range(self.plan.model.n_outputs)
        }
        self.stages.add(columns, drop=self._temporary(trees))

    def _add_linked(self, t: int) -> None:
        """Add the outputs of linear leaves with a link or a vote."""
        tree, k = self.plan.trees[t], self.plan.model.n_outputs
        scores = {f"a{o}": text for o, text in enumerate(self._leaf_outputs(t))}
        self.stages.add(scores, note=f"tree {t}: scores, and its outputs")
        self._link("a", tree.link)
        if tree.vote == "class":
            best = {
                f"a{o}": f"CASE WHEN {self._is_best('a', o)} THEN 1E0 ELSE 0E0 END"
                for o in range(k)
            }
            self.stages.add(best)
        elif tree.vote == "labels":
            yes = {
                f"a{o}": f'CASE WHEN "t"."a{o}" >= 0.5E0 THEN 1E0 ELSE 0E0 END' for o in range(k)
            }
            self.stages.add(yes)
        total = {f"s{o}": f'"t"."s{o}" + "t"."a{o}"' for o in range(k)}
        self.stages.add(total, drop=[*scores, *self._temporary([t])])

    def _is_best(self, prefix: str, o: int) -> str:
        """Write that an output is the largest; the first one if several tie."""
        others = [
            f'"t"."{prefix}{o}" {">" if i < o else ">="} "t"."{prefix}{i}"'
            for i in range(self.plan.model.n_outputs)
            if i != o
        ]
        return " AND ".join(others) or "0 = 0"

    def _link(self, prefix: str, link: str) -> None:
        """Add stages that turn scores into outputs."""
        names = [f"{prefix}{o}" for o in range(self.plan.model.n_outputs)]
        if link == "exp":
            self.stages.add({name: f'EXP("t"."{name}")' for name in names})
        elif link == "logistic":
            self.stages.add({name: _LOGISTIC.format(f'"t"."{name}"') for name in names})
        elif link == "softmax":
            best = [
                f'WHEN {self._is_best(prefix, o)} THEN "t"."{name}"' for o, name in enumerate(names)
            ]
            self.stages.add({"top": f"CASE {' '.join(best)} END"})
            self.stages.add(
                {name: f'EXP("t"."{name}" - "t"."top")' for name in names}, drop=["top"]
            )
            self.stages.add({"total": _grouped([f'"t"."{name}"' for name in names])})
            shares = {name: f'"t"."{name}" / "t"."total"' for name in names}
            self.stages.add(shares, drop=["total"])

    def _combine(self) -> None:
        """Turn sums into outputs."""
        plan, columns = self.plan, {}
        for o in range(plan.model.n_outputs):
            text = f'"t"."s{o}"'
            text += f" / {number(plan.divisor)}" if plan.divisor > 1 else ""
            text += f" * {number(2.0**plan.exponent)}" if plan.exponent else ""
            columns[f"s{o}"] = text
        if plan.divisor > 1 or plan.exponent:
            self.stages.add(columns)
        self._link("s", plan.link)
        if plan.model.classes is not None:
            self._add_class()

    def _add_class(self) -> None:
        """Add the class with the largest output, or product of output and decision weight."""
        prefix, weights = "s", self.plan.decision_weights
        if weights is not None:
            prefix = "w"
            self.stages.add(
                {f"w{o}": f'"t"."s{o}" * {number(w)}' for o, w in enumerate(weights.tolist())},
                note="probabilities times the decision weights",
            )
        best = [
            f"WHEN {self._is_best(prefix, o)} THEN {label(c)}"
            for o, c in enumerate(labels_of(self.plan))
        ]
        self.stages.add({"predicted": f"CASE {' '.join(best)} END"})

    def _results(self) -> list[str]:
        plan = self.plan
        outputs = [f'"t"."s{o}"' for o in range(plan.model.n_outputs)]
        names = plan.output_names
        if plan.model.classes is not None:
            results = ['"t"."predicted" AS "prediction"']
            return results + _named("probability of ", outputs, names)
        if plan.model.task == "multilabel":
            yes = [f"CASE WHEN {text} >= 0.5E0 THEN 1 ELSE 0 END" for text in outputs]
            return _named("prediction of ", yes, names) + _named("probability of ", outputs, names)
        if plan.model.n_outputs == 1:
            return [f'{outputs[0]} AS "prediction"']
        return _named("prediction of ", outputs, names)


_LOGISTIC = "CASE WHEN {0} >= 0E0 THEN 1E0 / (1E0 + EXP(-{0})) ELSE EXP({0}) / (1E0 + EXP({0})) END"


def _transforms_scores(tree: PlannedTree) -> bool:
    """Whether a tree's scores are transformed before they are added."""
    return tree.leaf_weights is not None and (tree.link != "identity" or tree.vote != "none")


def _named(what: str, texts: list[str], names: Sequence[str]) -> list[str]:
    return [f"{text} AS {identifier(what + name)}" for text, name in zip(texts, names, strict=True)]


def _grouped(terms: Sequence[str], size: int = 100) -> str:
    """Write a sum with shallow nesting, for any number of terms."""
    while len(terms) > size:
        groups = [terms[i : i + size] for i in range(0, len(terms), size)]
        terms = [f"({joined(group)})" for group in groups]
    return joined(terms)
