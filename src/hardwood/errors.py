"""Errors and warnings. Each message says what was found, what was expected, and what to try."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = [
    "FitInterruptedWarning",
    "HardwoodError",
    "ModelFileError",
    "ModelKindError",
    "TableError",
    "TableWarning",
    "UnknownLevelWarning",
]


class HardwoodError(Exception):
    """Base class of all errors that hardwood raises."""


class TableError(HardwoodError, ValueError):
    """A table that cannot be used; the message names the column."""


class TableTypeError(TableError, TypeError):
    """A table with values that are neither numbers, text, dates nor missing."""


class ModelKindError(HardwoodError, TypeError):
    """A model of a kind that cannot do what was asked; the message says which kind can."""


class ModelFileError(HardwoodError, ValueError):
    """A model file that is damaged, malicious, from a newer version, or not a model."""


class ExportError(HardwoodError, ValueError):
    """A model that cannot be exported in this form, or an export that differs from the model."""


class TokenError(HardwoodError, ValueError):
    """A token without an open decision: unknown, expired, or already learned from."""


class NotStartedError(HardwoodError, ValueError, AttributeError):
    """A learner that has seen no context yet, and therefore does not know its features."""


class MissingExtraError(HardwoodError, ImportError):
    """A missing optional package; the message has the install command."""

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed. "
            f"In a checkout of hardwood, install it with:  pip install '.[{extra}]'  "
            "(hardwood is not on PyPI yet)"
        )


class FitInterruptedWarning(UserWarning):
    """Learning was interrupted; the best tree so far is kept."""


class TableWarning(UserWarning):
    """A warning about a table, which can still be used."""


class UnknownLevelWarning(TableWarning):
    """A table has levels that the model did not learn."""


def warn_about_table(message: str, category: type[TableWarning] = TableWarning) -> None:
    """Warn of a table; the warning points to the line of the caller of this package."""
    warnings.warn(message, category, stacklevel=_level_of_caller())


@contextmanager
def folds_lack_levels() -> Iterator[None]:
    """Ignore unknown levels while folds of one table are scored: rare levels are in few of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownLevelWarning)
        yield


def _level_of_caller() -> int:
    folder = str(Path(__file__).parent) + os.sep
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(folder):
        frame, level = frame.f_back, level + 1
    return level
