"""JSON with nothing left to chance: no duplicate keys, NaN, broken Unicode or deep recursion."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def write(value: Any) -> str:
    """Write ``value`` as compact JSON with sorted keys, such that :func:`parse` reads it back.

    Raises
    ------
    ValueError
        If JSON cannot hold it exactly: NaN, infinity, unknown types, keys that are not text.
    """
    try:
        text = json.dumps(value, allow_nan=False, sort_keys=True, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            "JSON holds text, finite numbers, bools, None, lists and dicts with text keys only: "
            f"{error}"
        ) from error
    parse(text)  # finds keys like 1 and "1" that become the same text, and lone surrogates
    return text


def parse(text: str | bytes) -> Any:
    """Read JSON strictly.

    Raises
    ------
    ValueError
        With what is wrong, whatever the input: this function raises nothing else.
    """
    try:
        if isinstance(text, bytes | bytearray | memoryview):
            text = bytes(text).decode("utf-8")
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
        if "\\u" in text:  # only an escape can smuggle in half of a surrogate pair
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        else:
            text.encode("utf-8")
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"the JSON is not UTF-8 text ({error.reason})") from error
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the JSON holds text that is not valid Unicode ({error.reason})"
        ) from error
    except json.JSONDecodeError as error:
        raise ValueError(f"the JSON is broken ({error})") from error
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the JSON has the key {key!r:.80} twice")
        result[key] = value
    return result


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"the JSON holds {name}, which is not a number")
