"""Errors and warnings. Each message says what was found, what was expected, and what to try."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

__all__ = [
    "FitInterruptedWarning",
    "HardwoodError",
    "ModelFileError",
    "ModelKindError",
    "TableError",
    "TableWarning",
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


def warn_about_table(message: str) -> None:
    """Warn with a `TableWarning` that points to the line of the caller of this package."""
    warnings.warn(message, TableWarning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    folder = str(Path(__file__).parent) + os.sep
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(folder):
        frame, level = frame.f_back, level + 1
    return level
