"""Draw and record Figures 2 and 4 of the TEL paper.

    python -m benchmarks.quality.tel_figures --data FOLDER [--figures 2,4] [--seeds 5] [--quick]

Figure 2 shows the leaves that a row reaches by epoch, as means over an epoch (the paper has a point
per batch), for several values of gamma: one tree of depth 10 on the diabetes data (the rows of
pima), Adam with learning rate 0.1, batches of 256.

Figure 4 shows the test AUC by the number of trees on heart-c, pima and spambase. TEL has the
setting that `tel_tables.py` chose on the same split, except for the number of trees. XGBoost's
depth is the one whose number of parameters is closest to that of a TEL tree; its learning rate and
penalty are chosen on validation rows in as many rounds as in the tables. The AUC with n trees is
that of the first n trees of one model. Recorded splits are not repeated.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import sem
from sklearn.model_selection import train_test_split

from benchmarks.provenance import provenance
from benchmarks.quality.tel_methods import METHODS, Method
from benchmarks.quality.tel_tables import RECORDED, TEST_PART, Run, auc, chosen, table_of
from benchmarks.quality.trials import some_of
from benchmarks.record import RESULTS, Record, append, file_of, read, replace
from benchmarks.timing import one_thread
from hardwood import TELClassifier
from hardwood.learn import Training

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "images"
GAMMAS = (1e-3, 1e-2, 0.1, 1.0, 10.0)
DEPTH, PASSES = 10, 60
COMPARED = ("heart-c", "pima", "spambase")
TREES = (1, 2, 5, 10, 20, 50, 100)
BOOSTED = (1, 2, 5, 10, 20, 50, 100, 200, 500)
Rows = list[dict[str, Any]]


# --- Figure 2 ----------------------------------------------------------------------------------


def reachable_leaves(run: Run, passes: int) -> Rows:
    X, y = table_of(run, "diabetes")
    rows = []
    for gamma in GAMMAS:
        model = TELClassifier(
            n_estimators=1,
            max_depth=DEPTH,
            gamma=gamma,
            learning_rate=0.1,
            batch_size=256,
            max_epochs=passes,
            early_stopping=False,
            random_state=0,
            training=Training(optimizer="adam", schedule="constant", clip_norm=None),
        ).fit(X, y)
        leaves = [epoch.reachable_leaves for epoch in model.history_]
        print(f"gamma {gamma:g}: {leaves[0]:.1f} leaves in pass 1, {leaves[-1]:.2f} in the last")
        rows.append({"gamma": gamma, "leaves": leaves})
    return rows


def draw_reachable(rows: Rows, path: Path) -> None:
    figure, axes = _axes(1)
    for row in rows:
        passes = range(1, len(row["leaves"]) + 1)
        axes[0].plot(passes, row["leaves"], label=f"gamma = {row['gamma']:g}")
    axes[0].set_yscale("log", base=2)
    axes[0].set_xlabel("pass over the rows")
    axes[0].set_ylabel(f"leaves a row reaches, of {2**DEPTH}")
    axes[0].legend()
    figure.savefig(path, dpi=150)


# --- Figure 4 ----------------------------------------------------------------------------------


def boosted_depth(tel_depth: int, n_columns: int) -> int:
    """Return the depth of an axis-aligned tree with about as many parameters as a soft one."""
    soft = (2**tel_depth - 1) * (n_columns + 1) + 2**tel_depth
    # A split has a column and a threshold, a leaf a value.
    return max(1, round(math.log2((soft + 2) / 3)))


def by_number_of_trees(run: Run, name: str, split: int) -> Rows:
    X, y = table_of(run, name)
    fitted, scored = train_test_split(
        np.arange(len(y)), test_size=TEST_PART, random_state=split, stratify=y
    )
    entry = run._replace(results=RECORDED).ledger(name, METHODS["tel"]).run(split, split)
    if entry is None:
        raise SystemExit(f"{name}, split {split}: run tel_tables first, it chooses the setting")
    rows = []
    for n_trees in TREES:
        setting = entry["setting"] | {"n_estimators": n_trees}
        model = METHODS["tel"].make(setting, split, run.n_jobs).fit(X[fitted], y[fitted])
        rows.append(_row(name, split, "tel", n_trees, auc(model, X[scored], y[scored])))
    depth = boosted_depth(entry["setting"]["max_depth"], X.shape[1])
    return rows + _boosted(run, name, split, depth, (X[fitted], y[fitted], X[scored], y[scored]))


def all_numbers_of_trees(run: Run) -> Rows:
    """Compute what is missing of Figure 4, split by split, and record it."""
    path = file_of("tel_trees", run.results)
    rows: Rows = [record.result for record in read(path)]
    for split in range(run.n_splits):
        for name in COMPARED:
            if not any((row["name"], row["split"]) == (name, split) for row in rows):
                for row in by_number_of_trees(run, name, split):
                    append(path, Record(row, provenance()))
                    rows.append(row)
    return rows


def _boosted(run: Run, name: str, split: int, depth: int, parts: tuple[np.ndarray, ...]) -> Rows:
    X, y, test_X, test_y = parts
    fixed = {"max_depth": depth}
    peer = METHODS["xgboost"]
    method = Method(
        "xgboost",
        peer.title,
        lambda setting, seed, n_jobs: peer.make(fixed | setting, seed, n_jobs),
        {key: values for key, values in peer.space.items() if key != "max_depth"},
        {key: value for key, value in peer.default.items() if key != "max_depth"},
    )
    setting, _ = chosen(run, method, X, y, split)
    model = method.make(setting | {"n_estimators": BOOSTED[-1]}, split, run.n_jobs).fit(X, y)
    return [_row(name, split, "xgboost", n, auc(_First(model, n), test_X, test_y)) for n in BOOSTED]


class _First:
    """The first trees of a boosted model."""

    def __init__(self, model: Any, n_trees: int) -> None:
        self.model, self.n_trees = model, n_trees
        self.classes_ = model.classes_

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict_proba(X, iteration_range=(0, self.n_trees))


def _row(name: str, split: int, method: str, n_trees: int, score: float) -> dict[str, Any]:
    return {"name": name, "split": split, "method": method, "n_trees": n_trees, "auc": score}


def draw_trees(rows: Rows, path: Path) -> None:
    figure, axes = _axes(len(COMPARED))
    for ax, name in zip(axes, COMPARED, strict=True):
        for method, mark in (("tel", "o-"), ("xgboost", "s--")):
            of_both = [r for r in rows if (r["name"], r["method"]) == (name, method)]
            counts = sorted({row["n_trees"] for row in of_both})
            groups = [[r["auc"] for r in of_both if r["n_trees"] == n] for n in counts]
            mean = [float(np.mean(group)) for group in groups]
            error = [float(sem(group)) if len(group) > 1 else 0.0 for group in groups]
            ax.errorbar(counts, mean, error, fmt=mark, capsize=2, label=METHODS[method].title)
        ax.set_xscale("log")
        ax.set_xlabel("trees")
        ax.set_title(name)
    axes[0].set_ylabel("test AUC, mean and standard error")
    axes[0].legend()
    figure.savefig(path, dpi=150)


def _axes(n: int) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, n, figsize=(6 if n == 1 else 4 * n, 4), layout="constrained")
    return figure, np.atleast_1d(axes)


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--figures", type=some_of((2, 4)), default=["2", "4"])
    parser.add_argument("--seeds", type=int, default=5, help="splits of Figure 4")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="Figure 2 alone, few passes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        kept = Path(scratch) if options.quick else RESULTS
        pictures = Path(scratch) if options.quick else PICTURES
        run = Run(options.data, kept, options.seeds, options.rounds, 1, np.inf, None)
        if "2" in options.figures:
            rows = reachable_leaves(run, 5 if options.quick else PASSES)
            found = [Record(row, provenance()) for row in rows]
            replace(file_of("tel_reachable", kept), found)
            draw_reachable(rows, pictures / "tel_reachable.png")
        if "4" in options.figures and not options.quick:
            draw_trees(all_numbers_of_trees(run), pictures / "tel_trees.png")


if __name__ == "__main__":
    sys.exit(main())
