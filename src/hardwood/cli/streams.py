"""Standard streams that can be written to, whatever the command was started with."""

from __future__ import annotations

import codecs
import io
import os
import sys

_ESCAPE = "hardwood.escape"


def open_standard_streams() -> None:
    """Replace closed standard streams by the null device, and let narrow encodings escape.

    A stream may be closed (``>&-``, a service without a terminal) or its encoding may lack a
    character of a name (``PYTHONIOENCODING=ascii``): no reason to fail, least of all after
    learning.
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
    """Open the null device as ``descriptor``; otherwise the next file would be given its number."""
    null = os.open(os.devnull, os.O_RDWR)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)


def _escape(error: UnicodeError) -> tuple[str, int]:
    r"""Write what an encoding lacks as JSON does (``\u00e9``), so that JSON stays JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    units = lacking.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4)), error.end
