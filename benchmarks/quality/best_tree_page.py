"""Write docs/results/best_tree.md from what is recorded.

    python -m benchmarks.quality.best_tree_page [--check]

Every figure of the page comes from the records ``best_tree``, ``dgt_tables`` and
``best_tree_time`` or from the papers. ``--check`` writes nothing and exits with status 1 if the
page does not agree with the records.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks.quality.best_tree import (
    MOST_OVER,
    MOST_TIME,
    OURS,
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
from benchmarks.quality.written_page import LEGEND, joined, origin, place, write_or_check
from benchmarks.record import RESULTS, file_of, read, results

PAGE = RESULTS.parents[1] / "docs" / "results" / "best_tree.md"
# The columns of the tables, ours first. CART of any depth may be much larger than the others.
SHOWN = {
    "classes": ("default", "refine", "tao", "dgt", "cart", "cart_free", "xgboost"),
    "numbers": ("default", "refine", "tao", "dgt", "cart", "cart_free", "xgboost"),
    "linear": ("default_linear", "refine_linear", "tao_linear", "linear"),
}
PAPER = {"classes": ("dgt", "tao"), "numbers": ("dgt", "tao"), "linear": ("tao_linear",)}
TITLES = {
    "classes": "Classification: test accuracy (%), or AUC for BACE and HIV",
    "numbers": "Regression, constant leaves: test RMSE (Ailerons: of y times 10⁴)",
    "linear": "Regression, linear leaves: test RMSE",
}
METHOD_TITLES = {name: method.title for name, method in METHODS.items()} | {
    "dgt": "DGT",
    "linear": "DGT, linear leaves",
    "cart_free": "CART, any depth",
}
PAPER_TITLES = {"dgt": "DGT, paper", "tao": "TAO, paper", "tao_linear": "TAO, linear leaves, paper"}

HEAD = f"""\
# The best single tree

<!-- Written by `python -m benchmarks.quality.best_tree_page` from results; do not edit. -->

How good is one hard tree per data set? This page compares `TreeClassifier` and `TreeRegressor` with
[TAO](../papers/tao.md) alone, [DGT](../papers/dgt.md) alone, DGT refined by TAO, CART, and XGBoost
with 1,000 trees.

- *Tree, default* (or only *default*) searches for 60 seconds on one processor, with
  `leaves="constant"`. *Tree, linear leaves* is the same with `leaves="linear"`. `leaves="auto"`, in
  which both compete, is not on this page.
- Scores are mean ± standard deviation on test rows over 5 seeds, unless a cell gives another number
  of runs. Depths are those of the papers' tables.
- *Floor*: the score of the best published tree with depth 10 or less, or of a rough trial on the
  same parts if that was better. *Aim*: the score we want. Both apply to *Tree, default*, and in the
  table of linear leaves to *Tree, linear leaves*.

[Which tree?](../guide/which-tree.md) says what this means for a choice.

```
python -m benchmarks.quality.best_tree --data FOLDER          # everything below except the time
python -m benchmarks.quality.best_tree --data FOLDER --time   # the time
python -m benchmarks.quality.best_tree_page                   # this page
```

The commands need the extra `bench`; [the README of the benchmarks](../../benchmarks/README.md#data)
says how to fill FOLDER. A stopped run continues where it stopped.

{LEGEND}
"""

HOW = """\
- As in [DGT's tables](dgt.md), settings are compared on **validation** rows. The chosen setting is
  trained on training and validation rows together, once per seed, and scored on **test** rows.
- The default has no settings except the depth, `leaves="constant"`, `time_limit=60` and, where the
  measure is AUC, `scoring="roc_auc"`.
  It holds out validation rows of its own. The machine had other work, so its 60 seconds are
  processor time: what one thread of an idle machine would need.
- The results of DGT alone (with constant and linear leaves) and of CART of any depth are those
  recorded by `benchmarks.quality.dgt_tables` (same data, parts, seeds and procedure).
- *DGT then TAO*: DGT with the setting that those tables chose for the first split, then TAO from
  its tree, by `hardwood.refine`. A fifth of the rows is held out from both and decides whether to
  keep TAO's tree, so both see fewer rows than DGT alone.
- TAO alone starts from CART or from random splits, whichever is better on validation rows (on large
  tables, always from CART), and chooses its penalty itself.
- CART's depth (2 to 10) and rows per leaf (2 to 150) are tuned. *Any depth* allows thousands of
  leaves, so that tree is much larger than the others.
- XGBoost has 1,000 rounds. For regression, depth and learning rate are chosen among six settings.
  For classification, where a round is one tree per class, the depth is 6 and the learning rate 0.1.
  XGBoost is deterministic, so there is one run per split.
- Training, validation and test rows are those of DGT's tables. The same caveat applies: Letter's
  and SatImage's may differ from the papers'.
"""


# --- tables ------------------------------------------------------------------------------------


def score_table(table: str) -> list[str]:
    """Return one table: published numbers, ours, floor and aim."""
    shown, papers = SHOWN[table], PAPER[table]
    head = ["data set", *(PAPER_TITLES[name] for name in papers)]
    head += ["best published tree", *(METHOD_TITLES[name] for name in shown)]
    head += ["floor", "met", "aim", "reached"]
    rows = []
    for name, aim in TABLES[table].items():
        task = TASKS[name]
        published = [paper_words(task, method) or "" for method in papers]
        here = [_here(task, method) for method in shown]
        here[0] = f"**{here[0]}**"
        row = [task.title, *published, _plain(task, aim.best), *here]
        rows.append([*row, *_floor_and_aim(task, aim, OURS[table])])
    return [*markdown(head, rows), *_counts(table), *origin("best_tree", "dgt_tables")]


def _here(task: Task, method: str) -> str:
    row = row_of(task, method)
    return NOT_RECORDED if row is None else row["here"]


def _plain(task: Task, value: float) -> str:
    return words(task, value, 0.0).split(" ")[0]


def _floor_and_aim(task: Task, aim: Aim, method: str) -> list[str]:
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
        f"Data sets recorded: {recorded}{open_rows}. Floors missed: {recorded - floors} (allowed: "
        f"{MAY_MISS[table]}). Aims reached: {reached}.",
        "",
    ]


def cart_table() -> list[str]:
    """Return whether the default is worse than CART by more than one standard deviation."""
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
        "data set",
        "Tree, default",
        "CART, depth up to 10",
        "not worse",
        "CART, any depth",
        "not worse",
    ]
    return [
        "*Not worse*: the default is better, or worse by at most one standard deviation (the",
        "larger of the two). CART of any depth may be much deeper; where it is better, a deeper",
        "tree helps.",
        "",
        *markdown(head, rows),
        *origin("best_tree", "dgt_tables"),
    ]


def size_table() -> list[str]:
    """Return the size of every model, and the times of predicting and fitting."""
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
    head = ["model", "nodes", "weights", "kB", "per row in a batch, µs", "one row, µs"]
    return [
        "*Nodes* are the splits and leaves of all trees. *Weights* are the nonzero numbers that a",
        "column is multiplied by or compared with. *kB* is the size of the model's file; for other",
        "libraries, of the pickle. All times use one thread. The time to predict a row is measured",
        "in a batch, and for a single row with the fastest call of each library. The time of one",
        "fit is given in processor seconds, and in seconds on a machine that also did other work.",
        "An empty cell was not recorded.",
        "",
        *markdown([*head, "fit, processor s", "fit, s"], rows),
        *origin("best_tree", "dgt_tables"),
    ]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


# --- time --------------------------------------------------------------------------------------


def time_section() -> list[str]:
    """Return the times of the default and of XGBoost, and whether time limits are kept."""
    return [
        f"On PenDigits the default fit may take at most {MOST_TIME:g} times as long as XGBoost",
        "with 1,000 trees, on the same two cores in the same run. It may exceed its time limit of",
        f"{TIME_LIMIT:.0f} seconds by at most {MOST_OVER - 1:.0%}. *Load* is the load average.",
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
    head = ["round", "default, s", "XGBoost, s", "ratio", "load", "met"]
    return [*markdown(head, rows), f"{place(records[0].provenance)}.", "", *origin(TIME_NAME)]


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
    kept = "keeps" if longest <= MOST_OVER * TIME_LIMIT else "does **not** keep"
    return [
        f"The longest of the {n} default fits above took {longest:.1f} processor seconds ({name}), "
        f"which {kept} the limit.",
        "",
    ]


# --- the page ----------------------------------------------------------------------------------


def page() -> str:
    """Return the whole page."""
    sections: list[tuple[str, Sequence[str]]] = [
        *((TITLES[table], score_table(table)) for table in TABLES),
        ("Is CART anywhere better?", cart_table()),
        ("Time", time_section()),
        ("Sizes and times", size_table()),
        ("Procedure", [*HOW.splitlines(), ""]),
    ]
    head = [*HEAD.splitlines(), ""]
    return joined(head, [(title, list(body)) for title, body in sections])


def main() -> int:
    return write_or_check(page, PAGE, __doc__.splitlines()[0])


if __name__ == "__main__":
    sys.exit(main())
