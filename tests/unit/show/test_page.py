from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from forests import make_forest
from hardwood.errors import TableError
from hardwood.model import ObliqueTree, TreeEnsemble
from hardwood.model.routed_rows import RoutedRows
from hardwood.show.page import Page, document, notebook_html, rows, show
from hardwood.show.page.colors import colors_of
from hardwood.show.page.content import content_of
from hardwood.show.page.histograms import N_BINS, histograms_of
from hardwood.show.page.packing import packed
from hardwood.table import Feature, Schema, Table
from pages import content_in, unpacked
from trees import make_rows, make_tree

# Packing


@given(
    arrays.arrays(np.float64, 30, elements=st.floats(allow_infinity=False))
    | arrays.arrays(np.float32, (8, 5), elements=st.floats(-9, 9, width=32), fill=st.just(0.0))
    | arrays.arrays(np.int64, (8, 5), elements=st.integers(-(2**31), 2**31 - 1), fill=st.just(0))
    | arrays.arrays(np.bool_, 60)
    | arrays.arrays(np.uint8, (0, 3))
)
def test_packed_numbers_come_back_exactly(array):
    sent = json.loads(json.dumps(packed(array), allow_nan=False))
    np.testing.assert_array_equal(unpacked(sent), array.ravel().astype(np.float64))


def test_zeros_take_almost_no_space():
    weights = np.zeros((500, 100), dtype=np.float32)
    weights[::7, 3] = np.pi
    assert len(json.dumps(packed(weights))) < 1000
    assert len(json.dumps(packed(np.random.default_rng(0).normal(size=1000).astype("f4")))) < 5400


# What the page knows


def test_histograms_count_every_row_on_its_side_of_the_threshold():
    tree = make_tree(3, n_splits=8, n_features=5, mixed=True)
    table = make_rows(1, tree.schema, 400)
    data = rows.DataRows.of(tree, table, tree.predict(table))
    found = {
        name: unpacked(value)
        for name, value in histograms_of(tree, data, colors_of(tree, data)).items()
        if value is not None
    }
    counts = found["counts"].reshape(tree.n_splits, N_BINS, 3)
    routed = RoutedRows.of(tree, table)
    np.testing.assert_array_equal(counts.sum(axis=(1, 2)), routed.counts[: tree.n_splits])
    for i, (left, right) in enumerate(tree.children.tolist()):
        zero = int(found["zero"][i])
        at = [routed.counts[c if c >= 0 else tree.n_splits + ~c] for c in (left, right)]
        assert [counts[i, :zero].sum(), counts[i, zero:].sum()] == at
    by_class = [np.bincount(tree.predict_proba(table).argmax(axis=1), minlength=3)]
    np.testing.assert_array_equal(counts[:1].sum(axis=1), by_class)
    np.testing.assert_array_equal(found["leafCounts"].reshape(-1, 3).sum(axis=0), by_class[0])


def test_histograms_count_the_scores_of_splits():
    """For any scale of the training columns."""
    X = np.random.default_rng(0).normal(50.0, 8.0, size=(300, 2))
    schema = Schema.learn(Table.of(X))
    assert (schema.column_scale != 1).all()
    tree = ObliqueTree.of([[2.0, -1.0]], thresholds=[48.0], values=[0.0, 1.0])
    tree = tree.replace(schema=schema, bias=tree.bias + tree.weights @ schema.column_center)
    score = X @ tree.weights[0] + tree.bias[0] - tree.weights[0] @ schema.column_center
    data = rows.DataRows.of(tree, X, None)
    found = histograms_of(tree, data, colors_of(tree, data))
    low, high = np.percentile(score, [0.5, 99.5])
    assert low < 0 < high
    assert unpacked(found["width"])[0] * N_BINS == pytest.approx(high - low, rel=0.2)


def test_the_score_of_a_row_lies_in_its_bin():
    tree = ObliqueTree.of([[2.0]], thresholds=[3.0], values=[0.0, 1.0])
    X = np.array([[0.0], [1.0], [1.4], [1.6], [4.0]])  # scores -3, -1, -0.2, 0.2, 5
    data = rows.DataRows.of(tree, X, None)
    found = histograms_of(tree, data, colors_of(tree, data))
    width, zero = unpacked(found["width"])[0], int(unpacked(found["zero"])[0])
    counts = unpacked(found["counts"])
    expected = np.zeros(N_BINS)
    for score in (-3.0, -1.0, -0.2, 0.2, 5.0):
        expected[min(int(np.floor(score / width)) + zero, N_BINS - 1)] += 1
    np.testing.assert_array_equal(counts, expected)
    assert -zero * width <= -3
    assert (N_BINS - zero) * width >= 5


def test_true_numbers_color_the_bins_and_fill_the_leaves():
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 1.0])
    X = np.linspace(-1, 1, 200)[:, None]
    y = np.where(X[:, 0] >= 0, 7.0, -3.0)
    data = rows.DataRows.of(tree, X, y)
    colors = colors_of(tree, data)
    assert (colors.low[0], colors.high[0]) == (-3.0, 7.0)
    found = histograms_of(tree, data, colors)
    zero = int(unpacked(found["zero"])[0])
    shades = unpacked(found["shades"])
    assert set(shades[:zero]) == {0.0}
    assert set(shades[zero:]) == {255.0}
    targets = unpacked(found["leafTargets"]).reshape(2, N_BINS)
    assert targets[0, 0] == targets[1, -1] == 100


def test_many_classes_share_the_last_color():
    k = 30
    rng = np.random.default_rng(0)
    tree = make_tree(1, k=k)
    y = np.minimum(rng.geometric(0.2, size=500), k) - 1  # the first classes are the largest
    data = rows.DataRows.of(tree, make_rows(1, tree.schema, 500), [tree.classes[i] for i in y])
    groups = colors_of(tree, data).group_of_class
    assert groups[:9].tolist() == list(range(9))
    assert set(groups[9:]) == {9}


def test_features_without_a_weight_are_not_in_the_page():
    tree = ObliqueTree.of(
        [[0.0, 1.0, 0.0]], thresholds=[1.0], values=[0.0, 1.0], feature_names=["a", "b", "c"]
    )
    content = content_of(tree, [[1.0, 2.0, 3.0]])
    assert [feature["name"] for feature in content["features"]] == ["b"]
    assert content["features"][0]["slot"] == 1  # its place in the engine's sums
    assert content["unused"] == {"count": 2, "names": ["a", "c"]}
    assert [unpacked(column).tolist() for column in content["rows"]["columns"]] == [[2.0]]


def test_the_axis_has_the_units_of_the_condition():
    weights = [[-2.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    tree = ObliqueTree.of(
        weights, bias=[6.0, -4.0, 1.0], values=np.arange(4.0), feature_names=["a", "b"]
    )
    conditions = [tree.split(i).condition for i in range(3)]
    assert conditions == ["a <= 3", "a + b >= 4", "always"]
    assert content_of(tree)["trees"][0]["axes"] == [
        [3.0, -0.5, "number"],
        [4.0, 1.0, "number"],
        [0.0, 1.0, "number"],
    ]


@pytest.mark.parametrize("origin", ["number", "boolean", "date", "duration"])
def test_the_axis_of_a_split_with_missing_values_is_that_of_its_number(origin):
    feature = Feature("x", "numeric", center=1.5e9, scale=2.0**20, has_missing=True, origin=origin)
    tree = ObliqueTree.of(
        [[-2.0, 5.0], [0.0, 1.0]],
        bias=[6.0, -0.5],
        children=[[-1, 1], [-2, -3]],
        values=np.arange(3.0),
        schema=Schema((feature,)),
    )
    content = content_of(tree)["trees"][0]
    assert content["conditions"][0][2].endswith(" or missing")
    assert content["conditions"][1][0] == ["x is missing"]
    assert content["axes"] == [[1.5e9 + 3.0, -0.5, origin], [0.0, 1.0, "number"]]


def test_a_large_table_is_sampled(monkeypatch):
    monkeypatch.setattr(rows, "MAX_COUNTED_ROWS", 500)
    tree = make_tree(1, n_features=3)
    X = np.random.default_rng(0).normal(size=(2000, 3))
    content = content_of(tree, X, tree.predict(X), max_rows=20)
    assert (content["rows"]["inTable"], content["rows"]["counted"]) == (2000, 500)
    number = unpacked(content["rows"]["number"]).astype(int)
    assert number.size == 20
    assert (np.diff(number) > 0).all()
    columns = np.stack([unpacked(column) for column in content["rows"]["columns"]], axis=1)
    np.testing.assert_array_equal(columns, X[number])
    np.testing.assert_array_equal(
        unpacked(content["rows"]["outputs"]).reshape(20, -1), tree.predict_proba(X[number])
    )
    positions = unpacked(content["rows"]["truth"]).astype(int)
    assert [tree.classes[i] for i in positions] == tree.predict(X[number]).tolist()


def test_sparse_tables_and_frames_are_read():
    from scipy.sparse import csr_array

    tree = make_tree(1, n_features=4, k=1, task="regression")
    X = np.random.default_rng(0).random(size=(40, 4)) * (np.arange(40)[:, None] % 3 > 0)
    assert content_in(show(tree, None, csr_array(X)).html) == content_in(show(tree, None, X).html)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:, ::-1], columns=tree.feature_names[::-1])
    assert content_in(show(tree, None, frame).html) == content_in(show(tree, None, X).html)


@pytest.mark.parametrize("value", [1e-320, 1e-30, 1e30, 1e300])
def test_numbers_of_any_size_make_a_page(value):
    tree = ObliqueTree.of(
        [[value, -value]], bias=[value], values=[-value, value], leaf_weights=None
    )
    X = np.random.default_rng(0).normal(size=(100, 2)) * 1e3
    content_in(show(tree, None, X, X[:, 0] * value / 1e3).html)
    flat = ObliqueTree.of([[1.0, 1.0]], bias=[0.0], values=[value, value])
    content_in(show(flat, None, X).html)


# The document


def test_a_page_is_written_and_returned(tmp_path):
    tree = make_tree(1)
    page = tree.show(tmp_path / "tree.html", title="A <title> & more")
    assert (tmp_path / "tree.html").read_text(encoding="utf-8") == page.html
    assert "<title>A &lt;title&gt; &amp; more</title>" in page.html
    assert content_in(page.html)["title"] == "A <title> & more"
    assert isinstance(tree.show(), Page)
    assert [entry.name for entry in tmp_path.iterdir()] == ["tree.html"]
    with pytest.raises(IsADirectoryError, match=r"cannot write a page to .*model\.html"):
        tree.show(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist. Make it first"):
        page.save(tmp_path / "no" / "tree.html")


def test_a_title_that_no_file_can_hold_is_refused(tmp_path):
    with pytest.raises(ValueError, match="the title .* is not valid Unicode"):
        make_tree(0).show(tmp_path / "tree.html", title="\ud83d")
    assert not list(tmp_path.iterdir())


def test_the_same_table_gives_the_same_page():
    forest = make_forest(3, mixed=True)
    table = make_rows(1, forest.schema, 1000)
    assert forest.show(X=table).html == forest.show(X=table).html


class Elements(HTMLParser):
    """Elements of a document, with the text of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append([tag, dict(attrs), ""])

    def handle_data(self, data):
        if self.cdata_elem:  # inside a script or a style
            self.found[-1][2] += data


def test_the_policy_admits_this_script_and_this_style_only():
    page = show(make_tree(1))
    elements = Elements(page.html).found
    policy = next(a["content"] for _, a, _ in elements if a.get("http-equiv"))
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag, kind in (("script", "script-src"), ("style", "style-src")):
        text = next(text for name, a, text in elements if name == tag and not a.get("type"))
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_the_page_contains_no_urls():
    page = show(make_tree(1))
    attributes = [a for _, attributes, _ in Elements(page.html).found for a in attributes]
    assert not {"src", "href", "style", "action"} & set(attributes)
    addresses = set(re.findall(r"https?://[^\s\"']+", page.html))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a namespace, which is not fetched


NAMES = ["</script>", "<!--", "]]>", "\u2028", '"', "\\", "[[script]]", "é", "&amp;"]


def test_names_are_never_markup():
    tree = ObliqueTree.of(
        np.ones((1, len(NAMES))),
        thresholds=[0.0],
        values=np.eye(2),
        classes=["</script><script>", "<!--<script>"],
        feature_names=NAMES,
    )
    page = show(tree)
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', page.html, re.S)[
        1
    ]
    assert not set("<>&") & set(data)
    assert data.isascii()
    assert [tag for tag, _, _ in Elements(page.html).found].count("script") == 2
    content = json.loads(data)
    shown = [feature["name"].strip('"') for feature in content["features"]]
    assert shown[:3] == ["</script>", "<!--", "]]>"]
    assert content["outputs"] == ["</script><script>", "<!--<script>"]


def test_a_notebook_shows_the_page_in_a_sandboxed_frame():
    tree = make_tree(1)
    framed = tree._repr_html_()
    (tag, attributes, _), *others = Elements(framed).found
    assert (tag, others) == ("iframe", [])
    assert attributes["sandbox"] == "allow-scripts"
    assert attributes["srcdoc"] == tree.show().html
    assert html.unescape(framed).count("<!DOCTYPE html>") == 1


def test_a_notebook_does_not_show_a_page_that_is_too_large(monkeypatch):
    monkeypatch.setattr(document, "MAX_NOTEBOOK_BYTES", 1000)
    assert make_tree(1)._repr_html_() is None


def make_soft():
    return TreeEnsemble(
        np.ones((1, 1, 2)),
        np.zeros((1, 1)),
        np.array([[[0.0], [1.0]]]),
        gamma=1.0,
        schema=Schema.numeric(2),
        task="regression",
        link="identity",
    )


def test_a_soft_ensemble_is_refused_with_a_hint_to_harden():
    soft = make_soft()
    with pytest.raises(TypeError, match=r"pass the result of its harden\(\)"):
        soft.show()
    assert notebook_html(soft) is None
    content_in(soft.harden().show().html)


def test_rows_that_do_not_fit_are_refused():
    tree = make_tree(1, n_features=3)
    X = np.zeros((4, 3))
    with pytest.raises(ValueError, match="pass the rows as well"):
        tree.show(y=[1, 2])
    with pytest.raises(ValueError, match="max_rows must not be negative"):
        tree.show(X=X, max_rows=-1)
    with pytest.raises(TableError, match="X has 4 rows, y has 1"):
        tree.show(X=X, y=["class 0"])
    with pytest.raises(TableError, match="not a class of the model"):
        tree.show(X=X, y=["unheard of"] * 4)
    with pytest.raises(TableError, match="expecting 3 features"):
        tree.show(X=X[:, :2])
    with pytest.raises(OSError, match="nowhere"):
        tree.show("nowhere/tree.html")


def test_every_script_is_in_the_page_and_none_is_left_over():
    folder = Path(document.__file__).parent / "source"
    scripts = {path.relative_to(folder).as_posix() for path in folder.rglob("*.js")}
    assert scripts == set(document.SCRIPTS)


@pytest.mark.parametrize("k", [2, 6])
def test_equations_of_leaves_have_all_terms_of_all_outputs(k):
    tree = make_tree(1, n_splits=1, n_features=20, k=k, linear=True, sparsity=0)
    for lines in content_of(tree)["trees"][0]["equations"]:
        assert len(lines) == (1 if k == 2 else k)
        assert all(len(re.findall(r"\bf\d+", line)) == 20 for line in lines)


def test_a_page_is_small():
    rng = np.random.default_rng(0)
    m, p = 511, 50
    tree = ObliqueTree.of(
        rng.normal(size=(m, p)),
        thresholds=np.zeros(m),
        values=rng.dirichlet(np.ones(3), size=m + 1),
        classes=["a", "b", "c"],
    )
    page = show(tree, None, rng.normal(size=(5000, p)))
    assert len(page.html) < 700_000  # 1,023 nodes, 50 columns, 300 rows of 50 random numbers
    assert len(show(make_tree(1)).html) < 150_000
