"""What a command says: a report for people on stdout, or with `--json` one JSON object there.

Progress, notes and errors go to stderr in both cases, so that stdout can be piped.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from hardwood.errors import FitInterruptedWarning, TableWarning
from hardwood.text.blocks import TextTable
from hardwood.text.report import to_json_value


def print_json(payload: dict[str, Any]) -> None:
    """Print ``payload`` as JSON; NaN and infinity, which JSON lacks, become null."""
    print_text(json.dumps(to_json_value(payload), indent=2, ensure_ascii=False, allow_nan=False))


def print_text(text: str = "") -> None:
    """Print text as it is: no markup, no wrapping; what the stream lacks is escaped."""
    print(text, flush=True)  # typer's echo writes UTF-8 where the stream asks for less


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first column is text and whose other columns are figures."""
    print_text(TextTable.of(title, header, rows).to_text() + "\n")


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
