"""Write `docs/results/reinforced.md`: Table 1 of the paper on reinforced trees, and ours.

    python -m benchmarks.quality.reinforced_page [--check]

The page is made from ``results/`` only and names what is not recorded yet. ``--check`` writes
nothing and exits with status 1 if the page does not agree with the results.
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.quality.dgt_page import markdown
from benchmarks.quality.reinforced_figure import PICTURE
from benchmarks.quality.reinforced_options import NAMES as OPTION_NAMES
from benchmarks.quality.reinforced_paper import FLOORS, NAMES, SIZES, TABLE_1, task_of
from benchmarks.quality.reinforced_tables import PASSES, RDT, RECORDED, PaperRun, method_of, row_of
from benchmarks.quality.written_page import LEGEND, joined, not_here, origin, write_or_check
from benchmarks.record import RESULTS, file_of, read, results

PAGE = RESULTS.parents[1] / "docs" / "results" / "reinforced.md"
NOT_RECORDED = ["Not recorded yet.", ""]
RUN = PaperRun(RECORDED, RECORDED)  # reads results only
Cells = dict[tuple[str, str], dict[str, Any]]


def cells() -> Cells:
    """Return all of Table 1 that is recorded."""
    found = {}
    for name in NAMES:
        for method in TABLE_1:
            if (row := row_of(RUN, name, method)) is not None:
                found[name, method] = row
    return found


def table_1(found: Cells) -> list[str]:
    head = ["method", *(word for name in NAMES for word in (name, "paper"))]
    sizes = [" / ".join(str(n) for n in SIZES[name]) for name in NAMES]
    rows = [["rows: training / validation / test", *(w for s in sizes for w in (s, ""))]]
    for method, paper in TABLE_1.items():
        row = [method_of(method, task_of(NAMES[0])).title]
        for name, (mean, sd) in zip(NAMES, paper, strict=True):
            cell = found.get((name, method))
            few = "" if cell is None or cell["runs"] in (1, 5) else f" ({cell['runs']} runs)"
            row += ["" if cell is None else f"{cell['here']}{few}", f"{mean:.2f} ± {sd:.2f}"]
        rows.append(row)
    return markdown(head, rows)


def floors(found: Cells) -> list[str]:
    lines = []
    for name, floor in FLOORS.items():
        cell = found.get((name, "rdt-10"))
        if cell is None:
            lines.append(f"- {name}: not recorded yet (floor {floor} %).")
            continue
        verdict = "kept" if cell["passed"] else "**missed**"
        lines.append(
            f"- {name}: {cell['here']} % over {cell['runs']} seeds, floor {floor} %: {verdict}. "
            f"Error on training rows: {cell['train_error']:.2f} %; {cell['seconds']:.0f} s per "
            "fit; "
            f"chosen setting: {cell['chosen']}."
        )
    return [
        "The floor at depth 10 is the paper's mean plus one standard deviation.",
        "",
        *lines,
        "",
    ]


def losses(found: Cells) -> list[str]:
    """Say where reinforced trees of depth 10 are not the best of the table."""
    lines = []
    for name in NAMES:
        of_name = {m: found[name, m] for m in TABLE_1 if (name, m) in found}
        if "rdt-10" not in of_name:
            continue
        best = min(of_name, key=lambda method: of_name[method]["mean"])
        if best != "rdt-10":
            lines.append(f"On {name} {of_name[best]['title']} is better than depth 10.")
    return [*lines, ""] if lines else []


def tuned() -> list[str]:
    grid = {name: RDT.get(name, RDT[""]) for name in NAMES}
    words = [f"- {name}: {_grid_words(grid[name])}; {PASSES[name][0]} epochs" for name in NAMES]
    counts = ", ".join(f"{name} {PASSES[name][1]}" for name in NAMES)
    return [
        "Trees trained on training rows are compared on validation rows, with these settings:",
        "",
        *words,
        "",
        "The best setting is trained on training rows with five seeds. Epochs: "
        f"{counts}. Nothing is trained on validation rows.",
        "",
    ]


def _grid_words(grid: list[dict[str, list[float]]]) -> str:
    parts = [[f"{key} {' or '.join(map(str, values))}" for key, values in p.items()] for p in grid]
    return "; ".join(", ".join(part) for part in parts)


def options() -> list[str]:
    records = read(file_of("reinforced_options"))
    if not records:
        return NOT_RECORDED
    rows = [
        [row["line"], *(f"{row[name]:.2f}" for name in (*OPTION_NAMES, "mean"))]
        for row in results("reinforced_options")
    ]
    of = records[0].provenance["settings"]
    return [
        f"Errors on **validation** rows in percent, depth {of['depth']}, {of['passes']} epochs, "
        f"mean of {of['seeds']} seeds. "
        "`python -m benchmarks.quality.reinforced_options --data FOLDER`",
        "",
        *markdown(["options", *OPTION_NAMES, "mean"], rows),
        *origin("reinforced_options"),
    ]


def speed() -> list[str]:
    found = results("reinforced_speed")
    if not found:
        return NOT_RECORDED
    rows = [
        [
            row["name"],
            str(row["depth"]),
            row["gradient"],
            f"{row['ours']:.1f}",
            f"{row['peer']:.1f}",
            f"{row['ratio']:.1f}",
            f"{row['floor']:.0f}, {row['verdict']}" if "floor" in row else "",
        ]
        for row in found
    ]
    head = ["rows", "depth", "gradient", "ours, ms", "PyTorch, ms", "times ours", "floor"]
    return [
        "Milliseconds per epoch, one thread, both measured in turns. "
        "`python -m benchmarks.speed.reinforced`",
        "",
        *markdown(head, rows),
        *origin("reinforced_speed"),
    ]


def frontier() -> list[str]:
    found = results("reinforced_frontier")
    if not found or not PICTURE.exists():
        return NOT_RECORDED
    words = "; ".join(
        f"{row['method']}: {row['error']:.1f} % with {row['leaves']} leaves" for row in found
    )
    return [
        f"Test errors of one run: {words}. `python -m benchmarks.quality.reinforced_figure`",
        "",
        f"![the classes that a reinforced tree and CART predict](../images/{PICTURE.name})",
        "",
        *origin("reinforced_frontier"),
    ]


def page() -> str:
    found = cells()
    command = "`python -m benchmarks.quality.reinforced_tables --data FOLDER`"
    sections: tuple[tuple[str, list[str]], ...] = (
        (
            "Table 1: test error",
            [
                f"In percent, mean ± standard deviation over 5 seeds. {command}",
                "",
                *(table_1(found) if found else NOT_RECORDED),
                *losses(found),
                *origin("reinforced"),
            ],
        ),
        ("Floors", [*floors(found), *origin("reinforced")]),
        ("Tuning", tuned()),
        ("Ablation: the effect of each option", options()),
        ("Figure 1: a decision frontier", frontier()),
        ("Speed", speed()),
        not_here(
            "Rows of Table 1 by the paper's own algorithm: sampled paths (M = 10), squared loss "
            "and plain gradient descent. The rows above have exact expectations, an entropy bonus, "
            "Adam with a cosine schedule, and log loss; the ablation has sampled paths.",
            "Restarts or another start for letter at depth 5, where the error above is larger than "
            "the paper's.",
        ),
    )
    lines = [
        "# Reinforced trees: the paper's table and ours",
        "",
        "`python -m benchmarks.quality.reinforced_page` writes this page from recorded results. "
        "The docstring of each script describes its experiment.",
        "",
        LEGEND,
        "",
    ]
    return joined(lines, sections)


def main() -> int:
    return write_or_check(page, PAGE, __doc__.splitlines()[0])


if __name__ == "__main__":
    sys.exit(main())
