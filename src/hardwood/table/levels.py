"""Compare the levels of a later column with those that a model learned.

The same level can be text in one table and a number or a boolean in another: a CSV file of grades
9, 10 and "other" holds text, and one with only 9 and 10 holds integers, which become floats if an
entry is missing. Levels are converted where no information is lost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hardwood.errors import TableError, UnknownLevelWarning, warn_about_table
from hardwood.table.feature import Level
from hardwood.text.numbers import plural

NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
"""The pattern of a finite number."""

_IS_NUMBER = re.compile(NUMBER).fullmatch
_EXACT = 2**53  # float64 holds every integer up to it
_BOOLEANS = {"true": True, "false": False}
_MAX_COLUMNS = 8
_MANY = 10  # different numbers
_FEW = 5  # numbers for every other text


def is_number_text(text: str) -> bool:
    """Whether a text is a finite number: ``12``, ``-1.5``, ``1e3``."""
    return _IS_NUMBER(text) is not None


def first_wrong_number(texts: Sequence[str]) -> str:
    """Return the first text that is not a number; the first one if all are."""
    return next((text for text in texts if not is_number_text(text)), texts[0])


def text_among_numbers(levels: Sequence[Level]) -> str | None:
    """Return a text among levels of which nearly all are numbers, as text; None otherwise.

    A few numbers may be categories, such as 1, 2 and X.
    """
    texts = [level for level in levels if isinstance(level, str)]
    others = [text for text in texts if not is_number_text(text)]
    n_numbers = len(texts) - len(others)
    is_mistake = others and n_numbers >= max(_MANY, _FEW * len(others))
    return others[0] if is_mistake else None


def is_boolean_text(text: str) -> bool:
    """Whether a text is true or false in any case."""
    return text.casefold() in _BOOLEANS


def number_text(number: float) -> str:
    """Return the shortest text of a number: ``9`` for 9 and 9.0."""
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def in_learned_type(
    found: tuple[Level, ...], learned: tuple[Level, ...], origin: str
) -> tuple[Level, ...] | None:
    """Convert levels to the type of those that a model learned: text, or numbers and booleans.

    Parameters
    ----------
    found, learned
        The levels of a column, where booleans may be 0 and 1, and those of the model.
    origin
        What the numbers of the column represent.

    Returns
    -------
    levels
        Text in place of numbers, or numbers in place of text that is one; text that is none stays.
        None if they cannot be compared: every value would count as an unknown level.
    """
    is_text = {isinstance(level, str) for level in found}
    if not is_text.isdisjoint(isinstance(level, str) for level in learned):
        return found
    if is_text == {True}:
        return _numbers_of_texts(found, learned)
    if origin == "boolean" or all(isinstance(level, bool) for level in found):
        return _texts_of_booleans(found, learned)
    return _texts_of_numbers(found, learned) if origin == "number" else None


def different_types(
    found: tuple[Level, ...], learned: tuple[Level, ...], origin: str, label: str
) -> TableError:
    """Return the error for levels that `in_learned_type` cannot convert."""
    is_text = isinstance(found[0], str)
    kinds = ("text", "numbers") if is_text else (f"{origin}s", "text")
    given = repr(found[0]) if is_text else number_text(float(found[0]))
    lossy = None if is_text or origin != "number" else _lossy_level(learned)
    advice = "Convert the column."
    if lossy is not None:
        advice = (
            "Numbers do not keep these characters: read the column as text, for example with "
            "dtype=str in pandas.read_csv."
        )
    return TableError(
        f"{label} holds {kinds[0]} such as {given:.60}, where the model learned {kinds[1]} such as "
        f"{learned[0] if lossy is None else lossy!r:.60}. {advice}"
    )


def _numbers_of_texts(found: Sequence[Level], learned: Sequence[Level]) -> tuple[Level, ...] | None:
    """Return text as numbers or booleans; None if no text is one."""
    texts = [str(level) for level in found]
    if all(isinstance(level, bool) for level in learned):
        values: list[Level] = [_BOOLEANS.get(text.casefold(), text) for text in texts]
    else:
        values = [_number_of_text(text) for text in texts]
    return None if values == texts else tuple(values)


def _number_of_text(text: str) -> Level:
    """Return the number that is written this way, or the text: 007 is not the number 7."""
    if not is_number_text(text):
        return text
    number = float(text)
    return number if abs(number) < _EXACT and number_text(number) == text else text


def _texts_of_booleans(
    found: Sequence[Level], learned: Sequence[Level]
) -> tuple[Level, ...] | None:
    """Return booleans as the model's levels write them; None if it has neither of them."""
    texts = [level for level in learned if isinstance(level, str)]
    written = {_BOOLEANS[text.casefold()]: text for text in texts if is_boolean_text(text)}
    if not written:
        return None
    return tuple(written.get(bool(level), str(bool(level))) for level in found)


def _texts_of_numbers(found: Sequence[Level], learned: Sequence[Level]) -> tuple[Level, ...] | None:
    """Return numbers as text; None if no level of the model is one, or one has other digits."""
    if not _number_levels(learned) or _lossy_level(learned) is not None:
        return None
    numbers = [float(level) for level in found]
    if any(abs(number) >= _EXACT for number in numbers):
        return None
    return tuple(map(number_text, numbers))


def _number_levels(learned: Sequence[Level]) -> list[str]:
    """Return the text levels that are numbers."""
    return [level for level in learned if isinstance(level, str) and is_number_text(level)]


def _lossy_level(learned: Sequence[Level]) -> str | None:
    """Return a level that is not the shortest text of its number, such as 02139."""
    lossy = (level for level in _number_levels(learned) if number_text(float(level)) != level)
    return next(lossy, None)


@dataclass(frozen=True)
class UnknownLevels:
    """The levels of a column that a model did not learn.

    Attributes
    ----------
    label
        The column, for messages.
    n_levels, n_rows
        How many levels, and how many rows have one of them.
    example
        The most frequent of them.
    """

    label: str
    n_levels: int
    n_rows: int
    example: Level

    def words(self, n_table_rows: int) -> str:
        """Say which column of a table it is, and how many of its rows."""
        which = f"{self.n_levels} levels, such as " if self.n_levels > 1 else ""
        example = f"{self.example!r:.60}".removesuffix(".0")
        return f"{self.label} in {self.n_rows} of {plural(n_table_rows, 'row')} ({which}{example})"


def warn_about_unknown_levels(unknown: Sequence[UnknownLevels], n_rows: int) -> None:
    """Warn once about all columns.

    The message about a single row has no level: predicting row by row in a loop, it stays the same,
    and Python shows a repeated message only once.
    """
    worst_first = sorted(unknown, key=lambda column: -column.n_rows)
    shown = worst_first[:_MAX_COLUMNS]
    more = len(worst_first) - len(shown)
    rest = f", and {plural(more, 'more column')}" if more else ""
    if n_rows == 1:
        where = ", ".join(column.label for column in shown)
    else:
        where = "; ".join(column.words(n_rows) for column in shown)
    warn_about_table(
        f"levels that the model did not learn count as missing: {where}{rest}", UnknownLevelWarning
    )
