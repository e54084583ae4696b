"""Tables 2 and 3 of the TEL paper: test AUC on 23 data sets, beside the paper's numbers.

    python -m benchmarks.quality.tel_tables --data FOLDER [--names a,b] [--methods tel,xgboost]
        [--splits 5] [--rounds 20] [--folds-below 500] [--record tel_tables] [--jobs 1]
        [--budget SECONDS] [--report] [--quick]

There are ``--splits`` random 70/30 splits, stratified, with the number of the split as seed. For
each one, ``--rounds`` rounds on the training part choose a setting: the first is the library's own
default, the others come from Optuna's TPE. The chosen setting is trained on the whole training part
and scored once on the test part. The score of a round is the mean AUC over 3 folds if the part has
fewer than 500 rows, otherwise the AUC on a held-out fifth; at most 2500 rows are used. All methods
have the same rounds, rows and folds. With several classes, AUC is the mean of one class against the
rest. Columns are the numbers of the files: category codes are not one-hot encoded for any method.
Every finished split is recorded in ``results/tel_tables.jsonl`` at once and is not repeated. A
different kind of search needs a record of its own (``--record``).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ttest_rel
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks.quality.ledger import Entry, Ledger
from benchmarks.quality.tel_methods import METHODS, Method, Setting
from benchmarks.quality.tel_paper import TABLE_3
from benchmarks.quality.trials import OutOfTimeError, some_of
from benchmarks.record import RESULTS, Column, Table, alone, file_of
from benchmarks.timing import one_thread
from hardwood.selection import space_of

RECORDED = file_of("tel_tables")
TEST_PART = 0.3
FOLDS_BELOW = 500
N_FOLDS = 3
MOST_ROWS_TO_CHOOSE = 2500
TABLE_3_METHODS = ("tel", "xgboost", "logistic", "cart")


class Run(NamedTuple):
    """How the tables are computed."""

    data: Path
    results: Path
    n_splits: int
    n_rounds: int
    n_jobs: int
    deadline: float
    max_rows: int | None
    folds_below: int = FOLDS_BELOW

    def ledger(self, name: str, method: Method) -> Ledger:
        return Ledger(self.results, {"name": name, "method": method.name}, {"measure": "auc"})


def table_of(run: Run, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(run.data / f"{name}.npz") as arrays:
        X, y = arrays["X"].astype(np.float32), arrays["y"]
    if run.max_rows is not None:
        rows = np.random.default_rng(0).permutation(len(y))[: run.max_rows]
        X, y = X[rows], y[rows]
    return X, y


def auc(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    probability = model.predict_proba(X)
    if probability.shape[1] == 2:
        return float(roc_auc_score(y, probability[:, 1]))
    return float(roc_auc_score(y, probability, multi_class="ovr", labels=model.classes_))


def folds(y: np.ndarray, seed: int, folds_below: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield training rows and validation rows for the score of a round."""
    rows = np.arange(len(y))
    if len(y) > MOST_ROWS_TO_CHOOSE:
        rows, _ = train_test_split(
            rows, train_size=MOST_ROWS_TO_CHOOSE, random_state=seed, stratify=y
        )
    if len(rows) >= folds_below:
        fitted, scored = train_test_split(rows, test_size=0.2, random_state=seed, stratify=y[rows])
        yield fitted, scored
        return
    cut = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    for fitted, scored in cut.split(rows, y[rows]):
        yield rows[fitted], rows[scored]


def chosen(run: Run, method: Method, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[Any, float]:
    """Return the setting of the best round, and its score."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    parts = list(folds(y, seed, run.folds_below))
    suggest = space_of(_Parameters(method), method.space)

    def score(setting: Setting) -> float:
        if time.monotonic() > run.deadline:
            raise OutOfTimeError
        scores = []
        for fitted, scored in parts:
            model = method.make(setting, seed, run.n_jobs).fit(X[fitted], y[fitted])
            scores.append(auc(model, X[scored], y[scored]))
        return float(np.mean(scores))

    def objective(trial: Any) -> float:
        setting = suggest(trial)
        trial.set_user_attr("setting", setting)
        return score(setting)

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    by_default = score(method.default)
    study.optimize(objective, n_trials=run.n_rounds - 1)
    if run.n_rounds == 1 or by_default >= study.best_value:
        return method.default, by_default
    return study.best_trial.user_attrs["setting"], study.best_value


class _Parameters:
    """What `space_of` asks of an estimator: which parameters there are."""

    def __init__(self, method: Method) -> None:
        self.names = list(method.space)

    def get_params(self) -> Setting:
        return dict.fromkeys(self.names)


def entry_of(run: Run, name: str, method: Method, split: int) -> Entry:
    """Choose a setting, train and score it on one split."""
    X, y = table_of(run, name)
    fitted, scored = train_test_split(
        np.arange(len(y)), test_size=TEST_PART, random_state=split, stratify=y
    )
    start = time.perf_counter()
    if method.setting_of is None:
        setting, score = chosen(run, method, X[fitted], y[fitted], split)
    else:
        taken = run.ledger(name, METHODS[method.setting_of]).run(split, split)
        setting, score = taken["setting"], taken["chosen_by"]
    chose = time.perf_counter()
    model = method.make(setting, split, run.n_jobs).fit(X[fitted], y[fitted])
    return {
        "split": split,
        "seed": split,
        "rounds": run.n_rounds,
        "folds_below": run.folds_below,
        "setting": setting,
        "chosen_by": score,
        "auc": auc(model, X[scored], y[scored]),
        "choosing_seconds": chose - start,
        "seconds": time.perf_counter() - chose,
        **_reached(model, X[scored]),
    }


def _reached(model: Any, X: np.ndarray) -> Entry:
    if not hasattr(model, "reachable_leaves"):
        return {}
    return {"reachable_leaves": float(model.reachable_leaves(X).mean())}


def work(run: Run, names: list[str], methods: list[Method]) -> None:
    """Make what is missing, split by split, so that all rows grow together."""
    for split in range(run.n_splits):
        for name in names:
            for method in methods:
                ledger = run.ledger(name, method)
                with alone(ledger.name) as is_alone:
                    ledger = run.ledger(name, method)
                    if not is_alone or ledger.run(split, split) is not None:
                        continue
                    if not _can_be_made(run, name, method, split):
                        continue
                    entry = entry_of(run, name, method, split)
                    ledger.add_run(entry)
                print(
                    f"{name} {method.name} split {split}: {entry['auc']:.4f} "
                    f"({entry['choosing_seconds']:.0f} s)",
                    flush=True,
                )


def _can_be_made(run: Run, name: str, method: Method, split: int) -> bool:
    source = method.setting_of
    return source is None or run.ledger(name, METHODS[source]).run(split, split) is not None


def rows_of(run: Run, names: list[str], methods: list[Method]) -> list[Entry]:
    """Return one row per data set: mean and deviation of each method over the splits all have."""
    rows = []
    for name in names:
        aucs = {
            method.name: {e["split"]: e["auc"] for e in run.ledger(name, method).runs}
            for method in methods
        }
        shared = sorted(set.intersection(*(set(found) for found in aucs.values())))
        if not shared:
            continue
        values = {key: np.array([found[s] for s in shared]) for key, found in aucs.items()}
        rows.append({"name": name, "n_splits": len(shared), "splits": shared, "values": values})
    return rows


def wins(rows: list[Entry], methods: list[Method]) -> dict[str, int]:
    """Count the data sets where a method's mean AUC, to three places, is not below another's."""
    count = dict.fromkeys((method.name for method in methods), 0)
    for row in rows:
        means = {key: round(float(v.mean()), 3) for key, v in row["values"].items()}
        for key, mean in means.items():
            count[key] += mean == max(means.values())
    return count


def p_value(first: np.ndarray, second: np.ndarray) -> float:
    """Return the two-sided paired t-test; NaN with one split, 1 where nothing differs."""
    if np.array_equal(first, second):
        return 1.0
    return float(ttest_rel(first, second).pvalue) if len(first) > 1 else float("nan")


def report(run: Run, names: list[str], methods: list[Method]) -> None:
    rows = rows_of(run, names, methods)
    columns = [Column("name", "data", width=24, words=True), Column("n_splits", "splits")]
    columns += [Column(m.name, m.title, width=16, words=True) for m in methods]
    columns += [Column("paper", "TEL, paper"), Column("p", "p, TEL and XGBoost", ".3f")]
    table = Table("tel_tables", "Test AUC, mean and deviation over splits", columns, kept=False)
    for row in rows:
        cells = {
            key: f"{v.mean():.3f} ± {v.std(ddof=1) if len(v) > 1 else 0:.3f}"
            for key, v in row["values"].items()
        }
        both = "tel" in cells and "xgboost" in cells
        table.add(
            name=row["name"],
            n_splits=row["n_splits"],
            **cells,
            paper=TABLE_3[row["name"]].tel,
            p=p_value(row["values"]["tel"], row["values"]["xgboost"]) if both else float("nan"),
        )
    counts = wins(rows, methods)
    print(f"\nwins or draws to three places, of {len(rows)}: {counts}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder of NAME.npz")
    parser.add_argument("--names", type=some_of(TABLE_3), default=[])
    parser.add_argument("--methods", type=some_of(METHODS), default=list(TABLE_3_METHODS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--folds-below", type=int, default=FOLDS_BELOW, metavar="ROWS")
    parser.add_argument("--record", default=RECORDED.stem, help="name of the file in results/")
    parser.add_argument("--jobs", type=int, default=1, help="threads of one fit")
    parser.add_argument("--budget", type=float, default=np.inf, help="seconds; then no new fit")
    parser.add_argument("--report", action="store_true", help="print the records, fit nothing")
    parser.add_argument("--quick", action="store_true", help="a smoke run, not recorded")
    options = parser.parse_args(argv)
    names = options.names or list(TABLE_3)
    methods = [METHODS[name] for name in options.methods]
    one_thread()
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = Run(
            options.data,
            file_of(options.record, Path(scratch) if options.quick else RESULTS),
            1 if options.quick else options.splits,
            2 if options.quick else options.rounds,
            options.jobs,
            time.monotonic() + options.budget,
            400 if options.quick else None,
            options.folds_below,
        )
        if not options.report:
            try:
                work(run, names, methods)
            except OutOfTimeError:
                print("The budget is spent; run again to continue.", flush=True)
        report(run, names, methods)


if __name__ == "__main__":
    main(sys.argv[1:])
