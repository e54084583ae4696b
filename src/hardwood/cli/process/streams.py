"""Standard streams that are closed, or that cannot encode what they are to print."""

from __future__ import annotations

import codecs
import io
import os
import sys

_ESCAPE = "hardwood.escape"


def open_standard_streams() -> None:
    """Replace closed standard streams by the null device, and escape unencodable characters.

    A stream may be closed (``>&-``, a service without a terminal), or its encoding may lack a
    character of a name (``PYTHONIOENCODING=ascii``). Neither should make a command fail, above all
    not after learning.
    """
    codecs.register_error(_ESCAPE, _escape)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _occupy(descriptor)
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors=_ESCAPE)


def _occupy(descriptor: int) -> None:
    """Open the null device as ``descriptor``, so that no other file gets its number."""
    null = os.open(os.devnull, os.O_RDWR)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)


def _escape(error: UnicodeError) -> tuple[str, int]:
    r"""Escape characters that an encoding lacks as JSON does (``\u00e9``), so JSON stays valid."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    units = lacking.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4)), error.end
