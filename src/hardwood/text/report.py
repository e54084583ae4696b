"""The base of all reports: text, HTML, JSON, data frames, and for some a drawing."""

from __future__ import annotations

import base64
import io
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from hardwood.atomic_file import whole_file
from hardwood.errors import MissingExtraError
from hardwood.text.blocks import STYLE, Block, Image, Text, to_html, to_page
from hardwood.text.frames import Backend, is_installed, make_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Tables = dict[str, dict[str, list[Any]]]


class Report(ABC):
    """What was found out about a model.

    ``print(report)`` writes it for a terminal, a notebook shows it as HTML, `to_dict` and `to_json`
    give all of it to programs, and `to_frame` its tables as data frames.
    """

    @property
    @abstractmethod
    def title(self) -> str:
        """One line: what is reported of what."""

    @abstractmethod
    def _blocks(self) -> Sequence[Block]:
        """Return what a person sees, in order."""

    @abstractmethod
    def _content(self) -> dict[str, Any]:
        """Return all that was found."""

    @abstractmethod
    def _tables(self) -> Tables:
        """Return the tables by name, column by column; the most important first."""

    def __str__(self) -> str:
        parts = [Text(self.title), *self._blocks()]
        return "\n\n".join(part.to_text() for part in parts) + "\n"

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the report in lists, dicts, text and numbers; what is not defined is None."""
        content: dict[str, Any] = to_json_value(self._content())
        return content

    def to_json(self, *, indent: int | None = 2) -> str:
        """Write `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that `to_frame` gives; the first is the default."""
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
            If none of them is there.
        """
        tables = self._tables()
        name = next(iter(tables)) if table is None else table
        if name not in tables:
            raise ValueError(f"the report has the tables {list(tables)}, not {table!r:.80}")
        return make_frame(tables[name], backend, purpose="A report as a data frame")

    def to_html(self) -> str:
        """Write the report as a part of a page, with its pictures in it and nothing to fetch."""
        return f"<style>{STYLE}</style>{self._section()}"

    def _repr_html_(self) -> str:
        return self.to_html()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file, whole or not at all: ``.html``, ``.json`` or ``.txt``."""
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
    """A report that has a drawing."""

    @abstractmethod
    def _figure_size(self) -> tuple[float, float]:
        """Width and height of the drawing in inches."""

    @abstractmethod
    def _draw(self, figure: Figure) -> None:
        """Draw into an empty figure."""

    @property
    @abstractmethod
    def _image_text(self) -> str:
        """Say what the drawing shows."""

    def plot(self) -> Figure:
        """Draw the report with matplotlib; returns the figure, which a notebook shows."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise MissingExtraError(
                "matplotlib", extra="plot", purpose="Drawing a report"
            ) from error
        figure = plt.figure(figsize=self._figure_size(), layout="constrained")
        self._draw(figure)
        return figure

    def _images(self) -> Sequence[Block | Image]:
        if not is_installed("matplotlib"):
            missing = MissingExtraError("matplotlib", extra="plot", purpose="The drawing")
            return [Text(str(missing))]
        return [Image(self._png(), self._image_text)]

    def _png(self) -> str:
        from matplotlib.figure import Figure  # not pyplot's, which would keep and show it

        figure = Figure(figsize=self._figure_size(), layout="constrained")
        self._draw(figure)
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=100)
        return base64.b64encode(content.getvalue()).decode()


def page(title: str, reports: Sequence[Report]) -> str:
    """Write several reports as one page of HTML, which fetches nothing."""
    return to_page(title, [report._section() for report in reports])


def to_json_value(value: Any) -> Any:
    """Return a value as JSON holds it.

    NumPy's scalars and arrays become Python's, tuples lists, keys and paths text; NaN and infinity,
    which JSON lacks, become None.
    """
    if isinstance(value, dict):
        return {str(key): to_json_value(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(entry) for entry in value]
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "tolist"):
        return to_json_value(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
