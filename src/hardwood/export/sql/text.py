"""SQL as text: quoted names, literals, and the stages of a statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hardwood.errors import ExportError

Label = str | int | float | bool


def identifier(name: str) -> str:
    """Quote the name of a table or column."""
    if not name:
        raise ExportError(
            "SQL has no empty names. Name the column in the database: columns={'': 'name'}."
        )
    return '"' + _without_nul(name).replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Quote a text."""
    return "'" + _without_nul(text).replace("'", "''") + "'"


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ExportError(f"SQL text cannot hold the character NUL, found in {text!r:.80}. Rename.")
    return text


def number(value: float) -> str:
    """Write a double with an exponent, because databases read others as decimal numbers."""
    text = repr(float(value)).upper()
    return text if "E" in text else text + "E0"


def label(value: Label) -> str:
    """Write a level or a class as text or number."""
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return str(value) if isinstance(value, int) else number(value)


def choice(of: str, results: dict[str, str], otherwise: str) -> str:
    """Write ``CASE of WHEN ... THEN ... ELSE ... END``."""
    if not results:
        return otherwise
    cases = " ".join(f"WHEN {key} THEN {result}" for key, result in results.items())
    return f"CASE {of} {cases} ELSE {otherwise} END"


def choice_of_places(of: str, results: Sequence[str]) -> str:
    """Write the choice of a result by its position, from 0; the most common one is the ELSE."""
    commonest = max(dict.fromkeys(results), key=results.count)
    others = {str(i): result for i, result in enumerate(results) if result != commonest}
    return choice(of, others, commonest)


class Stages:
    """A statement in stages, each a SELECT from the one before.

    Columns have short generated names. A stage keeps the columns that it does not redefine, unless
    they are dropped. If stages use columns of an earlier one many times, ``materialized`` keeps a
    database from computing them each time.
    """

    def __init__(self, source: str, taken: Iterable[str], *, materialized: bool) -> None:
        self._source = source
        self._hint = "MATERIALIZED " if materialized else ""
        self._taken = {name.lower() for name in taken}
        self._columns: list[str] = []
        self._parts: list[str] = []

    def add(self, columns: dict[str, str], *, note: str = "", drop: Iterable[str] = ()) -> None:
        """Add a stage that computes columns from those of the stage before, called ``"t"``."""
        dropped = {*drop, *columns}
        kept = {name: f'"t"."{name}"' for name in self._columns if name not in dropped}
        all_columns = kept | {name: f'{text} AS "{name}"' for name, text in columns.items()}
        lines = ",\n    ".join(all_columns.values())
        comment = f"  -- {note}\n" if note else ""
        self._parts.append(f'{comment}  SELECT\n    {lines}\n  FROM {self._source} AS "t"')
        self._columns = list(all_columns)
        self._source = f'"{self._name(len(self._parts) - 1)}"'

    def _name(self, i: int) -> str:
        name = f"stage {i}"
        while name in self._taken:
            name += "_"
        return name

    def statement(self, columns: Sequence[str]) -> str:
        """Write the statement that selects these columns of the last stage."""
        stages = ",\n".join(
            f'"{self._name(i)}" AS {self._hint}(\n{part}\n)' for i, part in enumerate(self._parts)
        )
        lines = ",\n  ".join(columns)
        return f'WITH {stages}\nSELECT\n  {lines}\nFROM {self._source} AS "t"\n'
