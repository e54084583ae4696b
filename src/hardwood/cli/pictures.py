"""Drawings as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardwood.atomic_file import whole_file
from hardwood.cli.failures import CommandError, naming_the_file
from hardwood.errors import MissingExtraError

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree
    from hardwood.text.report import PlottedReport


def check_drawable(path: Path) -> None:
    """Raise unless matplotlib is there and knows the format that the file's name asks for."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise MissingExtraError("matplotlib", extra="plot", purpose="Drawing a tree") from error
    known = FigureCanvasAgg.get_supported_filetypes()
    if _picture_format(path) not in known:
        raise CommandError(f"{path}: unknown kind of picture; use {', '.join(sorted(known))}.")


def draw(tree: ObliqueTree, path: Path, max_terms: int = 4) -> None:
    """Write a picture of ``tree``, all of it or nothing; its format is that of the file's name."""
    _without_window()
    _write(tree.plot(max_terms=max_terms).get_figure(), path)


def draw_report(report: PlottedReport, path: Path) -> None:
    """Write the picture of a report in the same way."""
    _without_window()
    _write(report.plot(), path)


def _without_window() -> None:
    import matplotlib

    matplotlib.use("agg")  # the machine may have no screen


def _write(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    with naming_the_file(path), whole_file(path) as stream:
        figure.savefig(stream, format=_picture_format(path), dpi=150, bbox_inches="tight")
    pyplot.close(figure)


def _picture_format(path: Path) -> str:
    return path.suffix.lstrip(".").lower() or "png"
