"""Mutations of a model file, from accidental (cuts, bit flips) to hostile (a false header)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from hypothesis import strategies as st

HOSTILE_NUMBERS = st.one_of(
    st.integers(-5, 20),
    st.sampled_from([2**31, -(2**31), 2**32, 2**62, 2**63, 2**64, 10**30, -(10**30), 10**4000]),
    st.floats(),
    st.booleans(),
)
HOSTILE = st.recursive(
    st.one_of(
        st.none(),
        HOSTILE_NUMBERS,
        st.text(max_size=5),
        st.sampled_from(["F64", "F32", "I32", "I64", "U8", "BOOL", "\ud800", "x" * 5000]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def split_file(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return header and data of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def join_file(header: Any, data: bytes) -> bytes:
    """Return a safetensors file from a header, which may be invalid JSON, and data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@st.composite
def truncated(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the file with a piece removed or inserted."""
    first = draw(st.integers(0, len(content)))
    last = draw(st.integers(first, len(content)) | st.just(len(content)))
    return content[:first] + draw(st.binary(max_size=16)) + content[last:]


@st.composite
def flipped(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the file with some bits flipped."""
    spoiled = bytearray(content)
    for bit in draw(st.lists(st.integers(0, 8 * len(content) - 1), min_size=1, max_size=8)):
        spoiled[bit // 8] ^= 1 << bit % 8
    return bytes(spoiled)


@st.composite
def relabelled(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the file with one entry of its header, or of the JSON inside, replaced or removed."""
    header, data = split_file(content)
    document = json.loads(header["__metadata__"]["hardwood"])
    inside = draw(st.booleans())
    target = document if inside else header
    for _ in range(draw(st.integers(0, 4))):  # walk down to some nested entry
        inner = [value for value in _values(target) if isinstance(value, dict | list) and value]
        if not inner:
            break
        target = draw(st.sampled_from(inner))
    keys = list(target) if isinstance(target, dict) else list(range(len(target)))
    key = draw(st.sampled_from(keys))
    if draw(st.booleans()):
        target[key] = draw(HOSTILE)
    elif isinstance(target, dict) and draw(st.booleans()):
        target[draw(st.text(max_size=5))] = target[key]
    else:
        del target[key]
    if inside:
        header["__metadata__"]["hardwood"] = json.dumps(document)
    return join_file(header, data)


@st.composite
def overwritten(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the file with some bytes of its arrays replaced: indices, NaN, infinities, garbage."""
    header, data = split_file(content)
    spoiled = bytearray(data)
    words = [
        (2**31 - 1).to_bytes(4, "little"),
        (-1).to_bytes(4, "little", signed=True),
        (0).to_bytes(4, "little"),
        bytes.fromhex("000000000000f87f"),  # NaN
        bytes.fromhex("000000000000f0ff"),  # -infinity
        bytes.fromhex("ffffffffffffef7f"),  # the largest float
    ]
    for _ in range(draw(st.integers(1, 4))):
        word = draw(st.sampled_from(words) | st.binary(min_size=1, max_size=8))
        at = draw(st.integers(0, len(spoiled) // 4)) * 4
        spoiled[at : at + len(word)] = word
    return join_file(header, bytes(spoiled[: len(data)]))


@st.composite
def forged(draw: st.DrawFn, content: bytes) -> bytes:
    """Like `overwritten`, with the right digest, which an attacker can compute."""
    return signed(draw(overwritten(content)))


def signed(content: bytes) -> bytes:
    """Return the file with the digest of its content."""
    return content[:-32] + hashlib.sha256(content[:-32]).digest()


@st.composite
def resized(draw: st.DrawFn, content: bytes) -> bytes:
    """Return a well-formed file, with rows of one array removed, repeated or reordered.

    Its places and its digest are right: what is left to notice is that the model does not add up.
    """
    header, data = split_file(content)
    metadata = header.pop("__metadata__")
    arrays = {name: data[slice(*place["data_offsets"])] for name, place in header.items()}
    name = draw(st.sampled_from(sorted(set(arrays) - {"sha256"})))
    n_rows = header[name]["shape"][0]
    size = len(arrays[name]) // n_rows if n_rows else 0
    rows = [arrays[name][i * size : (i + 1) * size] for i in range(n_rows)]
    order = draw(st.lists(st.integers(0, n_rows - 1), max_size=n_rows + 3)) if n_rows else []
    arrays[name] = b"".join(rows[i] for i in order)
    header[name]["shape"][0] = len(order)
    joined, end = b"", 0
    for other in sorted(header, key=lambda key: header[key]["data_offsets"]):
        header[other]["data_offsets"] = [end, end + len(arrays[other])]
        joined, end = joined + arrays[other], end + len(arrays[other])
    return signed(join_file({"__metadata__": metadata, **header}, joined))


@st.composite
def nested(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the file with a header nested as deeply as memory allows, closed or not."""
    _, data = split_file(content)
    depth = draw(st.sampled_from([10, 900, 5_000, 200_000]))
    opening, closing = draw(st.sampled_from([(b"[", b"]"), (b'{"a":', b"}")]))
    text = opening * depth + b"1" + closing * draw(st.sampled_from([0, depth]))
    return join_file(text, data)


def _values(target: Any) -> list[Any]:
    return list(target.values()) if isinstance(target, dict) else list(target)
