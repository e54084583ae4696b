"""`hardwood prune`: a smaller tree out of a model and a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, check_writable, data_mistakes, naming_the_file
from hardwood.cli.evaluate import judge, target_columns, true_answers, was_learned_from
from hardwood.cli.output import Notes, print_json, print_table, print_text
from hardwood.cli.read import hard_form, open_model, read_table, read_weights
from hardwood.errors import TableError
from hardwood.report.metrics import scores_json
from hardwood.report.resampling import Score
from hardwood.table.split import hold_out
from hardwood.table.target import positions
from hardwood.text.numbers import format_number, plural

if TYPE_CHECKING:
    import pyarrow as pa

    from hardwood.model import ObliqueTree
    from hardwood.model.edit.readable import Readable

_VALIDATION_FRACTION = 0.3
# The sizes that are shown, and how they are called.
_WORDS = {
    "n_splits": "splits",
    "n_leaves": "leaves",
    "depth": "depth",
    "n_weights": "weights other than 0",
    "multiplications": "multiplications per row",
    "additions": "additions per row",
}
_STALE = ("test", "test_rows")  # of a record: what was said of the tree as it was


CriterionChoice = Literal[
    "auto", "log_loss", "squared_error", "misclassification", "absolute_error"
]
"""What `--criterion` takes."""


@dataclass(frozen=True)
class PruningRows:
    """Rows of the table, their weights, and their true answers where there is a target."""

    table: pa.Table
    weight: np.ndarray
    truth: np.ndarray | None

    def part(self, rows: np.ndarray) -> PruningRows:
        """Return some of the rows, by number."""
        truth = None if self.truth is None else self.truth[rows]
        return PruningRows(self.table.take(rows), self.weight[rows], truth)

    def __len__(self) -> int:
        return self.weight.size


@dataclass(frozen=True)
class PruningPlan:
    """How to prune: by the price of a leaf, by rows held out, or, with neither, by reach."""

    alpha: float | None
    validation_fraction: float | None
    one_standard_error: bool
    min_samples: float
    criterion: str | None
    sparsify: float | None
    readable: float | None

    def completed(self, *, has_target: bool) -> PruningPlan:
        """Check that the options go together, and fill in the default."""
        asked = {
            "--alpha": self.alpha is not None,
            "--validation-fraction": self.validation_fraction is not None,
            "--one-standard-error": self.one_standard_error,
            "--criterion": self.criterion is not None,
        }
        for option, is_asked in asked.items():
            if is_asked and not has_target:
                raise CommandError(
                    f"{option} compares answers with the truth: name it by --target."
                )
        if self.alpha is not None:
            for option in ("--validation-fraction", "--one-standard-error"):
                if asked[option]:
                    raise CommandError(f"--alpha says how small the tree gets; leave out {option}.")
        elif has_target and self.validation_fraction is None:
            return replace(self, validation_fraction=_VALIDATION_FRACTION)
        return self


def _moving_rows(what: str) -> Any:
    """Return an option for a share of the rows that ``what`` may move."""
    return opt.number(
        f"{what}, as long as no more than this share of the rows reaches another leaf; "
        "0 moves none.",
        low=0,
        high=0.99,
        default="splits are kept as they are",
    )


def prune(
    model: opt.ModelFile,
    table: opt.TableFile,
    target: Annotated[
        str | None,
        opt.target(
            "The column that the model predicts (several: a,b); without it, only what no "
            "row reaches goes."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        opt.output("The file of the smaller model.", "MODEL's name with -pruned"),
    ] = None,
    alpha: Annotated[
        float | None,
        opt.number("Remove what lowers the mean loss by less than this per leaf.", low=0),
    ] = None,
    validation_fraction: Annotated[
        float | None,
        opt.number(
            "Share of the rows held out to choose the size by; not with --alpha.",
            low=0.01,
            high=0.9,
            default=f"{_VALIDATION_FRACTION}, with --target and without --alpha",
        ),
    ] = None,
    one_standard_error: Annotated[
        bool,
        opt.flag(
            "Take the smallest tree within one standard error of the best.", "--one-standard-error"
        ),
    ] = False,
    min_samples: Annotated[
        float,
        opt.number("Remove nodes that fewer rows reach, or rows of less weight.", low=0),
    ] = 0.0,
    sparsify: Annotated[float | None, _moving_rows("Remove terms of splits, too")] = None,
    readable: Annotated[
        float | None, _moving_rows("Rewrite the splits with few terms and short numbers, too")
    ] = None,
    criterion: Annotated[
        CriterionChoice,
        opt.one_of(
            CriterionChoice,
            "The loss; auto is the log loss of classes, the squared error of numbers.",
        ),
    ] = "auto",
    weight: opt.WeightColumn = None,
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Make a model smaller, and show what that changes.

    Rows of TABLE that the model was not learned from are best. With --target a share of them is
    held out: the others say what a shortened tree should answer, these say how short it should be.
    """
    output = Path(f"{model.stem}-pruned.hardwood") if output is None else output
    check_writable(output, inputs=(model, table))
    loss = None if criterion == "auto" else criterion
    plan = PruningPlan(
        alpha, validation_fraction, one_standard_error, min_samples, loss, sparsify, readable
    ).completed(has_target=target is not None)
    tree, notes, rng = _open_tree(model), Notes(), np.random.default_rng(seed)
    with notes.collecting(), data_mistakes():
        rows, n_table_rows = _read_rows(tree, model, table, target, weight, notes)
        train, judged = _divide(rows, plan, rng, tree)
        pruned, rewritten = _pruned(tree, train, judged, plan)
        smaller = _with_record(pruned, tree, table, rows, plan)
        scores = [[] if judged.truth is None else _scores(t, judged, seed) for t in (tree, smaller)]
    if plan.validation_fraction is not None and was_learned_from(tree, table, n_table_rows):
        notes.add(
            f"{model} was learned from {table.name}, it seems (same name, same number of rows): "
            "on rows that taught the tree every split looks useful; prune by other rows"
        )
    with naming_the_file(output):
        smaller.save(output)
    if as_json:
        outcome = {
            "model": str(output),
            "task": tree.task,
            "n_rows": len(train),
            "n_validation": 0 if plan.validation_fraction is None else len(judged),
            "before": _sizes(tree, judged) | {"scores": scores_json(scores[0])},
            "after": _sizes(smaller, judged) | {"scores": scores_json(scores[1])},
            "notes": notes.messages,
        }
        print_json(outcome | _readable_json(rewritten))
        return
    _print_outcome(tree, smaller, judged, scores, plan)
    if rewritten is not None:
        print_text(f"{rewritten}\n")
    print_text(f"Wrote {output}   (read it with: hardwood describe {output})")


def _open_tree(path: Path) -> ObliqueTree:
    from hardwood.model import ObliqueTree

    model = hard_form(open_model(path), path, "prune")
    if not isinstance(model, ObliqueTree):
        raise CommandError(
            f"{path} holds a forest; prune takes a single tree. From Python, its trees can be "
            "pruned one by one: forest.replace(trees=[tree.prune(X) for tree in forest.trees])."
        )
    return model


def _read_rows(
    tree: ObliqueTree,
    model: Path,
    path: Path,
    target: str | None,
    weight: str | None,
    notes: Notes,
) -> tuple[PruningRows, int]:
    """Read the rows that count and whose answers, where asked for, the model knows.

    Also returns how many rows the table has.
    """
    table = read_table(path)
    weights = np.ones(table.num_rows) if weight is None else read_weights(table, weight, path)
    rows = PruningRows(table, weights, None)
    if target is not None:
        names = target_columns(tree, table, target, path, model)
        known, truth = true_answers(tree, table, names, path)
        rows = PruningRows(table.take(known), weights[known], truth)
        if len(known) < table.num_rows:
            left_out = plural(table.num_rows - len(known), "row")
            notes.add(f"left out: {left_out} in which '{target}' is missing")
        rows = _of_known_classes(tree, rows, notes)
    rows = rows.part(np.flatnonzero(rows.weight))
    if not len(rows):
        raise CommandError(f"No row of {path} with a known target has a weight above 0.")
    return rows, table.num_rows


def _of_known_classes(tree: ObliqueTree, rows: PruningRows, notes: Notes) -> PruningRows:
    if tree.classes is None:
        return rows
    assert rows.truth is not None
    is_known = positions(rows.truth, tree.classes) >= 0
    if not is_known.any():
        raise CommandError(
            f"None of the target's values, for example {rows.truth.tolist()[0]!r}, is a class of "
            f"the model: {', '.join(map(repr, tree.classes[:8]))}. Is this the right column?"
        )
    if not is_known.all():
        n_unknown = plural(int((~is_known).sum()), "row")
        notes.add(f"left out: {n_unknown} of a class that the model does not know")
    return rows.part(np.flatnonzero(is_known))


def _divide(
    rows: PruningRows, plan: PruningPlan, rng: np.random.Generator, tree: ObliqueTree
) -> tuple[PruningRows, PruningRows]:
    """Return the rows to prune by, and those to judge the outcome by."""
    if plan.validation_fraction is None:
        return rows, rows
    labels = None if tree.classes is None else rows.truth
    try:
        train, valid = hold_out(len(rows), plan.validation_fraction, rng, labels)
    except TableError as error:
        raise CommandError(f"{error} Use --alpha to prune by all of them.") from error
    return rows.part(train), rows.part(valid)


def _pruned(
    tree: ObliqueTree, train: PruningRows, judged: PruningRows, plan: PruningPlan
) -> tuple[ObliqueTree, Readable | None]:
    """Return the smaller tree and, where its splits were rewritten, what that changed."""
    options: dict[str, Any] = {"min_samples": plan.min_samples, "sample_weight": train.weight}
    if train.truth is not None:
        options |= {"y": train.truth, "alpha": plan.alpha, "criterion": plan.criterion}
    if plan.validation_fraction is not None:
        options["validation"] = (judged.table, judged.truth, judged.weight)
        options["one_standard_error"] = plan.one_standard_error
    smaller = tree.prune(train.table, **options)
    if plan.sparsify is not None:
        smaller = smaller.sparsify(train.table, tolerance=plan.sparsify, sample_weight=train.weight)
    if plan.readable is None:
        return smaller, None
    found = smaller.readable(train.table, tolerance=plan.readable, sample_weight=train.weight)
    return found.tree, found


def _readable_json(found: Readable | None) -> dict[str, Any]:
    if found is None:
        return {}
    splits = [asdict(split) for split in found.splits]
    return {"readable": {"share_same": found.share_same, "digits": found.digits, "splits": splits}}


def _with_record(
    smaller: ObliqueTree, tree: ObliqueTree, table: Path, rows: PruningRows, plan: PruningPlan
) -> ObliqueTree:
    """Note in the record what was done; scores of the tree as it was are no longer its own."""
    chosen = {
        "alpha": plan.alpha,
        "validation fraction": plan.validation_fraction,
        "min_samples": plan.min_samples or None,
        "criterion": plan.criterion,
        "sparsify": plan.sparsify,
        "readable": plan.readable,
    }
    pruned = {"table": table.name, "rows": len(rows), "splits before": tree.n_splits}
    pruned |= {name: value for name, value in chosen.items() if value is not None}
    record = {name: entry for name, entry in tree.record.items() if name not in _STALE}
    return smaller.replace(record=record | {"pruned": pruned})


def _scores(tree: ObliqueTree, rows: PruningRows, seed: int) -> list[Score]:
    assert rows.truth is not None
    rng = np.random.default_rng(seed)
    return judge(tree, rows.table, rows.truth, rows.weight, rng).scores


def _sizes(tree: ObliqueTree, rows: PruningRows) -> dict[str, float]:
    cost = tree.flops(rows.table).mean
    assert cost is not None  # there are rows
    return {
        "n_splits": tree.n_splits,
        "n_leaves": tree.n_leaves,
        "depth": tree.depth,
        "n_weights": tree.n_weights,
        "multiplications": cost.multiplications,
        "additions": cost.additions,
    }


def _size(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")


def _print_outcome(
    tree: ObliqueTree,
    smaller: ObliqueTree,
    judged: PruningRows,
    scores: list[list[Score]],
    plan: PruningPlan,
) -> None:
    sizes = [_sizes(t, judged) for t in (tree, smaller)]
    lines = [[words, *(_size(size[name]) for size in sizes)] for name, words in _WORDS.items()]
    lines += [
        [a.name, format_number(a.value), format_number(b.value)]
        for a, b in zip(*scores, strict=True)
    ]
    if judged.truth is None:
        title = f"By where {plural(len(judged), 'row')} go"
    elif plan.validation_fraction is None:
        title = f"Scores on the {plural(len(judged), 'row')} that it was pruned by"
    else:
        title = f"Scores on {plural(len(judged), 'row')} held out, which chose the size"
    print_table(title, ["", "before", "after"], lines)
