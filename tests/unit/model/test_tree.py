"""The hard oblique tree: predictions, views, equality."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from hardwood.errors import TableError, TableTypeError
from hardwood.model import ObliqueTree
from hardwood.table import Feature, Schema
from reference.encode import encode
from reference.route import route
from trees import make_rows, make_tree


@pytest.fixture
def flowers() -> ObliqueTree:
    return ObliqueTree.of(
        [[0.8, -1.1], [1.0, 0.0]],
        thresholds=[2.3, 5.0],
        children=[[-1, 1], [-2, -3]],
        values=[[1, 0, 0], [0.1, 0.6, 0.3], [0, 0.2, 0.8]],
        feature_names=["length", "width"],
        classes=["setosa", "versicolor", "virginica"],
        counts=[100, 60, 40, 35, 25],
    )


def test_sizes(flowers: ObliqueTree) -> None:
    assert (flowers.n_splits, flowers.n_leaves, flowers.n_nodes, flowers.depth) == (2, 3, 5, 2)
    assert (flowers.n_features, flowers.n_outputs) == (2, 3)
    assert flowers.feature_names == ("length", "width")
    assert flowers.node_depths.tolist() == [0, 1, 1, 2, 2]
    assert repr(flowers) == "ObliqueTree(3 classes, 2 features, depth 2, 2 splits, 3 leaves)"


def test_predictions_by_hand(flowers: ObliqueTree) -> None:
    X = np.array([[1.0, 1.0], [4.5, 1.0], [9.0, 1.0]])  # scores -2.6; 0.2, -0.5; 3.8, 4
    assert flowers.apply(X).tolist() == [0, 1, 2]
    assert flowers.predict(X).tolist() == ["setosa", "versicolor", "virginica"]
    assert flowers.predict_proba(X)[1].tolist() == [0.1, 0.6, 0.3]
    assert [flowers.predict_one(x) for x in X] == ["setosa", "versicolor", "virginica"]
    path = flowers.decision_path(X).toarray()
    assert path.tolist() == [[1, 0, 1, 0, 0], [1, 1, 0, 1, 0], [1, 1, 0, 0, 1]]


def test_a_score_of_zero_goes_right() -> None:
    tree = ObliqueTree.of([[1.0]], bias=[0.0], values=[10.0, 20.0])
    assert tree.predict([[-1e-30], [0.0], [-0.0], [1e-30]]).tolist() == [10.0, 20.0, 20.0, 20.0]


def test_regression_with_several_outputs() -> None:
    tree = ObliqueTree.of([[1.0]], thresholds=[2.0], values=[[1, 2], [3, 4]])
    assert tree.predict([[1.0], [2.0]]).tolist() == [[1, 2], [3, 4]]
    assert tree.predict_one(np.array([5.0])).tolist() == [3, 4]
    with pytest.raises(TypeError, match="use predict"):
        tree.predict_proba([[1.0]])


def test_several_labels() -> None:
    values = [[0.5, 0.49999, 1.0], [0.0, 0.9, 0.2]]
    tree = ObliqueTree.of([[1.0]], thresholds=[2.0], values=values, task="multilabel")
    X = [[1.0], [2.0]]
    assert tree.predict(X).tolist() == [[1, 0, 1], [0, 1, 0]]
    assert tree.predict(X).dtype == np.int64
    assert tree.predict_proba(X).tolist() == values
    assert tree.predict_one([1.0]).tolist() == [1, 0, 1]
    assert not tree.predict_one([1.0]).flags.writeable
    assert repr(tree) == "ObliqueTree(3 labels, 1 feature, depth 1, 1 split, 2 leaves)"


def test_one_label_is_a_column() -> None:
    tree = ObliqueTree.of([[1.0]], thresholds=[2.0], values=[[0.2], [0.7]], task="multilabel")
    assert tree.predict([[1.0], [2.0]]).tolist() == [[0], [1]]
    assert tree.predict_one([3.0]).tolist() == [1]


def linear(task: str, **options: Any) -> ObliqueTree:
    """Return two linear leaves on a number with center 10, where they are 1 and 2; k = 2."""
    schema = Schema((Feature("x", "numeric", center=10.0, scale=2.0),))
    return ObliqueTree.of(
        [[1.0]],
        thresholds=[10.0],
        values=[[1.0, -1.0], [2.0, 0.0]],
        leaf_weights=[[[0.5], [0.0]], [[-0.25], [1.0]]],
        schema=schema,
        task=task,
        **options,
    )


X_LINEAR = np.array([[8.0], [10.0], [14.0]])
SCORES = np.array([[0.0, -1.0], [2.0, 0.0], [1.0, 4.0]])


def test_linear_leaves_by_hand() -> None:
    tree = linear("regression")
    assert tree.has_linear_leaves
    assert tree.predict(X_LINEAR).tolist() == SCORES.tolist()
    assert [tree.predict_one(x).tolist() for x in X_LINEAR] == SCORES.tolist()
    assert not tree.predict_one(X_LINEAR[0]).flags.writeable
    assert linear("regression", link="exp").predict(X_LINEAR) == pytest.approx(np.exp(SCORES))
    assert repr(tree).endswith("2 linear leaves)")


def test_one_linear_output_is_a_vector_and_a_float() -> None:
    tree = ObliqueTree.of([[1.0]], bias=[0], values=[1, 2], leaf_weights=[[3.0], [4.0]])
    assert tree.predict([[-1.0], [1.0]]).tolist() == [-2, 6]
    assert tree.predict_one(np.array([1.0])) == 6.0
    assert type(tree.predict_one(np.array([1.0]))) is float


def test_linear_leaves_of_classes() -> None:
    tree = linear("classification", classes=["a", "b"])
    shares = np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True)
    assert tree.predict_proba(X_LINEAR) == pytest.approx(shares, rel=1e-14)
    assert tree.predict(X_LINEAR).tolist() == ["a", "a", "b"]
    assert [tree.predict_one(x) for x in X_LINEAR] == ["a", "a", "b"]


def test_linear_leaves_of_labels() -> None:
    tree = linear("multilabel", target_names=["a", "b"])
    assert tree.predict_proba(X_LINEAR) == pytest.approx(1 / (1 + np.exp(-SCORES)), rel=1e-14)
    assert tree.predict(X_LINEAR).tolist() == [[1, 0], [1, 1], [1, 1]]


def test_large_scores_give_finite_probabilities() -> None:
    leaf = {"values": [[0.0, 0.0]], "leaf_weights": [[[1.0], [-1.0]]]}
    X = np.array([[1e6], [-1e6]])
    for options in ({"classes": ["a", "b"]}, {"task": "multilabel"}):
        tree = ObliqueTree.of(np.zeros((0, 1)), bias=[], **leaf, **options)
        assert tree.predict_proba(X).tolist() == [[1, 0], [0, 1]]


def test_a_missing_number_adds_nothing_to_a_linear_leaf() -> None:
    schema = Schema((Feature("x", "numeric", center=10.0, has_missing=True),))
    tree = ObliqueTree.of(
        np.zeros((0, 2)), bias=[], values=[1.0], leaf_weights=[[2.0, 0.5]], schema=schema
    )
    assert tree.predict([[11.0], [None]]).tolist() == [3.0, 1.5]


def test_linear_leaves_have_views() -> None:
    leaf = linear("regression", counts=[5, 2, 3]).linear_leaf(1, 0)
    assert (leaf.value, leaf.intercept, leaf.count) == (2.0, 4.5, 3.0)
    assert leaf.weights.tolist() == [-0.25]
    assert [(term.name, term.weight) for term in leaf.terms] == [("x", -0.25)]
    assert leaf.formula == "4.5 - 0.25*x"
    assert repr(leaf) == "LinearLeaf(1, 0: 4.5 - 0.25*x)"
    with pytest.raises(IndexError, match="leaves 0 to 1, got 2"):
        linear("regression").linear_leaf(2)
    with pytest.raises(IndexError, match="outputs 0 to 1, got -1"):
        linear("regression").linear_leaf(0, -1)
    with pytest.raises(TypeError, match="leaves of this tree are constant"):
        make_tree(0).linear_leaf(0)


def test_a_single_leaf_predicts() -> None:
    tree = ObliqueTree.of(np.zeros((0, 3)), bias=[], values=[4.0])
    assert tree.depth == 0
    assert tree.predict(np.zeros((2, 3))).tolist() == [4.0, 4.0]
    assert tree.decision_path(np.zeros((2, 3))).toarray().tolist() == [[1], [1]]


@pytest.mark.parametrize(
    ("classes", "kind"),
    [((1, 2), "i"), ((True, False), "b"), ((0.5, 1.5), "f"), (("a", "b"), "U"), ((1, "1"), "O")],
)
def test_labels_keep_their_type(classes: tuple[Any, Any], kind: str) -> None:
    tree = ObliqueTree.of([[1.0]], bias=[0], values=np.eye(2), classes=classes)
    labels = tree.predict([[-1.0], [1.0]])
    assert labels.dtype.kind == kind
    assert labels.tolist() == list(classes)
    assert tree.predict_one([1.0]) == classes[1]
    assert type(tree.predict_one(np.array([1.0]))) is type(classes[1])


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
@pytest.mark.parametrize("linear", [False, True])
def test_every_form_of_a_row_gives_the_same_prediction(
    mixed: bool, task: str, linear: bool
) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    tree = make_tree(3, mixed=mixed, task=task, linear=linear, k=2, n_splits=9)
    rows = make_rows(5, tree.schema, 40)
    names = list(tree.feature_names)
    expected = tree.predict(rows)
    frame = pd.DataFrame(rows, columns=names)
    columns = {name: [row[j] for row in rows] for j, name in enumerate(names)}
    polars = pl.DataFrame(columns)
    for table in (frame, frame[names[::-1]], polars, np.array(rows, dtype=object)):
        np.testing.assert_array_equal(tree.predict(table), expected)
    for i, row in enumerate(rows):
        by_name = dict(zip(names, row, strict=True), extra=1)
        forms = [row, tuple(row), by_name, frame.iloc[i], np.array(row, dtype=object)]
        if not mixed:
            forms += [np.array(row, dtype=float), np.array(row, dtype=float)[::-1][::-1]]
        for form in forms:
            np.testing.assert_array_equal(tree.predict_one(form), expected[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_sparse_threads_and_orders_agree(dtype: type, rng: np.random.Generator) -> None:
    tree = ObliqueTree.of(rng.normal(size=(15, 6)), bias=rng.normal(size=15), values=np.arange(16))
    X = (rng.normal(size=(200, 6)) * (rng.random((200, 6)) < 0.6)).astype(dtype)
    expected = tree.apply(X)
    assert len(set(expected.tolist())) > 8
    np.testing.assert_array_equal(tree.apply(np.asfortranarray(X)), expected)
    np.testing.assert_array_equal(tree.apply(X, n_jobs=2), expected)
    np.testing.assert_array_equal(tree.apply(X, n_jobs=-1), expected)
    for form in (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.coo_array):
        np.testing.assert_array_equal(tree.apply(form(X)), expected)
    assert [tree.predict_one(x) for x in X] == expected.tolist()


@pytest.mark.parametrize("mixed", [False, True])
def test_routing_equals_the_numpy_reference(mixed: bool) -> None:
    for seed in range(20):
        tree = make_tree(seed, mixed=mixed, n_splits=11, n_features=5)
        rows = make_rows(seed, tree.schema, 100)
        columns = encode(tree.schema, tree.schema.read(rows)) * tree.schema.column_scale
        leaves = route(tree.weights, tree.bias, tree.children, columns)
        # The engine sums in float32: rows this close to a split may go to either side.
        near = (np.abs(columns @ tree.weights.T + tree.bias) < 1e-5).any(axis=1)
        assert near.mean() < 0.05
        np.testing.assert_array_equal(tree.apply(rows)[~near], leaves[~near])


@pytest.mark.parametrize("factor", [1e-300, 1e-30, 1e30, 1e300])
def test_scaling_a_split_does_not_matter(factor: float) -> None:
    tree = make_tree(1, n_splits=9)
    scaled = ObliqueTree(
        tree.weights * factor,
        tree.bias * factor,
        tree.children,
        tree.values,
        schema=tree.schema,
        task=tree.task,
        classes=tree.classes,
    )
    rows = make_rows(0, tree.schema, 200)
    np.testing.assert_array_equal(scaled.apply(rows), tree.apply(rows))


def test_a_large_offset_keeps_its_signal() -> None:
    schema = Schema((Feature("time", "numeric", center=1.7e9, scale=1.0),))
    tree = ObliqueTree.of([[2.0]], thresholds=[2 * 1.7e9 + 0.5], values=[0, 1], schema=schema)
    X = 1.7e9 + np.array([[-1.0], [0.0], [0.2], [0.3], [1.0]])
    assert tree.predict(X).tolist() == [0, 0, 0, 1, 1]
    assert tree.thresholds.tolist() == [2 * 1.7e9 + 0.5]


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        ([1.0], TableError, "X has 1 features, but ObliqueTree is expecting 2 features"),
        (np.zeros(3), TableError, "X has 3 features"),
        (np.zeros((1, 2)), TableError, "takes one row.*Use predict"),
        (np.array([1.0, np.inf]), TableError, "'width' holds infinity"),
        ([1.0, -np.inf], TableError, "column 1 .* holds infinity"),
        ({"length": 1.0}, TableError, "no value for 'width'"),
        ([1.0, "wide"], TableError, "width"),
        ("ab", TableTypeError, "takes a row"),
        (1.0, TableTypeError, "takes a row"),
        (None, TableTypeError, "takes a row"),
    ],
)
def test_invalid_rows_are_refused(
    flowers: ObliqueTree, row: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        flowers.predict_one(row)


def test_infinity_is_found_in_dense_and_sparse(flowers: ObliqueTree) -> None:
    X = np.ones((5, 2))
    X[3, 1] = -np.inf
    for table in (X, X.astype(np.float32), sparse.csr_matrix(X)):
        with pytest.raises(TableError, match=r"column ('width'|1).* holds infinity .*row 3"):
            flowers.predict(table)


def test_infinity_is_found_by_linear_leaves() -> None:
    tree = make_tree(0, linear=True)
    X = np.ones((5, 4))
    X[3, 1] = np.inf
    for table in (X, X.astype(np.float32), sparse.csr_matrix(X)):
        with pytest.raises(TableError, match=r"column ('f1'|1).* holds infinity .*row 3"):
            tree.predict(table)
    with pytest.raises(TableError, match="holds infinity"):
        tree.predict_one(X[3])


def test_n_jobs_zero_is_refused(flowers: ObliqueTree) -> None:
    with pytest.raises(ValueError, match="n_jobs"):
        flowers.apply(np.ones((1, 2)), n_jobs=0)


def test_splits_have_views(flowers: ObliqueTree) -> None:
    split = flowers.split(0)
    assert split.weights.tolist() == [0.8, -1.1]
    assert (split.bias, split.threshold, split.left, split.right) == (-2.3, 2.3, -1, 1)
    assert split.count == 100
    assert [(term.name, term.weight) for term in split.terms] == [("width", -1.1), ("length", 0.8)]
    assert repr(split) == "Split(0: 1.1*width - 0.8*length <= -2.3)"
    with pytest.raises(IndexError, match="splits 0 to 1"):
        flowers.split(2)


def test_of_needs_either_thresholds_or_bias() -> None:
    for sides in ({}, {"bias": [1], "thresholds": [1]}):
        with pytest.raises(ValueError, match="give thresholds"):
            ObliqueTree.of([[1.0]], values=[0, 1], **sides)
    with pytest.raises(ValueError, match="do not fill a perfect tree"):
        ObliqueTree.of(np.ones((2, 1)), bias=[0, 0], values=[0, 1, 2])
    with pytest.raises(ValueError, match="not both"):
        ObliqueTree.of(
            [[1.0]], bias=[1], values=[0, 1], feature_names=["a"], schema=Schema.numeric(1)
        )


CHANGES: list[dict[str, Any]] = [
    {"weights": np.full((5, 4), 0.5)},
    {"bias": np.zeros(5)},
    {"values": np.full((6, 3), 1 / 3)},
    {"counts": None},
    {"counts": np.ones(11)},
    {"schema": Schema.numeric(4)},
    {"classes": ["a", "b", "c"]},
    {"target_names": None},
    {"record": {}},
    {"leaf_weights": np.zeros((6, 3, 4)), "link": "softmax"},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_equality_sees_every_part(change: dict[str, Any]) -> None:
    tree = make_tree(0)
    assert tree.replace() == tree
    assert tree.replace(**change) != tree


def test_equality_sees_linear_leaves() -> None:
    tree = make_tree(0, task="regression", linear=True)
    assert tree.replace() == tree
    assert tree.replace(link="exp") != tree
    assert tree.replace(leaf_weights=tree.leaf_weights + 1) != tree
    assert tree.replace(leaf_weights=None) != tree


def test_replacing_a_part_of_another_name_is_refused() -> None:
    with pytest.raises(TypeError, match="threshold"):
        make_tree(0).replace(threshold=1)


def test_equality_sees_types_of_labels() -> None:
    a, b = (
        ObliqueTree.of([[1]], bias=[0], values=np.eye(2), classes=c) for c in ([0, 1], [0.0, 1])
    )
    assert a != b
    assert a != "a tree"


@pytest.mark.parametrize("linear", [False, True])
def test_pickle_holds_no_engine_objects(linear: bool) -> None:
    tree = make_tree(2, mixed=True, linear=linear)
    rows = make_rows(0, tree.schema, 10)
    expected = tree.predict(rows)  # creates the engine's objects
    again = pickle.loads(pickle.dumps(tree))
    assert again == tree
    assert not again.weights.flags.writeable
    np.testing.assert_array_equal(again.predict(rows), expected)


@pytest.mark.parametrize("weight", [1e-300, 1e-60, 1.0, 1e60])
def test_a_split_through_the_center_may_have_weights_of_any_size(weight):
    tree = ObliqueTree.of([[weight]], bias=[0.0], values=[0.0, 1.0])
    assert tree.predict([[-1.0], [1.0]]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("n_jobs", [1024, -1024, -1, None])
def test_n_jobs_has_its_usual_meaning(flowers: ObliqueTree, n_jobs) -> None:
    assert flowers.apply(np.ones((1, 2)), n_jobs=n_jobs).shape == (1,)


@pytest.mark.parametrize(
    ("n_jobs", "words"),
    [
        (0, "must be None, a positive number of threads"),
        (1.5, "must be None, a positive number of threads"),
        ("all", "must be None, a positive number of threads"),
        (1025, "must be from -1024 to 1024, got 1025"),
        (10**30, "must be from -1024 to 1024"),
        (-(10**30), "must be from -1024 to 1024"),
    ],
)
def test_numbers_of_threads_are_checked(flowers: ObliqueTree, n_jobs, words) -> None:
    with pytest.raises(ValueError, match=f"n_jobs {words}"):
        flowers.apply(np.ones((1, 2)), n_jobs=n_jobs)
