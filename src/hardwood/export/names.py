"""Names in the form of other languages: identifiers, literals, comments.

Names come from tables and may contain anything: quotes, line breaks, ``*/``, reserved words, or
nothing. The functions here make them safe to write.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable

_MAX_LENGTH = 40  # of the identifier itself: compilers distinguish at least 63 characters


def identifiers(
    names: Iterable[str], *, prefix: str = "", otherwise: str = "x", taken: Iterable[str] = ()
) -> list[str]:
    """Return distinct identifiers of letters, digits and underscores, one per name.

    Parameters
    ----------
    names
        Any text; accents are dropped, other characters become underscores.
    prefix
        Prefix of each identifier.
    otherwise
        Used, with the position of the name, for a name that has no valid characters, and before a
        leading digit if there is no prefix.
    taken
        Identifiers that must not be used, compared without regard to case.
    """
    used = {name.lower() for name in taken}
    found = []
    for place, name in enumerate(names):
        word = _ascii_word(name) or f"{otherwise}{place}"
        if not prefix and word[0].isdigit():
            word = f"{otherwise}_{word}"
        identifier, n = prefix + word, 1
        while identifier.lower() in used:
            n += 1
            identifier = f"{prefix}{word}_{n}"
        used.add(identifier.lower())
        found.append(identifier)
    return found


def _ascii_word(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name[: 8 * _MAX_LENGTH]).encode("ascii", "ignore")
    word = re.sub(r"[^A-Za-z0-9]+", "_", plain.decode()).strip("_")
    return word[:_MAX_LENGTH].rstrip("_")


def quoted(text: str) -> str:
    """Write text on one line between double quotes, with JSON's escapes; `json.loads` reads it."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def comment(text: str, limit: int = 200) -> str:
    """Write text so that it cannot end a comment in any language: one line of plain ASCII.

    Characters that could be a delimiter or an escape are written as ``u+002a``.
    """
    shown = text if len(text) <= limit else text[: limit - 3] + "..."
    return re.sub(r"[^A-Za-z0-9 _.,:;()<>=+|#@&%!'\"\[\]-]", _code_point, shown).replace(
        "--", "-u+002d"
    )


def _code_point(match: re.Match[str]) -> str:
    return f"u+{ord(match.group()):04x}"
