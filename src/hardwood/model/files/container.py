"""Arrays and a JSON header in one file: safetensors, with the header in its metadata.

Layout (https://github.com/huggingface/safetensors): 8 bytes with the length of a JSON text; that
text, which gives the dtype, shape and offsets of each array; the arrays, without gaps. Nothing in
the file is ever executed. The reader compares each size with the size of the file before it
allocates memory, so it needs at most a small multiple of the file's size. The last array,
``sha256``, is a digest of everything before it, which detects any flipped bit. It is not a
signature: whoever can write the file can write the digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from hardwood.errors import ModelFileError
from hardwood.model.files import strict_json
from hardwood.text.numbers import plural

METADATA_KEY = "hardwood"
MAX_HEADER_BYTES = 64 * 2**20  # Python objects made from JSON are many times its size
DIGEST = "sha256"
DIGEST_BYTES = 32
DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"),
    "U32": np.dtype("<u4"),
    "U64": np.dtype("<u8"),
}

Kinds = Mapping[str, tuple[str, int]]
"""Arrays by their names: dtype and number of dimensions."""

Contents = Callable[[Any], tuple[Kinds, Kinds]]
"""Checks a header and returns the arrays that are required and those that are optional."""

_Built = TypeVar("_Built")
Build = Callable[[Any, dict[str, np.ndarray]], _Built]
"""Builds what the file holds from a checked header and arrays; raises ``ModelFileError``."""


def pack(header: Any, arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the bytes of a file. Equal contents give equal bytes."""
    from safetensors.numpy import save as to_safetensors

    text = strict_json.write(header)
    if 2 * len(text.encode()) > MAX_HEADER_BYTES:  # it is escaped once more inside the file
        raise ValueError(
            f"names, levels and records take {len(text)} characters as JSON, too many for a model "
            f"file (at most {MAX_HEADER_BYTES // 2}); shorten the records or the levels"
        )
    digest = np.zeros(DIGEST_BYTES, dtype=np.uint8)  # bytes come last in safetensors
    content = bytes(to_safetensors({**arrays, DIGEST: digest}, {METADATA_KEY: text}))
    return content[:-DIGEST_BYTES] + hashlib.sha256(content[:-DIGEST_BYTES]).digest()


def load(
    path: str | os.PathLike[str], contents: Contents, build: Build[_Built], *, reads_bytes: str
) -> _Built:
    """Read a file: ``contents`` checks its header, ``build`` makes the result.

    Parameters
    ----------
    reads_bytes
        The function that the error for a pipe or device suggests.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If the file is damaged, hostile, or holds something else; the message says which.
    """
    path = Path(path)
    kind = path.stat().st_mode
    with _naming(str(path)):
        if stat.S_ISDIR(kind):
            raise ModelFileError("it is a directory. Give the model file inside it")
        if not stat.S_ISREG(kind):
            raise ModelFileError(f"it is not a regular file. Read its bytes and use {reads_bytes}")
        with open(path, "rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size, contents, build)


def loads(
    content: bytes | bytearray | memoryview, contents: Contents, build: Build[_Built]
) -> _Built:
    """Read the bytes of a file; raises ``ModelFileError`` as :func:`load` does."""
    with _naming("these bytes"):
        return _read(io.BytesIO(content), len(content), contents, build)


@contextlib.contextmanager
def _naming(source: str) -> Iterator[None]:
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"cannot load a model from {source}: {error}") from error.__cause__


def _read(file: BinaryIO, size: int, contents: Contents, build: Build[_Built]) -> _Built:
    places, text, start = _read_header(file, size)
    try:
        head = strict_json.parse(text)
    except ValueError as error:
        raise ModelFileError(f"its 'hardwood' entry cannot be read: {error}") from error
    needed, optional = contents(head)  # before the arrays: a newer format may have other arrays
    _check_places(places, size - start, needed, optional)
    file.seek(0)
    content = file.read(size)
    if len(content) != size:
        raise ModelFileError("it became shorter while it was read. Try again")
    data = memoryview(content)[start:]
    arrays = {name: _array(place, data) for name, place in places.items() if name != DIGEST}
    built = build(head, arrays)
    # Last, because the other errors say more precisely what is wrong.
    if hashlib.sha256(content[:-DIGEST_BYTES]).digest() != content[-DIGEST_BYTES:]:
        raise ModelFileError(
            "it does not match its own checksum: it was damaged or changed after it was written. "
            "Copy or save it again"
        )
    return built


def _read_header(file: BinaryIO, size: int) -> tuple[dict[str, Any], str, int]:
    """Return places of the arrays, the text of the hardwood header, and where the arrays start."""
    if size == 0:
        raise ModelFileError("it is empty. Save the model again")
    length = int.from_bytes(file.read(8), "little")
    if size < 8:
        raise ModelFileError(
            f"it is cut short: it has only {plural(size, 'byte')}. Copy or save it again"
        )
    if not 2 <= length <= MAX_HEADER_BYTES:
        raise ModelFileError(
            "it does not start as a model file does. Was it written by hardwood, with save(path)?"
        )
    if length > size - 8:
        raise ModelFileError(
            "it is cut short or not a model file: its header should have "
            f"{plural(length, 'byte')}, but only "
            f"{size - 8} are there. Copy or save it again"
        )
    try:
        places = strict_json.parse(file.read(length))
    except ValueError as error:
        raise ModelFileError(f"its header cannot be read: {error}") from error
    metadata = places.pop("__metadata__", None) if isinstance(places, dict) else None
    text = metadata.get(METADATA_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise ModelFileError(
            "it is not a hardwood model: the header has no 'hardwood' entry. Other safetensors "
            "files cannot be loaded"
        )
    return places, text, 8 + length


def _check_places(places: dict[str, Any], size: int, needed: Kinds, optional: Kinds) -> None:
    """Check names, dtypes and shapes, and that the arrays fill the ``size`` bytes exactly."""
    needed = {**needed, DIGEST: ("U8", 1)}
    missing = sorted(needed.keys() - places.keys())
    unknown = sorted(places.keys() - needed.keys() - optional.keys())
    if missing or unknown:
        raise ModelFileError(f"it lacks the arrays {missing}, has unknown arrays {unknown!r:.200}")
    for name, place in places.items():
        _check_place(name, place, *{**optional, **needed}[name])
    end = 0
    for name, place in sorted(places.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = place["data_offsets"]
        if first != end:
            raise ModelFileError(
                f"array {name!r} starts at byte {first!r:.40}, expected {end!r:.40}"
            )
        end = last
    if places[DIGEST]["data_offsets"] != [size - DIGEST_BYTES, size] and end == size:
        raise ModelFileError(f"its last array must be {DIGEST!r}, of {DIGEST_BYTES} bytes")
    if end != size:
        raise ModelFileError(
            f"its arrays should take {end!r:.40} bytes, but {size} are there: it is cut short or "
            "has something appended. Copy or save it again"
        )


def _check_place(name: str, place: Any, dtype: str, ndim: int) -> None:
    if not isinstance(place, dict) or place.keys() != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(f"array {name!r} is not described by dtype, shape and data_offsets")
    if place["dtype"] != dtype:
        raise ModelFileError(f"array {name!r} has dtype {place['dtype']!r:.40}, expected {dtype!r}")
    shape, offsets = place["shape"], place["data_offsets"]
    if not _are_sizes(shape, ndim):
        raise ModelFileError(
            f"array {name!r} has shape {shape!r:.80}, expected {plural(ndim, 'size')}"
        )
    if not _are_sizes(offsets, 2):
        raise ModelFileError(f"array {name!r} has data_offsets {offsets!r:.80}, expected two sizes")
    n_bytes = math.prod(shape) * DTYPES[dtype].itemsize  # Python integers do not overflow
    if offsets[1] - offsets[0] != n_bytes:
        raise ModelFileError(
            f"array {name!r} of shape {shape!r:.80} takes {n_bytes!r:.40} bytes, but its "
            f"data_offsets are {offsets!r:.80}"
        )


def _are_sizes(items: Any, length: int) -> bool:
    return (
        type(items) is list
        and len(items) == length
        and all(type(item) is int and 0 <= item < 2**63 for item in items)
    )


def _array(place: dict[str, Any], content: memoryview) -> np.ndarray:
    first, last = place["data_offsets"]
    dtype = DTYPES[place["dtype"]]
    flat = np.frombuffer(content[first:last], dtype=dtype) if last > first else np.empty(0, dtype)
    try:
        # A file by another writer may have a header that is not padded; the engine needs alignment.
        array: np.ndarray = np.require(flat.reshape(place["shape"]), requirements="A")
        return array
    except ValueError as error:  # a shape like (0, 2**62), which no array can have
        raise ModelFileError(f"shape {place['shape']} is impossible ({error})") from error
