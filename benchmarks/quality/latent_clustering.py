"""Hierarchical clustering by latent trees, compared with hierarchical k-means and BIRCH.

    python -m benchmarks.quality.latent_clustering --data FOLDER [--figures | --report]

Section 4.2 of the latent trees paper: on glass, refractive index and sodium are regressed on the
other columns; on covtype, the distances to hydrology. Each of four runs has 60 % training, 20 %
validation and 20 % test rows. The validation error of the regression chooses the settings; labels
are used only for the dendrogram purity of the test rows. Every fit is recorded at once and is not
repeated. ``--report`` prints the records, ``--figures`` draws the paper's Figures 6 to 8.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.quality.clustering_peers import Clustered, birch, hierarchical_kmeans
from benchmarks.quality.ledger import Entry, Ledger
from benchmarks.record import RESULTS, alone, file_of
from benchmarks.timing import one_thread
from hardwood import LatentTreeClustering
from hardwood.report import dendrogram_purity

RECORDED = file_of("latent_clustering")
IMAGES = RESULTS.parents[1] / "docs" / "images"
N_RUNS = 4
PRICES = (1.0, 10.0, 100.0)
BIRCH_ROWS = 20_000  # one by one, in Python
LATENT = {"latent": "bisect", "latent_random": "random"}
WORDS = {
    "latent": "latent tree, start by 2-means",
    "latent_random": "latent tree, random start",
    "hkmeans": "hierarchical k-means",
    "birch": "BIRCH, then Ward",
}


@dataclass(frozen=True)
class Data:
    """A table, the columns to regress, and the paper's numbers."""

    name: str
    targets: tuple[int, ...]
    batch_size: int
    max_epochs: int | str
    depths: tuple[int, ...]
    floor: float
    paper: dict[str, str]


DATA = (
    Data(
        "glass",
        (0, 1),
        32,
        "auto",
        (4, 5, 6),
        0.44,
        {"latent": "0.468 ± 0.028", "hkmeans": "0.508 ± 0.008", "birch": "0.429 ± 0.013"},
    ),
    Data(
        "covtype",
        (3, 4),
        512,
        10,
        (5,),
        0.451,
        {"latent": "0.459 ± 0.008", "hkmeans": "0.440 ± 0.001", "birch": "0.440 ± 0.002"},
    ),
)


@dataclass(frozen=True)
class Parts:
    """The rows of one run."""

    X: np.ndarray
    y: np.ndarray
    learnable: np.ndarray
    test: np.ndarray


def parts(folder: Path, data: Data, run: int, max_rows: int) -> Parts:
    """Draw 20 % test rows, and from the others a limited number for training and validation."""
    with np.load(folder / f"{data.name}.npz") as arrays:
        X, y = arrays["X"].astype(np.float32), arrays["y"]
    rows = np.arange(len(y))
    learnable, test = train_test_split(rows, test_size=0.2, random_state=run, stratify=y)
    if len(learnable) > max_rows:
        learnable = np.random.default_rng(run).permutation(learnable)[:max_rows]
    return Parts(X, y, learnable, test)


def settings(data: Data, method: str) -> list[Entry]:
    """Return the settings to try of a method."""
    if method not in LATENT:
        return [{"depth": max(data.depths)}]  # the number of leaves of the deepest latent trees
    return [{"depth": d, "pruning": price} for d in data.depths for price in PRICES]


def fitted(data: Data, method: str, setting: Entry, rows: Parts, run: int) -> LatentTreeClustering:
    return LatentTreeClustering(
        max_depth=setting["depth"],
        pruning=setting["pruning"],
        targets=list(data.targets),
        split_init=LATENT[method],
        batch_size=data.batch_size,
        max_epochs=data.max_epochs,
        validation_fraction=0.25,
        early_stopping=True,
        random_state=run,
    ).fit(rows.X[rows.learnable])


def measured(data: Data, method: str, setting: Entry, rows: Parts, run: int) -> Entry:
    """Fit once; return the validation error, and the purity, which chooses nothing."""
    start = time.process_time()
    if method in LATENT:
        model = fitted(data, method, setting, rows, run)
        found = Clustered(model.children_, model.apply(rows.X))
        known = {
            "validation_error": model.validation_error_,
            "active": len(model.latent_.nodes) / (2 ** (setting["depth"] + 1) - 1),
            "activity": float(model.latent_.activity.sum()),
            "passes": model.n_iter_,
        }
    else:
        found, known = peer(method, rows, setting["depth"], run), {}
    seconds = time.process_time() - start
    return {
        "purity": dendrogram_purity(rows.y[rows.test], found.children, found.leaves[rows.test]),
        "purity_all": dendrogram_purity(rows.y, found.children, found.leaves),
        "purity_as_paper": dendrogram_purity(
            rows.y[rows.test], found.children, found.leaves[rows.test], self_pairs=True
        ),
        "leaves": len(found.children) + 1,
        "rows": len(rows.learnable),
        "seconds": seconds,
        **known,
    }


def peer(method: str, rows: Parts, depth: int, run: int) -> Clustered:
    """Cluster all columns, scaled to mean 0 and standard deviation 1."""
    scale = StandardScaler().fit(rows.X[rows.learnable])
    own, others = scale.transform(rows.X[rows.learnable]), scale.transform(rows.X)
    if method == "hkmeans":
        return hierarchical_kmeans(own, others, depth, run)
    return birch(own[:BIRCH_ROWS], others, 2**depth)


def ledger_of(data: Data, method: str) -> Ledger:
    key = {"data": data.name, "method": method}
    return Ledger(RECORDED, key, {"targets": list(data.targets)})


def make(folder: Path, data: Data, method: str, max_rows: int) -> None:
    """Make the fits that are not recorded yet."""
    with alone(ledger_of(data, method).name) as is_free:
        if not is_free:
            print(f"{data.name} {method}: another process is working on it")
            return
        ledger = ledger_of(data, method)
        for run in range(N_RUNS):
            missing = [s for s in settings(data, method) if ledger.choice(run, s, 0) is None]
            rows = parts(folder, data, run, max_rows) if missing else None
            for setting in missing:
                entry = measured(data, method, setting, rows, run)
                ledger.add_choice({"split": run, "setting": setting, "repeat": 0, **entry})
                print(f"{data.name} {method} run {run} {setting}: {entry}", flush=True)


def chosen(ledger: Ledger) -> list[Entry]:
    """Return the fit with the smallest validation error of each run."""
    runs = sorted({entry["split"] for entry in ledger.choosing})
    return [
        min(
            (entry for entry in ledger.choosing if entry["split"] == run),
            key=lambda entry: entry.get("validation_error", 0.0),
        )
        for run in runs
    ]


def spread(entries: list[Entry], key: str, form: str = ".3f") -> str:
    values = [entry[key] for entry in entries]
    return f"{np.mean(values):{form}} ± {np.std(values, ddof=1):{form}}"


def rows_of(data: Data) -> Iterator[list[str]]:
    """Yield the table's rows of one data set."""
    for method, words in WORDS.items():
        best = chosen(ledger_of(data, method))
        if not best:
            continue
        error = spread(best, "validation_error") if method in LATENT else "–"
        yield [
            data.name,
            words,
            spread(best, "purity"),
            spread(best, "purity_as_paper"),
            spread(best, "purity_all"),
            f"{np.mean([entry['leaves'] for entry in best]):.0f}",
            error,
            f"{np.mean([entry['seconds'] for entry in best]):.1f}",
            data.paper.get(method, "–"),
        ]


def pruning_rows(data: Data) -> Iterator[list[str]]:
    """Yield the effect of each pruning penalty, at each depth."""
    for method in LATENT:
        entries = ledger_of(data, method).choosing
        for depth in data.depths:
            for price in PRICES:
                own = [e for e in entries if e["setting"] == {"depth": depth, "pruning": price}]
                if own:
                    yield [
                        data.name,
                        LATENT[method],
                        str(depth),
                        f"{price:g}",
                        f"{100 * np.mean([e['active'] for e in own]):.0f} %",
                        f"{np.mean([e['activity'] for e in own]):.1f}",
                        f"{np.mean([e['leaves'] for e in own]):.0f}",
                        spread(own, "validation_error"),
                        spread(own, "purity"),
                    ]


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def section() -> list[str]:
    """Return the section of docs/results about clustering, as lines."""
    main = [row for data in DATA for row in rows_of(data)]
    pruned = [row for data in DATA for row in pruning_rows(data)]
    return [
        *_TABLE_WORDS.splitlines(),
        "",
        *table(_HEAD, main),
        "",
        *shallower(DATA[0], "latent"),
        *_PRUNING_WORDS.splitlines(),
        "",
        *table(_PRUNING_HEAD, pruned),
        "",
        *_FIGURE_WORDS.splitlines(),
    ]


def shallower(data: Data, method: str) -> list[str]:
    """Return the result without the deepest trees: depths 4 and 5 were tried first."""
    ledger = ledger_of(data, method)
    depth = max(data.depths)
    ledger.choosing = [e for e in ledger.choosing if e["setting"]["depth"] < depth]
    if not ledger.choosing:
        return []
    figure = spread(chosen(ledger), "purity")
    return [
        f"Depths below {depth} were tried first; without depth {depth} the same rule gives "
        f"{figure} "
        f"on {data.name}.",
        "",
    ]


_HEAD = ["data", "method", "purity", "self pairs", "all rows", "leaves", "error", "CPU s", "paper"]
_PRUNING_HEAD = ["data", "start", "depth", "λ", "active", "Σ a", "leaves", "error", "purity"]
_TABLE_WORDS = """\
*Purity* is measured on the test rows (20 %), over pairs of different rows. *Self pairs* also counts
each row as a pair with itself, as the authors' code does. *All rows* includes the training rows.
The depth (glass: 4, 5, 6; covtype: 5) and λ (1, 10, 100) of latent trees are those with the
smallest *error* of the regression on validation rows, in units of the targets' variance, chosen
for each seed. The authors' published search chooses by the purity of validation rows. The other
methods cluster all columns, scaled to standard deviation 1, into as many leaves as the deepest
latent tree can have; they also train on the validation rows.

Two choices were made after seeing purity and favor the rows "start by 2-means": depth 6 was added
for glass after depths 4 and 5 had been evaluated, and that start became the default after both
starts had been evaluated. The table therefore shows the random start too, and the text below it
shows glass without depth 6.

Training uses at most 60,000 rows of covtype and 10 epochs with batches of 512 (BIRCH: 20,000 rows,
with its subclusters merged by Ward's method). All 116,203 test rows are scored. CPU seconds are of
one fit.
"""
_PRUNING_WORDS = """\
The effect of λ, mean over the same seeds: the share of active nodes, the sum of their activities,
and the leaves that rows reach:
"""
_FIGURE_WORDS = """\
Figures 6, 7 and 8 on glass (`--figures`), first seed, start by 2-means: rows by node at depth 4 for
λ = 1, 10, 100; active nodes during training at depth 6; and rows by class at depth 5, λ = 10. The
kinds of window glass go one way and headlamps another, although training sees no labels.

<img src="../images/latent_routing.png" alt="Three trees, paler as λ grows" width="900">

<img src="../images/latent_active.png" alt="Share of active nodes by epoch" width="400">

<img src="../images/latent_classes.png" alt="Six trees, one per kind of glass" width="700">
"""


def draw_figures(folder: Path) -> None:
    """Draw Figures 6, 7 and 8 of the paper, on glass, run 0."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    data = DATA[0]
    rows = parts(folder, data, 0, sys.maxsize)
    figure, axes = plt.subplots(1, len(PRICES), figsize=(17, 3.8))
    lines, line_ax = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
    for price, ax in zip(PRICES, axes, strict=True):
        model = fitted(data, "latent", {"depth": 4, "pruning": price}, rows, 0)
        purity = dendrogram_purity(rows.y[rows.test], model, model.apply(rows.X[rows.test]))
        title = f"λ = {price:g}: dendrogram purity {purity:.3f}"
        model.plot_routing(rows.X, title=title, ax=ax)
        deep = fitted(data, "latent", {"depth": 6, "pruning": price}, rows, 0)
        deep.plot_active_share(label=f"λ = {price:g}", ax=line_ax)
    model = fitted(data, "latent", {"depth": 5, "pruning": 10.0}, rows, 0)
    names = [
        "building, float",
        "building",
        "vehicle, float",
        "containers",
        "tableware",
        "headlamps",
    ]
    by_class = model.plot_routing_by_class(rows.X, rows.y, names=names)
    IMAGES.mkdir(exist_ok=True)
    for name, drawn in (("routing", figure), ("active", lines), ("classes", by_class)):
        path = IMAGES / f"latent_{name}.png"
        drawn.savefig(path, dpi=80, bbox_inches="tight")
        print(path)


def main() -> int:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder of NAME.npz")
    parser.add_argument("--names", default="glass,covtype")
    parser.add_argument("--methods", default=",".join(WORDS))
    parser.add_argument("--max-rows", type=int, default=60_000, help="to learn from and choose by")
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    if not arguments.report and arguments.data is None:
        parser.error("--data FOLDER is needed to fit")
    if arguments.figures:
        draw_figures(arguments.data)
        return 0
    if not arguments.report:
        for data in DATA:
            for method in arguments.methods.split(","):
                if data.name in arguments.names.split(","):
                    make(arguments.data, data, method, arguments.max_rows)
    print("\n".join(section()))
    best = {data.name: chosen(ledger_of(data, "latent")) for data in DATA}
    passed = [
        np.mean([entry["purity"] for entry in best[data.name]]) >= data.floor
        for data in DATA
        if best[data.name]
    ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
