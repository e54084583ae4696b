"""Exports of models: every format of `hardwood.export`, pages, plots, text."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hardwood import export, model
from ledger import models
from ledger.cases import Case, each_of, said_by
from ledger.models import Subject
from ledger.values import picture, same_every_time

_QUICK = {"tree of classes", "linear leaves of a data frame", "forest of classes", "policy tree"}

_WAYS: Mapping[str, Callable[[Subject], Any]] = {
    "python": lambda s: export.to_python(s.model),
    "python, rows": lambda s: export.to_python(s.model, data=s.named),
    "json": lambda s: export.to_json(s.model),
    "rules": lambda s: export.to_rules(s.model),
    "rules, digits": lambda s: export.to_rules(s.model, digits=3),
    "sql": lambda s: export.to_sql(s.model),
    "sql, stages": lambda s: export.to_sql(
        s.model, table=("a", "b c"), keep=["id"], materialized=True
    ),
    "onnx": lambda s: export.to_onnx(s.model),
    "onnx, columns": lambda s: export.to_onnx(s.model, inputs="columns", data=s.named),
    "c": lambda s: export.to_c(s.model, name="grove"),
    "c of 16 bits": lambda s: export.to_c(
        s.model, precision="int16", data=s.named, min_agreement=0.0
    ),
    "c of 8 bits": lambda s: export.to_c(
        s.model, precision="int8", data=s.named, min_agreement=0.0
    ),
}


def cases() -> Iterator[Case]:
    """Return cases of every model in every format, including the errors of soft models."""
    for name in models.KINDS:
        is_quick = name in _QUICK
        yield Case(f"export/{name}", functools.partial(_exported, name), is_quick)
        yield Case(f"show/{name}", functools.partial(_shown, name), is_quick)
        yield Case(f"file/{name}", functools.partial(_filed, name), is_quick)


def _exported(name: str) -> dict[str, Any]:
    subject = models.subject(name)
    parts: dict[str, Any] = {}
    for way, write in _WAYS.items():
        try:
            written = write(subject)
        except Exception as error:
            parts[way] = said_by(error)
        else:
            parts[way] = bytes(written) if isinstance(written, bytes) else str(written)
            parts[f"{way}, check"] = written.check
    return parts


def _shown(name: str) -> dict[str, Any]:
    subject = models.subject(name)
    y = subject.table.y_other
    return each_of(
        {
            "text": lambda: subject.model.to_text(),
            "few words": lambda: subject.model.to_text(max_depth=1, max_terms=1, digits=2),
            "repr": lambda: repr(subject.model),
            "page": lambda: _page(subject),
            "page with rows": lambda: _page(subject, subject.named, y, title="Rows", max_rows=20),
            "drawing": lambda: picture(subject.model.plot(max_depth=2)),
            "split": lambda: subject.model.split(0).describe(),
        }
    )


def _page(subject: Subject, *rows: Any, **options: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        subject.model.show(path, *rows, **options)
        return path.read_bytes()


def _filed(name: str) -> dict[str, Any]:
    subject = models.subject(name)
    content = model.dumps(subject.model)
    again = model.loads(content)
    row = subject.named.iloc[0]
    parts = {
        "file": content,
        "json": same_every_time(subject.model.to_json()),
        "same": again == subject.model,
        "flops": subject.model.flops(subject.named),
        "flops of any rows": subject.model.flops(),
        "sizes": {
            part: getattr(subject.model, part)
            for part in ("depth", "n_leaves", "n_splits", "n_nodes", "n_outputs", "n_features")
        },
        "one row": again.predict_one(row.to_dict()),
        "rows": again.predict(subject.named),
        "leaves": again.apply(subject.named) if hasattr(again, "apply") else None,
    }
    if not subject.named.isna().to_numpy().any() and subject.named.dtypes.eq(float).all():
        parts["one row of numbers"] = again.predict_one(row.to_numpy())
    return parts
