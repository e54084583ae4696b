"""Write `docs/results/latent.md`: latent trees on tables and as clusters, from what was recorded.

    python -m benchmarks.quality.latent_page [--check]

Reads ``results/`` only. What is not recorded yet is named as such; ``--check`` writes nothing and
ends with status 1 where the page is not what the results say.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import latent_clustering
from benchmarks.quality.dgt_page import markdown
from benchmarks.quality.dgt_paper import Task
from benchmarks.quality.latent_tables import METHODS, N_RUNS, RECORDED, TASKS
from benchmarks.quality.trials import Run, summary
from benchmarks.quality.written_page import joined, write_or_check
from benchmarks.record import RESULTS, results

PAGE = RESULTS.parents[1] / "docs" / "results" / "latent.md"
NOT_RECORDED = ["Not recorded yet.", ""]
_RUN = Run(Path(), RECORDED, N_RUNS)
_HEAD = [
    "# Latent trees: results",
    "",
    "Written by `python -m benchmarks.quality.latent_page` from recorded runs; "
    "[the paper in the code](../papers/latent.md).",
    "",
]


def tables() -> list[str]:
    """Return test scores on six tables, and what the fits took."""
    found = {
        (task.name, name): row
        for task in TASKS.values()
        for name, method in METHODS.items()
        if (row := summary(_RUN, task, method)) is not None
    }
    if not found:
        return NOT_RECORDED
    names = [name for name in METHODS if any(key[1] == name for key in found)]
    rows = [
        [f"{task.title}, {_measure(task)}"]
        + [_score(found.get((task.name, name))) for name in names]
        for task in TASKS.values()
    ]
    return [
        "`python -m benchmarks.quality.latent_tables --data FOLDER`: mean ± standard deviation of "
        f"{N_RUNS} runs on test rows. Chosen on validation rows are CART's height and least leaf, "
        "the weight decay of latent trees (of 0, 0.1 and 0.5; depth 5, λ = 1), and DGT's height "
        "(of 6 and 8; with linear leaves 3 and 6). All else has its default. "
        "`magic_like` is made by scikit-learn (`make_classification`).",
        "",
        *markdown(["data", *(METHODS[name].title for name in names)], rows),
        *_against(found, "latent", "cart", "CART"),
        *_against(found, "latent", "dgt", "DGT"),
        *_against(found, "latent", "dgt_linear", "DGT with linear leaves"),
        *_against(found, "latent_layers", "cart", "CART"),
        *times(found, names),
    ]


def _measure(task: Task) -> str:
    return "accuracy, %" if task.measure == "accuracy" else "RMSE"


def _score(row: dict[str, Any] | None) -> str:
    if row is None:
        return "not recorded"
    few = "" if row["runs"] >= N_RUNS else f" ({row['runs']} runs)"
    return f"{row['here'].split(' (')[0]}{few}"


def _against(
    found: dict[tuple[str, str], dict[str, Any]], ours: str, peer: str, words: str
) -> list[str]:
    """Say where ours is better in the mean, and where not."""
    better, worse = [], []
    for task in TASKS.values():
        rows = found.get((task.name, ours)), found.get((task.name, peer))
        if rows[0] is None or rows[1] is None:
            continue
        gain = rows[0]["mean"] - rows[1]["mean"]
        is_better = gain > 0 if task.measure == "accuracy" else gain < 0
        (better if is_better else worse).append(task.title)
    if not better and not worse:
        return []
    title = METHODS[ours].title
    said = f"In the mean the {title} is better than {words} on {len(better)} of "
    said += f"{len(better) + len(worse)} tables"
    return [said + (f", worse on {', '.join(worse)}." if worse else "."), ""]


def times(found: dict[tuple[str, str], dict[str, Any]], names: list[str]) -> list[str]:
    """Return seconds per fit, and per pass where there are passes."""
    rows = []
    for task in TASKS.values():
        cells = []
        for name in names:
            row = found.get((task.name, name))
            cells.append("–" if row is None else _seconds(task, name, row))
        rows.append([task.title, *cells])
    return [
        "Seconds per fit, one thread, and milliseconds per pass over the rows, on a machine that "
        "others used as well:",
        "",
        *markdown(["data", *(METHODS[name].title for name in names)], rows),
    ]


def _seconds(task: Task, name: str, row: dict[str, Any]) -> str:
    runs = _RUN.ledger(task, METHODS[name]).runs
    passes = [1000 * run["seconds"] / run["passes"] for run in runs if run.get("passes")]
    text = f"{row['seconds']:.2f}"
    return text if not passes else f"{text} ({np.mean(passes):.0f} ms)"


def projection() -> list[str]:
    """Return Figure 5 in words: what `benchmarks/speed/latent_projection.py` recorded."""
    rows = [row for row in results("latent_projection") if row.get("over_sorted")]
    if not rows:
        return NOT_RECORDED
    sorted_ = [row["over_sorted"] for row in rows]
    generic = [row["over_generic"] for row in rows if row.get("over_generic")]
    lines = [
        "`python -m benchmarks.speed.latent_projection`: the program solved without a sort is "
        f"{min(sorted_):.1f} to {max(sorted_):.0f} times as fast as with one",
    ]
    if generic:
        lines[0] += (
            f", and {min(generic):.0f} to {max(generic):.0f} times as fast as a generic "
            "differentiable solver"
        )
    lines[0] += f" ({len(rows)} sizes)."
    return [*lines, "", "![time against rows](../images/latent_projection.png)", ""]


def clustering() -> list[str]:
    """Return the tables of `latent_clustering`, which has its own page of words."""
    lines = latent_clustering.section()
    return [
        "`python -m benchmarks.quality.latent_clustering --data FOLDER`; "
        "[Clustering](../guide/clustering.md) says what is done. Dendrogram purity, mean ± "
        f"standard deviation of {latent_clustering.N_RUNS} runs.",
        "",
        *lines,
        "",
    ]


def page() -> str:
    """Return the text of the page."""
    return joined(
        _HEAD,
        [
            ("Tables", tables()),
            ("Clustering", clustering()),
            ("Figure 5: the program's time", projection()),
        ],
    )


if __name__ == "__main__":
    sys.exit(write_or_check(page, PAGE, __doc__.split("\n")[0]))
