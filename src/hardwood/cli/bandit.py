"""`hardwood bandit simulate`: the reward a bandit would collect on a table with known labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from hardwood.bandit.parameters import BanditParameters, RegressionParameters
from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, data_errors
from hardwood.cli.evaluate import check_plot
from hardwood.cli.fit import Dataset, Request, read_dataset
from hardwood.cli.output import Notes, print_report, print_size, print_text
from hardwood.parameters import Values
from hardwood.progress import Progress, watched_stream
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from hardwood.bandit import LossSimulator, Simulator

MAX_ROUNDS = 100_000_000
MAX_RUNS = 1000

MethodChoice = Literal[
    "replay", "network", "paper", "two_point", "one_point", "paper_two_point", "paper_one_point"
]
"""What `--method` takes."""

BufferChoice = Literal["uniform", "recent"]
"""What `--buffer` takes."""
LossChoice = Literal["auto", "logistic", "squared", "huber"]
"""What `--loss` takes."""
DeciderChoice = Literal["network", "tree", "auto"]
"""What `--who-decides` takes."""
ExplorationChoice = Literal["gaps", "epsilon"]
"""What `--explore-by` takes."""
QuantizerChoice = Literal["sign", "scaled"]
"""What `--quantizer` takes."""

# In standard deviations of the target. Smaller than the library's, because trying numbers far from
# the prediction costs loss in the simulation and, without noise, gains nothing.
_PERTURBATIONS: dict[str, float] = {
    "two_point": 0.1,
    "one_point": 0.5,
    "paper_two_point": 0.1,
    "paper_one_point": 0.5,
}
_KINDS: dict[str, type[BanditParameters] | type[RegressionParameters]] = {
    "classification": BanditParameters,
    "regression": RegressionParameters,
}


def _hyperparameter(name: str, help: str, default: str | None = None) -> Any:
    """Return the option of a learner's hyperparameter, with the limits of the library."""
    declared = {f.name: f for kind in _KINDS.values() for f in fields(kind)}
    values: Values = declared[name].metadata["values"]
    if default is None:
        default = f"{declared[name].default}"
    if values.choices:
        return opt.named("|".join(values.choices), help, default=default)
    if values.kind == "integer":
        low, high = (None if v is None else int(v) for v in (values.low, values.high))
        return opt.count(help, low=low or 0, high=high, default=default)
    return opt.number(help, low=values.low, high=values.high, default=default)


def simulate(
    table: opt.TableFile,
    target: Annotated[
        str,
        opt.target("The column with the best action, or the number to predict."),
    ],
    task: opt.TaskOption = "auto",
    rounds: Annotated[
        int | None,
        opt.count(
            "Rounds per run; if there are more rounds than rows, rows repeat.",
            low=2,
            high=MAX_ROUNDS,
            default="every row once",
        ),
    ] = None,
    runs: Annotated[
        int,
        opt.count("Runs, each with the rows in another order.", high=MAX_RUNS),
    ] = 5,
    method: Annotated[
        MethodChoice | None,
        opt.one_of(
            MethodChoice,
            "replay, network and paper choose among classes; the other methods set a number.",
            default="replay, or two_point",
        ),
    ] = None,
    max_depth: Annotated[
        int | None,
        _hyperparameter(
            "max_depth",
            "Depth of the tree, and of the supervised tree.",
            default="8 for classes, 6 for numbers",
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        _hyperparameter(
            "learning_rate",
            "Step size.",
            default="0.005, 0.002 for network, or 0.001 for the paper's methods",
        ),
    ] = None,
    exploration: Annotated[
        float | None,
        _hyperparameter(
            "exploration",
            "replay, network: how much to explore, relative to the default; 0 never explores.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        _hyperparameter(
            "epsilon", "paper, or network with epsilon: the probability of a random action."
        ),
    ] = None,
    min_propensity: Annotated[
        float | None,
        _hyperparameter("min_propensity", "No allowed action is less probable than this."),
    ] = None,
    who_decides: Annotated[
        DeciderChoice | None,
        _hyperparameter(
            "who_decides", "network: who decides; auto: the tree once nothing is lost."
        ),
    ] = None,
    hidden_size: Annotated[
        int | None,
        _hyperparameter("hidden_size", "network: units of each of the two hidden layers."),
    ] = None,
    loss: Annotated[
        LossChoice | None,
        _hyperparameter("loss", "network: the loss of an estimated reward."),
    ] = None,
    explore_by: Annotated[
        ExplorationChoice | None,
        _hyperparameter("explore_by", "network: inverse gap weighting, or a random action."),
    ] = None,
    detect_change: Annotated[
        bool | None,
        opt.flag("network: forget and explore again when rewards fall."),
    ] = None,
    quantizer: Annotated[
        QuantizerChoice | None,
        _hyperparameter(
            "quantizer", "paper: decisions are +-1, or +- the mean absolute score of a step."
        ),
    ] = None,
    perturbation: Annotated[
        float | None,
        _hyperparameter(
            "perturbation",
            "Numbers: how far from the prediction to try, in standard deviations of the target.",
            default="0.1, or 0.5 with one point",
        ),
    ] = None,
    buffer: Annotated[
        BufferChoice | None,
        _hyperparameter(
            "buffer", "Which rounds the replay buffer holds: a sample, or the most recent."
        ),
    ] = None,
    buffer_size: Annotated[
        int | None,
        _hyperparameter("buffer_size", "Rounds in the replay buffer."),
    ] = None,
    batch_size: Annotated[
        int | None,
        _hyperparameter(
            "batch_size",
            "Stored rounds per gradient step.",
            default="64 for classes, 256 for numbers and network",
        ),
    ] = None,
    updates_per_round: Annotated[
        float | None,
        _hyperparameter(
            "updates_per_round", "Gradient steps per round.", default="1, or 0.5 for network"
        ),
    ] = None,
    input_noise: Annotated[
        float | None,
        _hyperparameter("input_noise", "Noise on replayed contexts."),
    ] = None,
    gradient_accumulation: Annotated[
        int | None,
        _hyperparameter("gradient_accumulation", "The paper's methods: rounds per gradient step."),
    ] = None,
    delay: Annotated[int, opt.count("Feedback comes up to this many rounds late.", low=0)] = 0,
    lost: Annotated[
        float,
        opt.number("Fraction of the rounds whose feedback never comes.", low=0, high=1),
    ] = 0.0,
    drift: Annotated[
        int | None,
        opt.count(
            "From this round on the rewards of the actions are swapped.",
            metavar="ROUND",
            default="the environment does not change",
        ),
    ] = None,
    allowed: Annotated[
        float | None,
        opt.number(
            "Probability that an action is allowed in a round.",
            low=0,
            high=1,
            default="all are allowed",
        ),
    ] = None,
    baselines: Annotated[
        bool,
        opt.flag("Compare with random and constant actions, a linear and a supervised model."),
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
    """Simulate a bandit: a tree that learns only from the rewards of its own actions.

    Every row becomes a round: the bandit observes the row without its target, acts, and receives
    the reward of its action alone. The reward is 1 for the right class and 0 for any other. A
    numeric target has a loss instead: the squared error, in units of the target's variance. Prints
    the mean reward so far over the rounds, and draws it with 95 % bands over the runs.
    """
    from hardwood.bandit import compare

    plot = plot or Path(table.name.split(".")[0] + "_bandit.png")
    check_plot(plot, table)
    notes = Notes()
    request = Request(table, target, task, drop, use, None, 0.0)
    with notes.collecting():
        data = read_dataset(request, np.random.default_rng(seed))
    given = {
        "max_depth": max_depth,
        "learning_rate": learning_rate,
        "exploration": exploration,
        "epsilon": epsilon,
        "min_propensity": min_propensity,
        "who_decides": who_decides,
        "hidden_size": hidden_size,
        "loss": loss,
        "explore_by": explore_by,
        "detect_change": detect_change,
        "quantizer": quantizer,
        "perturbation": perturbation,
        "buffer": buffer,
        "buffer_size": buffer_size,
        "batch_size": batch_size,
        "updates_per_round": updates_per_round,
        "input_noise": input_noise,
        "gradient_accumulation": gradient_accumulation,
    }
    chosen = _checked(data, method, given, allowed)
    make_environment = _environments(data, rounds, drift, allowed, delay, lost)
    if not as_json:
        _print_problem(data)
    stream = watched_stream()
    with data_errors(), notes.collecting(), Progress("Simulating", stream=stream) as progress:
        found = compare(
            make_environment,
            {"DGT": _bandits(data.target.task, chosen)},
            n_runs=runs,
            random_state=seed,
            max_depth=chosen["max_depth"],
            with_baselines=baselines,
            on_rounds=_round_callback(progress, runs * (2 if baselines else 1)),
        )
    for note in found.notes:
        notes.add(note)
    of_table = {
        "table": data.request.path,
        "target": data.target.name,
        "task": data.target.task,
        "method": chosen["method"],
        "n_rows": data.features.num_rows,
        "n_missing_target": data.target.n_missing,
        "left_out": data.left_out_json,
    }
    print_report(found, str(found), of_table, notes, as_json=as_json, plot=plot)


def _checked(
    data: Dataset, method: str | None, given: dict[str, Any], allowed: float | None
) -> dict[str, Any]:
    """Return the hyperparameters in use; refuse options that the task or the method ignores."""
    target = data.target
    if len(target.names) > 1:
        raise CommandError("A bandit takes one action per round: --target takes one column.")
    kind = _KINDS[target.task]
    if method is not None and method not in kind.METHODS:
        raise CommandError(
            f"--method {method} is not for {target.task}, which '{target.name}' is "
            f"because {target.reason}; use {' or '.join(kind.METHODS)}, or --task."
        )
    if target.task == "regression" and allowed is not None:
        raise CommandError("--allowed is for classification, and the task is regression.")
    method = method or kind.METHODS[0]
    options = {name: value for name, value in given.items() if value is not None}
    known, used = {each.name for each in fields(kind)}, kind(method=method).used()
    for name in options:
        option = "--" + name.replace("_", "-")
        if name not in known:
            raise CommandError(f"{option} is not for {target.task}, which is the task.")
        if name not in used:
            raise CommandError(f"{option} is not used with --method {method}.")
    if kind is RegressionParameters:
        options = {"perturbation": _PERTURBATIONS[method]} | options
    try:
        return kind(method=method, **options).used()
    except ValueError as error:
        raise CommandError(str(error)) from None


def _environments(
    data: Dataset,
    rounds: int | None,
    drift: int | None,
    allowed: float | None,
    delay: int,
    lost: float,
) -> Callable[[int], Simulator | LossSimulator]:
    """Return a function from the seed of a run to its environment."""
    from hardwood.bandit import classification_bandit, regression_bandit

    X, y = data.features, data.target.values
    n_rounds = rounds or len(y)
    if drift is not None and drift >= n_rounds:
        raise CommandError(f"--drift {drift}: the table has only {plural(n_rounds, 'round')}.")
    bandit_of: Any = classification_bandit
    if data.target.task == "regression":
        bandit_of, y = regression_bandit, _in_deviations(y, data.target.name)

    def environment(seed: int) -> Any:
        made = bandit_of(X, y, n_rounds=n_rounds, random_state=seed)
        if drift is not None:
            made = made.drifting(drift, random_state=seed)
        if allowed is not None:
            made = made.masked(share=allowed, random_state=seed)
        if delay or lost:
            made = made.delayed((0, delay), lost=lost, random_state=seed)
        return made

    return environment


def _in_deviations(y: np.ndarray, name: str) -> np.ndarray:
    """Return numbers with mean 0 and standard deviation 1."""
    unit = float(np.abs(y).max()) or 1.0
    scaled = y / unit  # else squares of large numbers overflow
    deviation = float(scaled.std())
    if deviation == 0:
        raise CommandError(f"Target '{name}' has a single value: there is nothing to learn.")
    centered: np.ndarray = (scaled - scaled.mean()) / deviation
    return centered


def _bandits(task: str, chosen: dict[str, Any]) -> Callable[[Any, int], Any]:
    """Return a function from an environment and a seed to a new bandit."""
    from hardwood.bandit import DGTBandit, DGTBanditRegressor

    def bandit(environment: Any, seed: int) -> Any:
        own = {"features": environment.features, "random_state": seed} | chosen
        if task == "regression":
            return DGTBanditRegressor(**own)
        return DGTBandit(environment.actions, **own)

    return bandit


def _print_problem(data: Dataset) -> None:
    target = data.target
    print_size(data)
    if target.n_missing:
        words = plural(target.n_missing, "row")
        print_text(f"Left out: {words} in which '{target.name}' is missing")
    if target.task == "classification":
        n_actions = np.unique(target.values).size
        print_text(
            f"Actions: {plural(n_actions, 'value')} of '{target.name}'; the right one has reward 1"
        )
    else:
        print_text(f"Numbers are tried for '{target.name}'; loss: squared error / its variance")
    print_text()


def _round_callback(progress: Progress, n_passes: int) -> Callable[[str, int, int, int], None]:
    """Return the callback of `compare`, which counts the rounds of all passes."""
    rounds_done: dict[tuple[str, int], int] = {}

    def on_rounds(name: str, run: int, done: int, n: int) -> None:
        rounds_done[name, run] = done
        words = f"{name}, run {run + 1}" if done else name
        progress.update(words, share=sum(rounds_done.values()) / (n_passes * n))

    return on_rounds
