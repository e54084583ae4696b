"""Plot of a tree with matplotlib.

Boxes are measured first, then placed without overlap (as close as their neighbors allow, as in
Reingold and Tilford, "Tidier drawings of trees", 1981), all in points. The figure gets the size of
the plot, or the plot is scaled into the given axes.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood.errors import MissingExtraError
from hardwood.model import ObliqueTree
from hardwood.show.text import Nodes, Tree, count_text
from hardwood.text.condition import Phrase, phrase
from hardwood.text.formula import formula
from hardwood.text.leaf import (
    decision_words,
    leaf_class,
    leaf_equations,
    leaf_labels,
    leaf_values,
    outputs_left_out,
    says_equations,
)
from hardwood.text.numbers import Digits, plural
from hardwood.text.terms import MAX_TERMS, check_options, left_out_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hardwood.model.views import Branch, Split

MAX_LINE = 30  # characters in a line of a box; longer ones are wrapped
PADDING = 5.0  # all lengths in points
GAP = 12.0
LEVEL_GAP = 40.0
MARGIN = 8.0
MAX_INCHES = 200.0  # matplotlib's canvas ends at 2**16 pixels

INK = "#222222"
EDGE = "#8a8a8a"
SPLIT_FILL = "#f6f6f3"
CUT_FILL = "#ffffff"
PLAIN_FILL = "#e8eef4"  # leaves that a single shade cannot represent
# Okabe and Ito's colors, which color-blind readers can tell apart, then two more.
PALETTE = (
    (0.90, 0.62, 0.00),
    (0.34, 0.71, 0.91),
    (0.00, 0.62, 0.45),
    (0.80, 0.47, 0.65),
    (0.94, 0.89, 0.26),
    (0.00, 0.45, 0.70),
    (0.84, 0.37, 0.00),
    (0.60, 0.60, 0.60),
    (0.55, 0.34, 0.76),
    (0.55, 0.76, 0.29),
)


@dataclass
class Box:
    """One node of the plot; ``x`` is its middle, relative to its parent until it is placed."""

    lines: list[str]
    fill: Any
    count: float | None
    depth: int
    is_cut: bool = False
    is_centered: bool = True  # whether its lines are centered; formulas are aligned to the left
    edge: str = ""  # label of the line from its parent
    children: list[Box] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0
    top: float = 0.0


def plot_tree(
    tree: Tree,
    ax: Axes | None = None,
    *,
    max_depth: int | None = 4,
    max_terms: int | None = MAX_TERMS,
    digits: Digits = "auto",
    fontsize: float = 9.0,
) -> Axes:
    """Draw a tree; arguments as in :meth:`hardwood.ObliqueTree.plot`.

    Returns
    -------
    ax
        The axes of the plot. If levels were cut, a line below the tree says how many.
    """
    plt = pyplot()
    check_options(max_terms, digits)
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth must not be negative, or None for all; got {max_depth}")
    root = _root_box(tree, max_depth, max_terms, digits)
    boxes = list(_walk(root))
    caption = _caption(tree, boxes)
    width, height, row_bottoms = _place(boxes, fontsize, caption)
    if ax is None:
        inches = (min(width / 72, MAX_INCHES), min(height / 72, MAX_INCHES))
        figure = plt.figure(figsize=inches)
        ax = figure.add_axes((0, 0, 1, 1))
    scale = _fit(ax, width, height)
    for box in boxes:
        _draw_edges(ax, box, row_bottoms, root.count, fontsize, scale)
    for box in boxes:
        _draw_box(ax, box, fontsize, scale)
    if caption:
        _text(ax, width / 2, MARGIN, caption, fontsize * scale, va="bottom")
    return ax


def pyplot() -> Any:
    """Return matplotlib's pyplot, or raise an error with the install command."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError("matplotlib", extra="plot", purpose="drawing a tree") from error
    return plt


# Content of the boxes


def _root_box(tree: Tree, max_depth: int | None, max_terms: int | None, digits: Digits) -> Box:
    """Return the box of the root, with those of all other nodes below it."""
    nodes, fills = Nodes(tree), leaf_fills(tree)
    above = Box([], None, None, 0)
    todo = [(nodes.root, 0, "", above)]
    while todo:
        node, depth, edge, parent = todo.pop()
        count, leaf = nodes.count(node), nodes.leaf(node)
        box = Box([], SPLIT_FILL, count, depth, is_centered=False, edge=edge)
        if leaf is not None:
            box.lines, box.fill = leaf_lines(tree, leaf, digits), fills[leaf]
            box.is_centered = not says_equations(tree)
        elif max_depth is not None and depth >= max_depth:
            n_splits, n_leaves = nodes.sizes_below(node)
            box.lines, box.fill = [f"... {n_splits},", n_leaves], CUT_FILL
            box.is_cut = box.is_centered = True
        else:
            branches, children = nodes.branches(node), nodes.children(node)
            box.lines = _split_lines(branches, max_terms, digits)
            words = {1: ["always"], 2: ["no", "yes"]}.get(len(branches))
            edges = words or [str(i) for i in range(1, len(branches) + 1)]
            below = [(*branch, box) for branch in zip(children, edges, strict=True)]
            # A stack returns the last element first.
            todo += [(child, depth + 1, word, box) for child, word, box in reversed(below)]
        if count is not None and (leaf is not None or box.is_cut):
            box.lines.append(f"n = {count_text(count)}")
        parent.children.append(box)
    return above.children[0]


def _split_lines(
    branches: Sequence[Split | Branch], max_terms: int | None, digits: Digits
) -> list[str]:
    """Write the condition of two branches, or the numbered scores of more, as lines of a box."""
    if len(branches) == 1:
        return ["always"]
    if len(branches) == 2:
        return condition_lines(phrase(branches[1], max_terms=max_terms, digits=digits))
    lines = ["largest score of"]
    for i, branch in enumerate(branches, start=1):
        written = formula(
            branch.tree.schema, branch.terms, branch.bias, max_terms=max_terms, digits=digits
        )
        lines += filled([f"{i}:", *written.parts()])
    return lines


def condition_lines(words: Phrase) -> list[str]:
    """Write one term per line, with aligned signs."""
    texts = list(words.terms)
    if words.relation and len(texts) == 1 and not words.n_left_out:
        return _wrapped(f"{texts[0]} {words.relation} {words.threshold}")
    lines = [line for text in texts for line in _wrapped(text)]
    if words.n_left_out:
        lines += _wrapped(left_out_text(words.n_left_out))
    if words.relation:
        lines.append(f"{words.relation} {words.threshold}")
    return lines


def leaf_lines(tree: Tree, leaf: int, digits: Digits) -> list[str]:
    """Write the prediction of a leaf."""
    if isinstance(tree, ObliqueTree) and says_equations(tree):
        return _equation_lines(tree, leaf, digits)
    if tree.classes is not None:
        prediction, probability = leaf_class(tree, leaf, digits=digits)
        return [*_wrapped(prediction, 24), probability]
    if tree.task == "multilabel":
        texts = leaf_labels(tree, leaf, digits=digits)
        return ["labels:", *(line for text in texts for line in _wrapped(text))]
    texts = leaf_values(tree, leaf, digits=digits)
    return [line for text in texts for line in _wrapped(text, 24)]


def _equation_lines(tree: ObliqueTree, leaf: int, digits: Digits) -> list[str]:
    lines: list[str] = []
    for equation in leaf_equations(tree, leaf, digits=digits):
        lines += filled(equation.parts())
    left_out = outputs_left_out(tree)
    return [*lines, left_out] if left_out else lines


def filled(parts: list[str]) -> list[str]:
    """Fill lines with parts, breaking between parts; later lines are indented."""
    indent = "    "
    line, lines = parts[0], []
    for part in parts[1:]:
        if len(line.strip()) + 1 + len(part) > MAX_LINE:
            lines += _wrapped(line, MAX_LINE + len(indent))
            line = indent + part
        else:
            line += f" {part}"
    return [*lines, *_wrapped(line, MAX_LINE + len(indent))]


def _wrapped(text: str, width: int = MAX_LINE) -> list[str]:
    """Break text after blanks, else after punctuation; later lines are indented."""
    lines: list[str] = []
    while len(text) > width:
        places = range(width // 2, width)
        blanks = [i + 1 for i in places if text[i] == " "]  # a date is not broken at its hyphens
        marks = [i + 1 for i in places if not text[i].isalnum()]
        at = max(blanks or marks or [width])
        lines.append(text[:at].rstrip())
        text = "    " + text[at:].lstrip()
    return [*lines, text]


def _caption(tree: Tree, boxes: list[Box]) -> str:
    decision = decision_words(tree)
    sentences = [f"Predicts {decision}"] if decision else []
    if any(box.is_cut for box in boxes):
        n_splits = sum(bool(box.children) for box in boxes)
        drawn = max(box.depth for box in boxes)
        sentences.append(
            f"First {drawn} of {plural(tree.depth, 'level')}: {n_splits} of "
            f"{plural(tree.n_splits, 'split')} shown"
            if drawn
            else f"None of the {plural(tree.n_splits, 'split')} shown"
        )
    return ". ".join(sentences)


def leaf_fills(tree: Tree) -> list[Any]:
    """Return the colors of leaves: a hue per class, stronger if more certain, or a scale."""
    if tree.n_outputs > 1 and tree.classes is None or says_equations(tree):
        return [PLAIN_FILL] * tree.n_leaves
    if tree.classes is not None:
        k = len(tree.classes)
        best = tree.class_positions(tree.values)
        sure = np.take_along_axis(tree.values, best[:, None], axis=1)[:, 0]
        strength = (sure - 1 / k) / (1 - 1 / k) if k > 1 else np.ones_like(sure)
        return [
            _tint(_hue(int(c), k), 0.25 + 0.75 * float(s))
            for c, s in zip(best, strength, strict=True)
        ]
    values = tree.values[:, 0]
    low, high = float(values.min()), float(values.max())
    if low == high:
        return [_tint(PALETTE[5], 0.3)] * tree.n_leaves
    # Halved first: the range of two finite numbers may be infinite.
    share = (values / 2 - low / 2) / (high / 2 - low / 2)
    return [_tint(PALETTE[5], 0.1 + 0.65 * float(s)) for s in share]


def _hue(index: int, n: int) -> tuple[float, float, float]:
    return PALETTE[index] if n <= len(PALETTE) else colorsys.hsv_to_rgb(index / n, 0.65, 0.85)


def _tint(color: tuple[float, float, float], strength: float) -> tuple[float, ...]:
    """Mix a color with white."""
    return tuple(1 - strength * (1 - part) for part in color)


# Placement of the boxes


def _walk(root: Box) -> Iterator[Box]:
    todo = [root]
    while todo:
        box = todo.pop()
        yield box
        todo.extend(reversed(box.children))


def _place(boxes: list[Box], fontsize: float, caption: str) -> tuple[float, float, list[float]]:
    """Place every box, y upward; return width, height and the bottom of each level."""
    for box in boxes:
        box.width, box.height = _measure(box.lines, fontsize)
    left, right = _shift_apart(boxes)
    for box in boxes:  # parents come first, so their x is final
        for child in box.children:
            child.x += box.x
    offset = MARGIN - left
    caption_width, caption_height = _measure([caption], fontsize) if caption else (0.0, 0.0)
    width = right - left + 2 * MARGIN
    if caption_width > width:
        offset += (caption_width - width) / 2
        width = caption_width
    for box in boxes:
        box.x += offset
    levels = [0.0] * (max(box.depth for box in boxes) + 1)
    for box in boxes:
        levels[box.depth] = max(levels[box.depth], box.height)
    height = sum(levels) + LEVEL_GAP * (len(levels) - 1) + 2 * MARGIN + caption_height
    tops = [height - MARGIN - sum(levels[:d]) - LEVEL_GAP * d for d in range(len(levels))]
    for box in boxes:
        box.top = tops[box.depth]
    return width, height, [top - level for top, level in zip(tops, levels, strict=True)]


def _shift_apart(boxes: list[Box]) -> tuple[float, float]:
    """Set ``x`` of each box relative to its parent; return the extent, relative to the root.

    A subtree is represented by its outline: how far it reaches left and right at each level below
    its root. Subtrees are moved apart until the gap between them is kept everywhere, and the parent
    is centered above its first and last child.
    """
    outlines: dict[int, list[tuple[float, float]]] = {}
    for box in reversed(boxes):  # children before parents
        own = (-box.width / 2, box.width / 2)
        if not box.children:
            outlines[id(box)] = [own]
            continue
        outline, *others = (outlines.pop(id(child)) for child in box.children)
        for child, right in zip(box.children[1:], others, strict=True):
            child.x = max(a[1] - b[0] + GAP for a, b in zip(outline, right, strict=False))
            outline = _joined(outline, right, child.x)
        middle = box.children[-1].x / 2
        for child in box.children:
            child.x -= middle
        outlines[id(box)] = [own, *((a - middle, b - middle) for a, b in outline)]
    (outline,) = outlines.values()
    return min(a for a, _ in outline), max(b for _, b in outline)


def _joined(
    left: list[tuple[float, float]], right: list[tuple[float, float]], apart: float
) -> list[tuple[float, float]]:
    """Return the outline of two subtrees side by side, the right one moved by ``apart``."""
    outline = []
    for level in range(max(len(left), len(right))):
        reaches: list[float] = []
        if level < len(left):
            reaches += left[level]
        if level < len(right):
            reaches += [side + apart for side in right[level]]
        outline.append((min(reaches), max(reaches)))
    return outline


def _measure(lines: list[str], fontsize: float) -> tuple[float, float]:
    """Return width and height of a box for these lines, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=fontsize)
    widths = [
        text_to_path.get_text_width_height_descent(line or " ", font, ismath=False)[0]
        for line in lines
    ]
    # At a low resolution, hinted letters are up to a tenth wider than their outlines.
    return 1.1 * max(widths) + 2 * PADDING, 1.25 * fontsize * len(lines) + 2 * PADDING


# Drawing


def _fit(ax: Axes, width: float, height: float) -> float:
    """Set data coordinates to points of the layout; return the scale of the plot."""
    box = ax.get_window_extent()
    points = 72 / ax.figure.dpi
    scale = min(box.width * points / width, box.height * points / height, 1.0)
    # Center the plot in axes that are larger than it.
    extra_x = box.width * points / scale - width
    extra_y = box.height * points / scale - height
    ax.set_xlim(-extra_x / 2, width + extra_x / 2)
    ax.set_ylim(-extra_y / 2, height + extra_y / 2)
    ax.set_axis_off()
    return float(scale)


def _draw_box(ax: Axes, box: Box, fontsize: float, scale: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    is_leaf = not box.children
    ax.add_patch(
        FancyBboxPatch(
            (box.x - box.width / 2, box.top - box.height),
            box.width,
            box.height,
            boxstyle=f"round,pad=0,rounding_size={6 if is_leaf else 2}",
            facecolor=box.fill,
            edgecolor=EDGE,
            linewidth=0.8 * scale,
            linestyle="--" if box.is_cut else "-",
            zorder=2,
        )
    )
    x = box.x if box.is_centered else box.x - box.width / 2 + PADDING
    _text(
        ax,
        x,
        box.top - box.height / 2,
        "\n".join(box.lines),
        fontsize * scale,
        ha="center" if box.is_centered else "left",
        color="white" if _is_dark(box.fill) else INK,
    )


def _is_dark(fill: str | tuple[float, ...]) -> bool:
    """Whether white text has more contrast to a color than black text (WCAG 2)."""
    if isinstance(fill, str):  # the light color of splits and cut parts
        return False
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in fill]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05


def _draw_edges(
    ax: Axes,
    box: Box,
    row_bottoms: list[float],
    total: float | None,
    fontsize: float,
    scale: float,
) -> None:
    bottom = row_bottoms[box.depth]
    for child in box.children:
        # Straight down past taller boxes of the same level, then across to the child.
        ax.plot(
            [box.x, box.x, child.x],
            [box.top - box.height, bottom, child.top],
            color=EDGE,
            linewidth=_line_width(child.count, total) * scale,
            solid_joinstyle="round",
            solid_capstyle="butt",
            zorder=1,
        )
        _text(
            ax,
            0.45 * box.x + 0.55 * child.x,
            0.45 * bottom + 0.55 * child.top,
            child.edge,
            0.9 * fontsize * scale,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0 * scale},
            zorder=3,
        )


def _line_width(count: float | None, total: float | None) -> float:
    if count is None or not total:
        return 1.2
    return 0.8 + 5.2 * min(1.0, math.sqrt(count / total))


def _text(ax: Axes, x: float, y: float, words: str, size: float, **style: Any) -> None:
    options: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "color": INK,
        "zorder": 4,
        "linespacing": 1.2,
    }
    # A dollar sign in a name must not start a formula.
    ax.text(x, y, words, fontsize=size, parse_math=False, **(options | style))
