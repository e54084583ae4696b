"""The training record of a model in words."""

from __future__ import annotations

from typing import Any

# A record's entries in the order of a story, by the names they have here; others follow.
_RECORD_NAMES = {
    "learner": "learner",
    "table": "table",
    "table_rows": "rows of the table",
    "training_rows": "training rows",
    "distinct_rows": "different training rows",
    "validation_rows": "validation rows",
    "test_rows": "test rows",
    "passes": "epochs",
    "best_pass": "best epoch",
    "train_loss": "training loss",
    "validation_loss": "validation loss",
    "test": "test score",
    "oob_score": "out-of-bag score",
    "parameters": "parameters",
}
CURVES = "curves"  # drawn, not told


def readable_record(record: dict[str, Any]) -> dict[str, str]:
    """Return a record in words, in order, with what was used where a parameter was "auto"."""
    entries = {name: entry for name, entry in record.items() if name != CURVES}
    resolved = entries.pop("resolved", {})
    if isinstance(entries.get("parameters"), dict) and isinstance(resolved, dict):
        entries["parameters"] = entries["parameters"] | resolved
    order = [name for name in _RECORD_NAMES if name in entries]
    order += [name for name in entries if name not in _RECORD_NAMES]
    return {_RECORD_NAMES.get(name, name): _words(entries[name]) for name in order}


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return str(value)
