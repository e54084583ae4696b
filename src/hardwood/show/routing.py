"""Plots of latent trees: how rows are distributed over the nodes, and which nodes remain.

Nodes have heap numbers: the root is 0, the children of t are 2t + 1 (left) and 2t + 2 (right). Only
the given nodes are drawn, so that a pruned tree looks pruned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.show.plot import EDGE, INK, PALETTE, pyplot
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SLOT, _LEVEL = 0.62, 0.72  # inches from leaf to leaf, and from level to level
_HALF = np.array([0.4, 0.21])  # size of a node's box, in slots and levels
_LIGHTEST = 0.08  # color strength at activity 0
_MAX_COLUMNS = 3  # small trees side by side


def plot_routing(
    nodes: Any,
    reached: Any,
    *,
    activity: Any = None,
    title: str = "",
    max_depth: int | None = None,
    color: Any = PALETTE[5],
    ax: Axes | None = None,
) -> Axes:
    """Plot how rows are distributed over the nodes of a tree.

    The number in a node is the percentage of the rows of its level that pass it, or a dash if none
    do. A darker node has a higher activity.

    Parameters
    ----------
    nodes
        (m,) heap numbers of the tree's nodes, including the parent of each.
    reached
        (n, m) share of each row that passes each node, in [0, 1] (traversals z, or 0 and 1).
    activity
        (m,) in [0, 1]. Default: all nodes are fully active.
    title
        Title of the plot.
    max_depth
        Number of levels below the root to draw; None for all.
    color
        Color of nodes with activity 1.
    ax
        Axes to draw in. Default: a new figure of the right size.

    Returns
    -------
    ax
        The axes of the plot.
    """
    plt = pyplot()
    nodes, rows, activity = _checked(nodes, reached, activity)
    drawn = _drawn(nodes, max_depth)
    x = _places(nodes[drawn])
    level = _levels(nodes)
    if ax is None:
        _, ax = plt.subplots(figsize=_size(x, level[drawn], title))
    shares = _shares_of_levels(rows.sum(axis=0), level)
    _draw(ax, nodes[drawn], x, shares[drawn], activity[drawn], color)
    _title(ax, title)
    return ax


def plot_routing_by_class(
    nodes: Any,
    reached: Any,
    y: Any,
    *,
    activity: Any = None,
    names: Sequence[object] | None = None,
    max_depth: int | None = 3,
) -> Figure:
    """Plot one small tree per class: how the rows of that class are distributed over the nodes.

    Parameters
    ----------
    nodes, reached, activity, max_depth
        Same as in `plot_routing`.
    y
        (n,) class of each row.
    names
        Names of the classes, in sorted order. Default: the values in y.

    Returns
    -------
    figure
        A figure with one set of axes per class, in sorted order.
    """
    plt = pyplot()
    nodes, rows, activity = _checked(nodes, reached, activity)
    classes, index = np.unique(np.asarray(y), return_inverse=True)
    if index.shape != (len(rows),):
        raise ValueError(f"y must hold one class per row, ({len(rows)},); got {np.shape(y)}.")
    if names is not None and len(names) != len(classes):
        raise ValueError(
            f"names must name each class of y, got {plural(len(names), 'name')} for "
            f"{plural(len(classes), 'class', 'classes')}."
        )
    drawn = _drawn(nodes, max_depth)
    x, level = _places(nodes[drawn]), _levels(nodes)
    n_columns = min(len(classes), _MAX_COLUMNS)
    n_rows = math.ceil(len(classes) / n_columns)
    width, height = _size(x, level[drawn], "title")
    figure, grid = plt.subplots(
        n_rows, n_columns, figsize=(width * n_columns, height * n_rows), squeeze=False
    )
    for k, ax in enumerate(grid.ravel()):
        if k >= len(classes):
            ax.set_axis_off()
            continue
        own = rows[index == k]
        shares = _shares_of_levels(own.sum(axis=0), level)
        _draw(ax, nodes[drawn], x, shares[drawn], activity[drawn], PALETTE[k % len(PALETTE)])
        name = classes[k] if names is None else names[k]
        _title(ax, f"{name} ({plural(len(own), 'row')})")
    return figure


def plot_active_share(
    shares: Any, *, label: str = "", kept: int | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the share of active nodes after every epoch; call again to add a line to the axes.

    Parameters
    ----------
    shares
        (epochs,) in [0, 1].
    label
        Label of the line, for a legend.
    kept
        The epoch whose tree was kept, from 0; marked with a dot.
    ax
        Axes to draw in.
    """
    plt = pyplot()
    percent = 100 * np.asarray(shares, dtype=np.float64)
    if percent.ndim != 1 or not len(percent):
        raise ValueError(f"shares must hold one share per epoch, got shape {percent.shape}.")
    if ax is None:
        _, ax = plt.subplots(figsize=(5.0, 3.2), layout="constrained")
    (line,) = ax.plot(np.arange(1, len(percent) + 1), percent, label=label or None)
    if kept is not None:
        ax.plot([kept + 1], [percent[kept]], "o", color=line.get_color())
    ax.set_xlabel("epoch")
    ax.set_ylabel("active nodes (%)")
    ax.set_ylim(0, 105)
    if label:
        for text in ax.legend(frameon=False, fontsize="small").get_texts():
            text.set_parse_math(False)
    return ax


def _checked(nodes: Any, reached: Any, activity: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return nodes in heap order with their columns, or raise an error that says what is wrong."""
    nodes = np.asarray(nodes)
    rows = np.asarray(reached, dtype=np.float64)
    if nodes.ndim != 1 or nodes.dtype.kind not in "iu" or not len(nodes):
        raise ValueError(f"nodes must be heap numbers, (m,); got {nodes.shape} of {nodes.dtype}.")
    if rows.ndim != 2 or rows.shape[1] != len(nodes):
        raise ValueError(
            f"reached must have shape (n, {len(nodes)}), a column per node; got {rows.shape}."
        )
    known = set(nodes.tolist())
    orphans = [t for t in known if t < 0 or (t > 0 and (t - 1) // 2 not in known)]
    if orphans or 0 not in known or len(known) != len(nodes):
        raise ValueError(
            "nodes must be distinct heap numbers, including 0 and the parent of each node."
        )
    values = np.ones(len(nodes)) if activity is None else np.asarray(activity, dtype=np.float64)
    if values.shape != nodes.shape:
        raise ValueError(
            f"activity must have one number per node, {nodes.shape}; got {values.shape}."
        )
    order = np.argsort(nodes)
    return nodes[order], rows[:, order], values[order]


def _levels(nodes: np.ndarray) -> np.ndarray:
    """Return the level of each heap number; 0 for the root."""
    return np.frexp(nodes + 1.0)[1] - 1


def _drawn(nodes: np.ndarray, max_depth: int | None) -> np.ndarray:
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth must not be negative, or None for all; got {max_depth}")
    levels = _levels(nodes)
    return levels <= (levels.max() if max_depth is None else max_depth)


def _shares_of_levels(mass: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Return the share of each node in the mass of its level; 0 where that is 0."""
    total = np.bincount(level, weights=mass)[level]
    return np.divide(mass, total, out=np.zeros_like(mass), where=total > 0)


def _places(nodes: np.ndarray) -> dict[int, float]:
    """Give leaves consecutive slots from left to right, and center parents above their children.

    A pruned child whose sibling remains keeps its slot. This shows the side of the sibling, and
    keeps the nodes of a level at least one slot apart.
    """
    place = dict.fromkeys(nodes.tolist(), 0.0)
    n_slots = 0
    todo = [(0, False)]
    while todo:
        t, is_done = todo.pop()
        children = (2 * t + 1, 2 * t + 2)
        is_leaf = not any(child in place for child in children)
        if is_leaf:
            place[t] = float(n_slots)
            n_slots += 1
        elif not is_done:
            place |= dict.fromkeys(children, 0.0)
            todo += [(t, True), (children[1], False), (children[0], False)]
        else:
            place[t] = (place[children[0]] + place[children[1]]) / 2
    return {t: place[t] for t in nodes.tolist()}


def _size(x: dict[int, float], level: np.ndarray, title: str) -> tuple[float, float]:
    n_slots = max(x.values()) - min(x.values()) + 1
    return max(n_slots * _SLOT, 2.4), (int(level.max()) + 1) * _LEVEL + (0.35 if title else 0.1)


def _draw(
    ax: Axes,
    nodes: np.ndarray,
    x: dict[int, float],
    shares: np.ndarray,
    activity: np.ndarray,
    color: Any,
) -> None:
    from matplotlib.patches import FancyBboxPatch

    level = _levels(nodes)
    ax.set_xlim(min(x.values()) - 0.6, max(x.values()) + 0.6)
    ax.set_ylim(-int(level.max()) - 0.5, 0.5)
    ax.set_axis_off()
    size = _font_size(ax)
    for t, depth, share, a in zip(nodes.tolist(), level.tolist(), shares, activity, strict=True):
        at = (x[t], -depth)
        if t > 0:
            ax.plot([x[(t - 1) // 2], at[0]], [1 - depth, at[1]], color=EDGE, lw=0.8, zorder=1)
        strength = _LIGHTEST + (1 - _LIGHTEST) * float(np.clip(a, 0, 1))
        fill = tuple(1 - strength * (1 - part) for part in color)
        ax.add_patch(
            FancyBboxPatch(
                (at[0] - _HALF[0], at[1] - _HALF[1]),
                2 * _HALF[0],
                2 * _HALF[1],
                boxstyle="round,pad=0,rounding_size=0.12",
                facecolor=fill,
                edgecolor=EDGE,
                linewidth=0.8,
                zorder=2,
            )
        )
        is_dark = 0.3 * fill[0] + 0.59 * fill[1] + 0.11 * fill[2] < 0.55
        word = f"{100 * share:.0f}" if share > 0 else "–"
        style: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "color": "white" if is_dark else INK,
        }
        ax.text(*at, word, fontsize=size, zorder=3, **style)


def _font_size(ax: Axes) -> float:
    """Return the largest font size at which three digits fit into a box."""
    box = ax.get_window_extent()
    slots = ax.get_xlim()[1] - ax.get_xlim()[0]
    points = 2 * _HALF[0] * box.width / slots * 72 / ax.figure.dpi
    return float(min(max(points / 2.2, 3.0), 10.0))


def _title(ax: Axes, text: str) -> None:
    if text:
        ax.set_title(text, fontsize="medium", parse_math=False)
