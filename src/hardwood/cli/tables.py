"""Tables on disk: CSV and Parquet, read and written through Arrow."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hardwood.atomic_file import whole_file
from hardwood.cli.failures import CommandError, check_readable, did_you_mean
from hardwood.errors import TableWarning
from hardwood.text.numbers import shortened

if TYPE_CHECKING:
    import pyarrow as pa

_PARQUET_MAGIC = b"PAR1"
_PARQUET_SUFFIXES = (".parquet", ".pq")
_CSV_SUFFIX = ".csv"
_DELIMITERS = ",;\t|"
_HEAD_BYTES = 1 << 16
_BLOCK_BYTES = (1 << 20, 1 << 24, 1 << 27, 1 << 30)
_TOO_LONG_FOR_A_BLOCK = ("straddling object", "Empty CSV file or block")


def read_table(path: Path) -> pa.Table:
    """Read a CSV or Parquet file: an Arrow table with distinct names and at least one row.

    Parquet is recognised by its first bytes, everything else is CSV: comma, semicolon, tab or bar
    between the entries (whichever the header has most of), decimal commas where semicolons
    separate, compressed when the name says so (`.csv.gz`). Empty entries, `NA`, `NaN`, `null` and
    the like are missing. Columns without a name are left out, with a warning.
    """
    check_readable(path, "a CSV or Parquet file")
    table = _read_parquet(path) if _starts_with(path, _PARQUET_MAGIC) else _read_csv(path)
    table = _drop_unnamed(table, path)
    repeated = [name for name, count in Counter(table.column_names).items() if count > 1]
    if repeated:
        name = shortened(repeated[0])
        raise CommandError(f"{path} has more than one column named '{name}'; rename them.")
    if table.num_rows == 0:
        raise CommandError(f"{path} has a header and no rows.")
    return table


def without_columns(table: pa.Table, names: Iterable[str], path: Path) -> pa.Table:
    """Return ``table`` less the columns ``names``, each of which must exist."""
    for name in names:
        check_column(table, name, path)
    return table.drop_columns(list(names))


def check_column(table: pa.Table, name: str, path: Path) -> None:
    """Raise CommandError when the table has no column ``name``, suggesting close ones."""
    if name in table.column_names:
        return
    hint = did_you_mean(name, table.column_names)
    some = ", ".join(shortened(known) for known in table.column_names[:8])
    more = ", ..." if table.num_columns > 8 else ""
    raise CommandError(
        f"{path} has no column '{shortened(name)}'.{hint} Its columns: {some}{more}."
    )


def check_format(path: Path) -> None:
    """Raise CommandError unless the file's name asks for a format that `write_table` writes."""
    if path.suffix.lower() not in (_CSV_SUFFIX, *_PARQUET_SUFFIXES):
        raise CommandError(
            f"{path}: a table is written as .csv or .parquet; the name must end in one of them."
        )


def write_table(table: pa.Table, path: Path) -> None:
    """Write Parquet (`.parquet`, `.pq`) or CSV (`.csv`), all of it or nothing."""
    check_format(path)
    with whole_file(path) as stream:
        _write(table, stream, is_parquet=path.suffix.lower() in _PARQUET_SUFFIXES)


def write_csv(table: pa.Table, stream: object) -> None:
    """Write ``table`` as CSV to a binary stream."""
    _write(table, stream, is_parquet=False)


def _write(table: pa.Table, stream: object, *, is_parquet: bool) -> None:
    if is_parquet:
        from pyarrow import parquet

        parquet.write_table(table, stream)
    else:
        from pyarrow import csv

        csv.write_csv(table, stream, csv.WriteOptions(quoting_style="needed"))


def _starts_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(magic)) == magic


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path).read()
    except (pa.ArrowInvalid, OSError) as error:
        raise CommandError(f"{path} is a damaged Parquet file: {_first_line(error)}") from error


def _read_csv(path: Path) -> pa.Table:
    head = _head(path)
    if not head.strip():
        raise CommandError(f"{path} is empty; expected a CSV file with a header.")
    if b"\0" in head:
        raise CommandError(
            f"{path} holds binary data; expected a CSV or Parquet file. "
            "Spreadsheets and UTF-16 text must be saved as UTF-8 CSV first."
        )
    delimiter = _delimiter(head)
    table = _parse_csv(path, delimiter, decimal_point=".")
    if delimiter == ";" and _has_decimal_commas(table):
        table = _parse_csv(path, delimiter, decimal_point=",")
    return table


def _parse_csv(path: Path, delimiter: str, decimal_point: str) -> pa.Table:
    import pyarrow as pa

    try:
        table = _parse_blocks(path, delimiter, decimal_point)
        names = table.column_names
    except UnicodeDecodeError as error:
        raise CommandError(f"The header of {path} is not UTF-8 text; {_UTF8_ADVICE}") from error
    except pa.ArrowInvalid as error:
        raise CommandError(f"{path} cannot be read as CSV: {_first_line(error)}") from error
    for name, column in zip(names, table.columns, strict=True):
        if pa.types.is_binary(column.type):
            raise CommandError(
                f"Column '{shortened(name)}' of {path} is not UTF-8 text; {_UTF8_ADVICE}"
            )
    return table


def _parse_blocks(path: Path, delimiter: str, decimal_point: str) -> pa.Table:
    """Parse in Arrow's blocks of 1 MB, or in larger ones where a row does not fit into two."""
    import pyarrow as pa
    from pyarrow import csv

    n_bytes: int | None = None
    for block_bytes in _BLOCK_BYTES:
        try:
            return csv.read_csv(
                path,
                read_options=csv.ReadOptions(block_size=block_bytes),
                parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=csv.ConvertOptions(
                    strings_can_be_null=True, decimal_point=decimal_point
                ),
            )
        except pa.ArrowInvalid as error:
            if not any(words in str(error) for words in _TOO_LONG_FOR_A_BLOCK):
                raise
            n_bytes = _checked_size(path) if n_bytes is None else n_bytes
            if n_bytes <= block_bytes:
                raise
    raise CommandError(f"{path} has a row of more than {_BLOCK_BYTES[-1] >> 30} GB.")


def _checked_size(path: Path) -> int:
    """Return the number of bytes of a file with a very long row, uncompressed.

    Raises CommandError when a quote is left open: the rest of the file would be one entry.
    """
    import pyarrow as pa

    n_bytes = n_quotes = 0
    with pa.input_stream(str(path), compression="detect") as stream:
        while block := stream.read(_BLOCK_BYTES[0]):
            n_bytes += len(block)
            n_quotes += block.count(b'"')
    if n_bytes > _BLOCK_BYTES[0] and n_quotes % 2:
        raise CommandError(
            f"{path} has an entry of more than 1 MB and an odd number of quotation marks: "
            "one that opens an entry is not closed."
        )
    return n_bytes


_UTF8_ADVICE = "save the file as UTF-8 (in a spreadsheet: 'CSV UTF-8')."


def _head(path: Path) -> bytes:
    import pyarrow as pa

    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {_first_line(error)}") from error


def _delimiter(head: bytes) -> str:
    """Return the separator most frequent in the header, outside quotes; a comma in doubt."""
    header = head.lstrip(b"\r\n").splitlines()[0].decode("utf-8", errors="replace")
    outside_quotes = "".join(header.split('"')[::2])
    return max(_DELIMITERS, key=outside_quotes.count)


def _has_decimal_commas(table: pa.Table) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in table.columns:
        if pa.types.is_string(column.type) and column.null_count < len(column):
            matches = pc.match_substring_regex(column, r"^[+-]?\d+,\d+([eE][+-]?\d+)?$|^[+-]?\d+$")
            if pc.all(matches).as_py():
                return True
    return False


def _drop_unnamed(table: pa.Table, path: Path) -> pa.Table:
    names = table.column_names
    unnamed = [i for i, name in enumerate(names) if not name.strip()]
    if not unnamed:
        return table
    places = ", ".join(str(i + 1) for i in unnamed[:8]) + (", ..." if len(unnamed) > 8 else "")
    warnings.warn(
        f"{path}: column {places} has no name and is left out (often a row number from pandas)",
        TableWarning,
        stacklevel=3,
    )
    return table.select([i for i, name in enumerate(names) if name.strip()])


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if len(lines[0]) <= 300 else lines[0][:300] + " ..."
