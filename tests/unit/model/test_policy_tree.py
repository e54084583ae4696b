"""The policy tree: properties, predictions, and invalid arguments."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardwood.errors import ModelFileError, TableError
from hardwood.model import ObliqueTree, PolicyTree, dumps, load, loads
from hardwood.model.cost import remaining
from hardwood.table import Schema
from policies import make_perfect_parents, make_policy, policies
from reference import policy as by_hand
from trees import columns_of, make_rows

seeds = st.integers(0, 2**32 - 1)


def fork(**options: Any) -> PolicyTree:
    """Return three branches on a number: below -1, between, above 1; the first has two leaves."""
    arguments: dict[str, Any] = {
        "parents": [-1, 0, 0, 0, 1, 1],
        "weights": [[0.0], [-1.0], [0.0], [1.0], [0.0], [0.0]],
        "bias": [0.0, -1.0, 0.0, -1.0, 0.0, 1.0],
        "scores": [[20.0], [30.0], [10.0], [11.0]],
        "schema": Schema.numeric(1, ["width"]),
        "task": "regression",
    }
    return PolicyTree(**(arguments | options))


# Properties


def test_sizes_and_numbers():
    tree = fork()
    assert (tree.n_nodes, tree.n_splits, tree.n_leaves, tree.n_outputs) == (6, 2, 4, 1)
    assert (tree.depth, tree.max_children, tree.is_binary) == (2, 3, False)
    assert tree.n_children.tolist() == [3, 2, 0, 0, 0, 0]
    assert tree.node_depths.tolist() == [0, 1, 1, 1, 2, 2]
    assert tree.leaf_nodes.tolist() == [2, 3, 4, 5]
    assert tree.leaf_numbers.tolist() == [-1, -1, 0, 1, 2, 3]
    assert tree.split_nodes.tolist() == [0, 1]
    assert [tree.children(i) for i in range(6)] == [(1, 2, 3), (4, 5), (), (), (), ()]
    assert (tree.link, tree.task, tree.classes) == ("identity", "regression", None)
    assert tree.feature_names == ("width",)
    assert not tree.has_linear_leaves


def test_a_single_leaf():
    leaf = make_policy(0, n_nodes=1, task="regression", k=1)
    assert (leaf.n_splits, leaf.n_leaves, leaf.depth, leaf.max_children) == (0, 1, 0, 0)
    assert leaf.is_binary
    rows = make_rows(0, leaf.schema, 3)
    assert leaf.apply(rows).tolist() == leaf.apply(rows, path="most_probable").tolist() == [0] * 3
    assert leaf.leaf_probabilities(rows).tolist() == [[1.0]] * 3
    assert leaf.to_oblique().n_leaves == leaf.simplify().n_leaves == 1
    assert leaf.decision_path(rows).toarray().tolist() == [[1]] * 3


def test_the_repr_describes_it():
    assert repr(fork()) == (
        "PolicyTree(regression, 1 feature, depth 2, 2 splits of up to 3 branches, 4 leaves)"
    )
    assert "3 splits, 4 leaves" in repr(make_policy(0, parents=make_perfect_parents(2)))


def test_it_is_immutable_and_not_hashable():
    tree = make_policy(0)
    with pytest.raises(AttributeError, match="cannot set 'bias'; make a new tree"):
        tree.bias = 2.0
    with pytest.raises(TypeError, match="unhashable"):
        hash(tree)
    for name in ("parents", "weights", "bias", "scores", "counts", "values", "n_children"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(tree, name)[...] = 0
    tree.record["seed"] = 99
    assert tree.record == {"seed": 7}


@settings(max_examples=40)
@given(policies())
def test_equal_means_equal_in_everything(tree: PolicyTree) -> None:
    assert tree == tree.replace() == copy.deepcopy(tree)
    for again in (
        pickle.loads(pickle.dumps(tree)),
        loads(dumps(tree)),
        PolicyTree.from_json(tree.to_json()),
        PolicyTree.from_json(tree.to_json().encode()),
    ):
        assert again == tree
        assert repr(again) == repr(tree)
    assert dumps(loads(dumps(tree))) == dumps(tree)
    assert tree != tree.replace(scores=tree.scores + 1)
    assert tree != tree.replace(record={"other": 1})
    assert tree != tree.replace(target_names=None)
    assert tree != tree.replace(counts=None if tree.counts is not None else np.ones(tree.n_nodes))
    if tree.n_nodes > 1:
        assert tree != tree.replace(bias=np.r_[0, tree.bias[1:] + 1])


# Invalid arguments


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"parents": [0.5, 1]}, "parents must hold integers"),
        ({"parents": [[-1]]}, r"parents must have shape \(any\)"),
        ({"parents": np.zeros(0, dtype=int)}, "parents must begin with -1, the root"),
        ({"parents": [0, 0, 0, 0, 1, 1]}, "parents must begin with -1"),
        ({"parents": [-1, 0, 0, 3, 1, 1]}, r"parents\[3\] is 3, expected 0 to 2"),
        ({"parents": [-1, 0, -1, 0, 1, 1]}, r"parents\[2\] is -1, expected 0 to 1"),
        ({"parents": [-1, 0, 2**40, 0, 1, 1]}, "parents must fit int32, but .* to 1099511627776"),
        ({"parents": [-1, 0, 0, 0, 0, 0]}, r"scores must have shape \(5, any\)"),
        ({"weights": np.zeros((5, 1))}, r"weights must have shape \(6, 1\)"),
        ({"weights": np.full((6, 1), np.nan)}, "weights must be finite"),
        ({"weights": np.ones((6, 1))}, r"weights\[0\] and bias\[0\] must be 0"),
        ({"bias": np.ones(6)}, r"weights\[0\] and bias\[0\] must be 0"),
        ({"bias": np.zeros(7)}, r"bias must have shape \(6\)"),
        ({"bias": [0, -1.7e308, 1.7e308, 0, 0, 0]}, "bias of node 2 and of its sibling 1 differ"),
        ({"scores": [[1.0], [2.0]]}, r"scores must have shape \(4, any\)"),
        ({"scores": np.zeros((4, 0))}, "scores must have at least one column"),
        ({"counts": [1.0, 2.0]}, r"counts must have shape \(6\)"),
        ({"counts": -np.ones(6)}, "counts must not be negative"),
        ({"link": "softmax"}, "link of a regression policy tree must be 'identity' or 'exp'"),
        ({"task": "ranking"}, "task must be"),
        ({"task": "classification"}, "needs its classes"),
        (
            {"task": "classification", "classes": ["a", "b"]},
            "scores has 1 column for",
        ),
        ({"target_names": ["a", "b"]}, "expected 1 target name"),
        ({"record": [1]}, "record must be a dict"),
    ],
)
def test_the_error_says_what_is_wrong(change: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        fork(**change)
    assert len(str(caught.value)) < 500


def test_nodes_that_are_not_there():
    tree = fork()
    for node in (-1, 6):
        with pytest.raises(IndexError, match="nodes 0 to 5"):
            tree.split(node)
        with pytest.raises(IndexError, match="nodes 0 to 5"):
            tree.children(node)
    with pytest.raises(IndexError, match="node 3 is leaf 1, not a split"):
        tree.split(3)


# Predictions


def test_the_greedy_path_and_the_most_probable_leaf_differ():
    # At -1.2 the first of the three branches is the most probable (0.39); it has two leaves.
    tree = fork()
    x = [[-9.0], [-1.2], [0.0], [2.0]]
    assert tree.predict(x).tolist() == [11.0, 11.0, 20.0, 30.0]
    assert tree.predict(x, path="most_probable").tolist() == [11.0, 20.0, 20.0, 30.0]
    p = tree.leaf_probabilities([[-1.2]])[0]
    branches = np.exp([0.2, 0.0, -2.2])
    branches /= branches.sum()
    below = np.exp([0.0, 1.0]) / np.exp([0.0, 1.0]).sum()
    np.testing.assert_allclose(p, [branches[1], branches[2], *(branches[0] * below)], rtol=1e-6)
    path = tree.decision_path(x, path="most_probable").toarray()
    assert path.tolist()[:2] == [[1, 1, 0, 0, 0, 1], [1, 0, 1, 0, 0, 0]]


def test_the_last_one_wins_ties():
    tree = fork(weights=np.zeros((6, 1)), bias=np.zeros(6))
    assert tree.apply([[5.0]]).tolist() == [1]
    assert tree.apply([[5.0]], path="most_probable").tolist() == [1]  # 1/3 each, below 1/6 each
    even = make_policy(0, parents=[-1, 0, 0, 1, 1], n_features=1)
    even = even.replace(weights=even.weights * 0, bias=[0, np.log(2), 0, 0, 0])
    # All three leaves have probability 1/3: the last of them is below node 1.
    assert even.leaf_nodes.tolist() == [2, 3, 4]
    assert even.apply([[5.0]]).tolist() == [2]


def test_a_path_has_one_of_two_names():
    with pytest.raises(ValueError, match="path must be 'greedy' or 'most_probable', not 'short'"):
        fork().predict([[0.0]], path="short")


@settings(max_examples=60)
@given(policies(), seeds)
def test_leaves_by_hand(tree: PolicyTree, seed: int) -> None:
    rows = make_rows(seed, tree.schema, 25)
    columns = columns_of(tree, rows)
    arrays = (tree.parents, tree.weights, tree.bias)
    logs = by_hand.node_log_probabilities(*arrays, columns)[:, tree.leaf_nodes]
    probabilities = tree.leaf_probabilities(rows)
    np.testing.assert_allclose(probabilities, np.exp(logs), rtol=1e-4, atol=1e-30)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    # Rows at the border between two leaves may be on the other side in float32.
    found = tree.apply(rows, path="most_probable")
    assert found.dtype == np.int32
    np.testing.assert_allclose(logs[np.arange(25), found], logs.max(axis=1), atol=1e-4)
    greedy = tree.apply(rows)
    for leaf, expected, row in zip(
        greedy, by_hand.greedy_leaves(*arrays, columns), columns, strict=True
    ):
        assert leaf == expected or _is_at_an_edge(tree, row)


def _is_at_an_edge(tree: PolicyTree, row: np.ndarray) -> bool:
    scores = tree.weights @ row + tree.bias
    for node in tree.split_nodes.tolist():
        of_branches = np.sort(scores[list(tree.children(node))])
        if of_branches.size > 1 and of_branches[-1] - of_branches[-2] < 1e-4:
            return True
    return False


@settings(max_examples=40)
@given(policies(), seeds)
def test_a_prediction_does_not_depend_on_other_rows(tree: PolicyTree, seed: int) -> None:
    rows = make_rows(seed, tree.schema, 12)
    together = tree.predict(rows)
    np.testing.assert_array_equal(tree.predict(rows, n_jobs=2), together)
    np.testing.assert_array_equal(
        tree.leaf_probabilities(rows, n_jobs=2), tree.leaf_probabilities(rows)
    )
    for row, answer in zip(rows, together, strict=True):
        np.testing.assert_array_equal(tree.predict_one(row), answer)
    for path in ("greedy", "most_probable"):
        leaves = tree.apply(rows, path=path)
        visited = tree.decision_path(rows, path=path)
        assert visited.shape == (12, tree.n_nodes)
        ends = visited.toarray()[np.arange(12), tree.leaf_nodes[leaves]]
        assert (ends == 1).all()
        np.testing.assert_array_equal(
            visited.sum(axis=1), tree.node_depths[tree.leaf_nodes][leaves] + 1
        )


def test_sparse_rows_and_floats_have_equal_predictions(rng):
    from scipy.sparse import csr_array

    tree = make_policy(rng, n_nodes=30, n_features=20)
    X = (rng.normal(size=(60, 20)) * 50 * (rng.random((60, 20)) < 0.3)).astype(np.float32)
    for path in ("greedy", "most_probable"):
        expected = tree.apply(X.astype(np.float64), path=path)
        np.testing.assert_array_equal(tree.apply(csr_array(X), path=path), expected)
    np.testing.assert_allclose(
        tree.leaf_probabilities(csr_array(X)), tree.leaf_probabilities(X), rtol=1e-4, atol=1e-30
    )


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
def test_one_row_in_any_form(rng, mixed, task):
    tree = make_policy(rng, mixed=mixed, task=task)
    rows = make_rows(rng, tree.schema, 20)
    for row, expected in zip(rows, tree.predict(rows), strict=True):
        forms = [row, tuple(row), dict(zip(tree.feature_names, row, strict=True))]
        if not mixed:
            forms.append(np.array(row, dtype=np.float64))
        for form in forms:
            answer = tree.predict_one(form)
            np.testing.assert_array_equal(answer, expected)
            assert type(answer) is (str if task == "classification" else np.ndarray)


def test_classes_labels_and_numbers():
    tree = make_policy(1, mixed=True)
    rows = make_rows(1, tree.schema, 50)
    for path in ("greedy", "most_probable"):
        probabilities = tree.predict_proba(rows, path=path)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        labels = np.array(tree.classes)[probabilities.argmax(axis=1)]
        assert tree.predict(rows, path=path).tolist() == labels.tolist()
    yes = make_policy(1, task="multilabel")
    rows = make_rows(1, yes.schema, 50)
    np.testing.assert_array_equal(yes.predict(rows), yes.predict_proba(rows) >= 0.5)
    prices = make_policy(1, task="regression", link="exp")
    np.testing.assert_allclose(prices.predict(rows), np.exp(prices.scores)[prices.apply(rows)])
    with pytest.raises(TypeError, match="predict_proba needs a policy tree for classes or labels"):
        prices.predict_proba(rows)


def test_tables_are_checked_like_those_of_trees():
    tree = fork()
    assert type(tree.predict_one(np.array([1.5]))) is float
    with pytest.raises(TableError, match="column 'width' holds infinity"):
        tree.predict(np.array([[np.inf]]))
    with pytest.raises(TableError, match="column 'width' holds infinity"):
        tree.leaf_probabilities(np.array([[np.inf]]))
    with pytest.raises(TableError, match="holds infinity"):
        tree.predict_one(np.array([np.inf]))
    with pytest.raises(TableError, match="PolicyTree"):
        tree.predict(np.zeros((3, 2)))
    with pytest.raises(TableError, match="no value for 'width'"):
        tree.predict_one({"length": 1.0})
    with pytest.raises(ValueError, match="n_jobs must be"):
        tree.predict(np.zeros((3, 1)), n_jobs=0)


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e300])
def test_weights_of_any_size(size):
    tree = fork(weights=np.array([[0], [-1], [0], [1], [0], [0]]) * size, bias=np.zeros(6))
    x = [[-1e300], [-1.0], [1.0], [1e300]]
    greedy = tree.apply(x).tolist()
    assert greedy[1:3] == [3, 1]
    probabilities = tree.leaf_probabilities(x)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    if size >= 1e30:
        assert tree.apply(x, path="most_probable").tolist()[1:3] == [3, 1]
    else:
        np.testing.assert_allclose(probabilities[1][:2], 1 / 3)


# Other forms


@settings(max_examples=40)
@given(st.integers(0, 4), seeds, st.booleans(), st.sampled_from(["classification", "regression"]))
def test_the_oblique_tree_of_two_branches_agrees(depth, seed, mixed, task):
    tree = make_policy(seed, parents=make_perfect_parents(depth), mixed=mixed, task=task)
    oblique = tree.to_oblique()
    rows = make_rows(seed, tree.schema, 40)
    np.testing.assert_array_equal(oblique.apply(rows), tree.apply(rows))
    np.testing.assert_array_equal(oblique.predict(rows), tree.predict(rows))
    assert (oblique.n_splits, oblique.n_leaves, oblique.depth) == (
        tree.n_splits,
        tree.n_leaves,
        tree.depth,
    )
    assert oblique.classes == tree.classes
    assert oblique.record == tree.record
    assert oblique.flops(rows) == tree.flops(rows)
    assert oblique.flops() == tree.flops()
    for i, node in enumerate(tree.split_nodes.tolist()):
        assert oblique.split(i).condition == tree.split(node).condition
        assert oblique.split(i).count == tree.split(node).count


def test_an_oblique_tree_on_the_edge_goes_right():
    tree = make_policy(0, parents=[-1, 0, 0], n_features=1)
    tree = tree.replace(weights=tree.weights * 0, bias=[0, 3, 3])
    assert tree.apply([[1.0]]).tolist() == tree.to_oblique().apply([[1.0]]).tolist() == [1]


def test_other_trees_cannot_be_converted_to_oblique_ones():
    with pytest.raises(ValueError, match="two children at every split, but node 0 has 3"):
        fork().to_oblique()
    chain = make_policy(0, parents=[-1, 0])
    with pytest.raises(ValueError, match=r"node 0 has 1; simplify\(\) drops"):
        chain.to_oblique()
    assert chain.simplify().to_oblique().n_leaves == 1


@settings(max_examples=60)
@given(policies(), seeds)
def test_simplified_trees_have_the_same_predictions(tree: PolicyTree, seed: int) -> None:
    rows = make_rows(seed, tree.schema, 40)
    for before in (tree.replace(counts=None), _with_constants(tree.replace(counts=None), seed)):
        small = before.simplify()
        assert small.n_nodes <= before.n_nodes
        assert (small.n_children != 1).all()
        assert small.simplify() == small
        np.testing.assert_array_equal(small.predict(rows), before.predict(rows))
    if tree.counts is not None:
        counted = tree.simplify()
        assert counted.counts[0] == tree.counts[0]
        if tree.counts[0] > 0:
            assert (counted.counts > 0).all()


def _with_constants(tree: PolicyTree, seed: int) -> PolicyTree:
    """Make some nodes differ from siblings by a constant, and some leaves equal."""
    rng = np.random.default_rng(seed)
    weights, scores = tree.weights.copy(), tree.scores.copy()
    weights[rng.random(len(weights)) < 0.6] = 0
    scores[rng.random(len(scores)) < 0.6] = 1
    return tree.replace(weights=weights, scores=scores)


def test_what_simplify_removes():
    tree = fork()
    # Node 4 never has a higher score than node 5; then node 1 has one branch.
    small = tree.simplify()
    assert small.parents.tolist() == [-1, 0, 0, 0]
    assert small.scores.ravel().tolist() == [11.0, 20.0, 30.0]
    same = fork(scores=[[1.0]] * 4).simplify()
    assert same.parents.tolist() == [-1]
    counted = fork(counts=[4.0, 1.0, 3.0, 0.0, 0.0, 1.0]).simplify()
    assert counted.counts.tolist() == [4.0, 1.0, 3.0]
    assert counted.is_binary


def test_operations_of_a_fork():
    cost = fork().flops([[-9.0], [0.0]])
    # The root compares two scores, in one of which the weight is 2 and in the other 1.
    assert str(cost.worst) == "2 multiplications, 2 additions, 2 comparisons"
    assert cost.mean.comparisons == 2.5
    assert fork().flops().mean is None
    assert str(remaining(fork())) == "2 of 2 splits, 4 of 4 leaves, 2 of 3 weights"
    assert remaining(fork().simplify(), fork()).of_leaves == 4
    with pytest.raises(ValueError, match="of must be the earlier tree"):
        remaining(fork(), 3)


def test_the_text_lists_the_branches():
    assert fork().to_text() == (
        "Policy tree: regression, 1 feature, depth 2, 2 splits of up to 3 branches, 4 leaves\n"
        "\n"
        "branch 1 of 3, score 0:\n"
        "|   if always:\n"
        "|   |   11\n"
        "|   else:\n"
        "|   |   10\n"
        "branch 2 of 3, score 1 + width:\n"
        "|   20\n"
        "branch 3 of 3, score 2*width:\n"
        "|   30\n"
        "\n"
        "A row takes the branch with the largest score; the softmax of the scores "
        "gives their probabilities.\n"
        "Where a condition reads w.x >= t, its 'if' has the probability 1 / (1 + exp(t - w.x)). A\n"
        "condition on a single number is divided by its weight; multiply by it first.\n"
    )
    assert "... 1 split and 2 leaves not shown" in fork().to_text(max_depth=1)
    assert repr(fork().split(0)) == "PolicySplit(0: largest score of: 0 | 1 + width | 2*width)"
    assert repr(fork().split(0).branches[2]) == "Branch(to node 3: 2*width)"
    with pytest.raises(ValueError, match="max_terms must be at least 1"):
        fork().to_text(max_terms=0)


@settings(max_examples=20)
@given(policies())
def test_every_tree_has_a_text(tree: PolicyTree) -> None:
    text = tree.to_text(max_terms=None, digits=None)
    assert text.startswith("Policy tree: ")
    assert text.count("\n") >= tree.n_nodes


def test_a_tree_deeper_than_pythons_stack():
    n = 3001  # a chain of splits, each with a leaf
    parents = np.array([-1, *(i - 1 if i % 2 else i - 2 for i in range(1, n))])
    tree = make_policy(0, parents=parents, n_features=1)
    assert tree.depth == 1500
    rows = make_rows(0, tree.schema, 3)
    np.testing.assert_allclose(tree.leaf_probabilities(rows).sum(axis=1), 1)
    assert tree.to_text(max_depth=None).count("\n") > n
    assert "not shown" in tree.to_text()
    assert tree.simplify().n_nodes <= n


def test_drawing(tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    ax = make_policy(6, parents=[-1, 0, 0, 0, 1, 1, 2, 2, 2, 2, 4]).plot()
    words = [text.get_text() for text in ax.texts]
    assert any(word.startswith("largest score of\n1: 0\n2: ") for word in words)
    assert {"1", "2", "3", "4", "yes", "no", "always"} <= set(words)
    boxes = [p.get_bbox() for p in ax.patches]
    assert len(boxes) == 11
    for i, a in enumerate(boxes):
        assert not any(a.overlaps(b) for b in boxes[:i])
    assert "2 of 4 splits" in fork_caption()
    with pytest.raises(ValueError, match="max_depth must not be negative"):
        fork().plot(max_depth=-1)


def fork_caption() -> str:
    ax = make_policy(6, parents=[-1, 0, 0, 1, 1, 3, 3, 5, 5]).plot(max_depth=2)
    return str(ax.texts[-1].get_text())


def test_saving_and_loading(tmp_path: Path) -> None:
    tree = make_policy(3, mixed=True)
    tree.save(tmp_path / "policy.hardwood")
    again = load(tmp_path / "policy.hardwood")
    assert isinstance(again, PolicyTree)
    assert again == tree
    rows = make_rows(1, tree.schema, 30)
    np.testing.assert_array_equal(again.predict_proba(rows), tree.predict_proba(rows))


def test_the_error_for_json_of_another_kind_names_it():
    tree = make_policy(0, parents=[-1, 0, 0])
    with pytest.raises(ModelFileError, match=r"cannot read a tree .* use PolicyTree\.from_json"):
        ObliqueTree.from_json(tree.to_json())
    with pytest.raises(ModelFileError, match=r"a policy tree .* use ObliqueTree\.from_json"):
        PolicyTree.from_json(tree.to_oblique().to_json())


def test_pages_exports_and_explanations_take_two_branches(rng):
    from hardwood import explain, export

    tree = make_policy(rng, parents=make_perfect_parents(2))
    rows = make_rows(rng, tree.schema, 20)
    assert tree.show().html == tree.to_oblique().show().html
    assert tree._repr_html_() is not None
    assert str(export.to_python(tree)) == str(export.to_python(tree.to_oblique()))
    assert str(explain.path(tree, rows[0])) == str(explain.path(tree.to_oblique(), rows[0]))
    wide = fork()
    assert wide._repr_html_() is None
    for ask in (wide.show, lambda: export.to_python(wide), lambda: explain.path(wide, [1.0])):
        with pytest.raises(TypeError, match=r"two branches at every split, got .* a split of 3"):
            ask()
