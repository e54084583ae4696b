"""What an export returns: its text or bytes, which know how they were checked."""

from __future__ import annotations

import os
from typing import TypeVar

from hardwood.atomic_file import checked_target, whole_file
from hardwood.export.verify import Check

Path = str | os.PathLike[str]


class ExportedText(str):
    """Text of an export; ``check`` says what it was compared on."""

    check: Check


class ExportedBytes(bytes):
    """Bytes of an export; ``check`` says what they were compared on."""

    check: Check


Exported = TypeVar("Exported", ExportedText, ExportedBytes)


def check_path(path: Path | None, example: str) -> None:
    """Raise an OSError where no file can be written; called before the work starts."""
    if path is not None:
        checked_target(path, what="an export", example=example)


def exported(content: Exported, check: Check, path: Path | None) -> Exported:
    """Return what was checked, and write it where a path is given, in whole or not at all."""
    content.check = check
    if path is not None:
        with whole_file(path) as stream:
            stream.write(content if isinstance(content, bytes) else content.encode())
    return content
