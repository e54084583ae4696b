"""The ``.hardwood`` file of a model: a `container` with its header and its arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hardwood.atomic_file import checked_target, whole_file
from hardwood.errors import ModelFileError
from hardwood.model.base import Model
from hardwood.model.files import container
from hardwood.model.files.arrays import OPTIONAL_OF_A_MEMBER, arrays_in, contents, separate
from hardwood.model.files.container import Kinds
from hardwood.model.files.header import build, check_header, header, header_of_tree
from hardwood.model.kinds.forest import ObliqueForest


def dumps(model: Model) -> bytes:
    """Return the bytes of a model file. Equal models give equal bytes."""
    head = header(model)
    if isinstance(model, ObliqueForest):
        head["trees"] = [
            header_of_tree(tree)
            | {name: getattr(tree, name) is not None for name in OPTIONAL_OF_A_MEMBER}
            for tree in model.trees
        ]
    return container.pack(head, arrays_in(model))


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to ``path`` completely or not at all: see `hardwood.atomic_file.whole_file`."""
    path = checked_target(
        path,
        what="a model",
        example="model.hardwood",
        instead="write hardwood.model.dumps(model) there",
    )
    content = dumps(
        model
    )  # before the file is opened: a model that cannot be written leaves no trace
    with whole_file(path) as stream:
        stream.write(content)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model file: an `ObliqueTree` or any other kind of model.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If the file is no model, damaged, hostile, or from a newer hardwood; the message says which.
    """
    return container.load(path, _contents, _built, reads_bytes="hardwood.model.loads")


def loads(content: bytes | bytearray | memoryview) -> Model:
    """Read the bytes of a model file; raises ``ModelFileError`` as :func:`load` does."""
    return container.loads(content, _contents, _built)


def _contents(head: Any) -> tuple[Kinds, Kinds]:
    return contents(check_header(head)["kind"])


def _built(head: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Model:
    try:
        is_forest = head["kind"] == "forest"
        parts = separate(arrays, _owned(head["trees"])) if is_forest else [arrays]
        return build(head, parts.__getitem__)
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"{error}") from error


def _owned(trees: Sequence[Mapping[str, Any]]) -> dict[str, list[bool]]:
    """Read from a header which of the optional arrays each tree of a forest has."""
    for name in OPTIONAL_OF_A_MEMBER:
        for tree in trees:
            if type(tree[name]) is not bool:
                raise ValueError(f"{name} of a tree must be true or false, not {tree[name]!r:.80}")
    return {name: [tree[name] for tree in trees] for name in OPTIONAL_OF_A_MEMBER}
