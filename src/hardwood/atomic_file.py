"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_STEM_LENGTH = 32  # of the target's name in the temporary one: 128 bytes at most, of 255
_SUFFIX = ".part"
_STALE_SECONDS = 24 * 3600.0
_open_parts: set[Path] = set()  # of files that are being written


def checked_target(
    path: str | os.PathLike[str],
    *,
    what: str,
    example: str,
    instead: str = "write what is returned there",
) -> Path:
    """Return what a path leads to if it can become a file; call it before long work.

    Parameters
    ----------
    path
        Where to write; the folder must exist.
    what
        What is written, as in "cannot write ``a model`` to".
    example
        A file name to suggest.
    instead
        What to do where it is a device or pipe, which a whole file would replace.

    Raises
    ------
    OSError
        FileNotFoundError, IsADirectoryError or FileExistsError, with what to do about it.
    """
    if not os.fspath(path):
        raise FileNotFoundError(
            f"cannot write {what} to '': the name is empty. Give a file name, such as {example!r}"
        )
    target = Path(os.path.realpath(path))
    cannot = f"cannot write {what} to {str(target)!r}"
    if target.is_dir():
        raise IsADirectoryError(
            f"{cannot}: it is a directory. "
            f"Give a file name in it, such as {str(target / example)!r}"
        )
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{cannot}: it is a device or pipe. Give a file name, or {instead}")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{cannot}: the directory {str(target.parent)!r} does not exist. Make it first"
        )
    return target


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a stream whose content becomes the file ``path`` when the context ends well.

    The bytes go to a temporary file in the same folder, to the disk, and only then under the name:
    a crash, a full disk or a second writer leaves the old file or a whole new one, never a mixture.
    A link stays a link, to the new file. A file that is replaced keeps its permissions; a new one
    has those that ``open`` would give it.

    After an error (a full disk, Ctrl-C) no part of a new file is left. A process that is killed
    leaves its part, which the next success a day later removes: by then nobody writes it any more,
    and its name belongs to this file alone.
    """
    target = Path(os.path.realpath(path))
    prefix = _part_prefix(target)
    part = target.with_name(f"{prefix}{secrets.token_hex(8)}{_SUFFIX}")
    # Not tempfile: its files are private to the user, and the umask that others follow can be read
    # only by setting it, for all threads.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    _open_parts.add(part)
    try:
        handle = os.open(part, flags, 0o666)
    except OSError as error:
        _open_parts.discard(part)
        error.filename = str(target)  # the name that was asked for
        raise
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(part, stat.S_IMODE(target.stat().st_mode))
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    finally:
        _open_parts.discard(part)
    _sync_directory(target.parent)
    _remove_stale_parts(target.parent, prefix)


def remove_open_parts() -> None:
    """Remove the temporary files of what is being written, before the process ends at once."""
    for part in list(_open_parts):
        part.unlink(missing_ok=True)


def _part_prefix(target: Path) -> str:
    """Return how the temporary files of ``target``, and of no other file, begin."""
    digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]
    return f".{target.name[:_STEM_LENGTH]}.{digest}."


def _sync_directory(directory: Path) -> None:
    """Make the new name durable, where the system can open directories."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_stale_parts(folder: Path, prefix: str) -> None:
    # The file itself is written: a leftover that cannot be listed or removed is no failure.
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            if entry.name.startswith(prefix) and entry.name.endswith(_SUFFIX):
                age = time.time() - entry.lstat().st_mtime
                if age > _STALE_SECONDS:
                    entry.unlink()
