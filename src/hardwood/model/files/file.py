"""The ``.hardwood`` file of a model: a `container` of its arrays and header."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hardwood.atomic_file import checked_target, whole_file
from hardwood.model.base import Model
from hardwood.model.files import arrays as concatenated
from hardwood.model.files import container
from hardwood.model.files.container import Kinds
from hardwood.model.files.header import (
    ENSEMBLE,
    FOREST,
    LATENT,
    POLICY,
    TREE,
    arrays_of,
    build,
    check_header,
    format_of,
    header,
    kind_of,
)
from hardwood.model.kinds.forest import ObliqueForest

ARRAYS = {"weights": ("F64", 2), "bias": ("F64", 1), "children": ("I32", 2), "values": ("F64", 2)}
OPTIONAL_ARRAYS = {"counts": ("F64", 1)}
OPTIONAL_ARRAYS_2 = OPTIONAL_ARRAYS | {"leaf_weights": ("F64", 3)}
FOREST_ARRAYS = ARRAYS | {"n_splits": ("I32", 1)}
ENSEMBLE_ARRAYS = {"weights": ("F64", 3), "bias": ("F64", 2), "values": ("F64", 3)}
POLICY_ARRAYS = {
    "parents": ("I32", 1),
    "weights": ("F64", 2),
    "bias": ("F64", 1),
    "scores": ("F64", 2),
}
LATENT_ARRAYS = {
    "nodes": ("I32", 1),
    "activity": ("F64", 1),
    "weights": ("F64", 2),
    "bias": ("F64", 1),
    "head_weights": ("F64", 1),
    "head_bias": ("F64", 1),
}
# What a file holds, by format and kind: arrays that must be there, and those that may be.
CONTENTS: dict[tuple[int, str], tuple[Kinds, Kinds]] = {
    (1, TREE): (ARRAYS, OPTIONAL_ARRAYS),
    (2, TREE): (ARRAYS, OPTIONAL_ARRAYS_2),
    (2, FOREST): (FOREST_ARRAYS, OPTIONAL_ARRAYS_2),
    (3, FOREST): (FOREST_ARRAYS, OPTIONAL_ARRAYS_2),
    (3, ENSEMBLE): (ENSEMBLE_ARRAYS, {"counts": ("F64", 2)}),
    (4, POLICY): (POLICY_ARRAYS, OPTIONAL_ARRAYS),
    (4, LATENT): (LATENT_ARRAYS, {}),
}


def dumps(model: Model) -> bytes:
    """Return the bytes of a model file. Equal models give equal bytes."""
    return container.pack(header(model), _arrays(model))


def _arrays(model: Model) -> dict[str, np.ndarray]:
    if isinstance(model, ObliqueForest):
        return concatenated.concatenate(model.trees)
    names = arrays_of(format_of(model), kind_of(model))
    arrays = {name: getattr(model, name) for name in names}
    return {name: array for name, array in arrays.items() if array is not None}


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
    return container.load(path, _contents, build, reads_bytes="hardwood.model.loads")


def loads(content: bytes | bytearray | memoryview) -> Model:
    """Read the bytes of a model file; raises ``ModelFileError`` as :func:`load` does."""
    return container.loads(content, _contents, build)


def _contents(head: Any) -> tuple[Kinds, Kinds]:
    check_header(head)
    return CONTENTS[head["format"], head["kind"]]
