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
        ``"int8"``: integers only between a row's quantized entries and its answer, for
        microcontrollers; rows near a split may take the other side, and the returned text's
        ``check`` says how many do.
    name
        What every name in the header begins with; by default the file's name, or ``model``.
    data
        A table to compare on; with integers also to choose the ranges of the columns by. By default
        rows are made up from the schema.
    min_agreement
        With integers: refuse where fewer typical rows than this share are answered alike.

    Returns
    -------
    text
        The header; ``text.check`` says how it was checked.

    Raises
    ------
    ExportError
        If the compiled header answers differently from the library (float32), if it agrees too
        rarely (integers), or if the model has no such form.

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
        method = "its tables interpreted in Python, as there is no C compiler"
    else:
        found = compiled_predictions(compiler, probes, prefix, text)
        method = f"compiled with {compiler.version} and run"
    return verified(
        probes,
        found,
        target="c",
        method=method,
        # What the header does is what the engine does where that can multiply and add in one step.
        edges_may_differ=compiler is None or not _engine_is_fused(),
        n_bytes=size,
    )


def _engine_is_fused() -> bool:
    from hardwood._native import instruction_set

    return bool(instruction_set() != "baseline")
