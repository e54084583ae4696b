"""Views of deep and large trees stay short, or say why they are refused."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood import explain, export, report
from hardwood.errors import ExportError
from hardwood.model import LatentTreeModel, ObliqueTree, PolicyTree
from hardwood.show.text import MAX_LEVELS, MAX_LINES
from hardwood.table import Schema

ROWS = np.random.default_rng(0).normal(size=(40, 3)) * 100


def chain(n_splits: int) -> ObliqueTree:
    """As deep as it has splits, on sums that no two splits share."""
    children = [[-1 - i, i + 1] for i in range(n_splits - 1)] + [[-n_splits, -1 - n_splits]]
    return ObliqueTree.of(
        np.ones((n_splits, 3)) * [1.0, 0.5, 0.25],
        bias=-np.arange(n_splits, dtype=float),
        children=children,
        values=np.arange(n_splits + 1.0),
    )


def perfect(depth: int) -> ObliqueTree:
    n = 2**depth - 1
    return ObliqueTree.of(np.ones((n, 1)), bias=np.arange(n), values=np.arange(n + 1.0))


VIEWS = {
    "text": lambda tree: tree.to_text(),
    "whole text": lambda tree: tree.to_text(max_depth=None),
    "description": lambda tree: str(report.describe(tree)),
    "description as JSON": lambda tree: report.describe(tree).to_json(),
    "description as HTML": lambda tree: report.describe(tree).to_html(),
    "analysis": lambda tree: report.analyze(tree, ROWS, ROWS[:, 0], n_repeats=2).to_json(),
    "evaluation": lambda tree: report.evaluate(tree, ROWS, ROWS[:, 0]).to_json(),
    "path": lambda tree: explain.path(tree, [1e6, 1e6, 1e6]).to_json(),
    "page": lambda tree: tree.show(None, ROWS).html,
    "Python": export.to_python,
    "SQL": export.to_sql,
    "JSON": export.to_json,
}


@pytest.mark.parametrize("view", VIEWS)
def test_twice_the_depth_is_at_most_twice_the_length(view: str) -> None:
    once, twice = (len(VIEWS[view](chain(n))) for n in (120, 240))
    assert twice <= 2.2 * once


def test_a_text_of_a_deep_tree_ends_early_and_says_how_to_see_the_rest() -> None:
    tree = chain(12_000)
    text = tree.to_text()
    assert len(text) < 10_000
    assert "... 11970 splits and 11971 leaves not shown, at node 30\n" in text
    assert "to_text(node=N), or hardwood describe --node N, begins at node N;" in text
    rest = tree.to_text(node=30)
    assert rest.splitlines()[3].startswith(tree.split(30).condition.join(["if ", ":"]))
    end = tree.to_text(node=11_990)
    assert "not shown" not in end
    assert end.count("if ") == 10


def test_an_indentation_has_a_limit() -> None:
    text = chain(100).to_text(max_depth=None)
    assert max(map(len, text.splitlines())) < 200
    assert "|   " * MAX_LEVELS + "(level 99) if " in text
    assert "|   " * (MAX_LEVELS + 1) not in text


@pytest.mark.parametrize("depth", [6, 9, 12])
def test_a_text_of_a_wide_tree_shows_the_levels_that_fit(depth: int) -> None:
    text = perfect(depth).to_text()
    assert len(text.splitlines()) <= MAX_LINES + 10
    shown = text.count("if ")
    assert shown == 2**depth - 1 if depth <= 8 else shown in (127, 255)
    assert ("not shown" in text) == (depth > 8)


def test_other_kinds_of_trees_end_early_too() -> None:
    n = 200  # a chain of splits with two branches each
    parents = [-1, *(2 * (i // 2) for i in range(2 * n))]
    weights = np.ones((2 * n + 1, 1))
    weights[0] = 0.0
    policy = PolicyTree(
        parents,
        weights,
        np.zeros(2 * n + 1),
        np.zeros((n + 1, 1)),
        schema=Schema.numeric(1),
        task="regression",
    )
    text = policy.to_text()
    assert f"... {n - MAX_LEVELS} splits and {n - MAX_LEVELS + 1} leaves not shown, at node" in text
    assert "From node 2:" in policy.to_text(node=2)
    with pytest.raises(ValueError, match=f"node must be an integer from 0 to {2 * n}"):
        policy.to_text(node=2 * n + 1)
    latent = LatentTreeModel(
        [0, 1, 2],
        [1.0, 0.5, 0.5],
        [[1.0]],
        [0.0],
        [1.0, 1.0, 1.0],
        [0.0],
        schema=Schema.numeric(1),
        task="regression",
    )
    assert "and more below" in latent.to_text(max_depth=0)
    with pytest.raises(ValueError, match="node must be the number of a split"):
        latent.to_text(node=1)


def test_rules_that_would_repeat_too_much_are_refused() -> None:
    with pytest.raises(ExportError, match=r"would repeat 501,500 .* Prune the model, or export it"):
        export.to_rules(chain(1000))
    assert export.to_rules(chain(100)).count("rule ") == 101
