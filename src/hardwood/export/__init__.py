"""Export of models to C, ONNX, SQL, rules, plain Python and JSON, with a check of each export."""

from __future__ import annotations

from hardwood.export.c.header import to_c
from hardwood.export.exported import ExportedBytes, ExportedText
from hardwood.export.json import to_json
from hardwood.export.onnx.writer import to_onnx
from hardwood.export.python import to_python
from hardwood.export.rules.writer import to_rules
from hardwood.export.sql.statement import to_sql
from hardwood.export.verify import Check

__all__ = [
    "Check",
    "ExportedBytes",
    "ExportedText",
    "to_c",
    "to_json",
    "to_onnx",
    "to_python",
    "to_rules",
    "to_sql",
]
