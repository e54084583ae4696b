"""Read CSV files: separators, decimal commas, and the types of columns.

A CSV file has no types. Arrow infers them from the entries, so that the same column may hold text
in one file and numbers, dates or booleans in another, smaller one. What is known about the columns,
such as from the model that reads them, decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hardwood.cli.errors import CommandError
from hardwood.text.numbers import shortened

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import csv

_DELIMITERS = ",;\t|"
_HEAD_BYTES = 1 << 16
_BLOCK_BYTES = (1 << 20, 1 << 24, 1 << 27, 1 << 30)
_TOO_LONG_FOR_A_BLOCK = ("straddling object", "Empty CSV file or block")
_UTF8_ADVICE = "save the file as UTF-8 (in a spreadsheet: 'CSV UTF-8')."
_CODE = "^0[0-9xX]"  # Arrow reads 02139 and 0x1F as integers


@dataclass(frozen=True)
class ColumnKinds:
    """What is known about the columns of a file.

    Attributes
    ----------
    text
        Columns of text, whatever their entries look like.
    numbers
        Columns that are not text, even if integers have leading zeros.
    """

    text: Collection[str] = frozenset()
    numbers: Collection[str] = frozenset()


def read_csv(
    path: Path, kinds_of: Callable[[Sequence[str]], ColumnKinds]
) -> tuple[pa.Table, dict[str, str]]:
    """Read a CSV file.

    Parameters
    ----------
    kinds_of
        Returns what is known about the columns with these names.

    Returns
    -------
    table
        Columns of integers with leading zeros, such as 02139, are text.
    codes
        These columns, each with such an entry.
    """
    head = _head(path)
    if not head.strip():
        raise CommandError(f"{path} is empty; expected a CSV file with a header.")
    if b"\0" in head:
        raise CommandError(
            f"{path} contains binary data; expected a CSV or Parquet file. "
            "Save spreadsheets and UTF-16 text as UTF-8 CSV first."
        )
    delimiter = _delimiter(head)
    table = _parse(path, delimiter)
    kinds = kinds_of(table.column_names)
    if delimiter == ";" and _has_decimal_commas(table, kinds.text):
        table = _parse(path, delimiter, decimal_point=",")
    return _with_text(table, path, delimiter, kinds)


def _parse(
    path: Path, delimiter: str, *, decimal_point: str = ".", text: Sequence[str] = ()
) -> pa.Table:
    """Read all columns with inferred types, or the columns ``text`` as text."""
    import pyarrow as pa
    from pyarrow import csv

    convert = csv.ConvertOptions(
        strings_can_be_null=True,
        decimal_point=decimal_point,
        include_columns=list(text),
        column_types=dict.fromkeys(text, pa.string()),
    )
    try:
        table = _parse_blocks(
            path, csv.ParseOptions(delimiter=delimiter, newlines_in_values=True), convert
        )
        names = table.column_names
    except UnicodeDecodeError as error:
        raise CommandError(f"The header of {path} is not UTF-8 text; {_UTF8_ADVICE}") from error
    except pa.ArrowInvalid as error:
        raise CommandError(f"{path} cannot be read as CSV: {first_line(error)}") from error
    for name, column in zip(names, table.columns, strict=True):
        if pa.types.is_binary(column.type):
            raise CommandError(
                f"Column '{shortened(name)}' of {path} is not UTF-8 text; {_UTF8_ADVICE}"
            )
    return table


def _parse_blocks(path: Path, parse: csv.ParseOptions, convert: csv.ConvertOptions) -> pa.Table:
    """Parse in Arrow's blocks of 1 MB, or in larger ones if a row does not fit."""
    import pyarrow as pa
    from pyarrow import csv

    n_bytes: int | None = None
    for block_bytes in _BLOCK_BYTES:
        try:
            read = csv.ReadOptions(block_size=block_bytes)
            return csv.read_csv(path, read, parse, convert)
        except pa.ArrowInvalid as error:
            if not any(words in str(error) for words in _TOO_LONG_FOR_A_BLOCK):
                raise
            n_bytes = _checked_size(path) if n_bytes is None else n_bytes
            if n_bytes <= block_bytes:
                raise
    raise CommandError(f"{path} has a row of more than {_BLOCK_BYTES[-1] >> 30} GB.")


def _checked_size(path: Path) -> int:
    """Return the uncompressed size in bytes of a file with a very long row.

    Raises CommandError if a quote is not closed: the rest of the file would be one value.
    """
    import pyarrow as pa

    n_bytes = n_quotes = 0
    with pa.input_stream(str(path), compression="detect") as stream:
        while block := stream.read(_BLOCK_BYTES[0]):
            n_bytes += len(block)
            n_quotes += block.count(b'"')
    if n_bytes > _BLOCK_BYTES[0] and n_quotes % 2:
        raise CommandError(
            f"{path} has a value of more than 1 MB and an odd number of quotation marks: a "
            "quoted value is not closed."
        )
    return n_bytes


def _head(path: Path) -> bytes:
    import pyarrow as pa

    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {first_line(error)}") from error


def _delimiter(head: bytes) -> str:
    """Return the most frequent separator in the header, outside quotes; a comma if in doubt."""
    header = head.lstrip(b"\r\n").splitlines()[0].decode("utf-8", errors="replace")
    outside_quotes = "".join(header.split('"')[::2])
    return max(_DELIMITERS, key=outside_quotes.count)


def _has_decimal_commas(table: pa.Table, text: Collection[str]) -> bool:
    """Whether a column, other than those of text, has whole numbers and decimal commas only."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in text:
            continue
        if pa.types.is_string(column.type) and column.null_count < len(column):
            matches = pc.match_substring_regex(column, r"^[+-]?\d+,\d+([eE][+-]?\d+)?$|^[+-]?\d+$")
            if pc.all(matches).as_py():
                return True
    return False


def _with_text(
    table: pa.Table, path: Path, delimiter: str, kinds: ColumnKinds
) -> tuple[pa.Table, dict[str, str]]:
    """Read columns again as text where Arrow has inferred another type; see `read_csv`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted, integers = [], []
    repeated = {name for name, n in Counter(table.column_names).items() if n > 1}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in repeated or pa.types.is_null(column.type):
            continue
        if name in kinds.text and not pa.types.is_string(column.type):
            wanted.append(name)
        elif pa.types.is_integer(column.type) and name not in kinds.numbers:
            integers.append(name)
    texts = _parse(path, delimiter, text=[*wanted, *integers]) if wanted or integers else table
    codes = {}
    for name in integers:
        is_code = pc.match_substring_regex(texts[name], _CODE)
        if pc.any(is_code).as_py():
            codes[name] = texts[name].filter(is_code)[0].as_py()
    for name in [*wanted, *codes]:
        table = table.set_column(table.column_names.index(name), name, texts[name])
    return table, codes


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, shortened."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if len(lines[0]) <= 300 else lines[0][:300] + " ..."
