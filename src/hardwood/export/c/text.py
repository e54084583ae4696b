"""C as text: literals and tables, and tables read back from the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

_LONGEST_LITERAL = 4000  # C99 promises 4095 characters
_WIDTH = 96
_INTEGERS = ("int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t")
_DTYPES: dict[str, Any] = {
    "int8_t": np.int8,
    "uint8_t": np.uint8,
    "int16_t": np.int16,
    "uint16_t": np.uint16,
    "int32_t": np.int32,
    "float": np.float32,
    "double": np.float64,
}
_TABLE = re.compile(r"static const (\w+) (\w+)\[\d+\] = \{([^}]*)\};")


def double_literal(value: float) -> str:
    """Write a double so that a compiler reads back the same bits."""
    text = repr(float(value))
    return text if "." in text or "e" in text else text + ".0"


def float_literal(value: float) -> str:
    """Write a float32 with nine significant digits, which a compiler reads back the same."""
    text = f"{float(value):.9g}"
    return (text if "." in text or "e" in text else text + ".0") + "f"


def string_literal(text: str) -> str:
    """Write text, in UTF-8, as an initializer of a char array."""
    encoded = text.encode()
    if len(encoded) > _LONGEST_LITERAL:
        return "{" + ", ".join(f"'{_character(byte)}'" for byte in encoded) + ", '\\0'}"
    return '"' + "".join(map(_character, encoded)) + '"'


def _character(byte: int) -> str:
    # Three octal digits have a fixed length; a hexadecimal escape could include the next digit.
    plain = chr(byte)
    return plain if byte < 128 and (plain.isalnum() or plain in " _.,:;-+=") else f"\\{byte:03o}"


def smallest_integer(values: np.ndarray, *, at_least: str = "int8_t") -> str:
    """Return the smallest integer type that holds all values."""
    for kind in _INTEGERS[_INTEGERS.index(at_least) :]:
        limits = np.iinfo(_DTYPES[kind])
        if values.size == 0 or (values.min() >= limits.min and values.max() <= limits.max):
            return kind
    raise OverflowError("a table holds integers beyond 32 bits")


def n_bytes(kind: str, values: np.ndarray) -> int:
    """Return the size of a table."""
    return int(np.dtype(_DTYPES[kind]).itemsize * values.size)


def table(kind: str, name: str, values: np.ndarray) -> str:
    """Write a constant table of numbers, row after row."""
    flat = np.asarray(values).ravel() + 0  # without -0.0
    if kind == "float":
        items = [float_literal(value) for value in flat.tolist()]
    elif kind == "double":
        items = [double_literal(value) for value in flat.tolist()]
    else:
        items = [str(int(value)) for value in flat.tolist()]
    return f"static const {kind} {name}[{len(items)}] = {{{_wrapped(items)}}};\n"


def strings(name: str, texts: Sequence[str]) -> str:
    """Write a constant table of strings."""
    parts = []
    for i, text in enumerate(texts):
        parts.append(f"static const char {name}_{i}[] = {string_literal(text)};\n")
    pointers = _wrapped([f"{name}_{i}" for i in range(len(texts))])
    parts.append(f"static const char *const {name}[{len(texts)}] = {{{pointers}}};\n")
    return "".join(parts)


def _wrapped(items: Sequence[str]) -> str:
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) + 2 > _WIDTH:
            lines.append(line)
            line = ""
        line += (", " if line else "") + item
    lines.append(line)
    if len(lines) == 1:
        return lines[0]
    return "\n    " + ",\n    ".join(lines)


def read_tables(text: str) -> dict[str, np.ndarray]:
    """Read all tables of numbers back from a header, by name."""
    return {
        name: np.array([item.strip().rstrip("f") for item in items.split(",")], _DTYPES[kind])
        if kind in ("float", "double")
        else np.array([int(item) for item in items.split(",")], _DTYPES[kind])
        for kind, name, items in _TABLE.findall(text)
        if kind in _DTYPES
    }
