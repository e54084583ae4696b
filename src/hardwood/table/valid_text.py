"""Text that files can hold."""

from __future__ import annotations

from hardwood.errors import TableError


def check_text(what: str, text: str) -> str:
    """Return text; refuse half of a surrogate pair, which UTF-8 and thus no file can hold.

    Raises
    ------
    TableError
        It names the text, and ``what`` it is.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TableError(
            f"{what} {text!r:.80} is not valid Unicode: {error.reason} at character {error.start}. "
            "Replace it, for example by text.encode(errors='replace').decode()."
        ) from error
    return text
