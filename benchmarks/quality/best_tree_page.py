"""Write docs/results/best_tree.md from what is recorded.

    python -m benchmarks.quality.best_tree_page [--check]

Every figure of the page comes from ``results/best_tree``, ``results/dgt_tables``,
``results/best_tree_time.jsonl`` or the published numbers; with ``--check`` nothing is written, and
the exit status is 1 where the page is not what the results say.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks.quality.best_tree import (
    JUDGED,
    MOST_OVER,
    MOST_TIME,
    RECORDED,
    TIME_LIMIT,
    TIME_NAME,
    against_cart,
    kept_floors,
    row_of,
)
from benchmarks.quality.best_tree_aims import MAY_MISS, TABLES, Aim, tasks
from benchmarks.quality.best_tree_methods import METHODS
from benchmarks.quality.dgt_page import NOT_RECORDED, markdown
from benchmarks.quality.dgt_paper import TASKS, Task
from benchmarks.quality.ledger import Ledger
from benchmarks.quality.trials import paper_words, words
from benchmarks.quality.written_page import joined, write_or_check
from benchmarks.record import RESULTS, file_of, read, results

PAGE = RESULTS.parents[1] / "docs" / "results" / "best_tree.md"
# What stands in the tables, ours first; CART of any height is no tree of the same height.
SHOWN = {
    "classes": ("default", "refine", "tao", "dgt", "cart", "cart_free", "xgboost"),
    "numbers": ("default", "refine", "tao", "dgt", "cart", "cart_free", "xgboost"),
    "linear": ("default_linear", "refine_linear", "tao_linear", "linear"),
}
PAPER = {"classes": ("dgt", "tao"), "numbers": ("dgt", "tao"), "linear": ("tao_linear",)}
TITLES = {
    "classes": "Classes: test accuracy (%), or AUC for BACE and HIV",
    "numbers": "Numbers, constant leaves: test RMSE (Ailerons: of y times 10⁴)",
    "linear": "Numbers, linear leaves: test RMSE",
}
METHOD_TITLES = {name: method.title for name, method in METHODS.items()} | {
    "dgt": "DGT",
    "linear": "DGT, linear leaves",
    "cart_free": "CART, any height",
}
PAPER_TITLES = {"dgt": "DGT, paper", "tao": "TAO, paper", "tao_linear": "TAO, linear leaves, paper"}

HEAD = """\
# The best single tree

<!-- Written by `python -m benchmarks.quality.best_tree_page` from results; do not edit. -->

One hard tree per data set: `TreeClassifier` and `TreeRegressor` at their default (60 seconds of one
processor), beside what they are made of ([TAO](../papers/tao.md) alone,
[DGT](../papers/dgt.md) alone, one refined by the other), CART and XGBoost with 1,000 trees. Scores
are mean ± standard deviation on test rows over the runs; heights are those of the papers' tables.
What the table means for a choice is in [Which tree?](../guide/which-tree.md)

```
python -m benchmarks.quality.best_tree --data FOLDER          # everything below but the time
python -m benchmarks.quality.best_tree --data FOLDER --time   # the time
python -m benchmarks.quality.best_tree_page                   # this page
```

They need the extra `bench`; `benchmarks/README.md` says where FOLDER comes from. A run that is
stopped goes on where it was. *Floor*: the best published tree of height 10 at most, or what a rough
probe had reached on the same parts where that is better; *aim*: what we want. Both are held against
the default.
"""

HOW = """\
- As in [DGT's tables](dgt.md): settings are compared on **validation** rows, the chosen one is
  learned from training and validation rows together, once per seed, and judged on **test** rows.
- The default has no settings but the height of the table and, where AUC is asked for,
  `scoring="roc_auc"`. It sets apart rows of its own to choose by. The machine had other work, so
  its 60 seconds are counted in processor time: what one thread of an idle machine would do.
- DGT alone, with linear leaves too, and CART of any height are the recorded runs of
  `benchmarks.quality.dgt_tables` (same data, parts, seeds and procedure), not made again.
- *DGT then TAO*: DGT with the setting that those tables chose for the first split, then TAO from
  its tree, `hardwood.refine`. A fifth of the rows is kept apart from both and decides whether TAO's
  tree is kept, so both learn from fewer rows than DGT alone.
- TAO alone starts from CART or from random splits, chosen on validation rows (from CART on large
  tables), and chooses its penalty itself.
- CART's height (2 to 10) and rows per leaf (2 to 150) are tuned. Of any height means up to
  thousands of leaves: no tree of the same size.
- XGBoost: 1,000 rounds; for numbers, depth and learning rate are chosen from six settings; for
  classes, where a round is a tree per class, depth 6 and rate 0.1. It draws nothing: one run per
  split.
- The splits are those of DGT's tables, with their reservations: Letter's and SatImage's parts are
  not known to be the papers'.
"""


# --- tables ------------------------------------------------------------------------------------


def score_table(table: str) -> list[str]:
    """Return one table: published numbers, ours, floor and aim."""
    shown, papers = SHOWN[table], PAPER[table]
    head = ["data", *(PAPER_TITLES[name] for name in papers)]
    head += ["best published tree", *(METHOD_TITLES[name] for name in shown)]
    head += ["floor", "kept", "aim", "kept"]
    rows = []
    for name, aim in TABLES[table].items():
        task = TASKS[name]
        published = [paper_words(task, method) or "" for method in papers]
        here = [_here(task, method) for method in shown]
        here[0] = f"**{here[0]}**"
        row = [task.title, *published, _plain(task, aim.best), *here]
        rows.append([*row, *_judged(task, aim, JUDGED[table])])
    return [*markdown(head, rows), *_counts(table)]


def _here(task: Task, method: str) -> str:
    row = row_of(task, method)
    return NOT_RECORDED if row is None else row["here"]


def _plain(task: Task, value: float) -> str:
    return words(task, value, 0.0).split(" ")[0]


def _judged(task: Task, aim: Aim, method: str) -> list[str]:
    row = row_of(task, method)
    sign = "≤" if task.measure == "rmse" else "≥"
    cells = []
    for bound in (aim.floor, aim.aim):
        cells.append(f"{sign} {_plain(task, bound)}")
        kept = "" if row is None else "yes" if task.keeps(row["mean"], bound) else "**no**"
        cells.append(kept)
    return cells


def _counts(table: str) -> list[str]:
    floors, recorded, reached = kept_floors(table)
    n = len(TABLES[table])
    open_rows = f" ({n - recorded} of {n} rows are not recorded yet)" if recorded < n else ""
    return [
        f"Of {recorded} recorded rows, {floors} keep their floor and {reached} reach their aim"
        f"{open_rows}; {MAY_MISS[table]} of {n} may miss the floor.",
        "",
    ]


def cart_table() -> list[str]:
    """Return whether the default is anywhere worse than CART beyond a deviation."""
    rows = []
    free = {found.task.name: found for found in against_cart("cart_free")}
    for found in against_cart():
        other = free.get(found.task.name)
        rows.append(
            [
                found.task.title,
                found.default["here"],
                found.cart["here"],
                "yes" if found.is_kept else "**no**",
                "" if other is None else other.cart["here"],
                "" if other is None else "yes" if other.is_kept else "**no**",
            ]
        )
    if not rows:
        return [f"Nothing: {NOT_RECORDED}.", ""]
    head = [
        "data",
        "default",
        "CART, height up to 10",
        "not worse",
        "CART, any height",
        "not worse",
    ]
    return [
        "*Not worse*: behind by at most one standard deviation, the larger of the two. CART of any",
        "height is no tree of the same height; where it is better, a deeper tree pays.",
        "",
        *markdown(head, rows),
    ]


def size_table() -> list[str]:
    """Return sizes and prices of all methods, and the time of their fits."""
    rows = []
    for task in tasks():
        for method in ("default", "default_linear", "refine", "tao", "dgt", "cart", "xgboost"):
            row = row_of(task, method)
            if row is not None:
                rows.append(
                    [
                        f"{task.title}: {METHOD_TITLES[method]}",
                        _number(row["nodes"], ",.0f"),
                        _number(row["weights"], ",.0f"),
                        _number(row["bytes"] and row["bytes"] / 1e3, ",.0f"),
                        _number(row["batch_us"], ".3f"),
                        _number(row["one_row_us"], ".2f"),
                        _number(row["processor_seconds"], ",.1f"),
                        _number(row["seconds"], ",.1f"),
                    ]
                )
    if not rows:
        return [f"Nothing: {NOT_RECORDED}.", ""]
    head = ["model", "nodes", "weights", "kB", "in a batch, µs", "one row, µs"]
    return [
        "Nodes are splits and leaves of all trees; weights are numbers other than zero that a",
        "column is multiplied by or compared with; kB of the model's file, of other libraries' the",
        "pickle. Microseconds per row on one thread: in a batch, and of one row by itself through",
        "the quickest call there is. Seconds of one fit on one thread: of the processor, and by",
        "the clock on a machine that had other work. An empty cell was not recorded.",
        "",
        *markdown([*head, "fit, processor s", "fit, s"], rows),
    ]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


# --- time --------------------------------------------------------------------------------------


def time_section() -> list[str]:
    """Return the default fit against XGBoost's, and whether time limits were kept."""
    return [
        f"On pendigits the default fit may take {MOST_TIME:g} times as long as XGBoost with 1,000",
        "trees, on the same two cores in the same run; its budget of "
        f"{TIME_LIMIT:.0f} seconds is to be kept within {MOST_OVER - 1:.0%}.",
        "",
        *_against_xgboost(),
        *_budgets(),
    ]


def _against_xgboost() -> list[str]:
    records = read(file_of(TIME_NAME))
    if not records:
        return [f"`best_tree --time`: {NOT_RECORDED}.", ""]
    rows = [
        [
            str(row["round"] + 1),
            f"{row['ours']:.1f}",
            f"{row['xgboost']:.1f}",
            f"{row['ratio']:.2f}",
            f"{row['load']:.1f}",
            "yes" if row["passed"] else "**no**",
        ]
        for row in results(TIME_NAME)
    ]
    head = ["turn", "default, s", "XGBoost, s", "ratio", "load of the machine", "kept"]
    return [*markdown(head, rows), f"{records[0].provenance['processor']}.", ""]


def _budgets() -> list[str]:
    """Return the longest default fit of all that are recorded."""
    longest, name, n = 0.0, "", 0
    for task in tasks():
        for method in ("default", "default_linear"):
            runs = Ledger(RECORDED, {"name": task.name, "method": method}).runs
            n += len(runs)
            found = max((run["processor_seconds"] for run in runs), default=0.0)
            if found > longest:
                longest, name = found, task.title
    if not n:
        return []
    kept = "kept" if longest <= MOST_OVER * TIME_LIMIT else "**not kept**"
    return [
        f"Of {n} default fits of the tables above, the longest took {longest:.1f} seconds of the "
        f"processor ({name}): the budget is {kept}.",
        "",
    ]


# --- the page ----------------------------------------------------------------------------------


def page() -> str:
    """Return the whole page."""
    sections: list[tuple[str, Sequence[str]]] = [
        *((TITLES[table], score_table(table)) for table in TABLES),
        ("Is CART anywhere better?", cart_table()),
        ("Time", time_section()),
        ("Sizes and prices", size_table()),
        ("How it was done", [*HOW.splitlines(), ""]),
    ]
    head = [*HEAD.splitlines(), ""]
    return joined(head, [(title, list(body)) for title, body in sections])


def main() -> int:
    return write_or_check(page, PAGE, __doc__.splitlines()[0])


if __name__ == "__main__":
    sys.exit(main())
