"""A latent tree in words: its splits, and how active its nodes are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardwood.text.condition import phrase
from hardwood.text.numbers import format_digits

if TYPE_CHECKING:
    from hardwood.model import LatentTreeModel

_INDENT = "|   "


def latent_text(
    model: LatentTreeModel, *, max_depth: int | None, max_terms: int | None, digits: int | None
) -> str:
    """Write a latent tree in words; arguments as in :meth:`LatentTreeModel.to_text`."""
    activity = dict(zip(model.nodes.tolist(), model.activity.tolist(), strict=True))
    place = {t: i for i, t in enumerate(model.splits.tolist())}
    lines = [_summary(model), ""]
    todo: list[tuple[int, int, str]] = [(0, 0, "")]
    while todo:
        t, depth, words = todo.pop()
        if not words and t in activity:
            words = f"node {t}, activity {format_digits(activity[t], digits)}"
        elif not words:
            words = f"stays at node {(t - 1) // 2}"
        if t in place and words != "else:" and depth == max_depth:
            words += ", and more below"
        elif t in place and words != "else:":
            split = model.split(place[t])
            words += f": if {phrase(split, max_terms=max_terms, digits=digits).line()}:"
            left, right = 2 * t + 1, 2 * t + 2
            todo += [(left, depth + 1, ""), (t, depth, "else:"), (right, depth + 1, "")]
        lines.append(_INDENT * depth + words)
    return "\n".join([*lines, "", *_notes(model)]) + "\n"


def _summary(model: LatentTreeModel) -> str:
    head = "linear" if not model.widths else f"layers of {', '.join(map(str, model.widths))}"
    seen = "shares and row" if model.skip else "shares"
    return (
        f"Latent tree: {model.task}, depth {model.depth}, active nodes: {model.n_nodes}, "
        f"splits: {model.n_splits}, features: {model.n_features}, predictor of {seen}: {head}"
    )


def _notes(model: LatentTreeModel) -> list[str]:
    score = "score" if model.activation == "linear" else "ELU of the score"
    return [
        f"A row whose {score} is within 1/2 of a condition's bound goes both ways, by shares;",
        "its share of a node is at most the node's activity. The predictor answers by all shares.",
    ]
