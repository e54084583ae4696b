"""A model as one C99 header, in the library's own float32 arithmetic or in integers."""

from __future__ import annotations

import os
from typing import Any, Literal

from hardwood.errors import ExportError
from hardwood.export.c.compiler import Compiler, compiled_predictions
from hardwood.export.c.float_header import float_header
from hardwood.export.c.integer_header import integer_header
from hardwood.export.c.interpreter import interpreted_predictions
from hardwood.export.c.names import header_name
from hardwood.export.exported import ExportedText, check_path, exported
from hardwood.export.plan import plan_of
from hardwood.export.probes import Probes
from hardwood.export.verify import Check, verified

Precision = Literal["float32", "int16", "int8"]


def to_c(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    precision: Precision = "float32",
    name: str | None = None,
    data: Any = None,
    min_agreement: float = 0.9,
) -> ExportedText:
    """Write a model as one C99 header without dependencies.

    Parameters
    ----------
    model
        An ObliqueTree or ObliqueForest.
    path
        File to write; None only returns the text.
    precision
        ``"float32"``: the library's own arithmetic, the same leaf for every row. ``"int16"`` and
        ``"int8"``: integer arithmetic only, from a row's quantized values to the prediction, for
        microcontrollers. Rows near a split may take the other side; the ``check`` of the returned
        text says how many do.
    name
        Prefix of every name in the header; default: the name of the file, or ``model``.
    data
        A table to check the export on; with integers it also determines the ranges of the columns.
        By default, rows are simulated from the schema.
    min_agreement
        For integers: the smallest share of typical rows that must get the model's prediction.

    Returns
    -------
    text
        The header; ``text.check`` says how it was checked.

    Raises
    ------
    ExportError
        If the compiled header predicts differently from the library (float32), agrees too rarely
        (integers), or if the model has no such form.

    Examples
    --------
    >>> from hardwood import ObliqueTree
    >>> tree = ObliqueTree.of([[1.0, -1.0]], thresholds=[0.5], values=[[1, 0], [0, 1]],
    ...                       feature_names=["a", "b"], classes=["no", "yes"])
    >>> "static inline int model_predict(" in to_c(tree)
    True
    """
    check_path(path, "model.h")
    if not 0 <= min_agreement <= 1:  # NaN is not
        raise ExportError(
            f"min_agreement must be a number from 0 to 1, found {min_agreement!r:.80}"
        )
    plan, prefix = plan_of(model), header_name(name, path)
    if precision == "float32":
        text, size = float_header(plan, prefix)
        return exported(ExportedText(text), _check(Probes.of(plan, data), prefix, text, size), path)
    if precision not in ("int16", "int8"):
        raise ExportError(f"precision must be 'float32', 'int16' or 'int8', not {precision!r:.80}")
    text, check = integer_header(plan, prefix, precision, data, min_agreement)
    return exported(ExportedText(text), check, path)


def _check(probes: Probes, prefix: str, text: str, size: int) -> Check:
    compiler = Compiler.find()
    if compiler is None:
        found = interpreted_predictions(probes, prefix, text)
        method = "its tables interpreted in Python, because there is no C compiler"
    else:
        found = compiled_predictions(compiler, probes, prefix, text)
        method = f"compiled with {compiler.version} and run"
    return verified(
        probes,
        found,
        target="c",
        method=method,
        # The header is bit for bit the engine if that has fused multiply-add.
        edges_may_differ=compiler is None or not _engine_is_fused(),
        n_bytes=size,
    )


def _engine_is_fused() -> bool:
    from hardwood._native import instruction_set

    return bool(instruction_set() != "baseline")
