"""The ``.hardwood`` file of a model: a `container` of its arrays and header."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hardwood.atomic_file import checked_target, whole_file
from hardwood.errors import ModelFileError
from hardwood.model.base import Model
from hardwood.model.files import container
from hardwood.model.files.arrays import arrays_in, contents, separate
from hardwood.model.files.container import Kinds
from hardwood.model.files.header import FOREST, build, check_header, header
from hardwood.model.kinds.forest import ObliqueForest

# What the header says of each tree of a forest: which of the arrays that are optional it has.
_SHARES = {"counts": "counts", "linear_leaves": "leaf_weights"}


def dumps(model: Model) -> bytes:
    """Return the bytes of a model file. Equal models give equal bytes."""
    head = header(model)
    if isinstance(model, ObliqueForest):
        head["trees"] = [
            {"link": tree.link, "record": tree.record}
            | {key: getattr(tree, name) is not None for key, name in _SHARES.items()}
            for tree in model.trees
        ]
    return container.pack(head, arrays_in(model))


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to ``path``, in whole or not at all: see `hardwood.atomic_file.whole_file`."""
    path = checked_target(
        path,
        what="a model",
        example="model.hardwood",
        instead="write hardwood.model.dumps(model) there",
    )
    content = dumps(model)  # before the file: a model that cannot be written leaves no trace
    with whole_file(path) as stream:
        stream.write(content)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model file, of an `ObliqueTree` or any other kind of model.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If it is no model, damaged, hostile, or from a newer hardwood; the message says which.
    """
    return container.load(path, _contents, _built, reads_bytes="hardwood.model.loads")


def loads(content: bytes | bytearray | memoryview) -> Model:
    """Read the bytes of a model file; raises ``ModelFileError`` as :func:`load` does."""
    return container.loads(content, _contents, _built)


def _contents(head: Any) -> tuple[Kinds, Kinds]:
    check_header(head)
    return contents(head["format"], head["kind"])


def _built(head: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Model:
    try:
        parts = [arrays] if head["kind"] != FOREST else separate(arrays, _shares(head["trees"]))
        return build(head, parts.__getitem__)
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"{error}") from error


def _shares(members: Sequence[Mapping[str, Any]]) -> dict[str, list[bool]]:
    """Read which of the arrays that are optional each tree of a forest has."""
    for key in _SHARES:
        for member in members:
            if type(member[key]) is not bool:
                raise ValueError(f"{key} of a tree must be true or false, not {member[key]!r:.80}")
    return {name: [member[key] for member in members] for key, name in _SHARES.items()}
