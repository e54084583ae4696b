"""The result of an export: its text or bytes, with the check that it passed."""

from __future__ import annotations

import os
from typing import TypeVar

from hardwood.atomic_file import checked_target, whole_file
from hardwood.export.verify import Check

Path = str | os.PathLike[str]


class ExportedText(str):
    """Text of an export; ``check`` says how it was checked."""

    check: Check


class ExportedBytes(bytes):
    """Bytes of an export; ``check`` says how they were checked."""

    check: Check


Exported = TypeVar("Exported", ExportedText, ExportedBytes)


def check_path(path: Path | None, example: str) -> None:
    """Raise an OSError if the file cannot be written; called before the work starts."""
    if path is not None:
        checked_target(path, what="an export", example=example)


def exported(content: Exported, check: Check, path: Path | None) -> Exported:
    """Return checked content, and write it atomically if a path is given."""
    content.check = check
    if path is not None:
        with whole_file(path) as stream:
            stream.write(content if isinstance(content, bytes) else content.encode())
    return content
