"""Write docs/results/default_tree.md from what is recorded.

    python -m benchmarks.quality.default_tree_page [--check]

Every figure of the page comes from the record ``default_tree``. ``--check`` writes nothing and
exits with status 1 if the page does not agree with the record.
"""

from __future__ import annotations

import sys

from benchmarks.quality.default_tree_measure import N_TEST_PARTS
from benchmarks.quality.default_tree_models import (
    CART_DEPTHS,
    CART_LEAF_ROWS,
    LEAST_ROWS_OF_LEVEL,
    MOST_LEVELS,
    N_FOLDS,
    SMALL_TERMS,
)
from benchmarks.quality.default_tree_shares import NAME, Found, Section, sections
from benchmarks.quality.default_tree_tables import LEFT_OUT, MOST_ROWS, N_SPLITS, TEST_PART
from benchmarks.quality.dgt_page import markdown
from benchmarks.quality.written_page import DOCS, LEGEND, joined, origin, write_or_check
from benchmarks.record import Record, file_of, read

PAGE = DOCS / "results" / "default_tree.md"
HEAD = f"""\
# The default tree

<!-- Written by `python -m benchmarks.quality.default_tree_page` from results; do not edit. -->

What does a person get who fits `TreeClassifier()` or `TreeRegressor()` to a table and changes
nothing? This page compares the default, `prefer="accuracy"` and `prefer="readable"` with tuned
CART, a linear model, LightGBM, XGBoost, EBM and FIGS on the same rows.

- *Messy tables* have names, categories, dates, missing entries and rare classes. *Tables of
  numbers* have numbers only.
- Scores are AUC for two classes, accuracy for more, and R² for numbers: mean ± standard error over
  splits.
- *At least as good*: the mean score is at least the other's. *Error*: the standard error of the
  difference, paired by split.

```
python -m benchmarks.quality.default_tree --data FOLDER [FOLDER ...]
python -m benchmarks.quality.default_tree --rows
python -m benchmarks.quality.default_tree --learners --data FOLDER [FOLDER ...]
python -m benchmarks.quality.default_tree_page
```

The commands need the extra `bench`; [the README of the benchmarks](../../benchmarks/README.md#data)
says how to fill FOLDER. A stopped run continues where it stopped.

{LEGEND}
"""
_LEFT_OUT = ", ".join(f"{name} ({why})" for name, why in LEFT_OUT.items())
HOW = f"""\
- Published splits are used as they are, with validation rows among the training rows. All other
  tables have {N_SPLITS} random splits, {TEST_PART:.0%} test rows, stratified by class. Of larger
  tables, {MOST_ROWS:,} rows are drawn first (covtype has 581,012, sleep 105,908).
- Left out of the tables of numbers: {_LEFT_OUT}.
- A table with a single published split has no standard error over splits. There it comes from
  {N_TEST_PARTS} parts of the test rows.
- Standard errors over splits do not allow for the overlap of their training rows. They are rather
  too small, so that more tables count as worse by more than one.
- All models get the same training rows, the same number of threads and the number of the split as
  seed. Ours take the table as it is. For the others, dates become days.
- *CART* has its depth ({", ".join(str(depth) for depth in CART_DEPTHS)}) and its rows per leaf
  ({", ".join(map(str, CART_LEAF_ROWS))}) chosen by {N_FOLDS} folds: *by loss* for log loss or
  squared error, *by score* for the score of this page. Missing numbers become the median, with an
  indicator column. Text becomes a column per level; levels with fewer than {LEAST_ROWS_OF_LEVEL}
  rows, and all but the {MOST_LEVELS} most frequent ones, share a column.
- *CART, 8 leaves* and *12 leaves* have their rows per leaf chosen for the score. They are compared
  with the best tree of the default's frontier with as many leaves and at most {SMALL_TERMS} terms.
- *Linear* is logistic or ridge regression with a penalty chosen by cross-validation, on numbers in
  standard units and the same columns for text, with as many levels as are frequent.
- *LightGBM*, *XGBoost* and *EBM* have their defaults, and text columns are declared as categories.
  *FIGS* has its default and CART's columns.
- *Numbers* are what a reader must read: two for a split on one feature, a number per weight and a
  threshold for another split, and the weights and constants of leaves.
- *Lines of text, 3/4*: three quarters of the tables have at most as many lines of `to_text()`.
- Times of one thread are processor time.
"""


def body_of(section: Section) -> list[str]:
    """Return a section in Markdown; its notes may be a list."""
    notes = [*section.notes, ""] if section.notes else []
    return [*markdown(section.head, section.rows), *notes]


def page(records: list[Record] | None = None) -> str:
    """Return the whole page of some records; by default, of those in the record."""
    found = Found.of(read(file_of(NAME)) if records is None else records)
    written = [(section.title, body_of(section)) for section in sections(found)]
    if not written:
        written = [("Floors", ["Not recorded yet.", ""])]
    return joined(
        [*HEAD.splitlines(), ""],
        [*written, ("Procedure", [*HOW.splitlines(), "", *origin(NAME)])],
    )


def main() -> int:
    return write_or_check(page, PAGE, __doc__.splitlines()[0])


if __name__ == "__main__":
    sys.exit(main())
