"""What a comparison says in words: whether an oblique tree pays on a table, and against what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hardwood.selection.paired import Interval
from hardwood.text.numbers import format_duration, format_interval, format_number

if TYPE_CHECKING:
    from hardwood.selection.comparison import Comparison, Entrant

Answer = Literal["yes", "no", "unclear"]


def answer(found: Comparison) -> Answer | None:
    """Say whether an oblique tree pays; None where there is none, or nothing to compare it with.

    No: where it is not clearly better than an answer that looks at no column, clearly worse than
    the axis-aligned tree, or not clearly better than the linear model. Yes: where it is clearly
    better than the axis-aligned tree, or, without one, than the linear model. *Clearly*: the 95 %
    interval of the difference excludes zero.
    """
    lead = found.lead
    axis, linear = found.best_of("axis-aligned tree"), found.best_of("linear")
    constant = found.best_of("constant")
    if lead is None or (axis is None and linear is None):
        return None
    if constant is not None and not found.gain(lead, constant).low > 0:
        return "no"
    if axis is not None and found.gain(lead, axis).high < 0:
        return "no"
    if linear is not None and not found.gain(lead, linear).low > 0:
        return "no"
    if axis is None or found.gain(lead, axis).low > 0:
        return "yes"
    return "unclear"


def words(found: Comparison) -> list[str]:
    """Return the sentences of the answer, the most important first."""
    lead = found.lead
    if lead is None:
        return [f"Best: {_score(found, found.ranked[0])}. No oblique tree was compared."]
    lines = []
    if len(found.entrants) == 1:
        return [f"{_score(found, lead)}. It was compared with nothing."]
    if (said := answer(found)) is not None:
        lines.append(f"Does an oblique tree pay here? {_HEADLINES[said]}")
    for kind, write in (
        ("constant", _constant),
        ("axis-aligned tree", _axis),
        ("linear", _linear),
        ("ensemble", _ensemble),
    ):
        other = found.best_of(kind)
        if other is not None and (line := write(found, lead, other)):
            lines.append(line)
    return [*lines, *_better_of_ours(found, lead)]


_HEADLINES = {
    "yes": "Yes.",
    "no": "No.",
    "unclear": "Not clearly: take whichever you would rather read.",
}


def _constant(found: Comparison, lead: Entrant, other: Entrant) -> str:
    gain = found.gain(lead, other)
    if gain.low > 0:
        return ""
    return (
        f"The {lead.name} is not clearly better than the same answer for every row: "
        f"{_against(found, lead, other, gain)}. Either the columns say little about the target, "
        "or there are too few rows to see it."
    )


def _axis(found: Comparison, lead: Entrant, other: Entrant) -> str:
    gain = found.gain(lead, other)
    sizes = _sizes(lead, other)
    if gain.low > 0:
        return (
            f"It is better than one axis-aligned tree ({other.name}): "
            f"{_against(found, lead, other, gain)}{sizes}."
        )
    if gain.high < 0:
        return (
            f"One axis-aligned tree ({other.name}) is better: "
            f"{_against(found, lead, other, gain)}. Its splits are shorter, too: take it."
        )
    return (
        f"It cannot be told from one axis-aligned tree ({other.name}): "
        f"{_against(found, lead, other, gain)}{sizes}."
    )


def _linear(found: Comparison, lead: Entrant, other: Entrant) -> str:
    gain = found.gain(lead, other)
    if gain.low > 0:
        return (
            f"It is better than a linear model: {_against(found, lead, other, gain)}. One sum is "
            "not enough."
        )
    if gain.high < 0:
        return f"A linear model is better: {_against(found, lead, other, gain)}. Take it."
    return (
        f"A linear model cannot be told from it: {_against(found, lead, other, gain)}. Nothing "
        "says that one sum is not enough; take the linear model, it is simpler."
    )


def _ensemble(found: Comparison, lead: Entrant, other: Entrant) -> str:
    gain = found.gain(lead, other)
    how = "is better" if gain.high < 0 else "is worse" if gain.low > 0 else "cannot be told from it"
    price = (
        f"; {format_duration(other.one_row_us)} for one row against "
        f"{format_duration(lead.one_row_us)}{_sizes(other, lead)}"
    )
    return f"The best ensemble ({other.name}) {how}: {_against(found, lead, other, gain)}{price}."


def _better_of_ours(found: Comparison, lead: Entrant) -> list[str]:
    """Name another oblique tree that is clearly better than the one that speaks for them."""
    others = [e for e in found.ranked if e.kind == "oblique tree" and e is not lead]
    better = [e for e in others if found.gain(e, lead).low > 0]
    if not better:
        return []
    return [f"Better still: {_score(found, better[0])}."]


def _score(found: Comparison, entrant: Entrant) -> str:
    return f"{entrant.name}, {found.metric} {format_number(entrant.score.mean)}"


def _against(found: Comparison, lead: Entrant, other: Entrant, gain: Interval) -> str:
    scores = (
        f"{found.metric} {format_number(lead.score.mean)} against {format_number(other.score.mean)}"
    )
    if gain.low == gain.high == 0:
        return f"{scores}, the same on every fold"
    way = "better" if gain.mean >= 0 else "worse"
    low, high = (gain.low, gain.high) if gain.mean >= 0 else (-gain.high, -gain.low)
    interval = format_interval(low, high)
    return f"{scores}, {format_number(abs(gain.mean))} {way} (95 % interval {interval})"


def _sizes(one: Entrant, other: Entrant) -> str:
    """Write how many nodes one has in place of another's."""
    if one.nodes is None or other.nodes is None:
        return ""
    word = "node" if one.nodes == 1 else "nodes"
    return f", with {one.nodes:,.0f} {word} in place of {other.nodes:,.0f}"
