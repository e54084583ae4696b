"""Write `docs/results/tel.md`: the TEL paper's numbers beside what was recorded here.

    python -m benchmarks.quality.tel_page [--check]

Reads ``results/`` only. What is not recorded yet is named as such; ``--check`` writes nothing and
ends with status 1 where the page is not what the results say.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.dgt_page import markdown
from benchmarks.quality.tel_cnn import KINDS, NAMES
from benchmarks.quality.tel_cnn import PAPER as TABLE_4
from benchmarks.quality.tel_methods import METHODS, Method
from benchmarks.quality.tel_paper import TABLE_3
from benchmarks.quality.tel_tables import (
    FOLDER,
    TABLE_3_METHODS,
    Run,
    p_value,
    rows_of,
    wins,
)
from benchmarks.record import RESULTS

PAGE = RESULTS.parents[1] / "docs" / "results" / "tel.md"
NOT_RECORDED = ["Not recorded yet.", ""]
TOLERANCE = 0.01  # below the paper's AUC by more: to be explained
EXPLANATION = [
    "The paper's splits, and the way it averages several classes, are not known: its numbers "
    "are not of the same rows, and where the peers are as far from theirs it is the rows. What is "
    "TEL's own: 20 rounds (the paper: 50) on one part of at most 2500 rows (the paper: 5 folds "
    "of all), in a space of seven dimensions in which two learning rates of five get nowhere. On "
    "small tables the choice is then much by chance; on the large `sleep` it is made on a "
    "thirtieth of the rows."
]
_RUN = Run(Path(), FOLDER, 5, 20, 1, np.inf, None)


def spread(values: np.ndarray) -> str:
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{values.mean():.3f} ± {values.std(ddof=1):.3f}"


def table_3() -> list[str]:
    methods = [METHODS[name] for name in TABLE_3_METHODS]
    found = rows_of(_RUN, list(TABLE_3), methods)
    if not found:
        return NOT_RECORDED
    rows = []
    for row in found:
        paper, values = TABLE_3[row["name"]], row["values"]
        p = p_value(values["tel"], values["xgboost"])
        words = [spread(values[name]) for name in TABLE_3_METHODS]
        of_paper = " / ".join(f"{value:g}" for value in paper)
        p_words = "" if np.isnan(p) else f"{p:.2f}"
        rows.append([row["name"], str(row["n_splits"]), *words, p_words, of_paper])
    head = ["data", "splits", *(m.title for m in methods), "p, TEL and XGBoost", "paper"]
    return [
        *markdown(head, rows),
        f"{_said(found, methods)} In the paper, to as many: TEL 12, GBDT 14, logistic regression "
        "6, CART 0.",
        "",
        *_averaged(),
        *_significant(found),
        *_below_paper(found),
        *_missing(found),
    ]


def _said(found: list[dict[str, Any]], methods: Sequence[Method]) -> str:
    counts = wins(found, list(methods))
    said = ", ".join(f"{METHODS[name].title} {count}" for name, count in counts.items())
    return (
        f"Wins and draws, of {len(found)} data sets, means over the splits that all methods have, "
        f"compared to three places: {said}."
    )


def _averaged() -> list[str]:
    """Say what TEL comes to where the mean of several starts is kept, with the same settings."""
    peers = [METHODS[name] for name in ("tel_mean", *TABLE_3_METHODS[1:])]
    found = rows_of(_RUN, list(TABLE_3), peers)
    both = rows_of(_RUN, list(TABLE_3), [METHODS["tel"], METHODS["tel_mean"]])
    if not both:
        return []
    gain = np.mean([r["values"]["tel_mean"].mean() - r["values"]["tel"].mean() for r in both])
    return [
        f'With `restarts=5, keep="mean"`, 5 starts averaged, and the same settings, AUC is '
        f"{gain:+.4f} in the mean over {len(both)} data sets. {_said(found, peers)}",
        "",
    ]


def _significant(found: list[dict[str, Any]]) -> list[str]:
    better, worse = [], []
    for row in found:
        tel, peer = row["values"]["tel"], row["values"]["xgboost"]
        if p_value(tel, peer) < 0.05:
            (better if tel.mean() > peer.mean() else worse).append(row["name"])
    return [
        "Paired t-test over the splits at 5 %, TEL against XGBoost: better on "
        f"{', '.join(better) or 'none'}; worse on {', '.join(worse) or 'none'}.",
        "",
    ]


def _below_paper(found: list[dict[str, Any]]) -> list[str]:
    below = []
    for row in found:
        here = {name: values.mean() for name, values in row["values"].items()}
        paper = TABLE_3[row["name"]]
        if here["tel"] < paper.tel - TOLERANCE:
            below.append(
                f"- {row['name']}: {here['tel']:.3f}, paper {paper.tel:g}; XGBoost here "
                f"{here['xgboost']:.3f}, paper {paper.xgboost:g}; logistic regression here "
                f"{here['logistic']:.3f}, paper {paper.logistic:g}"
            )
    return [
        f"More than {TOLERANCE:g} below the paper's TEL:" + ("" if below else " none."),
        "",
        *below,
        *([""] if below else []),
        *EXPLANATION,
        "",
    ]


def _missing(found: list[dict[str, Any]]) -> list[str]:
    left = [name for name in TABLE_3 if name not in {row["name"] for row in found}]
    return [f"Not recorded yet: {', '.join(left)}.", ""] if left else []


def table_2() -> list[str]:
    methods = [METHODS["smooth"], METHODS["sigmoid"]]
    found = rows_of(_RUN, list(TABLE_3), methods)
    if not found:
        return NOT_RECORDED
    rows = [
        [
            row["name"],
            str(row["n_splits"]),
            *(spread(row["values"][method.name]) for method in methods),
            f"{p_value(*(row['values'][method.name] for method in methods)):.2f}",
        ]
        for row in found
    ]
    counts = wins(found, methods)
    return [
        *markdown(["data", "splits", "smooth step", "logistic", "p"], rows),
        f"Wins and draws: smooth step {counts['smooth']}, logistic {counts['sigmoid']}, of "
        f"{len(found)}.",
        "",
    ]


def speed(name: str, columns: dict[str, str]) -> list[str]:
    """Return a recorded speed table: keys of its rows, and the formats of their values."""
    document = _recorded(name)
    if document is None:
        return NOT_RECORDED
    rows = [
        [_cell(row.get(key), form) for key, form in columns.items()] for row in document["rows"]
    ]
    return [document["title"], "", *markdown(list(columns), rows)]


def _cell(value: Any, form: str) -> str:
    return "" if value is None else format(value, form)


def table_4() -> list[str]:
    document = _recorded("tel_cnn")
    if document is None:
        return NOT_RECORDED
    rows = []
    for key in ((name, kind) for name in NAMES for kind in KINDS):
        runs = [run for run in document["runs"] if (run["name"], run["kind"]) == key]
        accuracy, loss = (np.array([run[what] for run in runs]) for what in ("accuracy", "loss"))
        paper = TABLE_4[key]
        rows.append(
            [
                f"{key[0]}, CNN-{key[1]}",
                str(len(runs)),
                f"{accuracy.mean():.4f} ± {accuracy.std(ddof=1):.4f}",
                f"{loss.mean():.4f} ± {loss.std(ddof=1):.4f}",
                f"{runs[0]['parameters']:,}",
                f"{paper['accuracy']} / {paper['loss']} / {paper['parameters']:,}",
            ]
        )
    return markdown(["network", "seeds", "accuracy", "loss", "parameters", "paper"], rows)


def gpu() -> list[str]:
    document = _recorded("tel_gpu")
    if document is None:
        return NOT_RECORDED
    columns = {"n": "", "depth": "", "gamma": "g", "state": "", "leaves": ".1f"}
    columns |= dict.fromkeys(("ours_ms", "dense_ms", "logistic_ms"), ".2f")
    columns |= {"over_dense": ".1f", "ours_python_ms": ".2f", "dense_python_ms": ".2f"}
    rows = [
        [_cell(row.get(key), form) for key, form in columns.items()] for row in document["rows"]
    ]
    return markdown(list(columns), rows)


def picture(name: str, words: str) -> list[str]:
    if not (PAGE.parents[1] / "images" / f"{name}.png").exists():
        return NOT_RECORDED
    return [f"![{words}](../images/{name}.png)", ""]


def _recorded(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def page() -> str:
    depth = {"depth": "", "gamma": "g", "first": ".1f", "last": ".2f", "ours": ".1f"}
    depth |= {"dense": ".1f", "ratio": ".1f", "floor": ".0f", "verdict": ""}
    step = {"d": "", "depth": "", "state": "", "gamma": "g", "leaves": ".1f", "ours": ".2f"}
    step |= {"logistic": ".2f", "smooth": ".2f", "ratio": ".1f", "verdict": ""}
    sections: Sequence[tuple[str, list[str]]] = (
        (
            "Table 3: test AUC",
            ["`python -m benchmarks.quality.tel_tables --data FOLDER`", "", *table_3()],
        ),
        (
            "Table 2: the smooth step and the logistic function",
            [
                "10 trees of depth 4. "
                "`python -m benchmarks.quality.tel_tables --data FOLDER --methods smooth,sigmoid`",
                "",
                *table_2(),
            ],
        ),
        (
            "Figure 2: leaves that are reached",
            [
                "`python -m benchmarks.quality.tel_figures --data FOLDER --figures 2`",
                "",
                *picture("tel_reachable", "leaves that a row reaches against passes, by gamma"),
            ],
        ),
        (
            "Figure 3: training time against depth",
            [
                "`python -m benchmarks.speed.tel_depth`",
                "",
                *picture("tel_depth", "time of a pass against depth"),
                *speed("tel_depth", depth),
            ],
        ),
        (
            "One step of the layer",
            ["`python -m benchmarks.speed.tel_step`", "", *speed("tel_step", step)],
        ),
        (
            "The layer on a GPU",
            [
                "10 trees over 64 columns, 10 outputs, float32, forward and backward; times of the "
                "GPU alone, and started from Python. `python -m benchmarks.speed.tel_gpu` on an "
                "NVIDIA H200; `tests/nn/cuda_check.py` shows equality with the CPU there.",
                "",
                *gpu(),
            ],
        ),
        (
            "Figure 4: AUC against the number of trees",
            [
                "`python -m benchmarks.quality.tel_figures --data FOLDER --figures 4`",
                "",
                *picture("tel_trees", "test AUC against the number of trees, TEL and XGBoost"),
            ],
        ),
        (
            "Table 4: trees in the place of dense layers",
            ["`python -m benchmarks.quality.tel_cnn --data FOLDER`", "", *table_4()],
        ),
    )
    lines = [
        "# TEL: the paper's numbers and ours",
        "",
        "Written by `python -m benchmarks.quality.tel_page` from recorded runs; how each was made "
        "is in the head of the script that is named. [The paper in the code](../papers/tel.md).",
        "",
    ]
    for title, body in sections:
        lines += [f"## {title}", "", *body]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    text = page()
    if parser.parse_args().check:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
