"""Figure 4 of the non-greedy paper: loss-augmented inference in three ways, by depth.

    python -m benchmarks.speed.non_greedy_inference --data FOLDER [--tables step] [--quick]

SGD on Connect4 (`connect4.npz`) with batches of 128, and inference by evaluating every leaf
("exhaustive", Eq. 10), by branch and bound ("exact", the same leaf) and within the Hamming ball of
radius 1 ("fast", Eq. 13). One thread, whole epochs over 2048 training rows: inference and its step,
so ratios of inference alone would be larger. Time is read between epochs of one fit, the three ways
take turns, and the best epoch counts. The learning rate is 1e-9, so all epochs see the same tree:

- `start`: the axis-aligned tree of that depth, trained on all training rows;
- `trained`: after 8 epochs of stable SGD over them (rate 0.1, nu 43).

The script checks for all of these rows that branch and bound finds the same leaf and the same bound
as evaluating every leaf. The floor is 10 times the examples per second at depth 14.

A second table shows the time of a step of the fast variant: perfect trees with random splits on
random rows of p columns. The paper says O(depth^2 p).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.quality.dgt_paper import TASKS
from benchmarks.quality.parts import parts
from benchmarks.quality.trials import some_of
from benchmarks.record import Column, Table, verdict
from benchmarks.timing import one_thread
from hardwood import _probes
from hardwood.learn.gradient.engine import run_engine
from hardwood.learn.greedy import Greedy
from hardwood.learn.learner import Run
from hardwood.learn.losses import CrossEntropy
from hardwood.learn.non_greedy import Inference, NonGreedy, start_from
from hardwood.learn.start import StartTree, left_to_right
from hardwood.learn.task import Task

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "non_greedy_inference.png"
TABLES = ("inference", "step")
WAYS: tuple[Inference, ...] = ("exhaustive", "exact", "fast")
DEPTHS = tuple(range(6, 19, 2))
FLOOR_DEPTH, FLOOR = 14, 10.0
N_TIMED = 2048
NU, RATE, TRAINING_PASSES = 43.0, 0.1, 8
NEXT_TO_NOTHING = 1e-9

STEP_DEPTHS, STEP_COLUMNS = (4, 6, 8, 10, 12, 14), (64, 256, 1024)
LARGEST_TREE = 2**23  # weights
IN_CACHE = 2**18  # weights, 1 MiB: the time of larger trees also depends on the machine's memory
N_CLASSES = 10

COLUMNS = [
    Column("depth", "depth"),
    Column("state", "state", width=8, words=True),
    Column("leaves", "leaves", ",d"),
    *(Column(f"{way}_scored", f"{way}, splits scored", ".0f") for way in WAYS),
    *(Column(way, f"{way}, examples/s", ",.0f") for way in WAYS),
    *(Column(f"{way}_pass", f"{way}, s per pass", ".2f") for way in WAYS),
    Column("ratio", "exact / exhaustive", ".1f"),
    Column("same", "same leaf", words=True),
    Column("verdict", ""),
]
STEP_TABLE = [
    Column("p", "p"),
    Column("depth", "depth"),
    Column("scored", "splits scored", ".1f"),
    Column("microseconds", "us per row", ".2f"),
]


# --- Figure 4 ----------------------------------------------------------------------------------


def task_of(X: np.ndarray, y: np.ndarray) -> Task:
    """Return the task of a table and its class indices."""
    return Task.read(X, y, classifies=True, loss=lambda *_: CrossEntropy())


def states(task: Task, depth: int) -> dict[str, StartTree]:
    """Return the trees to time."""
    axis = Greedy(splitter="axis", max_depth=depth).start_tree(task, Run())
    start = left_to_right(start_from(axis, task))
    learner = NonGreedy(nu=NU, learning_rate=RATE, max_epochs=TRAINING_PASSES, early_stopping=False)
    return {"start": start, "trained": learned_from(start, task, learner)}


def learned_from(
    tree: StartTree, task: Task, learner: NonGreedy, run: Run | None = None
) -> StartTree:
    """Continue training a tree without change: `NonGreedy.fit` would smooth its leaves."""
    runs = run_engine(
        "non_greedy",
        task,
        {
            **learner.engine_options(task),
            "children": tree.children,
            "nu": [learner.nu],
            "learning_rate": [learner.learning_rate],
        },
        run or Run(),
        start=(tree.weights, tree.bias, tree.scores),
    )
    (found,) = runs.trees
    return StartTree(found["weights"], found["bias"], tree.children, found["scores"])


def seconds_per_pass(
    task: Task, tree: StartTree, ways: tuple[Inference, ...], rounds: int
) -> dict[Inference, float]:
    """Return the best processor time of an epoch per way of inference, measured in turns."""
    best: dict[Inference, float] = dict.fromkeys(ways, np.inf)
    for _ in range(rounds):
        for way in ways:
            best[way] = min(best[way], _best_pass(task, tree, way))
    return best


def _best_pass(task: Task, tree: StartTree, way: Inference) -> float:
    ends: list[float] = []
    learner = NonGreedy(
        nu=NU,
        learning_rate=NEXT_TO_NOTHING,
        inference=way,
        solver="sgd",
        max_epochs=3,
        early_stopping=False,
    )
    # The first epoch also prepares the bounds of all leaves.
    run = Run(callbacks=(lambda _: ends.append(time.process_time()),))
    learned_from(tree, task, learner, run)
    return float(np.diff(ends).min())


def found_by(task: Task, tree: StartTree, way: Inference) -> dict[str, np.ndarray]:
    """Return the result of inference for the training rows."""
    rows = task.schema.encoder.encode(np.ascontiguousarray(task.matrix[task.train]))
    probe = _probes.LearnerProbe(
        "non_greedy",
        rows,
        task.y[task.train],
        np.ones(len(rows), dtype=np.float32),
        n_outputs=task.n_outputs,
        loss=task.loss.name,
        loss_parameter=task.loss.parameter,
        options={
            "children": tree.children,
            "nu": [float(np.finfo(np.float32).max)],
            "inference": way,
            "stable": False,
            "max_features": 0,
            "feature_of_column": list(range(rows.shape[1])),
        },
    )
    probe.set(tree.weights, tree.bias, tree.scores)
    return probe.augment()


def measure(report: Table, task: Task, depth: int, rounds: int) -> None:
    timed = replace(task, train=task.train[:: max(1, len(task.train) // N_TIMED)][:N_TIMED])
    for state, tree in states(task, depth).items():
        found = {way: found_by(timed, tree, way) for way in WAYS}
        is_same = all(
            np.array_equal(found["exact"][key], found["exhaustive"][key])
            for key in ("chosen", "bound")
        )
        best = seconds_per_pass(timed, tree, WAYS, rounds)
        rate = {way: len(timed.train) / seconds for way, seconds in best.items()}
        ratio = rate["exact"] / rate["exhaustive"]
        has_floor = depth == FLOOR_DEPTH
        report.add(
            depth=depth,
            state=state,
            leaves=len(tree.scores),
            **{f"{way}_scored": float(found[way]["n_scored"].mean()) for way in WAYS},
            **rate,
            **{f"{way}_pass": len(task.train) / rate[way] for way in WAYS},
            ratio=ratio,
            fast_agrees=float(np.mean(found["fast"]["chosen"] == found["exact"]["chosen"])),
            same="yes" if is_same else "NO",
            **verdict(is_same and (ratio >= FLOOR or not has_floor)),
        )


def draw(rows: list[dict[str, float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, 2, figsize=(9, 4), layout="constrained", sharex=True, sharey=True
    )
    names = {"exhaustive": "every leaf", "exact": "branch and bound", "fast": "fast (ball)"}
    for ax, state in zip(axes, ("start", "trained"), strict=True):
        of_state = [row for row in rows if row["state"] == state]
        for way, mark in zip(WAYS, ("s--", "o-", "^:"), strict=True):
            depths = [row["depth"] for row in of_state]
            ax.plot(depths, [row[f"{way}_pass"] for row in of_state], mark, label=names[way])
        ax.set_yscale("log")
        ax.set_xlabel("depth")
        ax.set_title({"start": "at the start", "trained": "trained"}[state])
    axes[0].set_ylabel("seconds per epoch on Connect4, one thread")
    axes[0].legend()
    figure.savefig(PICTURE, dpi=150)


def figure_4(folder: Path, is_quick: bool) -> bool:
    table = parts(folder, TASKS["connect4"], 0)
    task = task_of(table.X[table.train], table.y[table.train])
    report = Table(
        "non_greedy_inference",
        f"Figure 4: SGD on Connect4 ({len(task.train):,} training rows, "
        f"{task.matrix.shape[1]} columns), inference and step, one thread.",
        COLUMNS,
        settings={"rows_timed": N_TIMED, "nu": NU, "rate": RATE, "passes": TRAINING_PASSES},
        kept=not is_quick,
    )
    for depth in DEPTHS[:2] if is_quick else DEPTHS:
        measure(report, task, depth, 1 if is_quick else 4)
    passed = report.finish(inference_note(report.rows))
    if not is_quick:
        draw(report.rows)
    return passed


# --- a step of the fast variant ----------------------------------------------------------------


def perfect_tree(rng: np.random.Generator, depth: int, p: int) -> StartTree:
    """Return a perfect tree with random splits of squared norm 1."""
    m = 2**depth - 1
    weights = rng.standard_normal((m, p), dtype=np.float32) / np.sqrt(p)
    heap = np.arange(m)[:, None] * 2 + np.array([1, 2])
    children = np.where(heap < m, heap, -1 - (heap - m)).astype(np.int32)
    scores = rng.standard_normal((m + 1, N_CLASSES), dtype=np.float32)
    return left_to_right(StartTree(weights, np.zeros(m, np.float32), children, scores))


def step_cost(report: Table, p: int, depth: int, rounds: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_TIMED, p), dtype=np.float32)
    task = task_of(X, rng.integers(N_CLASSES, size=N_TIMED))
    tree = perfect_tree(rng, depth, p)
    scored = found_by(task, tree, "fast")["n_scored"].mean()
    seconds = seconds_per_pass(task, tree, ("fast",), rounds)["fast"]
    report.add(p=p, depth=depth, scored=float(scored), microseconds=1e6 * seconds / N_TIMED)


def exponents(rows: list[dict[str, float]], value: Callable[[dict[str, float]], float]) -> str:
    """Fit log value = c + a log depth + b log p."""
    design = np.array([[1.0, np.log(row["depth"]), np.log(row["p"])] for row in rows])
    target = np.log([value(row) for row in rows])
    (_, a, b), *_ = np.linalg.lstsq(design, target, rcond=None)
    return f"depth^{a:.2f} p^{b:.2f}"


def inference_note(_: list[dict[str, float]]) -> str:
    """Return the note below the first table."""
    return (
        "Seconds per epoch are for all training rows, computed from the examples per second of the "
        "timed rows."
    )


def step_note(rows: list[dict[str, float]]) -> str:
    """Return how the cost of a step grows, fitted to the rows of the second table."""
    near = [row for row in rows if 2 ** row["depth"] * row["p"] <= IN_CACHE]
    times, of_near = (exponents(part, lambda row: row["microseconds"]) for part in (rows, near))
    scored = exponents(rows, lambda row: row["scored"] * row["p"])
    return (
        "p is the number of columns. A fit to this table says: the splits scored times p grow as "
        f"{scored}. The time grows as {of_near} for trees of at most 1 MiB, and as {times} over "
        "all trees, because larger ones wait for memory. The paper's bound is depth^2 p^1."
    )


def steps(is_quick: bool) -> None:
    report = Table(
        "non_greedy_step",
        f"A step of the fast variant: perfect trees, {N_TIMED} random rows, batches of 128.",
        STEP_TABLE,
        kept=not is_quick,
    )
    for p in STEP_COLUMNS[:2] if is_quick else STEP_COLUMNS:
        for depth in STEP_DEPTHS[:3] if is_quick else STEP_DEPTHS:
            if 2**depth * p <= LARGEST_TREE:
                step_cost(report, p, depth, 1 if is_quick else 5)
    report.finish(step_note(report.rows))


def main() -> int:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder with connect4.npz")
    parser.add_argument("--quick", action="store_true", help="depths 6 and 8, once, not recorded")
    parser.add_argument("--tables", type=some_of(TABLES), default=list(TABLES))
    options = parser.parse_args()
    passed = "inference" not in options.tables or figure_4(options.data, options.quick)
    if "step" in options.tables:
        steps(options.quick)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
