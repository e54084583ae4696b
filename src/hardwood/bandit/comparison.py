"""Bandits side by side in the same worlds, several times over, with what they have to beat."""

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

World = Simulator | LossSimulator
Progress = Callable[[str, int, int, int], None]
Values = Callable[[Any, int, Callable[[int], None]], np.ndarray]
"""(world, seed, what to call with the number of rounds done) -> (rounds,) earned or lost."""

CONFIDENCE = 0.95
MAX_RUNS = 1000
_MAX_POINTS = 200  # of a curve: more cannot be seen
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
    """How one of them did.

    Attributes
    ----------
    name
        Who.
    values
        (runs, rounds) what was earned or lost; a single run of what does not depend on chance.
    is_learner
        Whether it goes through the rounds one by one and learns; else a mark to compare with,
        whose mean over all rounds is what counts.
    """

    name: str
    values: np.ndarray
    is_learner: bool

    @cached_property
    def progress(self) -> np.ndarray:
        """(runs, rounds) mean of the rounds up to each; of a mark the mean of all."""
        n = self.values.shape[1]
        if not self.is_learner:
            return np.broadcast_to(self.values.mean(axis=1, keepdims=True), self.values.shape)
        means: np.ndarray = np.cumsum(self.values, axis=1) / np.arange(1, n + 1)
        return means

    @cached_property
    def last_part(self) -> np.ndarray:
        """(runs,) mean of the last tenth of the rounds: what it earns or loses by now."""
        first = int((1 - _LAST_PART) * self.values.shape[1])
        means: np.ndarray = self.values[:, first:].mean(axis=1)
        return means


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(PlottedReport):
    """Learning curves of bandits and of what they have to beat, made by `compare`.

    Attributes
    ----------
    what
        "reward" or "loss".
    curves
        One for each, the bandits first.
    n_rounds, n_runs
        How many rounds a run has, and how many runs there were.
    notes
        What else is worth knowing.
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
        """Rounds of which curves have a point, from 0."""
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
        """Let no first unlucky rounds decide what can be seen of the others."""
        settled = max(1, self.n_rounds // 50)
        shown = [curve.progress[:, settled:] for curve in self.curves]
        lowest = min(float(values.min()) for values in shown if values.size)
        highest = max(float(values.max()) for values in shown if values.size)
        room = 0.05 * (highest - lowest) or 0.05
        ax.set_ylim(lowest - room, highest + room)


def compare(
    make_world: Callable[[int], World],
    bandits: Mapping[str, Callable[[Any, int], Any]] | None = None,
    *,
    n_runs: int = 5,
    random_state: int = 0,
    max_depth: int = 6,
    with_baselines: bool = True,
    on_rounds: Progress | None = None,
) -> Comparison:
    """Run bandits in the same worlds, several times over, beside what they have to beat.

    Parameters
    ----------
    make_world
        seed -> simulator, for example ``lambda seed: classification_bandit(X, y,
        random_state=seed)``. All worlds have the same number of rounds.
    bandits
        By name: (simulator, seed) -> a new bandit. By default a `DGTBandit`, or in a world of
        losses a `DGTBanditRegressor`, of ``max_depth``.
    n_runs
        How many worlds; the seeds count up from ``random_state``, for world and bandit alike.
    random_state
        The first seed.
    max_depth
        Of the default bandit, and of the supervised tree.
    with_baselines
        Whether to add: actions at random (``random``), the best single answer in hindsight
        (``best constant``), a linear learner (``linear``: epsilon-greedy, or by slopes between two
        numbers) and, as the mark that is hard to reach, trees which are told the right answers of
        other rounds (``supervised tree``). Losses have no ``random``.
    on_rounds
        Called now and then with a name, the number of its run, of its rounds so far, and of all.

    Returns
    -------
    comparison
        Print it, `plot` it, or take `to_dict` of it.
    """
    parameters.integer("n_runs", n_runs, 1, MAX_RUNS)
    seeds = [parameters.integer("random_state", random_state, 0) + run for run in range(n_runs)]
    first = make_world(seeds[0])
    chosen = {"DGT": _default_bandit(first, max_depth)} if bandits is None else bandits
    learners: dict[str, Values] = {name: _values_of(make) for name, make in chosen.items()}
    notes: list[str] = []
    marks: list[BanditCurve] = []
    report = on_rounds or (lambda name, run, done, n: None)
    if with_baselines:
        taken = [name for name in chosen if name in _STYLES]
        if taken:
            raise ValueError(f"bandits: {taken[0]!r} is the name of a baseline; choose another.")
        learners |= _learning_baselines(first, notes)
        report("supervised tree", 0, 0, len(first))
        marks = _marks(first, max_depth, seeds[0])
    curves = _runs(make_world, first, learners, seeds, report)
    what = "loss" if isinstance(first, LossSimulator) else "reward"
    return Comparison(what, (*curves, *marks), len(first), n_runs, tuple(notes))


def _runs(
    make_world: Callable[[int], World],
    first: World,
    learners: dict[str, Values],
    seeds: list[int],
    report: Progress,
) -> list[BanditCurve]:
    n = len(first)
    found = {name: np.empty((len(seeds), n)) for name in learners}
    for run, seed in enumerate(seeds):
        world = first if run == 0 else make_world(seed)
        if len(world) != n:
            raise ValueError(f"make_world must make worlds of one length, got {n}, {len(world)}.")
        for name, values in learners.items():
            found[name][run] = values(world, seed, partial(_report_run, report, name, run, n))
    return [BanditCurve(name, values, is_learner=True) for name, values in found.items()]


def _report_run(report: Progress, name: str, run: int, n: int, done: int) -> None:
    report(name, run, done, n)


def _default_bandit(first: World, max_depth: int) -> Callable[[Any, int], Any]:
    from hardwood.bandit import DGTBandit, DGTBanditRegressor

    if isinstance(first, LossSimulator):
        return lambda world, seed: DGTBanditRegressor(
            max_depth=max_depth, features=world.features, random_state=seed
        )
    return lambda world, seed: DGTBandit(
        world.actions, max_depth=max_depth, features=world.features, random_state=seed
    )


def _values_of(make: Callable[[Any, int], Any]) -> Values:
    """Return what a bandit earns or loses, round by round."""

    def values(world: World, seed: int, on_rounds: Callable[[int], None]) -> np.ndarray:
        history = simulate(make(world, seed), world, on_rounds=on_rounds)
        found: np.ndarray = history.loss if isinstance(world, LossSimulator) else history.reward
        return found

    return values


def _learning_baselines(first: World, notes: list[str]) -> dict[str, Values]:
    """Return the baselines that depend on the order of rounds or on chance."""
    of_linear = _values_of(_linear)
    linear: dict[str, Values] = {
        "linear": lambda world, seed, report: of_linear(world.encoded(), seed, report)
    }
    if isinstance(first, LossSimulator):
        return linear
    n_columns = first.encoded().X.shape[1] + 1
    if first.n_actions * n_columns**2 > _MAX_LINEAR_ENTRIES:
        linear = {}
        notes.append(
            f"the linear learner was left out: {n_columns} columns and {first.n_actions} actions "
            "are too many for it"
        )
    return linear | {"random": lambda world, seed, _: baselines.random_rewards(world, seed)}


def _linear(world: World, seed: int) -> Any:
    if isinstance(world, LossSimulator):
        return baselines.LinearBanditRegressor()
    return baselines.LinearBandit(world.actions, random_state=seed)


def _marks(first: World, max_depth: int, seed: int) -> list[BanditCurve]:
    """Return what the best single answer and a supervised tree earn or lose."""
    if isinstance(first, LossSimulator):
        constant = baselines.best_constant_losses(first)
        supervised = baselines.supervised_losses(first, max_depth, seed)
    else:
        constant = baselines.best_constant_rewards(first)
        supervised = baselines.supervised_rewards(first, max_depth, seed)
    both = {"best constant": constant, "supervised tree": supervised}
    return [BanditCurve(name, values[None], is_learner=False) for name, values in both.items()]


def band(runs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, low and high over runs, (runs, points) -> (points,) each.

    The interval is Student's; NaN of a single run.
    """
    from scipy.special import stdtrit

    n = len(runs)
    mean = runs.mean(axis=0)
    if n == 1:
        nothing = np.full(mean.shape, np.nan)
        return mean, nothing, nothing
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
