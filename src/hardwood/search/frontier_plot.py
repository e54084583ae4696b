"""The plot of a frontier: held-out loss against the number of leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hardwood.report.plot_style import BLUE, GRAY, ORANGE, SKY, VERMILION, legend, name_axes
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hardwood.search.frontier import Frontier, MeasuredSize

FIGURE_SIZE = (7.0, 4.4)
CART = "CART (axis-aligned, constant leaves)"
_TERMS = (1, 3)  # limits with a curve of their own, besides none and that of the chosen tree
_SHADES = (SKY, "#3D93C8", "#1F5F99", "#0B2F5C")  # from few terms to all
_MAGNITUDES = 4.0  # between the losses of one plot, from which its axis is logarithmic


def draw(frontier: Frontier, ax: Axes) -> None:
    """Draw into axes."""
    limits = _term_limits(frontier)
    for limit, color in zip(limits, _SHADES[-len(limits) :], strict=True):
        _curve(ax, _best_within(frontier, limit), _limit_words(limit), color)
    _band(ax, _best_within(frontier, None))
    cart = [each for each in frontier.measured if each.kind == "constant"]
    if cart:
        style = {"linestyle": "--", "marker": "s", "markersize": 3.5}
        _curve(ax, _best_by_leaves(cart), CART, ORANGE, **style)
    for each in frontier.measured:
        if each.kind == "oblique":
            words = f"oblique splits, {each.words}"
            ax.plot(each.n_leaves, each.loss, "D", color=BLUE, markersize=6, label=words)
    _mark_chosen(ax, frontier)
    _scale(ax, frontier)
    name_axes(ax, frontier.title, "leaves", f"{frontier.metric} on held-out rows")
    legend(ax)


def _term_limits(frontier: Frontier) -> list[int | None]:
    """Return the numbers of terms that have a curve, in order; None for any."""
    used = {each.n_terms for each in frontier.measured if each.kind != "oblique"}
    wanted = {*_TERMS, frontier.chosen.n_terms}
    return [*sorted(limit for limit in wanted if min(used) <= limit < max(used)), None]


def _limit_words(limit: int | None) -> str:
    return "any number of terms" if limit is None else f"at most {plural(limit, 'term')}"


def _best_within(frontier: Frontier, limit: int | None) -> list[MeasuredSize]:
    """Return the best tree of each number of leaves that has no more terms."""
    return _best_by_leaves(
        [
            each
            for each in frontier.measured
            if each.kind != "oblique" and (limit is None or each.n_terms <= limit)
        ]
    )


def _best_by_leaves(measured: Sequence[MeasuredSize]) -> list[MeasuredSize]:
    best: dict[int, MeasuredSize] = {}
    for each in sorted(measured, key=lambda each: each.loss):
        best.setdefault(each.n_leaves, each)
    return [best[n_leaves] for n_leaves in sorted(best)]


def _curve(
    ax: Axes, measured: Sequence[MeasuredSize], words: str, color: str, **style: Any
) -> None:
    x = [each.n_leaves for each in measured]
    y = [each.loss for each in measured]
    look: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1.5} | style
    ax.plot(x, y, color=color, label=words, **look)


def _band(ax: Axes, measured: Sequence[MeasuredSize]) -> None:
    """Shade one standard error of the difference from the best, and draw the line of the best."""
    best = min(each.loss for each in measured)
    ax.axhline(best, color=GRAY, linewidth=1, linestyle=":")
    ax.fill_between(
        [each.n_leaves for each in measured],
        [each.loss - each.error for each in measured],
        [each.loss + each.error for each in measured],
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
    most = max(each.n_leaves for each in frontier.measured)
    ax.set_xscale("log", base=2)
    ax.set_xlim(0.87, 1.15 * max(most, 2))
    ax.xaxis.set_major_formatter("{x:g}")
    losses = [each.loss for each in frontier.measured]
    if max(losses) > _MAGNITUDES * min(losses) > 0:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
