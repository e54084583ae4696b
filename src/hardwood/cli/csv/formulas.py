"""Text in a CSV file that a spreadsheet would run as a formula.

A label or a column may come from anybody who could write into the training table. Spreadsheets run
text that begins with =, +, -, @ or a control character; an apostrophe before it keeps it text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hardwood.table.levels import NUMBER

if TYPE_CHECKING:
    import pyarrow as pa

_FORMULA = r"^[=+\-@\t\r\n]"


def formula_in(table: pa.Table) -> str | None:
    """Return a text that a spreadsheet would run: the name or an entry of a column; else None."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        for texts in (_names([name]), _texts(column)):
            found = [] if texts is None else texts.filter(_are_formulas(texts))[:1].to_pylist()
            if found:
                return str(found[0])
    return None


def without_formulas(table: pa.Table) -> pa.Table:
    """Return the table with an apostrophe before every such text."""
    for i, column in enumerate(table.columns):
        texts = _texts(column)
        if texts is not None:
            table = table.set_column(i, table.field(i).name, _escaped(texts))
    return table.rename_columns(_escaped(_names(table.column_names)).to_pylist())


def _names(names: list[str]) -> pa.ChunkedArray:
    import pyarrow as pa

    return pa.chunked_array([pa.array(names, pa.string())])


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return the entries as text; None for a column of another kind."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return column.cast(kind) if is_text else None


def _escaped(texts: pa.ChunkedArray) -> Any:
    import pyarrow.compute as pc

    quoted = pc.replace_substring_regex(texts, pattern="^", replacement="'")
    return pc.if_else(_are_formulas(texts), quoted, texts)


def _are_formulas(texts: pa.ChunkedArray) -> Any:
    """Whether each text would be run; numbers such as -1 do no harm."""
    import pyarrow.compute as pc

    is_number = pc.match_substring_regex(texts, f"^({NUMBER})$")
    return pc.and_not(pc.match_substring_regex(texts, _FORMULA), is_number)
