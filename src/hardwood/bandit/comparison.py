"""Comparison of bandits with each other and with baselines, over several runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood import parameters
from hardwood.bandit import baselines
from hardwood.bandit.environments import LossSimulator, Simulator
from hardwood.bandit.simulation import simulate
from hardwood.report.plot_style import COLORS, GRAY, VERMILION, label, legend, name_axes
from hardwood.text.blocks import Block, Text, TextTable
from hardwood.text.numbers import format_interval, format_number, plural
from hardwood.text.report import PlottedReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hardwood.text.report import Tables

Environment = Simulator | LossSimulator
Progress = Callable[[str, int, int, int], None]
Values = Callable[[Any, int, Callable[[int], None]], np.ndarray]
"""(environment, seed, callback for completed rounds) -> (rounds,) rewards or losses."""

CONFIDENCE = 0.95
MAX_RUNS = 1000
_MAX_POINTS = 200  # of a curve; more would not be visible
_MAX_LINEAR_ENTRIES = 20_000_000  # of the linear learner's matrices, 8 bytes each
_LAST_PART = 0.1
_STYLES: dict[str, dict[str, Any]] = {
    "linear": {"color": COLORS[2], "linestyle": "-"},
    "random": {"color": GRAY, "linestyle": ":"},
    "best constant": {"color": GRAY, "linestyle": "--"},
    "supervised tree": {"color": VERMILION, "linestyle": "--"},
}


@dataclass(frozen=True, eq=False)
class BanditCurve:
    """Rewards or losses of one bandit or baseline.

    Attributes
    ----------
    name
        Its name.
    values
        (runs, rounds) rewards or losses; a single run if it does not depend on chance.
    is_learner
        Whether it learns round by round; else a reference, of which only the mean over all rounds
        is shown.
    """

    name: str
    values: np.ndarray
    is_learner: bool

    @cached_property
    def progress(self) -> np.ndarray:
        """(runs, rounds) mean of the rounds up to each; for a reference the mean of all rounds."""
        n = self.values.shape[1]
        if not self.is_learner:
            return np.broadcast_to(self.values.mean(axis=1, keepdims=True), self.values.shape)
        means: np.ndarray = np.cumsum(self.values, axis=1) / np.arange(1, n + 1)
        return means

    @cached_property
    def last_part(self) -> np.ndarray:
        """(runs,) mean of the last tenth of the rounds, after learning."""
        first = int((1 - _LAST_PART) * self.values.shape[1])
        means: np.ndarray = self.values[:, first:].mean(axis=1)
        return means


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(PlottedReport):
    """Learning curves of bandits and baselines, made by `compare`.

    Attributes
    ----------
    what
        "reward" or "loss".
    curves
        One curve each, the bandits first.
    n_rounds, n_runs
        Rounds per run, and the number of runs.
    notes
        Remarks, such as a baseline that was left out.
    """

    what: str
    curves: tuple[BanditCurve, ...]
    n_rounds: int
    n_runs: int
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What was compared over how many rounds."""
        runs = plural(self.n_runs, "run")
        return f"Mean {self.what} over {plural(self.n_rounds, 'round')}, {runs} each"

    def _blocks(self) -> Sequence[Block]:
        notes = [Text("\n".join(self.notes), title="Notes")] if self.notes else []
        return [self._outcome_grid(), self._curve_grid(), *notes]

    def _outcome_grid(self) -> TextTable:
        header = ["", f"mean {self.what}", "95 % interval", "last tenth of the rounds"]
        rows = []
        for curve in self.curves:
            value, low, high = (float(v[0]) for v in band(curve.progress[:, -1:]))
            last = format_number(float(curve.last_part.mean())) if curve.is_learner else "-"
            rows.append([curve.name, format_number(value), format_interval(low, high), last])
        note = "intervals over runs" if self.n_runs > 1 else "one run: no intervals"
        return TextTable.of(f"After {plural(self.n_rounds, 'round')}", header, rows, note=note)

    def _curve_grid(self) -> TextTable:
        learners = [curve for curve in self.curves if curve.is_learner]
        header = ["rounds", *(curve.name for curve in learners)]
        rows = [
            [
                f"{t:,}",
                *(format_number(float(curve.progress[:, t - 1].mean())) for curve in learners),
            ]
            for t in round_numbers(self.n_rounds)
        ]
        return TextTable.of(
            f"Learning curve: mean {self.what} so far", header, rows, text_columns=()
        )

    def _content(self) -> dict[str, Any]:
        at = self._places
        return {
            "what": self.what,
            "n_rounds": self.n_rounds,
            "n_runs": self.n_runs,
            "confidence": CONFIDENCE,
            "rounds": at + 1,
            "curves": [_curve_content(curve, at) for curve in self.curves],
            "notes": list(self.notes),
        }

    def _tables(self) -> Tables:
        columns: dict[str, list[Any]] = {n: [] for n in ("name", "rounds", "mean", "low", "high")}
        at = self._places
        for curve in self.curves:
            mean, low, high = band(curve.progress[:, at])
            columns["name"] += [curve.name] * len(at)
            columns["rounds"] += (at + 1).tolist()
            for name, values in (("mean", mean), ("low", low), ("high", high)):
                columns[name] += values.tolist()
        return {"curves": columns}

    @property
    def _places(self) -> np.ndarray:
        """Rounds at which curves have a point, from 0."""
        n = self.n_rounds
        return np.unique(np.linspace(0, n - 1, min(n, _MAX_POINTS)).round().astype(np.int64))

    @property
    def _image_text(self) -> str:
        return f"Mean {self.what} so far of {', '.join(curve.name for curve in self.curves)}"

    def _figure_size(self) -> tuple[float, float]:
        return 7.0, 4.4

    def _draw(self, figure: Figure) -> None:
        ax = figure.subplots()
        at = self._places
        colors = iter(c for c in COLORS if c != _STYLES["linear"]["color"] and c != VERMILION)
        for curve in self.curves:
            known = curve.name in _STYLES
            style = _STYLES[curve.name] if known else {"color": next(colors, GRAY)}
            mean, low, high = band(curve.progress[:, at])
            ax.plot(at + 1, mean, label=label(curve.name), **style)
            if np.isfinite(low).all():
                ax.fill_between(at + 1, low, high, color=style["color"], alpha=0.2, linewidth=0)
        runs = f"mean of {self.n_runs} runs, 95 % bands" if self.n_runs > 1 else "one run"
        name_axes(ax, runs, "rounds", f"mean {self.what} so far")
        ax.set_xlim(0, self.n_rounds)
        self._set_limits(ax)
        ax.grid(color="0.92")
        ax.spines[["top", "right"]].set_visible(False)
        legend(ax, loc="upper left", bbox_to_anchor=(1.01, 1.0))

    def _set_limits(self, ax: Any) -> None:
        """Set the limits of the axis without the first rounds, whose means vary too much."""
        settled = max(1, self.n_rounds // 50)
        shown = [curve.progress[:, settled:] for curve in self.curves]
        lowest = min(float(values.min()) for values in shown if values.size)
        highest = max(float(values.max()) for values in shown if values.size)
        room = 0.05 * (highest - lowest) or 0.05
        ax.set_ylim(lowest - room, highest + room)


def compare(
    make_environment: Callable[[int], Environment],
    bandits: Mapping[str, Callable[[Any, int], Any]] | None = None,
    *,
    n_runs: int = 5,
    random_state: int = 0,
    max_depth: int = 6,
    with_baselines: bool = True,
    on_rounds: Progress | None = None,
) -> Comparison:
    """Compare bandits with each other and with baselines, over several runs in the same rounds.

    Parameters
    ----------
    make_environment
        seed -> simulator, for example ``lambda seed: classification_bandit(X, y,
        random_state=seed)``. All simulators must have the same number of rounds.
    bandits
        By name: (simulator, seed) -> a new bandit. By default a `DGTBandit`, or for a
        `LossSimulator` a `DGTBanditRegressor`, with ``max_depth``.
    n_runs
        Number of runs. Run k uses the seed ``random_state + k`` for the environment and the bandit.
    random_state
        The first seed.
    max_depth
        Depth of the default bandit and of the supervised tree.
    with_baselines
        Whether to add baselines: random actions (``random``), the best constant action in
        hindsight (``best constant``), a linear learner (``linear``: epsilon-greedy, or by two-point
        slopes) and, as an upper bound, trees trained on the labels of other rounds
        (``supervised tree``). Losses have no ``random``.
    on_rounds
        Called with a name, the number of its run, the number of completed rounds, and their total.

    Returns
    -------
    comparison
        A report: print it, or use `plot`, `to_dict`, `to_html` or `to_frame`.
    """
    parameters.integer("n_runs", n_runs, 1, MAX_RUNS)
    seeds = [parameters.integer("random_state", random_state, 0) + run for run in range(n_runs)]
    first = make_environment(seeds[0])
    chosen = {"DGT": _default_bandit(first, max_depth)} if bandits is None else bandits
    learners: dict[str, Values] = {name: _values_of(make) for name, make in chosen.items()}
    notes: list[str] = []
    references: list[BanditCurve] = []
    report = on_rounds or (lambda name, run, done, n: None)
    if with_baselines:
        taken = [name for name in chosen if name in _STYLES]
        if taken:
            raise ValueError(
                f"bandits: {taken[0]!r} is the name of a baseline; choose another name."
            )
        learners |= _learning_baselines(first, notes)
        report("supervised tree", 0, 0, len(first))
        references = _references(first, max_depth, seeds[0])
    curves = _runs(make_environment, first, learners, seeds, report)
    what = "loss" if isinstance(first, LossSimulator) else "reward"
    return Comparison(what, (*curves, *references), len(first), n_runs, tuple(notes))


def _runs(
    make_environment: Callable[[int], Environment],
    first: Environment,
    learners: dict[str, Values],
    seeds: list[int],
    report: Progress,
) -> list[BanditCurve]:
    n = len(first)
    found = {name: np.empty((len(seeds), n)) for name in learners}
    for run, seed in enumerate(seeds):
        environment = first if run == 0 else make_environment(seed)
        if len(environment) != n:
            raise ValueError(
                f"make_environment must return {plural(n, 'round')} every time, got "
                f"{len(environment)}."
            )
        for name, values in learners.items():
            found[name][run] = values(environment, seed, partial(_report_run, report, name, run, n))
    return [BanditCurve(name, values, is_learner=True) for name, values in found.items()]


def _report_run(report: Progress, name: str, run: int, n: int, done: int) -> None:
    report(name, run, done, n)


def _default_bandit(first: Environment, max_depth: int) -> Callable[[Any, int], Any]:
    from hardwood.bandit import DGTBandit, DGTBanditRegressor

    if isinstance(first, LossSimulator):
        return lambda environment, seed: DGTBanditRegressor(
            max_depth=max_depth, features=environment.features, random_state=seed
        )
    return lambda environment, seed: DGTBandit(
        environment.actions, max_depth=max_depth, features=environment.features, random_state=seed
    )


def _values_of(make: Callable[[Any, int], Any]) -> Values:
    """Return a function that runs a bandit and returns its rewards or losses by round."""

    def values(environment: Environment, seed: int, on_rounds: Callable[[int], None]) -> np.ndarray:
        history = simulate(make(environment, seed), environment, on_rounds=on_rounds)
        found: np.ndarray = (
            history.loss if isinstance(environment, LossSimulator) else history.reward
        )
        return found

    return values


def _learning_baselines(first: Environment, notes: list[str]) -> dict[str, Values]:
    """Return the baselines that depend on the order of rounds or on chance."""
    of_linear = _values_of(_linear)
    linear: dict[str, Values] = {
        "linear": lambda environment, seed, report: of_linear(environment.encoded(), seed, report)
    }
    if isinstance(first, LossSimulator):
        return linear
    n_columns = first.encoded().X.shape[1] + 1
    if first.n_actions * n_columns**2 > _MAX_LINEAR_ENTRIES:
        linear = {}
        notes.append(
            f"the linear learner was left out: its matrices for {n_columns} columns and "
            f"{first.n_actions} actions would be too large"
        )
    return linear | {
        "random": lambda environment, seed, _: baselines.random_rewards(environment, seed)
    }


def _linear(environment: Environment, seed: int) -> Any:
    if isinstance(environment, LossSimulator):
        return baselines.LinearBanditRegressor()
    return baselines.LinearBandit(environment.actions, random_state=seed)


def _references(first: Environment, max_depth: int, seed: int) -> list[BanditCurve]:
    """Return the rewards or losses of the best constant action and of supervised trees."""
    if isinstance(first, LossSimulator):
        constant = baselines.best_constant_losses(first)
        supervised = baselines.supervised_losses(first, max_depth, seed)
    else:
        constant = baselines.best_constant_rewards(first)
        supervised = baselines.supervised_rewards(first, max_depth, seed)
    both = {"best constant": constant, "supervised tree": supervised}
    return [BanditCurve(name, values[None], is_learner=False) for name, values in both.items()]


def band(runs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean over runs and its interval, (runs, points) -> (points,) each.

    Student's t interval; NaN for a single run.
    """
    from scipy.special import stdtrit

    n = len(runs)
    mean = runs.mean(axis=0)
    if n == 1:
        unknown = np.full(mean.shape, np.nan)
        return mean, unknown, unknown
    reach = stdtrit(n - 1, (1 + CONFIDENCE) / 2) * runs.std(axis=0, ddof=1) / np.sqrt(n)
    return mean, mean - reach, mean + reach


def round_numbers(n: int) -> list[int]:
    """Return about ten numbers of rounds to print: 1, 2 or 5 times a power of ten, and n."""
    steps = [m * 10**e for e in range(len(str(n))) for m in (1, 2, 5)]
    return [step for step in steps if step < n][-10:] + [n]


def _curve_content(curve: BanditCurve, at: np.ndarray) -> dict[str, Any]:
    mean, low, high = band(curve.progress[:, at])
    return {
        "name": curve.name,
        "is_learner": curve.is_learner,
        "mean": mean,
        "low": low,
        "high": high,
        "final": dict(
            zip(("value", "low", "high"), (v[-1] for v in (mean, low, high)), strict=True)
        ),
        "last_tenth": float(curve.last_part.mean()),
        "runs": curve.progress[:, -1],
    }
