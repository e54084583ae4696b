"""Output of the commands: text on stdout, or one JSON object with `--json`.

Progress, notes and errors go to stderr, so that stdout can be piped. Drawings are files.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from hardwood.cli.errors import CommandError, naming_the_file
from hardwood.errors import FitInterruptedWarning, MissingExtraError, TableWarning
from hardwood.text.blocks import TextTable
from hardwood.text.numbers import format_number, plural
from hardwood.text.report import picture_format, to_json_value, write_figure
from hardwood.text.terms import MAX_TERMS

if TYPE_CHECKING:
    from hardwood.cli.fit import Dataset
    from hardwood.model.base import Model
    from hardwood.search.fit_report import FitReport
    from hardwood.text.report import PlottedReport


def print_json(payload: dict[str, Any]) -> None:
    """Print ``payload`` as JSON; NaN and infinity, which JSON lacks, become null."""
    print_text(json.dumps(to_json_value(payload), indent=2, ensure_ascii=False, allow_nan=False))


def print_text(text: str = "") -> None:
    """Print text without markup or wrapping; characters that the stream lacks are escaped."""
    print(text, flush=True)  # typer's echo ignores the encoding of the stream


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first column is text and whose other columns are numbers."""
    print_text(TextTable.of(title, header, rows).to_text() + "\n")


class Notes:
    """Warnings of the package during a command: collected, and printed to stderr, each once.

    Parameters
    ----------
    strict
        Whether a warning about a table is an error.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._on_table: Literal["error", "always"] = "error" if strict else "always"
        self.messages: list[str] = []
        self.was_interrupted = False

    def add(self, message: str) -> None:
        """Collect a note and print it, unless it was printed already."""
        if message in self.messages:
            return
        self.messages.append(message)
        typer.echo(f"note: {message}", err=True)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Turn the package's own warnings into notes; pass on other warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FitInterruptedWarning)
            warnings.simplefilter(self._on_table, TableWarning)
            try:
                yield
            except TableWarning as raised:
                raise CommandError(f"--strict: {raised}.") from None
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


def check_drawable(path: Path) -> None:
    """Raise an error unless matplotlib is installed and can write the format of the file."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise MissingExtraError("matplotlib", extra="plot", purpose="Drawing a tree") from error
    known = FigureCanvasAgg.get_supported_filetypes()
    if picture_format(path) not in known:
        raise CommandError(f"{path}: unknown image format; use {', '.join(sorted(known))}.")


def draw(tree: Any, path: Path, max_terms: int = MAX_TERMS) -> None:
    """Draw a model that has `plot` to a file, completely or not at all."""
    _write(lambda: tree.plot(max_terms=max_terms).get_figure(), path)


def draw_report(report: PlottedReport, path: Path) -> None:
    """Draw a report in the same way."""
    _write(report.plot, path)


def print_report(
    found: PlottedReport,
    shown: str,
    of_table: dict[str, Any],
    notes: Notes,
    *,
    as_json: bool,
    plot: Path | None,
    output: Path | None = None,
) -> None:
    """Write a report's files and print it: as ``shown``, or as JSON with ``of_table``."""
    if output is not None:
        with naming_the_file(output):
            found.save(output)
    if plot is not None:
        draw_report(found, plot)
    if as_json:
        print_json(found.to_dict() | of_table | {"picture": plot, "notes": notes.messages})
        return
    print_text(shown)
    for word, path in (("Wrote", output), ("Drew", plot)):
        if path is not None:
            print_text(f"{word} {path}")


def _write(draw_figure: Callable[[], Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")  # the machine may have no screen
    from matplotlib import pyplot

    figure = draw_figure()
    with naming_the_file(path):
        write_figure(figure, path)
    pyplot.close(figure)


def note_no_split(model: Model, notes: Notes, advice: str = "") -> None:
    """Add a note if no tree of a model has a split."""
    if model.n_splits:
        return
    has_slopes = any(
        tree.leaf_weights is not None and tree.leaf_weights.any() for tree in model.hard_trees
    )
    what = "the model is a linear function" if has_slopes else "all predictions are the same"
    notes.add(f"the model has no splits: {what}{advice}")


def print_dataset(data: Dataset) -> None:
    """Print what will be learned from which rows."""
    target = data.target
    print_size(data)
    if target.n_missing:
        which = f"'{target.name}'" if len(target.names) == 1 else f"one of '{target.name}'"
        print_text(f"Left out: {plural(target.n_missing, 'row')} in which {which} is missing")
    print_task(data)
    n_train, n_test = data.train.size, data.test.size
    held_out = f"{plural(n_test, 'row')} held out for the test score" if n_test else "no test rows"
    print_text(f"Learning from {plural(n_train, 'row')}; {held_out}")


def print_size(data: Dataset) -> None:
    """Print the size of a table."""
    n_rows, n_features = data.features.num_rows, data.features.num_columns
    print_text(f"{data.request.path}: {plural(n_rows, 'row')}, {plural(n_features, 'feature')}")


def print_task(data: Dataset) -> None:
    """Print the task, and the reason for it."""
    target = data.target
    print_text(f"Task: {target.task} of '{target.name}', because {target.reason}")


def print_search(found: FitReport) -> None:
    """Print which candidate is the best tree, and why the search ended."""
    print_text(f"{found.title}, {found.metric} {format_number(found.score)} in validation")
    print_text(" ".join(words for words in (found.teacher, found.ending, found.finish) if words))
    if found.held_out is not None:
        print_text("\n".join(found.held_out.lines))
