"""The base classes of reports: text, HTML, JSON, data frames, and plots."""

from __future__ import annotations

import base64
import datetime
import io
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from hardwood.atomic_file import checked_target, whole_file
from hardwood.errors import MissingExtraError
from hardwood.text.blocks import STYLE, Block, Image, Text, to_html, to_page
from hardwood.text.frames import Backend, is_installed, make_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Tables = dict[str, dict[str, list[Any]]]


class Report(ABC):
    """A report about a model.

    ``print(report)`` formats it for a terminal, and notebooks show it as HTML. `to_dict` and
    `to_json` return its content for programs, and `to_frame` its tables as data frames.
    """

    @property
    @abstractmethod
    def title(self) -> str:
        """The title, on one line."""

    @abstractmethod
    def _blocks(self) -> Sequence[Block]:
        """Return the parts to show, in order."""

    @abstractmethod
    def _content(self) -> dict[str, Any]:
        """Return the whole content."""

    @abstractmethod
    def _tables(self) -> Tables:
        """Return the tables by name, as columns; the most important first."""

    def __str__(self) -> str:
        parts = [Text(self.title), *self._blocks()]
        return "\n\n".join(part.to_text() for part in parts) + "\n"

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as lists, dicts, text and numbers; undefined values are None."""
        content: dict[str, Any] = to_json_value(self._content())
        return content

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables for `to_frame`; the first is the default."""
        return tuple(self._tables())

    def to_frame(self, table: str | None = None, *, backend: Backend | None = None) -> Any:
        """Return one of the report's tables as a data frame.

        Parameters
        ----------
        table
            One of `tables`; the first by default.
        backend
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``; by default the first that is installed.

        Raises
        ------
        MissingExtraError
            If none of them is installed.
        """
        tables = self._tables()
        name = next(iter(tables)) if table is None else table
        if name not in tables:
            raise ValueError(f"the report has the tables {list(tables)}, got {table!r:.80}")
        return make_frame(tables[name], backend, purpose="A report as a data frame")

    def to_html(self) -> str:
        """Return the report as a section of a page, with embedded images."""
        return f"<style>{STYLE}</style>{self._section()}"

    def _repr_html_(self) -> str:
        return self.to_html()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to an ``.html``, ``.json`` or ``.txt`` file, atomically."""
        path = Path(path)
        writers = {
            ".html": lambda: to_page(self.title, [self._section()]),
            ".json": lambda: self.to_json() + "\n",
            ".txt": lambda: str(self),
        }
        if path.suffix.lower() not in writers:
            raise ValueError(
                f"a report is written as {', '.join(writers)}; the name must end in one of them, "
                f"found {str(path)!r}"
            )
        content = writers[path.suffix.lower()]().encode()
        with whole_file(path) as stream:
            stream.write(content)

    def _section(self) -> str:
        return to_html(self.title, [*self._images(), *self._blocks()])

    def _images(self) -> Sequence[Block | Image]:
        return ()


class PlottedReport(Report):
    """A report with a plot."""

    @abstractmethod
    def _figure_size(self) -> tuple[float, float]:
        """Width and height of the plot in inches."""

    @abstractmethod
    def _draw(self, figure: Figure) -> None:
        """Draw into an empty figure."""

    @property
    @abstractmethod
    def _image_text(self) -> str:
        """The alternative text of the plot."""

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Plot the report with matplotlib; return the figure, which notebooks show.

        Parameters
        ----------
        path
            Where to write the plot: a file whose ending is a format of matplotlib, such as .png,
            .pdf or .svg. None: it is only returned.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise MissingExtraError(
                "matplotlib", extra="plot", purpose="Plotting a report"
            ) from error
        figure = plt.figure(figsize=self._figure_size(), layout="constrained")
        self._draw(figure)
        if path is not None:
            write_figure(figure, path)
        return figure

    def _images(self) -> Sequence[Block | Image]:
        if not is_installed("matplotlib"):
            missing = MissingExtraError("matplotlib", extra="plot", purpose="The plot")
            return [Text(str(missing))]
        return [Image(self._png(), self._image_text)]

    def _png(self) -> str:
        from matplotlib.figure import Figure  # pyplot would keep and show the figure

        figure = Figure(figsize=self._figure_size(), layout="constrained")
        self._draw(figure)
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=100)
        return base64.b64encode(content.getvalue()).decode()


def write_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure of matplotlib to a file, atomically, in the format that its name ends in."""
    checked_target(path, what="a plot", example="plot.png")
    with whole_file(path) as stream:
        figure.savefig(stream, format=picture_format(path), dpi=150, bbox_inches="tight")


def picture_format(path: str | os.PathLike[str]) -> str:
    """Return the format that the name of a picture ends in; PNG for a name without an ending."""
    return Path(path).suffix.lstrip(".").lower() or "png"


def page(title: str, reports: Sequence[Report]) -> str:
    """Return several reports as one HTML page without external resources."""
    return to_page(title, [report._section() for report in reports])


def to_json_value(value: Any) -> Any:
    """Convert a value to JSON types.

    NumPy scalars and arrays become Python values, tuples become lists, and keys and paths become
    text. Dates become text, durations seconds. NaN and infinity, which JSON does not have, become
    None.
    """
    if isinstance(value, dict):
        return {str(key): to_json_value(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(entry) for entry in value]
    if isinstance(value, PurePath | datetime.datetime):
        return str(value)
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if hasattr(value, "tolist"):
        return to_json_value(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
