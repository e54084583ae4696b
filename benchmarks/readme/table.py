"""The Markdown of the README's table, from its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.provenance import Provenance, is_clean, is_quiet
from benchmarks.readme.accuracy import TEST_PART
from benchmarks.record import Record, Result

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
TITLES = {"hardwood": "hardwood", "cart": "CART"}


def markdown(records: list[Record]) -> str:
    """Return the table and where it was measured; empty if nothing is recorded."""
    if not records:
        return ""
    lines = ["| | hardwood | others | hardwood is |", "| --- | --- | --- | --- |"]
    for record in records:
        cells = accuracy_cells if record.result["kind"] == "accuracy" else speed_cells
        lines.append("| " + " | ".join(cells(record.result)) + " |")
    return "\n".join([*lines, "", *notes(records)])


# --- accuracy ----------------------------------------------------------------------------------


def accuracy_cells(row: Result) -> list[str]:
    models = row["models"]
    titles = TITLES | {"linear": linear_title(row)}
    others = [f"{titles[key]} {scored(models[key])}" for key in models if key != "hardwood"]
    verdicts: dict[str, list[str]] = {}
    for key in models:
        if key != "hardwood":
            found = compared(models["hardwood"]["score"], models[key]["score"])
            verdicts.setdefault(found, []).append(titles[key])
    said = ", ".join(f"{found} {' and '.join(names)}" for found, names in verdicts.items())
    measure = "R² × 100" if row["measure"] == "R²" else "accuracy, %"
    what = f"{row['name']}: {measure}, depth at most {row['max_depth']}"
    return [what, scored(models["hardwood"]), "; ".join(others), said]


def linear_title(row: Result) -> str:
    return "linear regression" if row["measure"] == "R²" else "logistic regression"


def scored(model: dict[str, Any]) -> str:
    """Format the mean score with its standard error, and the mean size."""
    scores = np.array(model["score"])
    splits, terms = (np.mean(model[key]) for key in ("splits", "terms"))
    sizes = ([f"{plural(splits, 'split')}"] if splits else []) + [plural(terms, "term")]
    if splits == terms:  # of an axis-aligned tree
        sizes = sizes[:1]
    return f"{scores.mean():.1f} ± {standard_error(scores):.1f} ({', '.join(sizes)})"


def plural(count: float, noun: str) -> str:
    return f"{count:,.0f} {noun}{'' if round(count) == 1 else 's'}"


def standard_error(values: np.ndarray) -> float:
    """Return the standard error of a mean over random divisions whose training rows overlap.

    Nadeau and Bengio 2003: instead of 1/r for r independent values, 1/r + test rows/training rows.
    """
    factor = 1 / len(values) + TEST_PART / (1 - TEST_PART)
    return float(np.sqrt(factor * values.var(ddof=1))) if len(values) > 1 else float("nan")


def compared(ours: list[float], theirs: list[float]) -> str:
    """Say whether ours is better, by the differences paired by seed."""
    differences = np.array(ours) - np.array(theirs)
    if not abs(differences.mean()) > 2 * standard_error(differences):
        return "not clearly different from"
    return "**better** than" if differences.mean() > 0 else "**worse** than"


# --- speed -------------------------------------------------------------------------------------


def speed_cells(row: Result) -> list[str]:
    times = {title: found["best"] for title, found in row["models"].items()}
    ours = times.pop("hardwood")
    others = [f"{title}: {quantity(value)} {row['unit']}" for title, value in times.items()]
    verdicts = [faster(value / ours, title) for title, value in times.items()]
    return [
        row["what"],
        f"{quantity(ours)} {row['unit']}",
        "; ".join(others),
        ", ".join(verdicts),
    ]


def quantity(value: float) -> str:
    """Format a number with two significant digits, or with all digits before the point."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{float(f'{value:.2g}'):g}"


def faster(ratio: float, title: str) -> str:
    short = title.split(",")[0]
    word = "faster" if ratio >= 1 else "slower"
    return f"{quantity(max(ratio, 1 / ratio))}× **{word}** than {short}"


# --- where it was measured ---------------------------------------------------------------------


def notes(records: list[Record]) -> list[str]:
    """Explain ± and terms, and say where the figures were measured."""
    seeds = sorted(
        {
            len(record.result["models"]["hardwood"]["score"])
            for record in records
            if record.result["kind"] == "accuracy"
        },
        reverse=True,
    )
    lines = []
    if seeds:
        words = " or ".join(map(str, seeds))
        lines += [
            f"Mean ± standard error over {words} seeds, each with its own random test rows,",
            "allowing for the overlap of training rows (Nadeau and Bengio 2003). *Better* and",
            "*worse*: the difference, paired by seed, is more than two standard errors. A term is",
            "one column with its weight.",
        ]
    return [*lines, "Times are of one thread, the best of several turns.", *places(records)]


def places(records: list[Record]) -> list[str]:
    """Say where the figures were measured: one line, or one per place with the rows from there."""
    rows: dict[str, list[str]] = {}
    for record in records:
        rows.setdefault(place(record.provenance), []).append(record.result["name"])
    if len(rows) == 1:
        return list(rows)
    return ["", *(f"- {', '.join(names)}: {where}" for where, names in rows.items())]


def place(found: Provenance) -> str:
    state = "" if is_clean(found) else " **with uncommitted changes**"
    load = "" if is_quiet(found) else ", **busy at the start**"
    date = str(found["date"])[:10]
    versions = found["versions"]
    packages = ", ".join(
        f"{title} {versions[name]}"
        for name, title in (
            ("scikit-learn", "scikit-learn"),
            ("torch", "PyTorch"),
            ("xgboost", "XGBoost"),
            ("lightgbm", "LightGBM"),
        )
        if name in versions
    )
    return (
        f"{found['processor']}, {found['cores']} cores{load}; commit {found['commit']}{state}, "
        f"{date}; {packages}."
    )


# --- README.md ---------------------------------------------------------------------------------


def in_readme(path: Path = README) -> str | None:
    """Return the text between the markers; None if README.md has none."""
    text = path.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        return None
    return text.split(BEGIN, 1)[1].split(END, 1)[0].strip()


def put_in_readme(table: str, path: Path = README) -> bool:
    """Replace the text between the markers; return False if README.md has none."""
    if in_readme(path) is None:
        return False
    before, rest = path.read_text(encoding="utf-8").split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    body = f"\n{table}\n" if table else "\n"
    path.write_text(f"{before}{BEGIN}{body}{END}{after}", encoding="utf-8")
    return True
