"""The answer of a comparison in words: whether an oblique tree is worth it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hardwood.text.numbers import format_duration, format_interval, format_number

if TYPE_CHECKING:
    from hardwood.selection.comparison import Comparison, ModelResult

Answer = Literal["yes", "no", "unclear"]

_HEADLINES = {
    "yes": "Yes.",
    "no": "No.",
    "unclear": "Not clearly: use the model that you prefer to read.",
}
_NOTHING_LEARNED = (
    "The {lead} is not clearly better than the same answer for every row: {scores}. Either the "
    "columns say little about the target, or there are too few rows to see it."
)
# By kind: where the oblique tree is clearly better, clearly worse, and neither.
_SENTENCES = {
    "constant": ("", _NOTHING_LEARNED, _NOTHING_LEARNED),
    "axis-aligned tree": (
        "It is better than one axis-aligned tree ({other}): {scores}{sizes}.",
        "One axis-aligned tree ({other}) is better: {scores}. Its splits are shorter, too: use it.",
        "It is not clearly different from one axis-aligned tree ({other}): {scores}{sizes}.",
    ),
    "linear": (
        "It is better than a linear model: {scores}. One sum is not enough.",
        "A linear model is better: {scores}. Use it.",
        "A linear model is not clearly different: {scores}. One sum may be enough; "
        "use the linear model, which is simpler.",
    ),
    "ensemble": (
        "The best ensemble ({other}) is worse: {scores}{cost}.",
        "The best ensemble ({other}) is better: {scores}{cost}.",
        "The best ensemble ({other}) is not clearly different: {scores}{cost}.",
    ),
}


def answer(found: Comparison) -> Answer | None:
    """Return whether an oblique tree is worth it; None without models to compare with.

    No: where it is not clearly better than an answer that looks at no column, clearly worse than
    the axis-aligned tree, or not clearly better than the linear model. Yes: where it is clearly
    better than the axis-aligned tree, or, without one, than the linear model. *Clearly*: the 95 %
    interval of the difference excludes zero.
    """
    lead = found.lead
    if lead is None:
        return None
    best = {kind: found.best_of(kind) for kind in _SENTENCES}
    gains = {kind: found.gain(lead, other) for kind, other in best.items() if other is not None}
    axis, linear, constant = map(gains.get, ("axis-aligned tree", "linear", "constant"))
    if axis is None and linear is None:
        return None
    if any(gain is not None and not gain.low > 0 for gain in (constant, linear)):
        return "no"
    if axis is None or axis.low > 0:
        return "yes"
    return "no" if axis.high < 0 else "unclear"


def sentences(found: Comparison) -> list[str]:
    """Return the sentences of the answer, the most important first."""
    lead = found.lead
    if lead is None:
        return [f"Best: {_score(found, found.ranked[0])}. No oblique tree was compared."]
    if len(found.entrants) == 1:
        return [f"{_score(found, lead)}. It was compared with nothing."]
    said = answer(found)
    lines = [] if said is None else [f"Is an oblique tree worth it here? {_HEADLINES[said]}"]
    lines += [_beside(found, lead, kind) for kind in _SENTENCES]
    for other in found.ranked:  # another oblique tree that is clearly better
        if other.kind == lead.kind and other is not lead and found.gain(other, lead).low > 0:
            lines.append(f"Better still: {_score(found, other)}.")
            break
    return [line for line in lines if line]


def _beside(found: Comparison, lead: ModelResult, kind: str) -> str:
    """Compare the oblique tree with the best model of a kind; "" if there is none."""
    other = found.best_of(kind)
    if other is None:
        return ""
    gain = found.gain(lead, other)
    better, worse, neither = _SENTENCES[kind]
    times = f"{format_duration(other.one_row_us)} for one row against "
    return (better if gain.low > 0 else worse if gain.high < 0 else neither).format(
        lead=lead.name,
        other=other.name,
        scores=_scores(found, lead, other),
        sizes=_sizes(lead, other),
        cost=f"; {times}{format_duration(lead.one_row_us)}{_sizes(other, lead)}",
    )


def _score(found: Comparison, model: ModelResult) -> str:
    return f"{model.name}, {found.metric} {format_number(model.score.mean)}"


def _scores(found: Comparison, lead: ModelResult, other: ModelResult) -> str:
    gain = found.gain(lead, other)
    scores = (
        f"{found.metric} {format_number(lead.score.mean)} against {format_number(other.score.mean)}"
    )
    if gain.low == gain.high == 0:
        return f"{scores}, the same on every fold"
    way = "better" if gain.mean >= 0 else "worse"
    low, high = (gain.low, gain.high) if gain.mean >= 0 else (-gain.high, -gain.low)
    interval = format_interval(low, high)
    return f"{scores}, {format_number(abs(gain.mean))} {way} (95 % interval {interval})"


def _sizes(one: ModelResult, other: ModelResult) -> str:
    """Describe the numbers of nodes of two models."""
    if one.nodes is None or other.nodes is None:
        return ""
    word = "node" if one.nodes == 1 else "nodes"
    return f", with {one.nodes:,.0f} {word} in place of {other.nodes:,.0f}"
