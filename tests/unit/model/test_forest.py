"""The forest: properties, predictions, and invalid arguments."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from forests import forests, make_forest, make_member
from hardwood.errors import ModelFileError, TableError
from hardwood.model import ObliqueForest, ObliqueTree, dumps, load, loads
from hardwood.model.kinds.forest import MAX_TREES
from trees import make_rows, make_schema, make_tree


def steps(*thresholds: float, names: list[str] | None = None) -> list[ObliqueTree]:
    """Return trees that predict 1 from a threshold on, else 0."""
    return [
        ObliqueTree.of([[1.0]], thresholds=[t], values=[0.0, 1.0], feature_names=names)
        for t in thresholds
    ]


def coins(*shares: float) -> list[ObliqueTree]:
    """Return single leaves with these probabilities of class "b"."""
    return [
        ObliqueTree.of(np.empty((0, 1)), thresholds=[], values=[[1 - p, p]], classes=["a", "b"])
        for p in shares
    ]


# Properties


def test_sizes_are_totals_and_depth_is_the_largest():
    forest = make_forest(0, sizes=(5, 0, 3))
    assert forest.n_trees == len(forest.trees) == 3
    assert (forest.n_splits, forest.n_leaves, forest.n_nodes) == (8, 11, 19)
    assert forest.depth == max(tree.depth for tree in forest.trees) >= 3
    assert forest.n_features == 4
    assert forest.feature_names == ("f0", "f1", "f2", "f3")
    assert forest.classes == ("class 0", "class 1", "class 2")
    assert forest.target_names == ("species",)
    assert (forest.task, forest.n_outputs, forest.combine) == ("classification", 3, "mean")
    assert forest.record == {"trees": 3}
    assert not forest.has_linear_leaves
    assert make_forest(0, linear=(False, True)).has_linear_leaves


def test_the_repr_describes_it():
    assert repr(make_forest(0, sizes=(5, 0, 3), k=2, combine="vote")) == (
        "ObliqueForest(vote of 3 trees, 2 classes, 4 features, depth 5, 8 splits, 11 leaves)"
    )
    assert "regression" in repr(make_forest(0, task="regression"))
    assert "3 labels" in repr(make_forest(0, task="multilabel", linear=(True,)))
    assert "linear leaves" in repr(make_forest(0, task="multilabel", linear=(True,)))


def test_it_is_immutable_and_not_hashable():
    forest = make_forest(0)
    with pytest.raises(AttributeError, match="cannot set 'combine'; make a new forest"):
        forest.combine = "vote"
    with pytest.raises(AttributeError, match="cannot delete"):
        del forest.trees
    with pytest.raises(TypeError, match="unhashable"):
        hash(forest)
    forest.record["trees"] = 99
    assert forest.record == {"trees": 3}


def test_operations_are_those_of_all_trees():
    forest = make_forest(0)
    totals = [tree.flops().worst.total for tree in forest.trees]
    assert forest.flops().worst.total == sum(totals)


@settings(max_examples=30)
@given(forests())
def test_equal_means_equal_in_everything(forest: ObliqueForest) -> None:
    assert forest == forest.replace() == forest.replace(trees=list(forest.trees))
    assert forest == copy.deepcopy(forest)
    again = pickle.loads(pickle.dumps(forest))
    assert again == forest
    assert len({id(tree.schema) for tree in again.trees}) == 1
    assert loads(dumps(forest)) == forest
    assert dumps(loads(dumps(forest))) == dumps(forest)
    assert ObliqueForest.from_json(forest.to_json()) == forest
    assert forest != forest.replace(trees=[*forest.trees, forest.trees[0]])
    assert forest != forest.replace(record={"other": 1})
    assert forest != forest.trees[0]
    assert forest.to_text()


def test_order_and_combination_matter():
    forest = make_forest(0)
    assert forest != ObliqueForest(forest.trees[::-1], record=forest.record)
    assert forest != ObliqueForest(forest.trees, combine="vote", record=forest.record)


# Invalid arguments


def test_trees_that_do_not_match_are_refused(rng):
    schema = make_schema(rng, 4)
    tree = make_member(rng, schema, 3)
    other_schema = make_member(rng, make_schema(rng, 4), 3)
    for trees, words in [
        ([], r"needs 1 to 100000 trees, got 0"),
        ([tree, other_schema], "tree 1 does not match tree 0: its schema differs"),
        ([tree, make_member(rng, schema, 3, task="regression")], "its task is 'regression', not"),
        ([tree, make_member(rng, schema, 3, k=2)], "its n_outputs is 2, not 3"),
        ([tree, tree.replace(target_names="kind")], r"its target_names is \('kind',\)"),
        ([tree, tree.replace(classes=["a", "b", "c"])], "its classes are"),
    ]:
        with pytest.raises(ValueError, match=words):
            ObliqueForest(trees)
    with pytest.raises(TypeError, match="tree 1 is a str"):
        ObliqueForest([tree, "oak"])
    with pytest.raises(ValueError, match="got 100001"):
        ObliqueForest([tree] * (MAX_TREES + 1))


def test_classes_of_different_types_are_different():
    tree = ObliqueTree.of([[1.0]], bias=[0], values=np.eye(2), classes=[0, 1])
    with pytest.raises(ValueError, match="its classes are"):
        ObliqueForest([tree, tree.replace(classes=[False, True])])


def test_combinations_are_known():
    with pytest.raises(ValueError, match="combine must be 'mean', 'vote' or 'sum', not 'median'"):
        ObliqueForest(coins(0.5), combine="median")
    with pytest.raises(ValueError, match="use combine='mean'"):
        ObliqueForest(steps(1, 2), combine="vote")
    with pytest.raises(TypeError, match="record must be a dict"):
        ObliqueForest(steps(1), record=[])


# Predictions


def test_numbers_are_averaged():
    forest = ObliqueForest(steps(1, 2, 3))
    assert forest.predict([[0.0], [1.0], [2.5], [9.0]]).tolist() == [0, 1 / 3, 2 / 3, 1]
    with pytest.raises(TypeError, match="predict_proba needs a forest for classes or labels"):
        forest.predict_proba([[0.0]])


def test_several_outputs_are_averaged_separately():
    forest = make_forest(0, task="regression", k=3)
    rows = make_rows(1, forest.schema, 20)
    expected = np.mean([tree.predict(rows) for tree in forest.trees], axis=0)
    np.testing.assert_allclose(forest.predict(rows), expected, rtol=1e-15)


def test_the_mean_and_the_vote_may_differ():
    trees = coins(0.6, 0.6, 0.0)
    mean, vote = ObliqueForest(trees), ObliqueForest(trees, combine="vote")
    assert mean.predict([[0.0]]).tolist() == ["a"]
    assert vote.predict([[0.0]]).tolist() == ["b"]
    np.testing.assert_allclose(mean.predict_proba([[0.0]]), [[0.6, 0.4]])
    np.testing.assert_allclose(vote.predict_proba([[0.0]]), [[1 / 3, 2 / 3]])


def test_the_first_class_wins_ties():
    forest = ObliqueForest(coins(1.0, 0.0), combine="vote")
    assert forest.predict([[0.0]]).tolist() == ["a"]
    assert forest.predict_one(np.zeros(1)) == "a"


def test_labels_are_predicted_independently():
    def leaf(*p: float) -> ObliqueTree:
        return ObliqueTree(
            np.empty((0, 1)),
            [],
            np.empty((0, 2), dtype=int),
            [p],
            schema=schema,
            task="multilabel",
            target_names=["tall", "old"],
        )

    schema = make_schema(np.random.default_rng(0), 1)
    trees = [leaf(0.5, 0.9), leaf(0.4, 0.4), leaf(0.5, 0.4)]
    mean, vote = ObliqueForest(trees), ObliqueForest(trees, combine="vote")
    assert mean.predict([[0.0]]).tolist() == [[0, 1]]
    assert vote.predict([[0.0]]).tolist() == [[1, 0]]
    assert vote.predict([[0.0]]).dtype == np.int64
    np.testing.assert_allclose(vote.predict_proba([[0.0]]), [[2 / 3, 1 / 3]])
    assert mean.predict_one(np.zeros(1)).tolist() == [0, 1]


def test_probabilities_add_up(rng):
    forest = make_forest(rng, sizes=tuple(rng.integers(0, 9, size=40)), k=5)
    rows = make_rows(rng, forest.schema, 100)
    np.testing.assert_allclose(forest.predict_proba(rows).sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
@pytest.mark.parametrize("linear", [False, True])
def test_one_row_in_any_form(rng, mixed, task, linear):
    forest = make_forest(rng, mixed=mixed, task=task, linear=(linear,))
    rows = make_rows(rng, forest.schema, 20)
    together = forest.predict(rows)
    for row, expected in zip(rows, together, strict=True):
        forms = [row, tuple(row), dict(zip(forest.feature_names, row, strict=True))]
        if not mixed:
            forms.append(np.array(row, dtype=np.float64))
        for form in forms:
            np.testing.assert_array_equal(forest.predict_one(form), expected)
            assert type(forest.predict_one(form)) is (
                str if task == "classification" else np.ndarray
            )


def test_the_error_says_what_is_wrong_with_a_row():
    forest = ObliqueForest(steps(1, 2, names=["width"]))
    assert forest.predict_one({"width": 1.5}) == 0.5
    assert type(forest.predict_one(np.array([1.5]))) is float
    with pytest.raises(TableError, match="no value for 'width'"):
        forest.predict_one({"length": 1.5})
    with pytest.raises(TableError, match="holds infinity"):
        forest.predict_one(np.array([np.inf]))
    with pytest.raises(TableError, match="predict_one takes one row"):
        forest.predict_one(np.zeros((2, 1)))
    with pytest.raises(ValueError, match="2|columns|features"):
        forest.predict_one(np.zeros(2))


def test_tables_are_checked_like_those_of_trees():
    forest = ObliqueForest(steps(1, 2, names=["width"]))
    with pytest.raises(TableError, match="column 'width' holds infinity"):
        forest.predict(np.array([[np.inf]]))
    with pytest.raises(TableError, match="ObliqueForest"):
        forest.predict(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="n_jobs must be"):
        forest.predict(np.zeros((3, 1)), n_jobs=0)
    np.testing.assert_array_equal(forest.predict(np.ones((3, 1)), n_jobs=-1), [0.5] * 3)


@pytest.mark.parametrize("n_trees", [2, 3, 5, 64, 65, 1000])
def test_means_of_the_largest_numbers_are_finite(n_trees):
    largest = np.finfo(np.float64).max
    trees = [ObliqueTree.of([[1.0]], bias=[0], values=[-largest, largest]) for _ in range(n_trees)]
    forest = ObliqueForest(trees)
    answers = forest.predict([[-1.0], [1.0]])
    assert np.isfinite(answers).all()
    np.testing.assert_allclose(answers, [-largest, largest], rtol=1e-14)
    assert forest.predict_one(np.ones(1)) == answers[1]


def test_leaves_of_all_trees(rng):
    forest = make_forest(rng, mixed=True)
    rows = make_rows(rng, forest.schema, 30)
    leaves = forest.apply(rows)
    assert leaves.dtype == np.int32
    np.testing.assert_array_equal(leaves, np.column_stack([t.apply(rows) for t in forest.trees]))


# Sums of scores


def scorers(*scores: tuple[float, ...]) -> list[ObliqueTree]:
    """Return single leaves with scores."""
    return [
        ObliqueTree.of(np.empty((0, 1)), thresholds=[], values=[list(values)]) for values in scores
    ]


def test_scores_are_added_up_and_linked():
    trees = scorers((1.0, -1.0), (0.5, 2.0))
    total = ObliqueForest(trees, combine="sum")
    assert (total.task, total.link, total.classes) == ("regression", "identity", None)
    assert total.predict([[0.0]]).tolist() == [[1.5, 1.0]]
    classes = ObliqueForest(trees, combine="sum", link="softmax", classes=["a", "b"])
    assert (classes.task, classes.classes) == ("classification", ("a", "b"))
    expected = np.exp([1.5, 1.0]) / np.exp([1.5, 1.0]).sum()
    np.testing.assert_allclose(classes.predict_proba([[0.0]])[0], expected)
    assert classes.predict([[0.0]]).tolist() == ["a"]
    assert classes.predict_one(np.zeros(1)) == "a"
    labels = ObliqueForest(trees, combine="sum", link="logistic", target_names=["tall", "old"])
    assert (labels.task, labels.target_names) == ("multilabel", ("tall", "old"))
    np.testing.assert_allclose(
        labels.predict_proba([[0.0]])[0], 1 / (1 + np.exp([-1.5, -1.0])), rtol=1e-12
    )
    assert labels.predict_one(np.zeros(1)).tolist() == [1, 1]
    growth = ObliqueForest(trees, combine="sum", link="exp")
    np.testing.assert_allclose(growth.predict([[0.0]])[0], np.exp([1.5, 1.0]))
    assert growth.n_outputs == 2


def test_the_trees_of_a_sum_have_the_names_of_their_scores():
    trees = [tree.replace(target_names=[f"{i}", "x"]) for i, tree in enumerate(scorers((1, 2)))]
    classes = ObliqueForest(trees, combine="sum", link="softmax", classes=[0, "b"])
    assert classes.trees[0].target_names == ("score of 0", "score of b")
    assert classes.target_names is None
    named = classes.replace(target_names="species")
    assert (named.target_names, named.trees[0].target_names) == (
        ("species",),
        ("score of 0", "score of b"),
    )
    assert ObliqueForest(trees, combine="sum").trees[0].target_names is None
    assert "softmax of the sum of 1 tree, classification of species, 2 classes" in named.to_text()
    assert "\nscore of 0 = 1, score of b = 2\n" in named.to_text()
    assert repr(named).startswith("ObliqueForest(sum of 1 tree, 2 classes, ")


def test_a_name_reaches_all_trees_of_a_mean():
    forest = ObliqueForest(steps(1, 2)).replace(target_names="price")
    assert [tree.target_names for tree in forest.trees] == [("price",)] * 2
    assert forest.target_names == ("price",)
    total = forest.replace(combine="sum", target_names="cost")
    assert total.trees[0].target_names == ("score of cost",)
    assert total.replace(combine="mean").trees[1].target_names == ("cost",)


def test_invalid_sums_are_refused():
    trees = scorers((1.0, -1.0))
    for members, options, words in [
        (coins(0.5), {}, "adds up scores, which regression trees give; these are classification"),
        (trees, {"link": "softmax"}, "needs its classes"),
        (trees, {"link": "softmax", "classes": ["a"]}, "2 columns for 1 class"),
        (trees, {"classes": ["a", "b"]}, "has no classes"),
        (trees, {"link": "probit"}, "link of a sum must be 'softmax', 'identity', 'exp', 'logis"),
        (trees, {"link": None}, "link of a sum must be"),
        (trees, {"link": ["exp"]}, "link of a sum must be"),
        (trees, {"target_names": ["a"]}, "expected 2 target name"),
        (scorers((1e308,), (1e308,)), {}, "add up to more than the maximum of float64"),
    ]:
        with pytest.raises(ValueError, match=words):
            ObliqueForest(members, combine="sum", **options)
    for options in ({"link": "exp"}, {"classes": ["a", "b"]}):
        with pytest.raises(ValueError, match="link and classes are for combine='sum'"):
            ObliqueForest(trees, **options)
    grown = make_forest(0, task="regression", linear=(True,)).trees[0].replace(link="exp")
    with pytest.raises(ValueError, match="link of tree 0 must be 'identity', not 'exp'"):
        ObliqueForest([grown], combine="sum")


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
@pytest.mark.parametrize("mixed", [False, True])
def test_one_row_of_a_sum(rng, task, mixed):
    forest = make_forest(rng, task=task, mixed=mixed, combine="sum", linear=(True, False))
    rows = make_rows(rng, forest.schema, 20)
    for row, expected in zip(rows, forest.predict(rows), strict=True):
        np.testing.assert_array_equal(forest.predict_one(row), expected)
    scores = np.sum([tree.predict(rows) for tree in forest.trees], axis=0)
    if task == "regression":
        np.testing.assert_allclose(forest.predict(rows), scores, rtol=1e-12)
    elif task == "classification":
        expected = np.array(forest.classes)[scores.argmax(axis=1)]
        assert forest.predict(rows).tolist() == expected.tolist()
    else:
        np.testing.assert_array_equal(forest.predict(rows), scores >= 0)
    assert forest.apply(rows).shape == (20, 3)


# Other forms


def test_trees_can_be_added():
    forest = ObliqueForest(steps(1, 2), record={"note": "mine"})
    more = forest.replace(trees=[*forest.trees, *steps(3)])
    assert forest.n_trees == 2
    assert more == ObliqueForest(steps(1, 2, 3), record={"note": "mine"})
    with pytest.raises(ValueError, match="tree 2 does not match"):
        forest.replace(trees=[*forest.trees, *coins(0.5)])


def test_equal_schemas_are_shared():
    trees = [loads(dumps(tree)) for tree in steps(1, 2)]
    assert trees[0].schema is not trees[1].schema
    forest = ObliqueForest(trees)
    assert forest.trees[0].schema is forest.trees[1].schema
    assert forest.trees[0] is trees[0]


def test_the_text_shows_some_trees_and_counts_the_others():
    forest = make_forest(0, sizes=(1, 2, 3, 0, 1))
    text = forest.to_text()
    assert text.startswith(
        "Oblique forest: mean of 5 trees, classification of species, 3 classes, 4 features, "
        "depth 2, 7 splits, 12 leaves\n"
    )
    assert text.count("Oblique tree:") == 3
    assert "Tree 3 of 5." in text
    assert text.endswith("... 2 more trees not shown\n")
    assert forest.to_text(max_trees=None).count("Oblique tree:") == 5
    assert "more tree" not in forest.to_text(max_trees=None)
    assert forest.to_text(max_trees=4).endswith("... 1 more tree not shown\n")
    assert "votes of 3 trees" in make_forest(0, combine="vote").to_text()


def test_saving_and_loading(tmp_path: Path) -> None:
    forest = make_forest(3, mixed=True, counts=(True, False), linear=(False, True))
    forest.save(tmp_path / "forest.hardwood")
    again = load(tmp_path / "forest.hardwood")
    assert again == forest
    rows = make_rows(1, forest.schema, 30)
    np.testing.assert_array_equal(again.predict_proba(rows), forest.predict_proba(rows))
    assert len({id(tree.schema) for tree in again.trees}) == 1


def test_the_error_for_json_of_another_kind_names_it():
    forest, tree = make_forest(0), make_tree(0)
    with pytest.raises(ModelFileError, match=r"cannot read a tree .* use ObliqueForest\.from_json"):
        ObliqueTree.from_json(forest.to_json())
    with pytest.raises(ModelFileError, match=r"cannot read a forest .* use ObliqueTree\.from_json"):
        ObliqueForest.from_json(tree.to_json())
