"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_STEM_LENGTH = 32  # of the target's name in the temporary one: 128 bytes at most, of 255
_SUFFIX = ".part"
_STALE_SECONDS = 24 * 3600.0


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a stream whose content becomes the file ``path`` when the context ends well.

    The bytes go to a temporary file in the same folder, to the disk, and only then under the name.
    After an error (a full disk, Ctrl-C) the old file is as it was and no part of a new one is left.
    A process that is killed leaves its part, which the next success a day later removes.
    """
    target = Path(os.path.realpath(path))  # a link stays a link, to the new file
    prefix = _part_prefix(target)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=prefix, suffix=_SUFFIX)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp's files are for their owner alone
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _remove_stale_parts(target.parent, prefix)


def _part_prefix(target: Path) -> str:
    """Return how the temporary files of ``target``, and of no other file, begin."""
    digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]
    return f".{target.name[:_STEM_LENGTH]}.{digest}."


def _remove_stale_parts(folder: Path, prefix: str) -> None:
    # The file itself is written: a leftover that cannot be listed or removed is no failure.
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            if entry.name.startswith(prefix) and entry.name.endswith(_SUFFIX):
                age = time.time() - entry.lstat().st_mtime
                if age > _STALE_SECONDS:
                    entry.unlink()


def _umask() -> int:
    mask = os.umask(0)  # the only way to read it is to set it
    os.umask(mask)
    return mask
