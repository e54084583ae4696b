"""The parts of a report: tables, text and images, as plain text and as HTML."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from hardwood.text.numbers import printable, shortened

MAX_CELL = 88  # characters of a text cell in a terminal; HTML shows all
_GAP = "  "


@dataclass(frozen=True)
class TextTable:
    """A table for people to read.

    Attributes
    ----------
    title
        The heading.
    header, rows
        Cells as text.
    text_columns
        The columns that hold text, aligned left; the others hold numbers, aligned right.
    note
        A line below the table.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text_columns: tuple[int, ...] = (0,)
    note: str = ""

    @classmethod
    def of(
        cls,
        title: str,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        text_columns: tuple[int, ...] = (0,),
        note: str = "",
    ) -> TextTable:
        """Create a table from any sequences."""
        return cls(title, tuple(header), tuple(map(tuple, rows)), text_columns, note)

    def to_text(self) -> str:
        """Format the table as text, with columns separated by spaces."""
        cells = [self._texts(row) for row in (self.header, *self.rows)]
        widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
        lines = [self._line(row, widths) for row in cells]
        lines.insert(1, _GAP + "-" * (sum(widths) + len(_GAP) * (len(widths) - 1)))
        below = [_GAP + printable(self.note)] if self.note else []
        return "\n".join([printable(self.title), *lines, *below])

    def _texts(self, row: tuple[str, ...]) -> list[str]:
        return [
            shortened(printable(cell), MAX_CELL) if j in self.text_columns else printable(cell)
            for j, cell in enumerate(row)
        ]

    def _line(self, row: Sequence[str], widths: Sequence[int]) -> str:
        cells = []
        for j, (cell, width) in enumerate(zip(row, widths, strict=True)):
            blanks = " " * (width - _width(cell))
            cells.append(cell + blanks if j in self.text_columns else blanks + cell)
        return (_GAP + _GAP.join(cells)).rstrip()

    def to_html(self) -> str:
        """Format the table as HTML; every cell is escaped."""
        head = self._html_row(self.header, 'th scope="col"')
        body = "".join(f"<tr>{self._html_row(row, 'td')}</tr>" for row in self.rows)
        note = f"<p>{_safe(self.note)}</p>" if self.note else ""
        return (
            f"<table><caption>{_safe(self.title)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"
        )

    def _html_row(self, row: tuple[str, ...], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=text' if j in self.text_columns else ''}>{_safe(cell)}</{tag[:2]}>"
            for j, cell in enumerate(row)
        )


@dataclass(frozen=True)
class Text:
    """Lines of text."""

    text: str
    title: str = ""

    def to_text(self) -> str:
        """Return the title and the lines."""
        lines = [printable(line) for line in self.text.splitlines()]
        return "\n".join([printable(self.title), *lines] if self.title else lines)

    def to_html(self) -> str:
        """Format the lines as ``<pre>``, escaped."""
        title = f"<h4>{_safe(self.title)}</h4>" if self.title else ""
        lines = "\n".join(map(_safe, self.text.splitlines()))
        return f"{title}<pre>{lines}</pre>"


@dataclass(frozen=True)
class Image:
    """A plot as PNG; only HTML shows it."""

    png: str
    """The image in base64."""
    text: str
    """The alternative text."""

    def to_html(self) -> str:
        """Embed the image in the page."""
        return f'<img alt="{_safe(self.text)}" src="data:image/png;base64,{self.png}">'


Block = TextTable | Text

STYLE = """
.hardwood-report { font: 14px/1.45 system-ui, sans-serif; color: inherit; max-width: 75em }
.hardwood-report table { border-collapse: collapse; margin: .6em 0 1em; color: inherit }
.hardwood-report caption { text-align: left; font-weight: 600; padding: .2em 0 }
.hardwood-report th, .hardwood-report td { padding: .15em .8em .15em 0; text-align: right;
  border: 0; background: none; color: inherit; font-variant-numeric: tabular-nums;
  vertical-align: top }
.hardwood-report th { border-bottom: 1px solid currentColor; font-weight: 600 }
.hardwood-report .text { text-align: left }
.hardwood-report td.text { overflow-wrap: anywhere; min-width: 4em }
.hardwood-report pre { white-space: pre-wrap; overflow-wrap: anywhere; background: none;
  color: inherit; margin: .4em 0 1em }
.hardwood-report img { max-width: 100%; background: #fff }
.hardwood-report h3, .hardwood-report h4 { margin: .8em 0 .3em }
""".strip()

_PAGE_STYLE = "body { margin: 2em; font-family: system-ui, sans-serif }"


def to_html(title: str, blocks: Sequence[Block | Image]) -> str:
    """Format a section of a page: a heading, then the blocks."""
    inner = "\n".join(block.to_html() for block in blocks)
    return f'<section class="hardwood-report"><h3>{_safe(title)}</h3>\n{inner}</section>'


def to_page(title: str, sections: Sequence[str]) -> str:
    """Format a whole page, without scripts and external resources."""
    head = (
        '<meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_safe(title)}</title><style>{_PAGE_STYLE}\n{STYLE}</style>"
    )
    body = "\n".join([f"<h2>{_safe(title)}</h2>", *sections])
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>{body}\n</body></html>\n'


def _safe(text: str) -> str:
    return html.escape(printable(text), quote=True)


def _width(text: str) -> int:
    """Return the width of a text in a terminal: 2 for wide East Asian characters, 0 for accents."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
