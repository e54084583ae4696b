"""`hardwood bandit simulate`: what a bandit would earn on a table whose answers are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, data_mistakes
from hardwood.cli.evaluate import check_plot
from hardwood.cli.fit import Dataset, Request, read_dataset
from hardwood.cli.output import Notes, print_size, print_text, tell
from hardwood.cli.progress import MoveBar, progress_bar
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from hardwood.bandit import LossSimulator, Simulator

# Limits and defaults of the bandits, which are too slow to import for a help text.
MAX_BANDIT_DEPTH = 10
_DEPTHS = {"classification": 8, "regression": 6}
MAX_ROUNDS = 100_000_000


EstimatorChoice = Literal[
    "replay", "paper", "two_point", "one_point", "paper_two_point", "paper_one_point"
]
"""What `--estimator` takes."""


# In deviations of the target. One point says more from farther away; what two points are apart
# only costs.
_PERTURBATIONS: dict[EstimatorChoice, float] = {
    "two_point": 0.1,
    "one_point": 0.5,
    "paper_two_point": 0.1,
    "paper_one_point": 0.5,
}
_ESTIMATORS: dict[str, tuple[EstimatorChoice, ...]] = {
    "classification": ("replay", "paper"),
    "regression": tuple(_PERTURBATIONS),
}


def simulate(
    table: opt.TableFile,
    target: Annotated[
        str,
        opt.target("The column with the best answer."),
    ],
    task: opt.TaskOption = "auto",
    rounds: Annotated[
        int | None,
        opt.count(
            "Rounds of a run; with more than rows, the rows come again.",
            low=2,
            high=MAX_ROUNDS,
            default="every row once",
        ),
    ] = None,
    runs: Annotated[
        int,
        opt.count("Runs, each in an order of its own.", high=1000),
    ] = 5,
    estimator: Annotated[
        EstimatorChoice | None,
        opt.one_of(
            EstimatorChoice,
            "How it learns: the first two choose among classes, the others set a number.",
            default="replay, or two_point",
        ),
    ] = None,
    max_depth: Annotated[
        int | None,
        opt.depth(
            "8, of numbers 6",
            "Splits on the longest path, of the supervised tree, too.",
            high=MAX_BANDIT_DEPTH,
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        opt.number("Size of its steps.", low=1e-12, default="the estimator's own"),
    ] = None,
    exploration: Annotated[
        float | None,
        opt.number(
            "Among actions: how much it explores, relative to the default; with paper, the "
            "probability of an action at random.",
            low=0,
            default="the estimator's own",
        ),
    ] = None,
    perturbation: Annotated[
        float | None,
        opt.number(
            "How far from its prediction a number is tried, in deviations of the target.",
            low=1e-6,
            default="0.1, of one point 0.5",
        ),
    ] = None,
    delay: Annotated[int, opt.count("Feedback comes up to so many rounds late.", low=0)] = 0,
    lost: Annotated[
        float,
        opt.number("Share of the rounds whose feedback never comes.", low=0, high=1),
    ] = 0.0,
    drift: Annotated[
        int | None,
        opt.count(
            "From this round on each action earns what another one did.",
            metavar="ROUND",
            default="the world stays as it is",
        ),
    ] = None,
    allowed: Annotated[
        float | None,
        opt.number(
            "Probability of an action to be allowed in a round.", low=0, high=1, default="all are"
        ),
    ] = None,
    baselines: Annotated[
        bool, opt.flag("Compare with chance, constants, a linear and a supervised one.")
    ] = True,
    drop: opt.DroppedColumns = None,
    use: opt.UsedColumns = None,
    plot: Annotated[
        Path | None,
        opt.named(
            "FILE", "Where to draw the curves.", "--plot", default="TABLE's name with _bandit.png"
        ),
    ] = None,
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Show what a tree would earn that learns from its own choices alone.

    Every row becomes a round: the bandit sees the row, answers, and is told only what its answer
    earned: 1 for the right class and 0 for any other, or for numbers the squared error, in units of
    the target's variance. Prints the mean reward so far over the rounds, and draws it with 95 %
    bands over the runs.
    """
    from hardwood.bandit import compare

    plot = plot or Path(table.name.split(".")[0] + "_bandit.png")
    check_plot(plot, table)
    notes = Notes()
    request = Request(table, target, task, drop, use, None, 0.0)
    with notes.collecting():
        data = read_dataset(request, np.random.default_rng(seed))
    chosen = _estimator(data, estimator)
    of_classes = {"--allowed": allowed, "--exploration": exploration}
    _check_task(data.target.task, of_classes, {"--perturbation": perturbation})
    if chosen == "paper" and exploration is not None and exploration > 1:
        raise CommandError(
            f"--exploration {exploration:g}: with paper it is a probability, 0 to 1."
        )
    max_depth = max_depth or _DEPTHS[data.target.task]
    options = {"max_depth": max_depth, "learning_rate": learning_rate}
    options |= {"exploration": exploration, "perturbation": perturbation}
    make_world = _worlds(data, rounds, drift, allowed, delay, lost)
    if not as_json:
        _print_problem(data)
    with data_mistakes(), notes.collecting(), progress_bar("Simulating") as move:
        found = compare(
            make_world,
            {"DGT": _bandits(chosen, options)},
            n_runs=runs,
            random_state=seed,
            max_depth=max_depth,
            with_baselines=baselines,
            on_rounds=_round_callback(move, runs * (2 if baselines else 1)),
        )
    for note in found.notes:
        notes.add(note)
    of_table = {
        "table": data.request.path,
        "target": data.target.name,
        "task": data.target.task,
        "estimator": chosen,
        "n_rows": data.features.num_rows,
        "n_missing_target": data.target.n_missing,
        "left_out": data.left_out_json,
    }
    tell(found, str(found), of_table, notes, as_json=as_json, plot=plot)


def _estimator(data: Dataset, estimator: EstimatorChoice | None) -> EstimatorChoice:
    """Return how to learn, which must fit the target."""
    target = data.target
    if len(target.names) > 1:
        raise CommandError("A bandit has one answer per round: --target takes one column.")
    possible = _ESTIMATORS[target.task]
    if estimator is not None and estimator not in possible:
        words = " or ".join(possible)
        raise CommandError(
            f"--estimator {estimator} is not for {target.task}, which '{target.name}' is "
            f"because {target.reason}; use {words}, or --task."
        )
    return estimator or possible[0]


def _check_task(task: str, of_classes: dict[str, Any], of_numbers: dict[str, Any]) -> None:
    """Refuse options that mean nothing for the task."""
    others, kind = (of_numbers, "numbers") if task == "classification" else (of_classes, "classes")
    for option, value in others.items():
        if value is not None:
            raise CommandError(f"{option} is for {kind}, and the task is {task}; leave it out.")


def _worlds(
    data: Dataset,
    rounds: int | None,
    drift: int | None,
    allowed: float | None,
    delay: int,
    lost: float,
) -> Callable[[int], Simulator | LossSimulator]:
    """Return what makes the rounds of a run of its seed."""
    from hardwood.bandit import classification_bandit, regression_bandit

    X, y = data.features, data.target.values
    n_rounds = rounds or len(y)
    if drift is not None and drift >= n_rounds:
        raise CommandError(f"--drift {drift}: there are only {n_rounds} rounds.")
    bandit_of: Any = classification_bandit
    if data.target.task == "regression":
        bandit_of, y = regression_bandit, _in_deviations(y, data.target.name)

    def world(seed: int) -> Any:
        made = bandit_of(X, y, n_rounds=n_rounds, random_state=seed)
        if drift is not None:
            made = made.drifting(drift, random_state=seed)
        if allowed is not None:
            made = made.masked(share=allowed, random_state=seed)
        if delay or lost:
            made = made.delayed((0, delay), lost=lost, random_state=seed)
        return made

    return world


def _in_deviations(y: np.ndarray, name: str) -> np.ndarray:
    """Return numbers with mean 0 in units of their deviation."""
    unit = float(np.abs(y).max()) or 1.0
    scaled = y / unit  # else squares of large numbers overflow
    deviation = float(scaled.std())
    if deviation == 0:
        raise CommandError(f"Target '{name}' has a single value: there is nothing to learn.")
    centered: np.ndarray = (scaled - scaled.mean()) / deviation
    return centered


def _bandits(chosen: EstimatorChoice, options: dict[str, Any]) -> Callable[[Any, int], Any]:
    """Return what makes a bandit for a world, of its seed."""
    from hardwood.bandit import DGTBandit, DGTBanditRegressor

    given = {name: value for name, value in options.items() if value is not None}
    given["method"] = chosen
    if chosen == "paper" and "exploration" in given:
        given["epsilon"] = given.pop("exploration")

    def bandit(world: Any, seed: int) -> Any:
        own = {"features": world.features, "random_state": seed} | given
        if chosen in _PERTURBATIONS:
            return DGTBanditRegressor(**{"perturbation": _PERTURBATIONS[chosen]} | own)
        return DGTBandit(world.actions, **own)

    return bandit


def _print_problem(data: Dataset) -> None:
    target = data.target
    print_size(data)
    if target.n_missing:
        words = plural(target.n_missing, "row")
        print_text(f"Left out: {words} in which '{target.name}' is missing")
    if target.task == "classification":
        n_actions = np.unique(target.values).size
        print_text(f"Actions: the {n_actions} values of '{target.name}'; the right one earns 1")
    else:
        print_text(f"Numbers are tried for '{target.name}'; loss: squared error / its variance")
    print_text()


def _round_callback(move: MoveBar, n_passes: int) -> Callable[[str, int, int, int], None]:
    """Return what `compare` calls: it counts the rounds of this many passes."""
    rounds_done: dict[tuple[str, int], int] = {}

    def on_rounds(name: str, run: int, done: int, n: int) -> None:
        rounds_done[name, run] = done
        words = f"{name}, run {run + 1}" if done else name
        move(words, sum(rounds_done.values()), n_passes * n)

    return on_rounds
