"""Properties of Shapley values, the arguments of `shapley`, and the output."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest

from forests import make_forest
from hardwood import DGTClassifier, ObliqueTree
from hardwood.errors import MissingExtraError, TableError
from hardwood.explain import ShapleyValues, shapley
from hardwood.model import TreeEnsemble
from hardwood.table import Feature, Schema
from trees import make_rows, make_tree


@pytest.fixture
def a_above_b() -> ObliqueTree:
    """Yes where a is at least b."""
    return ObliqueTree.of(
        [[1.0, -1.0]],
        thresholds=[0.0],
        values=[[1, 0], [0, 1]],
        feature_names=["a", "b"],
        classes=["no", "yes"],
    )


def test_two_features_with_the_same_role_get_the_same_values(rng, a_above_b):
    """The first feature does not get everything."""
    pairs = rng.normal(size=(60, 2))
    table = np.vstack([pairs, pairs[:, ::-1]])  # a and b have the same values
    for exact in (True, False):
        values = shapley(a_above_b, table, table, exact=exact, max_background=None).values[:, :, 1]
        a, b = np.abs(values).mean(axis=0)
        assert a == pytest.approx(b, rel=1e-12)
        assert a > 0.2
        # What a adds to a row, b takes from the row with both exchanged.
        np.testing.assert_allclose(values[:60, 0], -values[60:, 1], atol=1e-14)


def test_two_features_by_hand(a_above_b):
    explained = shapley(a_above_b, [[3.0, 1.0]], [[0.0, 2.0]])
    # From (0, 2), no, to (3, 1), yes: a alone changes the prediction, b alone does not.
    assert explained.values[0, :, 1].tolist() == [1.0, 0.0]
    assert explained.values[0, :, 0].tolist() == [-1.0, 0.0]
    assert explained.base.tolist() == [1.0, 0.0]
    assert explained.outputs.tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize("exact", [True, False])
def test_features_without_a_weight_have_exactly_zero(rng, exact):
    tree = make_tree(rng, n_features=6, n_splits=9, linear=True)
    weights, leaf_weights = tree.weights.copy(), tree.leaf_weights.copy()
    weights[:, [1, 4]] = leaf_weights[..., [1, 4]] = 0.0
    tree = tree.replace(weights=weights, leaf_weights=leaf_weights)
    rows = make_rows(rng, tree.schema, 30)
    values = shapley(tree, rows, exact=exact).values
    assert (values[:, [1, 4]] == 0).all()
    assert (np.abs(values[:, [0, 2, 3, 5]]).max(axis=(0, 2)) > 0).all()


def test_permuting_features_permutes_values(rng):
    tree = make_tree(rng, n_features=5, n_splits=9)
    order = rng.permutation(5)
    moved = tree.replace(
        weights=tree.weights[:, order],
        schema=Schema(tuple(tree.schema.features[j] for j in order)),
    )
    X, Z = (np.array(make_rows(rng, tree.schema, n), dtype=float) for n in (12, 9))
    values = shapley(tree, X, Z, exact=True).values
    np.testing.assert_allclose(
        shapley(moved, X[:, order], Z[:, order], exact=True).values,
        values[:, order],
        rtol=0,
        atol=1e-14,
    )


def test_the_levels_of_a_category_are_one_feature(rng):
    tree = make_tree(rng, n_features=4, n_splits=7, mixed=True)
    explained = shapley(tree, make_rows(rng, tree.schema, 10))
    assert explained.values.shape == (10, 4, 3)
    assert explained.feature_names == ("f0", "f1", "f2", "f3")


def test_a_mean_of_trees_has_the_mean_of_their_values(rng):
    forest = make_forest(rng, sizes=(6, 3, 4), n_features=5)
    X, Z = make_rows(rng, forest.schema, 8), make_rows(rng, forest.schema, 7)
    parts = [shapley(tree, X, Z, exact=True).values for tree in forest.trees]
    np.testing.assert_allclose(
        shapley(forest, X, Z, exact=True).values, np.mean(parts, axis=0), rtol=0, atol=1e-14
    )


def test_trees_far_larger_than_enumeration_are_sampled(rng):
    tree = make_tree(rng, n_features=40, n_splits=60, sparsity=0.0)
    X = rng.normal(size=(20, 40)) * tree.schema.column_scale + tree.schema.column_center
    explained = shapley(tree, X)
    assert not explained.is_exact.any()
    assert explained.standard_errors is not None
    assert (explained.standard_errors >= 0).all()
    np.testing.assert_allclose(
        explained.base + explained.values.sum(axis=1), tree.predict_proba(X), atol=1e-13
    )
    with pytest.raises(ValueError, match=r"too long for 20 of 20 rows.*sparsify"):
        shapley(tree.replace(weights=rng.normal(size=(60, 40))), X[:, :], exact=True)


def test_large_trees_of_short_splits_are_exact(rng):
    """Splits of one or two terms: far fewer cases than sets of 40 features."""
    tree = make_tree(rng, n_features=40, n_splits=60, sparsity=0.97)
    X = rng.normal(size=(20, 40)) * tree.schema.column_scale + tree.schema.column_center
    assert shapley(tree, X).is_exact.all()


def test_some_rows_may_be_exact_and_others_sampled(rng):
    """Rows that differ from the background in few features have few cases."""
    tree = make_tree(rng, n_features=40, n_splits=60, sparsity=0.7, k=2)
    center, scale = tree.schema.column_center, tree.schema.column_scale
    background = rng.normal(size=(1, 40)) * scale + center
    far = rng.normal(size=(1, 40)) * scale + center
    near = background.copy()
    near[0, :5] = far[0, :5]
    explained = shapley(tree, np.vstack([far, near]), background, random_state=1)
    assert explained.is_exact.tolist() == [False, True]
    assert explained.standard_errors is not None
    assert explained.standard_errors[0].max() > 0
    assert explained.standard_errors[1].max() == 0
    assert "Values of 1 row are sampled" in str(explained)


# Arguments


def test_one_output_by_class_name_or_position(rng, a_above_b):
    X = rng.normal(size=(9, 2))
    every = shapley(a_above_b, X)
    for output in ("yes", 1, np.int64(1)):
        one = shapley(a_above_b, X, output=output)
        assert one.values.shape == (9, 2, 1)
        assert one.output_names == ("yes",)
        np.testing.assert_array_equal(one.values[:, :, 0], every.values[:, :, 1])
    for output in ("maybe", 2, -1, True, 1.0):
        with pytest.raises(ValueError, match="output must be one of 'no', 'yes', a position"):
            shapley(a_above_b, X, output=output)


def test_numeric_classes_take_precedence_over_positions(rng):
    tree = ObliqueTree.of(
        [[1.0]], thresholds=[0.0], values=[[0.9, 0.1], [0.2, 0.8]], classes=[1, 0]
    )
    one = shapley(tree, rng.normal(size=(9, 1)), output=0)
    assert one.output_names == ("0",)
    np.testing.assert_array_equal(one.base, shapley(tree, one.data).base[1:])


def test_the_background_is_the_table_itself_or_a_sample(rng, a_above_b):
    X = rng.normal(size=(150, 2))
    assert shapley(a_above_b, X).n_background == 100
    assert shapley(a_above_b, X, X[:7]).n_background == 7
    assert shapley(a_above_b, X[:9], X, max_background=5).n_background == 5
    every = shapley(a_above_b, X[:9], X, max_background=None)
    assert every.n_background == 150
    np.testing.assert_array_equal(every.base, a_above_b.predict_proba(X).mean(axis=0))
    bases = [shapley(a_above_b, X, random_state=seed).base[0] for seed in (0, 0, 1)]
    assert bases[0] == bases[1] != bases[2]


def test_random_state_may_be_a_generator(rng, a_above_b):
    X = rng.normal(size=(150, 2))
    first, again = (
        shapley(a_above_b, X, exact=False, random_state=np.random.default_rng(5)) for _ in range(2)
    )
    np.testing.assert_array_equal(first.values, again.values)


def test_the_number_of_orders_adds_up_to_two_hundred(rng, a_above_b):
    X = rng.normal(size=(300, 2))
    for n_background, n in [(1, 200), (60, 4), (100, 2), (300, 2)]:
        explained = shapley(a_above_b, X[:3], X[:n_background], max_background=None)
        assert explained.n_permutations == n


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_permutations": 1}, "an integer from 2"),
        ({"n_permutations": 2.5}, "an integer from 2"),
        ({"n_permutations": "many"}, "n_permutations must be an integer from 2"),
        ({"exact": "yes"}, "exact must be"),
        ({"exact": None}, "exact must be"),
        ({"exact": 1}, "exact must be"),
        ({"max_background": 0}, "max_background must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_arguments_out_of_range_are_refused(rng, a_above_b, arguments, words):
    with pytest.raises(ValueError, match=words):
        shapley(a_above_b, rng.normal(size=(5, 2)), **arguments)


def test_tables_that_do_not_fit_are_refused(rng, a_above_b):
    X = rng.normal(size=(5, 2))
    with pytest.raises(TableError, match="pass a background"):
        shapley(a_above_b, X[:1])
    with pytest.raises(TableError, match="column 'b' holds infinity"):
        shapley(a_above_b, X, np.array([[0.0, np.inf]]))
    with pytest.raises(TableError, match="column 0 .* holds infinity"):
        shapley(a_above_b, [[np.inf, 0.0]], X)
    with pytest.raises(TableError, match="3 features"):
        shapley(a_above_b, X, np.ones((2, 3)))


def test_infinity_beside_categories_is_refused(rng):
    tree = make_tree(rng, n_features=2, mixed=True)
    rows = make_rows(rng, tree.schema, 5)
    with pytest.raises(TableError, match="column 0 .* holds infinity"):
        shapley(tree, [[np.inf, "Adelie"]], rows)


def test_predictions_beyond_float64_are_refused():
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[-1.7e308, 1.7e308])
    with pytest.raises(ValueError, match="exceed float64"):
        shapley(tree, [[1.0]], [[-1.0]])


def test_estimators_are_explained_and_soft_models_are_not(rng):
    X = rng.normal(size=(60, 3))
    estimator = DGTClassifier(max_depth=2, max_epochs=2, random_state=0)
    with pytest.raises(ValueError, match="fit"):
        shapley(estimator, X)
    estimator.fit(X, X[:, 0] > X[:, 1])
    np.testing.assert_array_equal(shapley(estimator, X).values, shapley(estimator.tree_, X).values)
    soft = TreeEnsemble(
        np.ones((1, 1, 3)),
        np.zeros((1, 1)),
        np.zeros((1, 2, 1)),
        gamma=1.0,
        schema=Schema.numeric(3),
        task="regression",
        link="identity",
    )
    with pytest.raises(TypeError, match=r"hard trees .*harden"):
        shapley(soft, X)
    with pytest.raises(TypeError, match="expected a tree"):
        shapley(42, X)


# Output


@pytest.fixture
def explained(rng) -> ShapleyValues:
    tree = make_tree(rng, n_features=5, n_splits=9, mixed=True)
    return shapley(tree, make_rows(rng, tree.schema, 12))


def test_rows_can_be_picked(explained):
    one = explained[3]
    assert isinstance(one, ShapleyValues)
    assert len(one) == 1
    np.testing.assert_array_equal(one.values[0], explained.values[3])
    np.testing.assert_array_equal(explained[-1].data, explained.data[11:])
    np.testing.assert_array_equal(explained[2:5].outputs, explained.outputs[2:5])
    np.testing.assert_array_equal(explained[[7, 1]].is_exact, explained.is_exact[[7, 1]])
    with pytest.raises(IndexError):
        explained[12]


def test_text_has_features_values_base_and_prediction(explained):
    text = str(explained)
    assert "12 rows compared with 12 background rows" in text
    assert "The values are exact." in text
    assert all(name in text for name in (*explained.feature_names, *explained.output_names))
    one = str(explained[0])
    assert "mean prediction for the background" in one
    assert "this row" in one


def test_of_two_classes_the_second_is_shown(rng, a_above_b):
    text = str(shapley(a_above_b, rng.normal(size=(5, 2))))
    assert "yes" in text
    assert "not shown" not in text
    assert " no" not in text


def test_many_features_and_outputs_are_cut_with_a_note(rng):
    tree = make_tree(rng, n_features=20, n_splits=7, k=7)
    X = rng.normal(size=(8, 20)) * tree.schema.column_scale + tree.schema.column_center
    explained = shapley(tree, X)
    assert "... and 8 more features" in str(explained)
    assert "3 more outputs not shown" in str(explained)
    assert "8 other features" in str(explained[0])


def test_sampled_values_are_shown_with_their_standard_errors(rng, a_above_b):
    sampled = shapley(a_above_b, rng.normal(size=(5, 2)), exact=False, n_permutations=2)
    assert "2 feature orders per background row; typical standard error" in str(sampled)
    assert "(se " in str(sampled[0])


def test_html_is_safe_and_complete(rng):
    name = '<script>alert("x")</script>'
    tree = ObliqueTree.of(
        [[1.0, 2.0]], thresholds=[0.0], values=[0, 1], feature_names=[name, "$b$"]
    )
    explained = shapley(tree, rng.normal(size=(5, 2)))
    for html in (explained._repr_html_(), explained[0].to_html()):
        assert "<script>" not in html
        assert "data:image/png;base64," in html


def test_json_and_frames_hold_everything(explained):
    content = json.loads(explained.to_json())
    np.testing.assert_array_equal(content["values"], explained.values)
    assert content["data"][0][1] in ("Adelie", "Chinstrap", "Gentoo", None)
    frame = explained.to_frame()
    assert len(frame) == explained.values.size
    part = frame[(frame.row == 4) & (frame.feature == "f2") & (frame.output == "class 1")]
    assert part.value.item() == explained.values[4, 2, 1]
    importance = explained.to_frame("importance", backend="polars")
    assert importance.columns == ["feature", "output", "importance"]
    np.testing.assert_array_equal(importance["importance"], explained.importance.ravel())


def test_the_plot_has_a_bar_for_every_feature(explained):
    import matplotlib.pyplot as plt

    for shown in (explained, explained[0]):
        figure = shown.plot()
        assert len(figure.axes) == 3
        assert all(len(ax.patches) == 5 for ax in figure.axes)
        plt.close(figure)


def test_shap_takes_the_values(explained):
    shap = pytest.importorskip("shap")
    given = explained.to_shap()
    assert isinstance(given, shap.Explanation)
    np.testing.assert_array_equal(given.values, explained.values)
    np.testing.assert_array_equal(given.base_values[5], explained.base)
    assert given.feature_names == list(explained.feature_names)
    assert given.display_data[0, 1] in ("Adelie", "Chinstrap", "Gentoo", None)
    assert given[:, :, "class 1"].values.shape == (12, 5)


def test_one_output_is_flat_for_shap(rng, a_above_b):
    pytest.importorskip("shap")
    given = shapley(a_above_b, rng.normal(size=(5, 2)), output="yes").to_shap()
    assert given.values.shape == (5, 2)
    assert given.base_values.shape == (5,)


def test_without_shap_there_is_an_install_line(explained, monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(MissingExtraError, match=r"\.\[explain\]"):
        explained.to_shap()


def test_dates_and_missing_values_are_formatted(rng):
    features = (
        Feature("joined", "numeric", center=1.5e9, scale=2.0**24, origin="date", has_missing=True),
        Feature("sex", "categorical", levels=("female", "male")),
    )
    tree = ObliqueTree.of(
        [[1e-7, 0.5, 1.0, -1.0]],
        bias=[0.0],
        values=[0.0, 1.0],
        schema=Schema(features),
    )
    background: list[Any] = [[1.4e9, "female"], [1.6e9, None]]
    text = str(shapley(tree, [[1.5e9, "male"]], background))
    assert "2017-07" in text
    assert "male" in text
    assert "missing" in str(shapley(tree, [[None, "male"]], background))


def test_the_mean_of_predictions_near_the_largest_float_is_finite():
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[-1.7e308, 1.7e308])
    rows = [[1.0], [2.0], [3.0]]
    found = shapley(tree, rows, rows)
    assert found.base[0] == pytest.approx(1.7e308, rel=1e-12)
    assert not found.values.any()
