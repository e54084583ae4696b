"""Counts in messages agree with their nouns: ``1 row``, not ``1 rows``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "hardwood"
FILES = sorted(PACKAGE.rglob("*.py"))

NOUNS = (
    "actions|additions|arrays|branches|bytes|candidates|categories|characters|classes|clusters|"
    "columns|comparisons|conditions|contexts|decisions|digits|entries|epochs|errors|features|files|"
    "folds|groups|labels|leaves|levels|losses|moves|multiplications|names|nodes|numbers|outputs|"
    "pairs|points|predictions|processors|restarts|rewards|rounds|rows|samples|seconds|sizes|splits|"
    "steps|targets|terms|threads|trees|trials|values|weights"
)
ADJECTIVES = (
    "active|different|distinct|held-out|missing|more|nonzero|other|random|soft|test|training"
)
NOUN = re.compile(rf"^ (?:(?:{ADJECTIVES}) )?(?:{NOUNS})\b")

# Counts that are never 1, because the message is about too many, or about several.
NEVER_ONE = {
    "bandit/comparison.py": {"n_columns", "first.n_actions"},
    "bandit/contexts.py": {"shape[0]"},
    "bandit/file.py": {"state['parameters'].size", "n_columns", "n_outputs"},
    "cli/outcome/metric.py": {"n_classes"},
    "estimators/clustering.py": {"p"},
    "explain/constraints.py": {"argument"},  # a word
    "export/c/quantize.py": {"len(plan.trees)", "real.shape[1]", "len(feature.levels)"},
    "export/rules/paths.py": {"n_conditions", "plan.model.n_leaves", "plan.model.depth"},
    "export/rules/writer.py": {"digits"},
    "export/sql/check.py": {"size", "len(text)"},
    "model/edit/readable.py": {"self.terms_before / n_splits"},
    "learn/semantic.py": {"n_classes"},
    "model/files/container.py": {"len(text)"},
    "model/files/header.py": {"len(trees)"},
    "model/from_sklearn.py": {"len(classes)"},
    "model/kinds/soft_ensemble.py": {"n_splits"},
    "model/kinds/forest.py": {"trees[0].task"},  # a word
    "model/kinds/tree.py": {"n_splits"},
    "nn/reinforced_topology.py": {"len(numbers)"},
    "nn/semantic.py": {"self.n_leaves", "self.out_features"},
    "report/evaluation.py": {"len(names)", "len(model.classes)"},
    "search/best_tree.py": {"of_all"},
    "search/fit_report.py": {"self.seconds"},
    "search/frontier_search.py": {"n_rows"},
    "selection/compare.py": {"len(folds)"},
    "selection/points.py": {"at_most"},
    "show/text.py": {"model.n_outputs"},
    "table/features.py": {"len(used)"},
    "table/levels.py": {"self.n_levels"},
    "table/target.py": {"values.shape[1]"},
    "text/numbers.py": {"n_bytes"},
    # scikit-learn's checks ask for these words.
    "table/matching.py": {"table.n_features", "schema.n_features"},
}


def counts_without_plural(text: str) -> Iterator[str]:
    """Yield what stands before the noun of a count in an f-string."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, after in zip(node.values, node.values[1:], strict=False):
            if (
                isinstance(value, ast.FormattedValue)
                and value.conversion == -1
                and isinstance(after, ast.Constant)
                and NOUN.match(after.value)
                and not is_constant_or_word(value.value)
            ):
                yield ast.unparse(value.value)


def is_constant_or_word(value: ast.expr) -> bool:
    name = value.id if isinstance(value, ast.Name) else getattr(value, "attr", "")
    is_word = isinstance(value, ast.IfExp | ast.Constant) or (
        isinstance(value, ast.Call) and ast.unparse(value.func) != "len"
    )
    return name.strip("_").isupper() or is_word


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_counts_are_written_with_plural(path: Path) -> None:
    found = set(counts_without_plural(path.read_text(encoding="utf-8")))
    assert found <= NEVER_ONE.get(path.relative_to(PACKAGE).as_posix(), set())


def test_exceptions_are_still_needed() -> None:
    for name, expected in NEVER_ONE.items():
        found = set(counts_without_plural((PACKAGE / name).read_text(encoding="utf-8")))
        assert expected <= found, name


def test_the_check_finds_a_wrong_count() -> None:
    assert list(counts_without_plural('f"found {n} rows"')) == ["n"]
    assert list(counts_without_plural('f"{len(x):,} distinct rows"')) == ["len(x)"]
    assert list(counts_without_plural("f\"{plural(n, 'row')} and {MOST} rows\"")) == []


def test_no_message_leaves_the_number_open() -> None:
    """Not ``row(s)``, except where scikit-learn's checks ask for it."""
    singular = "|".join(noun.removesuffix("s") for noun in NOUNS.split("|"))
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and text not in ("sample(s)", "feature(s)"):
                assert not re.search(rf"\b({singular})\(e?s\)", text), (path, text)
