"""What an export returns: its text or bytes, which know how they were checked."""

from __future__ import annotations

import os

from hardwood.atomic_file import checked_target, whole_file
from hardwood.export.verify import Check

Path = str | os.PathLike[str]


class ExportedText(str):
    """Text of an export; ``check`` says what it was compared on."""

    check: Check


class ExportedBytes(bytes):
    """Bytes of an export; ``check`` says what they were compared on."""

    check: Check


def check_path(path: Path | None, example: str) -> None:
    """Raise an OSError where no file can be written; called before the work starts."""
    if path is not None:
        checked_target(path, what="an export", example=example)


def exported_text(text: str, check: Check, path: Path | None) -> ExportedText:
    """Return checked text, and write it where a path is given, in whole or not at all."""
    result = ExportedText(text)
    result.check = check
    _write(text.encode(), path)
    return result


def exported_bytes(content: bytes, check: Check, path: Path | None) -> ExportedBytes:
    """Return checked bytes, and write them where a path is given, in whole or not at all."""
    result = ExportedBytes(content)
    result.check = check
    _write(content, path)
    return result


def _write(content: bytes, path: Path | None) -> None:
    if path is not None:
        with whole_file(path) as stream:
            stream.write(content)
