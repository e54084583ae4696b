"""Write `docs/results/bandit.md`: bandit feedback, with other libraries and the paper.

    python -m benchmarks.quality.bandit_page [--check]

The page is made from ``results/`` only and names what is not recorded yet. ``--check`` writes
nothing and exits with status 1 if the page does not agree with the results.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import bandit_curves, bandit_figures, bandit_regression, bandit_replay
from benchmarks.quality.bandit_learners import LEARNERS
from benchmarks.quality.bandit_replay import NAMES, words
from benchmarks.quality.dgt_page import markdown
from benchmarks.quality.tel_page import NOT_RECORDED, picture, speed
from benchmarks.quality.tel_tables import p_value
from benchmarks.quality.written_page import LEGEND, joined, not_here, origin, write_or_check
from benchmarks.record import RESULTS

PAGE = RESULTS.parents[1] / "docs" / "results" / "bandit.md"
_REPLAY = bandit_replay.Run(Path(), bandit_replay.RECORDED, 5, np.inf)
_FIGURES = bandit_curves.Run(Path(), bandit_curves.RECORDED, 10, np.inf)
Found = dict[str, dict[str, Any]]


# --- one pass ----------------------------------------------------------------------------------


def replay_rows() -> dict[str, Found]:
    """Return, by data set and learner, what is recorded; data sets without ours are left out."""
    rows = {}
    for name in NAMES:
        summaries = {key: bandit_replay.summary(_REPLAY, name, LEARNERS[key]) for key in LEARNERS}
        found = {key: row for key, row in summaries.items() if row is not None}
        if "tree" in found and "vw" in found:
            rows[name] = found
    return rows


def reward_words(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    if not row["is_chosen"]:
        return f"{row['mean']:.3f} ({row['tried']} settings so far)"
    few = "" if row["passes"] >= _REPLAY.n_seeds else f" ({row['passes']} passes)"
    return f"{row['mean']:.3f}" + (f" ± {row['sd']:.3f}" if row["sd"] is not None else "") + few


def rewards_by_seed(name: str, learner: str) -> np.ndarray:
    runs = _REPLAY.ledger(name, LEARNERS[learner]).runs
    return np.array([entry["score"] for entry in sorted(runs, key=lambda entry: entry["seed"])])


def p_words(name: str) -> str:
    """Return the p-value of the paired t-test over orders, DGTBandit against VW."""
    ours, peer = rewards_by_seed(name, "tree"), rewards_by_seed(name, "vw")
    shared = min(len(ours), len(peer))
    p = p_value(ours[:shared], peer[:shared]) if shared > 1 else np.nan
    if np.isnan(p):
        return ""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def replay() -> list[str]:
    found = replay_rows()
    if not found:
        return NOT_RECORDED
    rows = [
        [
            name,
            f"{row['tree']['rows']:,}",
            *(reward_words(row.get(key)) for key in LEARNERS),
            p_words(name),
        ]
        for name, row in found.items()
    ]
    head = [
        "data",
        "rows",
        *(learner.title for learner in LEARNERS.values()),
        "p-value, DGTBandit and VW",
    ]
    return [
        *markdown(head, rows),
        f"- {_better(found, 'vw', 'VW')}",
        f"- {_better(found, 'vw_wide', 'VW with learning rates 2, 4 and 8 (`--squarecb`)')}",
        f"- {_better(found, 'refit', 'contextualbandits')}",
        "",
        "VW's best setting, the mean reward over the last quarter of the rows, and the time of a "
        "run:",
        "",
        *markdown(
            ["data", "VW's setting", "DGTBandit", "VW", "s per run, DGTBandit", "s per run, VW"],
            [_last_words(name, row) for name, row in found.items()],
        ),
        *_left_out(found),
        *_not_there(found),
    ]


def _better(found: dict[str, Found], peer: str, title: str) -> str:
    """Say on which data sets ours has more reward; unfinished grids do not count."""
    met = {name: row for name, row in found.items() if row.get(peer, {}).get("is_chosen")}
    ahead = [name for name, row in met.items() if row["tree"]["mean"] > row[peer]["mean"]]
    behind = [name for name in met if name not in ahead]
    return (
        f"`DGTBandit` has a higher mean reward than {title} on {len(ahead)} of the {len(met)} "
        f"finished data sets, and a lower one on {' and '.join(behind) or 'none'}."
    )


def _last_words(name: str, row: Found) -> list[str]:
    ours, vw = row["tree"], row["vw"]
    means = [f"{found['last_quarter']:.3f}" for found in (ours, vw)]
    return [name, words(vw["setting"]), *means, f"{ours['seconds']:.1f}", f"{vw['seconds']:.1f}"]


def _left_out(found: dict[str, Found]) -> list[str]:
    lines = [
        f"- {name}, {LEARNERS[key].title}: {len(row[key]['left_out'])} settings"
        for name, row in found.items()
        for key in ("vw", "vw_wide", "refit")
        if key in row and row[key]["left_out"]
    ]
    head = ["Left out, because one run would take more than 15 minutes:", ""]
    return [*head, *lines, ""] if lines else []


def _not_there(found: dict[str, Found]) -> list[str]:
    missing = [name for name in NAMES if name not in found]
    return [f"Not recorded yet: {', '.join(missing)}.", ""] if missing else []


# --- the paper's figures -----------------------------------------------------------------------


def accuracy() -> list[str]:
    rows = bandit_figures.accuracy_rows(_FIGURES, bandit_curves.QUERIES)
    if not rows:
        return NOT_RECORDED
    cells = []
    for row in rows:
        marks = [len(row["queries"]) // 2, -1]
        if row["name"] in bandit_curves.FLOORS:
            marks.insert(0, row["queries"].index(bandit_curves.FLOORS[row["name"]][0]))
        points = dict.fromkeys(range(len(row["queries"]))[mark] for mark in marks)
        said = "; ".join(_point_words(row, mark) for mark in sorted(points))
        title = bandit_curves.CURVES[row["learner"]]
        cells.append([row["name"], f"`{title}`" if "DGT" in title else title, said, _runs(row)])
    return [
        *picture("bandit_accuracy", "held-out accuracy against queries, with 95 % bands"),
        *markdown(["data", "learner", "accuracy after queries, %", "runs"], cells),
        *_floor_words(rows),
    ]


def _point_words(row: dict[str, Any], mark: int) -> str:
    half = row["half_interval"][mark]
    return f"{row['mean'][mark]:.1f} ± {half:.1f} after {row['queries'][mark]:,.0f}"


def _runs(row: dict[str, Any]) -> str:
    return str(row["runs"])


def _floor_words(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for name, (queries, floor) in bandit_curves.FLOORS.items():
        said = [
            f"{bandit_curves.CURVES[row['learner']]} "
            f"{row['mean'][row['queries'].index(queries)]:.1f} %"
            for row in rows
            if row["name"] == name
        ]
        if said:
            lines.append(f"- {name}, {queries:,} queries: paper {floor:g} %; {', '.join(said)}")
    return [*lines, ""] if lines else []


def one_point() -> list[str]:
    rows = bandit_figures.one_point_rows(_FIGURES, bandit_regression.NAMES)
    if not rows:
        return NOT_RECORDED
    cells = [
        [
            row["name"],
            bandit_regression.LEARNERS[row["learner"]],
            "; ".join(_rmse_words(row, mark) for mark in (len(row["queries"]) // 2, -1)),
            _runs(row),
        ]
        for row in rows
    ]
    return [
        *picture("bandit_one_point", "test RMSE against queries, one-point feedback"),
        *markdown(["data", "learner", "test RMSE after queries", "runs"], cells),
    ]


def _rmse_words(row: dict[str, Any], mark: int) -> str:
    half = row["half_interval"][mark]
    return f"{row['mean'][mark]:.3f} ± {half:.3f} after {row['queries'][mark]:,.0f}"


def two_point() -> list[str]:
    rows = bandit_figures.two_point_rows(_FIGURES, bandit_regression.NAMES)
    if not rows:
        return NOT_RECORDED
    cells = [
        [
            row["name"],
            bandit_regression.LEARNERS[row["learner"]],
            row["loss"],
            f"{row['mean']:.3f}" + (f" ± {row['sd']:.3f}" if row["runs"] > 1 else ""),
            f"{row['paper']:g}",
            "" if row["floor"] is None else f"{row['floor']:g}, {row['verdict']}",
            f"{row['queries']:,.0f}",
            _runs(row),
        ]
        for row in rows
    ]
    head = ["data", "learner", "loss", "test RMSE", "paper", "target, at most", "queries", "runs"]
    return markdown(head, cells)


# --- the page ----------------------------------------------------------------------------------


def speeds() -> list[str]:
    size = {"k": "", "d": "", "h": ""}
    rates = dict.fromkeys(("ours", "vw_text", "vw_cache", "torch"), ",.0f")
    return [
        *speed("bandit_bulk", {**size, **rates, "over_vw": ".1f", "over_torch": ".0f"} | _VERDICT),
        *speed(
            "bandit_rounds",
            {**size, "method": "", "ours": ".1f", "vw": ".1f", "options": "", "ratio": ".2f"}
            | _VERDICT,
        ),
        *speed(
            "bandit_decide",
            {**size, "method": "", "beside": "", "learned": ",.0f", "p50": ".1f", "p99": ".1f"}
            | _VERDICT,
        ),
        *speed(
            "bandit_memory",
            {"method": "", "rounds": ",d", "early": ".1f", "late": ".1f", "growth": ".1f"}
            | _VERDICT,
        ),
    ]


_VERDICT = {"verdict": ""}
SPEED = ("bandit_bulk", "bandit_rounds", "bandit_decide", "bandit_memory")


def page() -> str:
    sections: Sequence[tuple[str, list[str]]] = (
        (
            "Mean reward when every row comes once",
            [
                "Classification data sets become bandits: the classes are the actions, and the "
                "reward is 1 for the correct class and 0 otherwise. Every row comes once, and the "
                "learner sees only the reward of the action that it chose. Higher is better. "
                "`python -m benchmarks.quality.bandit_replay --data FOLDER`",
                "",
                "The table has the mean ± standard deviation over 5 random orders of the rows. "
                "`DGTBandit` has its default hyperparameters everywhere. Two things favor the "
                "others. For each data set, they have the best of all settings tried, chosen by "
                "the rewards shown here. And columns for Vowpal Wabbit (VW) are standardized with "
                "statistics of all rows. The p-value is from a paired t-test over the orders.",
                "",
                *replay(),
                *origin("bandit_replay"),
            ],
        ),
        (
            "Figure 2: accuracy on held-out rows",
            [
                "A query is one round: the learner chooses an action for a row and sees its "
                "reward. The table has the mean over the runs ± half the width of its 95 % "
                "confidence interval (Student's t). The paper's method has the quantizer and the "
                "rounds per step that are best on validation rows. "
                "`python -m benchmarks.quality.bandit_figures --data FOLDER --parts 2`",
                "",
                *accuracy(),
                *origin("bandit_figures"),
            ],
        ),
        (
            "Figure 3: regression, one loss per round",
            [
                "In each round, the learner predicts a number and sees only the loss of that "
                "prediction. Mean over 10 seeds ± half the width of its 95 % confidence interval "
                "(Student's t); lower is better. "
                "`python -m benchmarks.quality.bandit_figures --data FOLDER --parts 3`",
                "",
                *one_point(),
                *origin("bandit_figures"),
            ],
        ),
        (
            "Table 6: regression, two losses per round",
            [
                "In each round, the learner sees the losses of two predictions. Mean ± standard "
                "deviation over 10 seeds, as in the paper; lower is better. "
                "`python -m benchmarks.quality.bandit_figures --data FOLDER --parts 6`",
                "",
                *two_point(),
                *origin("bandit_figures"),
            ],
        ),
        (
            "Speed",
            [
                "A *floor* is the target that a figure should reach; MISS marks those that do not. "
                "In the tables, the method `replay` is the default of `DGTBandit`, and `paper` is "
                "the paper's estimator. The growth of memory is measured from 15 % of the rounds "
                "to the end. `python -m benchmarks.speed.bandit`",
                "",
                *speeds(),
                *origin(*SPEED),
            ],
        ),
        not_here(
            "The layers, penalties and schedule of Table 1 in the paper's regression estimator: it "
            "has one layer, no penalty and a constant rate, so its Table 6 is behind the paper's.",
            "Floors for Huber's loss in Table 6.",
            "The paper's estimator over other learning rates and explorations than the paper's.",
        ),
    )
    lines = [
        "# Bandit feedback: hardwood, other libraries and the paper",
        "",
        "`python -m benchmarks.quality.bandit_page` writes this page from recorded results. The "
        "docstring of each script describes its experiment. [The guide](../guide/bandits.md).",
        "",
        LEGEND,
        "",
    ]
    return joined(lines, sections)


def main() -> int:
    return write_or_check(page, PAGE, __doc__.splitlines()[0])


if __name__ == "__main__":
    sys.exit(main())
