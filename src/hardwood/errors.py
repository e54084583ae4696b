"""What can go wrong, by name. Every message says what was found, what was expected, what to try."""

from __future__ import annotations

__all__ = [
    "FitInterruptedWarning",
    "HardwoodError",
    "ModelFileError",
    "TableError",
    "TableWarning",
]


class HardwoodError(Exception):
    """Base class of every error raised on purpose by hardwood."""


class TableError(HardwoodError, ValueError):
    """A table that cannot be used as it is; the message names the column."""


class TableTypeError(TableError, TypeError):
    """A table holding values of a type that is neither number, text, date nor missing."""


class ModelFileError(HardwoodError, ValueError):
    """A model file that is damaged, hostile, from a newer version, or not a model at all."""


class ExportError(HardwoodError, ValueError):
    """A model cannot be exported in this form, or what was written differs from the model."""


class TokenError(HardwoodError, ValueError):
    """A token of no open decision: unknown, expired, or learned from already."""


class NotStartedError(HardwoodError, ValueError, AttributeError):
    """A learner was asked before it saw its first context, and so does not know its features."""


class MissingExtraError(HardwoodError, ImportError):
    """An optional package is needed and absent; the message carries the install line."""

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed. "
            f"In a checkout of hardwood, install it with:  pip install '.[{extra}]'  "
            "(hardwood is not on PyPI yet)"
        )


class FitInterruptedWarning(UserWarning):
    """Learning was interrupted; the best tree so far was kept."""


class TableWarning(UserWarning):
    """Something about a table that is worth knowing and does not stop the work."""
