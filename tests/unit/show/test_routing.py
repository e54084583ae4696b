"""Drawings of where rows go."""

from __future__ import annotations

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

from hardwood.show.routing import (  # noqa: E402
    plot_active_share,
    plot_routing,
    plot_routing_by_class,
)

NODES = np.array([0, 1, 2, 4, 5, 6])  # node 3 is pruned
REACHED = np.array(
    [
        [1, 1, 0, 1, 0, 0],
        [1, 0, 1, 0, 1, 0],
        [1, 0, 1, 0, 1, 0],
        [1, 0, 1, 0, 1, 0],
    ]
)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def words(ax):
    return [text.get_text() for text in ax.texts]


def test_nodes_show_their_share_of_their_level():
    assert words(plot_routing(NODES, REACHED)) == ["100", "25", "75", "25", "75", "–"]
    # Any order of the nodes, and soft traversals: shares are of what a level holds.
    order = [3, 0, 5, 1, 4, 2]
    ax = plot_routing(NODES[order], 0.5 * REACHED[:, order])
    assert words(ax) == ["100", "25", "75", "25", "75", "–"]


def test_darker_is_more_active():
    ax = plot_routing(NODES, REACHED, activity=[1.0, 0.8, 0.6, 0.4, 0.2, 0.0])
    light = [sum(patch.get_facecolor()[:3]) for patch in ax.patches]
    assert (np.diff(light) > 0).all()


def pruned_nodes(seed, depth=5):
    """Heap numbers of a tree that was pruned at some nodes."""
    rng = np.random.default_rng(seed)
    kept = [0]
    for t in range(1, 2 ** (depth + 1) - 1):
        if (t - 1) // 2 in kept and rng.random() > 0.25:
            kept.append(t)
    return np.array(kept)


@pytest.mark.parametrize("nodes", [np.arange(63), *(pruned_nodes(seed) for seed in range(4))])
def test_boxes_and_texts_stay_inside_and_do_not_overlap(nodes):
    rng = np.random.default_rng(0)
    ax = plot_routing(nodes, rng.random((10, len(nodes))), title="a $ title")
    figure = ax.figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    boxes = [patch.get_window_extent(renderer) for patch in ax.patches]
    for box, text in zip(boxes, ax.texts, strict=True):
        inside = text.get_window_extent(renderer)
        assert box.x0 - 1 <= inside.x0
        assert inside.x1 <= box.x1 + 1
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
    assert ax.get_title() == "a $ title"


def test_left_children_are_left_and_right_children_right():
    nodes = pruned_nodes(1)
    ax = plot_routing(nodes, np.ones((1, len(nodes))))
    x = {t: text.get_position()[0] for t, text in zip(nodes.tolist(), ax.texts, strict=True)}
    for t in nodes[1:].tolist():
        assert (x[t] < x[(t - 1) // 2]) == (t % 2 == 1)


def test_max_depth_limits_the_levels_drawn():
    assert len(plot_routing(NODES, REACHED, max_depth=1).texts) == 3
    assert words(plot_routing(NODES, REACHED, max_depth=0)) == ["100"]


def test_one_tree_per_class():
    figure = plot_routing_by_class(NODES, REACHED, ["b", "a", "a", "a"])
    drawn = [ax for ax in figure.axes if ax.texts]
    assert [ax.get_title() for ax in drawn] == ["a (3 rows)", "b (1 row)"]
    assert words(drawn[0]) == ["100", "–", "100", "–", "100", "–"]
    assert words(drawn[1]) == ["100", "100", "–", "100", "–", "–"]
    named = plot_routing_by_class(NODES, REACHED, [0, 1, 1, 1], names=["other", "window"])
    assert named.axes[1].get_title() == "window (3 rows)"


def test_the_share_of_active_nodes_is_a_line_per_call():
    ax = plot_active_share([1.0, 0.5, 0.25], label="λ = 1", kept=1)
    plot_active_share([1.0, 0.75, 0.75], label="λ = 10", ax=ax)
    first, dot, second = ax.lines
    assert first.get_ydata().tolist() == [100, 50, 25]
    assert dot.get_xydata().tolist() == [[2, 50]]
    assert second.get_ydata().tolist() == [100, 75, 75]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["λ = 1", "λ = 10"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0, 1.0], REACHED[:, :2]), "heap numbers"),
        ((NODES, REACHED[:, :2]), "a column per node"),
        (([0, 3], REACHED[:, :2]), "the parent of each node"),
        (([1, 2], REACHED[:, :2]), "including 0"),
        (([0, 0], REACHED[:, :2]), "distinct"),
    ],
)
def test_invalid_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        plot_routing(*arguments)


def test_other_wrong_arguments():
    with pytest.raises(ValueError, match="activity must have one number per node"):
        plot_routing(NODES, REACHED, activity=[1.0])
    with pytest.raises(ValueError, match="max_depth"):
        plot_routing(NODES, REACHED, max_depth=-1)
    with pytest.raises(ValueError, match="one class per row"):
        plot_routing_by_class(NODES, REACHED, ["a"])
    with pytest.raises(ValueError, match="2 classes"):
        plot_routing_by_class(NODES, REACHED, [0, 1, 1, 1], names=["one"])
    with pytest.raises(ValueError, match="one share per epoch"):
        plot_active_share([])
