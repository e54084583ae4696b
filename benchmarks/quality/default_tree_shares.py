"""What the record of `default_tree.py` says: scores, shares of tables, sizes, and floors.

A model is *at least as good* as another on a table if its mean score over the splits is at least
the other's. The standard error is that of the mean difference, paired by split; on a table with a
single split, paired by part of its test rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import binomtest

from benchmarks.quality.default_tree_models import COMPARED, LEARNERS, MODELS, OURS, PEERS, SMALL
from benchmarks.quality.default_tree_tables import GENERATED_ROWS
from benchmarks.record import Record, Result

NAME = "default_tree"
KINDS = {"messy": "Messy tables", "stored": "Tables of numbers"}
MOST_ROWS_OF_A_SHORT_FIT = 20_000
# At least as good as another model on this share of the tables.
WANTED = {
    ("messy", "default"): {"cart": 0.88, "cart_score": 0.88, "linear": 0.80, "lightgbm": 0.55},
    ("messy", "accuracy"): {"cart": 0.95, "cart_score": 0.95, "linear": 0.80, "lightgbm": 0.60},
    ("stored", "default"): {"cart": 0.90, "cart_score": 0.90, "linear": 0.85},
}
NEVER_WORSE = ("cart", "cart_score", "linear")  # by more than a standard error, on stored tables
MOST_LEAVES, MOST_TERMS = 6, 6  # of the default on messy tables, median
BETTER_THAN_SMALL_CART = 0.80
MOST_LINES, SHARE_OF_SHORT_TEXTS = 60, 0.75
MOST_SECONDS = 5.0  # median on tables of at most MOST_ROWS_OF_A_SHORT_FIT rows


def key_of(result: Result) -> tuple[str, int, str]:
    """Return the table, split and model of a unit."""
    return result["table"], result["split"], result["model"]


# --- the record --------------------------------------------------------------------------------


@dataclass
class Found:
    """The units of a record by table and model; failures are apart."""

    units: dict[tuple[str, str], dict[int, Result]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    failures: list[Result] = field(default_factory=list)

    @classmethod
    def of(cls, records: Iterable[Record]) -> Found:
        found = cls()
        for record in records:
            result = record.result
            table, split, model = key_of(result)
            found.kinds[table] = result["kind"]
            if "failure" in result:
                found.failures.append(result)
            else:
                found.units.setdefault((table, model), {})[split] = result
        return found

    def tables(self, kind: str | None = None) -> list[str]:
        """Return the tables of a kind; None for all but generated ones."""
        wanted = KINDS if kind is None else (kind,)
        return sorted((t for t, k in self.kinds.items() if k in wanted), key=str.lower)

    def units_of(self, table: str, model: str) -> dict[int, Result]:
        """Return the results of a model by split; ``at_8`` is the default cut to eight leaves."""
        if not model.startswith("at_"):
            return self.units.get((table, model), {})
        default = self.units.get((table, "default"), {})
        none = {"score": -math.inf}  # the frontier has no tree as small
        return {split: unit.get(model) or none for split, unit in default.items()}

    def mean(self, table: str, model: str, key: str) -> float | None:
        """Return the mean of a fact over the splits; None if it is not recorded."""
        values = [unit[key] for unit in self.units_of(table, model).values() if key in unit]
        return float(np.mean(values)) if values else None


def seconds_of(unit: Result) -> float:
    """Return the time of a fit: of one thread, the processor's; of more, the clock's."""
    return float(unit["processor_seconds"] if unit["n_threads"] == 1 else unit["seconds"])


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean; nan of a single value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else math.nan


# --- two models --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """Score of one model minus that of another on a table, with its standard error."""

    table: str
    mean: float
    error: float

    @property
    def is_clear_loss(self) -> bool:
        """Whether it is worse by more than one standard error, or by any amount without one."""
        return self.mean < 0 and not -self.mean <= self.error

    @property
    def words(self) -> str:
        return f"{self.table} ({self.mean:+.3f} ± {self.error:.3f})"


def difference(found: Found, table: str, model: str, other: str) -> Difference | None:
    """Compare two models on the splits that both have; None if there is none."""
    ours, theirs = found.units_of(table, model), found.units_of(table, other)
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return None
    gaps = [ours[split]["score"] - theirs[split]["score"] for split in common]
    error = standard_error(gaps)
    units = ours[common[0]], theirs[common[0]]
    if len(common) == 1 and all("part_scores" in unit for unit in units):
        error = standard_error(np.subtract(*(unit["part_scores"] for unit in units)))
    return Difference(table, float(np.mean(gaps)), error)


@dataclass(frozen=True)
class Share:
    """On which tables a model is at least as good as another."""

    model: str
    other: str
    differences: tuple[Difference, ...]

    @property
    def n_at_least(self) -> int:
        return sum(gap.mean >= 0 for gap in self.differences)

    @property
    def value(self) -> float:
        return self.n_at_least / len(self.differences)

    @property
    def losses(self) -> list[Difference]:
        """The tables on which it is worse by more than one standard error, the worst first."""
        return sorted((gap for gap in self.differences if gap.is_clear_loss), key=lambda g: g.mean)


def share(found: Found, tables: Iterable[str], model: str, other: str) -> Share | None:
    gaps = [difference(found, table, model, other) for table in tables]
    known = tuple(gap for gap in gaps if gap is not None)
    return Share(model, other, known) if known else None


# --- floors ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Floor:
    """A figure that is wanted, and the one that was found."""

    what: str
    found: str
    wanted: str
    is_kept: bool


def floors(found: Found) -> list[Floor]:
    """Return all floors whose figures are recorded."""
    return [
        *_share_floors(found),
        *_never_worse(found),
        *_size_floors(found),
        *_small_floors(found),
        *_rows_floor(found),
    ]


def _share_floors(found: Found) -> list[Floor]:
    rows = []
    for (kind, model), wanted in WANTED.items():
        for other, least in wanted.items():
            got = share(found, found.tables(kind), model, other)
            if got is not None:
                what = f"{KINDS[kind]}: {title_of(model)} at least as good as {title_of(other)}"
                counts = f"{got.value:.0%} ({got.n_at_least} of {len(got.differences)})"
                rows.append(Floor(what, counts, f"≥ {least:.0%}", got.value >= least))
    return rows


def _never_worse(found: Found) -> list[Floor]:
    rows = []
    for other in NEVER_WORSE:
        got = share(found, found.tables("stored"), "default", other)
        if got is not None:
            what = f"{KINDS['stored']}: default worse than {title_of(other)} by more than one error"
            rows.append(Floor(what, str(len(got.losses)), "0", not got.losses))
    return rows


def _size_floors(found: Found) -> list[Floor]:
    rows = []
    for key, most in (("leaves", MOST_LEAVES), ("terms", MOST_TERMS)):
        values = _means(found, found.tables("messy"), "default", key)
        if values:
            median = float(np.median(values))
            what = f"{KINDS['messy']}: median {key} of the default"
            rows.append(Floor(what, f"{median:g}", f"≤ {most}", median <= most))
    lines = _means(found, found.tables(), "default", "text_lines")
    if lines:
        short = float(np.mean(np.array(lines) <= MOST_LINES))
        what = f"All tables: the default's text has at most {MOST_LINES} lines"
        wanted = f"≥ {SHARE_OF_SHORT_TEXTS:.0%}"
        rows.append(Floor(what, f"{short:.0%}", wanted, short >= SHARE_OF_SHORT_TEXTS))
    seconds = _seconds(found, _short_tables(found, found.tables()), "default")
    if seconds:
        median = float(np.median(seconds))
        what = f"Tables up to {MOST_ROWS_OF_A_SHORT_FIT:,} rows: median seconds of a default fit"
        rows.append(Floor(what, f"{median:.1f}", f"≤ {MOST_SECONDS:g}", median <= MOST_SECONDS))
    return rows


def _small_floors(found: Found) -> list[Floor]:
    rows = []
    for n in SMALL:
        got = share(found, found.tables(), f"at_{n}", f"cart_{n}")
        if got is not None:
            better = sum(gap.mean > 0 for gap in got.differences) / len(got.differences)
            what = f"All tables: at most {n} leaves and 3 terms better than CART of {n} leaves"
            wanted = f"≥ {BETTER_THAN_SMALL_CART:.0%}"
            rows.append(Floor(what, f"{better:.0%}", wanted, better >= BETTER_THAN_SMALL_CART))
    return rows


def _rows_floor(found: Found) -> list[Floor]:
    scores = [found.mean(f"rows_{n}", "default", "score") for n in GENERATED_ROWS]
    known = [value for value in scores if value is not None]
    if len(known) < len(scores):
        return []
    words = ", ".join(f"{value:.3f}" for value in known)
    what = "Generated table: accuracy with ten times the rows, twice"
    return [Floor(what, words, "not decreasing", known == sorted(known))]


def _means(found: Found, tables: Iterable[str], model: str, key: str) -> list[float]:
    values = [found.mean(table, model, key) for table in tables]
    return [value for value in values if value is not None]


def _seconds(found: Found, tables: Iterable[str], model: str) -> list[float]:
    fits = [found.units_of(table, model).values() for table in tables]
    return [float(np.mean([seconds_of(unit) for unit in units])) for units in fits if units]


def _short_tables(found: Found, tables: Iterable[str]) -> list[str]:
    def n_rows(table: str) -> int:
        return max(
            (unit["train_rows"] + unit["test_rows"] for unit in _any_units(found, table)), default=0
        )

    return [table for table in tables if n_rows(table) <= MOST_ROWS_OF_A_SHORT_FIT]


def _any_units(found: Found, table: str) -> list[Result]:
    return [unit for model in MODELS for unit in found.units.get((table, model), {}).values()]


# --- sections ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """A table of words, with what must be said about it."""

    title: str
    head: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)


def sections(found: Found) -> list[Section]:
    """Return what there is to say, without what is not recorded."""
    every = [
        floor_section(found),
        *(share_section(found, kind) for kind in KINDS),
        size_section(found),
        small_section(found),
        rows_section(found),
        learner_section(found),
        *(score_section(found, kind) for kind in KINDS),
        failure_section(found),
    ]
    return [section for section in every if section.rows]


def title_of(model: str) -> str:
    return MODELS[model].title


def floor_section(found: Found) -> Section:
    rows = [
        [floor.what, floor.found, floor.wanted, "yes" if floor.is_kept else "**no**"]
        for floor in floors(found)
    ]
    return Section("Floors", ["figure", "found", "wanted", "kept"], rows)


def share_section(found: Found, kind: str) -> Section:
    head = ["model", "compared with", "tables", "at least as good"]
    head += ["worse within one error", "worse by more"]
    rows, losses = [], []
    for model in OURS:
        for other in PEERS:
            got = share(found, found.tables(kind), model, other)
            if got is None:
                continue
            n, n_lost = len(got.differences), len(got.losses)
            at_least = f"{got.n_at_least} ({got.value:.0%})"
            within = str(n - got.n_at_least - n_lost)
            rows.append([title_of(model), title_of(other), str(n), at_least, within, str(n_lost)])
            if n_lost:
                words = ", ".join(gap.words for gap in got.losses)
                losses.append(f"- {title_of(model)}, worse than {title_of(other)}: {words}.")
    return Section(f"{KINDS[kind]}: how often at least as good", head, rows, losses)


def size_section(found: Found) -> Section:
    head = ["tables", "model", "leaves", "terms", "numbers", "lines of text, 3/4", "fit, s"]
    head += [f"fit, s, up to {MOST_ROWS_OF_A_SHORT_FIT:,} rows"]
    rows = []
    for kind, title in KINDS.items():
        tables = found.tables(kind)
        for model in (*OURS, *PEERS):
            seconds = _seconds(found, tables, model)
            if seconds:
                cells = [_median(_means(found, tables, model, key)) for key in _SIZES]
                lines = _means(found, tables, model, "text_lines")
                cells.append(f"{np.quantile(lines, 0.75):.0f}" if lines else "")
                short = _seconds(found, _short_tables(found, tables), model)
                cells += [_median(seconds, ".1f"), _median(short, ".1f")]
                rows.append([title, title_of(model), *cells])
    note = "Medians over tables of the mean over splits; *terms* is the most in a split or leaf."
    return Section("Sizes and times", head, rows, [note])


_SIZES = ("leaves", "terms", "numbers")


def _median(values: Sequence[float], form: str = "g") -> str:
    return format(float(np.median(values)), form) if values else ""


def small_section(found: Found) -> Section:
    head = ["tables", "at most", "better than CART", "worse", "equal", "share", "sign test, p"]
    rows = []
    for kind in (*KINDS, None):
        for n in SMALL:
            got = share(found, found.tables(kind), f"at_{n}", f"cart_{n}")
            if got is None:
                continue
            better = sum(gap.mean > 0 for gap in got.differences)
            worse = sum(gap.mean < 0 for gap in got.differences)
            p = binomtest(better, better + worse).pvalue if better + worse else 1.0
            counts = [str(better), str(worse), str(len(got.differences) - better - worse)]
            part = f"{better / len(got.differences):.0%}"
            title = "All" if kind is None else KINDS[kind]
            rows.append([title, f"{n} leaves", *counts, part, f"{p:.2g}"])
    return Section("Readable trees and CART with as many leaves", head, rows)


def rows_section(found: Found) -> Section:
    rows = []
    for n in GENERATED_ROWS:
        units = list(found.units_of(f"rows_{n}", "default").values())
        if units:
            seconds = float(np.mean([seconds_of(unit) for unit in units]))
            scores = [unit["score"] for unit in units]
            cells = [f"{n:,}", _scored(scores, []), str(len(units))]
            rows.append(
                [*cells, f"{np.mean([unit['leaves'] for unit in units]):g}", f"{seconds:.1f}"]
            )
    head = ["training rows", "accuracy", "draws", "leaves", "fit, s"]
    return Section("More rows", head, rows)


def learner_section(found: Found) -> Section:
    head = ["learner", "compared with", "tables", "learner better", "by more than one error"]
    rows, flagged = [], []
    for learner in LEARNERS:
        for model in ("default", "accuracy"):
            got = share(found, found.tables(), model, learner)
            if got is None:
                continue
            better = len(got.differences) - got.n_at_least
            cells = [str(len(got.differences)), str(better), str(len(got.losses))]
            rows.append([title_of(learner), title_of(model), *cells])
            if got.losses:
                words = ", ".join(gap.words for gap in got.losses)
                flagged.append(f"- {title_of(model)}, worse than {title_of(learner)}: {words}.")
    return Section("Our own learners at their defaults", head, rows, flagged)


def score_section(found: Found, kind: str) -> Section:
    shown = [
        model for model in COMPARED if any((t, model) in found.units for t in found.tables(kind))
    ]
    rows = []
    for table in found.tables(kind):
        units = _any_units(found, table)
        if units:
            cells = [_cell(found, table, model) for model in shown]
            n_rows = units[0]["train_rows"] + units[0]["test_rows"]
            rows.append([table, units[0]["measure"], f"{n_rows:,}", *cells])
    head = ["table", "score", "rows", *(title_of(model) for model in shown)]
    return Section(f"{KINDS[kind]}: scores", head, rows)


def _cell(found: Found, table: str, model: str) -> str:
    units = list(found.units_of(table, model).values())
    if not units:
        return ""
    part_scores = units[0].get("part_scores", []) if len(units) == 1 else []
    return _scored([unit["score"] for unit in units], part_scores)


def _scored(scores: Sequence[float], part_scores: Sequence[float]) -> str:
    error = standard_error(part_scores or scores)
    return f"{np.mean(scores):.3f}" + ("" if math.isnan(error) else f" ± {error:.3f}")


def failure_section(found: Found) -> Section:
    rows = [
        [unit["table"], str(unit["split"]), title_of(unit["model"]), unit["failure"]]
        for unit in found.failures
    ]
    return Section("Without a result", ["table", "split", "model", "reason"], rows)
