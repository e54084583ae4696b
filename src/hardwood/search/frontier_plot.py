"""The plot of a frontier: held-out loss against the number of leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hardwood.report.plot_style import GRAY, ORANGE, PURPLE, SKY, VERMILION, legend, name_axes
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hardwood.search.frontier import Frontier, MeasuredSize, TreeKind

FIGURE_SIZE = (7.0, 4.4)
CART = "CART (axis-aligned, constant leaves)"
# Kinds of trees besides those with linear leaves: their name, color and marks.
_OTHERS: tuple[tuple[TreeKind, str, str, dict[str, Any]], ...] = (
    ("constant", CART, ORANGE, {"linestyle": "--", "marker": "s"}),
    ("smoothed", "CART with smoothed leaves", ORANGE, {"linestyle": ":", "marker": "^"}),
    ("oblique", "oblique splits, constant leaves", PURPLE, {"linestyle": "", "marker": "D"}),
)
_TERMS = (1, 3)  # limits with a curve of their own, besides none and that of the chosen tree
_SHADES = (SKY, "#3D93C8", "#1F5F99", "#0B2F5C")  # from few terms to all
_MAGNITUDES = 4.0  # between the losses of one plot, from which its axis is logarithmic


def draw(frontier: Frontier, ax: Axes) -> None:
    """Draw into axes."""
    linear = [each for each in frontier.measured if each.kind == "linear"]
    limits = _term_limits(frontier, linear)
    for limit, color in zip(limits, _SHADES[len(_SHADES) - len(limits) :], strict=True):
        within = [each for each in linear if limit is None or each.n_terms <= limit]
        _curve(ax, within, f"linear leaves, {_limit_words(limit)}", color)
    for kind, words, color, style in _OTHERS:
        own = [each for each in frontier.measured if each.kind == kind]
        if own:
            _curve(ax, own, words, color, **style)
    _band(ax, frontier)
    _mark_chosen(ax, frontier)
    _scale(ax, frontier)
    name_axes(ax, frontier.title, "leaves", f"{frontier.metric} on held-out rows")
    legend(ax)


def _term_limits(frontier: Frontier, linear: Sequence[MeasuredSize]) -> list[int | None]:
    """Return the numbers of terms that have a curve, in order; None for any."""
    used = [each.n_terms for each in linear]
    wanted = {*_TERMS, frontier.chosen.n_terms}
    limits = sorted(limit for limit in wanted if linear and min(used) <= limit < max(used))
    return [*limits, None] if linear else []


def _limit_words(limit: int | None) -> str:
    return "any number of terms" if limit is None else f"{plural(limit, 'term')} at most"


def _best_by_leaves(measured: Sequence[MeasuredSize]) -> list[MeasuredSize]:
    best: dict[int, MeasuredSize] = {}
    for each in sorted(measured, key=lambda each: each.loss):
        best.setdefault(each.n_leaves, each)
    return [best[n_leaves] for n_leaves in sorted(best)]


def _curve(
    ax: Axes, measured: Sequence[MeasuredSize], words: str, color: str, **style: Any
) -> None:
    """Draw the smallest loss for each number of leaves."""
    best = _best_by_leaves(measured)
    look: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1.5} | style
    ax.plot([b.n_leaves for b in best], [b.loss for b in best], color=color, label=words, **look)


def _band(ax: Axes, frontier: Frontier) -> None:
    """Shade one standard error around the curve with the best tree, and draw the best's line.

    It is the standard error of the difference from the best, so that it has no width there.
    """
    best = frontier.best
    around = _best_by_leaves([each for each in frontier.measured if each.kind == best.kind])
    ax.axhline(best.loss, color=GRAY, linewidth=1, linestyle=":", label="the smallest loss")
    ax.fill_between(
        [each.n_leaves for each in around],
        [each.loss - each.error for each in around],
        [each.loss + each.error for each in around],
        color=_SHADES[-1],
        alpha=0.15,
        linewidth=0,
        label="one standard error",
    )


def _mark_chosen(ax: Axes, frontier: Frontier) -> None:
    point = frontier.chosen
    ax.errorbar(
        point.n_leaves,
        point.loss,
        yerr=point.error,
        color=VERMILION,
        marker="*",
        markersize=13,
        capsize=4,
        zorder=5,
        label=f"chosen: {point.words}",
    )


def _scale(ax: Axes, frontier: Frontier) -> None:
    """Double the leaves from tick to tick; losses get a logarithmic axis if they differ much."""
    from matplotlib.ticker import LogLocator

    most = max(each.n_leaves for each in frontier.measured)
    ax.set_xscale("log", base=2)
    ax.set_xlim(0.87, 1.15 * max(most, 2))
    ax.xaxis.set_major_formatter("{x:g}")
    losses = [each.loss for each in frontier.measured]
    if max(losses) > _MAGNITUDES * min(losses) > 0:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
