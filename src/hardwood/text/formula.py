"""Linear leaves as readable formulas: ``-32.4 + 9.1*rooms - 0.05*age``.

As in a condition, terms are in raw units, the most important first. The constant is computed
*after* weights are rounded and small terms are left out, so that the formula is exact for the
average row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardwood.text.numbers import Digits
from hardwood.text.scorecard import constant_text, grouped_entries
from hardwood.text.terms import MAX_TERMS, WrittenTerm, check_options, left_out_text

if TYPE_CHECKING:
    from hardwood.model.views import Term
    from hardwood.table import Schema


@dataclass(frozen=True)
class Formula:
    """The parts of a sum: the constant, the terms, and the number of terms left out."""

    constant: str
    terms: tuple[WrittenTerm, ...] = ()
    n_left_out: int = 0

    def parts(self) -> list[str]:
        """List the parts between which a line may be broken."""
        words = [str(term) for term in self.terms]
        if self.constant != "0" or not words:
            words.insert(0, self.constant)
        else:
            first = self.terms[0]
            words[0] = f"-{first.text}" if first.sign == "-" else first.text
        return words + ([left_out_text(self.n_left_out)] if self.n_left_out else [])

    def line(self) -> str:
        """Return the formula as one line."""
        return " ".join(self.parts())


def formula(
    schema: Schema,
    terms: Sequence[Term],
    value: float,
    *,
    max_terms: int | None = MAX_TERMS,
    digits: Digits = "auto",
) -> Formula:
    """Format ``value`` plus centered terms.

    Parameters
    ----------
    schema
        Schema of the columns.
    terms
        The terms, the most important first.
    value
        The sum if all numbers are at their centers and all indicators are 0.
    max_terms
        Number of terms to show, where the levels of one feature are one term; ``None`` shows all.
    digits
        Significant digits of numbers; "auto": all of short numbers, three of others. ``None``
        writes numbers in full, and dates as seconds.
    """
    check_options(max_terms, digits)
    groups = grouped_entries(schema, [terms], digits)
    shown = [entry for group in groups[:max_terms] for entry in group]
    return Formula(
        constant=constant_text(value, shown, digits),
        terms=tuple(entry.term(digits) for entry in shown),
        n_left_out=len(groups[len(groups) if max_terms is None else max_terms :]),
    )
