"""A model as JSON: the text of `to_json`, in full precision, with a documented format."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hardwood.errors import ExportError
from hardwood.export.exported import ExportedText, check_path, exported
from hardwood.export.plan import plan_of
from hardwood.export.probes import Probes
from hardwood.export.verify import Predictions, positions_of, verified


def to_json(
    model: Any, path: str | os.PathLike[str] | None = None, *, data: Any = None
) -> ExportedText:
    """Write a model as JSON text, which ``ObliqueTree.from_json`` or ``ObliqueForest`` reads back.

    Parameters
    ----------
    model
        An ObliqueTree or ObliqueForest.
    path
        File to write; None only returns the text.
    data
        A table to check the export on. By default, rows are simulated from the schema.

    Returns
    -------
    text
        The JSON; ``text.check`` says how it was checked. Its keys are those of the model file.

    Raises
    ------
    ExportError
        If the model that is read back is not the same or predicts differently.
    """
    check_path(path, "model.json")
    plan = plan_of(model)
    text = model.to_json()
    again = type(model).from_json(text)
    if again != model:
        raise ExportError("the export to JSON was not written: it reads back as another model")
    probes = Probes.of(plan, data)
    read = Probes(plan_of(again), probes.matrix, probes.n_typical, probes.are_given)
    if not np.array_equal(read.outputs, probes.outputs):
        raise ExportError("the export to JSON was not written: read back, it predicts differently")
    predictions = Predictions(read.outputs, positions_of(plan, read.outputs), read.leaves)
    check = verified(
        probes, predictions, target="json", method="read back and run", edges_may_differ=False
    )
    return exported(ExportedText(text), check, path)
