"""The tree as a drawing: nothing overlaps, nothing is cut in silence."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from hardwood.errors import MissingExtraError
from hardwood.model import ObliqueTree
from hardwood.show import plot
from trees import make_tree

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def wide_tree(
    n_features: int = 60, k: int = 10, name: str = "pixel_{}_of_the_scanned_digit"
) -> ObliqueTree:
    rng = np.random.default_rng(0)
    return ObliqueTree.of(
        rng.normal(size=(15, n_features)),
        bias=rng.normal(size=15),
        values=rng.dirichlet(np.ones(k) / 5, size=16),
        classes=[f"number {i}" for i in range(k)],
        feature_names=[name.format(i) for i in range(n_features)],
    )


def regression_tree() -> ObliqueTree:
    names = [f"average_concentration_of_substance_{i:05d}" for i in range(9)]
    rng = np.random.default_rng(1)
    return ObliqueTree.of(
        rng.normal(size=(7, 9)), bias=np.zeros(7), values=rng.normal(size=8), feature_names=names
    )


def linear_tree() -> ObliqueTree:
    rng = np.random.default_rng(2)
    return regression_tree().replace(leaf_weights=rng.normal(size=(8, 1, 9)), link="exp")


CASES = {
    "small": lambda: make_tree(0, n_splits=3, mixed=True),
    "ten classes": wide_tree,
    "long names": regression_tree,
    "unbroken names": lambda: wide_tree(name="x" * 80 + "{}"),
    "many classes": lambda: wide_tree(k=30),
    "outputs": lambda: make_tree(2, task="regression", k=3, n_splits=8),
    "leaf": lambda: make_tree(0, n_splits=0),
    "leaf of one class": lambda: make_tree(0, n_splits=0, k=1),
    "one value": lambda: ObliqueTree.of([[1.0]], bias=[0], values=[2.0, 2.0]),
    "mathematics": lambda: ObliqueTree.of(
        [[1.0, 1.0]], bias=[0], values=np.eye(2), classes=["$\\frac", "$x$"], feature_names="$_"
    ),
    "linear": lambda: make_tree(0, n_splits=7, mixed=True, task="regression", k=1, linear=True),
    "linear outputs": lambda: make_tree(0, n_splits=3, task="regression", k=6, linear=True),
    "linear classes": lambda: make_tree(0, n_splits=3, n_features=9, linear=True),
    "linear and two classes": lambda: make_tree(0, n_splits=3, n_features=9, k=2, linear=True),
    "linear and long names": linear_tree,
    "labels": lambda: make_tree(0, n_splits=7, k=9, task="multilabel"),
    "one label": lambda: make_tree(0, n_splits=7, k=1, task="multilabel"),
    "linear labels": lambda: make_tree(0, n_splits=3, k=3, task="multilabel", linear=True),
    "huge values": lambda: ObliqueTree.of([[1.0]], bias=[0], values=[-1.7e308, 1.7e308]),
}


@pytest.mark.parametrize("dpi", [50, 100])
@pytest.mark.parametrize("case", CASES)
def test_no_texts_overlap(case: str, dpi: int) -> None:
    ax = CASES[case]().plot()
    ax.figure.set_dpi(dpi)
    _check_drawing(ax)


def test_small_axes_scale_the_plot() -> None:
    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    ax = wide_tree().plot(axes[1])
    assert ax is axes[1]
    _check_drawing(ax, tolerance=2)


def _check_drawing(ax: object, tolerance: float = 0.0) -> None:
    renderer = ax.figure.canvas.get_renderer()
    boxes = [patch.get_window_extent(renderer) for patch in ax.patches]
    words = [text.get_window_extent(renderer) for text in ax.texts]
    canvas = ax.figure.bbox
    for a, b in combinations(boxes, 2):
        assert not a.padded(-0.5).overlaps(b.padded(-0.5))
    for a, b in combinations(words, 2):
        assert not a.padded(-0.5 - tolerance).overlaps(b.padded(-0.5 - tolerance))
    for text in words:
        assert canvas.x0 <= text.x0 + tolerance
        assert text.x1 - tolerance <= canvas.x1
        assert canvas.y0 <= text.y0 + tolerance
        assert text.y1 - tolerance <= canvas.y1
        # Words are inside a box, or clear of all boxes (labels of edges and the caption).
        inside = [box for box in boxes if box.padded(1).overlaps(text)]
        assert len(inside) <= 1
        for box in inside:
            assert box.x0 - tolerance <= text.x0
            assert text.x1 <= box.x1 + tolerance


def words_of(ax: object) -> str:
    return "\n".join(text.get_text() for text in ax.texts)


def test_cut_levels_are_noted() -> None:
    tree = make_tree(0, n_splits=200)
    words = words_of(tree.plot(max_depth=2))
    n_shown = int((tree.node_depths[: tree.n_splits] < 2).sum())
    assert f"First 2 of {tree.depth} levels: {n_shown} of 200 splits shown" in words
    assert "... " in words
    assert "None of the 200 splits shown" in words_of(tree.plot(max_depth=0))
    assert "are drawn" not in words_of(make_tree(0, n_splits=3).plot(max_depth=None))
    with pytest.raises(ValueError, match="max_depth"):
        tree.plot(max_depth=-1)


def test_yes_leads_to_the_right_child() -> None:
    tree = ObliqueTree.of([[1.0]], thresholds=[2.0], values=np.eye(2), classes=["low", "high"])
    places = {text.get_text().split("\n")[0]: text.get_position() for text in tree.plot().texts}
    assert places["class low"][0] < places["no"][0] < places["yes"][0] < places["class high"][0]


def test_a_leaf_shows_its_prediction() -> None:
    words = words_of(make_tree(0, n_splits=0).plot())
    assert words.startswith("species = class ")


def test_linear_leaves_show_their_equations() -> None:
    tree = ObliqueTree.of(
        [[1.0, 0.0]],
        thresholds=[2.0],
        values=[1.0, 2.0],
        leaf_weights=[[3.0, -0.5], [0.0, 0.0]],
        counts=[9, 4, 5],
        target_names="price",
        feature_names=["rooms", "age"],
    )
    boxes = [text.get_text() for text in tree.plot().texts]
    assert "price = 1 + 3*rooms - 0.5*age\nn = 4" in boxes
    assert "price = 2\nn = 5" in boxes
    assert "price = 1 + 3*rooms - 0.5*age" in words_of(tree.plot(max_terms=1))


def test_leaves_of_labels_list_the_predicted_labels() -> None:
    names = ["spam", "work", "news"]
    tree = ObliqueTree.of(
        [[1.0]],
        bias=[0],
        values=[[0.75, 0.1, 0.5], [0.25, 0.4, 0.1]],
        task="multilabel",
        target_names=names,
    )
    boxes = [text.get_text() for text in tree.plot().texts]
    assert "labels:\nspam (p = 0.75)\nnews (p = 0.5)" in boxes
    assert "labels:\nnone\nnearest work (p = 0.4)" in boxes


def test_text_has_contrast_to_every_fill() -> None:
    """Contrast as in WCAG 2, which requires 4.5 for small text and 3 for large text."""
    for color in plot.PALETTE:
        red, green, blue = (
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color
        )
        luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        ink = 1.0 if plot._is_dark(color) else (0x22 / 255 + 0.055) ** 2.4 / 1.055**2.4
        contrast = (max(ink, luminance) + 0.05) / (min(ink, luminance) + 0.05)
        assert contrast >= 4, color


def test_edges_are_as_wide_as_their_share() -> None:
    tree = ObliqueTree.of([[1.0]], bias=[0], values=[1, 2], counts=[100, 10, 90])
    left, right = (line.get_linewidth() for line in tree.plot().lines)
    assert left < right


def test_leaves_of_one_class_share_a_hue_and_others_do_not() -> None:
    values = [[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.6, 0.4]]
    tree = ObliqueTree.of(np.ones((3, 1)), bias=[0, 1, 2], values=values, classes="ab")
    fills = [patch.get_facecolor() for patch in tree.plot().patches]
    leaves = sorted({fill for fill in fills if fills.count(fill) != 3})
    assert len(leaves) == 3  # a sure, a less sure, b


def test_without_matplotlib_the_error_has_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[plot\]'"):
        make_tree(0).plot()
