"""What a command says: a report for people on stdout, or with `--json` one JSON object there.

Progress, notes and errors go to stderr in both cases, so that stdout can be piped.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from hardwood.cli.metrics import Score
from hardwood.errors import FitInterruptedWarning, TableWarning

if TYPE_CHECKING:
    from rich.table import Table


def print_json(payload: dict[str, Any]) -> None:
    """Print ``payload`` as JSON; NaN and infinity, which JSON lacks, become null."""
    typer.echo(json.dumps(_plain(payload), indent=2, ensure_ascii=False, allow_nan=False))


def print_text(text: str = "") -> None:
    """Print text as it is: no markup, no wrapping."""
    typer.echo(text)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first column is text and whose other columns are figures."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    print_text(title)  # not as the table's title, which is folded to the table's width
    table: Table = Table(box=box.SIMPLE_HEAD)
    for i, name in enumerate(header):
        table.add_column(Text(name), justify="left" if i == 0 else "right", no_wrap=i > 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    # Where no terminal sets the width (a pipe, a file), rows must not be folded.
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def interval(score: Score) -> str:
    """Write a score's interval, for example ``0.932 to 0.998``."""
    if not math.isfinite(score.low):
        return "-"
    return f"{figure(score.low)} to {figure(score.high)}"


def figure(value: float) -> str:
    """Write a number with four significant digits, or all those before the point."""
    if not math.isfinite(value):
        return "-"
    size = abs(value)
    if size != 0 and not 1e-3 <= size < 1e9:
        return f"{value:.3e}"
    decimals = 3 if size == 0 else max(0, 3 - math.floor(math.log10(size)))
    return f"{value:,.{decimals}f}"


def counted(n: int, one: str, many: str | None = None) -> str:
    """Write a number of things: ``1 leaf``, ``4 leaves``."""
    return f"{n} {one}" if n == 1 else f"{n} {many or one + 's'}"


def scores_json(scores: Sequence[Score]) -> dict[str, Any]:
    """Scores by name, as JSON has them."""
    return {
        score.name: {
            "value": score.value,
            "low": score.low,
            "high": score.high,
            "interval": score.method,
        }
        for score in scores
    }


class Notes:
    """What the package warns of during a command, kept and said on stderr as it comes."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.was_interrupted = False

    def add(self, message: str) -> None:
        """Keep a note and say it."""
        self.messages.append(message)
        typer.echo(f"note: {message}", err=True)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Take the package's own warnings for notes; others pass on as they were."""
        with warnings.catch_warnings(record=True) as caught:
            for category in (TableWarning, FitInterruptedWarning):
                warnings.simplefilter("always", category)
            yield
        for warning in caught:
            if issubclass(warning.category, FitInterruptedWarning):
                self.was_interrupted = True
                self.add(str(warning.message))
            elif issubclass(warning.category, TableWarning):
                self.add(str(warning.message))
            else:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )


def _plain(value: Any) -> Any:
    """Return ``value`` with NumPy scalars, tuples and non-finite numbers in the form JSON has."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
