"""Table 7 of the DGT paper: an ablation of its design choices.

    python -m benchmarks.quality.ablations --data FOLDER [--names ailerons,abalone]
        [--variants product,annealed] [--seeds 5] [--jobs 1] [--budget SECONDS] [--report] [--quick]

The paper's DGT (sum form, three layers, quantized) is compared with variants that change one
choice: the product form with a softmax after it (a), one layer (b), annealed sigmoids (c), the
hidden sizes of Table 12, the authors' scaled quantizer, and PAT (product, softmax, annealed, one
layer), the baseline of Table 1. Our product form and our PAT have no softmax after the product.
Every variant chooses its own setting on validation rows (`trials.py`). The final fits have the same
seeds and splits and are compared in pairs. Each has one random start: with the best of several, a
variant whose starts differ more would look better than it is.

PAT and annealed trees are soft until training ends. Their loss from hardening is reported, relative
to their validation loss. Fits are recorded in ``results/ablations.jsonl``, as in `dgt_tables`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.quality.dgt_paper import TASKS, Task
from benchmarks.quality.learners import Grid, Method, tree
from benchmarks.quality.trials import Run, add_options, paper_words, run_of, some_of, summary, work
from benchmarks.record import Column, Table, file_of, verdict
from benchmarks.timing import one_thread

RECORDED = file_of("ablations")
NAMES = [task.name for task in TASKS.values() if 7 in task.tables]
BASE = "dgt"
# Three narrow layers with a penalty: on validation rows at least as good as the hidden sizes of
# Table 12 (which have their own row), and faster (speed/dgt_layers.py). All variants choose among
# the same learning rates and penalties, so a row differs from the first in one design choice.
_COMMON: dict[str, list[Any]] = {
    "momentum": [0.3],
    "learning_rate": [0.003, 0.01],
    "l2": [1e-5, 1e-4, 3e-4],
    "batch_size": [256],
    "training": [{"clip_norm": 0.1}],
    "n_restarts": [1],
}
_THREE_LAYERS: dict[str, list[Any]] = {"layers": [[32, 32]], **_COMMON}
_ONE_LAYER: dict[str, list[Any]] = {"layers": [1], **_COMMON}
_TABLE_12: dict[str, list[Any]] = {
    "layers": [3],
    "momentum": [0.3],
    "l1": [1e-5],
    "n_restarts": [1],
}


def _relaxed(base: dict[str, list[Any]], **choice: str) -> Grid:
    return [{**base, "relaxation": [choice]}]


def _annealed(base: dict[str, list[Any]], **choice: str) -> Grid:
    """Appendix C.3.1: schedules and ranges of the sharpness are tuned too."""
    schedules = [
        {**choice, "routing": "annealed", "sharpness": sharpness, "annealing": annealing}
        for sharpness in ([1, 100], [1, 1000], [10, 100], [10, 1000])
        for annealing in ("linear", "log")
    ]
    return [{**base, "learning_rate": [0.01], "l2": [1e-4], "relaxation": schedules}]


def _variant(name: str, title: str, grid: Grid) -> Method:
    return Method(name, title, tree, {"": grid}, is_ours=True, quick={"max_epochs": 3})


VARIANTS = {
    variant.name: variant
    for variant in (
        _variant(BASE, "DGT: sum, L = 3, quantized", [_THREE_LAYERS]),
        _variant(
            "product_softmax",
            "(a) product, then softmax",
            _relaxed(_THREE_LAYERS, path="product_softmax"),
        ),
        _variant("product", "ours: product", _relaxed(_THREE_LAYERS, path="product")),
        _variant("one_layer", "(b) L = 1", [_ONE_LAYER]),
        _variant("table_12", "L = 3, sizes of Table 12, l1", [_TABLE_12]),
        _variant("annealed", "(c) annealed sigmoids", _annealed(_THREE_LAYERS)),
        _variant("scaled", "scaled quantizer", _relaxed(_THREE_LAYERS, quantizer="scaled")),
        _variant(
            "pat_softmax",
            "PAT: product, softmax, annealed, L = 1",
            _annealed(_ONE_LAYER, path="product_softmax"),
        ),
        _variant("pat", "PAT without its softmax", _annealed(_ONE_LAYER, path="product")),
    )
}
# The paper has these worse than its choice. "L = 3 helps in many datasets": no worse is enough.
WORSE = ("product_softmax", "annealed", "pat_softmax")
NO_BETTER = ("one_layer",)
# The paper's numbers of these variants have other names.
_IN_THE_PAPER = {"product_softmax": "product", "pat_softmax": "pat", "product": "", "pat": ""}
COLUMNS = [
    Column("name", "data", width=10, words=True),
    Column("title", "variant", width=38, words=True),
    Column("here", "RMSE", width=15),
    Column("runs", "runs"),
    Column("difference", "less DGT's", width=24),
    Column("worse_in", "worse in"),
    Column("paper", "paper", width=15),
    Column("expected", "expected", words=True, width=9),
    Column("verdict", ""),
    Column("hardening", "hardening", ".1%"),
    Column("seconds", "fit, s", ".1f"),
    Column("chosen", "chosen", words=True),
]


def paired(run: Run, task: Task, variant: Method) -> np.ndarray:
    """Return the differences in RMSE from DGT, by seed, for the seeds that both have."""
    scores = [
        {(entry["split"], entry["seed"]): entry["score"] for entry in run.ledger(task, one).runs}
        for one in (variant, VARIANTS[BASE])
    ]
    both = sorted(scores[0].keys() & scores[1].keys())
    return np.array([scores[0][key] - scores[1][key] for key in both])


def printed(task: Task, variant: str) -> str | None:
    """Return the paper's score of a variant."""
    return paper_words(task, _IN_THE_PAPER.get(variant, variant))


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Return the paired 95 % interval of the mean difference (Student's t)."""
    error = float(differences.std(ddof=1) / np.sqrt(len(differences)))
    half = float(student.ppf(0.975, len(differences) - 1)) * error
    return float(differences.mean()) - half, float(differences.mean()) + half


def comparison(variant: str, differences: np.ndarray) -> dict[str, Any]:
    """Return the paired comparison with DGT, and whether it agrees with the paper.

    "worse" needs an interval above zero; one that contains zero leaves it open.
    """
    if len(differences) < 2:
        return {}
    mean = float(differences.mean())
    low, high = interval(differences)
    row: dict[str, Any] = {
        "difference": f"{mean:+.3f} ({low:+.3f}, {high:+.3f})",
        "difference_mean": mean,
        "difference_interval": (low, high),
        "worse_in": f"{int((differences > 0).sum())}/{len(differences)}",
    }
    if variant in WORSE:
        row |= {"expected": "worse", **verdict(low > 0)}
        if low <= 0 < high:
            row["verdict"] = "open"
    elif variant in NO_BETTER:
        row |= {"expected": "no better", **verdict(high > 0)}
    return row


def variant_row(run: Run, task: Task, variant: Method) -> dict[str, Any] | None:
    """Return the recorded row of a variant on a data set; None without a run."""
    row = summary(run, task, variant)
    if row is None:
        return None
    row["paper"] = printed(task, variant.name)
    if row["hardening_loss"] is not None and row["validation_loss"] is not None:
        row["hardening"] = row["hardening_loss"] / row["validation_loss"]
    if variant.name != BASE and not run.is_quick:
        row |= comparison(variant.name, paired(run, task, variant))
    return row


def report(run: Run, names: list[str], variants: list[str]) -> bool:
    """Print all recorded rows; return whether all are recorded and agree with the paper."""
    table = Table(
        "ablations",
        "DGT with one design choice changed: test RMSE, mean ± standard deviation over "
        "seeds, and the paired difference (its 95 % interval).",
        COLUMNS,
        kept=False,
    )
    missing = []
    for name in names:
        for variant in variants:
            row = variant_row(run, TASKS[name], VARIANTS[variant])
            if row is None:
                missing.append(f"{name} {variant}")
            else:
                table.add(**row)
    notes = [f"Not recorded: {', '.join(missing)}."] if missing else []
    notes.append("Hardening: the relative increase of the loss from the soft tree to the hard one.")
    return table.finish(*notes) and not missing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--names", type=some_of(NAMES), default="", help=", ".join(NAMES))
    parser.add_argument("--variants", type=some_of(VARIANTS), default="", help=", ".join(VARIANTS))
    arguments = parser.parse_args()
    if arguments.jobs == 1:
        one_thread()
    names, variants = arguments.names or NAMES, arguments.variants or list(VARIANTS)
    with tempfile.TemporaryDirectory() as scratch:
        run = run_of(arguments, RECORDED, scratch)
        if not arguments.report:
            work(run, [(TASKS[name], VARIANTS[variant]) for name in names for variant in variants])
        return 0 if report(run, names, variants) else 1


if __name__ == "__main__":
    sys.exit(main())
